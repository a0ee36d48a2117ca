"""Hover help: there is a sentence for everything the compiler writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import nbcomp
import nbcomp.ops
from nbcomp.compiled import Compiled, CompiledKernel
from nbcomp.display import help as hover
from nbcomp.display.view.kernels import kernel_text
from nbcomp.graph.op import REGISTRY, Library
from nbcomp.loop.grammar import Block, Call, Exit, For, Leave, Let, buffers_in, walk
from nbcomp.loop.intrinsics import INTRINSICS
from tests.one_graph import compile_graph, graph_of

LEVELS = ("loop", "llvm", "asm")
SAMPLES = 3  # per operator: every scalar function, in several dtypes


def programs() -> Iterator[Compiled]:
    """Each operator by itself, and a program of the size people write."""
    rng = np.random.default_rng(5)
    for op in REGISTRY.values():
        if issubclass(op, Library):
            continue
        samples = list(op.samples(rng))
        for k in rng.permutation(len(samples))[:SAMPLES]:
            arrays = [np.asarray(a) for a in samples[k].arrays]
            yield compile_graph(graph_of(samples[k].op, arrays), arrays)
    yield nbcomp.compile(lambda x: np.exp(x - x.max(axis=-1, keepdims=True)), rng.random((40, 33)))


def names(kernel: CompiledKernel) -> set[str]:
    """What words of a kernel's loops are names, which nobody explains."""
    found = {kernel.name} | {b.name for s in kernel.kernel.stages for b in buffers_in(s)}
    found |= {b.name for b in kernel.kernel.buffers}
    for stmt in walk(kernel.kernel.stages):
        match stmt:
            case For():
                found.add(stmt.var)
            case Let():
                found.add(stmt.name)
            case Block() | Leave():
                found.add(stmt.label)
            case Call():
                found.add(stmt.fn)
                found.update(name for name, _ in stmt.options)
            case Exit():
                found.update(hover.loop_tokens(f"{stmt.failure.kind} {stmt.failure.text}"))
    return found


GIVEN = {"in", "nan", "inf", "True", "False"}  # words and numbers that need no explanation


@pytest.fixture(scope="module")
def tokens() -> dict[str, set[str]]:
    """Every token of every level."""
    found: dict[str, set[str]] = {level: set() for level in LEVELS}
    for compiled in programs():
        for kernel in compiled.kernels:
            for level in LEVELS:
                found[level] |= hover.NOTATIONS[level][0](kernel_text(kernel, level))
            found["loop"] -= names(kernel)
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_every_instruction_is_explained(level: str, tokens: dict[str, set[str]]) -> None:
    lookup = hover.NOTATIONS[level][1]
    assert len(tokens[level]) > {"loop": 40, "llvm": 40, "asm": 120}[level]
    assert not sorted(t for t in tokens[level] - GIVEN if lookup(t) is None)


def test_every_instruction_that_loops_become_is_explained() -> None:
    assert not [name for name in INTRINSICS if hover.loop(name) is None]


def test_every_operator_is_explained() -> None:
    for name in REGISTRY:
        known = hover.operator(name)
        assert known is not None
        assert len(known.text) > 2
        assert known.source


@pytest.mark.parametrize(
    ("mnemonic", "words"),
    [
        ("vaddps", "Adds packed float32 values."),
        ("vfmadd231ps", "one rounding, for packed float32 values"),
        ("vpaddd", "Adds packed 32-bit integers."),
        ("addq", "Adds integers (64-bit integers)."),
        ("jne", "Jumps if the flags say so."),
        ("vmovups", "whole vector of packed float32 values"),
    ],
)
def test_mnemonics_say_their_types(mnemonic: str, words: str) -> None:
    known = hover.machine(mnemonic)
    assert known is not None
    assert words in known.text


@pytest.mark.parametrize(
    ("language", "mnemonic", "words", "source"),
    [
        ("AArch64", "fmla", "one rounding", "Arm"),
        ("AArch64", "add", "lane by lane", "Arm"),
        ("RISC-V", "vfmacc.vv", "one rounding", "RISC-V"),
        ("RISC-V", "add", "integers", "RISC-V"),
        ("RISC-V", "vle32.v", "32-bit elements", "RISC-V"),
        ("WebAssembly", "f32x4.add", "4 lanes of float32", "WebAssembly"),
        ("PTX", "fma.rn.f32", "float32 values with one rounding", "PTX"),
    ],
)
def test_each_assembly_language_has_its_own(
    language: str, mnemonic: str, words: str, source: str
) -> None:
    known = hover.machine(mnemonic, language)
    assert known is not None
    assert words in known.text
    assert source in known.source


def test_tokens_of_texts() -> None:
    llvm = "define void @k() {\nentry:\n  %1 = call <4 x float> @llvm.fma.v4f32(<4 x float> %a)\n}"
    assert hover.llvm_tokens(llvm) == {"define", "call", "llvm.fma.v4f32"}
    assert hover.machine_tokens("k:\n    vaddps %zmm1, %zmm2\n.L1:\n    retq\n    .long 5\n") == {
        "vaddps",
        "retq",
    }
    ptx = "        @%p1 bra \t$L1;\n        ret;\n        fma.rn.f32 \t%f1, %f2;"
    assert hover.machine_tokens(ptx) == {"bra", "ret", "fma.rn.f32"}
    assert "parallel" in hover.loop_tokens("for i in 0..9 parallel:  # line for if")
    assert "if" not in hover.loop_tokens("for i in 0..9 parallel:  # line for if")


def test_the_help_of_a_report_is_that_of_its_words() -> None:
    found = hover.help_for(
        ["matmul", "no such"], [("asm", "  vaddps a\n  nonsense b\n"), ("aarch64", "  ret\n")]
    )
    assert found.keys() == {"op:matmul", "asm:vaddps", "aarch64:ret"}
    assert "Arm" in found["aarch64:ret"].source


@pytest.mark.parametrize("name", ["loop", "llvm", *hover.MACHINES.values()])
def test_the_data_is_well_formed(name: str) -> None:
    entries, source, types = hover._table(name)
    assert source
    for key, text in entries.items():
        re.compile(key)
        assert text[0].isupper() or not text[0].isalpha()
        assert text.endswith(".")
        assert "\n" not in text
        assert len(text) < 180
    assert all(types.values())
