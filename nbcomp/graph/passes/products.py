"""Decides what computes each matrix product: loops of our own, or a BLAS call.

`choose_products` is what is usual: for each product what costs less by the model of
`product_cost`.  `generate_products` and `call_products` are the choice made beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nbcomp.graph.ir import Graph, Node, apply, rewrite
from nbcomp.graph.op import REGISTRY, Contract, Elementwise
from nbcomp.graph.passes import product_cost
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.graph.passes.operands import base_of
from nbcomp.graph.passes.product_cost import CLOCK, Product
from nbcomp.machine import host
from nbcomp.record import remark
from nbcomp.sizes import Size, hint, is_open
from nbcomp.types import FLOAT32, FLOAT64, DType


def choose_products(graph: Graph) -> Graph:
    """Give float32 and float64 products to the faster of loops and BLAS; write others as sums."""

    def choice(node: Node) -> bool:
        if is_open((*node.shape[:-2], *node.inputs[1].shape)):
            reason = "a product whose sizes are open: a call of BLAS, since tiles need to know them"
            remark("applied", "library", reason, node.location)
            return False
        product = product_of(node, graph)
        if isinstance(product.rows, Size):  # tiles take any number of rows
            product = replace(product, rows=hint(product.rows))
        cores = product_cost.loops_cores(product, host())
        own = product_cost.generated(product, host()) / CLOCK / cores
        library = product_cost.blas(product, host()) / CLOCK
        _say(node, own, library, cores)
        return own <= library

    return _chosen(graph, choice)


def call_products(graph: Graph) -> Graph:
    """Leave float32 and float64 products to BLAS; write the others, and dot products, as sums."""

    def choice(node: Node) -> bool:
        what = f"a {node.type.dtype} product: a call of BLAS"
        remark("applied", "library", what, node.location)
        return False

    return _chosen(graph, choice)


def generate_products(graph: Graph) -> Graph:
    """Write loops for all matrix products, as sums where they are small or not of floats."""
    return _chosen(graph, lambda node: True)


def product_of(node: Node, graph: Graph) -> Product:
    """The sizes of a product, the layout of its right operand, and whether something follows."""
    *stack, rows, columns = node.shape
    inner = node.inputs[0].shape[-1]
    turned = _turned(node.inputs[1])
    follows = any(isinstance(user.op, Elementwise) for user in graph.users[node])
    size = node.type.dtype.itemsize
    batch = math.prod(stack)
    if math.prod(node.inputs[1].shape[:-2]) == 1:  # one product of all rows
        batch, rows = 1, batch * rows
    return Product(batch, rows, inner, columns, size, turned, follows)


def _in_memory(node: Node, graph: Graph) -> bool:
    """Whether the right operand of one row is read as it is in memory.

    What is computed for this product alone is read once, as it is computed; rows that are added to
    sums in the nearest cache need no tiles.
    """
    right = node.inputs[1]
    base = base_of(right)
    if isinstance(base.op, Elementwise) and len(graph.users[base]) == 1:
        return False
    return _turned(right) or right.type.nbytes > host().l2


def _turned(node: Node) -> bool:
    """Whether a right operand lies along the sum."""
    strides = element_strides(node)
    return strides is not None and strides[-2] == 1 and strides[-1] != 1


def _say(node: Node, own: float, library: float, cores: int) -> None:
    """The remark of one decision, with the figures it is made by."""
    dtype, times = node.type.dtype, (time_text(own), time_text(library))
    if own <= library:
        where = f"{cores} cores, BLAS on one" if cores > 1 else "one core, BLAS"
        reason = f"loops for a {dtype} product: about {times[0]} on {where} {times[1]}"
        remark("applied", "loops", reason, node.location)
    else:
        where = f"loops on {cores}" if cores > 1 else "loops"
        reason = (
            f"a {dtype} product: a call of BLAS, about {times[1]} on one core, {where} {times[0]}"
        )
        remark("applied", "library", reason, node.location)


def time_text(seconds: float) -> str:
    """A time to be read: three digits and the unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _chosen(graph: Graph, loops: Callable[[Node], bool]) -> Graph:
    """The graph with every product decided; `loops` says it of float products of several rows
    or columns."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, Contract) or node.op.generated:
            return None
        dtype = node.type.dtype
        if node.op.narrow:
            return None
        if dtype not in (FLOAT32, FLOAT64):
            reason = f"loops are generated for a product of {dtype}: BLAS has none"
            hint = "float32 or float64 operands would go to BLAS"
            remark("missed", "library", reason, node.location, hint)
            return _as_sum(node, *inputs)
        if node.shape[-2:] == (1, 1):
            reason = "a product with a single element is a sum: loops are generated for it"
            remark("applied", "loops", reason, node.location)
            return _as_sum(node, *inputs)
        if 0 in (*node.shape, node.inputs[0].shape[-1]):  # nothing to be shared out in tiles
            return _as_sum(node, *inputs)
        if not loops(node):
            return None
        several = [n > 1 for n in node.shape[-2:]]
        if all(several) or (several[1] and _in_memory(node, graph)):
            return replace(node, op=replace(node.op, generated=True), inputs=inputs)
        return _as_sum(node, *inputs)

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
