"""Functions compiled in parts: timed against Python, unless measuring would repeat effects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nbcomp.magics.repeatable import effect_of

LOG: list[float] = []
count = 0
TABLE = np.arange(3.0)
SUMS = """%%compile {}
def sums(v):
    found = []
    for i in range(3):
        found.append((v * i).sum().tolist())
    return found
sums(x)"""


@pytest.fixture
def data(notebook: Any) -> Any:
    notebook.run("x = np.ones(100)")
    return notebook


def test_parts_are_compared_with_python_and_timed(data: Any) -> None:
    assert data.value(SUMS.format("--seconds 0.3")) == [0.0, 100.0, 200.0]
    found = data.last
    assert found.comparison.agrees
    assert found.comparison.compiled.median > 0
    assert "plain Python in" in found.headline
    assert "it can be indexed and iterated over" in " ".join(found.headline.split())
    again = data.value("%bench sums(x) --seconds 0.3")
    assert again.comparison.compiled.median > 0
    assert "plain Python in" in str(again)
    assert "plain Python in" in again.html()


def test_parts_that_are_slower_say_so(data: Any) -> None:
    data.value(SUMS.format("--seconds 0.3"))
    found = data.last
    slow = replace(found.comparison, speedup=0.5, speedup_low=0.4, speedup_high=0.6, others=0.0)
    words = " ".join(replace(found, comparison=slow).headline.split())
    assert "2.00× slower than plain Python" in words
    assert "better left to Python" in words


def test_effects_between_parts_are_not_repeated(data: Any) -> None:
    data.value(
        "%%compile --seconds 0.3\ndef p(v):\n    w = v * 2\n    print('once')\n"
        "    return w.sum() + 1\np(x)"
    )
    assert data.printed.count("once\n") == 1
    assert data.last.comparison is None
    assert "not timed, because calls would repeat what it does: it uses print" in " ".join(
        data.last.headline.split()
    )


def helper(v: Any) -> Any:
    return np.where(v > 0, v, TABLE.sum())


def logs(v: Any) -> None:
    LOG.append(float(v.sum()))


def draws(v: Any) -> Any:
    return v + np.random.random(3)


def keeps(v: Any, seen: list[Any] = []) -> Any:  # noqa: B006 (that is what is tested)
    seen.append(v)
    return v


def writes(v: Any) -> Any:
    TABLE[0] += v.sum()
    return v


def changes(v: Any) -> Any:
    global count
    count += v


def saves(v: Any) -> Any:
    v.tofile("there")


def indirect(v: Any) -> Any:
    return [logs(w) for w in v]


def plain(v: Any) -> Any:
    if v.sum() > math.sqrt(3):
        raise ValueError(f"too large: {v}")
    found = {}
    for i, row in enumerate(helper(v)):
        found[i] = float(row)
    return sorted(found.values()), [np.float32(w) for w in v], max(found.items())


def test_what_only_computes_has_no_effect() -> None:
    assert effect_of(plain, (np.ones(2),), {"n": 3}) == ""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (logs, "a list"),
        (draws, ".random"),
        (keeps, "default argument"),
        (writes, "TABLE"),
        (changes, "a global variable, count"),
        (saves, ".tofile"),
        (indirect, "a list"),
        (print, "print"),
    ],
)
def test_effects_are_found(function: Callable[..., Any], words: str) -> None:
    assert words in effect_of(function, (np.ones(2),))


def test_objects_that_are_given_may_be_changed() -> None:
    assert effect_of(plain, (iter([1]),)) == "it is given a list_iterator"


CHECKED = """%%compile --no-bench --check
def step(v):
    global steps
    steps += 1
    print('a step')
    seen.append(steps)
    table[0] += v.sum()
    drawn = rng.standard_normal(3)
    total = float((v * 2).sum())
    return total + steps + len(seen) + table[0] + drawn.sum()
step(x)"""


def test_checking_leaves_everything_as_one_call_does(data: Any) -> None:
    data.run("steps, seen, table, rng = 0, [], np.zeros(2), np.random.default_rng(0)")
    value = data.value(CHECKED)
    assert [c.problem for c in data.last.checks if c.problem] == []
    assert data.last.checks[-1].level == "all parts, with Python between them"
    assert data.printed.count("a step\n") == 1
    names = data.names
    assert (names["steps"], names["seen"], names["table"].tolist()) == (1, [1], [100.0, 0.0])
    once = np.random.default_rng(0).standard_normal(3)
    assert value == pytest.approx(200 + 1 + 1 + 100 + once.sum())
    after = np.random.default_rng(0).standard_normal(6)[3:]
    np.testing.assert_array_equal(names["rng"].standard_normal(3), after)


def test_lines_where_python_goes_on_are_named_once(data: Any) -> None:
    data.value(
        "%%compile --no-bench\ndef g(v):\n    w = v * 2\n"
        "    if w.sum().tolist() > v.sum().tolist():\n"
        "        print('more')\n    return w + 1\ng(x)"
    )
    said = " ".join(data.last.headline.split())
    assert "Python goes on at line 4, and at line 5;" in said
    assert "<code>w.sum().tolist()</code>" in data.last.html()


def test_why_python_goes_on_reads_as_a_sentence(data: Any) -> None:
    data.value(
        "%%compile --no-bench\ndef h(v):\n    w = np.tanh(v)\n    if w.sum().tolist() > 0:\n"
        "        w = w + 1\n    return w\nh(x)"
    )
    said = str(data.value("%explain h"))
    assert "what was computed just before differs from call to call" in " ".join(
        said.replace("│", "").split()
    )
