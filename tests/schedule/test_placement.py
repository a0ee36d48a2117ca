"""Where values are computed: inline, compute_at, …; sums in parts: rfactor, split_sum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Block, For, Kernel, Let
from nbcomp.schedule import steps
from nbcomp.schedule.rewriting import replace_buffer
from tests.kernels import add_to, apply, buffer, index, kernel, load, loop, number, store, var
from tests.schedule.programs import Golden, blur, check, column_sums, matmul, two_stages


def test_inline(golden: Golden) -> None:
    made = check(two_stages(), lambda k: steps.inline(k, "t"), golden)
    assert [b.name for b in made.buffers] == ["x", "y"]


def test_inline_where_it_is_read_twice() -> None:
    check(blur(), lambda k: steps.inline(k, "t"))


def test_inline_of_swapped_axes() -> None:
    x, t = buffer("x", (5, 8)), buffer("t", (8, 5), "temp")
    y = buffer("y", (5, 8), "output")
    first = loop("i", 5, loop("j", 8, store(t, ("j", "i"), apply("square", load(x, "i", "j")))))
    second = loop("j_2", 5, loop("i_2", 8, store(y, ("j_2", "i_2"), load(t, "i_2", "j_2"))))
    check(kernel(first, second, buffers=[x, y, t]), lambda k: steps.inline(k, "t"))


def test_inline_refuses() -> None:
    with pytest.raises(ScheduleError, match="y is passed by the caller"):
        steps.inline(two_stages(), "y")
    with pytest.raises(ScheduleError, match="is not computed by one stage"):
        steps.inline(_twice_written(), "t")
    with pytest.raises(ScheduleError, match="overwritten before it is read"):
        steps.inline(_overwritten(), "t")


def _twice_written():
    t, y = buffer("t", (9,), "temp"), buffer("y", (9,), "output")
    return kernel(
        loop("i", 9, store(t, ("i",), number(1.0))),
        loop("j", 4, store(t, ("j",), number(2.0))),
        loop("k", 9, store(y, ("k",), load(t, "k"))),
        buffers=[y, t],
    )


def _overwritten():
    t, y = buffer("t", (9,), "temp"), buffer("y", (9,), "output")
    return kernel(
        loop("z", 9, store(y, ("z",), number(3.0))),
        loop("i", 9, store(t, ("i",), load(y, "i"))),
        loop("j", 9, store(y, ("j",), apply("add", load(t, "j"), load(t, "j")))),
        buffers=[y, t],
    )


def test_compute_at(golden: Golden) -> None:
    def step(k):
        return steps.compute_at(steps.split(k, "j", 8), "t", "j_o")

    made = check(blur(), step, golden)
    assert "t" not in [b.name for b in made.buffers]


@pytest.mark.parametrize("by", [5, 16, 48, 100])
def test_compute_at_tiles_of_any_size(by: int) -> None:
    check(blur(), lambda k: steps.compute_at(steps.split(k, "j", by), "t", "j_o"))


def test_compute_at_refuses_its_own_loop() -> None:
    with pytest.raises(ScheduleError, match="i is in the loops that compute t"):
        steps.compute_at(two_stages(), "t", "i")


def test_reverse_compute_at(golden: Golden) -> None:
    def step(k):
        return steps.reverse_compute_at(steps.split(k, "i", 8), "y", "i_o")

    check(two_stages(), step, golden)


def with_epilogue():
    """y = maximum(a @ b, 0), the product in memory first."""
    k = matmul(6, 40)
    y = buffer("y", (6, 40), "output")
    c = next(b for b in k.buffers if b.name == "c")
    t = replace(c, role="temp")
    stages = replace_buffer(k.stages, c, t)
    value = apply("maximum", load(t, "p", "q"), number(0.0))
    epilogue = loop("p", 6, loop("q", 40, store(y, ("p", "q"), value)))
    others = [b for b in k.buffers if b.name != "c"]
    return kernel(*stages, epilogue, buffers=[*others, y, t])


def test_an_epilogue_joins_its_tile() -> None:
    def step(k):
        return steps.reverse_compute_at(steps.tile(k, "i", "j", 3, 16), "y", "j_o")

    check(with_epilogue(), step)


def test_reverse_compute_at_refuses_unfinished_sums() -> None:
    x, s = buffer("x", (12, 20)), buffer("s", (20,), "temp")
    y = buffer("y", (20,), "output")
    k = kernel(
        loop("z", 20, store(s, ("z",), number(0.0))),
        loop("i", 12, loop("j", 20, add_to(s, ("j",), load(x, "i", "j")))),
        loop("q", 20, store(y, ("q",), apply("square", load(s, "q")))),
        buffers=[x, y, s],
    )
    with pytest.raises(ScheduleError, match="s is not finished in i: iterations of i add to"):
        steps.reverse_compute_at(k, "y", "i")


def test_reverse_compute_at_refuses_neighbours() -> None:
    with pytest.raises(ScheduleError, match="y is not made element by element"):
        steps.reverse_compute_at(blur(), "y", "i")


# ------------------------------------------------------------------------------------------ rfactor


def test_rfactor(golden: Golden) -> None:
    def step(k):
        return steps.rfactor(steps.split(k, "k", 4), "k_o")

    check(matmul(2, 5, 12), step, golden)


def test_rfactor_of_rows() -> None:
    check(column_sums(), lambda k: steps.rfactor(steps.split(k, "i", 5), "i_o"), machine=False)


def test_rfactor_refuses() -> None:
    with pytest.raises(ScheduleError, match="i does not only add up"):
        steps.rfactor(matmul(), "i")
    with pytest.raises(ScheduleError, match="iterations of j add to different elements of out"):
        steps.rfactor(column_sums(), "j")
    y = buffer("y", (9,), "output")
    k = kernel(loop("i", 9, add_to(y, (index(0),), load(y, index(0)))), buffers=[y])
    with pytest.raises(ScheduleError, match="y is read while it is added to"):
        steps.rfactor(k, "i")


# ---------------------------------------------------------------------------------------- split_sum


def test_split_sum(golden: Golden) -> None:
    check(matmul(2, 5, 12), lambda k: steps.split_sum(k, "k", 3), golden)


@pytest.mark.parametrize(("terms", "parts"), [(13, 2), (13, 4), (13, 13), (12, 5), (2, 2)])
def test_split_sum_of_any_number_of_terms(terms: int, parts: int) -> None:
    def step(k):
        made = steps.split_sum(k, "k", parts)
        return steps.parallelize(made, made.stages[0].var)

    check(matmul(3, 5, terms), step)


def test_split_sum_keeps_what_follows() -> None:
    k = matmul(3, 20, 7)
    (i,) = k.stages
    (j,) = i.body
    *before, last = j.body
    follows = replace(last, value=apply("maximum", last.value, load(k.buffers[0], "i", index(0))))
    fused = loop("i", 3, loop("j", 20, *before, follows))
    made = check(replace(k, stages=(fused,)), lambda k: steps.split_sum(k, "k", 2))
    assert str(made).count("maximum") == 1  # once for an element, not for each part


def test_split_sum_refuses() -> None:
    with pytest.raises(ScheduleError, match="the 9 terms of k cannot be added up in 10 parts"):
        steps.split_sum(matmul(2, 5, 9), "k", 10)
    with pytest.raises(ScheduleError, match="the 9 terms of k cannot be added up in 1 parts"):
        steps.split_sum(matmul(2, 5, 9), "k", 1)
    with pytest.raises(ScheduleError, match="i does not add up one element in each iteration"):
        steps.split_sum(matmul(), "i", 2)
    with pytest.raises(ScheduleError, match="j does not add up one element in each iteration"):
        steps.split_sum(column_sums(), "j", 2)
    split = steps.split(matmul(), "k", 4)
    with pytest.raises(ScheduleError, match="before other steps"):
        steps.split_sum(split, "k", 2)


# ------------------------------------------------------------------------------------------ sink


def scaled(inside: bool = False) -> Kernel:
    """y[i] = x[i] * a[], the scalar read once; inside: in a loop of rows, for each of them."""
    x, a, y = buffer("x", (5, 50)), buffer("a", ()), buffer("y", (5, 50), "output")
    value = apply("multiply", load(x, "i", "j"), var("v"))
    row = loop("j", 50, store(y, ("i", "j"), value))
    bound = Let("v", load(a))
    made = loop("i", 5, bound, row) if inside else Block((bound, loop("i", 5, row)))
    return kernel(made, buffers=[x, a, y])


def test_sink(golden: Golden) -> None:
    made = check(scaled(), lambda k: steps.parallelize(steps.sink(k, "i"), "i"), golden)
    assert isinstance(made.stages[0], For)
    check(scaled(), lambda k: steps.sink(steps.sink(k, "i"), "j"))
    check(scaled(inside=True), lambda k: steps.sink(k, "j"))


def test_sink_refuses() -> None:
    a, y = buffer("a", ()), buffer("y", (5,), "output")
    bound = Let("v", load(y, 0))
    overwritten = Block((bound, loop("i", 5, store(y, ("i",), var("v")))))
    used = Block(
        (Let("v", load(a)), loop("i", 5, store(y, ("i",), var("v"))), store(y, (0,), var("v")))
    )
    refused = [
        (scaled(), "j", "no value is bound right before j"),
        (scaled(), "q", "no loop q; the loops are i, j"),
        (kernel(overwritten, buffers=[y]), "i", "i writes y, from which a value before it is read"),
        (kernel(used, buffers=[a, y]), "i", "v is used after i too"),
    ]
    for k, where, why in refused:
        with pytest.raises(ScheduleError, match=why):
            steps.sink(k, where)
