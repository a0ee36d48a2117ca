"""Groups while they are being built: which node is in which, what must run before what, and how
two become one.

Knows the order of the graph; whether two groups *may* become one is decided elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbcomp.graph.control import Control
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import (
    Contract,
    Elementwise,
    Library,
    Piecewise,
    Recurrence,
    Reduce,
    View,
    Windowed,
    is_indexed,
)
from nbcomp.graph.passes.groups import Kind
from nbcomp.graph.passes.materialise import storage
from nbcomp.graph.passes.operands import TINY, base_of, is_tiny, source_of

WALK = 16  # instructions that take as long to compile as the loops of one walk


@dataclass(eq=False)
class Draft:
    """A group being built."""

    kind: Kind
    nodes: list[Node]
    space: tuple[int, ...]
    axes: tuple[int, ...] = ()
    components: tuple[int, ...] = ()
    mask: int = 0  # its nodes
    reads: int = 0  # the nodes they read
    before: int = 0  # the nodes of all groups that must run before it
    late: bool = False  # has full-size nodes that need a finished reduction
    costs: Counter[int] = field(default_factory=Counter)  # by the size of the nodes
    walks: int = 0  # reductions that end a walk over their axes

    @property
    def whole(self) -> int:
        """Elements of the space."""
        return math.prod(self.space)

    @property
    def spread(self) -> int:
        """The cost of the values that are spread over more elements."""
        return sum(cost for size, cost in self.costs.items() if size < self.whole)

    @property
    def length(self) -> int:
        """How long its code would be, in instructions per element; each walk has loops."""
        return self.costs.total() + self.walks * WALK

    @property
    def outer(self) -> int:
        """Iterations outside the reduction."""
        kept = (n for k, n in enumerate(self.space) if k not in (*self.axes, *self.components))
        return math.prod(kept)

    @property
    def row(self) -> int:
        """Iterations of the reduction."""
        return math.prod(self.space[k] for k in self.axes)


class Drafts:
    """The groups of a graph so far: `group` of each node, `open` those there are.

    bit: each node as one bit, so that a set of nodes is an int.  ancestors: what each needs.
    stored: nodes that need memory whatever fuses.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.bit = {n: 1 << k for k, n in enumerate(graph.nodes)}
        self.ancestors: dict[Node, int] = {}
        for node in graph.nodes:
            mask = 0
            for i in node.inputs:
                mask |= self.ancestors[i] | self.bit[i]
            self.ancestors[node] = mask
        self.group: dict[Node, Draft] = {}
        self.open: dict[Draft, None] = {}  # a set in the order in which they were made
        self.stored = self._stored()

    def _stored(self) -> set[Node]:
        """Nodes that need memory whatever fuses: results, and what reshapes and libraries read."""
        found = {storage(n) for n in self.graph.outputs}
        for node in self.graph.nodes:
            whole = isinstance(node.op, Library | Contract | Windowed | Recurrence | Control)
            if node.op.name == "reshape" or whole:
                found.update(storage(base_of(i)) for i in node.inputs)
        return found

    def start(self, node: Node) -> Draft:
        """A group of its own for a node, which comes after the groups that it reads."""
        draft = _draft(node, self.bit[node])
        draft.costs[node.type.size] += node.op.cost
        draft.walks = int(draft.kind == "reduce")
        for needed in {self.group.get(source_of(i)) for i in node.inputs} - {None}:
            assert needed is not None
            draft.before |= needed.mask | needed.before
        self.open[draft] = None
        self.group[node] = draft
        return draft

    def add(self, node: Node, draft: Draft) -> None:
        """One more node of a group, with nothing to compute."""
        self.group[node] = draft
        draft.nodes.append(node)
        draft.mask |= self.bit[node]

    def join(
        self,
        first: Draft,
        second: Draft,
        kind: Kind,
        space: tuple[int, ...],
        axes: tuple[int, ...] = (),
        components: tuple[int, ...] = (),
        late: bool = False,
    ) -> Draft:
        """One group in the place of two; what needs one of them now needs all that both need."""
        kept, gone = (first, second) if len(first.nodes) >= len(second.nodes) else (second, first)
        kept.kind, kept.space, kept.axes, kept.components = kind, space, axes, components
        kept.late = late
        kept.nodes += gone.nodes
        kept.mask |= gone.mask
        kept.reads |= gone.reads
        kept.costs += gone.costs
        kept.walks += gone.walks
        kept.before = (kept.before | gone.before) & ~kept.mask
        for n in gone.nodes:
            self.group[n] = kept
        del self.open[gone]
        for other in self.open:
            if other.before & kept.mask:
                other.before |= kept.mask | kept.before
        return kept

    def cyclic(self, *together: Draft) -> bool:
        """Whether some other group needs one of these and is needed by one of them."""
        mask = before = 0
        for draft in together:
            mask |= draft.mask
            before |= draft.before
        others = (d for d in self.open if d not in together)
        return any(d.mask & before and d.before & mask for d in others)

    def private(self, producer: Draft, draft: Draft) -> bool:
        """Whether nobody else reads the producer's nodes and none is needed in memory."""
        both = producer.mask | draft.mask
        for n in producer.nodes:
            if n in self.stored:
                return False
            for user in self.real_users(n):
                if not self.bit[user] & both:
                    return False
        return True

    def real_users(self, node: Node) -> Iterator[Node]:
        """Who reads the node, through views."""
        for user in self.graph.users[node]:
            if isinstance(user.op, View):
                yield from self.real_users(user)
            else:
                yield user

    def price(self, node: Node, inside: int) -> int:
        """The cost of one element, computed from what is outside."""
        needed = (self.ancestors[node] | self.bit[node]) & inside
        size = node.type.size
        return sum(n.op.cost for n in self.group if self.bit[n] & needed and n.type.size == size)

    def reads(self, draft: Draft) -> set[Node]:
        """Arrays of the whole space that a group reads from memory."""
        found = {base_of(i) for n in draft.nodes for i in n.inputs if i.shape == draft.space}
        return {n for n in found if not self.bit[n] & draft.mask and n.shape == draft.space}


def _draft(node: Node, bit: int) -> Draft:
    op = node.op
    if isinstance(op, Elementwise):
        return Draft("map", [node], node.shape, mask=bit)
    if isinstance(op, Reduce):
        space = node.inputs[0].shape
        if is_tiny(node):
            return Draft("map", [node], space, components=op.axes, mask=bit)
        return Draft("reduce", [node], space, op.axes, _short_tail(op, space), mask=bit)
    if isinstance(op, Piecewise):
        return Draft("pieces", [node], node.shape, mask=bit)
    kind: Kind = "contract" if isinstance(op, Contract | Windowed) else "library"
    if is_indexed(node):
        kind = "indexed"
    if isinstance(op, Control):
        kind = "control"
    if isinstance(op, Recurrence):
        kind = "recurrence"
    return Draft(kind, [node], node.shape, mask=bit)


def _short_tail(op: Reduce, space: tuple[int, ...]) -> tuple[int, ...]:
    """The axes after the reduced ones, if they are short enough to be written out.

    Each element is then added to one of a few sums, in one walk over memory.
    """
    tail = tuple(range(max(op.axes) + 1, len(space)))
    short = 1 < math.prod(space[k] for k in tail) <= TINY < math.prod(space)
    return tail if short else ()
