"""The rows of docs/capture.md: a construct of Python or NumPy, and a function that uses it.

`python -m tests.bytecode.constructs` prints the table.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import nbcomp

X = np.arange(1.0, 7.0)
SCALE = 2.0
LOG: list[Any] = []
Row = tuple[str, Callable[..., Any]]


@dataclass
class Point:
    """A data class."""

    x: Any
    y: Any


class Layer:
    """An object with state."""

    def __init__(self) -> None:
        self.w = np.full(6, 3.0)

    def __call__(self, x: Any) -> Any:
        return x * self.w

    @property
    def norm(self) -> Any:
        return np.abs(self.w).sum()


LAYER = Layer()


def helper(x: Any, by: float = 2.0) -> Any:
    return x * by


def numpy_call(x: Any) -> Any:
    return np.exp(x).sum(axis=0, keepdims=True)


def module_global(x: Any) -> Any:
    return x * SCALE


def closure(x: Any) -> Any:
    def inner(v: Any) -> Any:
        return v * x

    return inner(x + 1)


def keywords(x: Any) -> Any:
    return helper(x, by=3.0) + helper(*(x,), **{"by": 1.0})


def if_on_shape(x: Any) -> Any:
    return x[None] if x.ndim == 1 else x


def if_on_value(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return x * 3


def conditional_expression(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else -x


def while_on_value(x: Any) -> Any:
    while x.max() > 1:
        x = x * 0.5
    return x


def for_range(x: Any) -> Any:
    for k in range(3):
        x = x + k
    return x


def for_long(x: Any) -> Any:
    for k in range(500):
        x = x * 0.99 + np.tanh(x) * k
    return x


def for_array(x: Any) -> Any:
    total = 0
    for v in x:
        total = total + v * v
    return total


def enumerate_zip(x: Any) -> Any:
    return sum(k * a * b for k, (a, b) in enumerate(zip(x, x[::-1], strict=True)))


def break_continue(x: Any) -> Any:
    for k in range(5):
        if k == 1:
            continue
        if k == 4:
            break
        x = x * k + 1
    return x


def loop_else(x: Any) -> Any:
    for k in range(2):
        x = x + k
    else:
        x = x * 2
    return x


def comprehensions(x: Any) -> Any:
    return {k: v for k, v in enumerate([x * k for k in range(3) if k])}


def generator_expression(x: Any) -> Any:
    return sum(x * k for k in range(3))


def unpacking(x: Any) -> Any:
    a, *rest = x * 2, x, x + 1
    return a + sum(rest)


def walrus(x: Any) -> Any:
    return (y := x * 2) + y


def chained(x: Any) -> Any:
    return x if 0 < x.mean() < 10 else -x


def and_or(x: Any) -> Any:
    return (x.sum() > 0 and x.max()) or x.min()


def assertion(x: Any) -> Any:
    if not (x > 0).all():
        raise ValueError("negative")
    return np.log(x)


def try_except(x: Any) -> Any:
    y = x * 2
    try:
        y = y + np.ones(5)
    except ValueError:
        y = y - 1
    return y * 2


def try_nothing_raised(x: Any) -> Any:
    try:
        y = x * 2
    finally:
        z = x + 1
    return y + z


def with_errstate(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return 1 / x


def with_own(x: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        y = x * 2
    return y + 1


def match_statement(x: Any) -> Any:
    match x.shape:
        case (n,):
            return x / n
        case _:
            return x


def printing(x: Any) -> Any:
    y = x * 2
    print(end="")
    return y + 1


def f_string(x: Any) -> Any:
    y = x * 2
    return y, f"{y.sum():.1f}"


def item(x: Any) -> Any:
    return x * (x + 1).sum().item()


def python_number(x: Any) -> Any:
    k = int(x[0].argmax())
    return x * float(x.sum()) + k, x[k], k + 1


def python_mathematics(x: Any) -> Any:
    return x * math.sqrt(x.sum()), int(x.sum() * 100.0)


def to_list(x: Any) -> Any:
    return x * 2, (x + 1).sum(axis=0).tolist()


def builtin_min(x: Any) -> Any:
    return min(x.sum(), x.max()) * x


def list_append(x: Any) -> Any:
    parts = []
    for k in range(3):
        parts.append(x * k)
    return np.stack(parts)


def outer_list_append(x: Any) -> Any:
    y = x * 2
    LOG.append(1)
    return y + 1


def dictionary(x: Any) -> Any:
    state = {"a": x * 2}
    state["a"] += 1
    return state


def data_class(x: Any) -> Any:
    p = Point(x, x * 2)
    return Point(p.x + p.y, p.x)


def attribute(x: Any) -> Any:
    return LAYER(x) + LAYER.norm


def set_attribute(x: Any) -> Any:
    LAYER.last = x * 2
    return x + 1


def in_place(x: Any) -> Any:
    x += 1
    x[1:3] = x[:2] * 2
    return x


def out_argument(x: Any) -> Any:
    y = np.empty_like(x)
    np.multiply(x, 2, out=y)
    return y


def mask_write(x: Any) -> Any:
    x[x > 2] = 0
    return x


def mask_select(x: Any) -> Any:
    return x[x > 2] * 2


def random_numbers(x: Any) -> Any:
    noise = np.random.default_rng(0).normal(size=6)
    return x * 2 + noise


def not_compiled(x: Any) -> Any:
    return np.fft.fft(x * 2).real + x


def lambda_map(x: Any) -> Any:
    return sum(map(lambda k: x * k, range(3)))


def recursion(x: Any, depth: int = 3) -> Any:
    return x if depth == 0 else recursion(x * 2, depth - 1)


def generator(x: Any) -> Any:
    yield x * 2


def looks_at_variables(x: Any) -> Any:
    y = x * 2
    return y, sorted(locals())


ROWS: list[Row] = [
    ("NumPy functions, methods, operators", numpy_call),
    ("globals", module_global),
    ("nested functions and closures", closure),
    ("helpers, keywords, `*args`, `**kwargs`", keywords),
    ("recursion", recursion),
    ("lambdas, `map`, `functools`", lambda_map),
    ("objects: attributes, methods, properties", attribute),
    ("data classes, named tuples", data_class),
    ("`if` on shapes, dtypes, Python values", if_on_shape),
    ("`if` on array values", if_on_value),
    ("`a if c else b` on array values", conditional_expression),
    ("`0 < x < 1`", chained),
    ("`x and y`, `x or y` on array values", and_or),
    ("`while` on array values", while_on_value),
    ("`for` over a short range", for_range),
    ("`for` over a long range", for_long),
    ("`for` over an array", for_array),
    ("`enumerate`, `zip`", enumerate_zip),
    ("`break`, `continue`", break_continue),
    ("`else` of loops", loop_else),
    ("comprehensions", comprehensions),
    ("generator expressions", generator_expression),
    ("unpacking with `*`", unpacking),
    ("`:=`", walrus),
    ("`match` on shapes", match_statement),
    ("`raise` where a value decides", assertion),
    ("`try` in which nothing is raised", try_nothing_raised),
    ("`try` … `except`", try_except),
    ("`with np.errstate(…)`", with_errstate),
    ("`with` anything else", with_own),
    ("`print`, logging, files", printing),
    ("text of arrays: f-strings, `str`", f_string),
    ("`x.item()` of one element", item),
    ("`float(x)`, `int(x)` of whole numbers", python_number),
    ("`math.sqrt(x)`, `int(x)` of floats", python_mathematics),
    ("`x.tolist()`", to_list),
    ("`min(a, b)` of arrays", builtin_min),
    ("lists made in the function", list_append),
    ("dicts made in the function", dictionary),
    ("changing a list that others see", outer_list_append),
    ("setting an attribute", set_attribute),
    ("writing to arguments, views and slices", in_place),
    ("`out=`", out_argument),
    ("`x[mask] = …`", mask_write),
    ("`x[mask]`: a shape that values decide", mask_select),
    ("random numbers", random_numbers),
    ("NumPy functions that are not compiled", not_compiled),
    ("generators", generator),
    ("`locals()`, `eval`, frames", looks_at_variables),
]


def by_trace(function: Callable[..., Any]) -> str:
    """What `nbcomp.compile` makes of it: "graph" or "refused"."""
    try:
        nbcomp.compile(function, X.copy())
    except (nbcomp.NbcompError, ValueError):
        return "refused"
    return "graph"


def by_bytecode(function: Callable[..., Any]) -> str:
    """What `nbcomp.jit` makes of it: "graph", "parts" or "Python"."""
    f = nbcomp.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        f(X.copy())
        f(X.copy())
    if f.variants:
        return "graph"
    return "parts" if f.explain().graphs else "Python"


def lines() -> Iterator[str]:
    """The table."""
    yield "| construct | trace | bytecode |"
    yield "|---|---|---|"
    for construct, function in ROWS:
        yield f"| {construct} | {by_trace(function)} | {by_bytecode(function)} |"


if __name__ == "__main__":
    print("\n".join(lines()))
