"""Code of other architectures is made in a process of its own, and what goes wrong stays there."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from nbcomp.errors import NbcompError
from nbcomp.measure.cpus import compare_cpus
from nbcomp.pipeline import compile
from nbcomp.target.llvm import apart
from nbcomp.target.llvm.apart import made_apart
from nbcomp.target.llvm.codegen import generate
from nbcomp.target.llvm.cpus import target_for
from tests.target.random_kernels import RandomKernel

GOOD = "define float @f(float %x) {\n  %y = fadd float %x, 1.0\n  ret float %y\n}\n"
NEON = astuple(target_for("neon").cpu)


def test_texts_are_made() -> None:
    optimised, assembly = made_apart(GOOD, NEON)
    assert "fadd" in optimised
    assert "fadd\ts0" in assembly


def test_a_lost_process_is_an_error_and_replaced() -> None:
    with pytest.raises(NbcompError, match="LLVM cannot make it: "):
        made_apart("define nonsense", NEON)
    assert "fadd" in made_apart(GOOD, NEON)[1]


def test_what_takes_too_long_is_given_up() -> None:
    much = "".join(GOOD.replace("@f", f"@f{n}") for n in range(4000))  # more than a moment's work
    with pytest.raises(NbcompError, match="did not come to an end within 0 s"):
        made_apart(much, NEON, seconds=1e-4)
    assert "fadd" in made_apart(GOOD, NEON)[1]


def test_an_instruction_that_llvm_does_not_have() -> None:
    target = target_for("neon")
    name, kind = "llvm.x86.avx512.vpermi2var.ps.512", "<16 x float>"
    text = (
        f"declare {kind} @{name}({kind}, <16 x i32>, {kind})\n"
        f"define {kind} @f({kind} %x, <16 x i32> %i) {{\n"
        f"  %y = call {kind} @{name}({kind} %x, <16 x i32> %i, {kind} %x)\n"
        f"  ret {kind} %y\n}}\n"
    )
    with pytest.raises(NbcompError, match="LLVM cannot make it: "):
        made_apart(text, astuple(target.cpu))


def test_a_cpu_without_code_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "PATIENCE", 0.0)
    x = np.ones(77, np.float32)
    many = compile(lambda x: np.tan(np.power(np.sin(x), np.cos(x))), x)  # more than a moment's work
    table = compare_cpus(many, (x,), seconds=0.05, names=["neon"])
    assert table["neon"].compiled is None
    assert table["neon"].note.startswith("no code: LLVM did not come to an end")


@pytest.mark.parametrize("name", ["neon", "sve", "rvv", "ptx"])
@pytest.mark.parametrize("seed", range(3))
def test_random_kernels_are_made_for_every_architecture(name: str, seed: int) -> None:
    target = target_for(name)
    kernel = RandomKernel(seed).kernel
    width, attributes = target.vector_bytes, target.cpu.attributes
    code = generate(kernel, width, located=True, x86=False, attributes=attributes)
    assert "kernel" in made_apart(code.located_text, astuple(target.cpu))[1]
