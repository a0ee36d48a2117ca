"""What layers do with arrays without elements and say of arguments that do not fit."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn

EMPTY: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [
    (nn.GroupNorm(2, 4), (0, 4, 3), (0, 4, 3)),
    (nn.GroupNorm(2, 4), (0, 4), (0, 4)),
    (nn.InstanceNorm1d(4), (0, 4, 3), (0, 4, 3)),
    (nn.InstanceNorm2d(4, affine=True), (0, 4, 3, 2), (0, 4, 3, 2)),
    (nn.BatchNorm2d(4), (0, 4, 2, 2), (0, 4, 2, 2)),
    (nn.LayerNorm((3, 4)), (0, 3, 4), (0, 3, 4)),
    (nn.RMSNorm((3, 4)), (0, 3, 4), (0, 3, 4)),
    (nn.Unflatten(1, (2, -1)), (0, 4), (0, 2, 2)),
    (nn.Flatten(), (0, 4, 3), (0, 12)),
]


@pytest.mark.parametrize(("layer", "shape", "wanted"), EMPTY)
def test_no_rows(layer: Any, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    for program in (layer, nbcomp.jit(layer), nbcomp.trace(layer, x)):
        found = program(x)
        assert (found.shape, found.dtype) == (wanted, np.float32)


def test_buffers_have_names_of_their_own() -> None:
    layer = nn.Linear(2, 3)
    for name in ("weight", "a.b", "", "forward"):
        with pytest.raises(KeyError):
            layer.register_buffer(name, np.zeros(2))
    with pytest.raises(TypeError, match="string"):
        layer.register_buffer(3, np.zeros(2))  # type: ignore[arg-type]
    layer.register_buffer("count", np.zeros(2))
    layer.register_buffer("count", np.ones(2))
    assert list(dict(layer.named_buffers())) == ["count"]


def test_a_state_is_a_dict() -> None:
    with pytest.raises(TypeError, match=r"a state is a dict of arrays by name.* not a list"):
        nn.Linear(2, 3).load_state_dict([1])  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1.5, "2", True, np.float64(2)])
def test_threads_are_whole_numbers(count: Any) -> None:
    with pytest.raises(TypeError, match="the number of threads is a whole number or None"):
        nbcomp.set_threads(count)


@pytest.mark.parametrize(
    "make", [lambda n: nn.Linear(n, 3), lambda n: nn.LSTM(2, n), lambda n: nn.Embedding(n, 2)]
)
def test_sizes_are_whole_numbers(make: Any) -> None:
    with pytest.raises(ValueError, match="the sizes of a layer are 0 or more, not -1"):
        make(-1)
    for size in ("3", 2.5, True):
        with pytest.raises(TypeError, match="the sizes of a layer are whole numbers"):
            make(size)


def test_another_number_of_channels() -> None:
    for layer in (nn.BatchNorm2d(4), nn.BatchNorm2d(4).train()):
        with pytest.raises(ValueError, match=r"BatchNorm2d\(4\) got 3 channels"):
            layer(np.zeros((2, 3, 2, 2), np.float32))


def test_traced_programs_are_copied_but_not_pickled() -> None:
    x, layer = np.ones((1, 2), np.float32), nn.Linear(2, 3)
    traced = nbcomp.trace(layer, x)
    before = traced(x)
    deep, shallow = copy.deepcopy(traced), copy.copy(traced)
    layer.weight[...] = layer.bias[...] = 1
    np.testing.assert_array_equal(traced(x), [[3, 3, 3]])
    np.testing.assert_array_equal(shallow(x), [[3, 3, 3]])
    np.testing.assert_array_equal(deep(x), before)
    with pytest.raises(
        TypeError, match="Linear is a program in this process and cannot be pickled"
    ):
        pickle.dumps(traced)
    with pytest.raises(TypeError, match="sum_ reads what cannot be copied"):
        copy.deepcopy(nbcomp.trace(sum_, x))


WEIGHT = np.ones(2, np.float32)


def sum_(x: Any) -> Any:
    return x + WEIGHT


@pytest.mark.parametrize(
    ("make", "shape", "words"),
    [
        (lambda: nn.Linear(5, 4), (3, 6), r"Linear\(in_features=5.*\(..., 5\), not \(3, 6\)"),
        (lambda: nn.LayerNorm(5), (3, 6), r"LayerNorm\(\(5,\).*\(..., 5\), not \(3, 6\)"),
        (lambda: nn.LayerNorm((2, 5)), (5,), r"LayerNorm.*\(..., 2, 5\), not \(5,\)"),
        (lambda: nn.RMSNorm(5), (3, 6), r"RMSNorm.*\(..., 5\), not \(3, 6\)"),
        (lambda: nn.GroupNorm(2, 4), (3, 6), r"GroupNorm\(4\) got 6 channels: \(3, 6\)"),
        (lambda: nn.LSTM(5, 3), (2, 1, 6), r"LSTM\(5, 3\).*\(..., 5\), not \(2, 1, 6\)"),
        (lambda: nn.GRUCell(5, 3), (2, 6), r"GRUCell\(5, 3\).*\(..., 5\), not \(2, 6\)"),
    ],
)
def test_another_width_is_told_in_the_words_of_the_layer(make: Any, shape: Any, words: str) -> None:
    layer, x = make(), np.zeros(shape, np.float32)
    for program in (layer, nbcomp.jit(layer)):
        with pytest.raises(ValueError, match=words):
            program(x)


@pytest.mark.parametrize("name", ["Conv2d", "ConvTranspose1d", "MaxPool2d", "BatchNorm1d", "LSTM"])
def test_errors_name_the_layer_that_was_called(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}.__init__\(\) got an unexpected keyword"):
        getattr(nn, name)(3, 2, 2, kernel=1)
