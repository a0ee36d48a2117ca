"""What kernels must do: operations and bytes, counted against sums done by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.loop.cost import INSTRUCTIONS
from nbcomp.loop.grammar import Alloc, Block, For, affine
from nbcomp.loop.work import Work, unique_bytes, work_of
from nbcomp.lowering.program import KernelStep
from tests.kernels import add_to, buffer, index, kernel, load, loop, number, store
from tests.programs import lowered


def works(function: Callable[..., Any], *args: Any) -> list[Work]:
    steps = lowered(function, *args).steps
    return [work_of(s.kernel) for s in steps if isinstance(s, KernelStep)]


def work(function: Callable[..., Any], *args: Any) -> Work:
    (only,) = works(function, *args)
    return only


def f32(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def f64(*shape: int) -> Any:
    return np.zeros(shape)


def test_arithmetic_counts_one_and_functions_their_instructions() -> None:
    assert work(lambda x: x * x + 1, f32(30, 40)).operations == {4: 2 * 1200}
    assert work(lambda x: np.exp(x) - x, f64(500)).operations == {
        8: (INSTRUCTIONS["exp"] + 1) * 500
    }
    assert work(lambda x: np.sqrt(x) / x, f64(500)).operations == {8: 2 * 500}


def test_every_element_moves_once() -> None:
    found = work(lambda x, y: (x + y) * (x - y), f32(30, 40), f32(30, 40))
    assert sorted(found.read.values()) == [4800, 4800]
    assert list(found.written.values()) == [4800]


def test_what_is_broadcast_moves_once() -> None:
    found = work(lambda x, y: x[:, None] * y, f64(30), f64(40))
    assert found.read == {"x": 240, "y": 320}
    assert sum(found.written.values()) == 8 * 1200
    assert unique_bytes(buffer("x", (30, 40))) == 4 * 1200
    stretched = lowered(lambda x: x + 1, np.broadcast_to(f64(40), (30, 40))).steps[0]
    assert isinstance(stretched, KernelStep)
    assert work_of(stretched.kernel).read == {"x": 320}


def test_parts_of_an_array_are_counted_by_what_is_read() -> None:
    assert work(lambda x: x[:10] + 1.0, f64(1000)).read == {"x": 80}
    assert work(lambda x: x[:400] + x[500:900], f64(1000)).read == {"x": 6400}
    shifted = work(lambda x: x[1:-1] + x[:-2] + x[2:], f64(1000))
    assert shifted.read == {"x": 8000}  # not three times as much


def test_sums_add_once_for_each_element() -> None:
    found = work(lambda x: x.sum(axis=1), f32(30, 40))
    assert found.operations == {4: 1200}
    assert found.read == {"x": 4800}
    assert sum(found.written.values()) == 120


@pytest.mark.parametrize("batch", [(), (5,)])
def test_products_are_two_operations_a_term(batch: tuple[int, ...]) -> None:
    found = work(lambda a, b: a @ b, f32(*batch, 20, 30), f32(*batch, 30, 50))
    times = int(np.prod(batch))
    assert found.operations == {4: 2 * 20 * 30 * 50 * times}
    assert sorted(found.read.values()) == sorted([2400 * times, 6000 * times])
    assert list(found.written.values()) == [4000 * times]


def test_a_matrix_that_all_products_share_is_read_once() -> None:
    found = work(lambda a, b: a @ b, f32(5, 20, 30), f32(30, 50))
    assert sorted(found.read.values()) == [6000, 12000]


def test_local_memory_does_not_move() -> None:
    total, x = buffer("total", (), "local"), buffer("x", (50,))
    out = buffer("out", (), "output")
    body = loop("i", 50, add_to(total, (), load(x, "i")))
    nest = Block((Alloc(total), store(total, (), number(0)), body, store(out, (), load(total))))
    found = work_of(kernel(nest, buffers=[x, out]))
    assert (found.read, found.written) == ({"x": 200}, {"out": 4})
    assert found.operations == {4: 50}


def test_an_index_of_two_loops_touches_as_much_as_both_reach() -> None:
    out = buffer("out", (64,), "output")
    inner = For("i", affine(8), (store(out, (index(0, i=1, j=8),), number(1)),))
    assert work_of(kernel(loop("j", 8, inner), buffers=[out])).written == {"out": 256}


def test_work_is_put_on_the_lines_it_comes_from() -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        return y + 1.0

    found = work(f, f64(100))
    lines: dict[int, float] = {}
    for place, (instructions, _) in found.places.items():
        assert place is not None
        lines[place.line - f.__code__.co_firstlineno] = (
            lines.get(place.line - f.__code__.co_firstlineno, 0.0) + instructions
        )
    assert lines[1] >= INSTRUCTIONS["exp"] * 100
    assert 100 <= lines[2] <= 300
