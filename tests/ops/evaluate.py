"""Runs expressions and nodes with NumPy on whole arrays, and compares results in ulp."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.graph.interpreter import interpret
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Input
from nbcomp.loop.grammar import Affine, Apply, Cast, Const, Expr, Select, Var
from nbcomp.types import TensorType


def of_expr(expr: Expr, names: dict[str, Any]) -> Any:
    """The value of an expression whose variables are arrays."""
    match expr:
        case Const():
            assert expr.value.dtype == expr.dtype
            return expr.value
        case Var():
            return names[expr.name]
        case Affine():
            return expr.constant + sum(f * names[v] for v, f in expr.terms)
        case Cast():
            return np.asarray(of_expr(expr.value, names)).astype(expr.dtype)
        case Select():
            assert expr.condition.dtype == np.bool_
            assert expr.yes.dtype == expr.no.dtype == expr.dtype
            return np.where(*(of_expr(e, names) for e in (expr.condition, expr.yes, expr.no)))
        case Apply():
            args = [np.asarray(of_expr(a, names)) for a in expr.args]
            return _apply(expr, args)
    raise TypeError(expr)


def _apply(expr: Apply, args: list[Any]) -> Any:
    if expr.fn == "bitcast":
        return args[0].view(expr.dtype)
    if expr.fn == "erf":
        from scipy.special import erf

        result = erf(args[0])
    else:
        loop = getattr(np, expr.fn).resolve_dtypes((*(a.dtype for a in args), None))
        assert loop[:-1] == tuple(a.dtype for a in args), (expr.fn, loop, "implies a conversion")
        result = getattr(np, expr.fn)(*args)
    assert result.dtype == expr.dtype, (expr.fn, result.dtype, expr.dtype)
    return result


def input_node(array: Any, index: int = 0, weak: bool = False) -> Node:
    """An input of the type of this array."""
    t = TensorType(array.dtype, array.shape)
    return Node(Input(index, t), (), t, weak=weak)


def of_nodes(outputs: Any, inputs: list[Node], arrays: list[Any]) -> list[Any]:
    """The values of nodes."""
    graph = Graph("test", tuple(inputs), tuple(outputs))
    return interpret(graph, arrays)


def distance(a: Any, b: Any) -> float:
    """The largest distance of two float arrays in units in the last place; NaN matches NaN."""
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]

    def ordered(x: Any) -> Any:
        i = np.ascontiguousarray(x).view(bits).astype(object)
        return np.where(i < 0, np.iinfo(bits).min - i, i)

    both = np.isnan(a) & np.isnan(b)
    if (np.isnan(a) ^ np.isnan(b)).any():
        return np.inf
    apart = np.where(both, 0, np.abs(ordered(a) - ordered(b)))
    return float(apart.max()) if apart.size else 0.0


def same(result: Any, expected: Any, ulp: float = 0.0) -> None:
    """Assert dtype, shape and values equal, floats within `ulp`; exact means the sign of zero
    too.
    """
    a, b = np.asarray(result), np.asarray(expected)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    if a.dtype.kind != "f":
        assert np.array_equal(a, b), f"{a} is not {b}"
    elif ulp:
        assert distance(a, b) <= ulp, f"{a} is not {b}"
    else:
        np.testing.assert_array_equal(a, b)
        numbers = ~np.isnan(b)
        assert np.array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers]), f"{a} is not {b}"
