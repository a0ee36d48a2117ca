"""Kernels against limits: the model's arithmetic, the probes, the memory plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import NbcompError
from nbcomp.measure import kernels, limits
from nbcomp.measure.arguments import restore
from nbcomp.measure.kernels import measure_numbers
from nbcomp.measure.memory_plan import memory_plan
from nbcomp.measure.roofline import Bandwidth, KernelFigures, Limits, Peak
from nbcomp.measure.timing import Timing
from nbcomp.runtime import pool

MACHINE = Limits(
    name="test",
    threads=2,
    peaks=(
        Peak(1, "float32", 100e9),
        Peak(1, "float64", 50e9),
        Peak(2, "float32", 200e9),
        Peak(2, "float64", 100e9),
    ),
    bandwidths=tuple(
        Bandwidth(n, level, n * rate)
        for n in (1, 2)
        for level, rate in (
            ("L1", 200e9),
            ("L2", 100e9),
            ("L3", 50e9),
            ("memory", 10e9),
            ("copy", 8e9),
            ("stream", 12e9),
        )
    ),
    fork=1e-6,
    capacities=(("L1", 32 << 10), ("L2", 1 << 20), ("L3", 32 << 20)),
    seconds=0.1,
)


def figures(seconds: float, operations: float, overhead: float = 2e-8, **traffic: float) -> Any:
    timing = Timing(seconds, seconds, seconds, 9, 1)
    moved = tuple(traffic.items())
    return KernelFigures("k", timing, 1, "float32", operations, moved, overhead, MACHINE)


# -------------------------------------------------------------------------------------- the model


def test_what_takes_longest_is_the_bound() -> None:
    compute = figures(2e-3, 100e6, memory=1e6)
    assert (compute.bound, compute.intensity) == ("compute", 100.0)
    assert compute.of_limit == pytest.approx(0.5)
    assert compute.flops_per_second == pytest.approx(50e9)
    memory = figures(2e-3, 1e6, memory=12e6, L2=12e6)
    assert (memory.bound, memory.level, memory.bytes) == ("memory", "memory", 24e6)
    assert memory.of_limit == pytest.approx(0.5)  # at 12 GB/s: the fastest way to move it
    assert figures(1e-6, 10, overhead=5e-7, L1=80).bound == "overhead"
    assert figures(1e-6, 10).intensity == math.inf


def test_limits_of_threads_in_between_are_those_of_fewer() -> None:
    assert MACHINE.peak(1, "float64") == 50e9
    assert MACHINE.peak(7, "float32") == 200e9
    assert MACHINE.bandwidth(2, "L1") == 400e9


def test_each_thread_brings_its_own_small_caches() -> None:
    assert MACHINE.level_of(40 << 10, 1) == "L2"
    assert MACHINE.level_of(40 << 10, 2) == "L1"
    assert MACHINE.level_of(33 << 20, 2) == "memory"


# ------------------------------------------------------------------------------------- the probes


def test_limits_are_measured() -> None:
    found = limits.measure_limits((1,), repeat=1, size=1 << 20)
    assert [(p.threads, p.dtype) for p in found.peaks] == [(1, "float32"), (1, "float64")]
    levels = [b.level for b in found.bandwidths]
    assert levels == ["L1", "L2", "L3", "memory", "copy", "stream"]
    assert all(p.value > 1e8 for p in found.peaks)
    assert all(b.value > 1e8 for b in found.bandwidths)
    assert found.fork == 0.0


def test_probes_compute_what_they_say() -> None:
    bench = limits._Bench.made(1 << 20, 1)
    half = bench.array.size // 2
    bench.array[:half] = np.arange(half)
    for name in ("copy", "stream"):
        bench.array[half:] = 0
        bench.seconds(name, 1, 4 * half, half // 64)
        np.testing.assert_array_equal(bench.array[half:], bench.array[:half])
    bench.array[:half] = 1.0
    for streams in limits.STREAMS:  # eight vectors at a time, over all of the first half
        bench.seconds(f"read{streams}", 1, 4 * half // streams, half // 128)
        assert bench.array[half : half + 16].sum() == half
    bench.array[:32] = 0.5
    bench.seconds("fma4", 1, 64, 50)
    np.testing.assert_allclose(bench.array[half : half + 16], 12.0)  # a = a/2 + 1/2, in 12 chains
    bench.array[:16].view(np.float64)[:] = 0.5
    bench.seconds("fma8", 1, 64, 100)
    np.testing.assert_allclose(bench.array[half : half + 16].view(np.float64), 12.0)


def test_limits_measured_while_others_ran_are_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = replace(MACHINE, peaks=tuple(replace(p, value=1.0) for p in MACHINE.peaks), others=1.0)
    results = iter([slow, MACHINE, MACHINE])
    monkeypatch.setattr(limits, "_known", {})
    monkeypatch.setattr(limits, "measure_limits", lambda counts: next(results))
    assert limits.limits() is slow
    better = limits.limits()
    assert better.peaks == MACHINE.peaks
    assert better.others == 0.0
    assert limits.limits() is better


# ------------------------------------------------------------------------------------ the programs


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kernels, "limits", lambda again=False: MACHINE)
    return


def layers(x: Any, w: Any) -> Any:
    h = np.maximum(x @ w, 0.0)
    s = np.sort(h, axis=0)
    return s / s.sum(axis=1, keepdims=True)


X, W = np.random.default_rng(0).random((60, 50)), np.random.default_rng(1).random((50, 40))


@pytest.mark.usefixtures("known")
def test_every_kernel_is_timed_and_counted() -> None:
    compiled = nbcomp.compile(layers, X, W)
    found = measure_numbers(compiled, [X, W], seconds=0.05)
    assert [k.kernel for k in found.kernels] == [k.name for k in compiled.kernels]
    product = found.kernels[0]
    assert product.operations == 2 * 60 * 50 * 40 + 60 * 40
    assert product.dtype == "float64"
    assert product.timing.low <= product.timing.median <= product.timing.high
    assert product.timing.samples >= 3
    assert [name for name, _ in found.libraries] == ["numpy.sort"]
    assert sum(line.share for line in found.lines) == pytest.approx(1.0)
    assert len({line.line for line in found.lines}) == 3


@pytest.mark.usefixtures("known")
def test_buffers_come_from_where_they_were_last() -> None:
    large, small = np.zeros((500, 1000)), np.zeros(1000)
    found = measure_numbers(nbcomp.compile(lambda x: x + 1.0, small), [small], seconds=0.01)
    assert dict(found.kernels[0].traffic) == {"L1": 16000}
    found = measure_numbers(nbcomp.compile(lambda x: x + 1.0, large), [large], seconds=0.01)
    assert dict(found.kernels[0].traffic) == {"L3": 8e6}

    def twice(x: Any, y: Any) -> Any:
        return np.sort(x) * 2.0, y.sum(axis=0)

    found = measure_numbers(nbcomp.compile(twice, small, large), [small, large], seconds=0.01)
    by_name = {k.kernel: dict(k.traffic) for k in found.kernels}
    assert by_name["multiply"] == {"L1": 8000, "L3": 8000}  # what was just sorted; an old result


@pytest.mark.usefixtures("known")
def test_what_a_program_writes_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    held = np.arange(50.0)

    def step(x: Any) -> Any:
        x *= 2.0
        held[:] = x[:50]
        return x.sum()

    restored: list[float] = []

    def note(copies: Any, originals: Any) -> None:
        restore(copies, originals)
        restored.append(copies[0][0][1])

    monkeypatch.setattr(kernels, "restore", note)
    x = np.arange(100.0)
    measure_numbers(nbcomp.compile(step, x.copy()), [x], seconds=0.02)
    assert len(restored) > 3  # before every run, so that its values do not run away
    assert set(restored) == {1.0}
    np.testing.assert_array_equal(x, np.arange(100.0))
    np.testing.assert_array_equal(held, np.arange(50.0))


@pytest.mark.usefixtures("known")
def test_kernels_that_do_nothing_have_no_numbers() -> None:
    empty = np.zeros((0, 4))
    found = measure_numbers(
        nbcomp.compile(lambda x: np.pad(x * 2, ((0, 0), (1, 1))), empty), [empty]
    )
    assert all(k.timing.median > 0 for k in found.kernels)


@pytest.mark.usefixtures("known")
def test_other_arguments_are_refused() -> None:
    with pytest.raises(NbcompError, match="compiled for other arguments: x had shape"):
        measure_numbers(nbcomp.compile(lambda x: x + 1, X), [X[:5]])


def test_the_memory_plan_says_who_lives_when_and_where() -> None:
    plan = memory_plan(nbcomp.compile(layers, X, W))
    assert plan.steps == ("matmul", "numpy.sort", "sum")
    by_name = {b.name: b for b in plan.buffers}
    h, s = by_name["h"], by_name["s"]
    assert (by_name["x"].role, by_name["x"].first, by_name["x"].last) == ("input", 0, 0)
    assert (h.role, h.first, h.last, h.bytes) == ("temp", 0, 1, 60 * 40 * 8)
    assert (s.first, s.last) == (1, 2)
    assert h.offset is not None
    assert s.offset is not None
    assert abs(h.offset - s.offset) >= h.bytes  # they live at the same time
    (result,) = [b for b in plan.buffers if b.role == "output"]
    assert (result.offset, result.first) == (None, 2)
    assert plan.peak == X.nbytes + W.nbytes + result.bytes + plan.arena
    assert plan.arena <= plan.apart


def test_what_is_written_to_an_argument_is_no_memory_of_its_own() -> None:
    def in_place(x: Any) -> Any:
        y = np.sort(x)
        x[:] = y + x.sum()

    def aside(x: Any) -> Any:
        y = np.sort(x)
        x[:] = y + x[::-1]

    for f, copies in ((in_place, False), (aside, True)):
        plan = memory_plan(nbcomp.compile(f, np.ones(64)))
        assert "output" not in {b.role for b in plan.buffers}
        assert (plan.steps[-1] == "write_x") == copies
        (x,) = [b for b in plan.buffers if b.role == "input"]
        assert (x.first, x.last) == (0, len(plan.steps) - 1)


def test_memory_that_is_used_again_is_counted_once() -> None:
    def f(x: Any) -> Any:
        for _ in range(6):
            x = np.sort(x, axis=0)
        return x

    plan = memory_plan(nbcomp.compile(f, np.ones((64, 64))))
    assert (plan.arena, plan.apart) == (2 * 64 * 64 * 8, 5 * 64 * 64 * 8)


def test_a_step_can_be_prepared_and_run_again() -> None:
    run = limits.nothing()
    assert [run(), run()] == [0, 0]
    assert pool.threads() >= 1
