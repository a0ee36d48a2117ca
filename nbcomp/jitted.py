"""`jit`: a function that compiles itself when it is called, and runs natively after.

Knows the pipeline and the run time's entry; what cannot be compiled runs in NumPy, and says so.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.errors import PACKAGE, NbcompError, Unsupported, users_frames
from nbcomp.frontend.result import bind
from nbcomp.pipeline import compile
from nbcomp.runtime import interpret
from nbcomp.runtime.callable import Callable
from nbcomp.runtime.entry import NativeFunction

VARIANTS = 64  # signatures a jitted function keeps; the older half goes when there are more


class NumpyFallback(UserWarning):
    """A function, or a call of it, runs in NumPy instead of compiled code; the message says why."""


class Jit(Callable):
    """A function that is compiled when it is called, once for each signature.

    `compiled` is the newest `Compiled`, `variants` are all of them; `fallbacks` says why calls ran
    in NumPy instead.  `__wrapped__` is the Python function.
    """

    def __init__(self, function: Any, python: Any = None) -> None:
        self.__wrapped__ = function
        self._python = python or function  # what runs where nothing is compiled
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__module__ = getattr(function, "__module__", __name__)
        self.variants: list[Compiled] = []
        self.fallbacks: list[Unsupported] = []
        self._refused: set[Any] = set()
        self._lock = threading.RLock()
        self._watcher: Any = None
        self._native = NativeFunction(
            self.__name__,
            self.__doc__,
            self.slow_path,
            lambda args, plan, step, status: self._python(*args),
            _signature(function),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The first call, which connects the native entry; calls that are watched; and all calls
        where no object can be connected.
        """
        __tracebackhide__ = True
        if self._watcher is not None:
            return self._watcher(*args, **kwargs)
        self._native.connect(self)
        return self._native.callable(*args, **kwargs)

    def watch(self, call: Any) -> None:
        """Let calls of this function go to `call` instead; None ends that."""
        self._watcher = call
        if call is None:
            self._native.connect(self)
        else:
            self.disconnect()

    @property
    def unwatched(self) -> Any:
        """The native entry itself, also while the function is watched."""
        return self._native.callable

    @property
    def compiled(self) -> Compiled | None:
        """The newest variant."""
        return self.variants[-1] if self.variants else None

    def report(self, path: str | Path) -> Path:
        """Write the newest variant as one HTML file: see `Compiled.report`.  Raises NbcompError
        where there is none."""
        if self.compiled is None:
            raise NbcompError(f"{self.__name__} has not been compiled yet: call it once")
        return self.compiled.report(path)

    def slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Everything the native entry refuses: keywords, new signatures, results that are trees.

        Errors show the user's frames.
        """
        __tracebackhide__ = True
        try:
            return self._slow_path(args, kwargs)
        except Exception as error:
            raise error.with_traceback(users_frames(error.__traceback__))  # noqa: B904

    def _slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if (found := self._find(args, kwargs)) is not None:
            return self._run(*found, args, kwargs)
        key = _signature_key(args, kwargs)
        if key in self._refused:
            return self._python(*args, **kwargs)
        try:
            with self._lock:  # another thread may have compiled it in the meantime
                found = self._find(args, kwargs)
                if found is None:
                    made = self.compile(*args, **kwargs)
                    found = made, bind(made.capture.signature, args, kwargs)
        except Unsupported as error:
            # Without its traceback, whose frames would keep the arguments alive.
            reason = error.with_traceback(None)
        else:
            return self._run(*found, args, kwargs)
        return self._in_numpy(reason, key, args, kwargs)  # where errors are the user's alone

    def _find(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Compiled, Sequence[Any]] | None:
        """The variant for these arguments, and the arguments bound; None if there is none yet."""
        for variant in reversed(tuple(self.variants)):
            values = bind(variant.capture.signature, args, kwargs, self.__wrapped__)
            if variant.mismatch(values) is None:
                return variant, values
        return None

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """The variant for these arguments, compiled now if it is new."""
        with self._lock:
            made = compile(self, *args, **kwargs)
            self.variants.append(made)
            if len(self.variants) > VARIANTS:
                for old in self.variants[: VARIANTS // 2]:
                    self._native.remove(old.plan)
                del self.variants[: VARIANTS // 2]
            if _native(made):
                self._native.add(made.plan)
            return made

    def _run(
        self,
        variant: Compiled,
        values: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        with contextlib.suppress(interpret.StepFailed):
            return variant.run(values)
        return self._python(*args, **kwargs)

    def _in_numpy(
        self, reason: Unsupported, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._refused.add(key)
        self.fallbacks.append(reason)
        warnings.warn(f"{self.__name__} runs in NumPy: {reason}", NumpyFallback, _users_level())
        return self._python(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: bound to its instance like a function."""
        if instance is None:
            return self
        return types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<nbcomp.jit {self.__qualname__}: {len(self.variants)} signatures compiled>"


def _users_level() -> int:
    """The `stacklevel` of the user's line, for a warning of the function that calls this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _native(compiled: Compiled) -> bool:
    """Whether the native entry can check the arguments and give the function's result by itself."""
    return compiled.plain and compiled.capture.native


def entry_of(compiled: Compiled) -> Any:
    """A function that runs just this compilation, natively where it can: for timing it.

    Raises NbcompError for other arguments than those it was compiled for.
    """
    entry = NativeFunction(
        compiled.name,
        None,
        lambda args, kwargs: compiled(*args, **kwargs),
        signature=_signature(compiled.function),
    )
    if _native(compiled):
        entry.add(compiled.plan)
    return entry.callable


def _signature(function: Any) -> inspect.Signature | None:
    """The function's signature, None where Python cannot tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _signature_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Types and shapes of a call, to remember what was refused."""
    return tuple(
        (type(v), getattr(v, "dtype", None), getattr(v, "shape", None)) for v in args
    ) + tuple(
        (k, type(v), getattr(v, "dtype", None), getattr(v, "shape", None))
        for k, v in kwargs.items()
    )


def jit(function: Any) -> Any:
    """A function that compiles itself on its first call with each signature, then runs natively.

    Arguments and results are those of the function.  What cannot be compiled runs in NumPy, with a
    `NumpyFallback` warning that says why; control flow that depends on array values raises
    CaptureError.

    Of a class, as a decorator, the method that computes is compiled: `forward`, or `__call__`.
    """
    if isinstance(function, Jit):
        return function
    if isinstance(function, type):
        return _jit_class(function)
    return Jit(function)


def _jit_class(cls: Any) -> Any:
    """The class, its computing method compiled; all instances share the compiled variants."""
    name = "forward" if hasattr(cls, "forward") else "__call__"
    method = inspect.getattr_static(cls, name, None)
    if isinstance(method, Jit):
        return cls
    if not isinstance(method, types.FunctionType):
        raise TypeError(f"{cls.__name__} has no method forward or __call__ to compile")
    # A module that is told so hands plain arrays to its `forward`, as compiled code takes them.
    told = getattr(cls, "with_compiled_forward", None)
    setattr(cls, name, Jit(method, told(method) if told else None))
    return cls
