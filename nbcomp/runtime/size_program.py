"""Formulas of lengths as instructions over registers, for the native entry.

The first part reads the lengths and strides of a call; the second checks what the plan assumes of
them; the third computes every number of the plan that depends on them.  Equal parts of formulas are
computed once.  Knows formulas and the layout of instructions, not plans.
"""

from __future__ import annotations

from typing import Any

from nbcomp.conditions import Conditions
from nbcomp.runtime import layout as at
from nbcomp.sizes import Monomial, Quotient, Size, Symbol, is_whole

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1  # of a register


class TooLong(Exception):
    """A plan has more formulas than there are registers, or numbers beyond 64 bits."""


class SizeProgram:
    """Instructions in the order they run."""

    def __init__(self) -> None:
        self.rows: list[dict[str, int]] = []
        self._known: dict[Any, int] = {}
        self._count = 0

    def _new(self, **row: int) -> int:
        if self._count >= at.REGISTERS:
            raise TooLong
        self._add(**row, to=self._count)
        self._count += 1
        return self._count - 1

    def _add(self, **row: int) -> None:
        if not all(LOWEST <= number <= HIGHEST for number in row.values()):
            raise TooLong
        self.rows.append(row)

    def _once(self, key: Any, **row: int) -> int:
        if key not in self._known:
            self._known[key] = self._new(**row)
        return self._known[key]

    # Reading

    def length(self, symbol: Symbol, value: int, axis: int) -> int:
        """The register of a symbol: the length of an axis of values[value]."""
        return self._once(symbol, op=at.LENGTH, a=value, b=axis)

    def number(self, symbol: Symbol, value: int) -> int:
        """The register of a symbol: values[value], a Python int."""
        return self._once(symbol, op=at.INT, a=value)

    def other_length(self, value: int, axis: int) -> int:
        """The register of the length of a further axis."""
        return self._new(op=at.LENGTH, a=value, b=axis)

    def stride(self, value: int, axis: int) -> int:
        """The register of an axis' stride."""
        return self._new(op=at.STRIDE, a=value, b=axis)

    # Checking

    def same(self, register: int, value: Any) -> None:
        """Go on only where a register has a formula's value."""
        self._add(op=at.SAME, a=register, b=self.register(value))

    def check(self, conditions: Conditions) -> None:
        """Go on only where the conditions are met."""
        for symbol in [s for s in self._known if isinstance(s, Symbol)]:
            self._within(self._known[symbol], *conditions.box[symbol])
        for formula, (low, high) in conditions.ranges.values():
            self._within(self.register(formula), low, high)
        for formula in conditions.zero.values():
            self._within(self.register(formula), 0, 0)
        for formula in conditions.nonzero.values():
            self._add(op=at.NOT_ZERO, a=self.register(formula))

    def _within(self, register: int, low: int, high: int) -> None:
        self._add(op=at.WITHIN, a=register, low=low, high=high)

    # Computing

    def register(self, value: Any) -> int:
        """The register that has a formula's value."""
        if isinstance(value, Symbol):
            return self._known[value]
        if not isinstance(value, Size):
            return self._once(("number", int(value)), op=at.NUMBER, low=int(value))
        if value.key not in self._known:
            self._known[value.key] = self._sum(value)
        return self._known[value.key]

    def _sum(self, size: Size) -> int:
        assert is_whole(size), size
        total: int | None = None
        for monomial, factor in size.terms.items():
            term = self._product(monomial)
            if term is None or factor != 1:
                number = self.register(factor)
                term = number if term is None else self._binary(at.MULTIPLY, term, number)
            total = term if total is None else self._binary(at.ADD, total, term)
        assert total is not None
        return total

    def _product(self, monomial: Monomial) -> int | None:
        total: int | None = None
        for atom in monomial:
            factor = self._quotient(atom) if isinstance(atom, Quotient) else self._known[atom]
            total = factor if total is None else self._binary(at.MULTIPLY, total, factor)
        return total

    def _quotient(self, atom: Quotient) -> int:
        return self._binary(at.QUOTIENT, self.register(atom.top), self.register(atom.by))

    def _binary(self, op: int, a: int, b: int) -> int:
        return self._once((op, a, b), op=op, a=a, b=b)
