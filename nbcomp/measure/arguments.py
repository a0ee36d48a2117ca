"""Arguments of calls that only measure: copies that overlap as the originals do, and batches.

Arrays of the caller are never written to: a function that writes gets copies, which can be given
their first values again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Signature
from typing import Any

import numpy as np

from nbcomp.frontend.result import bind, resolve
from nbcomp.measure.differences import Array, leaves
from nbcomp.runtime.plan import Source


def twin(value: Any) -> Any:
    """A copy of nested arguments whose arrays keep their strides and their overlaps with each
    other.
    """
    arrays = {id(v): v for _, v in leaves(value, "") if isinstance(v, np.ndarray)}
    return rebuild(value, _copies(list(arrays.values())))


def _copies(arrays: list[Array]) -> dict[int, Array]:
    """For each array (by id) an equal one, over copies of the memory spans the arrays lie in."""
    spans: list[tuple[int, int, list[Array]]] = []
    bounded = [(*np.lib.array_utils.byte_bounds(a), a) for a in arrays]
    for low, high, array in sorted(bounded, key=lambda span: span[:2]):
        if spans and low < spans[-1][1]:
            begin, end, members = spans.pop()
            spans.append((begin, max(end, high), [*members, array]))
        else:
            spans.append((low, high, [array]))
    result = {}
    for begin, end, members in spans:
        buffer = np.empty(end - begin, np.uint8)
        for a in members:
            start = np.lib.array_utils.byte_bounds(a)[0] - begin
            first = a.__array_interface__["data"][0] - begin if a.size else start
            copy: Array = np.ndarray(a.shape, a.dtype, buffer, first, a.strides)
            copy[...] = a
            copy.flags.writeable = a.flags.writeable
            result[id(a)] = copy
    return result


def rebuild(value: Any, arrays: dict[int, Array]) -> Any:
    """Nested arguments with other arrays in the place of those, by id."""
    if isinstance(value, dict):
        return {k: rebuild(v, arrays) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        items = [rebuild(v, arrays) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return arrays.get(id(value), value)


def batch_arguments(args: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the arrays that share the leading dimension of the first array argument."""
    arrays = [(i, a) for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.ndim > 0]
    rows = next((a.shape[0] for _, a in arrays), 0)
    return tuple(i for i, a in arrays if a.shape[0] == rows and rows > 0)


def resized(args: Sequence[Any], positions: Sequence[int], size: int) -> tuple[Any, ...]:
    """The arguments with the rows of those at `positions` repeated or cut to `size`."""
    new = list(args)
    for i in positions:
        rows = np.arange(size) % args[i].shape[0]
        new[i] = args[i][:size] if size <= args[i].shape[0] else args[i][rows]
    return tuple(new)


def restore(copies: Any, originals: Any) -> None:
    """Give the arrays of copied arguments the values they were copied with."""
    for (_, copy), (_, original) in zip(leaves(copies, ""), leaves(originals, ""), strict=False):
        if isinstance(copy, np.ndarray) and copy.flags.writeable:
            copy[...] = original


class Around:
    """What a function writes to besides its arguments: the arrays, by where they were found, and
    maybe more, with the values of when this was made."""

    arrays: Mapping[str, Array]

    def copies(self) -> dict[str, Array]:
        """Copies of the arrays as they are now, by where they were found."""
        return {name: array.copy() for name, array in self.arrays.items()}

    def apart(self, value: Any) -> Any:
        """A value that giving the arrays other values does not change: it may hold them."""
        return twin(value) if self.arrays else value

    def again(self) -> None:
        """Give everything the values it had."""
        raise NotImplementedError

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Everything has the values it had when the body begins, and after it."""
        self.again()
        try:
            yield
        finally:
            self.again()


class Elsewhere(Around):
    """The arrays of globals, closures and attributes that a captured function writes to."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = dict(arrays)
        self._before = self.copies()

    @staticmethod
    def of(
        signature: Signature,
        writes: Sequence[tuple[Source, int]],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Elsewhere:
        """Those of a captured function for these arguments."""
        values = bind(signature, args, dict(kwargs))
        passed = {id(leaf) for _, leaf in leaves((tuple(args), dict(kwargs)), "")}
        found = {source.describe(): resolve(source, values) for source, _ in writes}
        return Elsewhere({name: a for name, a in found.items() if id(a) not in passed})

    def again(self) -> None:
        for name, array in self.arrays.items():
            array[...] = self._before[name]


NOWHERE = Elsewhere({})


@contextmanager
def kept(
    signature: Signature,
    writes: Sequence[tuple[Source, int]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Iterator[Elsewhere]:
    """Keep what a captured function writes to besides its arguments, of which it gets copies."""
    elsewhere = Elsewhere.of(signature, writes, args, kwargs)
    with elsewhere.fresh():
        yield elsewhere
