"""The default schedule: which loops it fuses, tiles, vectorises, spreads and streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nbcomp.loop.grammar import Block, For, Kernel, Store, walk
from nbcomp.loop.verifier import verify
from nbcomp.lowering.program import KernelStep
from nbcomp.machine import Machine
from nbcomp.schedule.cores import BLOCK, grain, seconds
from nbcomp.schedule.default import default_schedule
from nbcomp.types import FLOAT64
from tests.graph.random_fusions import Program
from tests.kernels import apply, buffer, index, kernel, load, loop, number, store
from tests.programs import lowered, text

MACHINE = Machine("test", 64, 2, 32 << 10, 1 << 20, 32 << 20)  # the same on every host
LARGE = (1200, 4096)  # float32: more than half of its last-level cache


def kernels(function: Callable[..., Any], *args: Any, machine: Machine = MACHINE) -> list[Kernel]:
    """The scheduled kernels of a function."""
    steps = lowered(function, *args, calls=True).steps
    return [verify(default_schedule(s.kernel, machine)) for s in steps if isinstance(s, KernelStep)]


def notes(function: Callable[..., Any], *args: Any, machine: Machine = MACHINE) -> list[str]:
    """What was done to them."""
    return [note for k in kernels(function, *args, machine=machine) for note in k.notes]


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    """An array of any size; its pages are never touched."""
    return np.zeros(shape, dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def forces(p: Any, m: Any) -> Any:
    d = p[None, :, :] - p[:, None, :]
    r2 = (d * d).sum(axis=2) + 0.01
    return (d * (m / (r2 * np.sqrt(r2)))[:, :, None]).sum(axis=1)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "elementwise": (lambda x: np.exp(x) + 1, [zeros(30, 50)]),
    "elementwise, large": (lambda x: np.exp(x) + 1, [zeros(*LARGE)]),
    "broadcast": (lambda x, y: x * y, [zeros(30, 50), zeros(50)]),
    "transposed": (lambda x: x.T + 1, [zeros(400, 300)]),
    "softmax": (softmax, [zeros(128, 1000)]),
    "sum of rows": (lambda x: x.sum(axis=1), [zeros(300, 400)]),
    "sum of columns": (lambda x: x.sum(axis=0), [zeros(300, 400)]),
    "sum of all": (lambda x: x.sum(), [zeros(1000, 1000)]),
    "pairwise forces": (forces, [zeros(150, 3, dtype=FLOAT64), zeros(150, dtype=FLOAT64)]),
    "norms of points": (lambda x: np.sqrt((x * x).sum(axis=1)), [zeros(500, 3)]),
    "product": (
        lambda x, w, b: np.maximum(x @ w + b, 0),
        [zeros(512, 512), zeros(512, 512), zeros(512)],
    ),
    "parts": (lambda x: np.concatenate([x, np.exp(x)], axis=1), [zeros(40, 30)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_schedules(name: str, golden: Callable[..., None]) -> None:
    function, args = PROGRAMS[name]
    golden("\n\n".join(text(k) for k in kernels(function, *args)))


@pytest.mark.parametrize("seed", range(40))
def test_scheduled_kernels_are_well_formed(seed: int) -> None:
    made = Program(seed)
    kernels(made.function, *made.arguments)  # verified


# ---------------------------------------------------------------------------------------- vectors


def test_every_innermost_loop_is_a_vector_loop() -> None:
    for function, args in PROGRAMS.values():
        for k in kernels(function, *args):
            for s in walk(k.stages):
                if isinstance(s, For) and not any(isinstance(t, For) for t in walk(s.body)):
                    body = {type(t).__name__ for t in s.body}
                    assert s.kind in ("vector", "unroll") or body == {"Call"}


def test_what_carries_over_stays_serial() -> None:
    out = buffer("out", (1000,), "output")
    body = loop("i", 999, store(out, (index(1, i=1),), load(out, "i")))
    k = default_schedule(kernel(body, buffers=[out]), MACHINE)
    assert k.notes == ()
    (stage,) = k.stages
    assert isinstance(stage, For)
    assert stage.kind == "serial"


def test_sums_have_many_vectors_in_flight() -> None:
    assert 'interleave("r", 8)' in notes(lambda x: x.sum(axis=1), zeros(300, 400))
    assert 'interleave("r", 8)' not in notes(
        lambda x: np.exp(np.sin(x)).sum(axis=1), zeros(300, 400)
    )


# ------------------------------------------------------------------------------------------ cores


def test_small_loops_are_not_split() -> None:
    assert not any(n.startswith("split") for n in notes(lambda x: x + 1, zeros(2 * BLOCK)))
    assert f'split("i", {BLOCK})' in notes(lambda x: x + 1, zeros(2 * BLOCK + 1))


def test_divisions_run_beside_the_loops_before_them() -> None:
    def normed(x: Any) -> Any:
        d = x - x.mean(axis=1, keepdims=True)
        return d / np.sqrt((d * d).mean(axis=1, keepdims=True))

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def weighed(x: Any) -> Any:
        e = np.exp(x)
        return e / (e - e.mean(axis=1, keepdims=True)).max(axis=1, keepdims=True)

    first, three = 'overlap("i", "r", "r_3")', 'overlap("i", "r", "r_2", "r_3")'
    assert three in notes(normed, zeros(1024, 768))
    assert first in notes(normed, zeros(256, 4096))  # the rows would not stay in the first cache
    assert three in notes(softmax, zeros(1024, 256))
    assert three in notes(softmax, zeros(256, 4096))  # whose exp has time to wait for them
    assert first in notes(weighed, zeros(1024, 256))  # all three loops use the exps of a row


def test_loops_that_use_scalars_are_spread_over_the_cores() -> None:
    scale = np.array(2.0, np.float32)
    (made,) = kernels(lambda x, a: x * a + 1, zeros(1000, 1000), scale)
    assert made.notes[-3:] == ('split("i", 4096)', 'sink("i_o")', 'parallelize("i_o")')
    turned = notes(lambda x, a: x.T.copy() * a, zeros(1000, 1000), scale)
    assert 'tile("i", "j", 16, 8)' in turned
    assert turned[-2:] == ['sink("i_o")', 'parallelize("i_o")']


def test_a_sum_of_everything_is_split_first() -> None:
    (k,) = kernels(lambda x: x.sum(), zeros(1000, 1000))
    assert [s.kind for s in k.stages if isinstance(s, For)].count("parallel") >= 1


def test_one_core_splits_no_products() -> None:
    function, args = PROGRAMS["product"]
    alone = replace(MACHINE, cores=1)
    assert not any("split_product" in n for n in notes(function, *args, machine=alone))
    assert any("split_product" in n for n in notes(function, *args))
    small = [zeros(16, 512), zeros(512, 16), zeros(16)]
    assert not any("split_product" in n for n in notes(function, *small))


def stage(n: int) -> For:
    """A parallel loop over n rows of a thousand exponentials."""
    x, out = buffer("x", (n, 1000)), buffer("out", (n, 1000), "output")
    inner = loop("j", 1000, store(out, ("i", "j"), apply("exp", load(x, "i", "j"))))
    return loop("i", n, inner, kind="parallel")


def test_the_grain_of_small_work_is_none() -> None:
    assert grain(stage(1), MACHINE) == 0
    assert grain(stage(2), MACHINE) == 0
    assert grain(stage(10_000), replace(MACHINE, cores=1)) == 0


@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize("cores", [2, 8, 64])
def test_the_grain_keeps_cores_busy(n: int, cores: int) -> None:
    size = grain(stage(n), replace(MACHINE, cores=cores))
    assert 1 <= size <= n
    assert size * seconds(stage(n), MACHINE) / n >= 5e-6  # worth waking a core for
    assert n // size >= min(cores, 4) or size * seconds(stage(n), MACHINE) / n < 1e-5


def test_seconds_grow_with_the_work() -> None:
    assert seconds(stage(2000), MACHINE) == pytest.approx(2 * seconds(stage(1000), MACHINE))
    copy = loop("i", 100, store(buffer("o", (100,), "output"), ("i",), number(1)))
    assert seconds(copy, MACHINE) < seconds(stage(1), MACHINE)


# -------------------------------------------------------------------------------------- streaming


def streamed(function: Callable[..., Any], *args: Any) -> set[str]:
    """The buffers that are written past the caches."""
    found = [s for k in kernels(function, *args) for s in walk(k.stages)]
    return {s.buffer.memory for s in found if isinstance(s, Store) and s.streaming}


def test_large_results_are_streamed() -> None:
    assert streamed(lambda x: x + 1, zeros(*LARGE))
    assert streamed(lambda x: x * x.sum(axis=1, keepdims=True), zeros(*LARGE))


def test_results_that_fit_the_cache_are_not() -> None:
    assert not streamed(lambda x: x + 1, zeros(1000, 1000))


def test_rows_that_do_not_start_on_cache_lines_are_not() -> None:
    rows, columns = LARGE
    assert streamed(lambda x: x * x.sum(axis=1, keepdims=True), zeros(rows, columns + 16))
    assert not streamed(lambda x: x * x.sum(axis=1, keepdims=True), zeros(rows, columns + 8))


def test_small_results_of_large_arguments_are_not() -> None:
    assert not streamed(lambda x: x.sum(axis=1), zeros(*LARGE))


def test_what_is_read_again_is_not() -> None:
    def f(x: Any) -> Any:
        e = np.exp(x)
        return e, e / e.sum(axis=1, keepdims=True)

    (k,) = kernels(f, zeros(*LARGE))
    kept = {s.buffer.name for s in walk(k.stages) if isinstance(s, Store) and not s.streaming}
    assert "e" in kept
    assert len(streamed(f, zeros(*LARGE))) == 1


def test_results_that_are_spread_out_are_not() -> None:
    assert not streamed(lambda x: np.concatenate([x, x[:, :8]], axis=1), zeros(*LARGE))


def test_memory_of_the_caller_is_not() -> None:
    out = replace(buffer("out", (4096, 4096), "output"), aligned=False)
    x = buffer("x", (4096, 4096))
    body = loop("i", 4096, loop("j", 4096, store(out, ("i", "j"), load(x, "i", "j"))))
    k = default_schedule(kernel(body, buffers=[x, out]), MACHINE)
    assert not any("stream" in n for n in k.notes)
    ours = default_schedule(
        kernel(
            loop(
                "i",
                4096,
                loop("j", 4096, store(replace(out, aligned=True), ("i", "j"), load(x, "i", "j"))),
            ),
            buffers=[x, replace(out, aligned=True)],
        ),
        MACHINE,
    )
    assert any("stream" in n for n in ours.notes)


def test_an_empty_kernel_is_left_alone() -> None:
    k = Kernel("k", (), (Block(()),))
    assert default_schedule(k, MACHINE).stages == k.stages


# ------------------------------------------------------------------------------------ turned blocks


@pytest.mark.parametrize(
    ("shape", "dtype", "tile"),
    [
        ((1000, 1000), np.float32, "16, 8"),
        ((1024, 1024), np.float32, "16, 16"),  # rows a page apart push each other out of the cache
        ((1024, 1024), np.float64, "16, 8"),
        ((1000, 1000), np.int16, "32, 8"),  # as many as fill a vector
        ((2000, 1000), np.int8, "64, 8"),
    ],
)
def test_turned_blocks_suit_elements_and_rows(shape: Any, dtype: Any, tile: str) -> None:
    found = notes(lambda x: x.T.copy(), np.zeros(shape, dtype))
    assert found[:3] == [f'tile("i", "j", {tile})', 'unroll("j")', 'vectorize("i")']


@pytest.mark.parametrize("n", [56, 100, 112, 1000, 4097])
def test_cores_have_as_many_pieces_each(n: int) -> None:
    pieces = -(-n // grain(stage(n), MACHINE))
    assert pieces % MACHINE.cores == 0


def test_arrays_of_a_stack_are_turned_in_registers() -> None:
    """Whatever loops are around the two of which one walks across."""
    x, out = buffer("x", (3, 64, 96), strides=(64 * 96, 1, 64)), buffer("o", (3, 64, 96), "output")
    copied = loop("j", 96, store(out, ("b", "i", "j"), load(x, "b", "i", "j")))
    k = kernel(loop("b", 3, loop("i", 64, copied)), buffers=[x, out])
    made = default_schedule(k, MACHINE)
    assert any(note.startswith("tile(") for note in made.notes)
    assert any(note.startswith("unroll(") for note in made.notes)
