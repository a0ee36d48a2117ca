"""Single operators against NumPy, by size.

    python -m benchmarks.operators [WORDS] [--sizes 1e3,1e6]

A row is an operator, a column a number of elements, an entry how many times as fast as NumPy the
compiled function is.  Only rows whose name has all of the words are run.  Answers are compared
first, those written to arguments included; both sides then take turns in one process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import nbcomp
from nbcomp.measure.timing import alternate

SECONDS, ROUNDS = 0.12, 7  # of samples for each entry, and the turns of its sides
SLOW = 0.95  # times as fast, below which an entry is marked

Array = np.ndarray[Any, Any]
Make = Callable[[int, Any, np.random.Generator], tuple[Any, ...]]


def vector(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """n elements."""
    return (values(rng, dtype, (n,)),)


def two(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """Two arrays of n elements."""
    return values(rng, dtype, (n,)), values(rng, dtype, (n,))


def matrix(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """About n elements in 64 columns."""
    return (values(rng, dtype, (max(n // 64, 2), 64)),)


def fortran(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """The same in Fortran order."""
    return (np.asfortranarray(matrix(n, dtype, rng)[0]),)


def square(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """About n elements in as many rows as columns."""
    side = max(int(n**0.5), 2)
    return (values(rng, dtype, (side, side)),)


def narrow(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """About n elements in rows of 8."""
    return (values(rng, dtype, (max(n // 8, 2), 8)),)


def rows_taken(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """A matrix of 64 columns, and the indices of as many rows."""
    (x,) = matrix(n, dtype, rng)
    return x, rng.integers(0, len(x), len(x))


def taken(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """n elements and n indices."""
    return values(rng, dtype, (n,)), rng.integers(0, n, n)


def places(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """n elements, 100 different places, and what goes there."""
    return values(rng, dtype, (n,)), rng.permutation(n)[:100], values(rng, dtype, (100,))


def searched(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """1000 sorted elements, and n to be found."""
    return np.sort(values(rng, dtype, (1000,))), values(rng, dtype, (n,))


def interpolated(n: int, dtype: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    """n places, and 100 points."""
    x = np.linspace(-4, 4, 100)
    return values(rng, dtype, (n,)), x, np.sin(x)


def values(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Ordinary ones; few of many booleans are true, so that any and all look at many."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0
    if kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


# ------------------------------------------------------------------------------------- operators


@dataclass(frozen=True)
class Row:
    """An operator: its name, the function, its arguments for a number of elements, and dtypes."""

    name: str
    function: Callable[..., Any]
    make: Make
    dtypes: tuple[Any, ...] = (np.float32, np.float64)


def scaled(x: Any) -> None:
    x *= -1


def added(x: Any, y: Any) -> None:
    x += y


def added_inside(x: Any, y: Any) -> None:
    x[1:-1] += y[1:-1]


def smoothed(x: Any) -> None:
    x[1:-1] = 0.25 * (x[2:] + 2 * x[1:-1] + x[:-2])


def into(x: Any, y: Any) -> Any:
    return np.add(y, 1, out=x)


def one_row(x: Any) -> None:
    x[1] = np.negative(x[1])


def one_column(x: Any) -> None:
    x[:, 1] = np.negative(x[:, 1])


def scattered(x: Any, i: Any, v: Any) -> None:
    x[i] = v


def added_at(x: Any, i: Any, v: Any) -> None:
    x[i] += v


def centred(x: Any) -> None:
    x -= x.mean(axis=-1, keepdims=True)


def clipped(x: Any) -> None:
    np.clip(x, -1, 1, out=x)


def masked(x: Any) -> None:
    x[x > 1] = 1


WRITES = (
    Row("in place: x *= -1", scaled, vector, (np.float32, np.float64, np.int8)),
    Row("in place: x *= -1, Fortran", scaled, fortran),
    Row("in place: x += y", added, two),
    Row("in place: x[1:-1] += y[1:-1]", added_inside, two),
    Row("in place: smoothed x[1:-1]", smoothed, vector),
    Row("in place: np.add(y, 1, out=x)", into, two),
    Row("in place: x[1] = -x[1]", one_row, matrix),
    Row("in place: x[:, 1] = -x[:, 1]", one_column, matrix),
    Row("in place: x -= row means", centred, matrix),
    Row("in place: np.clip(x, -1, 1, out=x)", clipped, vector),
    Row("in place: x[x > 1] = 1", masked, vector),
    Row("in place: x[i] = v, 100 places", scattered, places),
    Row("in place: x[i] += v, 100 places", added_at, places),
)
ANY = (np.float32, np.float64, np.int8, np.bool_)
READS = (
    Row("take x[i]", lambda x, i: x[i], taken, ANY),
    Row("take rows x[i]", lambda x, i: x[i], rows_taken),
    Row("take rows np.take(x, i, axis=0)", lambda x, i: np.take(x, i, axis=0), rows_taken),
    Row("argmax", lambda x: x.argmax(), vector, ANY),
    Row("argmax axis=0", lambda x: x.argmax(axis=0), matrix, ANY),
    Row("argmax axis=1", lambda x: x.argmax(axis=1), matrix, ANY),
    Row("argmin axis=0, Fortran", lambda x: x.argmin(axis=0), fortran),
    Row("argmin axis=1, Fortran", lambda x: x.argmin(axis=1), fortran),
    Row("argmax axis=1, rows of 8", lambda x: x.argmax(axis=1), narrow),
    Row("max axis=1, rows of 8", lambda x: x.max(axis=1), narrow),
    Row("any", lambda x: x.any(), vector, (np.bool_, np.float32)),
    Row("all axis=0", lambda x: x.all(axis=0), matrix, (np.bool_,)),
    Row("all axis=1", lambda x: x.all(axis=1), matrix, (np.bool_,)),
    Row("count_nonzero", np.count_nonzero, vector, (np.bool_, np.float32)),
    Row("pad edge 8", lambda x: np.pad(x, 8, mode="edge"), square),
    Row("pad reflect 8", lambda x: np.pad(x, 8, mode="reflect"), square),
    Row("pad constant 8", lambda x: np.pad(x, 8), square),
    Row("where(x > 0, 1, 0)", lambda x: np.where(x > 0, 1, 0), vector),
    Row("where(x > 0, x, 0)", lambda x: np.where(x > 0, x, 0), vector),
    Row("cumsum", lambda x: np.cumsum(x), vector),
    Row("cumsum axis=0", lambda x: np.cumsum(x, axis=0), matrix),
    Row("cumsum axis=1", lambda x: np.cumsum(x, axis=1), matrix),
    Row("cumsum axis=0, Fortran", lambda x: np.cumsum(x, axis=0), fortran),
    Row("sort", lambda x: np.sort(x), vector),
    Row("sort rows of 8", lambda x: np.sort(x, axis=1), narrow),
    Row("sort rows of 64", lambda x: np.sort(x, axis=1), matrix),
    Row("sort axis=0", lambda x: np.sort(x, axis=0), matrix),
    Row("argsort", lambda x: np.argsort(x), vector),
    Row("median axis=1", lambda x: np.median(x, axis=1), matrix),
    Row("searchsorted", lambda a, v: np.searchsorted(a, v), searched),
    Row("interp", lambda x, a, b: np.interp(x, a, b), interpolated, (np.float64,)),
    Row("bincount", lambda x: np.bincount(x, minlength=100)[:100], vector, (np.int64,)),
    Row("histogram", lambda x: np.histogram(x, 20, (-3, 3))[0], vector),
    Row("digitize", lambda a, v: np.digitize(v, a), searched),
    Row("repeat 4", lambda x: np.repeat(x, 4), vector),
    Row("repeat 4 rows", lambda x: np.repeat(x, 4, axis=0), matrix),
    Row("tile 4", lambda x: np.tile(x, 4), vector),
    Row("tile (2, 2)", lambda x: np.tile(x, (2, 2)), square),
    Row("roll 3", lambda x: np.roll(x, 3), vector),
    Row("roll axis=1", lambda x: np.roll(x, 3, axis=1), matrix),
    Row("flip", lambda x: x[::-1].copy(), vector, (np.float32, np.int8)),
    Row("transpose", lambda x: x.T.copy(), square, (np.float32, np.int8)),
    Row("concatenate 8", lambda x: np.concatenate([x] * 8), vector),
    Row("concatenate 8 axis=1", lambda x: np.concatenate([x] * 8, axis=1), matrix),
    Row("stack 3 axis=-1", lambda x: np.stack([x, x, x], axis=-1), vector),
    Row("windows sum", lambda x: np.lib.stride_tricks.sliding_window_view(x, 8).sum(-1), vector),
    Row("windows max", lambda x: np.lib.stride_tricks.sliding_window_view(x, 8).max(-1), vector),
    Row("x @ v", lambda x: x @ x[0], matrix),
    Row("x.T @ v", lambda x: x.T @ x[:, 0], matrix),
    Row("x[::2] @ v", lambda x: x[::2] @ x[0], matrix),
    Row("diff", lambda x: np.diff(x), vector),
    Row("diff axis=0", lambda x: np.diff(x, axis=0), matrix),
    Row("tril", lambda x: np.tril(x), square),
    Row("sum", lambda x: x.sum(), vector, (np.float32, np.int8)),
    Row("sum axis=0", lambda x: x.sum(axis=0), matrix, (np.float32, np.int8)),
    Row("sum axis=0, Fortran", lambda x: x.sum(axis=0), fortran),
    Row("std axis=0", lambda x: x.std(axis=0), matrix),
    Row("x + y", lambda x, y: x + y, two, (np.float32, np.int8)),
    Row("x > y", lambda x, y: x > y, two, (np.float32, np.int8)),
    Row("~x", lambda x: ~x, vector, (np.bool_,)),
    Row("x & y", lambda x, y: x & y, two, (np.bool_, np.int8)),
    Row("x // 3", lambda x: x // 3, vector, (np.float32, np.int8, np.int64)),
    Row("x % 3", lambda x: x % 3, vector, (np.float32, np.int8, np.int64)),
    Row("astype float64", lambda x: x.astype(np.float64), vector, (np.int8, np.float32)),
    Row("astype int8", lambda x: x.astype(np.int8), vector, (np.int64, np.float32)),
    Row("outer", lambda x: np.multiply.outer(x[:16], x), vector),
    Row("take_along_axis", lambda x: np.take_along_axis(x, x.argsort(1), 1), matrix),
    Row("unwrap", lambda x: np.unwrap(x), vector),
    Row("convolve 9", lambda x: np.convolve(x, x[:9], "same"), vector),
    Row("gradient", lambda x: np.gradient(x), vector),
)


# ------------------------------------------------------------------------------------- measuring


def entry(row: Row, dtype: Any, n: int, seconds: float) -> tuple[float | None, str]:
    """How many times as fast as NumPy, and what is to be said about it."""
    given = row.make(n, dtype, np.random.default_rng(0))
    left, right = (tuple(a.copy(order="K") for a in given) for _ in range(2))
    compiled = nbcomp.compile(row.function, *left).entry
    ours = compiled(*left)
    theirs = row.function(*right)
    for got, wanted in zip((ours, *left), (theirs, *right), strict=True):
        if wanted is None and got is None:
            continue
        same = got.dtype == wanted.dtype and got.shape == wanted.shape
        tolerance = 1e-4 if got.dtype.itemsize == 4 else 1e-9
        if not same or not np.allclose(got, wanted, tolerance, tolerance, equal_nan=True):
            return None, "DIFFERENT"
    calls: list[Any] = [(compiled, left, {}), (row.function, right, {})]
    sides = alternate(calls, seconds, rounds=ROUNDS, rest=0.0, shortest=True)
    own, numpy = (timing.median for timing, _ in sides)
    return numpy / own, ""


def line(row: Row, dtype: Any, sizes: list[int], seconds: float) -> Iterator[str]:
    """The row's entries."""
    yield f"| {row.name} | {np.dtype(dtype).name} "
    for n in sizes:
        try:
            times, note = entry(row, dtype, n, seconds)
        except Exception as error:  # one row must not end the table
            times, note = None, f"{type(error).__name__}"
        shown = "" if times is None else f"{times:.2f}×" if times >= SLOW else f"**{times:.2f}×**"
        yield f"| {' '.join(filter(None, (shown, note)))} "
    yield "|\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--sizes", default="1e3,1e5,4e6")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    sizes = [int(float(n)) for n in options.sizes.split(",")]
    print(f"| operator | dtype | {' | '.join(f'{n:,}' for n in sizes)} |")
    print(f"|---|---|{'---|' * len(sizes)}", flush=True)
    for row in (*WRITES, *READS):
        if all(word in row.name for word in options.words):
            for dtype in row.dtypes:
                print("".join(line(row, dtype, sizes, options.seconds)), end="", flush=True)


if __name__ == "__main__":
    main()
