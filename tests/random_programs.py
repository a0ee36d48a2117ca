"""Random NumPy programs, each made from a seed: source, arguments, and how exact the answer is.

`generate(seed)` grows a program statement by statement and runs each on the way, so that shapes,
dtypes and magnitudes are known.  A value is *exact* when every right implementation gives the same
bits (IEEE arithmetic, integers, movement, sums without rounding); the others may differ by
rounding, and how much that may show in the outputs is found by running the program again with every
rounded step disturbed.  Rounded values only meet operations that are continuous, so that a last
bit never decides a comparison.  Knows NumPy and nothing of nbcomp.
"""

from __future__ import annotations

import linecache
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = (np.float32, np.float64)
INTEGERS = (np.int64, np.int32, np.int8, np.uint8, np.int16, np.uint32)
DIMS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17)
HUGE = 1e5  # values are kept below, so that nothing overflows in one order and not in another

EXACT_UNARY = ("negative", "abs", "square", "sign", "floor", "ceil", "trunc", "rint", "isnan")
EXACT_BINARY = (
    *("add", "subtract", "multiply", "maximum", "minimum", "less", "greater_equal", "equal"),
    *("floor_divide", "remainder", "fmax", "copysign", "logical_and", "bitwise_xor", "not_equal"),
    *("true_divide", "left_shift", "right_shift", "bitwise_and", "fmod", "logical_or"),
)
CONTINUOUS_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
ROUNDED = (
    *("np.exp(np.minimum({0}, 5))", "np.tanh({0})", "np.sin({0})", "np.log(np.abs({0}) + 1.5)"),
    *("np.sqrt(np.abs({0}) + 1)", "np.cos({0})", "np.arctan({0})", "np.expm1(np.minimum({0}, 4))"),
    *("np.log1p(np.abs({0}))", "np.cbrt(np.abs({0}) + 1)", "np.power(np.abs({0}) + 1, 1.5)"),
    *("np.hypot({0}, 3)", "np.arctan2({0}, 2)", "np.exp2(np.minimum({0}, 6))", "{0} / 3"),
)


@dataclass(frozen=True)
class Step:
    """One statement; `target` is a variable rounded there, `magnitude` that of what was added."""

    text: str
    target: str = ""
    magnitude: str = ""


@dataclass(frozen=True)
class Value:
    """A variable of the program, its value in NumPy, and whether it is exact."""

    name: str
    array: Any
    exact: bool


@dataclass(frozen=True)
class Program:
    """A generated program: `arguments()` gives fresh ones, `tolerance` is one number an output."""

    seed: int
    source: str
    function: Callable[..., Any]
    arguments: Callable[[], list[Any]]
    tolerance: tuple[float, ...]
    steps: tuple[Step, ...] = field(repr=False)

    def __str__(self) -> str:
        shown = [
            f"{a.dtype}{list(a.shape)} strides {a.strides}"
            if isinstance(a, np.ndarray)
            else repr(a)
            for a in self.arguments()
        ]
        return f"seed {self.seed}\narguments: {'; '.join(shown)}\n{self.source}"


def outputs(result: Any) -> list[Any]:
    """The results of a program as a flat list."""
    return list(result) if isinstance(result, tuple) else [result]


def run_quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call in NumPy without its warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*arguments)


def generate(seed: int, limit: int = 300, statements: int = 12) -> Program:
    """The program of this seed: up to so many statements on arrays of up to `limit` elements."""
    generator = _Generator(seed, limit, statements)
    program: Program = run_quietly(generator.program)
    return program


