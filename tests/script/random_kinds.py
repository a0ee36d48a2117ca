"""Random programs in which Python's numbers and elements of all dtypes meet, from a seed.

A variable starts as a number of Python's; branches and rounds give it elements, or what comes of
them; then something is done with it whose meaning depends on what it is by then.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
_number = itertools.count(1)


class Generator:
    """Writes the text of one function of (a, b, n, k): two arrays, and numbers of Python's."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.inside = False

    def pick(self, *choices: str) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def text(self) -> str:
        """The function."""
        self.emit(0, "def f(a, b, n, k):")
        for name in ("s", "m"):
            start = self.pick("0", "0", "1", "100", "200", "-1", "0.0", "1.5", "0.1", "True", "k")
            start = "None" if self.rng.random() < 0.1 else start
            self.emit(1, f"{name} = {start}")
        for _ in range(int(self.rng.integers(1, 3))):
            self.loop(1)
        self.after()
        return "\n".join(self.lines) + "\n"

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def loop(self, depth: int) -> None:
        over = self.pick("v in a", "i, v in enumerate(a)", "i in range(len(a))", "i in range(n)")
        self.emit(depth, f"for {over}:")
        if "v" not in over:
            self.emit(depth + 1, "v = a[i]")
        if depth == 1 and self.rng.random() < 0.2:
            self.emit(depth + 1, "for w in b:")
            self.emit(depth + 2, f"{self.pick('s', 'm')} {self.pick('=', '+=')} {self.value()}")
        for _ in range(int(self.rng.integers(1, 4))):
            self.statement(depth + 1)
        if self.rng.random() < 0.2:
            self.emit(depth + 1, f"if {self.condition()}:")
            self.emit(depth + 2, self.pick("break", "continue"))
        if self.rng.random() < 0.2:
            self.emit(depth, "else:")
            self.emit(depth + 1, f"{self.pick('s', 'm')} = {self.pick('s', 'm', '7', '0.5')}")

    def statement(self, depth: int) -> None:
        name = self.pick("s", "m")
        form = self.rng.random()
        if form < 0.08:
            self.emit(depth, f"if {name} is {self.pick('None', 'not None')}:")
            self.emit(depth + 1, f"{name} = {self.value()}")
        elif form < 0.35:
            self.emit(depth, f"{name} {self.pick('+=', '+=', '-=', '*=', '=')} {self.value()}")
        elif form < 0.7:
            self.emit(depth, f"if {self.condition()}:")
            self.emit(depth + 1, f"{name} {self.pick('=', '=', '+=')} {self.value()}")
            if self.rng.random() < 0.3:
                self.emit(depth, "else:")
                self.emit(depth + 1, f"{name} = {self.value()}")
        elif form < 0.85:
            self.emit(depth, f"{name} = {self.value()} if {self.condition()} else {self.value()}")
        else:
            self.emit(depth, f"{name} = {self.pick('max', 'min')}({name}, {self.value()})")

    def condition(self) -> str:
        left, right = self.pick("v", "v", "s", "m"), self.pick("s", "m", "0", "2", "50", "0.5")
        test = f"{left} {self.pick('<', '<=', '>', '==', '!=')} {right}"
        if self.rng.random() < 0.1:
            return f"{self.pick('s is None or', 's is not None and')} {test}"
        return f"{test} {self.pick('and', 'or')} v > 1" if self.rng.random() < 0.2 else test

    def value(self) -> str:
        return self.pick(
            "v",
            "v",
            "v",
            "s",
            "m",
            "1",
            "0.5",
            "k",
            "v * 2",
            "s + v",
            "-m",
            "abs(v)",
            "-v",
            "s * m",
        )

    def after(self) -> None:
        """Operations on what is left."""
        forms = [
            "{x} * 100",
            "-{x}",
            "~{x}",
            "{x} << 10",
            "{x} - 1",
            "{x} / 3",
            "{x} // 2",
            "{x} % 7",
        ]
        forms += ["{x} + k", "{x} * 1.5", "{x} == 100", "{x} < {y}", "{x} + {y}", "{x} * {y}"]
        forms += ["{x}", "{x}", "{x} ** 2", "abs({x})", "int({x})", "float({x})", "not {x}"]
        forms += ["max({x}, {y})", "{x} and {y}", "{x} or 5", "{x} if {y} else 3", "{x} & 6"]
        forms += ["{x} is None"]
        forms += ["np.float32({x})", "np.sqrt(abs({x}))", "math.floor({x})", "min({x}, 3)"]
        count = int(self.rng.integers(1, 4))
        for k in range(count):
            form = forms[int(self.rng.integers(len(forms)))]
            x, y = self.pick("s", "m"), self.pick("s", "m")
            self.emit(1, f"r{k} = " + form.format(x=x, y=y))
        results = [f"r{k}" for k in range(count)] + [self.pick("s", "m")]
        self.emit(1, "return " + ", ".join(results))


def program(seed: int) -> tuple[Callable[..., Any], str]:
    """The function of a seed, and its text."""
    text = Generator(seed).text()
    name = f"<random kinds {next(_number)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec("import math\nimport numpy as np", namespace)
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"], text


def arguments(seed: int, length: int | None = None) -> tuple[Any, ...]:
    """Arguments of the function of a seed: arrays may be empty, or have a certain length."""
    rng = np.random.default_rng(seed + 1000)
    dtype, other = (np.dtype(DTYPES[int(rng.integers(len(DTYPES)))]) for _ in range(2))
    size = int(rng.choice([0, 1, 3, 5]))
    size = size if length is None else length
    arrays = [(rng.standard_normal(n) * 60).astype(d) for n, d in ((size, dtype), (3, other))]
    return (*arrays, int(rng.integers(0, size + 1)), int(rng.choice([0, 3, 300, -5, 2**40])))
