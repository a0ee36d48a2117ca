"""Building and rewriting loop expressions and statements."""

from __future__ import annotations

import numpy as np
import pytest

from nbcomp.loop.grammar import (
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    Const,
    Expr,
    If,
    Let,
    Load,
    Stmt,
    Store,
    While,
    affine,
    bodies,
    children,
    expressions,
    index_add,
    index_scale,
    loop_var,
    map_expr,
    map_stmt,
    neutral,
    variables,
    walk,
    walk_expr,
    with_body,
)
from nbcomp.loop.printer import print_expr
from nbcomp.types import BOOL, FLOAT32, FLOAT64, INT64
from tests.kernels import Array, add_to, apply, buffer, cast, load, loop, number, select, store, var

x, y = buffer("x", (4,)), buffer("y", (4,), "output")


# ------------------------------------------------------------------------------------------ indices


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (index_add(affine(1, i=2), affine(3, j=4)), "2*i + 4*j + 4"),
        (index_add(affine(1, i=2), affine(-1, i=-2)), "0"),
        (index_scale(affine(3, i=2), 5, 1), "10*i + 16"),
        (index_scale(affine(3, i=2), 0), "0"),
        (index_scale(load(buffer("k", (4,), dtype=INT64), "i"), 1), "k[i]"),
        (index_scale(load(buffer("k", (4,), dtype=INT64), "i"), 3, 2), "(k[i] * 3) + 2"),
        (index_add(load(buffer("k", (4,), dtype=INT64), "i"), affine(2, j=1)), "k[i] + (j + 2)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_index_arithmetic_folds_what_is_affine(expr: Expr, text: str) -> None:
    assert print_expr(expr) == text
    assert expr.dtype == INT64


# -------------------------------------------------------------------------------- neutral elements

EXTREMES = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 5e-324, 3e38]


REDUCTIONS = {
    "add": "?bBhHiIqQefd",
    "multiply": "?bBhHiIqQefd",
    "maximum": "?bBhHiIqQefd",
    "minimum": "?bBhHiIqQefd",
    "logical_or": "?",
    "logical_and": "?",
    "bitwise_or": "?bBhHiIqQ",
    "bitwise_and": "?bBhHiIqQ",
    "bitwise_xor": "?bBhHiIqQ",
}


