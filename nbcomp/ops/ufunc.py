"""`Ufunc`, the base of every operator that is one of NumPy's ufuncs.

Types are NumPy's own: the loop is what `resolve_dtypes` picks, Python numbers being weak (NEP 50),
and the operands are cast to the loop's dtypes.  A subclass gives a docstring, the ufunc, and, where
the scalar functions of the loop IR are not simply applied, `element`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import NUMPY, traces
from nbcomp.graph.op import Elementwise, Sample
from nbcomp.loop.grammar import Apply, Expr, Select, const
from nbcomp.ops import values
from nbcomp.ops.operand import (
    NUMBERS,
    as_array,
    as_node,
    broadcast_shape,
    broadcast_to,
    cast,
    convert,
    operand,
    stand_in,
    supported,
    traced,
    weak_type,
)
from nbcomp.sizes import broadcast_shapes
from nbcomp.types import BOOL, DType, TensorType


@cache
def loop_dtypes(
    fn: np.ufunc,
    operands: tuple[DType | type, ...],
    dtype: DType | None = None,
    casting: str = "same_kind",
) -> tuple[DType, ...]:
    """The dtypes of the loop NumPy runs: of each operand, then of each result.

    An operand is a dtype, or `int` or `float` for a Python number.  Raises NumPy's TypeError where
    there is no loop, and `Unsupported` for dtypes nbcomp does not compile.
    """
    if all(isinstance(d, type) for d in operands):  # numbers only: NumPy's default dtypes
        operands = tuple(np.dtype(d) for d in operands)
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (*(None,) * fn.nin, *(dtype,) * fn.nout)
    if casting != "same_kind" and any(isinstance(d, type) for d in operands):
        fn(*map(_empty, operands), casting=casting, dtype=dtype)  # resolve_dtypes crashes there
    resolve: Any = fn.resolve_dtypes
    found = resolve((*operands, *(None,) * fn.nout), **options)
    return tuple(supported(d, f"np.{fn.__name__}") for d in found)


def _empty(operand: DType | type) -> Any:
    """An operand of this dtype without elements; a Python number is a number."""
    return operand(1) if isinstance(operand, type) else np.empty(0, operand)


@dataclass(frozen=True)
class Ufunc(Elementwise):
    """A NumPy ufunc with one result."""

    fn: ClassVar[np.ufunc]
    on_bool: ClassVar[str] = ""  # the scalar function that has the ufunc's meaning on bool
    ulp: ClassVar[float] = 0.0  # how far from NumPy's result another right one may be

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.numpy:
            cls.fn = cls.numpy[0]
        if cls.numpy and cls.fn.nin == 2:
            traces(cls.fn.outer)(cls.outer)

    def infer(self, *types: TensorType) -> TensorType:
        dtype = loop_dtypes(self.fn, tuple(t.dtype for t in types))[self.fn.nin]
        return TensorType(dtype, broadcast_shape(self.fn, *types))

    def reference(self, *arrays: Any) -> Any:
        return self.fn(*arrays)

    def scalar(self, *args: Expr) -> Expr:
        loop = loop_dtypes(self.fn, tuple(a.dtype for a in args))
        operands = (convert(a, d) for a, d in zip(args, loop, strict=False))
        return self.element(loop[self.fn.nin], *operands)

    def element(self, dtype: DType, *args: Expr) -> Expr:
        """The element, of this dtype, from operands that have the dtypes of the loop."""
        plain = self.on_bool if self.on_bool and args[0].dtype == BOOL else self.fn.__name__
        return Apply(dtype, plain, args)

    @classmethod
    def trace(cls, *args: Any, **options: Any) -> Node:
        node: Node = write(cls.fn, args, options, lambda *nodes: apply(cls(), *nodes))
        return node

    @classmethod
    def outer(cls, A: Any, B: Any, **options: Any) -> Node:
        """The ufunc of every element of A with every element of B: `np.add.outer`."""
        a = as_array(A)
        b = as_array(B)
        if b.shape:
            a = traced(np.reshape, a, (*a.shape, *(1,) * len(b.shape)))
        return cls.trace(a, b, **options)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for loop in _loops(cls.fn):
            arrays = tuple(values.mixed(rng, d) for d in loop)
            yield Sample(cls(), arrays, cls.ulp)
        wide = _loops(cls.fn)[-1]
        shapes = [(s,) for s in values.SHAPES] if cls.fn.nin == 1 else values.PAIRS
        for group in shapes:
            arrays = tuple(values.ordinary(rng, d, s) for d, s in zip(wide, group, strict=False))
            yield Sample(cls(), arrays, cls.ulp)


def _loops(fn: np.ufunc) -> list[tuple[DType, ...]]:
    """The operand dtypes of the ufunc's own loops that nbcomp compiles, each once; mixed pairs
    too.
    """
    known: dict[str, DType] = {d.char: d for d in values.DTYPES}
    own = [sig.split("->")[0] for sig in fn.types]
    found = [tuple(known[c] for c in chars) for chars in own if set(chars) <= set(known)]
    pairs = [("f", "d"), ("b", "f"), ("?", "i"), ("B", "b"), ("l", "L"), ("L", "l"), ("e", "B")]
    mixed = [tuple(known[c] for c in pair) for pair in pairs if fn.nin == 2 and _resolves(fn, pair)]
    return list(dict.fromkeys((*found, *mixed)))


def _resolves(fn: np.ufunc, chars: tuple[str, ...]) -> bool:
    try:
        loop_dtypes(fn, tuple(map(np.dtype, chars)))
    except (TypeError, Unsupported):
        return False
    return True


# ---------------------------------------------------------------------------- calling a ufunc


def write(fn: np.ufunc, args: tuple[Any, ...], options: dict[str, Any], build: Any) -> Any:
    """The call `fn(*args, **options)` in nodes; `build` gets the operands, cast to the loop's
    dtypes.

    `out=` (a node) gives the value the caller has to write to it, `where=` needs an `out=`.  Raises
    what the ufunc raises.
    """
    out, where, dtype, casting = _options(fn, options)
    if len(args) != fn.nin:
        if len(args) == fn.nin + fn.nout:  # results may be passed by position
            return write(fn, args[: fn.nin], {**options, "out": args[fn.nin :]}, build)
        fn(*map(stand_in, args))
    operands = [a if type(a) in NUMBERS else as_node(a) for a in args]
    loop = loop_dtypes(fn, tuple(map(_asked, operands)), dtype, casting)
    if isinstance(out, Node):
        _check_written(fn, loop[fn.nin], out.type.dtype, casting)
    result = build(*(operand(a, d) for a, d in zip(operands, loop, strict=False)))
    if out is None:
        if where is not True:
            raise Unsupported(
                f"the argument where= of np.{fn.__name__} without out= leaves elements undefined",
                hint=f"np.where(mask, np.{fn.__name__}(…), other)",
            )
        return result
    return _into(fn, result, out, where)


def _options(fn: np.ufunc, options: dict[str, Any]) -> tuple[Any, Any, DType | None, str]:
    rest = dict(options)
    out, where = rest.pop("out", None), rest.pop("where", True)
    if isinstance(out, tuple):
        out = out[0] if len(out) == 1 else out
    dtype, casting = rest.pop("dtype", None), rest.pop("casting", "same_kind")
    if rest.pop("order", "K") not in ("K", "C", "A") or rest.pop("subok", True) not in (
        True,
        False,
    ):
        raise Unsupported(
            f"order= and subok= of np.{fn.__name__} are not compiled", hint="leave them out"
        )
    for name in rest:
        if name in ("signature", "sig"):
            raise Unsupported(f"{name}= of np.{fn.__name__} is not compiled", hint="use dtype=")
        fn(*(1,) * fn.nin, **{name: rest[name]})  # NumPy's own complaint
    known = None if dtype is None else supported(dtype, f"np.{fn.__name__}")
    return (None if out is Ellipsis else out), where, known, casting


def _asked(value: Any) -> DType | type:
    if type(value) in NUMBERS:
        return BOOL if type(value) is bool else type(value)
    weak = weak_type(value)
    found: DType | type = weak or value.type.dtype
    return found


def _check_written(fn: np.ufunc, dtype: DType, target: DType, casting: str) -> None:
    """Raise NumPy's TypeError where a result of this dtype may not be written to the target."""
    rule: Any = casting
    if not np.can_cast(dtype, target, rule):
        asked: Any = fn.resolve_dtypes
        asked(((dtype,) * fn.nin + (target,)), casting=casting)
        raise TypeError(
            f"Cannot cast ufunc '{fn.__name__}' output from {dtype!r} "
            f"to {target!r} with casting rule '{casting}'"
        )


