"""A deterministic layered drawing of a directed acyclic graph: sizes and links in, coordinates out.

The method of Sugiyama, Tagawa and Toda (1981), a step a module: `ranks`, `order`, `coordinates`.
Sources used once ("satellites": weights and constants) take no part in the alignment, so that the
spine of a network stays straight.  Knows nothing of operators or pictures.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nbcomp.display.picture.coordinates import coordinates
from nbcomp.display.picture.order import initial_order, reduce_crossings
from nbcomp.display.picture.ranks import Layered, Link, Point, layered


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes, one polyline per link (from the foot of its source to the head of its
    target, vertical where it crosses a rank), and the size of the whole."""

    centres: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


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
    return _layout(tuple(sizes), tuple(links), frozenset(top), frozenset(bottom), gap)


@lru_cache(maxsize=256)  # the layers of a network look alike
def _layout(
    sizes: tuple[Point, ...],
    links: tuple[Link, ...],
    top: frozenset[int],
    bottom: frozenset[int],
    gap: Point,
) -> Layout:
    graph = layered(sizes, links, set(top), set(bottom))
    initial_order(graph)
    reduce_crossings(graph)
    x = coordinates(graph, gap[0])
    return _finish(graph, x, sizes, links, gap[1])


def _finish(
    g: Layered, x: list[float], sizes: Sequence[Point], links: Sequence[Link], gap: float
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
