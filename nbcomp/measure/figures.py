"""What was measured of a compilation, as plain data: pass by pass, and each optimisation left out.

Knows numbers and how they are said; it must not know how they were taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nbcomp.measure.roofline import Numbers
from nbcomp.measure.timing import Ratio, Timing

UNUSED = "not used here"  # an optimisation that changed nothing


def change_words(change: Ratio) -> str:
    """A change of the run time in words, such as "41 % faster" or "3.2× slower"."""
    word, factor = "slower", change.median
    if factor < 1:
        word, factor = "faster", 1 / factor
    if not change.clear:
        return f"no clear difference ({change.low:.2f}–{change.high:.2f})"
    if factor < 1.005:
        return "no difference"
    if factor < 1.995:
        return f"{100 * (factor - 1):.0f} % {word}"
    return f"{factor:.1f}× {word}" if factor < 99.5 else f"{factor:.0f}× {word}"


@dataclass(frozen=True)
class PassTime:
    """The program's run time after a pass, the later optimisations of that level not yet done.

    change: seconds after the pass over seconds before it; None for the first of a level, and where
    either was not timed.  same: the answer is NumPy's.  note: why it was not timed, or "no change"
    when the machine code is that before the pass.
    """

    name: str
    level: Literal["graph", "loop"]
    timing: Timing | None
    change: Ratio | None
    same: bool
    note: str = ""

    @property
    def words(self) -> str:
        """Such as "41 % faster, same result"."""
        if self.change is None or self.note:
            return self.note
        return f"{change_words(self.change)}, same result"


@dataclass(frozen=True)
class PassTimes:
    """All passes, in order; the first of each level is the program before any of that level.

    others: the cores that other programs kept busy meanwhile.
    """

    passes: tuple[PassTime, ...]
    others: float = 0.0

    def of(self, level: str, name: str) -> PassTime | None:
        """The time after that pass, if it was measured."""
        return next((p for p in self.passes if (p.level, p.name) == (level, name)), None)


@dataclass(frozen=True)
class Without:
    """The program without one optimisation.

    ratio: its seconds over those of the full program, None where it was not timed.  same: the
    answer is NumPy's.  note: why it was not timed, or `UNUSED` where the machine code is the same.
    """

    name: str
    description: str
    timing: Timing | None
    ratio: Ratio | None
    same: bool
    note: str = ""

    @property
    def words(self) -> str:
        """What leaving it out costs, such as "3.2× slower"."""
        return self.note or (change_words(self.ratio) if self.ratio else "")


@dataclass(frozen=True)
class Ablation:
    """The full program's time, and each optimisation left out in turn.

    others: the cores that other programs kept busy meanwhile.
    """

    full: Timing | None
    rows: tuple[Without, ...]
    note: str = ""
    others: float = 0.0


@dataclass(frozen=True)
class Measured:
    """What was measured of a compilation beyond its speed: each part is None where it was not."""

    passes: PassTimes | None = None
    ablation: Ablation | None = None
    numbers: Numbers | None = None
