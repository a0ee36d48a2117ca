"""`script`: a function compiled from its source, control flow and loops over elements included.

Like `jit` it compiles on the first call with each signature.  Where the machine code finds what
Python would raise for (an index out of bounds, a division by zero, a whole number beyond 64 bits)
the call is run by Python, unless arrays of the caller's were changed in place by then: the error is
raised as it stands.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.dispatch import Library
from nbcomp.errors import PACKAGE, NbcompError, Unsupported
from nbcomp.frontend.result import Out, Own, ViewOf, leaves
from nbcomp.frontend.script.capture import capture
from nbcomp.frontend.script.source import source_of
from nbcomp.frontend.session import NOTHING_OPEN, Openings
from nbcomp.frontend.trace import Capture
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph_module import GraphModule
from nbcomp.jitted import Jit
from nbcomp.openings import annotated, with_types
from nbcomp.options import EVERYTHING, Options
from nbcomp.wrapped import NOTHING, callable_of, global_name, name_of, parted, python_of


class RaisesHere(Unsupported):
    """What the program raises for these arguments, as far as compiling it went; Python knows."""


class Script(Jit):
    """A scripted function."""

    @classmethod
    def of(cls, function: Any, options: Options) -> Jit:
        """The function, to be compiled by these options."""
        own: type[Script] = type("Script", (Script,), {})
        return super(Script, own).of(function, options)

    @property
    def graph(self) -> Graph:
        """The graph of the newest variant, as it was written; its outputs are what is returned,
        then what is written to arguments.

        Before the first call it is that for the types that parameters are annotated with.  Raises
        NbcompError where these have none: a graph has the types of its inputs.
        """
        made = self._newest()
        if made is None:
            raise NbcompError(
                f"{self.__name__} has no graph yet: types come from arguments",
                hint="call it once, or annotate its parameters (`x: nbcomp.f32[3, 4]`), or give"
                f" types to `{self.__name__}.compile(nbcomp.f32[3, 4], …)`",
            )
        return _as_returned(made)

    @property
    def code(self) -> str:
        """The newest variant as Python: what was captured, its control flow kept.

        Before the first call it is that for the types that parameters are annotated with; where
        these have none, the source as it will be read.
        """
        made = self._newest()
        if made is None:
            return source_of(_defined(self.__wrapped__)).text
        return GraphModule(replace(made.capture, graph=made.captured), self.__wrapped__).code

    def _newest(self) -> Compiled | None:
        """The newest variant; one for the types of the parameters, if there are these only."""
        signature = with_types(self.__wrapped__) if self.compiled is None else None
        known = annotated(signature) if signature is not None else None
        if known is not None:
            self.compile(**known)
        return self.compiled

    def _capture(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], opened: Openings = NOTHING_OPEN
    ) -> Capture:
        """By its source.

        Raises Unsupported where an open length turns out to be needed: loops over elements may have
        become something slower for it.
        """
        try:
            captured = capture(self.__wrapped__, args, kwargs, opened)
        except NbcompError:
            raise
        except Exception as error:
            raise RaisesHere(f"it raises {type(error).__name__}: {error}") from error
        for fixed in captured.sizes.fixed if captured.sizes else ():
            if fixed.needed:
                raise Unsupported(fixed.why, fixed.place)
        return captured

    def _in_numpy(
        self, reason: Unsupported, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """An error of the program's own is Python's to raise, if it comes that far."""
        if not isinstance(reason, RaisesHere):
            return super()._in_numpy(reason, key, args, kwargs)
        result = self._python(*args, **kwargs)
        self._refused[key, self._around()] = reason
        self._warn(reason, "")
        return result

    def __reduce__(self) -> Any:
        return global_name(self) or (Script.of, (self._given, self.options))

    def __repr__(self) -> str:
        return f"<nbcomp.script {self.__qualname__}: {self._made()}>"


def _as_returned(made: Compiled) -> Graph:
    """The captured graph, its outputs in the order in which they are returned."""
    captured, graph = made.capture, made.captured
    inputs = {g.source: n for g, n in zip(captured.guards, graph.inputs, strict=False)}
    shown: list[Node] = []
    for leaf in leaves(captured.result):
        base = leaf.base if isinstance(leaf, ViewOf) else leaf
        if isinstance(base, Out):
            shown.append(graph.outputs[base.index])
        elif isinstance(base, Own) and base.source in inputs:
            shown.append(inputs[base.source])
    rest = [node for node in graph.outputs if node not in shown]
    return Graph(graph.name, graph.inputs, (*shown, *rest))


def _defined(function: Any) -> types.FunctionType:
    """The function whose source is compiled.  Raises NbcompError for what has none."""
    found = parted(function) or python_of(function) or python_of(type(function).__call__)
    if found is None or found.__code__.co_filename.startswith(PACKAGE):
        raise NbcompError(f"{name_of(function)} has no source of its own", hint="call it once")
    return found


def script(
    function: Any = NOTHING, *, libraries: Library | Sequence[Library] = (), precision: str = ""
) -> Any:
    """A function compiled from its source: `if`, `while`, `for`, `break`, `return`, loops over the
    elements of arrays, and everything `jit` compiles.

    A decorator, or a call: `fast = nbcomp.script(f)`.  Whole numbers are 64 bits wide and checked.
    libraries, precision: as of `jit`.
    """
    options = EVERYTHING.asking(libraries, precision)
    if function is NOTHING:
        return partial(script, libraries=libraries, precision=precision)
    if isinstance(function, Script) and options in (EVERYTHING, function.options):
        return function
    if isinstance(function, Jit):
        function = function.__wrapped__
    return Script.of(callable_of(function, "script"), options)
