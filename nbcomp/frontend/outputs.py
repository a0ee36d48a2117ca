"""What a traced function returned, as graph outputs and a result tree.

An array of the caller's is given back itself; views of one array that are returned together stay
views of one array; everything else is an output of its own.  Knows tracers and result trees.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from nbcomp.errors import CaptureError, Unsupported, an
from nbcomp.frontend.lift import Lazy, Lifter
from nbcomp.frontend.namespace import Namespace
from nbcomp.frontend.number import Number, known
from nbcomp.frontend.objects import source_of
from nbcomp.frontend.result import Chosen, Out, Own, Record, Static, Tree, Varied, ViewOf, choice
from nbcomp.frontend.selection import Selection, refusal
from nbcomp.frontend.session import Session
from nbcomp.frontend.storage import Storage, memory_order
from nbcomp.frontend.tracer import STANDS_IN, MixedBool, Tracer
from nbcomp.graph.ir import Node
from nbcomp.graph.op import Input, Op
from nbcomp.ops.move import Transpose, transposed
from nbcomp.shapes import Shaped
from nbcomp.sizes import Size

STATIC = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    slice,
    range,
    type,
    np.dtype,
    np.generic,
)


Remade = Callable[[Any, Callable[[Any], Tree]], Tree | None]


class Outputs:
    """Collects the outputs of one graph.  nodes: in order.  scalars: which are NumPy scalars.
    orders: the axes of an output, outermost in memory first, where NumPy's layout is known.

    remade: gives the tree of what no function returns but a running program has; None if it cannot.
    """

    first = Out(0)

    def __init__(self, session: Session, lifter: Lifter, remade: Remade | None = None) -> None:
        self._remade = remade
        self.session, self.lifter = session, lifter
        self.nodes: list[Node] = []
        self.scalars: set[int] = set()
        self.orders: dict[int, tuple[int, ...]] = {}
        # Leaves and containers by the id of the object they stand for, which is kept alive.
        self._made: dict[int, tuple[Any, Tree]] = {}
        self._bases: dict[int, tuple[Out, tuple[Op, ...]]] = {}  # outputs that are whole storages
        self._places: dict[int, set[int]] = {}  # returned places by storage

    def add(self, node: Node) -> int:
        """A further output."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def tree(self, value: Any) -> Tree:
        """The result tree of what the function returned."""
        self._survey(value, {})
        return self._tree(value)

    def _survey(self, value: Any, seen: dict[int, Any]) -> None:
        """Note which storages are returned in more than one form."""
        if id(value) in seen:
            return
        seen[id(value)] = value
        if type(value) is Tracer:
            self._places.setdefault(id(value._place.storage), set()).add(id(value))
        for part in self._parts(value):
            self._survey(part, seen)

    def _parts(self, value: Any) -> Iterable[Any]:
        """What a value holds that is handed out with it."""
        if isinstance(value, tuple | list):
            return value
        if isinstance(value, dict):
            return value.values()
        if _is_record(value):
            return [getattr(value, field.name) for field in dataclasses.fields(value)]
        parts: list[Any] = []
        if self._remade and not self._is_at_hand(value):  # iterators, functions, methods

            def note(part: Any) -> Tree:
                parts.append(part)
                return ()

            self._remade(value, note)
        return parts

    def _is_at_hand(self, value: Any) -> bool:
        """Whether an object is given back as it is found or known, whatever it holds."""
        found = source_of(value) is not None or id(value) in self.lifter.given
        return found or type(value) in (Number, Lazy) or self.lifter.original(value) is not None

    def _tree(self, value: Any) -> Tree:
        if id(value) not in self._made:
            self._made[id(value)] = value, self._new(value)
        return self._made[id(value)][1]

    def _new(self, value: Any) -> Tree:
        if type(value) is Tracer:
            return self._array(value)
        if type(value) is Number:
            return self._number(value)
        if type(value) is Varied:
            parts = {"value": self._tree(value.value), "tag": self._tree(value.tag)}
            return Record(value.make, parts)
        if type(value) is Chosen:
            parts = {"which": self._tree(value.which), "values": self._tree(value.values)}
            return Record(choice, parts)
        if type(value) is Lazy:
            return Own(value.source)
        if id(value) in self.lifter.containers:
            return Own(self.lifter.containers[id(value)][2])
        if type(value) is tuple:
            return tuple(self._tree(v) for v in value)
        if type(value) is list:
            return [self._tree(v) for v in value]
        if type(value) is dict:
            return {known(k): self._tree(v) for k, v in value.items()}
        return self._object(value)

    def _object(self, value: Any) -> Tree:
        source = source_of(value) or self.lifter.given.get(id(value))
        if source is not None:
            return Own(source)
        original = self.lifter.original(value)
        if original is not None:
            return Static(original)
        made = self._remade(value, self._tree) if self._remade else None
        if made is not None:
            return made
        names = getattr(type(value), "_fields", None)
        if isinstance(value, tuple) and names is not None:
            fields = dict(zip(names, map(self._tree, value), strict=True))
            return Record(self._class(value), fields)
        if _is_record(value):
            names = [f.name for f in dataclasses.fields(value) if f.init]
            return Record(self._class(value), {n: self._tree(getattr(value, n)) for n in names})
        return self._static(value)

    def _static(self, value: Any) -> Tree:
        """A value known when compiling; nothing of the tracing must reach the caller in it."""
        if type(value) is Selection:
            raise refusal("x[mask] as a result", value.location)
        if type(value) is slice:
            return Static(slice(known(value.start), known(value.stop), known(value.step)))
        value = self.session.numpy_function(value)
        if _is_internal(value) or (isinstance(value, str) and STANDS_IN in value):
            raise Unsupported(
                f"{self.session.name} returns {an(type(value).__name__)} that was made while"
                " compiling and has no meaning outside",
                self.session.returns,
                hint="return arrays, numbers, and tuples, lists and dicts of them",
            )
        if isinstance(value, STATIC) or callable(value) or isinstance(value, np.ndarray):
            return Static(value)
        raise CaptureError(
            f"{self.session.name} returns {an(type(value).__name__)}; a compiled function returns"
            " arrays, numbers, and tuples, lists, dicts and data classes of them",
            self.session.returns,
        )

    def _class(self, value: Any) -> Any:
        """The user's class of a record, not the lifted one."""
        return self.lifter.original(type(value)) or type(value)

    def _number(self, value: Number) -> Tree:
        node = value._node
        if isinstance(value._value, Size):
            return Out(self.add(node), int)
        if isinstance(node.op, Input):
            read = self.session.read_of(node)
            assert read is not None
            return Own(read.source)
        if value._roots <= self.session.known_nodes:
            return Static(value._value)
        self.session.use(value._roots)
        return Out(self.add(node), float)

    def _array(self, value: Tracer) -> Tree:
        if value._held is not None:
            return Own(value._held.source)
        place = value._place
        storage = place.storage
        if value._scalar:
            return self._scalar(value)
        read_only = storage.read is None and not place.is_writable()
        if place.broadcast or (read_only and not place.derived):
            raise Unsupported(
                "a result that NumPy makes a read-only or shared view", hint="return .copy() of it"
            )
        if storage.read is not None:
            own = Own(storage.read.source)
            return ViewOf(own, self._checked(value)) if place.derived else own
        bases = list(storage.bases())
        places = len(self._places[id(storage)])
        doubts = [d for d in storage.doubts if d is not storage or places > 1]
        if any(id(other) in self._places for other in (*doubts, *bases)):
            raise self._unclear()
        if any(base.read is not None for base in bases):
            raise self._unclear()
        if places == 1 and not read_only:
            index = self.add(place.read())
            if storage.certain:
                self.orders[index] = memory_order(place)
            return Out(index)
        base, turned = self._base(storage)
        return ViewOf(base, turned + place.views) if place.derived or turned else base

    def _scalar(self, value: Tracer) -> Tree:
        read = value._place.storage.read
        if read is not None:
            return Own(read.source)
        if value._python is MixedBool:
            raise Unsupported(
                "whether a bool that is returned is Python's or NumPy's is known only at run time",
                hint="return bool(...) of it",
            )
        index = self.add(value._place.read())
        self.scalars.add(index)
        return Out(index, value._python)

    def _base(self, storage: Storage) -> tuple[Out, tuple[Op, ...]]:
        """The output that holds a whole storage, and the view of it that is laid out as NumPy's.

        New arrays are made in row-major order; one that NumPy lays out otherwise, transposed.
        """
        if id(storage) not in self._bases:
            strides = storage.stand_in().strides
            axes = sorted(range(len(strides)), key=lambda axis: -strides[axis])
            node = transposed(storage.node, axes)
            back = tuple(map(int, np.argsort(axes)))
            turned = () if node is storage.node else (Transpose(back),)
            self._bases[id(storage)] = Out(self.add(node)), turned
        return self._bases[id(storage)]

    def _checked(self, value: Tracer) -> tuple[Op, ...]:
        """The views of the caller's array, made sure to be views when NumPy takes them again."""
        base = array = value._place.storage.stand_in()
        for op in value._place.views:
            array = op.reference(array)
        if isinstance(array, Shaped):
            shared = isinstance(base, Shaped) and array.memory is base.memory
        else:
            shared = not array.size or np.may_share_memory(array, base)
        if not shared:
            raise self._unclear()
        return value._place.views

    def _unclear(self) -> Unsupported:
        return Unsupported(
            f"which results of {self.session.name} share memory is not clear when compiling",
            hint="return copies",
        )


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _is_internal(value: Any) -> bool:
    """Whether this belongs to the tracing, or is a function that may hold something that does."""
    if isinstance(value, np.ndarray):
        return type(value) is not np.ndarray or value.dtype.hasobject
    if type(value).__module__.startswith("nbcomp.frontend.") or isinstance(value, np.errstate):
        return True
    if not callable(value) or isinstance(value, type | np.ufunc | types.BuiltinFunctionType):
        return False
    if not isinstance(value, types.FunctionType):
        return not (getattr(value, "__module__", None) or "").startswith("numpy")
    ours = (getattr(value, "__module__", None) or "").startswith("nbcomp.")
    return ours or isinstance(value.__globals__, Namespace)
