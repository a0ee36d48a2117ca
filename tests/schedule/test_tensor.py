"""Blocks that one instruction does: legality, meaning, machine code, and where the CPU lacks it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nbcomp import machine
from nbcomp.errors import NbcompError, ScheduleError, VerifyError
from nbcomp.loop.bfloat16 import UINT16, round_array, widen_array, widened
from nbcomp.loop.grammar import (
    Accumulate,
    Alloc,
    Apply,
    Buffer,
    Cast,
    Expr,
    For,
    Kernel,
    Load,
    Store,
    affine,
    const,
    loop_var,
    walk,
)
from nbcomp.loop.intrinsics import INT8, INT32, INTRINSICS, UINT8
from nbcomp.loop.verifier import verify
from nbcomp.machine import host
from nbcomp.record import Trace
from nbcomp.schedule.language import Schedule, from_json, parse
from nbcomp.target.llvm.codegen import generate
from nbcomp.target.llvm.compile import compile_kernel
from nbcomp.target.llvm.cpus import target_for
from nbcomp.target.llvm.emit import host_cpu
from nbcomp.target.llvm.tensor import FORMS
from nbcomp.types import FLOAT32, DType, contiguous_strides
from tests.kernels import interpreted, memory_of, native, run_stage


def product(rows: int, inner: int, columns: int, left: DType, right: DType, total: DType) -> Kernel:
    """The loops of a textbook on narrow operands."""

    def buffer(name: str, dtype: DType, *shape: int, role: Any = "input") -> Buffer:
        return Buffer(name, dtype, shape, contiguous_strides(shape), role)

    a, b = buffer("a", left, rows, inner), buffer("b", right, inner, columns)
    out = buffer("out", total, rows, columns, role="output")
    i, j, k = map(loop_var, "ijk")
    s = Buffer("s", total, (), (), "local")

    def wide(e: Expr) -> Expr:
        return widened(e) if e.dtype == UINT16 else Cast(total, e)

    term = Apply(total, "multiply", (wide(Load(left, a, (i, k))), wide(Load(right, b, (k, j)))))
    body = (
        Alloc(s),
        Store(s, (), const(0, total)),
        For("k", affine(inner), (Accumulate(s, (), "add", term, contract=True),)),
        Store(out, (i, j), Load(total, s, ())),
    )
    nest = For("i", affine(rows), (For("j", affine(columns), body),))
    return Kernel("product", (a, b, out), (nest,))


def tiled(group: int, lanes: int, name: str) -> Schedule:
    """A sum for each lane, `group` terms at a time."""
    return parse(
        f"""
split("k", {group})
pack("b", 0, {group})
split("j", {lanes})
distribute("j")
reorder("k_o", "j_2")
tensorize("j_2", "{name}")
vectorize("j")
vectorize("j_3")
"""
    )


def amx(name: str, group: int) -> Schedule:
    """A tile of 16 x 16 sums."""
    return parse(
        f"""
