"""The speed-up over NumPy across batch sizes, as an SVG by hand: no plotting library is loaded for
what every timed cell shows.

Knows the rows of the speed table; it must not know where the picture is shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbcomp.display.svg import FONT, data_uri
from nbcomp.display.view.speed import SpeedRow

FASTER, SLOWER, INK, GRID, FAINT = "#0072b2", "#d55e00", "#24292f", "#d0d7de", "#57606a"
WIDTH, HEIGHT = 660.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 20.0, 34.0, 46.0
CAP = 4.0  # half the width of the ends of a bar


@dataclass(frozen=True)
class _Axes:
    """Logarithmic axes; `x` and `y` are their limits."""

    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, size: float) -> float:
        """The place of a batch size."""
        return LEFT + _share(size, self.x) * (WIDTH - LEFT - RIGHT)

    def up(self, ratio: float) -> float:
        """The place of a speed-up."""
        return HEIGHT - BOTTOM - _share(ratio, self.y) * (HEIGHT - TOP - BOTTOM)


def _share(value: float, limits: tuple[float, float]) -> float:
    low, high = map(math.log, limits)
    return (math.log(value) - low) / (high - low) if high > low else 0.5


def speedup_plot(rows: Sequence[SpeedRow]) -> str:
    """The plot as the data URI of an SVG; empty when nothing was timed.

    Both axes are logarithmic; bars show the quartiles, the line at 1 is NumPy, and sizes at which
    the compiled function is slower are marked by shape as well as colour.
    """
    timed = [r for r in rows if r.ratio > 0 and r.low > 0 and math.isfinite(r.high)]
    if not timed:
        return ""
    sizes = [r.size for r in timed]
    span = (max(sizes) / min(sizes)) ** 0.04 if len(set(sizes)) > 1 else 2.0
    low = min(0.8, min(r.low for r in timed) / 1.25)
    high = max(1.3, max(r.high for r in timed) * 1.25)
    axes = _Axes((min(sizes) / span, max(sizes) * span), (low, high))
    parts = [*_frame(axes, sizes), *_curve(axes, timed)]
    if any(r.ratio < 1.0 for r in timed):
        parts += _legend()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH:g}" height="{HEIGHT:g}" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" font-family="{FONT}" font-size="11">'
        f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" rx="6" fill="#ffffff"/>'
    )
    return data_uri("\n".join([head, *parts, "</svg>"]))


def _frame(axes: _Axes, sizes: Sequence[int]) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    yield _text(LEFT - 40, 18, "speed-up over NumPy (median and quartiles)", "start", INK)
    for ratio in ticks(*axes.y):
        y = axes.up(ratio)
        yield _line(LEFT, y, right, y, GRID, 0.8)
        yield _text(LEFT - 8, y + 4, f"{ratio:g}×", "end")
    yield _line(LEFT, bottom, right, bottom, FAINT, 1.0)
    last = -math.inf
    for size in sizes:
        x, words = axes.across(size), f"{size:,}"
        if x - last > 7 * len(words) + 6:  # as many as fit without touching
            yield _text(x, bottom + 17, words, "middle")
            last = x
        yield _line(x, bottom, x, bottom + 4, FAINT, 1.0)
    yield _text((LEFT + right) / 2, HEIGHT - 10, "batch size (rows)", "middle")
    y = axes.up(1.0)
    yield _line(LEFT, y, right, y, INK, 1.1, ' stroke-dasharray="5 3"')


def _curve(axes: _Axes, rows: Sequence[SpeedRow]) -> Iterator[str]:
    points = " ".join(f"{axes.across(r.size):.1f},{axes.up(r.ratio):.1f}" for r in rows)
    yield f'<polyline points="{points}" fill="none" stroke="{FASTER}" stroke-width="1.4"/>'
    for r in rows:
        x, colour = axes.across(r.size), SLOWER if r.ratio < 1.0 else FASTER
        top, bottom = axes.up(r.high), axes.up(r.low)
        yield _line(x, top, x, bottom, colour, 1.4)
        yield _line(x - CAP, top, x + CAP, top, colour, 1.4)
        yield _line(x - CAP, bottom, x + CAP, bottom, colour, 1.4)
        yield _mark(x, axes.up(r.ratio), r.ratio < 1.0)


def _mark(x: float, y: float, slower: bool) -> str:
    """A disc, or a cross where NumPy is faster."""
    if not slower:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{FASTER}"/>'
    path = f"M{x - 5:.1f} {y - 5:.1f}l10 10M{x + 5:.1f} {y - 5:.1f}l-10 10"
    return f'<path d="{path}" stroke="{SLOWER}" stroke-width="3.4" stroke-linecap="round"/>'


def _legend() -> list[str]:
    x = WIDTH - RIGHT - 262
    return [
        _mark(x, 14, False),
        _text(x + 9, 18, "faster than NumPy"),
        _mark(x + 140, 14, True),
        _text(x + 150, 18, "slower than NumPy"),
    ]


def ticks(low: float, high: float) -> list[float]:
    """Round values between the limits: as many as fit without touching."""
    found: list[float] = []
    for steps in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [s * 10.0**e for e in range(-6, 7) for s in steps if low <= s * 10.0**e <= high]
        if len(found) <= 7:
            break
    return found


def _line(
    x: float, y: float, to_x: float, to_y: float, colour: str, width: float, more: str = ""
) -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{more}/>'


def _text(x: float, y: float, words: str, anchor: str = "start", fill: str = FAINT) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{words}</text>'
