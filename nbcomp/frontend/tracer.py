"""`Tracer`: stands for an array (or NumPy scalar) while the user's function runs.

It has an ndarray's operators, methods and properties.  Questions about dtype and shape have static
answers; arithmetic goes to the session, which turns it into nodes; whatever needs the values is
refused with a message about the very expression.  `isinstance(x, np.ndarray)` answers True (and
np.float64 and so on for scalars), through `__class__`: user code that checks its arguments keeps
working, while NumPy's own C code looks at the real type and is not fooled.
"""

from __future__ import annotations

import difflib
import functools
import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.idioms import refusal
from nbcomp.frontend.location import here
from nbcomp.frontend.number import Number, known, length, symbol
from nbcomp.frontend.session import Session
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.whole_numbers import FUNCTIONS, checked, is_counting
from nbcomp.graph.ir import Node
from nbcomp.graph.op import Input
from nbcomp.ops.operand import constant
from nbcomp.runtime.plan import Source
from nbcomp.sizes import is_open
from nbcomp.types import DType

STANDS_IN = ", known at run time>"  # ends the representation of a tracer
LONGEST_POWER = 64  # of a Python int known at run time, as products
MOST_ITERATIONS = 2_000  # of a loop over an array, all of which become nodes


class ExtraMethods(dict[str, Callable[..., Any]]):
    """Methods that arrays have beyond NumPy's, by name; `kind` is the class of such arrays."""

    kind: type = np.ndarray


# Those that arrays have where the program is now: in a layer's `forward`, `nbcomp.nn.Tensor`'s.
EXTRA_METHODS: ContextVar[ExtraMethods | None] = ContextVar("extra_methods", default=None)


class MixedBool:
    """In the place of the type of a bool that is Python's or NumPy's, which is known at run time
    only: its truth is the same, its arithmetic is not."""


class Held(NamedTuple):
    """The object that stands for an array, of which a tracer is: its class, where it is found, and
    what gives its other attributes, lifted."""

    kind: type
    source: Source
    attribute: Callable[[str], Any]


