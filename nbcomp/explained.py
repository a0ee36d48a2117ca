"""What `jit` did with a function, as data and text: graphs, breaks, guards, recompilations.

Knows what jitted functions record; compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.errors import an
from nbcomp.frontend.bytecode.part import Break
from nbcomp.parts import Recompilation
from nbcomp.record import Location, Remark
from nbcomp.runtime.plan import (
    ArrayGuard,
    Guard,
    LengthGuard,
    ObjectGuard,
    ScalarGuard,
    Source,
    ValueGuard,
)
from nbcomp.sizes import Size
from nbcomp.types import TensorType

FEWER = "the breaks say what would make fewer of them; `nbcomp.script` keeps loops as loops"


@dataclass(frozen=True)
class GraphNote:
    """One graph: where it begins, what it computes, and what it assumes."""

    location: Location | None
    compiled: Compiled

    @property
    def guards(self) -> list[str]:
        """In the user's words."""
        plan = self.compiled.plan
        lengths = plan.open.described() if plan.open else ()
        return [*map(describe, plan.guards), *lengths]

    def __str__(self) -> str:
        graph = self.compiled.captured
        inputs = {*graph.inputs}
        operations = sum(n not in inputs for n in graph.nodes)
        kernels = len(self.compiled.kernels)
        where = f"from {self.location}" if self.location else self.compiled.name
        size = f"{operations} operations, {kernels} kernel{'s' * (kernels != 1)}"
        return f"{where}: {size}; if {', '.join(self.guards) or 'anything'}"


@dataclass(frozen=True)
class Explained:
    """The whole account of a jitted function; `helpers`: of those of the user's that it calls in
    between, compiled by themselves."""

    name: str
    graphs: list[GraphNote]
    breaks: list[Break]
    recompilations: list[Recompilation]
    remarks: list[Remark]
    helpers: list[Explained]

    def __str__(self) -> str:
        lines = [f"{self.name}: {_count(self.graphs, 'graph')}, {_count(self.breaks, 'break')}"]
        lines += [f"  graph {g}" for g in self.graphs]
        for b in self.breaks:
            hint = f"; {b.hint}" if b.hint else ""
            lines.append(f"  break at {b.location}, `{b.location.source()}`: {b.reason}{hint}")
        lines += [f"  compiled again at {r}" for r in self.recompilations]
        lines += [f"  {r}" for r in self.remarks]
        lines += [f"  {line}" for h in self.helpers for line in str(h).splitlines()]
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def _count(things: list[Any], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def explained(function: Any) -> Explained:
    """The account of what `nbcomp.jit` gave."""
    graphs = [GraphNote(c.location, c) for c in function.variants]
    again, remarks, helpers = list(function.recompilations), [], []
    for compiled in function.variants:
        remarks += compiled.capture.remarks
        remarks += [r for r in compiled.trace.remarks if r.topic == "lengths"]
    parts = function.parts
    if parts is not None:
        again += parts.recompilations
        for _, region in sorted(parts.regions.items()):
            graphs += [GraphNote(region.location, c) for c in region.variants]
            remarks += region.explain()
        helpers = [account for account in map(explained, parts.helpers) if account.graphs]
    helpers += [account for account in map(explained, function.forms.values()) if account.graphs]
    if function.variants:
        remarks += _through_python(function.variants[-1])
    for contest in function.contests.lost:
        reason = f"such calls run in Python, which is faster: {contest}"
        remarks.append(Remark("missed", "python", reason, hint=FEWER if parts else ""))
    for reason in function.fallbacks:
        remarks.append(Remark("missed", "numpy", reason.message, reason.location, reason.hint))
    remarks = list(dict.fromkeys(remarks))
    return Explained(function.__name__, graphs, function.breaks, again, remarks, helpers)


def _through_python(compiled: Compiled) -> Iterator[Remark]:
    """That calls are not taken by the native entry directly, which costs some microseconds each."""
    for parameter in compiled.capture.signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            reason = f"calls with more arguments go through Python, because of *{parameter.name}"
        elif parameter.kind is parameter.VAR_KEYWORD:
            reason = f"calls go through Python, because of **{parameter.name}"
        else:
            continue
        yield Remark("missed", "call", reason, hint="name the arguments in the signature")


def describe(guard: Guard) -> str:
    """What a guard asks for, as a user would say it."""
    where = guard.source.describe()
    match guard:
        case ArrayGuard(_, dtype, shape):
            writable = ", writable" if guard.writable else ""
            return f"{where} is {TensorType(dtype, shape)}{writable}"
        case ScalarGuard(_, kind):
            return f"{where} is a Python {kind.__name__}"
        case ObjectGuard(Source(path=(*way, (_, "__class__"))), type() as kind):
            whole = replace(guard.source, path=tuple(way)).describe()
            return f"{whole} is {an(kind.__name__)}"
        case ObjectGuard(_, value):
            return f"{where} is {_short(value)}"
        case ValueGuard(_, Size()):
            return f"{where} is a Python int"  # which ones is said of its name
        case ValueGuard(_, value):
            return f"{where} == {_short(value)}"
        case LengthGuard(_, kind, length):
            return f"{where} is a {kind.__name__} of {length}"


def _short(value: Any) -> str:
    name = getattr(value, "__name__", None)
    if callable(value) and name:
        return f"the same {name}"
    text = repr(name if name else value)
    return text if len(text) <= 40 else f"the same {type(value).__name__}"
