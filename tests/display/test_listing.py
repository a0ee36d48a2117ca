"""LLVM IR and assembly with the user's lines."""

from __future__ import annotations

from nbcomp.display.listing import assembly_lines, lines_of, llvm_lines
from nbcomp.record import Location

LOCATIONS = (None, Location("<cell>", 4), Location("<cell>", 5))

LLVM = """\
; ModuleID = '<string>'
source_filename = "<string>"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @k(ptr %x) #0 !dbg !3 {
  %a = load float, ptr %x, align 4, !dbg !7
  %b = fadd float %a, %a, !dbg !8, !fpmath !9
  ret void, !dbg !6
}

attributes #0 = { nounwind }
!6 = !DILocation(line: 1, scope: !3)
!7 = !DILocation(line: 2, scope: !3)
!8 = distinct !DILocation(line: 3, column: 2, scope: !3)
"""

ASSEMBLY = """\
\t.file\t"<string>"
\t.section\t.rodata.cst4,"aM",@progbits,4
.LCPI0_0:
\t.long\t0x42b20000
k:
.Lfunc_begin0:
\t.cfi_startproc
\t.loc\t1 2 0 prologue_end
\tvmovss\t(%rdi), %xmm0
\t.loc\t1 0 0
\tnop
\t.loc\t1 2 0
.LBB0_1:
\t.loc\t1 3 0 is_stmt 1
\tvaddss\t%xmm0, %xmm0, %xmm0
\tretq
\t.cfi_endproc
\t.section\t.debug_line,"",@progbits
\t.long\t1
"""


def test_llvm() -> None:
    lines = llvm_lines(LLVM, LOCATIONS)
    assert [line.text for line in lines] == [
        "; Function Attrs: nounwind",
        "define void @k(ptr %x) #0 {",
        f"{'  %a = load float, ptr %x, align 4':<60}  ; line 4",
        f"{'  %b = fadd float %a, %a, !fpmath !9':<60}  ; line 5",
        "  ret void",
        "}",
    ]
    assert [line.places for line in lines] == [
        (),
        (),
        (LOCATIONS[1],),
        (LOCATIONS[2],),
        (),
        (),
    ]


def test_assembly() -> None:
    lines = assembly_lines(ASSEMBLY, LOCATIONS)
    assert [line.text for line in lines] == [
        ".LCPI0_0:",
        "        .long   0x42b20000",
        "k:",
        "        # line 4",
        "        vmovss  (%rdi), %xmm0",
        "        nop",
        ".LBB0_1:",
        "        # line 5",
        "        vaddss  %xmm0, %xmm0, %xmm0",
        "        retq",
    ]
    assert [line.places for line in lines[4:]] == [
        (LOCATIONS[1],),
        (),
        (),
        (LOCATIONS[2],),
        (LOCATIONS[2],),
        (LOCATIONS[2],),
    ]


def test_other_levels_stay_as_they_are() -> None:
    assert [line.text for line in lines_of("loop", "for i:\n\n\n  x", LOCATIONS)] == [
        "for i:",
        "",
        "",
        "  x",
    ]
