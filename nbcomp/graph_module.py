"""`GraphModule`, a captured program to look at, to edit and to run.

It is a program as an editable graph, with where its inputs come from: arguments, or attributes read
at every call.  `recompile` takes the graph as it is now through the pipeline.  Knows captures,
graphs and the pipeline, not how programs are captured.
"""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.frontend.result import (
    Out,
    Own,
    Tree,
    ViewOf,
    bind,
    leaves,
    resolve,
    with_leaves,
)
from nbcomp.frontend.trace import Capture
from nbcomp.graph.editable import EditableGraph
from nbcomp.graph.editable_node import EditableNode, Literal
from nbcomp.graph.interpreter import interpret, lengths_in
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Op
from nbcomp.graph.script import code, script
from nbcomp.graph.settled import settled
from nbcomp.pipeline import compile_capture
from nbcomp.record import Trace
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.interpret import StepFailed
from nbcomp.runtime.plan import ArrayGuard, Guard, ScalarGuard, Source
from nbcomp.settling import Lengths, lengths_of, numbers
from nbcomp.target.llvm.compile import host_target
from nbcomp.types import TensorType, contiguous_strides

MOST_LENGTHS = 64  # of arrays for which there is code of their own, of a program of open ones


class GraphModule:
    """A captured program: callable, with its `graph` to look at and to edit, and its `code`.

    graph: the nodes; after an edit, `recompile()`.  attributes: the arrays that the program reads
    besides its arguments, by path, as they are now.  `function` is what was captured.
    """

    __nbcomp_captured__ = "_current"  # where the compiler finds it, to make it part of a program

    def __init__(self, captured: Capture, function: Any = None) -> None:
        self.function, self._capture = function, captured
        inputs = inputs_of(captured)
        paths = {n: g.source.dotted() for n, g in inputs if g.source.kind != "argument"}
        self.graph = EditableGraph(captured.graph, paths)
        self._sources = {self.graph.copied[n].name: g for n, g in inputs}
        self._add_unused(captured)
        self._leaves = tuple(leaves(captured.result))
        shown = (*map(self._shown, self._leaves), *(self._output(k) for _, k in captured.writes))
        self.graph.output(shown)
        self._returned = shown
        self._compiled: Compiled | None = None
        self._native: NativeFunction | None = None
        self._settled: dict[tuple[int, ...], Compiled] = {}
        self.recompile()

    def _add_unused(self, captured: Capture) -> None:
        """Arguments that the program does not read, so that calls look as they do."""
        read = {g.source.key for _, g in inputs_of(captured) if g.source.kind == "argument"}
        nodes = [n for n in self.graph.nodes if n.op == "placeholder"]
        keys = [self._sources[n.name].source.key for n in nodes]
        for position, name in enumerate(captured.signature.parameters):
            if position not in read:
                before = [n for n, key in zip(nodes, keys, strict=True) if key > position]
                self.graph.placeholder(name, None, before[0] if before else None)

    def _output(self, index: int) -> Any:
        return self.graph.copied[self._capture.graph.outputs[index]]

    def _shown(self, leaf: Any) -> Any:
        """What the graph's output says for one part of the function's result."""
        match leaf:
            case Out(index, _):
                return self._output(index)
            case ViewOf(base, views):
                node = self._shown(base)
                for view in views:
                    node = self.graph.call_function(view, (node,))
                return node
            case Own(source):
                for node, guard in inputs_of(self._capture):
                    if guard.source == source:
                        return self.graph.copied[node]
                unused = self.graph.find_nodes("placeholder", source.name)
                return unused[0] if unused else Literal(source.describe())
            case _:
                return Literal(repr(leaf.value))

    # ---------------------------------------------------------------------------- what it says

    @property
    def name(self) -> str:
        """The name of the function or model."""
        return self.graph.name

    @property
    def code(self) -> str:
        """The program as Python, in NumPy's names and those of `nbcomp.op`."""
        writes = [
            (source.describe(), arg)
            for (source, _), arg in zip(
                self._capture.writes, self.graph.output_node.args[len(self._leaves) :], strict=False
            )
        ]
        return code(self.graph, writes)

    def script(self) -> str:
        """The program in typed form: one dataflow block, every value with its shape and dtype."""
        return script(self.graph, self.graph.inputs())

    def show(self) -> None:
        """Print `script()`."""
        print(self.script())

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs."""
        self.graph.print_tabular()

    @property
    def attributes(self) -> dict[str, Any]:
        """The arrays and numbers that are read besides the arguments, by path."""
        found = {}
        for node in self.graph.nodes:
            if node.op == "get_attr":
                guard = self._sources.get(node.name)
                found[str(node.target)] = resolve(guard.source, ()) if guard else node.value
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "graph" not in vars(self):
            raise AttributeError(name)
        tree = _tree(self.attributes)
        if name not in tree:
            raise AttributeError(f"{self.name} has no attribute {name!r}")
        return _namespace(tree[name])

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n.name}: {n.type}" for n in self.graph.nodes if n.op == "placeholder")
        return f"GraphModule {self.name}({inputs})\n\n{self.code}"

    # --------------------------------------------------------------------------------- running

    def recompile(self) -> GraphModule:
        """Make calls run the graph as it is now; raises VerifyError if it has no meaning."""
        sizes = self._capture.sizes
        with (assumed := sizes.copy()).in_force() if sizes is not None else nullcontext():
            self.graph.lint()
            current = self._recaptured()
        self._current = replace(current, sizes=assumed) if sizes is not None else current
        self.__signature__, self.__name__ = self._current.signature, self.name
        self._compiled, self._native, self._settled = None, None, {}
        return self

    def __copy__(self) -> GraphModule:
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        """A program of its own, with a graph of its own, compiled at its first call; a model that
        it reads is copied too.  Raises TypeError where it reads global variables."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        machine_code: dict[str, Any] = {"_compiled": None, "_native": None, "_settled": {}}
        kept = {k: v for k, v in vars(self).items() if k not in machine_code}
        try:
            vars(made).update(copy.deepcopy(kept, memo) | machine_code)
        except TypeError as error:
            raise TypeError(
                f"{self.name} reads what cannot be copied ({error}); nbcomp.trace or nbcomp.export"
                " of the function makes another program"
            ) from None
        return made

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self.name} is a program in this process and cannot be pickled; nbcomp.jit of the"
            " function can be, and compiles it where it is read"
        )

    @property
    def compiled(self) -> Compiled:
        """The program after all passes, with every level to look at."""
        if self._compiled is None:
            self._compiled = _compile(self.function or self, self._current)
        return self._compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the machine code; arrays laid out in another way than the example run in NumPy.

        Lengths that are left open may be any; code for some of them is made when they come first.
        Raises NbcompError for other shapes and dtypes than the program was captured with.
        """
        return self._entry.callable(*args, **kwargs)

    @property
    def _entry(self) -> NativeFunction:
        """The native entry of the present program, made when it is first called."""
        if self._native is None:
            compiled = self.compiled
            self._native = NativeFunction(
                self.name,
                None,
                self._slow_path,
                lambda args, plan, step, status: self._in_numpy(args),
                compiled.capture.signature,
            )
            if compiled.plain:
                self._native.add(compiled.plan)
        return self._native

    def _slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        compiled = self.compiled
        values = bind(compiled.capture.signature, args, kwargs)
        for made in (compiled, self._for_lengths(values)):
            if made is not None and made.mismatch(values) is None:
                with suppress(StepFailed):  # NumPy says what is wrong
                    return made.run(values)
                break
        return self._in_numpy(values)

    def _for_lengths(self, values: Sequence[Any]) -> Compiled | None:
        """The program for the lengths of these arguments only, where some are open."""
        captured = self._current
        if captured.sizes is None:
            return None
        arrays = [self._read(n, g, values) for n, g in inputs_of(captured)]
        lengths = lengths_in(captured.graph, arrays)
        key = tuple(lengths.values())
        if key not in self._settled:
            if len(self._settled) >= MOST_LENGTHS:
                oldest = self._settled.pop(next(iter(self._settled)))
                self._entry.remove(oldest.plan)
            self._settled[key] = made = _compile(self.function or self, _settled(captured, lengths))
            if made.plain:
                self._entry.add(made.plan)
        return self._settled[key]

    def _in_numpy(self, values: Sequence[Any]) -> Any:
        """Run the graph by its operators' NumPy meaning."""
        made = self._for_lengths(values) or self.compiled
        captured = made.capture
        arrays = [self._read(n, g, values) for n, g in inputs_of(captured)]
        outputs = interpret(captured.graph, arrays)
        given = [o[()] if k in captured.scalar_outputs else o for k, o in enumerate(outputs)]
        return made.finish(tuple(given), values)

    def _read(self, node: Node, guard: Guard, values: Sequence[Any]) -> Any:
        """The value of an input, of the type the graph has for it."""
        value = resolve(guard.source, values)
        array = np.asarray(value)
        found = TensorType(array.dtype, array.shape)
        python = isinstance(guard, ScalarGuard) and not issubclass(guard.type, np.generic)
        kinds = (int, float) if python else (np.ndarray, np.generic)
        if not _fits(found, node.type) or not isinstance(value, kinds):
            what = found if isinstance(value, np.ndarray) else type(value).__name__
            raise NbcompError(
                f"{self.name} was captured with {guard.source.dotted()}: {node.type}, not {what}",
                hint="capture it again with such an argument",
            )
        return array

    def _recaptured(self) -> Capture:
        """The capture, its graph the present one: each input keeps where it is read from."""
        whole = self.graph.to_graph()
        result, outputs, scalars, writes = self._results()
        graph = Graph(whole.name, whole.inputs, outputs)
        guards: list[Guard] = []
        signature = list(self._capture.signature.parameters.values())
        for slot, node in enumerate(graph.inputs):
            guard = self._sources.get(node.name)
            if guard is None:
                guard = argument_guard(len(signature), node)
                signature.append(parameter(node.name))
            assert isinstance(guard, ArrayGuard | ScalarGuard)
            guards.append(replace(guard, slot=slot))
        places = {guard.source: k for k, guard in enumerate(guards)}
        before = self._capture.guards
        pairs = [(before[a].source, before[b].source) for a, b in self._capture.disjoint]
        return replace(
            self._capture,
            graph=graph,
            guards=tuple(guards),
            result=result,
            scalar_outputs=frozenset(scalars),
            writes=writes,
            signature=inspect.Signature(signature),
            positional=len(signature),
            disjoint=tuple((places[a], places[b]) for a, b in pairs if {a, b} <= places.keys()),
        )

    def _results(self) -> tuple[Tree, tuple[Node, ...], set[int], tuple[tuple[Source, int], ...]]:
        """The tree of results, the graph's outputs, which of them are scalars, and the writes."""
        collected = _Results(self.graph)
        args = self.graph.output_node.args
        if len(args) != len(self._returned):
            if self._capture.writes:
                raise NbcompError(f"{self.name} writes to its arguments: its outputs are fixed")
            outs = tuple(Out(collected.place(a)) for a in args)
            return (outs if len(outs) != 1 else outs[0]), collected.outputs(), set(), ()
        scalars = set()
        new: list[Any] = []
        for leaf, old, arg in zip(self._leaves, self._returned, args, strict=False):
            kept = arg is old
            match leaf:
                case ViewOf(Out(), views) if (base := _base(arg, views)) is not None:
                    new.append(ViewOf(Out(collected.place(base)), views))
                case Out(index, python):
                    new.append(Out(collected.place(arg), python))
                    if index in self._capture.scalar_outputs:
                        scalars.add(new[-1].index)
                case _:
                    new.append(leaf if kept else Out(collected.place(arg)))
        sources = (source for source, _ in self._capture.writes)
        written = (collected.place(a) for a in args[len(self._leaves) :])
        writes = tuple(zip(sources, written, strict=True))
        return with_leaves(self._capture.result, new), collected.outputs(), scalars, writes

    def rewritten(self, graph: Graph) -> None:
        """Take another graph with the same inputs, and recompile."""
        args, before = self.graph.output_node.args, self.graph
        paths = {n.name: str(n.target) for n in before.inputs() if n.op == "get_attr"}
        self.graph = EditableGraph(
            graph, {n: paths[n.name] for n in graph.inputs if n.name in paths}
        )
        for node in before.nodes:
            if node.op == "placeholder" and node.type is None:
                self.graph.placeholder(node.name, None)
        outputs = iter(graph.outputs)
        unread = {n.name: n for n in self.graph.nodes if n.op == "placeholder" and n.type is None}

        def renewed(arg: Any) -> Any:
            if isinstance(arg, Literal):
                return arg
            if isinstance(arg, EditableNode) and arg.name in unread:
                return unread[arg.name]
            return self.graph.copied[next(outputs)]

        new = [renewed(a) for a in args]
        kept = {old: a for old, a in zip(args, new, strict=True) if isinstance(old, EditableNode)}
        self._returned = tuple(kept.get(r, r) for r in self._returned)
        self.graph.output(new)
        self.recompile()


