"""The whole program: kernels in order, the memory each works on, and where that memory lives.

Values that only live between kernels share one arena: each gets the lowest place that is free while
it lives (first fit over live ranges).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Input, Library, View
from nbcomp.graph.passes.fusion import FusedGraph, Group
from nbcomp.graph.passes.materialise import element_strides, storage
from nbcomp.graph.printer import node_names
from nbcomp.loop.grammar import Buffer, Kernel
from nbcomp.lowering.kernels import copy_kernel, lower
from nbcomp.record import remark
from nbcomp.types import TensorType, contiguous_strides

ALIGN = 64  # bytes


@dataclass(frozen=True)
class KernelStep:
    """Run a kernel; `slots` are those of its buffers, in order."""

    kernel: Kernel
    slots: tuple[int, ...]
    group: Group


@dataclass(frozen=True)
class LibraryStep:
    """Run an operator's NumPy reference on arrays over slots: (slot, type, strides in bytes)."""

    node: Node
    inputs: tuple[tuple[int, TensorType, tuple[int, ...]], ...]
    output: tuple[int, TensorType]
    group: Group


@dataclass(frozen=True)
class Program:
    """Steps over numbered slots.

    Slots 0..n-1 are the graph's inputs.  constants: slot → array.  outputs: (slot, type) in order.
    temps: slot → byte offset in an arena of `arena` bytes.  writes: output → slot of the input
    array that the last steps copy it to; such an output is a temp.  layouts: slot of an output →
    its strides in elements, where it is not in C order.
    """

    steps: tuple[KernelStep | LibraryStep, ...]
    slots: int
    constants: dict[int, Any]
    outputs: tuple[tuple[int, TensorType], ...]
    temps: dict[int, int]
    arena: int
    writes: dict[int, int]
    layouts: dict[int, tuple[int, ...]]

    def __str__(self) -> str:
        return "\n\n".join(_describe(s) for s in self.steps)


def _describe(step: KernelStep | LibraryStep) -> str:
    if isinstance(step, KernelStep):
        return str(step.kernel)
    return f"numpy {step.node.op.name}: {step.node.type}"


def lower_program(
    fused: FusedGraph,
    writes: dict[int, int] | None = None,
    rigid: set[int] | None = None,
    reuse: bool = True,
) -> Program:
    """Kernels for all groups, and the memory plan.

    writes: outputs (by position) that are the new content of an input (by position).  rigid:
    outputs that must be in C order; all others may be laid out as what they are made from.  reuse:
    values that are never alive at the same time may share memory.
    """
    every = set(range(len(fused.graph.outputs)))
    return _Planner(fused, writes or {}, every if rigid is None else rigid, reuse).run()


