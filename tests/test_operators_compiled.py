"""Every operator's samples, compiled: machine code against the operator's own NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp.ops  # noqa: F401  (fills the registry)
from nbcomp.graph.op import REGISTRY, Indexed, Library
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
