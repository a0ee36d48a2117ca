"""Convolutions as loops over their windows: NumPy's answer for any geometry, in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.loop.grammar import Call, For, walk
from nbcomp.nn import functional as F

Array = np.ndarray[Any, Any]
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
# Of the largest magnitude: sums of K products in another order, with products not rounded.
BOUND = {np.float32: 1e-5, np.float64: 1e-13}


def compiled(function: Any, *args: Any) -> Any:
    return nbcomp.compile(function, *args)


def check(function: Any, *args: Any) -> Any:
    """The compiled function, whose answer is the function's own within the bound."""
    made = compiled(function, *args)
    wanted, got = function(*args), made(*args)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    scale = np.abs(wanted).max(initial=0) + 1e-30
    assert np.abs(got - wanted).max(initial=0) <= BOUND[wanted.dtype.type] * scale
    return made


def array(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def drawn(rng: np.random.Generator) -> tuple[Any, tuple[Array, ...]]:
    """A convolution of any geometry with one of several epilogues, and its operands."""
    space = int(rng.choice([1, 2, 2, 3]))
    groups, each, out = (int(rng.integers(1, n)) for n in (4, 6, 20))
    if rng.random() < 0.25:  # depthwise
        groups, each, out = int(rng.integers(1, 9)), 1, int(rng.integers(1, 3))
    kernel, stride, dilation = (
        tuple(map(int, rng.integers(1, n, space))) for n in (5, 4, 3)
    )  # fmt: skip
    padding = tuple(map(int, rng.integers(0, 4, space)))
    if rng.random() < 0.4:
        padding, stride = (0,) * space, (*stride[:-1], 1)
    if rng.random() < 0.2:
        kernel, stride, padding = (1,) * space, (1,) * space, (0,) * space
    size = tuple(map(int, rng.integers(9, {1: 150, 2: 30, 3: 12}[space], space)))
    if rng.random() < 0.3:
        size = (*size[:-1], int(rng.integers(50, 130)))
    dtype = rng.choice([np.float32, np.float64])
    x = array(rng, int(rng.integers(1, 4)), groups * each, *size, dtype=dtype)
    if rng.random() < 0.3:
        x = np.asfortranarray(x)
    w = array(rng, groups * out, each, *kernel, dtype=dtype)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    kind = int(rng.integers(0, 4))

    def function(x: Any, w: Any, b: Any, r: Any) -> Any:
        y = CONV[space](x, w, b, **options)
        return (y, F.relu(y), np.tanh(y) * 2 + r, y + np.mean(y))[kind]

    r = array(rng, *CONV[space](x, w, **options).shape, dtype=dtype)
    return function, (x, w, array(rng, groups * out, dtype=dtype), r)


@pytest.mark.parametrize("seed", range(30))
def test_any_geometry(seed: int) -> None:
    function, operands = drawn(np.random.default_rng(seed))
    made = check(function, *operands)
    assert any(r.topic == "windows" for r in made.explain())


@pytest.mark.parametrize("seed", range(100, 103))
def test_the_loops_mean_the_same_before_they_are_scheduled(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w, b = array(rng, 1, 4, 5, 6), array(rng, 4, 2, 3, 3), array(rng, 4)

    def function(x: Any, w: Any, b: Any) -> Any:
        return F.relu(F.conv2d(x, w, b, stride=(1, 2), padding=1, groups=2))

    made = nbcomp.compile_for("interpreted")(function, x, w, b)
    np.testing.assert_allclose(made(x, w, b), function(x, w, b), rtol=1e-5, atol=1e-5)


def test_what_follows_is_in_the_same_kernel() -> None:
    rng = np.random.default_rng(1)
    x, w, r = array(rng, 1, 8, 20, 20), array(rng, 16, 8, 3, 3), array(rng, 1, 16, 20, 20)
    mean, variance = array(rng, 16), array(rng, 16) ** 2
    scale, shift = array(rng, 16), array(rng, 16)

    def block(x: Any, w: Any, r: Any, *norm: Any) -> Any:
        return F.relu(F.batch_norm(F.conv2d(x, w, padding=1), *norm) + r)

    made = check(block, x, w, r, mean, variance, scale, shift)
    assert len([k for k in made.kernels if "convolution" in k.name]) == 1
    (kernel,) = (k for k in made.kernels if "convolution" in k.name)
    assert sum(b.role == "output" for b in kernel.kernel.buffers) == 1
    assert not any(isinstance(s, Call) for k in made.kernels for s in walk(k.kernel.stages))


def test_sums_are_kept_in_tiles() -> None:
    rng = np.random.default_rng(2)
    x, w = array(rng, 1, 16, 56, 56), array(rng, 32, 16, 3, 3)
    made = check(lambda x, w: F.conv2d(x, w, padding=1), x, w)
    (kernel,) = made.kernels
    assert any(note.startswith("tile_sums") for note in kernel.kernel.notes)
    kinds = [s.kind for s in walk(kernel.kernel.stages) if isinstance(s, For)]
    assert kinds.count("unroll") >= 3


def test_a_plain_convolution_copies_nothing() -> None:
    rng = np.random.default_rng(3)
    x, w = array(rng, 1, 16, 12, 12), array(rng, 32, 16, 1, 1)
    (kernel,) = check(F.conv2d, x, w).kernels
    names = [b.name for b in kernel.kernel.buffers if b.role == "temp"]
    assert not [n for n in names if "windows" in n]


def test_nan_and_infinity_pass_through() -> None:
    rng = np.random.default_rng(4)
    x, w = array(rng, 1, 3, 9, 60), array(rng, 4, 3, 3, 3)
    x[0, 1, 4, 30], x[0, 2, 8, 59], x[0, 0, 0, 0] = np.nan, np.inf, -np.inf

    def function(x: Any, w: Any) -> Any:
        return F.conv2d(x, w, padding=1)

    with np.errstate(all="ignore"):
        wanted, got = function(x, w), compiled(function, x, w)(x, w)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted))


