"""Decisions of the default schedule: whatever is answered, the kernel means the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nbcomp.loop.grammar import Kernel
from nbcomp.loop.verifier import verify
from nbcomp.machine import Machine
from nbcomp.options import Options
from nbcomp.pipeline import compile_for
from nbcomp.schedule.decisions import V, among
from nbcomp.schedule.default import default_schedule
from nbcomp.schedule.language import parse
from tests.kernels import interpreted, native, random_inputs, same_memory

MACHINE = Machine("test", 64, 2, 32 << 10, 1 << 20, 32 << 20)


def whole(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def matmul(a: Any, b: Any, c: Any) -> Any:
    return np.maximum(a @ b + c, 0)


# The sums are exact on whole numbers, so that their order makes no difference.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any], Options]] = {
    "elementwise": (lambda x: x * x + 1, [whole(40, 50)], Options()),
    "broadcast": (lambda x, y: x * y, [whole(30, 50), whole(50)], Options()),
    "transposed": (lambda x: x.T.copy() + 1, [whole(70, 64)], Options()),
    "sum of rows": (lambda x: x.sum(axis=1), [whole(9, 130)], Options()),
    "sum of columns": (lambda x: x.sum(axis=0), [whole(70, 33)], Options()),
    "centred": (lambda x: x - x.max(axis=1, keepdims=True), [whole(12, 70)], Options()),
    "points": (lambda x: (x * x).sum(axis=1), [whole(80, 3)], Options()),
    "product": (matmul, [whole(29, 17), whole(17, 70), whole(70)], Options(without={"blas"})),
    "library": (matmul, [whole(29, 17), whole(17, 70), whole(70)], Options()),
    "integers": (lambda a, b: a @ b, [whole(26, 9, dtype=np.int32)] * 2, Options()),
}
PROGRAMS["integers"][1][1] = whole(9, 40, dtype=np.int32)


class Drawn:
    """Answers decisions at random, and notes what there was to decide."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.known: dict[str, Sequence[Any]] = {}

    def __call__(self, name: str, usual: V, options: Sequence[V]) -> V:
        assert usual in options
        assert self.known.setdefault(name, options) == options, f"two decisions named {name}"
        rng = np.random.default_rng([self.seed, *name.encode()])  # one answer for a question
        return options[int(rng.integers(len(options)))]


def lowered_kernels(name: str) -> list[Kernel]:
    function, args, options = PROGRAMS[name]
    made = compile_for("interpreted", options)(function, *args)
    return [k.lowered for k in made.kernels]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_answer_means_the_same(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for k in lowered_kernels(name):
        made = verify(default_schedule(k, MACHINE, decide=Drawn(seed)))
        arrays = random_inputs(rng, k)
        wanted = interpreted(k, arrays)
        got = native(made, arrays)
        shared = {b.name for b in k.buffers if b.role == "output"}
        same_memory({n: got[n] for n in shared}, {n: wanted[n] for n in shared})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_notes_are_the_schedule(name: str, seed: int) -> None:
    for k in lowered_kernels(name):
        made = default_schedule(k, MACHINE, decide=Drawn(seed))
        played = parse("\n".join(made.notes))(k)
        assert str(played) == str(replace(made, notes=()))


def test_among() -> None:
    assert among(3, (1, 2, 4, 8), 4) == (1, 2, 3, 4)
    assert among(9, (1, 2), 1) == (1, 9)
