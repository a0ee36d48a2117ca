"""Decisions: the points at which a schedule may go either way, each with a name.

A rule of the default schedule asks `decide` for every number it would otherwise fix: it gives what
is usual, worked out from the loops and the machine, and what else there is.  With `usual` the rules
make the default schedule; a tuner that answers otherwise makes the others, so the space it searches
is what the rules can do.  Knows nothing of loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from nbcomp.sizes import hint

Value = int | str
V = TypeVar("V", int, str)


class Decide(Protocol):
    """Answers decisions."""

    def __call__(self, name: str, usual: V, options: Sequence[V]) -> V:
        """One of the options, which are in order where they are numbers and hold the usual one.

        name: what is decided, and of which loop or buffer; unique within one schedule.
        """


def usual(name: str, usual: V, options: Sequence[V]) -> V:
    """What the default schedule does."""
    return usual


def half_width(decide: Decide, loop: str, lanes: int) -> int:
    """How many lanes the vectors of a loop have: what the machine's hold, or half of that, which
    pays where lengths are odd numbers of halves, or where a CPU does two halves at once anyway."""
    options = (lanes // 2, lanes) if lanes >= 4 else (lanes,)
    return decide(f"lanes of {loop}", lanes, options)


def among(usual: int, options: Iterable[int], most: int | None = None) -> tuple[int, ...]:
    """Numbers to choose from, in order, up to `most`; the usual one is always there.

    Of a length that is open the value seen counts: the usual one, which is taken, stays as it is.
    """
    return tuple(sorted({usual, *(n for n in options if most is None or n <= hint(most))}))
