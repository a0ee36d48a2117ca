"""Products of narrow numbers with wide sums, which CPUs have instructions for.

`narrow_products` finds products of bytes that were widened to int32 before: the sums are the same,
whichever way.  `round_products` rounds the operands of float32 products to bfloat16, which is for
those who ask.  Knows operators by name; not which CPU has which instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nbcomp.graph.ir import Graph, Node, apply, rewrite
from nbcomp.graph.op import REGISTRY, Constant, View
from nbcomp.record import remark
from nbcomp.sizes import is_open
from nbcomp.types import FLOAT32, DType

INT8: DType = np.dtype(np.int8)
UINT8: DType = np.dtype(np.uint8)
INT32: DType = np.dtype(np.int32)
ROWS, COLUMNS, TERMS = 4, 8, 16  # fewer are not worth the copies
SHIFT = 128  # between the values of a byte with a sign and one without
GROUP = {1: 4, 2: 2}  # products that an instruction adds up, by bytes of an element


def narrow_products(graph: Graph) -> Graph:
    """Multiply bytes as bytes, where they were widened to int32 for a product."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if node.op.name != "matmul" or node.type.dtype != INT32:
            return None
        narrow = [_bytes(i) for i in inputs]
        left, right = narrow
        if left is None or right is None or _left_alone(node):
            return None
        kinds = f"{left.type.dtype} and {right.type.dtype}"
        reason = f"a product of {kinds} with int32 sums: bytes are multiplied as they are"
        remark("applied", "narrow", reason, node.location)
        return _of_bytes(left, right)

    return rewrite(graph, rule)


def round_products(graph: Graph) -> Graph:
    """Round the operands of float32 products to bfloat16; sums stay float32.

    Remarks say which products are rounded, and why others, and what else multiplies, are not.
    """

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        why = _not_rounded(node)
        if why:
            remark("missed", "precision", why, node.location)
        if why or node.op.name != "matmul":
            return None
        reason = "a float32 product: its operands are rounded to bfloat16, as was asked for"
        remark("applied", "precision", reason, node.location)
        left = apply(REGISTRY["to_bfloat16"](), inputs[0])
        right = _within(inputs[1], lambda x: apply(REGISTRY["to_bfloat16"](), x))
        return _product(left, right)

    return rewrite(graph, rule)


# What multiplies and adds up in loops of its own.
OTHER_PRODUCTS = {
    "convolution": "a convolution stays as it is: operands of matrix products are rounded only",
    "recurrent_loop": "the steps of a recurrent layer stay as they are: operands of matrix products"
    " are rounded only",
}


def _not_rounded(node: Node) -> str:
    """Why something that multiplies is not rounded; "" for what is, and for all else."""
    if node.op.name in OTHER_PRODUCTS:
        return OTHER_PRODUCTS[node.op.name]
    if node.op.name != "matmul":
        return ""
    if node.type.dtype != FLOAT32:
        return f"a product of {node.type.dtype} stays as it is: those of float32 are rounded"
    if _is_open(node):
        return "a product of open lengths stays as it is: those of known lengths are rounded"
    if _is_small(node):
        rows, columns, terms = node.shape[-2], node.shape[-1], node.inputs[0].shape[-1]
        return (
            f"a product of {rows} rows, {columns} columns and {terms} terms stays as it is: only"
            f" those of {ROWS}, {COLUMNS} and {TERMS} or more are rounded"
        )
    return ""


def _left_alone(node: Node) -> bool:
    """Whether a product stays as it is; a remark says why, where lengths are open."""
    if _is_open(node):
        reason = "a product of open lengths: its operands stay as wide as they are"
        remark("missed", "narrow", reason, node.location)
        return True
    return _is_small(node)


def _is_open(node: Node) -> bool:
    *batch, _, columns = node.shape
    return is_open((*batch, columns, node.inputs[0].shape[-1]))


def _is_small(node: Node) -> bool:
    *_, rows, columns = node.shape
    inner = node.inputs[0].shape[-1]
    return bool(rows < ROWS or columns < COLUMNS or inner < TERMS or node.type.size == 0)


def _bytes(node: Node) -> Node | None:
    """The bytes that a node is the int32 form of, seen through the same views."""
    views: list[Any] = []
    while isinstance(node.op, View):
        views.append(node.op)
        node = node.inputs[0]
    if node.op.name != "cast" or node.inputs[0].type.dtype not in (INT8, UINT8):
        return None
    if node.inputs[0].weak:
        return None
    return _seen(node.inputs[0], views)


def _within(node: Node, change: Callable[[Node], Node]) -> Node:
    """A change of each element, done before the axes are turned."""
    views: list[Any] = []
    while node.op.name == "transpose":
        views.append(node.op)
        node = node.inputs[0]
    return _seen(change(node), views)


def _seen(node: Node, views: Sequence[Any]) -> Node:
    for view in reversed(views):
        node = apply(view, node)
    return node


def _of_bytes(left: Node, right: Node) -> Node:
    """The product, one operand without a sign and one with: Σ(a + 128)·b = Σa·b + 128·Σb."""
    if left.type.dtype != right.type.dtype:
        return _product(left, right)
    if left.type.dtype == INT8:
        sums = _total(right, -2)
        made = _product(_flipped(_op("cast", UINT8, of=(left,))), right)
        return _op("subtract", of=(made, _op("multiply", of=(sums, _number(SHIFT, INT32)))))
    sums = _total(left, -1)
    made = _product(left, _within(right, lambda x: _op("cast", INT8, of=(_flipped(x),))))
    return _op("add", of=(made, _op("multiply", of=(sums, _number(SHIFT, INT32)))))


def _flipped(node: Node) -> Node:
    """Bytes with their highest bit the other way: 128 more or less."""
    return _op("bitwise_xor", of=(node, _number(SHIFT, UINT8)))


def _total(node: Node, axis: int) -> Node:
    """The sums along an axis, which stays, as int32."""
    wide = _op("cast", INT32, of=(node,))
    return _op("sum", (node.type.ndim + axis,), True, of=(wide,))


def _product(left: Node, right: Node) -> Node:
    """The narrow product; terms that fill no group are filled up with zeros."""
    group = GROUP[left.type.dtype.itemsize]
    missing = -left.shape[-1] % group
    if missing:
        zero = _number(0, left.type.dtype), _number(0, right.type.dtype)
        left = _padded(left, left.type.ndim - 1, missing, zero[0])
        right = _padded(right, right.type.ndim - 2, missing, zero[1])
    return _op("narrow_matmul", True, of=(left, right))


def _padded(node: Node, axis: int, count: int, zero: Node) -> Node:
    nothing = (0,) * node.type.ndim
    after = tuple(count if k == axis else 0 for k in range(node.type.ndim))
    return _op("pad_constant", nothing, after, of=(node, zero))


def _number(value: int, dtype: DType) -> Node:
    return apply(Constant(np.asarray(dtype.type(value))))


def _op(name: str, *fields: object, of: tuple[Node, ...]) -> Node:
    return apply(REGISTRY[name](*fields), *of)
