"""Loops to LLVM IR: one function per stage of a kernel, explicit vectors, masked tails.

    void stage(ptr buffers, ptr params, i64 begin, i64 end) -> i64 status

Loop kinds become code here: a "vector" loop evaluates its body on <W x T> values with the loop
variable as base + 0..W-1, first `unroll` vectors at a time, then the rest under a mask.  Large
integers (extents, strides) are read from `params`, so that kernels that differ only in sizes share
one piece of machine code: the text of a kernel is its cache key.  For a reader there is the same
text with debug locations, which say where each instruction comes from (`debug`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from nbcomp.loop.grammar import Affine, For, Kernel, spread_loop
from nbcomp.origin import Construct
from nbcomp.record import Location
from nbcomp.target.llvm import jumps, tensor
from nbcomp.target.llvm.builder import Value
from nbcomp.target.llvm.chunks import open_ended
from nbcomp.target.llvm.debug import DebugTable, unlocated
from nbcomp.target.llvm.loops import LoopEmitter
from nbcomp.target.llvm.values import Lanes


@dataclass(frozen=True)
class StageCode:
    """One function of a kernel: `slots` index the kernel's buffers, in the order the code has them.

    A parallel stage runs over begin..end of 0..extent; a serial one is called with 0, 1.  round: as
    of `target.base.Stage`.
    """

    symbol: str
    slots: tuple[int, ...]
    params: tuple[int, ...]
    extent: int
    parallel: bool
    round: int = 0


@dataclass(frozen=True)
class KernelCode:
    """The LLVM text of a kernel (functions, declarations, metadata) and how to call its stages.

    located_text: the same with debug locations, if it was asked for; places: what they mean.
    """

    text: str
    stages: tuple[StageCode, ...]
    names: dict[str, str]  # names in the text -> the kernel's own
    located_text: str = ""
    places: tuple[Location | None, ...] = ()  # by line, from 1

    def readable(self, text: str) -> str:
        """LLVM IR or assembly of this kernel with the kernel's own names in it.

        The text that is compiled has none, so that equal kernels share their code.
        """
        return _CANONICAL.sub(lambda found: self.names.get(found[0], found[0]), text)


AVX512 = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
WRITTEN = "; loops as they were written"  # a text that starts so has no vectors of ours


def is_written(text: str) -> bool:
    """Whether LLVM's own loop passes are to run over this code."""
    return text.startswith(WRITTEN)


_CANONICAL = re.compile(r"(?<=[%@])(?:input|output|temp|local)\d+\b|\bkernel(?=\.\d)")


def generate(
    kernel: Kernel,
    vector_bytes: int,
    located: bool = False,
    x86: bool = True,
    attributes: str = "",
    features: frozenset[str] = frozenset(),
) -> KernelCode:
    """LLVM IR of a kernel for vectors of `vector_bytes`.  Raises Unsupported for what has none.

    located: also with debug locations, for a reader.  x86: with x86-64's own instructions, where
    vectors of this width have them.  attributes: LLVM's, of the functions that do the work.
    features: what the CPU has besides (`Machine.features`).
    """
    kernel = kernel if kernel.written else open_ended(kernel)
    declarations: dict[str, str] = {}
    debug = DebugTable(kernel) if located else None
    functions, stages = [], []
    names = {"kernel": kernel.name}
    for number, stage in enumerate(kernel.stages):
        emitter = _Stage(kernel, number, stage, vector_bytes, debug, names)
        # What comes with 512-bit vectors (machine.host).
        wide = AVX512 if x86 and vector_bytes == 64 else frozenset()
        emitter.b.features = wide | features
        emitter.attributes = f"noinline nounwind {attributes}".rstrip()
        text, code = emitter.function()
        functions.append(text)
        stages.append(code)
        declarations.update(emitter.b.declarations)
    head = [WRITTEN] if kernel.written else []
    text = "\n".join([*head, *functions, *declarations.values(), "!4 = !{i32 1}", ""])
    if debug is None:
        return KernelCode(text, tuple(stages), names)
    metadata = "\n".join([*debug.metadata(len(stages)), ""])
    return KernelCode(unlocated(text), tuple(stages), names, text + metadata, debug.places)


