"""CPython bytecode as a list of instructions, and back: operands by name, jumps by label.

`decode` reads a code object of Python 3.11, 3.12 or 3.13; `assemble` writes one.  In between,
instructions may be inserted anywhere: offsets, EXTENDED_ARG, inline caches, the exception table and
the table of positions are made anew.  Knows the encoding, not what instructions do.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

from nbcomp.errors import Unsupported

Positions = tuple[int | None, int | None, int | None, int | None]  # line, end line, column, end
NOWHERE: Positions = (None, None, None, None)

# Instructions of 3.13 that are two in one; they are taken apart.
PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
# Instructions about a variable of the frame: a local, a cell or a free variable.
VARIABLES = {
    *("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "STORE_FAST", "DELETE_FAST"),
    *("LOAD_CLOSURE", "MAKE_CELL", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF"),
    *("LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"),
}
JUMPS = {dis.opname[op] for op in (*dis.hasjrel, *dis.hasjabs)}


@dataclass(eq=False)
class Handler:
    """Where exceptions of an instruction go: the stack is cut to `depth` first."""

    target: Instruction
    depth: int
    lasti: bool


@dataclass(eq=False)
class Instruction:
    """One instruction; it is its own label.

    operand: the name of a variable, the constant, or the instruction jumped to; else what `dis`
    says.  offset: in the code it was read from, -1 for a new one.  index: in the list.
    """

    name: str
    arg: int = 0
    operand: Any = None
    positions: Positions = NOWHERE
    handler: Handler | None = None
    offset: int = -1
    index: int = -1

    def __repr__(self) -> str:
        operand = self.operand
        what = f"→ {operand.offset}" if isinstance(operand, Instruction) else repr(operand)
        return f"{self.offset:4} {self.name} {self.arg} {what}"


WORDS = {
    "STORE_GLOBAL": "the global {} is changed, which Python does",
    "DELETE_GLOBAL": "the global {} is deleted, which Python does",
    "STORE_NAME": "the name {} is set, which Python does",
    "DELETE_NAME": "the name {} is deleted, which Python does",
    "LOAD_BUILD_CLASS": "a class statement is run by Python",
    "SETUP_ANNOTATIONS": "a class statement is run by Python",
    "IMPORT_STAR": "an import is made by Python",
    "BEFORE_ASYNC_WITH": "`async with` is run by Python",
    "GET_AITER": "`async for` is run by Python",
    "GET_ANEXT": "`async for` is run by Python",
    "END_ASYNC_FOR": "`async for` is run by Python",
    "GET_AWAITABLE": "`await` is run by Python",
    "SEND": "`yield from` and `await` are run by Python",
    "GET_YIELD_FROM_ITER": "`yield from` is run by Python",
    "MATCH_CLASS": "a class pattern of `match` is run by Python",
    "WITH_EXCEPT_START": "an error inside a `with` is handled by Python",
    "CHECK_EG_MATCH": "`except*` is run by Python",
    "PREP_RERAISE_STAR": "`except*` is run by Python",
}


def in_words(i: Instruction) -> str:
    """What an instruction that only Python runs does, as a user would say it."""
    said = WORDS.get(i.name, f"the bytecode instruction {i.name} is run by Python")
    return said.format(i.operand)


@lru_cache(maxsize=512)
def decode(code: CodeType) -> tuple[Instruction, ...]:
    """The instructions of a code object, without EXTENDED_ARG and caches; not to be changed."""
    result: list[Instruction] = []
    at: dict[int, Instruction] = {}
    before: list[int] = []  # offsets of EXTENDED_ARG: jumps may go to them
    for found in dis.get_instructions(code):
        if found.opname == "EXTENDED_ARG":
            before.append(found.offset)
            continue
        position = found.positions
        place: Positions = NOWHERE
        if position is not None:
            place = (
                *(position.lineno, position.end_lineno),
                *(position.col_offset, position.end_col_offset),
            )
        names = PAIRS.get(found.opname, (found.opname,))
        operands = found.argval if len(names) > 1 else (found.argval,)
        if found.opname == "KW_NAMES":
            operands = (code.co_consts[found.arg or 0],)
        made = [
            Instruction(name, found.arg or 0, operand, place, None, found.offset)
            for name, operand in zip(names, operands, strict=True)
        ]
        at.update(dict.fromkeys((*before, found.offset), made[0]))
        before = []
        result += made
    for index, instruction in enumerate(result):
        instruction.index = index
        if instruction.name in JUMPS:
            instruction.operand = at[instruction.operand]
    for start, end, target, depth, lasti in _exception_table(code.co_exceptiontable):
        handler = Handler(at[target], depth, lasti)
        for instruction in result:
            if start <= instruction.offset < end:
                instruction.handler = handler
    return tuple(result)


def _exception_table(table: bytes) -> Iterator[tuple[int, int, int, int, bool]]:
    """Objects/exception_handling_notes.txt: start, length, target, depth and lasti in varints."""
    numbers: list[int] = []
    value, reading = 0, False
    for byte in table:
        value = byte & 63 if not reading else value << 6 | byte & 63
        reading = bool(byte & 64)
        if not reading:
            numbers.append(value)
    for start, length, target, depth in zip(*(numbers[k::4] for k in range(4)), strict=True):
        begin = start * 2
        yield begin, begin + length * 2, target * 2, depth >> 1, bool(depth & 1)


# -------------------------------------------------------------------------------------- writing


@dataclass
class Frame:
    """The variables of a code object to be made: parameters first among `local`."""

    local: tuple[str, ...]
    cells: tuple[str, ...]
    free: tuple[str, ...]
    index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        names = [*self.local, *(c for c in self.cells if c not in self.local), *self.free]
        self.index = {name: k for k, name in enumerate(names)}


def assemble(
    code: CodeType, instructions: Sequence[Instruction], frame: Frame, depth: int, **changes: Any
) -> CodeType:
    """A code object like `code` of these instructions, with `depth` more stack; `changes` as for
    `code.replace`.  Raises `Unsupported` for what the encoding cannot say."""
    constants, names = list(code.co_consts), list(code.co_names)
    args = [_argument(i, frame, constants, names) for i in instructions]
    sizes = _sizes(instructions, args)
    return code.replace(
        co_code=_bytes(instructions, args, sizes),
        co_consts=tuple(constants),
        co_names=tuple(names),
        co_varnames=frame.local,
        co_cellvars=frame.cells,
        co_freevars=frame.free,
        co_nlocals=len(frame.local),
        co_stacksize=code.co_stacksize + depth,
        co_exceptiontable=_handlers(instructions, sizes),
        co_linetable=_lines(instructions, sizes, code.co_firstlineno),
        **changes,
    )


def _argument(i: Instruction, frame: Frame, constants: list[Any], names: list[str]) -> int:
    if i.name in VARIABLES:
        index = frame.index[i.operand]
        if i.name == "LOAD_FROM_DICT_OR_DEREF" or i.name == "LOAD_CLASSDEREF":
            raise Unsupported("the body of a class statement")
        return index
    if i.offset < 0 and i.name == "LOAD_CONST":
        constants.append(i.operand)
        return len(constants) - 1
    return i.arg


def caches(name: str) -> int:
    """Code units of inline cache after an instruction."""
    entries: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
    if isinstance(entries, dict):
        return int(entries.get(name, 0))
    return int(entries[dis.opmap[name]])


def _sizes(instructions: Sequence[Instruction], args: list[int]) -> list[int]:
    """Code units of each instruction, prefixes and caches included; fills in jumps' arguments."""
    sizes = [_prefixes(a) + 1 + caches(i.name) for i, a in zip(instructions, args, strict=True)]
    place = {id(i): k for k, i in enumerate(instructions)}
    while True:
        starts = _starts(sizes)
        grown = False
        for k, i in enumerate(instructions):
            if i.name not in JUMPS:
                continue
            distance = starts[place[id(i.operand)]] - starts[k + 1]
            args[k] = -distance if "BACKWARD" in i.name else distance
            if args[k] < 0:
                raise Unsupported(f"a jump of {i.name} in the wrong direction")
            size = _prefixes(args[k]) + 1 + caches(i.name)
            if size > sizes[k]:
                sizes[k], grown = size, True
        if not grown:
            return sizes