def extremes(dtype: np.dtype[np.generic]) -> Array:
    """Values at the ends of a dtype's range and around zero."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.array(EXTREMES).astype(dtype)
    if dtype == BOOL:
        return np.array([False, True])
    info = np.iinfo(dtype.str)
    return np.array([info.min, info.min + 1, 0, 1, info.max], dtype)


@pytest.mark.parametrize(("fn", "char"), [(f, c) for f, chars in REDUCTIONS.items() for c in chars])
def test_the_neutral_element_is_neutral(fn: str, char: str) -> None:
    dtype = np.dtype(char)
    values = extremes(dtype)
    got = getattr(np, fn)(dtype.type(neutral(fn, dtype)), values)
    np.testing.assert_array_equal(got, values)
    if dtype.kind == "f":
        numbers = ~np.isnan(values)
        assert np.array_equal(np.signbit(got[numbers]), np.signbit(values[numbers]))


@pytest.mark.parametrize("fn", ["subtract", "divide", "power", "exp"])
def test_not_everything_reduces(fn: str) -> None:
    with pytest.raises(ValueError, match=f"no reduction by {fn}"):
        neutral(fn, FLOAT32)


# ----------------------------------------------------------------------------------------- walking


def test_children_and_expressions() -> None:
    a, b, c = load(x, "i"), number(1), number(2)
    condition = apply("less", a, b)
    assert children(condition) == (a, b)
    assert children(select(condition, b, c)) == (condition, b, c)
    assert children(cast(a, FLOAT64)) == (a,)
    assert children(a) == a.indices
    assert children(b) == ()
    assert expressions(If(condition, ())) == (condition,)
    assert expressions(While(condition, ())) == (condition,)
    assert expressions(Let("h", a)) == (a,)
    assert expressions(Alloc(x)) == expressions(Block(())) == ()
    written = store(y, ("i",), a)
    assert expressions(written) == (*written.indices, a)
    nest = loop("i", 4)
    assert expressions(nest) == (nest.extent,)
    assert expressions(Call("f", (x,), ((b,),))) == (b,)


def test_shared_expressions_are_walked_once() -> None:
    shared: Expr = load(x, "i")
    for _ in range(60):  # 2**60 paths
        shared = Apply(FLOAT32, "add", (shared, shared))
    assert len(list(walk_expr(shared))) == 62
    assert variables(shared) == {"i"}


def test_walk_goes_outside_in_and_may_leave_one_out() -> None:
    inner = store(y, ("i",), number(1))
    first, second = loop("i", 4, inner), If(number(True, BOOL), (inner,), (Let("h", number(0)),))
    assert [type(s).__name__ for s in walk((first, second))] == [
        *("For", "Store", "If", "Store", "Let"),
    ]
    assert [type(s).__name__ for s in walk((first, second), without=first)] == [
        *("If", "Store", "Let"),
    ]
    assert bodies(second) == (second.yes, second.no)
    assert with_body(first, ()).body == ()


def test_variables_are_loop_variables_and_bound_values() -> None:
    expr = apply("add", var("h"), load(x, affine(i=1, j=2)))
    assert variables(expr) == {"h", "i", "j"}


# --------------------------------------------------------------------------------------- rewriting


def one_to_two(e: Expr) -> Expr | None:
    return number(2) if isinstance(e, Const) and e.value == 1 else None


def test_map_expr_keeps_sharing() -> None:
    shared: Expr = number(1)
    for _ in range(60):
        shared = Apply(FLOAT32, "add", (shared, shared))
    got = map_expr(shared, one_to_two, {})
    assert len(list(walk_expr(got))) == 61
    assert {e.value for e in walk_expr(got) if isinstance(e, Const)} == {np.float32(2)}


def test_map_expr_shares_between_expressions_of_one_memo() -> None:
    common = apply("exp", number(1))
    memo: dict[int, Expr] = {}
    left = map_expr(apply("add", common, number(3)), one_to_two, memo)
    right = map_expr(apply("multiply", common, number(4)), one_to_two, memo)
    assert children(left)[0] is children(right)[0]


def test_map_expr_reaches_every_kind() -> None:
    value = select(apply("less", number(1), var("h")), cast(number(1), FLOAT32), load(x, "i"))
    got = map_expr(
        value,
        lambda e: loop_var("k") if isinstance(e, type(loop_var("i"))) else one_to_two(e),
        {},
    )
    assert print_expr(got) == "where(2.0 < h, f32(2.0), x[k])"
    assert print_expr(value) == "where(1.0 < h, f32(1.0), x[i])"


def _every_statement() -> tuple[Stmt, ...]:
    local = buffer("l", (4,), "local")
    flag = apply("less", number(1), number(3))
    return (
        Block(
            (
                Alloc(local),
                Let("h", number(1)),
                loop("i", 4, store(local, ("i",), number(1)), add_to(y, ("i",), number(1))),
                If(flag, (store(y, (0,), number(1)),), (store(y, (1,), number(1)),)),
                While(flag, (store(y, (2,), number(1)),)),
                Call("blas.gemm", (y, x), ((number(1),), ())),
            )
        ),
    )


def test_map_stmt_maps_expressions_and_buffers_everywhere() -> None:
    def twice(e: Expr) -> Expr:
        return map_expr(e, one_to_two, {})

    def renamed(b: Buffer) -> Buffer:
        return buffer(b.name * 2, b.shape, b.role)

    (got,) = (map_stmt(s, twice, renamed) for s in _every_statement())
    seen = list(walk((got,)))
    assert len(seen) == len(list(walk(_every_statement())))
    roots = [root for s in seen for root in expressions(s)]
    constants = {e.value for root in roots for e in walk_expr(root) if isinstance(e, Const)}
    assert constants == {np.float32(2), np.float32(3)}
    names = {s.buffer.name for s in seen if isinstance(s, Store | Alloc)}
    assert names == {"ll", "yy"}
    (call,) = (s for s in seen if isinstance(s, Call))
    assert [b.name for b in call.buffers] == ["yy", "xx"]


def test_map_stmt_may_be_given_its_own_way_down() -> None:
    calls: list[str] = []

    def inner(s: Stmt) -> Stmt:
        calls.append(type(s).__name__)
        return s

    (stmt,) = _every_statement()
    map_stmt(stmt, lambda e: e, inner=inner)
    assert calls == ["Alloc", "Let", "For", "If", "While", "Call"]


def test_a_load_of_a_0d_buffer_has_no_indices() -> None:
    assert children(Load(FLOAT32, buffer("s", ()), ())) == ()
