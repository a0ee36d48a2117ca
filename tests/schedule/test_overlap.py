"""Iterations that overlap: what the step writes, that answers stay, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Alloc, For, Kernel, walk
from nbcomp.schedule import steps
from nbcomp.schedule.language import parse
from tests.kernels import apply, buffer, index, kernel, load, loop, number, store
from tests.schedule.programs import Golden, bound_once, check, matmul, only, softmax


def layernorm(rows: int, columns: int) -> Kernel:
    def f(x: Any, g: Any) -> Any:
        d = x - x.mean(axis=-1, keepdims=True)
        return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5) * g

    shape = (rows, columns)
    return only(f, np.zeros(shape, np.float32), np.zeros(columns, np.float32))


def test_overlap(golden: Golden) -> None:
    check(softmax(), lambda k: steps.overlap(k, "i", "r_2", "r_3"), golden)


def test_three_loops(golden: Golden) -> None:
    check(softmax(), lambda k: steps.overlap(k, "i", "r", "r_2", "r_3"), golden)


@pytest.mark.parametrize("early", [["r"], ["r_2"], ["r", "r_2"]])
@pytest.mark.parametrize("rows", [2, 3, 7, 33])
@pytest.mark.parametrize("columns", [20, 131])
def test_rows_of_every_number(early: list[str], rows: int, columns: int) -> None:
    if rows <= len(early):
        return
    for made in (softmax(rows, columns), layernorm(rows, columns)):
        bound_once(check(made, lambda k: steps.overlap(k, "i", *early, "r_3")))


@pytest.mark.parametrize(("rows", "block"), [(40, 16), (33, 16), (9, 4), (5, 2)])
def test_in_blocks_that_end_early(rows: int, block: int) -> None:
    text = f"""split("i", {block})
parallelize("i_o")
overlap("i", "r", "r_3")
vectorize("r")
vectorize("r_2")
interleave("r", 2)"""
    made = check(layernorm(rows, 70), parse(text))
    assert any(isinstance(s, For) and s.kind == "parallel" for s in made.stages)


def test_what_the_late_loop_reads_is_kept_once() -> None:
    made = steps.overlap(softmax(), "i", "r_2", "r_3")
    kept = [s.buffer.name for s in walk(made.stages) if isinstance(s, Alloc)]
    assert kept.count("e") == 1


def test_iterations_that_overlap_read_ahead() -> None:
    def step(k: Kernel) -> Kernel:
        k = steps.overlap(steps.software_pipeline(k, "x", "r"), "i", "r_2", "r_3")
        return steps.software_pipeline(k, "x", "r_4")

    bound_once(check(softmax(7, 13), step))


def shifted() -> Kernel:
    """y[i, k] = t[39 - k], t[j] = x[i, j]²: other places are overwritten than were read."""
    x, y, t = buffer("x", (6, 40)), buffer("y", (6, 40), "output"), buffer("t", (40,), "local")
    early = loop("j", 40, store(t, ("j",), apply("square", load(x, "i", "j"))))
    late = loop("k", 40, store(y, ("i", "k"), load(t, index(39, k=-1))))
    return kernel(loop("i", 6, Alloc(t), early, late), buffers=[x, y])


def before() -> Kernel:
    """The memory that is kept is cleared before the early loop."""
    x, y, t = buffer("x", (6, 40)), buffer("y", (6, 40), "output"), buffer("t", (40,), "local")
    clear = loop("z", 40, store(t, ("z",), number(0.0)))
    early = loop("j", 40, store(t, ("j",), load(x, "i", "j")))
    late = loop("k", 40, store(y, ("i", "k"), load(t, "k")))
    return kernel(loop("i", 6, Alloc(t), clear, early, late), buffers=[x, y])


def test_memory_cleared_within_the_overlap_is_read_first() -> None:
    check(before(), lambda k: steps.overlap(k, "i", "z", "k"))


def weighed() -> Kernel:
    """A row is written by the first loop and read by the third."""

    def f(x: Any) -> Any:
        e = np.exp(x)
        return e / (e - e.mean(axis=-1, keepdims=True)).max(axis=-1, keepdims=True)

    return only(f, np.zeros((7, 40), np.float32))


REFUSALS: list[tuple[Kernel, tuple[str, ...], str]] = [
    (softmax(), ("i", "r_3"), "two loops inside i at least are to overlap"),
    (softmax(), ("i", "r_2", "r", "r_3"), "r does not come after r_2"),
    (softmax(2), ("i", "r", "r_2", "r_3"), "i may have less than 3 iterations: 2"),
    (
        steps.split(softmax(33), "i", 16),
        ("i", "r", "r_2", "r_3"),
        r"i may have less than 3 iterations: min",
    ),
    (weighed(), ("i", "r", "r_2", "r_3"), "e is used up to r_3, while r has begun it anew twice"),
    (softmax(), ("i", "r_3", "r_2"), "r_2 is not the last statement of i"),
    (softmax(), ("i", "r_3", "r_3"), "r_3 is no other loop right inside i"),
    (matmul(), ("i", "k", "j"), "k is no other loop right inside i"),
    (softmax(), ("i", "q", "r_3"), "no loop q; the loops are i, r, r_2, r_3"),
    (steps.split(softmax(8), "i", 1), ("i", "r", "r_3"), "i may have less than 2 iterations: 1"),
    (steps.vectorize(softmax(), "r_3"), ("i", "r", "r_3"), "r_3 is vector: overlapping comes"),
    (
        steps.split(softmax(7, 40), "r_2", 8),
        ("i", "r_2_o", "r_3"),
        "r_2_o has 5 iterations",
    ),
    (shifted(), ("i", "j", "k"), "j and k cannot overlap: other iterations touch t too"),
    (before(), ("i", "j", "k"), "t is used before j begins"),
]


@pytest.mark.parametrize(("made", "names", "words"), REFUSALS, ids=[r[2][:30] for r in REFUSALS])
def test_refusals(made: Kernel, names: tuple[str, ...], words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        steps.overlap(made, *names)


def test_iterations_that_need_each_other_do_not_overlap() -> None:
    x, out = buffer("x", (6, 40)), buffer("out", (41,), "output")
    early = loop("j", 40, store(out, (index(1, j=1),), load(x, "i", "j")))
    late = loop("k", 40, store(out, ("k",), load(x, "i", "k")))
    with pytest.raises(ScheduleError, match="iterations of i are not independent: they share out"):
        steps.overlap(kernel(loop("i", 6, early, late), buffers=[x, out]), "i", "j", "k")