def _prefixes(arg: int) -> int:
    return max(0, (arg.bit_length() - 1) // 8)


def _starts(sizes: Sequence[int]) -> list[int]:
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    return starts


def _bytes(instructions: Sequence[Instruction], args: list[int], sizes: list[int]) -> bytes:
    out = bytearray()
    for i, arg, size in zip(instructions, args, sizes, strict=True):
        after = caches(i.name)
        for k in range(size - 1 - after, 0, -1):  # a jump may have more prefixes than it needs
            out += bytes((dis.opmap["EXTENDED_ARG"], arg >> 8 * k & 255))
        out += bytes((dis.opmap[i.name], arg & 255)) + bytes(2 * after)
    return bytes(out)


def _handlers(instructions: Sequence[Instruction], sizes: list[int]) -> bytes:
    starts = _starts(sizes)
    place = {id(i): k for k, i in enumerate(instructions)}
    out = bytearray()
    k = 0
    while k < len(instructions):
        first, handler = k, instructions[k].handler
        while k < len(instructions) and _same(instructions[k].handler, handler):
            k += 1
        if handler is not None:
            target = starts[place[id(handler.target)]]
            entry = (starts[first], starts[k] - starts[first], target)
            depth = handler.depth << 1 | handler.lasti
            for n, value in enumerate((*entry, depth)):
                out += _big_endian(value, 128 if n == 0 else 0)
    return bytes(out)


def _same(one: Handler | None, two: Handler | None) -> bool:
    if one is None or two is None:
        return one is two
    return (one.target, one.depth, one.lasti) == (two.target, two.depth, two.lasti)


def _big_endian(value: int, first: int) -> bytes:
    """Six bits a byte, the most significant first, as the exception table has them."""
    digits = [value & 63]
    while value := value >> 6:
        digits.append(value & 63)
    out = [d | 64 for d in reversed(digits)]
    out[-1] &= ~64
    out[0] |= first
    return bytes(out)


def _lines(instructions: Sequence[Instruction], sizes: list[int], first: int) -> bytes:
    """Objects/locations.md: long entries only (code 14), and 15 for no location."""
    out = bytearray()
    line = first
    for i, size in zip(instructions, sizes, strict=True):
        for start in range(0, size, 8):
            length = min(8, size - start) - 1
            begin, end, column, end_column = i.positions
            if begin is None:
                out.append(0x80 | 15 << 3 | length)
                continue
            out.append(0x80 | 14 << 3 | length)
            delta = begin - line
            out += _little_endian(-delta << 1 | 1 if delta < 0 else delta << 1)
            out += _little_endian((end or begin) - begin)
            out += _little_endian(0 if column is None else column + 1)
            out += _little_endian(0 if end_column is None else end_column + 1)
            line = begin
    return bytes(out)


def _little_endian(value: int) -> bytes:
    """Six bits a byte, the least significant first, as the table of positions has them."""
    out = []
    while value > 63:
        out.append(value & 63 | 64)
        value >>= 6
    return bytes((*out, value))
