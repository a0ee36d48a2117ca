"""A deterministic layered drawing of a directed acyclic graph: sizes and links in, coordinates out.

The method of Sugiyama, Tagawa and Toda (1981): nodes get ranks, long links are cut by dummy nodes,
the order within each rank is improved by barycentre sweeps that keep the order with the fewest
crossings, and coordinates come from the four alignments of Brandes and Köpf, "Fast and simple
horizontal coordinate assignment" (2001), with ports as in Rüegg et al. (2015).  Sources used once
("satellites": weights and constants) take no part in the alignment, so that the spine of a network
stays straight.  Knows nothing of operators or pictures.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Point = tuple[float, float]

SWEEPS = 8
WIRE = 10.0  # room a link takes when it passes through a rank


@dataclass(frozen=True)
class Link:
    """An edge between nodes by number; `out` and `into` are its ports, x offsets from their
    centres.
    """

    source: int
    target: int
    out: float = 0.0
    into: float = 0.0


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes, one polyline per link (from the foot of its source to the head of its
    target, vertical where it crosses a rank), and the size of the whole."""

    centres: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


@dataclass
class _Graph:
    """The nodes and dummies by number, their ranks, and the links between neighbouring ranks.

    above[v], below[v]: for each link of v its other end, v's own port and the port at the other
    end.
    """

    widths: list[float]
    rank: list[int]
    order: list[list[int]] = field(default_factory=list)
    above: list[list[tuple[int, float, float]]] = field(default_factory=list)
    below: list[list[tuple[int, float, float]]] = field(default_factory=list)
    chains: list[list[int]] = field(default_factory=list)  # per link: source, dummies, target
    satellites: set[int] = field(default_factory=set)
    real: int = 0  # nodes below this number are real, the others dummies


def layout(
    sizes: Sequence[Point],
    links: Sequence[Link],
    top: Collection[int] = (),
    bottom: Collection[int] = (),
    gap: Point = (18.0, 36.0),
) -> Layout:
    """Place nodes of the given (width, height); links point downwards.

    top, bottom: nodes that must be alone in the first and the last rank.  gap: the least distance
    between neighbours and between ranks.  The links must be acyclic.
    """
    if not sizes:
        return Layout((), (), 0.0, 0.0)
    graph = _layered(sizes, links, set(top), set(bottom))
    _initial_order(graph)
    _reduce_crossings(graph)
    x = _coordinates(graph, gap[0])
    return _finish(graph, x, sizes, links, gap[1])


# ---------------------------------------------------------------------------------------- ranks


