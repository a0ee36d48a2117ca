"""Models whose `forward` has graph breaks: compiled in parts, with Python between them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn

SEEN: list[Any] = []


class Base(nn.Module):
    """Two layers, and how often it was called."""

    def __init__(self) -> None:
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.count = 0


class Chooses(Base):
    def forward(self, x: Any) -> Any:
        y = self.first(x).relu()
        if y.mean() > 0:
            y = y * 2
            self.count += 1
        return self.second(y).relu()


class Tells(Base):
    def forward(self, x: Any) -> Any:
        y = self.first(x)
        SEEN.append(y.relu().max(dim=0).tolist())
        return self.second(y).relu()


class Counts(Base):
    def forward(self, x: Any) -> Any:
        y = self.first(x).relu()
        self.count += 1
        return self.second(y), {"inner": [y]}


MODELS = [Chooses, Tells, Counts]
X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)


class Stack(nn.Module):
    def __init__(self) -> None:
        self.blocks = nn.ModuleList([Chooses() for _ in range(18)])

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x) - x
        return x


class Again(Base):
    def forward(self, x: Any, depth: int = 2) -> Any:
        x = self.first(x).relu()
        self.count += 1
        return self.forward(x, depth - 1) if depth else self.second(x)


def flat(result: Any) -> list[Any]:
    """The arrays of what these models return."""
    return [result[0], *result[1]["inner"]] if isinstance(result, tuple) else [result]


def same(found: Any, wanted: Any) -> None:
    """The same numbers, in plain arrays."""
    for a, b in zip(flat(found), flat(wanted), strict=True):
        assert type(a) is np.ndarray
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_runs_in_parts(kind: type[Base]) -> None:
    model = kind()
    compiled = nbcomp.jit(model)
    for _ in range(3):
        same(compiled(X), model(X))
    assert compiled.breaks
    assert len(compiled.parts.compiled) >= 2
    assert not compiled.fallbacks
    model.second.weight[...] = 0
    same(compiled(-X), model(-X))


@pytest.mark.parametrize("kind", MODELS)
def test_a_class_runs_in_parts(kind: type[Base]) -> None:
    compiled = nbcomp.jit(type("Compiled", (kind,), {"forward": kind.forward}))
    model, plain = compiled(), kind()
    plain.load_state_dict(model.state_dict())
    for _ in range(3):
        same(model(X), plain(X))
    assert len(compiled.forward.parts.compiled) >= 2
    assert not compiled.forward.fallbacks


def inner_parts(compiled: Any) -> int:
    """How many parts the functions have that a function in parts calls."""
    inner = compiled.parts.helpers
    return sum(len(p.parts.compiled) + inner_parts(p) for p in inner if p.parts is not None)


@pytest.mark.parametrize(
    "model",
    [
        Chooses(),
        Tells(),
        nn.Sequential(nn.Linear(4, 4), Chooses(), nn.ReLU(), Tells()),
        nn.Sequential({"one": nn.Sequential(Chooses()), "two": nn.Linear(4, 4)}),
        Stack(),
        Again(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_in_functions_and_models_run_in_parts(model: Any) -> None:
    def function(x: Any, model: Any = model) -> Any:
        return model(x * 2) + 1

    class Outer(nn.Module):
        def __init__(self) -> None:
            self.inner = model

        def forward(self, x: Any) -> Any:
            return self.inner(x).relu() + x.sum(dim=0)

    for program in (function, Outer(), model):
        compiled = nbcomp.jit(program)
        for _ in range(3):
            same(compiled(X), program(X))
        assert not compiled.fallbacks
        if program is not model:
            assert inner_parts(compiled) >= 2
    variants = [r.variants for r in compiled.parts.regions.values()]
    assert len(max(variants, key=len)) <= 3  # whatever the number of blocks


def test_a_longer_sequence_is_noticed() -> None:
    compiled = nbcomp.jit(nn.Sequential(nn.Linear(4, 4), Chooses()))
    same(compiled(X), compiled.__wrapped__(X))
    compiled.__wrapped__.append(nn.Linear(4, 4))
    for _ in range(2):
        same(compiled(X), compiled.__wrapped__(X))


def test_a_forward_of_another_model_is_its_own() -> None:
    one, two = Counts(), Counts()
    one.forward = two.forward  # type: ignore[method-assign]
    with pytest.warns(nbcomp.NumpyFallback, match="sets Counts.forward"):
        same(nbcomp.jit(one)(X), two(X))


def test_effects_happen_once() -> None:
    model = Counts()
    compiled = nbcomp.jit(model)
    for calls in range(1, 6):
        compiled(X)
        assert model.count == compiled.count == calls


def test_another_forward_is_noticed() -> None:
    model = Chooses()
    compiled = nbcomp.jit(model)
    compiled(X), compiled(X)
    model.forward = lambda x: x - 1  # type: ignore[method-assign]
    for _ in range(2):
        same(compiled(X), X - 1)
    del model.forward
    same(compiled(X), model(X))


def test_inside_another_model_arrays_are_tensors() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            self.inner = nbcomp.jit(Chooses())

        def forward(self, x: Any) -> Any:
            return self.inner(x).relu() + 1

    outer = Outer()
    for _ in range(3):
        same(outer(X), np.maximum(outer.inner.__wrapped__(X), 0) + 1)


def test_a_compiled_model_has_the_models_attributes() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).train()
    compiled = nbcomp.jit(model)
    assert compiled.training
    assert compiled.eval() is model
    assert list(compiled.state_dict()) == ["0.weight", "0.bias"]
    assert list(compiled.parameters()) == list(model.parameters())
    same(copy.deepcopy(compiled)(X), model(X))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        compiled.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="'Jit' object has no attribute 'training'"):
        nbcomp.jit(np.sin).training  # noqa: B018
