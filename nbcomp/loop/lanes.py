"""How many elements a vector loop takes at a time.  Knows the loop IR; not what will run it."""

from __future__ import annotations

from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Const,
    Expr,
    For,
    Let,
    Load,
    Store,
    Var,
    children,
    walk,
)
from nbcomp.sizes import Size


def lanes_of(stmt: For, vector_bytes: int) -> int:
    """Lanes of a vector loop: as many as the widest element it computes with allows and the loop
    asks for, and half or less of them where that is enough for all iterations.

    What is made of single numbers that the program was given is the same in all lanes: computed
    once, it does not count.
    """
    widest, same = 1, set[str]()
    for s in walk(stmt.body):
        if isinstance(s, Store | Accumulate):
            widest = max(widest, s.buffer.dtype.itemsize, _widest(s.value, same))
        elif isinstance(s, Let):
            widest = max(widest, _widest(s.value, same))
            if _is_same(s.value, same):
                same.add(s.name)
    lanes = max(2, vector_bytes // widest)
    if stmt.lanes:
        lanes = min(lanes, stmt.lanes)
    if isinstance(stmt.extent, Affine) and not stmt.extent.terms:
        extent = stmt.extent.constant
        while not isinstance(extent, Size) and lanes > 2 and extent <= lanes // 2:
            lanes //= 2
    return lanes


def _is_same(expr: Expr, same: set[str]) -> bool:
    """Whether a value is made of numbers of the program's only: not of constants alone, which have
    the width of what they are used with."""
    if isinstance(expr, Load):
        return expr.buffer.role == "input" and not expr.indices
    if isinstance(expr, Var):
        return expr.name in same
    parts = children(expr)
    return bool(parts) and all(isinstance(p, Const) or _is_same(p, same) for p in parts)


def _widest(root: Expr, same: set[str]) -> int:
    """Bytes of the widest value below an expression; indices do not count."""
    widest, stack = 1, [root]
    while stack:
        expr = stack.pop()
        if _is_same(expr, same):
            continue
        widest = max(widest, expr.dtype.itemsize)
        if not isinstance(expr, Load):
            stack.extend(children(expr))
    return widest


def turned_store(stmt: For) -> Store | None:
    """The store of a loop that is written out, if that is all it does and what it writes lies side
    by side: where lanes write apart, such rows are turned in registers first."""
    store = stmt.body[0] if len(stmt.body) == 1 and stmt.kind == "unroll" else None
    if not isinstance(store, Store) or store.streaming:
        return None
    step = sum(
        dict(index.terms).get(stmt.var, 0) * stride
        for index, stride in zip(store.indices, store.buffer.strides, strict=True)
        if isinstance(index, Affine)
    )
    return store if step == 1 else None
