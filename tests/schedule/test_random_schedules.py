"""Schedules drawn from seeds, legal steps and illegal ones: each step is refused with a message
that says why, or what comes of it gives NumPy's answer, interpreted and as machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import ScheduleError, Unsupported
from nbcomp.loop.grammar import Alloc, For, Kernel, walk
from nbcomp.loop.intrinsics import INTRINSICS
from nbcomp.schedule import steps
from nbcomp.schedule.language import Schedule, Step, parse, usage
from tests.kernels import (
    Array,
    add_to,
    apply,
    buffer,
    interpreted,
    kernel,
    load,
    loop,
    native,
    number,
    random_inputs,
    store,
)
from tests.schedule.programs import blur, column_sums, matmul, product, two_stages

STEPS = 12  # that are tried in one schedule
LOOPS = 24  # beyond which a kernel has been cut up enough
NUMBERS = (-1, 0, 1, 2, 3, 4, 7, 8, 16, 17, 64, 1 << 20)
STRANGE = ("zz", "", "i; import os", "ï")


def softmax_rows(m: int = 5, n: int = 37) -> Kernel:
    """Rows that add up to 1, in three walks over each."""
    x, out = buffer("x", (m, n)), buffer("out", (m, n), "output")
    most, total = buffer("most", (), "local"), buffer("total", (), "local")
    value = apply("exp", apply("subtract", load(x, "i", "s"), load(most)))
    again = apply("exp", apply("subtract", load(x, "i", "t"), load(most)))
    body = (
        Alloc(most),
        Alloc(total),
        store(most, (), number(-np.inf)),
        loop("r", n, add_to(most, (), load(x, "i", "r"), "maximum")),
        store(total, (), number(0)),
        loop("s", n, add_to(total, (), value)),
        loop("t", n, store(out, ("i", "t"), apply("divide", again, load(total)))),
    )
    return kernel(loop("i", m, *body), buffers=[x, out])


Arrays = Mapping[str, Array]
PROGRAMS: dict[str, tuple[Callable[[], Kernel], Callable[[Arrays], Arrays]]] = {
    "matmul": (matmul, lambda a: {"c": a["a"] @ a["b"]}),
    "turned": (lambda: matmul(5, 33, 12, turned=True), lambda a: {"c": a["a"] @ a["b"].T}),
    "two stages": (two_stages, lambda a: {"y": np.square(a["x"] + a["x"]) + np.float32(1)}),
    "blur": (blur, lambda a: {"y": a["x"][:-1] ** 2 + a["x"][1:] ** 2}),
    "columns": (column_sums, lambda a: {"out": a["x"].sum(axis=0)}),
    "softmax": (softmax_rows, lambda a: {"out": _softmax(a["x"])}),
    "library": (lambda: product(40, 18), lambda a: {"c": a["a"] @ a["b"]}),
}


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class Drawn:
    """Steps at random: arguments mostly of the kernel at hand, now and then of none."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one_of(self, some: Any) -> Any:
        """An element."""
        return some[int(self.rng.integers(len(some)))]

    def step(self, k: Kernel) -> Step | None:
        """A step; None for arguments that no step can be made of."""
        name = self.one_of(steps.__all__)
        arguments: list[Any] = []
        for parameter in usage(name).parameters.values():
            several = parameter.kind is parameter.VAR_POSITIONAL
            if parameter.default is not parameter.empty and self.rng.random() < 0.5:
                break
            for _ in range(int(self.rng.integers(0, 4)) if several else 1):
                arguments.append(self.argument(k, parameter.name, parameter.annotation))
        try:
            return Step(name, tuple(arguments))
        except ScheduleError:
            return None

    def argument(self, k: Kernel, name: str, kind: type) -> Any:
        """What is given for a parameter."""
        if kind is int:
            return int(self.one_of(NUMBERS))
        if self.rng.random() < 0.05:
            return self.one_of(STRANGE)
        if name == "instruction":
            return self.one_of(list(INTRINSICS))
        inside = list(walk(k.stages))
        if name == "buffer":
            local = [s.buffer.name for s in inside if isinstance(s, Alloc)]
            return self.one_of([b.name for b in k.buffers] + local)
        loops = [s.var for s in inside if isinstance(s, For)]
        return self.one_of(loops) if loops else "i"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", range(20))
def test_a_drawn_schedule_is_refused_or_right(program: str, seed: int) -> None:
    make, meaning = PROGRAMS[program]
    k = original = make()
    drawn, taken, refused = Drawn(seed), [], []
    for _ in range(STEPS):
        step = drawn.step(k)
        if step is None:
            continue
        try:
            k = step(k)
        except ScheduleError as error:
            refused.append(error.message)
            continue
        taken.append(step)
        if sum(isinstance(s, For) for s in walk(k.stages)) > LOOPS:
            break
    same_as(original, k, meaning)
    assert all(words.strip() and "Error" not in words for words in refused)
    # The same steps, written down and read again, make the same kernel.
    assert str(parse(str(Schedule(tuple(taken))))(original)) == str(k)


def same_as(original: Kernel, k: Kernel, meaning: Callable[[Arrays], Arrays]) -> None:
    """Assert that a kernel computes what NumPy does, interpreted and as machine code."""
    rng = np.random.default_rng(11)
    inputs = random_inputs(rng, original)
    wanted = meaning(inputs)
    runs = [interpreted(k, inputs)]
    with suppress(Unsupported):  # by machine code, which says so
        runs.append(native(k, inputs))
    for got in runs:
        for name, value in wanted.items():
            found = next(b.name for b in k.buffers if name in (b.name, b.alias))
            np.testing.assert_allclose(
                got[found].reshape(value.shape), value, rtol=3e-5, atol=3e-5, err_msg=str(k)
            )