class _Planner:
    def __init__(
        self, fused: FusedGraph, writes: dict[int, int], rigid: set[int], reuse: bool
    ) -> None:
        self.fused, self.writes, self.reuse = fused, writes, reuse
        outputs = fused.graph.outputs
        self.free = {
            n
            for k, n in enumerate(outputs)
            if k not in rigid and k not in writes and not fused.graph.users[n]
            if n.op.name != "copy"  # `x.copy()` is in C order whatever x is
        }
        self.layouts: dict[int, tuple[int, ...]] = {}
        self.graph = fused.graph
        self.slot: dict[Node, int] = {}
        self.sizes: dict[int, int] = {}  # temps only, in bytes
        self.count = 0

    def new_slot(self) -> int:
        self.count += 1
        return self.count - 1

    def run(self) -> Program:
        for node in self.graph.inputs:
            self.slot[node] = self.new_slot()
        outputs = []
        for position, node in enumerate(self.graph.outputs):
            base = storage(node)
            self.slot[base] = self.new_slot()
            outputs.append((self.slot[base], node.type))
            if position in self.writes:
                self.sizes[self.slot[base]] = node.type.nbytes
        names = node_names(self.graph)
        steps: list[KernelStep | LibraryStep] = []
        for group in self.fused.groups:
            if group.kind == "library":
                steps.append(self.library(group))
            else:
                steps.append(self.kernel(group, names))
        steps += (self.copy_back(*pair) for pair in self.writes.items())
        temps, arena = self.place(steps)
        constants = {s: n.op.value for n, s in self.slot.items() if isinstance(n.op, Constant)}
        return Program(
            tuple(steps),
            self.count,
            constants,
            tuple(outputs),
            temps,
            arena,
            dict(self.writes),
            self.layouts,
        )

    def slot_of(self, node: Node) -> int:
        """The slot of a node's memory; a new temp or constant gets one."""
        base = storage(node)
        if base not in self.slot:
            self.slot[base] = self.new_slot()
            if not isinstance(base.op, Constant | Input):
                self.sizes[self.slot[base]] = base.type.nbytes
        return self.slot[base]

    def kernel(self, group: Group, names: dict[Node, str]) -> KernelStep:
        lowered = lower(group, names, self.free)
        buffers, slots = [], []
        for buffer, node in zip(lowered.kernel.buffers, lowered.nodes, strict=True):
            if node is None:
                slot = self.new_slot()
                self.sizes[slot] = _nbytes(buffer)
            else:
                slot = self.slot_of(_memory(node))
            buffers.append(buffer)
            slots.append(slot)
            if buffer.role == "output" and buffer.strides != contiguous_strides(buffer.shape):
                self.layouts[slot] = buffer.strides
        return KernelStep(replace(lowered.kernel, buffers=tuple(buffers)), tuple(slots), group)

    def copy_back(self, output: int, position: int) -> KernelStep:
        """Copy an output to the caller's array, when all that read the array have run."""
        node, target = self.graph.outputs[output], self.graph.inputs[position]
        strides = element_strides(target) or contiguous_strides(target.shape)
        reason = f"the new content of {target.title} is computed aside and copied there at the end"
        hint = "returning a new array instead of writing to the argument saves the copy"
        remark("missed", "copy", reason, node.location, hint)
        kernel = copy_kernel(node, target.name or "argument", strides)
        group = Group(kernel.name, "map", (), (), node.shape, (), ())
        return KernelStep(kernel, (self.slot_of(node), self.slot[target]), group)

    def library(self, group: Group) -> LibraryStep:
        (node,) = group.nodes
        assert isinstance(node.op, Library)
        inputs = []
        for operand in node.inputs:
            strides = element_strides(operand) or contiguous_strides(operand.shape)
            size = operand.type.dtype.itemsize
            inputs.append((self.slot_of(operand), operand.type, tuple(s * size for s in strides)))
        return LibraryStep(node, tuple(inputs), (self.slot_of(node), node.type), group)

    # ------------------------------------------------------------------------------------- memory

    def place(self, steps: list[KernelStep | LibraryStep]) -> tuple[dict[int, int], int]:
        """Offsets of temps: first fit, by size, among those alive at the same time."""
        lives = live_ranges(steps, self.sizes)
        if not self.reuse:
            lives = dict.fromkeys(lives, (0, len(steps)))
        placed: dict[int, int] = {}
        arena = 0
        for slot in sorted(lives, key=lambda s: (-self.sizes[s], s)):
            offset = self.free_place(slot, lives, placed)
            placed[slot] = offset
            arena = max(arena, offset + _aligned(self.sizes[slot]))
        return placed, arena

    def free_place(
        self, slot: int, lives: dict[int, tuple[int, int]], placed: dict[int, int]
    ) -> int:
        first, last = lives[slot]
        taken = sorted(
            (offset, offset + _aligned(self.sizes[other]))
            for other, offset in placed.items()
            if lives[other][0] <= last and first <= lives[other][1]
        )
        at = 0
        for start, end in taken:
            if start - at >= _aligned(self.sizes[slot]):
                break
            at = max(at, end)
        return at


def live_ranges(
    steps: Sequence[KernelStep | LibraryStep], slots: Container[int]
) -> dict[int, tuple[int, int]]:
    """First and last step that touches each of these slots."""
    lives: dict[int, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        for slot in touched(step):
            if slot in slots:
                lives[slot] = (lives.get(slot, (number, number))[0], number)
    return lives


def _memory(node: Node) -> Node:
    """The node whose memory a buffer shows, perhaps through views (a product's operand)."""
    while isinstance(node.op, View):
        node = node.inputs[0]
    return node


def touched(step: KernelStep | LibraryStep) -> Iterator[int]:
    """The slots a step reads or writes."""
    if isinstance(step, KernelStep):
        yield from step.slots
    else:
        yield from (slot for slot, _, _ in step.inputs)
        yield step.output[0]


def _nbytes(buffer: Buffer) -> int:
    size = buffer.dtype.itemsize
    for n in buffer.shape:
        size *= n
    return size


def _aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
