"""The same program for named CPUs: the right instructions, the right answers, plain refusals."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.measure import cpus
from nbcomp.measure.cpus import CpuTable, compare_cpus
from nbcomp.options import Options
from nbcomp.pipeline import compile, compile_for
from nbcomp.provenance import instruction_mix
from nbcomp.target.llvm.cpus import CPUS, cpu_named, target_for

ROWS = np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32)


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def program() -> Compiled:
    return compile(softmax, ROWS)


# What an instruction of each looks like: a packed division, and a fused multiply-add.
SIGNS = {
    "sse2": (r"^\s+divps\s+%xmm", r"callq"),
    "avx2": (r"vdivps\s+%ymm", r"vfmadd\w+ps\s+.*%ymm"),
    "avx512": (r"vdivps\s+%zmm", r"vfmadd\w+ps\s+.*%zmm"),
    "amx": (r"vdivps\s+%zmm", r"vfmadd\w+ps\s+.*%zmm"),
    "neon": (r"fdiv\s+v\d+\.4s", r"fmla\s+v\d+\.4s"),
    "sve": (r"fdivr?\s+z\d+\.s", r"fmla\s+z\d+\.s|fmad\s+z\d+\.s"),
    "rvv": (r"vfdiv\.v", r"vfm(add|acc)\.v"),
    "wasm": (r"f32x4\.div", r"call\s+fmaf"),
    "ptx": (r"div\.rn\.f32", r"fma\.rn\.f32"),
}


@pytest.mark.parametrize("name", SIGNS)
def test_each_has_its_own_instructions(name: str, program: Compiled) -> None:
    text = program.for_cpu(name).text("asm")
    for sign in SIGNS[name]:
        assert re.search(sign, text, re.MULTILINE), sign


def test_all_names_are_tested() -> None:
    assert [cpu.name for cpu in CPUS] == list(SIGNS)


@pytest.mark.parametrize("name", SIGNS)
def test_vectors_are_as_wide_as_the_cpus(name: str, program: Compiled) -> None:
    wanted = {"sse2": 128, "avx2": 256, "avx512": 512, "amx": 512, "neon": 128, "wasm": 128}
    (kernel,) = program.for_cpu(name).kernels
    mix = instruction_mix(kernel)
    assert mix.vector_bits == {**wanted, "sve": -1, "rvv": -1, "ptx": 0}[name]
    assert mix.in_loops["div"] >= 1
    assert mix.in_loops.get("other", 0) <= 0.1 * sum(mix.in_loops.values())


@pytest.mark.parametrize("name", SIGNS)
def test_what_runs_here_is_right_and_the_rest_says_why_not(name: str, program: Compiled) -> None:
    made = program.for_cpu(name)
    if cpu_named(name).runs:
        np.testing.assert_allclose(made(ROWS), softmax(ROWS), rtol=1e-5)
    else:
        with pytest.raises(NbcompError, match=r"this is code for .*(this machine)"):
            made(ROWS)


@pytest.mark.parametrize("name", [cpu.name for cpu in CPUS if cpu.runs])
def test_other_widths_are_right_on_other_programs(name: str) -> None:
    def f(a: Any, b: Any) -> Any:
        return np.where(a > b, np.sin(a), a // 3), (a * b).sum(axis=0), a.cumsum(axis=1)

    a, b = (np.random.default_rng(k).integers(-50, 50, (37, 23)).astype(np.float64) for k in (1, 2))
    for got, wanted in zip(compile(f, a, b).for_cpu(name)(a, b), f(a, b), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_terms_of_products_call_nothing_where_no_instruction_adds_them_unrounded() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((24, 40), (40, 64)))
    generated = compile_for("llvm", Options(without=frozenset({"blas"})))
    made = generated(lambda a, b: a @ b, a, b).for_cpu("sse2")
    text = made.text("asm")
    assert re.search(r"mulps\s", text)
    assert re.search(r"addps\s", text)
    assert not re.search(r"\bcallq?\s+\*?%?\w*fma", text)
    np.testing.assert_allclose(made(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_names() -> None:
    assert cpu_named("x86-64-v3").name == "avx2"
    assert target_for("host").refusal == ""
    with pytest.raises(ValueError, match=r"no CPU 'avx521' \(did you mean avx512\?\)"):
        cpu_named("avx521")
    with pytest.raises(ValueError, match="there are host, sse2"):
        target_for("generic")


def test_the_host_is_the_program_itself(program: Compiled) -> None:
    assert program.for_cpu("host").text("asm") == program.text("asm")


# --------------------------------------------------------------------------------------- the table


@pytest.fixture(scope="module")
def table(program: Compiled) -> CpuTable:
    with pytest.MonkeyPatch.context() as patched:  # a call may be kept waiting by other programs
        patched.setattr(cpus, "PATIENCE", math.inf)
        return compare_cpus(program, (ROWS,), seconds=0.2)


def test_what_runs_is_timed(table: CpuTable) -> None:
    assert [row.name for row in table] == ["host", *SIGNS]
    for row in table:
        runs = row.name == "host" or cpu_named(row.name).runs
        assert (row.timing is not None) == runs
        assert row.same
        if not runs:
            assert "this machine" in row.note
    assert table["ptx"].compiled is not None


def test_the_table_as_text(table: CpuTable) -> None:
    lines = repr(table).splitlines()
    assert lines[0] == "softmax on 10 CPUs"
    assert re.search(r"^host .* 1\.00×$", lines[1])
    assert re.search(r"^ptx .* no vectors .* not run$", lines[10])
    assert "nbcomp has no schedule for GPUs" in "\n".join(lines)
    assert max(map(len, lines[:11])) < 120


def test_a_wrong_answer_is_not_timed(program: Compiled) -> None:
    rows = compare_cpus(program, (ROWS,), None, lambda z: z, 0.1, ["sse2"])
    assert not any(row.same for row in rows)
    assert all(row.timing is None and "WRONG ANSWER" in row.note for row in rows)


def test_arrays_that_are_written_are_left_as_they_were() -> None:
    def grow(x: Any) -> Any:
        x *= 2
        return x.sum()

    x = np.ones(100)
    rows = compare_cpus(compile(grow, x), (x,), seconds=0.1, names=["sse2"])
    assert all(row.timing is not None for row in rows)
    assert (x == 1).all()
