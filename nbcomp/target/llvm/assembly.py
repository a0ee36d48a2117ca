"""Reads assembly: its instructions, where control goes, what is in a loop, who uses what.

`parse` splits a text into functions of instructions; a `Flow` says which instruction may follow
which, and which can therefore run more than once; its `uses` follow a value through the registers
to whoever reads it.  Knows texts by their `Dialect`; not kernels, not origins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from nbcomp.target.llvm.cycles import cyclic
from nbcomp.target.llvm.dialects import Dialect

_LABEL = re.compile(r'^"?([\w.$]+)"?:\s*$')
_LOC = re.compile(r"\s+\.loc\s+\d+ (\d+) (\d+)")
_DATA = re.compile(r"\s+\.(?:long|quad|byte|short|word|hword|xword|half|zero|ascii|dword|int\d+)\b")
_FUNCTION = re.compile(r"\s+\.type\s+([\w.$]+),\s*[@%]function")
_HEAD = re.compile(r"(?:\.visible |\.extern )?\.func .*?([\w$]+)\($")
_END = re.compile(r"\s+\.section\s+\.debug")  # tables for debuggers, to the end
_QUIET_LABEL = re.compile(r"[.$]L(?:_?_?func_(?:begin|end)|_?_?tmp|cfi|cu_)\w*$")
MANY = 1 << 14  # words and operands that are remembered
_BRACKET = re.compile(r"[(\[{]")
_SYMBOL = re.compile(r"[\w.$]+")
FLAGS = "the flags"  # as a register


@dataclass(frozen=True)
class Instruction:
    """One machine instruction: its text in words, and the debug location it carries."""

    mnemonic: str
    operands: tuple[str, ...]
    line: int
    column: int
    row: int  # in `Assembly.rows`

    @property
    def text(self) -> str:
        """In one spacing."""
        return f"{self.mnemonic} {', '.join(self.operands)}".rstrip()


@dataclass
class Function:
    """The instructions of one function, and its labels: name → the instruction it stands before."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass
class Assembly:
    """A whole text, without what only tools need.

    pool: label of a constant → its rows.
    """

    dialect: Dialect
    rows: list[str] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    pool: dict[str, list[int]] = field(default_factory=dict)

    @cached_property
    def flows(self) -> list[Flow]:
        """The control flow of each function."""
        return [Flow(f, self.dialect) for f in self.functions]


def parse(text: str, dialect: Dialect) -> Assembly:
    """The functions of an assembly text."""
    reader = _Reader(Assembly(dialect))
    for line in text.splitlines():
        if line[:1] == "\t" and line[1:2].isalpha():  # most of them
            reader.instruction(_without_comment(line, dialect))
        elif _END.match(line):
            break
        else:
            reader.read(line)
    return reader.found


class _Reader:
    """Reads a text line by line."""

    def __init__(self, found: Assembly) -> None:
        self.found, self.dialect = found, found.dialect
        self.names: set[str] = set()  # of functions
        self.place = (0, 0)
        self.constant = ""  # the label of the constant whose data follows

    def read(self, line: str) -> None:
        """The next line: take it over, or learn from it and drop it."""
        if loc := _LOC.match(line):
            self.place = (int(loc[1]), int(loc[2]))
            return
        text = _without_comment(line, self.dialect)
        if head := _HEAD.match(text):  # PTX has no label for a function
            self.function(head[1])
        elif named := _FUNCTION.match(text):
            self.names.add(named[1])
        elif label := _LABEL.match(text):
            self.label(label[1], text)
        elif not text.strip():
            if self.found.rows and self.found.rows[-1]:
                self.row("")
        elif _DATA.match(text):
            if self.constant:
                self.found.pool[self.constant].append(self.row(text))
        elif text[0] in " \t" and text.lstrip()[0] not in ".{}":
            self.instruction(text)

    def instruction(self, text: str) -> None:
        """An instruction of the present function."""
        if self.found.functions:
            made = Instruction(*_parts(text), *self.place, self.row(text))
            self.found.functions[-1].instructions.append(made)

    def row(self, text: str) -> int:
        """Keep a line; its number."""
        self.found.rows.append(text.expandtabs(8))
        return len(self.found.rows) - 1

    def function(self, name: str) -> None:
        """A function begins; where its first instruction comes from is not known yet."""
        self.found.functions.append(Function(name))
        self.place = (0, 0)
        self.row(f"{name}:")

    def label(self, name: str, text: str) -> None:
        """A function, a place to go to, or a constant."""
        self.constant = ""
        if name in self.names:
            self.function(name)
        elif re.match(self.dialect.constant, name) and ".LCPI" in name:
            self.constant = name
            self.found.pool[name] = [self.row(text)]
        elif self.found.functions:
            function = self.found.functions[-1]
            function.labels[name] = len(function.instructions)
            if not _QUIET_LABEL.match(name):
                self.row(text)


