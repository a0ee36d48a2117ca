"""What there is to see of a compilation with open lengths: every level gives NumPy's answer for any
length it takes, figures are those of the lengths measured, reports are made."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.compiled import Compiled
from nbcomp.display.bundle import Report
from nbcomp.levels import levels
from tests.lengths.programs import PROGRAMS
from tests.lengths.test_programs import arguments, same


def compiled(name: str, rng: np.random.Generator) -> Compiled:
    """The code for several lengths, 21 among them."""
    f = nbcomp.jit(PROGRAMS[name].function)
    for length in (23, 20):
        f(*arguments(PROGRAMS[name], length, rng))
    found = f.compiled
    assert found is not None
    assert found.plan.open is not None
    return found


@pytest.mark.parametrize(
    "name", ["softmax", "mean by len", "broadcast", "interior", "concatenate", "columns", "zeros"]
)
def test_every_level(name: str, rng: np.random.Generator) -> None:
    made = compiled(name, rng)
    args = arguments(PROGRAMS[name], 21, rng)
    want = PROGRAMS[name].function(*args)
    assert made.mismatch(args) is None
    tried = [level for level, run in levels(made) if same(run(*args), want) is None]
    assert tried[0] == "graph after capture"
    assert tried[-1] == "machine code"
    assert any(level.startswith("kernels after") for level in tried)


def test_figures_are_those_of_the_lengths_measured(rng: np.random.Generator) -> None:
    made = compiled("softmax", rng)
    work = []
    for length in (20, 40):
        found = nbcomp.measure_numbers(made, arguments(PROGRAMS["softmax"], length, rng))
        work.append(sum(k.operations for k in found.kernels))
    assert work[1] == 2 * work[0]


def test_reports(rng: np.random.Generator) -> None:
    made = compiled("mean by len", rng)
    bundle: Any = Report(made)._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "one code for n = 2" in data["text/plain"] or "one code for n = " in data["text/plain"]
    assert "f32[n, 30]" in json.dumps(data)
    assert "f32[n, 30]" in made.text("graph")
    assert "define" in made.text("llvm")
    assert made.provenance()


def test_the_text_for_readers_is_the_code(rng: np.random.Generator) -> None:
    """Made when somebody looks, after the conditions are settled: the same instructions."""
    for name in ("softmax of open rows", "columns"):
        made = compiled(name, rng)
        for kernel in made.kernels:
            located = kernel.code.located.located_text  # type: ignore[attr-defined]
            plain = kernel.code.code.text  # type: ignore[attr-defined]
            assert [_bare(t) for t in located.splitlines() if "alloca" in t] == [
                _bare(t) for t in plain.splitlines() if "alloca" in t
            ]


def _bare(text: str) -> str:
    return text.split(", !dbg")[0]
