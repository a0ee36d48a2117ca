"""Recurrent layers as one loop over their steps: NumPy's answer for any size and kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.graph.op import Recurrence
from nbcomp.levels import levels
from nbcomp.loop.grammar import For, spread_loop, walk
from nbcomp.options import Options
from nbcomp.pipeline import compile_for
from nbcomp.runtime.plan import Step

BOUND = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-13}


def loops(made: Any) -> int:
    return sum(isinstance(n.op, Recurrence) for n in made.graph.nodes)


def near(got: Any, wanted: Any) -> bool:
    pairs = zip(_flat(got), _flat(wanted), strict=True)
    return all(
        a.shape == b.shape and a.dtype == b.dtype and np.abs(a - b).max() <= BOUND[a.dtype]
        for a, b in pairs
    )


def _flat(value: Any) -> list[Any]:
    return [value] if isinstance(value, np.ndarray) else [a for v in value for a in _flat(v)]


def drawn(seed: int) -> tuple[Any, tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    kind = [nn.LSTM, nn.GRU, nn.RNN][seed % 3]
    size, hidden = (int(rng.integers(1, n)) for n in (20, 75))
    steps, batch = int(rng.integers(3, 12)), int(rng.choice([1, 2, 3, 4, 5, 12, 17, 24]))
    options: dict[str, Any] = {"bidirectional": bool(rng.integers(2)), "bias": rng.random() < 0.8}
    if kind is nn.RNN and rng.integers(2):
        options["nonlinearity"] = "relu"
    dtype = [np.float32, np.float64][int(rng.integers(2))]
    layers = int(rng.integers(1, 3))
    model = kind(size, hidden, layers, dtype=dtype, **options)
    x = rng.standard_normal((steps, batch, size)).astype(dtype)
    if rng.integers(2):
        return model, (x,)
    count = layers * (2 if options["bidirectional"] else 1)
    state = rng.standard_normal((count, batch, hidden)).astype(dtype)
    return model, (x, (state, state * 0.5) if kind is nn.LSTM else state)


@pytest.mark.parametrize("seed", range(18))
def test_drawn_layers_are_numpys(seed: int) -> None:
    model, given = drawn(seed)
    made = nbcomp.compile(model, *given)
    assert loops(made) == model.num_layers * (2 if model.bidirectional else 1)
    assert near(made(*given), model(*given))


@pytest.mark.parametrize("seed", [0, 1])
def test_every_level_gives_the_answer(seed: int) -> None:
    model = (nn.LSTM, nn.GRU)[seed](3, 9)
    x = np.random.default_rng(seed).standard_normal((5, 2, 3)).astype(np.float32)
    made = nbcomp.compile(model, x)
    for name, run in levels(made):
        assert near(run(x), model(x)), name


def test_changed_weights_are_seen() -> None:
    model, x = nn.LSTM(4, 20), np.ones((6, 1, 4), np.float32)
    function = nbcomp.jit(model)
    before = function(x)[0]
    model.weight_hh_l0[...] *= 2
    assert not np.array_equal(function(x)[0], before)
    assert near(function(x), model(x))


def test_compiled_once_however_long() -> None:
    short, long = (np.zeros((n, 1, 8), np.float32) for n in (8, 400))
    model = nn.GRU(8, 16)
    kernels = [len(nbcomp.compile(model, x).kernels) for x in (short, long)]
    assert kernels[0] == kernels[1]


def test_left_out_the_steps_are_written_out() -> None:
    model, given = drawn(0)
    options = Options(without=frozenset({"choose_recurrences"}))
    made = compile_for("llvm", options)(model, *given)
    assert not loops(made)
    assert near(made(*given), model(*given))


def test_parts_of_a_batch_go_their_own_way() -> None:
    """Each goes through all steps by itself, so that the cores share them."""
    made = nbcomp.compile(nn.LSTM(32, 64), np.zeros((20, 16, 32), np.float32))
    kernel = next(k for k in made.kernels if isinstance(k.groups[0].nodes[0].op, Recurrence))
    outer = [s for s in kernel.kernel.stages if isinstance(s, For)]
    assert [s.kind for s in outer[-1:]] == ["parallel"]
    assert sum(isinstance(s, For) and s.var == "t" for s in walk(outer[-1].body)) == 1


def test_steps_of_a_single_sequence_are_shared_by_the_cores() -> None:
    made = nbcomp.compile(nn.LSTM(64, 256), np.zeros((20, 1, 64), np.float32))
    kernel = next(k for k in made.kernels if isinstance(k.groups[0].nodes[0].op, Recurrence))
    rounds, loop = spread_loop(kernel.kernel.stages[-1])  # type: ignore[misc]
    assert rounds.var == "t"
    assert loop.var.startswith("u")
    (step,) = [s for s in made.plan.steps if isinstance(s, Step) and s.round]
    assert step.extent == 19 * step.round


@pytest.mark.parametrize(("kind", "backwards"), [("LSTM", True), ("GRU", False), ("RNN", False)])
def test_sequences_and_batches_of_any_length(kind: str, backwards: bool) -> None:
    """One loop for all lengths, whose rows of a batch fill tiles or not."""
    rng = np.random.default_rng(4)
    model = getattr(nn, kind)(5, 37, bidirectional=backwards)
    open_steps = nbcomp.compile(model, nbcomp.f32["n", 2, 5])
    open_both = nbcomp.compile(model, nbcomp.f32["n", "b", 5])
    assert loops(open_steps) == loops(open_both) == 1 + backwards
    for steps, batch in ((3, 1), (4, 2), (9, 2), (5, 7), (6, 16), (30, 3)):
        x = rng.standard_normal((steps, batch, 5)).astype(np.float32)
        assert near(open_both(x), model(x)), (steps, batch)
        assert batch != 2 or near(open_steps(x), model(x)), steps


def test_few_plans_serve_all_lengths_of_calls() -> None:
    rng = np.random.default_rng(5)
    model = nn.LSTM(6, 20)
    compiled = nbcomp.jit(model)
    for steps in (20, 64, 33, 5, 100, 40, 7, 90, 63):
        x = rng.standard_normal((steps, 1, 6)).astype(np.float32)
        assert near(compiled(x), model(x))
    assert len(compiled.variants) <= 5


@pytest.mark.parametrize("batch", [4, 8, 16, 23])
def test_parts_with_few_blocks_are_tiled(batch: int) -> None:
    """Steps need each other: they are never the outermost loop, however few the parts are."""
    made = nbcomp.compile(nn.LSTM(6, 40), np.zeros((9, batch, 6), np.float32))
    (kernel,) = (k.kernel for k in made.kernels if "recurrent" in k.kernel.name)
    sums = [s for s in walk(kernel.stages) if isinstance(s, For) and s.var.startswith("k")]
    assert sums
    assert all(s.kind == "serial" for s in sums)


def test_nan_spreads_as_in_numpy() -> None:
    model, x = nn.LSTM(4, 20), np.ones((6, 2, 4), np.float32)
    x[2, 1] = np.nan
    got, wanted = nbcomp.compile(model, x)(x)[0], model(x)[0]
    assert np.array_equal(np.isnan(got), np.isnan(wanted))


@pytest.mark.parametrize(("state", "words"), [
    ((1, 3, 20), "states of shape"), ((1, 2, 19), "states of shape"),
])  # fmt: skip
def test_states_that_do_not_fit_are_refused(state: tuple[int, ...], words: str) -> None:
    model, x = nn.GRU(4, 20), np.ones((6, 2, 4), np.float32)
    with pytest.raises(ValueError, match=words):
        model(x, np.zeros(state, np.float32))
    with pytest.raises(ValueError, match=words):
        nbcomp.jit(model)(x, np.zeros(state, np.float32))
