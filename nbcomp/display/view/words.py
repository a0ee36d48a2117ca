"""Numbers in words: durations, ratios, distances, amounts of things.  Knows numbers only."""

from __future__ import annotations

NEAR = 1.25  # the quartiles of a speed-up within this factor of 1 mean "about as fast"

FEW_ULP = 64  # beyond this a difference is said by the size of the whole answer
WIDE = 4  # times the lower quartile: a spread of which the median says little


def seconds(value: float) -> str:
    """A duration with three significant digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e-9)} ns"


def _digits(value: float) -> str:
    return (
        f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    )


def ratio_words(ratio: float, low: float, high: float) -> tuple[str, str]:
    """A status word and how a speed-up is said; one whose quartiles lie on both sides of 1 is no
    gain.
    """
    if low <= 1.0 <= high:
        about = "about as fast as NumPy" if low > 1 / NEAR and high < NEAR else "unclear which is"
        rest = "" if about.startswith("about") else " faster, the times vary too much"
        return "same", f"{about}{rest} ({low:.2f}–{high:.2f}×)"
    if high > WIDE * low:  # the median says little
        least, most = (low, high) if ratio > 1.0 else (1 / high, 1 / low)
        word = "faster" if ratio > 1.0 else "slower"
        return word, f"at least {_digits(least)}× {word} than NumPy (up to {_digits(most)})"
    if ratio > 1.0:
        return "faster", f"{_digits(ratio)}× faster than NumPy ({_digits(low)}–{_digits(high)})"
    return (
        "slower",
        f"{_digits(1 / ratio)}× slower than NumPy ({_digits(1 / high)}–{_digits(1 / low)})",
    )


def distance_words(ulp: float, scaled: float) -> str:
    """A distance between answers, in ulp; of elements near zero, which a subtraction left and whose
    own last place says nothing, in ulp of the largest (`scaled`)."""
    if ulp > FEW_ULP and 0 < scaled < ulp:
        return (
            f"{scaled:.1f} ulp of the largest"
            if scaled < 1e6
            else f"{scaled:.1e} ulp of the largest"
        )
    return ulp_words(ulp)


def ulp_words(ulp: float) -> str:
    """A distance in units in the last place."""
    return f"{ulp:.0f} ulp" if ulp < 1e6 else f"{ulp:.1e} ulp"


def count(number: int, what: str) -> str:
    """A number of things, in the plural where it is not one."""
    return f"{number} {what}{'s' * (number != 1)}"


def called(name: str, calls: int) -> str:
    """A kernel with how often it is called, if that is not once."""
    return f"{name} ×{calls}" if calls > 1 else name
