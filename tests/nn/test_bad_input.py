"""What layers do with arrays without elements and say of arguments that do not fit."""

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
