"""What one scalar function of the loop IR becomes in LLVM: `emit`, `cast`, and what they cost.

The functions are NumPy's ufuncs, by name and with NumPy's meaning to the bit on x86-64, on scalars
and on vectors alike.  Knows dtypes and names; the code itself is in `integers`, `floats` (exact
functions) and `elementary` (functions with a rounding error of their own).

Parts of ufuncs with two results are named by number: `frexp.0`, `frexp.1`, `modf.0`, `modf.1`,
`divmod.0`, `divmod.1`.  `muladd`, `bitcast` and `erf` are functions of ours.
"""

from __future__ import annotations

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import OVERFLOWS
from nbcomp.target.llvm import elementary, floats, integers
from nbcomp.target.llvm.builder import Builder, Value, element_type
from nbcomp.target.llvm.lanes import V
from nbcomp.types import DType

ALIASES = {
    "abs": "absolute",
    "true_divide": "divide",
    "divmod.0": "floor_divide",
    "divmod.1": "remainder",
    "mod": "remainder",
    "pow": "power",
    "float_power": "power",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "conj": "conjugate",
    "bitwise_not": "invert",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
}

_COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))


def emit(
    b: Builder, fn: str, result: DType, arg_dtypes: tuple[DType, ...], args: tuple[Value, ...]
) -> Value:
    """The value of `fn(*args)`, on scalars or on vectors of equal lanes.

    The arguments have the dtypes of the ufunc's own loop; bool is i1.  Raises `Unsupported` for a
    function or a dtype that NumPy's ufunc does not have or that is not compiled.
    """
    fn = ALIASES.get(fn, fn)
    values = [V(b, value) for value in args]
    if fn == "bitcast":
        return values[0].bitcast(element_type(result)).value
    if fn in OVERFLOWS:
        return _overflows(b, fn.removesuffix("_overflows"), args)
    out = _apply(fn, arg_dtypes, values)
    if out is None:
        names = ", ".join(str(d) for d in arg_dtypes)
        raise Unsupported(f"{fn} on ({names}) is not compiled")
    want = element_type(result)
    return out.value if out.element == want else out.resize(want, signed=True).value


def _overflows(b: Builder, fn: str, args: tuple[Value, ...]) -> Value:
    """Whether fn of two int64 (scalars) leaves int64."""
    name = f"llvm.{ {'add': 'sadd', 'subtract': 'ssub', 'multiply': 'smul'}[fn] }.with.overflow.i64"
    pair = "{ i64, i1 }"
    b.declare(name, pair, "i64", "i64")
    both = b.emit(f"call {pair} @{name}({args[0]}, {args[1]})", pair)
    return b.emit(f"extractvalue {both}, 1", "i1")


def _apply(fn: str, dtypes: tuple[DType, ...], args: list[V]) -> V | None:
    """The function's code, or None if there is none for these dtypes."""
    kinds = {d.kind for d in dtypes}
    if kinds == {"i", "u"} and fn in _COMPARISONS:
        return _compare_mixed(fn, dtypes, args)
    first = dtypes[0].kind
    if first == "f":
        return _apply_float(fn, args)
    if len(kinds) != 1 or first not in "biu":
        return None
    if first == "b":
        boolean = integers.BOOLEANS.get(fn)
        return boolean(*args) if boolean else None
    integer = integers.FUNCTIONS.get(fn)
    return integer(*args, signed=first == "i") if integer else None


def _apply_float(fn: str, args: list[V]) -> V | None:
    function = floats.FUNCTIONS.get(fn) or elementary.FUNCTIONS.get(fn)
    if function is None:
        return None
    if args[0].element != "half" or fn in floats.NATIVE_HALF:
        return function(*args)
    out = function(*(a.to_float("float") if a.is_float else a for a in args))
    return out.to_float("half") if out.is_float else out


def _compare_mixed(fn: str, dtypes: tuple[DType, ...], args: list[V]) -> V:
    """Compare int64 with uint64 by value: a negative number is below everything unsigned."""
    a, c = args
    a_negative, c_negative = (
        v.lt(0) if d.kind == "i" else v.of("i1", 0) for v, d in zip(args, dtypes, strict=True)
    )
    below = a_negative | (~c_negative & a.ult(c))
    same = ~(a_negative | c_negative) & a.eq(c)
    results = {
        "less": below,
        "less_equal": below | same,
        "equal": same,
        "not_equal": ~same,
        "greater_equal": ~below,
        "greater": ~(below | same),
    }
    return results[fn]


