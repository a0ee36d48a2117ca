"""Constant folding, common subexpressions, algebra: exact for NaN, ±0, infinities and integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.graph.ir import Graph, Node, apply, rewrite
from nbcomp.graph.op import REGISTRY, Constant, Input
from nbcomp.record import Location, joined
from nbcomp.sizes import is_open
from nbcomp.types import DType, TensorType

FOLD_LIMIT = 4096  # elements: larger constants are cheaper to compute than to keep


def fold(graph: Graph) -> Graph:
    """Compute what depends on constants only."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if isinstance(node.op, Input | Constant) or not inputs:
            return None
        if not all(_frozen(i) for i in inputs) or is_open(node.shape):
            return None
        if node.type.size > FOLD_LIMIT:
            return None
        value = _evaluated(node, inputs)
        if value is None:
            return None
        if TensorType(value.dtype, value.shape) != node.type:
            return None
        value.flags.writeable = False
        return apply(Constant(value), name=node.name)

    return rewrite(graph, rule)


def _evaluated(node: Node, inputs: tuple[Node, ...]) -> Any:
    """What the node is for these constants; None where NumPy raises, as it will when it is run."""
    try:
        with np.errstate(all="ignore"):
            return np.array(node.op.reference(*(i.op.value for i in inputs)))  # type: ignore[attr-defined]
    except Exception:
        return None


def _frozen(node: Node) -> bool:
    """A constant nobody can change: a number, or an array marked read-only by whoever made it."""
    if not isinstance(node.op, Constant):
        return False
    return node.op.value.ndim == 0 or not node.op.value.flags.writeable


