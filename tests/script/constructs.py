"""The constructs of docs/capture.md, each as a small program: name, function, arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CONSTRUCTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
X = np.array([1.5, -2.0, 3.0, 0.5, -1.0])
M = np.arange(12.0).reshape(3, 4)


def construct(name: str, *args: Any) -> Callable[[Any], Any]:
    """Declare the program of a construct."""

    def register(function: Any) -> Any:
        CONSTRUCTS[name] = (function, args)
        return function

    return register


@construct("`if` / `elif` / `else` on array values", X)
def _if(x: Any) -> Any:
    if x.sum() > 10:
        y = x
    elif x.sum() > 0:
        y = -x
    else:
        y = x * 0
    return y


@construct("`a if test else b` on array values", X)
def _if_expression(x: Any) -> Any:
    return x if x.sum() > 0 else -x


@construct("`and`, `or`, `not` and chains on array values", X)
def _boolean(x: Any) -> Any:
    return x * 2 if 0 < x.sum() < 10 and not x.max() > 5 else x


@construct("`assert` and `raise` on array values", X)
def _checks(x: Any) -> Any:
    assert np.isfinite(x).all(), "not finite"
    if x.max() > 100:
        raise ValueError(f"{x.max()} is too large")
    return x / x.max()


@construct("`while` on array values", X)
def _while(x: Any) -> Any:
    while np.abs(x).max() > 1:
        x = x / 2
    return x


@construct("early `return` on array values", X)
def _return(x: Any) -> Any:
    if x.max() > 100:
        return x
    return x + 1


@construct("`break`, `continue`, `return` in a loop over whole arrays", X)
def _jumps(x: Any) -> Any:
    for k in range(1000):
        new = 0.5 * x + 1.0
        if np.abs(new - x).max() < 1e-9:
            return new, k
        x = new
    return x, -1


@construct("loop over elements: `for i in range(n)`", X)
def _elements(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i] * i
    return s


@construct("nested loops, reading and writing elements", M)
def _nested(m: Any) -> Any:
    out = np.zeros(m.shape)
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            out[i, j] = m[i, j] * i - j
    return out


@construct("`for x in array`, `enumerate`, `zip`", X)
def _iteration(x: Any) -> Any:
    s = 0.0
    for v in x:
        s += v
    for i, v in enumerate(x):
        s += i * v
    for a, b in zip(x, x[::-1]):  # noqa: B905
        s += a * b
    return s


@construct("`break`, `continue`, `else` of a loop", X)
def _jumps(x: Any) -> Any:
    s = 0.0
    for v in x:
        if v < -1.5:
            continue
        if v > 2.5:
            break
        s += v
    else:
        s = -1.0
    return s


@construct("`while` over numbers", 97)
def _numbers(n: Any) -> Any:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@construct("early `return` from a loop", X)
def _find(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 2:
            return i
    return -1


@construct("tuples and unpacking", X)
def _tuples(x: Any) -> Any:
    a, b = 0.0, 1.0
    for v in x:
        a, b = b, a + v
    return a, b


@construct("nested functions and closures", X)
def _inner(x: Any) -> Any:
    k = 2.0

    def scaled(v: Any) -> Any:
        return v * k

    s = 0.0
    for v in x:
        s += scaled(v)
    return s


def _helper(v: Any, low: Any = 0.0) -> Any:
    if v < low:
        return v + low
    return v * 2


@construct("helper functions, default arguments", X)
def _helpers(x: Any) -> Any:
    s = 0.0
    for v in x:
        s += _helper(v) + _helper(v, low=1.0)
    return s


def _most(*values: Any, least: Any = 0.0) -> Any:
    best = least
    for v in values:
        best = v if v > best else best
    return best


class _Slope:
    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, v: Any) -> Any:
        return self.scaled(v) if v < 0 else v

    def scaled(self, v: Any) -> Any:
        return self.slope * v if v > -10 else -10 * self.slope


_LEAKY = _Slope(0.125)


@construct("`*args`, keyword-only parameters, methods and objects that are called", X)
def _called(x: Any) -> Any:
    s = 0.0
    for i in range(len(x) - 1):
        s += _most(x[i], x[i + 1], least=0.5) + _LEAKY(x[i]) + _LEAKY.scaled(x[i])
    return s


@construct("a variable that is Python's number or an element", X)
def _either(x: Any) -> Any:
    m = 100
    for v in x:
        if v > 1:
            m = v
    return -m, m


@construct("a variable, or what is returned, that is None or a number", X)
def _perhaps(x: Any) -> Any:
    best = None
    for v in x:
        if v > 100 and (best is None or v > best):
            best = v
    return best


@construct("ints to powers known at run time", X)
def _powers(x: Any) -> Any:
    s, t = 0.0, 0
    for k in range(len(x)):
        s += (-1) ** k * x[k]
        t += 2**k + (k - 5) ** k
    return s, t


@construct("`assert` and `raise`", X)
def _assertion(x: Any) -> Any:
    for v in x:
        assert v < 2, "too large"
    return x


@construct("augmented assignment to elements", X)
def _augmented(x: Any) -> Any:
    for i in range(1, len(x)):
        x[i] += x[i - 1]
        x[i] *= 0.5
    return x


@construct("slices: a row, a column, all of one value", M)
def _slices(m: Any) -> Any:
    for i in range(m.shape[0]):
        row = m[i]
        m[i, 1:3] = row[0]
    return m


@construct("`math` and NumPy functions of numbers", X)
def _functions(x: Any) -> Any:
    s = 0.0
    for v in x:
        s += math.floor(v) + np.maximum(v, 0) + abs(v) + min(v, 1.0)
    return s


@construct("index out of bounds raises IndexError", X)
def _bounds(x: Any) -> Any:
    s = 0.0
    for i in range(len(x) + 1):
        s += x[i]
    return s


@construct("ints beyond 64 bits stay exact", 50)
def _large(n: Any) -> Any:
    product = 1
    for i in range(1, n):
        product *= i
    return product


@construct("a variable that is not always assigned", X)
def _unassigned(x: Any) -> Any:
    for v in x:
        if v > 100:
            found = v
    return found


@construct("slices whose bounds are known at run time", 40)
def _sieve(n: Any) -> Any:
    prime = np.ones(n, dtype=bool)
    for i in range(2, n):
        if prime[i]:
            prime[i * i :: i] = False
    return prime


@construct("arithmetic and sums of such parts", M)
def _parts(m: Any) -> Any:
    total = 0.0
    for i in range(1, m.shape[0]):
        m[i, i:] -= m[i, 0] * m[0, i:]
        total += m[i, :i].sum() + m[i] @ m[i - 1]
    return total


@construct("rows that trade places: `m[[i, j]] = m[[j, i]]`", M)
def _rows(m: Any) -> Any:
    for i in range(m.shape[0] // 2):
        j = m.shape[0] - 1 - i
        m[[i, j]] = m[[j, i]]
    return m


def _scaled(x: Any, *rest: Any, by: Any = 1.0, **named: Any) -> Any:
    return x * by + named.get("plus", 0.0) if rest else x


@construct("`*` and `**` in calls, `**kwargs`", X)
def _stars(x: Any) -> Any:
    s = 0.0
    for v in x:
        args, named = (v, 1), {"by": 2.0, "plus": 0.5}
        s += _scaled(*args, **named)
    return s


@construct("short lists and tuples, an entry of them chosen at run time", M)
def _short_lists(m: Any) -> Any:
    s = 0.0
    for i in range(m.shape[0]):
        for di, dj in [(0, 1), (1, 0)]:
            s += m[(i + di) % m.shape[0], dj] * (1.0, 2.0, 4.0)[i]
    return s


@construct("generator expressions in `sum`, `min`, `max`, `any`, `all`", X)
def _generators(x: Any) -> Any:
    squares = sum(v * v for v in x if v > 0)
    largest = max((x[i] - x[i - 1] for i in range(1, len(x))), default=0.0)
    pairs = sum(a * b for a in x for b in x if a < b)
    return squares, largest, pairs, any(v > 1 for v in x), all(v < 9 for v in x)


@construct("what is returned is a tuple on one way, None or another tuple on another", X, 0.5)
def _tuple_or_none(x: Any, target: Any) -> Any:
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if x[i] + x[j] == target:
                return i, j, x[i]
        if x[i] > 100:
            return i, "large"
    return None
