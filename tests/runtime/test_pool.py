"""The thread pool: right results from any number of threads, forks, interrupts and exits."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nbcomp.runtime import native, pool
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.flatten import _segment
from nbcomp.runtime.plan import Output, Plan, Step
from nbcomp.types import FLOAT64
from tests.runtime.kernels import argument, code, like, step

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _default_threads() -> Iterator[None]:
    pool.set_threads(3)  # more than one even on a small machine
    yield
    pool.set_threads(None)


def _refuse(args: Any, kwargs: Any) -> Any:
    raise AssertionError("refused")


def _function(*plans: Plan, **rest: Any) -> NativeFunction:
    function = NativeFunction("f", None, _refuse, **rest)
    for plan in plans:
        function.add(plan)
    return function


def _sums(chunks: int, size: int, grain: int, seconds: float = 0.0, spin: int = 0) -> Plan:
    """Sums of `chunks` runs of `size` doubles, in parallel."""
    steps: tuple[Step, ...] = (step("chunk", (0, 1), (size,), extent=chunks, grain=grain),)
    if spin:
        steps = (step("spin", (), (spin,), extent=chunks, grain=1), *steps)
    return Plan(
        guards=(like(np.empty(chunks * size), argument(0), 0),),
        positional=1,
        slots=2,
        outputs=(Output(FLOAT64, (chunks,), 1),),
        steps=steps,
        seconds=seconds,
    )


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 20])
@pytest.mark.parametrize(("chunks", "grain"), [(1, 1), (2, 1), (100, 1), (100, 7), (100, 100)])
def test_every_chunk_is_done_once(threads: int, chunks: int, grain: int) -> None:
    pool.set_threads(threads)
    f = _function(_sums(chunks, 10, grain)).callable
    x = np.arange(chunks * 10.0)
    for _ in range(200):
        np.testing.assert_array_equal(f(x), x.reshape(chunks, 10).sum(1))


def test_threads_can_be_set_and_start_lazily() -> None:
    library = native.library()
    assert library is not None
    pool.set_threads(2)
    assert pool.threads() == 2
    assert not library.pool_started["value"]
    f, x = _function(_sums(8, 10, 1)).callable, np.ones(80)
    assert f(x).tolist() == [10] * 8
    assert library.pool_started["value"] == 1
    assert library.pool["count"] == 1
    pool.stop()
    assert library.pool["count"] == 0
    assert f(x).tolist() == [10] * 8
    pool.set_threads(None)
    assert pool.threads() == pool.available() >= 1
    with pytest.raises(ValueError, match="at least 1"):
        pool.set_threads(0)


def test_workers_wake_from_sleep() -> None:
    f, x = _function(_sums(6, 1000, 1, spin=20_000)).callable, np.ones(6000)
    for _ in range(20):
        assert f(x).tolist() == [1000] * 6
        threading.Event().wait(0.002)  # long enough for workers to fall asleep


@pytest.mark.skipif(sys.platform != "linux", reason="affinities of threads are Linux's")
def test_workers_keep_off_the_core_of_the_caller() -> None:
    cores = os.sched_getaffinity(0)
    if not 2 <= len(cores) <= 16:
        pytest.skip("with one core there is no other, with many the system finds an idle one")
    pool.set_threads(len(cores))
    f, x = _function(_sums(64, 10, 1)).callable, np.ones(640)
    f(x)
    workers = [t.native_id for t in threading.enumerate() if t.name.startswith("nbcomp-")]
    assert len(workers) == len(cores) - 1
    try:
        for core in sorted(cores):
            os.sched_setaffinity(0, {core})  # of this thread
            assert f(x).tolist() == [10] * 64
            assert all(os.sched_getaffinity(w or 0) == cores - {core} for w in workers)
    finally:
        os.sched_setaffinity(0, cores)
    pool.set_threads(len(cores) + 1)
    f(x)
    workers = [t.native_id for t in threading.enumerate() if t.name.startswith("nbcomp-")]
    assert all(os.sched_getaffinity(w or 0) == cores for w in workers)


@pytest.mark.parametrize(("extent", "grain"), [(2, 1), (14, 1), (32, 2), (1000, 3), (3, 7), (0, 1)])
@pytest.mark.parametrize("seconds", [1e-6, 0.3, 1e3])
def test_a_piece_of_a_long_step_has_chunks_for_all_cores(
    extent: int, grain: int, seconds: float
) -> None:
    pool.set_threads(2)
    long = step("chunk", (0, 1), (10,), extent=extent, grain=grain)
    piece = _segment(long, 0, seconds)
    assert piece >= min(2 * grain, extent)
    assert piece % (2 * grain) == 0  # and as many for one as for the other
    if seconds < 1:
        assert piece >= extent or seconds > 0.05


def test_a_status_of_one_chunk_is_the_status_of_the_step() -> None:
    def failed(args: Any, plan: Plan, number: int, status: int) -> tuple[int, int]:
        return number, status

    plan = Plan((), 0, 1, (), (step("status", (), (9,), extent=50, grain=1),))
    for _ in range(100):
        assert _function(plan, failed=failed).callable() == (0, 9)


def test_python_threads_share_the_pool() -> None:
    f = _function(_sums(64, 500, 1, seconds=1e-3)).callable
    wrong = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).integers(0, 100, 64 * 500).astype(float)
        expected = x.reshape(64, 500).sum(1)
        for _ in range(100):
            if not np.array_equal(f(x), expected):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        pool.set_threads(2)
        pool.set_threads(4)
    for thread in threads:
        thread.join()
    assert not wrong


def test_steps_run_in_parallel_from_python_too() -> None:
    x, out = np.arange(100.0), np.zeros(10)
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, out.ctypes.data)
    params = (ctypes.c_int64 * 1)(10)
    for grain in (0, 1, 3):
        out[:] = 0
        assert pool.run(code()["chunk"], buffers, params, 10, grain) == 0
        np.testing.assert_array_equal(out, x.reshape(10, 10).sum(1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_its_own_pool() -> None:
    f, x = _function(_sums(64, 100, 1)).callable, np.ones(6400)
    expected = [100.0] * 64
    assert f(x).tolist() == expected
    child = os.fork()
    if not child:
        good = pool.threads() == 3 and all(f(x).tolist() == expected for _ in range(50))
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert f(x).tolist() == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_another_thread_computes() -> None:
    f, x = _function(_sums(64, 100, 1, seconds=1e-3, spin=2000)).callable, np.ones(6400)
    expected = [100.0] * 64
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            f(x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                os._exit(0 if f(x).tolist() == expected else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("grain", [0, 1])
def test_interrupt_stops_a_long_plan(grain: int) -> None:
    x = np.zeros(4)
    spins = [step("spin", (), (30_000,), extent=1000, grain=grain) for _ in range(400)]
    plan = Plan(
        guards=(like(x, argument(0), 0, writable=True),),
        positional=1,
        slots=1,
        outputs=(),
        steps=(*spins, step("increment", (0,), extent=4)),
        seconds=60.0,
    )
    f = _function(plan).callable
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(x)
    timer.join()
    assert x.tolist() == [0, 0, 0, 0]  # the last step never ran
    f2 = _function(_sums(8, 10, 1)).callable  # and the pool is in order
    assert f2(np.ones(80)).tolist() == [10] * 8


_PROGRAM = """
    import sys, threading
    import numpy as np
    from nbcomp.runtime import pool
    from nbcomp.runtime.entry import NativeFunction
    from tests.runtime.test_pool import _function, _sums

    pool.set_threads(3)
    f = _function(_sums(64, 1000, 1, seconds=1e-3, spin=5000)).callable
    x = np.ones(64000)
    assert f(x).tolist() == [1000.0] * 64
    {ending}
"""


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(0)",
        "threading.Thread(target=lambda: [f(x) for _ in range(100)]).start()",
        "threading.Thread(target=lambda: [f(x) for _ in iter(int, 1)], daemon=True).start()",
        "import atexit; atexit.register(lambda: print(f(x).sum(), file=sys.stdout))",
        "pool.stop()",
        "import builtins; from nbcomp.runtime import memory\n"
        "builtins.kept = [memory.empty(np.dtype(float), (100_000,)) for _ in range(9)]",
    ],
    ids=["end", "exit", "thread", "daemon", "atexit", "stopped", "arrays"],
)
def test_the_interpreter_exits_cleanly(ending: str) -> None:
    program = textwrap.dedent(_PROGRAM).format(ending=ending)
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
