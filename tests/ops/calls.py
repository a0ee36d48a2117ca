"""Compares a call in NumPy with the same call traced: values, types and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import nbcomp.ops  # noqa: F401  fills the tables
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import NUMPY
from tests.ops.evaluate import input_node, of_nodes, same


class Inputs:
    """The nodes that stand for the arrays of a call."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.arrays: list[Any] = []

    def of(self, value: Any) -> Any:
        """The value with a node for every array in it."""
        if isinstance(value, np.ndarray):
            self.nodes.append(input_node(value, len(self.nodes)))
            self.arrays.append(value)
            return self.nodes[-1]
        if isinstance(value, list | tuple):
            return type(value)(map(self.of, value))
        return value


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the class of what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            return error


def check(function: Any, *args: Any, ulp: float = 0.0, **kwargs: Any) -> None:
    """NumPy's result, or an error of NumPy's class and, mostly, its words."""
    compare(lambda: function(*args, **kwargs), NUMPY[function].trace, args, kwargs, ulp)


def compare(
    expected: Callable[[], Any], trace: Callable[..., Any], args: Any, kwargs: Any, ulp: float
) -> None:
    """The same for any tracer."""
    inputs = Inputs()
    known, options = inputs.of(args), {k: inputs.of(v) for k, v in kwargs.items()}
    right = outcome(expected)
    traced = outcome(lambda: run(trace, known, options, inputs))
    if isinstance(right, Exception):
        assert isinstance(traced, type(right)), f"{traced!r} instead of {right!r}"
        return
    if isinstance(traced, Exception):
        raise traced
    result, nodes, arrays = traced
    assert isinstance(right, tuple) == isinstance(result, tuple)
    assert len(flat(right)) == len(nodes)
    for node, array, value in zip(nodes, arrays, flat(right), strict=True):
        wanted = np.asarray(value)
        assert (node.type.dtype, node.shape) == (wanted.dtype, wanted.shape)
        same(array, wanted, ulp)


def run(trace: Callable[..., Any], args: Any, options: Any, inputs: Inputs) -> Any:
    """What a tracer gives: itself, its nodes and their values."""
    result = trace(*args, **options)
    nodes = flat(result)
    return result, nodes, of_nodes(nodes, inputs.nodes, inputs.arrays)


def flat(value: Any) -> list[Any]:
    """The results of a call, one or several."""
    return list(value) if isinstance(value, list | tuple) else [value]
