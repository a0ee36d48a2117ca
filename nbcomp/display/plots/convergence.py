"""How a search went, as an SVG by hand: the trials of each kernel as dots over the seconds, the
best so far as a line, both as speed-ups over the default schedule.

Knows states of searches; it must not know where the picture is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nbcomp.display.picture.svg import PALETTE, data_uri
from nbcomp.display.plots.plane import INK, Plane, frame, label, line
from nbcomp.display.visible import escape
from nbcomp.tuning.result import KernelState

MOST = 240  # dots of one kernel: of more, the best of neighbours are shown
KERNELS = 6  # curves in one picture


@dataclass(frozen=True)
class _Curve:
    """A kernel's trials: (seconds, speed-up) of the dots, and of the corners of the best so far."""

    name: str
    colour: str
    dots: tuple[tuple[float, float], ...]
    best: tuple[tuple[float, float], ...]


def convergence_plot(kernels: Sequence[KernelState], seconds: float) -> str:
    """The plot as the data URI of an SVG; empty when nothing was timed.

    seconds: how long the search takes in all, the end of the axis.
    """
    shown = sorted(kernels, key=lambda k: -k.calls * k.default)[:KERNELS]
    curves = [c for n, k in enumerate(shown) if (c := _curve(k, PALETTE[n][0])).dots]
    if not curves:
        return ""
    ratios = [y for c in curves for _, y in (*c.dots, *c.best)]
    end = max(seconds, *(x for c in curves for x, _ in c.dots))
    limits = min(0.8, max(min(ratios), 0.1)), max(1.3, 1.15 * max(ratios))
    plane = Plane((0.0, end), limits, log_x=False)
    parts = [
        *frame(plane, "speed-up over the default schedule", "seconds of search"),
        *_ones(plane),
    ]
    for curve in curves:
        parts += _drawn(plane, curve)
    if len(curves) > 1:
        parts += _legend(curves)
    return data_uri(plane.picture(parts))


def _curve(kernel: KernelState, colour: str) -> _Curve:
    timed = [(p.at, kernel.default / p.seconds) for p in kernel.points if p.seconds]
    corners: list[tuple[float, float]] = []
    top = 0.0
    for x, y in timed:
        if y > top:
            corners += [(x, top), (x, y)] if corners else [(x, y)]
            top = y
    if timed:
        corners.append((timed[-1][0], top))
    step = max(1, -(-len(timed) // MOST))
    groups = [timed[k : k + step] for k in range(0, len(timed), step)]
    dots = tuple(max(group, key=lambda p: p[1]) for group in groups)
    return _Curve(kernel.name, colour, dots, tuple(corners))


def _ones(plane: Plane) -> Iterator[str]:
    left, right = plane.across(plane.x[0]), plane.across(plane.x[1])
    yield line(left, plane.up(1.0), right, plane.up(1.0), INK, 1.1, ' stroke-dasharray="5 3"')


def _drawn(plane: Plane, curve: _Curve) -> Iterator[str]:
    low = plane.y[0]
    for x, y in curve.dots:
        place = f'cx="{plane.across(x):.1f}" cy="{plane.up(max(y, low)):.1f}"'
        yield f'<circle {place} r="2" fill="{curve.colour}" fill-opacity="0.45"/>'
    points = " ".join(f"{plane.across(x):.1f},{plane.up(max(y, low)):.1f}" for x, y in curve.best)
    yield f'<polyline points="{points}" fill="none" stroke="{curve.colour}" stroke-width="1.8"/>'


def _legend(curves: Sequence[_Curve]) -> Iterator[str]:
    x = 330.0
    for curve in curves:
        name = curve.name if len(curve.name) <= 14 else f"{curve.name[:13]}…"
        yield line(x, 14, x + 14, 14, curve.colour, 2.4)
        yield label(x + 18, 18, escape(name), "start", curve.colour)
        x += 26 + 7 * len(name)
