"""`set_threads`: kernels use as many threads as were asked for last, whenever they were made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.machine import cores
from nbcomp.runtime import native, pool

X = np.random.default_rng(0).random((1500, 1200))


@pytest.fixture(autouse=True)
def _default_threads() -> Iterator[None]:
    yield
    pool.set_threads(None)


def workers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("nbcomp-")]


def helped(call: Callable[[], Any], seconds: float = 20.0) -> bool:
    """Whether a worker takes part in the call: its own CPU time grows by a millisecond."""
    call()  # the workers are started by the first parallel step
    if not workers():
        return False
    clock = time.pthread_getcpuclockid(workers()[0].ident or 0)
    begin, end = time.clock_gettime(clock), time.monotonic() + seconds
    while time.monotonic() < end:
        call()
        if time.clock_gettime(clock) - begin > 1e-3:
            return True
    return False


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "map": lambda x: np.exp(np.sin(x)),
    "rows": lambda x: x / x.sum(axis=1, keepdims=True),
    "columns": lambda x: (x * x).sum(axis=0),
    "everything": lambda x: np.exp(x).sum(),
    "product": lambda x: x @ x.T,
}


@pytest.mark.skipif(cores() < 2, reason="kernels are made for one core here")
@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="no clocks of threads")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_that_ran_on_one_thread_runs_on_two(name: str) -> None:
    function = nbcomp.jit(PROGRAMS[name])
    pool.set_threads(1)
    alone = function(X)
    assert not workers()
    pool.set_threads(2)
    assert helped(lambda: function(X))
    np.testing.assert_allclose(function(X), alone, rtol=1e-12)
    pool.set_threads(1)
    function(X)
    assert not workers()
    library = native.library()
    assert library is not None
    assert library.pool["count"] == 0
