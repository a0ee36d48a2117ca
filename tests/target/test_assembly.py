"""Reading assembly: functions, control flow, what is in loops, who uses what, what it does."""

from __future__ import annotations

import random

import networkx
import pytest

from nbcomp.target.llvm.assembly import Assembly, Flow, kind_of, parse, width_of
from nbcomp.target.llvm.cycles import cyclic
from nbcomp.target.llvm.dialects import ARM, KINDS, PTX, RISCV, WASM, X86, Dialect, dialect_of

LOOPS = """\
\t.type\tf,@function
f:
.Lfunc_begin0:
\t.loc\t1 1 4 prologue_end
\tpushq\t%rbp
\txorl\t%eax, %eax
\tmovabsq\t$.LCPI0_0, %rcx
\t.loc\t1 0 0
\tvbroadcastss\t(%rcx), %zmm7
.LBB0_1:
\t.loc\t1 3 2 is_stmt 0
\tvmovups\t(%rdi,%rax,4), %zmm0 {%k1} {z}
\tvaddps\t%zmm7, %zmm0, %zmm0\t# a comment
\tvmovups\t%zmm0, (%rsi,%rax,4)
\taddq\t$16, %rax
\tcmpq\t%rdx, %rax
\tjl\t.LBB0_1
\tpopq\t%rbp
\tretq
.Lfunc_end0:
\t.size\tf, .Lfunc_end0-f
\t.type\tg,@function
g:
\tjmp\t.LBB1_2
\tnop
.LBB1_2:
\tretq
\t.section\t.debug_line
\t.long\t7
"""


def flow_of(text: str, dialect: Dialect = X86) -> Flow:
    return parse(text, dialect).flows[0]


def test_functions_and_their_instructions() -> None:
    found: Assembly = parse(LOOPS, X86)
    assert [f.name for f in found.functions] == ["f", "g"]
    texts = [i.text for i in found.functions[0].instructions]
    assert texts[0] == "pushq %rbp"
    assert texts[5] == "vaddps %zmm7, %zmm0, %zmm0"
    assert [(i.line, i.column) for i in found.functions[0].instructions[3:5]] == [(0, 0), (3, 2)]
    assert "        popq    %rbp" in found.rows
    assert not [row for row in found.rows if ".loc" in row or "func" in row or "debug" in row]


def test_what_is_in_a_loop() -> None:
    flow = flow_of(LOOPS)
    looped = [i.mnemonic for i, x in zip(flow.instructions, flow.in_loop, strict=True) if x]
    assert looped == ["vmovups", "vaddps", "vmovups", "addq", "cmpq", "jl"]
    assert not any(parse(LOOPS, X86).flows[1].in_loop)


def test_a_jump_goes_nowhere_else() -> None:
    assert parse(LOOPS, X86).flows[1].next == [[2], [2], []]


def test_values_are_followed_through_registers_and_round_loops() -> None:
    flow = flow_of(LOOPS)
    names = [i.text.split()[0] for i in flow.instructions]

    def users(k: int) -> list[str]:
        return sorted(names[u] for u in flow.uses(k))

    assert users(names.index("movabsq")) == ["vbroadcastss"]
    assert users(names.index("vbroadcastss")) == ["vaddps"]
    assert users(names.index("addq")) == ["addq", "cmpq", "vmovups", "vmovups"]
    assert users(4) == ["vaddps"]
    assert users(5) == ["vmovups"]  # and not the addition of the next round


def test_stack_slots_carry_values_too() -> None:
    text = "\t.type\tf,@function\nf:\n" + "".join(
        f"\t{line}\n"
        for line in (
            "movq\t%rdx, 80(%rsp)",
            "movq\t%rax, 88(%rsp)",
            "movq\t80(%rsp), %rcx",
            "vmovups\t%zmm1, (%rsp) {%k1}",
            "vmovups\t(%rsp), %zmm2 {%k1} {z}",
            "retq",
        )
    )
    flow = flow_of(text)
    assert flow.uses(0) == {2}
    assert flow.uses(1) == set()
    assert flow.uses(3) == {4}


