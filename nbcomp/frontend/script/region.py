"""A run of statements as one kernel: from the values around them to a node of the graph and back.

Arrays and run-time numbers become operands, what the statements write becomes results, and so do
the numbers that are needed afterwards.  Knows sessions and tracers on one side, the writing of
element code on the other.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.number import Number, known, length, symbol
from nbcomp.frontend.objects import Shadow, attribute
from nbcomp.frontend.script import branching
from nbcomp.frontend.script.assignments import Restart
from nbcomp.frontend.script.choices import Frame
from nbcomp.frontend.script.source import Source
from nbcomp.frontend.script.statements import Statements
from nbcomp.frontend.script.unread import without_unread
from nbcomp.frontend.script.values import (
    PYTHON,
    Axis,
    Either,
    Kind,
    Memory,
    NotElements,
    Scalar,
    Torn,
    View,
    describe,
    is_number,
    number,
)
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import MixedBool, Tracer, length_of, read
from nbcomp.graph.control import Loops, Result
from nbcomp.graph.ir import Node, apply, at
from nbcomp.loop.grammar import (
    Accumulate,
    Alloc,
    Block,
    Buffer,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    While,
    affine,
    const,
    loads_of,
    walk,
    with_buffers,
)
from nbcomp.sizes import Size, is_open
from nbcomp.types import DType, contiguous_strides

MAKERS = (np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like, np.empty_like)
# Ranges of ints that a program is compiled for, the first that holds the argument: where they are
# small and not negative, as most are, fewer checks are needed.
USUAL = ((0, 2**31 - 1), (-(2**31), 2**31 - 1), (0, 2**62))


class Region(Statements):
    """One attempt at writing statements as a kernel."""

    def __init__(
        self,
        session: Session,
        source: Source,
        env: dict[str, Any],
        lookup: Callable[[str], Any],
        cells: Mapping[int, str],
    ) -> None:
        super().__init__()
        self.session, self.cached = session, session.unrolled.cached
        self.cells = cells  # the variables that inner functions use, by the ids of their cells
        self.memories: dict[int, Memory] = {}  # by storage
        self.operands: list[tuple[Buffer, Node, Memory | None]] = []
        self._numbers: dict[Node, Scalar] = {}
        self.read_numbers: dict[int, Number] = {}  # what of them are Python's, by their expressions
        self.first: list[Stmt] = []  # what is read before all else
        self.made: list[Memory] = []  # arrays that the kernel fills
        self.frame = Frame(source, {}, lookup, "return")
        self._outside = env
        self._root = self.frame

    def enter_all(self, names: set[str]) -> None:
        """Bring in the variables around that the statements use."""
        for name in sorted(names & self._outside.keys()):
            try:
                self.frame.env[name] = self.entered(self._outside[name], name)
            except (NotElements, Unsupported):
                self.frame.env[name] = Torn(describe(self._outside[name]), "what is not compiled")

    # -------------------------------------------------------------------------------- entering

    def entered(self, value: Any, name: str) -> Any:
        if type(value) is Tracer:
            return self.array(value, name)
        if isinstance(value, branching.Undecided):
            raise value.error
        if type(value) is Number:
            size = isinstance(value._value, Size)
            return value._value if size else self.argument(value, name)
        if type(value) is np.ndarray:
            return self.array(self.session.foreign(value), name)
        if type(value) is tuple:
            return tuple(self.entered(v, name) for v in value)
        return value

    def array(self, tracer: Tracer, name: str) -> Any:
        """An array as memory of the kernel's; a scalar as a number."""
        if tracer._python is MixedBool:
            raise NotElements("a bool that is Python's on one way and NumPy's on another")
        if tracer._scalar:
            kind = Kind(tracer._type.dtype, tracer._python)
            return self.number_from(read(tracer), kind, name, *kind.bounds())
        storage = tracer._place.storage
        known = self.memories.get(id(storage))
        plain = not tracer._place.views
        if known is not None:
            if known.origin._place is tracer._place or (plain and not known.origin._place.views):
                return _whole(known)
            raise NotElements("two arrays that share memory in a loop over elements")
        others = {m.origin._place.storage for m in self.memories.values()}
        if others & {*storage.choices, *storage.chosen}:
            raise NotElements("two arrays that may share memory in a loop over elements")
        node = read(tracer)
        buffer = self.operand(node, name or node.name or "array", node.type.dtype, node.shape)
        memory = Memory(buffer, name or node.name or "the array", tracer)
        self.memories[id(storage)] = memory
        self.operands[-1] = (buffer, node, memory)
        return _whole(memory)

    def argument(self, value: Number, name: str) -> Any:
        """A Python number read at run time."""
        found = symbol(value)
        if not isinstance(found, Node):
            return found
        kind = PYTHON[type(value._value)]
        low, high = kind.bounds()
        if kind.is_int:
            assert isinstance(value._value, int)
            low, high = next((r for r in USUAL if r[0] <= value._value <= r[1]), (low, high))
            for root in value._roots:
                self.session.limit(root, low, high)
        made = self.number_from(found, kind, name, low, high)
        self.read_numbers[id(made.expr)] = value
        return made

    def number_from(self, node: Node, kind: Kind, name: str, low: int, high: int) -> Scalar:
        """A 0-d operand."""
        if node not in self._numbers:
            buffer = self.operand(node, name or node.name or "value", node.type.dtype, ())
            bound = self.fresh(buffer.name)
            self.first.append(Let(bound, Load(buffer.dtype, buffer, ()), self.location))
            self._numbers[node] = Scalar(kind, Var(buffer.dtype, bound), low, high)
        return self._numbers[node]

    def operand(self, node: Node, name: str, dtype: Any, shape: tuple[int, ...]) -> Buffer:
        made = Buffer(self.fresh(name), dtype, shape, contiguous_strides(shape), "input")
        self.operands.append((made, node, None))
        return made

    def original(self, value: Any) -> Any:
        value = getattr(value, "_ufunc", value) if isinstance(value, np.ufunc) else value
        if value is length_of:
            return len
        if isinstance(value, Shadow):  # an object that is called
            value = attribute(value, "__call__")
        return self.session.numpy_function(self.session.written(value))

    def leaves_to_caller(self) -> bool:
        return self.frame is self._root

    def names_of(self, function: types.FunctionType) -> Callable[[str], Any]:
        """A variable of this function's is what it is where the call is."""
        free = free_names(function)
        closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        shared = {name: self.cells[id(cell)] for name, cell in closure if id(cell) in self.cells}

        def lookup(name: str) -> Any:
            if shared.get(name) not in self._root.env:
                return free(name)
            here, self.frame = self.frame, self._root
            try:
                return self.read(shared[name])
            finally:
                self.frame = here

        return lookup

    def other(self, function: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        """Arrays that are made where the statements are run once are made before all of them."""
        once = not self.frame.nested and not self.depth and not self.depth_of_loops
        if self.depth_of_loops and function in MAKERS:
            return self.made_in_a_round(function, args, named)
        if once and function in (np.empty, np.empty_like):
            return self.uninitialised(function, args, named)
        if once and function in MAKERS:
            values = [self.traced(self.given(a)) for a in (*args, *named.values())]
            count = len(args)
            made = self.session.call(
                function, tuple(values[:count]), dict(zip(named, values[count:], strict=True))
            )
            return self.array(made, "")
        return super().other(function, args, named, node)

    def made_in_a_round(self, function: Any, args: list[Any], named: dict[str, Any]) -> View:
        """An array that is made where the program comes by again and again: in the same memory."""
        if function is np.full:
            return self.filled(args, named)
        like = function in (np.zeros_like, np.ones_like, np.empty_like)
        if like and isinstance(args[0], View) and len(args) == 1:
            shape, default = args[0].shape, args[0].memory.buffer.dtype
            dtype = np.dtype(named.pop("dtype", default))
        else:
            shape, dtype = self.laid_out(*map(self.given, args), **named)
        if not all(isinstance(n, int) for n in shape) or not shape or (like and named):
            raise NotElements("an array of a length known only at run time")
        memory = self.array_memory(dtype, tuple(n for n in shape if isinstance(n, int)))
        made = _whole(memory)
        if function not in (np.empty, np.empty_like):
            one = function in (np.ones, np.ones_like)
            self.over(made.shape, lambda index: self.clear(self.place(made, index), one))
        return made

    def filled(self, args: list[Any], named: dict[str, Any]) -> View:
        """`np.full`: NumPy has an array of what the value is."""
        if len(args) != 2 or not is_number(args[1]) or not named.keys() <= {"dtype"}:
            raise NotElements("np.full of what is no number", None, "np.empty, and x[:] = value")
        dtype = named.get("dtype", number(args[1]).dtype)
        made = self.made_in_a_round(np.empty, [args[0]], {"dtype": dtype})
        self.fill(made, args[1])
        return made

    def clear(self, view: View, one: bool) -> None:
        """Zero, or one, to an element of an array that is made in the loop."""
        self.add(Store(view.memory.buffer, view.start, const(one, view.memory.buffer.dtype)))

    def traced(self, value: Any) -> Any:
        """An argument as statements on whole arrays have it."""
        if isinstance(value, tuple):
            return tuple(map(self.traced, value))
        return length(self.session, value) if isinstance(value, Size) else value

    def uninitialised(self, function: Any, args: list[Any], named: dict[str, Any]) -> View:
        """An array that nobody need fill: the kernel has all of it."""
        self.assume_lengths([*args[:1], named.get("shape")])
        like = [a.memory.buffer if isinstance(a, View) else a for a in args]
        if function is np.empty_like and isinstance(like[0], Buffer):
            shape = named.pop("shape", None) or args[0].shape
            like = [shape, *(like[1:] or [named.pop("dtype", like[0].dtype)])]
        shape, dtype = self.laid_out(*map(self.given, like), **named)
        if dtype.kind not in "biuf":
            raise NotElements(f"an array of dtype {dtype}")
        name = self.fresh("made")
        memory = Memory(Buffer(name, dtype, shape, contiguous_strides(shape), "output"), name)
        self.made.append(memory)
        return _whole(memory)

    def assume_lengths(self, values: Sequence[Any]) -> None:
        """A number that is the length of an array is assumed, in all statements."""
        lengths = [n for v in values for n in (v if isinstance(v, tuple) else (v,))]
        found = [self.read_numbers.get(id(n.expr)) for n in lengths if isinstance(n, Scalar)]
        if found and None not in found:
            for number_ in found:
                known(number_)
            raise Restart

    def laid_out(self, *args: Any, **named: Any) -> tuple[tuple[int, ...], DType]:
        """The shape and dtype of `np.empty(*args, **named)`, row-major; lengths may be open."""
        named = {k: self.given(v) for k, v in named.items()}
        first = args[0] if args else named.get("shape")
        shape = first if isinstance(first, tuple) else (first,)
        if is_open(shape) and set(named) <= {"shape", "dtype"}:
            chosen = args[1] if len(args) > 1 else named.get("dtype", float)
            return shape, np.dtype(chosen)
        array = np.empty(*args, **named)
        if not array.flags.c_contiguous:
            raise NotElements("an array in another memory order")
        return array.shape, array.dtype

    def given(self, value: Any) -> Any:
        """An argument of a function that makes an array."""
        if isinstance(value, View) and value.whole:
            return value.memory.origin
        if isinstance(value, Scalar | View | Either):
            raise NotElements("an array of a size or value known only at run time")
        return tuple(map(self.given, value)) if isinstance(value, tuple) else value

    # ---------------------------------------------------------------------------------- leaving

    @property
    def runs_anyway(self) -> bool:
        """Whether the kernel is run whoever reads its results: it may raise, or may never end."""
        return self.fails or any(isinstance(s, While) for s in walk(tuple(self.stmts)))

    def kernel(
        self, name: str, results: list[tuple[str, Scalar]]
    ) -> tuple[Kernel, list[int], list[Node]]:
        """The kernel, which operands it changes, and the operands' nodes."""
        outputs = [m.buffer for m in self.made]
        changes = self.made or any(m is not None and m.written for _, _, m in self.operands)
        if not results and self.runs_anyway and not changes:
            results = [("done", number(True))]  # something for the graph to reach it by
        for label, s in results:
            out = Buffer(self.fresh(label), s.dtype, (), (), "output")
            outputs.append(out)
            self.add(Store(out, (), s.expr, self.location))
        stmts = without_unread((*self.first, *self.stmts))
        touched = {b.name for s in stmts for b in _buffers(s)}
        parts = [m.buffer for m in self.arrays.values() if m.buffer.name in touched]
        outputs += [b for b in parts if b.role == "output"]
        kept = [o for o in self.operands if o[0].name in touched]
        written = {m.buffer.name for _, _, m in kept if m is not None and m.written}
        own = [*self.locals.values(), *(b for b in parts if b.role == "local")]
        allocs = [Alloc(b) for b in own if b.name in touched]
        changed = {b.name: replace(b, role="output") for b, _, _ in kept if b.name in written}
        stmts = with_buffers(stmts, lambda b: changed.get(b.name, b))
        buffers = tuple(changed.get(b.name, b) for b, _, _ in kept)
        body = Block((*allocs, *stmts), self.location)
        kernel = Kernel(name, (*buffers, *outputs), (body,), self.location, written=True)
        positions = [k for k, (b, _, _) in enumerate(kept) if b.name in written]
        self._told([m for _, _, m in kept if m is not None and m.written])
        return kernel, positions, [n for _, n, _ in kept]

    def _told(self, written: list[Memory]) -> None:
        """Refuse an error that only Python can make where it cannot run the call once more."""
        seen = any(m.origin._place.storage.read is not None for m in written)
        if self.untold is not None and seen:
            raise Unsupported(
                "an error whose message is made at run time, in a loop that changes the caller's"
                " array",
                self.frame.source.at(self.untold),
                "a message that is a plain string",
            )

    def node(self, name: str, results: list[tuple[str, Scalar]]) -> list[Node]:
        """The region as a node: its results, after the arrays' new contents are put in place."""
        kernel, updated, nodes = self.kernel(name, results)
        with at(self.frame.source.at(self.frame.source.node)):
            loops = apply(Loops(kernel, tuple(updated)), *nodes, name=name)
            types_ = loops.op.results()  # type: ignore[attr-defined]
            made = [apply(Result(k, t), loops) for k, t in enumerate(types_)]
        memories = {id(m.buffer): m for m in self.memories.values()}
        names = {m.buffer.name: m for m in memories.values()}
        for k, position in enumerate(updated):
            memory = names[kernel.buffers[position].name]
            new = replace(made[k], name=memory.buffer.name)
            memory.origin._place.write(new)
        if self.runs_anyway:
            self.session.effects.append(loops)
        rest = made[len(updated) :]
        for memory, node in zip(self.made, rest, strict=False):
            memory.origin = self.session.tracer(replace(node, name=memory.buffer.name))
        return rest[len(self.made) :]


def _whole(memory: Memory) -> View:
    shape = memory.buffer.shape
    axes = tuple(Axis(k, 1, n) for k, n in enumerate(shape))
    return View(memory, tuple(affine(0) for _ in shape), axes)


def _buffers(stmt: Stmt) -> list[Buffer]:
    found = [e.buffer for e in loads_of((stmt,))]
    return found + [s.buffer for s in walk((stmt,)) if isinstance(s, Store | Accumulate)]


def free_names(function: types.FunctionType) -> Callable[[str], Any]:
    """How the names of a function are found that are not its own: closure, globals, builtins."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def lookup(name: str) -> Any:
        if name in cells:
            return cells[name].cell_contents
        try:
            return function.__globals__[name]
        except KeyError:
            builtins_ = function.__globals__["__builtins__"]
            if name in builtins_:
                return builtins_[name]
        raise NameError(f"name {name!r} is not defined")

    return lookup
