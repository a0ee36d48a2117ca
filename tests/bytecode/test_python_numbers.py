"""Python numbers made of elements: `float(x)`, `int(x)`, `x.item()` go on in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp

LOG: list[int] = []


def index(x: Any) -> Any:
    k = int(x.argmax())
    y = x.copy()
    y[k] += 5
    return y, x[k - 1], k, k + 1, k * 3 - 1, -k


def floats(x: Any) -> Any:
    s = float(x.sum())
    return x.astype(np.float32) * s, s * s, s > 3, 2 * s + 1, s**2, abs(s)


def members(x: Any) -> Any:
    return [float(v) for v in x], sum(int(v > 0.5) for v in x), x[:1].item(), (x > 1).all().item()


def power(x: Any) -> Any:
    return float(x[0] - x[1] * 20.0) ** 0.5, 2.0 ** float(x[0])


def division(x: Any) -> Any:
    return divmod(float(x.sum()), 3.0), float(x[0]) / float(x[1]), int(x.argmax()) // 2


def rounding(x: Any) -> Any:
    return round(float(x.mean()), 2), round(float(x.sum())), float(x[0]).is_integer()


def nature(x: Any) -> Any:
    s, k = float(x.sum()), int(x.argmax())
    return type(s) is float, isinstance(k, int), hasattr(s, "dtype"), k.bit_length(), s.real


def branch(x: Any) -> Any:
    norm = float(np.abs(x).max())
    return x / norm if norm > 1e-9 else x


def growing(x: Any) -> Any:
    norms = []
    for _ in range(5):
        x = np.sin(x) + 0.25
        norms.append(float(x.sum()))
    return norms, x


def check(found: Any, wanted: Any) -> None:
    """The same types, and the same values but for another order of sums."""
    assert type(found) is type(wanted)
    if isinstance(wanted, list | tuple):
        for a, b in zip(found, wanted, strict=True):
            check(a, b)
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, 1e-6 if found.dtype.itemsize < 8 else 1e-13)
    else:
        assert found == pytest.approx(wanted, 1e-13)


PROGRAMS = [index, floats, members, power, division, rounding, nature, branch, growing]


@pytest.mark.parametrize("way", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
def test_as_python(program: Any, dtype: Any, way: Any, rng: np.random.Generator) -> None:
    x = (rng.random(7) * 9).astype(dtype)
    fast = way(program)
    for _ in range(3):
        check(fast(x.copy()), program(x.copy()))


@pytest.mark.parametrize("program", [index, floats, members, growing])
def test_one_graph(program: Any, rng: np.random.Generator) -> None:
    fast = nbcomp.jit(program)
    fast(rng.random(7))
    assert not fast.breaks
    assert len(fast.variants) == 1


def test_narrow_floats_become_doubles() -> None:
    x = np.array([0.1, 65504.0], np.float16)
    fast = nbcomp.jit(lambda x: (float(x[0]), x[1].item() * 1e300))
    assert fast(x) == (float(x[0]), 65504.0 * 1e300)


def test_products_beyond_64_bits_are_pythons() -> None:
    fast = nbcomp.jit(lambda x: int(x.max()) * int(x.max()))
    x = np.array([3, 5_000_000_000])
    assert fast(x) == 25_000_000_000_000_000_000


def test_large_unsigned_numbers() -> None:
    fast = nbcomp.jit(lambda x: (int(x.max()), float(x.max())))
    x = np.array([1, 2**64 - 1], np.uint64)
    assert fast(x) == (2**64 - 1, float(2**64 - 1))


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
def test_more_than_one_element_raises() -> None:
    with pytest.raises(TypeError, match="only"):
        nbcomp.jit(lambda x: x * float(x))(np.ones(3))
    with pytest.raises(ValueError, match="size 1"):
        nbcomp.jit(lambda x: x.item())(np.ones(3))


def test_the_trace_of_an_item() -> None:
    traced = nbcomp.trace(lambda x: x * x.sum().item(), np.ones(3, np.float32))
    np.testing.assert_array_equal(traced(np.full(3, 2, np.float32)), np.full(3, 12, np.float32))
    assert traced(np.ones(3, np.float32)).dtype == np.float32


def test_long_lists_of_numbers_are_numpys(rng: np.random.Generator) -> None:
    """Each number would be an argument of the compiled code."""

    def walk(x: Any, steps: Any) -> Any:
        seen = []
        for step in steps:
            x = np.sin(x) + 0.1
            LOG.append(step)
            seen.append(x[0])
        return np.array(seen).cumsum() * 2 + x.sum()

    x, steps, fast = rng.random(4), list(range(300)), nbcomp.jit(walk)
    for _ in range(3):
        np.testing.assert_allclose(fast(x, steps), walk(x, steps))
    assert all(len(c.captured.nodes) < 60 for c in fast.parts.compiled)
    assert any("300 numbers" in b.reason for b in fast.breaks)
    summed = nbcomp.jit(lambda values: np.array(values).sum())
    values = rng.random(20).tolist()
    assert summed(values) == pytest.approx(sum(values))
    assert not summed.breaks
