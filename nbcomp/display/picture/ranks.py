"""The first step of a layered drawing: nodes get ranks, and links longer than one rank are cut.

`Layered` is what the steps after it work on: nodes and dummies by number, and the links between
neighbouring ranks.  Knows numbers, not what they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Point = tuple[float, float]

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


@dataclass
class Layered:
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


def layered(
    sizes: Sequence[Point], links: Sequence[Link], top: set[int], bottom: set[int]
) -> Layered:
    """Cut long links by dummies; links of one port share theirs as far as they go together."""
    count = len(sizes)
    rank = ranks(count, links, top, bottom)
    g = Layered([w for w, _ in sizes], rank, real=count)
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


def _with_company(g: Layered, links: Sequence[Link]) -> set[int]:
    """The satellites of nodes that have some other operand to be aligned with."""
    anchored = {link.target for link in links if link.source not in g.satellites}
    return {
        link.source for link in links if link.source in g.satellites and link.target in anchored
    }
