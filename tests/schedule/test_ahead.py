"""Fetching and reading ahead, and notes: what they write, that nothing else changes, refusals."""

from __future__ import annotations

import pytest

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Accumulate, For, Kernel, Prefetch, walk
from nbcomp.schedule import steps
from nbcomp.schedule.language import from_json, parse
from nbcomp.target.llvm.codegen import generate
from tests.kernels import apply, buffer, index, kernel, load, loop, number, store
from tests.schedule.programs import (
    Golden,
    bound_once,
    check,
    column_sums,
    matmul,
    softmax,
    two_stages,
)

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


def test_many_lines_are_asked_for_where_they_are_read() -> None:
    made = check(column_sums(12, 4000), lambda k: steps.prefetch(k, "x", "i", 2))
    assert asked(made) == ["x"]
    inner = next(s for s in walk(made.stages) if isinstance(s, For) and s.var == "j")
    assert "prefetch to L2 x[i + 2, j]" in str(made)  # 2 * 16,000 bytes before they are needed
    assert any(isinstance(s, Prefetch) for s in inner.body)
    near = check(column_sums(12, 1200), lambda k: steps.prefetch(k, "x", "i", 2))
    assert "prefetch x[i + 2, j]" in str(near)
    assert "i32 0, i32 2, i32 1)" in generate(made, 64).text


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


# --------------------------------------------------------------------------------------- pipelines

PIPELINE = STEPS.replace(
    'prefetch("b", "k", 4)\nprefetch("a", "k", 8)', 'software_pipeline("b", "k")'
)


def test_software_pipeline(golden: Golden) -> None:
    made = check(matmul(3, 48), parse(PIPELINE.rsplit("\n", 1)[0]), golden)
    assert from_json(parse(PIPELINE).to_json()).steps == parse(PIPELINE).steps
    loops = [s.var for s in walk(made.stages) if isinstance(s, For)]
    assert len(set(loops)) == len(loops)


def test_a_pipeline_reads_before_it_computes() -> None:
    made = check(matmul(3, 48), lambda k: steps.software_pipeline(k, "a", "k"))
    (rounds,) = (s for s in walk(made.stages) if isinstance(s, For) and s.var == "k")
    _, take, read, add = rounds.body
    assert str(take.value.buffer.name) == "a_next"  # type: ignore[union-attr]
    assert str(read.value.buffer.name) == "a"  # type: ignore[union-attr]
    assert isinstance(add, Accumulate)


@pytest.mark.parametrize("depth", [3, 4, 9])
def test_pipelines_of_vectors_and_of_several_operands(depth: int) -> None:
    def step(k: Kernel) -> Kernel:
        k = parse("\n".join(PIPELINE.splitlines()[:5]))(k)
        for name in ("b", "a"):
            k = steps.software_pipeline(k, name, "k")
        for name in ("b_first0", "b_take0", "b_read0"):
            k = steps.vectorize(k, name)
        return k

    for width in (16, 40, 48):
        check(matmul(3, width, depth), step)


def test_a_pipeline_of_rows_and_of_parts_of_rows() -> None:
    check(column_sums(12, 20), lambda k: steps.software_pipeline(k, "x", "i"))
    # The last part of a row is shorter than the others.
    cut = check(column_sums(12, 23), lambda k: steps.split(k, "j", 5))
    check(cut, lambda k: steps.software_pipeline(k, "x", "j_o"))


def test_a_pipeline_of_what_is_overwritten_where_it_was_read() -> None:
    check(in_place(0), lambda k: steps.software_pipeline(k, "y", "i"))
    check(in_place(0), lambda k: steps.software_pipeline(k, "y", "j"))
    why = r"iterations of i are not independent: they share y \(.*\), so the next iteration's"
    with pytest.raises(ScheduleError, match=why):
        steps.software_pipeline(in_place(1), "y", "i")


@pytest.mark.parametrize("inner", ["r", "r_2"])
@pytest.mark.parametrize("rows", [2, 3, 7])
def test_a_pipeline_in_a_pipeline_of_the_same_array(inner: str, rows: int) -> None:
    def step(k: Kernel) -> Kernel:
        return steps.software_pipeline(steps.software_pipeline(k, "x", inner), "x", "i")

    bound_once(check(softmax(rows, 13), step))


def test_a_pipeline_of_rows_whose_last_is_peeled() -> None:
    def step(k: Kernel) -> Kernel:
        k = steps.software_pipeline(steps.peel(k, "i", 2), "x", "r_2")
        return steps.software_pipeline(k, "x", "i")

    bound_once(check(softmax(7, 13), step))


def in_place(back: int) -> Kernel:
    """y = x, then each element is made from one `back` rows before."""
    x, y = buffer("x", (6, 7)), buffer("y", (7, 7), "output")
    first = loop("p", 7, loop("q", 7, store(y, ("p", "q"), number(2))))
    value = apply("add", load(y, index(1 - back, i=1), "j"), load(x, "i", "j"))
    again = loop("i", 6, loop("j", 7, store(y, (index(1, i=1), "j"), value)))
    return kernel(first, again, buffers=[x, y])


def written_first() -> Kernel:
    """Each row is made, and read in the same iteration."""
    x, y, z = buffer("x", (6,)), buffer("y", (6,), "output"), buffer("z", (6,), "output")
    body = (store(y, ("i",), load(x, "i")), store(z, ("i",), load(y, "i")))
    return kernel(loop("i", 6, *body), buffers=[x, y, z])


def test_pipelines_refuse_what_is_not_there_yet() -> None:
    with pytest.raises(ScheduleError, match="i writes y before it has read all that it needs"):
        steps.software_pipeline(written_first(), "y", "i")
    with pytest.raises(ScheduleError, match="every iteration of k reads the same part of s"):
        steps.software_pipeline(matmul(), "s", "k")


def test_pipelines_refuse_loops_without_a_next_iteration() -> None:
    with pytest.raises(ScheduleError, match="every iteration of j reads the same part of a"):
        steps.software_pipeline(matmul(), "a", "j")
    with pytest.raises(ScheduleError, match="k has 1 iterations: there is no next one"):
        steps.software_pipeline(matmul(3, 8, 1), "a", "k")
    with pytest.raises(ScheduleError, match="the iterations of j are lanes of a vector"):
        steps.software_pipeline(steps.vectorize(two_stages(), "j"), "t", "j")
    with pytest.raises(ScheduleError, match="the iterations of i run on several cores"):
        steps.software_pipeline(steps.parallelize(matmul(), "i"), "a", "i")
    with pytest.raises(ScheduleError, match=r"reads 4,000 bytes of x: more than registers hold"):
        steps.software_pipeline(column_sums(4, 1000), "x", "i")
    with pytest.raises(ScheduleError, match="no buffer z; the buffers are"):
        steps.software_pipeline(matmul(), "z", "k")
    with pytest.raises(ScheduleError, match="no loop z"):
        steps.software_pipeline(matmul(), "b", "z")