@pytest.mark.parametrize("seed", range(40))
def test_cycles_are_those_networkx_finds(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(1, 30)
    after = [[rng.randrange(n) for _ in range(rng.choice([0, 1, 1, 2]))] for _ in range(n)]
    graph = networkx.DiGraph([(a, b) for a, bs in enumerate(after) for b in bs])
    graph.add_nodes_from(range(n))
    wanted = [False] * n
    for component in networkx.strongly_connected_components(graph):
        for k in component:
            wanted[k] = len(component) > 1 or graph.has_edge(k, k)
    assert cyclic(after) == wanted


def test_long_straight_code_needs_no_recursion() -> None:
    assert not any(cyclic([[k + 1] for k in range(50_000)] + [[]]))


KIND = {
    X86: {
        "vfmadd213ps %zmm1, %zmm2, %zmm3": "fma",
        "vmovups (%rdi), %ymm0": "load",
        "vmovups %ymm0, (%rdi,%rax,4)": "store",
        "vmovntps %zmm0, 64(%rdi)": "store",
        "vmovaps %zmm1, %zmm2": "move",
        "vaddps (%rdi), %zmm1, %zmm1": "add",
        "mulsd %xmm1, %xmm0": "mul",
        "vdivps %xmm1, %xmm0, %xmm0": "div",
        "vsqrtpd %ymm1, %ymm0": "div",
        "vbroadcastss %xmm0, %zmm0": "shuffle",
        "vextractf64x4 $1, %zmm0, %ymm1": "shuffle",
        "kmovd %eax, %k1": "mask",
        "vcmpltps %zmm1, %zmm0, %k1": "compare",
        "vminps %zmm1, %zmm0, %zmm0": "compare",
        "vptest %ymm0, %ymm1": "compare",
        "vcvtdq2ps %zmm0, %zmm1": "convert",
        "vscalefps %zmm1, %zmm0, %zmm0": "convert",
        "vpslld $23, %zmm0, %zmm0": "logic",
        "addq $16, %rax": "scalar",
        "leaq 8(%rax,%rbx,4), %rcx": "scalar",
        "cmpq %rax, %rbx": "scalar",
        "imulq %rax, %rbx": "scalar",
        "jl .LBB0_1": "branch",
        "retq ": "branch",
        "callq *%rax": "call",
        "nop ": "other",
    },
    ARM: {
        "fmla v0.4s, v1.4s, v2.4s": "fma",
        "ldp q0, q1, [x0]": "load",
        "str q0, [x1, x2]": "store",
        "fadd z0.s, z1.s, z2.s": "add",
        "add x0, x1, x2": "scalar",
        "b.lt .LBB0_1": "branch",
        "whilelo p0.s, x0, x1": "mask",
        "dup v0.4s, w1": "shuffle",
    },
    RISCV: {
        "vfmadd.vv v0, v1, v2": "fma",
        "vle32.v v8, (a0)": "load",
        "vse32.v v8, (a0)": "store",
        "vfadd.vv v8, v9, v10": "add",
        "addi a0, a0, 64": "scalar",
        "bge a4, a5, .LBB0_1": "branch",
        "vsetivli zero, 8, e32, m1, ta, ma": "other",
    },
    WASM: {
        "f32x4.mul": "mul",
        "v128.load 0:p2align=2": "load",
        "f32x4.div": "div",
        "i64.add": "scalar",
        "br_if 0": "branch",
        "local.get 4": "move",
    },
    PTX: {
        "fma.rn.f32 %r1, %r2, %r3, %r4": "fma",
        "ld.b32 %r1, [%rd1]": "load",
        "st.b32 [%rd1], %r1": "store",
        "add.s64 %rd1, %rd2, 1": "scalar",
        "bra.uni $L__BB0_1": "branch",
    },
}


@pytest.mark.parametrize(
    ("dialect", "text"), [(d, t) for d, texts in KIND.items() for t in texts], ids=str
)
def test_kinds(dialect: Dialect, text: str) -> None:
    function = f"\t.type\tf,@function\nf:\n\t{text.replace(' ', chr(9), 1)}\n"
    i = parse(function, dialect).functions[0].instructions[0]
    assert kind_of(i, dialect) == KIND[dialect][text]
    assert kind_of(i, dialect) in KINDS


def test_widths() -> None:
    def width(text: str, dialect: Dialect) -> int:
        function = parse(f"\t.type\tf,@function\nf:\n\t{text}\n", dialect).functions[0]
        return width_of(function.instructions[0], dialect)

    assert width("vaddps\t%zmm0, %zmm1, %zmm2", X86) == 512
    assert width("vextractf32x4\t$1, %ymm19, %xmm18", X86) == 256
    assert width("addq\t$1, %rax", X86) == 0
    assert width("fadd\tv0.4s, v1.4s, v2.4s", ARM) == 128
    assert width("fadd\tz0.s, z1.s, z2.s", ARM) == -1
    assert width("f32x4.add", WASM) == 128


def test_loops_of_webassembly_are_blocks() -> None:
    names = ("local.get\t0", "loop", "local.get\t1", "br_if\t0", "end_loop", "return")
    text = "\t.type\tf,@function\nf:\n" + "".join(f"\t{line}\n" for line in names)
    assert flow_of(text, WASM).in_loop == [False, True, True, True, False, False]


def test_an_unknown_architecture_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        dialect_of("s390x-linux-gnu")
