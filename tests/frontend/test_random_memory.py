"""Random programs of views and writes: NumPy's own aliasing, replayed on tracers.

A program is a list of steps, drawn while it runs on NumPy, so that every step is legal; then the
same list runs as a traced function.  A failure names its seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Step = Callable[[list[Any]], None]


def slices(r: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A random basic index, mostly keeping axes."""

    def one(n: int) -> Any:
        kind = r.random()
        if kind < 0.15:
            return r.randrange(n)
        if kind < 0.3:
            return slice(None, None, -1)
        if kind < 0.45:
            return slice(None, None, 2)
        if kind < 0.75:
            start = r.randrange(n)
            return slice(start, r.randrange(start, n) + 1)
        return slice(None)

    index = [one(n) for n in shape]
    if r.random() < 0.15:
        index.insert(r.randrange(len(index) + 1), None)
    return tuple(index) if r.random() < 0.9 else (*index[:1], ...)


def view(r: random.Random, arrays: list[Any]) -> Step:
    """Append a view of one of the arrays (or the copy that NumPy makes instead)."""
    k = r.randrange(len(arrays))
    shape = arrays[k].shape
    factors = [(a, arrays[k].size // a) for a in (1, 2, 3, 4, 6) if arrays[k].size % a == 0]
    new, index = r.choice(factors), slices(r, shape)
    order = r.choice("CF")
    axes = r.sample(range(len(shape)), len(shape))
    views: list[Callable[[Any], Any]] = [
        lambda a: a[index],
        lambda a: a[index],
        lambda a: a.T,
        lambda a: a.reshape(new),
        lambda a: a.reshape(-1, order=order),
        lambda a: a.ravel(),
        lambda a: np.transpose(a, axes),
        lambda a: np.flip(a),
        lambda a: np.expand_dims(a, 0),
        lambda a: a.squeeze(),
        lambda a: np.atleast_2d(a),
        lambda a: np.swapaxes(a, 0, -1),
        lambda a: np.split(a, 1)[0],
        lambda a: np.asarray(a),
    ]
    take = r.choice(views)
    return lambda arrays: arrays.append(take(arrays[k]))


def fresh(r: random.Random, arrays: list[Any]) -> Step:
    """Append a new array."""
    k, j = r.randrange(len(arrays)), r.randrange(len(arrays))
    makers: list[Callable[[Any, Any], Any]] = [
        lambda a, b: a * 2,
        lambda a, b: a.copy(),
        lambda a, b: np.array(a),
        lambda a, b: a + b if a.shape == b.shape else -a,
        lambda a, b: np.maximum(a, 1),
        lambda a, b: a.astype(np.float32).astype(np.float64),
        lambda a, b: a.flatten(),
        lambda a, b: np.where(a > 0, a, -1.0),
    ]
    make = r.choice(makers)
    return lambda arrays: arrays.append(make(arrays[k], arrays[j]))


def fitting(a: Any, b: Any, otherwise: float) -> Any:
    """b, where it has a's shape."""
    return b if a.shape == b.shape else otherwise


def shift(a: Any, b: Any) -> None:
    """Overlapping: NumPy reads before it writes."""
    a[1:] = a[:-1]


def reverse(a: Any, b: Any) -> None:
    """Overlapping, from the other end."""
    a[...] = a[::-1]


def pick(a: Any, b: Any) -> None:
    """Integer array indexing."""
    a[[0, -1]] -= 1


def write(r: random.Random, arrays: list[Any]) -> Step:
    """Write to one of the arrays, perhaps what another (overlapping) one holds."""
    k, j, value = r.randrange(len(arrays)), r.randrange(len(arrays)), float(r.randrange(9))
    index = slices(r, arrays[k].shape)

    def assign(a: Any, b: Any) -> None:
        a[index] = value

    def element(a: Any, b: Any) -> None:
        a[index] += value

    def add(a: Any, b: Any) -> None:
        a += value

    def multiply(a: Any, b: Any) -> None:
        a *= fitting(a, b, 1.5)

    def mask(a: Any, b: Any) -> None:
        a[a > value] = 0

    changes = [assign, element, add, multiply, mask, shift, reverse, pick]
    changes += [lambda a, b: np.subtract(a, value, out=a)]
    changes += [lambda a, b: np.copyto(a, fitting(a, b, value))]
    change = r.choice(changes)
    return lambda arrays: change(arrays[k], arrays[j])


def draw(seed: int, x: Any, length: int = 12) -> list[Step]:
    """The steps of a program, each legal in NumPy after those before it."""
    r = random.Random(seed)
    arrays, steps = [x], []
    while len(steps) < length:
        step = r.choices([view, fresh, write], [4, 2, 4])[0](r, arrays)
        count = len(arrays)
        step(arrays)
        if len(arrays) > count and (arrays[-1].ndim == 0 or arrays[-1].size == 0):
            arrays.pop()
        else:
            steps.append(step)
    return steps


@pytest.mark.parametrize("seed", range(200))
def test_random_memory(seed: int, agree: Callable[..., Any]) -> None:
    r = random.Random(seed)
    shape = r.choice([(3, 4), (12,), (2, 3, 2), (6, 2), (1, 12)])
    x = np.arange(12.0).reshape(shape) - 4
    if r.random() < 0.3:
        x = np.asfortranarray(x)
    steps = draw(seed, x.copy(order="K"))

    def program(x: Any) -> Any:
        arrays = [x]
        for step in steps:
            step(arrays)
        return arrays

    agree(program, x)
