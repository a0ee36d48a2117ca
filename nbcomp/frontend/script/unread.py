"""A kernel's statements without the variables and values that nobody reads.  Knows the loop IR."""

from __future__ import annotations

from dataclasses import replace

from nbcomp.loop.grammar import (
    Accumulate,
    Block,
    For,
    If,
    Stmt,
    Store,
    While,
    bodies,
    expressions,
    loads_of,
    variables,
    walk,
)


def without_unread(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements without variables and values that nobody reads."""
    while True:
        read_ = {e.buffer.name for e in loads_of(stmts) if e.buffer.role == "local"}
        for stmt in walk(stmts):
            read_ |= {n for root in expressions(stmt) for n in variables(root)}
        kept = _without(stmts, read_)
        if len(list(walk(kept))) == len(list(walk(stmts))):
            return kept
        stmts = kept


def _without(stmts: tuple[Stmt, ...], read_: set[str]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in stmts:
        if (
            isinstance(stmt, Store | Accumulate)
            and stmt.buffer.role == "local"
            and stmt.buffer.name not in read_
        ):
            continue
        if isinstance(stmt, If):
            yes, no = _without(stmt.yes, read_), _without(stmt.no, read_)
            if yes or no:
                result.append(replace(stmt, yes=yes, no=no))
        elif isinstance(stmt, For | While | Block) and bodies(stmt):
            result.append(replace(stmt, body=_without(stmt.body, read_)))
        else:
            result.append(stmt)
    return tuple(result)
