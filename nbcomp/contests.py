"""Which of two ways of running a function is the faster, found out by the calls that are made.

What is compiled is not always faster: between many graph breaks on a few elements, handing over
costs more than it saves.  So the first calls of a kind go one way and the other in turn, each call
once, and the faster way is kept.

On a busy machine what uses all cores may lose for no fault of its own, however often it is timed
then.  So Python wins only after more calls, and what is compiled has another chance after twice as
many, or later where its calls would take too much of all.  Knows times and kinds of calls, not how
they run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Clock = Callable[[], float]
ROUNDS = 3  # calls each way, of which the fastest counts: what disturbs only makes slower
SURE = 5  # calls each way before Python wins the first time
CHANCE = 2  # calls each way that show, later on, whether what is compiled is worth more of them
PRICE = 0.1  # share of the time in Python that another chance may take
MARGIN = 1.15  # Python has to be so much faster: times of a few calls are not exact
LONGEST = 0.5  # seconds of a compiled call beyond which Python is not tried: it may take minutes
KINDS = 64  # of calls; further ones are compiled


class Way(Enum):
    """How a call runs."""

    COMPILED = "compiled"
    PYTHON = "python"


@dataclass
class Contest:
    """The calls of one kind.  winner: None as long as that is open.  calls: so far; again: those
    in Python after which what is compiled has another chance; chances: how many it had."""

    winner: Way | None = None
    calls: int = 0
    again: int = 0
    chances: int = 0
    seconds: dict[Way, list[float]] = field(default_factory=lambda: {way: [] for way in Way})

    @property
    def turn(self) -> Way:
        """How the next call runs."""
        if self.winner is not None:
            return self.winner
        compiled, python = (len(self.seconds[way]) for way in Way)
        return Way.PYTHON if compiled > python else Way.COMPILED

    def took(self, way: Way, seconds: float) -> bool:
        """Note a call; whether it is the one that decided."""
        self.calls += 1
        self.seconds[way].append(seconds)
        if way is Way.COMPILED and seconds > LONGEST:
            self.winner = Way.COMPILED
        elif rounds := min(map(len, self.seconds.values())):
            compiled, python = (min(self.seconds[way]) for way in Way)
            if python * MARGIN < compiled:
                self._lose(compiled / python, rounds)
            elif rounds >= ROUNDS:
                self.winner = Way.COMPILED
        return self.winner is not None

    def _lose(self, times: float, rounds: int) -> None:
        """What is compiled takes so many times as long: Python wins, if that is sure."""
        if rounds >= (CHANCE if self.chances else SURE):
            self.winner = Way.PYTHON
            self.again = max(self.calls, math.ceil(CHANCE * times / PRICE))

    def passed(self) -> bool:
        """Note a call in Python, which has won; whether the contest is open again after it."""
        self.calls += 1
        self.again -= 1
        if self.again <= 0 and self.winner is Way.PYTHON:
            self.winner = None
            self.chances += 1
            for times in self.seconds.values():
                times.clear()
        return self.winner is None

    def __str__(self) -> str:
        compiled, python = (_time(min(self.seconds[way])) for way in Way)
        return f"a call takes {compiled} compiled and {python} in Python"


class Contests:
    """Those of one function, by kind of call."""

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.clock = clock
        self.kinds: dict[Any, Contest] = {}

    def of(self, kind: Any) -> Contest | None:
        """The contest for a kind of call, None if it is new and there are too many."""
        found = self.kinds.get(kind)
        if found is None and len(self.kinds) < KINDS:
            found = self.kinds[kind] = Contest()
        return found

    @property
    def lost(self) -> list[Contest]:
        """Those that Python won."""
        return [c for c in self.kinds.values() if c.winner is Way.PYTHON]


def kind_of(value: Any) -> Any:
    """What tells calls apart that may take a different time, besides types and shapes."""
    if type(value) is int:
        return value.bit_length()
    return len(value).bit_length() if isinstance(value, list | tuple | dict | set) else None


def _time(seconds: float) -> str:
    unit, factor = next(
        (pair for pair in (("s", 1.0), ("ms", 1e3)) if seconds * pair[1] >= 1), ("µs", 1e6)
    )
    return f"{seconds * factor:.3g} {unit}"
