"""The networks of the benchmark: built, with weights, answering as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from benchmarks.network_models import NETWORKS, weights_of
from benchmarks.networks import sample
from nbcomp import nn


def loaded(name: str) -> tuple[Any, list[Any]]:
    row = NETWORKS[name]
    model = row.build(nn).eval()
    shapes = {key: np.shape(value) for key, value in model.state_dict().items()}
    model.load_state_dict(weights_of(shapes))
    return model, row.inputs()


@pytest.mark.parametrize("name", ["conv1_1024", "depthwise", "gpt2_decode", "lstm"])
def test_answers_are_numpy_s(name: str) -> None:
    model, inputs = loaded(name)
    wanted, got = np.array(sample(model(*inputs))), np.array(sample(nbcomp.jit(model)(*inputs)))
    assert np.abs(got - wanted).max() <= NETWORKS[name].rtol * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_networks_are_convolutions_with_what_follows_them(name: str) -> None:
    model, inputs = loaded(name)
    made = nbcomp.compile(model, *inputs)
    kinds = [n.op.name for g in made.groups for n in g.nodes]
    assert "convolution_last" in kinds
    assert "pad" not in kinds
    convolutions = ("convolution", "convolution_last")
    alone = [g for g in made.groups if g.kind == "contract" and g.nodes[0].op.name in convolutions]
    assert len(alone) <= 4  # the branches that are added to others, and what a mean follows


def test_weights_are_the_same_for_everybody() -> None:
    first, again = weights_of({"a.weight": (3, 4)}), weights_of({"a.weight": (3, 4)})
    np.testing.assert_array_equal(first["a.weight"], again["a.weight"])
