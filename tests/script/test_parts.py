"""Parts of arrays in loops over elements: bounds known at run time, arithmetic, sums, overlaps."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.graph.control import Loops
from tests.script.conftest import outcome

RNG = np.random.default_rng(3)
BOUNDS = ("", "i", "-i", "i + 2", "n - i", "p", "q", "-p", "3", "-2", "p * 2 - 3")
STEPS = ("", "i + 1", "2", "-1", "-2", "r")
WRITES = (
    "x[{s}] = i",
    "x[{s}] += 1.5",
    "y[{s}] = x[{s}] * 2 - i",
    "total += x[{s}].sum() + len(x[{s}])",
    "x[{s}] = x[{s}] + y[{s}]",
    "m[i % 3, {s}] = m[(i + 1) % 3, {s}] * 0.5",
    "m[:, {s}] += y[{s}]",
    "total += y[{s}] @ x[{s}]",
    "for v in x[{s}]:\n            total += v",
)


def program(seed: int) -> Any:
    """A function of random statements about slices of three arrays."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(4):
        a, b, step = rng.choice(BOUNDS), rng.choice(BOUNDS), rng.choice(STEPS)
        lines.append(str(rng.choice(WRITES)).format(s=f"{a}:{b}" + (f":{step}" if step else "")))
    body = "\n        ".join(lines)
    source = (
        "def f(x, y, m, p, q, r):\n    n, total = len(x), 0.0\n"
        f"    for i in range(n):\n        {body}\n    return total\n"
    )
    name = f"<parts {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize("seed", range(60))
def test_random_slices(seed: int) -> None:
    function = program(seed)
    scripted = nbcomp.script(function)
    for p, q, r in ((1, 4, 1), (0, 9, 3), (3, 2, 2)):
        args = (np.arange(7.0), np.ones(7), np.arange(21.0).reshape(3, 7), p, q, r)
        want, after = outcome(function, args)
        got, given = outcome(scripted, args)
        assert np.allclose(got, want) if isinstance(want, float) else type(got) is type(want)
        for a, b in zip(given[:3], after[:3], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def shift(x: Any) -> Any:
    for i in range(1, len(x) - 2):
        x[i + 1 : len(x)] = x[i : len(x) - 1]
        x[: i + 1] = x[i::-1]
    return x


def rows(m: Any) -> Any:
    for i in range(m.shape[0]):
        m[i] = m[i - 1] + m[i]
        m[i, 1:] = m[i, :-1]
    return m


def kept(m: Any) -> Any:
    total = 0.0
    for i in range(1, m.shape[0]):
        row = m[i] * 2
        old, view = m[i - 1].copy(), m[i - 1]
        m[i - 1] = row
        m[i] = old
        total += view[0] + row[1] + old[2]
    return m, total


def pivot(m: Any) -> Any:
    found = np.zeros(m.shape[1], dtype=np.int64)
    for k in range(m.shape[1]):
        found[k] = np.argmax(np.abs(m[k % 3 :, k])) * 10 + m[:, k].argmin()
    return found


def reductions(m: Any) -> Any:
    out = np.zeros((m.shape[0], 9))
    for i in range(m.shape[0]):
        r = m[i, : i + 1]
        out[i, 0], out[i, 1], out[i, 2] = r.sum(), r.max(), r.min()
        out[i, 3], out[i, 4] = r.mean(), np.prod(r)
        out[i, 5], out[i, 6] = np.any(r > 2), (r >= 0).all()
        out[i, 7], out[i, 8] = np.linalg.norm(r), (r * r + 1).sum()
    return out


def empty(m: Any) -> Any:
    s = 0.0
    for i in range(m.shape[0]):
        s += m[i, i:i].sum() + m[i, 3:1] @ m[i, 3:1]
    return s


def matrices(m: Any) -> Any:
    a = m.copy()
    for i in range(1, 3):
        a[i:, i:] -= np.outer(a[i:, 0], a[0, i:])
        a[i - 1, :i] = a[:i, :i] @ a[i, :i]
        a[:, i] = np.where(a[:, i] > 0, a[:, i], -a[:, i]) + np.clip(a[:, 0], -1, 1)
    return a


def narrow(m: Any) -> Any:
    b = m.astype(np.int8)
    total = np.int64(0)
    for i in range(3):
        b[i, i:] += 100
        total += b[i].sum()
        b[i] = m[i] * 1.7
    return b, total


M = np.arange(12.0).reshape(3, 4) - 4
PROGRAMS = (shift, rows, kept, pivot, reductions, empty, matrices, narrow)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_like_python(like_python: Any, function: Any) -> None:
    scripted = like_python(function, np.arange(8.0) if function is shift else M)
    kernels = [n for n in scripted.compiled.captured.nodes if isinstance(n.op, Loops)]
    assert len(kernels) == 1


def test_errors(like_python: Any) -> None:
    def zero(x: Any, step: Any) -> Any:
        for i in range(3):
            x[i::step] = 1.0
        return x

    def extreme(x: Any, n: Any) -> Any:
        s = 0.0
        for i in range(n):
            s += x[i:2].max()
        return s

    def lengths(x: Any, n: Any) -> Any:
        for i in range(n):
            x[i : i + 2] = x[i : i + 3]
        return x

    like_python(zero, np.zeros(4), 0)
    like_python(zero, np.zeros(4), -1, fallback=True)
    like_python(extreme, np.arange(4.0), 2)
    like_python(extreme, np.arange(4.0), 3)
    like_python(lengths, np.arange(4.0), 3, fallback=True)
    like_python(lengths, np.arange(2.0), 0)


def test_a_part_that_is_returned(like_python: Any) -> None:
    def tail(x: Any) -> Any:
        b = x[1::2]
        for i in range(2):
            b[i] = 7
        return b

    scripted = like_python(tail, np.arange(6.0))
    x = np.arange(6.0)
    assert np.shares_memory(scripted(x), x)


def test_writes_of_slices_are_in_place() -> None:
    """The work of n rounds is n rows: no kernel copies the array in each."""

    def fill(a: Any, v: Any) -> None:
        for i in range(a.shape[0]):
            a[i, :] = v[i] * 2
            a[i, i:] += a[i, 0]

    scripted = nbcomp.script(fill)
    scripted(np.zeros((5, 6)), np.arange(5.0))
    (kernel,) = (k.kernel for k in scripted.compiled.kernels)
    assert len(scripted.compiled.plan.steps) <= 2
    assert kernel.ordered
    assert {b.name for b in kernel.buffers} == {"a", "v"}


def made_in_rounds(m: Any) -> Any:
    out = np.zeros(m.shape[0])
    for i in range(m.shape[0]):
        t, u = np.zeros_like(m[i]), np.ones(2, dtype=np.int64)
        for j in range(m.shape[1]):
            t[j] += m[i, j] * 2
            u[j % 2] += j
        v = np.empty((2, 2))
        v[:, 0], v[:, 1] = i, m[0, 0]
        out[i] = t.sum() * u[0] + v[0] @ v[1]
    return out


def of_the_round_before(m: Any) -> Any:
    s = 0.0
    for i in range(m.shape[0]):
        if i > 0:
            m[0, 0] += previous[0]  # noqa: F821
            s += pair[1]  # noqa: F821
        previous, pair = m[i], (i, i * 2)
    return s, m, previous, pair


@pytest.mark.parametrize("function", [made_in_rounds, of_the_round_before])
def test_arrays_of_a_round(like_python: Any, function: Any) -> None:
    like_python(function, M, fallback=function is of_the_round_before)
