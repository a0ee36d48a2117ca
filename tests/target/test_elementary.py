"""The elementary functions: their bounds in ulp, special values, and equal bits everywhere."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.target.llvm import scalars
from nbcomp.target.llvm.builder import Builder
from nbcomp.target.llvm.elementary import COSTS, FUNCTIONS
from nbcomp.target.llvm.emit import host_cpu, made_here

from .accuracy import (
    COMPOSED,
    TWO_ARGUMENTS,
    Worst,
    double_reference,
    errors,
    every_float32,
    float32_errors,
    measure,
    pairs,
    reference,
    samples,
)
from .harness import Compiled, function, host_features

BOUNDS = {"f": 1.0, "d": 2.0}
ALL = [(name, char) for name in sorted(FUNCTIONS) for char in "fd"]
# In float32 these have a second form for AVX-512: by a table, or by a rough reciprocal.
TABLED = (
    *("arccosh", "arcsinh", "arctan2", "log", "log10", "log1p", "log2"),
    *("power", "tan", "tanh"),
)
X86_64_V3 = frozenset(
    ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "bmi", "bmi2", "lzcnt", "fma")
)
has_avx512 = pytest.mark.skipif("avx512dq" not in host_features(), reason="needs AVX-512")
long_double = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs 80-bit floats")


def batch(name: str, char: str, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Arguments of all kinds for a function."""
    dtype = np.dtype(char)
    if name not in TWO_ARGUMENTS:
        return [np.concatenate(list(samples(dtype, rng, count)))]
    found = list(pairs(dtype, rng, count // 10))
    return [np.concatenate([pair[i] for pair in found]) for i in range(2)]


def compiled(name: str, char: str, lanes: int, features: frozenset[str] | None = None) -> Compiled:
    """The function on its own dtype."""
    return function(name, char * (2 if name in TWO_ARGUMENTS else 1), char, lanes, features)


def equal_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits; any NaN equals any other."""
    bits = f"u{a.dtype.itemsize}"
    return bool(((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))).all())


@long_double
@pytest.mark.parametrize(("name", "char"), ALL)
def test_bound(name: str, char: str) -> None:
    worst = measure(name, np.dtype(char), step=1 << 14, count=3000)
    assert worst.error <= BOUNDS[char], worst


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_float32(name: str) -> None:
    worst = measure(name, np.dtype(np.float32), step=1, count=300_000)
    assert worst.error <= BOUNDS["f"], worst


@pytest.mark.slow
@long_double
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_many_float64(name: str) -> None:
    worst = measure(name, np.dtype(np.float64), step=1, count=1_000_000)
    assert worst.error <= BOUNDS["d"], worst


@pytest.mark.parametrize(("name", "char"), ALL)
def test_same_bits_in_any_lane(name: str, char: str, rng: np.random.Generator) -> None:
    args = batch(name, char, rng, 300)
    full = 16 if char == "f" else 8
    with np.errstate(all="ignore"):
        want = compiled(name, char, full)(*args)
        for lanes in (0, 4, 2 * full):
            assert equal_bits(compiled(name, char, lanes)(*args), want), lanes


@pytest.mark.parametrize(("name", "char"), ALL)
def test_without_avx512(name: str, char: str, rng: np.random.Generator) -> None:
    args = batch(name, char, rng, 300)
    f = compiled(name, char, 8 if char == "f" else 4, X86_64_V3)
    with np.errstate(all="ignore"):
        assert equal_bits(compiled(name, char, 0, X86_64_V3)(*args), f(*args))
        if char == "d" or name not in TABLED:
            assert equal_bits(compiled(name, char, 4)(*args), f(*args))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_float32_bound_without_avx512(name: str, rng: np.random.Generator) -> None:
    f = compiled(name, "f", 8, X86_64_V3)
    single, truth, worst = np.dtype(np.float32), double_reference(name), Worst()
    if name in TWO_ARGUMENTS:
        batches = pairs(single, rng, 1000)
    else:
        batches = ((x,) for x in every_float32(1 << 13))
    for args in batches:
        worst.add(f, truth, *args)
    assert worst.error <= 1, worst


def test_errors_are_measured_alike(rng: np.random.Generator) -> None:
    want = np.concatenate(list(samples(np.dtype(np.float64), rng, 1000)))
    with np.errstate(all="ignore"):
        got = want.astype(np.float32)
        got[::3] = np.nextafter(got[::3], np.float32(1))
        assert np.allclose(errors(got, want), float32_errors()(got, want), rtol=1e-6)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, np.inf, -np.inf, np.nan, 1e30, -1e30]


@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize("name", [n for n in sorted(FUNCTIONS) if n != "erf" and n not in COMPOSED])
def test_special_values(name: str, char: str) -> None:
    values = np.array(SPECIAL, char)
    args = [values]
    if name in TWO_ARGUMENTS:
        args = [a.ravel() for a in np.meshgrid(values, values)]
    got = compiled(name, char, 8)(*args)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*args)
    special = ~np.isfinite(want) | (want == 0)
    assert equal_bits(got[special], want[special])
    assert np.isfinite(got[~special]).all()


def test_exact_results() -> None:
    k = np.arange(-300, 300)
    assert (function("exp2", "d", "d", 8)(k.astype(float)) == 2.0**k).all()
    assert (function("log2", "d", "d", 8)(2.0**k) == k).all()
    tens = np.array([float(f"1e{n}") for n in range(309)])
    assert (function("log10", "d", "d", 8)(tens) == np.arange(309)).all()
    assert (function("log10", "f", "f", 16)(tens[:39].astype("f")) == np.arange(39)).all()
    cubes = np.arange(-100.0, 100.0)
    assert (function("cbrt", "d", "d", 8)(cubes**3) == cubes).all()
    assert (function("power", "dd", "d", 8)(cubes, np.full(200, 3.0)) == cubes**3).all()
    sides = np.array([3.0, 5.0, 8.0, 20.0]), np.array([4.0, 12.0, 15.0, 21.0])
    assert (function("hypot", "dd", "d", 8)(*sides) == [5, 13, 17, 29]).all()


def test_subnormals_are_kept() -> None:
    x = np.array([5e-324, -1e-310, 2.5e-308])
    for name in ("sin", "tan", "arctan", "arcsin", "sinh", "tanh", "expm1", "log1p", "arcsinh"):
        assert (function(name, "d", "d", 8)(x) == x).all(), name
    assert (function("exp", "d", "d", 8)(np.array([-745.0])) == 5e-324).all()
    assert function("exp2", "f", "f", 16)(np.array([-149.0], "f")) == np.float32(1e-45)


def test_hard_arguments() -> None:
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.prec = 2400
    # The double nearest to a multiple of pi/2 (J.-M. Muller, Elementary Functions, 3rd ed., 11.3).
    hard = [6381956970095103.0 * 2.0**797, 1e22, 1.7976931348623157e308, 2.0**1023, 1e5, 3e5]
    hard += [float(mpmath.nint(10.0**k / mpmath.pi) * mpmath.pi / 2) for k in range(1, 300, 7)]
    x = np.array(hard)
    for name in ("sin", "cos", "tan"):
        got = function(name, "d", "d", 8)(x)
        for value, y in zip(x, got, strict=True):
            true = getattr(mpmath, name)(mpmath.mpf(float(value)))
            assert abs(mpmath.mpf(float(y)) - true) <= 2 * np.spacing(abs(float(true))), value


@long_double
def test_float16_rounds_the_float32_result() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for name in ("exp", "log", "sin", "tanh", "sqrt"):
        with np.errstate(all="ignore"):
            got = function(name, "e", "e", 16)(x)
            want = getattr(np, name)(x.astype(np.float64)).astype(np.float16)
            near = np.nextafter(want, np.float16(np.inf)), np.nextafter(want, np.float16(-np.inf))
        ok = (got == want) | (np.isnan(got) & np.isnan(want)) | (got == near[0]) | (got == near[1])
        assert ok.all(), x[~ok]
        assert ((got == want) | np.isnan(want)).mean() > 0.9999


def test_erf_is_odd_and_reaches_one() -> None:
    truth = reference("erf")
    for char in "fd":
        x = np.array([0.0, 1e-30, 0.1, 1, 3, 4, 6, 1e30, np.inf], char)
        f = compiled("erf", char, 8)
        assert equal_bits(f(-x), -f(x))
        assert (np.abs(f(x) - truth(x)) <= 2 * np.spacing(f(x))).all()
        assert (f(x)[-3:] == 1).all()


@has_avx512
@pytest.mark.parametrize(("name", "char"), ALL)
def test_full_vectors_and_no_scalar_arithmetic(name: str, char: str) -> None:
    asm = compiled(name, char, 16 if char == "f" else 8).asm
    main = asm.split("\nf:")[1].split(".Lfunc_end")[0]  # the slow path of huge arguments is scalar
    assert "zmm" in main
    assert not re.findall(
        r"\b(?:v(?:mul|add|sub|div|fn?m\w+)s[sd]|call\w*\s+\w*(?:exp|log))\b", main
    )


def test_costs_and_traps() -> None:
    assert COSTS.keys() == FUNCTIONS.keys()
    single, double, whole = (np.dtype(c) for c in "fdi")
    assert scalars.cost("add", single) == 1
    assert (
        scalars.cost("add", single) < scalars.cost("divide", single) < scalars.cost("exp", single)
    )
    assert scalars.cost("pow", double) > scalars.cost("power", single)
    assert scalars.traps("power", (whole, whole))
    assert not scalars.traps("power", (single, single))


def test_refuses_what_it_has_no_code_for() -> None:
    single, complex_ = np.dtype("f"), np.dtype("D")
    b = Builder()
    x = b.constant(1.0, "float")
    with pytest.raises(Unsupported, match="zeta"):
        scalars.emit(b, "zeta", single, (single,), (x,))
    with pytest.raises(Unsupported, match="complex128"):
        scalars.emit(b, "exp", complex_, (complex_,), (x,))
    with pytest.raises(Unsupported, match="cast"):
        scalars.cast(b, x, single, complex_)


def test_outlined_bodies_are_put_where_they_are_called() -> None:
    text = made_here(compiled("sin", "f", 16).text, host_cpu()).optimised
    assert not re.search(r"@nb\.trig\.v16float\b", text)
    assert re.search(r"@nb\.trig\.huge\.v16float\b", text)  # the rare case stays outside
