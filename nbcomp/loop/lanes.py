"""How many elements a vector loop takes at a time.  Knows the loop IR; not what will run it."""

from __future__ import annotations

from nbcomp.loop.grammar import Accumulate, Affine, Expr, For, Let, Load, Store, children, walk
from nbcomp.sizes import Size


def lanes_of(stmt: For, vector_bytes: int) -> int:
    """Lanes of a vector loop: as many as the widest element it computes with allows and the loop
    asks for, and half or less of them where that is enough for all iterations."""
    widest = 1
    for s in walk(stmt.body):
        if isinstance(s, Store | Accumulate):
            widest = max(widest, s.buffer.dtype.itemsize, _widest(s.value))
        elif isinstance(s, Let):
            widest = max(widest, _widest(s.value))
    lanes = max(2, vector_bytes // widest)
    if stmt.lanes:
        lanes = min(lanes, stmt.lanes)
    if isinstance(stmt.extent, Affine) and not stmt.extent.terms:
        extent = stmt.extent.constant
        while not isinstance(extent, Size) and lanes > 2 and extent <= lanes // 2:
            lanes //= 2
    return lanes


def _widest(root: Expr) -> int:
    """Bytes of the widest value below an expression; indices do not count."""
    widest, stack = 1, [root]
    while stack:
        expr = stack.pop()
        widest = max(widest, expr.dtype.itemsize)
        if not isinstance(expr, Load):
            stack.extend(children(expr))
    return widest
