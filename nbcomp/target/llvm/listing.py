"""LLVM IR and assembly with the origin of every line.

Debug locations say where most instructions come from (`debug`).  What LLVM merged or added has
none: it belongs to what uses its result, found by following values; what is left of machine code is
named by what it is (a spill, the function's frame, a constant).  Knows texts, not kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nbcomp.origin import Construct, Line, Listing
from nbcomp.record import Location
from nbcomp.target.llvm.assembly import (
    Flow,
    Function,
    Instruction,
    kind_of,
    parse,
    reads_memory,
    width_of,
)
from nbcomp.target.llvm.debug import origin_of
from nbcomp.target.llvm.dialects import Dialect

Places = tuple[Location | None, ...]  # what the lines of debug locations mean
Names = Callable[[str], str]  # gives a text the kernel's own names


@dataclass
class Sources:
    """What is known of a line so far."""

    places: tuple[Location, ...] = ()
    construct: Construct = Construct.EXPRESSION
    located: bool = False  # by LLVM itself

    @property
    def known(self) -> bool:
        """Whether anything is."""
        return bool(self.places or self.construct)


def located(places: Places, line: int, column: int) -> Sources:
    """What a debug location says."""
    origin = origin_of(places, line, column)
    if origin is None:
        return Sources()
    every = origin.location.every() if origin.location else ()
    return Sources(every, origin.construct, True)


def inherit(rows: Sequence[Sources], users: Callable[[int], Iterable[int]]) -> None:
    """Give what has no place those of its users, and if they agree on a construct, that too."""
    missing = [
        k
        for k, row in enumerate(rows)
        if not row.located and not row.places and row.construct != Construct.FRAME
    ]
    uses = {k: sorted(users(k)) for k in missing}
    own = {k: rows[k].construct for k in missing}
    changed = True
    while changed:
        changed = False
        for k in reversed(missing):
            read = [rows[u] for u in uses[k] if u != k]
            places = tuple(dict.fromkeys(p for row in read for p in row.places))
            constructs = {row.construct for row in read if row.known}
            construct = own[k] or (constructs.pop() if len(constructs) == 1 else own[k])
            if (places, construct) != (rows[k].places, rows[k].construct):
                changed = len(places) > len(rows[k].places) or not rows[k].known
                rows[k].places, rows[k].construct = places, construct


# ---------------------------------------------------------------------------------------- LLVM IR

_NOISE = re.compile(r"(!|source_filename|target datalayout|target triple|attributes #|; )")
_DEBUG = re.compile(r",? !dbg !(\d+)")
_PLACE = re.compile(
    r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)(?:, column: (\d+))?", re.MULTILINE
)
_NAME = re.compile(r"%[\w.$-]+")
_DEFINES = re.compile(r"define .*@\"?([\w.$]+)\"?\(")
_CALLS = re.compile(r"@\"?([\w.$]+)\"?\(")


def llvm_listing(level: str, text: str, places: Places, names: Names) -> Listing:
    """LLVM IR without headers and metadata."""
    marks = {m[1]: (int(m[2]), int(m[3] or 0)) for m in _PLACE.finditer(text)}
    texts: list[str] = []
    rows: list[Sources] = []
    functions: list[str] = []  # for each row the function it is in
    inside = ""
    for line in text.splitlines():
        if _NOISE.match(line) or (not line.strip() and not (texts and texts[-1])):
            continue
        if head := _DEFINES.match(line):
            inside = head[1]
        mark = _DEBUG.search(line)
        texts.append(_DEBUG.sub("", line).replace(" !dbg", "").rstrip())
        instruction = bool(inside) and line.startswith("  ")
        rows.append(
            located(places, *marks.get(mark[1], (0, 0))) if mark and instruction else Sources()
        )
        functions.append(inside if instruction else "")
        if line == "}":
            inside = ""
    _entries(rows, functions)
    _callers(rows, functions, [set(_CALLS.findall(t)) for t in texts])
    inherit(rows, _ssa_users(texts, functions))
    return Listing(
        level,
        tuple(
            Line(names(t), row.places, row.construct) for t, row in zip(texts, rows, strict=True)
        ),
    )


def _ssa_users(texts: list[str], functions: list[str]) -> Callable[[int], set[int]]:
    """For each line the lines that read the value it makes."""
    readers: dict[tuple[str, str], set[int]] = {}
    made: dict[int, str] = {}
    for k, text in enumerate(texts):
        if not functions[k]:
            continue
        target, equals, rest = text.strip().partition(" = ")
        if equals and target.startswith("%"):
            made[k] = target
        for name in _NAME.findall(rest if equals else text):
            readers.setdefault((functions[k], name), set()).add(k)
    return lambda k: readers.get((functions[k], made[k]), set()) if k in made else set()


# ---------------------------------------------------------------------------------------- helpers

_ENTRY = re.compile(r"kernel(?:\.|_\$_)\d+$")  # what the run time calls
_SYMBOL = re.compile(r"\.?[A-Za-z_][\w.]*(?:\$_[\w$]*)?")
_STAGE = re.compile(r"kernel(?:\.|_\$_)\d+(?:\.|_\$_)code$")


def _entries(rows: list[Sources], functions: list[str]) -> None:
    """The function that is called unpacks the arguments for the one that does the work."""
    entries = {f for f in set(functions) if _ENTRY.match(f)}
    for k, function in enumerate(functions):
        if function in entries:
            rows[k] = Sources((), Construct.PROLOGUE, True)


def _callers(rows: list[Sources], functions: list[str], mentions: list[set[str]]) -> None:
    """Functions of the compiler's own belong to those that call them."""
    own = {f for f in functions if f and not _ENTRY.match(f) and not _STAGE.match(f)}
    for _ in own:  # helpers call helpers
        for helper in own:
            calls = [row for row, seen in zip(rows, mentions, strict=True) if helper in seen]
            places = tuple(dict.fromkeys(p for row in calls for p in row.places))
            library = any(row.construct == Construct.CALL for row in calls)
            construct = Construct.CALL if library else Construct.HELPER
            for k, function in enumerate(functions):
                if function == helper:
                    rows[k] = Sources(places, construct, True)


