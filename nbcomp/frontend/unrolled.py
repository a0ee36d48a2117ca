"""Loops that are written out: counts how often each place of the program ran while tracing.

A Python loop runs once, while compiling, and every round becomes operations of its own.  A few
rounds are fine; many are a program that is long to compile, which the user is told, or too long,
which is refused.  Knows places in the source, not operations.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import enclosing, location_of, user_frames
from nbcomp.record import Location, Remark

MANY = 50  # rounds from which on the user is told
MOST_WRITES = 500  # by one assignment to elements; each becomes a kernel, at some 20 ms
HINT = "try nbcomp.script, which keeps loops as loops, or write it as operations on whole arrays"
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
EARLY_WRITES = 50  # where the source can be compiled as the loops it is
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class LongLoop(Unsupported):
    """A loop that would be long to compile if it were written out."""


def about_caches(cached: Sequence[str], otherwise: str) -> str:
    """What to do about too many calls: where functions have caches, these keep nothing."""
    if not cached:
        return otherwise
    names = " and ".join(dict.fromkeys(cached))
    return (
        f"the cache of {names} (functools.cache or lru_cache) keeps nothing while compiling, so"
        " that each call is followed again: call it outside the compiled function, or write it as a"
        " loop"
    )


class Unrolled:
    """Counts the calls of NumPy's functions by place.

    root: the code that called the traced function; loops around it are none of the program's.
    most: assignments to elements at one place.  most_listed: calls at one place in a comprehension.
    """

    def __init__(self) -> None:
        self.root: CodeType | None = None
        self.most = MOST_WRITES
        self.most_listed: int | None = None
        self.cached: list[str] = []  # functions behind caches that the program has called
        self._times: Counter[Location] = Counter()
        self._loops: dict[Location, list[Location]] = {}  # the places of each long loop

    def count(self, function: Any, place: Location | None) -> None:
        """One more call at this place; raises `LongLoop` for one write too many."""
        if place is None:
            return
        self._times[place] += 1
        times = self._times[place]
        if function is operator.setitem and times > self.most:
            raise LongLoop(
                f"more than {self.most} assignments: a Python loop is written out, one kernel for"
                " each round",
                place,
                HINT,
            )
        if self.most_listed is not None and times == self.most_listed + 1:
            self._check_listed(times)
        if times == MANY + 1:
            loop = _loop(self.root)
            if loop is not None:
                self._loops.setdefault(loop[1], []).append(place)

    def _check_listed(self, times: int) -> None:
        """Raise `LongLoop` for a comprehension that has come by a place as often as this."""
        loop = _loop(self.root)
        if loop is not None and isinstance(loop[0], _COMPREHENSIONS):
            raise LongLoop(
                f"a comprehension of more than {times - 1} rounds is run by Python, round by round:"
                " written out it would be long to compile",
                loop[1],
                HINT,
            )

    def remarks(self) -> Iterator[Remark]:
        """What to tell about long loops."""
        for loop, places in self._loops.items():
            rounds = max(self._times[p] for p in places)
            reason = f"the loop is written out: {rounds} copies of line {places[0].line}"
            yield Remark("missed", "loop", reason, loop, HINT)


def _loop(root: CodeType | None) -> tuple[ast.AST, Location] | None:
    """The innermost loop the traced program is in now, and its head."""
    for frame in user_frames(root):
        found = _innermost(location_of(frame.f_code, frame.f_lasti))
        if found is not None:
            return found
    return None


def loop_around(place: Location) -> Location | None:
    """The head of the innermost loop around a place, in its function."""
    found = _innermost(place)
    return found[1] if found else None


def _innermost(place: Location) -> tuple[ast.AST, Location] | None:
    """The innermost loop around a place, in its function, and its head."""
    for node in enclosing(place):
        if isinstance(node, _FUNCTIONS):
            break
        head = _head(node, place)
        if head is not None:
            return node, head
    return None


def _head(node: ast.AST, place: Location) -> Location | None:
    """The first line of a loop, as far as what it runs over; None for any other syntax node."""
    match node:
        case ast.For(iter=end) | ast.While(test=end):
            last: ast.expr = end
        case _ if isinstance(node, _COMPREHENSIONS):
            last = node.generators[-1].iter
        case _:
            return None
    return Location(
        place.file,
        node.lineno,
        node.col_offset,
        last.end_lineno or last.lineno,
        last.end_col_offset or 0,
        place.function,
    )
