"""Which lengths of arrays are left open: those that differ from call to call, and those that a type
names (`nbcomp.f32["n", 784]`).

Knows variants and their guards, and types; not how anything is compiled.
"""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled
from nbcomp.conditions import LEAST
from nbcomp.frontend.session import Openings
from nbcomp.record import remark
from nbcomp.runtime import validity
from nbcomp.runtime.plan import WHOLE, ArrayGuard, Plan, Source, ValueGuard
from nbcomp.sizes import hint
from nbcomp.types import Dim, TensorType

NAMES = "nmklpqrstuvw"
TRIES = 3  # lengths that had to be fixed before they are left alone ...
SHORT = 16  # ... but for short ones: their loops are often written out
# Lengths to compile for where a type names them and no array is at hand, by how many there are:
# primes, so that none happens to be equal to, or a multiple of, what the program has in it.
EXAMPLES: tuple[tuple[int, ...], ...] = ((1021,), (509, 521), (61, 67, 71, 73, 79, 83, 89, 97))


class OpenLengths:
    """The lengths of one function that are left open so far."""

    def __init__(self) -> None:
        self.names: dict[Source, dict[int, str]] = {}
        self._fixed: Counter[tuple[Source, int]] = Counter()  # how often each had to be

    def __bool__(self) -> bool:
        return any(self.names.values())

    def declare(self, found: Openings) -> None:
        """Lengths that a type names."""
        for source, names in found.items():
            self.names.setdefault(source, {}).update(names)

    def see(self, variants: Sequence[Compiled], values: Sequence[Any]) -> None:
        """A call that no variant takes: lengths that differ from those of a variant are open from
        now on, if all else is as it was."""
        for variant in variants:
            found = [*_differing(variant, values), *((s, WHOLE) for s in _varying(variant, values))]
            for source, axis in found:
                known = axis in self.names.get(source, {})
                if not known and self._fixed[source, axis] < TRIES:
                    self.names.setdefault(source, {})[axis] = self._name()

    def close(self, made: Compiled) -> None:
        """What several compilations had to fix stays so: another length is another variant."""
        opened = made.plan.open
        if opened is None:
            return
        found = opened.conditions.fixed
        fixed = {f.symbol for f in found if f.needed}
        for symbol, index, axis in opened.lengths:
            if symbol in fixed and (symbol.hint > SHORT or axis == WHOLE):
                source = made.plan.guards[index].source
                self._fixed[source, axis] += 1
                if self._fixed[source, axis] >= TRIES:
                    self.names.get(source, {}).pop(axis, None)

    def refused(self, values: Sequence[Any]) -> None:
        """A program could not be captured with open lengths; they are left alone after a few."""
        for source, names in self.names.items():
            for axis in list(names):
                if axis == WHOLE or _length(source, axis, values) > SHORT:
                    self._fixed[source, axis] += 1
                if self._fixed[source, axis] >= TRIES:
                    del names[axis]

    def _name(self) -> str:
        taken = {name for names in self.names.values() for name in names.values()}
        numbered = (f"{c}{k or ''}" for k in range(100) for c in NAMES)
        return next(name for name in numbered if name not in taken)


def _length(source: Source, axis: int, values: Sequence[Any]) -> int:
    """The length of an axis in a call; 0 where there is no such array."""
    try:
        return int(validity.resolve(source, tuple(values)).shape[axis])
    except Exception:  # whatever the user's own lookup raises
        return 0


def _varying(variant: Compiled, values: Sequence[Any]) -> Iterator[Source]:
    """The ints whose value a variant assumes, and which have another now."""
    for guard in variant.plan.guards:
        if isinstance(guard, ValueGuard) and type(guard.value) is int:
            with contextlib.suppress(Exception):  # whatever the user's own lookup raises
                now = validity.resolve(guard.source, tuple(values))
                if type(now) is int and now != guard.value:
                    yield guard.source


