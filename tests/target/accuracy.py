"""Errors of elementary functions in ulp: references, arguments and the largest error found.

float32 is held against double, float64 against the C library's 80-bit long double, whose own error
is below 2^-10 ulp.  What an error in ulp does not see counts as infinite: NaN where none is due or
the reverse, infinities, and the sign of zero.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from nbcomp.target.llvm.builder import Builder, Value
from nbcomp.target.llvm.lanes import V
from tests.target.harness import Compiled, function, machine

Array = np.ndarray

C_NAMES = {
    "absolute": "fabs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "power": "pow",
}
TWO_ARGUMENTS = ("arctan2", "hypot", "logaddexp", "logaddexp2", "power")
# Not in the C library: NumPy's own long double loop.  max + log1p(exp(-d)) cancels where the
# result is near 0, there as here, so in float64 the unit is that of the larger term.
COMPOSED = ("logaddexp", "logaddexp2")


# -------------------------------------------------------------------------------------- references


@dataclass
class LongDouble:
    """A function of the C library on arrays of long double."""

    name: str
    arguments: int

    def __post_init__(self) -> None:
        llvm.load_library_permanently("libm.so.6")
        symbol = f"{C_NAMES.get(self.name, self.name)}l"
        n = self.arguments
        params = "".join(f", ptr %p{i}" for i in range(n))
        loads = [
            f"  %q{i} = getelementptr x86_fp80, ptr %p{i}, i64 %i\n"
            f"  %x{i} = load x86_fp80, ptr %q{i}"
            for i in range(n)
        ]
        kinds = ", ".join(["x86_fp80"] * n)
        values = ", ".join(f"x86_fp80 %x{i}" for i in range(n))
        text = "\n".join(
            [
                f"declare x86_fp80 @{symbol}({kinds})",
                f"define void @f(i64 %n, ptr %out{params}) {{",
                "entry:\n  br label %loop",
                "loop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
                *loads,
                f"  %y = call x86_fp80 @{symbol}({values})",
                "  %o = getelementptr x86_fp80, ptr %out, i64 %i",
                "  store x86_fp80 %y, ptr %o",
                "  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %n",
                "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}",
            ]
        )
        tm = machine()
        module = llvm.parse_assembly(text)
        module.data_layout = str(tm.target_data)
        self._engine = llvm.create_mcjit_compiler(module, tm)
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (1 + n))
        self._f = kind(self._engine.get_function_address("f"))

    def __call__(self, *args: Array) -> Array:
        wide = [np.ascontiguousarray(a, np.longdouble) for a in args]
        out = np.empty(wide[0].shape, np.longdouble)
        self._f(out.size, out.ctypes.data, *(a.ctypes.data for a in wide))
        return out


def reference(name: str) -> Callable[..., Array]:
    """The true values in long double."""
    if name in COMPOSED:
        return lambda *args: getattr(np, name)(*(a.astype(np.longdouble) for a in args))
    return LongDouble(name, 2 if name in TWO_ARGUMENTS else 1)


def double_reference(name: str) -> Callable[..., Array]:
    """The true values of float32 arguments, in double."""
    if name == "erf":
        from scipy.special import erf

        return lambda x: np.asarray(erf(x.astype(np.float64)))
    return lambda *args: np.asarray(getattr(np, name)(*(a.astype(np.float64) for a in args)))


# ------------------------------------------------------------------------------------------ errors


def errors(got: Array, want: Array, least: float = 0.0) -> Array:
    """|got - want| in units in the last place of `want`; infinite where a special value is wrong.

    The unit is at least that of the number `least`, whose zeros then may have any sign.
    """
    info = np.finfo(got.dtype)
    wide = want.dtype.type
    top = wide(2) ** info.maxexp
    _, exponent = np.frexp(np.maximum(np.abs(want), least))
    ulp = np.ldexp(wide(1), np.maximum(exponent - 1, info.minexp) - info.nmant)
    beyond = np.abs(want) >= top
    clipped = np.where(beyond, np.copysign(top, want), want)
    value = np.where(np.isinf(got), np.copysign(top, got), got).astype(want.dtype)
    error = np.abs(value - clipped) / np.where(beyond | ~np.isfinite(want), top, ulp)
    wrong = np.isnan(got) != np.isnan(want)
    wrong |= (np.isinf(want) | beyond) & (got != np.copysign(np.inf, want))
    if not least:
        wrong |= (got == 0) & (np.signbit(got) != np.signbit(want)) & ~np.isnan(want)
        wrong |= (want == 0) & (got != 0)
    return np.where(wrong, np.inf, np.where(np.isnan(want), 0, error))


@cache
def float32_errors() -> Compiled:
    """`errors` of float32 against double as compiled code, for sweeps of 2^32 arguments."""

    def emit(b: Builder, args: tuple[Value, ...]) -> Value:
        result, want = V(b, args[0]), V(b, args[1])
        top = 2.0**128
        got = result.to_float("double")
        beyond = want.abs().ge(top)
        clipped = beyond.select(want.const(top).copysign(want), want)
        value = got.abs().eq(math.inf).select(got.const(top).copysign(got), got)
        power = (want.bits() & (0x7FF << 52)).bitcast("double")
        ulp = beyond.select(want.const(top), power.max(2.0**-126) * 2.0**-23)
        error = (value - clipped).abs() / ulp
        signs = (got.bits() ^ want.bits()).lt(0)
        wrong = (got.is_nan() ^ want.is_nan()) | (
            beyond & got.ne(want.const(math.inf).copysign(want))
        )
        wrong = wrong | (got.eq(0) & signs & ~want.is_nan()) | (want.eq(0) & got.ne(0))
        return wrong.select(want.const(math.inf), want.is_nan().select(want.const(0), error)).value

    single, double = np.dtype(np.float32), np.dtype(np.float64)
    return Compiled(emit, (single, double), double, 8)


@dataclass
class Worst:
    """The largest error seen, its arguments, and the number of arguments tried."""

    error: float = 0.0
    where: tuple[float, ...] = ()
    got: float = 0.0
    want: float = 0.0
    count: int = 0
    least: float = 0.0  # see `errors`

    def add(self, f: Compiled, truth: Callable[..., Array], *args: Array) -> None:
        """Try a batch of arguments."""
        with np.errstate(all="ignore"):
            got, want = f(*args), truth(*args)
            fast = got.dtype == np.float32 and want.dtype == np.float64
            error = float32_errors()(got, want) if fast else errors(got, want, self.least)
        k = int(np.argmax(error))
        self.count += error.size
        if not self.where or error[k] > self.error:
            self.error = float(error[k])
            self.where = tuple(float(a[k]) for a in args)
            self.got, self.want = float(got[k]), float(want[k])


# --------------------------------------------------------------------------------------- arguments


def every_float32(step: int) -> Iterator[Array]:
    """All float32 values, or every `step`-th, in batches."""
    yield edges(np.dtype(np.float32))
    size = 1 << 20
    for start in range(0, 1 << 32, size * step):
        bits = np.arange(start, min(start + size * step, 1 << 32), step, dtype=np.uint64)
        yield (bits + (start // (size * step)) % step).astype(np.uint32).view(np.float32)


def edges(dtype: np.dtype) -> Array:
    """Special values and those around them."""
    info = np.finfo(dtype)
    plain = [0, 1, 0.5, 2, 10, 1.5, info.max, info.tiny, info.smallest_subnormal, np.inf, info.eps]
    plain += [np.pi, np.pi / 2, np.pi / 4, np.log(info.max), -np.log(info.tiny), 745.2, 709.8, 1024]
    plain += [103.9, 88.72, 127, 128, 149, 1074, 0.625, 0.375, 0.25, 1e5, 1e10, 1e22, 2.0**53]
    near = np.array(plain, dtype)
    with np.errstate(all="ignore"):
        near = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, dtype.type(np.inf))])
    return np.concatenate([near, -near, np.array([np.nan], dtype)])


def around_multiples(dtype: np.dtype, rng: np.random.Generator, count: int) -> Array:
    """Values next to multiples of pi/2 of all sizes."""
    k = np.floor(2.0 ** rng.uniform(0, 60, count))
    exact = k.astype(np.longdouble) * (np.longdouble(np.pi) / 2)
    near = exact.astype(dtype)
    steps = rng.integers(-2, 3, count)
    moved: Array = near + steps.astype(dtype) * np.spacing(near)
    return moved


def samples(dtype: np.dtype, rng: np.random.Generator, count: int) -> Iterator[Array]:
    """Random values: all bit patterns, moderate ones, near 1, near 0, whole numbers, edges."""

    def random_bits() -> Array:
        raw = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
        return np.where(np.isnan(raw), dtype.type(1), raw)

    yield edges(dtype)
    yield random_bits()
    yield rng.standard_normal(count).astype(dtype)
    yield rng.uniform(-1, 1, count).astype(dtype)
    yield rng.uniform(-30, 30, count).astype(dtype)
    yield rng.uniform(-800, 800, count).astype(dtype)
    yield (1 + rng.standard_normal(count) * 2.0 ** rng.uniform(-30, -2, count)).astype(dtype)
    yield (rng.standard_normal(count) * 2.0 ** rng.uniform(-60, 60, count)).astype(dtype)
    yield rng.integers(-2000, 2000, count).astype(dtype)
    yield around_multiples(dtype, rng, count)


def pairs(dtype: np.dtype, rng: np.random.Generator, count: int) -> Iterator[tuple[Array, Array]]:
    """Pairs of such values: all edges with all, and batches shuffled against each other."""
    special = edges(dtype)
    a, b = np.meshgrid(special, special)
    yield a.ravel(), b.ravel()
    batches = list(samples(dtype, rng, count))[1:]
    for first in batches:
        for second in batches:
            yield first, rng.permutation(second)
    x = 2.0 ** rng.uniform(-1, 1, count)  # powers that nearly overflow or underflow
    limit = np.log2(float(np.finfo(dtype).max))
    y = limit * rng.uniform(-1.2, 1.01, count) / np.log2(x)
    yield x.astype(dtype), y.astype(dtype)
    near = 1 + rng.standard_normal(count) * 2.0 ** rng.uniform(-20, -4, count)
    yield near.astype(dtype), (rng.uniform(-1, 1, count) * limit / np.log2(near)).astype(dtype)


def measure(name: str, dtype: np.dtype, step: int, count: int, seed: int = 0) -> Worst:
    """The largest error of a function."""
    rng = np.random.default_rng(seed)
    char = dtype.char
    worst = Worst(least=1.0 if name in COMPOSED and char == "d" else 0.0)
    truth = double_reference(name) if char == "f" else reference(name)
    if name in TWO_ARGUMENTS:
        f = function(name, char * 2, char, 16 if char == "f" else 8)
        for pair in pairs(dtype, rng, count):
            worst.add(f, truth, *pair)
        return worst
    f = function(name, char, char, 16 if char == "f" else 8)
    batches = every_float32(step) if char == "f" else samples(dtype, rng, count)
    for batch in batches:
        worst.add(f, truth, batch)
    return worst
