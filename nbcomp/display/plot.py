"""The speed-up over NumPy across batch sizes.  Only this module and `charts` know matplotlib."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from nbcomp.display.svg import data_uri
from nbcomp.display.view.speed import SpeedRow

FASTER, SLOWER, INK = "#0072b2", "#d55e00", "#24292f"


def speedup_plot(rows: Sequence[SpeedRow]) -> str:
    """The plot as the data URI of an SVG; empty when nothing was timed.

    Both axes are logarithmic; bars show the quartiles, the line at 1 is NumPy, and sizes at which
    the compiled function is slower are marked by shape as well as colour.
    """
    timed = [r for r in rows if not math.isnan(r.ratio)]
    if not timed:
        return ""
    return picture(2.9, lambda axes: _draw(axes, timed), (0.1, 0.19, 0.88, 0.71))


def picture(
    height: float,
    draw: Callable[[Any], None],
    place: tuple[float, float, float, float] | None = None,
) -> str:
    """What `draw` puts on the axes of a figure so many inches high, as the data URI of an SVG.

    place: of the axes in the figure; by default as large as their labels leave room for.
    """
    import matplotlib  # here, because importing it takes a third of a second
    from matplotlib.figure import Figure

    # Fixed ids make the picture the same every time; text stays text, so the file stays small.
    with matplotlib.rc_context({"svg.hashsalt": "nbcomp", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.8, height), facecolor="white")
        if place is None:
            figure.set_layout_engine("constrained")
        draw(figure.add_axes(place) if place else figure.add_subplot())
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # The reader's own fonts show the letters that matplotlib's lack.
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
            figure.savefig(buffer, format="svg", metadata={"Date": None})
    return data_uri(buffer.getvalue())


def _ticks(low: float, high: float) -> list[float]:
    """Round values between the limits: as many as fit without touching."""
    found: list[float] = []
    for steps in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [s * 10.0**e for e in range(-6, 7) for s in steps if low <= s * 10.0**e <= high]
        if len(found) <= 7:
            break
    return found


def _draw(axes: object, rows: Sequence[SpeedRow]) -> None:
    from matplotlib.axes import Axes
    from matplotlib.ticker import FuncFormatter, NullLocator

    assert isinstance(axes, Axes)
    sizes = [r.size for r in rows]
    axes.axhline(1.0, color=INK, linewidth=1.0, linestyle="--")
    axes.plot(sizes, [r.ratio for r in rows], color=FASTER, linewidth=1.3, zorder=2)
    for slower, colour, marker in ((False, FASTER, "o"), (True, SLOWER, "X")):
        some = [r for r in rows if (r.ratio < 1.0) == slower]
        if some:
            spread = [[r.ratio - r.low for r in some], [r.high - r.ratio for r in some]]
            axes.errorbar(
                [r.size for r in some],
                [r.ratio for r in some],
                yerr=[[max(v, 0.0) for v in side] for side in spread],
                color=colour,
                fmt=marker,
                markersize=7,
                capsize=3,
                label="slower than NumPy" if slower else "faster than NumPy",
                zorder=3,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    low = min(0.8, min(r.low for r in rows) / 1.25)
    high = max(1.3, max(r.high for r in rows) * 1.25)
    axes.set_ylim(low, high)
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.set_yticks(_ticks(low, high))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("batch size (rows)")
    axes.set_title("speed-up over NumPy (median and quartiles)", fontsize=10, loc="left")
    axes.grid(axis="y", color="#d0d7de", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if any(r.ratio < 1.0 for r in rows):
        axes.legend(frameon=False, fontsize=8.5)