def _differing(variant: Compiled, values: Sequence[Any]) -> Iterator[tuple[Source, int]]:
    """The axes whose lengths differ, where nothing else of the arrays does."""
    found: list[tuple[Source, int]] = []
    for guard in variant.plan.guards:
        if not isinstance(guard, ArrayGuard):
            continue
        try:
            value = validity.resolve(guard.source, tuple(values))
        except Exception:  # whatever the user's own lookup raises
            return
        if type(value) is not np.ndarray or value.dtype != guard.dtype:
            return
        if value.ndim != len(guard.shape):
            return
        pairs = zip(guard.shape, value.shape, strict=True)
        found += [
            (guard.source, k) for k, (was, n) in enumerate(pairs) if n != hint(was) and n >= LEAST
        ]
    yield from found


def with_types(function: Any) -> inspect.Signature | None:
    """The function's signature, None where Python cannot tell; annotations that are texts are what
    they stand for, where they stand for something."""
    for evaluate in (True, False):
        try:
            return inspect.signature(function, eval_str=evaluate)
        except Exception:  # whatever an annotation raises
            continue
    return None


def annotated(signature: inspect.Signature) -> dict[str, TensorType] | None:
    """The types that parameters are annotated with, by name; None where others need a value."""
    found = dict[str, TensorType]()
    for parameter in signature.parameters.values():
        if isinstance(parameter.annotation, TensorType):
            found[parameter.name] = parameter.annotation
        elif parameter.default is parameter.empty:
            return None
    return found or None


def of_annotations(signature: inspect.Signature) -> Openings:
    """The lengths that the types of a function's parameters name."""
    return of_types(
        [p.annotation for p in signature.parameters.values()], list(signature.parameters)
    )


def of_types(values: Sequence[Any], names: Sequence[str]) -> Openings:
    """The lengths that types given for the parameters of these names name."""
    found: dict[Source, Mapping[int, str]] = {}
    for k, (value, name) in enumerate(zip(values, names, strict=False)):
        if isinstance(value, TensorType):
            lengths = {a: n.name for a, n in enumerate(value.shape) if isinstance(n, Dim)}
            if lengths:
                found[Source("argument", k, name=name)] = lengths
    return found


def examples(types: Sequence[Any]) -> dict[str, int]:
    """A length to compile for, for each name in these types."""
    shapes = [t.shape for t in types if isinstance(t, TensorType)]
    dims: list[Any] = [n for shape in shapes for n in shape]
    distinct = list(dict.fromkeys(name for n in dims if isinstance(n, Dim) for name in n.names))
    lengths = EXAMPLES[min(len(distinct), len(EXAMPLES)) - 1] if distinct else ()
    return {name: lengths[k % len(lengths)] for k, name in enumerate(distinct)}


def stand_in(value: Any, lengths: Mapping[str, int]) -> Any:
    """Zeros for a type that is given without data; anything else unchanged."""
    if not isinstance(value, TensorType):
        return value
    return np.zeros(with_lengths(value, lengths).shape, value.dtype)


def with_lengths(t: TensorType, lengths: Mapping[str, int]) -> TensorType:
    """A type with numbers for its names."""
    shape = tuple(n.at(lengths) if isinstance(n, Dim) else n for n in t.shape)
    return TensorType(t.dtype, shape)


def tell(plan: Plan) -> None:
    """Remark which lengths are open, for which values, and which had to be fixed and why."""
    if plan.open is None:
        return
    conditions = plan.open.conditions
    fixed = {f.symbol: f for f in conditions.fixed}
    for symbol in plan.open.symbols:
        where = plan.describe(symbol)
        if symbol in fixed:
            reason = f"{where} is {symbol.hint} in this code: {fixed[symbol].why}"
            remark("missed", "lengths", reason, fixed[symbol].place)
            continue
        reason = f"{where} is open: one code for {symbol} = {conditions.range_of(symbol)}"
        remark("applied", "lengths", reason)
