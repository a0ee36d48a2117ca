"""The answers of each level of a compilation, run by itself."""

from __future__ import annotations

from dataclasses import dataclass

from nbcomp.display.view.words import ulp_words


@dataclass(frozen=True)
class LevelCheck:
    """One level of a compilation, run by itself: the distance of its answer from NumPy's, or how it
    is wrong; or `other`, what it does in place of giving an answer."""

    level: str
    ulp: float
    problem: str
    other: str = ""

    @property
    def words(self) -> str:
        """The outcome, in words."""
        if self.problem:
            return f"WRONG: {self.problem}"
        return self.other or f"right ({ulp_words(self.ulp)})"
