"""What lowering any group over windows has in common: a sum (or maximum) per window in a perfect
nest, values per channel computed once, and what follows an element while it is in a register.

Knows the group; not how images lie in memory.
"""

from __future__ import annotations

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Windowed
from nbcomp.graph.passes.groups import Group
from nbcomp.graph.passes.nests import CHEAP
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.grammar import Affine, Buffer, Load, Store, const, neutral
from nbcomp.lowering.elements import Index
from nbcomp.lowering.group import GroupLowering, Orders


def windowed(group: Group) -> Node | None:
    """The node of a group whose elements are made from windows, if there is one."""
    return next((n for n in group.nodes if isinstance(n.op, Windowed)), None)


class WindowSums(GroupLowering):
    """Loops for one operator over windows and its epilogue."""

    def __init__(self, group: Group, names: dict[Node, str], free: Orders) -> None:
        super().__init__(group, names, free)
        node = windowed(group)
        assert node is not None
        assert isinstance(node.op, Windowed)
        self.node, self.op = node, node.op
        self.rank = len(self.op.kernel)

    def per_channel(self) -> None:
        """A stage for what is dear and the same along a channel, such as a scale: once each."""
        for node in self.group.nodes:
            readers = [n for n in self.group.nodes if node in map(base_of, n.inputs)]
            if node in self.outputs or not any(n.shape == self.node.shape for n in readers):
                continue
            if not self.same_in_space(node) or self.work(node) < CHEAP:
                continue
            buffer = self.temp(node.name or node.op.name, node.type.dtype, node.shape)
            names = [f"c{k}" for k in range(len(node.shape))]
            with self.writer.loops(names, list(node.shape), node.location) as index:
                value = self.elements.at(node, index)
                self.writer.add(Store(buffer, index, value, node.location))
            self.close_stage()
            self.writer.complete.add(buffer.memory)
            self.elements.memory[node] = buffer

    def same_in_space(self, node: Node) -> bool:
        """Whether a node has one value for all places of a channel."""
        space = node.shape[max(0, len(node.shape) - self.rank) :]
        return all(n == 1 for n in space)

    def work(self, node: Node) -> int:
        """The cost of an element, from what is in memory."""
        if node not in self.inside or node in self.elements.memory:
            return 0
        return node.op.cost + sum(self.work(base_of(i)) for i in node.inputs)

    def perfect(self, index: Index) -> None:
        """Nothing is computed outside the innermost loop: the nest is perfect (`contraction`)."""
        for name in (v for i in index if isinstance(i, Affine) for v, _ in i.terms):
            self.writer.depth[name] = len(self.writer.frames) - 1

    def start(self) -> Buffer:
        """A local for what is combined over a window."""
        fn, dtype = self.op.fn, self.node.type.dtype
        total = self.local(self.node.name or "total", dtype, ())
        first = const(0 if fn == "add" else neutral(fn, dtype), dtype)
        self.writer.add(Store(total, (), first, self.node.location))
        location = self.node.location
        self.elements.finished[self.node] = lambda _: Load(dtype, total, (), location)
        return total
