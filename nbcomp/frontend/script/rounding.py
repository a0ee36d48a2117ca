"""Floats rounded to whole numbers in element code: as ints they must be of 64 bits, as floats again
they may be any.  Knows numbers; nothing of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.frontend.script.errors import BEYOND, INFINITE, NO_NUMBER, Words
from nbcomp.frontend.script.values import PY_INT, Kind, Scalar
from nbcomp.frontend.script.whole import WholeNumbers
from nbcomp.loop.grammar import Expr, If, const
from nbcomp.types import BOOL, FLOAT64


@dataclass(frozen=True, eq=False)
class Rounded:
    """A float as an int: the int, the float, and the check that 64 bits hold it."""

    whole: Expr
    wide: Expr
    check: If


class Rounding(WholeNumbers):
    """`int(x)` and what is like it."""

    latest: Rounded | None = None  # what was rounded last
    only: Rounded | None = None  # what has no other use than the element it is assigned to

    def truncated(self, s: Scalar, beyond: Words = BEYOND) -> Scalar:
        """`int(x)` of a float, towards zero; what is none of 64 bits ends the kernel."""
        wide = self.keep(Scalar(Kind(FLOAT64), self.cast(s.expr, Kind(FLOAT64)))).expr
        size = self.apply("absolute", wide)
        with self.body() as body:
            self.fail_if(self.compare("not_equal", wide, wide), *NO_NUMBER)
            self.fail_if(self.compare("equal", size, const(math.inf, FLOAT64)), *INFINITE)
            self.fail(*beyond)
        small = self.compare("less", size, const(2.0**63, FLOAT64))
        check = If(self.apply("logical_not", small, dtype=BOOL), tuple(body), (), self.location)
        self.add(check)
        self.latest = Rounded(self.cast(wide, PY_INT), wide, check)
        return Scalar(PY_INT, self.latest.whole)

    @contextmanager
    def used_once(self, value: Any) -> Iterator[None]:
        """Whatever was rounded to give this value is meanwhile known to have no other use."""
        latest = self.latest
        same = latest and isinstance(value, Scalar) and value.expr is latest.whole
        self.only = latest if same else None
        try:
            yield
        finally:
            self.only = None

    def unchecked(self, expr: Expr) -> Expr | None:
        """What was rounded and has no other use, as a float: 64 bits need not hold it, and it is no
        longer checked that they do.  None for all else."""
        if self.only is None or self.only.whole is not expr:
            return None
        check = self.only.check
        place = next((k for k, s in enumerate(self.stmts) if s is check), None)
        if place is None:
            return None
        self.stmts[place] = replace(check, yes=check.yes[:-1])
        whole = self.apply("trunc", self.only.wide)
        return self.apply("add", whole, const(0.0, FLOAT64))  # no int is -0.0
