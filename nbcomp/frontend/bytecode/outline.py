"""The code of a function with graph breaks: the user's own bytecode, with calls of compiled parts.

Before the instruction where a part begins stands a stub.  It hands the part the variables and the
stack, takes what it gives, and goes on where the part ended: there the user's instructions run in
the user's frame, as Python runs them.  So effects, exceptions, tracebacks, `with`, `try` and loops
need no care.  `enter` makes the code that goes on in the middle.  Knows heads and exits; runs
nothing.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from nbcomp.frontend.bytecode import flow
from nbcomp.frontend.bytecode.instructions import Frame, Handler, Instruction, assemble, decode
from nbcomp.frontend.bytecode.part import Exit, Head
from nbcomp.frontend.bytecode.values import UNBOUND

RESULT = ".part"  # the variable that holds what a part handed out
# The free variable that holds what stubs call: constants of code objects would never be collected
# when they refer back to the function.
CALLED = ".parts"
NEW = sys.version_info >= (3, 13)
REST = ""  # the variable that holds what is handed to the function in the middle
COLLECTING = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@dataclass(frozen=True, eq=False)
class Stub:
    """What a stub is made of: run is called with the variables and stack; `exits` by marker."""

    head: Head
    run: Callable[..., Any]
    exits: tuple[tuple[Any, Exit], ...]


@dataclass(frozen=True, eq=False)
class Outlined:
    """A function's instructions with stubs.

    resume: called with what a part gave where the code does not know the exit, and the cells; it
    runs the rest of the function.  strip: takes an error that came from there.  called: what has to
    be in the last cell of the closure.
    """

    code: CodeType
    stubs: Mapping[int, Stub]
    resume: Callable[..., Any]
    strip: Callable[..., Any]

    @property
    def called(self) -> tuple[Callable[..., Any], ...]:
        """`resume`, then the parts in order."""
        return (self.resume, *(stub.run for stub in self.stubs.values()))

    def whole(self) -> CodeType:
        """The function from its beginning."""
        body = self._body()
        code = self.code
        local = (*code.co_varnames, RESULT)
        frame = Frame(local, code.co_cellvars, (*code.co_freevars, CALLED))
        made = list(body.instructions)
        copied = next((i for i in body.plain if i.name == "COPY_FREE_VARS"), None)
        if copied is None:
            made.insert(0, Instruction("COPY_FREE_VARS", 1))
        else:
            copied.arg += 1
        return assemble(code, made, frame, body.depth)

    def enter(self, exit: Exit, unbound: frozenset[str]) -> CodeType:
        """The function from an exit on.

        It takes all variables (cells as they are), whatever has no value as None, then the stack.
        What is no parameter of the user's comes in a tuple without a name, which tracebacks do not
        show.
        """
        assert exit.index is not None
        body, code = self._body(), self.code
        names = variables(code)
        stack = [f".stack{k}" for k, full in enumerate(exit.stack) if full]
        made = [Instruction("COPY_FREE_VARS", len(code.co_freevars) + 1), Instruction("RESUME")]
        own = flow.parameters(code)
        rest = [*names[own:], *stack]
        made += [load(REST), Instruction("UNPACK_SEQUENCE", len(rest))]
        made += [Instruction("STORE_FAST", operand=n) for n in rest]
        made += [
            Instruction("DELETE_FAST", operand=n)
            for n in (REST, *filter(unbound.__contains__, names))
        ]
        values = iter(stack)
        for full in exit.stack:
            made.append(load(next(values)) if full else Instruction("PUSH_NULL"))
        made.append(Instruction("JUMP_FORWARD", operand=body.plain[exit.index]))
        for i in made:
            i.positions = body.plain[exit.index].positions
        free = (*code.co_freevars, CALLED)
        local = (*names[:own], REST, *rest, RESULT)
        frame = Frame(local, code.co_cellvars, free)
        return assemble(
            code,
            [*made, *body.instructions],
            frame,
            body.depth + len(rest),
            co_argcount=own,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_flags=code.co_flags & ~COLLECTING | inspect.CO_VARARGS,
        )

    def _body(self) -> _Body:
        return _Body(self)


def variables(code: CodeType) -> tuple[str, ...]:
    """The variables of a code object's frame, without those of outer functions."""
    return (*code.co_varnames, *(c for c in code.co_cellvars if c not in code.co_varnames))


