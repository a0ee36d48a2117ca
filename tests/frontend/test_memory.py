"""Writing: NumPy's views, overlaps, in-place operators, out=, and the arguments' own memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.frontend.trace import capture
from tests.frontend.replay import run

Agree = Callable[..., Any]
X = np.linspace(-2, 3, 12).reshape(3, 4)
V = np.linspace(0, 5, 6)
OTHER = np.ones((3, 4))


def overlapping(v: Any) -> Any:
    v[1:] = v[:-1]
    v[::2] += v[::-1][::2]
    return v


def through_a_view(x: Any) -> Any:
    v = x[1:, 1:3]
    w = v[:, ::-1].T
    w += 5
    v *= 2
    return x, v, w


def through_a_new_array(x: Any) -> Any:
    y = x * 2
    v = y[1]
    v += 1
    y[:, 0] = v[0]
    return y, v


def through_reshape(x: Any) -> Any:
    y = x + 0
    flat = y.reshape(-1)
    flat[::3] = -1
    copied = y.T.reshape(-1)  # not contiguous: a copy
    copied[:] = 7
    again = y.T.ravel(order="F")  # a view once more
    again[0] = 99
    return y, flat, copied


def through_transpose(x: Any) -> Any:
    t = x.T
    t += np.arange(4.0)[:, None]
    t[1:] -= t[:-1]
    return x


def swapped(x: Any) -> Any:
    a = x[0].copy()
    x[0] = x[1]
    x[1] = a
    x[[0, 2]] = x[[2, 0]]
    return x


def names(x: Any) -> Any:
    y = x
    z = y = y + 1
    z += 1
    x -= 1
    return x, y, z


def scalars_do_not_alias(x: Any) -> Any:
    s = x.sum()
    t = s
    s += 1
    e = x[0, 0]
    e -= 100
    d = x[0, 0, ...]
    d -= 50
    return s, t, e, d, x


def elements(v: Any) -> Any:
    out = np.zeros(6)
    for i in range(6):
        out[i] = v[i] * i
        out[-1] += v[i]
    return out


def out_arguments(x: Any) -> Any:
    y = np.empty((3, 4))
    np.add(x, 1, out=y)
    np.multiply(y, x, out=y[:, ::-1])
    np.exp(x, out=x)
    np.maximum(x, y, out=x)
    np.subtract(x, y, x)
    z = np.sum(x, axis=0, out=y[0])
    return x, y, z


def out_with_where(x: Any) -> Any:
    y = np.full((3, 4), -1.0)
    np.sqrt(x, out=y, where=x > 0)
    return y


def writers(x: Any) -> Any:
    y = np.zeros(4)
    np.copyto(y, x[0])
    np.copyto(x, y, where=x > 0)
    z = x.copy()
    z.fill(3)
    z[...] = y
    z.sort(axis=1)
    x[1].sort()
    np.fill_diagonal(z, 8)
    np.putmask(z, z > 2, 0.5)
    return x, y, z


def masks(x: Any) -> Any:
    x[x > 1] = 0
    x[x < 0] *= -1
    x[[0, 0], [1, 2]] = [5, 6]
    return x


def casts(x: Any) -> Any:
    i = np.zeros((3, 4), np.int32)
    i[...] = x * 10
    i += 1
    f = x.astype(np.float32)
    f += x
    f[0] = i[0]
    return i, f


def chained(x: Any) -> Any:
    v = x[1:].T[1:].reshape(3, 2)[None]
    v[0, 1] = 3
    np.expand_dims(v, 1)[..., 0] = 4
    np.squeeze(v)[2] -= 1
    np.swapaxes(v, 1, 2)[:, 0] *= 2
    return x, v


def splits(x: Any) -> Any:
    left, right = np.split(x, 2, axis=1)
    left += right
    np.flip(right)[0] = 0
    return x, left


def asarrays(x: Any) -> Any:
    same = np.asarray(x)
    same[0] = 1
    other = np.array(x)
    other[1] = 2
    flat = np.ravel(x)
    flat[-1] = 3
    return x, other, flat, np.ascontiguousarray(x.T)


def columns_of_an_f_ordered_result(x: Any) -> Any:
    y = x.T * 2  # laid out like x.T
    flat = y.reshape(-1)  # a copy
    flat[0] = 100
    fortran = y.reshape(-1, order="F")  # a view
    fortran[1] = 200
    return y, flat


def einsums(x: Any) -> Any:
    t = np.einsum("ij->ji", x)
    t[0] = 5
    return x, t, np.einsum("ij,ij->i", x, x), np.einsum("ij->j", x)


def same_objects(x: Any) -> Any:
    s = np.squeeze(x)
    s[0] = 1
    a, b = np.broadcast_arrays(x, x[:1])
    n = x / x
    np.nan_to_num(n, copy=False)
    return s, a, b + 1, n


MEMORY: dict[str, Any] = {
    f.__name__: f
    for f in (
        through_a_view,
        through_a_new_array,
        through_reshape,
        through_transpose,
        swapped,
        names,
        scalars_do_not_alias,
        out_arguments,
        out_with_where,
        writers,
        masks,
        casts,
        chained,
        splits,
        asarrays,
        einsums,
        same_objects,
        columns_of_an_f_ordered_result,
    )
}


@pytest.mark.parametrize("name", MEMORY)
def test_memory(name: str, agree: Agree) -> None:
    agree(MEMORY[name], X)


@pytest.mark.parametrize("function", [overlapping, elements], ids=lambda f: f.__name__)
def test_memory_of_vectors(function: Any, agree: Agree) -> None:
    agree(function, V)


@pytest.mark.parametrize("array", [X.T, X[:, ::-1], X[::2], np.asfortranarray(X)], ids=range(4))
def test_strided_arguments(array: Any) -> None:
    def f(x: Any) -> Any:
        flat = x.reshape(-1)
        flat[1] = 9
        x[0] += x[-1]
        return x, flat, x.strides, x.T.reshape(-1)

    mine, theirs = (np.array(X, order="K") for _ in "ab")
    place = np.lib.stride_tricks.as_strided
    offset = (array.__array_interface__["data"][0] - X.__array_interface__["data"][0]) // 8
    if array.base is not X:  # the F-ordered copy
        views = [np.asfortranarray(X) for _ in "ab"]
    else:
        views = [place(a.reshape(-1)[offset:], array.shape, array.strides) for a in (mine, theirs)]
    captured = capture(f, (views[0],), {})
    result, expected = run(captured, views[0]), f(views[1])
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(views[0], views[1])
    np.testing.assert_array_equal(mine, theirs)
    assert np.shares_memory(result[0], result[1]) == np.shares_memory(expected[0], expected[1])


def test_results_are_the_callers_objects() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x + y
        return x, y[1:], z, z, z[0], [x, y.T]

    x, y = X.copy(), X.copy()
    result = run(capture(f, (x, y), {}), x, y)
    assert result[0] is x
    assert result[1].base is y
    assert result[2] is result[3]
    assert result[4].base is result[2]
    assert result[5][0] is x
    assert result[5][1].base is y


def test_writes_reach_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        OTHER[1] += x[0]
        return OTHER.sum()

    captured = capture(f, (X,), {})
    assert [s.describe() for s, _ in captured.writes] == ["OTHER"]
    before = OTHER.copy()
    run(captured, X)
    before[1] += X[0]
    np.testing.assert_array_equal(OTHER, before)


def test_written_arguments_must_not_overlap() -> None:
    def f(x: Any, y: Any) -> Any:
        x += 1
        return x[:1] + y

    captured = capture(f, (X.copy(), X.copy()), {})
    assert captured.disjoint == ((0, 1),)
    x = X.copy()
    with pytest.raises(Unsupported, match="x is written to and shares memory with y"):
        capture(f, (x, x[1:]), {})


def test_only_reading_may_overlap() -> None:
    captured = capture(lambda x, y: x[1:] + y, (X, X[1:]), {})
    assert captured.disjoint == ()


def store(x: Any) -> Any:
    s = x.sum()
    s[0] = 1


NUMPY_ERRORS = {
    "grow": lambda x: x.__iadd__(np.ones((2, 3, 4))),
    "cast": lambda x: np.zeros(3, int).__iadd__(1.5),
    "shape": lambda x: x.__setitem__(0, np.ones(3)),
    "operands": lambda x: x + np.ones(3),
    "axis": lambda x: x.sum(axis=2),
    "index": lambda x: x[7],
    "indices": lambda x: x[0, 0, 0],
    "reshape": lambda x: x.reshape(5, 5),
    "matmul": lambda x: x @ x,
    "scalar": store,
    "readonly": lambda x: np.broadcast_to(x, (2, 3, 4)).__setitem__(0, 1),
    "bits": lambda x: x & 1,
    "length": lambda x: len(x.sum()),
    "iterate": lambda x: list(np.array(x.sum())),
    "concatenate": lambda x: np.concatenate([x, x[0]]),
    "float index": lambda x: x[x],
    "range": lambda x: np.zeros(2, np.int8).__setitem__(0, 300),
    "unpack": lambda x: (lambda a, b: a)(*x),
}


@pytest.mark.parametrize("name", NUMPY_ERRORS)
def test_numpy_errors(name: str) -> None:
    function: Any = NUMPY_ERRORS[name]
    with pytest.raises(Exception) as expected:  # noqa: PT011
        function(X.copy())
    with pytest.raises(expected.type) as raised:
        capture(function, (X.copy(),), {})
    assert str(raised.value) == str(expected.value)


def test_read_only_argument() -> None:
    x = X.copy()
    x.flags.writeable = False

    def f(x: Any) -> Any:
        x[0] = 1

    def g(x: Any) -> Any:
        x += 1

    with pytest.raises(ValueError, match="assignment destination is read-only"):
        capture(f, (x,), {})
    with pytest.raises(ValueError, match="output array is read-only"):
        capture(g, (x,), {})


def test_errors_name_the_users_line() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y + np.ones(3)

    with pytest.raises(ValueError, match="operands could not be broadcast") as raised:
        capture(f, (X,), {})
    assert "return y + np.ones(3)" in "".join(raised.value.__notes__)
