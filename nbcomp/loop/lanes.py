"""How many elements a vector loop takes at a time.  Knows the loop IR; not what will run it."""

from __future__ import annotations

from nbcomp.loop.grammar import Accumulate, Expr, For, Let, Load, Store, children, walk


def lanes_of(stmt: For, vector_bytes: int) -> int:
    """Lanes of a vector loop: as many as the widest element it computes with allows."""
    widest = 1
    for s in walk(stmt.body):
        if isinstance(s, Store | Accumulate):
            widest = max(widest, s.buffer.dtype.itemsize, _widest(s.value))
        elif isinstance(s, Let):
            widest = max(widest, _widest(s.value))
    return max(2, vector_bytes // widest)


def _widest(root: Expr) -> int:
    """Bytes of the widest value below an expression; indices do not count."""
    widest, stack = 1, [root]
    while stack:
        expr = stack.pop()
        widest = max(widest, expr.dtype.itemsize)
        if not isinstance(expr, Load):
            stack.extend(children(expr))
    return widest
