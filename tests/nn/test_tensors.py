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


# What PyTorch's users write -> NumPy's answer.
AS_IN_PYTORCH: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda h: h.flatten(1), lambda x: x.reshape(2, 12)),
    (lambda h: h.flatten(start_dim=0, end_dim=1), lambda x: x.reshape(6, 4)),
    (lambda h: h.flatten(), lambda x: x.ravel()),
    (lambda h: h.flatten("F"), lambda x: x.ravel("F")),
    (lambda h: h.unflatten(-1, (2, 2)), lambda x: x.reshape(2, 3, 2, 2)),
    (lambda h: h.transpose(1, 2), lambda x: np.swapaxes(x, 1, 2)),
    (lambda h: h.transpose(dim0=0, dim1=-1), lambda x: np.swapaxes(x, 0, -1)),
    (lambda h: h.transpose(2, 0, 1), lambda x: np.transpose(x, (2, 0, 1))),
    (lambda h: h.transpose(), lambda x: x.T),
    (lambda h: h[0].t(), lambda x: x[0].T),
    (lambda h: h[:1].squeeze(dim=0), lambda x: x[0]),
    (lambda h: h.squeeze(1), lambda x: x),
    (lambda h: h[:1].squeeze(), lambda x: x[0]),
    (lambda h: h.unsqueeze(dim=1), lambda x: x[:, None]),
    (lambda h: h.mean([1, 2]), lambda x: x.mean((1, 2))),
    (lambda h: h.sum(-1, True), lambda x: x.sum(-1, keepdims=True)),
    (lambda h: h.var(dim=1, unbiased=True), lambda x: x.var(1, ddof=1)),
    (lambda h: h.std(dim=1, correction=1), lambda x: x.std(1, ddof=1)),
    (lambda h: h.amax(dim=1), lambda x: x.max(1)),
    (lambda h: h.argmax(dim=-1, keepdim=True), lambda x: x.argmax(-1, keepdims=True)),
    (lambda h: h.cumsum(dim=1), lambda x: x.cumsum(1)),
    (lambda h: h.norm(dim=-1), lambda x: np.linalg.norm(x, axis=-1)),
    (lambda h: h.split(2, dim=-1)[1], lambda x: x[..., 2:]),
    (lambda h: h.split([1, 2], 1)[1], lambda x: x[:, 1:]),
    (lambda h: h.unbind(1)[2], lambda x: x[:, 2]),
    (lambda h: h.tile(2, 1, 1), lambda x: np.tile(x, (2, 1, 1))),
    (lambda h: h.repeat_interleave(2, dim=1), lambda x: np.repeat(x, 2, 1)),
    (lambda h: h[:1].expand_as(h), lambda x: np.broadcast_to(x[:1], x.shape)),
    (lambda h: h.where(h > 0, 0.0), lambda x: np.where(x > 0, x, np.float32(0))),
    (lambda h: h.eq(h).logical_not(), lambda x: np.zeros(x.shape, bool)),
    (lambda h: h.add(h, alpha=2), lambda x: x + x * 2),
    (lambda h: h.flip(dims=[1]), lambda x: x[:, ::-1]),
    (lambda h: h.narrow(1, 0, 2).select(-1, 0), lambda x: x[:, :2, 0]),
    (lambda h: h.index_select(1, np.array([0, 2])), lambda x: x[:, [0, 2]]),
    (lambda h: h.diagonal(dim1=1, dim2=2), lambda x: np.diagonal(x, 0, 1, 2)),
    (lambda h: h.to(np.float64), lambda x: x.astype(np.float64)),
    (lambda h: h.clone().mul_(2).clamp_(min=0).detach(), lambda x: np.maximum(x * 2, 0)),
]


def test_methods_take_what_pytorch_takes() -> None:
    x = np.sin(np.arange(24, dtype=np.float32)).reshape(2, 3, 4)
    wanted = [numpys(x) for _, numpys in AS_IN_PYTORCH]
    eager = Model(lambda m, h: tuple(method(h) for method, _ in AS_IN_PYTORCH))
    for program in (eager, nbcomp.jit(eager)):
        for number, (got, want) in enumerate(zip(program(x), wanted, strict=True)):
            assert got.dtype == want.dtype, number
            np.testing.assert_allclose(got, want, 1e-5, 1e-6, err_msg=str(number))


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda m, x: x.repeat(2, 1, 1), r"write x\.tile\(2, 1, 1\)"),
        (lambda m, x: x.argsort(descending=True), r"np\.flip"),
        (lambda m, x: x.gather(1, np.zeros((1, 2), np.int64)), "but along dim"),
    ],
)
def test_what_pytorch_means_otherwise_is_said(call: Callable[..., Any], hint: str) -> None:
    with pytest.raises((TypeError, ValueError), match=hint):
        Model(call)(X)
