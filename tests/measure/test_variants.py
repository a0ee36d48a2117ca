"""Programs in several ways: pass by pass, and each optimisation left out; never a slower truth."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.compiled import Compiled
from nbcomp.measure import passes, variants
from nbcomp.measure.ablation import TELLING, ablate
from nbcomp.measure.figures import change_words
from nbcomp.measure.passes import measure_passes
from nbcomp.measure.timing import Ratio, ratio
from nbcomp.measure.variants import code_of, idle, measure_variants
from nbcomp.options import EVERYTHING, NAMES, OPTIMISATIONS, Options
from nbcomp.pipeline import compile_for, recompile
from tests.random_programs import generate, run_quietly

X = np.random.default_rng(5).random((64, 80))
SECONDS = 30.0  # enough on a busy machine; few turns, so that it is not used up


@pytest.fixture(autouse=True)
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "TURNS", 2)


# Who computes products is no state of the graph between two passes.
PRODUCTS = ("blas", "generate")
GRAPH = [o.name for o in OPTIMISATIONS if o.level == "graph" and o.name not in PRODUCTS]


def f(x: Any) -> Any:
    e = np.exp(np.negative(-x)) + np.exp(x)
    return e / e.sum(axis=1, keepdims=True)


def test_each_pass_is_measured_from_the_program_before_it() -> None:
    found = measure_passes(nbcomp.compile(f, X), [X], seconds=SECONDS)
    graph = [p.name for p in found.passes if p.level == "graph"]
    loop = [p.name for p in found.passes if p.level == "loop"]
    assert graph == ["capture", *GRAPH]
    assert loop == ["lower", *(o.name for o in OPTIMISATIONS if o.level == "loop")]
    assert all(p.same for p in found.passes)
    for name in ("algebra", "cse", "fuse"):
        row = found.of("graph", name)
        assert row is not None
        assert row.timing is not None
        assert row.change is not None
        assert row.words.endswith("same result")
    for level, name in (("graph", "fold"), ("loop", "tile")):
        row = found.of(level, name)
        assert row is not None
        assert row.words == "no change"
    first = found.of("graph", "capture")
    assert first is not None
    assert (first.change, first.words) == (None, "")
    assert found.of("loop", "cse") is None


def test_the_last_pass_of_each_level_ends_with_the_whole_program() -> None:
    plan = passes._plan(EVERYTHING)
    names = {"graph": "fuse", "loop": "tuned"}
    for level, name in names.items():
        assert [options for a, b, options in plan if (a, b) == (level, name)] == [EVERYTHING]
    assert plan[0][2] == Options(frozenset(GRAPH))
    left_out = passes._plan(Options(frozenset({"cse", "tile"})))
    assert not {"cse", "tile"} & {name for _, name, _ in left_out}
    assert all({"cse", "tile"} <= options.without for _, _, options in left_out)


def test_each_optimisation_is_left_out_in_turn() -> None:
    found = ablate(nbcomp.compile(f, X), [X], seconds=SECONDS)
    assert [row.name for row in found.rows] == [o.name for o in OPTIMISATIONS]
    assert found.full is not None
    by_name = {row.name: row for row in found.rows}
    for name in ("blas", "fold", "tile", "stream", "split_products"):
        assert by_name[name].words == "not used here"
        assert by_name[name].timing == found.full
    for name in ("cse", "fuse", "vectorize"):
        assert by_name[name].ratio is not None
        assert by_name[name].same


def test_equal_programs_are_one_and_others_are_not() -> None:
    compiled = nbcomp.compile(f, X)
    again, plain = (recompile(compiled, Options(frozenset(w))) for w in ((), ("vectorize",)))
    assert code_of(compiled) == code_of(again) != code_of(plain)
    one, two = (nbcomp.compile(g, X) for g in (lambda x: x + 1.5, lambda x: x + 2.5))
    assert code_of(one) != code_of(two)


def test_loops_as_they_are_written_are_parallel_too() -> None:
    @nbcomp.script
    def norms(v: Any) -> Any:
        out = np.zeros(len(v))
        for i in range(len(v)):
            for j in range(v.shape[1]):
                out[i] += v[i, j] * v[i, j]
        return out

    norms(X)
    (compiled,) = norms.variants
    assert "parallelize" not in idle(compiled)
    found = ablate(compiled, [X], reference=norms.__wrapped__, seconds=SECONDS)
    assert all(row.same for row in found.rows)
    assert {r.name: r for r in found.rows}["parallelize"].ratio is not None


def test_what_changed_nothing_is_known_from_the_trace() -> None:
    found = idle(nbcomp.compile(f, X))
    assert {"blas", "fold", "tile", "stream", "split_products"} <= found
    assert not {"algebra", "cse", "fuse", "vectorize", "interleave"} & found
    for leave, used in (("generate", "blas"), ("blas", "generate")):
        build = nbcomp.compile_for("llvm", Options(without=frozenset({leave})))
        product = idle(build(lambda x: (np.sort(np.sort(x @ x.T)), x + x.T[:64, :1]), X))
        assert used not in product
    assert "parallelize" not in idle(nbcomp.compile(lambda x: np.exp(x), np.ones((500, 400))))
    assert "fold" not in idle(nbcomp.compile(lambda x: x + np.exp(np.float64(2)) * np.ones(80), X))


@pytest.mark.parametrize("seed", range(12))
def test_a_program_without_what_changed_nothing_is_the_same(seed: int) -> None:
    program = generate(seed, limit=500)
    try:
        compiled = run_quietly(nbcomp.compile, program.function, *program.arguments())
    except nbcomp.Unsupported as reason:
        pytest.skip(str(reason))
    for name in idle(compiled).intersection(NAMES):
        assert code_of(recompile(compiled, Options(frozenset({name})))) == code_of(compiled), name


def test_a_program_compiled_with_options_keeps_them() -> None:
    compiled = compile_for("llvm", Options(frozenset({"fuse"})))(f, X)
    found = ablate(compiled, [X], seconds=SECONDS)
    assert "fuse" not in [row.name for row in found.rows]


def test_only_programs_that_differ_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Options] = []

    def note(compiled: Compiled, options: Options) -> Compiled:
        made.append(options)
        return recompile(compiled, options)

    monkeypatch.setattr(variants, "recompile", note)
    compiled = nbcomp.compile(f, X)
    busy = set(NAMES) - idle(compiled)
    ablate(compiled, [X], seconds=SECONDS)
    assert made == [Options(frozenset({n})) for n in sorted(busy, key=rank)]
    assert len(busy) < len(NAMES) - 4


def rank(name: str) -> tuple[bool, int]:
    """The order in which optimisations are left out: those that tell most come first."""
    return name not in TELLING, NAMES.index(name)


def broken(name: str) -> Callable[[Compiled, Options], Compiled]:
    """`recompile` that makes another program without `name`."""

    def make(compiled: Compiled, options: Options) -> Compiled:
        if not options.does(name):
            return nbcomp.compile(lambda x: f(x) + 1, X)
        return recompile(compiled, options)

    return make


def test_a_wrong_answer_is_named_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "recompile", broken("cse"))
    found = {row.name: row for row in ablate(nbcomp.compile(f, X), [X], seconds=SECONDS).rows}
    assert found["cse"].words.startswith("WRONG ANSWER: result differs at [0, 0]: ")
    assert (found["cse"].same, found["cse"].timing) == (False, None)
    assert found["fuse"].same


def test_what_does_not_fit_into_the_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = nbcomp.compile(f, X)
    found = ablate(compiled, [X], seconds=1e-6)
    assert found.full is not None
    notes = {row.name: row.note for row in found.rows}
    assert notes["fuse"] == notes["vectorize"] == "out of time"
    assert notes["tile"] == "not used here"  # which takes no time to know
    monkeypatch.setattr(variants, "_expected", lambda *_: 1e9)
    slow = Options(frozenset({"vectorize"}))
    rows, _ = measure_variants(compiled, [EVERYTHING, slow], [X], seconds=SECONDS)
    assert [row.note for row in rows] == ["", "one call would take about 1e+09 s"]


def test_a_program_that_needs_far_more_memory_is_not_run() -> None:
    n = 600  # the terms of the products, as an array: 1.6 GB where they are not added up at once
    x = np.ones((n, n), np.int64)
    found = measure_passes(nbcomp.compile(lambda x: x @ x, x), [x], seconds=SECONDS)
    first, last = found.of("graph", "capture"), found.of("graph", "fuse")
    assert first is not None
    assert last is not None
    assert first.note == "a call would take 1.6 GB for values between steps"
    assert last.timing is not None


def test_the_callers_arrays_are_as_they_were() -> None:
    held = np.arange(50.0)

    def step(x: Any) -> Any:
        x *= 2.0
        held[:] = x[:50]
        return x.sum()

    x = np.arange(100.0)
    compiled = nbcomp.compile(step, x.copy())
    found = ablate(compiled, [x], seconds=SECONDS)
    assert all(row.same for row in found.rows)
    np.testing.assert_array_equal(x, np.arange(100.0))
    np.testing.assert_array_equal(held, np.arange(50.0))


def test_an_interrupt_leaves_everything_in_order() -> None:
    x = np.arange(100.0)

    def step(x: Any) -> Any:
        x += 1.0
        return x * 2

    def interrupt(said: str) -> None:
        if "timing" in said:
            raise KeyboardInterrupt

    compiled = nbcomp.compile(step, x.copy())
    with pytest.raises(KeyboardInterrupt):
        measure_passes(compiled, [x], seconds=SECONDS, say=interrupt)
    assert gc.isenabled()
    np.testing.assert_array_equal(x, np.arange(100.0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Ratio(0.59, 0.55, 0.62), "69 % faster"),
        (Ratio(0.1, 0.09, 0.11), "10.0× faster"),
        (Ratio(0.001, 0.0009, 0.0011), "1000× faster"),
        (Ratio(1.41, 1.3, 1.5), "41 % slower"),
        (Ratio(3.24, 3.0, 3.5), "3.2× slower"),
        (Ratio(0.997, 0.995, 0.999), "no difference"),
        (Ratio(0.97, 0.9, 1.01), "no clear difference (0.90–1.01)"),
    ],
)
def test_changes_in_words(change: Ratio, words: str) -> None:
    assert change_words(change) == words


def test_ratios_pair_samples_of_about_the_same_time() -> None:
    found = ratio([1.0, 2.0, 4.0, 8.0], [2.0, 2.0, 8.0, 16.0])
    assert (found.median, found.low, found.high) == (0.6, 0.5, 0.625)
    apart = ratio([1.0, 1.0, 9.0, 9.0, 9.0], [2.0, 2.0, 2.0, 2.0, 2.0])
    assert apart.low <= 1 <= apart.median == 4.5 <= apart.high
    assert ratio([1.0, 1.0, 3.0, 3.0], [1.0, 3.0]).median == 1.0
    assert not ratio([1.0, 1.0], [9.0, 9.0]).clear  # of two samples each
    assert ratio([1.0, 1.1], [99.0, 90.0]).clear  # which differ beyond doubt
    assert not Ratio(1.1, 0.9, 1.2).clear
    assert Ratio(1.1, 1.05, 1.2).clear


def test_a_ratio_of_disturbed_samples_reaches_to_that_of_the_shortest() -> None:
    waiting = [1.0, 5.0, 9.0, 9.0, 40.0, 90.0]  # for a core; undisturbed it takes 1
    found = ratio(waiting, [1.5] * 6)
    assert found.median > 5
    assert not found.clear
    assert ratio(waiting, [0.2] * 6).low == pytest.approx(5.0)
    assert ratio([9.0, 9.1, 9.2, 10.0], [1.0] * 4).low > 9
