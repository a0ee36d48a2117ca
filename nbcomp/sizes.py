"""Sizes: whole numbers that are left open while a program is compiled, as the length of a batch.

A `Size` is a polynomial over symbols, with the value seen (`hint`).  Its arithmetic gives sizes.
Whoever compares one gets the answer that holds for the value seen, and the `Conditions` in force
note what that answer assumes; whoever needs the number itself (`operator.index`) gets the value
seen, and the symbol is fixed from then on.  So whatever the compiler looks at is a condition of
what it makes, and what it never looks at is free: the idea of PyTorch's symbolic shapes.  A size is
no `int`: what takes only those gets a fixed one.

Knows numbers; not arrays, and not what is compiled.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import numpy as np

_numbers = count()

# Formulas that are longer than these are of a program that computes with its numbers.
MOST_TERMS, MOST_FACTORS = 24, 16

Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Symbol:
    """An unknown length: its name, and the value seen.

    shown: the formula of other names that stands for it in texts, if it is not its own name.
    """

    name: str
    hint: int
    key: Key = field(default_factory=lambda: (0, next(_numbers)))
    shown: Size | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.name

    def at(self, values: Mapping[Symbol, int]) -> int:
        """Its value."""
        return values[self]


@dataclass(frozen=True, eq=False)
class Quotient:
    """⌊top / by⌋, where by > 0."""

    top: Size | int
    by: Size | int

    @cached_property
    def weight(self) -> int:
        """The symbols in it."""
        parts = (p for p in (self.top, self.by) if isinstance(p, Size))
        return 1 + sum(_weight(m) for p in parts for m in p.terms)

    @cached_property
    def key(self) -> Key:
        """What tells it from others."""
        return (1, *((p.key if isinstance(p, Size) else (3, p)) for p in (self.top, self.by)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        negative, text = self.signed()
        return f"(-{text})" if negative else f"({text})"

    def signed(self) -> tuple[bool, str]:
        """Its text, and whether a minus goes before it: ⌊-n / 8⌋ is -⌈n / 8⌉."""
        if str(self.top).startswith("-"):
            return True, f"ceildiv({-self.top}, {self.by})"
        parts = (f"({p})" if len(_terms(p) or ()) > 1 else str(p) for p in (self.top, self.by))
        return False, " // ".join(parts)

    def at(self, values: Mapping[Symbol, int]) -> int:
        """Its value."""
        quotient: int = evaluated(self.top, values) // evaluated(self.by, values)
        return quotient


Atom = Symbol | Quotient
Monomial = tuple[Atom, ...]  # in the order of their keys
Number = int | Fraction
Terms = dict[Monomial, Number]


class Size:
    """A polynomial that is no constant.  Fractions are for estimates; sizes have none."""

    __slots__ = ("_hint", "_key", "_results", "lines", "terms")
    __array_ufunc__ = None  # NumPy's scalars leave arithmetic with it to it

    def __init__(self, terms: dict[Monomial, Number]) -> None:
        self.terms = terms
        self._key: Key | None = None
        self._hint: int | None = None
        self._results: dict[Any, Any] = {}  # of arithmetic: programs do the same again and again
        self.lines: Any = None  # kept for `conditions`: what the formula lies between

    @property
    def key(self) -> Key:
        """What tells it from others: equal formulas have equal ones."""
        if self._key is None:
            pairs = [(tuple([a.key for a in m]), c) for m, c in self.terms.items()]
            self._key = (2, *sorted(pairs))
        return self._key

    @property
    def hint(self) -> int:
        """The value seen."""
        if self._hint is None:
            self._hint = self.at({s: s.hint for s in symbols_of(self)})
        return self._hint

    def at(self, values: Mapping[Symbol, int]) -> int:
        """The value for these values of its symbols."""
        total: Any = 0
        for monomial, factor in self.terms.items():
            total += factor * math.prod(a.at(values) for a in monomial)
        return total if isinstance(total, int) or total.denominator != 1 else int(total)

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return _written(self)

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, spec: str) -> str:
        """The formula where a whole number is wanted, the value seen where decimals are."""
        return str(self) if spec in ("", "d", ",") else format(float(self.hint), spec)

    # --------------------------------------------------------------------------------- arithmetic

    def __neg__(self) -> Size:
        return self._times(-1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __add__(self, other: Any) -> Any:
        if type(other) is int:
            return self._plus(other)
        return self._once("+", other, _sum)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is int:
            return self._plus(-other)
        return self._once("-", other, _difference)

    def __rsub__(self, other: Any) -> Any:
        return NotImplemented if _terms(other) is None else -self + other

    def _plus(self, number: int) -> Size:
        """What most arithmetic is: no term but the constant changes."""
        if not number:
            return self
        found: Size | None = self._results.get(number)
        if found is None:
            terms = dict(self.terms)
            constant = terms.pop((), 0) + number
            if constant:
                terms[()] = constant
            found = self._results[number] = Size(terms)
        return found

    def __mul__(self, other: Any) -> Any:
        if type(other) is int and other:
            return self if other == 1 else self._times(other)
        return self._once("*", other, _product)

    def _times(self, number: int) -> Size:
        found: Size | None = self._results.get(("*", number))
        if found is None:
            found = Size({m: c * number for m, c in self.terms.items()})
            self._results["*", number] = found
        return found

    def _once(self, sign: str, other: Any, made: Callable[[Terms, Terms], Terms]) -> Any:
        """The result of arithmetic with another size or number; with a size, the one object that it
        was the first time."""
        if not isinstance(other, Size):
            terms = _terms(other)
            return NotImplemented if terms is None else _made(made(self.terms, terms))
        known = self._results.get((sign, id(other)))
        if known is not None:
            return known[1]
        found = _made(made(self.terms, other.terms))
        if isinstance(found, Size):
            self._results[sign, id(other)] = other, found  # kept alive: its id stays its own
        return found

    __rmul__ = __mul__

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, int) or power < 0:
            return operator.index(self) ** power
        return math.prod([self] * power)

    def __rpow__(self, other: Any) -> Any:
        return other ** operator.index(self)

    def __truediv__(self, other: Any) -> Any:
        """Of estimates; a size that is divided by another is fixed."""
        if isinstance(other, int | float | Fraction) and other:
            by = Fraction(other)
            return _made({m: c / by for m, c in self.terms.items()})
        ratio = _ratio(self, other) if isinstance(other, Size) else None
        return float(ratio) if ratio is not None else float(self) / float(other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / float(self)

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is not int:
            return _floor(self, _plain(other)) if _is_number(other) else NotImplemented
        found = self._results.get(("//", other))
        if found is None:
            found = _floor(self, other)
            if isinstance(found, Size):  # nothing was asked
                self._results["//", other] = found
        return found

    def __rfloordiv__(self, other: Any) -> Any:
        return _floor(_plain(other), self) if _is_number(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other if _is_number(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self if _is_number(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    # ----------------------------------------------------------------------- what is assumed

    def __eq__(self, other: object) -> bool:
        if self is other or (isinstance(other, Size) and self.key == other.key):
            return True
        return _is_number(other) and _zero(self - other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> Any:
        return _negative(self - other) if _is_number(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return _negative(other - self) if _is_number(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return not _negative(other - self) if _is_number(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return not _negative(self - other) if _is_number(other) else NotImplemented

    def __bool__(self) -> bool:
        return not _zero(self)

    def __index__(self) -> int:
        asked = IN_FORCE.get()
        if asked is not None:
            asked.fix(self)
        return int(self.hint)

    __int__ = __index__

    def __float__(self) -> float:
        asked = IN_FORCE.get()
        if asked is not None:
            asked.fix(self)
        return float(self.hint)

    def __ceil__(self) -> int:
        return math.ceil(self.__index__())

    def __floor__(self) -> int:
        return math.floor(self.__index__())

    def __round__(self, digits: int = 0) -> int:
        return round(self.__index__())


# ---------------------------------------------------------------------------------- polynomials


def _is_number(value: object) -> bool:
    return isinstance(value, Size | int | float | Fraction) or hasattr(value, "__index__")


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's."""
    return value if isinstance(value, Size | int | float | Fraction) else operator.index(value)


