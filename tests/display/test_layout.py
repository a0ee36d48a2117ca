"""The layered layout: no overlaps, links point down, the same every time."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from nbcomp.display.picture.layout import Layout, layout
from nbcomp.display.picture.ranks import Link, ranks

Size = tuple[float, float]


def overlaps(sizes: list[Size], placed: Layout) -> list[tuple[int, int]]:
    found = []
    for i, j in combinations(range(len(sizes)), 2):
        (x, y), (w, h) = placed.centres[i], sizes[i]
        (x2, y2), (w2, h2) = placed.centres[j], sizes[j]
        if abs(x - x2) < (w + w2) / 2 - 1e-6 and abs(y - y2) < (h + h2) / 2 - 1e-6:
            found.append((i, j))
    return found


def random_graph(rng: np.random.Generator, count: int) -> tuple[list[Size], list[Link]]:
    sizes = [(float(rng.integers(20, 150)), float(rng.choice([20, 30, 200]))) for _ in range(count)]
    links = []
    for v in range(1, count):
        for u in rng.choice(v, size=min(v, rng.integers(0, 4)), replace=False):
            out, into = rng.uniform(-0.4, 0.4, 2) * (sizes[u][0], sizes[v][0])
            links.append(Link(int(u), v, float(out), float(into)))
    return sizes, links


def transformer(layers: int) -> tuple[list[Size], list[Link]]:
    """A network with its weights: 59 nodes a layer."""
    sizes: list[Size] = []
    links: list[Link] = []

    def node(*operands: int) -> int:
        sizes.append((90.0, 28.0))
        links.extend(Link(u, len(sizes) - 1) for u in operands)
        return len(sizes) - 1

    def linear(x: int) -> int:
        return node(node(x, node()), node())

    def norm(x: int) -> int:
        centred = node(x, node(x))
        return node(node(node(centred, node(node(node(centred)))), node()), node())

    x = node()
    for _ in range(layers):
        h = norm(x)
        q, k, v = linear(h), linear(h), linear(h)
        scores = node(node(q, node(k)), node())
        e = node(node(scores, node(scores)))
        x = node(x, linear(node(node(e, node(e)), v)))
        f = linear(norm(x))
        x = node(x, linear(node(f, node(node(f)))))
    return sizes, links


@pytest.mark.parametrize("count", [1, 2, 5, 12, 40, 90])
def test_random_graphs_have_no_overlaps_and_point_down(
    count: int, rng: np.random.Generator
) -> None:
    for _ in range(15):
        sizes, links = random_graph(rng, count)
        placed = layout(sizes, links)
        assert overlaps(sizes, placed) == []
        for link in links:
            source, target = placed.centres[link.source], placed.centres[link.target]
            assert source[1] + sizes[link.source][1] / 2 < target[1] - sizes[link.target][1] / 2
        for (x, y), (w, h) in zip(placed.centres, sizes, strict=True):
            assert x - w / 2 >= -1e-6
            assert x + w / 2 <= placed.width + 1e-6
            assert y - h / 2 >= -1e-6
            assert y + h / 2 <= placed.height + 1e-6


def test_routes_run_from_port_to_port_and_never_through_a_node(rng: np.random.Generator) -> None:
    for _ in range(25):
        sizes, links = random_graph(rng, 25)
        placed = layout(sizes, links)
        for link, route in zip(links, placed.routes, strict=True):
            (ux, uy), (vx, vy) = placed.centres[link.source], placed.centres[link.target]
            assert route[0] == (ux + link.out, uy + sizes[link.source][1] / 2)
            assert route[-1] == (vx + link.into, vy - sizes[link.target][1] / 2)
            inside = [p for p in route[1:-1] for n in range(25) if within(p, n, sizes, placed)]
            assert inside == []


def within(point: Size, node: int, sizes: list[Size], placed: Layout) -> bool:
    (x, y), (w, h) = placed.centres[node], sizes[node]
    return abs(point[0] - x) < w / 2 - 1e-6 and abs(point[1] - y) < h / 2 - 1e-6


def test_the_same_graph_is_drawn_the_same() -> None:
    sizes, links = transformer(2)
    assert layout(sizes, links) == layout(sizes, links)


def test_a_deep_network_stays_narrow() -> None:
    # Weights beside their users must not push the spine sideways, layer after layer.
    narrow = layout(*transformer(2)).width
    assert layout(*transformer(20)).width < 1.2 * narrow


def test_a_chain_is_straight() -> None:
    links = [Link(i, i + 1) for i in range(5)]
    placed = layout([(20.0 + 10 * i, 20.0) for i in range(6)], links)
    assert len({round(x, 6) for x, _ in placed.centres}) == 1


def test_ports_are_aligned() -> None:
    placed = layout([(200.0, 20.0), (40.0, 20.0)], [Link(0, 1, out=60.0)])
    assert placed.centres[0][0] + 60.0 == pytest.approx(placed.centres[1][0])


def test_a_source_stands_just_above_its_first_user() -> None:
    links = [Link(0, 1), Link(1, 2), Link(2, 3), Link(4, 3)]
    assert ranks(5, links, set(), set()) == [0, 1, 2, 3, 2]


def test_pinned_nodes_are_alone_in_the_first_and_last_rank() -> None:
    links = [Link(0, 2), Link(1, 2), Link(2, 3), Link(2, 4)]
    assert ranks(5, links, {0}, {3}) == [0, 1, 2, 4, 3]


def test_no_nodes_and_no_links() -> None:
    assert layout([], []) == Layout((), (), 0.0, 0.0)
    assert overlaps([(10.0, 10.0)] * 3, layout([(10.0, 10.0)] * 3, [])) == []


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="without cycles"):
        layout([(1.0, 1.0)] * 2, [Link(0, 1), Link(1, 0)])
