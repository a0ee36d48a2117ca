"""Random programs with explicit loops, from a seed: kinds of numbers, arrays, branches, jumps.

Programs end: every `while` counts.  They may divide by zero, leave an array or overflow, as the
programs of people do.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

_number = itertools.count(1)


class Generator:
    """Writes the text of one function of (a, b, c, n, x)."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.ints = ["n", "k"]
        self.floats = ["x", "s"]
        self.loop_vars: list[str] = []
        self.fresh = itertools.count(1)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def text(self) -> str:
        self.emit(0, "def f(a, b, c, n, x):")
        self.emit(1, "k = 0")
        self.emit(1, f"s = {self.pick('0.0', '1.5', '0')}")
        self.body(1, 2)
        self.emit(1, self.pick("return s, k", "return k", "return s"))
        return "\n".join(self.lines) + "\n"

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def body(self, depth: int, loops: int) -> None:
        for _ in range(int(self.rng.integers(1, 4))):
            self.statement(depth, loops)

    def statement(self, depth: int, loops: int) -> None:
        kinds = ["number", "number", "element", "if"]
        if loops:
            kinds += ["for", "for", "while"]
        if self.loop_vars:
            kinds += ["jump"]
        getattr(self, f"write_{self.pick(*kinds)}")(depth, loops)

    def write_number(self, depth: int, loops: int) -> None:
        if self.rng.random() < 0.5:
            self.emit(depth, f"k {self.pick('=', '+=')} {self.whole(2)}")
            if self.rng.random() < 0.8:
                self.emit(depth, "k = k % 1000")
        else:
            self.emit(depth, f"s {self.pick('=', '+=', '-=', '*=')} {self.real(2)}")

    def write_element(self, depth: int, loops: int) -> None:
        array = self.pick("a", "b", "c")
        value = self.real(2) if array != "b" else self.whole(2)
        target = f"{array}[{self.index()}]"
        self.emit(depth, f"{target} {self.pick('=', '+=')} {value}")

    def write_if(self, depth: int, loops: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.body(depth + 1, max(loops - 1, 0))
        if self.rng.random() < 0.5:
            self.emit(depth, "else:")
            self.body(depth + 1, max(loops - 1, 0))

    def write_for(self, depth: int, loops: int) -> None:
        var = f"i{next(self.fresh)}"
        over = self.pick(
            "range(len(a))",
            "range(n)",
            f"range({self.pick(1, 2, 3)}, len(a))",
            "range(len(a) - 1, -1, -1)",
            f"range(0, len(b), {self.pick(1, 2, 3)})",
            f"range({self.pick('k % 3', 'n // 2', '2')})",
        )
        style = self.rng.random()
        if style < 0.15:
            self.emit(depth, f"for {var}, v{var} in enumerate({self.pick('a', 'b')}):")
            self.emit(depth + 1, f"s = s + v{var}")
        else:
            self.emit(depth, f"for {var} in {over}:")
        self.loop_vars.append(var)
        self.body(depth + 1, loops - 1)
        self.loop_vars.pop()

    def write_while(self, depth: int, loops: int) -> None:
        var = f"w{next(self.fresh)}"
        self.emit(depth, f"{var} = 0")
        extra = self.pick("", "", f" and {self.condition()}")
        self.emit(depth, f"while {var} < {self.pick(3, 5, 'n')}{extra}:")
        self.emit(depth + 1, f"{var} += 1")
        self.loop_vars.append(var)
        self.body(depth + 1, loops - 1)
        self.loop_vars.pop()

    def write_jump(self, depth: int, loops: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.emit(depth + 1, self.pick("break", "continue"))

    def index(self) -> str:
        if not self.loop_vars:
            return str(self.pick(0, 1, -1, "n % 3"))
        var = self.pick(*self.loop_vars)
        return str(self.pick(var, var, f"{var} - 1", f"-{var}", f"({var} * 2) % 5", "k % 4"))

    def condition(self) -> str:
        left, right = self.pick(
            (self.whole(1), self.whole(1)), (self.real(1), self.real(1)), (self.whole(1), "2")
        )
        test = f"{left} {self.pick('<', '<=', '>', '==', '!=')} {right}"
        joined = self.rng.random()
        if joined < 0.15:
            return f"{test} {self.pick('and', 'or')} {self.real(1)} > {self.real(1)}"
        return f"not {test}" if joined < 0.25 else test

    def whole(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.4:
            leaves = ["n", "k", "1", "3", "-2", "7", *self.loop_vars, f"b[{self.index()}]"]
            return str(self.pick(*leaves))
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        forms = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} // {b}", "{a} % {b}"]
        forms += ["{a} & {b}", "{a} ^ {b}", "min({a}, {b})", "abs({a})", "({a} >> 1)"]
        form = self.pick(*forms)
        return "(" + form.format(a=a, b=b) + ")"

    def real(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.4:
            index = self.index()
            return str(
                self.pick(
                    "x", "s", "0.5", "2.0", f"a[{index}]", f"float(c[{index}])", f"a[{index}]"
                )
            )
        a, b = self.real(depth - 1), self.real(depth - 1)
        forms = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "max({a}, {b})"]
        forms += ["abs({a})", "-{a}", "({a} if {a} < {b} else {b})"]
        form = self.pick(*forms)
        return "(" + form.format(a=a, b=b) + ")"


def program(seed: int) -> tuple[Callable[..., Any], str]:
    """The function of a seed, and its text."""
    text = Generator(seed).text()
    name = f"<random loops {next(_number)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"], text


def arguments(seed: int, length: int | None = None) -> tuple[Any, ...]:
    """Arguments of the function of a seed, of a certain length."""
    rng = np.random.default_rng(seed + 1000)
    size = int(rng.integers(5, 8)) if length is None else length
    return (
        rng.standard_normal(size),
        rng.integers(-5, 6, size),
        rng.standard_normal(size).astype(np.float32),
        int(rng.integers(0, 6)),
        float(rng.standard_normal()),
    )
