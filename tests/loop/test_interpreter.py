"""The loop interpreter on kernels written by hand: it is what the loop IR means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from nbcomp.loop.grammar import Alloc, Apply, Block, Call, If, Kernel, Let, While, affine
from nbcomp.loop.interpreter import interpret
from nbcomp.types import FLOAT32, FLOAT64, INT64
from tests.kernels import (
    Array,
    Kind,
    add_to,
    apply,
    buffer,
    cast,
    index,
    kernel,
    load,
    loop,
    number,
    select,
    store,
    var,
)


def run(k: Kernel, **arrays: Array) -> dict[str, Array]:
    interpret(k, arrays)
    return arrays


@pytest.mark.parametrize("kind", ["serial", "parallel", "vector", "unroll"])
def test_the_kind_of_a_loop_changes_nothing(kind: Kind, rng: np.random.Generator) -> None:
    x, y = buffer("x", (5,)), buffer("y", (5,), "output")
    k = kernel(
        loop("i", 5, store(y, ("i",), apply("multiply", load(x, "i"), number(2))), kind=kind),
        buffers=[x, y],
    )
    a = rng.random(5, np.float32)
    assert np.array_equal(run(k, x=a, y=np.zeros_like(a))["y"], a * 2)


def test_loops_nest_and_extents_may_vary() -> None:
    out = buffer("out", (4, 4), "output", np.int64)
    k = kernel(
        loop("i", 4, loop("j", affine(1, i=1), store(out, ("i", "j"), index(1, i=10, j=1)))),
        buffers=[out],
    )
    got = run(k, out=np.zeros((4, 4), np.int64))["out"]
    i, j = np.indices((4, 4))
    assert np.array_equal(got, np.where(j <= i, 10 * i + j + 1, 0))


def test_an_empty_loop_does_nothing() -> None:
    out = buffer("out", (1,), "output")
    k = kernel(loop("i", 0, store(out, (0,), number(1))), buffers=[out])
    assert run(k, out=np.zeros(1, np.float32))["out"] == 0


@pytest.mark.parametrize("fn", ["add", "multiply", "maximum", "minimum"])
def test_accumulate(fn: str, rng: np.random.Generator) -> None:
    x, total = buffer("x", (7,)), buffer("total", (), "output")
    k = kernel(loop("i", 7, add_to(total, (), load(x, "i"), fn)), buffers=[x, total])
    a = rng.random(7, np.float32)
    want = getattr(np, fn)
    got = run(k, x=a, total=np.array(2, np.float32))["total"]
    expected = np.float32(2)
    for value in a:
        expected = want(expected, value)
    assert got == expected


def test_an_alias_is_the_same_memory_in_another_shape() -> None:
    out, flat = buffer("out", (2, 3), "output"), buffer("flat", (6,), "output", alias="out")
    k = kernel(
        loop("i", 6, store(flat, ("i",), cast(index(i=1), FLOAT32))),
        loop("i", 2, add_to(out, ("i", 0), number(10))),
        buffers=[out, flat],
    )
    got = run(k, out=np.zeros((2, 3), np.float32))["out"]
    assert got.tolist() == [[10, 1, 2], [13, 4, 5]]


def test_strides_are_those_of_the_arrays() -> None:
    x, y = buffer("x", (3,)), buffer("y", (3,), "output")
    k = kernel(loop("i", 3, store(y, ("i",), load(x, "i"))), buffers=[x, y])
    memory = np.zeros(6, np.float32)
    interpret(k, {"x": np.arange(3, dtype=np.float32)[::-1], "y": memory[::2]})
    assert memory.tolist() == [2, 0, 1, 0, 0, 0]


def test_locals_are_new_each_time_and_hold_nothing_to_rely_on() -> None:
    seen, acc = buffer("seen", (2,), "output"), buffer("acc", (), "local")
    k = kernel(
        loop("i", 2, Alloc(acc), store(seen, ("i",), load(acc)), store(acc, (), number(5))),
        buffers=[seen],
    )
    assert run(k, seen=np.zeros(2, np.float32))["seen"].tolist() == [77, 77]


def test_if_takes_one_branch_and_select_one_value() -> None:
    x, y = buffer("x", (4,)), buffer("y", (4,), "output")
    negative = apply("less", load(x, "i"), number(0))
    k = kernel(
        loop(
            "i",
            4,
            If(negative, (store(y, ("i",), number(-1)),), (store(y, ("i",), number(1)),)),
            add_to(y, ("i",), select(negative, number(0), load(x, "i"))),
        ),
        buffers=[x, y],
    )
    a = np.array([-2, 3, -0.0, 5], np.float32)
    assert run(k, x=a, y=np.zeros(4, np.float32))["y"].tolist() == [-1, 4, 1, 6]


def test_while_reads_what_its_body_writes() -> None:
    n, steps = buffer("n", (), "output", INT64), buffer("steps", (), "output", INT64)
    odd = apply("equal", apply("remainder", load(n), number(2, INT64)), number(1, INT64))
    up = apply("add", apply("multiply", load(n), number(3, INT64)), number(1, INT64))
    down = apply("floor_divide", load(n), number(2, INT64))
    k = kernel(  # Collatz
        While(
            apply("not_equal", load(n), number(1, INT64)),
            (store(n, (), select(odd, up, down)), add_to(steps, (), number(1, INT64))),
        ),
        buffers=[n, steps],
    )
    got = run(k, n=np.array(27), steps=np.array(0))
    assert got["steps"] == 111


def test_let_in_a_block() -> None:
    out = buffer("out", (2,), "output")
    block = Block((Let("h", number(3)), store(out, (0,), apply("square", var("h")))))
    k = kernel(block, Block((Let("h", number(4)), store(out, (1,), var("h")))), buffers=[out])
    assert run(k, out=np.zeros(2, np.float32))["out"].tolist() == [9, 4]


@pytest.mark.parametrize("batch", [(), (3,)])
def test_call_of_a_product(batch: tuple[int, ...], rng: np.random.Generator) -> None:
    a, b = buffer("a", (*batch, 2, 5), dtype=FLOAT64), buffer("b", (5, 4), dtype=FLOAT64)
    c = buffer("c", (*batch, 2, 4), "output", FLOAT64)
    place = (affine(i=1),) if batch else ()
    call = Call("blas.gemm", (c, a, b), (place, place, ()))
    k = kernel(loop("i", 3, call) if batch else call, buffers=[a, b, c])
    left, right = rng.random((*batch, 2, 5)), rng.random((5, 4))
    got = run(k, a=left, b=right, c=np.full((*batch, 2, 4), np.nan))["c"]
    np.testing.assert_allclose(got, left @ right)


def test_functions_have_the_meaning_of_ufuncs() -> None:
    out = buffer("out", (4,), "output", np.int8)
    big = number(100, np.int8)
    values = [
        apply("add", big, big),
        apply("floor_divide", number(-7, np.int8), number(2, np.int8)),
        apply("remainder", number(-7, np.int8), number(0, np.int8)),
        apply("negative", number(-128, np.int8)),
    ]
    k = kernel(*(store(out, (n,), v) for n, v in enumerate(values)), buffers=[out])
    assert run(k, out=np.zeros(4, np.int8))["out"].tolist() == [-56, -4, 0, -128]


def test_functions_numpy_lacks() -> None:
    x = buffer("x", (), dtype=FLOAT64)
    bits, error = buffer("bits", (), "output", INT64), buffer("error", (), "output", FLOAT64)
    k = kernel(
        store(bits, (), Apply(INT64, "bitcast", (load(x),))),
        store(error, (), Apply(FLOAT64, "erf", (load(x),))),
        buffers=[x, bits, error],
    )
    got = run(k, x=np.array(0.5), bits=np.array(0), error=np.array(0.0))
    assert got["bits"] == 0x3FE0000000000000
    assert got["error"] == special.erf(0.5)


def test_float16_rounds_at_each_step() -> None:
    x, y = buffer("x", (), dtype=np.float16), buffer("y", (), "output", np.float16)
    twice = apply("multiply", load(x), load(x))
    k = kernel(store(y, (), apply("subtract", twice, load(x))), buffers=[x, y])
    a = np.array(1.337, np.float16)
    assert run(k, x=a, y=np.zeros((), np.float16))["y"] == a * a - a


def test_warnings_are_silent() -> None:
    y = buffer("y", (), "output")
    k = kernel(store(y, (), apply("divide", number(1), number(0))), buffers=[y])
    assert run(k, y=np.zeros((), np.float32))["y"] == np.inf
