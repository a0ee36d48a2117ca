"""The whole program: kernels in order, the memory each works on, and where that memory lives.

Values that only live between kernels share one arena: each gets the lowest place that is free while
it lives (first fit over live ranges).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nbcomp.graph.control import Control, Loops, Result
from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Contract, Input, Library, View, Windowed, is_kept
from nbcomp.graph.passes.groups import FusedGraph, Group
from nbcomp.graph.passes.materialise import element_strides, storage
from nbcomp.graph.passes.operands import base_of
from nbcomp.graph.passes.share import corresponding
from nbcomp.graph.printer import node_names
from nbcomp.loop.grammar import Buffer, Kernel
from nbcomp.lowering.group import Layouts, Orders, strides_in
from nbcomp.lowering.in_place import Target, taken, targets
from nbcomp.lowering.kernels import copy_kernel, lower
from nbcomp.lowering.written import taken_over, written_loops
from nbcomp.record import remark
from nbcomp.sizes import hint
from nbcomp.types import TensorType, contiguous_strides

ALIGN = 64  # bytes


@dataclass(frozen=True)
class Part:
    """One group, lowered: its kernel, and the node whose value lies in each memory of that.

    The kernel is None for an operator that a library runs.  layouts: strides in elements of the
    results that are not in C order, by memory.  over: values in the memory of others, and which.
    """

    group: Group
    kernel: Kernel | None
    nodes: dict[str, Node]
    layouts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    over: dict[Node, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelStep:
    """Run a kernel; `slot_of` has the slot of each memory its buffers show, `changed` those that
    had values before, which it changes."""

    kernel: Kernel
    slot_of: dict[str, int]
    group: Group
    changed: frozenset[str] = frozenset()

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots it reads or writes."""
        return tuple(self.slot_of.values())


@dataclass(frozen=True)
class LibraryStep:
    """Run an operator's NumPy reference on arrays over slots: (slot, type, strides in bytes)."""

    node: Node
    inputs: tuple[tuple[int, TensorType, tuple[int, ...]], ...]
    outputs: tuple[tuple[int, TensorType], ...]
    group: Group

    @property
    def kept(self) -> bool:
        """Whether it is run only when its operand has changed: the plan has no step for it."""
        return is_kept(self.node.op, self.node.inputs)


