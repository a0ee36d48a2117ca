"""What a code object's control flow tells: where values are needed, and where parts may begin.

`live` is the classic backward analysis, `bound` the forward one; exceptions are edges to their
handlers.  `beginnings` looks for the places after an instruction that Python runs where the stack
holds values only.  Knows instructions as data; runs nothing.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Collection, Iterable, Iterator, Sequence
from types import CodeType

from nbcomp.frontend.bytecode.instructions import JUMPS, Instruction

LEAVE = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
ALWAYS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
READ = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"}
WRITE = {"STORE_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"}
# Instructions that push an empty entry, or what may be one.
PUSH_NULL = {"PUSH_NULL", "LOAD_METHOD", "LOAD_FAST_AND_CLEAR"}
MAY_PUSH_NULL = {"LOAD_GLOBAL", "LOAD_ATTR", "LOAD_SUPER_ATTR"}  # where the lowest bit says so
CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}
# Not worth to begin a part with.
TRIVIAL = {"POP_TOP", "STORE_FAST", "NOP", "RESUME", "END_FOR", *ALWAYS}


def first(instructions: Sequence[Instruction]) -> int:
    """The first instruction of the user's own: after RESUME."""
    return next(i.index for i in instructions if i.name == "RESUME") + 1


def successors(instructions: Sequence[Instruction], index: int) -> Iterator[int]:
    """Where control goes after an instruction that raises nothing."""
    i = instructions[index]
    if i.name in JUMPS:
        yield i.operand.index
    if i.name not in LEAVE and i.name not in ALWAYS and index + 1 < len(instructions):
        yield index + 1


def live(code: CodeType, instructions: Sequence[Instruction]) -> list[frozenset[str]]:
    """The local variables whose value may be read from each instruction on."""
    cells = {*code.co_cellvars, *code.co_freevars}
    # `super()` looks at the first argument.
    hidden = frozenset(code.co_varnames[:1] if "__class__" in code.co_freevars else ()) - cells
    result: list[frozenset[str]] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for index in reversed(range(len(instructions))):
            i = instructions[index]
            after = frozenset().union(*(result[s] for s in successors(instructions, index)))
            if i.name in WRITE:
                after -= {i.operand}
            if i.name in READ and i.operand not in cells:
                after |= {i.operand}
            after |= hidden
            if i.handler is not None:
                after |= result[i.handler.target.index]
            if after != result[index]:
                result[index], changed = after, True
    return result


def parameters(code: CodeType) -> int:
    """How many of a code object's variables are its parameters: they come first."""
    collecting = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
    count = code.co_argcount + code.co_kwonlyargcount
    return count + sum(bool(code.co_flags & flag) for flag in collecting)


def bound(code: CodeType, instructions: Sequence[Instruction]) -> list[frozenset[str]]:
    """The local variables that surely have a value at each instruction.

    What a comprehension saves, it stores again afterwards, and that may be no value (PEP 709).
    """
    saved = {i.operand for i in instructions if i.name == "LOAD_FAST_AND_CLEAR"}
    everything = frozenset(code.co_varnames)
    result = [everything] * len(instructions)
    todo = [(0, frozenset(code.co_varnames[: parameters(code)]))]
    seen: set[int] = set()
    while todo:
        index, names = todo.pop()
        names &= result[index]
        if index in seen and names == result[index]:
            continue
        seen.add(index)
        result[index] = names
        i = instructions[index]
        after = names
        if i.name == "STORE_FAST" and i.operand not in saved:
            after = names | {i.operand}
        elif i.name in WRITE:
            after = names - {i.operand}
        todo += [(s, after) for s in successors(instructions, index)]
        if i.handler is not None:
            todo.append((i.handler.target.index, names & after))
    return result


# ---------------------------------------------------------------------------- where parts begin


def beginnings(
    instructions: Sequence[Instruction],
    index: int,
    depth: int,
    nulls: Iterable[int],
    left: Collection[int] = (),
) -> dict[int, int]:
    """The first places after instruction `index` where a part may begin, with the stack's depth.

    depth: of the stack before that instruction.  nulls: the positions of empty entries in it.
    left: instructions that are left to Python.
    """
    found: dict[int, int] = {}
    seen: set[int] = set()
    todo = list(_after(instructions, index, depth, frozenset(nulls)))
    while todo:
        at, deep, empty = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        i = instructions[at]
        if i.name in LEAVE:
            continue
        if empty or at in left or i.name in TRIVIAL or i.name == "FOR_ITER":
            todo += _after(instructions, at, deep, empty)
        else:
            found[at] = deep
    return found


def with_of(instructions: Sequence[Instruction], index: int) -> int | None:
    """The `with` that begins at an instruction, or with the manager it calls for; None if none."""
    for at in (index, index + 1):
        if at < len(instructions) and instructions[at].name == "BEFORE_WITH":
            return at
    return None


def body_of(instructions: Sequence[Instruction], index: int) -> frozenset[int]:
    """What runs between the enter and the exit of the `with` that begins at `index`, both included.

    Its instructions are those whose errors come to its handler; a handler inside is one of them.
    """
    handler = instructions[index + 1].handler
    assert handler is not None
    inside = {i.index for i in instructions if _comes_to(i, handler.target)}
    for at in sorted(inside):
        for after in successors(instructions, at):
            while after not in inside:  # leaving: `__exit__(None, None, None)`
                inside.add(after)
                if instructions[after].name in (*CALLS, *JUMPS, *LEAVE):
                    break
                after += 1
    return frozenset((index, *inside))


def _comes_to(i: Instruction, target: Instruction) -> bool:
    """Whether an error of an instruction, or of the handlers it comes to, reaches `target`."""
    seen: set[int] = set()
    while i.handler is not None and i.index not in seen:
        seen.add(i.index)
        i = i.handler.target
        if i is target:
            return True
    return False


def _after(
    instructions: Sequence[Instruction], index: int, depth: int, nulls: frozenset[int]
) -> Iterator[tuple[int, int, frozenset[int]]]:
    """Where control goes from an instruction, the depth and the empty entries there."""
    i = instructions[index]
    if nulls and i.name in ("COPY", "SWAP"):
        return
    for after in successors(instructions, index):
        jumps = i.name in JUMPS and after == i.operand.index
        deep = depth + _effect(i, jumps)
        kept = deep - 1 if i.name in CALLS else deep
        empty = frozenset(p for p in nulls if p < kept)
        if i.name in PUSH_NULL or (i.name in MAY_PUSH_NULL and i.arg & 1):
            empty |= {deep - 1, deep - 2}
        yield after, deep, empty


def _effect(i: Instruction, jumps: bool) -> int:
    """How much deeper the stack is after an instruction."""
    if i.name == "PRECALL":
        return 0  # 3.11 says -arg here, and the rest for CALL
    if i.name == "CALL":
        return -i.arg - 1
    op = dis.opmap[i.name]
    return dis.stack_effect(op, i.arg if op >= dis.HAVE_ARGUMENT else None, jump=jumps)
