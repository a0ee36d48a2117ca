"""From a call of a compiled function to its report: compared with NumPy, timed, scaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import nbcomp
from nbcomp import bench
from nbcomp.display.bundle import Report
from nbcomp.display.view import SECTIONS, Fallback
from nbcomp.magics.cell import Call


@dataclass(frozen=True)
class Options:
    """What a report is to hold: timings, at which batch sizes, within how many seconds."""

    timed: bool = True
    sizes: tuple[int, ...] = bench.SIZES
    seconds: float = 5.0
    max_lines: int = 200
    show: tuple[str, ...] = SECTIONS


def report_on(call: Call, options: Options, say: Callable[[str], None] = lambda _: None) -> Report:
    """Compare a call with NumPy and, unless told otherwise, time it, also across batch sizes."""
    function, compiled = call.function, call.compiled
    if call.refused is not None:
        refused = call.refused
        reason = Fallback(function.__name__, refused.message, refused.location, refused.hint)
        return Report(reason, call.value, show=options.show)
    reference = function.__wrapped__
    name = compiled.name
    say(f"{name}: comparing with NumPy …")
    both = (function, reference, call.args, call.kwargs)
    scaling = None
    if options.timed:
        comparison = bench.compare(*both, seconds=options.seconds / 4)
        if comparison.agrees:
            # A copy of the function, so that it does not keep a variant for every size.
            scaling = bench.scaling(
                nbcomp.jit(reference),
                *both[1:],
                sizes=options.sizes,
                seconds=options.seconds * 3 / 4,
                progress=lambda size: say(f"{name}: timing batch size {size:,} …"),
            )
    else:
        comparison = bench.check(*both)
    return Report(compiled, call.value, comparison, scaling, options.max_lines, options.show)
