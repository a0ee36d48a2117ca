"""Fetching ahead and notes on loops: what they write, that nothing else changes, refusals."""

from __future__ import annotations

import pytest

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Kernel, Prefetch, walk
from nbcomp.schedule import steps
from nbcomp.schedule.language import from_json, parse
from nbcomp.target.llvm.codegen import generate
from tests.schedule.programs import Golden, check, column_sums, matmul, two_stages

STEPS = """split("j", 16)
reorder("j_o", "i", "j")
distribute("j")
distribute("i")
reorder("k", "i_2", "j_2")
vectorize("j_2")
prefetch("b", "k", 4)
prefetch("a", "k", 8)
annotate("k", "the sum")"""


def asked(k: Kernel) -> list[str]:
    return [s.buffer.name for s in walk(k.stages) if isinstance(s, Prefetch)]


def test_prefetch(golden: Golden) -> None:
    made = check(matmul(3, 40), parse(STEPS), golden)
    assert asked(made) == ["a", "a", "a", "b"]
    assert "call void @llvm.prefetch" in generate(made, 64).text


@pytest.mark.parametrize("ahead", [1, 7, 1000])
def test_prefetch_beyond_the_end_of_the_buffer(ahead: int) -> None:
    check(matmul(3, 40), lambda k: steps.prefetch(k, "b", "k", ahead))
    check(column_sums(), lambda k: steps.prefetch(k, "x", "i", ahead))


def test_prefetch_asks_for_each_cache_line_once() -> None:
    made = check(column_sums(12, 40), lambda k: steps.prefetch(k, "x", "i", 2))
    assert asked(made) == ["x"] * 3  # 160 bytes


def test_steps_after_a_prefetch_keep_it() -> None:
    def step(k: Kernel) -> Kernel:
        k = steps.split(steps.prefetch(k, "x", "i", 2), "i", 4)
        return steps.peel(k, "i_o")

    assert len(asked(check(column_sums(12, 20), step))) == 4


def test_a_prefetch_within_lanes() -> None:
    def step(k: Kernel) -> Kernel:
        return steps.vectorize(steps.prefetch(k, "b", "k", 2), "j")

    assert "prefetch" in generate(check(matmul(3, 40), step), 64).text
    made = check(matmul(3, 40), lambda k: steps.vectorize(steps.prefetch(k, "a", "k", 2), "i"))
    assert asked(made) == ["a"]


def test_prefetch_refuses_what_it_cannot_bring() -> None:
    with pytest.raises(ScheduleError, match="s is the kernel's own memory"):
        steps.prefetch(matmul(), "s", "k", 2)
    with pytest.raises(ScheduleError, match="1 or more iterations ahead, not 0"):
        steps.prefetch(matmul(), "b", "k", 0)
    with pytest.raises(ScheduleError, match="every iteration of j reads the same part of a"):
        steps.prefetch(matmul(), "a", "j", 2)
    with pytest.raises(ScheduleError, match="reads 2000 cache lines of x: more than 16"):
        steps.prefetch(column_sums(4, 32000), "x", "i", 1)
    with pytest.raises(ScheduleError, match="the iterations of j are lanes of a vector"):
        steps.prefetch(steps.vectorize(two_stages(), "j"), "t", "j", 1)
    with pytest.raises(ScheduleError, match="the iterations of k are written out"):
        steps.prefetch(steps.unroll(matmul(), "k"), "b", "k", 1)
    with pytest.raises(ScheduleError, match="no buffer z; the buffers are"):
        steps.prefetch(matmul(), "z", "k", 1)
    with pytest.raises(ScheduleError, match="no loop z"):
        steps.prefetch(matmul(), "b", "z", 1)


def test_annotate(golden: Golden) -> None:
    made = check(matmul(), lambda k: steps.annotate(k, "i", "rows of the result"), golden)
    assert "for i in 0..6:  // rows of the result" in str(made)
    assert generate(made, 64).text == generate(matmul(), 64).text


@pytest.mark.parametrize("note", ["", "  ", "two\nlines", "a\u202eb", "x" * 81])
def test_annotate_refuses_what_is_no_line(note: str) -> None:
    with pytest.raises(ScheduleError, match="a note on i is one line of 1 to 80 printable"):
        steps.annotate(matmul(), "i", note)
    with pytest.raises(ScheduleError, match="no loop z"):
        steps.annotate(matmul(), "z", "a note")


def test_written_saved_and_played_again() -> None:
    schedule = parse(STEPS)
    assert str(parse(str(schedule))) == STEPS
    again = from_json(schedule.to_json())
    assert str(again(matmul(3, 40))) == str(schedule(matmul(3, 40)))
    again(matmul(5, 64))  # other sizes


def test_fuse_refuses_loops_with_a_prefetch() -> None:
    k = steps.prefetch(two_stages(64), "x", "i", 4)
    with pytest.raises(ScheduleError, match="x is fetched ahead"):
        steps.fuse(steps.split(k, "i", 8), "i_o", "i")
