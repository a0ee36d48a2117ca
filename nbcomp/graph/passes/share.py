"""Groups that compute the same from different values become one kernel, called several times.

The layers of a network, the steps of a loop that was written out: what is equal but for the values
it reads is lowered, scheduled, translated and shown once.  Groups with one name are one kernel.
Knows groups and what is compared; it must not know what a kernel is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Source, View
from nbcomp.graph.passes.groups import FusedGraph, Group
from nbcomp.graph.passes.materialise import element_strides, storage
from nbcomp.record import remark
from nbcomp.types import contiguous_strides

ALONE = ("library", "control")  # kinds of groups that become no kernel of their own


def sharing(orders: Mapping[int, tuple[int, ...]]) -> Callable[[FusedGraph], FusedGraph]:
    """The pass; orders: the axes of an output (by position), outermost in memory first, where they
    are known."""

    def share(fused: FusedGraph) -> FusedGraph:
        """Give groups that compute the same one kernel."""
        return _shared(fused, orders)

    return share


def _shared(fused: FusedGraph, orders: Mapping[int, tuple[int, ...]]) -> FusedGraph:
    """They have the same operators on values of the same types and layouts, from the same places of
    the source.  Groups stay apart whose results are laid out in another way than values within.
    """
    turned = {storage(n) for k, n in enumerate(fused.graph.outputs) if not _plain(n, orders.get(k))}
    first: dict[Hashable, Group] = {}
    groups = []
    for group in fused.groups:
        apart = group.kind in ALONE or not turned.isdisjoint(map(storage, group.outputs))
        like = None if apart else first.setdefault(_key(group), group)
        groups.append(replace(group, name=like.name) if like else group)
    for group, calls in _repeated(groups):
        place = group.outputs[-1].location if group.outputs else None
        remark("applied", "share", f"one kernel, {group.name}, is called {calls} times", place)
    return replace(fused, groups=tuple(groups))


def _plain(output: Node, order: tuple[int, ...] | None) -> bool:
    """Whether a result of the program is in C order for certain."""
    return len(output.shape) < 2 or order == tuple(range(len(output.shape)))


def _repeated(groups: list[Group]) -> list[tuple[Group, int]]:
    """The groups that share a kernel, each name once, with how many they are."""
    calls = Counter(g.name for g in groups)
    named = {g.name: g for g in reversed(groups)}
    return [(named[name], n) for name, n in calls.items() if n > 1]


def corresponding(group: Group, like: Group) -> dict[Node, Node]:
    """For each node of a group that shares the kernel of another, and each it reads, the other's.

    The keys are the nodes of `like`.
    """
    return dict(zip(_Walk(like).order, _Walk(group).order, strict=True))


def _key(group: Group) -> Hashable:
    """What equal groups have in common; groups that cannot be compared are equal to themselves."""
    key = _Walk(group).key
    try:
        hash(key)
    except TypeError:  # an operator with something in it that has no hash
        return group
    return key


class _Walk:
    """The nodes of a group and what they read, numbered in the order in which they are met.

    key: all there is to know about them but which they are.
    """

    def __init__(self, group: Group) -> None:
        self.order: dict[Node, int] = {}
        self.inside = set(group.nodes)
        self.found: list[Hashable] = [group.kind, group.space, group.axes, group.components]
        for node in group.nodes:
            for operand in node.inputs:
                self.read(operand)
            self.computed(node)
        self.found.append(tuple(self.order[n] for n in group.outputs))
        self.key = tuple(self.found)

    def read(self, operand: Node) -> None:
        """Number what is read from outside, behind the views it is read through."""
        views = []
        while operand not in self.order and isinstance(operand.op, View):
            if operand in self.inside or len(operand.inputs) != 1:
                break
            views.append(operand)
            operand = operand.inputs[0]
        if operand not in self.order and operand not in self.inside:
            self.order[operand] = len(self.order)
            self.found.append(self.leaf(operand))
        for view in reversed(views):
            self.computed(view)

    def computed(self, node: Node) -> None:
        """Number a node, by its operator and operands."""
        if node not in self.order:
            operands = tuple(self.order.get(n, -1) for n in node.inputs)
            self.order[node] = len(self.order)
            self.found.append((node.op, node.type, operands, node.location))

    def leaf(self, node: Node) -> Hashable:
        """What is known of a value from outside: that it is a number, or how its memory lies."""
        if isinstance(node.op, Constant) and not node.shape:
            return node.type, node.op.value.tobytes()  # bytes tell -0.0 from 0.0
        if isinstance(node.op, Source):
            return node.op, node.type
        # Results may take over memory, but not that of constants.
        fixed = isinstance(node.op, Constant)
        return node.type, element_strides(node) or contiguous_strides(node.shape), fixed