def load(name: str) -> Instruction:
    """Push a local variable that has a value."""
    return Instruction("LOAD_FAST", operand=name)


def constant(value: Any) -> Instruction:
    """Push an object."""
    return Instruction("LOAD_CONST", operand=value)


class _Body:
    """The instructions: stubs, the user's own, and what stands after them.

    plain: the user's own instructions by their index in the code they came from.  depth: the stack
    that stubs need.
    """

    def __init__(self, outlined: Outlined) -> None:
        self.outlined = outlined
        original = decode(outlined.code)
        self.bound = flow.bound(outlined.code, original)
        self.plain = [
            Instruction(i.name, i.arg, i.operand, i.positions, None, i.offset, i.index)
            for i in original
        ]
        self._stubs = {
            k: _Stub(self, stub, n) for n, (k, stub) in enumerate(outlined.stubs.items(), 1)
        }
        for old, new in zip(original, self.plain, strict=True):
            if isinstance(old.operand, Instruction):
                new.operand = self.target(old.operand.index)
            if old.handler is not None:
                h = old.handler
                new.handler = Handler(self.target(h.target.index), h.depth, h.lasti)
        for stub in self._stubs.values():
            stub.fill()
        self.instructions: list[Instruction] = []
        for k, i in enumerate(self.plain):
            if k in self._stubs:
                self.instructions += self._stubs[k].instructions
            self.instructions.append(i)
        for stub in self._stubs.values():
            self.instructions += stub.outside
        self.depth = max((s.depth for s in self._stubs.values()), default=0)

    def target(self, index: int) -> Instruction:
        """Where jumps to an instruction go."""
        stub = self._stubs.get(index)
        return stub.label if stub else self.plain[index]