# --------------------------------------------------------------------------------------- assembly


def assembly_listing(text: str, places: Places, names: Names, dialect: Dialect) -> Listing:
    """Assembly without directives; of each instruction what it does and whether it is in a loop."""
    found = parse(text, dialect)
    rows = [Sources() for _ in found.rows]
    functions = [""] * len(rows)
    mentions: list[set[str]] = [set() for _ in rows]
    loops = [False] * len(rows)
    own = {f.name for f in found.functions}
    for function, flow in zip(found.functions, found.flows, strict=True):
        for i, again in zip(function.instructions, flow.in_loop, strict=True):
            rows[i.row] = located(places, i.line, i.column)
            functions[i.row], loops[i.row] = function.name, again
            if any(name in o for o in i.operands for name in own):
                mentions[i.row] = own & set(_SYMBOL.findall(i.text))
    _entries(rows, functions)
    for function, flow in zip(found.functions, found.flows, strict=True):
        if _STAGE.match(function.name):
            _work(rows, function, flow)
    _callers(rows, functions, mentions)
    _called_in_loops(found.flows, mentions, functions, loops)
    _pool(found.pool, found.functions, rows)
    by_row = {i.row: i for function in found.functions for i in function.instructions}
    return Listing(
        "asm",
        tuple(
            _line(names(text), by_row.get(k), row, again, dialect)
            for k, (text, row, again) in enumerate(zip(found.rows, rows, loops, strict=True))
        ),
        dialect.name,
    )


def _line(text: str, i: Instruction | None, row: Sources, again: bool, dialect: Dialect) -> Line:
    """A line of the text, with what is known of the instruction on it."""
    if i is None:
        return Line(text, row.places, row.construct)
    kind = kind_of(i, dialect)
    return Line(
        text, row.places, row.construct, kind, again, width_of(i, dialect), reads_memory(i, dialect)
    )


