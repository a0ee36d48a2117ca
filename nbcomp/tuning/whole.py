"""The whole program with the schedules that were found, timed in turn with its default: here.

Knows compiled programs; it must not know how schedules are found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.measure.timing import Ratio, Timing, no_collection, quietly
from nbcomp.measure.variants import measure_variants
from nbcomp.tuning.turns import Turns


@dataclass(frozen=True)
class Whole:
    """The program to use in the end, with calls by default and by it, taken in turn, where there is
    something to compare; others: the cores other programs kept busy meanwhile; declined: why what
    was found for its kernels is not used."""

    compiled: Compiled
    default: Timing | None = None
    own: Timing | None = None
    change: Ratio | None = None
    others: float = 0.0
    note: str = ""
    declined: str = ""


def in_turn(
    base: Compiled,
    made: Compiled,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reference: Callable[..., Any],
    seconds: float,
) -> list[list[float]]:
    """Seconds of calls of a program and of the same one by other options; none where one of them
    does not give the answer of `reference`.  The caller's arrays are left as they are."""
    if base.capture.writes:  # each call needs its arguments as they were
        both = [base.options, made.options]
        seconds += 2 * base.compile_seconds
        variants, _ = measure_variants(base, both, args, kwargs, reference, seconds)
        return [list(v.samples) for v in variants] if all(v.samples for v in variants) else []
    default, own = (partial(c.entry, *args, **kwargs) for c in (base, made))
    with no_collection(), quietly():
        return Turns(default).race([own], seconds)
