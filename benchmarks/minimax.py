"""Minimax polynomials of the elementary functions: where the coefficients in nbcomp come from.

    python benchmarks/minimax.py            # every set
    python benchmarks/minimax.py exp_f32    # one set: coefficients, highest power first, and its error

Each set asks for the polynomial of given powers that minimises the largest weighted error on an
interval (Remez' exchange algorithm in 60 digits).  Coefficients are rounded to the format one by one,
the most important first, and the others fitted again, so that rounding costs little.
Needs mpmath.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mpmath import matrix, mp, mpf

mp.dps = 60

Real = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """f(x) ~ sum of c_k x^k for k in powers, minimising |weight(x) (sum - f(x))| on [low, high].

    `bits` is the format of each coefficient (24: float32, 53: float64); `wide` leading powers may have
    more, as they are written as a sum of two.
    """

    f: Real
    powers: Sequence[int]
    low: float
    high: float
    weight: Real = lambda x: mpf(1)
    bits: int = 24


def solve(fit: Fit, fixed: dict[int, mpf], points: int = 600) -> tuple[dict[int, mpf], mpf]:
    """Coefficients of the free powers, given the fixed ones, and the largest weighted error."""
    free = [k for k in fit.powers if k not in fixed]
    low, high = mpf(fit.low), mpf(fit.high)
    angles = [mp.pi * i / points for i in range(points + 1)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(a) for a in angles]
    weight = [fit.weight(x) for x in grid]
    target = [
        w * (fit.f(x) - sum(c * x**k for k, c in fixed.items()))
        for x, w in zip(grid, weight, strict=True)
    ]
    if not free:
        return {}, max(abs(t) for t in target)
    n = len(free)
    basis = [[w * x**k for k in free] for x, w in zip(grid, weight, strict=True)]
    picks = [round(i * points / n) for i in range(n + 1)]
    solution: list[mpf] = []
    for _ in range(60):
        a = matrix(n + 1, n + 1)
        rhs = matrix(n + 1, 1)
        for row, p in enumerate(picks):
            for col in range(n):
                a[row, col] = basis[p][col]
            a[row, n] = (-1) ** row
            rhs[row] = target[p]
        solution = list(mp.lu_solve(a, rhs))
        error = [
            sum(c * b for c, b in zip(solution[:n], row, strict=True)) - t
            for row, t in zip(basis, target, strict=True)
        ]
        picks, worst = exchange(error, n + 1)
        if worst <= abs(solution[n]) * mpf("1.0001"):
            break
    return dict(zip(free, solution[:n], strict=True)), worst


def exchange(error: list[mpf], count: int) -> tuple[list[int], mpf]:
    """The new reference points: the largest error of every run of one sign, the best `count` runs."""
    runs: list[int] = []
    for i, e in enumerate(error):
        if runs and (error[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(error[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        drop = 0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else len(runs) - 1
        runs.pop(drop)
    while len(runs) < count:  # degenerate: keep the set full
        extra = next(i for i in range(len(error)) if i not in runs)
        runs = sorted([*runs, extra])
    return runs, max(abs(e) for e in error)


def rounded(c: mpf, bits: int) -> mpf:
    """To the nearest number of the format."""
    if bits == 24:
        return mpf(float(np.float32(float(c))))
    if bits == 53:
        return mpf(float(c))
    scale = mpf(2) ** (bits - 1 - int(mp.floor(mp.log(abs(c), 2)))) if c else mpf(1)
    return mp.nint(c * scale) / scale


def error_of(fit: Fit, coefficients: dict[int, mpf], points: int = 400) -> mpf:
    """The largest weighted error of a polynomial."""
    low, high = mpf(fit.low), mpf(fit.high)
    grid = [low + (high - low) * i / points for i in range(points + 1)]
    return max(
        abs(fit.weight(x) * (sum(c * x**k for k, c in coefficients.items()) - fit.f(x)))
        for x in grid
    )


def fit_rounded(fit: Fit) -> tuple[dict[int, mpf], mpf]:
    """The fit with coefficients of the format, and its largest weighted error.

    After each rounding the others are fitted again, where that helps (with few powers left the problem
    may have no alternating solution, and the exchange fails).
    """
    current, _ = solve(fit, {})
    for done, k in enumerate(fit.powers, start=1):
        current[k] = rounded(current[k], fit.bits)
        fixed = {p: current[p] for p in list(fit.powers)[:done]}
        if done < len(fit.powers):
            again = fixed | solve(fit, fixed)[0]
            if error_of(fit, again) < error_of(fit, current):
                current = again
    return current, error_of(fit, current, 2000)


def relative(f: Real) -> Real:
    """Weight for an error relative to f."""
    return lambda x: 1 / f(x)


def expm1_tail(x: mpf) -> mpf:
    """(e^x - 1 - x) / x^2"""
    if abs(x) < mpf("1e-15"):
        return mpf(1) / 2 + x / 6 + x * x / 24
    return (mp.expm1(x) - x) / (x * x)


HALF_LN2 = float(mp.log(2) / 2) * 1.0001


def exp2_tail(x: mpf) -> mpf:
    """(2^x - 1) / x"""
    return mp.expm1(x * mp.ln2) / x if x else mp.ln2


def log1p_tail(x: mpf) -> mpf:
    """(log(1 + x) - x + x^2/2) / x^3"""
    if abs(x) < mpf("1e-12"):
        return mpf(1) / 3 - x / 4 + x * x / 5
    return (mp.log1p(x) - x + x * x / 2) / x**3


def tanh_tail(s: mpf) -> mpf:
    """(tanh(x) - x) / x^3 for s = x^2"""
    if s < mpf("1e-20"):
        return -mpf(1) / 3 + 2 * s / 15
    x = mp.sqrt(s)
    return (mp.tanh(x) - x) / (x * s)


def atanh_tail(z: mpf) -> mpf:
    """(2 atanh(s) - 2 s) / s^3 for z = s^2"""
    if z < mpf("1e-20"):
        return mpf(2) / 3 + 2 * z / 5
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / (s * z)


FITS: dict[str, Fit] = {
    # e^r = 1 + r + r^2 p(r)
    "exp_f32": Fit(expm1_tail, range(5), -HALF_LN2, HALF_LN2, lambda x: x * x * mp.exp(-x)),
    "exp_f64": Fit(expm1_tail, range(10), -HALF_LN2, HALF_LN2, lambda x: x * x * mp.exp(-x), 53),
    # log(1+f) = f - f^2/2 + f^3 p(f), 3/4 <= 1+f <= 3/2
    "log_f32": Fit(log1p_tail, range(8), -0.25, 0.5, lambda x: x**3 / mp.log1p(x) if x else mpf(0)),
    "exp2_f32": Fit(exp2_tail, range(6), -0.5, 0.5, lambda x: x / mp.power(2, x)),
    "exp2_f64": Fit(exp2_tail, range(11), -0.5, 0.5, lambda x: x / mp.power(2, x), 53),
    # log((1+s)/(1-s)) = 2s + s^3 p(s^2)
    "log_f64": Fit(
        atanh_tail,
        range(7),
        0,
        0.04,
        lambda z: z * mp.sqrt(z) / (2 * mp.atanh(mp.sqrt(z))) if z else mpf(0),
        53,
    ),
    # tanh(x) = x + x^3 p(x^2)
    "tanh_f32": Fit(
        tanh_tail, range(5), 0, 0.4, lambda s: s * mp.sqrt(s) / mp.tanh(mp.sqrt(s)) if s else mpf(0)
    ),
    "tanh_f64": Fit(
        tanh_tail,
        range(11),
        0,
        0.4,
        lambda s: s * mp.sqrt(s) / mp.tanh(mp.sqrt(s)) if s else mpf(0),
        53,
    ),
}


def main() -> None:
    """Print the sets named on the command line, or all."""
    for name in sys.argv[1:] or FITS:
        coefficients, worst = fit_rounded(FITS[name])
        print(f"{name}: error 2^{float(mp.log(worst, 2)):.2f}")
        for k in sorted(coefficients, reverse=True):
            print(f"    {float(coefficients[k])!r},  # x^{k}")


if __name__ == "__main__":
    main()