def _work(rows: list[Sources], function: Function, flow: Flow) -> None:
    """The origins of a function that does the work."""
    mine = [rows[i.row] for i in function.instructions]
    constants, spills = _constant_loads(function, flow), _indirect_spills(flow, mine)
    for k, (i, row) in enumerate(zip(function.instructions, mine, strict=True)):
        named = Construct.SPILL if k in spills else _named(i, row, flow, k in constants)
        if named:
            row.construct = named
    inherit(mine, flow.uses)
    last = max((k for k, again in enumerate(flow.in_loop) if again), default=len(mine))
    for k, row in enumerate(mine):
        if not row.known and not flow.in_loop[k]:
            row.construct = Construct.PROLOGUE if k < last else Construct.FRAME


def _named(i: Instruction, row: Sources, flow: Flow, constant: bool) -> Construct | None:
    """What an instruction is by itself, if that says more than what LLVM said of it."""
    dialect = flow.dialect
    plain = row.construct in (Construct.EXPRESSION, Construct.COPY, Construct.PROLOGUE)
    if re.match(dialect.frame, i.text) and (not row.located or (plain and not row.places)):
        return Construct.FRAME
    if constant and (not row.located or plain):
        return Construct.CONSTANT
    kind = kind_of(i, dialect)
    if kind in ("load", "store") and not row.located and _on_stack(i, flow):
        return Construct.SPILL
    if kind == "move" and (not row.located or plain) and _copies(i, flow):
        return Construct.MOVE
    if row.located:
        return None
    if re.match(dialect.mode, i.mnemonic):
        return Construct.MODE
    return Construct.BRANCH if kind == "branch" else None


def _indirect_spills(flow: Flow, rows: Sequence[Sources]) -> set[int]:
    """Accesses to the stack through a pointer that LLVM made for them, and the pointers."""
    added = [
        k
        for k, i in enumerate(flow.instructions)
        if not rows[k].located and re.match(flow.dialect.pointer, i.text)
    ]
    found: set[int] = set()
    while added:
        k = added.pop()
        users = {u for u in flow.uses(k) if not rows[u].located} - found
        kinds = {u: kind_of(flow.instructions[u], flow.dialect) for u in users}
        found |= {u for u, kind in kinds.items() if kind in ("load", "store")}
        added += [u for u, kind in kinds.items() if kind in ("add", "scalar")]
    return found


def _on_stack(i: Instruction, flow: Flow) -> bool:
    return any(re.match(flow.dialect.stack, o) for o in i.operands)


def _copies(i: Instruction, flow: Flow) -> bool:
    """Whether it only copies one register to another, all of it."""
    registers = [flow.registers(o) for o in i.operands]
    return len(i.operands) == 2 and all(registers) and "{" not in i.text


def _constant_loads(function: Function, flow: Flow) -> set[int]:
    """Instructions that bring a constant: from the pool, also through a register."""
    constant = flow.dialect.constant
    found = set()
    for k, i in enumerate(function.instructions):
        kind = kind_of(i, flow.dialect)
        if kind in ("move", "load", "shuffle") and any(re.match(constant, o) for o in i.operands):
            found.add(k)
            if any(".LCPI" in o for o in i.operands):
                found |= {
                    u
                    for u in flow.uses(k)
                    if kind_of(function.instructions[u], flow.dialect) in ("load", "shuffle")
                }
    return found


def _called_in_loops(
    flows: list[Flow], mentions: list[set[str]], functions: list[str], loops: list[bool]
) -> None:
    """A function that is called in a loop is in it."""
    calls = [
        (mentions[i.row], (i.row, *(flow.instructions[u].row for u in flow.uses(k))))
        for flow in flows
        for k, i in enumerate(flow.instructions)
        if mentions[i.row]
    ]
    for _ in flows:  # helpers call helpers
        called = {f for names, rows in calls if any(loops[r] for r in rows) for f in names}
        for row, function in enumerate(functions):
            loops[row] |= function in called


def _pool(pool: dict[str, list[int]], functions: list[Function], rows: list[Sources]) -> None:
    """A constant's data belongs to what reads it."""
    for function in functions:
        for i in function.instructions:
            for label in re.findall(r"\.LCPI\d+_\d+", i.text):
                for row in pool.get(label, ()):
                    known = dict.fromkeys((*rows[row].places, *rows[i.row].places))
                    rows[row] = Sources(tuple(known), Construct.CONSTANT, True)
