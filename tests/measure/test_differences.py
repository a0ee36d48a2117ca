"""Same or not, and how far apart: every kind of value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nbcomp.measure import differences


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulp_distance(dtype: type) -> None:
    one = dtype(1)
    a = np.array([one, one, -0.0, np.nan, np.inf, -one], dtype)
    b = np.array(
        [one, np.nextafter(one, dtype(2)), 0.0, np.nan, np.inf, np.nextafter(-one, dtype(2))], dtype
    )
    assert differences.ulp_distance(a, b).tolist() == [0, 1, 0, 0, 0, 1]
    tiny = np.nextafter(dtype(0), dtype(1))
    assert differences.ulp_distance(np.array([-tiny]), np.array([tiny])).tolist() == [2]
    assert differences.ulp_distance(np.array([dtype(np.nan)]), np.array([one])).tolist() == [
        math.inf
    ]


def test_ulp_distance_of_complex_and_scalars() -> None:
    a, b = (
        np.complex64(1 + 1j),
        np.complex64(complex(1, np.nextafter(np.float32(1), np.float32(2)))),
    )
    assert differences.ulp_distance(np.array([a]), np.array([b])).tolist() == [1]


def test_equal_answers_agree() -> None:
    value = {"a": (f32(1, 2), np.arange(3)), "b": [np.float32(2), 3, None, "s"]}
    assert all(not d.problem and d.ulp == 0 for d in differences.differences(value, value))


@pytest.mark.parametrize(
    ("ours", "theirs", "problem"),
    [
        (f32(1), np.array([1.0]), "is float32[1] where NumPy gives float64[1]"),
        (f32(1, 2), f32(1), "is float32[2] where NumPy gives float32[1]"),
        (np.float32(1), np.array(1, np.float32), "is a scalar where NumPy gives a ndarray"),
        (np.arange(3), np.array([0, 1, 3]), "differs at [2]: 2 where NumPy gives 3"),
        (f32(1, np.nan), f32(1, 2), "differs at [1]: nan where NumPy gives 2.0"),
        (f32(np.inf), f32(-np.inf), "differs at [0]: inf where NumPy gives -inf"),
        (f32(1.001), f32(1), "differs at [0]: 1.001 where NumPy gives 1.0"),
        ((f32(1), f32(1)), f32(1), "has 2 values where NumPy gives 1"),
    ],
)
def test_different_answers_are_named(ours: Any, theirs: Any, problem: str) -> None:
    found = differences.differences(ours, theirs)
    assert [d.problem for d in found if d.problem] == [problem]


def test_a_few_roundings_are_the_same_answer() -> None:
    (d,) = differences.differences(f32(1.0000005, 1e-20), f32(1, 0))
    assert not d.problem
    assert d.ulp > 3
    assert d.absolute == pytest.approx(4.8e-7, rel=0.1)


def test_empty_and_zero_dimensional_answers() -> None:
    for value in (np.zeros((0, 3), np.float32), np.array(2.0), np.zeros(0, bool)):
        (d,) = differences.differences(value, value.copy())
        assert not d.problem


def test_large_answers_are_compared_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "CHUNK", 4)
    a = np.arange(15.0).reshape(3, 5)
    b = a.copy()
    b[2, 1] += 1
    (found,) = differences.differences(b, a)
    assert found.problem == "differs at [2, 1]: 12.0 where NumPy gives 11.0"
    assert found.absolute == 1.0