def _terms(value: Any) -> dict[Monomial, Number] | None:
    if isinstance(value, Size):
        return value.terms
    if isinstance(value, int | Fraction):
        return {(): value}
    if isinstance(value, float):
        return {(): Fraction(value)}
    return {(): operator.index(value)} if hasattr(value, "__index__") else None


def _sum(a: Terms, b: Terms, times: int = 1) -> Terms:
    total = dict(a)
    for m, c in b.items():
        total[m] = total.get(m, 0) + c * times
    return total


def _difference(a: Terms, b: Terms) -> Terms:
    return _sum(a, b, -1)


def _product(a: Terms, b: Terms) -> Terms:
    total: Terms = {}
    for m, c in a.items():
        for n, d in b.items():
            both = tuple(sorted((*m, *n), key=lambda atom: atom.key))
            total[both] = total.get(both, 0) + c * d
    return total


def _made(terms: dict[Monomial, Number]) -> Any:
    """A size; a plain number where nothing is open."""
    kept = terms if all(terms.values()) else {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) > MOST_TERMS or max(map(_weight, kept)) > MOST_FACTORS:
        return _given_up(Size(kept))
    if len(kept) == 1 and () in kept:
        constant = kept[()]
        whole = isinstance(constant, int) or constant.denominator == 1
        return int(constant) if whole else float(constant)
    return Size(kept)