split("k", {group})
pack("b", 0, {group})
split("j", 16)
split("i", 16)
reorder("i_o", "j_o", "i", "j")
distribute("j")
distribute("i")
split("k_o", 16)
reorder("k_o_o", "i_2", "j_2", "k_o")
tensorize("i_2", "{name}")
"""
    )


WITH = {
    "vpdpbusd": (UINT8, INT8, INT32, 4, 16),
    "vpdpbusd_su": (INT8, UINT8, INT32, 4, 16),
    "vpdpbusd_256": (UINT8, INT8, INT32, 4, 8),
    "vpdpbusd_su_256": (INT8, UINT8, INT32, 4, 8),
    "vdpbf16ps": (UINT16, UINT16, FLOAT32, 2, 16),
}


def drawn(rng: np.random.Generator, dtype: DType, *shape: int) -> Any:
    """Every value of a byte; bfloat16 bits of normal numbers."""
    if dtype == UINT16:
        return round_array(rng.standard_normal(shape))
    limits = np.iinfo(dtype.str)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def numpys(a: Any, b: Any) -> Any:
    if a.dtype == UINT16:
        return widen_array(a).astype(np.float64) @ widen_array(b).astype(np.float64)
    return a.astype(np.int32) @ b.astype(np.int32)


def close(got: Any, wanted: Any) -> None:
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("columns", [48, 6, 1])
@pytest.mark.parametrize("name", WITH)
def test_dots_mean_their_loops(name: str, columns: int, rng: np.random.Generator) -> None:
    left, right, total, group, lanes = WITH[name]
    k = product(3, 3 * group, columns, left, right, total)
    made = tiled(group, min(lanes, columns), name)(k)
    a, b = drawn(rng, left, 3, 3 * group), drawn(rng, right, 3 * group, columns)
    for run in (interpreted, native, on_this_machine):
        close(run(made, {"a": a, "b": b})["out"], numpys(a, b))


def on_this_machine(k: Kernel, arrays: dict[str, Any]) -> dict[str, Any]:
    """With the instructions that this machine has; `native` is without."""
    code = generate(k, host().vector_bytes, features=host().features)
    machine = compile_kernel(code, host_cpu())[0]
    memory = memory_of(k, arrays)
    for stage in code.stages:
        run_stage(stage, machine, k, memory)
    return memory


@pytest.mark.parametrize(
    ("name", "mnemonic"),
    [("vpdpbusd", "vpdpbusd"), ("vpdpbusd_su", "vpdpbusd"), ("vdpbf16ps", "vdpbf16ps")],
)
def test_the_instruction_is_in_the_assembly(name: str, mnemonic: str) -> None:
    left, right, total, group, lanes = WITH[name]
    k = tiled(group, lanes, name)(product(4, 8, 32, left, right, total))
    with_it = target_for("amx").compile(k, Trace()).text("asm")
    assert re.search(rf"\t{mnemonic}\t.*zmm", with_it)
    for cpu in ("avx2", "avx512", "neon"):
        assert mnemonic not in target_for(cpu).compile(k, Trace()).text("asm")


@pytest.mark.parametrize(
    ("name", "types", "group"),
    [
        ("tdpbssd", (INT8, INT8, INT32), 4),
        ("tdpbusd", (UINT8, INT8, INT32), 4),
        ("tdpbf16ps", (UINT16, UINT16, FLOAT32), 2),
    ],
)
def test_tiles(
    name: str, types: tuple[DType, DType, DType], group: int, rng: np.random.Generator
) -> None:
    k = product(32, 32 * group, 16, *types)
    made = amx(name, group)(k)
    a, b = drawn(rng, types[0], 32, 32 * group), drawn(rng, types[1], 32 * group, 16)
    for run in (native, on_this_machine):
        close(run(made, {"a": a, "b": b})["out"], numpys(a, b))
    code = target_for("amx").compile(made, Trace())
    text = code.text("asm")
    assert {"ldtilecfg", "tileloadd", "tilestored", "tilerelease", name} <= set(
        re.findall(r"\t(\w+)", text)
    )
    plain = _instructions(text)
    inner = re.search(
        rf"tileloadd.*tmm1\n(\t(?!tile).*\n)*\ttileloadd.*tmm2\n\t{name}.*tmm0\n", plain
    )
    assert inner  # the sums stay in their tile from one group of terms to the next
    assert text.count("tilestored") == 1
    if not {"amx-tile", "amx-int8", "amx-bf16"} <= host().features:
        with pytest.raises(NbcompError, match=r"this machine has no .*amx-tile"):
            code.stages[0].run()  # type: ignore[operator]


def _instructions(text: str) -> str:
    """Assembly without directives."""
    return "".join(f"{t}\n" for t in text.splitlines() if not t.startswith("\t."))


def test_tensorize_golden(golden: Any) -> None:
    k = product(5, 12, 48, UINT8, INT8, INT32)
    golden(f"{k}\n\n{tiled(4, 16, 'vpdpbusd')(k)}")


def test_written_as_code_and_as_json() -> None:
    steps = tiled(4, 16, "vpdpbusd")
    assert parse(str(steps)) == steps
    assert from_json(steps.to_json()) == steps
    k = product(5, 12, 48, UINT8, INT8, INT32)
    assert str(from_json(steps.of(k).to_json())(k)) == str(steps(k))


BEFORE = ["split", "pack", "split", "distribute", "reorder"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("vpdpbusd", "vpdpbusb"), "no instruction vpdpbusb .did you mean vpdpbusd"),
        (("vpdpbusd", "vdpbf16ps"), "k has 4 iterations, vdpbf16ps does 2: split it"),
        (("vpdpbusd", "vpdpbusd_su"), "a is u8, vpdpbusd_su takes i8"),
        (('tensorize("j_2"', 'tensorize("k"'), "vpdpbusd has a loop of 4 iterations more inside"),
        (('tensorize("j_2"', 'tensorize("j"'), "vpdpbusd has a loop of 4 iterations more inside"),
        (('pack("b", 0, 4)\n', ""), "b lies 1 elements apart along j_2, vpdpbusd takes 4"),
        (('split("j", 16)', 'split("j", 24)'), "j_2 has 24 iterations, vpdpbusd does 16: split it"),
        (('tensorize("j_2"', 'vectorize("j_2")\ntensorize("k"'), "k is in the lanes of j_2"),
        (("vectorize", 'unroll("k")\nvectorize'), "k is in the instruction vpdpbusd"),
    ],
)
def test_refusals(edit: tuple[str, str], message: str) -> None:
    text = str(tiled(4, 16, "vpdpbusd"))
    assert edit[0] in text
    k = product(5, 12, 48, UINT8, INT8, INT32)
    with pytest.raises(ScheduleError, match=message):
        parse(text.replace(edit[0], edit[1], 1))(k)


def test_other_sums_are_refused() -> None:
    k = product(5, 12, 48, UINT8, INT8, INT32)
    rounded = product(5, 12, 48, UINT8, INT8, FLOAT32)
    with pytest.raises(ScheduleError, match=r"s is f32, vpdpbusd takes i32"):
        tiled(4, 16, "vpdpbusd")(rounded)
    varying = tiled(4, 20, "vpdpbusd")
    with pytest.raises(ScheduleError, match="j_2 has a varying number of iterations"):
        varying(k)


def test_a_step_that_breaks_an_instruction_is_refused() -> None:
    """What it does is looked at again after every step."""
    k = tiled(4, 16, "vpdpbusd")(product(5, 12, 48, UINT8, INT8, INT32))
    block = next(s for s in walk(k.stages) if isinstance(s, For) and s.kind == "instruction")
    wrong = replace(block, instruction="vdpbf16ps")
    with pytest.raises(VerifyError, match="k has 4 iterations, vdpbf16ps does 2"):
        verify(replace(k, stages=(k.stages[0], wrong)))


def test_every_instruction_has_a_form() -> None:
    assert set(FORMS) == set(INTRINSICS)


@pytest.mark.parametrize(("answer", "left"), [(0, {"amx_tile", "avx2"}), (-1, {"avx2"})])
def test_tiles_are_asked_for(answer: int, left: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Libc:
        def syscall(self, *numbers: int) -> int:
            asked.append(numbers)
            return answer

    monkeypatch.setattr(machine.ctypes, "CDLL", lambda name: Libc())
    assert machine._with_tiles({"avx2"}) == {"avx2"}
    assert not asked
    assert machine._with_tiles({"amx_tile", "avx2"}) == left
    assert asked == [(158, 0x1023, 18)]
