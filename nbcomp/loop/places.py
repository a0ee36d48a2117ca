"""The user's places of what a kernel has none of its own for: those of what uses it.

An array that is read, a value that is bound and memory of the kernel's own were not written as
expressions of their own; they belong to the expressions they are operands of.  Knows the grammar
only, and changes nothing.
"""

from __future__ import annotations

from nbcomp.loop.grammar import (
    Accumulate,
    Call,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    While,
    children,
    expressions,
    walk,
)
from nbcomp.origin import Construct
from nbcomp.record import Location, joined

Places = dict[Location, None]  # a set that keeps its order

_CONSTRUCTS: dict[type, Construct] = {
    For: Construct.LOOP,
    While: Construct.LOOP,
    If: Construct.BRANCH,
    Call: Construct.CALL,
}


def construct_of(stmt: Stmt | None) -> Construct:
    """What a statement is when it is not an expression of the user's."""
    if isinstance(stmt, Store) and not stmt.location and isinstance(stmt.value, Load):
        return Construct.PACKING
    return _CONSTRUCTS.get(type(stmt), Construct.EXPRESSION)


def places_by_use(kernel: Kernel) -> dict[int, Location]:
    """id of an expression or a statement without a location → the places of its uses, joined."""
    uses = _Uses()
    backwards = list(reversed(list(walk(kernel.stages))))  # what reads a name comes after its `Let`
    for _ in range(2):  # in a loop, memory is also read before it is written
        for stmt in backwards:
            uses.statement(stmt)
        if not uses.waiting:
            break
    found = ((key, joined(places)) for key, places in uses.of.items())
    return {key: location for key, location in found if location is not None}


class _Uses:
    """Who uses what, collected from the last statement to the first."""

    def __init__(self) -> None:
        self.of: dict[int, Places] = {}  # id of what has no location -> those of what it is used in
        self.names: dict[str, Places] = {}  # bound name -> places of what reads it
        self.memories: dict[str, Places] = {}  # memory -> places of what reads it
        self.waiting = False  # whether something was written before anything was seen to read it

    def statement(self, stmt: Stmt) -> None:
        """Hand the statement's places down to the expressions in it."""
        own = getattr(stmt, "location", None)
        places: Places = {own: None} if own else {}
        if isinstance(stmt, Let) and not own:
            places = self.of[id(stmt)] = self.names.get(stmt.name, {})
        elif isinstance(stmt, Store | Accumulate) and not own:
            places = self.of[id(stmt)] = self.memories.get(stmt.buffer.memory, {})
            self.waiting |= not places
        for root in expressions(stmt):
            self.expression(root, places)

    def expression(self, root: Expr, places: Places) -> None:
        waiting = [(root, places)]
        while waiting:
            expr, above = waiting.pop()
            if isinstance(expr, Var):
                self.names.setdefault(expr.name, {}).update(above)
                continue
            own = getattr(expr, "location", None)
            known = self.of.setdefault(id(expr), {})
            seen = bool(known) and known.keys() >= above.keys()
            known.update({own: None} if own else above)
            if isinstance(expr, Load):
                self.memories.setdefault(expr.buffer.memory, {}).update(known)
            if not seen:  # else it is shared, and was handed down already
                waiting += [(child, dict(known)) for child in children(expr)]