class _Stage(LoopEmitter):
    """One stage of a kernel becoming a function."""

    attributes = ""  # LLVM's

    def function(self) -> tuple[str, StageCode]:
        """The text of the stage's two functions: one with typed pointers, one to unpack them."""
        self.b.label("body")
        self.block = "body"
        extent, length = 1, 0
        spread = spread_loop(self.stage)
        if spread is None:
            self.statement(self.stage, Lanes())
        else:
            rounds, loop = spread
            extent = _constant(loop)
            begin, end = Value("%begin", "i64"), Value("%end", "i64")
            if rounds is None:
                self.part(loop, begin, end)
            else:
                self.rounds(rounds, loop, begin, end)
                extent, length = extent * _constant(rounds), extent
        with self.origins.within(Construct.FRAME):
            tensor.release(self.b, self.entry)
            self.b.effect("ret i64 0")
        symbol = f"kernel.{self.number}"
        return self._text(symbol), StageCode(
            symbol,
            tuple(self.kernel.buffers.index(u) for u in self.used),
            tuple(self.params),
            extent,
            spread is not None,
            length,
        )

    def part(self, loop: For, begin: Value, end: Value) -> None:
        """Some iterations of a parallel loop."""
        hint = self.hint(loop)
        self.around.append(loop)
        with self.origins.within(Construct.LOOP, loop):
            self.loop(loop.var, begin, end, 1, partial(self.body, loop.body, Lanes()), hint)
        self.around.pop()

    def rounds(self, rounds: For, loop: For, begin: Value, end: Value) -> None:
        """Some iterations of all rounds, which are counted through."""
        length = self.integer(_constant(loop))
        with self.origins.within(Construct.LOOP, rounds):
            first = self.b.emit(f"sdiv i64 {begin.text}, {length.text}", "i64")
            last = self.b.emit(f"sub i64 {end.text}, 1", "i64")
            last = self.b.emit(f"sdiv i64 {last.text}, {length.text}", "i64")
            after = self.b.emit(f"add i64 {last.text}, 1", "i64")

            def one() -> None:
                start = self.b.emit(f"mul i64 {self.env[rounds.var].text}, {length.text}", "i64")
                here, there = (
                    self.b.emit(f"sub i64 {v.text}, {start.text}", "i64") for v in (begin, end)
                )
                low = self.b.intrinsic("smax", here, Value("0", "i64"))
                self.part(loop, low, self.b.intrinsic("smin", there, length))

            self.loop(rounds.var, first, after, 1, one)

    def _text(self, symbol: str) -> str:
        scope = self.origins.scope
        pointers = []
        for buffer in self.used:
            # Outputs and temps are the run time's own memory: nothing else points there.
            own = "noalias " if buffer.role != "input" else ""
            access = "" if buffer.memory in self.written else "readonly "
            pointers.append(f"ptr {own}{access}captures(none) {self.pointers[buffer.memory].text}")
        polls = jumps.polls(self.b)
        given = ["ptr %params", "i64 %begin", "i64 %end", *["ptr %released"] * polls]
        typed = ["ptr noalias readonly %params", *given[1:]]
        arguments = ", ".join([*pointers, *typed])
        lines = [
            f'define internal i64 @"{symbol}.code"({arguments}) {self.attributes} {scope} {{',
            "entry:",
            *self.entry,
            f"  br label %body{self.origins.prologue}",
            *self.b.lines,
            "}",
            f'define i64 @"{symbol}"(ptr %buffers, ptr %params, i64 %begin, i64 %end) nounwind {{',
        ]
        for k in range(len(self.used)):
            lines.append(f"  %a{k} = getelementptr ptr, ptr %buffers, i64 {k}")
            lines.append(f"  %p{k} = load ptr, ptr %a{k}")
        passed = ", ".join([*(f"ptr %p{k}" for k in range(len(self.used))), *given])
        call = f'  %r = call i64 @"{symbol}.code"({passed})'
        lines += [*(jumps.around_polls(call) if polls else [call]), "  ret i64 %r", "}"]
        return "\n".join(lines)


def _constant(loop: For) -> int:
    assert isinstance(loop.extent, Affine)
    return loop.extent.constant
