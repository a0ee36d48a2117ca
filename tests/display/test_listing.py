"""LLVM IR and assembly with the user's lines."""

from __future__ import annotations

from nbcomp.display.listing import commented
from nbcomp.origin import Line, Listing
from nbcomp.record import Location

FOUR, FIVE = (Location("<cell>", 4),), (Location("<cell>", 5),)


def test_llvm() -> None:
    lines = (
        Line(""),
        Line("define void @k(ptr %x) {"),
        Line("  %a = load float, ptr %x, align 4", FOUR),
        Line("  %b = fadd float %a, %a", (*FIVE, *FOUR, *FIVE)),
        Line("  ret void"),
        Line("}"),
        Line(""),
        Line(""),
        Line("}"),
        Line(""),
    )
    found = commented(Listing("llvm", lines)).lines
    assert [line.text for line in found] == [
        "define void @k(ptr %x) {",
        f"{'  %a = load float, ptr %x, align 4':<60}  ; line 4",
        f"{'  %b = fadd float %a, %a':<60}  ; lines 4, 5",
        "  ret void",
        "}",
        "",
        "}",
    ]
    assert [line.places for line in found[:3]] == [(), FOUR, (*FIVE, *FOUR, *FIVE)]


def test_assembly() -> None:
    lines = (
        Line("k:"),
        Line("        vmovss  (%rdi), %xmm0", FOUR, kind="load"),
        Line("        nop", kind="other"),
        Line(".LBB0_1:"),
        Line("        vaddss  %xmm0, %xmm0, %xmm0", FIVE, kind="add"),
        Line("        vaddss  %xmm0, %xmm0, %xmm0", FIVE, kind="add"),
        Line("        retq", kind="branch"),
    )
    found = commented(Listing("asm", lines)).lines
    assert [line.text for line in found] == [
        "k:",
        "        # line 4",
        "        vmovss  (%rdi), %xmm0",
        "        nop",
        ".LBB0_1:",
        "        # line 5",
        "        vaddss  %xmm0, %xmm0, %xmm0",
        "        vaddss  %xmm0, %xmm0, %xmm0",
        "        retq",
    ]
    assert found[5].places == FIVE


def test_other_levels_stay_as_they_are() -> None:
    lines = tuple(Line(text, FOUR) for text in ("for i:", "", "", "  x"))
    assert commented(Listing("loop", lines)).lines == lines
