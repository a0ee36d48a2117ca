"""`Compiled`, the result of a compilation: callable on arrays, and everything there is to see."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from nbcomp.errors import PACKAGE, NbcompError
from nbcomp.frontend.result import Own, ViewOf, bind, leaves, rebuild, resolve
from nbcomp.frontend.trace import Capture
from nbcomp.graph.control import exception
from nbcomp.graph.ir import Graph
from nbcomp.graph.op import Constant, View
from nbcomp.graph.passes.groups import FusedGraph, Group
from nbcomp.graph.passes.materialise import Copy
from nbcomp.loop.grammar import STATUS_BITS, Kernel, failures
from nbcomp.loop.printer import print_kernel
from nbcomp.lowering.program import KernelStep, LibraryStep, Program
from nbcomp.options import EVERYTHING, Options
from nbcomp.origin import Listing
from nbcomp.provenance import Provenance, kernel_listing, provenance
from nbcomp.record import Location, Remarks, Trace
from nbcomp.runtime import interpret, validity
from nbcomp.runtime.entry import NativeFunction, as_called
from nbcomp.runtime.plan import Plan
from nbcomp.schedule.language import Schedule
from nbcomp.settling import numbers
from nbcomp.target.base import Code
from nbcomp.target.llvm.remarks import llvm_remarks

MOST_INPUTS = 6  # whose types are said in a line


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel at every level below the graph; `lowered` is it before its schedule.

    groups: those it computes, one for each time it is called.
    """

    name: str
    groups: tuple[Group, ...]
    lowered: Kernel
    kernel: Kernel
    code: Code

    @property
    def known(self) -> bool:
        """Whether its code was there already."""
        return self.code.known

    def text(self, level: str) -> str:
        """The kernel as "loop", "llvm" (after LLVM's passes), "llvm-before" or "asm" text."""
        return print_kernel(self.kernel) if level == "loop" else self.code.text(level)

    def listing(self, level: str) -> Listing:
        """The same line by line, each with the user's places it came from."""
        return kernel_listing(self, level)


def _written(function: Any) -> Any:
    """The Python function the user wrote: of a model, the method that computes, if it is theirs."""
    python = inspect.unwrap(function)
    if hasattr(python, "__code__"):
        return python
    method = inspect.unwrap(getattr(type(python), "forward", None) or type(python).__call__)
    code = getattr(method, "__code__", None)
    return method if code is not None and not code.co_filename.startswith(PACKAGE) else python


