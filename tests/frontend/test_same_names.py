"""Arrays that are found in different places under one name are different arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn

CAPTURES: tuple[Callable[..., Any], ...] = (nbcomp.jit, nbcomp.script)


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.zeros(16), np.zeros(8)),
        (np.zeros(8), np.zeros(16)),
        (np.zeros((4, 4)), np.zeros((4, 4), order="F")),
        (np.zeros(32)[::2], np.zeros(16)),
        (np.zeros((2, 3)), np.zeros(5, np.float32)),
    ],
)
def test_written_arrays_of_one_name(capture: Any, first: Any, second: Any) -> None:
    a, b = SimpleNamespace(r=first.copy("K")), SimpleNamespace(r=second.copy("K"))
    if first.strides != first.copy("K").strides:
        a.r = np.zeros(32)[::2]

    def held(x: Any) -> None:
        a.r[...] = a.r + x
        b.r[...] = b.r + 2 * x

    def passed(p: Any, q: Any) -> Any:
        p.r += 1
        q.r += 2
        return p.r.sum() + q.r.sum()

    f = capture(held)
    for n in (1, 2):
        f(1.0)
        assert (a.r == n).all()
        assert (b.r == 2 * n).all()
    assert capture(passed)(a, b) == 3 * a.r.size + 6 * b.r.size
    assert (a.r == 3).all()
    assert (b.r == 6).all()


def test_layers_that_write_their_buffers() -> None:
    model = nn.Sequential(nn.BatchNorm1d(16), nn.Linear(16, 8), nn.BatchNorm1d(8)).train()
    plain = copy.deepcopy(model)
    x = np.random.default_rng(0).standard_normal((5, 16)).astype(np.float32)
    f = nbcomp.jit(model)
    for _ in range(3):
        np.testing.assert_allclose(f(x), plain(x), rtol=1e-4, atol=1e-5)
    for name, value in plain.state_dict().items():
        np.testing.assert_allclose(model.state_dict()[name], value, rtol=1e-4, atol=1e-5)


def test_layers_of_one_kind_are_exported() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4)).eval()
    exported = model.export(nbcomp.f32[2, 4])
    assert len(exported.params) == 8
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(exported(x, *exported.params.values()), model(x), rtol=1e-6)


WEIGHT = np.arange(3, dtype=np.float32)


def weighted(x: Any) -> Any:
    return x * WEIGHT


def of_a_global(WEIGHT: Any) -> Any:
    return weighted(WEIGHT + 1)


class Layered(nn.Module):
    """A parameter of its own is called as the path of another one is, joined."""

    def __init__(self) -> None:
        self.fc = nn.Linear(3, 3, bias=False)
        self.fc_weight = nn.Parameter(np.full(3, 3.0, np.float32))

    def forward(self, x: Any) -> Any:
        return self.fc(x) + self.fc_weight


@pytest.mark.parametrize("function", [of_a_global, Layered()])
def test_what_is_exported_has_names_of_its_own(function: Any) -> None:
    x = np.array([1, 2, 3], np.float32)
    exported = nbcomp.export(function, x)
    np.testing.assert_allclose(exported(x, *exported.params.values()), function(x), rtol=1e-6)
