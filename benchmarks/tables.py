"""Tables of piecewise polynomials in float32: nbcomp/target/llvm/elementary/tables.py.

    python -m benchmarks.tables tanh        # 16 lines: centre, value, p0 p1 p2 p3 p4
    python -m benchmarks.tables log         # 16 lines: inverse, value
    python -m benchmarks.tables power       # 16 lines: inverse, value, its low part
    python -m benchmarks.tables exp2        # 16 lines: value, its low part

On interval i, f(centre + y) = value + y·p(y), a minimax fit of the relative error.  The centres
are floats near the middle at which f is almost a float itself (Gal's accurate tables), so the
rounding of `value` does not count.  The first interval starts at 0 (centre and value are 0) and
has f(y) = y + y·p(y), so that its relative error is as small.  Intervals are by the leading bits
of t = scale·|x| + 1, four per power of two.  Where p has a sixth term, the last number holds two:
as a float it is p4, and the lower half of its bits is p5 as a bfloat16; the fit of p0 ... p3 makes
up for what p4 loses.

Tables of logarithms: m in [3/4, 3/2) times the inverse is near 1, and value = -log(inverse).  The
intervals are by the four leading mantissa bits of m.  The inverses are floats near 1/m for which
the value is almost a short number. Needs mpmath and scipy.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from mpmath import mp, mpf

from benchmarks.minimax import Fit, Real, error_of, rounded, solve


@dataclass(frozen=True)
class Table:
    """An odd function that reaches ±1: f, the scale of t, the last useful |x|, and p's terms."""

    f: Real
    scale: float
    last: float
    terms: int


TABLES = {
    "tanh": Table(mp.tanh, 1.6625, 9.02, 5),
    "erf": Table(mp.erf, 3.75, 3.99, 6),
}


def accurate_centre(f: Real, low: mpf, high: mpf) -> mpf:
    """A float32 near the middle at which f is within 2^-33 of a float32."""
    middle = float((low + high) / 2)
    for step in range(4000):
        for side in (1, -1):
            b = mpf(float(np.float32(middle * (1 + side * step * 2.0**-16))))
            if abs(f(b) - rounded(f(b), 24)) < f(b) * mpf(2) ** -33:
                return b
    raise ArithmeticError(f"no accurate centre in [{low}, {high}]")


def pack(p4: mpf, p5: mpf) -> tuple[mpf, mpf]:
    """The nearest float to p4 whose lower half is p5 as a bfloat16; both values."""
    low = (int(np.float32(float(p5)).view(np.uint32)) + 0x8000) >> 16
    high = int(np.float32(float(p4)).view(np.uint32)) >> 16
    options = [np.uint32(((high + d) << 16) | low).view(np.float32) for d in (-1, 0, 1)]
    best = min(options, key=lambda o: abs(mpf(float(o)) - p4))
    return mpf(float(best)), mpf(float(np.uint32(low << 16).view(np.float32)))


def fit_five_numbers(fit: Fit) -> tuple[list[mpf], mpf]:
    """p0 ... p4, the last perhaps packed with p5, and the largest weighted error."""
    found, _ = solve(fit, {})
    fixed: dict[int, mpf] = {}
    if len(found) == 6:
        fixed[4], fixed[5] = pack(found[4], found[5])
    for k in range(5):
        if k not in fixed:
            fixed[k] = rounded(solve(fit, fixed)[0][k], 24)
    return [fixed[k] for k in range(5)], error_of(fit, fixed)


def row(table: Table, low: mpf, high: mpf) -> tuple[list[mpf], mpf]:
    """f(b + y) = value + y·p(y) on [low, high]."""
    f = table.f
    b = accurate_centre(f, low, high) if low else mpf(0)
    value = rounded(f(b), 24)
    slope = mp.diff(f, b)
    start = 0 if low else 1

    def tail(y: mpf) -> mpf:
        return ((f(b + y) - value) / y if abs(y) > mpf(2) ** -60 else slope) - start

    def weight(y: mpf) -> mpf:
        return y / f(b + y) if low or y else 1 / slope

    fit = Fit(tail, range(table.terms), float(low - b), float(high - b), weight)
    found, worst = fit_five_numbers(fit)
    return [b, value, *found], worst


