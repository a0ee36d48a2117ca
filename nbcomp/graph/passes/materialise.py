"""Makes explicit where memory is needed: a copy of what is read, written or returned whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.graph.control import Control, Loops
from nbcomp.graph.ir import Graph, Node, apply, at, rewrite
from nbcomp.graph.op import (
    ChannelsLast,
    Constant,
    Contract,
    Elementwise,
    Input,
    Library,
    Recurrence,
    Source,
    View,
    Windowed,
    is_indexed,
)
from nbcomp.loop.grammar import Affine, Expr, affine, loop_var
from nbcomp.loop.library import gemm_layout
from nbcomp.record import remark
from nbcomp.types import TensorType, contiguous_strides


@dataclass(frozen=True)
class Copy(Elementwise, name="copy"):
    """The same values in new, C-contiguous memory."""

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return np.array(arrays[0], order="C")

    def scalar(self, *args: Expr) -> Expr:
        return args[0]


def materialise(graph: Graph) -> Graph:
    """Copy views and inputs where a whole array is needed: results, reshapes, library calls."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        needs = _whole(node, inputs)
        if not any(needs):
            return None
        new = tuple(_copy(i) if need else i for i, need in zip(inputs, needs, strict=True))
        for read in (i for i, need in zip(inputs, needs, strict=True) if need):
            why, hint = _why_whole(node)
            what = f"{read.title} is copied: {why}"
            remark("missed", "copy", what, node.location, hint if _given(read) else "")
        return apply(node.op, *new, name=node.name)

    body = _donated(rewrite(graph, rule))
    taken: set[Node] = set()
    outputs = []
    for node in body.outputs:
        base = storage(node)
        if _read_only(base) or base in taken:
            reason = f"{node.title} is returned as a copy: results are memory of their own"
            remark("analysis", "copy", reason, node.location)
            node = base = _copy(node)
        taken.add(base)
        outputs.append(node)
    if all(a is b for a, b in zip(outputs, body.outputs, strict=True)):
        return body
    return Graph(body.name, body.inputs, tuple(outputs))


def _donated(graph: Graph) -> Graph:
    """Give loops that change an operand one that nobody else reads: its memory becomes theirs."""
    kept = set(graph.outputs)

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, Loops):
            return None
        new = list(inputs)
        for k in node.op.updated:
            old = node.inputs[k]
            alone = graph.users[old] == (node,) and old not in kept
            own = not _read_only(old) or (isinstance(old.op, Input) and node.op.in_place)
            if not (alone and own and old.op.name != "reshape" and inputs.count(inputs[k]) == 1):
                new[k] = _copy(inputs[k])
        return replace(node, inputs=tuple(new))

    return rewrite(graph, rule)


def storage(node: Node) -> Node:
    """The node whose memory this one is: reshapes share it."""
    while node.op.name == "reshape":
        node = node.inputs[0]
    return node


def _given(node: Node) -> bool:
    """Whether the caller could have laid it out otherwise."""
    while isinstance(node.op, View):
        node = node.inputs[0]
    return isinstance(node.op, Input)


def _copy(node: Node) -> Node:
    with at(node.location, node.layers):
        return apply(Copy(), node, name=node.name)


def _read_only(node: Node) -> bool:
    return isinstance(node.op, View | Input | Constant | Source)


def _whole(node: Node, inputs: tuple[Node, ...]) -> list[bool]:
    """Which inputs must be copied first."""
    if node.op.name == "reshape":
        return [not _contiguous(i) for i in inputs]
    if is_indexed(node):
        return [False] * len(inputs)
    if isinstance(node.op, Library) and node.op.contiguous:
        return [not _contiguous(i) for i in inputs]
    if isinstance(node.op, Library | Control):
        return [isinstance(i.op, View | Source) for i in inputs]
    if isinstance(node.op, Contract):
        along = not node.op.narrow or _along(inputs[0])
        return [not _matrix(inputs[0]) or not along, not _matrix(inputs[1])]
    if isinstance(node.op, Recurrence):
        return [not _contiguous(i) for i in inputs]
    if isinstance(node.op, Windowed):
        narrow = isinstance(node.op, ChannelsLast) and node.op.narrow
        apart = not _along(inputs[0]) if narrow else element_strides(inputs[0]) is None
        return [apart, *(not _contiguous(i) for i in inputs[1:])]
    return [False] * len(inputs)


_CONTROL = {"loops": "a loop over elements", "while": "a loop", "if": "an `if`"}


def _why_whole(node: Node) -> tuple[str, str]:
    """Why a node needs its operand in memory of its own, and what would make that unnecessary."""
    order = "np.ascontiguousarray, once outside the function, gives an array in that order"
    if node.op.name == "reshape":
        return "a reshape counts on elements in C order", order
    if isinstance(node.op, Library):
        if node.op.contiguous:
            return "functions of C get their operands in C order", order
        who = "a routine in Python" if node.op.brought else f"NumPy's {node.op.name}"
        return f"{who} takes whole arrays", ""
    if isinstance(node.op, Control):
        return f"{_CONTROL.get(node.op.name, node.op.name)} takes whole arrays", ""
    if isinstance(node.op, Recurrence):
        return "a loop over steps takes whole arrays in C order", order
    if isinstance(node.op, Windowed):
        return f"{node.op.name} walks over an array with plain strides", order
    if isinstance(node.op, Contract) and node.op.narrow:
        return "its products are of neighbours along the sum", order
    generated = isinstance(node.op, Contract) and node.op.generated
    reader = "the loops of a product read" if generated else "BLAS reads"
    return f"{reader} matrices with a contiguous row or column", order


def _contiguous(node: Node) -> bool:
    """A whole array in C order: computed here, or an input or constant that is."""
    base = storage(node)
    if isinstance(base.op, View | Source):
        return False
    if isinstance(base.op, Constant):
        return bool(base.op.value.flags.c_contiguous)
    if isinstance(base.op, Input):
        return base.op.strides is None or base.op.strides == contiguous_strides(base.shape)
    return True


def _matrix(node: Node) -> bool:
    """Memory BLAS can read: whole, or views of it with one of the last two axes contiguous."""
    strides = element_strides(node)
    return strides is not None and gemm_layout(node.shape, strides) is not None


def _along(node: Node) -> bool:
    """Whether the last axis lies side by side."""
    strides = element_strides(node)
    return strides is not None and (strides[-1] == 1 or node.shape[-1] == 1)


def element_strides(node: Node) -> tuple[int, ...] | None:
    """Strides in elements of a node's memory as it stands, None if it has none of its own."""
    if isinstance(node.op, Source):
        return None
    if isinstance(node.op, Constant):
        return tuple(s // node.op.value.itemsize for s in node.op.value.strides)
    if isinstance(node.op, Input):
        return node.op.strides or contiguous_strides(node.shape)
    if not isinstance(node.op, View):
        return contiguous_strides(node.shape)
    return view_strides(node)


def view_strides(node: Node) -> tuple[int, ...] | None:
    """Strides of a view: how far its source index moves along each axis."""
    assert isinstance(node.op, View)
    inner = element_strides(node.inputs[0])
    if inner is None or node.type.size == 0:
        return None
    index = tuple(loop_var(f"v{k}") if n > 1 else affine(0) for k, n in enumerate(node.shape))
    strides = [0] * len(node.shape)
    for place, step in zip(node.op.source(index, node.inputs[0].type), inner, strict=True):
        if not isinstance(place, Affine) or place.constant:
            return None  # a view that starts elsewhere has no buffer of its own
        for var, factor in place.terms:
            strides[int(var[1:])] += factor * step
    return tuple(strides)
