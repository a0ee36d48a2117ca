"""The speed-up over NumPy across batch sizes, as an SVG by hand: no plotting library is loaded for
what every timed cell shows.

Knows the rows of the speed table; it must not know where the picture is shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from nbcomp.display.picture.svg import data_uri
from nbcomp.display.plots.plane import INK, LEFT, RIGHT, WIDTH, Plane, frame, label, line
from nbcomp.display.view.speed import SpeedRow

FASTER, SLOWER = "#0072b2", "#d55e00"
CAP = 4.0  # half the width of the ends of a bar


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
    plane = Plane((min(sizes) / span, max(sizes) * span), (low, high))
    title = "speed-up over NumPy (median and quartiles)"
    parts = [*frame(plane, title, "batch size (rows)", sizes), _same(plane)]
    parts += _curve(plane, timed)
    if any(r.ratio < 1.0 for r in timed):
        parts += _legend()
    return data_uri(plane.picture(parts))


def _same(plane: Plane) -> str:
    y = plane.up(1.0)
    return line(LEFT, y, WIDTH - RIGHT, y, INK, 1.1, ' stroke-dasharray="5 3"')


def _curve(plane: Plane, rows: Sequence[SpeedRow]) -> Iterator[str]:
    points = " ".join(f"{plane.across(r.size):.1f},{plane.up(r.ratio):.1f}" for r in rows)
    yield f'<polyline points="{points}" fill="none" stroke="{FASTER}" stroke-width="1.4"/>'
    for r in rows:
        x, colour = plane.across(r.size), SLOWER if r.ratio < 1.0 else FASTER
        top, bottom = plane.up(r.high), plane.up(r.low)
        yield line(x, top, x, bottom, colour, 1.4)
        yield line(x - CAP, top, x + CAP, top, colour, 1.4)
        yield line(x - CAP, bottom, x + CAP, bottom, colour, 1.4)
        yield _mark(x, plane.up(r.ratio), r.ratio < 1.0)


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
        label(x + 9, 18, "faster than NumPy"),
        _mark(x + 140, 14, True),
        label(x + 150, 18, "slower than NumPy"),
    ]
