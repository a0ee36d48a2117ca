"""Random functions with graph breaks, as source text: what Python does is what must happen.

`program(seed)` gives a function of two arrays and a number whose statements mix array arithmetic,
in-place writes, views, loops, branches on values, effects (`note`), exceptions that are caught, and
functions that are defined inside.  All values stay small, so that results can be compared.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

ARRAYS = ("x", "y", "a", "b")
NUMBERS = ("n", "s", "t")


class Writer:
    """Writes one function."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.arrays = ["x", "y"]
        self.numbers = ["n"]
        self.functions: list[str] = []
        self.loops = 0

    def text(self) -> str:
        """The whole function."""
        for _ in range(self.random.randint(3, 8)):
            self.statement(1)
        names = ", ".join((*self.arrays, *self.numbers))
        body = "\n".join(self.lines)
        return f"def f(x, y, n):\n    seen = []\n{body}\n    return {names}, seen\n"

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    # ------------------------------------------------------------------------- expressions

    def array(self, depth: int = 2) -> str:
        """An expression with the arrays' shape."""
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice(self.arrays)
        one, other = self.array(depth - 1), self.array(depth - 1)
        return self.random.choice(
            [
                f"({one} + {other})",
                f"({one} - {other})",
                f"np.tanh({one} * {other})",
                f"np.where({one} > {other}, {one}, {other})",
                f"(np.abs({one}) * 0.5)",
                f"{one}[::-1]",
                f"({one} * {self.number()})",
                f"np.minimum({one}, {self.scalar(0)})",
                *([f"{self.random.choice(self.functions)}({one})"] if self.functions else []),
            ]
        )

    def scalar(self, depth: int = 1) -> str:
        """A NumPy scalar."""
        value = self.array(depth)
        how = self.random.choice(["sum()", "mean()", "max()", "min()"])
        return self.random.choice([f"{value}.{how}", f"{value}[{self.random.randint(-3, 2)}]"])

    def number(self) -> str:
        """A Python number."""
        return self.random.choice(
            [*self.numbers, "0.5", "2", f"float(np.tanh({self.scalar(0)}))", "len(seen)"]
        )

    def condition(self) -> str:
        """Something with a truth value."""
        return self.random.choice(
            [
                f"{self.scalar()} > {self.random.choice(['0', '0.3', '-0.2'])}",
                f"{self.number()} > 1",
                f"not {self.scalar(0)} < 0.1",
                f"{self.scalar(0)} > 0 and {self.scalar(0)} < 0.5",
                f"({self.array(1)} > 0.1).any() or {self.number()} == 2",
            ]
        )

    # -------------------------------------------------------------------------- statements

    def statement(self, depth: int) -> None:
        """One statement, at this depth of indentation."""
        simple = [self.assign, self.assign, self.effect, self.write, self.count, self.collect]
        compound = [self.branch, self.loop, self.attempt, self.context, self.define, self.early]
        choices = simple if depth > 3 else simple + compound
        self.random.choice(choices)(depth)

    def block(self, depth: int) -> None:
        arrays, numbers = list(self.arrays), list(self.numbers)
        functions = list(self.functions)
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)
        self.arrays, self.numbers, self.functions = arrays, numbers, functions

    def assign(self, depth: int) -> None:
        name = self.random.choice(ARRAYS)
        self.add(depth, f"{name} = {self.array()}")
        if name not in self.arrays:
            self.arrays.append(name)

    def count(self, depth: int) -> None:
        name = self.random.choice(NUMBERS[1:])
        value = self.random.choice([self.number(), f"{self.number()} * 0.5 + 1"])
        self.add(depth, f"{name} = {value}")
        if name not in self.numbers:
            self.numbers.append(name)

    def effect(self, depth: int) -> None:
        values = [self.random.choice([self.array(1), self.scalar(), self.number()])]
        text = f'f"{{{self.scalar(0)}:.3f}}"'
        self.add(depth, f"note({', '.join(values)}{self.random.choice(['', ', ' + text])})")

    def collect(self, depth: int) -> None:
        self.add(depth, f"seen.append({self.random.choice([self.scalar(), self.number()])})")

    def write(self, depth: int) -> None:
        target = self.random.choice(self.arrays)
        self.add(
            depth,
            self.random.choice(
                [
                    f"{target} += {self.scalar(0)}",
                    f"{target}[1:] = {self.array(1)}[:-1]",
                    f"{target}[{self.random.randint(0, 2)}] = {self.scalar(0)}",
                    f"{target} *= 0.5",
                ]
            ),
        )

    def branch(self, depth: int) -> None:
        self.add(depth, f"if {self.condition()}:")
        self.block(depth + 1)
        if self.random.random() < 0.6:
            self.add(depth, "else:")
            self.block(depth + 1)

    def loop(self, depth: int) -> None:
        self.loops += 1
        k = f"k{self.loops}"
        head = self.random.choice(
            [
                f"for {k} in range({self.random.randint(1, 5)}):",
                f"for {k}, v{self.loops} in enumerate({self.random.choice(self.arrays)}[:2]):",
                f"for {k} in [1, 2.5, -1]:",
            ]
        )
        self.add(depth, head)
        numbers = list(self.numbers)
        self.numbers.append(k)
        self.block(depth + 1)
        if self.random.random() < 0.4:
            self.add(depth + 1, f"if {self.condition()}:")
            self.add(depth + 2, self.random.choice(["break", "continue"]))
            if self.random.random() < 0.5:
                self.add(depth + 1, "note('on')")
        self.numbers = numbers

    def attempt(self, depth: int) -> None:
        self.add(depth, "try:")
        self.block(depth + 1)
        if self.random.random() < 0.5:
            self.add(depth + 1, self.random.choice(["x + np.ones(77)", "1 // 0", "seen[99]"]))
        self.add(depth, "except (ValueError, ZeroDivisionError, IndexError) as error:")
        self.add(depth + 1, "note(type(error).__name__)")
        self.block(depth + 1)
        if self.random.random() < 0.3:
            self.add(depth, "finally:")
            self.add(depth + 1, "note('finally')")

    def context(self, depth: int) -> None:
        manager = self.random.choice(["noted()", "np.errstate(all='ignore')"])
        self.add(depth, f"with {manager}:")
        self.block(depth + 1)

    def define(self, depth: int) -> None:
        name = f"g{len(self.lines)}"
        free = self.random.choice([*self.numbers, "0.5"])
        self.add(depth, f"def {name}(v):")
        if self.random.random() < 0.3:
            self.add(depth + 1, "note('inside', v.sum())")
        self.add(depth + 1, f"return v * 0.5 + {free}")
        self.functions.append(name)

    def early(self, depth: int) -> None:
        self.add(depth, f"if {self.condition()} and {self.scalar(0)} > 0.9:")
        self.add(depth + 1, f"return {self.array()}, seen")


def program(seed: int, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function of a seed, its names found in `scope`."""
    text = Writer(seed).text()
    file = f"<random {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"np": np, **scope}
    exec(compile(text, file, "exec"), names)
    function: Callable[..., Any] = names["f"]
    return function


def source(seed: int) -> str:
    """Its text."""
    return Writer(seed).text()


def arguments(seed: int) -> Iterator[tuple[Any, ...]]:
    """The arguments of several calls; types and shapes change now and then."""
    rng = np.random.default_rng(seed)
    for dtype, size, n in ((float, 4, 2), (float, 4, 3), (np.float32, 4, 1.5), (float, 6, 0)):
        yield rng.normal(size=size).astype(dtype), rng.normal(size=size).astype(dtype), n