@pytest.mark.parametrize("dtype", [np.int32, np.float16])
def test_other_dtypes_stay_formulas_and_say_so(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    x, w = (rng.integers(-4, 5, s).astype(dtype) for s in ((1, 2, 6, 6), (3, 2, 3, 3)))
    made = compiled(F.conv2d, x, w)
    np.testing.assert_array_equal(made(x, w), F.conv2d(x, w))
    assert [r.reason for r in made.explain() if r.topic == "windows"]


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 4, 8, 8), (6, 3, 3, 3)), {}, "takes 3 channels"),
        (((1, 4, 8, 8), (5, 2, 3, 3)), {"groups": 2}, "2 groups"),
        (((1, 4, 3, 8), (6, 4, 5, 3)), {}, "does not fit"),
        (((4, 8), (6, 4, 3, 3)), {}, "4 axes"),
        (((1, 4, 8, 8), (6, 4, 3, 3), (5,)), {}, "6 channels"),
        (((1, 4, 8, 8), (6, 4, 3, 3), (1,)), {}, "6 channels"),
    ],
)
def test_what_does_not_fit_is_refused(shapes: Any, options: Any, message: str) -> None:
    given = [np.zeros(s, np.float32) for s in shapes]
    for function in (F.conv2d, nbcomp.jit(lambda *given: F.conv2d(*given, **options))):
        named = options if function is F.conv2d else {}
        with pytest.raises(ValueError, match=message):
            function(*given, **named)


def test_lengths_that_differ_are_known_but_for_the_batch() -> None:
    rng = np.random.default_rng(6)
    w = array(rng, 16, 8, 3, 3)

    def function(x: Any) -> Any:
        return F.relu(F.conv2d(x, w, padding=1))

    for shapes in ([(n, 8, 20, 30) for n in (2, 3, 5, 9)], [(1, 8, n, n) for n in (20, 24, 33)]):
        jitted = nbcomp.jit(function)
        for shape in shapes:
            x = array(rng, *shape)
            np.testing.assert_allclose(jitted(x), function(x), rtol=1e-4, atol=1e-4)
        notes = [k.kernel.notes for v in jitted.variants for k in v.kernels]
        assert all(any(n.startswith("tile_sums") for n in found) for found in notes)
        assert shapes[0][0] == 1 or len(jitted.variants) < len(shapes)
