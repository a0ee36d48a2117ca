"""The nn dialect against scipy and against formulas written another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as special

from nbcomp.errors import Unsupported
from nbcomp.graph.op import REGISTRY
from nbcomp.ops import nn
from nbcomp.ops.lookup import find
from tests.ops.evaluate import input_node, of_nodes, same


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.normal(size=(5, 37))


def _close(op: Any, expected: Any, *arrays: Any) -> None:
    np.testing.assert_allclose(op.reference(*arrays), expected, rtol=1e-12, atol=1e-14)


def test_activations(x: Any) -> None:
    _close(nn.Sigmoid(), special.expit(x), x)
    _close(nn.Silu(), x * special.expit(x), x)
    _close(nn.Softplus(), np.log1p(np.exp(x)), x)
    _close(nn.Gelu(), x * special.ndtr(x), x)
    assert np.abs(nn.Gelu(tanh=True).reference(x) - x * special.ndtr(x)).max() < 1e-3
    _close(nn.Elu(0.5), np.where(x > 0, x, 0.5 * (np.exp(x) - 1)), x)
    _close(nn.HardSwish(), x * np.clip(x + 3, 0, 6) / 6, x)
    assert np.isnan(nn.Relu().reference(np.float32("nan")))


def test_softmax(x: Any) -> None:
    for axis in (0, 1, -1):
        _close(nn.Softmax(axis), special.softmax(x, axis), x)
        _close(nn.LogSoftmax(axis), special.log_softmax(x, axis), x)
        _close(nn.LogSumExp(axis), special.logsumexp(x, axis), x)
    with np.errstate(divide="ignore"):
        nothing = np.full(2, -np.inf)
        _close(nn.LogSumExp(), special.logsumexp(nothing), nothing)


def test_normalisations(x: Any, rng: np.random.Generator) -> None:
    w, b = rng.normal(size=(2, 37))
    z = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    _close(nn.LayerNorm(), z * w + b, x, w, b)
    _close(nn.RmsNorm(), x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * w, x, w)
    m, v = rng.normal(size=37), rng.random(37)
    _close(nn.BatchNorm(), (x - m) / np.sqrt(v + 1e-5) * w + b, x, m, v, w, b)


def test_layers(rng: np.random.Generator) -> None:
    q, k, v = rng.normal(size=(3, 2, 4, 8))
    weights = special.softmax(np.einsum("bnd,bmd->bnm", q, k) / np.sqrt(8), -1)
    _close(nn.Attention(), np.einsum("bnm,bmd->bnd", weights, v), q, k, v)
    w, b = rng.normal(size=(3, 8)), rng.normal(size=3)
    _close(nn.Linear(), np.einsum("bnd,od->bno", q, w) + b, q, w, b)


def test_float32_stays_float32(x: Any) -> None:
    x = x.astype(np.float32)
    for name, op in REGISTRY.items():
        if op.dialect == "nn" and issubclass(op, nn.Activation | nn.AlongAxis):
            assert op().infer(input_node(x).type).dtype == np.float32, name


def test_trace_takes_attributes(x: Any) -> None:
    node = input_node(x)
    traced = nn.Softmax.trace(node, axis=0)
    assert traced.op == nn.Softmax(-2)
    assert nn.LeakyRelu.trace(node, slope=0.5).op == nn.LeakyRelu(0.5)
    with pytest.raises(np.exceptions.AxisError):
        nn.Softmax.trace(node, axis=2)


@pytest.mark.parametrize("name", ["erf", "expit"])
def test_functions_of_scipy(name: str, x: Any) -> None:
    function = getattr(special, name)
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.bool_):
        array = x.astype(dtype)
        node = input_node(array)
        known = find(function)
        assert known is not None
        (result,) = of_nodes([known.trace(node)], [node], [array])
        same(result, function(array), 4)
    with pytest.raises(Unsupported, match="out="):
        known.trace(node, out=node)


def test_functions_nobody_knows() -> None:
    assert find(special.jv) is None
    assert find(print) is None
    assert find(np.exp) is not None
