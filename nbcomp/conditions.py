"""What is assumed about sizes while a program is compiled, and so holds for all its calls.

Every answer about a size narrows a range: that of the symbol, if it depends on a single one (the
*box*, as large as the arithmetic of intervals shows the answer to be the same in), else that of the
formula.  A formula that is 0, or is not, is noted as that.  Knows formulas, not what they are the
lengths of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from nbcomp.sizes import (
    IN_FORCE,
    Key,
    Monomial,
    Number,
    Quotient,
    Size,
    Symbol,
    asking,
    is_linear,
    is_whole,
    substituted,
    symbols_of,
)

FEW = 64  # values of a formula, like a remainder, each of which may have code of its own
SHORT = 40  # characters of a formula that is assumed to have a value
LEAST = 2  # of what is left open: lengths 0 and 1 mean other things to NumPy (broadcasting)
MOST = 1 << 40
FAR = 1 << 62  # of formulas: no bound

Range = tuple[Any, Any]
Box = Mapping[Symbol, tuple[int, int]]


@dataclass(frozen=True)
class Fixed:
    """A symbol that became a number: what for, and the place where that was."""

    symbol: Symbol
    why: str
    place: Any = None
    needed: bool = True  # the number itself was, not just that it is equal to another


@dataclass
class Conditions:
    """What was assumed about sizes.

    box: the range of every symbol.  zero, nonzero: formulas that are 0, or not.  ranges: of
    formulas in several symbols.  same: symbols that are equal to another one.  fixed: why a symbol
    has one value only.  where: gives the user's line, while there is one.
    """

    box: dict[Symbol, tuple[int, int]] = field(default_factory=dict)
    zero: dict[Key, Size] = field(default_factory=dict)
    nonzero: dict[Key, Size] = field(default_factory=dict)
    ranges: dict[Key, tuple[Size, Range]] = field(default_factory=dict)
    same: dict[Symbol, Symbol] = field(default_factory=dict)
    fixed: list[Fixed] = field(default_factory=list)
    where: Callable[[], Any] | None = None
    found: dict[Any, Any] = field(default_factory=dict)
    _below: dict[Key, bool] = field(default_factory=dict)  # what was answered stays true, too
    _none: dict[Key, bool] = field(default_factory=dict)

    def symbol(self, name: str, seen: int, least: int = LEAST, shown: Size | None = None) -> Size:
        """A new length, of which this value was seen; or another number, of at least so much.
        shown: as of `Symbol`."""
        made = Symbol(name, seen, shown=shown)
        self.box[made] = (least, MOST)
        return Size({(made,): 1})

    def copy(self) -> Conditions:
        """The same, to be added to."""
        return replace(
            self,
            box=dict(self.box),
            zero=dict(self.zero),
            nonzero=dict(self.nonzero),
            ranges=dict(self.ranges),
            same=dict(self.same),
            fixed=list(self.fixed),
            where=None,
            found={},
            _below={},
            _none={},
        )

    def about(self, symbols: Collection[Symbol]) -> Conditions:
        """What is assumed about these symbols, without what their ranges say already."""
        known = set(symbols)

        def kept(size: Size) -> bool:
            return symbols_of(size) <= known

        box = {s: r for s, r in self.box.items() if s in known}
        nonzero = {k: v for k, v in self.nonzero.items() if kept(v) and not _apart(bounds(v, box))}
        return replace(
            self.copy(),
            box=box,
            zero={k: v for k, v in self.zero.items() if kept(v)},
            nonzero=nonzero,
            ranges={k: v for k, v in self.ranges.items() if kept(v[0])},
            fixed=[f for f in self.fixed if f.symbol in known],
        )

    @contextmanager
    def in_force(self) -> Iterator[Conditions]:
        """Note what is assumed inside."""
        with asking(self):
            yield self

    def why_not(self, values: Mapping[Symbol, int], describe: Callable[[Symbol], str] = str) -> str:
        """Which condition these lengths do not meet, in words; "" if they meet all.

        describe: says which length a symbol is.
        """
        try:
            return next(self._unmet(values, describe), "")
        except ZeroDivisionError as error:  # of a quotient that is looked at for other lengths
            return f"{error}"

    def _unmet(
        self, values: Mapping[Symbol, int], describe: Callable[[Symbol], str]
    ) -> Iterator[str]:
        def where(size: Size) -> str:
            """What a formula's symbols are."""
            named = [f"{s} is {describe(s)}" for s in values if s in symbols_of(size)]
            return f" ({', '.join(named)})" if describe is not str and named else ""

        for symbol, value in values.items():
            low, high = self.box[symbol]
            if not low <= value <= high:
                yield f"{describe(symbol)} is {value}, not {self.range_of(symbol)}"
        for size, (least, most) in self.ranges.values():
            if not least <= (found := size.at(values)) <= most:
                yield f"{size} is {found}, not {_range_text(least, most)}{where(size)}"
        for size in self.zero.values():
            if size.at(values):
                yield f"{size} is not 0{where(size)}"
        for size in self.nonzero.values():
            if not size.at(values):
                yield f"{size} is 0{where(size)}"

    def range_of(self, symbol: Symbol) -> str:
        """The values a symbol may have, as text."""
        return _range_text(*self.box[symbol])

    # -------------------------------------------------------------------------------- questions

    def negative(self, size: Any) -> bool:
        """Whether a formula is below 0: for the values seen, and so for all that are taken."""
        if not isinstance(size, Size):
            return bool(size < 0)
        found = self._below.get(size.key)
        if found is None:
            found = self._below[size.key] = self._is_negative(self._simplified(size))
        return found

    def _is_negative(self, size: Any) -> bool:
        if not isinstance(size, Size):
            return bool(size < 0)
        low, high = self._bounds(size)
        if high < 0 or low >= 0:
            return bool(high < 0)
        answer = size.hint < 0
        if len(size.terms) <= 2 and is_linear(size) and len(symbols_of(size)) == 1:
            self._bound(size, answer)
        elif not self._narrow(size, lambda r: r[1] < 0 if answer else r[0] >= 0):
            self._limit(size, answer)
        return answer

    def _bound(self, size: Size, below: bool) -> None:
        """Narrow the range of the one symbol of a straight line to where it is below 0, or not."""
        (symbol,) = symbols_of(size)
        factor = Fraction(size.terms[(symbol,)])
        edge = -Fraction(size.terms.get((), 0)) / factor
        self.box[symbol] = _half(self.box[symbol], edge, below, factor > 0)

    def is_zero(self, size: Any) -> bool:
        """Whether a formula is 0."""
        if not isinstance(size, Size):
            return bool(size == 0)
        found = self._none.get(size.key)
        if found is None:
            found = self._none[size.key] = self._is_zero(self._simplified(size))
        return found

    def _is_zero(self, size: Any) -> bool:
        if not isinstance(size, Size):
            return bool(size == 0)
        low, high = self._bounds(size)
        if low > 0 or high < 0 or low == high == 0:
            return bool(low == 0)
        if low >= 0 and is_whole(size):
            return self.negative(size - 1)
        if high <= 0 and is_whole(size):
            return self.negative(-size - 1)
        for known, answer in ((self.zero, True), (self.nonzero, False)):
            if size.key in known or (-size).key in known:
                return answer
        if size.hint == 0:
            self._assume_zero(size)
        else:
            self.nonzero[size.key] = size
        return size.hint == 0

    def fix(self, size: Size) -> None:
        """From now on a formula has the value seen: it alone, if it has but a few."""
        low, high = self._bounds(size)
        short = len(symbols_of(size)) == 1 and len(size.terms) <= 3 and len(str(size)) < SHORT
        if short and high - low < FEW and not is_linear(size):
            self._assume_zero(size - int(size.hint))
            return
        for symbol in symbols_of(size):
            self._fix(symbol, f"the number {size} is needed")

    def most(self, size: Any) -> int:
        """The largest value a formula may have."""
        return math.floor(self._bounds(size)[1]) if isinstance(size, Size) else int(size)

    def _bounds(self, size: Size) -> Range:
        low, high = bounds(size, self.box)
        formula, factor, rest = _normal(size)
        if formula.key not in self.ranges:
            return low, high
        ends = sorted(factor * end + rest for end in self.ranges[formula.key][1])
        return max(low, ends[0]), min(high, ends[1])

    # --------------------------------------------------------------------------------- answers

    def _fix(self, symbol: Symbol, why: str, needed: bool = True) -> None:
        if self.box[symbol] != (symbol.hint, symbol.hint):
            self.box[symbol] = (symbol.hint, symbol.hint)
            place = self.where() if self.where is not None else None
            self.fixed.append(Fixed(symbol, why, place, needed))

    def _simplified(self, size: Any) -> Any:
        """A formula of the same sign: what is equal is one symbol, common factors are gone."""
        if not isinstance(size, Size):
            return size
        if self.same and not self.same.keys().isdisjoint(symbols_of(size)):
            size = substituted(size, {a: Size({(b,): 1}) for a, b in self.same.items()})
            if not isinstance(size, Size):
                return size
        first, *others = size.terms
        common = [a for a in first if all(a in m for m in others) and bounds(a, self.box)[0] > 0]
        for atom in common if others else common[: len(first) - 1]:
            if not all(atom in m for m in size.terms):
                break
            size = Size({_without(m, atom): factor for m, factor in size.terms.items()})
        return size

    def _assume_zero(self, size: Size) -> None:
        symbols = symbols_of(size)
        if len(symbols) == 1 and is_linear(size):
            (symbol,) = symbols
            self._fix(symbol, f"it is assumed to be {symbol.hint}, as another length is", False)
            return
        if len(symbols) == 2 and is_linear(size) and sorted(size.terms.values()) == [-1, 1]:
            gone, kept = sorted(symbols, key=lambda s: s.key, reverse=True)
            self.same = {a: kept if b is gone else b for a, b in self.same.items()} | {gone: kept}
            low = max(self.box[gone][0], self.box[kept][0])
            high = min(self.box[gone][1], self.box[kept][1])
            self.box[gone] = self.box[kept] = (low, high)
        self.zero[size.key] = size

    def _narrow(self, size: Size, proved: Callable[[Range], bool]) -> bool:
        """Narrow the range of the one symbol of a formula to where the answer is seen to hold;
        whether that is all there is to it."""
        symbols = symbols_of(size)
        if len(symbols) > 1:
            return False
        (symbol,) = symbols
        seen, (low, high) = symbol.hint, self.box[symbol]

        def holds(least: int, most: int) -> bool:
            return proved(bounds(size, {symbol: (least, most)}))

        least = _farthest(lambda v: holds(v, seen), seen, low)
        most = _farthest(lambda v: holds(least, v), seen, high)
        if least != low and most != high:  # true now and then: n is a multiple of 8
            return False
        self.box[symbol] = (least, most)
        return True

    def _limit(self, size: Size, below: bool) -> None:
        """Note that a formula is below 0, or not: as a range of what is variable in it."""
        formula, factor, rest = _normal(size)
        _, known = self.ranges.get(formula.key, (formula, (-FAR, FAR)))
        self.ranges[formula.key] = formula, _half(known, -rest / factor, below, factor > 0)