def _without_comment(line: str, dialect: Dialect) -> str:
    if dialect.comment in line:
        line = re.split(rf"\s*{re.escape(dialect.comment)}(?:\s|$)", line, maxsplit=1)[0]
    return line.rstrip()


def _parts(line: str) -> tuple[str, tuple[str, ...]]:
    """Mnemonic and operands; a predicate (PTX) is the last operand."""
    words = line.strip().rstrip(";")
    predicate = ""
    if words.startswith("@"):
        predicate, _, words = words.partition(" ")
        words = words.strip()
    mnemonic, _, rest = words.partition("\t")
    if not rest:
        mnemonic, _, rest = words.partition(" ")
    operands = [o for o in _split(rest.strip()) if o]
    if predicate:
        operands.append(predicate)
    return mnemonic.strip(), tuple(operands)


def _split(text: str) -> Iterator[str]:
    """Operands: what is between commas outside of brackets."""
    if not _BRACKET.search(text):
        yield from map(str.strip, text.split(","))
        return
    depth, start = 0, 0
    for k, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            yield text[start:k].strip()
            start = k + 1
    yield text[start:].strip()


# --------------------------------------------------------------------------------------- control


class Flow:
    """Where control and values go in one function."""

    def __init__(self, function: Function, dialect: Dialect) -> None:
        self.function, self.dialect = function, dialect
        self.instructions = function.instructions
        targets = [(i, self.destination(i)) for i in self.instructions]
        self._reads = [self._read(i, target) for i, target in targets]
        self._writes = [self._written(i, target) for i, target in targets]

    @cached_property
    def next(self) -> list[list[int]]:
        """For each instruction those that may run right after it."""
        found = []
        for k, i in enumerate(self.instructions):
            after = []
            if not (self._is(self.dialect.jump, i) and self._certain(i)) and not self._is(
                self.dialect.leave, i
            ):
                after.append(k + 1)
            if self._is(self.dialect.branch, i):
                labels = self.function.labels
                after += [labels[s] for o in i.operands for s in _SYMBOL.findall(o) if s in labels]
            found.append([n for n in after if n < len(self.instructions)])
        return found

    @staticmethod
    def _is(pattern: str, i: Instruction) -> bool:
        return _fits(pattern, i.mnemonic)

    @staticmethod
    def _certain(i: Instruction) -> bool:
        return not any(o.startswith("@") for o in i.operands)

    @cached_property
    def in_loop(self) -> list[bool]:
        """For each instruction whether it can run again within one call of the function."""
        return self._nested() if self.dialect.nested else cyclic(self.next)

    def _nested(self) -> list[bool]:
        """Loops that are blocks of the text."""
        depth, found = 0, []
        for i in self.instructions:
            depth += (i.mnemonic == "loop") - (i.mnemonic == "end_loop")
            found.append(depth > 0)
        return found

    # ------------------------------------------------------------------------------------ values

    def uses(self, start: int) -> set[int]:
        """The instructions that may read what this one writes.

        Where operands are on a stack, the next instruction stands for those that take them.
        """
        if self.dialect.nested:
            return {start + 1} & set(range(len(self.instructions)))
        return set().union(*(self._uses_of(name, start) for name in self._writes[start]))

    def _uses_of(self, name: str, start: int) -> set[int]:
        """Where a register's value is read, until another one is written to it."""
        waiting, seen, found = list(self.next[start]), set[int](), set[int]()
        while waiting:
            k = waiting.pop()
            while k not in seen:
                seen.add(k)
                if name in self._reads[k]:
                    found.add(k)
                after = self.next[k] if name not in self._writes[k] else []
                if not after:
                    break
                k, *others = after
                waiting += others
        return found

    def registers(self, operand: str) -> frozenset[str]:
        """The whole registers an operand names; a place on the stack counts as one."""
        return _registers(operand, self.dialect)

    def destination(self, i: Instruction) -> str:
        """The operand an instruction writes; empty if it writes none."""
        d = self.dialect
        if not i.operands or self._is(d.branch, i) or kind_of(i, d) in ("call", "branch"):
            return ""
        if self._is(d.compares, i) or i.mnemonic.startswith("push"):
            return ""
        if kind_of(i, d) == "store" and not d.destination_last:
            return i.operands[-1]
        return i.operands[-1 if d.destination_last else 0]

    def _written(self, i: Instruction, target: str) -> Set[str]:
        found = self._stored(target)
        sets = self._is(self.dialect.compares, i) or self._is(self.dialect.flags, i)
        return {*found, FLAGS} if sets else found

    def _stored(self, target: str) -> Set[str]:
        """The register, or place on the stack, that is written."""
        bare = target.partition("{")[0].rstrip()
        if _fits(self.dialect.stack, target):
            return {slot_of(target)}
        if not bare or _fits(self.dialect.memory, bare):
            return set()
        return self.registers(bare)

    def _read(self, i: Instruction, target: str) -> Set[str]:
        rest = list(i.operands)
        if target:
            rest.remove(target)
        found = set().union(*(self.registers(o) for o in rest)) if rest else set()
        if kind_of(i, self.dialect) == "call":
            found.update(self.dialect.arguments)
        if self._is(self.dialect.conditional, i):
            found.add(FLAGS)
        if not target:
            return found
        bare, _, mask = target.partition("{")
        found |= self.registers(mask)
        in_memory = _fits(self.dialect.memory, bare) and not _fits(self.dialect.stack, target)
        merged = bool(mask) and "{z}" not in mask
        if in_memory or merged or self._updates(i):
            found |= self.registers(bare.strip())
        return found

    def _updates(self, i: Instruction) -> bool:
        """Whether the destination is read: `addps %xmm0, %xmm1`, but not `xorps %xmm1, %xmm1`."""
        if not re.fullmatch(self.dialect.updates, i.mnemonic):
            return False
        return not ("xor" in i.mnemonic and len(set(i.operands)) == 1)


