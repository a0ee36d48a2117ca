"""The ground of plots that are drawn by hand: axes, ticks, lines and words of an SVG.

No plotting library is loaded for what a cell shows again and again.  Knows numbers; it must not
know what they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbcomp.display.picture.svg import FONT

INK, GRID, FAINT = "#24292f", "#d0d7de", "#57606a"
WIDTH, HEIGHT = 660.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 20.0, 34.0, 46.0


@dataclass(frozen=True)
class Plane:
    """Axes from which places are read; `x` and `y` are their limits, `y` is logarithmic."""

    x: tuple[float, float]
    y: tuple[float, float]
    log_x: bool = True

    def across(self, value: float) -> float:
        """The place of a value of the horizontal axis."""
        return LEFT + _share(value, self.x, self.log_x) * (WIDTH - LEFT - RIGHT)

    def up(self, value: float) -> float:
        """The place of a value of the vertical axis."""
        return HEIGHT - BOTTOM - _share(value, self.y, True) * (HEIGHT - TOP - BOTTOM)

    def picture(self, parts: Sequence[str]) -> str:
        """The parts as one SVG on a light ground."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH:g}" '
            f'height="{HEIGHT:g}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" font-family="{FONT}" '
            f'font-size="11"><rect width="{WIDTH:g}" height="{HEIGHT:g}" rx="6" fill="#ffffff"/>'
        )
        return "\n".join([head, *parts, "</svg>"])


def _share(value: float, limits: tuple[float, float], log: bool) -> float:
    low, high = map(math.log, limits) if log else limits
    if high <= low:
        return 0.5
    return ((math.log(value) if log else value) - low) / (high - low)


def frame(plane: Plane, title: str, below: str, places: Sequence[float] = ()) -> Iterator[str]:
    """The grid, the title, and the axis below with its name; places: its ticks, or round ones."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    yield label(LEFT - 40, 18, title, "start", INK)
    for ratio in ticks(*plane.y):
        y = plane.up(ratio)
        yield line(LEFT, y, right, y, GRID, 0.8)
        yield label(LEFT - 8, y + 4, f"{ratio:g}×", "end")
    yield line(LEFT, bottom, right, bottom, FAINT, 1.0)
    last = -math.inf
    for value in places or round_steps(*plane.x):
        x, words = plane.across(value), f"{value:,g}"
        if x - last > 7 * len(words) + 6:  # as many as fit without touching
            yield label(x, bottom + 17, words, "middle")
            last = x
        yield line(x, bottom, x, bottom + 4, FAINT, 1.0)
    yield label((LEFT + right) / 2, HEIGHT - 10, below, "middle")


def ticks(low: float, high: float) -> list[float]:
    """Round values between the limits: as many as fit without touching."""
    found: list[float] = []
    for steps in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [s * 10.0**e for e in range(-6, 7) for s in steps if low <= s * 10.0**e <= high]
        if len(found) <= 7:
            break
    return found


def round_steps(low: float, high: float) -> list[float]:
    """Round values at equal distances, from four to ten of them."""
    width = max(high - low, 1e-9)
    size = 10.0 ** math.floor(math.log10(width / 4))
    step = next(size * s for s in (1, 2, 5, 10) if width / (size * s) <= 10)
    first = math.ceil(low / step)
    return [round(k * step, 10) for k in range(first, math.floor(high / step) + 1)]


def line(
    x: float, y: float, to_x: float, to_y: float, colour: str, width: float, more: str = ""
) -> str:
    """A straight line."""
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{more}/>'


def label(x: float, y: float, words: str, anchor: str = "start", fill: str = FAINT) -> str:
    """Words, which are markup already."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{words}</text>'
