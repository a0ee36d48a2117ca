"""`function`: what makes an operator a function that NumPy code can call.

A function of the nn dialect says which operator it is, with which attributes, on which operands.
On arrays it runs the operator's NumPy reference; while a program is captured it becomes a node, by
the protocol NumPy has for its own functions (NEP 18).  Knows operators, not layers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Op
from nbcomp.nn.arrays import Tensor, is_inside
from nbcomp.ops.operand import as_node

Described = tuple[Op, tuple[Any, ...]]  # an operator and its operands (None: left out)


def function(describe: Callable[..., Described]) -> Callable[..., Any]:
    """A function of arrays from one that says which operator it is, on which operands."""

    def described(*args: Any, **kwargs: Any) -> Described:
        _check(describe, (*args, *kwargs.values()))
        op, operands = describe(*args, **kwargs)
        _check(describe, operands)
        return op, operands

    @functools.wraps(describe)
    def call(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if type(value) is not Tensor and type(value) is not np.ndarray:
                dispatch = getattr(type(value), "__array_function__", None)
                if dispatch is not None:
                    return dispatch(value, call, (type(value),), args, kwargs)
        op, operands = described(*args, **kwargs)
        arrays = [np.asarray(x) for x in _given(operands)]
        with np.errstate(all="ignore"):
            result = op.reference(*arrays)
        return result.view(Tensor) if is_inside() and isinstance(result, np.ndarray) else result

    setattr(call, "__signature__", inspect.signature(describe))  # noqa: B010

    @traces(call)
    @functools.wraps(describe)
    def build(*args: Any, **kwargs: Any) -> Node:
        op, operands = described(*args, **kwargs)
        return apply(op, *map(as_node, _given(operands)))

    return call


def _check(describe: Callable[..., Described], operands: tuple[Any, ...]) -> None:
    """Raise TypeError for what is no array where there has to be one."""
    if operands and (operands[0] is None or isinstance(operands[0], str | bytes | dict)):
        name = describe.__name__.lstrip("_")
        raise TypeError(f"{name} takes an array, not {_shown(operands[0])}")


def _shown(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _given(operands: tuple[Any, ...]) -> Iterator[Any]:
    return (x for x in operands if x is not None)
