"""LLVM's own remarks about a kernel, carried over to the user's lines.

The LLVM we run has no way to hand its remarks to a program: it writes them to standard error, for
the whole process.  So a child process compiles the kernels once more, asks for all remarks, and
what it wrote is read here.  What matters of them is what ran out of registers, the stack and the
size; no vectoriser runs, since the code has its vectors already.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from typing import Any

from nbcomp.errors import NbcompError
from nbcomp.origin import Construct
from nbcomp.record import Location, Remark
from nbcomp.target.base import Code
from nbcomp.target.llvm.apart import environment
from nbcomp.target.llvm.debug import origin_of

MARK = "nbcomp: kernel"  # stands between what is written about two kernels
FEW = 8  # accesses to the stack in an iteration that are not worth a word
PATIENCE = 120  # seconds the child may take
_REMARK = re.compile(r"^remark: \S*?:(\d+):(\d+): (.*)$")
COUNT = re.compile(r"(\d+) (spills|folded spills|reloads|folded reloads) ")
_STACK = re.compile(r"(\d+) stack bytes in function '(.*)'")
_SIZE = re.compile(r"(\d+) instructions in function")
HINT = "a shorter expression keeps fewer values at once"


def llvm_remarks(codes: Iterable[tuple[str, Code]]) -> list[Remark]:
    """What LLVM says about kernels (name, code) when it makes machine code of them.

    Takes a second or so: it compiles again.  Raises NbcompError when the child process fails.
    """
    named: list[tuple[str, Any]] = [(n, c) for n, c in codes if hasattr(type(c), "located")]
    if not named:
        return []
    everything = written(
        [(code.located.located_text, astuple(code.machine.cpu)) for _, code in named]
    )
    parts = everything.split(MARK)[1:]
    return [
        remark
        for (name, code), part in zip(named, parts, strict=True)
        for remark in _remarks(name, code, part)
    ]


def written(work: list[tuple[str, tuple[str, ...]]]) -> str:
    """What LLVM writes while it compiles these texts."""
    command = [sys.executable, "-m", "nbcomp.target.llvm.remarking"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(work),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NbcompError(f"LLVM did not come to an end within {PATIENCE} s") from None
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:]
        raise NbcompError(f"LLVM's remarks could not be had: {''.join(why)}")
    return done.stderr


def _remarks(name: str, code: Any, text: str) -> Iterator[Remark]:
    """The remarks about one kernel, in the user's terms."""
    size = stack = 0
    loops: dict[tuple[Location | None, str], dict[str, int]] = {}
    for line in text.splitlines():
        found = _REMARK.match(line)
        if found is None:
            continue
        origin = origin_of(code.located.places, int(found[1]), int(found[2]))
        if counts := dict(_counts(found[3])):
            where = (origin.location, origin.construct) if origin else (None, "")
            if found[3].endswith("generated in loop"):
                worst = loops.setdefault(where, counts)
                loops[where] = max(worst, counts, key=lambda c: sum(c.values()))
        elif known := _STACK.match(found[3]):
            stack = max(stack, int(known[1]))
        elif known := _SIZE.match(found[3]):
            size += int(known[1])
    at = code.kernel.location
    for (location, construct), counts in loops.items():
        if sum(counts.values()) < FEW:
            continue
        yield Remark("missed", "registers", _words(name, counts, construct), location or at, HINT)
    room = f", which use {stack:,} bytes of stack" if stack else ""
    yield Remark("analysis", "size", f"{name} is {size:,} machine instructions{room}", at)


def _counts(text: str) -> Iterator[tuple[str, int]]:
    """Spills and reloads in a remark of the register allocator."""
    for number, kind in COUNT.findall(text):
        yield kind, int(number)


def _words(name: str, counts: dict[str, int], construct: str) -> str:
    spills = counts.get("spills", 0) + counts.get("folded spills", 0)
    reloads = counts.get("reloads", 0) + counts.get("folded reloads", 0)
    where = "the tail of a loop" if construct == Construct.TAIL else "a loop"
    kept = f"writes {spills:,} to the stack and " if spills else ""
    return (
        f"{name} has more values in {where} than there are registers: it {kept}reads them from "
        f"the stack {reloads:,} times in each iteration"
    )
