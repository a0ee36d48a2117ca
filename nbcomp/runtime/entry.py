"""A compiled function as Python calls it: a builtin whose native code walks its plans.

`NativeFunction` hands its plans, flattened into C structs (`flatten`), to the one data-driven entry
(`entry_code`).  Where that cannot be used, the same plans are walked from Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from nbcomp.runtime import interpret
from nbcomp.runtime import layout as at
from nbcomp.runtime.emit import address, fill
from nbcomp.runtime.flatten import Variant
from nbcomp.runtime.native import Library, library
from nbcomp.runtime.plan import Plan

SlowPath = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Failed = Callable[[tuple[Any, ...], Plan, int, int], Any]


class _Record(ctypes.Structure):
    """`layout.RECORD`, the builtin's `self`; its attributes keep everything alive."""

    _fields_ = [(name, ctypes.c_uint64) for name in at.RECORD.names or ()]

    variants: tuple[Variant, ...]
    slow_path: SlowPath
    failed_path: Failed
    blocks: list[Any]
    retired: list[Any]


class NativeFunction:
    """A function compiled into any number of plans.

    `callable` is what users call.  A call runs the first plan whose guards hold.  Everything else
    goes to `slow_path(args, kwargs)`, and a step that returns a status to `failed(args, plan, step,
    status)` (by default: the slow path).
    """

    def __init__(
        self, name: str, doc: str | None, slow_path: SlowPath, failed: Failed | None = None
    ) -> None:
        record = _Record()
        record.slow_path = slow_path
        record.failed_path = failed or partial(_again, slow_path)
        record.slow, record.failed = id(record.slow_path), id(record.failed_path)
        record.variants, record.retired = (), []
        self._record = record
        native = library()
        self.callable: Callable[..., Any] = (
            _builtin(native, name, doc, record) if native else _python(name, doc, record)
        )
        self.clear()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """In the order they are tried."""
        return tuple(variant.plan for variant in self._record.variants)

    def add(self, plan: Plan) -> None:
        """Try this plan too, after those already there."""
        self._set((*self._record.variants, Variant(plan)))

    def clear(self) -> None:
        """Forget all plans; calls that are running finish."""
        self._set(())

    def _set(self, variants: tuple[Variant, ...]) -> None:
        """Put another table in place; the old one goes when no call can be using it."""
        record = self._record
        record.retired.append((record.variants, getattr(record, "blocks", None)))
        frame = max((variant.frame for variant in variants), default=16)
        head = fill(at.TABLE, [{"count": len(variants), "frame": frame}]).view(np.uint64)
        block = np.concatenate([head, np.array([v.address for v in variants], np.uint64)])
        record.table, record.blocks, record.variants = address(block), [block], variants
        if not record.active:
            record.retired.clear()


def _again(slow_path: SlowPath, args: tuple[Any, ...], plan: Plan, step: int, status: int) -> Any:
    """What happens after a failed step unless something else is asked for."""
    return slow_path(args, {})


# The builtin


class _Method(ctypes.Structure):
    """`PyMethodDef`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@cache
def _method(native: Library, name: str, doc: str | None) -> _Method:
    """Builtins point at their definition until the very end of their lives: it is kept for ever."""
    flags = 0x80 | 0x2  # METH_FASTCALL | METH_KEYWORDS
    return _Method(name.encode(), native["entry"], flags, doc.encode() if doc else None)


def _builtin(native: Library, name: str, doc: str | None, record: _Record) -> Callable[..., Any]:
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    new = kind(("PyCFunction_NewEx", ctypes.pythonapi))
    method = ctypes.addressof(_method(native, name, doc))
    function: Callable[..., Any] = new(method, record, "nbcomp")
    return function


def _python(name: str, doc: str | None, record: _Record) -> Callable[..., Any]:
    """The same walk from Python."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            for variant in record.variants:
                if interpret.matches(variant.plan, args):
                    return _run(record, variant.plan, args)
        return record.slow_path(args, kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _run(record: _Record, plan: Plan, args: tuple[Any, ...]) -> Any:
    try:
        return interpret.execute(plan, args)
    except interpret.StepFailed as failure:
        return record.failed_path(args, plan, failure.step, failure.status)
