"""Runs captured functions with the graph interpreter and compares with the plain function."""

from __future__ import annotations

from typing import Any

import numpy as np

import nbcomp.ops  # noqa: F401  (the operators register themselves)
from nbcomp.frontend.result import bind, rebuild, resolve
from nbcomp.frontend.trace import Capture
from nbcomp.graph.interpreter import interpret
from nbcomp.graph.verifier import verify
from nbcomp.runtime.plan import ArrayGuard, Guard, LengthGuard, ObjectGuard, ScalarGuard, ValueGuard


def holds(guard: Guard, values: tuple[Any, ...]) -> bool:
    """Whether a guard accepts what is at its source now."""
    try:
        value = resolve(guard.source, values)
    except (LookupError, AttributeError, ValueError):
        return False
    match guard:
        case ArrayGuard():
            if isinstance(value, np.generic):
                return value.dtype == guard.dtype and not guard.shape
            return (
                type(value) is np.ndarray
                and (value.dtype, value.shape) == (guard.dtype, guard.shape)
                and value.strides == guard.strides
                and (value.flags.writeable or not guard.writable)
            )
        case ScalarGuard():
            fits = guard.type is not int or guard.low <= value <= guard.high
            return type(value) is guard.type and fits
        case ObjectGuard():
            return value is guard.object
        case LengthGuard():
            keys = not guard.keys or tuple(value) == guard.keys
            return type(value) is guard.type and len(value) == guard.length and keys
        case ValueGuard():
            return type(value) is type(guard.value) and repr(value) == repr(guard.value)


def valid(captured: Capture, *args: Any, **kwargs: Any) -> bool:
    """Whether a capture may be used for these arguments."""
    values = bind(captured.signature, args, kwargs)
    return all(holds(g, values) for g in captured.guards)


def run(captured: Capture, *args: Any, **kwargs: Any) -> Any:
    """Call a captured function on the graph interpreter."""
    values = bind(captured.signature, args, kwargs)
    assert all(holds(g, values) for g in captured.guards)
    count = len(captured.graph.inputs)
    inputs = [resolve(g.source, values) for g in captured.guards[:count]]
    outputs = [np.array(o, order="C") for o in interpret(verify(captured.graph), inputs)]
    results = [o[()] if i in captured.scalar_outputs else o for i, o in enumerate(outputs)]
    for source, index in captured.writes:
        resolve(source, values)[...] = outputs[index]
    return rebuild(captured.result, results, values)


def same(a: Any, b: Any) -> None:
    """Assert that two results are equal: types, dtypes, values, NaN and the sign of zero."""
    assert type(a) is type(b), (type(a), type(b))
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, np.ndarray | np.generic | float):
        x, y = np.asarray(a), np.asarray(b)
        assert x.dtype == y.dtype
        if x.dtype.kind == "f":  # a sum in another order may differ in the last bits
            np.testing.assert_allclose(x, y, rtol=8 * float(np.finfo(x.dtype).eps), atol=0)
        else:
            np.testing.assert_array_equal(x, y)
        if x.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(x), np.signbit(y))
    elif hasattr(a, "__dict__"):
        same(vars(a), vars(b))
    else:
        assert a == b


def arrays_in(value: Any) -> list[Any]:
    """The arrays in a result."""
    if isinstance(value, tuple | list):
        return [a for v in value for a in arrays_in(v)]
    if isinstance(value, dict):
        return [a for v in value.values() for a in arrays_in(v)]
    return [value] if isinstance(value, np.ndarray) else []


def sharing(values: Any, results: Any) -> list[bool]:
    """Which pairs of arrays among arguments and results share memory, and which are one object."""
    arrays = [*arrays_in(list(values)), *arrays_in(results)]
    pairs = [(a, b) for i, a in enumerate(arrays) for b in arrays[:i]]
    return [np.may_share_memory(a, b) for a, b in pairs] + [a is b for a, b in pairs]
