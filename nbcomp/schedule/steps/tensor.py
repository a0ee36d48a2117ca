"""Blocks of loops done by one instruction."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import For, Kernel, Stmt, walk
from nbcomp.loop.intrinsics import INTRINSICS, Mismatch, match
from nbcomp.schedule.rewriting import at


def tensorize(kernel: Kernel, loop: str, instruction: str) -> Kernel:
    """`for j in 0..16: for q in 0..4: s[j] += int32(a[q]) * int32(b[j, q])`
    ->  `for j in 0..16 instruction vpdpbusd: for q: …`, for `tensorize("j", "vpdpbusd")`

    The loop, with all that is in it, is one instruction where the CPU has it, and vectors of what
    it means where it has not.  The block must be what the instruction does (`loop.intrinsics`),
    with its operands in memory as it takes them: `pack` and `split` bring them there.
    """
    if instruction not in INTRINSICS:
        near = get_close_matches(instruction, INTRINSICS, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ScheduleError(
            f"no instruction {instruction}{hint}; there are {', '.join(INTRINSICS)}"
        )

    def change(found: For) -> Stmt:
        try:
            match(INTRINSICS[instruction], found)
        except Mismatch as why:
            raise ScheduleError(str(why)) from None
        return replace(found, kind="instruction", instruction=instruction, unroll=1)

    around = [s for s in walk(kernel.stages) if isinstance(s, For) and s.kind == "vector"]
    for vector in around:
        if any(isinstance(s, For) and s.var == loop for s in walk(vector.body)):
            raise ScheduleError(f"{loop} is in the lanes of {vector.var}")
    return at(kernel, loop, change)
