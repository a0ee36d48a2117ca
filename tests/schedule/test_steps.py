"""Schedule steps: what they write, that they change no answer, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Alloc,
    Apply,
    Block,
    Call,
    For,
    If,
    Kernel,
    Let,
    Stmt,
    While,
    affine,
    walk,
)
from nbcomp.loop.verifier import verify
from nbcomp.schedule import steps
from nbcomp.target.llvm.codegen import generate
from nbcomp.types import FLOAT64, INT64
from tests.kernels import (
    add_to,
    apply,
    at,
    buffer,
    cast,
    index,
    interpreted,
    kernel,
    load,
    loop,
    native,
    number,
    random_inputs,
    same_memory,
    store,
    var,
)
from tests.schedule.programs import Golden, Step, add_into, carried, product, row_sums


def check(k: Kernel, step: Step, golden: Golden | None = None) -> Kernel:
    """The scheduled kernel; the interpreter and the machine code give what they gave before."""
    rng = np.random.default_rng(5)
    arrays = random_inputs(rng, k)
    result = verify(step(k))
    wanted = interpreted(k, arrays)
    same_memory(interpreted(result, arrays), wanted)
    same_memory(native(result, arrays), wanted)
    if golden is not None:
        golden(f"{k}\n\n{result}")
    return result


def loops(k: Kernel) -> dict[str, str]:
    """The kind of every loop."""
    return {s.var: s.kind for s in walk(k.stages) if isinstance(s, For)}


def nest(m: int = 6, n: int = 70) -> Kernel:
    """out[i, j] = x[i, j] * x[i, j] + y[j]"""
    x, y = buffer("x", (m, n)), buffer("y", (n,))
    out = buffer("out", (m, n), "output")
    value = apply("add", apply("square", load(x, "i", "j")), load(y, "j"))
    inner = loop("j", n, store(out, ("i", "j"), value))
    return kernel(loop("i", m, inner), buffers=[x, y, out])


def flat(m: int = 6, n: int = 7) -> Kernel:
    """A nest whose loops walk all memory as one axis."""
    x, out = buffer("x", (m, n)), buffer("out", (m, n), "output")
    inner = loop("j", n, store(out, ("i", "j"), apply("square", load(x, "i", "j"))))
    return kernel(loop("i", m, inner), buffers=[x, out])


# --------------------------------------------------------------------------------------- vectorize


def test_vectorize(golden: Golden) -> None:
    result = check(nest(), lambda k: steps.vectorize(k, "j", 2), golden)
    assert loops(result) == {"i": "serial", "j": "vector"}


def test_interleave(golden: Golden) -> None:
    wide = steps.vectorize(nest(), "j")
    check(wide, lambda k: steps.interleave(k, "j", 3), golden)


@pytest.mark.parametrize("lanes", [2, 8, 16, 64])
def test_vectors_of_so_many_lanes(lanes: int) -> None:
    made = check(nest(5, 27), lambda k: steps.vectorize(k, "j", 2, lanes))
    text = generate(made, 64).text
    assert f"<{min(lanes, 16)} x float>" in text
    assert lanes >= 16 or "<16 x float>" not in text
    check(row_sums(), lambda k: steps.vectorize(k, "r", 4, lanes))


def test_lanes_are_a_power_of_two() -> None:
    for lanes in (1, 3, 12, -4):
        with pytest.raises(ScheduleError, match=f"j cannot have {lanes} lanes: they are 2, 4, 8"):
            steps.vectorize(nest(), "j", 1, lanes)


def test_vectorize_an_outer_loop() -> None:
    check(nest(70, 5), lambda k: steps.vectorize(k, "i"))
    check(row_sums(70, 5), lambda k: steps.vectorize(k, "i"))


def test_vectorize_sums() -> None:
    check(row_sums(), lambda k: steps.vectorize(k, "r", 4))
    check(add_into(), lambda k: steps.vectorize(k, "j", 4))


@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("n", [1, 7, 70, 200])
def test_vectorize_by_any_factor(n: int, unroll: int) -> None:
    check(nest(2, n), lambda k: steps.vectorize(k, "j", unroll))
    check(row_sums(2, n), lambda k: steps.vectorize(k, "r", unroll))


def test_vectorize_refuses_vectors_in_vectors() -> None:
    with pytest.raises(ScheduleError, match="loop j inside i is a vector loop already"):
        steps.vectorize(steps.vectorize(nest(), "j"), "i")


def test_vectorize_refuses_what_carries_over() -> None:
    with pytest.raises(ScheduleError, match="iterations of i are not independent: they share out"):
        steps.vectorize(carried(), "i")


def test_vectorize_refuses_lanes_that_part() -> None:
    x, out = buffer("x", (20,)), buffer("out", (20,), "output")
    positive = apply("greater", load(x, "i"), number(0))
    k = kernel(loop("i", 20, If(positive, (store(out, ("i",), number(1)),))), buffers=[x, out])
    with pytest.raises(ScheduleError, match="a condition inside i is not the same for all lanes"):
        steps.vectorize(k, "i")
    named = kernel(
        loop("i", 20, Let("h", positive), If(var("h", np.bool_), (store(out, ("i",), number(1)),))),
        buffers=[x, out],
    )
    with pytest.raises(ScheduleError, match="a condition inside i"):
        steps.vectorize(named, "i")
    triangle = kernel(
        loop("i", 20, loop("j", affine(i=1), add_to(out, ("i",), load(x, "j")))), buffers=[x, out]
    )
    with pytest.raises(ScheduleError, match="the extent of j inside i is not the same"):
        steps.vectorize(triangle, "i")


def test_vectorize_allows_what_is_the_same_for_all_lanes() -> None:
    x, out = buffer("x", (6, 70)), buffer("out", (6, 70), "output")
    odd = apply("equal", apply("remainder", affine(i=1), affine(2)), affine(1))
    body = If(
        odd, (store(out, ("i", "j"), load(x, "i", "j")),), (store(out, ("i", "j"), number(0)),)
    )
    k = kernel(loop("i", 6, loop("j", 70, body)), buffers=[x, out])
    check(k, lambda k: steps.vectorize(k, "j"))


def test_vectorize_refuses_library_routines() -> None:
    a, b, c = (
        buffer(n, (3, 4, 4), r) for n, r in (("a", "input"), ("b", "input"), ("c", "output"))
    )  # type: ignore[arg-type]
    k = kernel(
        loop("i", 3, Call("blas.gemm", (c, a, b), (at("i"), at("i"), at("i")))), buffers=[a, b, c]
    )
    with pytest.raises(ScheduleError, match="a library routine is called inside i"):
        steps.vectorize(k, "i")
    assert loops(check(k, lambda k: steps.parallelize(k, "i"))) == {"i": "parallel"}


@pytest.mark.parametrize("unroll", [0, -1])
def test_vectorize_refuses_no_vectors_at_all(unroll: int) -> None:
    with pytest.raises(ScheduleError, match="cannot run"):
        steps.vectorize(nest(), "j", unroll)


@pytest.mark.parametrize(
    "step",
    [
        lambda k: steps.vectorize(k, "z"),
        lambda k: steps.unroll(k, "z"),
        lambda k: steps.split(k, "z", 4),
        lambda k: steps.interchange(k, "z", "j"),
        lambda k: steps.fuse(k, "z", "j"),
    ],
)
def test_unknown_loops_are_named_with_those_there_are(step: Step) -> None:
    with pytest.raises(ScheduleError, match="no loop z; the loops are i, j"):
        step(nest())


# ------------------------------------------------------------------------------------- parallelize


def test_parallelize(golden: Golden) -> None:
    assert loops(check(nest(), lambda k: steps.parallelize(k, "i"), golden))["i"] == "parallel"
    check(row_sums(), lambda k: steps.parallelize(k, "i"))


def rounds(along: bool = False, n: int = 70) -> Kernel:
    """out[t + 1, i] = out[t, n - 1 - i] + x[i]; along: out[t + 1, i + 1] = out[t + 1, i] + x[i]"""
    x, out = buffer("x", (n,)), buffer("out", (8, n), "output")
    place = (index(1, t=1), "i") if along else ("t", index(n - 1, i=-1))
    target = (index(1, t=1), index(int(along), i=1))
    value = apply("add", load(out, *place), load(x, "i"))
    inner = loop("i", n - along, store(out, target, value))
    first = loop("k", n, store(out, (0, "k"), load(x, "k")))
    return kernel(first, loop("t", 7, inner), buffers=[x, out])


def test_parallelize_in_rounds() -> None:
    """Each waits for the one before, whose results it reads."""
    made = check(rounds(), lambda k: steps.parallelize(k, "i"))
    assert loops(made) == {"k": "serial", "t": "serial", "i": "parallel"}
    (stage,) = [s for s in generate(made, 64).stages if s.parallel]
    assert (stage.extent, stage.round) == (490, 70)
    with pytest.raises(ScheduleError, match="iterations of t are not independent"):
        steps.parallelize(rounds(), "t")
    with pytest.raises(ScheduleError, match="iterations of i are not independent"):
        steps.parallelize(rounds(along=True), "i")


def test_parallelize_refuses_inner_loops() -> None:
    with pytest.raises(ScheduleError, match="r is not an outermost loop"):
        steps.parallelize(row_sums(), "r")


def test_parallelize_refuses_loops_in_a_block() -> None:
    with pytest.raises(ScheduleError, match="i is not an outermost loop"):
        steps.parallelize(carried(), "i")


def test_parallelize_refuses_sums_over_its_iterations() -> None:
    with pytest.raises(ScheduleError, match="iterations of i add to the same elements of out"):
        steps.parallelize(add_into(), "i")


def test_parallelize_refuses_an_unknown_extent() -> None:
    n, out = buffer("n", (), dtype=INT64), buffer("out", (8,), "output")
    k = kernel(For("i", load(n), (store(out, ("i",), number(1)),)), buffers=[n, out])
    with pytest.raises(ScheduleError, match="the extent of i is not known before it starts"):
        steps.parallelize(k, "i")


# ------------------------------------------------------------------------------------------ unroll


def test_unroll(golden: Golden) -> None:
    result = check(nest(70, 3), lambda k: steps.vectorize(steps.unroll(k, "j"), "i"), golden)
    assert loops(result) == {"i": "vector", "j": "unroll"}


def test_unroll_refuses_extents_that_vary() -> None:
    split = steps.split(nest(), "j", 16)
    with pytest.raises(ScheduleError, match="the extent of j is not a constant"):
        steps.unroll(split, "j")


# ------------------------------------------------------------------------------------------- split


def test_split(golden: Golden) -> None:
    result = check(nest(), lambda k: steps.split(k, "j", 16), golden)
    assert list(loops(result)) == ["i", "j_o", "j"]


@pytest.mark.parametrize("by", [1, 2, 7, 35, 69, 70, 71, 1000])
def test_split_by_anything(by: int) -> None:
    check(nest(), lambda k: steps.split(k, "j", by))
    check(row_sums(), lambda k: steps.split(k, "r", by))
    check(nest(), lambda k: steps.vectorize(steps.split(k, "j", by), "j"))


def test_split_twice() -> None:
    def step(k: Kernel) -> Kernel:
        return steps.split(steps.split(k, "j", 32), "i", 4)

    check(nest(), step)


def test_split_refuses_extents_that_vary() -> None:
    with pytest.raises(ScheduleError, match="the extent of j is not a constant"):
        steps.split(steps.split(nest(), "j", 16), "j", 4)


@pytest.mark.parametrize("by", [0, -4])
def test_split_refuses_blocks_of_nothing(by: int) -> None:
    with pytest.raises(ScheduleError, match="cannot be split"):
        steps.split(nest(), "j", by)


def test_split_finds_a_free_name() -> None:
    def twice(k: Kernel) -> Kernel:
        return steps.split(steps.split(k, "j", 32), "j", 8)

    result = check(nest(6, 64), twice)
    assert list(loops(result)) == ["i", "j_o", "j_o_2", "j"]


# ------------------------------------------------------------------------------------- interchange


def test_interchange(golden: Golden) -> None:
    result = check(nest(), lambda k: steps.interchange(k, "i", "j"), golden)
    assert list(loops(result)) == ["j", "i"]


def test_tiles() -> None:
    def tiled(k: Kernel) -> Kernel:
        k = steps.split(steps.split(k, "i", 4), "j", 16)
        k = steps.interchange(k, "i", "j_o")
        return steps.vectorize(steps.parallelize(k, "i_o"), "j", 2)

    assert list(loops(check(nest(), tiled))) == ["i_o", "j_o", "i", "j"]


def test_interchange_of_sums() -> None:
    check(add_into(), lambda k: steps.interchange(k, "i", "j"))


def test_interchange_refuses_imperfect_nests() -> None:
    with pytest.raises(ScheduleError, match="r is not the only statement of i"):
        steps.interchange(row_sums(), "i", "r")


def test_interchange_refuses_extents_of_the_outer_loop() -> None:
    x, out = buffer("x", (8, 8)), buffer("out", (8, 8), "output")
    inner = loop("j", affine(1, i=1), store(out, ("i", "j"), load(x, "i", "j")))
    k = kernel(loop("i", 7, inner), buffers=[x, out])
    with pytest.raises(ScheduleError, match="the extent of j depends on i"):
        steps.interchange(k, "i", "j")


def test_interchange_refuses_what_carries_over() -> None:
    out = buffer("out", (9, 9), "output")
    before = load(out, "i", index(1, j=1))
    k = kernel(loop("i", 8, loop("j", 8, store(out, (index(1, i=1), "j"), before))), buffers=[out])
    with pytest.raises(ScheduleError, match="are not independent: they share out"):
        steps.interchange(k, "i", "j")


# -------------------------------------------------------------------------------------------- fuse


def test_fuse(golden: Golden) -> None:
    result = check(flat(), lambda k: steps.fuse(k, "i", "j"), golden)
    assert list(loops(result)) == ["i"]
    assert result.buffers[0].shape == (42,)


def test_fuse_with_what_both_do_not_index() -> None:
    x, s = buffer("x", (6, 7)), buffer("s", ())
    out = buffer("out", (6, 7), "output")
    value = apply("multiply", load(x, "i", "j"), load(s))
    k = kernel(loop("i", 6, loop("j", 7, store(out, ("i", "j"), value))), buffers=[x, s, out])
    check(k, lambda k: steps.fuse(k, "i", "j"))


def test_fuse_three_loops() -> None:
    x, out = buffer("x", (3, 4, 5)), buffer("out", (3, 4, 5), "output")
    inner = loop("k", 5, store(out, ("i", "j", "k"), apply("square", load(x, "i", "j", "k"))))
    k = kernel(loop("i", 3, loop("j", 4, inner)), buffers=[x, out])
    result = check(k, lambda k: steps.fuse(steps.fuse(k, "j", "k"), "i", "j"))
    assert [b.shape for b in result.buffers] == [(60,), (60,)]


def test_fuse_keeps_the_other_axes() -> None:
    x, out = buffer("x", (2, 3, 4)), buffer("out", (2, 3, 4), "output")
    inner = loop("k", 4, store(out, ("i", "j", "k"), load(x, "i", "j", "k")))
    k = kernel(loop("i", 2, loop("j", 3, inner)), buffers=[x, out])
    result = check(k, lambda k: steps.fuse(k, "i", "j"))
    assert result.buffers[0].shape == (6, 4)


def test_fuse_shifts_what_starts_later() -> None:
    x, out = buffer("x", (9, 7)), buffer("out", (6, 7), "output")
    inner = loop("j", 7, store(out, ("i", "j"), load(x, index(2, i=1), "j")))
    check(kernel(loop("i", 6, inner), buffers=[x, out]), lambda k: steps.fuse(k, "i", "j"))


def test_fuse_gives_a_buffer_used_elsewhere_a_second_shape(golden: Golden) -> None:
    x, out = buffer("x", (6, 7)), buffer("out", (6, 7), "output")
    first = loop("i", 6, loop("j", 7, store(out, ("i", "j"), load(x, "i", "j"))))
    second = loop("k", 6, loop("l", 7, add_to(out, ("k", "l"), load(x, "k", 0))))
    k = kernel(first, second, buffers=[x, out])
    result = check(k, lambda k: steps.fuse(k, "i", "j"), golden)
    assert {b.alias for b in result.buffers} == {"", "x", "out"}


def test_fuse_of_one_local(golden: Golden) -> None:
    kept = buffer("kept", (6, 7), "local")
    out = buffer("out", (6, 7), "output")
    fill = loop("i", 6, loop("j", 7, store(kept, ("i", "j"), number(2))))
    read = loop("k", 6, loop("l", 7, store(out, ("k", "l"), load(kept, "k", "l"))))
    k = kernel(Block((Alloc(kept), fill, read)), buffers=[out])
    once = check(k, lambda k: steps.fuse(k, "i", "j"))
    check(once, lambda k: steps.fuse(k, "k", "l"))


def test_fuse_axes_in_another_order() -> None:
    """What is read along rows and written in Fortran order, turned: one axis of memory."""
    t = buffer("t", (7, 6), "output", strides=(1, 7))
    k = _nest(store(t, ("j", "i"), load(x, "i", "j")), buffers=[x, t])
    made = check(k, lambda k: steps.fuse(k, "i", "j"))
    assert [(b.shape, b.strides) for b in made.buffers] == [((42,), (1,))] * 2


def test_fuse_axes_that_are_not_neighbours() -> None:
    a = buffer("a", (5, 6, 7))
    t = buffer("t", (7, 5, 6), "output", strides=(1, 42, 7))
    body = loop("i", 6, loop("j", 7, store(t, ("j", "k", "i"), load(a, "k", "i", "j"))))
    k = kernel(loop("k", 5, body), buffers=[a, t])
    made = check(k, lambda k: steps.fuse(k, "i", "j"))
    assert [(b.shape, b.strides) for b in made.buffers] == [((5, 42), (42, 1))] * 2
    check(made, lambda k: steps.fuse(k, "k", "i"))


@pytest.mark.parametrize("shape", [(301, 2), (301, 4), (65, 8), (3, 5, 7)])
def test_what_is_turned_is_walked_as_it_lies(shape: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        return x.T + 1

    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for given in (array, np.asfortranarray(array)):
        np.testing.assert_array_equal(nbcomp.jit(f)(given), f(given))
        text = str(nbcomp.compile(f, given).kernels[0].kernel)
        assert f"x: f32[{array.size}]" in text


REFUSED: dict[str, tuple[Callable[[], Kernel], str]] = {}


def refused(why: str) -> Callable[[Callable[[], Kernel]], Callable[[], Kernel]]:
    def add(make: Callable[[], Kernel]) -> Callable[[], Kernel]:
        REFUSED[make.__name__] = make, why
        return make

    return add


def _nest(*body: Stmt, buffers: Any, m: int = 6, n: int = 7) -> Kernel:
    return kernel(loop("i", m, loop("j", n, *body)), buffers=buffers)


x, out = buffer("x", (6, 7)), buffer("out", (6, 7), "output")


@refused("y is not walked along both i and j")
def one_axis_only() -> Kernel:
    y = buffer("y", (7,))
    return _nest(store(out, ("i", "j"), load(y, "j")), buffers=[y, out])


@refused("i and j are not one axis of x")
def turned() -> Kernel:
    t = buffer("x", (7, 6))
    return _nest(store(out, ("i", "j"), load(t, "j", "i")), buffers=[t, out])


@refused("i and j are not one axis of x")
def with_gaps() -> Kernel:
    gaps = buffer("x", (6, 7), strides=(8, 1))
    return _nest(store(out, ("i", "j"), load(gaps, "i", "j")), buffers=[gaps, out])


@refused("i and j are not one axis of x")
def part_of_a_row() -> Kernel:
    wide = buffer("x", (6, 9))
    return _nest(store(out, ("i", "j"), load(wide, "i", "j")), buffers=[wide, out])


@refused("i and j are not one axis of x")
def backwards() -> Kernel:
    return _nest(store(out, ("i", "j"), load(x, "i", index(6, j=-1))), buffers=[x, out])


@refused("x is not walked along both i and j")
def a_diagonal() -> Kernel:
    wide = buffer("x", (13,))
    return _nest(store(out, ("i", "j"), load(wide, index(i=1, j=1))), buffers=[wide, out])


@refused("x is read in two ways")
def twice() -> Kernel:
    total = apply("add", load(x, "i", "j"), load(x, 0, 0))
    return _nest(store(out, ("i", "j"), total), buffers=[x, out])


@refused("i and j are used as values")
def as_a_value() -> Kernel:
    place = buffer("out", (6, 7), "output", INT64)
    return _nest(store(place, ("i", "j"), index(i=7, j=1)), buffers=[place])


@refused("j is not the only statement of i")
def more_than_a_loop() -> Kernel:
    inner = loop("j", 7, store(out, ("i", "j"), load(x, "i", "j")))
    return kernel(loop("i", 6, inner, store(out, ("i", 0), number(1))), buffers=[x, out])


@refused("the extent of j is not a constant: i")
def a_triangle() -> Kernel:
    inner = loop("j", affine(1, i=1), store(out, ("i", "j"), load(x, "i", "j")))
    return kernel(loop("i", 6, inner), buffers=[x, out])


@refused("the extent of j is not a constant: minimum")
def a_block() -> Kernel:
    extent = Apply(INT64, "minimum", (affine(7), affine(9, i=-1)))
    inner = loop("j", extent, store(out, ("i", "j"), load(x, "i", "j")))
    return kernel(loop("i", 6, inner), buffers=[x, out])


@refused("the extent of k depends on i or j")
def an_inner_triangle() -> Kernel:
    return _nest(loop("k", affine(1, j=1), add_to(out, ("i", "j"), number(1))), buffers=[out])


@refused("blas.gemm is called inside the loops")
def a_library_routine() -> Kernel:
    a = buffer("a", (6, 7, 4, 4))
    c = buffer("c", (6, 7, 4, 4), "output")
    call = Call("blas.gemm", (c, a, a), (at("i", "j"), at("i", "j"), at("i", "j")))
    return _nest(call, buffers=[a, c])


@pytest.mark.parametrize("name", REFUSED)
def test_fuse_refuses(name: str) -> None:
    make, why = REFUSED[name]
    with pytest.raises(ScheduleError, match=why):
        steps.fuse(make(), "i", "j")


# ---------------------------------------------------------------------------------- split_product


def test_split_product(golden: Golden) -> None:
    result = check(product(70, 40), lambda k: steps.split_product(k, 0, 3, 0), golden)
    assert loops(result) == {"p": "serial"}
    check(product(70, 40), lambda k: steps.parallelize(steps.split_product(k, 0, 3, 0), "p"))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", [(16, 16), (33, 50), (100, 1), (1, 100)])
def test_split_products_of_any_shape(shape: tuple[int, int], parts: int, axis: int) -> None:
    check(product(*shape), lambda k: steps.split_product(k, 0, parts, axis))


def test_split_product_refuses_other_stages() -> None:
    with pytest.raises(ScheduleError, match="stage 0 is not a whole product"):
        steps.split_product(nest(), 0, 2, 0)


# ---------------------------------------------------------------------------------- generate, join


def batched(epilogue: bool = True) -> Kernel:
    """c[b] = x[b] @ y, then d[b] = c[b]², both of them float64."""
    x, y = buffer("x", (3, 9, 5), dtype=FLOAT64), buffer("y", (5, 20), dtype=FLOAT64)
    c = buffer("c", (3, 9, 20), "output", FLOAT64)
    d = buffer("d", (3, 9, 20), "output", FLOAT64)
    product = loop("b", 3, Call("blas.gemm", (c, x, y), (at("b"), at("b"), ())))
    value = apply("square", load(c, "b2", "i2", "j2"))
    inner = loop("i2", 9, loop("j2", 20, store(d, ("b2", "i2", "j2"), value)))
    return kernel(product, loop("b2", 3, inner), buffers=[x, y, c, d])


def test_generate(golden: Golden) -> None:
    check(product(7, 10), lambda k: steps.generate(k, 0), golden)
    assert loops(check(batched(), lambda k: steps.generate(k, 0)))["i"] == "serial"


def test_generate_refuses_what_is_no_product() -> None:
    for stage, k in ((0, nest()), (3, product(7, 10)), (-1, product(7, 10))):
        with pytest.raises(ScheduleError, match=f"stage {stage} is not a whole product"):
            steps.generate(k, stage)
    with pytest.raises(ScheduleError, match="not a whole product"):
        steps.generate(steps.split_product(product(70, 40), 0, 2, 0), 0)


def test_join(golden: Golden) -> None:
    def joined(k: Kernel) -> Kernel:
        k = steps.join(steps.generate(k, 0), "b", "b2")
        return steps.join(steps.join(k, "i", "i2"), "j", "j2")

    assert list(loops(check(batched(), joined, golden))) == ["b", "i", "j", "k"]


def test_join_refuses_what_would_cross() -> None:
    x, c, d = buffer("x", (8,)), buffer("c", (9,), "output"), buffer("d", (8,), "output")
    make = loop("i", 8, store(c, ("i",), load(x, "i")))

    def with_second(extent: int, place: Any) -> Kernel:
        use = loop("j", extent, store(d, ("j",), load(c, place)))
        return kernel(make, use, buffers=[x, c, d])

    cases = [
        (with_second(7, "j"), "i", "j", "i has 8 iterations and j 7"),
        (with_second(8, index(1, j=1)), "i", "j", "other iterations touch c too"),
        (with_second(8, 0), "i", "j", "other iterations touch c too"),
        (with_second(8, "j"), "j", "i", "i does not follow j"),
        (with_second(8, "j"), "i", "q", "no loop q"),
    ]
    for k, first, second, why in cases:
        with pytest.raises(ScheduleError, match=why):
            steps.join(k, first, second)
    check(with_second(8, "j"), lambda k: steps.join(k, "i", "j"))


# --------------------------------------------------------------------- iterations in any order


def independent(body: Stmt, *buffers: Any) -> str:
    """Whether the loop over i may be parallel, as a schedule sees it: "" or why not."""
    k = kernel(loop("i", 8, body), buffers=buffers)
    try:
        steps.parallelize(k, "i")
    except ScheduleError as error:
        return error.message
    return ""


o = buffer("o", (64,), "output")


@pytest.mark.parametrize(
    "body",
    [
        store(o, (index(i=8),), load(o, index(i=8))),
        store(o, (index(3, i=8),), load(o, index(1, i=8))),
        loop("j", 8, store(o, (index(i=8, j=1),), number(1))),
        loop("j", 8, store(o, (index(7, i=8, j=-1),), load(o, index(i=8, j=1)))),
        loop("j", 2, loop("k", 3, store(o, (index(i=6, j=3, k=1),), number(1)))),
        store(o, (index(56, i=-8),), number(1)),
        store(o, ("i",), load(o, "i")),
    ],
)
def test_independent(body: Stmt) -> None:
    assert independent(body, o) == ""


@pytest.mark.parametrize(
    "body",
    [
        store(o, (0,), number(1)),
        store(o, ("i",), load(o, index(1, i=1))),
        store(o, (index(i=8),), load(o, index(8, i=8))),
        loop("j", 9, store(o, (index(i=6, j=1),), number(1))),
        loop("j", 8, store(o, (index(i=1, j=8),), load(o, index(i=8, j=1)))),
        store(o, (index(i=2),), load(o, index(i=3))),
        store(o, (apply("remainder", index(i=1), index(4)),), number(1)),
        store(o, (cast(load(o, "i"), INT64),), number(1)),
        add_to(o, (index(3),), number(1)),
        loop("j", 8, add_to(o, (index(i=1, j=1),), number(1))),
    ],
)
def test_dependent(body: Stmt) -> None:
    assert "o" in independent(body, o)


def test_one_axis_is_enough() -> None:
    place, grid = buffer("place", (8,), dtype=INT64), buffer("grid", (8, 8), "output")
    body = loop("j", 8, store(grid, (load(place, "j"), "i"), number(1)))
    assert independent(body, place, grid) == ""
    body = loop("j", 8, store(grid, ("i", load(place, "j")), number(1)))
    assert independent(body, place, grid) == ""


def test_a_buffer_in_two_shapes_is_one_memory() -> None:
    grid = buffer("grid", (8, 8), "output")
    line = buffer("line", (64,), "output", alias="grid")
    rows = loop("j", 8, store(grid, ("i", "j"), load(line, index(i=8, j=1))))
    assert independent(rows, grid, line) == ""
    mixed = loop("j", 8, store(grid, ("i", "j"), load(line, index(i=1, j=8))))
    assert independent(mixed, grid, line) != ""


def test_locals_of_an_iteration_are_its_own() -> None:
    kept = buffer("kept", (4,), "local")
    body = Block((Alloc(kept), store(kept, (0,), number(1)), store(o, ("i",), load(kept, 0))))
    assert independent(body, o) == ""
    outside = kernel(Block((Alloc(kept), loop("i", 8, store(kept, (0,), number(1))))), buffers=[o])
    with pytest.raises(ScheduleError, match="they share kept"):
        steps.vectorize(outside, "i")


def test_sums_that_are_read_on_the_way_are_not_independent() -> None:
    x, y = buffer("x", (8,)), buffer("y", (8,), "output")
    total = buffer("total", (), "local")
    running = loop("i", 8, add_to(total, (), load(x, "i")), store(y, ("i",), load(total)))
    k = kernel(Block((Alloc(total), store(total, (), number(0)), running)), buffers=[x, y])
    with pytest.raises(ScheduleError, match="they share total"):
        steps.vectorize(k, "i")


def test_two_ways_to_add_are_not_independent() -> None:
    x, total = buffer("x", (8,)), buffer("total", (), "output")
    body = (add_to(total, (), load(x, "i")), add_to(total, (), load(x, "i"), "maximum"))
    with pytest.raises(ScheduleError, match="they share total"):
        steps.vectorize(kernel(loop("i", 8, *body), buffers=[x, total]), "i")


def test_products_of_parts_are_independent() -> None:
    a, b = buffer("a", (8, 4, 4)), buffer("b", (4, 4))
    c = buffer("c", (8, 4, 4), "output")
    call = Call("blas.gemm", (c, a, b), (at("i"), at("i"), ()))
    assert independent(call, a, b, c) == ""
    same = Call("blas.gemm", (c, a, b), (at(0), at("i"), ()))
    assert "they share c" in independent(same, a, b, c)
    fed = Call("blas.gemm", (c, c, b), (at(index(1, i=1)), at("i"), ()))
    assert "they share c" in independent(replace(fed, buffers=(c, c, b)), b, c)


def test_while_loops_are_looked_into() -> None:
    n = buffer("n", (8,), "output", INT64)
    one = number(1, INT64)
    own = While(apply("less", load(n, "i"), one), (add_to(n, ("i",), one),))
    assert independent(own, n) == ""
    shared = While(apply("less", load(n, 0), one), (add_to(n, ("i",), one),))
    assert independent(shared, n) != ""
