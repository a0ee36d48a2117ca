"""The answers of each level of a compilation, run by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nbcomp.display.view.words import count, distance_words
from nbcomp.measure.differences import ABSOLUTE_EPS, RELATIVE_EPS

BOUND = (
    "right: no element is farther from NumPy's answer than"
    f" {RELATIVE_EPS:,} ulp of itself plus {ABSOLUTE_EPS} ulp of the largest; integers are equal"
)


@dataclass(frozen=True)
class LevelCheck:
    """One level of a compilation, run by itself: the distance of its answer from NumPy's in ulp
    (`scaled`: in ulp of the largest element), or how it is wrong; or `other`, what it does in place
    of giving an answer; or why it was `left_out`."""

    level: str
    ulp: float = 0.0
    problem: str = ""
    other: str = ""
    left_out: str = ""
    scaled: float = 0.0

    @property
    def words(self) -> str:
        """The outcome, in words."""
        if self.problem:
            return f"WRONG: {self.problem}"
        if self.left_out:
            return f"not run: {self.left_out}"
        return self.other or f"right ({distance_words(self.ulp, self.scaled)})"

    @property
    def answers(self) -> bool:
        """Whether it was run and gave an answer."""
        return not (self.other or self.left_out)


def check_sentence(checks: Sequence[LevelCheck]) -> str:
    """What the levels' answers come to; "" if there are none."""
    bad = next((c for c in checks if c.problem), None)
    if bad:
        return f"first wrong level: {bad.level}: {bad.problem}"
    answers = sum(c.answers for c in checks)
    handed = sum(bool(c.other) for c in checks)
    left_out = [c.left_out for c in checks if c.left_out]
    said = []
    if answers:
        said.append(f"each of {count(answers, 'level')} gives NumPy's answer")
    if handed:
        verb = "leaves" if handed == 1 else "leave"
        said.append(f"{count(handed, 'level')} {verb} the call to Python")
    if left_out:
        verb = "was" if len(left_out) == 1 else "were"
        said.append(f"{count(len(left_out), 'level')} {verb} not run: {left_out[0]}")
    return "; ".join(said)
