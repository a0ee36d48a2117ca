"""Whole chunks, written as if the last one might be shorter.

A loop in chunks ends with a shorter one unless its length is a multiple of the chunk's.  Where it
is, the code is written as for any other length, which costs a comparison a chunk: so another length
finds the code in the cache.  Knows loops; not how they become code.
"""

from __future__ import annotations

from dataclasses import replace

from nbcomp.loop.grammar import (
    Affine,
    Apply,
    For,
    Kernel,
    Stmt,
    affine,
    exprs_of,
    index_scale,
    loop_var,
    walk,
)
from nbcomp.sizes import Size
from nbcomp.types import INT64

SHORT = 64  # shorter ones are rows and tiles, whose loops are written for their length


def open_ended(kernel: Kernel) -> Kernel:
    """The kernel with such loops over the chunks of a parallel loop."""
    return replace(kernel, stages=tuple(map(_opened, kernel.stages)))


def _opened(stage: Stmt) -> Stmt:
    if not isinstance(stage, For) or stage.kind != "parallel":
        return stage
    return replace(stage, body=tuple(_last_shorter(stage, s) for s in stage.body))


def _last_shorter(blocks: For, stmt: Stmt) -> Stmt:
    """A loop over a chunk with the extent that it would have, were the last one shorter."""
    if not isinstance(stmt, For) or stmt.kind not in ("serial", "vector"):
        return stmt
    count, chunk = _length(blocks), _length(stmt)
    if count < 2 or chunk < SHORT or not _is_split(blocks, stmt, chunk):
        return stmt
    left = index_scale(loop_var(blocks.var), -chunk, count * chunk)
    return replace(stmt, extent=Apply(INT64, "minimum", (affine(chunk), left)))


def _length(loop: For) -> int:
    """How often a loop runs, if that is written in it; else 0."""
    extent = loop.extent
    if not isinstance(extent, Affine) or extent.terms or isinstance(extent.constant, Size):
        return 0
    return extent.constant


def _is_split(outer: For, inner: For, chunk: int) -> bool:
    """Whether the two are one loop in chunks: the variables only occur together."""
    places = [e for s in walk(inner.body) for e in exprs_of(s) if isinstance(e, Affine)]
    factors = [dict(e.terms) for e in places]
    pairs = [(f.get(outer.var, 0), f.get(inner.var, 0)) for f in factors]
    return any(far for far, _ in pairs) and all(far == chunk * near for far, near in pairs)
