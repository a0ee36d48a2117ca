"""Every operator on its own samples: its type, its compiled form and its reference agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import nbcomp.ops  # noqa: F401  fills the registry
from nbcomp.graph.op import (
    REGISTRY,
    Composite,
    Constant,
    Contract,
    Elementwise,
    Input,
    Library,
    Op,
    Piecewise,
    Recurrence,
    Reduce,
    Sample,
    Source,
    View,
    Windowed,
)
from nbcomp.loop.grammar import Var, loop_var
from nbcomp.ops.move import Reshape
from nbcomp.types import TensorType
from tests.ops.evaluate import input_node, of_expr, of_nodes, same

FORMS = (
    *(Elementwise, View, Piecewise, Reduce, Source, Contract, Windowed, Recurrence),
    *(Library, Composite, Reshape),
)
OPS = {n: op for n, op in REGISTRY.items() if op.__module__.startswith("nbcomp.ops")}


def _types(sample: Sample) -> tuple[TensorType, ...]:
    arrays = map(np.asarray, sample.arrays)
    return tuple(TensorType(a.dtype, a.shape) for a in arrays)


def _samples(op: type[Op], rng: np.random.Generator) -> list[Sample]:
    with np.errstate(all="ignore"):
        return list(op.samples(rng))


@pytest.mark.parametrize("name", OPS)
def test_is_complete(name: str, rng: np.random.Generator) -> None:
    op = OPS[name]
    assert op.__doc__
    assert not op.__doc__.startswith(f"{op.__name__}("), "a docstring of its own"
    assert sum(issubclass(op, form) for form in FORMS) == 1
    assert len(_samples(op, rng)) >= 3
    for sample in _samples(op, rng):
        assert type(sample.op) is op
        hash(sample.op)


@pytest.mark.parametrize("name", OPS)
def test_type_is_the_reference_s(name: str, rng: np.random.Generator) -> None:
    for sample in _samples(OPS[name], rng):
        with np.errstate(all="ignore"):
            expected = np.asarray(sample.op.reference(*sample.arrays))
        inferred = sample.op.infer(*_types(sample))
        assert inferred == TensorType(expected.dtype, expected.shape), sample


@pytest.mark.parametrize("name", OPS)
def test_compiled_form_is_the_reference(name: str, rng: np.random.Generator) -> None:
    for sample in _samples(OPS[name], rng):
        with np.errstate(all="ignore"):
            expected = np.asarray(sample.op.reference(*sample.arrays))
            result = _by_form(sample, expected)
        if result is not None:
            same(result, expected, sample.ulp)


def _by_form(sample: Sample, expected: Any) -> Any:
    match sample.op:
        case Elementwise():
            return _elementwise(sample.op, sample.arrays)
        case View():
            return _view(sample.op, sample, expected)
        case Piecewise():
            return _piecewise(sample.op, sample)
        case Reduce():
            return _reduce(sample.op, np.asarray(sample.arrays[0]))
        case Source():
            names = [f"i{k}" for k in range(expected.ndim)]
            index = dict(zip(names, np.indices(expected.shape), strict=True))
            expr = sample.op.element(tuple(map(loop_var, names)), sample.op.infer())
            return of_expr(expr, index)
        case Composite():
            inputs = [input_node(np.asarray(a), i) for i, a in enumerate(sample.arrays)]
            return of_nodes([sample.op.expand(*inputs)], inputs, list(sample.arrays))[0]
    return None


def _elementwise(op: Elementwise, arrays: tuple[Any, ...]) -> Any:
    names = {f"x{k}": np.asarray(a) for k, a in enumerate(arrays)}
    expr = op.scalar(*(Var(a.dtype, n) for n, a in names.items()))
    # An element that is a constant has no shape of its own.
    shape = np.broadcast_shapes(*(a.shape for a in names.values()))
    return np.broadcast_to(of_expr(expr, names), shape)


def _view(op: View, sample: Sample, expected: Any) -> Any:
    (operand,) = map(np.asarray, sample.arrays)
    names = [f"i{k}" for k in range(expected.ndim)]
    index = dict(zip(names, np.indices(expected.shape), strict=True))
    (t,) = _types(sample)
    places = [of_expr(e, index) for e in op.source(tuple(map(loop_var, names)), t)]
    assert len(places) == operand.ndim
    for place, n in zip(places, operand.shape, strict=True):
        assert np.all((np.asarray(place) >= 0) & (np.asarray(place) < n)) or expected.size == 0
    return np.broadcast_to(operand[tuple(places)], expected.shape)


def _piecewise(op: Piecewise, sample: Sample) -> Any:
    arrays = [np.asarray(a) for a in sample.arrays]
    result_type = op.infer(*_types(sample))
    result = np.zeros(result_type.shape, result_type.dtype)
    written = np.zeros(result_type.shape, int)
    for piece in op.pieces(result_type, *_types(sample)):
        box = tuple(
            slice(s, s + e * st, st)
            for s, e, st in zip(piece.start, piece.extent, piece.step, strict=True)
        )
        index = np.indices(piece.extent)
        operand = arrays[piece.operand]
        places = [f * i + o for f, i, o in zip(piece.factor, index, piece.offset, strict=True)]
        kept = places[len(places) - operand.ndim :]
        assert written[box].shape == piece.extent
        written[box] += 1
        result[box] = operand[tuple(kept)]
    assert (written >= 1).all(), "the boxes cover the result"
    return result


def _reduce(op: Reduce, x: Any) -> Any:
    fn = getattr(np, op.fn)
    moved = np.moveaxis(x, op.axes, range(len(op.axes)))
    terms = moved.reshape(math.prod(moved.shape[: len(op.axes)]), *moved.shape[len(op.axes) :])
    total = np.full(terms.shape[1:], op.identity(x.dtype))
    for term in terms:
        total = fn(total, term)
    if op.keepdims:
        total = np.expand_dims(total, op.axes)
    return total


def test_structure_of_the_registry() -> None:
    assert {Input, Constant} <= set(REGISTRY.values())
    assert all(REGISTRY[n].name == n for n in REGISTRY)
