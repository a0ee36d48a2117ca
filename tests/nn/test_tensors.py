"""Which arrays have the methods of layers inside a model: the same eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn

X = np.array([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]], np.float32)
TABLE = np.array([1.0, -1.0, 2.0], np.float32)


class Model(nn.Module):
    """What it computes is given to it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.linear = nn.Linear(3, 3)
        self.scale = np.array([2.0, -1.0, 0.5], np.float32)
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class Inner(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.relu() + x[1:].relu().sum()


HAVE = {
    "where": lambda m, x: np.where(x > 0, x, 0 * x).relu(),
    "concatenate": lambda m, x: np.concatenate([x, -x]).relu(),
    "stack": lambda m, x: np.stack([x, -x], axis=1).relu(),
    "max": lambda m, x: np.max(x, axis=0).relu(),
    "split": lambda m, x: np.split(x, 3, axis=1)[1].relu(),
    "zeros_like": lambda m, x: np.zeros_like(x).relu() + x,
    "einsum": lambda m, x: np.einsum("ij,kj->ik", x, x).relu(),
    "with a constant": lambda m, x: (np.ones(3, np.float32) - x).relu(),
    "with an attribute": lambda m, x: (m.scale * x).relu(),
    "a parameter": lambda m, x: m.linear.bias.relu() + x,
    "part of a parameter": lambda m, x: m.linear.weight[0].relu() + x,
    "given to a layer": lambda m, x: Inner()(np.ones(3, np.float32)) + x,
    "an attribute given to a layer": lambda m, x: Inner()(m.scale) + x,
    "clamp": lambda m, x: x.clamp(min=0.0, max=2.5) + x.clamp(max=-1.0) + x.clamp_min(0),
    "view": lambda m, x: x.view(3, -1).relu() + x.view((3, 2)) + x.view(-1)[0],
    "permute": lambda m, x: x.permute(1, 0).relu() @ x.permute((0, 1)),
    "expand": lambda m, x: x.sum(dim=0).unsqueeze(0).expand(4, -1).relu(),
    "masked_fill": lambda m, x: x.masked_fill(x < 0, -np.inf).softmax(-1),
    "chunk": lambda m, x: x.chunk(2, dim=1)[1].relu() + x.chunk(3, 1)[0],
    "arithmetic": lambda m, x: x.mul(2).add(1).sub(0.5).div(3).pow(2).neg().exp().sqrt().sin(),
    "products": lambda m, x: x.mm(x.permute(1, 0)).relu() + x.matmul(m.linear.weight).sum(),
    "what it is": lambda m, x: x.contiguous().float().relu() * x.dim() + x.numel(),
}
LACK = {
    "zeros": lambda m, x: np.zeros(3).relu() + x,
    "arange": lambda m, x: (np.arange(3) * 2).relu() + x,
    "a global": lambda m, x: TABLE.relu() + x,
    "an attribute": lambda m, x: m.scale.relu() + x,
    "a number": lambda m, x: x.sum().relu(),
    "the largest": lambda m, x: np.max(x).relu(),
}


def ways(function: Callable[..., Any]) -> list[Any]:
    model = Model(function)
    return [model, nbcomp.jit(model), lambda x: nbcomp.trace(model, X)(x)]


@pytest.mark.parametrize("name", HAVE)
def test_results_of_tensors_are_tensors(name: str) -> None:
    eager, *compiled = ways(HAVE[name])
    want = eager(X)
    assert type(want) is np.ndarray
    for program in compiled:
        np.testing.assert_allclose(program(X), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LACK)
def test_other_arrays_are_plain(name: str) -> None:
    for program in ways(LACK[name]):
        with pytest.raises(AttributeError, match="has no attribute 'relu'"):
            program(X)
