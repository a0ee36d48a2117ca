"""How `jit` captures the calls of a function: by its bytecode, on tracers, or by its source.

Knows the ways of capture; not what becomes of a graph.
"""

from __future__ import annotations

import functools
import sys
import types
from dataclasses import replace
from typing import Any

from nbcomp.errors import PACKAGE, CaptureError, Unsupported
from nbcomp.frontend.bytecode.capture import (
    Places,
    has_loops,
    loops_over_elements,
    supported_version,
)
from nbcomp.frontend.bytecode.capture import capture as capture_bytecode
from nbcomp.frontend.bytecode.machine import Stopped
from nbcomp.frontend.script.capture import capture as capture_by_source
from nbcomp.frontend.script.effects import loops_without_effects
from nbcomp.frontend.session import NOTHING_OPEN, Openings
from nbcomp.frontend.trace import Capture
from nbcomp.frontend.trace import capture as capture_by_tracing
from nbcomp.parts import GENERATORS, why_whole
from nbcomp.record import Remark
from nbcomp.runtime.plan import WHOLE
from nbcomp.wrapped import name_of, python_of


class Captures:
    """The captures of one function's calls.

    model: it is a model's `forward`, which has no parts: where values decide in it, both ways are
    kept, by its source.  loops: the last capture is made of loops over elements.
    """

    def __init__(self, function: Any, model: bool) -> None:
        self.function, self.model = function, model
        self.loops = False
        self.places: Places = {}

    def of_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], opened: Openings = NOTHING_OPEN
    ) -> Capture:
        """By its bytecode, where that is known; else by running it on tracers.

        Where a loop would have to be written out at length, by its source, as the loop it is.
        """
        function = python_of(self.function)
        if function is not None and function.__code__.co_filename.startswith(PACKAGE):
            function = None  # of `nbcomp.nn.functional`, which is known by what it means
        if function is None or not supported_version():
            traced = self.on_tracers(args, kwargs, opened)
            note = () if function is None else (_unknown_version(),)
            return replace(traced, remarks=(*traced.remarks, *note))
        if function.__code__.co_flags & GENERATORS:
            raise Unsupported(f"{name_of(self.function)}: {why_whole(function)}")
        by_source: Any = functools.partial(self.by_source, function, args, kwargs, opened)
        if self.loops or any(WHOLE in names for names in opened.values()):
            # Numbers that vary are the loop's own there; followed, they would be formulas of it.
            if (loops := loops_over_elements(by_source)) is not None:
                return loops
            if opened and self.loops:
                raise Unsupported("loops over elements need to know a length")
            by_source = None
        try:
            made = capture_bytecode(self.function, args, kwargs, self.places, opened, by_source)
        except Stopped:
            if not self.model or (kept := self.both_ways(args, kwargs)) is None:
                raise  # of a module's `forward` there are no parts
            made = kept
        self.loops = has_loops(made)
        return made

    def on_tracers(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], opened: Openings
    ) -> Capture:
        """By running it on tracers; by its source, where values decide what it does."""
        try:
            return capture_by_tracing(self.function, args, kwargs, opened=opened)
        except CaptureError as error:
            if (kept := self.both_ways(args, kwargs)) is not None:
                return kept
            raise Unsupported(error.message, error.location, error.hint) from None

    def both_ways(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture | None:
        """By its source, which keeps both ways of a decision; None where that cannot be: the error
        is that of the way it was tried before."""
        try:
            return capture_by_source(self.function, args, kwargs)
        except Exception:
            return None

    def by_source(
        self,
        function: types.FunctionType,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        opened: Openings,
    ) -> Capture:
        """Raises NbcompError where there is no loop, following the source might have effects, or a
        length is needed that is left open."""
        if not loops_without_effects(function, (*args, *kwargs.values())):
            raise Unsupported(f"{name_of(self.function)} has no loops, or may have effects")
        lengths = {s: {k: n for k, n in o.items() if k != WHOLE} for s, o in opened.items()}
        made = capture_by_source(self.function, args, kwargs, lengths)
        if made.sizes is not None and any(fixed.needed for fixed in made.sizes.fixed):
            raise Unsupported(f"{name_of(self.function)} needs a length that is left open")
        return made


def _unknown_version() -> Remark:
    version = ".".join(map(str, sys.version_info[:2]))
    return Remark(
        "missed",
        "capture",
        f"the bytecode of Python {version} is not known: the function was run on tracers",
        hint="nbcomp.script compiles its source",
    )
