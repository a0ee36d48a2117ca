"""A model's parameters in compiled code: found, counted and told apart as they are in Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.errors import Unsupported

X = np.arange(6, dtype=np.float32).reshape(3, 2)


def exported(function: Any, x: Any) -> Any:
    program = nbcomp.export(function, x)
    return lambda x: program(x, *program.params.values())


WAYS: dict[str, Callable[..., Any]] = {
    "jit": lambda function, x: nbcomp.jit(function),
    "script": lambda function, x: nbcomp.script(function),
    "trace": nbcomp.trace,
    "compile": nbcomp.compile,
    "export": exported,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class Tied(nn.Module):
    """Two layers with the same weight, a parameter and a buffer."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        for layer in (self.a, self.b):
            layer.weight.data = rng.standard_normal((2, 2), np.float32)
            layer.bias.data = rng.standard_normal(2, np.float32)
        self.b.weight = self.a.weight
        self.w = nn.Parameter(np.array([2, 3], np.float32))
        self.register_buffer("buffer", np.ones(2, np.float32))

    def forward(self, x: Any) -> Any:
        total = x * 0
        for _, p in self.named_parameters():
            total = total + p.sum()
        kinds = (
            isinstance(self.w, nn.Parameter),
            isinstance(self.w, np.ndarray),
            isinstance(self.w.data, np.ndarray),
            isinstance(np.asarray(self.w), np.ndarray),
            isinstance(self.w.real, np.ndarray),
            isinstance(self.buffer, nn.Parameter),
            isinstance(self.buffer, nn.Tensor),
            isinstance(x, nn.Tensor),
            isinstance(x + 1, nn.Tensor),
            isinstance(x.sum(), nn.Tensor),
            type(self.w) is nn.Parameter,
            hasattr(self.w, "requires_grad"),
            "w" in dict(self.named_parameters()),
            {p: True for p in self.parameters()}[self.w],
        )
        counts = len(list(self.parameters())), sum(p.size for p in self.parameters())
        state = self.state_dict()
        return total, kinds, counts, state["a.weight"] * 2, self.get_parameter("w") * 3


@ways
def test_a_model_finds_its_parameters(way: Callable[..., Any]) -> None:
    model = Tied()
    weights = model.a.weight.data, model.a.bias.data, model.b.bias.data, model.w.data
    total, kinds, counts, weight, w = way(model, X)(X)
    np.testing.assert_allclose(total, np.full((3, 2), sum(a.sum() for a in weights)), 1e-5)
    t, f = True, False
    assert kinds == (t, f, t, t, t, f, f, t, t, f, t, t, t, t) == model(X)[1]
    assert counts == (4, 10) == model(X)[2]
    np.testing.assert_array_equal(weight, weights[0] * 2)
    np.testing.assert_array_equal(w, [6, 9])


@ways
def test_a_function_loops_over_parameters(way: Callable[..., Any]) -> None:
    model = nn.Linear(2, 2)
    model.weight.data, model.bias.data = np.ones((2, 2), np.float32), np.ones(2, np.float32)

    def f(x: Any) -> Any:
        for p in model.parameters():
            if p.requires_grad:
                x = x + p.sum()
        return x

    np.testing.assert_array_equal(way(f, X)(X), X + 6)


@pytest.mark.parametrize("way", [WAYS["jit"], WAYS["script"]])
def test_another_set_of_parameters_is_noticed(way: Callable[..., Any]) -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            self.a = nn.Parameter(np.ones(2, np.float32))

        def forward(self, x: Any) -> Any:
            return x + sum(p.sum() for p in self.parameters() if p.requires_grad)

    model: Any = Sum()
    compiled = way(model, X)
    np.testing.assert_array_equal(compiled(X), X + 2)
    model.b = nn.Parameter(np.full(2, 5, np.float32))
    np.testing.assert_array_equal(compiled(X), X + 12)
    model.b.requires_grad = False
    np.testing.assert_array_equal(compiled(X), X + 2)
    model.b = model.a
    np.testing.assert_array_equal(compiled(X), X + 2)
    model.b = nn.Parameter(np.full(2, 5, np.float32))
    np.testing.assert_array_equal(compiled(X), X + 12)


@pytest.mark.parametrize("way", [WAYS[w] for w in ("jit", "script", "trace", "compile")])
def test_a_step_of_an_optimiser_writes_the_parameters(way: Callable[..., Any]) -> None:
    model = Tied()

    def step(g: Any) -> None:
        for p in model.parameters():
            p -= g

    def step_of_data(g: Any) -> None:
        for p in model.parameters():
            p.data -= g

    for function in (step, step_of_data):
        before = {name: a.copy() for name, a in model.state_dict().items() if name != "buffer"}
        way(function, np.float32(0))(np.float32(0.5))
        for name, array in before.items():
            np.testing.assert_array_equal(model.state_dict()[name], array - np.float32(0.5))


def test_other_arrays_are_set_by_python_and_said() -> None:
    model = nn.Linear(2, 2)
    model.weight.data, model.bias.data = np.ones((2, 2), np.float32), np.ones(2, np.float32)

    def step(g: Any) -> None:
        for p in model.parameters():
            p.data = p.data - g

    with pytest.raises(Unsupported, match=r"the function sets \.data.*\n.*p -= value"):
        nbcomp.trace(step, np.float32(1))
    with pytest.warns(nbcomp.NumpyFallback, match=r"sets \.data"):
        nbcomp.script(step)(np.float32(1))
    np.testing.assert_array_equal(model.weight.data, np.zeros((2, 2)))
    nbcomp.jit(step)(np.float32(1))
    np.testing.assert_array_equal(model.weight.data, np.full((2, 2), -1))


@pytest.mark.parametrize("way", [WAYS[w] for w in ("jit", "script", "trace", "compile")])
def test_a_parameter_is_returned_as_it_is(way: Callable[..., Any]) -> None:
    model = nn.Linear(2, 2)

    def f(x: Any) -> Any:
        return model.weight, model.weight.data, list(model.parameters())

    weight, data, parameters = way(f, X)(X)
    assert weight is model.weight
    assert data is model.weight.data
    assert parameters[0] is model.weight
    assert parameters[1] is model.bias
