"""Captured programs that other programs call: their graphs become part of these."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import Unsupported, nn

X = np.arange(8, dtype=np.float32)


def twice(x: Any) -> Any:
    return np.sin(x) * 2


def test_a_program_is_compiled_as_a_function_is() -> None:
    traced = nbcomp.trace(twice, X)
    jitted = nbcomp.jit(traced)
    np.testing.assert_allclose(jitted(X), twice(X), rtol=1e-6)
    assert jitted.variants
    assert not jitted.fallbacks
    compiled = nbcomp.compile(traced, X)
    assert [n.op.name for n in compiled.captured.nodes] == ["input", "sin", "constant", "multiply"]
    np.testing.assert_array_equal(compiled(x=X), compiled(X))


def test_a_program_is_part_of_another() -> None:
    traced = nbcomp.trace(twice, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outer = nbcomp.trace(lambda y: traced(y) + traced(x=y * 2), X)
    np.testing.assert_allclose(outer(X), twice(X) + twice(X * 2), rtol=1e-6)
    fast = nbcomp.jit(lambda y: traced(y + 1) + 1)
    np.testing.assert_allclose(fast(X), twice(X + 1) + 1, rtol=1e-6)
    assert fast.variants
    assert not fast.fallbacks


def test_an_edited_program_is_taken_as_it_is_now() -> None:
    traced = nbcomp.trace(twice, X)
    fast = nbcomp.jit(lambda y: traced(y) + 1)
    np.testing.assert_allclose(fast(X), twice(X) + 1, rtol=1e-6)
    (sine,) = (n for n in traced.graph.nodes if n.target is np.sin)
    with pytest.raises(nbcomp.NbcompError, match="stays a call of sin: make another one"):
        sine.target = np.cos
    with traced.graph.inserting_after(sine):
        sine.replace_all_uses_with(traced.graph.call_function(np.cos, sine.args))
    traced.recompile()
    np.testing.assert_allclose(fast(X), np.cos(X) * 2 + 1, rtol=1e-6)


def test_what_a_program_reads_is_read_at_every_call() -> None:
    layer = nn.Linear(8, 3)
    traced = nbcomp.trace(layer, X[None])
    fast = nbcomp.jit(lambda y: traced(y) * 2)
    np.testing.assert_allclose(fast(X[None]), layer(X[None]) * 2, rtol=1e-5)
    layer.weight[...] = 1.0
    np.testing.assert_allclose(fast(X[None]), layer(X[None]) * 2, rtol=1e-5)
    exported = nbcomp.export(layer, nbcomp.f32[1, 8])
    weights = [np.asarray(p) for p in exported.params.values()]
    np.testing.assert_allclose(nbcomp.jit(exported)(X[None], *weights), layer(X[None]), rtol=1e-5)


def test_results_that_are_trees() -> None:
    traced = nbcomp.trace(lambda x, y: {"a": (x + y, [x.sum()])}, X, X)
    found = nbcomp.jit(lambda x: traced(x, x)["a"])(X)
    np.testing.assert_array_equal(found[0], X + X)
    assert found[1] == [X.sum()]


def test_other_arguments_are_refused_at_the_users_line() -> None:
    traced = nbcomp.trace(twice, X)
    with pytest.raises(Unsupported, match=r"was captured with x: f32\[8\], not f32\[3\]") as said:
        nbcomp.compile(lambda y: traced(y[:3]) + 1, X)
    assert said.value.location is not None
    assert said.value.location.source() == "traced(y[:3])"
    with pytest.raises(TypeError, match="too many positional"):
        nbcomp.compile(lambda y: traced(y, y), X)
    view = nbcomp.trace(lambda x: x[1:], X)
    with pytest.raises(Unsupported, match="returns a view"):
        nbcomp.compile(lambda y: view(y) + 1, X)


def test_bytes_of_an_array_are_refused_in_words() -> None:
    with pytest.raises(nbcomp.CaptureError, match="this needs its bytes while compiling"):
        nbcomp.compile(lambda x: x.tobytes(), X)
