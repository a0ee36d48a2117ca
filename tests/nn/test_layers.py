"""Every layer, eager and compiled, against PyTorch's outputs for PyTorch's own states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from tests.nn.cases import CASES, KEYWORDS, arrays, flat

FILE = Path(__file__).parent / "references.npz"


@pytest.fixture(scope="module")
def references() -> dict[str, Any]:
    with np.load(FILE, allow_pickle=False) as file:
        return dict(file)


def _part(references: dict[str, Any], name: str, part: str) -> dict[str, Any]:
    lead = f"{name}/{part}/"
    return {k.removeprefix(lead): v for k, v in references.items() if k.startswith(lead)}


def close(found: Any, expected: list[Any]) -> None:
    found = flat(found)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert type(ours) is np.ndarray
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6, strict=True)


@pytest.mark.parametrize("name", CASES)
def test_layer_is_pytorch_s(name: str, references: dict[str, Any]) -> None:
    module = CASES[name][0](nn)
    state = _part(references, name, "state")
    assert list(module.state_dict()) == list(state)
    assert module.load_state_dict(state) == ([], [])
    expected = list(_part(references, name, "output").values())
    inputs, keywords = arrays(name), KEYWORDS[name]
    close(module(*inputs, **keywords), expected)
    compiled = nbcomp.jit(module)
    close(compiled(*inputs, **keywords), expected)
    assert not compiled.fallbacks
