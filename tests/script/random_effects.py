"""Random programs on whole arrays, from a seed: lists, dicts, sets, objects, iterators, tuples and
closures that change under branches and in loops which values decide.

All numbers are small multiples of powers of two, so that sums in any order are exact.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

_number = itertools.count(1)

START = """\
a, b = x * 1, y * 1
i, j, r, k, q = 0, n, 0.5, 2, x.sum() > 0
l, m, d, s = [a * 1, b * 2], [1, 2], {"a": a * 1, "n": 0}, {1}
o, it, h, p = Box(a * 1), iter(range(40)), [], "p"
t = (a, 1)
def g(v):
    return v * k
def inc():
    nonlocal c
    c += 1
c = 0"""
END = """\
return (
    a, b, i, j, r, k, q, c, l, m, d, sorted(s), o.v, o.n, it.__length_hint__(), t, p, g(a),
    [f(b) for f in h], u,
)"""
PLAIN = """\
a = np.clip(a * 0.5 + b, -8, 8)|b = np.minimum(a, b) + 1|a += 1|b = b * 1 ; b[1] = 2|a, b = b, a
a = l[-1] * 1|a = d["a"] + o.v|x[0] += 1|a = a * 1 ; w = a[::2] ; w += 1|i = i + 1|i = len(l)
i = i * 2 % 7|r = r + 0.5|r = r * 0.5|j = m[0]|k = k + 1|k = 3|q = b.max() > a.max()
u = np.maximum(a, b)|t = (b, i)|a = t[0] * 1|t = (t[0] + 1, 2)|p = p + "q"|p = "z"
p, i = "p", i + 1|del u ; u = b * 1|a = g(a) * 0.25|b = np.abs(b) - r|r = float(i)"""
EFFECTS = """\
l.append(a)|l.append(b * 1)|l[0] = a + 1|l[-1] += 1|l += [a]|l = l + [b]|l = [v * 1 for v in l]
l.pop() if len(l) > 1 else None|l.reverse()|l.insert(0, a)|l[1:] = [a]|l = [a * 2, b]
l2 = l ; l2.append(a)
m.append(i)|m[0] = m[0] + 1|m[0] = i|m.sort()|m[-1] += 2|m = [*m, 3]|m.pop() if len(m) > 1 else None
d["n"] += 1|d["a"] = a + 2|d["z"] = i|d.pop("z", None)|d.update(n=3)|d.setdefault("q", []).append(1)
d["a"] -= 1|d["n"] = i|d = {"a": b * 1, "n": d["n"] + 1}|e = d ; e["n"] = 4
s.add(2)|s.add(3)|s.discard(1)|o.v = b * 2|o.n = o.n + 1|o.n += 2|o.v[0] = 3|o = Box(a * 1)
o2 = o ; o2.n = 7|o2 = Box(b * 1) ; o, o2 = o2, o|o.bump()|next(it)|i = next(it)|inc()
inc() ; c = c + 1
h.append(lambda v: v * k)|h.append(lambda v, k=k: v + k)|h = [f for f in h]|held[1] += 1
held.append(i) ; held.pop()|held[0][0] = 2|Box.total = 5|g.n = 1"""
VALUES = """\
a.sum() > 0|b.sum() < a.sum()|a[0] > b[1]|d["a"].sum() > r|o.v.max() > 1|l[0].sum() > l[-1].sum()|q
not q|a.min() < 0 < b.max()|q and len(l) > 1|a.sum() > 1 or b.sum() > 1|x[0] > i|0.5 < r"""
KNOWN = "n > 2|len(l) > 2|i % 2 == 0|len(m) > 2|p == 'p'|k > 2|o.n > 1|d['n'] > 1|c > 0|len(h) > 1"


class Box:
    """An object with an array, a number, and a method that changes it."""

    total = 0

    def __init__(self, v: Any) -> None:
        self.v, self.n = v, 0

    def bump(self) -> None:
        """One more."""
        self.n += 1


def _choices(text: str) -> list[str]:
    return text.replace("\n", "|").split("|")


class Generator:
    """Writes the text of one function of (x, y, held, n)."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.loops = 0
        # A program of few kinds of statements is compiled more often than one of all.
        self.effects = list(self.rng.choice(_choices(EFFECTS), 6, replace=False))
        self.plain = list(self.rng.choice(_choices(PLAIN), 8, replace=False))

    def pick(self, choices: list[str]) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def emit(self, depth: int, text: str) -> None:
        self.lines += ["    " * depth + line for line in text.split("\n")]

    def text(self) -> str:
        self.emit(0, "def f(x, y, held, n):")
        self.emit(1, START)
        self.emit(1, "u = x * 1")
        for _ in range(int(self.rng.integers(1, 4))):
            self.statement(1, 2)
        self.emit(1, END)
        return "\n".join(self.lines) + "\n"

    def body(self, depth: int, deeper: int) -> None:
        for _ in range(int(self.rng.integers(1, 3))):
            self.statement(depth, deeper)

    def statement(self, depth: int, deeper: int) -> None:
        kinds = ["plain", "effect", "effect", "choice"]
        if deeper:
            kinds += ["branch", "branch", "branch", "branch", "for", "while"]
        if self.rng.random() < 0.1:
            kinds = ["caught", "with"] if deeper else kinds
        if self.loops:
            kinds += ["jump"]
        getattr(self, f"write_{self.pick(kinds)}")(depth, deeper)

    def condition(self) -> str:
        return self.pick(_choices(VALUES if self.rng.random() < 0.75 else KNOWN))

    def write_plain(self, depth: int, deeper: int) -> None:
        self.emit(depth, self.pick(self.plain))

    def write_effect(self, depth: int, deeper: int) -> None:
        self.emit(depth, self.pick(self.effects))

    def write_choice(self, depth: int, deeper: int) -> None:
        one = ["a", "b", "a * 2", "l[0]", "(a, 2)[0]"]
        name = self.pick(["a", "b", "u"])
        self.emit(depth, f"{name} = {self.pick(one)} if {self.condition()} else {self.pick(one)}")

    def write_branch(self, depth: int, deeper: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.body(depth + 1, deeper - 1)
        if self.rng.random() < 0.15:
            self.emit(depth + 1, END)
        if self.rng.random() < 0.6:
            self.emit(depth, "else:")
            self.body(depth + 1, deeper - 1)

    def write_for(self, depth: int, deeper: int) -> None:
        items = ["range(3)", "range(n)", "range(70)", "list(l)", "enumerate(m[:])", "(1, 2)"]
        self.emit(depth, f"for e{depth} in {self.pick(items)}:")
        self.inside(depth + 1, deeper)

    def write_while(self, depth: int, deeper: int) -> None:
        self.emit(depth, f"w{depth} = 0")
        bound = self.pick([" and ", " and ", ""])
        if bound:
            self.emit(depth, f"while ({self.pick(_choices(VALUES))}) and w{depth} < 5:")
        else:
            self.emit(depth, f"while a.max() > 1 - w{depth}:")
            self.emit(depth + 1, "a = a - 1")
            self.emit(depth + 1, f"if w{depth} > 4: break")
        self.emit(depth + 1, f"w{depth} += 1")
        self.inside(depth + 1, deeper)

    def inside(self, depth: int, deeper: int) -> None:
        self.loops += 1
        self.body(depth, deeper - 1)
        self.emit(depth, "a = np.clip(a, -8, 8)")
        self.loops -= 1

    def write_jump(self, depth: int, deeper: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.emit(depth + 1, self.pick(["break", "continue", "break"]))

    def write_caught(self, depth: int, deeper: int) -> None:
        loops, self.loops = self.loops, 0
        self.emit(depth, "try:")
        self.body(depth + 1, deeper - 1)
        if self.rng.random() < 0.5:
            self.emit(depth + 1, f"if {self.condition()}: raise ValueError")
        self.emit(
            depth, f"except {self.pick(['ValueError', 'Exception', '(TypeError, KeyError)'])}:"
        )
        self.body(depth + 1, deeper - 1)
        self.loops = loops

    def write_with(self, depth: int, deeper: int) -> None:
        loops, self.loops = self.loops, 0
        self.emit(depth, "with np.errstate(all='ignore'):")
        self.body(depth + 1, deeper - 1)
        self.loops = loops


def program(seed: int) -> tuple[Callable[..., Any], str]:
    """The function of a seed, and its text."""
    text = Generator(seed).text()
    name = f"<random effects {next(_number)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    box = type("Box", (), {k: v for k, v in vars(Box).items() if k[0] != "_" or k == "__init__"})
    namespace: dict[str, Any] = {"np": np, "Box": box}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"], text


def arguments(seed: int) -> tuple[Any, ...]:
    """Arguments for the function of a seed."""
    rng = np.random.default_rng(seed + 1000)
    second = np.float32 if seed % 4 == 0 else np.float64
    x, y = (rng.integers(-3, 4, 4).astype(t) for t in (np.float64, second))
    return x, y, [np.ones(2), 1], int(rng.integers(0, 5))
