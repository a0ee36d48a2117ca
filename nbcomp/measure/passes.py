"""What each pass bought: the run time of the program as it was before and after it.

Knows which optimisations are passes and in which order; it must not know how they are timed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from nbcomp.compiled import Compiled
from nbcomp.measure.figures import PassTime, PassTimes
from nbcomp.measure.timing import ratio
from nbcomp.measure.variants import Say, Variant, idle, measure_variants
from nbcomp.options import OPTIMISATIONS, Options

STARTS = {"graph": "capture", "loop": "lower"}  # the passes after which a level begins
# To be measured before the others; first that which is compiled already.
TELLING = ("fuse", *STARTS.values(), "vectorize", "parallelize")


def measure_passes(
    compiled: Compiled,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | None = None,
    seconds: float = 5.0,
    say: Say = lambda _: None,
) -> PassTimes:
    """The run time after every pass, on these arguments, within about `seconds`.

    A graph as it was after a pass is compiled with the whole schedule, each operator in a kernel of
    its own until they are fused; loops as they were after a step of their schedule come from the
    finished graph.  Every program is compared with NumPy first; all are timed in turn.
    """
    plan = _plan(compiled.options, idle(compiled))
    choices = [options for _, _, options in plan]
    names = [name for _, name, _ in plan]
    most = [names.index(name) for name in TELLING if name in names]
    found, others = measure_variants(
        compiled, choices, args, kwargs, reference, seconds, say, before=most
    )
    rows = []
    before: Variant | None = None
    for (level, name, _), variant in zip(plan, found, strict=True):
        start = name == STARTS[level]
        rows.append(_row(level, name, variant, None if start else before))
        if start or variant.timing:
            before = variant
    return PassTimes(tuple(rows), others)


def _plan(
    base: Options, idle: Collection[str] = ()
) -> list[tuple[Literal["graph", "loop"], str, Options]]:
    """(level, pass, what is done up to it) for every pass that is measured.

    idle: passes that changed nothing, so that what is done up to them is what was done before.
    """
    plan: list[tuple[Literal["graph", "loop"], str, Options]] = []
    for level in STARTS:
        # Who computes products is no state of the graph between two passes.
        choice = ("blas", "generate")
        names = [o.name for o in OPTIMISATIONS if o.level == level and o.name not in choice]
        names = [name for name in names if base.does(name)]
        for done, name in enumerate([STARTS[level], *names]):
            if not done or name not in idle:
                options = base.leaving(*names[done:])
            plan.append(("graph" if level == "graph" else "loop", name, options))
    return plan


def _row(
    level: Literal["graph", "loop"], name: str, variant: Variant, before: Variant | None
) -> PassTime:
    change, note = None, variant.note
    if before is not None and before.first == variant.first and not note:
        note = "no change"
    elif before is not None and variant.samples and before.samples:
        change = ratio(variant.samples, before.samples)
    return PassTime(name, level, variant.timing, change, variant.same, note)
