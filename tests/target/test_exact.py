"""Functions with one right answer: every dtype of every ufunc against NumPy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp

from .harness import caster, function

INTEGERS = "bBhHiIqQ"
FLOATS = "efd"


def interesting(char: str, rng: np.random.Generator, count: int = 400) -> np.ndarray:
    """Edge values of a dtype, values near them, and random ones of all magnitudes."""
    dtype = np.dtype(char)
    if char == "?":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, info.max // 2]
        edges += [-1, -2, -3, -7] if dtype.kind == "i" else []
        wide = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        narrow = rng.integers(max(info.min, -20), 20, count).astype(dtype)
        return np.concatenate([np.array(edges, dtype), wide, narrow, wide // dtype.type(13)])
    info = np.finfo(dtype)
    edges = [0, 0.5, 1, 1.5, 2.5, 3, 0.1, 10, info.max, info.tiny, info.smallest_subnormal, np.inf]
    edges += [info.tiny / 2, 1 - info.epsneg, 1 + info.eps, 2.0 ** (info.nmant - 1) + 0.5]
    plus = np.array(edges, dtype)
    bits = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        bits = np.where(np.isnan(bits), dtype.type(np.nan), bits)
        normal = (rng.standard_normal(count) * 8).astype(dtype)
    whole = rng.integers(-9, 9, count).astype(dtype)
    return np.concatenate([plus, -plus, np.array([np.nan], dtype), bits, normal, whole])


def pairs(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the first values (the edges), and a random pairing of all."""
    n = 40
    i, j = np.meshgrid(np.arange(min(n, a.size)), np.arange(min(n, b.size)))
    take_a = np.concatenate([i.ravel(), rng.integers(0, a.size, 3000)])
    take_b = np.concatenate([j.ravel(), rng.integers(0, b.size, 3000)])
    return a[take_a], b[take_b]


def same(got: np.ndarray, want: np.ndarray, *args: np.ndarray) -> None:
    """Equal bits; any NaN equals any other."""
    assert got.dtype == want.dtype
    bits = f"u{got.dtype.itemsize}"
    equal = got.view(bits) == want.view(bits)
    if got.dtype.kind == "f":
        equal |= np.isnan(got) & np.isnan(want)
    bad = np.flatnonzero(~equal)
    shown = [(*(repr(a[k]) for a in args), repr(got[k]), repr(want[k])) for k in bad[:8]]
    assert not bad.size, f"{bad.size} of {got.size} differ, (arguments, got, want): {shown}"


UNARY = [
    *("absolute", "bitwise_count", "ceil", "conjugate", "deg2rad", "fabs", "floor", "invert"),
    *("isfinite", "isinf", "isnan", "logical_not", "negative", "positive", "rad2deg", "reciprocal"),
    *("rint", "sign", "signbit", "spacing", "sqrt", "square", "trunc"),
]
BINARY = [
    *("add", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "divide", "equal", "fmax"),
    *("floor_divide", "fmin", "fmod", "gcd", "greater", "greater_equal", "heaviside", "lcm"),
    *("ldexp", "left_shift", "less", "less_equal", "logical_and", "logical_or", "logical_xor"),
    *("maximum", "minimum", "multiply", "nextafter", "not_equal", "power", "remainder"),
    *("right_shift", "subtract"),
]


def loops(name: str) -> list[tuple[str, str, str]]:
    """(ufunc, argument dtypes, result dtypes) of every loop of a ufunc that we compile."""
    found = {}
    for kind in getattr(np, name).types:
        args, results = kind.replace("l", "q").replace("L", "Q").split("->")
        known = all(c in "?" + INTEGERS + FLOATS for c in args + results)
        if known and not (name == "power" and args[0] in FLOATS):
            found[args, results] = (name, args, results)
    return list(found.values())


ALL = [loop for name in UNARY + BINARY for loop in loops(name)]


