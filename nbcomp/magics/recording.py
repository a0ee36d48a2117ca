"""Noting the calls of compiled functions while a cell runs, without changing what they do.

While a `Recording` is open, the entry of every watched function goes through a note-taker; calls
that such a call makes itself are part of it and are not noted.  For each function the last call
counts.  Knows calls; it must not know cells or how results are shown.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import nbcomp
from nbcomp.display.view.view import DETAILED
from nbcomp.errors import Unsupported
from nbcomp.frontend.result import bind
from nbcomp.measure.arguments import twin
from nbcomp.measure.differences import leaves
from nbcomp.record import Remark, looked_at


@dataclass
class Call:
    """A call of a compiled function.

    given_by: the notebook's variables that were taken for arguments, as nobody called the function.
    kept: whether the notebook has the function, so that what it adopts is used from then on.
    Once it was made: `args` and `kwargs` are what they were before, copied if the function may have
    written to them, `value` is what it returned, `compiled` what ran, or else `refused` says why it
    ran in NumPy.
    """

    function: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    compiled: Any = None
    refused: Unsupported | None = None
    given_by: tuple[str, ...] = ()
    kept: bool = False

    def make(self) -> Any:
        """Make the call, once: all that is asked of it later works on what it was given."""
        __tracebackhide__ = True
        args, kwargs = self.args, self.kwargs
        known = self._variant()
        if known is None or known.capture.writes:
            self.args, self.kwargs = twin((args, kwargs))
        with looked_at(DETAILED), warnings.catch_warnings():
            # The report says it, at the user's line.
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            self.value = self.function.unwatched(*args, **kwargs)
        ran = self._variant()
        if ran is not None and not ran.capture.writes:
            self.args, self.kwargs = args, kwargs
        return self.value

    @property
    def given(self) -> tuple[str, ...]:
        """Its arguments in words: arrays by dtype and shape, numbers by value."""
        try:
            signature = inspect.signature(self.function.__wrapped__)
            named = dict(signature.bind(*self.args, **self.kwargs).arguments)
        except (TypeError, ValueError):  # a callable without a signature
            named = {**{str(i): v for i, v in enumerate(self.args)}, **self.kwargs}
        found = (leaf for name, value in named.items() for leaf in leaves(value, name))
        return tuple(f"{name}: {_in_words(value)}" for name, value in found)

    def find_compiled(self) -> None:
        """Find what ran: the variant that takes such arguments, or why there is none."""
        self.compiled = self._variant()
        if self.compiled is not None:
            return
        known = self.function.fallbacks
        if self.function.breaks:
            self.refused = in_parts(self.function)
            return
        self.refused = known[-1] if known else Unsupported("its arguments were changed since")

    def _variant(self) -> Any:
        """The newest variant that takes the arguments; None where there is none."""
        for variant in reversed(self.function.variants):
            values = bind(variant.capture.signature, self.args, self.kwargs)
            if variant.mismatch(values) is None:
                return variant
        return None


def _in_words(value: object) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    number = value is None or isinstance(value, bool | int | float | complex)
    return repr(value) if number else type(value).__name__


def in_parts(function: Any) -> Unsupported:
    """What there is to say of a function with graph breaks: the first, and how many more."""
    first = function.breaks[0]
    lines = sorted({b.location.line for b in function.breaks})
    lines.remove(first.location.line)
    others = f", and at line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}" if lines else ""
    graphs = len(function.parts.compiled)
    return Unsupported(
        f"it runs in parts, {graphs} of them compiled: Python goes on at line"
        f" {first.location.line}{others}; {first.reason}",
        first.location,
        first.hint,
    )


def breaks_of(function: Any) -> tuple[Remark, ...]:
    """Where Python goes on between the compiled parts of a function, and why."""
    return tuple(
        Remark("missed", "break", why.reason, why.location, why.hint) for why in function.breaks
    )


def parts_of(function: Any) -> tuple[Any, ...]:
    """What is compiled between them: the newest variant of each part, in the order of the
    program."""
    regions = sorted(function.parts.regions.items()) if function.parts is not None else []
    return tuple(region.variants[-1] for _, region in regions if region.variants)


def is_compiled(value: object) -> bool:
    """Whether a value is what `nbcomp.jit` returns."""
    return callable(value) and hasattr(value, "__wrapped__") and hasattr(value, "compiled")


class Recording:
    """The last call of each watched function, by `begin` into parts; a context manager."""

    def __init__(self) -> None:
        self._watched: dict[int, Any] = {}
        self._calls: dict[int, Call] = {}
        self._inside = False

    def begin(self) -> None:
        """From here on a new part: the calls of the one before count only if this one has none."""
        self._before, self._calls = self.calls, {}

    _before: list[Call] = []  # noqa: RUF012 (replaced, never changed)

    @property
    def calls(self) -> list[Call]:
        """The calls of the last part that has any, in order."""
        return list(self._calls.values()) or self._before

    def watch(self, function: Any) -> None:
        """Note the calls of a compiled function from here on."""
        if id(function) not in self._watched:
            self._watched[id(function)] = function
            function.watch(self.recorder(function))

    def recorder(self, function: Any) -> Any:
        """What to call instead of a function, to have the call noted."""

        def call(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if self._inside:
                return function.unwatched(*args, **kwargs)
            self._calls.pop(id(function), None)
            self._calls[id(function)] = made = Call(function, args, kwargs)
            self._inside = True
            try:
                return made.make()
            finally:
                self._inside = False

        return call

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *error: object) -> None:
        for function in self._watched.values():
            function.watch(None)