# ----------------------------------------------------------------------------------------- casts


def cast(b: Builder, value: Value, source: DType, target: DType) -> Value:
    """`astype`, as NumPy's C casts on x86-64 (docs/semantics.md); Unsupported for other kinds."""
    if {source.kind, target.kind} - set("biuf"):
        raise Unsupported(f"a cast from {source} to {target} is not compiled")
    if source == target:
        return value
    return _cast(V(b, value), source, target).value


def _cast(a: V, source: DType, target: DType) -> V:
    element = element_type(target)
    if target.kind == "b":
        return a.ne(0)
    if source.kind == "f":
        return _float_to_float(a, element) if target.kind == "f" else _float_to_int(a, target)
    if source.kind == "b":
        a = a.resize("i8", signed=False)
    if target.kind == "f":
        wide = "float" if element == "half" else element  # float16 goes through float32
        return a.to_float(wide, source.kind == "i").to_float(element)
    return a.resize(element, source.kind == "i")


def _float_to_float(a: V, element: str) -> V:
    if a.element != "double" or element != "half":
        return a.to_float(element)
    # double -> half with one rounding: round to odd in float first, which keeps the direction.
    near = a.to_float("float")
    back = near.to_float("double")
    bits = near.bits()
    away = back.abs().gt(a.abs())
    odd = (away.select(bits - 1, bits) | 1).bitcast("float")
    inexact = back.ne(a) & ~a.is_nan()
    return inexact.select(odd, near).to_float("half")


def _float_to_int(a: V, target: DType) -> V:
    """C's truncation by cvttsd2si: what does not fit becomes the smallest int32 or int64 first.

    Narrow integers are the low bits of an int32, uint32 of an int64, uint64 of an int64 around
    2**63.
    """
    if a.element == "half":
        a = a.to_float("float")
    if target.kind == "u" and target.itemsize == 8:
        big = a.ge(2.0**63)
        low = _truncate(big.select(a - 2.0**63, a), "i64")
        return low ^ big.select(low.const(-(1 << 63)), 0)
    wide = target.itemsize == 8 or (target.kind == "u" and target.itemsize == 4)
    return _truncate(a, "i64" if wide else "i32").resize(element_type(target), signed=True)


def _truncate(a: V, element: str) -> V:
    smallest = -(1 << (int(element[1:]) - 1))
    fits = a.abs().lt(float(-smallest))
    whole = a.to_int(element)
    return fits.select(whole, whole.const(smallest))


# ----------------------------------------------------------------------------------------- costs


def traps(fn: str, arg_dtypes: tuple[DType, ...]) -> bool:
    """Whether NumPy raises for some values: integer powers with a negative exponent (0 here)."""
    return ALIASES.get(fn, fn) == "power" and arg_dtypes[-1].kind == "i"


_COSTS = {
    "divide": 8,
    "reciprocal": 8,
    "sqrt": 10,
    "floor_divide": 40,
    "remainder": 40,
    "fmod": 30,
    "gcd": 200,
    "lcm": 220,
    "nextafter": 10,
    "spacing": 6,
    "ldexp": 12,
    "heaviside": 5,
    "sign": 4,
    "clip": 3,
    "maximum": 2,
    "minimum": 2,
    "fmax": 2,
    "fmin": 2,
    "positive": 0,
    "conjugate": 0,
    "bitcast": 0,
}


def cost(fn: str, dtype: DType) -> int:
    """Roughly the number of vector instructions of one call, for arguments of this dtype."""
    fn = ALIASES.get(fn, fn)
    if dtype.kind == "f":
        known = elementary.COSTS.get(fn) or _COSTS.get(fn, 1)
        return known * 3 // 2 if dtype.itemsize == 8 else known
    if fn in ("floor_divide", "remainder", "fmod"):
        return 60 if dtype.itemsize == 8 else 20
    return 40 if fn == "power" else _COSTS.get(fn, 1)
