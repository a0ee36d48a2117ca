"""What compiled code makes of a parameter once is made again when the parameter has changed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.runtime import kept

X = np.random.default_rng(0).standard_normal((1, 3, 20, 21)).astype(np.float32)


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbcomp.graph.passes.layout.TURNED", 0.0)


def model() -> Any:
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3))


def right(function: Any, model: Any) -> bool:
    """Whether it gives the model's answer, twice: the second call is native if it can be."""
    first, second = function(X), function(X)
    wanted = model(X)
    return all(np.abs(y - wanted).max() <= 1e-5 * np.abs(wanted).max() for y in (first, second))


def ready(model: Any, number: int = 0) -> bool:
    """Whether packed weights lie beside a parameter."""
    table = model[number].weight.__nbcomp_kept__
    return any(isinstance(key, str) for key in table or ())


def _write_through_ufunc(m: Any) -> None:
    np.multiply(m[0].weight, 2, out=m[0].weight)


def _iadd(m: Any) -> None:
    m[0].weight += 1


def _data(m: Any) -> None:
    m[0].weight.data = m[0].weight.data * 3


def _in_place(m: Any) -> None:
    m[0].weight.data[...] *= -1


def _view(m: Any) -> None:
    m[0].weight[1:3][...] = 4


def _reshaped(m: Any) -> None:
    m[0].weight.reshape(-1)[5] = 4


def _method(m: Any) -> None:
    m[0].weight.fill(0.5)


def _asarray(m: Any) -> None:
    np.asarray(m[0].weight)[0] = 7


def _function(m: Any) -> None:
    np.copyto(m[0].weight.data, 0.25)


def _put(m: Any) -> None:
    np.put(np.asarray(m[0].weight), [3], 2.0)


def _iterated(m: Any) -> None:
    for row in m[0].weight:
        row += 1


def _loaded(m: Any) -> None:
    m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()})


def _replaced(m: Any) -> None:
    m[0].weight = nn.Parameter(np.ones((16, 3, 3, 3), np.float32))


def _array(m: Any) -> None:
    m[0].weight = np.ones((16, 3, 3, 3), np.float32)


def _layer(m: Any) -> None:
    m[0].weight = copy.copy(m[0].weight)
    m[0].weight[...] = 3


CHANGES: list[Callable[[Any], None]] = [
    _write_through_ufunc, _iadd, _data, _in_place, _view, _reshaped, _method, _asarray, _function,
    _put, _iterated, _loaded, _replaced, _array, _layer,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(change: Callable[[Any], None]) -> None:
    m = model()
    function = nbcomp.jit(m)
    before = function(X).copy()
    assert right(function, m)
    function(X)
    assert ready(m)
    change(m)
    assert not np.array_equal(function(X), before)
    assert right(function, m)
    function(X)
    assert ready(m)
    assert len(function.variants) == 1


@pytest.mark.parametrize("take", [
    lambda m: m[0].weight.data,
    lambda m: np.asarray(m[0].weight),
    lambda m: m[0].weight.data[2:9],
    lambda m: m.state_dict()["0.weight"],
    lambda m: copy.copy(m[0].weight),
    lambda m: nn.Parameter(m[0].weight.data),
])  # fmt: skip
def test_writes_through_an_array_that_was_handed_out_are_seen(take: Any) -> None:
    m = model()
    function = nbcomp.jit(m)
    assert right(function, m)
    handed = take(m)
    for value in (1.0, 2.0):
        assert right(function, m)
        function(X)
        assert not ready(m)
        assert ready(m, 2) or m[2].weight.__nbcomp_kept__ is not None
        handed[0] = value
        before = function(X).copy()
        handed[1] = -value
        assert not np.array_equal(function(X), before)
    del handed
    assert right(function, m)
    function(X)
    assert ready(m)


def test_the_users_own_array_is_not_trusted() -> None:
    m, mine = model(), np.ones((16, 3, 3, 3), np.float32)
    m[0].weight = nn.Parameter(mine)
    function = nbcomp.jit(m)
    assert right(function, m)
    mine[...] = 2
    assert right(function, m)
    assert not ready(m)


def test_a_view_of_memory_somebody_has_is_not_trusted() -> None:
    m, mine = model(), np.ones((2, 16, 3, 3, 3), np.float32)
    m[0].weight = nn.Parameter(mine[1])
    function = nbcomp.jit(m)
    assert right(function, m)
    mine[...] = 2
    assert right(function, m)
    assert not ready(m)
    del mine
    assert right(function, m)
    function(X)
    assert ready(m)


def test_what_compiled_code_writes_to_is_not_kept() -> None:
    m = model()
    function = nbcomp.jit(m)
    assert right(function, m)

    @nbcomp.jit
    def halve(m: Any) -> None:
        m[0].weight[...] = m[0].weight * 0.5

    for _ in range(4):
        halve(m)
        assert right(function, m)
    assert halve.compiled is not None
    assert not halve.fallbacks
    assert m[0].weight.__nbcomp_kept__ is None


def test_models_do_not_share_what_is_kept() -> None:
    m = model()
    function = nbcomp.jit(m)
    assert right(function, m)
    other = copy.deepcopy(m)
    other[0].weight[...] = 0
    assert right(function, m)
    assert right(nbcomp.jit(other), other)
    again = pickle.loads(pickle.dumps(m))
    assert not again[0].weight.__nbcomp_kept__
    assert right(nbcomp.jit(again), again)


def test_one_function_of_several_models() -> None:
    @nbcomp.jit
    def run(m: Any, x: Any) -> Any:
        return m(x)

    one, two = model(), model()
    for m in (one, two, one, two):
        assert np.abs(run(m, X) - m(X)).max() < 1e-4
    assert len(run.variants) == 1


def test_compiled_sees_changes_too() -> None:
    m = model()
    made = nbcomp.compile(m, X)
    assert right(made, m)
    m[2].weight *= 2
    assert right(made, m)


def test_calls_are_native_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    m = model()
    function = nbcomp.jit(m)
    assert right(function, m)
    function(X)

    def executed(*_: Any) -> Any:
        raise AssertionError("the call went through Python")

    monkeypatch.setattr("nbcomp.runtime.interpret.execute", executed)
    assert function(X).shape == (1, 24, 8, 9)


def test_looking_at_a_parameter_keeps_what_was_made() -> None:
    m = model()
    function = nbcomp.jit(m)
    assert right(function, m)
    function(X)
    assert ready(m)
    assert (m[0].weight.shape, m[0].weight.size) == ((16, 3, 3, 3), 432)
    assert "Conv2d" in repr(m)
    assert ready(m)


def test_packed_memory_is_aligned_for_vectors() -> None:
    m = model()
    nbcomp.compile(m, X)(X)
    table = m[0].weight.__nbcomp_kept__
    assert all(a.ctypes.data % 64 == 0 for key, a in table.items() if isinstance(key, str))
    assert kept.ALONE >= 1