def ranks(count: int, links: Sequence[Link], top: set[int], bottom: set[int]) -> list[int]:
    """The longest-path rank of each node; a source is pulled down to just above its first user."""
    users: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for link in links:
        users[link.source].append(link.target)
        waiting[link.target] += 1
    rank = [0 if (v in top or not top) else 1 for v in range(count)]
    sources = [v for v in range(count) if not waiting[v]]
    ready = list(sources)
    for v in ready:
        for user in users[v]:
            rank[user] = max(rank[user], rank[v] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if len(ready) < count:
        raise ValueError("a layered drawing needs a graph without cycles")
    for v in sources:
        if users[v] and v not in top:
            rank[v] = min(rank[u] for u in users[v]) - 1
    last = max((rank[v] for v in range(count) if v not in bottom), default=-1) + 1
    for v in bottom:
        rank[v] = last
    return rank


def _layered(
    sizes: Sequence[Point], links: Sequence[Link], top: set[int], bottom: set[int]
) -> _Graph:
    """Cut long links by dummies; links of one port share theirs as far as they go together."""
    count = len(sizes)
    rank = ranks(count, links, top, bottom)
    g = _Graph([w for w, _ in sizes], rank, real=count)
    uses, feeds = [0] * count, [0] * count
    pieces: dict[tuple[int, int], tuple[float, float]] = {}
    chain_of: dict[tuple[int, float], list[int]] = {}
    for link in links:
        uses[link.source] += 1
        feeds[link.target] += 1
        chain = chain_of.setdefault((link.source, link.out), [link.source])
        while rank[chain[-1]] < rank[link.target] - 1:
            g.widths.append(WIRE)
            rank.append(rank[chain[-1]] + 1)
            dummy = len(rank) - 1
            pieces[chain[-1], dummy] = (link.out if len(chain) == 1 else 0.0, 0.0)
            chain.append(dummy)
        head = chain[: rank[link.target] - rank[link.source]]
        pieces.setdefault((head[-1], link.target), (link.out if len(head) == 1 else 0.0, link.into))
        g.chains.append([*head, link.target])
    g.above = [[] for _ in rank]
    g.below = [[] for _ in rank]
    for (u, v), (out, into) in pieces.items():
        g.below[u].append((v, out, into))
        g.above[v].append((u, into, out))
    g.satellites = {
        link.source
        for link in links
        if uses[link.source] == 1
        and not feeds[link.source]
        and link.source not in top
        and feeds[link.target] > 1
    }
    g.satellites = _with_company(g, links)
    return g


def _with_company(g: _Graph, links: Sequence[Link]) -> set[int]:
    """The satellites of nodes that have some other operand to be aligned with."""
    anchored = {link.target for link in links if link.source not in g.satellites}
    return {
        link.source for link in links if link.source in g.satellites and link.target in anchored
    }


# ---------------------------------------------------------------------------------------- order


def _initial_order(g: _Graph) -> None:
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


def _position(g: _Graph, place: list[int], v: int, port: float) -> float:
    """Where a port lies along its rank, in order steps."""
    return place[v] + (0.8 * port / g.widths[v] if g.widths[v] else 0.0)


def _reduce_crossings(g: _Graph) -> None:
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
    g: _Graph, row: list[int], place: list[int], neighbours: list[list[tuple[int, float, float]]]
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


def _crossings(g: _Graph, place: list[int]) -> int:
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


# ---------------------------------------------------------------------------------- coordinates


def _coordinates(g: _Graph, gap: float) -> list[float]:
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


def _conflicts(g: _Graph) -> set[tuple[int, int]]:
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
    g: _Graph,
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
    g: _Graph, rows: list[list[int]], root: list[int], shift: list[float], gap: float
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


def _move_together(candidates: list[list[float]], g: _Graph) -> None:
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


def _settle_satellites(g: _Graph, x: list[float], gap: float) -> None:
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


# --------------------------------------------------------------------------------------- result


def _finish(
    g: _Graph, x: list[float], sizes: Sequence[Point], links: Sequence[Link], gap: float
) -> Layout:
    """Stack the ranks, move everything to the origin and write down the routes."""
    left = min(value - w / 2 for value, w in zip(x, g.widths, strict=True))
    right = max(value + w / 2 for value, w in zip(x, g.widths, strict=True))
    heights = [max((sizes[v][1] for v in row if v < g.real), default=0.0) for row in g.order]
    tops = [0.0]
    for height in heights:
        tops.append(tops[-1] + height + gap)
    centres = []
    for v, (_, height) in enumerate(sizes):
        top, room = tops[g.rank[v]], heights[g.rank[v]] - height
        centres.append((x[v] - left, top + height / 2 + (room if not g.above[v] else room / 2)))

    def route(link: Link, chain: list[int]) -> tuple[Point, ...]:
        (ux, uy), (vx, vy) = centres[link.source], centres[link.target]
        start, end = ux + link.out, vx + link.into
        points = [(start, uy + sizes[link.source][1] / 2)]
        rows = [(start, g.rank[link.source])] + [(x[d] - left, g.rank[d]) for d in chain[1:-1]]
        for i, (at, rank) in enumerate(rows):
            if i:
                points.append((at, tops[rank]))
            points.append((at, tops[rank] + heights[rank]))
        points.append((end, tops[g.rank[link.target]]))
        points.append((end, vy - sizes[link.target][1] / 2))
        return tuple(dict.fromkeys(points))

    routes = tuple(route(link, chain) for link, chain in zip(links, g.chains, strict=True))
    return Layout(tuple(centres), routes, right - left, tops[-1] - gap)