class Tracer:
    """An array in the user's program: a place in a storage.

    scalar: NumPy would have a NumPy scalar here, not a 0-d array; it cannot be written to.  python:
    the type, where NumPy would even have a Python object.  held: the user's object, such as a
    parameter, that this is the array of.
    """

    __slots__ = ("_held", "_place", "_python", "_scalar", "_session", "_type")

    def __init__(self, session: Session, place: Place, scalar: bool = False) -> None:
        self._session, self._place, self._scalar = session, place, scalar
        self._type = place.read().type
        self._python: type | None = None
        self._held: Held | None = None

    # ------------------------------------------------------------------------- static answers

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        if self._held is not None:
            return self._held.kind
        python = None if self._python is MixedBool else self._python
        return python or _kind(self)

    @property
    def dtype(self) -> DType:
        """The dtype."""
        touch(self)
        return self._type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        shape = shape_of(self)
        if not is_open(shape):
            return shape
        return tuple(length(self._session, n) for n in shape)

    @shape.setter
    def shape(self, value: Any) -> None:
        raise Unsupported("x.shape = ... is not compiled", here(), "x = x.reshape(...)")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(shape_of(self))

    @property
    def size(self) -> int:
        """Number of elements."""
        touch(self)
        return length(self._session, self._type.size)  # type: ignore[no-any-return]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Byte strides, as NumPy would have laid the array out."""
        strides: tuple[int, ...] = certain_layout(self).strides
        return strides

    @property
    def flags(self) -> Any:
        """The memory flags, as NumPy would have laid the array out."""
        return certain_layout(self).flags

    def __len__(self) -> int:
        if not self.shape:
            kind = f"object of type 'numpy.{self._type.dtype.type.__name__}' has no len()"
            raise TypeError(kind if self._scalar else "len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            name = f"numpy.{self._type.dtype.type.__name__}"
            raise TypeError(
                f"'{name}' object is not iterable" if self._scalar else "iteration over a 0-d array"
            )
        if len(self) > MOST_ITERATIONS:
            raise Unsupported(
                f"a loop over {len(self)} elements would be written out one by one",
                here(),
                "NumPy functions and operators on the whole array",
            )
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> Any:
        """All axes reversed."""
        return self._session.call(np.transpose, (self,), {})

    @property
    def mT(self) -> Any:
        """The last two axes swapped."""
        return self._session.call(np.matrix_transpose, (self,), {})

    @property
    def real(self) -> Any:
        """The real part: itself."""
        return plain(self)

    @property
    def imag(self) -> Any:
        """The imaginary part: zeros."""
        return self._session.call(np.imag, (self,), {})

    def conj(self) -> Any:
        """The complex conjugate: itself."""
        return plain(self)

    conjugate = conj

    @property
    def data(self) -> Any:
        """The array in a parameter; of other arrays their memory, which is not compiled."""
        if self._held is None:
            raise_attribute(self, "data")
        return plain(self)

    @data.setter
    def data(self, value: Any) -> None:
        if type(value) is not Tracer or value._place is not self._place:
            raise Unsupported(
                "the function sets .data; a compiled function only writes to arrays",
                here(),
                "p[...] = value, or p -= value, writes to the array that is there",
            )

    @property
    def base(self) -> Any:
        """The array this one is a view of."""
        raise Unsupported("x.base is not compiled: which object owns the memory", here())

    @property
    def flat(self) -> Any:
        """Not compiled."""
        raise Unsupported(
            "x.flat is not compiled",
            here(),
            "x.ravel() for reading, x.reshape(-1)[i] = v for writing",
        )

    # ------------------------------------------------------------------------------ functions

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._session.call(
            ufunc if method == "__call__" else getattr(ufunc, method), args, kwargs
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._session.call(function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self._session.call(operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self._session.call(operator.setitem, (self, index, value), {})

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """Another shape, the same elements."""
        wanted = shape[0] if len(shape) == 1 else shape
        return self._session.call(np.reshape, (self, wanted), {"order": order, "copy": copy})

    def transpose(self, *axes: Any, **named: Any) -> Any:
        """The axes in another order."""
        if (extra := self._extra("transpose")) is not None:
            return extra(self, *axes, **named)
        if named:
            raise TypeError("transpose() takes no keyword arguments")
        order = None if not axes else axes[0] if len(axes) == 1 else axes
        return self._session.call(np.transpose, (self, order), {})

    def _extra(self, name: str) -> Callable[..., Any] | None:
        """A method that arrays have beyond NumPy's where the program is now."""
        extra = EXTRA_METHODS.get()
        known = extra is not None and name in extra and (self._held or _kind(self) is extra.kind)
        return extra[name] if known and extra is not None else None

    def __getattr__(self, name: str) -> Any:
        touch(self)
        if self._held is not None and name in vars(self._held.kind) and name[0] != "_":
            return self._held.attribute(name)
        if (extra := self._extra(name)) is not None:
            return functools.partial(extra, self)
        if name in METHODS:
            function = getattr(np, name)
            return lambda *args, **kwargs: self._session.call(function, (self, *args), kwargs)
        if name in NEEDS_VALUE or name in OTHER_METHODS:
            return lambda *args, **kwargs: self._session.call(
                getattr(np.ndarray, name), (self, *args), kwargs
            )
        raise_attribute(self, name)

    # -------------------------------------------------------------------------- the values

    def __bool__(self) -> bool:
        return bool(self._value("bool"))

    def __int__(self) -> int:
        return int(self._value("int"))

    def __float__(self) -> float:
        return float(self._value("float"))

    def __complex__(self) -> complex:
        return complex(self._value("complex"))

    def __index__(self) -> int:
        if self._type.dtype.kind not in "iu" or self._type.shape:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return operator.index(self._value("index"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self._value("array")
        return np.array(value, dtype)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def _value(self, purpose: str) -> Any:
        """The value, where it is known when compiling: it depends on no array input."""
        self._session.check()
        node = read(self)
        value = self._session.known(node)
        if value is None:
            error = refusal(purpose, here(), str(self._type))
            value = self._session.frozen(node, error)
        return value[()] if self._scalar else value

    def __hash__(self) -> int:
        if self._scalar:
            return hash(self._value("hash"))
        if self._held is not None:
            return object.__hash__(self)
        raise TypeError("unhashable type: 'numpy.ndarray'")

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __repr__(self) -> str:
        kind = "scalar" if self._scalar else "array"
        return f"<{kind} {self._type}{STANDS_IN}"

    def __str__(self) -> str:
        return str(self._text())

    def __format__(self, spec: str) -> str:
        return format(self._value("format") if spec else self._text(), spec)

    def _text(self) -> Any:
        """The value, where it is known, to be written; raises `Unsupported` elsewhere."""
        self._session.check()
        value = self._session.known(read(self))
        if value is None:
            hint = "make the text of what the function returns"
            raise Unsupported("the text of an array known at run time", here(), hint)
        return value[()] if self._scalar else value

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None and self._scalar:
            return int(self)
        _numpys_only(self, "round(...)")
        return self._session.call(np.round, (self, digits or 0), {})


def touch(tracer: Tracer) -> None:
    """Note that the program depends on the type of this array."""
    tracer._session.check()
    source = tracer._place.storage.read
    if source is not None:
        source.used = True


def plain(tracer: Tracer) -> Tracer:
    """The array itself, of one that an object of the user's stands for."""
    if tracer._held is None:
        return tracer
    return Tracer(tracer._session, tracer._place, tracer._scalar)


def _kind(tracer: Tracer) -> type:
    """The class of an array: where arrays have further methods, theirs, but for numbers, for those
    that the program finds in objects and variables, and for what NumPy makes of no array."""
    extra, storage = EXTRA_METHODS.get(), tracer._place.storage
    if tracer._scalar:
        return tracer._type.dtype.type
    if extra is None:
        return np.ndarray
    if storage.read is not None and not storage.model:
        source = storage.read.source
        given = source.kind == "argument" and all(how == "item" for how, _ in source.path)
        return extra.kind if given else np.ndarray
    return extra.kind if storage.model or _is_computed(tracer) else np.ndarray


def _is_computed(tracer: Tracer) -> bool:
    """Whether an array is made of others that the program was given, or of a model's."""
    waiting, seen = [tracer._place.storage.node], set[Node]()
    while waiting:
        node = waiting.pop()
        if isinstance(node.op, Input) or node in tracer._session.given:
            return True
        if node not in seen:
            seen.add(node)
            waiting += node.inputs
    return False


def give(value: Any) -> None:
    """Note that a model is given this array, whatever it is made of."""
    if type(value) is Tracer and not value._scalar:
        value._place.storage.model = True
        value._session.given.add(value._place.storage.node)


def shape_of(tracer: Tracer) -> tuple[int, ...]:
    """The shape as the compiler has it, with sizes for lengths that are open."""
    touch(tracer)
    return tracer._type.shape


def length_of(value: Any) -> Any:
    """`len(value)`, which of an array may be open."""
    if type(value) is Tracer and value._type.shape:
        return value.shape[0]
    return len(value)


def read(tracer: Tracer) -> Node:
    """The node of an array's present value."""
    touch(tracer)
    return tracer._place.read()


def certain_layout(tracer: Tracer) -> Any:
    """A stand-in with NumPy's layout; raises `Unsupported` where it is not known."""
    touch(tracer)
    if not tracer._place.storage.certain:
        raise Unsupported(
            "the memory layout of this result is not known when compiling",
            here(),
            "np.ascontiguousarray(x) has a known one",
        )
    return tracer._place.layout


def raise_attribute(tracer: Tracer, name: str) -> NoReturn:
    """The error for an attribute that arrays do not have, or that is not compiled."""
    kind = tracer._type.dtype.type if tracer._scalar else np.ndarray
    if hasattr(kind, name) and not name.startswith("_"):
        raise Unsupported(f"the array attribute .{name} is not compiled", here())
    close = difflib.get_close_matches(name, [n for n in dir(kind) if n[0] != "_"], 2)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    error = AttributeError(f"'numpy.{kind.__name__}' object has no attribute {name!r}{hint}")
    location = here()
    if location is not None and not name.startswith("_"):
        error.add_note(location.excerpt())
    raise error


# Methods that are a NumPy function of the same arguments.
METHODS = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "choose"),
    *("cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min"),
    *("nonzero", "prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum"),
    *("swapaxes", "take", "trace", "var"),
)
# Methods that write to the array, or have no function of the same arguments.
OTHER_METHODS = (
    "astype",
    "clip",
    "compress",
    "copy",
    "fill",
    "flatten",
    "partition",
    "put",
    "sort",
    "view",
)
# Methods that hand out values.
NEEDS_VALUE = ("item", "tolist", "tobytes", "tofile", "dump", "dumps")


# ---------------------------------------------------------------------------------- operators


def _arithmetic(name: str, ufunc: Any) -> None:
    """The operator `name`, reflected and in place."""

    def forward(self: Tracer, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        _in_64_bits(self, other)
        if name == "lshift" and self._python is int and type(other) is int and 0 <= other < 63:
            return self * (1 << other)  # type: ignore[operator]
        return _python_number(name, self, other, self._session.call(ufunc, (self, other), {}))

    def reflected(self: Tracer, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        _in_64_bits(self, other)
        return _python_number(name, other, self, self._session.call(ufunc, (other, self), {}))

    def in_place(self: Tracer, other: Any) -> Any:
        if self._scalar or not _operand(other):
            return NotImplemented
        return self._session.call(ufunc, (self, other), {"out": (self,)})

    setattr(Tracer, f"__{name}__", forward)
    setattr(Tracer, f"__r{name}__", reflected)
    setattr(Tracer, f"__i{name}__", in_place)


def _in_64_bits(number: Tracer, other: Any) -> None:
    """Refuse a Python int that a Python int known at run time only cannot meet in 64 bits."""
    value = other._value if type(other) is Number else other
    if number._python is int and type(value) is int and not -(2**63) <= value < 2**63:
        raise Unsupported("a Python int beyond 64 bits", here())


def _python_number(name: str, a: Any, b: Any, result: Any) -> Any:
    """The result of an operator, as a Python number where both operands are."""
    kinds = {_python_kind(a), _python_kind(b)}
    if not kinds <= {int, float, bool, MixedBool}:
        return result
    _one_kind(kinds)
    divides = name in ("truediv", "floordiv", "mod")
    if name in ("lshift", "rshift", "pow") and float not in kinds:
        raise Unsupported(
            "shifts and powers of Python ints known only at run time: NumPy's wrap",
            here(),
            "products, or an array of the dtype that is meant",
        )
    if name == "pow":
        raise Unsupported(
            "powers of Python floats known only at run time: NumPy's are others",
            here(),
            "np.power(...), or an array of the dtype that is meant",
        )
    bits = name in ("and", "or", "xor") and int in kinds
    if not (divides or bits or name in FUNCTIONS):
        return result
    if kinds == {bool} or (divides and (is_traced(b) or not b)):
        raise Unsupported(
            "arithmetic of Python's bools, or a division by a Python number, known only at run"
            " time: NumPy's is another",
            here(),
        )
    python = float if float in kinds or name == "truediv" else int
    node = read(result)
    if python is int and name in FUNCTIONS:
        node = _checked(result._session, name, _whole(a), _whole(b)) or node
    number = Tracer(result._session, Place(Storage(replace(node, weak=True))), True)
    number._python = python
    return number


def _one_kind(kinds: set[type | None]) -> None:
    """Refuse arithmetic of a bool of which it is not known whose it is."""
    if MixedBool in kinds:
        raise Unsupported(
            "arithmetic of a bool that is Python's on one way and NumPy's on another",
            here(),
            "bool(...) of what NumPy gave",
        )


def _checked(session: Session, name: str, a: Node, b: Node) -> Node | None:
    """The result of arithmetic that may leave 64 bits; None where it cannot."""
    if is_counting(name, a, b):
        return None
    node, check = checked(name, a, b)
    session.effects.append(check)
    return node


def _whole(value: Any) -> Node:
    """A Python int or bool as a node."""
    known = read(value) if type(value) is Tracer else symbol(value)
    return known if isinstance(known, Node) else constant(np.asarray(known, np.int64))


def _python_kind(value: Any) -> type | None:
    """The type of a Python number, known at run time only or now."""
    if type(value) is Tracer:
        return value._python
    return value.__class__ if type(value) is Number else type(value)


def _operand(value: Any) -> bool:
    """Whether NumPy would take this as an operand rather than let the other side decide."""
    return getattr(type(value), "__array_ufunc__", value) is not None


def _unary(name: str, function: Any) -> None:
    def method(self: Tracer, *args: Any) -> Any:
        _one_kind({self._python})
        result = self._session.call(function, (self, *args), {})
        if self._python not in (int, float):
            return result
        if self._python is int and name in ("neg", "abs"):  # -2⁶³ has no negative in 64 bits
            negative = 0 - self  # type: ignore[operator]
            if name == "neg":
                return negative
            result = self._session.call(np.maximum, (self, negative), {})
        return _python_number("add", self, 0, result)

    setattr(Tracer, f"__{name}__", method)


def _comparison(name: str, ufunc: Any) -> None:
    def method(self: Tracer, other: Any) -> Any:
        if name in ("eq", "ne") and not _comparable(other):
            return self._session.call(np.full, (self.shape, name == "ne"), {})
        if not _operand(other):
            return NotImplemented
        result = self._session.call(ufunc, (self, other), {})
        kinds = {_python_kind(self), _python_kind(other)}
        if kinds <= {int, float, bool, MixedBool}:
            result._python = MixedBool if MixedBool in kinds else bool
        return result

    setattr(Tracer, f"__{name}__", method)


def _comparable(value: Any) -> bool:
    """Whether an array could equal it; comparing with None or a string is False elementwise."""
    return value is not None and not isinstance(value, str | bytes)


BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
for _name, _ufunc in BINARY.items():
    _arithmetic(_name, _ufunc)
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
COMPARISON = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
for _name, _ufunc in UNARY.items():
    _unary(_name, _ufunc)
for _name, _ufunc in COMPARISON.items():
    _comparison(_name, _ufunc)


def _power(self: Tracer, other: Any, *modulus: Any) -> Any:
    """`x ** y`: np.power, but NumPy's operator takes squares of bool arrays by np.square.

    modulus: that of `pow`, which arrays have none of.
    """
    if modulus and self._python is int:
        raise Unsupported("pow(x, y, z) of a Python int known only at run time", here())
    if modulus:
        return NotImplemented
    if type(other) in (int, Number) and self._type.dtype.kind == "b" and not self._scalar:
        other = known(other)
        if type(other) is int and other == 2:
            return self._session.call(np.square, (self,), {})
    if not _operand(other):
        return NotImplemented
    if self._python is int and type(other) is int and 0 < other <= LONGEST_POWER:
        return functools.reduce(operator.mul, [self] * other)  # checked, as products are
    result = self._session.call(np.power, (self, other), {})
    if self._python is int:
        return _python_number("pow", self, other, result)
    if type(other) is int and self._python is float:
        return _python_number("add", self, 0, result)
    _numpys_only(self, "a power", other)
    return result


def _numpys_only(number: Tracer, what: str, other: Any = None) -> None:
    """Refuse what Python does otherwise than NumPy, of numbers that are both Python's."""
    if {_python_kind(number), _python_kind(other)} <= {int, float, bool, MixedBool, type(None)}:
        raise Unsupported(f"{what} of a Python number known only at run time", here())


def _divmod(self: Tracer, other: Any) -> Any:
    _numpys_only(self, "divmod", other)
    return self._session.call(np.divmod, (self, other), {})


def _rdivmod(self: Tracer, other: Any) -> Any:
    _numpys_only(self, "divmod", other)
    return self._session.call(np.divmod, (other, self), {})


for _name, _method in (("pow", _power), ("divmod", _divmod), ("rdivmod", _rdivmod)):
    setattr(Tracer, f"__{_name}__", _method)


def is_traced(value: Any) -> bool:
    """Whether this stands for something known at run time only."""
    return type(value) in (Tracer, Number)


def holds_traced(value: Any) -> bool:
    """Whether there is something traced in this nested list, tuple or dict."""
    if isinstance(value, list | tuple):
        return any(map(holds_traced, value))
    if isinstance(value, dict):
        return any(map(holds_traced, value.values()))
    if isinstance(value, slice):
        return any(map(is_traced, (value.start, value.stop, value.step)))
    return is_traced(value)
