"""One tracing run: what it reads at call time, what it assumes, what it has to tell.

A `Session` collects the graph's inputs (`Read`), the guards and the remarks while the user's
function runs on tracers, and ends with it: tracers that outlive it refuse to work.  Knows sources
and nodes, not tracers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from nbcomp.conditions import LEAST, MOST, in_force
from nbcomp.errors import CaptureError, NbcompError, Unsupported
from nbcomp.frontend import reporting
from nbcomp.frontend.location import here
from nbcomp.frontend.unrolled import LongLoop, Unrolled
from nbcomp.graph.interpreter import evaluate
from nbcomp.graph.ir import Graph, Node, at, topological
from nbcomp.graph.op import Constant, Input
from nbcomp.ops.operand import Length
from nbcomp.record import Location, Remark
from nbcomp.runtime.plan import WHOLE, Guard, Source, ValueGuard
from nbcomp.settling import has_sizes
from nbcomp.sizes import Size, Symbol, hint, is_open, symbols_of
from nbcomp.types import Dim, TensorType, contiguous_strides

# By the place of an array: the names of lengths that are left open, by their axes.
Openings = Mapping[Source, Mapping[int, str]]
NOTHING_OPEN: Openings = MappingProxyType({})


@dataclass(eq=False)
class Read:
    """A value found at `source` at call time: an array, or a Python or NumPy number.

    used: the program depends on its type or value.  written: the program changed the array.
    """

    source: Source
    value: Any
    node: Node
    used: bool = False
    written: bool = False
    low: int = -(2**63)  # of an int: the range the program assumes
    high: int = 2**63 - 1
    content: Node = field(init=False)  # the array's content when the function returns

    def __post_init__(self) -> None:
        self.content = self.node


class Session:
    """The state of one capture.

    call: dispatches a NumPy function or ufunc method over tracers.  foreign: gives the tracer of an
    array that reached the function in another way than as an input.  check_unchanged: raises
    `Unsupported` where the caller's objects were changed.  tracer: a new array with a
    node's value.  by_source: a function of NumPy's without operator.  stand_in: what the program
    sees in place of the lifted copy of a function, if not the copy.  Whoever starts it sets them.
    freezing: a value that is known at run time only, and needed now, is the example's from then on;
    `freezes` are the errors that say where.  varying: numbers that differ from call to call, whose
    value must not be assumed.  opened: lengths of arrays that are left open, under `conditions`.
    """

    def __init__(self, name: str, opened: Openings = NOTHING_OPEN) -> None:
        self.name = name
        self.opened, self.conditions = opened, in_force()
        self.sizes: dict[str, Any] = {}  # those that are open, by their names
        self._names: dict[str, Any] = {}  # what names in formulas of lengths are shown as
        self.returns: Location | None = None  # the statement that gives the function's result
        self.closed = False
        self.calls = 0  # of NumPy's functions
        self.reported = reporting.in_force()  # before the program asked for it
        self.followed = 0  # statements of a source that is read
        self.surveyed = 0  # nodes that choices by values were made among
        self.wrappers: dict[Any, Any] = {}  # functions of NumPy's as the program sees them
        self.reads: dict[Source, Read] = {}
        self._by_node: dict[Node, Read] = {}
        self.guards: dict[tuple[type, Source], Guard] = {}
        self.remarks: list[Remark] = []
        self.unrolled = Unrolled()
        self.layers: Callable[[], tuple[str, ...]] = tuple  # the user's modules at work now
        self.refusals: dict[int, Exception] = {}
        self.effects: list[Node] = []  # nodes that may raise or never end, whoever reads them
        self.given: set[Node] = set()  # of arrays that the program hands to models
        self.known_nodes: set[Node] = set()  # inputs whose value the program depends on
        self.budget: int | None = None  # elements of values computed while compiling
        self.freezing = False
        self.freezes: list[CaptureError] = []
        self.call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _no_call
        self.foreign: Callable[[Any], Any] = _no_foreign
        self.check_unchanged: Callable[[], None] = lambda: None
        self.tracer: Callable[[Node], Any] = _no_foreign
        self.stand_in: Callable[[Any], Any] | None = None
        self.interpreted: Callable[[Any], Any] | None = None  # the same, when the source is read
        self.written: Callable[[Any], Any] = _itself  # the function whose source that is
        self.varying: frozenset[Source] = frozenset()
        self.resumed = False  # captured from the middle of a function: floats vary there
        self.by_source: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _no_call

    def close(self) -> None:
        """The function has returned: its arrays are not held any longer, whoever holds tracers."""
        self.closed = True
        for read in self.reads.values():
            read.value = None

    def check(self) -> None:
        """Raise when a tracer is used after its function has returned."""
        if self.closed:
            raise CaptureError(
                f"this array stood for a value inside {self.name} while that was compiled, and was"
                " kept after that; it has no value",
                here(),
                "return the array from the function instead of storing it elsewhere",
            )

    def numpy_function(self, value: Any) -> Any:
        """NumPy's own function for one of `wrappers`; anything else unchanged."""
        return next((real for real, seen in self.wrappers.items() if seen is value), value)

    # -------------------------------------------------------------------------------- reading

    def read(self, source: Source, value: Any, name: str) -> Read:
        """The input for a source, one per place; arrays and numbers."""
        if source not in self.reads:
            array = np.asarray(value)
            index, weak = len(self.reads), type(value) in (int, float)
            shape, strides = self._open(source, array)
            tensor = TensorType(array.dtype, shape)
            op = Input(index, tensor, strides)
            node = Node(op, (), tensor, None, name, weak, self.layers())
            self.reads[source] = self._by_node[node] = Read(source, value, node)
        return self.reads[source]

    def _open(self, source: Source, array: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        """Shape and strides in elements (None: row-major), the lengths that are left open as
        sizes."""
        names = self.opened.get(source)
        shape: Any = array.shape
        if not names or self.conditions is None:
            return shape, _strides(array)
        shape = tuple(
            self._size(names[k], n) if k in names and n >= LEAST else n for k, n in enumerate(shape)
        )
        if array.flags.c_contiguous or not is_open(shape):
            return shape, _strides(array)
        if array.flags.f_contiguous:
            return shape, contiguous_strides(shape[::-1])[::-1]
        return shape, _strides(array)

    def open_number(self, source: Source, value: int) -> Any:
        """What stands for an int that differs from call to call; None for any other."""
        name = self.opened.get(source, {}).get(WHOLE)
        if name is None or self.conditions is None or not -MOST <= value <= MOST:
            return None
        if name not in self.sizes:
            self.sizes[name] = self.conditions.symbol(name, value, -MOST)
        self.guard(ValueGuard(source, self.sizes[name]))
        return self.sizes[name]

    def _size(self, name: str, seen: int) -> Any:
        """The size of this name; the same in all arrays."""
        assert self.conditions is not None
        if name not in self.sizes:
            self.sizes[name] = self.conditions.symbol(name, seen, shown=self._shown(name, seen))
        return self.sizes[name] if self.sizes[name].hint == seen else seen

    def _shown(self, name: str, seen: int) -> Any:
        """What a length is called, where it or another is called by a formula of names."""
        every = (name for names in self.opened.values() for name in names.values())
        dim = Dim.of(name)
        if dim is None or all(name.isidentifier() for name in every):
            return None
        for part in dim.names:
            self._names.setdefault(part, Size({(Symbol(part, seen),): 1}))
        return dim.at(self._names)

    def guard(self, guard: Guard) -> None:
        """Remember an assumption, once."""
        if guard.source.kind == "object" and not guard.source.path:
            return  # the object itself is at hand, whatever happens
        self.guards.setdefault((type(guard), guard.source), guard)

    def remark(self, remark: Remark) -> None:
        """Tell the user something about the capture."""
        if remark not in self.remarks:
            self.remarks.append(remark)

    # ---------------------------------------------------------------------------- known values

    def known(self, node: Node) -> Any | None:
        """The value of a node that depends on no array input, as an array; None for any other.

        Numbers it depends on become part of what the compiled code assumes.
        """
        inputs = inputs_of(node)
        reads = [self.read_of(n) for n in inputs]
        if any(r is None or isinstance(r.value, np.ndarray) for r in reads):
            return None
        self.assume(inputs)
        if isinstance(node.op, Constant):
            return node.op.value
        self._spend(node)
        values = [r.value for r in reads if r is not None]
        return evaluate(Graph("", tuple(inputs), (node,)), values, self._fixed(node))[node]

    def _fixed(self, node: Node) -> dict[Symbol, int]:
        """The open lengths, if a node is made with some: from then on they are not open."""
        if not self.sizes or not any(has_sizes(n.op) for n in topological([node])):
            return {}
        sizes = self.sizes.values()
        return {symbol: operator.index(size) for size in sizes for symbol in symbols_of(size)}

    def _spend(self, node: Node) -> None:
        """Note what a value costs that is computed while compiling.  Raises LongLoop beyond the
        budget, as loops that decide by such values come by again and again."""
        if self.budget is None:
            return
        self.budget -= sum(int(hint(n.type.size)) for n in topological([node]))
        if self.budget < 0:
            raise LongLoop("a loop decides by values that are computed while compiling", here())

    def frozen(self, node: Node, error: CaptureError) -> Any:
        """The value the example gives to a node, where values are frozen; else raises the error."""
        if not self.freezing:
            raise error
        self.freezes.append(error)
        reads = [r for r in map(self.read_of, inputs_of(node)) if r is not None]
        graph = Graph("", tuple(r.node for r in reads), (node,))
        return evaluate(graph, [r.value for r in reads])[node]

    def assume(self, inputs: Iterable[Node]) -> None:
        """Make the present values of these number inputs part of what the compiled code assumes."""
        for node in inputs:
            if isinstance(node.op, Length):
                operator.index(node.op.size)  # fixes it
                self.known_nodes.add(node)
            read = self.read_of(node)
            if read is not None:
                if read.source in self.varying or (self.resumed and type(read.value) is float):
                    raise Unsupported(
                        f"{read.source.describe()} differs from call to call, and its value is"
                        " needed here",
                        here(),
                    )
                self.known_nodes.add(node)
                self.guard(ValueGuard(read.source, read.value))

    def limit(self, node: Node, low: int, high: int) -> None:
        """Assume that an int read at run time is within low..high."""
        read = self.read_of(node)
        if read is not None:
            read.low, read.high = max(read.low, low), min(read.high, high)

    def note_refusal(self, stmt: object, reason: Exception) -> None:
        """Why something is not a loop over elements: told if nothing else is made of it."""
        self.refusals[id(stmt)] = reason.with_traceback(None)  # whose frames would keep arrays

    def use(self, inputs: Iterable[Node]) -> None:
        """The program depends on the values of these inputs."""
        for read in map(self.read_of, inputs):
            if read is not None:
                read.used = True

    def read_of(self, node: Node) -> Read | None:
        """The read an input node belongs to."""
        return self._by_node.get(node)


def _strides(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Strides in elements, or None for row-major order."""
    if array.flags.c_contiguous:
        return None
    return tuple(s // array.itemsize for s in array.strides)


def inputs_of(node: Node) -> list[Node]:
    """The graph inputs a node depends on."""
    return [n for n in topological([node]) if isinstance(n.op, Input)]


def _no_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise Unsupported(f"{function!r} cannot be called here")


def _itself(function: Any) -> Any:
    return function


def _no_foreign(array: Any) -> Any:
    raise Unsupported("an array from elsewhere cannot be used here")


class attributed:
    """Nodes made inside get the user's line and layers, and so do errors raised inside the line.

    An error of NumPy's keeps its class and message and gets the excerpt as a note.
    """

    def __init__(self, layers: tuple[str, ...] = ()) -> None:
        self._layers = layers

    def __enter__(self) -> Location | None:
        self._location = here()
        self._at = at(self._location, self._layers)
        self._at.__enter__()
        return self._location

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._at.__exit__(None, None, None)
        location = self._location
        if error is None or location is None:
            return
        if isinstance(error, NbcompError):
            if error.location is None:
                raise type(error)(error.message, location, error.hint) from None
        elif isinstance(error, Exception):
            note = location.excerpt()
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