def rows(table: Table) -> list[list[mpf]]:
    """The 16 rows, in the order of the low four bits of t's bits >> 21."""
    first = int(np.float32(1).view(np.uint32)) >> 21
    edges = [mpf(2) ** e * (1 + mpf(k) / 4) for e in range(4) for k in range(4)]
    bounds = [(t - 1) / table.scale for t in [*edges, mpf(16)]]
    found = {}
    for i, (low, high) in enumerate(pairwise(bounds)):
        made, worst = row(table, low, min(high, mpf(table.last)))
        error = float(mp.log(worst, 2))
        print(f"[{float(low):.4f}, {float(high):.4f}] 2^{error:.1f}", file=sys.stderr)
        found[(first + i) % 16] = made
    return [found[i] for i in range(16)]


# The base, and the size of the last bit of a value: with the exponent's part it must fit a float.
LOGARITHMS = {"log": (np.e, 2.0**-17), "log2": (2.0, 2.0**-16), "log10": (10.0, 2.0**-18)}


def short_logarithm(at: float, base: float, unit: float) -> tuple[float, float]:
    """(inverse, value): a float near 1/at, its logarithm within a relative 2^-28 of the value."""
    middle = round(1 / at * 2**23)
    for step in range(1 << 19):
        inverse = (middle + (step + 1) // 2 * (-1) ** step) / 2**23
        exact = -np.log(inverse) / np.log(base)
        value = round(exact / unit) * unit
        if abs(exact - value) <= 2.0**-28 * abs(value):
            return inverse, value
    raise ArithmeticError(f"no short logarithm near {at}")


def logarithm_rows(name: str) -> list[list[mpf]]:
    """The 16 rows, in the order of the four leading mantissa bits."""
    found = []
    reach: list[float] = []
    for i in range(16):
        low, high = (1 + k / 16 if i < 8 else (1 + k / 16) / 2 for k in (i, i + 1))
        # Just below 1 the logarithm is small, so f has to be smaller still.
        at = 0.2 * low + 0.8 * high if i == 14 else (low + high) / 2
        inverse, value = (1.0, 0.0) if i in (0, 15) else short_logarithm(at, *LOGARITHMS[name])
        reach += [low * inverse - 1, high * inverse - 1]
        found.append([mpf(inverse), mpf(value)])
    print(f"[{min(reach):.4f}, {max(reach):.4f}]", file=sys.stderr)
    return found


def power_rows() -> list[list[mpf]]:
    """The 16 rows for x^y: inverses of 5 fraction bits, which make f exact, and two-term values."""
    found = []
    reach: list[float] = []
    for i in range(16):
        low, high = (1 + k / 16 if i < 8 else (1 + k / 16) / 2 for k in (i, i + 1))
        inverse = 1.0 if i in (0, 15) else round(64 / (low + high)) / 32
        reach += [low * inverse - 1, high * inverse - 1]
        exact = -mp.log(inverse, 2)
        value = mp.nint(exact * 2**16) / 2**16
        found.append([mpf(inverse), value, rounded(exact - value, 24)])
    print(f"[{min(reach):.4f}, {max(reach):.4f}]", file=sys.stderr)
    return found


def exponential_rows() -> list[list[mpf]]:
    """2^(j/16) as high + low."""
    exact = [mp.power(2, mpf(j) / 16) for j in range(16)]
    return [[rounded(v, 24), rounded(v - rounded(v, 24), 24)] for v in exact]


def made(name: str) -> list[list[mpf]]:
    """The rows of a table."""
    if name == "power":
        return power_rows()
    if name == "exp2":
        return exponential_rows()
    return rows(TABLES[name]) if name in TABLES else logarithm_rows(name)


def main() -> None:
    """Print the tables named on the command line, or all."""
    for name in sys.argv[1:] or (*TABLES, *LOGARITHMS, "power", "exp2"):
        print(name)
        for numbers in made(name):
            print(" ".join(str(np.float32(float(c))) for c in numbers))


if __name__ == "__main__":
    main()
