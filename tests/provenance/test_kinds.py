"""The instructions of programs of every kind are mapped: networks, loops as written, products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from benchmarks.loop_programs import ROWS
from nbcomp import nn
from nbcomp.origin import Construct
from tests.provenance.test_provenance import ENOUGH

RNG = np.random.default_rng(2)


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


class Network(nn.Module):
    def __init__(self) -> None:
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.second, self.head = nn.Conv2d(16, 32, 3, stride=2), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        x = self.norm(self.first(x)).relu()
        return self.head(self.second(x).relu().mean(axis=(2, 3)))


def attention(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.transpose(0, 2, 1) / 8
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


def dense(x: Any, w: Any) -> Any:
    return np.tanh(x @ w)


def sorted_and_found(x: Any) -> Any:
    return np.sort(x, axis=-1) * 2, np.argmax(x, axis=-1), np.argsort(x, axis=0)[0]


def bits(i: Any) -> Any:
    return (i // 3) * (i << 2) & 255, (i > 7) | (i == 3)


def narrow(a: Any, b: Any) -> Any:
    return a.astype(np.int32) @ b.astype(np.int32)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a convolutional network": (Network().eval(), (f32(2, 3, 20, 20),)),
    "attention": (attention, (f32(4, 32, 64), f32(4, 32, 64), f32(4, 32, 64))),
    "a generated product": (dense, (f32(64, 300), f32(300, 256))),
    "sort and argmax": (sorted_and_found, (f32(60, 50),)),
    "bits": (bits, (RNG.integers(1, 99, 5000),)),
    "narrow products": (narrow, (np.ones((64, 128), np.int8), np.ones((128, 64), np.int8))),
    "a recurrent layer": (nn.GRU(16, 32), (f32(10, 4, 16),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_mapped(name: str) -> None:
    function, args = PROGRAMS[name]
    table = nbcomp.compile(function, *args).provenance()
    assert len(table.in_loops) > 10
    assert table.mapped >= ENOUGH


@pytest.mark.parametrize("name", ["mandelbrot", "floyd_warshall", "smith_waterman", "csr_matvec"])
def test_loops_as_they_were_written_are_mapped(name: str) -> None:
    (row,) = (r for r in ROWS if r.name == name)
    function = nbcomp.script(row.function)
    function(*row.arguments())
    for compiled in (function.compiled, function.compiled.for_cpu("neon")):
        table = compiled.provenance()
        assert len(table.in_loops) > 10
        assert table.mapped >= ENOUGH


def test_copies_in_the_order_they_are_read_have_a_name() -> None:
    compiled = nbcomp.compile(dense, f32(64, 300), f32(300, 256))
    packed = [r for r in compiled.provenance().in_loops if r.construct == Construct.PACKING]
    line = dense.__code__.co_firstlineno + 1
    assert packed
    assert all(r.lines == (line,) for r in packed)