def _given_up(size: Size) -> Any:
    """A formula too long to go on with: its value, which is assumed from now on."""
    asked = IN_FORCE.get()
    if asked is None or not is_whole(size):
        return size
    return operator.index(size)


def _weight(monomial: Monomial) -> int:
    """The factors of a monomial, and those in its quotients."""
    return sum(1 if isinstance(a, Symbol) else a.weight for a in monomial)


def _floor(top: Any, by: Any) -> Any:
    """⌊top / by⌋, simplified where it comes out even."""
    if isinstance(by, Size):
        return _floor_by_size(top, by)
    if by < 0:
        top, by = -top, -by
    if by == 1 and is_whole(top):
        return top
    if not isinstance(by, int) or by == 0 or not is_whole(top):
        return operator.index(top) // by
    even: dict[Monomial, Number] = {m: c for m, c in top.terms.items() if c % by == 0}
    rest = _made({m: c for m, c in top.terms.items() if m not in even})
    quotient = _made({m: c // by for m, c in even.items()})
    if not isinstance(rest, Size):
        return quotient + rest // by
    return quotient + Size({(Quotient(rest, by),): 1})


def _floor_by_size(top: Any, by: Size) -> Any:
    if by == 0:
        raise ZeroDivisionError(f"{top} // {by}")
    if by < 0:
        return _floor(-top, -by)
    if not isinstance(top, Size):  # nothing is left of a number beyond some length
        if 0 <= top < by:
            return 0
        if top < 0 and -by <= top:
            return -1
        return Size({(Quotient(top, by),): 1})
    ratio = _ratio(top, by)
    if ratio is not None:
        return math.floor(ratio)
    found = _divided(top, by)
    return Size({(Quotient(top, by),): 1}) if found is None else found


def is_whole(value: Any) -> bool:
    """Whether this is a size without fractions."""
    return isinstance(value, Size) and all(isinstance(c, int) for c in value.terms.values())


def _ratio(a: Size, b: Size) -> Fraction | None:
    """a / b where one is a multiple of the other."""
    if a.terms.keys() != b.terms.keys():
        return None
    ratios = {Fraction(c) / Fraction(b.terms[m]) for m, c in a.terms.items()}
    return ratios.pop() if len(ratios) == 1 else None


def _divided(top: Size, by: Size) -> Any | None:
    """top / by where by is one product that every term has in it."""
    if len(by.terms) != 1 or not is_whole(top):
        return None
    ((divisor, factor),) = by.terms.items()
    terms: dict[Monomial, Number] = {}
    for monomial, c in top.terms.items():
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if c % factor:
            return None
        terms[tuple(left)] = c // factor
    return _made(terms)


def symbols_of(value: Any) -> set[Symbol]:
    """The symbols a size depends on."""
    found: set[Symbol] = set()
    for monomial in value.terms if isinstance(value, Size) else ():
        for atom in monomial:
            if isinstance(atom, Symbol):
                found.add(atom)
            else:
                found |= symbols_of(atom.top) | symbols_of(atom.by)
    return found


def evaluated(value: Any, values: Mapping[Symbol, int]) -> Any:
    """A size for these values of its symbols; any other number as it is."""
    return value.at(values) if isinstance(value, Size) else value


def hint(value: Any) -> Any:
    """The value seen, for estimates and for people: nothing is assumed by it."""
    return value.hint if isinstance(value, Size) else value


def is_open(values: Iterable[Any]) -> bool:
    """Whether there is a size among these numbers."""
    return any(isinstance(v, Size) for v in values)


def _written(size: Size) -> str:
    if any(symbol.shown is not None for symbol in symbols_of(size)):
        with asking(None):  # what a text simplifies is no assumption of anybody's
            size = _in_names(size)
    if not isinstance(size, Size):
        return str(size)
    parts = []
    for monomial, factor in sorted(size.terms.items(), key=lambda t: -len(t[0])):
        names = []
        for atom in monomial:
            negative, text = (False, str(atom)) if isinstance(atom, Symbol) else atom.signed()
            factor = -factor if negative else factor
            names.append(text if isinstance(atom, Symbol) or negative else f"({text})")
        shown = [str(abs(factor)), *names] if abs(factor) != 1 or not names else names
        parts.append(("-" if factor < 0 else "+", "*".join(shown)))
    head = parts[0][1] if parts[0][0] == "+" else f"-{parts[0][1]}"
    return head + "".join(f" {sign} {text}" for sign, text in parts[1:])


def _in_names(size: Any) -> Any:
    """A size with the formulas in it that symbols are shown as."""
    total: Any = 0
    for monomial, factor in size.terms.items() if isinstance(size, Size) else [((), size)]:
        product: Any = factor
        for atom in monomial:
            if isinstance(atom, Quotient):
                product = product * (_in_names(atom.top) // _in_names(atom.by))
            else:
                product = product * (Size({(atom,): 1}) if atom.shown is None else atom.shown)
        total = total + product
    return total


# ------------------------------------------------------------------------------ what is assumed


class Asked(Protocol):
    """What decides about sizes, and notes what that assumes: `conditions.Conditions`.

    found: results that rest on answers it gave, by what they are of.
    """

    found: dict[Any, Any]

    def negative(self, size: Any) -> bool:
        """Whether a formula is below 0."""

    def is_zero(self, size: Any) -> bool:
        """Whether a formula is 0."""

    def fix(self, size: Size) -> None:
        """A formula's value is needed."""

    def most(self, size: Any) -> int:
        """The largest value a formula may have."""


IN_FORCE: ContextVar[Asked | None] = ContextVar("conditions", default=None)


@contextmanager
def asking(asked: Asked | None) -> Iterator[None]:
    """Let this decide about sizes inside."""
    token = IN_FORCE.set(asked)
    try:
        yield
    finally:
        IN_FORCE.reset(token)


def _negative(size: Any) -> bool:
    asked = IN_FORCE.get()
    return bool(hint(size) < 0) if asked is None else asked.negative(size)


def _zero(size: Any) -> bool:
    asked = IN_FORCE.get()
    return bool(hint(size) == 0) if asked is None else asked.is_zero(size)


def most(size: Any) -> int:
    """The largest value of a size that is taken."""
    asked = IN_FORCE.get()
    return int(hint(size)) if asked is None else asked.most(size)


def is_linear(size: Size) -> bool:
    """Whether it is a sum of multiples of symbols, and a number."""
    return all(len(m) <= 1 and all(isinstance(a, Symbol) for a in m) for m in size.terms)


def substituted(value: Any, by: Mapping[Symbol, Any]) -> Any:
    """A size with others in place of symbols."""

    def part(atom: Atom) -> Any:
        if isinstance(atom, Symbol):
            return by.get(atom, Size({(atom,): 1}))
        return substituted(atom.top, by) // substituted(atom.by, by)

    return _rebuilt(value, part) if isinstance(value, Size) else value


def _rebuilt(size: Size, part: Callable[[Atom], Any]) -> Any:
    """A formula with something in place of each symbol and quotient."""
    total: Any = 0
    for monomial, factor in size.terms.items():
        total = total + math.prod(map(part, monomial), start=factor)
    return total


# --------------------------------------------------------------------- functions of whole numbers


def broadcast_shapes(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The common shape, as NumPy gives it.  Raises ValueError where there is none."""
    if not any(map(is_open, shapes)):
        return np.broadcast_shapes(*shapes)
    rank = max(map(len, shapes), default=0)
    result: list[Any] = [1] * rank
    for shape in shapes:
        for k, n in enumerate(shape, rank - len(shape)):
            if result[k] == 1:
                result[k] = n
            elif n != 1 and n != result[k]:
                raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")
    return tuple(result)


def among(shape: tuple[Any, ...], others: Iterable[tuple[Any, ...]]) -> bool:
    """Whether a shape is one of these.  Tuples compare their entries before their lengths, which
    would ask more than is needed."""
    return any(len(shape) == len(other) and shape == other for other in others)


def leaves_rest(n: Any, by: Any) -> bool:
    """Whether n is perhaps not a multiple of `by`: where it is open, that is not asked."""
    rest = n % by
    return isinstance(rest, Size) or bool(rest)


def is_rest(size: Any) -> bool:
    """Whether a formula is what divisions leave: it stays small, whatever the lengths are."""
    return isinstance(size, Size) and not isinstance(straight(size), Size)


def straight(value: Any) -> Any:
    """A formula with exact quotients in place of those that are rounded down."""
    if not isinstance(value, Size):
        return value
    atoms = {atom for monomial in value.terms for atom in monomial}
    if any(isinstance(a, Quotient) and isinstance(a.by, Size) for a in atoms):
        return value

    def part(atom: Atom) -> Any:
        if isinstance(atom, Symbol):
            return Size({(atom,): 1})
        assert isinstance(atom.by, int)
        return straight(atom.top) * Fraction(1, atom.by)

    return _rebuilt(value, part)


def is_one(n: Any) -> bool:
    """Whether n is 1: where it is open, that is not asked."""
    return not isinstance(n, Size) and bool(n == 1)


def cut(key: slice, length: Any) -> tuple[Any, Any, Any]:
    """(start, step, number of elements) of a slice, as `range(*key.indices(length))` has them."""
    parts = length, key.start, key.stop, key.step
    if not is_open(parts):
        found = range(*key.indices(length))
        return (found.start if found else 0), found.step, len(found)
    asked = IN_FORCE.get()
    if asked is None:
        return _cut(key, length)
    if parts not in asked.found:
        asked.found[parts] = _cut(key, length)
    places: tuple[Any, Any, Any] = asked.found[parts]
    return places


def _cut(key: slice, length: Any) -> tuple[Any, Any, Any]:
    step = 1 if key.step is None else operator.index(key.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, length) if step > 0 else (-1, length - 1)

    def bound(value: Any, default: Any) -> Any:
        if value is None:
            return default
        if value < 0:
            value = value + length
            return low if value < low else value
        return high if value > high else value

    start, stop = (
        bound(key.start, low if step > 0 else high),
        bound(key.stop, high if step > 0 else low),
    )
    extent = stop - start if step > 0 else start - stop
    if extent <= 0:
        return 0, step, 0
    return start, step, (extent + abs(step) - 1) // abs(step)
