"""A recurrent layer as one loop over its steps.

    for t: for u: for b: for j:
        (total_g = 0; for k: total_g += state[b, k] * w[u, k, g, j]    for each gate g
         new[b, u + j], cell[b, u + j] = step(gates[t, b, u + j], total, cell[b, u + j])
         out[t, b, u + j] = new[b, u + j])

Of a block of units all gates are summed together, so that the state's new elements are made while
they are in registers.  Every other step walks the blocks backwards: weights that nearly fill a
cache are in it from the last ones used.  Two states take turns.
"""

from __future__ import annotations

from nbcomp.graph.ir import Node, topological
from nbcomp.graph.op import Input, Recurrence
from nbcomp.graph.passes.groups import Group
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Expr,
    Load,
    Store,
    affine,
    const,
    index_scale,
)
from nbcomp.lowering.elements import Index
from nbcomp.lowering.group import GroupLowering
from nbcomp.lowering.windows import add
from nbcomp.types import TensorType


class Steps(GroupLowering):
    """Loops for one recurrent layer."""

    def __init__(self, group: Group, names: dict[Node, str], free: set[Node]) -> None:
        super().__init__(group, names, free)
        (self.node,) = group.nodes
        assert isinstance(self.node.op, Recurrence)
        self.op = self.node.op

    def body(self) -> None:
        op, (count, steps, batch, hidden) = self.op, self.node.shape
        self.given, *states = (self.memory_of(i) for i in self.node.inputs[: 1 + op.states])
        self.packed, *self.bias = (self.memory_of(i) for i in self.node.inputs[1 + op.states :])
        self.result, dtype = self.outputs[self.node], self.node.type.dtype
        self.turns = [self.temp("state", dtype, (batch, hidden)) for _ in range(2)]
        self.cells = [self.temp("cell", dtype, (batch, hidden)) for _ in range(count - 1)]
        with self.writer.loops(["b", "j"], [batch, hidden], self.location) as at:
            for buffer, first in zip((self.turns[0], *self.cells), states, strict=True):
                self.store(buffer, at, Load(dtype, first, at, self.location))
        self.close_stage()
        with self.writer.loop("t", steps // 2, self.location) as t:
            self.step(add(t, t), 0)
            self.step(add(add(t, t), affine(1)), 1)
        self.close_stage()
        if steps % 2:
            self.step(affine(steps - 1), 0)
            self.close_stage()

    def memory_of(self, node: Node) -> Buffer:
        """The buffer of an operand as it is."""
        strides = element_strides(node)
        assert strides is not None
        return self.buffer(node, strides, "input")

    def placeholders(self) -> None:
        """What becomes of the elements of a unit, as nodes over its gates and states."""
        number, op = TensorType(self.node.type.dtype, ()), self.op

        def made(count: int) -> tuple[Node, ...]:
            return tuple(Node(Input(k, number), (), number) for k in range(count))

        self.parts, self.sums, self.before = made(op.gates), made(op.gates), made(op.states)
        self.after = op.step(self.parts, self.sums, self.before)
        for node in topological(self.after):
            self.elements.uses.update(node.inputs)
        self.elements.uses.update((*self.after, *self.after))  # each is stored in two places

    # ------------------------------------------------------------------------------------- loops

    def step(self, t: Affine, turn: int) -> None:
        """One step, from the state of this turn to the other."""
        _, steps, batch, hidden = self.node.shape
        count, _, _, width = self.packed.shape
        place = add(index_scale(t, -1), affine(steps - 1)) if self.op.backwards else t
        rest = hidden - (count - 1) * width
        whole = count if rest == width else count - 1
        parts = [(0, whole, width), (whole, count - whole, rest)]
        for first, blocks, wide in parts[::-1] if turn else parts:
            if not blocks:
                continue
            with self.writer.loops(["u", "b", "j"], [blocks, batch, wide], self.location) as index:
                for name in (v for i in (t, *index) for v, _ in i.terms):
                    self.writer.depth[name] = len(self.writer.frames) - 1
                u, b, j = index
                last = affine(first + blocks - 1)
                block = add(index_scale(u, -1), last) if turn else add(u, affine(first))
                self.units((place, b), block, j, turn)

    def units(self, at: tuple[Affine, Affine], block: Affine, j: Affine, turn: int) -> None:
        """One unit of the state: its gates, then its new elements."""
        dtype, location, hidden = self.node.type.dtype, self.location, self.node.shape[-1]
        (t, b), unit = at, add(index_scale(block, self.packed.shape[-1]), j)
        self.placeholders()  # anew: the values of others are others
        state, after = self.turns[turn], self.turns[1 - turn]
        totals = [self.local(f"gate{g}", dtype, ()) for g in range(self.op.gates)]
        for total in totals:
            self.writer.add(Store(total, (), const(0, dtype), location))
        with self.writer.loop("k", hidden, location) as k:
            for g, total in enumerate(totals):
                old = Load(dtype, state, (b, k), location)
                weight = Load(dtype, self.packed, (block, k, affine(g), j), location)
                term = Apply(dtype, "multiply", (old, weight), location)
                self.writer.add(Accumulate(total, (), "add", term, location, contract=True))
        for number, total in enumerate(totals):
            gate = add(unit, affine(number * hidden))
            self.known(self.parts[number], Load(dtype, self.given, (t, b, gate), location))
            own: Expr = Load(dtype, total, (), location)
            if self.bias:
                added = Load(dtype, self.bias[0], (gate,), location)
                own = Apply(dtype, "add", (own, added), location)
            self.known(self.sums[number], own)
        self.known(self.before[0], Load(dtype, state, (b, unit), location))
        for cell, node in zip(self.cells, self.before[1:], strict=True):
            self.known(node, Load(dtype, cell, (b, unit), location))
        values = [self.elements.at(node, ()) for node in self.after]
        for number, (buffer, value) in enumerate(zip((after, *self.cells), values, strict=True)):
            self.store(buffer, (b, unit), value)
            self.store(self.result, (affine(number), t, b, unit), value)

    def known(self, node: Node, value: Expr) -> None:
        """The value of a placeholder here."""
        self.elements.finished[node] = lambda _: value

    def store(self, buffer: Buffer, index: Index, value: Expr) -> None:
        self.writer.add(Store(buffer, index, value, self.location))
