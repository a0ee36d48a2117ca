"""Decides what computes each matrix product: a BLAS call, or loops of our own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nbcomp.graph.ir import Graph, Node, apply, rewrite
from nbcomp.graph.op import REGISTRY, Contract
from nbcomp.record import remark
from nbcomp.types import FLOAT32, FLOAT64, DType


def choose_products(graph: Graph) -> Graph:
    """Leave float32 and float64 products to BLAS; write the others, and dot products, as sums."""

    def as_sum(node: Node) -> bool:
        dtype = node.type.dtype
        if node.shape[-2:] == (1, 1):
            reason = "a product with a single element is a sum: loops are generated for it"
            remark("applied", "loops", reason, node.location)
            return True
        if dtype in (FLOAT32, FLOAT64):
            remark("applied", "library", f"a {dtype} product: a call of BLAS", node.location)
            return False
        reason = f"loops are generated for a product of {dtype}: BLAS has none"
        hint = "float32 or float64 operands would go to BLAS"
        remark("missed", "library", reason, node.location, hint)
        return True

    return _with_sums(graph, as_sum)


def generate_products(graph: Graph) -> Graph:
    """Write loops for all matrix products, as sums where they are small or not of floats."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, Contract):
            return None
        if node.type.dtype in (FLOAT32, FLOAT64) and min(node.shape[-2:]) > 1:
            return replace(node, op=replace(node.op, generated=True), inputs=inputs)
        return _as_sum(node, *inputs)

    return rewrite(graph, rule)


def _with_sums(graph: Graph, chosen: Callable[[Node], bool]) -> Graph:
    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        return _as_sum(node, *inputs) if isinstance(node.op, Contract) and chosen(node) else None

    return rewrite(graph, rule)


def _as_sum(node: Node, a: Node, b: Node) -> Node:
    """a @ b = Σₖ a[…, m, k, 1] · b[…, 1, k, n], in the dtype NumPy adds up in."""
    dtype = node.type.dtype
    inner = FLOAT32 if dtype == np.float16 else dtype
    a, b = _cast(a, inner), _cast(b, inner)
    left = _op("expand_dims", (a.type.ndim,), of=(a,))
    right = _op("expand_dims", (b.type.ndim - 2,), of=(b,))
    terms = _op("multiply", of=(left, right))
    name = "any" if inner.kind == "b" else "sum"
    total = _op(name, (terms.type.ndim - 2,), False, of=(terms,))
    return _cast(total, dtype)


def _op(name: str, *fields: object, of: tuple[Node, ...]) -> Node:
    return apply(REGISTRY[name](*fields), *of)


def _cast(node: Node, dtype: DType) -> Node:
    return node if node.type.dtype == dtype else _op("cast", dtype, of=(node,))
