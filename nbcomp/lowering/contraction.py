"""A matrix product as the loops of a textbook, with what follows it element by element.

    for i: for j: (total = 0; for k: total += a[i, k] * b[k, j]; out[i, j] = f(total))

One perfect nest over the result, whatever the operands' layout: tiles, packing and the order of
loops are the schedule's.
"""

from __future__ import annotations

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract
from nbcomp.graph.passes.groups import Group
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.bfloat16 import UINT16, widened
from nbcomp.loop.grammar import Accumulate, Affine, Apply, Buffer, Cast, Expr, Load, Store, const
from nbcomp.lowering.elements import Index, broadcast_index
from nbcomp.lowering.group import AXES, GroupLowering
from nbcomp.types import DType


def is_contraction(group: Group) -> bool:
    """Whether a group is one product that loops are generated for, and elementwise operators."""
    products = [n for n in group.nodes if isinstance(n.op, Contract)]
    if len(products) != 1 or not products[0].op.generated or group.components:  # type: ignore[attr-defined]
        return False
    shape = products[0].shape
    return group.kind in ("map", "contract") and all(n.shape == shape for n in group.outputs)


def wide(factor: Expr, dtype: DType) -> Expr:
    """A factor in the dtype of the sums."""
    if factor.dtype == dtype:
        return factor
    return widened(factor) if factor.dtype == UINT16 else Cast(dtype, factor)


class Contraction(GroupLowering):
    """Loops for one product and its epilogue."""

    def contract(self, node: Node) -> None:
        """Nothing yet: the product is computed in the loops of its result.

        An operand in memory that something else here reads as well, the other one or what follows,
        has a buffer of its own, so that the schedule may copy each as its reader needs it.
        """
        self.own: list[dict[Node, Buffer]] = []
        for operand in node.inputs:
            base = base_of(operand)
            shared = self.elements.memory.get(base)
            self.own.append({base: self.buffer(base, shared.strides, "input")} if shared else {})
            self.reachable(operand)
            self.elements.uses[base] = 1  # read in one place, whatever its size
        self.product = node

    def body(self) -> None:
        product = self.product
        *batch, rows, columns = product.shape
        names = [f"b{k}" for k in range(len(batch))]
        with self.writer.loops(
            [*names, AXES[0], AXES[1]], [*batch, rows, columns], self.location
        ) as index:
            # Nothing is computed outside the innermost loop, which would no longer be a perfect
            # nest: what does not depend on a loop leaves it when code is generated.
            self.writer.floor = len(self.writer.frames) - 1
            for name in (v for i in index for v, _ in i.terms):
                self.writer.depth[name] = self.writer.floor
            self.add_up(product, index)
            for node, buffer in self.outputs.items():
                value = self.elements.at(node, index)
                self.writer.add(Store(buffer, index, value, node.location))
        self.writer.floor = 0
        self.close_stage()

    def add_up(self, product: Node, index: tuple[Affine, ...]) -> None:
        """One element of the product, in a local."""
        a, b = product.inputs
        *stack, i, j = index
        dtype = product.type.dtype
        total = self.local(product.name or "total", dtype, ())
        self.writer.add(Store(total, (), const(0, dtype), product.location))
        with self.writer.loop("k", a.shape[-1], product.location) as k:
            left = self.factor(0, (*broadcast_index(tuple(stack), a.shape[:-2]), i, k))
            right = self.factor(1, (*broadcast_index(tuple(stack), b.shape[:-2]), k, j))
            term = Apply(dtype, "multiply", (left, right), product.location)
            self.writer.add(Accumulate(total, (), "add", term, product.location, contract=True))
        self.elements.finished[product] = lambda _: Load(dtype, total, (), product.location)

    def factor(self, side: int, index: Index) -> Expr:
        """An element of an operand, from its own buffer, in the dtype of the sums."""
        memory = self.elements.memory
        self.elements.memory = memory | self.own[side]
        value = self.elements.at(self.product.inputs[side], index)
        self.elements.memory = memory
        return wide(value, self.product.type.dtype)
