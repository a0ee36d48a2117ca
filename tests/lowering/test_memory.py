"""The memory plan: values that live at the same time never share a byte, others share the arena."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.lowering.program import ALIGN, KernelStep, LibraryStep, Program
from tests.graph.random_fusions import Program as RandomFusion
from tests.programs import lowered, passed
from tests.random_programs import generate


def touched(step: KernelStep | LibraryStep) -> set[int]:
    """The slots a step reads or writes."""
    if isinstance(step, KernelStep):
        return set(step.slots)
    return {*(slot for slot, _, _ in step.inputs), *(slot for slot, _ in step.outputs)}


def sizes(program: Program) -> dict[int, int]:
    """The bytes of each temp, by the largest view of it."""
    found: dict[int, int] = {}
    for step in program.steps:
        views: list[tuple[int, int]] = []
        if isinstance(step, KernelStep):
            own = [b for b in step.kernel.buffers if not b.alias]
            views = [(s, b.nbytes) for s, b in zip(step.slots, own, strict=True)]
        else:
            views = [(slot, kind.nbytes) for slot, kind in step.outputs]
        for slot, size in views:
            if slot in program.temps:
                found[slot] = max(found.get(slot, 0), size)
    return found


def check(program: Program) -> None:
    """No overlaps among those alive together, nothing beyond the arena, every slot somewhere."""
    lives: dict[int, list[int]] = {}
    for number, step in enumerate(program.steps):
        for slot in touched(step):
            lives.setdefault(slot, []).append(number)
    size = sizes(program)
    temps = sorted(program.temps)
    for slot in temps:
        assert program.temps[slot] % ALIGN == 0
        assert program.temps[slot] + size.get(slot, 0) <= program.arena
    for k, a in enumerate(temps):
        for b in temps[k + 1 :]:
            together = lives[a][0] <= lives[b][-1] and lives[b][0] <= lives[a][-1]
            apart = (
                program.temps[a] + size[a] <= program.temps[b]
                or program.temps[b] + size[b] <= program.temps[a]
            )
            assert apart or not together, (a, b)
    known = {*program.temps, *program.constants, *(slot for slot, _ in program.outputs)}
    inputs = set(range(program.slots)) - known
    for slot in lives:
        assert slot in known | inputs


def chain(n: int, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(n):
            x = step(x)
        return x

    return f


def jacobi(x: Any) -> Any:
    y = x.copy()
    y[1:-1] = 0.5 * (x[2:] + x[:-2])
    return y


@pytest.mark.parametrize(
    "step",
    [
        jacobi,
        lambda x: np.sort(x),
        lambda x: np.concatenate([x[1:], x[:1]]),
        lambda x: np.roll(np.exp(-x), 1),
    ],
    ids=["jacobi", "sort", "concatenate", "roll"],
)
def test_a_chain_needs_two_buffers(step: Callable[[Any], Any]) -> None:
    program = lowered(chain(20, step), np.ones(1000))
    check(program)
    assert 19 <= len(program.temps) <= 39
    assert program.arena == 2 * 8000


def test_what_is_used_at_the_end_stays() -> None:
    def f(x: Any) -> Any:
        first = np.sort(np.exp(x))
        y = chain(10, lambda x: np.sort(x))(first)
        return y + first

    program = lowered(f, np.ones(1000))
    check(program)
    assert program.arena == 3 * 8000


def test_small_values_fit_between_large_ones() -> None:
    def f(x: Any) -> Any:
        for _ in range(6):
            row = np.sort(x.sum(axis=0))
            x = np.sort(x + row, axis=0)
        return x

    program = lowered(f, np.ones((500, 40)))
    check(program)
    assert program.arena <= 2 * 500 * 40 * 8 + 2 * 40 * 8


def test_results_and_arguments_are_not_in_the_arena() -> None:
    program = lowered(lambda x: np.exp(x), np.ones(1000))
    assert program.arena == 0
    assert program.temps == {}


def test_results_of_results_are_not_copied() -> None:
    def f(x: Any) -> Any:
        a = np.sort(x)
        return a, np.sort(-a)

    program = lowered(f, np.ones(1000))
    check(program)
    assert program.arena == 8000  # the negative


def test_reshapes_share_a_slot() -> None:
    program = lowered(
        lambda x: np.sort(np.exp(x).reshape(-1)).reshape(10, 10) + 1, np.ones((10, 10))
    )
    check(program)
    assert program.arena == 2 * 832


def test_parts_of_sums_are_temps() -> None:
    program = lowered(lambda x: x.sum(), np.ones(1 << 20))
    check(program)
    assert program.temps


def test_empty_values() -> None:
    check(lowered(chain(5, lambda x: np.sort(x)), np.ones(0)))
    check(lowered(lambda x: np.sort(x[:, :0]).sum(axis=1) + np.sort(x[:, 0]), np.ones((3, 4))))


@pytest.mark.parametrize("seed", range(80))
def test_random_fusions(seed: int) -> None:
    made = RandomFusion(seed)
    check(lowered(made.function, *made.arguments))


@pytest.mark.parametrize("seed", range(100))
def test_random_programs(seed: int) -> None:
    made = generate(seed, 200)
    arguments = made.arguments()
    try:
        passed(made.function, *arguments)
    except Exception:
        pytest.skip("not captured")
    check(lowered(made.function, *arguments))


@pytest.mark.parametrize("seed", range(20))
def test_long_programs_of_libraries(seed: int) -> None:
    """Values of many sizes that live for different times."""
    rng = np.random.default_rng(seed)
    plan = [(int(rng.integers(4)), float(rng.random()), int(rng.integers(1, 5))) for _ in range(25)]

    def f(x: Any) -> Any:
        values = [x]
        for kind, choice, size in plan:
            a = values[int(choice * len(values))]
            if kind == 0:
                values.append(np.sort(a))
            elif kind == 1:
                values.append(np.concatenate([a] * size)[:400])
            elif kind == 2:
                values.append(np.sort(a[: max(1, a.size // size)]))
            else:
                values.append(np.sort(a * 2 + values[-1].sum()))
        return values[-1], values[len(values) // 2]

    check(lowered(f, np.ones(50)))
