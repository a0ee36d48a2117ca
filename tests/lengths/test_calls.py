"""Calls with open lengths: the native entry takes lengths it has never seen, refuses what the plan
does not hold for, and keeps the numbers of different calls apart."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.flatten import INSTANCES
from nbcomp.runtime.native import library

native = pytest.mark.skipif(library() is None, reason="no native entry on this interpreter")


def entry(compiled: Compiled) -> tuple[Any, list[tuple[Any, ...]]]:
    """The native entry by itself, and the calls it refused."""
    refused: list[tuple[Any, ...]] = []

    def slow(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        refused.append(args)

    made = NativeFunction(compiled.name, None, slow)
    assert made.add(compiled.plan)
    return made.callable, refused


@native
def test_lengths_it_has_never_seen(rng: np.random.Generator) -> None:
    compiled = nbcomp.compile(lambda x, w: np.exp(x) @ w, nbcomp.f32["n", 8], nbcomp.f32[8, 5])
    call, refused = entry(compiled)
    (symbol,) = compiled.plan.open.symbols  # type: ignore[union-attr]
    low, high = compiled.plan.open.conditions.box[symbol]  # type: ignore[union-attr]
    w = rng.random((8, 5), np.float32)
    lengths = sorted({low, *range(low, low + 3 * INSTANCES), (low + high) // 2 % 5000 + low, 4000})
    for n in [n for n in (*lengths, *lengths[::-1], *lengths) if low <= n <= high]:
        x = rng.random((n, 8), np.float32)
        np.testing.assert_allclose(call(x, w), np.exp(x) @ w, rtol=1e-4)
    assert not refused
    for n in (low - 1, high + 1 if high < 100_000 else 1):
        assert call(np.zeros((n, 8), np.float32), w) is None
    assert len(refused) == 2


@native
def test_what_the_plan_does_not_hold_for(rng: np.random.Generator) -> None:
    compiled = nbcomp.compile(lambda x: x + 1, nbcomp.f64["n", "m"])
    call, refused = entry(compiled)
    x = rng.random((600, 700))
    np.testing.assert_array_equal(call(x), x + 1)
    for wrong in (
        x[:, ::2], x[::-1], x.T, x[:, :650], x.astype(np.float32), x[0], x[None],
        np.broadcast_to(x[0], x.shape), np.zeros((600, 0)), np.zeros((1, 700)),
    ):  # fmt: skip
        assert call(wrong) is None
    assert len(refused) == 10
    same = np.lib.stride_tricks.as_strided(x, (599, 699), (700 * 8, 8))
    assert call(same) is None
    np.testing.assert_array_equal(call(x[:500]), x[:500] + 1)


@native
def test_conditions_on_formulas(rng: np.random.Generator) -> None:
    """Lengths found to be equal, and a limit on the product of two."""
    f = nbcomp.jit(lambda x, y: np.exp(x) * y[:, None])
    for n, m in ((30, 20), (31, 21)):
        f(rng.random((n, m)), rng.random(n))
    made = f.compiled
    assert made is not None
    opened = made.plan.open
    assert opened is not None
    assert opened.conditions.zero
    assert opened.conditions.ranges
    call, refused = entry(made)
    x, y = rng.random((40, 25)), rng.random(40)
    np.testing.assert_allclose(call(x, y), np.exp(x) * y[:, None], rtol=1e-12)
    assert call(x, y[:39]) is None
    n, m, k = opened.symbols
    large = {n: 3000, m: 3000, k: 3000}
    assert "n*m" in opened.why_not(large)
    assert call(np.zeros((3000, 3000)), np.zeros(3000)) is None
    assert len(refused) == 2
    with pytest.raises(ValueError, match="broadcast"):
        f(x, y[:39])


@native
def test_equal_names_are_equal_lengths(rng: np.random.Generator) -> None:
    compiled = nbcomp.compile(lambda x, y: x * y, nbcomp.f32["n"], nbcomp.f32["n"])
    call, refused = entry(compiled)
    x = rng.random(900, np.float32)
    np.testing.assert_array_equal(call(x, x), x * x)
    assert call(x, x[:1]) is None
    assert call(x, x[:899]) is None
    assert len(refused) == 2
    with pytest.raises(NbcompError, match="axis 0 of y has length 899, but the length of axis 0"):
        compiled(x, x[:899])


@native
def test_arrays_that_share_memory(rng: np.random.Generator) -> None:
    def f(x: Any, y: Any) -> Any:
        x[:] = y * 2
        return x.sum()

    jitted = nbcomp.jit(f)
    memory = rng.random(4000)
    for start, n in ((0, 100), (200, 130), (1, 300), (299, 300), (300, 300), (50, 77)):
        mine, theirs = memory.copy(), memory.copy()
        got = jitted(mine[start : start + n], mine[:n])
        want = f(theirs[start : start + n], theirs[:n])
        np.testing.assert_allclose(got, want)
        np.testing.assert_array_equal(mine, theirs)


def test_many_lengths_at_the_same_time() -> None:
    """More than there are instances, in calls that run without the GIL."""

    @nbcomp.jit
    def f(x: Any, y: Any) -> Any:
        return np.exp(x) * 3 + np.sin(y) - x.mean()

    wrong: list[Any] = []

    def run(k: int) -> None:
        rng = np.random.default_rng(k)
        for _ in range(12):
            n = int(rng.integers(20_000, 90_000))
            x, y = rng.random(n), rng.random(n)
            want = np.exp(x) * 3 + np.sin(y) - x.mean()
            if not np.allclose(f(x, y), want, rtol=1e-9):
                wrong.append(n)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(2 * INSTANCES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(f.variants) < 8


def test_the_account_says_what_is_open() -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        return x * 2

    for n in (10, 20):
        f(np.zeros((n, 4)))
    text = str(f.explain())
    assert "x is f64[n, 4]" in text
    assert "n = " in text
    (remark,) = [r for r in f.explain().remarks if r.topic == "lengths"]
    assert "the length of axis 0 of x is open: one code for n = 2" in remark.reason
    assert "f64[n, 4]" in str(f.compiled.captured)  # type: ignore[union-attr]


def test_what_fixes_a_length_is_said() -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        ramp = np.linspace(0, 1, len(x))
        return x * ramp

    for n in (100, 200, 300):
        np.testing.assert_array_equal(f(np.ones(n)), np.linspace(0, 1, n))
    (remark,) = [r for r in f.variants[1].explain() if r.topic == "lengths" and r.kind == "missed"]
    assert "is 200 in this code" in remark.reason
    assert remark.location is not None
    assert "linspace" in remark.location.source()


def test_arrays_that_are_not_there_any_more(rng: np.random.Generator) -> None:
    f = nbcomp.jit(lambda arrays: [np.exp(x) for x in arrays])
    for n in (30, 31):
        f([rng.random(n), rng.random(n + 10)])
    assert f.compiled is not None
    assert f.compiled.plan.open is not None
    x = rng.random(50)
    (alone,) = f([x])
    np.testing.assert_allclose(alone, np.exp(x), rtol=1e-14)
    assert len(f.variants) == 3


def test_annotations_leave_lengths_open_at_once() -> None:
    def weighted(x: Any, y: Any) -> Any:
        return x.sum(1) * y

    weighted.__annotations__ = {"x": nbcomp.f32["n", 4], "y": nbcomp.f32["n"]}
    f = nbcomp.jit(weighted)
    for n in (64, 70, 333):
        x, y = np.ones((n, 4), np.float32), np.full(n, 2, np.float32)
        np.testing.assert_array_equal(f(x, y), np.full(n, 8, np.float32))
    assert len(f.variants) == 1


@pytest.mark.parametrize(
    "shape",
    [("2n",), (-1,), (1.5,), (True,), ("",), (None, 3), ("n**2",), ("3",), ("f(n)",), ("n / 2",)],
)
def test_no_shape(shape: Any) -> None:
    with pytest.raises(TypeError, match="whole numbers ≥ 0, names"):
        nbcomp.f32[shape]


NUMBERS = {
    "power": lambda x, i: x * 0.9**i,
    "roll": lambda x, i: np.roll(x, i),
    "roll of rows": lambda x, i: np.roll(x.reshape(3, 3), i, axis=0),
    "rounds": lambda x, i: functools.reduce(lambda a, _: a * 2, range(i % 5), x),
    "index": lambda x, i: x[i % 9] * 2,
}


@pytest.mark.parametrize("by", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize("name", NUMBERS)
def test_an_int_that_varies_needs_few_variants(name: str, by: Any) -> None:
    function = NUMBERS[name]
    compiled, x, numbers = by(function), np.arange(9.0), (*range(60), -3, 1000, True)
    for i in numbers:
        np.testing.assert_allclose(compiled(x, i), function(x, i), rtol=1e-14)
    assert len(compiled.variants) <= 14  # 0, 1, negative and far numbers have their own
    assert not compiled.fallbacks


def _served(shapes: list[tuple[int, int, int]]) -> Any:
    made = nbcomp.compile(lambda x, y: x @ y, nbcomp.f32["n", "k"], nbcomp.f32["k", "m"])
    for n, k, m in shapes:
        made(np.ones((n, k), np.float32), np.ones((k, m), np.float32))
    return made


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        (np.ones((3, 4)), np.ones((4, 5)), "x had dtype float32 and now has float64"),
        (np.ones((3, 4), "f4"), np.ones((4, 5)), "y had dtype float32 and now has float64"),
        (np.ones((3, 8), "f4")[:, ::2], np.ones((4, 5), "f4"), r"x had strides \(16, 4\)"),
        (np.ones((3, 4), "f4"), np.ones((5, 4), "f4").T, r"y had strides \(20, 4\)"),
        (np.ones((3, 4), "f4"), np.ones((5, 5), "f4"), "axis 0 of y"),
        (np.ones((3, 4), "f4"), np.ones(4, "f4"), "y is no array of 2 axes"),
    ],
)
def test_what_is_said_of_a_call_is_not_about_lengths_that_are_served(
    x: Any, y: Any, why: str
) -> None:
    with pytest.raises(nbcomp.NbcompError, match=why):
        _served([(3, 4, 5), (30, 40, 50)])(x, y)


def test_types_among_arrays_are_compiled_for(rng: np.random.Generator) -> None:
    """`jit(f).compile` takes types as `nbcomp.compile` does, keywords and defaults included."""
    w = rng.random((16, 3), np.float32)
    f = nbcomp.jit(lambda x, w, scale=2: x @ w * scale)
    f.compile(nbcomp.f32["n", 16], w=w)
    for n in (7, 900):
        x = rng.random((n, 16), np.float32)
        np.testing.assert_allclose(f(x, w), x @ w * 2, rtol=1e-5)
    assert any("= " in str(r) and "open" in str(r) for r in f.explain().remarks)
    g = nbcomp.jit(lambda x: x + 1)
    g.compile(nbcomp.f64[3, 4])
    g(np.ones((3, 4)))
    assert len(g.variants) == 1


def test_a_type_says_that_a_length_is_a_multiple(rng: np.random.Generator) -> None:
    def rows(x: Any) -> Any:
        return x.reshape(-1, 4).sum(axis=1)

    with pytest.raises(ValueError, match=r"for all n, .* say in the type .* \('4\*n'\), or jit"):
        nbcomp.compile(rows, nbcomp.f64["n"])
    compiled = nbcomp.compile(rows, nbcomp.f64["4*n"])
    assert "f64[n, 4] = reshape" in str(compiled.captured)
    for n in (8, 400):
        x = rng.random(n)
        np.testing.assert_allclose(compiled(x), rows(x), rtol=1e-14)
    with pytest.raises(ValueError, match="cannot reshape"):
        compiled(rng.random(41))


def test_types_name_lengths_by_formulas(rng: np.random.Generator) -> None:
    def between(x: Any, y: Any) -> Any:
        a, b = x[1:, : x.shape[1] // 2], x[:-1, x.shape[1] // 2 :]
        return (a + b) * y

    types = nbcomp.f32["n+1", "2*d"], nbcomp.f32["n", "d"]
    exported = nbcomp.export(between, *types)
    assert str(types[0]) == "f32[n + 1, 2 * d]"
    assert "-> R.Tensor((n, d)" in exported.script()
    compiled = nbcomp.compile(between, *types)
    assert "%x: f32[n + 1, 2*d]" in str(compiled.captured)
    for n, d in ((5, 4), (300, 7)):
        x, y = (rng.random(shape).astype(np.float32) for shape in ((n + 1, 2 * d), (n, d)))
        for f in (exported, compiled):
            np.testing.assert_array_equal(f(x, y), between(x, y))