def _half(found: Range, edge: Fraction, below: bool, rising: bool) -> tuple[int, int]:
    """The part of a range in which a straight line that is 0 at an edge is below 0, or is not."""
    low, high = found
    if below == rising:
        return low, min(high, math.ceil(edge) - 1 if below else math.floor(edge))
    return max(low, math.floor(edge) + 1 if below else math.ceil(edge)), high


def _apart(found: Range) -> bool:
    """Whether 0 is not in a range."""
    return bool(found[0] > 0 or found[1] < 0)


def _normal(size: Size) -> tuple[Size, Fraction, Fraction]:
    """size = factor · formula + rest, where formula has whole coefficients without a common
    factor, the first of them positive."""
    terms = {m: Fraction(c) for m, c in size.terms.items() if m}
    first = min(terms, key=lambda m: tuple(a.key for a in m))
    top = math.gcd(*(c.numerator for c in terms.values()))
    factor = Fraction(top, math.lcm(*(c.denominator for c in terms.values())))
    factor = factor if terms[first] > 0 else -factor
    formula = Size({m: int(c / factor) for m, c in terms.items()})
    return formula, factor, Fraction(size.terms.get((), 0))


def _range_text(low: int, high: int) -> str:
    if low == high:
        return f"{low:,}"
    if low <= -MOST and high >= MOST:
        return "any number"
    if high >= MOST:
        return f"{low:,} or more"
    return f"{low:,} … {high:,}" if low > -MOST else f"{high:,} or less"


