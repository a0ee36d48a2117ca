"""Instructions on several elements at once (`loop.intrinsics`) as LLVM code.

Where the CPU lacks an instruction, `generic` gives the same loops as vectors of what they mean.
Knows LLVM's names; where operands are is found in `instructions`.
"""

from __future__ import annotations

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


def load_tile(b: Builder, entry: list[str], number: int, address: Value, step: Value) -> None:
    """Read a tile; step: bytes between its rows.

    entry: the lines of the function's entry block, where tiles get their shape.
    """
    configure(b, entry)
    b.declare("llvm.x86.tileloadd64", "void", "i8", "ptr", "i64")
    b.effect(f"call void @llvm.x86.tileloadd64(i8 {number}, {address}, {step})")


def store_tile(b: Builder, number: int, address: Value, step: Value) -> None:
    """Write a tile."""
    b.declare("llvm.x86.tilestored64", "void", "i8", "ptr", "i64")
    b.effect(f"call void @llvm.x86.tilestored64(i8 {number}, {address}, {step})")


def multiply_tiles(b: Builder, name: str) -> None:
    """Add the product of tiles 1 and 2 to tile 0."""
    b.declare(FORMS[name].function, "void", "i8", "i8", "i8")
    b.effect(f"call void @{FORMS[name].function}(i8 0, i8 1, i8 2)")


def release(b: Builder, entry: list[str]) -> None:
    """Give tiles back at the end of a function that uses them."""
    if any("%tiles" in line for line in entry):
        b.declare("llvm.x86.tilerelease", "void")
        b.effect("call void @llvm.x86.tilerelease()")


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
