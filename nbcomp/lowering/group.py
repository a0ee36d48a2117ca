"""What lowering any fused group has in common: its buffers, its products, its stages.

A kind of group is a subclass whose `body` writes the loops.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Contract, Input, Source
from nbcomp.graph.passes.groups import Group
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.graph.passes.operands import as_one, base_of, source_of
from nbcomp.loop.grammar import (
    Affine,
    Block,
    Buffer,
    Call,
    Kernel,
    Stmt,
    Store,
    affine,
    buffers_in,
    const,
)
from nbcomp.loop.library import gemm_layout
from nbcomp.lowering.elements import Elements, Index, broadcast_index
from nbcomp.lowering.writer import Writer
from nbcomp.record import Remark, remark
from nbcomp.sizes import among
from nbcomp.types import DType, contiguous_strides

AXES = "ijklmnpq"

# Results that may have any memory order: the axes as NumPy lays them out, outermost first, or None
# where that is not known.
Orders = Mapping[Node, tuple[int, ...] | None]
Layouts = dict[Node, tuple[int, ...]]  # strides, in elements, of what is not in C order


@dataclass(frozen=True)
class Lowered:
    """A kernel and the graph node behind each of its buffers (None: a temp of its own)."""

    kernel: Kernel
    nodes: tuple[Node | None, ...]


def strides_in(shape: tuple[int, ...], order: Sequence[int] | None) -> tuple[int, ...]:
    """The strides, in elements, of an array whose axes lie in this order, outermost first."""
    strides, step = [0] * len(shape), 1
    for k in reversed(range(len(shape)) if order is None else order):
        strides[k] = step
        step *= max(shape[k], 1)
    return tuple(strides)


class GroupLowering:
    """One group becoming a kernel."""

    def __init__(self, group: Group, names: dict[Node, str], free: Orders) -> None:
        self.group, self.names, self.free = group, names, free
        self.laid: Layouts = {}
        self.writer = Writer()
        self.elements = Elements(self.writer, group.nodes, names)
        self.elements.uses.update(group.outputs)  # a store is a use
        self.buffers: dict[Buffer, Node | None] = {}
        self.stages: list[Stmt] = []
        self.inside = set(group.nodes)
        self.location = group.outputs[-1].location if group.outputs else None

    def run(self) -> Lowered:
        for node in self.group.nodes:
            if not isinstance(node.op, Contract):
                for operand in node.inputs:
                    self.reachable(operand)
        self.outputs = {n: self.output(n) for n in self.group.outputs}
        for node in self.group.nodes:
            if isinstance(node.op, Contract):
                self.contract(node)
        self.body()
        order = {"input": 0, "output": 1, "temp": 2}
        touched = {b for stage in self.stages for b in buffers_in(stage)}
        used = [(b, n) for b, n in self.buffers.items() if b in touched or b.role == "output"]
        used.sort(key=lambda pair: order[pair[0].role])
        kernel = Kernel(
            self.group.name, tuple(b for b, _ in used), tuple(self.stages), self.location
        )
        return Lowered(kernel, tuple(n for _, n in used))

    def reachable(self, operand: Node) -> None:
        """Give every operand that is in memory a buffer."""
        node = base_of(operand)
        if node in self.inside or node in self.elements.memory or not self.in_memory(node):
            return
        own = self.laid.get(node) or element_strides(node)
        strides = own or contiguous_strides(node.shape)
        self.elements.memory[node] = self.buffer(node, strides, "input")

    def in_memory(self, node: Node) -> bool:
        if isinstance(node.op, Constant):
            return len(node.shape) > 0
        return not isinstance(node.op, Source)

    def buffer(self, node: Node | None, strides: tuple[int, ...], role: str) -> Buffer:
        assert node is not None
        name = self.writer.fresh(_identifier(self.names[node]))
        made = Buffer(name, node.type.dtype, node.shape, strides, role)  # type: ignore[arg-type]
        self.buffers[made] = node
        return made

    def output(self, node: Node) -> Buffer:
        return self.buffer(node, contiguous_strides(node.shape), "output")

    def temp(self, base: str, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        """Memory of the kernel's own that its stages share."""
        made = Buffer(self.writer.fresh(base), dtype, shape, contiguous_strides(shape), "temp")
        self.buffers[made] = None
        return made

    def local(self, base: str, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        made = Buffer(self.writer.fresh(base), dtype, shape, contiguous_strides(shape), "local")
        return self.writer.alloc(made)

    def close_stage(self) -> None:
        """End the stage: what was written becomes one top-level statement."""
        stmts = self.writer.stage()
        if len(stmts) == 1:
            self.stages.append(stmts[0])
        elif stmts:
            self.stages.append(Block(stmts, self.location))

    def contract(self, node: Node) -> None:
        """out = a @ b by BLAS, batch by batch; the product stays in the kernel when it may."""
        target = self.outputs.get(node) or self.product_target(node)
        operands = []
        for operand in node.inputs:
            strides = element_strides(operand)
            assert strides is not None
            made = self.buffer(operand, strides, "input")
            operands.append(made)
        written, operands = self.as_rows(target, operands)
        batch = list(written.shape[:-2])
        if node.type.size == 0 or operands[0].shape[-1] == 0:
            self.zeros(target)
        else:
            with self.writer.loops([AXES[k] for k in range(len(batch))], batch) as index:
                at = [index, *(broadcast_index(index, o.shape[:-2]) for o in operands)]
                self.writer.add(
                    Call("blas.gemm", (written, *operands), tuple(at), location=node.location)
                )
        self.close_stage()
        self.elements.memory[node] = target
        if target.role == "temp" or node in self.outputs:
            self.writer.complete.add(target.memory)

    def as_rows(self, target: Buffer, operands: list[Buffer]) -> tuple[Buffer, list[Buffer]]:
        """A batch that shares its right operand, as the rows of one product, if memory allows."""
        left, right = operands
        rows, columns = math.prod(left.shape[:-1]), right.shape[-1]
        if len(right.shape) > 2 or len(left.shape) < 3 or not rows:
            return target, operands
        pairs = zip(left.shape[:-1], left.strides[:-1], strict=True)
        steps = [stride for n, stride in pairs if n != 1] or [left.shape[-1]]
        shape, strides = (rows, left.shape[-1]), (steps[-1], left.strides[-1])
        together = as_one(left.shape[:-1], left.strides[:-1])
        if not together or gemm_layout(shape, strides) is None:
            return target, operands
        flat = replace(left, shape=shape, strides=strides)
        self.buffers[flat] = self.buffers.pop(left)
        name = self.writer.fresh(f"{target.name}_rows")
        out = replace(
            target, name=name, shape=(rows, columns), strides=(columns, 1), alias=target.memory
        )
        self.buffers[out] = self.buffers[target]
        return out, [flat, right]

    def product_target(self, node: Node) -> Buffer:
        """Where a product only this kernel needs goes: into the result it becomes, if it can."""
        for out, buffer in self.outputs.items():
            single = len(self.outputs) == 1 and self.group.kind == "map"
            if single and out.type == node.type and self.read_in_place(node):
                reason = f"the product is written where {out.title} goes, and finished in place"
                remark("applied", "in place", reason, node.location)
                return buffer
        reason = f"the product ({node.type}) is stored before the rest of its kernel reads it"
        remark("analysis", "store", reason, node.location)
        return self.temp(node.name or "product", node.type.dtype, node.shape)

    def read_in_place(self, node: Node) -> bool:
        """Every reader, at one remove or more, reads the very element it is about to overwrite."""
        derived = {node}
        for user in self.group.nodes:
            seen = [i for i in user.inputs if source_of(i) in derived]
            if any(i not in derived for i in seen) or (seen and user.shape != node.shape):
                return False
            if seen:
                derived.add(user)
        return True

    def zeros(self, buffer: Buffer) -> None:
        with self.writer.loops([*AXES[: len(buffer.shape)]], list(buffer.shape)) as index:
            self.writer.add(Store(buffer, index, const(0, buffer.dtype), self.location))

    def component_indices(self, node: Node, at: dict[int, Affine]) -> Iterator[Index]:
        """A node's own indices at one point of the loops: one, or one per component."""
        space, components = self.group.space, self.group.components
        if among(node.shape, (space,)):
            for position in np.ndindex(*(space[k] for k in components)):
                fixed = dict(zip(components, position, strict=True))
                yield tuple(
                    affine(int(fixed[k])) if k in fixed else at[k] for k in range(len(space))
                )
            return
        yield self.reduced_index(node, at, components)

    def reduced_index(self, node: Node, at: dict[int, Affine], gone: Sequence[int]) -> Index:
        """The index of a node whose shape has each of the `gone` axes dropped or of length 1."""
        space, components = self.group.space, self.group.components
        whole = range(len(space))
        rest = [k for k in whole if k in gone and k not in components]
        for dropped in ((), tuple(gone), components, tuple(rest)):
            left = [k for k in whole if k not in dropped]
            if among(node.shape, (tuple(1 if k in gone else space[k] for k in left),)):
                return tuple(affine(0) if k in gone else at[k] for k in left)
        raise AssertionError(f"{node.op.name} of shape {node.shape} in the space {space}")

    def body(self) -> None:
        """Write the stages that come after the group's matrix product, if it has one."""


def _identifier(name: str) -> str:
    """A buffer name: the user's own, or t7 for the seventh node."""
    return f"t{name}" if name[:1].isdigit() else name


def in_users_words(said: Remark, nodes: Mapping[str, Node]) -> Remark:
    """A remark about a kernel, whose memories have these nodes' values, with the user's words for
    those that have a name of the compiler's; what such a value is like is no advice to the user."""
    words = {name: node.title for name, node in nodes.items() if node.name != name}
    if not words:
        return said
    names = "|".join(map(re.escape, words))
    reason = re.sub(rf"`?\b({names})\b`?", lambda found: words[found[1]], said.reason)
    given = all(isinstance(nodes[name].op, Input) for name in words if name in said.reason)
    return replace(said, reason=reason, hint=said.hint if given else "")