@pytest.mark.parametrize(("name", "args", "result"), ALL, ids=lambda p: p)
def test_ufunc_loop(name: str, args: str, result: str, rng: np.random.Generator) -> None:
    values = [interesting(c, rng) for c in args]
    if len(values) == 2:
        values = list(pairs(*values, rng))
    if name in ("left_shift", "right_shift"):
        values[1] = np.where(rng.random(values[1].size) < 0.5, values[1], values[1] % 70)
        values[1] = values[1].astype(args[1])
    if name == "power" and args[1].islower():
        values[1] = np.abs(values[1] // 2)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*values)
    if name in ("maximum", "minimum", "fmax", "fmin") and result in "fd":
        a, b = values  # NumPy's loops differ in their last few elements: hold us to the vector loop
        want = np.where((a == 0) & (b == 0), b, want)
    for n in (0, 16):
        same(function(name, args, result, n)(*values), want, *values)


@pytest.mark.parametrize("char", FLOATS)
@pytest.mark.parametrize("name", ["frexp", "modf", "divmod"])
def test_two_results(name: str, char: str, rng: np.random.Generator) -> None:
    values: tuple[np.ndarray, ...] = (interesting(char, rng),)
    if name == "divmod":
        values = pairs(values[0], interesting(char, rng), rng)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*values)
    for part, expected in enumerate(want):
        got = function(f"{name}.{part}", char * len(values), expected.dtype.char, 8)(*values)
        same(got, expected, *values)


@pytest.mark.parametrize("char", "?" + INTEGERS + FLOATS)
def test_clip(char: str, rng: np.random.Generator) -> None:
    x = interesting(char, rng)
    low, high = rng.permutation(x), rng.permutation(x)
    want = np.clip(x, low, high)
    if char in "fd":  # on ties between zeros x is kept, as with NumPy's scalar bounds
        kept = (x == 0) & ((low == 0) | (high == 0)) & (want == 0)
        want = np.where(kept & (low <= x) & (x <= high), x, want)
    got = function("clip", char * 3, char, 16)(x, low, high)
    same(got + 0 if char in "fd" else got, want + 0 if char in "fd" else want, x, low, high)


@pytest.mark.parametrize("bound", [6, -0.5, 0.0, -0.0, np.nan, np.inf, -np.inf, 1e-42])
@pytest.mark.parametrize("char", FLOATS)
def test_bounds_that_are_known(char: str, bound: float, rng: np.random.Generator) -> None:
    x = interesting(char, rng)
    known = x.dtype.type(bound)
    calls = [
        lambda x: np.minimum(x, known), lambda x: np.maximum(x, known),
        lambda x: np.minimum(known, x), lambda x: np.maximum(known, x),
    ]  # fmt: skip
    for f in calls:
        same(nbcomp.compile(f, x)(x), f(x), x)


@pytest.mark.parametrize("divisor", [1, 2, 64, 3, -1, -2, -7])
@pytest.mark.parametrize("char", INTEGERS)
def test_divisors_that_are_known(char: str, divisor: int, rng: np.random.Generator) -> None:
    x = interesting(char, rng)
    known = np.array(divisor).astype(char)[()]
    with np.errstate(all="ignore"):
        want = np.divmod(x, known)
    for got, expected in zip(
        nbcomp.compile(lambda x: np.divmod(x, known), x)(x), want, strict=True
    ):
        same(got, expected, x)


@pytest.mark.parametrize("target", "?" + INTEGERS + FLOATS)
@pytest.mark.parametrize("source", "?" + INTEGERS + FLOATS)
def test_cast(source: str, target: str, rng: np.random.Generator) -> None:
    x = interesting(source, rng)
    if source in FLOATS and target in INTEGERS:
        exponents = 2.0 ** rng.integers(-3, 66, x.size)
        with np.errstate(all="ignore"):
            x = np.concatenate([x, (rng.standard_normal(x.size) * exponents).astype(source)])
    with np.errstate(all="ignore"):
        want = np.repeat(x, 2)[::2].astype(target)  # strided: NumPy's scalar loop
    for lanes in (0, 16):
        same(caster(source, target, lanes)(x), want, x)


def test_known_values() -> None:
    one = np.array([1.0])
    assert function("floor_divide", "dd", "d", 8)(one, np.array([0.1])) == 9
    assert function("remainder", "ii", "i", 8)(np.array([-7], "i"), np.array([3], "i")) == 2
    smallest = np.array([-(2**31)], "i")
    assert function("floor_divide", "ii", "i", 8)(smallest, np.array([-1], "i")) == smallest
    assert function("power", "bb", "b", 0)(np.array([3], "b"), np.array([5], "b")) == -13
    assert function("less", "qQ", "?", 8)(np.array([-1]), np.array([2**64 - 1], "Q"))
