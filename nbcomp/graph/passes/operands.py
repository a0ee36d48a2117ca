"""How a node reaches what it reads: the computing node behind views, the views on the way, and
whether the elements are met in the order of the loops.

Knows nodes; it must not know groups.
"""

from __future__ import annotations

import math
from itertools import pairwise

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Input, Reduce, Source, View
from nbcomp.graph.passes.materialise import element_strides

TINY = 4  # a reduction this short is an expression


def base_of(node: Node) -> Node:
    """The computing node behind views (not reshapes, which are other memory)."""
    while isinstance(node.op, View):
        node = node.inputs[0]
    return node


def source_of(node: Node) -> Node:
    """The computing node behind views and reshapes."""
    while isinstance(node.op, View) or node.op.name == "reshape":
        node = node.inputs[0]
    return node


def inlined(node: Node) -> bool:
    """Never computed on its own: read in place wherever it is used."""
    return isinstance(node.op, Input | Constant | View | Source) or node.op.name == "reshape"


def path(node: Node) -> tuple[object, ...]:
    """The views an operand is read through."""
    path: list[object] = []
    while isinstance(node.op, View):
        if not _aligning(node):
            path.append((node.op, node.inputs[0].shape))
        node = node.inputs[0]
    return tuple(path)


def aligned(node: Node) -> bool:
    """Reached from its base through views that only add or drop axes of length 1."""
    while isinstance(node.op, View):
        if not _aligning(node):
            return False
        node = node.inputs[0]
    return True


def _aligning(node: Node) -> bool:
    """A view that only adds or drops axes of length 1."""
    return node.op.name in ("expand_dims", "squeeze")


def follows(node: Node, shape: tuple[int, ...], rank: int) -> bool:
    """Whether an operand can be read along the last `rank` axes of a shape as if they were one:
    it is the same along all of them, or has them all, one after another in memory."""
    space = node.shape[max(0, len(node.shape) - rank) :]
    if all(n == 1 for n in space):
        return not isinstance(node.op, View) or aligned(node)
    base = base_of(node)
    if space != shape[len(shape) - rank :] or not aligned(node) or isinstance(base.op, Source):
        return False
    strides = element_strides(base)
    return strides is not None and as_one(space, strides[len(strides) - rank :])


def as_one(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether neighbouring axes are one axis in memory."""
    long = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    return all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(long))


def is_tiny(node: Node) -> bool:
    """Whether a reduction is short enough to be written out as an expression."""
    if not isinstance(node.op, Reduce):
        return False
    shape = node.inputs[0].shape
    length = math.prod(shape[k] for k in node.op.axes)
    return not node.op.axes or (0 < length <= TINY and math.prod(shape) > TINY)
