"""Loops to LLVM IR: one function per stage of a kernel, explicit vectors, masked tails.

    void stage(ptr buffers, ptr params, i64 begin, i64 end) -> i64 status

Loop kinds become code here: a "vector" loop evaluates its body on <W x T> values with the loop
variable as base + 0..W-1, first `unroll` vectors at a time, then the rest under a mask.  Large
integers (extents, strides) are read from `params`, so that kernels that differ only in sizes share
one piece of machine code: the text of a kernel is its cache key.  Every instruction carries a debug
location whose *line* is an index into `KernelCode.locations`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nbcomp.loop.grammar import (
    Affine,
    For,
    Kernel,
)
from nbcomp.record import Location
from nbcomp.target.llvm.builder import Value
from nbcomp.target.llvm.loops import LoopEmitter
from nbcomp.target.llvm.values import Lanes, location_id


@dataclass(frozen=True)
class StageCode:
    """One function of a kernel: `slots` index the kernel's buffers, in the order the code has them.

    A parallel stage runs over begin..end of 0..extent; a serial one is called with 0, 1.
    """

    symbol: str
    slots: tuple[int, ...]
    params: tuple[int, ...]
    extent: int
    parallel: bool


@dataclass(frozen=True)
class KernelCode:
    """The LLVM text of a kernel (functions, declarations, metadata) and how to call its stages."""

    text: str
    stages: tuple[StageCode, ...]
    locations: tuple[Location | None, ...]
    names: dict[str, str]  # names in the text -> the kernel's own

    def readable(self, text: str) -> str:
        """LLVM IR or assembly of this kernel with the kernel's own names in it.

        The text that is compiled has none, so that equal kernels share their code.
        """
        return _CANONICAL.sub(lambda found: self.names.get(found[0], found[0]), text)


_CANONICAL = re.compile(r"(?<=[%@])(?:input|output|temp|local)\d+\b|\bkernel(?=\.\d)")


def generate(kernel: Kernel, vector_bytes: int) -> KernelCode:
    """LLVM IR of a kernel for vectors of `vector_bytes`.  Raises Unsupported for what has none."""
    declarations: dict[str, str] = {}
    locations: dict[Location | None, int] = {kernel.location: 0}
    functions, stages = [], []
    names = {"kernel": kernel.name}
    for number, stage in enumerate(kernel.stages):
        emitter = _Stage(kernel, number, stage, vector_bytes, locations, names)
        text, code = emitter.function()
        functions.append(text)
        stages.append(code)
        declarations.update(emitter.b.declarations)
    text = "\n".join(
        [*functions, *declarations.values(), *_metadata(len(kernel.stages), locations)]
    )
    return KernelCode(text + "\n", tuple(stages), tuple(locations), names)


def _metadata(stages: int, locations: dict[Location | None, int]) -> list[str]:
    """Debug metadata: each stage a subprogram, each location a line, its index plus 1."""
    lines = [
        "!llvm.dbg.cu = !{!0}",
        "!llvm.module.flags = !{!1}",
        '!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, producer: "nbcomp", '
        "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)",
        '!1 = !{i32 2, !"Debug Info Version", i32 3}',
        '!2 = !DIFile(filename: "cell", directory: "")',
        "!3 = !DISubroutineType(types: !{})",
        "!4 = !{i32 1}",
    ]
    for n in range(stages):
        lines.append(
            f'!{10 + n} = distinct !DISubprogram(name: "stage{n}", scope: !2, file: !2, line: 1, '
            "type: !3, spFlags: DISPFlagDefinition, unit: !0)"
        )
        for k in range(len(locations)):
            lines.append(
                f"!{location_id(stages, n, k)} = !DILocation(line: {k + 1}, scope: !{10 + n})"
            )
    return lines


class _Stage(LoopEmitter):
    """One stage of a kernel becoming a function."""

    def function(self) -> tuple[str, StageCode]:
        """The text of the stage's two functions: one with typed pointers, one to unpack them."""
        parallel = isinstance(self.stage, For) and self.stage.kind == "parallel"
        self.locate(getattr(self.stage, "location", None) or self.kernel.location)
        self.b.label("body")
        self.block = "body"
        context = Lanes()
        extent = 1
        if parallel and isinstance(self.stage, For):
            assert isinstance(self.stage.extent, Affine)
            extent = self.stage.extent.constant
            begin, end = Value("%begin", "i64"), Value("%end", "i64")
            self.loop(self.stage.var, begin, end, 1, lambda: self.body(self.stage.body, context))  # type: ignore[union-attr]
        else:
            self.statement(self.stage, context)
        self.b.effect("ret i64 0")
        symbol = f"kernel.{self.number}"
        return self._text(symbol), StageCode(
            symbol,
            tuple(self.kernel.buffers.index(u) for u in self.used),
            tuple(self.params),
            extent,
            parallel,
        )

    def _text(self, symbol: str) -> str:
        scope = f"!dbg !{10 + self.number}"
        pointers = []
        for buffer in self.used:
            # Outputs and temps are the run time's own memory: nothing else points there.
            own = "noalias " if buffer.role != "input" else ""
            access = "" if buffer.memory in self.written else "readonly "
            pointers.append(f"ptr {own}{access}captures(none) {self.pointers[buffer.memory].text}")
        arguments = ", ".join([*pointers, "ptr noalias readonly %params", "i64 %begin", "i64 %end"])
        lines = [
            f'define internal i64 @"{symbol}.code"({arguments}) noinline nounwind {scope} {{',
            "entry:",
            *self.entry,
            "  br label %body",
            *self.b.lines,
            "}",
            f'define i64 @"{symbol}"(ptr %buffers, ptr %params, i64 %begin, i64 %end) nounwind {{',
        ]
        for k in range(len(self.used)):
            lines.append(f"  %a{k} = getelementptr ptr, ptr %buffers, i64 {k}")
            lines.append(f"  %p{k} = load ptr, ptr %a{k}")
        passed = ", ".join(
            [
                *(f"ptr %p{k}" for k in range(len(self.used))),
                "ptr %params",
                "i64 %begin",
                "i64 %end",
            ]
        )
        lines += [f'  %r = call i64 @"{symbol}.code"({passed})', "  ret i64 %r", "}"]
        return "\n".join(lines)
