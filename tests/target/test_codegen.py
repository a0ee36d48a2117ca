"""Machine code does what the loop interpreter does: every statement, kind of loop and access."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import (
    Accumulate,
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    For,
    If,
    Kernel,
    Let,
    Stmt,
    Store,
    While,
    affine,
    loop_var,
    map_stmt,
    neutral,
    walk,
)
from nbcomp.machine import host
from nbcomp.target.llvm.beside import beside
from nbcomp.target.llvm.codegen import generate
from nbcomp.target.llvm.compile import compile_kernel
from nbcomp.target.llvm.emit import assembled, host_cpu, is_compact, made_here, object_of
from nbcomp.target.llvm.memory import STACK
from nbcomp.target.llvm.values import LITERAL
from nbcomp.types import FLOAT32, FLOAT64, INT64
from tests.kernels import (
    Array,
    add_to,
    apply,
    at,
    buffer,
    cast,
    compiled,
    index,
    interpreted,
    kernel,
    load,
    loop,
    memory_of,
    native,
    number,
    random_array,
    run_stage,
    same_memory,
    store,
    var,
)
from tests.target.random_kernels import RandomKernel

VECTORS = [v for v in (16, 32, 64) if v <= host().vector_bytes]
DTYPES = ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d"]
EDGES = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 5e-324, -1e30, 65504.0]


def check(k: Kernel, arrays: dict[str, Array], vector_bytes: int | None = None) -> None:
    """The machine code leaves behind what the interpreter does, and touches nothing else.

    Which of -0 and +0 is the least of several terms depends on their order, which is the lanes'.
    """
    extremes = (
        isinstance(s, Accumulate) and s.fn in ("minimum", "maximum", "fmin", "fmax")
        for s in walk(k.stages)
    )
    same_memory(native(k, arrays, vector_bytes), interpreted(k, arrays), zeros=not any(extremes))


# ----------------------------------------------------------------------------------- whole kernels


@pytest.mark.parametrize("seed", range(90))
def test_random_kernels(seed: int) -> None:
    made = RandomKernel(seed)
    check(made.kernel, made.arrays)


@pytest.mark.parametrize("vector_bytes", VECTORS[:-1])
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_random_kernels_on_narrower_vectors(seed: int, vector_bytes: int) -> None:
    made = RandomKernel(seed)
    check(made.kernel, made.arrays, vector_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20, 60))
def test_many_random_kernels(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        made = RandomKernel(seed)
        try:
            check(made.kernel, made.arrays)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


# ------------------------------------------------------------------------------------------- tails


def counted(n: Buffer, *body: Stmt, unroll: int = 1) -> For:
    """A vector loop over i whose length is read from memory: one piece of code for all lengths."""
    return For("i", load(n, 0), body, "vector", unroll)


@pytest.mark.parametrize("char", DTYPES)
def test_tails_of_every_length(char: str, rng: np.random.Generator) -> None:
    n = buffer("n", (1,), dtype=INT64)
    x, y = buffer("x", (150,), dtype=char), buffer("y", (150,), "output", char)
    step = "logical_not" if char == "?" else "square"
    k = kernel(counted(n, store(y, ("i",), apply(step, load(x, "i"))), unroll=2), buffers=[n, x, y])
    a = random_array(rng, char, (150,))
    code, machine = compiled(k)
    for length in [*range(71), 127, 128, 129, 143, 150]:
        memory = memory_of(k, {"n": np.array([length]), "x": a})
        run_stage(code.stages[0], machine, k, memory)
        wanted = memory_of(k, {"n": np.array([length]), "x": a})
        wanted["y"][:length] = getattr(np, step)(a[:length])
        same_memory(memory, wanted)


@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("char", ["B", "h", "f", "d"])
def test_sums_of_every_length(char: str, unroll: int, rng: np.random.Generator) -> None:
    n = buffer("n", (1,), dtype=INT64)
    x, y = buffer("x", (300,), dtype=char), buffer("y", (), "output", char)
    k = kernel(counted(n, add_to(y, (), load(x, "i")), unroll=unroll), buffers=[n, x, y])
    a = random_array(rng, char, (300,))
    code, machine = compiled(k)
    for length in [*range(71), 128, 200, 255, 300]:
        memory = memory_of(k, {"n": np.array([length]), "x": a, "y": np.array(5)})
        run_stage(code.stages[0], machine, k, memory)
        assert memory["y"] == np.append(a[:length], a.dtype.type(5)).sum(dtype=char)


# ----------------------------------------------------------------------------- access to memory

STRIDES = [1, 2, 3, 4, 5, -1, -2, -3, 0]


@pytest.mark.parametrize("char", ["?", "b", "h", "i", "q", "e", "f", "d"])
@pytest.mark.parametrize("stride", STRIDES)
def test_loads_with_a_stride(char: str, stride: int, rng: np.random.Generator) -> None:
    x = buffer("x", (75,), dtype=char, strides=(stride,))
    y = buffer("y", (75,), "output", char)
    k = kernel(loop("i", 75, store(y, ("i",), load(x, "i")), kind="vector"), buffers=[x, y])
    a = random_array(rng, char, (75,) if stride else (1,))
    check(k, {"x": a})


@pytest.mark.parametrize("char", ["?", "b", "h", "i", "q", "e", "f", "d"])
@pytest.mark.parametrize("stride", [s for s in STRIDES if s])
def test_stores_with_a_stride(char: str, stride: int, rng: np.random.Generator) -> None:
    x, y = buffer("x", (75,), dtype=char), buffer("y", (75,), "output", char, (stride,))
    k = kernel(loop("i", 75, store(y, ("i",), load(x, "i")), kind="vector"), buffers=[x, y])
    check(k, {"x": random_array(rng, char, (75,))})


@pytest.mark.parametrize("factor", [1, 2, 3, -1, -4])
def test_places_from_factors(factor: int, rng: np.random.Generator) -> None:
    reach = 74 * abs(factor) + 1
    place = index(3 + (reach - 1 if factor < 0 else 0), i=factor)
    x, y = buffer("x", (reach + 3,)), buffer("y", (reach + 3,), "output")
    k = kernel(
        loop("i", 75, store(y, (place,), load(x, place)), kind="vector", unroll=4), buffers=[x, y]
    )
    check(k, {"x": rng.random(reach + 3, np.float32)})


def test_two_axes_that_move_together(rng: np.random.Generator) -> None:
    x, y = buffer("x", (70, 70)), buffer("y", (70,), "output")
    k = kernel(loop("i", 70, store(y, ("i",), load(x, "i", "i")), kind="vector"), buffers=[x, y])
    check(k, {"x": rng.random((70, 70), np.float32)})


@pytest.mark.parametrize("char", ["?", "B", "h", "i", "q", "e", "f", "d"])
def test_places_read_from_memory(char: str, rng: np.random.Generator) -> None:
    place, x = buffer("place", (75,), dtype=INT64), buffer("x", (40, 2), dtype=char)
    y = buffer("y", (75, 2), "output", char)
    body = [store(y, ("i", c), load(x, load(place, "i"), c)) for c in range(2)]
    k = kernel(loop("i", 75, *body, kind="vector", unroll=2), buffers=[place, x, y])
    check(k, {"place": rng.integers(0, 40, 75), "x": random_array(rng, char, (40, 2))})


@pytest.mark.parametrize("char", ["?", "B", "h", "i", "q", "e", "f", "d"])
def test_places_written_are_read_from_memory(char: str, rng: np.random.Generator) -> None:
    place, x = buffer("place", (75,), dtype=INT64), buffer("x", (75,), dtype=char)
    y = buffer("y", (75,), "output", char)
    k = kernel(
        loop("i", 75, store(y, (load(place, "i"),), load(x, "i")), kind="vector"),
        buffers=[place, x, y],
    )
    check(k, {"place": rng.permutation(75), "x": random_array(rng, char, (75,))})


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("char", ["?", "B", "h", "i", "d", "f"])
def test_components_of_short_rows(char: str, width: int, rng: np.random.Generator) -> None:
    x, y = buffer("x", (77, width), dtype=char), buffer("y", (77, width), "output", char)
    body = [store(y, ("i", width - 1 - c), load(x, "i", c)) for c in range(width)]
    k = kernel(loop("i", 77, *body, kind="vector"), buffers=[x, y])
    check(k, {"x": random_array(rng, char, (77, width))})
    assert "shufflevector" in generate(k, host().vector_bytes).text


def test_components_are_loaded_once() -> None:
    x, y = buffer("x", (64, 3)), buffer("y", (64,), "output")
    total = apply("add", apply("add", load(x, "i", 0), load(x, "i", 1)), load(x, "i", 2))
    k = kernel(loop("i", 64, store(y, ("i",), total), kind="vector"), buffers=[x, y])
    text = generate(k, 64).text
    assert len(re.findall(r"= load <48 x float>", text)) == 1
    assert "gather" not in text


def test_components_of_rows_that_are_not_whole_are_gathered(rng: np.random.Generator) -> None:
    x, y = buffer("x", (77, 3), strides=(5, 1)), buffer("y", (77,), "output")
    k = kernel(loop("i", 77, store(y, ("i",), load(x, "i", 2)), kind="vector"), buffers=[x, y])
    check(k, {"x": rng.random((77, 3), np.float32)})
    assert "masked.gather" in generate(k, host().vector_bytes).text


def test_the_value_of_an_index() -> None:
    y = buffer("y", (75, 3), "output", INT64)
    k = kernel(
        loop("j", 3, loop("i", 75, store(y, ("i", "j"), index(-4, i=3, j=100)), kind="vector")),
        buffers=[y],
    )
    check(k, {})


def test_large_constants_in_indices() -> None:
    """Factors and offsets beyond 32 bits, as values."""
    y = buffer("y", (20,), "output", INT64)
    place = index(-(2**40) - 7, i=2**41 + 1)
    k = kernel(loop("i", 20, store(y, ("i",), place), kind="vector"), buffers=[y])
    check(k, {})
    check(replace(k, stages=(loop("i", 20, store(y, ("i",), place)),)), {})


def test_strides_beyond_32_bits() -> None:
    """An address further than 2**32 elements away, in lanes and in loops."""
    far = 2**32 + 3
    x, y = buffer("x", (2,), dtype=np.int8, strides=(far,)), buffer("y", (2,), "output", np.int8)
    memory = np.zeros(far + 1, np.int8)  # pages nobody touches take no memory
    memory[0], memory[far] = 5, 7
    for kind in ("vector", "serial"):
        k = kernel(loop("i", 2, store(y, ("i",), load(x, "i")), kind=kind), buffers=[x, y])  # type: ignore[arg-type]
        code, machine = compiled(k)
        out = np.zeros(2, np.int8)
        run_stage(code.stages[0], machine, k, {"x": memory, "y": out})
        assert out.tolist() == [5, 7]


def test_a_scalar_in_all_lanes(rng: np.random.Generator) -> None:
    x, s, y = buffer("x", (75,)), buffer("s", ()), buffer("y", (75,), "output")
    value = apply("multiply", load(x, "i"), apply("add", load(s), number(1)))
    k = kernel(loop("i", 75, store(y, ("i",), value), kind="vector"), buffers=[x, s, y])
    check(k, {"x": rng.random(75, np.float32), "s": np.array(3)})


def test_an_alias_is_the_same_memory() -> None:
    out = buffer("out", (4, 20), "output", INT64)
    flat = buffer("flat", (80,), "output", INT64, alias="out")
    k = kernel(
        loop("i", 80, store(flat, ("i",), loop_var("i")), kind="vector"),
        loop("i", 4, loop("j", 20, add_to(out, ("i", "j"), affine(1000, i=1)), kind="vector")),
        buffers=[out, flat],
    )
    check(k, {})


# --------------------------------------------------------------------------------------- statements


def test_what_is_read_again_after_a_store_is_new() -> None:
    y = buffer("y", (40,), "output", INT64)
    now = load(y, "i")  # one expression, read before and after
    body = [
        store(y, ("i",), index(i=1)),
        store(y, ("i",), apply("add", now, now)),
        store(y, ("i",), apply("multiply", now, now)),
    ]
    check(kernel(loop("i", 40, *body, kind="vector"), buffers=[y]), {})
    check(kernel(loop("i", 40, *body), buffers=[y]), {})


def test_components_read_again_after_a_store_are_new() -> None:
    y = buffer("y", (64, 2), "output", INT64)
    first, second = load(y, "i", 0), load(y, "i", 1)
    body = [
        store(y, ("i", 0), index(i=1)),
        store(y, ("i", 1), first),
        store(y, ("i", 0), apply("add", first, second)),
        store(y, ("i", 1), apply("add", first, second)),
    ]
    check(kernel(loop("i", 64, *body, kind="vector"), buffers=[y]), {})


def test_locals_of_every_lane(rng: np.random.Generator) -> None:
    """A table of its own for each lane: filled, read in another order, added up."""
    x, y = buffer("x", (75, 5)), buffer("y", (75,), "output")
    table, total = buffer("table", (5,), "local"), buffer("total", (), "local")
    body = [
        Alloc(table),
        Alloc(total),
        store(total, (), number(0)),
        loop("j", 5, store(table, ("j",), load(x, "i", "j"))),
        loop("k", 5, add_to(total, (), load(table, index(4, k=-1)))),
        add_to(total, (), load(table, 2), "maximum"),
        store(y, ("i",), load(total)),
    ]
    k = kernel(loop("i", 75, *body, kind="vector", unroll=2), buffers=[x, y])
    check(k, {"x": random_array(rng, "f", (75, 5))})


@pytest.mark.parametrize("char", ["?", "b", "e", "d"])
def test_locals_of_every_dtype(char: str, rng: np.random.Generator) -> None:
    x, y = buffer("x", (75,), dtype=char), buffer("y", (75,), "output", char)
    kept = buffer("kept", (), "local", char)
    body = [Alloc(kept), store(kept, (), load(x, "i")), store(y, ("i",), load(kept))]
    for kind in ("vector", "serial"):
        k = kernel(loop("i", 75, *body, kind=kind), buffers=[x, y])  # type: ignore[arg-type]
        check(k, {"x": random_array(rng, char, (75,))})


def test_names_of_locals_may_be_used_again() -> None:
    acc, y = buffer("acc", (), "local"), buffer("y", (40,), "output")
    lanes = [Alloc(acc), store(acc, (), cast(loop_var("i"), FLOAT32)), store(y, ("i",), load(acc))]
    k = kernel(
        Block(
            (
                loop("i", 40, *lanes, kind="vector"),
                Alloc(acc),
                store(acc, (), number(2)),
                loop("j", 40, add_to(y, ("j",), load(acc)), kind="vector"),
            )
        ),
        buffers=[y],
    )
    check(k, {})


@pytest.mark.parametrize("n", [0, 1, 5])
def test_if_and_while(n: int) -> None:
    y, count = buffer("y", (8,), "output", INT64), buffer("count", (), "output", INT64)
    one = number(1, INT64)
    even = apply("equal", apply("remainder", load(count), number(2, INT64)), number(0, INT64))
    k = kernel(
        Block(
            (
                store(count, (), number(0, INT64)),
                While(
                    apply("less", load(count), number(n, INT64)),
                    (
                        If(
                            even,
                            (
                                Let("h", apply("add", load(count), one)),
                                store(y, (0,), var("h", INT64)),
                            ),
                            (
                                If(
                                    apply("less", load(count), number(3, INT64)),
                                    (add_to(y, (1,), one),),
                                ),
                            ),
                        ),
                        loop("i", 8, add_to(y, ("i",), load(count)), kind="vector"),
                        add_to(count, (), one),
                    ),
                ),
                store(y, (7,), load(count)),
            )
        ),
        buffers=[y, count],
    )
    check(k, {"y": np.zeros(8)})


def test_loops_of_every_kind_inside_each_other(rng: np.random.Generator) -> None:
    x, y = buffer("x", (6, 3, 40)), buffer("y", (6, 3, 40), "output")
    value = apply("square", load(x, "i", "j", "k"))
    inner = loop("k", 40, store(y, ("i", "j", "k"), value), kind="vector")
    k = kernel(loop("i", 6, loop("j", 3, inner, kind="unroll"), kind="parallel"), buffers=[x, y])
    check(k, {"x": rng.random((6, 3, 40), np.float32)})


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize("order", ["plain", "a.T", "b.T"])
def test_products(dtype: np.dtype[np.generic], order: str, rng: np.random.Generator) -> None:
    a = buffer("a", (3, 5, 70), dtype=dtype, strides=(350, 1, 5) if order == "a.T" else None)
    b = buffer("b", (70, 4), dtype=dtype, strides=(1, 70) if order == "b.T" else None)
    c = buffer("c", (3, 5, 4), "output", dtype)
    k = kernel(
        loop("i", 3, Call("blas.gemm", (c, a, b), (at("i"), at("i"), ()))), buffers=[a, b, c]
    )
    left, right = random_array(rng, dtype, (3, 5, 70)), random_array(rng, dtype, (70, 4))
    check(k, {"a": left, "b": right})


def test_products_blas_cannot_do() -> None:
    a, b = buffer("a", (5, 6), strides=(12, 2)), buffer("b", (6, 4))
    c = buffer("c", (5, 4), "output")
    k = kernel(Call("blas.gemm", (c, a, b), ((), (), ())), buffers=[a, b, c])
    with pytest.raises(Unsupported, match="one contiguous axis"):
        generate(k, 16)
    whole = [replace(x, dtype=INT64, strides=s) for x, s in ((a, (6, 1)), (b, b.strides))]
    out = replace(c, dtype=INT64)
    k = kernel(Call("blas.gemm", (out, *whole), ((), (), ())), buffers=[*whole, out])
    with pytest.raises(Unsupported, match="BLAS has no product"):
        generate(k, 16)


# --------------------------------------------------------------------------------- accumulators

SUMS = {
    "add": DTYPES,
    "multiply": DTYPES,
    "maximum": DTYPES,
    "minimum": DTYPES,
    "logical_or": ["?"],
    "logical_and": ["?"],
    "bitwise_or": [*"bBhHiIqQ"],
    "bitwise_and": [*"bBhHiIqQ"],
    "bitwise_xor": [*"bBhHiIqQ"],
}


def row_sum(fn: str, char: str, n: int, unroll: int) -> Kernel:
    x, y = buffer("x", (n,), dtype=char), buffer("y", (), "output", char)
    acc = buffer("acc", (), "local", char)
    start = number(neutral(fn, np.dtype(char)), char)
    return kernel(
        Block(
            (
                Alloc(acc),
                store(acc, (), start),
                loop("i", n, add_to(acc, (), load(x, "i"), fn), kind="vector", unroll=unroll),
                store(y, (), load(acc)),
            )
        ),
        buffers=[x, y],
    )


@pytest.mark.parametrize(
    ("fn", "char"), [(fn, char) for fn, chars in SUMS.items() for char in chars]
)
def test_accumulators(fn: str, char: str, rng: np.random.Generator) -> None:
    for n, unroll in ((0, 1), (1, 4), (37, 2), (200, 4)):
        if np.dtype(char).kind in "iu":
            info = np.iinfo(char)
            a = rng.integers(info.min, info.max, n, char, endpoint=True)
        else:
            a = random_array(rng, char, (n,), 0, 2 if fn == "multiply" else 3)
        check(row_sum(fn, char, n, unroll), {"x": a})


@pytest.mark.parametrize("char", ["e", "f", "d"])
@pytest.mark.parametrize("fn", ["add", "multiply", "maximum", "minimum"])
def test_accumulators_at_the_edges(fn: str, char: str, rng: np.random.Generator) -> None:
    """NaN, infinities and the sign of zero, wherever they stand."""
    with np.errstate(over="ignore"):
        edges = np.array(EDGES).astype(char)
    k = row_sum(fn, char, 37, 2)
    for value in edges:
        for filler in edges[:2]:
            a = np.full(37, filler)
            a[rng.integers(37)] = value
            check(k, {"x": a})


def test_an_empty_sum_is_neutral() -> None:
    got = native(row_sum("add", "f", 0, 4), {})["y"]
    assert got == 0
    assert np.signbit(got)


def test_rows_of_accumulators(rng: np.random.Generator) -> None:
    """A local of several elements, each with an accumulator per lane."""
    x, y = buffer("x", (75, 3)), buffer("y", (3,), "output")
    acc = buffer("acc", (3,), "local")
    adds = [add_to(acc, (c,), load(x, "i", c)) for c in range(3)]
    k = kernel(
        Block(
            (
                Alloc(acc),
                *(store(acc, (c,), number(-0.0)) for c in range(3)),
                loop("i", 75, *adds, kind="vector", unroll=2),
                loop("c", 3, store(y, ("c",), load(acc, "c"))),
            )
        ),
        buffers=[x, y],
    )
    check(k, {"x": random_array(rng, "f", (75, 3))})


def test_an_inner_loop_may_pick_the_accumulator(rng: np.random.Generator) -> None:
    x, y = buffer("x", (75, 6)), buffer("y", (6,), "output")
    acc = buffer("acc", (6,), "local")
    k = kernel(
        Block(
            (
                Alloc(acc),
                loop("z", 6, store(acc, ("z",), number(-0.0)), kind="unroll"),
                loop("i", 75, loop("c", 6, add_to(acc, ("c",), load(x, "i", "c"))), kind="vector"),
                loop("o", 6, store(y, ("o",), load(acc, "o"))),
            )
        ),
        buffers=[x, y],
    )
    check(k, {"x": random_array(rng, "f", (75, 6))})


def test_sums_are_added_up_in_a_tree() -> None:
    """Ones in float16 stop at 2048 when they are added up one by one; lanes and vectors do not."""
    n = 32 * 1024
    got = native(row_sum("add", "e", n, 8), {"x": np.ones(n, np.float16)})["y"]
    assert got == n


# ------------------------------------------------------------------------------ what is refused

x, y = buffer("x", (40,)), buffer("y", (40,), "output")
place = buffer("place", (40,), dtype=INT64)
acc = buffer("acc", (2,), "local")
wide = buffer("wide", (100,), "local")
huge = buffer("huge", (STACK,), "local")

REFUSED: dict[str, tuple[list[Stmt], str]] = {
    "a histogram": ([add_to(y, (load(place, "i"),), number(1))], "data says where lanes add to y"),
    "two places": (
        [add_to(y, (0,), load(x, "i")), add_to(y, (1,), load(x, "i"))],
        "several ways to add to y",
    ),
    "two functions": (
        [add_to(y, (0,), load(x, "i")), add_to(y, (0,), load(x, "i"), "maximum")],
        "several ways to add to y",
    ),
    "a place an inner loop picks": (
        [loop("j", 4, add_to(y, ("j",), load(x, "i")))],
        "several ways to add to y",
    ),
    "one element for all lanes": ([store(y, (0,), load(x, "i"))], "all lanes .* write one element"),
    "an if of each lane": (
        [If(apply("less", load(x, "i"), number(1)), (store(y, ("i",), number(1)),))],
        "the lanes of the loop over i would part ways",
    ),
    "a while of each lane": (
        [While(apply("less", load(x, "i"), number(1)), (store(y, ("i",), number(1)),))],
        "the lanes of the loop over i would part ways",
    ),
    "an extent of each lane": (
        [loop("j", affine(i=1), add_to(y, ("i",), number(1)))],
        "the lanes of the loop over i would part ways",
    ),
    "a lane's element of a lane's local": (
        [Alloc(wide), store(wide, ("i",), number(1))],
        "a lane of wide for every lane",
    ),
    "locals beyond the stack": (
        [Alloc(huge), store(huge, (0,), number(1))],
        "bytes of values kept",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_lanes_cannot_do_is_refused(name: str) -> None:
    body, why = REFUSED[name]
    k = kernel(loop("i", 40, *body, kind="vector"), buffers=[x, y, place])
    with pytest.raises(Unsupported, match=why):
        generate(k, host().vector_bytes)


def register_tile(rows: int, columns: int, depth: int) -> Kernel:
    """c = a.T @ b for one tile of c, its sums in a local."""
    a, b = buffer("a", (depth, rows)), buffer("b", (depth, columns))
    c, acc = buffer("c", (rows, columns), "output"), buffer("acc", (rows, columns), "local")
    product = apply("multiply", load(a, "k", "i"), load(b, "k", "j"))
    add = replace(add_to(acc, ("i", "j"), product), contract=True)

    def tile(i: str, j: str, stmt: Stmt) -> For:
        lanes = loop(j, columns, stmt, kind="vector", unroll=2)
        return loop(i, rows, lanes, kind="unroll")

    stages = Block(
        (
            Alloc(acc),
            tile("y", "x", store(acc, ("y", "x"), number(0.0))),
            loop("k", depth, tile("i", "j", add)),
            tile("v", "u", store(c, ("v", "u"), load(acc, "v", "u"))),
        )
    )
    return kernel(stages, buffers=[a, b, c])


def test_a_register_tile_stays_in_registers(rng: np.random.Generator) -> None:
    """Its places are literals whatever their size, and so the sums never reach memory."""
    k = register_tile(6, 32, 40)
    a, b = rng.random((40, 6), np.float32), rng.random((40, 32), np.float32)
    got = native(k, {"a": a, "b": b})["c"]
    np.testing.assert_allclose(got, a.T @ b, rtol=1e-5)
    code, machine = compiled(k)
    text = code.readable(machine.texts.optimised)
    assert "alloca" not in text
    assert text.count("llvm.fmuladd") > 6


def test_products_are_rounded_unless_they_may_be_contracted(rng: np.random.Generator) -> None:
    k = register_tile(2, 32, 3)
    found = next(s for s in walk(k.stages) if isinstance(s, Accumulate))
    assert "// contract" in str(k)
    (block,) = k.stages

    def rounded(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Accumulate):
            return replace(stmt, contract=False)
        return map_stmt(stmt, lambda e: e, lambda b: b, rounded)

    assert found.contract
    plain = replace(k, stages=(rounded(block),))
    a, b = rng.random((3, 2), np.float32), rng.random((3, 32), np.float32)
    total = np.zeros((2, 32), np.float32)
    for row, column in zip(a, b, strict=True):
        total += row[:, None] * column
    np.testing.assert_array_equal(native(plain, {"a": a, "b": b})["c"], total)
    exact = a.astype(np.float64).T @ b.astype(np.float64)
    np.testing.assert_allclose(native(k, {"a": a, "b": b})["c"], exact, rtol=3e-7)


def test_a_local_of_many_accumulators_is_refused() -> None:
    body = loop("i", 40, loop("j", 100, add_to(wide, ("j",), load(x, "i"))), kind="vector")
    k = kernel(Block((Alloc(wide), body)), buffers=[x, y])
    with pytest.raises(Unsupported, match="an accumulator of 100 elements"):
        generate(k, host().vector_bytes)


def test_a_function_without_code_is_refused() -> None:
    k = Kernel("k", (x, y), (store(y, (0,), Apply(FLOAT32, "frobnicate", (load(x, 0),))),))
    with pytest.raises(Unsupported, match="frobnicate"):
        generate(k, 16)


# -------------------------------------------------------------------------------- the text of it


def scaled(n: int, factor: int = 1) -> Kernel:
    a, b = buffer("a", (n * factor,)), buffer("b", (n,), "output")
    body = store(b, ("i",), apply("exp", load(a, index(i=factor))))
    return kernel(loop("i", n, body, kind="vector"), buffers=[a, b], name=f"scaled{n}")


def test_two_sizes_share_one_machine_code() -> None:
    first, second = generate(scaled(1000), 64), generate(scaled(2001), 64)
    assert first.text == second.text
    assert first.stages[0].params == (1000,)
    assert second.stages[0].params == (2001,)
    made, _ = compile_kernel(first, host_cpu())
    again, new = compile_kernel(second, host_cpu())
    assert made is again
    assert not new


def test_two_strides_share_one_machine_code() -> None:
    def strided(step: int) -> Kernel:
        a, b = buffer("a", (50, 80), strides=(step, 1)), buffer("b", (50, 80), "output")
        inner = loop("j", 80, store(b, ("i", "j"), load(a, "i", "j")), kind="vector")
        return kernel(loop("i", 50, inner), buffers=[a, b])

    assert generate(strided(100), 64).text == generate(strided(700), 64).text


def test_names_do_not_matter_to_the_code() -> None:
    a, b = (
        kernel(loop(v, 70, store(y, (v,), load(x, v)), kind="vector"), buffers=[x, y], name=v)
        for v in "ab"
    )
    assert generate(a, 64).text == generate(b, 64).text


def test_small_sizes_are_written_into_the_code() -> None:
    text = generate(scaled(LITERAL), 64).text
    assert generate(scaled(LITERAL), 64).stages[0].params == ()
    assert "masked" not in text  # four whole vectors
    assert "masked" in generate(scaled(LITERAL - 1), 64).text


def test_the_kernels_own_names_are_readable() -> None:
    code = generate(scaled(1000), 64)
    text = code.readable(code.text)
    assert '@"scaled1000.0"' in text
    assert re.search(r"%a\b", text)
    assert re.search(r"%b\b", text)
    assert "%input0" not in text


def test_vectors_are_the_machines() -> None:
    lanes = host().vector_bytes // 4
    code, machine = compiled(scaled(1000))
    assert f"<{lanes} x float>" in code.text
    register = {64: "zmm", 32: "ymm"}.get(host().vector_bytes)
    if register is None:
        pytest.skip("128-bit vectors")
    assert register in machine.texts.assembly


@pytest.mark.parametrize(
    ("char", "lanes"), [("B", 64), ("?", 64), ("h", 32), ("e", 32), ("f", 16), ("d", 8)]
)
def test_lanes_follow_the_widest_value(char: str, lanes: int) -> None:
    a, b = buffer("a", (1000,), dtype=char), buffer("b", (1000,), "output", char)
    k = kernel(loop("i", 1000, store(b, ("i",), load(a, "i")), kind="vector"), buffers=[a, b])
    assert f"load <{lanes} x " in generate(k, 64).text
    wide = kernel(
        loop("i", 1000, store(b, ("i",), cast(cast(load(a, "i"), FLOAT64), char)), kind="vector"),
        buffers=[a, b],
    )
    assert "load <8 x " in generate(wide, 64).text


def test_streaming_stores_go_past_the_caches(rng: np.random.Generator) -> None:
    a, b = buffer("a", (1024,)), buffer("b", (1024,), "output")
    written = Store(b, at("i"), load(a, "i"), None, streaming=True)
    k = kernel(loop("i", 1024, written, kind="vector"), buffers=[a, b])
    code, machine = compiled(k)
    assert "!nontemporal" in code.text
    if host().vector_bytes >= 32:
        assert "vmovnt" in machine.texts.assembly
    source = rng.random(1024, np.float32)
    memory = np.zeros(1024 + 16, np.float32)
    skip = -(memory.ctypes.data // 4) % 16
    target = memory[skip : skip + 1024]
    run_stage(code.stages[0], machine, k, {"a": source, "b": target})
    assert np.array_equal(target, source)


def test_streaming_stores_that_run_backwards_are_plain() -> None:
    a, b = buffer("a", (1024,)), buffer("b", (1024,), "output")
    written = Store(b, (index(1023, i=-1),), load(a, "i"), None, streaming=True)
    k = kernel(loop("i", 1024, written, kind="vector"), buffers=[a, b])
    assert "!nontemporal" not in generate(k, 64).text


def test_inputs_are_read_only_and_outputs_nobody_elses() -> None:
    a, b, c = buffer("a", (4, 4)), buffer("b", (4, 4)), buffer("c", (4, 4), "output")
    k = kernel(
        Call("blas.gemm", (c, a, b), ((), (), ())),
        loop("i", 4, loop("j", 4, add_to(c, ("i", "j"), load(a, "i", "j")))),
        buffers=[a, b, c],
    )
    product, sums = re.findall(r"define internal i64 (.*)\{", generate(k, 64).text)
    for text in (product, sums):
        assert re.search(r"ptr readonly captures\(none\) %input0", text)
        assert re.search(r"ptr noalias captures\(none\) %output2", text)


def instructions(text: str) -> list[str]:
    """The instruction lines of the functions that do the work."""
    found, inside = [], False
    for line in text.splitlines():
        inside |= ".code" in line and line.startswith("define")
        inside &= line != "}"
        if inside and line.startswith("  "):
            found.append(line)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_every_instruction_has_a_location(seed: int) -> None:
    code = generate(RandomKernel(seed).kernel, 64, located=True)
    bare = [line for line in instructions(code.located_text) if "!dbg" not in line]
    assert [line for line in bare if "= alloca" not in line] == []


@pytest.mark.parametrize("seed", range(10))
def test_locations_are_not_in_the_text_that_is_compiled(seed: int) -> None:
    plain, located = (generate(RandomKernel(seed).kernel, 64, located=x) for x in (False, True))
    assert "!dbg" not in plain.text
    assert located.text == plain.text
    assert plain.located_text == ""


@pytest.mark.parametrize("vector_bytes", VECTORS)
@pytest.mark.parametrize("seed", range(2000, 2030))
def test_locations_do_not_change_machine_code(seed: int, vector_bytes: int) -> None:
    kernel = RandomKernel(seed).kernel
    code = generate(kernel, vector_bytes, located=True)
    plain, located = (
        made_here(text, host_cpu()).assembly for text in (code.text, code.located_text)
    )

    def machine(text: str) -> list[str]:
        # With line tables LLVM now and then adds a constant by `lea`, which means the same.
        text = re.sub(r"\taddq\t\$(\d+), (%\w+)$", r"\tleaq\t\1(\2), \2", text, flags=re.MULTILINE)
        return re.findall(r"^(?:\t[a-z].*|\.LBB\w+:)$", text, re.MULTILINE)

    assert machine(plain) == machine(located)


def loaded(binary: bytes) -> dict[bytes, bytes]:
    """The sections of an object that are brought into memory: code and constants."""
    sections = llvm.ObjectFileRef.from_data(binary).sections()
    found = {s.name() or b"": s.data() for s in sections}
    return {k: data for k, data in found.items() if re.match(rb"\.l?(text|rodata)", k)}


@pytest.mark.parametrize("vector_bytes", VECTORS)
@pytest.mark.parametrize("seed", range(2000, 2010))
def test_the_assembly_that_is_shown_is_that_of_the_code_that_runs(
    seed: int, vector_bytes: int
) -> None:
    text = generate(RandomKernel(seed).kernel, vector_bytes, located=True).located_text
    cpu = host_cpu()
    compact = is_compact(text, cpu)
    read = assembled(made_here(text, cpu).assembly, cpu, compact)
    written = object_of(text, cpu, compact)
    assert loaded(read) == loaded(written)
    assert any(len(data) > 50 for data in loaded(read).values())


@pytest.mark.skipif("x86_64" not in host_cpu().triple, reason="a CPU of another architecture")
def test_what_a_cpu_has_no_instruction_for_is_called(rng: np.random.Generator) -> None:
    x, out = buffer("x", (50,)), buffer("out", (50,), "output")
    k = kernel(
        loop("i", 50, store(out, ("i",), apply("floor", load(x, "i"))), kind="vector"),
        buffers=[x, out],
    )
    code = generate(k, 16)
    machine, _ = compile_kernel(code, replace(host_cpu(), name="x86-64", features=""))
    arrays = {"x": random_array(rng, x.dtype, x.shape)}
    memory = memory_of(k, arrays)
    for stage in code.stages:
        run_stage(stage, machine, k, memory)
    same_memory(memory, interpreted(k, arrays))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_, np.int64])
@pytest.mark.parametrize("count", [2, 3, 8, 12, 16])
@pytest.mark.parametrize("n", [16, 50, 130])
def test_rows_that_become_columns(n: int, count: int, dtype: type) -> None:
    """out[r, c] = x[c, r], the rows r in lanes: whole vectors are transposed in registers."""
    x, out = buffer("x", (count, n), dtype=dtype), buffer("out", (n, 20), "output", dtype)
    turn = loop("c", count, store(out, ("r", index(3, c=1)), load(x, "c", "r")), kind="unroll")
    k = kernel(loop("r", n, turn, kind="vector"), buffers=[x, out])
    arrays: dict[str, Array] = {"x": random_array(np.random.default_rng(1), x.dtype, x.shape)}
    same_memory(native(k, arrays), interpreted(k, arrays))


def test_a_thread_that_computes_makes_way_for_llvm_while_it_works() -> None:
    usual = sys.getswitchinterval()
    with beside("one") as worker:
        assert sys.getswitchinterval() < usual
        with suppress(ZeroDivisionError), beside("another"):
            raise ZeroDivisionError
        assert worker.submit(int).result() == 0
        assert sys.getswitchinterval() < usual
    assert sys.getswitchinterval() == usual
