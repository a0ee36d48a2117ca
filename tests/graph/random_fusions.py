"""Random programs of costly elements, reductions, views and broadcasts: what fusion must get right.

`Program(seed)` is the source of a NumPy function of four arrays, and the arrays.  Its values stay
between 0 and 2, so that sums and products of them are well behaved; many arrays are square, so that
a wrong axis does not show in a shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = (1, 2, 3, 4, 5, 6, 9)
LARGEST = 500  # elements


class Program:
    """A function, by its source, and arguments for it."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        n, m, k = (int(self.rng.choice(SIZES)) for _ in range(3))
        if self.rng.random() < 0.5:
            m = n
        self.arguments = [self.rng.random(s) for s in ((n, m), (m,), (n, 1), (k, n, m))]
        self.values: dict[str, Any] = dict(zip("abcd", self.arguments, strict=True))
        self.lines = ["def f(a, b, c, d):"]
        for _ in range(self.rng.integers(3, 14)):
            self.step()
        names = list(self.values)[-int(self.rng.integers(1, 5)) :]
        self.lines.append(f"    return {', '.join(f'{n} * 1' for n in names)},")
        self.source = "\n".join(self.lines)
        self.function = self.run()

    def run(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"np": np}
        exec(self.source, namespace)
        function: Callable[..., Any] = namespace["f"]
        return function

    def pick(self, *choices: str) -> str:
        return choices[self.rng.integers(len(choices))]

    def step(self) -> None:
        """One more value, from the last one or from any."""
        names = list(self.values)
        x = names[-1] if self.rng.random() < 0.4 else self.pick(*names)
        new = f"v{len(names)}"
        makers = (
            *(self.costly, self.costly, self.combined, self.combined, self.combined, self.cheap),
            *(self.reduced, self.reduced, self.viewed, self.viewed, self.assembled, self.assigned),
            *(self.product, self.product),
        )
        for text in makers[self.rng.integers(len(makers))](x, self.values[x]):
            line = text.replace("NEW", new)
            exec(line, {"np": np}, self.values)
            self.lines.append(f"    {line}")

    def costly(self, x: str, value: Any) -> list[str]:
        return [f"NEW = np.exp(-{x})"]

    def cheap(self, x: str, value: Any) -> list[str]:
        return [f"NEW = {x} * 0.5 + 0.25"]

    def combined(self, x: str, value: Any) -> list[str]:
        """With another value, perhaps turned, that it broadcasts with."""
        fitting = [x]
        for name, other in self.values.items():
            for text, turned in (
                (name, other),
                (f"{name}.T", other.T),
                (f"{name}[..., None]", None),
            ):
                shape = (*other.shape, 1) if turned is None else turned.shape
                try:
                    result = np.broadcast_shapes(value.shape, shape)
                except ValueError:
                    continue
                if np.prod(result) <= LARGEST and len(result) <= 5:
                    fitting.append(text)
        return [f"NEW = ({x} + {self.pick(*fitting)}) * 0.5"]

    def product(self, x: str, value: Any) -> list[str]:
        """A matrix product that stays as small as its operands."""
        fitting = []
        for name, other in self.values.items():
            for text, turned in ((name, other), (f"{name}.T", other.T)):
                if value.ndim > 1 and turned.ndim == 2 and turned.shape[0] == value.shape[-1]:
                    fitting.append(text)
        if not fitting:
            return self.costly(x, value)
        return [f"NEW = ({x} @ {self.pick(*fitting)}) / {value.shape[-1]}"]

    def reduced(self, x: str, value: Any) -> list[str]:
        axes = tuple(k for k in range(value.ndim) if self.rng.random() < 0.6)
        function, kept = self.pick("max", "mean"), self.pick("True", "False")
        return [f"NEW = {x}.{function}(axis={axes}, keepdims={kept})"]

    def viewed(self, x: str, value: Any) -> list[str]:
        if value.ndim == 0:
            return [f"NEW = {x}[None]"]
        new_axis = ", ".join([":"] * int(self.rng.integers(value.ndim + 1)) + ["None"])
        start = int(self.rng.integers(value.shape[0]))
        return [
            self.pick(
                f"NEW = {x}[{new_axis}]" if value.ndim < 4 else f"NEW = {x}.T",
                f"NEW = {x}[::-1]",
                f"NEW = {x}.T",
                f"NEW = {x}[{start}:]",
                f"NEW = {x}.reshape(-1)",
            )
        ]

    def assembled(self, x: str, value: Any) -> list[str]:
        if value.ndim == 0 or value.size > LARGEST / 4:
            return self.costly(x, value)
        axis = int(self.rng.integers(value.ndim))
        call = self.pick(
            f"concatenate([{x}, np.exp(-{x})], {axis})",
            f"stack([{x}, {x}], {axis})",
            f"pad({x}, 1)",
            f"pad({x}, 1, mode='edge')",
            f"pad({x}, 2, mode='wrap')",
            f"tile({x}, 2)",
            f"repeat({x}, 2, {axis})",
            f"roll({x}, 1, {axis})",
            f"flip({x}, {axis})",
        )
        return [f"NEW = np.{call}"]

    def assigned(self, x: str, value: Any) -> list[str]:
        if value.ndim == 0:
            return self.costly(x, value)
        rows = (value.shape[0] + 1) // 2
        shapes = ((), (1,), value.shape[1:][-1:])  # of one number, or of a row
        fitting = [n for n, other in self.values.items() if other.shape in shapes]
        row = self.pick("0.5", *(f"np.exp(-{n})" for n in fitting))
        return [f"NEW = np.exp(-{x})", f"NEW[: {rows}] = {row}"]

    def __str__(self) -> str:
        return f"{[a.shape for a in self.arguments]}\n{self.source}"