def _base(value: Any, views: Sequence[Op]) -> Any:
    """What a node is these views of; None if it is something else."""
    for view in reversed(views):
        if not isinstance(value, EditableNode) or value.operator != view:
            return None
        (value,) = value.args
    return value


class _Results:
    """The outputs of a graph, each node once."""

    def __init__(self, graph: EditableGraph) -> None:
        self._graph, self._args = graph, []  # type: tuple[EditableGraph, list[Any]]

    def place(self, arg: Any) -> int:
        """The output a node, or a constant, is."""
        if isinstance(arg, Literal):
            raise NbcompError(f"{arg} is no array of the graph: it cannot be moved")
        if isinstance(arg, EditableNode) and arg in self._args:
            return self._args.index(arg)
        self._args.append(arg)
        return len(self._args) - 1

    def outputs(self) -> tuple[Node, ...]:
        """The outputs, in order."""
        return tuple(map(self._graph.node_of, self._args))


def _fits(found: TensorType, wanted: TensorType) -> bool:
    """Whether an array is of a type; lengths that are open there may be any, equal ones equal."""
    if found.dtype != wanted.dtype or len(found.shape) != len(wanted.shape):
        return False
    lengths = lengths_of([(wanted.shape, found.shape)])
    return bool(numbers(wanted.shape, lengths) == found.shape)