@dataclass(eq=False)
class Regimes:
    """Further compilations of a program whose lengths are open, for lengths that the first one's
    loops are not made for (few rows and many want other loops).

    make: compiles for the lengths of these arguments, the same ones being open.
    """

    make: Callable[[Sequence[Any], dict[str, Any]], Compiled]
    others: list[Compiled] = field(default_factory=list)

    def taking(
        self, first: Compiled, values: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Compiled | None:
        """The one that takes these arguments, compiled now if need be; None where something else
        than a length is another."""
        for other in self.others:
            if other.mismatch(values) is None:
                return other
        if not first.differs_in_lengths_only(values):
            return None
        made = self.make(args, kwargs)
        self.others.append(made)
        return made if made.mismatch(values) is None else None


@dataclass(eq=False)
class Compiled:
    """A compiled function for one signature.

    `captured` is the graph as written, `graph` after all passes; `groups` became `kernels`.
    Calling it runs the machine code; arguments it was not compiled for raise `NbcompError` and say
    why.
    """

    name: str
    function: Any
    capture: Capture
    captured: Graph
    fused: FusedGraph
    program: Program
    kernels: tuple[CompiledKernel, ...]
    plan: Plan
    plain: bool  # the plan's own result is the function's
    trace: Trace
    compile_seconds: float
    cold: bool
    threads: int
    target: str
    recompile: Callable[[Compiled, Options, str], Compiled]
    options: Options = EVERYTHING
    shown: Any = field(default=None, repr=False)  # the last report on it in a notebook
    regimes: Regimes | None = field(default=None, repr=False)

    def __copy__(self) -> Compiled:
        return self  # machine code does not change

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self.name} is machine code in this process and cannot be pickled; nbcomp.jit of the"
            " function can be, and compiles it where it is read"
        )

    @property
    def graph(self) -> Graph:
        """The graph after all passes."""
        return self.fused.graph

    @property
    def groups(self) -> tuple[Group, ...]:
        """The fused groups of `graph`, in order."""
        return self.fused.groups

    @cached_property
    def source(self) -> str:
        """The text of the user's function, empty when it is not at hand."""
        try:
            return inspect.getsource(_written(self.function))
        except (OSError, TypeError):
            return ""

    @cached_property
    def constant(self) -> bool:
        """Whether the result is known while compiling, for all calls that this is for."""
        inputs = set(self.graph.inputs)
        computed = [n for n in self.graph.nodes if n not in inputs]
        reads = {i for n in computed for i in n.inputs} | set(self.graph.outputs)
        known = all(isinstance(n.op, Constant | View | Copy) for n in computed)
        bases = (x.base if isinstance(x, ViewOf) else x for x in leaves(self.capture.result))
        own = self.capture.writes or any(isinstance(base, Own) for base in bases)
        return known and not own and reads.isdisjoint(inputs)

    @property
    def location(self) -> Location | None:
        """Where the function is defined; of a model of nbcomp's own layers, the first line of the
        user's that is at work."""
        code = getattr(_written(self.function), "__code__", None)
        if code is not None:
            return Location(code.co_filename, code.co_firstlineno, function=self.name)
        places = [n.location for n in self.captured.nodes if n.location]
        files = Counter(place.file for place in places).most_common(1)
        lines = [place.line for place in places if place.file == files[0][0]]
        return Location(files[0][0], min(lines), function=self.name) if files else None

    def text(self, level: str) -> str:
        """The whole program as "graph", "loop", "llvm" or "asm" text."""
        if level == "graph":
            return str(self.graph)
        if level == "loop":
            return str(self.program)
        return "\n\n".join(k.text(level) for k in self.kernels)

    def for_cpu(self, name: str) -> Compiled:
        """The same program compiled for another CPU, to look at or, where this machine can, to run.

        name: "sse2", "avx2", "avx512", "amx", "neon", "sve", "rvv", "wasm", "ptx" or "host", as in
        `target.llvm.cpus`.  Calling what this machine cannot run raises NbcompError and says why.
        Raises ValueError for another name.
        """
        return self.recompile(self, self.options, name)

    def with_schedule(self, kernel: str, schedule: Schedule) -> Compiled:
        """The same program with a schedule in place of one kernel's default one.

        Raises ScheduleError where there is no such kernel, and where a step is not legal.
        """
        options = self.options.scheduling(kernel, schedule)
        return self.recompile(self, options, "host")

    @property
    def tuned(self) -> bool:
        """Whether a kernel runs by a schedule from the record of tuning."""
        return any(r.topic == "tuned" and r.kind == "applied" for r in self.trace.heard)

    def provenance(self) -> Provenance:
        """Where each machine instruction comes from: a table, one row an instruction."""
        return provenance(self.kernels)

    def explain(self, llvm: bool = False) -> Remarks:
        """What was done and what was not, and why: a list of remarks, printed a line each.

        llvm: also what LLVM remarks on its part, which compiles once more, in a process of its own.
        """
        last = llvm_remarks((k.name, k.code) for k in self.kernels) if llvm else []
        return Remarks(dict.fromkeys([*self.capture.remarks, *self.trace.remarks, *last]))

    def report(self, path: str | Path) -> Path:
        """Write what was compiled as one HTML file, the explorer included; gives its path.

        What a notebook has measured of it is in it too.
        """
        from nbcomp.display.bundle import Report  # brings the display, which few programs want

        return (self.shown or Report(self)).save(path)

    @property
    def stale(self) -> tuple[str, ...]:
        """What of the globals and helpers it counts on is not as it was, each with the reason."""
        return tuple(validity.changes(self.plan))

    @cached_property
    def _by_name(self) -> dict[str, CompiledKernel]:
        return {kernel.name: kernel for kernel in self.kernels}

    def kernel_of(self, step: KernelStep | LibraryStep) -> CompiledKernel | None:
        """The kernel that a step of the program calls; None for a call of NumPy."""
        return self._by_name[step.kernel.name] if isinstance(step, KernelStep) else None

    @property
    def lengths(self) -> tuple[str, ...]:
        """The lengths that are left open, each with its range: "n = 2 … 63"."""
        opened = self.plan.open
        return tuple(opened.described()) if opened is not None else ()

    def settled(self, values: Sequence[Any]) -> Compiled:
        """The same for the lengths of these bound arguments, which it takes: with numbers for the
        lengths that are open."""
        if self.plan.open is None:
            return self
        plan = validity.settled(self.plan, tuple(values))
        put = partial(numbers, values=validity.lengths(self.plan, tuple(values)))
        kernels = tuple(
            replace(k, kernel=put(k.kernel), lowered=put(k.lowered)) for k in self.kernels
        )
        by_name = {k.name: k.kernel for k in kernels}
        steps = tuple(
            replace(s, kernel=by_name[s.kernel.name])
            if isinstance(s, KernelStep)
            else replace(s, inputs=put(s.inputs), outputs=put(s.outputs))
            for s in self.program.steps
        )
        names = ("outputs", "temps", "arena", "layouts")
        program = replace(
            self.program, steps=steps, **{n: put(getattr(self.program, n)) for n in names}
        )
        return replace(self, kernels=kernels, program=program, plan=plan)

    def kernel_at(self, step: int) -> CompiledKernel | None:
        """The kernel that a step of the plan belongs to."""
        position = 0
        for part in self.program.steps:
            if isinstance(part, LibraryStep) and part.kept:
                continue
            kernel = self.kernel_of(part)
            position += len(kernel.code.stages) if kernel else 1
            if step < position:
                return kernel
        return None

    def failure(self, step: int, status: int, values: Sequence[Any] = ()) -> Exception | None:
        """What a step's status means, as the exception Python would raise for these arguments.

        None where Python can run the call once more, since nothing of the caller's was changed.
        """
        kernel = self.kernel_at(step)
        if kernel is None or not kernel.kernel.ordered:
            return None
        known = failures(kernel.kernel)
        code, detail = status & ((1 << STATUS_BITS) - 1), status >> STATUS_BITS
        if not 0 < code <= len(known):
            return None
        lengths = validity.lengths(self.plan, tuple(values)) if self.plan.open and values else {}
        return exception(known[code - 1], detail, lengths)

    def leaves_to_python(self, error: Exception) -> bool:
        """Whether a level ends with this error where Python is to run the call."""
        if isinstance(error, interpret.StepFailed):
            return self.failure(error.step, error.status) is None
        free = [k.kernel for k in self.kernels if not k.kernel.ordered]
        known = {f.kind for kernel in free for f in failures(kernel)}
        return type(error).__name__ in known

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.entry(*args, **kwargs)

    @cached_property
    def entry(self) -> Callable[..., Any]:
        """What a call of it calls: a builtin that runs just this compilation, natively where it
        can, and raises NbcompError for other arguments than those it was compiled for."""
        signature = self.capture.signature
        native = NativeFunction(self.name, None, self._other_call, self._failed, signature)
        if self.plain:
            native.add(self.plan)
        return native.callable

    def _other_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that the native entry does not take."""
        values = bind(self.capture.signature, args, kwargs)
        why = self.mismatch(values)
        if why is not None and self.regimes is not None:
            other = self.regimes.taking(self, values, args, kwargs)
            if other is not None:
                return other(*args, **kwargs)
        if why is not None:
            raise NbcompError(f"{self.name} was compiled for other arguments: {why}")
        try:
            return self.run(values)
        except interpret.StepFailed as error:
            known = self.failure(error.step, error.status, values)
        if known is not None:
            raise known
        return self.function(*args, **kwargs)  # Python says what is wrong

    def _failed(self, values: tuple[Any, ...], plan: Plan, step: int, status: int) -> Any:
        """The same for a step of the native entry's."""
        known = self.failure(step, status, values)
        if known is not None:
            raise known
        args, kwargs = as_called(self.capture.signature, values)
        return self.function(*args, **kwargs)

    def mismatch(self, values: Sequence[Any]) -> str | None:
        """Why these bound arguments are not those it was compiled for; None if they are."""
        return validity.mismatch(self.plan, tuple(values))

    def differs_in_lengths_only(self, values: Sequence[Any]) -> bool:
        """Whether these bound arguments are of the types it was compiled for, open lengths
        aside."""
        return validity.fits_but_for_lengths(self.plan, tuple(values))

    def run(self, values: Sequence[Any]) -> Any:
        """Run on bound arguments that match."""
        results = interpret.execute(self.plan, tuple(values))
        if self.plain:
            return results
        return self.finish(results, values)

    def finish(self, results: Any, values: Sequence[Any]) -> Any:
        """Write the caller's arrays, and put the outputs into what the function returns."""
        outputs = results if isinstance(results, tuple) else (results,)
        for source, index in self.capture.writes:
            np.copyto(resolve(source, values), outputs[index])
        result = self.capture.result
        if self.plan.open is not None:
            result = numbers(result, validity.lengths(self.plan, tuple(values)))
        return rebuild(result, outputs, values)

    def __repr__(self) -> str:
        inputs = [str(n.type) for n in self.captured.inputs]
        if len(inputs) > MOST_INPUTS:
            inputs[MOST_INPUTS:] = [f"… {len(inputs) - MOST_INPUTS} more"]
        kernels = f"{len(self.kernels)} kernel{'s' * (len(self.kernels) != 1)}"
        return f"<nbcomp {self.name}({', '.join(inputs)}): {kernels}, {self.target}>"