@lru_cache(MANY)
def _fits(pattern: str, word: str) -> bool:
    """Whether a mnemonic or an operand begins with a pattern; there are few different ones."""
    return re.match(pattern, word) is not None


def slot_of(operand: str) -> str:
    """A place on the stack, whatever mask it is accessed under."""
    return operand.partition(" {")[0]


def kind_of(i: Instruction, dialect: Dialect) -> str:
    """What an instruction does: one of `dialects.KINDS`."""
    return _kind(i.mnemonic, i.operands, dialect)


@lru_cache(MANY)
def _kind(mnemonic: str, operands: tuple[str, ...], dialect: Dialect) -> str:
    kind = _family(mnemonic, dialect)
    if kind == "move" and operands:
        last = -1 if dialect.destination_last else 0
        if re.match(dialect.memory, operands[last]) and not mnemonic.startswith(("pop", "push")):
            return "store"
        if any(re.match(dialect.memory, o) for o in operands):
            return "load"
    numbers = kind in ("add", "mul", "logic", "compare", "convert", "div")
    if numbers and not re.search(dialect.data, f"{mnemonic} {', '.join(operands)}"):
        return "scalar"
    return kind


@lru_cache(MANY)
def _family(mnemonic: str, dialect: Dialect) -> str:
    return next((k for k, pattern in dialect.kinds if re.match(pattern, mnemonic)), "other")


@lru_cache(MANY)
def _registers(operand: str, dialect: Dialect) -> frozenset[str]:
    if re.match(dialect.stack, operand):
        return frozenset((slot_of(operand),))
    return frozenset(_whole(r, dialect) for r in re.findall(dialect.register, operand))


@lru_cache(MANY)
def _whole(name: str, dialect: Dialect) -> str:
    """The register a name is a part of."""
    for pattern, whole in dialect.aliases:
        if re.match(pattern, name):
            return re.sub(pattern, whole, name)
    return name


def reads_memory(i: Instruction, dialect: Dialect) -> bool:
    """Whether it reads memory, as a load or for one of its operands."""
    kind = kind_of(i, dialect)
    if kind in ("load", "store", "call", "branch") or i.mnemonic.startswith("lea"):
        return kind == "load"
    sources = i.operands[:-1] if dialect.destination_last else i.operands[1:]
    return any(_fits(dialect.memory, o) for o in sources)


def width_of(i: Instruction, dialect: Dialect) -> int:
    """Bits of the widest vector register in it; 0: none, -1: as wide as the machine has them."""
    for pattern, bits in dialect.widths:
        if any(_holds(pattern, o) for o in i.operands):
            return bits
    return 128 if dialect.nested and re.match(r"v128|[if]\d+x\d", i.mnemonic) else 0


@lru_cache(MANY)
def _holds(pattern: str, operand: str) -> bool:
    return re.search(pattern, operand) is not None
