"""Every operator's samples, compiled: machine code against the operator's own NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp
import nbcomp.ops  # fills the registry
from nbcomp.graph.op import REGISTRY, Indexed, Library
from nbcomp.target.llvm.elementary import FUNCTIONS
from tests.one_graph import compile_graph, graph_of, ulps

MAX_SAMPLES = 24  # per operator here; `make conformance` takes all


def _names() -> list[str]:
    return sorted(
        n
        for n, op in REGISTRY.items()
        if issubclass(op, Indexed) or not issubclass(op, Library)
        if next(op.samples(np.random.default_rng(0)), None)
    )


@pytest.mark.parametrize("name", _names())
def test_compiled_operator_is_its_reference(name: str, request: pytest.FixtureRequest) -> None:
    samples = list(REGISTRY[name].samples(np.random.default_rng(7)))
    if len(samples) > MAX_SAMPLES and not request.config.getoption("--all-samples", False):
        keep = np.random.default_rng(3).permutation(len(samples))[:MAX_SAMPLES]
        samples = [samples[k] for k in sorted(keep)]
    failures = []
    for sample in samples:
        arrays = [np.asarray(a) for a in sample.arrays]
        with np.errstate(all="ignore"):
            want = np.asarray(sample.op.reference(*arrays))
        compiled = compile_graph(graph_of(sample.op, arrays), arrays)
        (got,) = compiled(*arrays)
        far = ulps(got, want)
        if far > sample.ulp:
            shapes = [f"{a.dtype}{list(a.shape)}" for a in arrays]
            failures.append(f"{sample.op} on {shapes}: {far} ulp (allowed {sample.ulp})")
    assert not failures, "\n".join(failures[:10])


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"erf"}))
def test_operators_are_as_accurate_as_the_functions_of_their_names(
    name: str, rng: np.random.Generator
) -> None:
    """Within 1 ulp in float32: no operator is written in others where it has a function."""
    function = getattr(np, name)
    args = rng.uniform(-3, 3, (function.nin, 2000)).astype(np.float32)
    with np.errstate(all="ignore"):
        want = function(*args.astype(np.float64))
    got = nbcomp.jit(lambda *a: function(*a))(*args)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert np.nanmax(np.abs(got - want) / np.spacing(np.abs(want.astype(np.float32)))) <= 1