def difference(got: Any, wanted: Any, tolerance: float) -> str:
    """What is wrong with an output, in words; empty when it is right."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if tolerance == 0:
        same = np.array_equal(got, wanted, equal_nan=wanted.dtype.kind == "f")
    else:
        finite = np.isfinite(wanted)
        same = np.array_equal(got[~finite], wanted[~finite], equal_nan=True) and bool(
            np.all(np.abs(got[finite].astype(float) - wanted[finite]) <= tolerance)
        )
    return "" if same else f"{got!r}, not {wanted!r} (within {tolerance:.1e})"


class _Generator:
    def __init__(self, seed: int, limit: int, statements: int) -> None:
        self.seed, self.limit, self.statements = seed, limit, statements
        self.rng = np.random.default_rng(seed)
        self.names: dict[str, Any] = {"np": np}
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self.inputs: list[tuple[str, Any]] = []

    # ------------------------------------------------------------------------------ choosing

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        """low..high, both included."""
        return int(self.rng.integers(low, high + 1))

    def value(self, where: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A variable for which `where` holds, recent ones more often."""
        found = [v for v in self.values if where(v)]
        if not found:
            return None
        return found[-1 - int(len(found) * self.rng.random() ** 2)]

    # ----------------------------------------------------------------------------- arguments

    def argument(self) -> None:
        name = f"a{len(self.inputs)}"
        if self.inputs and self.chance(0.15):
            value: Any = self.choose([2, -3, 0.5, 1.25, True])
        else:
            value = self.array()
        self.inputs.append((name, value))
        self.names[name] = value
        self.values.append(Value(name, value, exact=True))

    def array(self) -> Array:
        """Small dyadic numbers in some layout: plain, transposed, reversed or with gaps."""
        dtype = self.choose(FLOATS) if self.chance(0.7) else self.choose((*INTEGERS, np.bool_))
        rank = self.choose([0, 1, 1, 2, 2, 2, 3, 3, 4])
        shape: list[int] = []
        for _ in range(rank):
            room = self.limit // max(1, math.prod(shape))
            shape.append(self.choose([n for n in DIMS if n <= room] or [1]))
        if rank and self.chance(0.05):
            shape[self.integer(0, rank - 1)] = 0
        if rank == 1 and self.chance(0.5):
            shape = [self.integer(1, self.limit)]
        return self.layout(self.numbers(dtype, [2 * n for n in shape]), shape)

    def numbers(self, dtype: Any, shape: list[int]) -> Array:
        if dtype is np.bool_:
            return np.asarray(self.rng.random(shape) < 0.5)
        if np.dtype(dtype).kind in "iu":
            low = 0 if np.dtype(dtype).kind == "u" else -9
            return np.asarray(self.rng.integers(low, 10, shape)).astype(dtype)
        return np.asarray(self.rng.integers(-32, 33, shape) / 8).astype(dtype)

    def layout(self, doubled: Array, shape: list[int]) -> Array:
        kind = self.choose(["plain", "plain", "plain", "gaps", "reversed", "transposed"])
        steps = {"gaps": 2, "reversed": -2}.get(kind, 1)
        view = doubled[tuple(slice(None, None, steps) for _ in shape)]
        view = view[tuple(slice(0, n) for n in shape)]
        if kind == "transposed":
            return np.asfortranarray(view)
        return view if kind in ("gaps", "reversed") else np.array(view)

    # ---------------------------------------------------------------------------- statements

    def assign(self, expression: str, exact: bool, magnitude: str = "") -> bool:
        """`v = expression`, if NumPy accepts it and the value is neither too large nor too big."""
        try:
            result = run_quietly(eval, expression, self.names)
        except (TypeError, ValueError, IndexError, OverflowError):
            return False
        array = np.asarray(result)
        if array.size > self.limit or array.ndim > 5 or array.dtype.kind not in "biuf":
            return False
        if array.dtype.kind == "f" and _largest(array) > HUGE:
            return False
        name = f"v{len(self.steps)}"
        rounded = name if not exact and magnitude else ""
        self.steps.append(Step(f"{name} = {expression}", rounded, magnitude))
        self.names[name] = result
        self.values.append(Value(name, result, exact))
        return True

    def statement(self) -> bool:
        kinds = [
            *([self.unary] * 2 + [self.binary] * 5 + [self.rounded] * 3 + [self.reduction] * 4),
            *([self.view] * 4 + [self.join] * 2 + [self.select] * 2 + [self.write] * 2),
            *([self.product] * 2 + [self.cast, self.scan, self.order, self.index, self.spread]),
        ]
        made: bool = self.choose(kinds)()
        return made

    def unary(self) -> bool:
        v = self.value(lambda v: v.exact)
        return v is not None and self.assign(f"np.{self.choose(EXACT_UNARY)}({v.name})", True)

    def binary(self) -> bool:
        a = self.value()
        if a is None:
            return False
        b = self.value(lambda b: _broadcasts(a, b))
        other, exact = ("", a.exact)
        if b is None or self.chance(0.25):
            other = str(self.choose([0.5, 2, 3, -1, 1, 0.25]))
        else:
            other, exact = b.name, a.exact and b.exact
        name = self.choose(EXACT_BINARY if exact else CONTINUOUS_BINARY)
        if name == "copysign" and b is not None and _has_nan(b):
            name = "add"  # the sign of a NaN is nobody's promise
        expression = f"np.{name}({a.name}, {other})"
        # Arithmetic on rounded values rounds again, which the disturbance of its operands covers.
        return self.assign(expression, exact)

    def rounded(self) -> bool:
        v = self.value(lambda v: _kind(v) == "f")
        if v is None:
            return False
        expression = self.choose(ROUNDED).format(v.name)
        return self.assign(expression, False, f"np.abs({expression})")

    def reduction(self) -> bool:
        v = self.value(lambda v: np.ndim(v.array) > 0 or self.chance(0.1))
        if v is None:
            return False
        axis, keep = self.axes(v), self.choose(["", ", keepdims=True"])
        name = self.choose(["sum", "max", "min", "mean", "prod", "any", "all", "argmax", "var"])
        if name in ("any", "all", "argmax") and not v.exact:
            name = "max"
        if name == "argmax" and np.ndim(v.array):
            axis = f"axis={self.integer(-np.ndim(v.array), np.ndim(v.array) - 1)}"
        expression = f"np.{name}({v.name}, {axis}{keep})"
        exact = v.exact and (name not in ("sum", "mean", "prod", "var") or _sums_exactly(v, name))
        inner = f"np.square({v.name})" if name == "var" else f"np.abs({v.name})"
        outer = "mean" if name == "var" else name
        return self.assign(expression, exact, f"np.{outer}({inner}, {axis}{keep})")

    def axes(self, v: Value) -> str:
        rank = np.ndim(v.array)
        if rank == 0 or self.chance(0.25):
            return "axis=None"
        if rank > 1 and self.chance(0.3):
            two = sorted(int(i) for i in self.rng.permutation(rank)[:2])
            return f"axis={tuple(two)}"
        return f"axis={self.integer(-rank, rank - 1)}"

    def product(self) -> bool:
        a = self.value(lambda v: np.ndim(v.array) > 0)
        if a is None:
            return False
        inner = np.shape(a.array)[-1]
        b = self.value(lambda v: np.ndim(v.array) > 0 and np.shape(v.array)[-2:][0] == inner)
        if b is None:
            return False
        exact = _kind(a) in "iub" and _kind(b) in "iub"
        magnitude = f"np.abs({a.name}) @ np.abs({b.name})"
        return self.assign(f"{a.name} @ {b.name}", exact, magnitude)

    def cast(self) -> bool:
        v = self.value(lambda v: v.exact and _castable(v))
        if v is None:
            return False
        dtype = self.choose(["np.float32", "np.float64", "np.int32", "np.int64"])
        return self.assign(f"np.asarray({v.name}).astype({dtype})", True)

    def scan(self) -> bool:
        v = self.value(lambda v: np.ndim(v.array) > 0)
        if v is None:
            return False
        axis = f"axis={self.integer(-np.ndim(v.array), np.ndim(v.array) - 1)}"
        if self.chance(0.5):
            return self.assign(f"np.diff({v.name}, {axis})", v.exact)
        exact = v.exact and _sums_exactly(v, "sum")
        return self.assign(
            f"np.cumsum({v.name}, {axis})", exact, f"np.cumsum(np.abs({v.name}), {axis})"
        )

    def order(self) -> bool:
        v = self.value(lambda v: v.exact and np.ndim(v.array) > 0)
        if v is None:
            return False
        axis = f"axis={self.integer(-np.ndim(v.array), np.ndim(v.array) - 1)}"
        name, options = self.choose([("sort", ""), ("argsort", ', kind="stable"')])
        return self.assign(f"np.{name}({v.name}, {axis}{options})", True)

    def index(self) -> bool:
        v = self.value(lambda v: np.ndim(v.array) > 0 and np.shape(v.array)[0] > 0)
        if v is None:
            return False
        n = np.shape(v.array)[0]
        where = [self.integer(-n, n - 1) for _ in range(self.integer(1, 4))]
        text = f"{v.name}[np.array({where})]" if self.chance(0.5) else f"np.take({v.name}, {where})"
        return self.assign(text, v.exact)

    def spread(self) -> bool:
        v = self.value()
        if v is None:
            return False
        shape = (self.choose(DIMS), *np.shape(v.array))
        options = (
            f"np.broadcast_to({v.name}, {shape})",
            f"np.tile({v.name}, 2)",
            f"np.repeat({v.name}, 3)",
            f"np.roll({v.name}, {self.integer(-3, 3)})",
        )
        return self.assign(self.choose(options), v.exact)

    # --------------------------------------------------------------------- views and writing

    def box(self, v: Value) -> str:
        """A basic index: slices of any step, whole numbers, None."""
        entries = [self.entry(n) for n in np.shape(v.array)]
        if self.chance(0.15):
            entries.insert(self.integer(0, len(entries)), "None")
        if entries and self.chance(0.1):
            entries = ["...", entries[-1]]
        return ", ".join(entries) or "()"

    def entry(self, n: int) -> str:
        kind = self.choose(["all", "all", "part", "part", "back", "stride", "one"])
        if kind == "one" and n > 0:
            return str(self.integer(-n, n - 1))
        start, stop = sorted((self.integer(0, n), self.integer(0, n)))
        return {
            "part": f"{start}:{stop}",
            "back": "::-1" if self.chance(0.5) else f"{stop}:{start}:-1",
            "stride": f"{start}::{self.integer(2, 3)}",
        }.get(kind, ":")

    def view(self) -> bool:
        v = self.value(lambda v: isinstance(v.array, np.ndarray) and v.array.ndim > 0)
        if v is None:
            return False
        rank = v.array.ndim
        order = tuple(int(i) for i in self.rng.permutation(rank))
        options = (
            f"{v.name}[{self.box(v)}]",
            f"{v.name}[{self.box(v)}]",
            f"{v.name}.T",
            f"np.transpose({v.name}, {order})",
            f"{v.name}.reshape({self.shape(v.array.size)})",
            f"np.expand_dims({v.name}, {self.integer(0, rank)})",
            f"np.flip({v.name}, {self.integer(0, rank - 1)})",
            f"{v.name}.ravel()",
            f"np.squeeze({v.name})",
            f"np.swapaxes({v.name}, 0, -1)",
        )
        return self.assign(self.choose(options), v.exact)

    def shape(self, size: int) -> tuple[int, ...]:
        """Some shape of this many elements."""
        divisors = [d for d in range(1, max(size, 1) + 1) if size and size % d == 0]
        if not divisors or self.chance(0.3):
            return (size,)
        first = self.choose(divisors)
        return (first, size // first) if self.chance(0.7) else (first, 1, size // first)

    def join(self) -> bool:
        a = self.value(lambda v: np.ndim(v.array) > 0)
        if a is None:
            return False
        b = self.value(lambda v: np.shape(v.array) == np.shape(a.array))
        assert b is not None
        axis = self.integer(0, np.ndim(a.array) - 1)
        options = (
            f"np.concatenate([{a.name}, {b.name}], axis={axis})",
            f"np.stack([{a.name}, {b.name}, {a.name}], axis={axis})",
            f"np.pad({a.name}, {self.integer(0, 2)})",
            f"np.hstack([{b.name}, {a.name}])",
        )
        return self.assign(self.choose(options), a.exact and b.exact)

    def select(self) -> bool:
        c = self.value(lambda v: v.exact)
        a = c and self.value(lambda v: _broadcasts(c, v))
        if c is None or a is None:
            return False
        if self.chance(0.3):
            return self.assign(f"np.clip({a.name}, -1, 2)", a.exact)
        condition = c.name if _kind(c) == "b" else f"{c.name} > 1"
        b = self.value(lambda v: _broadcasts(a, v) and _broadcasts(c, v))
        other, exact = (b.name, a.exact and b.exact) if b is not None else ("0", a.exact)
        return self.assign(f"np.where({condition}, {a.name}, {other})", exact)

    def write(self) -> bool:
        """Copy a variable, change the copy in place (perhaps through a view of it)."""
        v = self.value(lambda v: isinstance(v.array, np.ndarray))
        if v is None or not self.assign(f"np.copy({v.name})", v.exact):
            return False
        copy = self.values.pop()
        target = f"{copy.name}[{self.box(copy)}]"
        if self.chance(0.3):
            view = f"w{len(self.steps)}"
            if not self.execute(f"{view} = {target}"):
                target = f"{copy.name}[...]"
            target = f"{view}[...]" if view in self.names else target
        exact = self.fill(copy, target)
        if copy.array.dtype.kind == "f" and _largest(copy.array) > HUGE:
            return self.assign(f"np.clip({copy.name}, -{HUGE}, {HUGE})", exact)
        self.values.append(Value(copy.name, copy.array, exact))
        return True

    def fill(self, copy: Value, target: str) -> bool:
        """`target = ...` or `target op= ...`; whether the copy is still exact."""
        source = self.value(
            lambda v: (
                np.ndim(v.array) <= copy.array.ndim
                and np.can_cast(np.asarray(v.array).dtype, copy.array.dtype, "same_kind")
            )
        )
        operator = self.choose(["=", "=", "+=", "-=", "*="])
        if source is not None and self.execute(f"{target} {operator} {source.name}"):
            exact = copy.exact and source.exact
        else:
            self.execute(f"{target} {operator} 2")
            exact = copy.exact
        return exact

    def execute(self, text: str) -> bool:
        """A statement that is not an assignment of a new value, if NumPy accepts it."""
        try:
            run_quietly(exec, text, self.names)
        except (TypeError, ValueError, IndexError, OverflowError):
            return False
        self.steps.append(Step(text))
        return True

    # ------------------------------------------------------------------------------- program

    def program(self) -> Program:
        for _ in range(self.integer(1, 3)):
            self.argument()
        snapshot = [(name, _fresh(value)) for name, value in self.inputs]
        made = 0
        for _ in range(20 * self.statements):
            made += self.statement()
            if made == self.statements:
                break
        returned = self.returned()
        if self.chance(0.15):
            self.write_argument()
        result = ", ".join(v.name for v in returned)
        source = "\n".join(
            [
                f"def f({', '.join(name for name, _ in self.inputs)}):",
                *(f"    {step.text}" for step in self.steps),
                f"    return {result}",
            ]
        )
        return Program(
            self.seed,
            source + "\n",
            _define(source + "\n", self.seed),
            lambda: [_fresh(value) for _, value in snapshot],
            tuple(self.tolerances(returned, snapshot)),
            tuple(self.steps),
        )

    def returned(self) -> list[Value]:
        """The last variable and perhaps some others."""
        made = self.values[len(self.inputs) :] or self.values
        some = [made[-1], *(self.choose(made) for _ in range(self.choose([1, 1, 2, 3])))]
        return list({v.name: v for v in some}.values())

    def write_argument(self) -> None:
        """As the last thing, change an argument of the caller's in place."""
        arrays = [n for n, v in self.inputs if isinstance(v, np.ndarray) and v.dtype.kind != "b"]
        if arrays:
            target = self.choose(arrays)
            box = self.box(Value(target, self.names[target], True))
            self.execute(f"{target}[{box}] += 1")

    def tolerances(self, returned: list[Value], inputs: list[tuple[str, Any]]) -> list[float]:
        """Zero for exact outputs; else 16 times what disturbing every rounded step changes."""
        wanted = [np.asarray(self.names[v.name]) for v in returned]
        moved = [0.0] * len(returned)
        for round_ in range(3):
            names = {"np": np, **{name: _fresh(value) for name, value in inputs}}
            rng = np.random.default_rng((self.seed, round_))
            for step in self.steps:
                run_quietly(exec, step.text, names)
                if step.target:
                    _disturb(names, step, rng)
            for i, v in enumerate(returned):
                moved[i] = max(moved[i], _distance(names[v.name], wanted[i]))
        return [
            0.0 if v.exact else 16 * (m + _epsilon(w) * _largest(w)) + np.finfo(np.float32).tiny
            for v, m, w in zip(returned, moved, wanted, strict=True)
        ]


def _kind(v: Value) -> str:
    return np.asarray(v.array).dtype.kind


def _has_nan(v: Value) -> bool:
    return _kind(v) == "f" and bool(np.isnan(v.array).any())


def _broadcasts(a: Value, b: Value) -> bool:
    try:
        np.broadcast_shapes(np.shape(a.array), np.shape(b.array))
    except ValueError:
        return False
    return True


def _castable(v: Value) -> bool:
    """Whether every value fits every dtype `cast` chooses."""
    array = np.asarray(v.array)
    return bool(np.all(np.isfinite(array)) and np.all(np.abs(array.astype(float)) < 2**31))


def _sums_exactly(v: Value, name: str) -> bool:
    """Whether no order of adding these numbers rounds: they are multiples of 1/64 and few."""
    array = np.asarray(v.array)
    if array.dtype.kind in "iub":
        return name != "var"
    if name not in ("sum", "mean") or not np.all(np.isfinite(array)):
        return False
    scaled = array.astype(np.float64) * 64
    bound = 2.0 ** (np.finfo(array.dtype).nmant - 1)
    return bool(np.all(scaled == np.rint(scaled)) and np.abs(scaled).sum() < bound)


def _epsilon(array: Any) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0


def _largest(array: Any) -> float:
    finite = np.abs(array[np.isfinite(array)].astype(float))
    return float(np.max(finite, initial=0.0))


def _distance(got: Any, wanted: Any) -> float:
    got = np.asarray(got).astype(float)
    both = np.isfinite(got) & np.isfinite(wanted)
    return float(np.max(np.abs(got[both] - wanted[both]), initial=0.0))


def _disturb(names: dict[str, Any], step: Step, rng: np.random.Generator) -> None:
    """Change a rounded value by up to 4 units in the last place of its magnitude."""
    value = np.asarray(names[step.target])
    if value.dtype.kind != "f":
        return
    size = run_quietly(eval, step.magnitude, names) * 4 * _epsilon(value)
    change = (rng.random(value.shape) * 2 - 1) * size
    names[step.target] = np.where(np.isfinite(change), value + change, value).astype(value.dtype)


def _fresh(value: Any) -> Any:
    """A copy with the same strides."""
    if not isinstance(value, np.ndarray) or value.size == 0:
        return value
    low = sum(min(0, s * (n - 1)) for s, n in zip(value.strides, value.shape, strict=True))
    high = sum(max(0, s * (n - 1)) for s, n in zip(value.strides, value.shape, strict=True))
    memory = np.zeros(high - low + value.itemsize, np.uint8)
    copy: Array = np.ndarray(value.shape, value.dtype, memory, -low, value.strides)
    copy[...] = value
    return copy


def _define(source: str, seed: int) -> Callable[..., Any]:
    """The function, its source where tracebacks and the compiler find it."""
    name = f"<random program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), namespace)
    function: Callable[..., Any] = namespace["f"]
    return function