class _Stub:
    """The instructions before one head; `number` is that of its part among what is called."""

    def __init__(self, body: _Body, stub: Stub, number: int) -> None:
        self.body, self.stub, self.head, self.number = body, stub, stub.head, number
        self.label = Instruction("NOP")
        self.instructions: list[Instruction] = [self.label]
        self.outside: list[Instruction] = []
        self.depth = 8 + len(self.head.names) + 2 * self.head.depth
        self._pushed = 0

    def fill(self) -> None:
        """Make the instructions."""
        plain = self.body.plain[self.head.index]
        self._call()
        self.add(load(RESULT))
        self._jump_if("NONE", plain)
        for marker, exit in self.stub.exits:
            self._exit(marker, exit)
        self._unknown()
        handler = plain.handler
        for i in self.instructions:
            i.positions = plain.positions
            if i.name == "CALL" and i.operand == "part":
                i.handler = handler  # Ctrl-C in a part is seen where the part stands
        for i in self.outside:
            i.positions = plain.positions

    def add(self, *instructions: Instruction) -> None:
        """Append."""
        self.instructions += instructions

    def _jump_if(self, what: str, target: Instruction) -> None:
        way = "FORWARD_" if sys.version_info < (3, 12) else ""
        self.add(Instruction(f"POP_JUMP_{way}IF_{what}", operand=target))

    def _call(self) -> None:
        """result = run(*variables, *stack), the stack left as it is."""
        head = self.head
        self._function(self.number)
        cells = self.body.outlined.code.co_cellvars
        depth = head.depth + 2
        sure = self.body.bound[head.index]
        for name in head.names:
            if name in cells:
                self.add(closure(name))
            elif name in sure:
                self.add(load(name))
            else:
                self._load_or_unbound(name, depth)
            depth += 1
        for k in range(head.depth):
            self.add(Instruction("COPY", head.depth + 2 + len(head.names)))
            del k
        self._finish_call(len(head.names) + head.depth, "part")
        self.add(Instruction("STORE_FAST", operand=RESULT))

    def _function(self, number: int) -> None:
        null = Instruction("PUSH_NULL")
        found = (
            Instruction("LOAD_DEREF", operand=CALLED),
            constant(number),
            Instruction("BINARY_SUBSCR"),
        )
        self.add(*((*found, null) if NEW else (null, *found)))

    def _finish_call(self, count: int, mark: str = "") -> None:
        if sys.version_info < (3, 12):
            self.add(Instruction("PRECALL", count))
        self.add(Instruction("CALL", count, mark))

    def _load_or_unbound(self, name: str, depth: int) -> None:
        """Push a variable, or UNBOUND if it has no value: Python raises, and the handler says."""
        checked = "LOAD_FAST" if sys.version_info < (3, 12) else "LOAD_FAST_CHECK"
        read = Instruction(checked, operand=name)
        after = Instruction("NOP")
        caught = Instruction("POP_TOP")
        read.handler = Handler(caught, depth, False)
        self.add(read, after)
        back = Instruction("JUMP_BACKWARD", operand=after)
        self.outside += [caught, constant(UNBOUND), back]

    def _item(self, k: int) -> None:
        self.add(load(RESULT), constant(k), Instruction("BINARY_SUBSCR"))

    def _exit(self, marker: Any, exit: Exit) -> None:
        """If the part left here: its values where they belong, and on with the user's code."""
        following = Instruction("NOP")
        self._item(0)
        self.add(constant(marker), Instruction("IS_OP", 0))
        self._jump_if("FALSE", following)
        if exit.index is None:
            self._item(1)
            self.add(Instruction("RETURN_VALUE"), following)
            return
        self.add(*(Instruction("POP_TOP") for _ in range(self.head.depth)))
        full = sum(exit.stack)
        if full == len(exit.stack):
            self.add(load(RESULT))
            self.add(Instruction("UNPACK_SEQUENCE", 1 + len(exit.stores) + full))
            self.add(Instruction("POP_TOP"))
            for store in exit.stores:
                self._store(*store)
        else:
            self._one_by_one(exit)
        self.add(constant(None), Instruction("STORE_FAST", operand=RESULT))
        self._goto(exit.index)
        self.add(following)
        self.depth = max(self.depth, 4 + self.head.depth + len(exit.stores) + len(exit.stack))

    def _one_by_one(self, exit: Exit) -> None:
        """With empty entries on the stack."""
        for k, store in enumerate(exit.stores):
            self._item(1 + k)
            self._store(*store)
        position = len(exit.stores) + sum(exit.stack)
        for full in exit.stack:
            if full:
                self._item(position)
                position -= 1
            else:
                self.add(Instruction("PUSH_NULL"))

    def _store(self, name: str, how: str) -> None:
        if how == "cell":
            self.add(Instruction("STORE_DEREF", operand=name))
            return
        self.add(Instruction("STORE_FAST", operand=name))
        if how == "gone":
            self.add(Instruction("DELETE_FAST", operand=name))

    def _goto(self, index: int) -> None:
        forward = index >= self.head.index
        name = "JUMP_FORWARD" if forward else "JUMP_BACKWARD"
        self.add(Instruction(name, operand=self.body.plain[index]))

    def _unknown(self) -> None:
        """An exit that was found after this code was made: newer code runs the rest."""
        first = len(self.instructions)
        self._function(0)
        self.add(load(RESULT))
        cells = self.body.outlined.code.co_cellvars
        self.add(*map(closure, cells), Instruction("BUILD_TUPLE", len(cells)))
        self._finish_call(2)
        self.add(Instruction("RETURN_VALUE"))
        caught = Instruction("COPY", 1)
        for i in self.instructions[first:]:
            i.handler = Handler(caught, 0, False)
        inside, self.instructions = self.instructions, self.outside
        self.add(caught, constant(self.body.outlined.strip), Instruction("SWAP", 2))
        if NEW:
            self.add(Instruction("PUSH_NULL"), Instruction("SWAP", 2))
        else:
            self.add(Instruction("PUSH_NULL"), Instruction("SWAP", 3), Instruction("SWAP", 2))
        self._finish_call(1)
        self.add(Instruction("POP_TOP"), Instruction("RERAISE", 0))
        self.instructions = inside
        self.depth = max(self.depth, 6 + self.head.depth + len(cells))


def closure(name: str) -> Instruction:
    """Push the cell of a variable."""
    return Instruction("LOAD_FAST" if NEW else "LOAD_CLOSURE", operand=name)
