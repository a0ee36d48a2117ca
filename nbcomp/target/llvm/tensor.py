"""Instructions on several elements at once (`loop.intrinsics`) as LLVM code.

Each is written where the CPU has it: its sum is read, added to and written back, and LLVM keeps it
in a register from one to the next.  Where the CPU lacks it, `generic` gives the same loops as
vectors of what they mean.  Knows LLVM's names; which blocks are instructions is decided above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nbcomp.loop.grammar import Accumulate, Affine, Expr, For, Stmt
from nbcomp.target.llvm.builder import Builder, Value

TILE_ROWS = 16


@dataclass(frozen=True)
class Form:
    """What LLVM calls an instruction: its function, the types of the sum and of the operands.

    swapped: the function takes the right operand before the left.  tile: operands are tiles.
    """

    function: str
    total: str
    element: str
    swapped: bool = False
    tile: bool = False


_VNNI, _BF16 = "llvm.x86.avx512.vpdpbusd", "llvm.x86.avx512bf16.dpbf16ps.512"
FORMS = {
    "vpdpbusd": Form(f"{_VNNI}.512", "i32", "i8"),
    "vpdpbusd_su": Form(f"{_VNNI}.512", "i32", "i8", swapped=True),
    "vpdpbusd_256": Form(f"{_VNNI}.256", "i32", "i8"),
    "vpdpbusd_su_256": Form(f"{_VNNI}.256", "i32", "i8", swapped=True),
    "vdpbf16ps": Form(_BF16, "float", "bfloat"),
    "tdpbssd": Form("llvm.x86.tdpbssd", "i32", "i8", tile=True),
    "tdpbusd": Form("llvm.x86.tdpbusd", "i32", "i8", tile=True),
    "tdpbf16ps": Form("llvm.x86.tdpbf16ps", "float", "bfloat", tile=True),
}


def generic(block: For) -> For:
    """The loops of an instruction for a CPU without it: the sums of a row in lanes, innermost; the
    terms that lie side by side written out."""
    nest: list[For] = []
    stmt: Stmt = block
    while isinstance(stmt, For):
        nest.append(stmt)
        (stmt,) = stmt.body
    assert isinstance(stmt, Accumulate)
    (lanes,) = (f for f in nest if _walks(stmt.indices[-1], f.var))
    *others, terms = (f for f in nest if f is not lanes)
    made: Stmt = replace(lanes, kind="vector", body=(stmt,))
    made = replace(terms, kind="unroll", body=(made,))
    for loop in reversed(others):
        made = replace(loop, kind="serial", body=(made,))
    assert isinstance(made, For)
    return made


def adding(block: For) -> Stmt:
    """The statement that an instruction is."""
    stmt: Stmt = block
    while isinstance(stmt, For):
        (stmt,) = stmt.body
    return stmt


def _walks(index: Expr, var: str) -> bool:
    return isinstance(index, Affine) and any(v == var for v, _ in index.terms)


def dot(
    b: Builder, name: str, total: Value, left: Value, right: Value, lanes: int, full: int
) -> Value:
    """The sums plus products of the left operand's terms and the right one's, lane by lane.

    total: `full` sums.  left: the address of the terms all lanes share.  right: that of the terms
    of `lanes` lanes, side by side; further lanes add nothing.
    """
    form = FORMS[name]
    count = full * 32 // (8 if form.element == "i8" else 16)
    vector = f"<{count} x {form.element}>"
    shared = b.splat(b.emit(f"load i32, {left}, align 1", "i32"), full)
    if lanes == full:
        own = b.emit(f"load <{full} x i32>, {right}, align 1", "i32", full)
    else:
        kind = f"<{full} x i32>"
        mask = ", ".join(f"i1 {int(k < lanes)}" for k in range(full))
        load = f"llvm.masked.load.v{full}i32.p0"
        b.declare(load, kind, "ptr", f"<{full} x i1>", kind)
        arguments = f"ptr align 1 {right.text}, <{full} x i1> <{mask}>, {kind} zeroinitializer"
        own = b.emit(f"call {kind} @{load}({arguments})", "i32", full)
    parts = [b.emit(f"bitcast {v} to {vector}", form.element, count) for v in (shared, own)]
    if form.swapped:
        parts.reverse()
    b.declare(form.function, total.type, total.type, vector, vector)
    text = f"call {total.type} @{form.function}({total}, {parts[0]}, {parts[1]})"
    return b.emit(text, total.element, full)


def tile(b: Builder, entry: list[str], name: str, places: Sequence[tuple[Value, Value]]) -> None:
    """The sums of a tile plus a product of tiles.

    entry: the lines of the function's entry block, where tiles get their shape.  places: the
    address and the bytes between rows of the sum, the left and the right operand.
    """
    configure(b, entry)
    b.declare("llvm.x86.tileloadd64", "void", "i8", "ptr", "i64")
    b.declare("llvm.x86.tilestored64", "void", "i8", "ptr", "i64")
    b.declare(FORMS[name].function, "void", "i8", "i8", "i8")
    for number, (address, step) in enumerate(places):
        b.effect(f"call void @llvm.x86.tileloadd64(i8 {number}, {address}, {step})")
    b.effect(f"call void @{FORMS[name].function}(i8 0, i8 1, i8 2)")
    address, step = places[0]
    b.effect(f"call void @llvm.x86.tilestored64(i8 0, {address}, {step})")


def configure(b: Builder, entry: list[str]) -> None:
    """Give three tiles 16 rows of 64 bytes, once in a function (Intel SDM, LDTILECFG)."""
    if any("%tiles" in line for line in entry):
        return
    b.declare("llvm.x86.ldtilecfg", "void", "ptr")
    config = [0] * 64
    config[0] = 1  # the palette
    for number in range(3):
        config[16 + 2 * number] = 64
        config[48 + number] = TILE_ROWS
    numbers = ", ".join(f"i8 {n}" for n in config)
    entry.append("  %tiles = alloca <64 x i8>, align 64")
    entry.append(f"  store <64 x i8> <{numbers}>, ptr %tiles, align 64")
    entry.append("  call void @llvm.x86.ldtilecfg(ptr %tiles)")
