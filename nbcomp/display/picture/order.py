"""The second step of a layered drawing: the order of the nodes within each rank.

Barycentre sweeps, down and up (Sugiyama, Tagawa and Toda, 1981), that keep the order with the
fewest crossings.
"""

from __future__ import annotations

from bisect import bisect_right, insort

from nbcomp.display.picture.ranks import Layered

SWEEPS = 8


def initial_order(g: Layered) -> None:
    """Operands before users, left to right as they are written: a depth-first walk up from the
    sinks.
    """
    g.order = [[] for _ in range(max(g.rank) + 1)]
    done = [False] * len(g.rank)
    for root in range(len(g.rank)):
        if g.below[root]:
            continue
        stack = [(root, False)]
        while stack:
            v, expanded = stack.pop()
            if expanded:
                g.order[g.rank[v]].append(v)
            elif not done[v]:
                done[v] = True
                stack.append((v, True))
                stack.extend((u, False) for u, _, _ in reversed(g.above[v]))


def _position(g: Layered, place: list[int], v: int, port: float) -> float:
    """Where a port lies along its rank, in order steps."""
    return place[v] + (0.8 * port / g.widths[v] if g.widths[v] else 0.0)


def reduce_crossings(g: Layered) -> None:
    place = [0] * len(g.rank)
    for row in g.order:
        for i, v in enumerate(row):
            place[v] = i
    best, least = [list(row) for row in g.order], _crossings(g, place)
    for sweep in range(SWEEPS):
        if not least:
            break
        down = sweep % 2 == 0
        rows = g.order if down else g.order[::-1]
        neighbours = g.above if down else g.below
        for row in rows:
            _sort_row(g, row, place, neighbours)
        count = _crossings(g, place)
        if count < least:
            best, least = [list(row) for row in g.order], count
    g.order = best


def _sort_row(
    g: Layered, row: list[int], place: list[int], neighbours: list[list[tuple[int, float, float]]]
) -> None:
    """Sort one rank by the mean position of its neighbours; those without any stay put."""
    key = {}
    for v in row:
        seen = neighbours[v]
        if seen:
            key[v] = sum(_position(g, place, u, port) for u, _, port in seen) / len(seen)
        else:
            key[v] = float(place[v])
    row.sort(key=key.__getitem__)
    for i, v in enumerate(row):
        place[v] = i


def _crossings(g: Layered, place: list[int]) -> int:
    """The number of pairs of links that cross, over all neighbouring ranks."""
    total = 0
    for row in g.order[:-1]:
        seen: list[float] = []
        for v in row:
            ends = sorted(
                (_position(g, place, v, out), _position(g, place, w, into))
                for w, out, into in g.below[v]
            )
            for _, end in ends:
                total += len(seen) - bisect_right(seen, end)
                insort(seen, end)
    return total