@dataclass(frozen=True)
class Program:
    """Steps over numbered slots.

    Slots 0..n-1 are the graph's inputs.  constants: slot → array.  outputs: (slot, type) in order.
    temps: slot → byte offset in an arena of `arena` bytes.  writes: output → slot of the input
    array that it is in, or that the last steps copy it to: then it is a temp.  layouts: slot of an
    output → its strides in elements, where it is not in C order.
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


ANY_ORDER = ("map", "reduce", "pieces")  # kinds of groups that read arrays by their strides


def lower_program(
    fused: FusedGraph,
    writes: dict[int, int] | None = None,
    rigid: set[int] | None = None,
    reuse: bool = True,
) -> Program:
    """Kernels for all groups as they are lowered, and the memory plan; see `lower_groups` and
    `plan_memory`."""
    parts = lower_groups(fused, writes or {}, rigid)
    return plan_memory(fused, parts, writes or {}, reuse=reuse)


def lower_groups(
    fused: FusedGraph,
    writes: dict[int, int],
    rigid: set[int] | None = None,
    orders: Mapping[int, tuple[int, ...]] | None = None,
) -> list[Part]:
    """Every group as loops, then the copies of outputs to the inputs they overwrite.

    writes: outputs (by position) that are the new content of an input (by position).  rigid:
    outputs that must be in C order (all, if not given); others are laid out in the order of axes
    that `orders` has for them, or as what they are made from.
    """
    graph, names = fused.graph, node_names(fused.graph)
    fixed = set(range(len(graph.outputs))) if rigid is None else rigid
    known_orders = orders or {}
    free = dict.fromkeys(_read_anyhow(fused))
    free |= {
        n: known_orders.get(k)
        for k, n in enumerate(graph.outputs)
        if k not in fixed and k not in writes and not graph.users[n]
        if n.op.name != "copy" or k in known_orders  # else in C order whatever it is a copy of
    }
    over = targets(fused, writes, {n for n, order in free.items() if _is_turned(order)})
    free |= {n: over[n].order for n in over if n not in free}
    laid: Layouts = {}
    parts: list[Part] = []
    known: dict[str, Part] = {}
    for group in fused.groups:
        if group.name in known:
            parts.append(_called_again(known[group.name], group, over))
            continue
        own = group.kind == "control" and not isinstance(group.nodes[0].op, Loops)
        if group.kind == "library" or own:
            parts.append(_library(group, names, free, over))
            continue
        if group.kind == "control":
            kernel, nodes = written_loops(group)
            parts.append(Part(group, kernel, nodes))
            continue
        lowered = lower(group, names, free, laid)
        pairs = zip(lowered.kernel.buffers, lowered.nodes, strict=True)
        nodes = {b.memory: base_of(n) for b, n in pairs if n is not None}
        part = _in_place(Part(group, lowered.kernel, nodes), over)
        assert part.kernel is not None
        for buffer in part.kernel.buffers:
            if buffer.role == "output" and buffer.strides != contiguous_strides(buffer.shape):
                part.layouts[buffer.memory] = laid[part.nodes[buffer.memory]] = buffer.strides
        parts.append(part)
        known[group.name] = part
    changed = [(graph.outputs[k], graph.inputs[i]) for k, i in writes.items()]
    kept = {new: old for part in parts for new, old in part.over.items()}
    for new, old in changed:
        if _memory(new, kept) is not old:
            parts.append(_copy_back(new, old, names[old], laid.get(storage(new))))
    return parts


def _memory(node: Node, over: Mapping[Node, Node]) -> Node:
    """The node whose memory a value is in at first: what it took over, and what that did."""
    base = storage(node)
    while (old := over.get(base) or taken_over(base)) is not None:
        base = storage(old)
    return base


def _in_place(part: Part, over: Mapping[Node, Target]) -> Part:
    """A part with the values that may be in the memory of what it reads."""
    for new in part.group.outputs:
        target = over.get(new)
        made = taken(part.kernel, part.nodes, new, target) if target and part.kernel else None
        if target and made:
            kernel, nodes = made
            what = f"{new.title} is computed where {target.node.title} lies"
            remark("applied", "in place", what, new.location)
            part = replace(part, kernel=kernel, nodes=nodes, over=part.over | {new: target.node})
    return part


def _library(
    group: Group, names: dict[Node, str], free: Orders, over: Mapping[Node, Target]
) -> Part:
    """A step that NumPy runs, which writes its result in the order that was asked for."""
    node = group.nodes[0]
    if node in over:
        target, name = over[node], names[node]
        return Part(group, None, {name: node}, {name: target.strides}, {node: target.node})
    order = free.get(node) if isinstance(node.op, Library) and not node.op.brought else None
    if order is None or order == tuple(range(len(order))):
        return Part(group, None, {})
    name = names[node]
    return Part(group, None, {name: node}, {name: strides_in(node.shape, order)})


def _read_anyhow(fused: FusedGraph) -> Iterator[Node]:
    """Values between kernels that all who read them read by their strides, whatever these are.

    They lie in the order of what they are made from, which is walked in its own order.
    """
    graph = fused.graph
    groups = Counter(g.name for g in fused.groups)
    within = {n: g for g in fused.groups for n in g.nodes}
    results = {storage(n) for n in graph.outputs}

    def by_strides(node: Node) -> bool:
        for user in graph.users[node]:
            if isinstance(user.op, View):
                if not by_strides(user):
                    return False
                continue
            group = within.get(user)
            if group is None or group.kind not in ANY_ORDER or groups[group.name] > 1:
                return False
            if any(isinstance(n.op, Contract | Windowed) for n in group.nodes):
                return False
        return True

    for group in fused.groups:
        if group.kind in ANY_ORDER and groups[group.name] == 1:
            yield from (n for n in group.outputs if n not in results and by_strides(n))


def _is_turned(order: tuple[int, ...] | None) -> bool:
    return order is not None and order != tuple(range(len(order)))


def _called_again(part: Part, group: Group, over: Mapping[Node, Target]) -> Part:
    """The kernel of another group, for the values of this one (`graph.passes.share`)."""
    own = corresponding(group, part.group)
    nodes = {m: own[n] for m, n in part.nodes.items()}
    return replace(
        part, group=group, nodes=nodes, over={own[n]: over[own[n]].node for n in part.over}
    )


def _copy_back(node: Node, target: Node, name: str, laid: tuple[int, ...] | None) -> Part:
    """Copy an output to the caller's array, when all that read the array have run.

    name: of the array, which no other array of the program has.  laid: the output's strides, where
    it is not in C order.
    """
    strides = element_strides(target) or contiguous_strides(target.shape)
    reason = f"the new content of {target.title} is computed aside and copied there at the end"
    hint = "returning a new array instead of writing to the argument saves the copy"
    remark("missed", "copy", reason, node.location, hint)
    kernel = copy_kernel(node, name, laid or contiguous_strides(node.shape), strides)
    source, copy = (b.memory for b in kernel.buffers)
    group = Group(kernel.name, "map", (), (), node.shape, (), ())
    return Part(group, kernel, {source: node, copy: target})


def plan_memory(
    fused: FusedGraph,
    parts: Sequence[Part],
    writes: dict[int, int],
    unread: Collection[int] = (),
    reuse: bool = True,
) -> Program:
    """A slot for every value that is in memory, and a place for those that live between kernels.

    unread: outputs (by position) that nobody gets.  reuse: values that are never alive at the same
    time may share memory.
    """
    return _Planner(fused, writes, unread, reuse).run(parts)


class _Planner:
    def __init__(
        self, fused: FusedGraph, writes: dict[int, int], unread: Collection[int], reuse: bool
    ) -> None:
        self.graph, self.writes, self.reuse = fused.graph, writes, reuse
        outputs = [(k, storage(n)) for k, n in enumerate(self.graph.outputs)]
        got = {base for k, base in outputs if k not in unread}
        told = {k for k, base in outputs if base not in got and not isinstance(base.op, Constant)}
        self.inner = told | set(writes)  # outputs that live between the steps, as temps do
        self.layouts: dict[int, tuple[int, ...]] = {}
        self.slot: dict[Node, int] = {}
        self.sizes: dict[int, int] = {}  # temps only, in bytes
        self.count = 0

    def new_slot(self) -> int:
        self.count += 1
        return self.count - 1

    def run(self, parts: Sequence[Part]) -> Program:
        for node in self.graph.inputs:
            self.slot[node] = self.new_slot()
        for position, node in enumerate(self.graph.outputs):
            base = storage(node)
            self.slot[base] = self.new_slot()
            if position in self.inner:
                self.sizes[self.slot[base]] = node.type.nbytes
        self.hand_over({new: old for part in parts for new, old in part.over.items()})
        outputs = [(self.slot[storage(n)], n.type) for n in self.graph.outputs]
        steps = [self.kernel(p, p.kernel) if p.kernel else self.library(p) for p in parts]
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

    def hand_over(self, over: Mapping[Node, Node]) -> None:
        """One slot for values that are in the memory of one another."""
        for node in reversed(self.graph.nodes):
            old = _memory(node, over)
            if old is node or storage(node) is not node:
                continue
            if old not in self.slot:  # the last of those that are in this memory comes first
                self.slot[old] = self.slot_of(node)
            elif self.slot.get(node) != self.slot[old]:
                self.sizes.pop(self.slot.get(node, -1), None)
                self.slot[node] = self.slot[old]

    def slot_of(self, node: Node) -> int:
        """The slot of a node's memory; a new temp or constant gets one."""
        base = storage(node)
        if base not in self.slot:
            self.slot[base] = self.new_slot()
            own = isinstance(base.op, Constant | Input) or is_kept(base.op, base.inputs)
            if not own:
                self.sizes[self.slot[base]] = base.type.nbytes
        return self.slot[base]

    def kernel(self, part: Part, kernel: Kernel) -> KernelStep:
        slot_of: dict[str, int] = {}
        for buffer in kernel.buffers:
            if buffer.memory in slot_of:
                continue
            if (node := part.nodes.get(buffer.memory)) is None:
                slot = self.new_slot()
                self.sizes[slot] = _nbytes(buffer)
            else:
                slot = self.slot_of(node)
            slot_of[buffer.memory] = slot
            if buffer.memory in part.layouts:
                self.layouts[slot] = part.layouts[buffer.memory]
        changed = frozenset(m for m, n in part.nodes.items() if n in part.over)
        return KernelStep(kernel, slot_of, part.group, changed)

    def library(self, part: Part) -> LibraryStep:
        group = part.group
        node, *results = group.nodes
        self.layouts |= {self.slot_of(part.nodes[m]): s for m, s in part.layouts.items()}
        inputs = []
        for operand in node.inputs:
            strides = element_strides(operand) or contiguous_strides(operand.shape)
            size = operand.type.dtype.itemsize
            inputs.append((self.slot_of(operand), operand.type, tuple(s * size for s in strides)))
        if isinstance(node.op, Library):
            outputs = [(self.slot_of(node), node.type)]
        else:
            outputs = [(self.result_slot(k, t, results), t) for k, t in enumerate(_results(node))]
        return LibraryStep(node, tuple(inputs), tuple(outputs), group)

    def result_slot(self, index: int, t: TensorType, results: Sequence[Node]) -> int:
        """The slot of a result of control flow, which perhaps nobody reads."""
        for node in results:
            if isinstance(node.op, Result) and node.op.index == index:
                return self.slot_of(node)
        slot = self.new_slot()
        self.sizes[slot] = t.nbytes
        return slot

    # ------------------------------------------------------------------------------------- memory

    def place(self, steps: list[KernelStep | LibraryStep]) -> tuple[dict[int, int], int]:
        """Offsets of temps: first fit, by size, among those alive at the same time."""
        lives = live_ranges(steps, self.sizes)
        if not self.reuse:
            lives = dict.fromkeys(lives, (0, len(steps)))
        placed: dict[int, int] = {}
        arena = 0
        for slot in sorted(lives, key=lambda s: (-hint(self.sizes[s]), s)):
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


def _results(node: Node) -> tuple[TensorType, ...]:
    assert isinstance(node.op, Control)
    return node.op.results()


def touched(step: KernelStep | LibraryStep) -> Iterator[int]:
    """The slots a step reads or writes."""
    if isinstance(step, KernelStep):
        yield from step.slots
    else:
        yield from (slot for slot, _, _ in step.inputs)
        yield from (slot for slot, _ in step.outputs)


def _nbytes(buffer: Buffer) -> int:
    size = buffer.dtype.itemsize
    for n in buffer.shape:
        size *= n
    return size


def _aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN
