"""The third step of a layered drawing: where along its rank each node lies.

The four alignments of Brandes and Köpf, "Fast and simple horizontal coordinate assignment" (2001),
with ports as in Rüegg et al. (2015).  Satellites take no part and are put beside their users.
"""

from __future__ import annotations

from itertools import pairwise

from nbcomp.display.picture.ranks import Layered


def coordinates(g: Layered, gap: float) -> list[float]:
    """Brandes–Köpf: the mean of the two middle ones of four extreme alignments, for each node."""
    marked = _conflicts(g)
    candidates = []
    for upward in (False, True):
        for mirrored in (False, True):
            order = g.order[::-1] if upward else g.order
            rows = [row[::-1] for row in order] if mirrored else order
            neighbours = g.below if upward else g.above
            sign = -1.0 if mirrored else 1.0
            root, shift = _align(g, rows, neighbours, marked, sign)
            x = _compact(g, rows, root, shift, gap)
            candidates.append([sign * value for value in x])
    _move_together(candidates, g)
    x = []
    for values in zip(*candidates, strict=True):
        ordered = sorted(values)
        x.append((ordered[1] + ordered[2]) / 2)
    _settle_satellites(g, x, gap)
    return x


def _conflicts(g: Layered) -> set[tuple[int, int]]:
    """Links that cross a link between two dummies: the latter is to stay straight."""
    marked = set()
    for upper, lower in pairwise(g.order):
        place = {v: i for i, v in enumerate(upper)}
        begin = scanned = 0
        for i, v in enumerate(lower):
            inner = None
            if v >= g.real:
                inner = next((u for u, _, _ in g.above[v] if u >= g.real), None)
            if inner is None and i < len(lower) - 1:
                continue
            end = place[inner] if inner is not None else len(upper)
            for w in lower[scanned : i + 1]:
                for u, _, _ in g.above[w]:
                    if not begin <= place[u] <= end and not (u >= g.real and w >= g.real):
                        marked.add((u, w))
            scanned, begin = i + 1, end
    return marked


def _align(
    g: Layered,
    rows: list[list[int]],
    neighbours: list[list[tuple[int, float, float]]],
    marked: set[tuple[int, int]],
    sign: float,
) -> tuple[list[int], list[float]]:
    """Chain each node to its median neighbour in the rank before: block roots, and shifts in a
    block.
    """
    count = len(g.rank)
    root, shift = list(range(count)), [0.0] * count
    aligned = [False] * count  # already the upper end of some chain link
    for before, row in pairwise(rows):
        place = {v: i for i, v in enumerate(before)}
        last = -1
        for v in row:
            if v in g.satellites:
                continue
            near = [n for n in neighbours[v] if n[0] not in g.satellites]
            near.sort(key=lambda n: (place[n[0]], sign * n[2]))
            for u, port, other in near[(len(near) - 1) // 2 : len(near) // 2 + 1]:
                free = root[v] == v and not aligned[u]
                if free and (u, v) not in marked and (v, u) not in marked and last < place[u]:
                    aligned[u] = True
                    root[v] = root[u]
                    shift[v] = shift[u] + sign * (other - port)
                    last = place[u]
    return root, shift


def _compact(
    g: Layered, rows: list[list[int]], root: list[int], shift: list[float], gap: float
) -> list[float]:
    """The leftmost coordinates that keep all distances, then each block pulled right to its
    neighbour.
    """
    right: dict[int, dict[int, float]] = {v: {} for v in range(len(root)) if root[v] == v}
    waiting = dict.fromkeys(right, 0)
    for row in rows:
        for u, v in pairwise(row):
            a, b = root[u], root[v]
            least = (g.widths[u] + g.widths[v]) / 2 + gap + shift[u] - shift[v]
            if b not in right[a]:
                waiting[b] += 1
            right[a][b] = max(right[a].get(b, least), least)
    x = dict.fromkeys(right, 0.0)
    ready = [a for a in right if not waiting[a]]
    for a in ready:
        for b, least in right[a].items():
            x[b] = max(x[b], x[a] + least)
            waiting[b] -= 1
            if not waiting[b]:
                ready.append(b)
    for a in reversed(ready):
        limit = min((x[b] - least for b, least in right[a].items()), default=x[a])
        x[a] = max(x[a], limit)
    return [x[root[v]] + shift[v] for v in range(len(root))]


def _move_together(candidates: list[list[float]], g: Layered) -> None:
    """Move each alignment onto the narrowest one: left edges for the left ones, right for the
    others.
    """

    def edges(x: list[float]) -> tuple[float, float]:
        spans = [(value - w / 2, value + w / 2) for value, w in zip(x, g.widths, strict=True)]
        return min(low for low, _ in spans), max(high for _, high in spans)

    bounds = [edges(x) for x in candidates]
    low, high = min(bounds, key=lambda b: b[1] - b[0])
    for i, x in enumerate(candidates):
        move = low - bounds[i][0] if i % 2 == 0 else high - bounds[i][1]
        x[:] = [value + move for value in x]


def _settle_satellites(g: Layered, x: list[float], gap: float) -> None:
    """Move each satellite towards its user's port, as far as its neighbours leave room."""

    def distance(u: int, v: int) -> float:
        return (g.widths[u] + g.widths[v]) / 2 + gap

    for row in g.order:
        places = [i for i, v in enumerate(row) if v in g.satellites]
        for i in (*places, *places[::-1], *places):
            v = row[i]
            user, out, into = g.below[v][0]
            goal = x[user] + into - out
            if i + 1 < len(row):
                goal = min(goal, x[row[i + 1]] - distance(v, row[i + 1]))
            if i:
                goal = max(goal, x[row[i - 1]] + distance(row[i - 1], v))
            x[v] = goal
