"""The order of loops: split, tile, reorder, peel, distribute."""

from __future__ import annotations

import pytest

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Affine, For, walk
from nbcomp.schedule import steps
from tests.kernels import apply, at, buffer, index, kernel, load, loop, store
from tests.schedule.programs import Golden, check, column_sums, matmul, two_stages


def test_split_of_a_loop_on_all_cores_spreads_the_blocks() -> None:
    made = check(matmul(), lambda k: steps.split(steps.parallelize(k, "i"), "i", 4))
    assert [(s.var, s.kind) for s in walk(made.stages) if isinstance(s, For)][:2] == [
        ("i_o", "parallel"),
        ("i", "serial"),
    ]
    wide = check(matmul(), lambda k: steps.split(steps.vectorize(k, "j"), "j", 16))
    assert [s.kind for s in walk(wide.stages) if isinstance(s, For)][:3] == [
        "serial",
        "serial",
        "vector",
    ]


def test_blocks_as_long_as_the_loop_or_longer_are_one_of_all() -> None:
    for by in (6, 100):
        made = check(matmul(), lambda k, by=by: steps.split(k, "i", by))
        assert "for i_o in 0..1:" in str(made)
        assert "for i in 0..6:" in str(made)


def test_tile(golden: Golden) -> None:
    check(matmul(7, 40), lambda k: steps.tile(k, "i", "j", 3, 16), golden)


@pytest.mark.parametrize("by", [(1, 1), (2, 7), (6, 40), (50, 50)])
def test_tile_by_anything(by: tuple[int, int]) -> None:
    check(matmul(), lambda k: steps.tile(k, "i", "j", *by))


def test_tile_refuses_loops_that_are_not_a_nest() -> None:
    with pytest.raises(ScheduleError, match="k is not the only statement of i"):
        steps.tile(matmul(), "i", "k", 2, 2)


def test_reorder(golden: Golden) -> None:
    def step(k):
        return steps.reorder(steps.split(k, "j", 8), "j_o", "j", "i")

    check(column_sums(), step, golden)


def test_reorder_refuses_what_is_no_order() -> None:
    with pytest.raises(ScheduleError, match="two or more different loops"):
        steps.reorder(matmul(), "i", "i")
    with pytest.raises(ScheduleError, match="is not the only statement"):
        steps.reorder(matmul(), "k", "i")
    with pytest.raises(
        ScheduleError, match=r"no loop kk \(did you mean k\?\); the loops are i, j, k"
    ):
        steps.reorder(matmul(), "kk", "i")


def test_reorder_refuses_what_carries_over() -> None:
    x = buffer("x", (9, 9), "output")
    value = apply("square", load(x, index(i=1), index(j=1, constant=0)))
    body = loop("j", 8, store(x, at(index(1, i=1), index(1, j=1)), value))
    k = kernel(loop("i", 8, body), buffers=[x])
    with pytest.raises(ScheduleError, match="iterations of i are not independent"):
        steps.reorder(k, "j", "i")


def test_peel_leaves_constant_extents() -> None:
    made = check(matmul(6, 40), lambda k: steps.peel(steps.split(k, "j", 16), "j_o", 1))
    extents = {s.var: s.extent for s in walk(made.stages) if isinstance(s, For)}
    sizes = [e.constant for v, e in extents.items() if v.startswith("j") and isinstance(e, Affine)]
    assert sizes == [2, 16, 1, 8]


def test_peel(golden: Golden) -> None:
    check(matmul(5, 7), lambda k: steps.peel(k, "i", 2), golden)


@pytest.mark.parametrize("loop_", ["i", "j", "k"])
def test_peel_any_loop(loop_: str) -> None:
    check(matmul(), lambda k: steps.peel(k, loop_, 3))


def test_peel_then_tile_whole_blocks() -> None:
    def step(k):
        k = steps.peel(k, "i", 7 % 3)
        return steps.unroll(steps.tile(k, "i", "j", 3, 8), "i")

    check(matmul(7, 40), step)


@pytest.mark.parametrize("count", [0, 6, 7])
def test_peel_refuses_all_or_nothing(count: int) -> None:
    with pytest.raises(ScheduleError, match="i has 6 iterations: peel between 1 and 5"):
        steps.peel(matmul(), "i", count)


def test_distribute(golden: Golden) -> None:
    check(matmul(), lambda k: steps.distribute(k, "j"), golden)


def test_distribute_what_is_cut_short() -> None:
    check(matmul(6, 41), lambda k: steps.distribute(steps.split(k, "j", 8), "j"))


def test_distribute_refuses_a_single_statement() -> None:
    with pytest.raises(ScheduleError, match="i has a single statement"):
        steps.distribute(two_stages(), "i")


def test_distribute_refuses_what_carries_over() -> None:
    x, y = buffer("x", (9,), "output"), buffer("y", (9,), "output")
    body = (
        store(x, (index(1, i=1),), load(y, "i")),
        store(y, (index(1, i=1),), load(x, "i")),
    )
    k = kernel(loop("i", 8, *body), buffers=[x, y])
    with pytest.raises(ScheduleError, match="iterations of i are not independent"):
        steps.distribute(k, "i")


def test_peel_rest(golden: Golden) -> None:
    check(matmul(7, 10), lambda k: steps.peel_rest(k, "i", 3), golden)


def test_peel_rest_needs_whole_blocks_and_a_rest() -> None:
    with pytest.raises(ScheduleError, match="i has 6 iterations: blocks of 3 leave none or all"):
        steps.peel_rest(matmul(6, 10), "i", 3)
    with pytest.raises(ScheduleError, match="blocks of 8 leave none or all of them"):
        steps.peel_rest(matmul(6, 10), "i", 8)
    with pytest.raises(ScheduleError, match="blocks of i are of 2 iterations or more, not 1"):
        steps.peel_rest(matmul(6, 10), "i", 1)


def test_packs_of_two_axes() -> None:
    def step(k):
        k = steps.split(steps.split(k, "j", 16), "k", 4)
        return steps.pack(k, "b", 1, 16, 0, 4)

    made = check(matmul(3, 40, 8), step)
    assert next(b for b in made.buffers if b.role == "temp").shape == (3, 2, 16, 4)
    with pytest.raises(ScheduleError, match="each axis of b once"):
        steps.pack(matmul(3, 40, 8), "b", 1, 16, 1, 4)
    with pytest.raises(ScheduleError, match="each axis of b once"):
        steps.pack(matmul(3, 40, 8), "b", 1, 16, 0)
