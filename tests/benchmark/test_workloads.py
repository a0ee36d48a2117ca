"""The benchmark's workloads, at their own sizes: compiled, not run in NumPy, and equal to NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp
from benchmarks.overhead import grown
from benchmarks.peers import as_tuple
from benchmarks.worker import difference
from benchmarks.workloads import WORKLOADS


@pytest.mark.parametrize("name", WORKLOADS)
def test_compiled_equals_numpy(name: str) -> None:
    workload = WORKLOADS[name]
    compiled = nbcomp.jit(workload.function)
    arrays = workload.arrays()
    for inputs in (arrays, grown(workload, arrays)):
        wanted = [np.asarray(r) for r in as_tuple(workload.function(*inputs.values()))]
        got = [np.asarray(r) for r in as_tuple(compiled(*inputs.values()))]
        assert difference(got, wanted) <= workload.rtol
    assert not compiled.fallbacks