def _settled(captured: Capture, lengths: Lengths) -> Capture:
    """The capture for these lengths only."""
    return replace(
        captured,
        graph=settled(captured.graph, lengths),
        guards=numbers(captured.guards, lengths),
        result=numbers(captured.result, lengths),
        sizes=None,
    )


def _compile(function: Any, captured: Capture) -> Compiled:
    record = Trace(seconds={"capture": 0.0})
    return compile_capture(function, captured, record, time.perf_counter(), host_target())


def inputs_of(captured: Capture) -> list[tuple[Node, Guard]]:
    """The graph's inputs, each with where it is read from."""
    inputs = captured.graph.inputs
    return list(zip(inputs, captured.guards[: len(inputs)], strict=True))


def argument_guard(
    position: int, node: Node, before: Guard | None = None
) -> ArrayGuard | ScalarGuard:
    """For an input that is an argument: a number of the kind it was read as before, or an array of
    its type, in C order."""
    source = Source("argument", position, name=node.name)
    if isinstance(before, ScalarGuard):
        return replace(before, source=source)
    strides = tuple(s * node.type.dtype.itemsize for s in contiguous_strides(node.shape))
    return ArrayGuard(source, node.type.dtype, node.shape, strides, 0)


def parameter(name: str) -> inspect.Parameter:
    """A parameter of this name, by position or by name."""
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _tree(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by the parts of their paths."""
    tree: dict[str, Any] = {}
    for path, value in attributes.items():
        *parents, last = path.split(".")
        inner = tree
        for part in parents:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return tree


def _namespace(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(**{k: _namespace(v) for k, v in value.items()})
