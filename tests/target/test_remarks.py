"""LLVM's own remarks: carried over to the user's lines, and a check of our count of spills."""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.origin import Construct
from nbcomp.pipeline import compile
from nbcomp.target.llvm.remarks import COUNT, written


def crowded(x: Any, y: Any) -> Any:
    out = np.exp(x) * np.log(y) * np.tanh(x + y)
    for k in range(4):
        out = out + np.sin(x * k) * np.log(y + k) * np.exp(x - k)
    return out


@pytest.fixture(scope="module")
def program() -> Compiled:
    x = np.ones(3000, np.float32)
    return compile(crowded, x, x).for_cpu("avx2")


def test_spills_are_at_the_users_line(program: Compiled) -> None:
    added = [r for r in program.explain(llvm=True) if r not in program.explain()]
    assert {r.topic for r in added} == {"registers", "size"}
    first = crowded.__code__.co_firstlineno
    for remark in added:
        assert remark.location is not None
        assert first < remark.location.line <= first + 4
    spilled = next(r for r in added if r.topic == "registers")
    assert re.search(r"more values in .* than there are registers: .* reads them", spilled.reason)
    size = next(r for r in added if r.topic == "size")
    count = int(re.findall(r"is ([\d,]+) machine", size.reason)[0].replace(",", ""))
    assert count == len(program.provenance())


def test_our_count_of_spills_is_llvms(program: Compiled) -> None:
    (kernel,) = program.kernels
    code: Any = kernel.code
    text = written([(code.located.located_text, astuple(code.machine.cpu))])
    of_functions = [line for line in text.splitlines() if line.endswith("generated in function")]
    counts = [(int(n), kind) for line in of_functions for n, kind in COUNT.findall(line)]
    theirs = sum(n for n, kind in counts if "folded" not in kind)
    ours = sum(row.construct == Construct.SPILL for row in program.provenance())
    assert theirs > 50
    assert abs(ours - theirs) <= 0.05 * theirs + 2


def test_a_simple_kernel_has_nothing_to_spill() -> None:
    made = compile(lambda x: x + 1, np.ones(100, np.float32))
    assert {r.topic for r in made.explain(llvm=True)} >= {"size"}
    assert "registers" not in {r.topic for r in made.explain(llvm=True)}


def test_a_child_that_fails_is_an_error_and_says_so() -> None:
    with pytest.raises(NbcompError, match="LLVM's remarks could not be had"):
        written([("this is no LLVM IR", ("x86_64-unknown-linux-gnu", "x86-64", "", ""))])


def test_other_cpus_have_remarks_too() -> None:
    made = compile(lambda x: np.exp(x), np.ones(1000, np.float32)).for_cpu("neon")
    assert any(r.topic == "size" for r in made.explain(llvm=True))
