"""Kernels as text: every statement and expression, on one page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nbcomp.loop.grammar import (
    Alloc,
    Block,
    Call,
    Expr,
    If,
    Kernel,
    Let,
    Store,
    While,
    affine,
)
from nbcomp.loop.printer import print_expr, print_kernel
from nbcomp.record import Location
from nbcomp.types import FLOAT64
from tests.kernels import (
    add_to,
    apply,
    at,
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

x = buffer("x", (8,))
i = affine(i=1)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (number(1.5), "1.5"),
        (number(-0.0), "-0.0"),
        (number(True, np.bool_), "True"),
        (number(np.nan), "nan"),
        (number(255, np.uint8), "255"),
        (var("h"), "h"),
        (affine(0), "0"),
        (affine(-3), "-3"),
        (affine(0, i=1), "i"),
        (affine(0, i=-1), "-i"),
        (affine(7, i=-1), "-i + 7"),
        (affine(-4, i=2, j=-3), "2*i - 3*j - 4"),
        (load(x, "i"), "x[i]"),
        (load(buffer("s", ())), "s[]"),
        (load(x, index(1, i=2)), "x[2*i + 1]"),
        (apply("add", load(x, "i"), number(1)), "x[i] + 1.0"),
        (apply("multiply", apply("add", var("a"), var("b")), var("c")), "(a + b) * c"),
        (apply("subtract", var("a"), apply("negative", var("b"))), "a - negative(b)"),
        (apply("maximum", var("a"), number(0)), "maximum(a, 0.0)"),
        (apply("less", var("a"), var("b")), "a < b"),
        (apply("floor_divide", index(3, i=1), index(2)), "(i + 3) // 2"),
        (cast(var("a"), np.int8), "i8(a)"),
        (cast(var("a"), np.float16), "f16(a)"),
        (select(apply("isnan", var("a")), number(0), var("a")), "where(isnan(a), 0.0, a)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_expressions(expr: Expr, text: str) -> None:
    assert print_expr(expr) == text


def test_an_unknown_expression_is_an_error() -> None:
    with pytest.raises(TypeError, match="not an expression"):
        print_expr("x")  # type: ignore[arg-type]


def everything() -> Kernel:
    """A kernel with every statement, every loop kind and every way to write a buffer down."""
    a = buffer("a", (4, 8), strides=(16, -1))
    flat = buffer("flat", (32,), "output", alias="out")
    out = buffer("out", (4, 8), "output")
    one, two, three = (buffer(n, (4, 4), dtype=FLOAT64, role=r) for n, r in PRODUCT)
    total = buffer("total", (), "local")
    row = buffer("row", (8,), "local")
    count = buffer("count", (1,), "temp", np.int64)
    here = Location("cell", 3)
    return kernel(
        loop(
            "i",
            4,
            Alloc(total),
            Alloc(row),
            store(total, (), number(-0.0)),
            loop("r", 8, add_to(total, (), load(a, "i", "r")), kind="vector", unroll=4),
            loop("m", 8, add_to(total, (), load(a, "i", "m"), "maximum"), kind="vector"),
            Let("t", load(total), here),
            loop("u", 2, store(row, ("u",), var("t")), kind="unroll"),
            store(out, ("i", 0), apply("exp", var("t"), location=here), here),
            kind="parallel",
        ),
        loop(
            "f",
            32,
            Store(flat, at("f"), load(flat, "f"), None, streaming=True),
            kind="vector",
        ),
        Call("blas.gemm", (three, one, two), ((), (), ()), (("alpha", 2.0),), here),
        Block(
            (
                store(count, (0,), number(0, np.int64)),
                While(
                    apply("less", load(count, 0), number(3, np.int64)),
                    (add_to(count, (0,), number(1, np.int64)),),
                ),
                If(
                    apply("greater", load(count, 0), number(2, np.int64)),
                    (add_to(count, (0,), number(2, np.int64), "multiply"),),
                    (store(count, (0,), number(0, np.int64)),),
                ),
            )
        ),
        buffers=(a, one, two, out, flat, three, count),
        name="everything",
    )


PRODUCT = (("one", "input"), ("two", "input"), ("three", "output"))


def test_every_statement(golden: Callable[..., None]) -> None:
    golden(str(everything()))


def test_notes_come_first() -> None:
    k = Kernel("k", (), (), notes=('vectorize("i")', 'parallelize("i")'))
    assert str(k) == 'kernel k() {\n  // vectorize("i")\n  // parallelize("i")\n}'


def test_a_marked_statement_is_pointed_at_once() -> None:
    out = buffer("out", (8,), "output")
    twice = [store(out, ("i",), number(1)) for _ in range(2)]
    k = kernel(loop("i", 8, *twice), buffers=[out])
    lines = print_kernel(k, mark=twice[1]).splitlines()
    assert [n for n, line in enumerate(lines) if line.endswith("<-- here")] == [3]
    assert lines[2] == "    out[i] = 1.0"
    marked_loop = print_kernel(k, mark=k.stages[0])
    assert "for i in 0..8:    <-- here" in marked_loop


def test_sums_of_indices_are_sorted_and_without_zeros() -> None:
    assert affine(1, j=0, k=2, i=3).terms == (("i", 3), ("k", 2))
