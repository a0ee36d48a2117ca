"""Shapes and arguments that layers refuse, in their words, as PyTorch 2.13 refuses them; and one
sample without the batch's axis where PyTorch takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
import nbcomp.nn.functional as F
from nbcomp import nn


def a(*shape: int) -> Any:
    """Random numbers of that shape."""
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def pair(*shape: int) -> Any:
    """The states of an LSTM."""
    return a(*shape), a(*shape)


SAMPLES = {1: (4, 9), 2: (4, 5, 6), 3: (4, 5, 6, 3)}


def windows(space: int) -> list[Any]:
    """The layers over so many axes that take one sample."""
    norm = getattr(nn, f"InstanceNorm{space}d")
    learned = [getattr(nn, f"{n}{space}d")(4, 3, 2) for n in ("Conv", "ConvTranspose")]
    pools = ("MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool")
    tracked = norm(4, affine=True, track_running_stats=True)
    return [norm(4), tracked, *learned, *(getattr(nn, f"{n}{space}d")(2) for n in pools)]


@pytest.mark.parametrize("space", SAMPLES)
def test_one_sample_is_a_batch_of_one(space: int) -> None:
    x = a(*SAMPLES[space])
    for layer in windows(space):
        wanted = layer(x[None])[0]
        for program in (layer, nbcomp.jit(layer)):
            np.testing.assert_allclose(program(x), wanted, rtol=1e-5, atol=1e-6)
        for wrong in (x[0], np.zeros((2, 2, *x.shape), np.float32)):
            with pytest.raises(ValueError, match=r"takes"):
                layer(wrong)


def test_instances_of_one_sample_are_normalised_over_its_length() -> None:
    x = np.array([[1, 2, 3], [4, 4, 7]], np.float32)
    wanted = [[-1.2247356, 0, 1.2247356], [-0.7071059, -0.7071059, 1.4142118]]  # PyTorch's
    np.testing.assert_allclose(nn.InstanceNorm1d(2)(x), wanted, rtol=1e-5, atol=1e-6)


ATTENTION = nn.MultiheadAttention(8, 2)
S = F.scaled_dot_product_attention
NO_BATCH, ONE_BATCH = a(4, 8), a(4, 4, 8)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "layer_norm": (lambda: F.layer_norm(a(2, 4), (7,)), r"layer_norm over \(7,\).*\(2, 4\)"),
    "layer_norm_w": (lambda: F.layer_norm(a(2, 4), 4, a(3)), r"weight of shape \(4,\), not \(3,\)"),
    "rms_norm": (lambda: F.rms_norm(a(2, 4), (7,)), r"rms_norm over \(7,\)"),
    "group_norm": (lambda: F.group_norm(a(2, 4, 3), 2, a(3)), r"group_norm takes weight"),
    "batch_norm": (lambda: F.batch_norm(a(2, 4), a(4), a(4), a(1)), r"batch_norm takes weight"),
    "prelu": (lambda: nn.PReLU(3)(a(2, 4, 3)), r"PReLU with 3 weights takes 3 channels"),
    "prelu_1d": (lambda: nn.PReLU(3)(a(3)), r"PReLU with 3 weights takes 3 channels"),
    "glu": (lambda: F.glu(a(3, 5)), r"glu halves axis -1, which has 5"),
    "linear_bias": (lambda: F.linear(a(2, 7), a(5, 7), a(2, 1)), r"takes a bias of \(5,\)"),
    "linear": (lambda: F.linear(a(2, 7), a(5, 6)), r"linear with a weight of shape \(5, 6\)"),
    "bilinear": (lambda: F.bilinear(a(2, 7), a(2, 6), a(5, 7, 3)), r"bilinear with a weight"),
    "keys": (lambda: S(a(3, 4), a(3, 5), a(3, 5)), r"queries and keys are of one size"),
    "values": (lambda: S(a(3, 4), a(3, 4), a(5, 4)), r"as many keys as values"),
    "batches": (lambda: S(a(2, 3, 4), a(3, 3, 4), a(3, 3, 4)), r"their batches are one"),
    "vectors": (lambda: S(a(4), a(4), a(4)), r"have two axes or more"),
    "mask": (lambda: S(a(3, 4), a(3, 4), a(3, 4), a(5, 5)), r"mask of shape \(..., 3, 3\)"),
    "causal": (
        lambda: S(a(3, 4), a(3, 4), a(3, 4), a(3, 3), is_causal=True), r"attn_mask or is_causal"
    ),
    "heads": (lambda: ATTENTION(a(4, 2, 8), a(5, 2, 8), a(6, 2, 8)), r"MultiheadAttention: the b"),
    "heads_batch": (lambda: ATTENTION(a(4, 2, 8), a(5, 3, 8), a(5, 3, 8)), r"does not fit"),
    "heads_axes": (lambda: ATTENTION(NO_BATCH, ONE_BATCH, ONE_BATCH), r"MultiheadAttention takes"),
    "padding": (
        lambda: ATTENTION(*[ONE_BATCH] * 3, key_padding_mask=np.ones((1, 4), bool)),
        r"key_padding_mask of shape \(4, 4\), not \(1, 4\)",
    ),
    "attn_mask": (
        lambda: ATTENTION(*[ONE_BATCH] * 3, attn_mask=np.ones((1, 4), bool)),
        r"attn_mask of shape \(4, 4\), not \(1, 4\)",
    ),
    "attn_mask_3d": (
        lambda: ATTENTION(*[ONE_BATCH] * 3, attn_mask=np.ones((3, 4, 4), bool)),
        r"attn_mask of shape \(8, 4, 4\), not \(3, 4, 4\)",
    ),
    "no_steps": (lambda: nn.LSTM(3, 4)(a(0, 2, 3)), r"LSTM takes a sequence of one step or more"),
    "more_states": (lambda: nn.GRU(3, 4)(a(5, 2, 3), a(3, 2, 4)), r"GRU takes .*\(1, 2, 4\), not"),
    "few_states": (lambda: nn.RNN(3, 4, 2)(a(5, 2, 3), a(1, 2, 4)), r"RNN takes .*\(2, 2, 4\), n"),
    "cells": (lambda: nn.LSTM(3, 4)(a(5, 2, 3), pair(3, 2, 4)), r"LSTM takes states of shape"),
    "cell": (lambda: nn.GRUCell(3, 4)(a(2, 3), a(1, 4)), r"GRUCell takes states of shape \(2, 4\)"),
    "unflatten": (lambda: nn.Unflatten(1, (4, -1))(a(2, 6)), r"6 elements do not make \(4, -1\)"),
    "unflatten_all": (lambda: nn.Unflatten(1, (4, 2))(a(2, 6)), r"6 elements do not make"),
    "pad_odd": (lambda: F.pad(a(2, 3, 4), (1, 2, 3)), r"pad takes a pair of margins"),
    "pad_axes": (lambda: F.pad(a(2, 3), (1,) * 8), r"pad takes a pair of margins"),
    "reflect": (lambda: F.pad(a(2, 3, 4), (4, 0), "reflect"), r"takes margins from 0 to 3"),
    "circular": (lambda: F.pad(a(2, 3, 4), (5, 0), "circular"), r"takes margins from 0 to 4"),
    "one_hot": (lambda: F.one_hot(np.array([0, 5]), 3), r"one_hot of 3 classes"),
    "one_hot_below": (lambda: F.one_hot(np.array([0, -1]), 3), r"one_hot of 3 classes"),
    "upsample": (lambda: nn.Upsample(scale_factor=0.01)(a(1, 1, 5, 5)), r"\(5, 5\) to \(0, 0\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_layers_words(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        call()


def test_masks_say_whether_they_hide_or_are_added() -> None:
    ones = np.ones((4, 4), int)
    for call in (
        lambda: S(NO_BATCH, NO_BATCH, NO_BATCH, ones),
        lambda: ATTENTION(NO_BATCH, NO_BATCH, NO_BATCH, attn_mask=ones),
        lambda: ATTENTION(NO_BATCH, NO_BATCH, NO_BATCH, key_padding_mask=ones[0]),
    ):
        with pytest.raises(TypeError, match="is of bool or floating point, not int64"):
            call()


def test_other_kinds_of_arguments() -> None:
    with pytest.raises(TypeError, match=r"the state of LSTM is a pair \(h, c\)"):
        nn.LSTM(3, 4)(a(5, 2, 3), a(1, 2, 4))
    with pytest.raises(TypeError, match=r"\(2, 3\) has no dtype: .*nbcomp.f32\[2, 3\]"):
        nn.Linear(3, 2).export((2, 3))
    with pytest.raises(IndexError, match=r"Flatten.*has no axis 1"):
        nn.Flatten()(a(6))
    with pytest.raises(IndexError, match=r"Unflatten.*has no axis 5"):
        nn.Unflatten(5, (2, 3))(a(2, 6))


def test_negative_margins_cut_off() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = F.pad(x, (-1, 2, 1, -2))
    np.testing.assert_array_equal(found, [[0, 0, 0, 0, 0], [1, 2, 3, 0, 0]])
    np.testing.assert_array_equal(nbcomp.jit(lambda x: F.pad(x, (-1, 2, 1, -2)))(x), found)


def test_classes_up_to_the_largest() -> None:
    labels = np.array([[0, 2], [1, 0]])
    np.testing.assert_array_equal(F.one_hot(labels), np.eye(3, dtype=np.int64)[labels])
    compiled = nbcomp.jit(lambda i: F.one_hot(i, 4))
    np.testing.assert_array_equal(compiled(labels), np.eye(4, dtype=np.int64)[labels])
    for wrong in (4, -1):
        with pytest.raises(ValueError, match="takes indices from 0 to 3"):
            compiled(np.array([[0, wrong], [1, 0]]))


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Softmin"])
def test_the_axis_of_softmax_is_pytorchs(name: str) -> None:
    layer = getattr(nn, name)
    for shape, axis in {(3,): 0, (3, 4): 1, (2, 3, 4): 0, (2, 3, 4, 5): 1}.items():
        x = a(*shape)
        for program in (layer(), nbcomp.jit(layer())):
            np.testing.assert_allclose(program(x), layer(axis)(x), rtol=1e-5)


def test_checks_leave_lengths_open() -> None:
    """One program of attention for all batches, whose mask has to fit."""
    heads = nbcomp.jit(lambda x, m: ATTENTION(x, x, x, key_padding_mask=m)[0])
    for batch in (2, 3, 5, 7):
        x, mask = a(4, batch, 8), np.zeros((batch, 4), bool)
        np.testing.assert_allclose(
            heads(x, mask), ATTENTION(x, x, x, key_padding_mask=mask)[0], rtol=1e-4, atol=1e-5
        )
    assert len(heads.variants) <= 2


def test_exported_buffers_are_named_by_their_path() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            self.bn1 = nn.BatchNorm1d(3)

        def forward(self, x: Any) -> Any:
            return self.bn1(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            self.a, self.b = Block(), Block()

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    exported = Model().export(nbcomp.f32["n", 3])
    parts = ("weight", "bias", "running_mean", "running_var")
    assert sorted(exported.params) == sorted(f"{k}_bn1_{p}" for k in "ab" for p in parts)
