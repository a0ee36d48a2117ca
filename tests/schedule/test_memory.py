"""Where values lie: stage, pack, stream."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Load
from nbcomp.schedule import steps
from nbcomp.types import INT64
from tests.kernels import add_to, buffer, index, kernel, loop, number, store
from tests.schedule.programs import Golden, check, column_sums, matmul, two_stages


def test_stage_what_is_read(golden: Golden) -> None:
    check(matmul(6, 40), lambda k: steps.stage(k, "a", "i"), golden)


def test_stage_with_the_axes_in_another_order(golden: Golden) -> None:
    check(matmul(6, 40, turned=True), lambda k: steps.stage(k, "b", "i", 1, 0), golden)


def test_stage_refuses_orders_that_are_none() -> None:
    for order in ((0,), (0, 0), (0, 2), (0, 1, 2)):
        with pytest.raises(ScheduleError, match="b has 2 axes: give each of them once"):
            steps.stage(matmul(), "b", "i", *order)


@pytest.mark.parametrize("n", [40, 41, 47])
def test_stage_a_tile_cut_where_the_buffer_ends(n: int) -> None:
    def step(k):
        return steps.stage(steps.tile(k, "i", "j", 4, 16), "b", "j_o")

    check(matmul(7, n), step)


def test_stage_what_is_added_to(golden: Golden) -> None:
    def step(k):
        return steps.stage(steps.reorder(steps.split(k, "j", 8), "j_o", "i", "j"), "out", "j_o")

    check(column_sums(), step, golden)


def test_what_is_overwritten_is_not_copied_in() -> None:
    def step(k):
        return steps.stage(steps.split(k, "i", 8), "t", "i_o")

    made = check(two_stages(48), step)
    assert "near_in" not in str(made)
    assert "near_out" in str(made)


def test_stage_refuses_what_it_cannot_place() -> None:
    n, x, y = 20, buffer("x", (20,)), buffer("y", (20,), "output")
    where = Load(INT64, buffer("p", (20,), dtype=INT64), (index(i=1),))
    gather = loop("i", n, store(y, ("i",), Load(x.dtype, x, (where,))))
    k = kernel(gather, buffers=[where.buffer, x, y])
    with pytest.raises(ScheduleError, match="data says where x is accessed"):
        steps.stage(k, "x", "i")
    with pytest.raises(ScheduleError, match="no buffer z; the buffers are"):
        steps.stage(k, "z", "i")
    with pytest.raises(ScheduleError, match="a is not used in i"):
        steps.stage(two_stages_with(buffer("a", (3,))), "a", "i")


def two_stages_with(extra):
    k = two_stages()
    return replace(k, buffers=(extra, *k.buffers))


def test_stage_refuses_results_with_holes() -> None:
    y = buffer("y", (41,), "output")
    body = loop("j", 10, add_to(y, (index(j=2, i=20),), number(1.0)))
    k = kernel(loop("i", 2, body), buffers=[y])
    with pytest.raises(ScheduleError, match="i does not write all of the part of y"):
        steps.stage(k, "y", "i")


def test_stage_refuses_more_than_the_stack_holds() -> None:
    with pytest.raises(ScheduleError, match=r"uses 1,310,720 bytes of b: more than 262,144"):
        steps.stage(matmul(4, 64, 5120), "b", "i")


def test_pack(golden: Golden) -> None:
    def step(k):
        return steps.pack(steps.tile(k, "i", "j", 3, 16), "b", 1, 16)

    check(matmul(6, 48), step, golden)


@pytest.mark.parametrize(("axis", "name", "by"), [(1, "b", 16), (0, "a", 4)])
@pytest.mark.parametrize("shape", [(8, 32), (7, 33), (5, 15)])
def test_pack_pads_the_last_block(axis: int, name: str, by: int, shape: tuple[int, int]) -> None:
    def step(k):
        return steps.pack(steps.tile(k, "i", "j", 4, 16), name, axis, by)

    check(matmul(*shape), step)


def test_pack_says_which_loop_to_split() -> None:
    with pytest.raises(ScheduleError, match="not read in blocks of 16 along axis 1: split j by 16"):
        steps.pack(matmul(), "b", 1, 16)
    with pytest.raises(ScheduleError, match="b has no axis 2: its axes are 0 to 1"):
        steps.pack(matmul(), "b", 2, 16)
    with pytest.raises(ScheduleError, match="c is written"):
        steps.pack(matmul(), "c", 1, 16)
    with pytest.raises(ScheduleError, match="blocks of 1"):
        steps.pack(matmul(), "b", 1, 1)


def test_stream(golden: Golden) -> None:
    k = steps.stream(steps.vectorize(two_stages(1 << 16), "j"), "y")
    golden(str(k))


def test_stream_refuses_what_is_needed_again() -> None:
    with pytest.raises(ScheduleError, match="t is read again"):
        steps.stream(two_stages(1 << 16), "t")
    with pytest.raises(ScheduleError, match="x is not a result"):
        steps.stream(two_stages(1 << 16), "x")


def test_stream_refuses_what_does_not_start_on_cache_lines() -> None:
    with pytest.raises(ScheduleError, match="y may not start on a cache line"):
        steps.stream(two_stages(50), "y")
    with pytest.raises(ScheduleError, match="y is not stored by vectors"):
        steps.stream(two_stages(1 << 16), "y")


def test_pad(golden: Golden) -> None:
    def step(k):
        for name in ("j", "i"):
            k = steps.distribute(k, name)
        return steps.vectorize(steps.pad(k, "s", 16), "j_2")

    check(matmul(3, 10), step, golden)


def test_pad_refuses() -> None:
    with pytest.raises(ScheduleError, match="a is not a local of several rows"):
        steps.pad(matmul(), "a", 16)
    k = steps.distribute(steps.distribute(matmul(3, 10), "j"), "i")
    with pytest.raises(ScheduleError, match="a row of s has 10 elements, more than 8"):
        steps.pad(k, "s", 8)
