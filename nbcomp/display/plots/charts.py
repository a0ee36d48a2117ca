"""Pictures of what was measured: the cost of each optimisation's absence, the roofline of this
machine with the kernels on it, memory over the steps, compile time by stage.

Colours are those of Okabe and Ito, which the colour-blind can tell apart; shapes and words say the
same.  Knows figures; it must not know where the pictures are put.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nbcomp.display.plots.plot import FASTER, INK, SLOWER, picture
from nbcomp.display.view.measured import size
from nbcomp.display.visible import visible
from nbcomp.measure.figures import Ablation, Measured
from nbcomp.measure.roofline import LEVELS, Limits, Memory, Numbers

GRID, FAINT = "#d0d7de", "#8c959f"
ROLES = {"input": "#56b4e9", "constant": "#cc79a7", "output": "#009e73", "temp": "#e69f00"}
MARKERS = "osD^vP*X"
MOST = 40  # buffers or optimisations in one picture

Axes = Any  # matplotlib's; it is imported only to draw


def charts(measured: Measured, stages: Sequence[tuple[str, float]] = ()) -> dict[str, str]:
    """The data URIs of the pictures, by name: those there is something measured for."""
    found: dict[str, tuple[float, Callable[[Axes], None]]] = {}
    if measured.ablation and any(row.ratio for row in measured.ablation.rows):
        count = sum(row.ratio is not None for row in measured.ablation.rows)
        found["ablation"] = 0.9 + 0.27 * count, partial(ablation_chart, measured.ablation)
    if measured.numbers and measured.numbers.kernels:
        found["roofline"] = 3.4, partial(roofline_chart, measured.numbers)
        count = min(len(measured.numbers.memory.buffers), MOST)
        found["memory"] = 0.9 + 0.22 * count, partial(memory_chart, measured.numbers.memory)
    if found and stages:
        found["stages"] = 0.7 + 0.24 * len(stages), partial(stages_chart, stages)
    return {name: picture(height, draw) for name, (height, draw) in found.items()}


def ablation_chart(ablation: Ablation, axes: Axes) -> None:
    """How many times as long the program takes without each optimisation, on a logarithmic axis."""
    rows = [row for row in ablation.rows if row.ratio][:MOST]
    rows.sort(key=lambda row: row.ratio.median if row.ratio else 0.0)
    for place, row in enumerate(rows):
        assert row.ratio is not None
        ratio, clear = row.ratio, row.ratio.clear
        colour = FAINT if not clear else SLOWER if ratio.median > 1 else FASTER
        axes.barh(place, ratio.median - 1, left=1, color=colour, height=0.62)
        axes.plot([ratio.low, ratio.high], [place, place], color=INK, linewidth=1.2)
        words = f"{ratio.median:.2f}×" + ("" if clear else " (within the spread)")
        _beside(axes, max(ratio.high, 1.0), place, words)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_xscale("log")
    highest = max(row.ratio.high for row in rows if row.ratio)
    lowest = min(row.ratio.low for row in rows if row.ratio)
    axes.set_xlim(min(0.8, lowest / 1.1), max(1.5, highest * 2.2))
    _plain_ticks(axes.xaxis, (0.5, 1, 2, 3, 5, 10, 20, 50, 100, 1000), "×")
    axes.axvline(1.0, color=INK, linewidth=1.0)
    axes.set_title("time without each optimisation", fontsize=10, loc="left")
    _bare(axes)


def roofline_chart(numbers: Numbers, axes: Axes) -> None:
    """Operations per second over operations per byte: the limits as lines, the kernels as marks.

    The lines are the bandwidth of each level and the multiply-add peak, on all threads.
    """
    limits, threads = numbers.limits, numbers.limits.threads
    marks = [k for k in numbers.kernels if k.operations and k.bytes]
    at = [k.intensity for k in marks] or [1.0]
    left, right = min(0.05, *at) / 2, max(100.0, *at) * 2
    _roofs(axes, limits, threads, left, right)
    for number, k in enumerate(marks):
        marker = MARKERS[number % len(MARKERS)]
        share = f", {100 * k.of_limit:.0f} %" if k.bound != "overhead" else ""
        label = f"{_name(k.kernel)}: {k.bound}{share}"
        axes.plot(
            k.intensity,
            k.flops_per_second / 1e9,
            marker,
            color=SLOWER,
            markeredgecolor="white",
            markersize=9,
            label=label if number < len(MARKERS) else None,
            zorder=3,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("Gop/s")
    axes.set_title(f"roofline of this machine, {threads} threads", fontsize=10, loc="left")
    axes.grid(color=GRID, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    if marks:
        axes.legend(title="kernels", fontsize=8, title_fontsize=8, loc="lower right")


def _roofs(axes: Axes, limits: Limits, threads: int, left: float, right: float) -> None:
    """The limits, each with its name."""
    peak = limits.peak(threads, "float32")
    for dtype, style in (("float32", "-"), ("float64", "--")):
        value = limits.peak(threads, dtype) / 1e9
        axes.plot([left, right], [value, value], style, color=INK, linewidth=1.2)
        axes.text(right, value * 1.06, f"{dtype} {value:.0f}", ha="right", fontsize=7.5)
    for number, level in enumerate(LEVELS):
        rate = limits.bandwidth(threads, level)
        corner = peak / rate
        axes.plot([left, corner], [rate * left / 1e9, peak / 1e9], color=FASTER, linewidth=1.1)
        x = min(left * 1.3 * 4.0**number, corner / 1.5)  # one beside the other, on its own line
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        words = f"{level} {rate / 1e9:.0f} GB/s"
        axes.text(x, rate * x / 1e9, words, fontsize=7.5, color=FASTER, va="center", bbox=box)


def memory_chart(memory: Memory, axes: Axes) -> None:
    """Every buffer as a bar over the steps at which it is alive, the largest first."""
    shown = sorted(memory.buffers, key=lambda b: -b.bytes)[:MOST]
    for place, b in enumerate(shown):
        width = b.last - b.first + 1
        axes.barh(-place, width, left=b.first, color=ROLES[b.role], height=0.7)
        axes.text(b.first + width / 2, -place, size(b.bytes), ha="center", va="center", fontsize=7)
    axes.set_yticks([-k for k in range(len(shown))], [f"{_name(b.name)} ({b.role})" for b in shown])
    axes.set_xlim(0, len(memory.steps))
    if len(memory.steps) <= 12:
        names = [_name(name if len(name) < 16 else name[:15] + "…") for name in memory.steps]
        axes.set_xticks([k + 0.5 for k in range(len(names))], names)
    axes.set_title(f"memory over the steps: {size(memory.peak)} in a call", fontsize=10, loc="left")
    _bare(axes)


def stages_chart(stages: Sequence[tuple[str, float]], axes: Axes) -> None:
    """Milliseconds of each stage of compiling."""
    for place, (_, value) in enumerate(stages):
        axes.barh(-place, 1e3 * value, color=FASTER, height=0.62)
        _beside(axes, 1e3 * value, -place, f"{1e3 * value:.1f} ms")
    axes.set_yticks([-k for k in range(len(stages))], [name for name, _ in stages])
    axes.set_xlim(0, 1.15e3 * max(value for _, value in stages) or 1.0)
    axes.set_title("compile time by stage", fontsize=10, loc="left")
    _bare(axes)


def _name(text: str) -> str:
    """A name of the user's: as text, never as matplotlib's mathematics."""
    return visible(text).replace("$", r"\$")


def _beside(axes: Axes, x: float, y: float, words: str) -> None:
    """Words to the right of a place."""
    axes.annotate(words, (x, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)


def _bare(axes: Axes) -> None:
    """Bars need few lines around them."""
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=8.5)


def _plain_ticks(axis: Any, values: Sequence[float], unit: str) -> None:
    """Round values, as they are written, on a logarithmic axis."""
    low, high = axis.get_view_interval()
    shown = [v for v in values if low <= v <= high]
    axis.set_ticks(shown, [f"{v:g}{unit}" for v in shown])
    axis.set_ticks([], minor=True)