def _farthest(holds: Callable[[int], bool], near: int, far: int) -> int:
    """The number farthest from `near`, for which something holds, towards `far`."""
    if holds(far):
        return far
    while abs(far - near) > 1:
        middle = (near + far) // 2
        near, far = (middle, far) if holds(middle) else (near, middle)
    return near


def in_force() -> Conditions | None:
    """The conditions that note what is assumed now; None where no size is left open."""
    found = IN_FORCE.get()
    return found if isinstance(found, Conditions) else None


# ---------------------------------------------------------------------------------- intervals


def bounds(value: Any, box: Box) -> Range:
    """The smallest and the largest value in a box, or something beyond them.

    A quotient is taken for a straight line and what rounding takes off, so that ⌊n/8⌋·8 and n are
    seen to be close.
    """
    if isinstance(value, Symbol):
        return box[value]
    if isinstance(value, Quotient):
        return _quotient_bounds(value, box)
    if not isinstance(value, Size):
        return value, value
    if all(box[s][0] == box[s][1] for s in symbols_of(value)):
        exact = value.at({s: box[s][0] for s in symbols_of(value)})
        return exact, exact
    plain = _term_bounds(value, box)
    lines = _lines(value)
    if lines is None:
        return plain
    (below, by), (above, over) = lines
    low, high = bounds(below, box)[0], bounds(above, box)[1]
    if is_whole(value):
        low, high = -(-low // by), high // over
    else:
        low, high = Fraction(low, by), Fraction(high, over)
    return max(low, plain[0]), min(high, plain[1])


Line = tuple[Any, int]  # a formula with whole coefficients and no quotients, and what divides it


def _lines(value: Size) -> tuple[Line, Line] | None:
    """Straight lines below and above a formula; None if it has no quotients.  They are kept with
    it: a range is found in many steps."""
    if value.lines is None:
        found = [_straight(value, upper) for upper in (False, True)]
        value.lines = () if found[0] is None else tuple(map(_with_whole_factors, found))
    return value.lines or None


def _with_whole_factors(line: Any) -> Line:
    terms: Mapping[Monomial, Any] = line.terms if isinstance(line, Size) else {(): Fraction(line)}
    by = math.lcm(*(Fraction(c).denominator for c in terms.values()))
    whole: dict[Monomial, Number] = {m: int(c * by) for m, c in terms.items()}
    return (Size(whole) if isinstance(line, Size) else int(whole[()])), by


def _term_bounds(value: Size, box: Box) -> Range:
    first, *others = value.terms
    common = next((a for a in first if others and all(a in m for m in others)), None)
    if common is not None:  # n·m - n is n·(m - 1), which is above 0
        rest = {_without(m, common): factor for m, factor in value.terms.items()}
        products = [a * b for a in bounds(common, box) for b in _term_bounds(Size(rest), box)]
        return min(products), max(products)
    low: Any = 0
    high: Any = 0
    for monomial, factor in value.terms.items():
        ends = (factor, factor)
        for atom in monomial:
            other = bounds(atom, box)
            products = [a * b for a in ends for b in other]
            ends = min(products), max(products)
        low, high = low + ends[0], high + ends[1]
    return low, high


def _without(monomial: Monomial, atom: Any) -> Monomial:
    left = list(monomial)
    left.remove(atom)
    return tuple(left)


def _quotient_bounds(value: Quotient, box: Box) -> Range:
    low, high = bounds(value.top, box)
    least, greatest = bounds(value.by, box)
    if least <= 0:
        return -MOST, MOST
    ends = [t // b for t in (low, high) for b in (least, greatest)]
    return min(ends), max(ends)


def _straight(value: Size, upper: bool) -> Any | None:
    """A formula that is nowhere smaller (larger) and has no quotients; None if there are none."""
    if not any(map(_by_number, value.terms)):
        return None
    total: Any = 0
    for monomial, factor in value.terms.items():
        if _by_number(monomial):
            atom: Any = monomial[0]
            off = 0 if (factor > 0) == upper else atom.by - 1
            total = total + (atom.top - off) * (Fraction(factor) / atom.by)
        else:
            total = total + Size({monomial: factor}) if monomial else total + factor
    return total


def _by_number(monomial: Monomial) -> bool:
    """Whether this is one quotient, by a number."""
    atom = monomial[0] if len(monomial) == 1 else None
    return isinstance(atom, Quotient) and isinstance(atom.by, int)
