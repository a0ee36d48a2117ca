"""What transposed convolutions and interpolation refuse, in the user's terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
