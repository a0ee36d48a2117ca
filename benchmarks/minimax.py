"""Minimax polynomials of the elementary functions: where the coefficients in nbcomp come from.

    python -m benchmarks.minimax            # all: the text of elementary/coefficients.py
    python -m benchmarks.minimax exp_f32    # one set: coefficients, highest power first, error

Each set asks for the polynomial of given powers that minimises the largest weighted error on an
interval (a linear program, refined to 60 digits).  Coefficients are rounded to the format one by
one, the most important first, and the others fitted again, so that rounding costs little. Needs
mpmath.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import linprog

mp.dps = 60

Real = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """f(x) ~ sum of c_k x^k for k in powers, minimising |weight(x) (sum - f(x))| on [low, high].

    `bits` is the format of each coefficient (24: float32, 53: float64); `wide` leading powers may
    have more, as they are written as a sum of two.
    """

    f: Real
    powers: Sequence[int]
    low: float
    high: float
    weight: Real = lambda x: mpf(1)
    bits: int = 24


def solve(fit: Fit, fixed: dict[int, mpf], points: int = 240) -> tuple[dict[int, mpf], mpf]:
    """Coefficients of the free powers, given the fixed ones, and the largest weighted error.

    A linear program on a Chebyshev grid finds corrections to the current coefficients, in units of
    the current error, so that double precision is enough for it; rounds are repeated until nothing
    is gained.
    """
    free = [k for k in fit.powers if k not in fixed]
    low, high = mpf(fit.low), mpf(fit.high)
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / points) for i in range(points + 1)
    ]
    weight = [fit.weight(x) for x in grid]
    reach = max(abs(low), abs(high))
    target = [
        w * (fit.f(x) - sum(c * x**k for k, c in fixed.items()))
        for x, w in zip(grid, weight, strict=True)
    ]
    if not free:
        return {}, max(abs(t) for t in target)
    basis = [[w * (x / reach) ** k for k in free] for x, w in zip(grid, weight, strict=True)]
    solution = [mpf(0)] * len(free)
    worst = mpf(0)
    for _ in range(30):
        residual = [
            t - sum(c * b for c, b in zip(solution, row, strict=True))
            for row, t in zip(basis, target, strict=True)
        ]
        before, worst = worst, max(abs(r) for r in residual)
        if worst == 0 or (before and worst > before * mpf("0.999")):
            break
        step = chebyshev_step(
            np.array([[float(b) for b in row] for row in basis]),
            np.array([float(r / worst) for r in residual]),
        )
        solution = [c + worst * mpf(float(d)) for c, d in zip(solution, step, strict=True)]
    found = {k: c / reach**k for k, c in zip(free, solution, strict=True)}
    return found, worst


def chebyshev_step(basis: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """The combination of the columns closest to the residual in the largest absolute difference."""
    q, r = np.linalg.qr(basis)
    q *= np.sqrt(len(residual))
    n = q.shape[1]
    ones = np.ones((len(residual), 1))
    result = linprog(
        np.r_[np.zeros(n), 1.0],
        A_ub=np.block([[q, -ones], [-q, -ones]]),
        b_ub=np.r_[residual, -residual],
        bounds=[(None, None)] * n + [(0, None)],
        method="highs",
    )
    return np.asarray(np.linalg.solve(r, result.x[:n] * np.sqrt(len(residual))))


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

    After each rounding the others are fitted again, where that helps.
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


# The functions fitted are what is left of a series after its first terms: tail(sin, 3) of x^2 is
# (sin x - x) / x^3.  The weight x^3 / sin x makes the error relative to sin x.

Series = Callable[[int], mpf]  # the coefficient of x^k


def tail(f: Real, series: Series, skip: int, step: int = 1) -> Real:
    """(f(x) - its terms below x^skip) / x^skip as a function of x^step."""

    def rest(z: mpf) -> mpf:
        x = z if step == 1 else mp.sqrt(z)
        if abs(x) < mpf(2) ** -24:  # the series itself, where the difference would lose digits
            return sum(series(skip + k * step) * z**k for k in range(8))
        return (f(x) - sum(series(k) * x**k for k in range(skip))) / x**skip

    return rest


def over(f: Real, skip: int, step: int = 1, limit: int = 1) -> Real:
    """The weight x^skip / f(x) as a function of x^step; 0 at 0."""

    def weight(z: mpf) -> mpf:
        x = z if step == 1 else mp.sqrt(z)
        return x**skip / f(x) if x else mpf(0) if skip > limit else mpf(1)

    return weight


def odd(f: Real, series: Series, count: int, high: float, bits: int = 24) -> Fit:
    """f(x) = x + x^3 p(x^2) for 0 <= x <= high."""
    return Fit(tail(f, series, 3, 2), range(count), 0, high * high, over(f, 3, 2), bits)


def around(fit: Fit, centre: float) -> Fit:
    """The same as a polynomial of x - centre."""
    return replace(
        fit,
        f=lambda y: fit.f(y + centre),
        low=fit.low - centre,
        high=fit.high - centre,
        weight=lambda y: fit.weight(y + centre),
    )


def even(f: Real, series: Series, skip: int, count: int, high: float, bits: int = 24) -> Fit:
    """f(x) = its terms below x^skip, and x^skip p(x^2), for 0 <= x <= high."""
    return Fit(tail(f, series, skip, 2), range(count), 0, high * high, over(f, skip, 2), bits)


def exp_series(k: int) -> mpf:
    return 1 / mp.factorial(k)


def sin_series(k: int) -> mpf:
    return (-1) ** (k // 2) / mp.factorial(k) if k % 2 else mpf(0)


def cos_series(k: int) -> mpf:
    return mpf(0) if k % 2 else (-1) ** (k // 2) / mp.factorial(k)


def sinh_series(k: int) -> mpf:
    return exp_series(k) if k % 2 else mpf(0)


def cosh_series(k: int) -> mpf:
    return mpf(0) if k % 2 else exp_series(k)


def log1p_series(k: int) -> mpf:
    return -((-1) ** k) * mpf(1) / k if k else mpf(0)


def atanh2_series(k: int) -> mpf:
    return mpf(2) / k if k % 2 else mpf(0)


def cbrt1p(x: mpf) -> mpf:
    return mp.cbrt(1 + x)


def cbrt1p_series(k: int) -> mpf:
    return mp.binomial(mpf(1) / 3, k)


def atanh_series(k: int) -> mpf:
    return mpf(1) / k if k % 2 else mpf(0)


def atan_series(k: int) -> mpf:
    return (-1) ** (k // 2) * mpf(1) / k if k % 2 else mpf(0)


def asin_series(k: int) -> mpf:
    n = k // 2
    return mp.binomial(2 * n, n) / (mpf(4) ** n * k) if k % 2 else mpf(0)


def tan_series(k: int) -> mpf:
    n = (k + 1) // 2
    four = mpf(4) ** n
    return abs(mp.bernoulli(2 * n)) * four * (four - 1) / mp.factorial(2 * n) if k % 2 else mpf(0)


def tanh_series(k: int) -> mpf:
    return tan_series(k) * (-1) ** (k // 2)


def erf_series(k: int) -> mpf:
    n = k // 2
    return 2 / mp.sqrt(mp.pi) * (-1) ** n / (mp.factorial(n) * k) if k % 2 else mpf(0)


def exp2_series(k: int) -> mpf:
    return mp.ln2**k / mp.factorial(k)


def exp2(x: mpf) -> mpf:
    return mp.power(2, x)


def atanh2(x: mpf) -> mpf:
    """log((1 + x) / (1 - x))"""
    return 2 * mp.atanh(x)


def logarithm(base: int, high: float, count: int, interval: tuple[float, float]) -> Fit:
    """log_base(1 + f) = f·high + f p(f), in float32."""

    def f(x: mpf) -> mpf:
        return mp.log1p(x) / mp.log(base)

    quotient = tail(f, lambda k: log1p_series(k) / mp.log(base), 1)
    return Fit(lambda x: quotient(x) - high, range(count), *interval, over(f, 1, limit=0))


def tangent(pole: float, count: int) -> Fit:
    """tan r = r (1 + s p(s)) / (1 - s pole), s = r^2, in float32."""
    quotient = tail(mp.tan, tan_series, 1, 2)

    def dividend(s: mpf) -> mpf:
        return quotient(s) * (1 - s * mpf(pole))

    def p(s: mpf) -> mpf:
        return (dividend(s) - 1) / s if s else mpf(1) / 3 - pole

    return Fit(p, range(count), 0, QUARTER_PI**2, lambda s: s / dividend(s))


HALF_LN2 = float(mp.log(2) / 2) * 1.0001
QUARTER_PI = float(mp.pi / 4) * 1.002  # the multiple of pi/2 is not always the nearest one

TAN_POLE = float(np.float32(4 / np.pi**2))

EXP_TAIL, EXP_WEIGHT = tail(mp.exp, exp_series, 2), over(mp.exp, 2)
LOG_TAIL, LOG_WEIGHT = tail(mp.log1p, log1p_series, 3), over(mp.log1p, 3)
LOG_TAIL_2 = tail(mp.log1p, log1p_series, 2)
OCTAVE = (-1 / 3, 1 / 3)
SMALL_POWER = (-0.04, 0.0625)
SMALL = (-0.0322, 0.0625)  # benchmarks/tables.py prints this interval
EXP2_TAIL, EXP2_WEIGHT = tail(exp2, exp2_series, 1), over(exp2, 1, limit=0)

# "single" is for float32 functions that are computed in double.
FITS: dict[str, Fit] = {
    # e^r = 1 + r + r^2 p(r)
    "exp_f32": Fit(EXP_TAIL, range(5), -HALF_LN2, HALF_LN2, EXP_WEIGHT),
    "exp_f64": Fit(EXP_TAIL, range(10), -HALF_LN2, HALF_LN2, EXP_WEIGHT, 53),
    "expm1_f32": Fit(EXP_TAIL, range(6), -HALF_LN2, HALF_LN2, over(mp.expm1, 2)),
    "expm1_f64": Fit(EXP_TAIL, range(11), -HALF_LN2, HALF_LN2, over(mp.expm1, 2), 53),
    # 2^r = 1 + r p(r)
    "exp2_f32": Fit(EXP2_TAIL, range(6), -0.5, 0.5, EXP2_WEIGHT),
    "exp2_single": Fit(EXP2_TAIL, range(6), -0.5, 0.5, EXP2_WEIGHT, 53),
    "exp2_f64": Fit(EXP2_TAIL, range(11), -0.5, 0.5, EXP2_WEIGHT, 53),
    # 2^r = 1 + r p(r) for the small r of a table
    "exp2_table_f32": Fit(EXP2_TAIL, range(3), -1 / 32, 1 / 32, EXP2_WEIGHT),
    "sinh_f32": odd(mp.sinh, sinh_series, 3, HALF_LN2),
    "sinh_f64": odd(mp.sinh, sinh_series, 5, HALF_LN2, 53),
    "sinh_near_f32": odd(mp.sinh, sinh_series, 4, 1),
    "sinh_near_f64": odd(mp.sinh, sinh_series, 7, 1, 53),
    "cosh_near_f32": even(mp.cosh, cosh_series, 2, 4, 1),
    "cosh_near_f64": even(mp.cosh, cosh_series, 2, 7, 1, 53),
    "cosh_f32": even(mp.cosh, cosh_series, 2, 3, HALF_LN2),
    "cosh_f64": even(mp.cosh, cosh_series, 2, 5, HALF_LN2, 53),
    # log(1+f) = f - f^2/2 + f^3 p(f), 3/4 <= 1+f <= 3/2
    "log_f32": Fit(LOG_TAIL, range(8), -0.25, 0.5, LOG_WEIGHT),
    "log2_f32": logarithm(2, 1.5, 10, OCTAVE),
    "log10_f32": logarithm(10, 0.5, 10, OCTAVE),
    # the same for the small f that a table of inverses leaves
    "log_table_f32": Fit(LOG_TAIL_2, range(4), *SMALL, over(mp.log1p, 2)),
    "log2_table_f32": logarithm(2, 1.5, 5, SMALL),
    "log10_table_f32": logarithm(10, 0.5, 5, SMALL),
    # log((1+s)/(1-s)) = 2s + s^3 p(s^2)
    "log_f64": Fit(tail(atanh2, atanh2_series, 3, 2), range(7), 0, 0.04, over(atanh2, 3, 2), 53),
    "atanh_f32": odd(mp.atanh, atanh_series, 6, 0.5),
    "atanh_f64": odd(mp.atanh, atanh_series, 10, 1 / 3, 53),
    # the same as a polynomial, and its second half for x^y: s^5 p(s^2)
    "log_power_single": Fit(LOG_TAIL, range(11), -0.25, 0.5, LOG_WEIGHT, 53),
    # log2(1+f) = (f - f^2/2)/ln2 + f^3 p(f) for the small f of a table
    "log2_cubic_f32": Fit(
        lambda x: LOG_TAIL(x) / mp.ln2, range(5), *SMALL_POWER, lambda x: x**3 / mp.log1p(x)
    ),
    "log_power_f64": Fit(
        tail(atanh2, atanh2_series, 5, 2), range(8), 0, 0.04, over(atanh2, 5, 2), 53
    ),
    # m^(-1/3), 3/4 <= m < 3/2, roughly, for one cubic iteration
    "cbrt": Fit(lambda m: m ** (-mpf(1) / 3), range(5), 0.75, 1.5, lambda m: m ** (mpf(1) / 3), 53),
    # (1 + f)^(1/3) = 1 + f p(f), 3/4 <= 1 + f <= 3/2
    "cbrt_f32": Fit(tail(cbrt1p, cbrt1p_series, 1), range(8), -0.25, 0.5, over(cbrt1p, 1)),
    "tanh_f32": odd(mp.tanh, tanh_series, 7, 0.9),
    "tanh_f64": odd(mp.tanh, tanh_series, 11, 0.625, 53),
    "sin_f32": odd(mp.sin, sin_series, 3, QUARTER_PI),
    "sin_f64": odd(mp.sin, sin_series, 6, QUARTER_PI, 53),
    "cos_f32": even(mp.cos, cos_series, 4, 3, QUARTER_PI),
    "cos_f64": even(mp.cos, cos_series, 4, 6, QUARTER_PI, 53),
    "tan_f32": tangent(TAN_POLE, 3),
    "tan_f64": odd(mp.tan, tan_series, 14, QUARTER_PI, 53),
    "atan_f32": odd(mp.atan, atan_series, 7, 0.65),
    "atan_f64": odd(mp.atan, atan_series, 15, 0.65, 53),
    "atan2_f32": around(odd(mp.atan, atan_series, 9, 1), 0.5),
    "atan2_f64": odd(mp.atan, atan_series, 20, 1, 53),
    "asin_f32": odd(mp.asin, asin_series, 5, 0.5),
    "asin_f64": odd(mp.asin, asin_series, 12, 0.5, 53),
    # erf(x) = x + x p(x^2) below 1, 1 - exp(-p(x - 1)) above
    "erf_near_f64": Fit(
        lambda s: tail(mp.erf, erf_series, 1, 2)(s) - 1, range(14), 0, 1, over(mp.erf, 1, 2), 53
    ),
    "erf_far_f64": Fit(
        lambda y: -mp.log(mp.erfc(1 + y)), range(17), 0, 5, lambda y: mp.erfc(1 + y), 53
    ),
}


HEADER = '''"""Polynomial coefficients of the elementary functions, highest power first.

Made by benchmarks/minimax.py, which says what each approximates; plain numbers.
"""

from __future__ import annotations
'''


def main() -> None:
    """Print the sets named on the command line, or the whole module."""
    if not sys.argv[1:]:
        print(HEADER)
    for name in sys.argv[1:] or FITS:
        coefficients, worst = fit_rounded(FITS[name])
        print(f"{name.upper()} = (  # error 2^{float(mp.log(worst, 2)):.1f}")
        for k in sorted(coefficients, reverse=True):
            print(f"    {float(coefficients[k])!r},")
        print(")")


if __name__ == "__main__":
    main()
