"""What a function writes to arrays that are not its arguments is compared like its answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.magics.checking import check_levels
from nbcomp.magics.measuring import Options, report_on
from nbcomp.magics.recording import Call
from nbcomp.measure.arguments import Elsewhere
from nbcomp.measure.comparison import check
from nbcomp.measure.cpus import compare_cpus
from nbcomp.measure.scaling import scaling
from nbcomp.measure.variants import measure_variants

TABLE = np.zeros(4, np.float32)
X = np.arange(4, dtype=np.float32)


def to_global(x: Any) -> Any:
    TABLE[...] = TABLE + x
    return x * 2


def to_attribute(a: Any, x: Any) -> Any:
    a.r[...] = a.r + x
    return a.r.sum()


def elsewhere(compiled: Any, *args: Any) -> Elsewhere:
    capture = compiled.capture
    return Elsewhere.of(capture.signature, capture.writes, args, {})


def wrong(x: Any) -> Any:
    TABLE[...] = TABLE - x
    return x * 2


def test_a_wrong_write_to_a_global_is_found_and_undone() -> None:
    other = elsewhere(nbcomp.compile(to_global, X), X)
    assert list(other.arrays) == ["TABLE"]
    assert check(to_global, to_global, (X,), elsewhere=other).agrees
    found = check(wrong, to_global, (X,), elsewhere=other)
    assert "TABLE" in found.problem
    np.testing.assert_array_equal(TABLE, 0)


def test_attributes_of_arguments_are_compared_and_undone() -> None:
    holder = SimpleNamespace(r=np.ones(4, np.float32))
    compiled = nbcomp.compile(to_attribute, holder, X)
    other = elsewhere(compiled, holder, X)
    assert list(other.arrays) == ["a.r"]
    assert check(compiled, to_attribute, (holder, X), elsewhere=other).agrees
    np.testing.assert_array_equal(holder.r, 1)

    def lost(a: Any, x: Any) -> Any:
        return (a.r + x).sum()

    assert "a.r" in check(lost, to_attribute, (holder, X), elsewhere=other).problem


def test_arrays_that_are_arguments_are_copied_and_not_counted() -> None:
    def write(x: Any, y: Any) -> None:
        x[...] = y[0] + 1

    args = X.copy(), [X.copy()]
    assert not elsewhere(nbcomp.compile(write, *args), *args).arrays


@pytest.mark.parametrize("reference", [to_global, wrong])
def test_every_level_is_compared_in_what_it_writes(reference: Any) -> None:
    function: Any = nbcomp.jit(to_global)
    function(X)
    TABLE[...] = 0
    call = Call(function, (X,), {}, None)
    call.find_compiled()
    checks = list(check_levels(call, reference, elsewhere(call.compiled, X)))
    problems = [c.problem for c in checks if c.problem]
    assert (reference is wrong) == bool(problems)
    assert not problems or "TABLE" in problems[0]
    TABLE[...] = 0


def test_a_report_leaves_the_arrays_as_they_were() -> None:
    function: Any = nbcomp.jit(to_attribute)
    holder = SimpleNamespace(r=np.ones(4, np.float32))
    call = Call(function, (holder, X), {}, function(holder, X))
    before = holder.r.copy()
    report = report_on(call, Options(timed=False, check=True))
    assert report.comparison is not None
    assert report.comparison.agrees
    assert not any(c.problem for c in report.checks)
    np.testing.assert_array_equal(holder.r, before)


TOTALS, SEEN, STATE = np.zeros(4, np.float32), [1], {"calls": 0}
COUNT, DRAWN = 0, np.random.default_rng(3)


class Counter:
    def __init__(self) -> None:
        self.calls, self.sums = 0, np.zeros(4, np.float32)


COUNTER = Counter()


def in_parts(x: Any) -> Any:
    """It writes to whatever there is to write to, between parts and in them."""
    global COUNT
    y = x * 2
    print("once", float(y.sum()))
    TOTALS[...] = TOTALS + y
    COUNT += 1
    COUNTER.calls += 1
    COUNTER.sums += y
    SEEN.append(float(y[1]))
    STATE["calls"] = STATE["calls"] + 1
    return y + TOTALS + DRAWN.random() + np.random.random()


def state() -> Any:
    return COUNT, COUNTER.calls, list(SEEN), dict(STATE), TOTALS.tolist(), COUNTER.sums.tolist()


def test_a_function_in_parts_is_checked_without_a_trace(capsys: Any) -> None:
    compiled = nbcomp.jit(in_parts)
    value = compiled(X)
    assert compiled.breaks
    before, drawn = state(), DRAWN.bit_generator.state
    capsys.readouterr()
    report = report_on(Call(compiled, (X,), {}, value), Options(timed=False, check=True))
    assert report.checks
    assert [c.problem for c in report.checks if c.problem] == []
    assert state() == before
    assert DRAWN.bit_generator.state == drawn
    assert capsys.readouterr().out == ""


def test_what_parts_write_elsewhere_is_compared(monkeypatch: Any) -> None:
    compiled = nbcomp.jit(in_parts)
    value = compiled(X)

    def other(function: Any) -> Any:
        def changed(x: Any) -> Any:
            result = function.__wrapped__(x)
            TOTALS[2] += 1
            return result

        return changed

    monkeypatch.setattr("nbcomp.magics.checking.plain", other)
    report = report_on(Call(compiled, (X,), {}, value), Options(timed=False, check=True))
    assert "TOTALS" in report.checks[-1].problem


def running(x: Any) -> Any:
    """Its answer depends on what it writes."""
    TABLE[...] = TABLE * 2 + x.sum()
    return x + TABLE.sum()


def test_ways_and_cpus_begin_with_what_was_there() -> None:
    TABLE[...] = 1
    compiled = nbcomp.compile(running, X)
    TABLE[...] = 1  # compiling runs nothing, calls do
    choices = [compiled.options, compiled.options.leaving("fuse")]
    variants, _ = measure_variants(compiled, choices, (X,), seconds=0.05)
    assert [v.same for v in variants] == [True, True]
    rows = compare_cpus(compiled, (X,), seconds=0.05, names=("sse2",))
    assert [row.same for row in rows] == [True, True]
    np.testing.assert_array_equal(TABLE, 1)


def test_every_batch_size_begins_with_what_was_there() -> None:
    TABLE[...] = 1
    function: Any = nbcomp.jit(running)
    other = elsewhere(nbcomp.compile(running, X), X)
    found = scaling(function, running, (X,), sizes=(3,), seconds=0.1, elsewhere=other)
    assert [p.size for p in found.points] == [3]
    assert found.wrong == ()


def test_a_level_that_is_as_near_to_the_true_answer_as_numpy_is_right() -> None:
    """Sums that cancel leave rounding errors, NumPy's as much as ours."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(100_000).astype(np.float32)

    def cancelled(x: Any) -> Any:
        return x.sum() - x[::-1].sum()

    function: Any = nbcomp.jit(cancelled)
    call = Call(function, (a,), {}, function(a))
    call.find_compiled()
    checks = list(check_levels(call, cancelled, elsewhere(call.compiled, a)))
    assert [c.problem for c in checks if c.problem] == []