def _into(fn: np.ufunc, result: Node, out: Any, where: Any) -> Node:
    """The value of `out` after the call."""
    if not isinstance(out, Node):
        raise Unsupported(
            f"np.{fn.__name__} writes to an array nbcomp does not know",
            hint="pass the array as an argument of the function, or use the result",
        )
    target = out.type
    shape = broadcast_shapes(result.shape, target.shape)
    if shape != target.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {_spelt(target.shape)} "
            f"doesn't match the broadcast shape {_spelt(shape)}"
        )
    value = broadcast_to(cast(result, target.dtype), target.shape)
    if where is True:
        return value
    chosen: Node = NUMPY[np.where].trace(where, value, out)
    return chosen


def _spelt(shape: tuple[int, ...]) -> str:
    """A shape as NumPy's ufunc errors print it."""
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


# ------------------------------------------------------------------- building scalar expressions


def call(fn: str, *args: Expr) -> Expr:
    """A scalar function whose result has the dtype of its first operand."""
    return Apply(args[0].dtype, fn, args)


def test(fn: str, *args: Expr) -> Expr:
    """A scalar function whose result is bool."""
    return Apply(BOOL, fn, args)


def like(value: float, x: Expr) -> Expr:
    """A literal of the dtype of x."""
    return const(value, x.dtype)


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """yes where the condition holds, else no."""
    return Select(yes.dtype, condition, yes, no)


def widened(x: Expr) -> Expr:
    """float16 as float32, in which NumPy computes it; others as they are."""
    return convert(x, np.dtype(np.float32)) if x.dtype == np.float16 else x
