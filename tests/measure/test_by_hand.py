"""Operations, bytes and lives of buffers of whole programs, against what a person counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.loop.cost import INSTRUCTIONS
from nbcomp.measure import kernels
from nbcomp.measure.kernels import measure_numbers
from nbcomp.measure.memory_plan import memory_plan
from nbcomp.nn import functional as F
from tests.measure.test_roofline import MACHINE

RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.random(shape, np.float32)


def axpy(a: Any, x: Any, y: Any) -> Any:
    return a * x + y


def dense(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layers(x: Any, w: Any) -> Any:
    return np.sort(dense(x, w, 0), axis=0) * 2


def conv(x: Any, w: Any) -> Any:
    return F.conv2d(x, w)


EXP = INSTRUCTIONS["exp"]

# The program, its arguments, operations in all, and bytes that move in all, besides those of a
# copy that the kernel makes for itself, which is written and read once.
BY_HAND: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float, float]] = {
    "a multiply and an add for each of 1000": (
        axpy,
        (np.float32(2), f32(1000), f32(1000)),
        2 * 1000,
        3 * 4000 + 4,
    ),
    "an add for each of 50 x 100": (
        lambda x: x.sum(axis=1),
        (RNG.random((50, 100)),),
        50 * 100,
        8 * (50 * 100 + 50),
    ),
    "a row that is added to each row moves once": (
        lambda x, b: x + b,
        (f32(100, 50), f32(50)),
        100 * 50,
        4 * (2 * 100 * 50 + 50),
    ),
    "every other element": (lambda x: x[::2] * 3, (f32(1000),), 500, 4 * 2 * 500),
    "a product with what follows it": (
        dense,
        (f32(8, 16), f32(16, 4), f32(4)),
        2 * 8 * 16 * 4 + 2 * 8 * 4,
        4 * (8 * 16 + 16 * 4 + 4 + 8 * 4),
    ),
    "softmax of 10 rows: a comparison, a difference, exp, an add, a division": (
        softmax,
        (f32(10, 64),),
        10 * 64 * (4 + EXP),
        2 * 4 * 10 * 64,
    ),
    "a convolution, 3 x 3 on 2 channels, to 4 channels of 6 x 6": (
        conv,
        (f32(1, 2, 8, 8), f32(4, 2, 3, 3)),
        2 * 4 * 36 * 2 * 9,
        4 * (2 * 64 + 4 * 2 * 9 + 4 * 36),
    ),
}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "limits", lambda again=False: MACHINE)


@pytest.mark.parametrize("name", BY_HAND)
def test_operations_and_bytes(name: str) -> None:
    function, args, operations, moved = BY_HAND[name]
    compiled = nbcomp.compile(function, *args)
    moved += 2 * sum(b.bytes for b in memory_plan(compiled).buffers if b.role == "temp")
    found = measure_numbers(compiled, list(args), seconds=0.01)
    assert sum(k.operations for k in found.kernels) == operations
    assert sum(k.bytes for k in found.kernels) == moved
    (kernel,) = found.kernels
    assert kernel.intensity == pytest.approx(operations / moved)
    rate = operations / kernel.timing.median
    assert kernel.flops_per_second == pytest.approx(rate)


def dot(x: Any, y: Any) -> Any:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * y[i]
    return s


def test_loops_as_they_were_written() -> None:
    x, y = RNG.random(300), RNG.random(300)
    function = nbcomp.script(dot)
    function(x, y)
    found = measure_numbers(function.compiled, [x, y], seconds=0.01)
    (kernel,) = found.kernels
    assert kernel.operations == 2 * 300
    assert kernel.bytes == pytest.approx(2 * 8 * 300, abs=16)


def test_kernels_that_are_called_several_times_are_counted_as_often() -> None:
    w = f32(16, 16)

    def repeated(x: Any) -> Any:
        for _ in range(4):
            x = np.sort(np.maximum(x @ w, 0), axis=0)
        return x

    x = f32(8, 16)
    found = measure_numbers(nbcomp.compile(repeated, x), [x], seconds=0.01)
    assert sum(k.operations for k in found.kernels) == 4 * (2 * 8 * 16 * 16 + 8 * 16)
    assert sum(k.calls for k in found.kernels) == 4


def test_a_buffer_lives_from_the_step_that_writes_it_to_the_last_that_reads_it() -> None:
    x, w = f32(64, 32), f32(32, 16)
    plan = memory_plan(nbcomp.compile(layers, x, w))
    lives = {b.name: (b.first, b.last, b.bytes, b.role) for b in plan.buffers}
    assert lives["x"] == (0, 0, x.nbytes, "input")
    assert lives["w"] == (0, 0, w.nbytes, "input")
    assert lives["result"] == (2, 2, 64 * 16 * 4, "output")
    between = [b for b in plan.buffers if b.role == "temp"]
    assert [(b.first, b.last, b.bytes) for b in between] == [(0, 1, 4096), (1, 2, 4096)]
    assert plan.arena == 2 * 4096
    assert plan.peak == x.nbytes + w.nbytes + 64 * 16 * 4 + plan.arena
