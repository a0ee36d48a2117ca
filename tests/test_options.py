"""Optimisations are left out one by one: what is done changes, the answer does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.graph.op import Constant, Contract
from nbcomp.levels import levels
from nbcomp.loop.grammar import Call, For, Prefetch, Store, walk
from nbcomp.options import EVERYTHING, NAMES, OPTIMISATIONS, Options
from nbcomp.pipeline import GRAPH_PASSES, compile_for
from nbcomp.schedule.default import SCHEDULE, schedule
from tests.random_programs import generate, outputs, run_quietly
from tests.test_random_graphs import compare

X = np.random.default_rng(1).random((120, 100), dtype=np.float32)
W = np.random.default_rng(2).random((100, 64), dtype=np.float32)


def layer(x: Any, w: Any) -> Any:
    e = np.exp(x @ w - 1.0)
    return (e / e.sum(axis=1, keepdims=True)).T + 0.5


def without(*names: str) -> Options:
    return Options(frozenset(names))


def made(function: Callable[..., Any], *args: Any, leave: str = "") -> Any:
    return compile_for("llvm", without(leave) if leave else EVERYTHING)(function, *args)


def loops(compiled: Any) -> list[For]:
    return [s for k in compiled.kernels for s in walk(k.kernel.stages) if isinstance(s, For)]


# ------------------------------------------------------------------------------------ plain data


def test_a_name_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no optimisation 'fusee' \(did you mean 'fuse'\?\)"):
        without("fusee")
    with pytest.raises(ValueError, match="there are blas, generate, choose_windows"):
        without("gpu")
    with pytest.raises(TypeError, match="set of names"):
        Options("fuse")  # type: ignore[arg-type]
    assert nbcomp.Options(without={"fuse"}) == without("fuse")


def test_every_pass_that_is_an_optimisation_has_its_name() -> None:
    by_level = {
        level: [o.name for o in OPTIMISATIONS if o.level == level] for level in ("graph", "loop")
    }
    needed = {"expand", "choose_products", "materialise"}
    passes = [p.__name__ for p in GRAPH_PASSES if p.__name__ not in needed]
    assert by_level["graph"] == ["blas", "generate", *passes, "fuse"]
    assert by_level["loop"] == [*(step.__name__ for step in SCHEDULE), "tuned"]
    assert schedule(EVERYTHING) == SCHEDULE


def test_options_are_kept_with_what_was_compiled() -> None:
    assert made(layer, X, W).options == EVERYTHING
    assert made(layer, X, W, leave="fuse").options == without("fuse")


# ------------------------------------------------------------------------------ what is left out


def test_without_fusion_every_operator_is_a_kernel() -> None:
    alone = made(layer, X, W, leave="fuse")
    assert len(alone.kernels) > len(made(layer, X, W).kernels)
    assert all(len(group.nodes) == 1 for group in alone.groups)
    assert not [r for r in alone.explain() if r.topic == "fusion"]


def test_without_blas_products_are_loops() -> None:
    for leave, there in (("generate", True), ("blas", False)):
        compiled = made(layer, X, W, leave=leave)
        calls = [s for k in compiled.kernels for s in walk(k.kernel.stages) if isinstance(s, Call)]
        assert bool(calls) == there
        products = [n.op for n in compiled.graph.nodes if isinstance(n.op, Contract)]
        assert [op.generated for op in products] == [not there]


def test_without_common_subexpressions_they_are_computed_twice() -> None:
    def f(x: Any) -> Any:
        return np.exp(x) + np.exp(x) * 2

    for leave, times in (("", 1), ("cse", 2)):
        ops = [n.op.name for n in made(f, X, leave=leave).graph.nodes]
        assert ops.count("exp") == times


def test_without_folding_constants_are_computed_at_run_time() -> None:
    def f(x: Any) -> Any:
        return x + np.exp(np.float32(2)) * np.arange(100, dtype=np.float32).mean()

    ops = [n.op.name for n in made(f, X, leave="fold").graph.nodes]
    folded = made(f, X).graph.nodes
    assert len(ops) >= len(folded)
    assert any(isinstance(n.op, Constant) for n in folded)


def test_without_algebra_nothing_is_simplified() -> None:
    for leave, there in (("", False), ("algebra", True)):
        ops = [n.op.name for n in made(lambda x: np.negative(-x) * 1, X, leave=leave).graph.nodes]
        assert ("negative" in ops) == there


@pytest.mark.parametrize(
    ("leave", "left"),
    [
        ("vectorize", lambda s: s.kind == "vector"),
        ("parallelize", lambda s: s.kind == "parallel"),
        ("unroll", lambda s: s.kind == "unroll"),
        ("interleave", lambda s: s.unroll > 1),
        ("tile", lambda s: s.var.endswith("_o")),
    ],
)
def test_loops_lack_what_is_left_out(leave: str, left: Callable[[For], bool]) -> None:
    def f(x: Any) -> Any:
        return x + x.T, np.tanh(x).sum(axis=1), x[:, :5] * x[:5, 0]

    square = np.random.default_rng(3).random((120, 120))

    def count(compiled: Any) -> int:
        return sum(map(left, loops(compiled)))

    assert count(made(f, square))
    assert not count(made(f, square, leave=leave))


def test_large_results_are_not_streamed_when_that_is_left_out() -> None:
    def streams(leave: str) -> int:
        compiled = made(lambda x: x + 1, nbcomp.f32[8192, 8192], leave=leave)
        found = (s for k in compiled.kernels for s in walk(k.kernel.stages))
        return sum(isinstance(s, Store) and s.streaming for s in found)

    assert streams("")
    assert not streams("stream")


def test_rows_that_are_added_are_not_asked_for_when_that_is_left_out() -> None:
    def asks(leave: str, rows: int = 8192) -> int:
        compiled = made(lambda x: x.sum(axis=0), nbcomp.f32[rows, 8192], leave=leave)
        found = (s for k in compiled.kernels for s in walk(k.kernel.stages))
        return sum(isinstance(s, Prefetch) for s in found)

    assert asks("")
    assert not asks("fetch_ahead")
    assert not asks("", rows=64)


def test_without_reuse_every_value_has_its_own_memory() -> None:
    def f(x: Any) -> Any:
        for _ in range(6):
            x = np.sort(x, axis=0)
        return x

    apart, shared = made(f, X, leave="reuse"), made(f, X)
    assert shared.program.arena < apart.program.arena
    spans = sorted((at, at + X.nbytes) for at in apart.program.temps.values())
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))
    np.testing.assert_array_equal(apart(X), f(X))


# -------------------------------------------------------------------------------- the same answer


@pytest.mark.parametrize("name", NAMES)
def test_a_program_without_it_gives_the_same_answer(name: str) -> None:
    compiled = made(layer, X, W, leave=name)
    for _, run in levels(compiled, kernels=False):
        np.testing.assert_allclose(run(X, W), layer(X, W), rtol=2e-5)


@pytest.mark.parametrize("seed", range(14 * 6))
def test_random_programs_give_the_same_answer(seed: int) -> None:
    """Each without one optimisation; every sixth without all."""
    program = generate(seed, limit=2000 if seed % 2 else 120)
    name = NAMES[seed % len(NAMES)]
    options = Options(frozenset(NAMES)) if seed % 6 == 5 else without(name)
    try:
        compiled = run_quietly(
            lambda *args: compile_for("llvm", options)(program.function, *args),
            *program.arguments(),
        )
    except nbcomp.Unsupported as reason:
        pytest.skip(str(reason))
    theirs, ours = program.arguments(), program.arguments()
    wanted = outputs(run_quietly(program.function, *theirs))
    got = outputs(run_quietly(compiled, *ours))
    problem = compare(got, wanted, program.tolerance)
    written = compare(
        [a for a in ours if isinstance(a, np.ndarray)],
        [a for a in theirs if isinstance(a, np.ndarray)],
        (0.0,) * len(ours),
    )
    assert problem + written == "", f"{program}\nwithout {sorted(options.without)}: {problem}"


def test_libraries_are_libraries() -> None:
    with pytest.raises(TypeError, match=r"libraries are nbcomp\.Library objects, not 'l1'"):
        nbcomp.jit(np.tanh, libraries=["l1"])
    one = nbcomp.Library("one")
    assert nbcomp.jit(lambda x: x + 1, libraries=one)(np.ones(2)).tolist() == [2, 2]
