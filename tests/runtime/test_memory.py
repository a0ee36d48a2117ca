"""Large arrays: ordinary, aligned, recycled, bounded; and what happens when there is no memory."""

from __future__ import annotations

import copy
import pickle
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nbcomp.runtime import memory
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.plan import Output, Plan
from nbcomp.types import FLOAT64
from tests.runtime.kernels import add_plan, step

SIZE = memory.LARGE // 8  # doubles of the smallest large array


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    memory.set_limit(memory.default_limit())
    yield
    memory.set_limit(memory.default_limit())


def _refuse(args: Any, kwargs: Any) -> Any:
    raise AssertionError("refused")


def _adder(size: int) -> NativeFunction:
    function = NativeFunction("add", None, _refuse)
    function.add(add_plan(size))
    return function


def _where(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("size", [SIZE, SIZE + 1, 1_000_003, 1 << 20])
def test_large_results_are_ordinary_arrays(size: int, rng: np.random.Generator) -> None:
    x = rng.random(size)
    result = _adder(size).callable(x, x)
    np.testing.assert_array_equal(result, x + x)
    assert type(result) is np.ndarray
    assert result.base is None
    assert result.flags.owndata
    assert result.flags.writeable
    assert result.flags.c_contiguous
    assert _where(result) % memory.ALIGNMENT == 0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)), result)
    np.testing.assert_array_equal(copy.deepcopy(result), result)


def test_a_freed_block_is_used_again() -> None:
    f, x = _adder(SIZE).callable, np.ones(SIZE)
    first = f(x, x)
    place, before = _where(first), memory.statistics()
    assert before.lent >= memory.LARGE
    del first
    waiting = memory.statistics()
    assert waiting.blocks == before.blocks + 1
    assert waiting.lent < before.lent
    again = f(x, x)
    assert _where(again) == place
    assert memory.statistics().hits == before.hits + 1
    other = f(x, x)
    assert _where(other) != place


def test_blocks_start_apart_from_each_other_in_their_pages() -> None:
    memory.trim()
    arrays = [memory.empty(FLOAT64, (size,)) for size in (SIZE, SIZE, 16 * SIZE, 16 * SIZE)]
    starts = [0, *(_where(array) % 4096 for array in arrays)]
    apart = [abs(a - b) for k, a in enumerate(starts) for b in starts[:k]]
    assert min(apart) >= 512
    assert max(apart) <= 4096 - 512


def test_a_somewhat_larger_block_will_do() -> None:
    array = memory.empty(FLOAT64, (10 * SIZE,))
    place = _where(array)
    del array
    assert _where(memory.empty(FLOAT64, (9 * SIZE,))) == place
    assert _where(memory.empty(FLOAT64, (4 * SIZE,))) != place


def test_views_keep_the_block() -> None:
    array = memory.empty(FLOAT64, (SIZE,))
    array[:] = 3
    view = array[5:]
    waiting = memory.statistics().blocks
    del array
    assert memory.statistics().blocks == waiting
    assert view.sum() == 3 * (SIZE - 5)
    del view
    assert memory.statistics().blocks == waiting + 1


def test_arrays_may_be_resized_in_place() -> None:
    array = memory.empty(FLOAT64, (SIZE,))
    array[:] = np.arange(SIZE)
    array.resize(5 * SIZE, refcheck=False)
    np.testing.assert_array_equal(array[:SIZE], np.arange(SIZE))
    assert not array[SIZE:].any()
    array.resize(10, refcheck=False)
    assert array.tolist() == list(range(10))


def test_the_cache_is_bounded() -> None:
    memory.set_limit(3 * memory.LARGE)
    arrays = [memory.empty(FLOAT64, (SIZE,)) for _ in range(5)]
    places = [_where(array) for array in arrays]
    while arrays:
        del arrays[0]  # the oldest are dropped first
    state = memory.statistics()
    assert (state.blocks, state.bytes) == (3, 3 * memory.LARGE)
    again = [memory.empty(FLOAT64, (SIZE,)) for _ in range(3)]
    assert [_where(array) for array in again] == places[:1:-1]
    huge = memory.empty(FLOAT64, (4 * SIZE,))
    del huge
    assert memory.statistics().blocks == 0


def test_many_blocks_are_bounded_in_number() -> None:
    arrays = [memory.empty(FLOAT64, (SIZE,)) for _ in range(40)]
    del arrays
    assert memory.statistics().blocks == 32


def test_trim_gives_everything_back() -> None:
    del_me = memory.empty(FLOAT64, (SIZE,))
    del del_me
    assert memory.statistics().blocks
    memory.trim()
    state = memory.statistics()
    assert (state.blocks, state.bytes) == (0, 0)


def test_order_and_small_arrays() -> None:
    for shape, strides in (((300, 400), (8, 2400)), ((2, 3), (8, 16)), ((0,), None), ((), None)):
        array = memory.empty(FLOAT64, shape, strides)
        array[...] = 1
        assert array.shape == shape
        assert array.strides == (strides or np.empty(shape).strides)
        assert array.flags.owndata


def test_without_the_native_library_arrays_are_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "library", lambda: None)
    array = memory.empty(FLOAT64, (SIZE, 2), (8, SIZE * 8))
    assert _where(array) % memory.ALIGNMENT == 0
    assert array.strides == (8, SIZE * 8)
    assert memory.statistics().blocks == 0
    memory.trim()


@pytest.mark.parametrize("shape", [(1 << 45,), (1 << 25, 1 << 25)])
def test_too_large_for_memory(shape: tuple[int, ...]) -> None:
    plan = Plan((), 0, 1, (Output(FLOAT64, shape, 0),), (step("iota", (0,), extent=0),))
    function = NativeFunction("f", None, _refuse)
    function.add(plan)
    with pytest.raises(MemoryError, match=r"Unable to allocate .* for an array with shape"):
        function.callable()
    with pytest.raises(MemoryError, match="Unable to allocate"):
        memory.empty(FLOAT64, shape)


def test_tracemalloc_sees_large_arrays() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    array = memory.empty(FLOAT64, (SIZE,))
    grown = tracemalloc.get_traced_memory()[0] - before
    del array
    left = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown >= memory.LARGE
    assert left < memory.LARGE // 2


def test_blocks_may_die_on_other_threads() -> None:
    f, x = _adder(SIZE).callable, np.ones(SIZE)
    wrong = []

    def work() -> None:
        kept: list[Any] = []
        for _ in range(100):
            kept.append(f(x, x))
            if len(kept) == 5:
                if any(array[0] != 2 or array[-1] != 2 for array in kept):
                    wrong.append(kept)
                kept.clear()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
