"""Transposed convolutions by their definition; what they and interpolation refuse."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nbcomp import jit, nn
from nbcomp.nn import functional as F


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 4, 5, 5), (3, 2, 3, 3)), {}, "takes 3 channels"),
        (((1, 3, 5), (3, 2, 3)), {}, "4 axes"),
        (((1, 3, 5, 5), (3, 2, 3, 3)), {"output_padding": 1}, "smaller than the stride"),
        (((1, 3, 5, 5), (3, 2, 3, 3)), {"groups": 2}, "in 2 groups"),
    ],
)
def test_transposed_convolutions(shapes: Any, options: Any, message: str) -> None:
    x, w = (np.zeros(s, np.float32) for s in shapes)
    with pytest.raises(ValueError, match=message):
        F.conv_transpose2d(x, w, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 4, "mode": "cubic"}, "no interpolation 'cubic'"),
        ({"size": 4, "mode": "linear"}, "over 2 axes"),
        ({}, "either size or scale_factor"),
        ({"size": 4, "scale_factor": 2}, "either size or scale_factor"),
        ({"size": (4, 4, 4)}, "one number, or 2"),
        ({"size": 4, "align_corners": True}, "linear"),
    ],
)
def test_interpolation(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        F.interpolate(np.zeros((1, 2, 3, 3), np.float32), **options)


def test_a_margin_larger_than_the_kernel_cuts() -> None:
    x, w = np.ones((1, 1, 6), np.float32), np.ones((1, 1, 2), np.float32)
    np.testing.assert_array_equal(F.conv_transpose1d(x, w, padding=2), [[[2, 2, 2]]])


def scattered(
    x: Any, w: Any, stride: Any, padding: Any, extra: Any, groups: int, apart: Any
) -> Any:
    """Each element of the input adds its multiple of the kernel to the result."""
    fields = list(zip(x.shape[2:], w.shape[2:], stride, padding, extra, apart, strict=True))
    whole = [(n - 1) * s + d * (k - 1) + 1 + e for n, k, s, _, e, d in fields]
    each, inner = w.shape[1], x.shape[1] // groups
    result = np.zeros((x.shape[0], each * groups, *whole), x.dtype)
    for group, tap in itertools.product(range(groups), np.ndindex(*w.shape[2:])):
        own = slice(group * inner, (group + 1) * inner)
        ends = (
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, (n, _, s, _, _, d) in zip(tap, fields, strict=True)
        )
        value = np.einsum("nc...,co->no...", x[:, own], w[(own, slice(None), *tap)])
        result[(slice(None), slice(group * each, (group + 1) * each), *ends)] += value
    inside = (slice(p, n - p) for p, n in zip(padding, whole, strict=True))
    return result[(..., *inside)]


@pytest.mark.parametrize(
    ("space", "kernel", "options"),
    [
        ((5, 33), (2, 2), {"stride": 2}),  # every phase has one tap
        ((6, 17), (4, 4), {"stride": 2, "padding": 1}),  # two, from other places on
        ((5, 9), (3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),  # one or two
        ((4, 20), (2, 3), {"stride": (4, 3)}),  # or none
        ((4, 9), (3, 2), {"stride": (2, 3), "dilation": 2, "output_padding": (0, 2)}),
        ((4, 7), (3, 3), {"stride": 2, "groups": 3, "padding": (2, 0)}),
        ((21,), (5,), {"stride": 3, "dilation": 2, "padding": 4}),
        ((2, 3, 9), (2, 3, 2), {"stride": (2, 1, 2)}),
        ((1, 1), (4, 4), {}),  # all of the result is around one element
        ((1, 1), (3, 2), {"stride": 4, "padding": (1, 0), "output_padding": 3, "groups": 2}),
    ],
)
def test_transposed_convolutions_add_multiples_of_the_kernel(
    space: Any, kernel: Any, options: Any
) -> None:
    rank, groups = len(space), options.get("groups", 1)
    kind = getattr(nn, f"ConvTranspose{rank}d")
    layer = kind(6, 4 if groups == 1 else 2 * groups, kernel, **options)
    rng = np.random.default_rng(sum(space))
    for value in (layer.weight, layer.bias):
        value[...] = rng.integers(-3, 4, value.shape)
    x = rng.integers(-3, 4, (2, 6, *space)).astype(np.float32)
    fields = (layer.stride, layer.padding, layer.output_padding, groups, layer.dilation)
    wanted = scattered(x, np.asarray(layer.weight), *fields)
    wanted += np.asarray(layer.bias).reshape(-1, *(1,) * rank)
    np.testing.assert_array_equal(layer(x), wanted)
    np.testing.assert_array_equal(jit(layer)(x), wanted)


def test_only_what_meets_in_a_transposed_convolution_is_multiplied() -> None:
    x, w = np.ones((1, 1, 4), np.float32), np.array([[[1, np.inf, 2]]], np.float32)
    for call in (F.conv_transpose1d, jit(F.conv_transpose1d)):
        found = call(x, w, stride=2, padding=0)
        np.testing.assert_array_equal(found, [[[1, np.inf, 3, np.inf, 3, np.inf, 3, np.inf, 2]]])
