"""NumPy's functions traced and run are NumPy's functions: over arguments, dtypes and errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Constant
from nbcomp.ops import values
from tests.ops.calls import check, compare, outcome
from tests.ops.evaluate import input_node, of_nodes

F32, F64, I8, I32 = map(np.dtype, (np.float32, np.float64, np.int8, np.int32))
UFUNCS = sorted(
    {f for f in NUMPY if isinstance(f, np.ufunc) and f.signature is None}, key=lambda f: f.__name__
)


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return values.ordinary(rng, F32, (3, 4, 5))


def test_every_ufunc_of_numpy_is_known() -> None:
    theirs = {getattr(np, n) for n in dir(np) if isinstance(getattr(np, n), np.ufunc)}
    missing = {f.__name__ for f in theirs} - {f.__name__ for f in NUMPY if isinstance(f, np.ufunc)}
    assert missing <= {"isnat", "matvec", "vecmat"}


@pytest.mark.parametrize("fn", UFUNCS, ids=lambda f: f.__name__)
def test_ufunc_dtypes(fn: np.ufunc, rng: np.random.Generator) -> None:
    """All pairs of dtypes: NumPy's result, or NumPy's refusal."""
    for dtypes in itertools.product(values.DTYPES, repeat=fn.nin):
        arrays = [values.ordinary(rng, d, (7,)) for d in dtypes]
        if fn is np.power and arrays[1].dtype.kind == "i":
            arrays[1] = np.abs(arrays[1])
        check(fn, *arrays, ulp=1)


NUMBERS = (2, -1, 0.5, True, 300, 1e300, np.float32(3), np.int8(4), [1, 2, 3], 2**40, -(2**70))


@pytest.mark.parametrize("fn", [f for f in UFUNCS if f.nin == 2], ids=lambda f: f.__name__)
def test_ufunc_with_numbers(fn: np.ufunc, rng: np.random.Generator) -> None:
    """Python numbers are weak; those a dtype cannot hold raise, or compare as NumPy compares."""
    for dtype in values.DTYPES:
        array = values.ordinary(rng, dtype, (3,))
        if dtype.kind == "i":
            array = np.abs(array)
        for n in NUMBERS:
            check(fn, array, n, ulp=2)
            check(fn, n, array, ulp=2)


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (3, 2)), ((0,), (2,))])
def test_ufunc_shapes_that_do_not_fit(shapes: Any) -> None:
    with pytest.raises(ValueError, match="operands could not be broadcast together"):
        NUMPY[np.add].trace(*(input_node(np.ones(s)) for s in shapes))


def test_ufunc_options(rng: np.random.Generator) -> None:
    a, b = (values.ordinary(rng, I32, (5,)) for _ in "ab")
    check(np.add, a, b, dtype=np.float32)
    check(np.add, a, b, dtype=float, casting="same_kind")
    check(np.add, a.astype(float), b, dtype=np.int32)
    check(np.add, a.astype(float), b, dtype=np.int32, casting="unsafe")
    check(np.exp, a, dtype="f4", ulp=1)
    check(np.add, a)
    check(np.add, a, b, bogus=1)
    with pytest.raises(Unsupported, match="where="):
        NUMPY[np.add].trace(input_node(a), 1, where=input_node(a > 0))


def test_ufunc_into_an_array(rng: np.random.Generator) -> None:
    """`out=` gives what the array becomes."""
    a, b = values.ordinary(rng, F32, (2, 3)), values.ordinary(rng, F32, (3,))
    mask = np.array([True, False, True])
    for out, options in (
        (np.zeros((2, 3), F32), {}),
        (np.zeros((4, 2, 3), F64), {}),
        (np.ones((2, 3), F32), {"where": mask}),
        (np.zeros((2, 3), I32), {}),
        (np.zeros((3,), F32), {}),
    ):

        def expected(out: Any = out, options: Any = options) -> Any:
            result = out.copy()
            return np.add(a, b, out=result, **options)

        compare(
            expected,
            lambda *n, **k: NUMPY[np.add].trace(*n, **k),
            (a, b),
            {"out": out, **options},
            0,
        )


@pytest.mark.parametrize("kind", [int, float])
def test_numbers_read_at_run_time_are_weak(kind: type) -> None:
    for dtype in values.DTYPES:
        array = np.arange(3).astype(dtype)
        for fn in (np.add, np.multiply, np.less, np.maximum, np.power, np.true_divide, np.arctan2):
            weak = input_node(np.asarray(kind(2)), 1, weak=True)
            node = input_node(array)
            with np.errstate(all="ignore"):
                expected = fn(array, kind(2))
                (result,) = of_nodes([NUMPY[fn].trace(node, weak)], [node, weak], [array, kind(2)])
            assert result.dtype == expected.dtype
            assert np.allclose(result, expected, rtol=1e-3)


def test_operands_keep_their_arrays() -> None:
    table = np.arange(3.0)
    node = NUMPY[np.add].trace(input_node(np.ones(3)), table)
    assert any(isinstance(i.op, Constant) and i.op.value is table for i in node.inputs)


@pytest.mark.parametrize(
    "bad", [1j, np.ones(2, complex), "text", np.ones(2, "M8[s]"), np.longdouble(1)]
)
def test_other_dtypes_are_refused(bad: Any) -> None:
    with pytest.raises(Unsupported, match="not compiled"):
        NUMPY[np.add].trace(input_node(np.ones(2)), bad)


# --------------------------------------------------------------------------------------- reductions

REDUCTIONS = (np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.var, np.std, np.ptp)
REDUCTIONS += (np.nansum, np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd, np.nanprod)
AXES = (None, 0, 1, -1, (0, 2), (-1, 0), (), 3, -4, (0, 0), (1, -2))


@pytest.mark.parametrize("fn", REDUCTIONS, ids=lambda f: f.__name__)
def test_reductions(fn: Any, x: Any) -> None:
    x[0, 1, 2] = np.nan if fn.__name__.startswith("nan") else 0.5
    for axis, keepdims in itertools.product(AXES, (False, True)):
        check(fn, x, axis=axis, keepdims=keepdims, ulp=200)


@pytest.mark.parametrize("fn", REDUCTIONS, ids=lambda f: f.__name__)
def test_reductions_of_every_dtype(fn: Any, rng: np.random.Generator) -> None:
    for dtype in values.DTYPES:
        check(fn, values.ordinary(rng, dtype, (6,)) + dtype.type(1), axis=0, ulp=30)
        check(fn, values.ordinary(rng, dtype, (3, 2)), 1, ulp=40)
        check(fn, np.asarray(dtype.type(1)), ulp=1)
    for shape in ((0,), (0, 3), (3, 0)):
        check(fn, np.ones(shape, F32), axis=0)
        check(fn, np.ones(shape, np.uint8), axis=-1)


@pytest.mark.parametrize("fn", [np.sum, np.prod])
def test_reductions_in_another_dtype(fn: Any, rng: np.random.Generator) -> None:
    for source, target in itertools.product(values.DTYPES, (F32, F64, I8, np.dtype(bool))):
        x = np.abs(values.ordinary(rng, np.int8, (5,))).astype(source)
        check(fn, x, dtype=target)
    check(fn, np.ones(3), initial=5, keepdims=True)
    check(fn, np.ones((2, 3)), axis=1, where=np.array([True, False, True]))
    check(np.max, np.ones((2, 3)), axis=1, initial=5)
    check(np.max, np.ones((0, 3)), axis=0, initial=5)
    check(np.max, np.ones((2, 3)), axis=1, where=np.array([True, False, True]))
    check(np.max, np.ones((2, 3)), where=np.array([True, False, True]), initial=-3)
    check(np.mean, np.ones(3), dtype=np.int32)
    check(np.var, np.arange(5.0), ddof=1)
    check(np.var, np.arange(5.0), ddof=7)
    check(np.std, np.arange(5.0), correction=1, ulp=1)
    check(np.var, np.arange(5), dtype=np.float32)


@pytest.mark.parametrize("fn", [np.add, np.multiply, np.maximum, np.minimum, np.logical_or])
def test_method_forms(fn: np.ufunc, x: Any) -> None:
    check(fn.reduce, x, ulp=8)
    check(fn.reduce, x, axis=None, keepdims=True, ulp=64)
    check(fn.reduce, x, (0, 1), ulp=64)
    check(fn.outer, x[0, 0], x[0])
    if fn is not np.logical_or:
        check(fn.accumulate, x)
        check(fn.accumulate, x, 1)


def test_other_statistics(x: Any, rng: np.random.Generator) -> None:
    check(np.count_nonzero, np.round(x / 4), axis=1)
    check(np.average, x, axis=1, ulp=4)
    check(np.average, x, axis=-1, weights=np.arange(1, 6), ulp=4)
    check(np.average, x, weights=np.abs(x), ulp=4)
    check(np.average, x, axis=0, weights=np.arange(2))
    for q in (0.5, 50, [0.1, 0.9], np.array(0.25)):
        check(np.quantile, x, q, axis=1)
        check(np.percentile, x, q, axis=(0, 1), ulp=1)
        check(np.percentile, x.astype(int), q, ulp=1)
    for axis in (None, 0, (1, 2)):
        check(np.median, x, axis=axis)
        check(np.nanmedian, x, axis=axis, keepdims=True)
    for fn in (np.argmax, np.argmin, np.cumsum, np.cumprod):
        for axis in (None, 0, -1, 3):
            check(fn, x, axis=axis)
    check(np.argmax, x, axis=1, keepdims=True)
    check(np.argmax, x, keepdims=True)
    check(np.argmax, np.ones((0, 3)), axis=0)
    check(np.cumsum, np.ones(3, np.int8))
    check(np.cumsum, np.ones(3, np.int8), dtype=np.int8)
    check(np.nancumsum, np.array([1.0, np.nan, 2.0]))
    check(np.cov, x[0], ulp=16)


@pytest.mark.parametrize("order", [None, 1, 2, 3, 0.5, 0, -1, np.inf, -np.inf, "fro"])
def test_norms(order: Any, x: Any) -> None:
    check(np.linalg.norm, x[0, 0], order, ulp=8)
    check(np.linalg.norm, x, order, axis=1, ulp=8)
    check(np.linalg.norm, x, order, axis=-1, keepdims=True, ulp=8)
    check(np.linalg.norm, x.astype(int), ulp=8)
    if order not in (2,):
        check(np.linalg.norm, x[0], order, keepdims=True, ulp=8)
        check(np.linalg.norm, x, order, axis=(0, 2), ulp=8)


# --------------------------------------------------------------------------- shape


def test_views(x: Any) -> None:
    for axes in (None, (1, 0, 2), (-1, 0, 1), (0, 1), (0, 0, 1), (0, 1, 3)):
        check(np.transpose, x, axes)
    check(np.matrix_transpose, x)
    check(np.matrix_transpose, x[0, 0])
    for a, b in ((0, 1), (-1, 0), (1, 1), (0, 3)):
        check(np.swapaxes, x, a, b)
        check(np.moveaxis, x, a, b)
        check(np.rollaxis, x, a, b)
    check(np.moveaxis, x, (0, 1), (-1, 0))
    for axis in (0, -1, (0, 2), (1, 5), 4, -5, (0, 0)):
        check(np.expand_dims, x, axis)
    for shape in ((1, 3, 1), (3,), (1, 1), ()):
        y = np.ones(shape)
        for axis in (None, 0, -1, (0, -1), 1, 5):
            check(np.squeeze, y, axis)
    for shape in ((2, 3, 4, 5), (3, 4, 5), (3, 4, 1), (4, 5), (-1, 3)):
        check(np.broadcast_to, x, shape)
        check(np.broadcast_to, np.float32(1), shape)
    check(np.broadcast_arrays, x, x[0], np.ones((3, 1, 1)))
    check(np.broadcast_arrays, np.ones(3), np.ones(4))


def test_windows(x: Any) -> None:
    window = np.lib.stride_tricks.sliding_window_view
    for shape, axis in (
        (2, 1),
        ((2, 3), (0, 2)),
        ((1, 1, 1), None),
        (9, 0),
        (2, 5),
        (3, -1),
        (2, None),
    ):
        check(window, x, shape, axis)
    check(window, x, (2,), axis=2)


def test_reshape(x: Any) -> None:
    for shape in (-1, 60, (5, -1), (3, 20), (4, 4), (-1, -1), (7, -1), (1, 60, 1), [12, 5]):
        for order in "CF":
            check(np.reshape, x, shape, order=order)
            check(np.reshape, x, shape, order)
    check(np.ravel, x)
    check(np.ravel, x, "F")
    check(np.reshape, np.ones((0, 3)), (3, 0))
    check(np.reshape, np.ones((0, 3)), -1)
    with pytest.raises(Unsupported, match="memory"):
        NUMPY[np.reshape].trace(input_node(x), -1, "A")


def test_flips_and_diagonals(x: Any) -> None:
    for axis in (None, 0, -1, (0, 2), 3):
        check(np.flip, x, axis)
    check(np.fliplr, x)
    check(np.flipud, x)
    check(np.fliplr, x[0, 0])
    for k in range(-1, 5):
        check(np.rot90, x, k)
        check(np.rot90, x, k, (2, 1))
        check(np.diagonal, x, k)
        check(np.diagonal, x, k, -1, 0)
        check(np.diag, x[0], k)
        check(np.diag, x[0, 0], k)
        check(np.diagflat, x[0, :2], k)
        check(np.trace, x, k, ulp=4)
    check(np.diagonal, x[0, 0])
    check(np.diagonal, x, 0, 1, 1)
    check(np.trace, np.ones((3, 3), np.int8))
    check(np.linalg.trace, x, ulp=4)
    for fn in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        for y in (np.ones(()), np.ones(3), x[0], x):
            check(fn, y)
        check(fn, np.ones(2), np.ones(()))


def test_joining(x: Any) -> None:
    a, b = x, x[:, :1] * 2
    for axis in (0, 1, -2, 2, None, 3):
        check(np.concatenate, [a, b], axis)
        check(np.concatenate, (a, a.astype(int)), axis)
        check(np.stack, [a, a], axis)
        check(np.stack, [a, b], axis)
        check(np.append, a, b, axis)
    for fn in (np.hstack, np.vstack, np.dstack, np.column_stack):
        for y in (np.ones(3), x[0], x):
            check(fn, [y, y + 1])
            check(fn, [y])
    check(np.concatenate, [])
    check(np.concatenate, [np.ones(()), np.ones(())])
    check(np.concatenate, [np.ones(2, I8), np.ones(2, F32)], dtype=np.int32)
    check(np.concatenate, [np.ones(2, I8), np.ones(2, I32)], dtype=np.float32)
    check(np.concatenate, [np.ones(2), [1, 2], np.float32(3) * np.ones(1, F32)])
    check(np.block, [[x[0], x[0]], [x[1], x[2]]])
    check(np.block, [x[0, 0], x[0, 1]])
    check(np.vstack, [np.ones(3), np.ones(4)])


def test_splitting(x: Any) -> None:
    for sections in (1, 2, 3, 5, [1], [1, 2], [2, 9], np.array([1, 3])):
        known = sections.tolist() if isinstance(sections, np.ndarray) else sections
        for axis in (0, 1, -1):
            check(np.split, x, known, axis)
            check(np.array_split, x, known, axis)
        check(np.hsplit, x, known)
        check(np.vsplit, x, known)
        check(np.dsplit, x, known)
        check(np.hsplit, x[0, 0], known)
        check(np.vsplit, x[0, 0], known)
    check(np.unstack, x, axis=1)


def test_repeating(x: Any) -> None:
    for reps in (1, 2, (2, 1), (1, 2, 3), (2, 1, 1, 1), 0, (0, 2)):
        check(np.tile, x, reps)
    for repeats, axis in (
        (2, None),
        (3, 1),
        (0, 0),
        ([1, 2, 0], 0),
        (-1, 0),
        ([2], -1),
        ([1, 2], 0),
    ):
        check(np.repeat, x, repeats, axis)
    for shift, axis in (
        (1, None),
        (-3, 0),
        (2, -1),
        ((1, 2), (0, 1)),
        ((1, 2), (0, 0)),
        (7, 1),
        (3, (1, 2)),
    ):
        check(np.roll, x, shift, axis)
    check(np.roll, np.ones((0,)), 2)
    for shape in ((2, 2), 7, (100,), (0,), (3, -1)):
        check(np.resize, x, shape)


def test_differences(x: Any) -> None:
    for n, axis in ((1, -1), (2, 0), (1, 1), (0, 0), (4, 0), (-1, 0), (1, 3)):
        check(np.diff, x, n, axis)
    check(np.diff, x > 0)
    check(np.diff, np.ones(()))
    check(np.diff, np.arange(5, dtype=np.uint8)[::-1].copy(), prepend=0)
    check(np.diff, x, prepend=x[:, :, :1], append=2.0)
    check(np.ediff1d, x)
    check(np.ediff1d, x, to_begin=1.0, to_end=np.ones(2, F32))
    check(np.gradient, x[0, 0], ulp=2)
    check(np.gradient, x, 2.0, axis=1, ulp=2)
    check(np.gradient, x, ulp=2)
    check(np.gradient, x, 1.0, 2.0, 3.0, ulp=2)
    check(np.gradient, np.ones(1))
    check(np.trapezoid, x, axis=1, ulp=4)
    check(np.trapezoid, x, dx=0.5, ulp=4)
    check(np.trapezoid, x, np.arange(5.0) ** 2, ulp=8)
    for at in (0, -1, [0, 2], slice(1, 3), [], 7):
        check(np.delete, x[0], at, 1)
        check(np.delete, x[0], at)
    for at in (0, 2, 5, -1, [1, 3]):
        check(np.insert, x[0, 0], at, 9.0)
        check(np.insert, x[0, 0], at, np.array([1.0, 2.0]))
    for shape, axis in (((1,), None), ((1,), 0), ((2, 1), 1), ((1, 2), 0)):  # all of it
        check(np.delete, np.ones(shape), 0, axis)
        check(np.delete, np.ones(shape), slice(None), axis)
    check(np.delete, x, slice(None))


MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@pytest.mark.parametrize("mode", MODES)
def test_padding(mode: str, x: Any) -> None:
    for width in (0, 1, (2, 0), ((1, 0), (0, 2), (3, 4)), 9, -1, [[1, 2]], {1: 2}):
        if isinstance(width, dict) and np.lib.NumpyVersion(np.__version__) < "2.2.0":
            continue
        check(np.pad, x, width, mode=mode)
    check(np.pad, x[0, 0], (2, 3), mode)


def test_padding_options(x: Any) -> None:
    check(np.pad, x[0], 1, constant_values=3.5)
    check(np.pad, x[0].astype(I8), 1, constant_values=3)
    check(np.pad, x[0], 1, constant_values=((1, 2), (3, 4)))
    check(np.pad, x[0], 1, mode="nonsense")
    check(np.pad, x[0], ((1, 2), (3, 4), (5, 6)))
    with pytest.raises(Unsupported, match="linear_ramp"):
        NUMPY[np.pad].trace(input_node(x), 1, "linear_ramp")


def test_triangles_and_grids(x: Any) -> None:
    for k in (-2, 0, 1, 9):
        check(np.tril, x, k)
        check(np.triu, x, k)
        check(np.tril, x[0, 0], k)
    check(np.tril, np.ones(()))
    a, b, c = np.arange(3), np.arange(2.0), np.arange(4, dtype=F32)
    for options in ({}, {"indexing": "ij"}, {"sparse": True}, {"indexing": "no"}):
        check(np.meshgrid, a, b, c, **options)
        check(np.meshgrid, a, **options)
    check(np.kron, x[0], x[1, :2])
    check(np.kron, x[0], x[1, 0])
    check(np.vander, np.arange(4))
    check(np.vander, np.arange(3.0), 5, increasing=True)


def test_creation(x: Any) -> None:
    for fn in (np.zeros_like, np.ones_like, np.empty_like):
        if fn is not np.empty_like:
            check(fn, x)
            check(fn, x, dtype=np.int8)
            check(fn, x, shape=(2, 2))
            check(fn, x, np.float64, "C")
        assert NUMPY[fn].trace(input_node(x)).shape == x.shape
    check(np.full_like, x, 3)
    check(np.full_like, x, np.arange(5))
    check(np.full_like, x.astype(I8), 300)
    check(np.full, (2, 3), 7)
    check(np.full, (2, 3), np.ones(3, F32))
    check(np.full, 3, 2, dtype=np.uint8)
    for shape in (3, (2, 3), (), (-1,)):
        check(np.zeros, shape)
        check(np.ones, shape, np.int16)
    for args in ((5,), (1, 9, 3), (0.0, 1.0, 0.3), (9, 0, -2), (10_000,), (5, 50_000, 7)):
        check(np.arange, *args)
    check(np.arange, 3, dtype=np.float32)
    check(np.linspace, 0, 1, 7, endpoint=False)
    check(np.logspace, 0, 2, 5)
    check(np.geomspace, 1, 100, 5)
    check(np.eye, 3)
    check(np.eye, 3, 4, k=-1, dtype=np.int8)
    check(np.identity, 3)
    check(np.tri, 3, 5, 1)
    check(np.indices, (2, 3))
    check(np.asarray, x, np.float64)
    check(np.array, [x[0], x[1]])
    check(np.array, [[x[0, 0, 0].reshape(()), 1.5], [2, x[0, 0, 1].reshape(())]])
    check(np.array, [x[0], x[0, 0]])
    check(np.array, x, ndmin=5)
    check(np.copy, x)


# ----------------------------------------------------------------------------------------- choosing


def test_where_and_clip(x: Any) -> None:
    for a, b in (
        (x, 0),
        (x, 1.5),
        (0, x),
        (x.astype(I8), 300),
        (x.astype(I8), 1.5),
        (1, 2),
        (x, x[0]),
    ):
        check(np.where, x > 0, a, b)
        check(np.where, np.round(x / 4), a, b)
    check(np.where, x > 0, x)
    check(np.where, np.ones(2, bool), np.ones(3), 0)
    with pytest.raises(Unsupported, match="as many indices"):
        NUMPY[np.where].trace(input_node(x > 0))
    for low, high in (
        (0, 1),
        (None, 1),
        (0, None),
        (None, None),
        (-1.5, 2),
        (2, -2),
        (x[0], 1),
        (-300, 300),
    ):
        for dtype in values.DTYPES:
            check(np.clip, x.astype(I8).astype(dtype), low, high)
    check(np.clip, x, min=0)
    check(np.clip, x, -1, max=1)
    check(np.clip, x, 0, np.ones(7))


def test_selecting(x: Any) -> None:
    conditions, choices = [x > 2, x > 0], [x, x * 2]
    check(np.select, conditions, choices)
    check(np.select, conditions, choices, 1.5)
    check(np.select, conditions, [1, 2])
    check(np.select, conditions, choices[:1])
    check(np.select, [x], [x])
    check(np.piecewise, x, conditions, [1, 2])
    check(np.piecewise, x, conditions, [1, 2, 3])
    check(np.piecewise, x, conditions, [1, 2, 3, 4])
    with pytest.raises(Unsupported, match="selections"):
        NUMPY[np.piecewise].trace(input_node(x), [input_node(x > 0)], [np.sin, np.cos])
    which = np.array([0, 1, 1])
    check(np.choose, which, [np.arange(3), np.arange(3.0)])
    check(np.choose, which - 5, [np.arange(3), np.arange(3.0)], mode="clip")
    check(np.choose, which + 5, [np.arange(3), np.arange(3.0)], mode="wrap")


@pytest.mark.parametrize("dtype", ["u1", "i1", "i4", "u8", "f4"])
@pytest.mark.parametrize("number", [7, -5, 300, 2**31, 2**62])
def test_python_ints_that_a_dtype_does_not_hold(dtype: Any, number: int) -> None:
    """Some functions convert them one by one, some make an array first: as NumPy does."""
    x = np.array([0, 2, 3], dtype)
    some = x > 1
    check(np.select, [some], [number], x)
    check(np.select, [some, x > 0], [x, number], x)
    for value in (number, [number], [1, number, 2]):
        check(np.insert, x, 1, value)
        check(np.piecewise, x, [some], [number])
    check(np.insert, x, 1, [np.float16(1.5), 2])
    check(np.insert, x, 1, np.nan)
    if dtype != "u1":  # there NumPy wraps round; Python runs such calls
        for value in ((0, number), ((number, 1),), [number]):
            check(np.pad, x, 1, constant_values=value)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i4", "f4"])
def test_writing_python_ints_that_a_dtype_does_not_hold(dtype: Any) -> None:
    x = np.array([0, 2, 3], dtype)
    for value in (-5, 300, [300]):
        for function, *args in (
            (np.place, x > 1, value),
            (np.put, [0, 1], value),
            (np.put_along_axis, np.array([0, 1]), value, 0),
        ):
            node = input_node(x)
            right = outcome(lambda f=function, a=args: written(f, x.copy(), *a))
            ours = outcome(
                lambda f=function, a=args, n=node: of_nodes([NUMPY[f].trace(n, *a)], [n], [x])[0]
            )
            if isinstance(right, Exception):
                assert type(ours) is type(right), (function, value, ours, right)
            else:
                np.testing.assert_array_equal(ours, right)


def written(function: Any, array: Any, *args: Any) -> Any:
    function(array, *args)
    return array


def test_taking(x: Any) -> None:
    for indices in (0, [1, 2, -1], np.array([[0, 1], [1, 0]]), [], 5, np.array([True, False]), [7]):
        for axis in (None, 0, -1):
            if not (isinstance(indices, list) and indices == [7]):
                check(np.take, x, indices, axis)
    for mode in ("clip", "wrap", "other"):
        check(np.take, x, [-9, 2, 9], 1, mode=mode)
    check(np.take, x, np.array([0.5]))
    order = np.argsort(x, 1)
    check(np.take_along_axis, x, order, 1)
    check(np.take_along_axis, x, order[:, :1], 1)
    check(np.take_along_axis, x, order[0], 1)
    check(np.take_along_axis, x, order * 1.0, 1)
    check(np.take_along_axis, x, np.arange(3), None)


def test_sorting(x: Any) -> None:
    for axis in (-1, 0, None, 3):
        for fn in (np.sort, np.argsort):
            check(fn, x, axis)
            check(fn, x, axis, kind="stable")
            check(fn, x, axis, stable=True)
        check(np.partition, x, 1, axis)
        check(np.partition, x, (0, 2), axis)
        check(np.argpartition, x, 1, axis)
    check(np.partition, x, 9, 0)
    check(np.sort, x, kind="bogus")
    check(np.sort, x, kind="stable", stable=True)
    check(np.lexsort, [x[0, 0], x[0, 1]])
    edges = np.array([-2.0, 0.0, 2.0])
    check(np.searchsorted, edges, x)
    check(np.searchsorted, edges, 1.0, "right")
    check(np.searchsorted, np.array([3, 1, 2]), np.array([2]), sorter=np.array([1, 2, 0]))
    check(np.digitize, x, edges)
    check(np.digitize, x, edges, right=True)
    check(np.isin, x.astype(I8), [1, 2])
    check(np.bincount, np.array([0, 1, 1]), minlength=4)
    check(np.bincount, np.array([0, 1, 1]), np.ones(3), minlength=4)
    check(np.interp, x, edges, edges**2)
    check(np.interp, x, edges, edges**2, left=-1)
    for mode in ("full", "same", "valid"):
        check(np.convolve, x[0, 0], x[1, 0, :2], mode, ulp=4)
        check(np.correlate, x[0, 0], x[1, 0, :2], mode)
    check(np.convolve, np.ones(0), np.ones(2))


def test_shapes_that_depend_on_the_data_are_refused(x: Any) -> None:
    for fn in (np.unique, np.nonzero, np.flatnonzero, np.argwhere):
        with pytest.raises(Unsupported, match="depends on the data"):
            NUMPY[fn].trace(input_node(x))
    with pytest.raises(Unsupported, match="minlength"):
        NUMPY[np.bincount].trace(input_node(np.arange(3)))


def test_composites(x: Any) -> None:
    y = x.copy()
    y[0, 0] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    for equal_nan in (False, True):
        check(np.isclose, y, y + 1e-9, equal_nan=equal_nan)
        check(np.isclose, y, 0.5, 0.1, 0.2, equal_nan)
        check(np.allclose, y, y, equal_nan=equal_nan)
        check(np.array_equal, y, y, equal_nan=equal_nan)
    check(np.array_equal, y, y[0])
    check(np.array_equiv, y, y[0])
    check(np.nan_to_num, y)
    check(np.nan_to_num, y, nan=1.0, posinf=2, neginf=-3)
    check(np.nan_to_num, y.astype(np.float16))
    check(np.nan_to_num, np.arange(3))
    for fn in (
        np.isposinf,
        np.isneginf,
        np.fix,
        np.real,
        np.imag,
        np.angle,
        np.isreal,
        np.iscomplex,
    ):
        check(fn, y, ulp=1)
    for decimals in (0, 1, 3, -1):
        for dtype in (F32, F64, I32, np.dtype(bool)):
            check(np.round, (x * 7).astype(dtype), decimals)
    check(np.sinc, x, ulp=4)
    check(np.polyval, np.array([1.0, -2.0, 3.0]), x, ulp=1)
    check(np.deg2rad, x)
    check(np.modf, y)
    check(np.frexp, y)
    check(np.divmod, y, 0.7)


# ---------------------------------------------------------------------------- products

PAIRS = (
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
    ((2, 3), (2, 3)),
    ((), (3,)),
    ((), ()),
    ((2, 2, 3), (3, 3, 4)),
)


@pytest.mark.parametrize("fn", [np.matmul, np.dot, np.inner, np.outer, np.vdot, np.vecdot])
def test_products(fn: Any, rng: np.random.Generator) -> None:
    for a, b in PAIRS:
        for dtype in (np.float32, np.float16, np.int8, np.bool_, np.uint64):
            x, y = (np.abs(values.ordinary(rng, np.int8, s)).astype(dtype) for s in (a, b))
            check(fn, x, y)
        check(fn, np.ones(a, F32), np.ones(b, I32))
    check(np.dot, np.ones(3), 2)
    check(np.matmul, np.ones((2, 2), I8), np.ones((2, 2), I8), dtype=np.float32)


def test_tensor_products(x: Any) -> None:
    x = np.round(x)
    y = np.swapaxes(x, 0, 2).copy()
    for axes in (
        0,
        1,
        2,
        3,
        ([2, 1], [0, 1]),
        ([0, 1], [2, 1]),
        (2, 0),
        ([0], [0]),
        (1, [1]),
        ([0, 1], [0]),
    ):
        check(np.tensordot, x, y, axes)
    check(np.tensordot, x, x, 3)
    check(np.linalg.multi_dot, [x[0], x[0].T.copy(), x[1], x[1].T.copy()])
    check(np.linalg.multi_dot, [x[0, 0], x[0].T.copy(), x[1, :, 0]])
    for n in (0, 1, 2, 3, 5, 8):
        check(np.linalg.matrix_power, np.array([[1.0, 1.0], [1.0, 0.0]]), n)
    check(np.cross, x[0, :, :3], x[1, :, 1:4])
    check(np.cross, x[0, :3], x[1, :3], axis=0)


EINSUMS = (
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ij,ij->ji", (2, 3), (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,i", (3,), (3,)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("ijk->k", (2, 3, 4)),
    ("ji", (2, 3)),
    ("ij->ij", (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...ij,...jk", (1, 2, 3), (5, 3, 4)),
    ("...i->...", (2, 3, 4)),
    ("i...,i...->...", (3, 2), (3, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("ea,fb,abcd,gc,hd->efgh", (2, 3), (2, 3), (3, 3, 3, 3), (2, 3), (2, 3)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("ij,kj->ikj", (2, 3), (4, 3)),
    ("i,->i", (3,), ()),
    (",", (), ()),
    ("ij,jk->ik", (2, 3), (4, 5)),
    ("ij,jk->iq", (2, 3), (3, 5)),
    ("ij,jk->ii", (2, 3), (3, 5)),
    ("ij", (2, 3, 4)),
    ("ij,j k -> ik", (2, 3), (3, 4)),
    ("ij,jk->ik", (0, 3), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)),
)


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case: Any, rng: np.random.Generator) -> None:
    spelling, *shapes = case
    for dtype in (np.float64, np.int8, np.bool_, np.float32):
        arrays = [np.abs(values.ordinary(rng, np.int8, s)).astype(dtype) for s in shapes]
        check(np.einsum, spelling, *arrays)
    check(np.einsum, spelling, *arrays, optimize=True)


def test_einsum_with_lists(rng: np.random.Generator) -> None:
    a, b = rng.integers(0, 9, (2, 3)), rng.integers(0, 9, (3, 4)).astype(float)
    check(np.einsum, a, [0, 1], b, [1, 2], [0, 2])
    check(np.einsum, a, [0, 1], b, [1, 2])
    check(np.einsum, a, [Ellipsis, 1], b, [1, 2])


def test_linear_algebra(rng: np.random.Generator) -> None:
    a = rng.random((2, 3, 3)) + 5 * np.eye(3)
    check(np.linalg.inv, a)
    check(np.linalg.det, a.astype(F32))
    check(np.linalg.inv, a[0, :2])
    check(np.linalg.solve, a, rng.random((2, 3, 1)))
    check(np.linalg.solve, a, rng.random(3))
    check(np.linalg.solve, a, rng.random(4))
    check(np.linalg.cholesky, a @ np.swapaxes(a, -1, -2))
    check(np.linalg.matrix_power, a, -2, ulp=64)


def test_decompositions(rng: np.random.Generator) -> None:
    a = rng.random((2, 3, 3))
    symmetric = a + np.swapaxes(a, -1, -2)
    check(np.linalg.svd, rng.random((4, 3)))
    check(np.linalg.svd, rng.random((2, 3, 5)), False)
    check(np.linalg.svd, a, compute_uv=False)
    check(np.linalg.eigh, symmetric)
    check(np.linalg.eigh, symmetric, UPLO="U")
    check(np.linalg.eigvalsh, symmetric.astype(F32))
    check(np.linalg.qr, rng.random((4, 3)))
    check(np.linalg.qr, rng.random((4, 3)), "complete")
    check(np.linalg.qr, rng.random((2, 4)), "r")
    check(np.linalg.slogdet, a)
    check(np.linalg.pinv, rng.random((2, 4, 3)))
    check(np.linalg.matrix_rank, a)
    for fn in (np.linalg.eigh, np.linalg.slogdet, np.linalg.svd, np.linalg.qr):
        check(fn, np.ones(3))
    for fn in (np.linalg.matmul, np.linalg.outer, np.linalg.tensordot):
        check(fn, np.ones(2), np.ones(2), **({"axes": 0} if fn is np.linalg.tensordot else {}))
    check(np.linalg.matrix_transpose, a)
    check(np.matvec, a, np.ones(3), ulp=4)
    check(np.vecmat, np.ones(3), a, ulp=4)
    check(np.matvec, a, np.ones(2))


def test_counting(x: Any) -> None:
    for bins in (5, [-3, 0, 0.5, 9], np.array([0.0, 1.0, 2.0])):
        check(np.histogram, x, bins)
        check(np.histogram, x, bins, density=True)
        check(np.histogram, x, bins, weights=np.abs(x))
    check(np.histogram, x, 4, (-1, 1))
    check(np.histogram, np.arange(7), 3)
    check(np.histogram_bin_edges, x, 7)
    check(np.unravel_index, np.array([1, 59]), (3, 4, 5))
    check(np.unravel_index, np.array([60]), (3, 4, 5))
    check(np.ravel_multi_index, (np.array([1, 2]), np.array([0, 3])), (3, 4))
    check(np.ix_, np.array([0, 2]), np.array([1, 1, 0]))
    check(np.corrcoef, x[0], ulp=64)
    for fn in (np.fft.fftshift, np.fft.ifftshift):
        check(fn, x)
        check(fn, x, 1)
    for fn in (np.diag_indices_from, np.tril_indices_from, np.triu_indices_from):
        check(fn, np.ones((3, 3)))
