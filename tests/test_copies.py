"""Compiled functions are copied and pickled as functions are; what cannot be called is told."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn

X = np.ones(2)


def double(x: Any) -> Any:
    return x * 2


def total(x: Any) -> Any:
    s = 0.0
    for k in range(len(x)):
        s += x[k]
    return s


@nbcomp.jit
def decorated(x: Any) -> Any:
    return x * 3


@nbcomp.script
def scripted(x: Any) -> Any:
    return x * 4


class Model(nn.Module):
    def __init__(self) -> None:
        self.act = nbcomp.jit(double)
        self.fc = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.fc(self.act(x))


FUNCTIONS = [nbcomp.jit(double), nbcomp.script(total), decorated, scripted]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions(function: Any) -> None:
    wanted = function(X)
    assert copy.copy(function) is function
    assert copy.deepcopy(function) is function
    read = pickle.loads(pickle.dumps(function))
    assert type(read).__name__ == type(function).__name__
    np.testing.assert_array_equal(read(X), wanted)
    np.testing.assert_array_equal(function.__wrapped__(X), wanted)


def test_models_that_hold_compiled_functions() -> None:
    model = Model()
    wanted = model(X)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(twin(X), wanted)
        twin.fc.bias[...] = 9
        np.testing.assert_allclose(model(X), wanted)


def test_a_copy_of_a_compiled_model_is_that_of_a_copy() -> None:
    model = nbcomp.jit(Model())
    wanted = model(X)
    twin = copy.deepcopy(model)
    twin.__wrapped__.fc.weight[...] = 0
    twin.__wrapped__.fc.bias[...] = 7
    np.testing.assert_array_equal(twin(X), [7, 7])
    np.testing.assert_array_equal(model(X), wanted)


def test_machine_code_is_shared_and_not_pickled() -> None:
    compiled = nbcomp.compile(double, X)
    assert copy.deepcopy([compiled])[0] is compiled
    with pytest.raises(TypeError, match="machine code"):
        pickle.dumps(compiled)


def test_functions_of_a_notebook_go_to_another_process() -> None:
    """As dask and joblib send them: by their code."""
    cloudpickle = pytest.importorskip("cloudpickle")
    module: dict[str, Any] = {"__name__": "__main__"}
    exec("import nbcomp\n@nbcomp.jit\ndef f(x):\n    return x * 5\n", module)
    code = (
        "import pickle, sys; import numpy as np;"
        "print(pickle.load(sys.stdin.buffer)(np.ones(2)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=cloudpickle.dumps(module["f"]),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=True,
    )
    assert done.stdout.decode().strip() == "[5.0, 5.0]"


@pytest.mark.parametrize("value", [5, None, "f", X])
@pytest.mark.parametrize("make", [nbcomp.jit, nbcomp.script])
def test_what_cannot_be_called_is_told_at_once(make: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="takes a function or another callable, not"):
        make(value)


class Config(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __call__(self, x: Any) -> Any:
        return x * self["k"]


class Anything:
    def __getattr__(self, name: str) -> Any:
        return 7

    def __call__(self, x: Any) -> Any:
        return x * 2


class Incomparable:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("no")

    def __call__(self, x: Any) -> Any:
        return x * 2


@pytest.mark.parametrize("value", [Config(k=2), Anything(), Incomparable()], ids=lambda v: type(v))
@pytest.mark.parametrize("make", [nbcomp.jit, nbcomp.script])
@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
def test_objects_that_answer_anything(make: Any, value: Any) -> None:
    function = make(value)
    assert function.__name__ == type(value).__name__
    np.testing.assert_array_equal(function(X), X * 2)


@pytest.mark.parametrize("value", [Anything(), Incomparable()], ids=lambda v: type(v))
def test_objects_that_answer_anything_are_compiled(value: Any) -> None:
    compiled = nbcomp.compile(value, X)
    np.testing.assert_array_equal(compiled(X), X * 2)


def test_modules_keep_their_names() -> None:
    """They answer no more than they have."""
    model = nn.Sequential(nn.Linear(2, 2))
    assert nbcomp.jit(model).__wrapped__ is model
    assert nbcomp.compile(model, X.astype(np.float32)).name == "Sequential"