def cse(graph: Graph) -> Graph:
    """Compute equal expressions once."""
    seen: dict[Any, Node] = {}
    places: dict[Node, list[Location | None]] = {}  # of all that became one

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        key = _key(node, inputs)
        if key is None:
            return None
        if key in seen:
            if not isinstance(node.op, Constant):
                places.setdefault(seen[key], []).append(node.location)
            return seen[key]
        kept = node if inputs == node.inputs else replace(node, inputs=inputs)
        seen[key] = kept
        return kept

    def with_places(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        location = joined((node.location, *places.get(node, ())))
        return (
            None if location == node.location else replace(node, inputs=inputs, location=location)
        )

    merged = rewrite(graph, rule)
    return rewrite(merged, with_places) if places else merged


def _key(node: Node, inputs: tuple[Node, ...]) -> Any:
    if isinstance(node.op, Input):
        return None
    if isinstance(node.op, Constant):
        value = node.op.value
        if value.ndim:
            return ("constant", id(value))
        return ("constant", value.dtype, value.tobytes())  # bytes tell -0.0 from 0.0
    try:
        hash(node.op)
    except TypeError:
        return None
    return (node.op, inputs)


def algebra(graph: Graph) -> Graph:
    """Simplify by identities that hold for every value, NaN and -0.0 included."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        law = _LAWS.get(node.op.name)
        result: Node | None = law(node, inputs) if law else None
        if result is None or result.type != node.type:
            return None
        return result

    return rewrite(graph, rule)


def _is(node: Node, value: float) -> bool:
    """The node is this constant everywhere (a constant 0-d array; -0.0 is not 0.0)."""
    if not isinstance(node.op, Constant) or node.op.value.ndim:
        return False
    found = node.op.value[()]
    return bool(found == value) and (value != 0 or np.signbit(found) == np.signbit(value))


def _float(node: Node) -> bool:
    return node.type.dtype.kind == "f"


def _add(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """x + 0 -> x for integers; x + -0.0 -> x for floats (x + 0.0 would turn -0.0 into 0.0)"""
    zero = -0.0 if _float(node) else 0
    a, b = inputs
    return a if _is(b, zero) else b if _is(a, zero) else None


def _subtract(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """x - 0 -> x"""
    return inputs[0] if _is(inputs[1], 0.0 if _float(node) else 0) else None


def _multiply(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """x * 1 -> x"""
    a, b = inputs
    return a if _is(b, 1) else b if _is(a, 1) else None


def _divide(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """x / 1 -> x;  x / 2**k -> x * 2**-k, exact while 2**-k is a normal number"""
    x, d = inputs
    if _is(d, 1):
        return x
    if not isinstance(d.op, Constant) or d.op.value.ndim or not _float(d):
        return None
    mantissa, exponent = np.frexp(float(d.op.value))
    if abs(mantissa) != 0.5 or not -100 < exponent < 100 or d.type.dtype.itemsize < 4:
        return None
    inverse = np.array(1.0 / float(d.op.value), d.type.dtype)
    return apply(REGISTRY["multiply"](), x, apply(Constant(inverse)))


def _power(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """x ** 2 -> x * x, x ** 1 -> x, x ** 0.5 -> sqrt, as NumPy's own `**` does for floats"""
    x, p = inputs
    if not _float(node) or x.type.dtype != node.type.dtype:
        return None
    for value, name in ((2, "square"), (0.5, "sqrt"), (-1, "reciprocal")):
        if _is(p, value):
            return apply(REGISTRY[name](), x)
    return x if _is(p, 1) else None


def _double(name: str) -> Any:
    def law(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        (x,) = inputs
        return x.inputs[0] if x.op.name == name else None

    law.__doc__ = f"{name}({name}(x)) -> x"
    return law


def _where(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """where(c, x, x) -> x"""
    return inputs[1] if inputs[1] is inputs[2] else None


def _cast(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """A cast to the dtype it already has; a widening that is undone by the next cast"""
    (x,) = inputs
    if x.type == node.type:
        return x
    if x.op.name == "cast":
        (inner,) = x.inputs
        if inner.type == node.type and _lossless(inner.type.dtype, x.type.dtype):
            return inner
    return None


def _lossless(narrow: DType, wide: DType) -> bool:
    """Whether every value survives the cast; NumPy calls int64 to float64 safe, which it is not."""
    return np.can_cast(narrow, wide, "safe") and (narrow.kind == wide.kind or narrow.itemsize < 8)


def _reshape(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """reshape(reshape(x)) -> reshape(x); one to the same shape; one that only moves axes of 1"""
    x = inputs[0]
    while x.op.name in ("reshape", "squeeze", "expand_dims"):
        x = x.inputs[0]
    return _ones_only(x, node.shape) or (None if x is inputs[0] else apply(node.op, x))


def _ones_only(x: Node, shape: tuple[int, ...]) -> Node | None:
    """The reshape as squeeze and expand_dims, which fuse, if it moves only axes of length 1."""
    if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    if x.shape == shape:
        return x
    drop = tuple(k for k, n in enumerate(x.shape) if n == 1)
    add = tuple(k for k, n in enumerate(shape) if n == 1)
    if drop:
        x = apply(REGISTRY["squeeze"](drop), x)  # type: ignore[call-arg]
    return apply(REGISTRY["expand_dims"](add), x) if add else x  # type: ignore[call-arg]


def _undo(name: str) -> Any:
    def law(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        (x,) = inputs
        undone = x.op.name == name and getattr(x.op, "axes", None) == getattr(node.op, "axes", ())
        return x.inputs[0] if undone else None

    law.__doc__ = f"what {name} did is undone"
    return law


def _assign(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """x[box] = x[box] -> x"""
    base, value = inputs
    same = value.op.name == "slice" and value.op.attributes() == node.op.attributes()
    return base if same and value.inputs[0] is base else None


_LAWS: dict[str, Any] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "negative": _double("negative"),
    "logical_not": _double("logical_not"),
    "invert": _double("invert"),
    "where": _where,
    "cast": _cast,
    "reshape": _reshape,
    "squeeze": _undo("expand_dims"),
    "expand_dims": _undo("squeeze"),
    "assign": _assign,
}
