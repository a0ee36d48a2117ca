"""A recurrent layer as one loop over its steps.

    for t: for p: for u: for b: for j:
        (total_g = 0; for k: total_g += out[t, b, k] * w[u, k, g, j]    for each gate g
         out[t + 1, b, u + j], cell = step(gates[t + 1, b, u + j], total, cell[t, b, u + j]))

Of a block of units all gates are summed together, so that the state's new elements are made while
they are in registers.  The states are read where the step before has left them, in the result; the
first step reads the given ones.  The cores share each step, block by block of units; sequences of a
batch know nothing of each other, so that parts p of a large one go through all steps by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
from nbcomp.lowering.group import GroupLowering, Orders
from nbcomp.lowering.windows import add
from nbcomp.sizes import is_open
from nbcomp.types import TensorType

TOGETHER, FEW = 8, 4  # sequences of a part, at best; fewer than that are one part


class Steps(GroupLowering):
    """Loops for one recurrent layer."""

    def __init__(self, group: Group, names: dict[Node, str], free: Orders) -> None:
        super().__init__(group, names, free)
        (self.node,) = group.nodes
        assert isinstance(self.node.op, Recurrence)
        self.op = self.node.op

    def body(self) -> None:
        op, steps = self.op, self.node.shape[1]
        self.given, *self.states = (self.memory_of(i) for i in self.node.inputs[: 1 + op.states])
        self.packed, *self.bias = (self.memory_of(i) for i in self.node.inputs[1 + op.states :])
        self.result = self.outputs[self.node]
        with self.part():
            self.step(affine(0), None)
        self.close_stage()
        with self.part(), self.writer.loop("t", steps - 1, self.location) as t:
            self.step(add(t, affine(1)), t)
        self.close_stage()

    @contextmanager
    def part(self) -> Iterator[None]:
        """A loop over the parts of the batch."""
        batch = self.node.shape[2]
        parts = _parts(batch)
        self.length = batch // parts
        with self.writer.loop("p", parts, self.location) as p:
            self.first = add(index_scale(p, self.length), affine(0))
            yield

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
        self.elements.uses.update(self.after)

    # ------------------------------------------------------------------------------------- loops

    def step(self, t: Affine, before: Affine | None) -> None:
        """One step, from the states of the one before; None: from the given ones."""
        hidden = self.node.shape[-1]
        count, _, _, width = self.packed.shape
        rest = hidden - (count - 1) * width
        whole = count if rest == width else count - 1
        for first, blocks, wide in ((0, whole, width), (whole, count - whole, rest)):
            if not blocks:
                continue
            extents = [blocks, self.length, wide]
            with self.writer.loops(["u", "b", "j"], extents, self.location) as index:
                for name in (v for i in (self.first, t, *index) for v, _ in i.terms):
                    self.writer.depth[name] = len(self.writer.frames) - 1
                u, b, j = index
                place = self.place(t), add(self.first, b)
                self.units(place, None if before is None else self.place(before), (u, first, j))

    def place(self, t: Affine) -> Affine:
        """Where a step is in the sequence."""
        steps = self.node.shape[1]
        return add(index_scale(t, -1), affine(steps - 1)) if self.op.backwards else t

    def units(
        self,
        at: tuple[Affine, Affine],
        before: Affine | None,
        place: tuple[Affine, int, Affine],
    ) -> None:
        """One unit of the state: its gates, then its new elements.  place: the block, counted from
        one on, and the unit in it."""
        dtype, location, hidden = self.node.type.dtype, self.location, self.node.shape[-1]
        (t, b), (u, first, j) = at, place
        block = add(u, affine(first))
        unit = add(index_scale(block, self.packed.shape[-1]), j)

        def state(number: int, k: Affine) -> Load:
            if before is None:
                return Load(dtype, self.states[number], (b, k), location)
            return Load(dtype, self.result, (affine(number), before, b, k), location)

        self.placeholders()  # anew: the values of others are others
        totals = [self.local(f"gate{g}", dtype, ()) for g in range(self.op.gates)]
        for total in totals:
            self.writer.add(Store(total, (), const(0, dtype), location))
        with self.writer.loop("k", hidden, location) as k:
            for g, total in enumerate(totals):
                weight = Load(dtype, self.packed, (block, k, affine(g), j), location)
                term = Apply(dtype, "multiply", (state(0, k), weight), location)
                self.writer.add(Accumulate(total, (), "add", term, location, contract=True))
        for number, total in enumerate(totals):
            gate = add(unit, affine(number * hidden))
            self.known(self.parts[number], Load(dtype, self.given, (t, b, gate), location))
            own: Expr = Load(dtype, total, (), location)
            if self.bias:
                added = Load(dtype, self.bias[0], (gate,), location)
                own = Apply(dtype, "add", (own, added), location)
            self.known(self.sums[number], own)
        for number, node in enumerate(self.before):
            self.known(node, state(number, unit))
        for number, value in enumerate([self.elements.at(node, ()) for node in self.after]):
            index = (affine(number), t, b, unit)
            self.writer.add(Store(self.result, index, value, location))

    def known(self, node: Node, value: Expr) -> None:
        """The value of a placeholder here."""
        self.elements.finished[node] = lambda _: value


def _parts(batch: int) -> int:
    """How many parts of a batch go through all steps by themselves; an open one stays together."""
    if is_open((batch,)) or batch < FEW:
        return 1
    most = max(batch // TOGETHER, 2)
    return next(n for n in range(most, 0, -1) if batch % n == 0)
