"""A compiled function as Python calls it: a builtin whose native code walks its plans.

`NativeFunction` hands its plans, flattened into C structs (`flatten`), to the one data-driven entry
(`entry_code`).  Where that cannot be used, the same plans are walked from Python.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
import threading
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from nbcomp.runtime import interpret, validity
from nbcomp.runtime import layout as at
from nbcomp.runtime.callable import Callable as CallableObject
from nbcomp.runtime.emit import address, fill
from nbcomp.runtime.flatten import Variant
from nbcomp.runtime.native import Library, library, prefetch
from nbcomp.runtime.plan import Plan
from nbcomp.runtime.size_program import TooLong

SlowPath = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Failed = Callable[[tuple[Any, ...], Plan, int, int], Any]

_NEVER = 2**63 - 1


class _Record(ctypes.Structure):
    """`layout.RECORD`, the builtin's `self`; its attributes keep everything alive."""

    _fields_ = [(name, ctypes.c_uint64) for name in at.RECORD.names or ()]

    variants: tuple[Variant, ...]
    slow_path: SlowPath
    failed_path: Failed
    signature: inspect.Signature | None
    blocks: list[Any]
    parameters: list[Any]
    retired: list[Any]


class NativeFunction:
    """A function compiled into any number of plans.

    `callable` is what users call.  A call runs the first plan whose guards hold.  Everything else
    goes to `slow_path(args, kwargs)`, and a step that returns a status to `failed(args, plan, step,
    status)` (by default: the slow path).  With a signature, keywords and defaults are first put in
    the order of its parameters, which is what plans then see; without one, keywords are refused.
    """

    def __init__(
        self,
        name: str,
        doc: str | None,
        slow_path: SlowPath,
        failed: Failed | None = None,
        signature: inspect.Signature | None = None,
    ) -> None:
        self._name, self._doc = name, doc
        self._changing = threading.RLock()
        self._record = record = _Record()
        record.slow_path = slow_path
        record.failed_path = failed or partial(_again, slow_path, signature)
        record.slow, record.failed = id(record.slow_path), id(record.failed_path)
        record.variants, record.retired, record.signature = (), [], None
        if signature is not None:
            _declare(record, signature)
        self.clear()
        prefetch()

    @cached_property
    def callable(self) -> Callable[..., Any]:
        """The builtin; the first one of a process waits for the native library."""
        native = library()
        if native is None:
            return _python(self._name, self._doc, self._record)
        return _builtin(native, self._name, self._doc, self._record)

    def connect(self, target: CallableObject) -> bool:
        """Let calls of an object go to the native entry directly; False where they cannot."""
        native = library()
        return native is not None and target.connect(native["vectorcall"], self._record)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """In the order they are tried."""
        return tuple(variant.plan for variant in self._record.variants)

    def add(self, plan: Plan) -> bool:
        """Try this plan too, after those already there; False for one whose open lengths are too
        much for the entry."""
        try:
            variant = Variant(plan)
        except TooLong:
            return False
        with self._changing:
            self._set((*self._record.variants, variant))
        return True

    def remove(self, plan: Plan) -> None:
        """Forget this plan, if it is there; calls that are running it finish."""
        with self._changing:
            self._set(tuple(v for v in self._record.variants if v.plan is not plan))

    def clear(self) -> None:
        """Forget all plans; calls that are running finish."""
        with self._changing:
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


def _again(
    slow_path: SlowPath,
    signature: inspect.Signature | None,
    args: tuple[Any, ...],
    plan: Plan,
    step: int,
    status: int,
) -> Any:
    """What happens after a failed step unless something else is asked for."""
    return slow_path(*as_called(signature, args))


def as_called(
    signature: inspect.Signature | None, values: tuple[Any, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call whose values a plan has seen: by position and by keyword."""
    if signature is None or len(signature.parameters) > at.PARAMETERS:
        return values, {}
    named = dict(zip(signature.parameters, values, strict=True))
    call = inspect.BoundArguments(signature, named)
    return call.args, call.kwargs


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _declare(record: _Record, signature: inspect.Signature) -> None:
    """Let the entry bind calls by a signature: with `**kwargs` none, as each call has a dict of its
    own."""
    parameters = tuple(signature.parameters.values())
    if len(parameters) > at.PARAMETERS:
        return
    positional = [p for p in parameters if p.kind in _BY_POSITION]
    names = [sys.intern(p.name) if p.kind in _BY_NAME else None for p in parameters]
    defaults = [() if p.kind is p.VAR_POSITIONAL else p.default for p in parameters]
    blocks = [
        np.array([0 if n is None else id(n) for n in names] or [0], np.uint64),
        np.array(
            [0 if d is inspect.Parameter.empty else id(d) for d in defaults] or [0], np.uint64
        ),
    ]
    record.signature, record.parameters = signature, [names, defaults, blocks]
    record.names, record.defaults = map(address, blocks)
    record.count, record.limit = len(parameters), len(positional)
    record.rest = int(any(p.kind is p.VAR_POSITIONAL for p in parameters))
    record.exact = record.count if record.limit == record.count else -1


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
        values = _bound(record.signature, args, kwargs)
        if values is not None:
            for variant in record.variants:
                if validity.matches(variant.plan, values):
                    return _run(record, variant.plan, values)
        return record.slow_path(args, kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _bound(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...] | None:
    """The arguments in the order of the parameters; None when they do not fit."""
    if signature is None:
        return None if kwargs else args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    return tuple(bound.arguments[name] for name in signature.parameters)


def _run(record: _Record, plan: Plan, args: tuple[Any, ...]) -> Any:
    try:
        return interpret.execute(plan, args)
    except interpret.StepFailed as error:
        failure = error
    return record.failed_path(args, plan, failure.step, failure.status)
