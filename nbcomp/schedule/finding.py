"""Finding the matrix products among the loops of a kernel: perfect loops around a sum of products.

Knows loops and what an operand is; not what becomes of a product.
"""

from __future__ import annotations

from nbcomp.loop.bfloat16 import bits_in
from nbcomp.loop.grammar import Accumulate, Affine, Apply, Cast, Expr, For, Load, Stmt
from nbcomp.schedule.blocks import Factor, Product
from nbcomp.sizes import Size


def product_of(stage: Stmt) -> Product | None:
    """The loops of a generated product, if a stage is one: perfect loops, the last two over rows
    and columns, around a sum of products that is kept in a local."""
    around: list[For] = []
    while isinstance(stage, For):
        around.append(stage)
        if len(stage.body) != 1:
            break
        (stage,) = stage.body
    inner = [s for s in around[-1].body if isinstance(s, For)] if around else []
    if len(inner) != 1 or (added := _added(inner[0])) is None:
        return None
    total, group = added
    left, right = factors_of(total)
    columns, shared = around[-1], inner[0]
    if not walks_along(right, columns) or walks_along(left, columns):
        return None
    rows = around[-2] if len(around) > 1 and walks_along(left, around[-2]) else None
    if rows is not None and walks_along(right, rows):  # a batch of rows
        rows = None
    width, depth = _extent(columns), _extent(shared)
    height = 1 if rows is None else _rows(rows)
    if width is None or depth is None or height is None:
        return None
    return Product(
        rows.var if rows else "",
        columns.var,
        shared.var,
        total,
        height,
        width,
        depth,
        _factor(left, rows, shared),
        _factor(right, columns, shared),
        *((group.var, _extent(group) or 1) if group else ()),
    )


def factors_of(total: Accumulate) -> tuple[Expr, ...]:
    """What is multiplied: a row's element and a column's."""
    assert isinstance(total.value, Apply)
    return total.value.args


def _added(loop: For) -> tuple[Accumulate, For | None] | None:
    """What a loop over terms adds up, and the loop over those of a group in it, if there is one."""
    group: For | None = None
    (stmt,) = loop.body if len(loop.body) == 1 else (None,)
    if isinstance(stmt, For) and len(stmt.body) == 1 and _extent(stmt) is not None:
        group, (stmt,) = stmt, stmt.body
    if not isinstance(stmt, Accumulate) or not stmt.contract or _extent(loop) is None:
        return None
    if group is not None and not all(map(_narrow, factors_of(stmt))):
        return None
    return stmt, group


def _narrow(factor: Expr) -> bool:
    """Whether a factor is narrower in memory than the sums."""
    load = _load(factor)
    return load is not None and load.dtype.itemsize < factor.dtype.itemsize


def _rows(loop: For) -> int | None:
    """The iterations of the loop over rows, which may be open."""
    extent = loop.extent
    constant = isinstance(extent, Affine) and not extent.terms
    return extent.constant if constant else None  # type: ignore[attr-defined]


def _extent(loop: For) -> int | None:
    extent = loop.extent
    if not isinstance(extent, Affine) or extent.terms or isinstance(extent.constant, Size):
        return None
    return extent.constant


def walks_along(factor: Expr, loop: For) -> bool:
    """Whether a loop walks along an operand."""
    return _axis(factor, loop.var) is not None


def _load(factor: Expr) -> Load | None:
    """What a factor is read from: an array of its dtype, or of narrow numbers."""
    if isinstance(factor, Cast) and factor.value.dtype.itemsize == 1:
        factor = factor.value
    factor = bits_in(factor) or factor
    return factor if isinstance(factor, Load) else None


def _axis(factor: Expr, var: str) -> int | None:
    """The axis of a load along which a loop walks."""
    load = _load(factor)
    if load is None:
        return None
    for axis, index in enumerate(load.indices):
        if isinstance(index, Affine) and dict(index.terms).get(var):
            return axis
    return None


def _factor(factor: Expr, own: For | None, shared: For) -> Factor | None:
    """An operand that is an array, with the axes of the result and of the sum."""
    axes = [_axis(factor, loop.var) if loop else None for loop in (own, shared)]
    load = _load(factor)
    if load is None or axes[1] is None or axes[0] == axes[1]:
        return None
    return Factor(load.buffer, -1 if axes[0] is None else axes[0], axes[1])
