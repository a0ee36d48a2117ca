"""Fusion: which nodes are computed by one kernel, in one walk over memory.

A `Group` has a space (the shape its loops cover), reduced axes, and short component axes (at most
TINY long) that are written out.  Nodes are visited in program order; each starts a group of its own
and then absorbs the groups of its operands where that is legal and no element is computed more
often than NumPy would compute it, unless computing it again is cheaper than storing it.  Every
refusal is a remark in the user's names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from nbcomp.graph.control import Control, Result
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import (
    ChannelsLast,
    Constant,
    Contract,
    Elementwise,
    Input,
    Library,
    Piecewise,
    Recurrence,
    Reduce,
    Source,
    View,
    Windowed,
)
from nbcomp.graph.passes import attention
from nbcomp.graph.passes.materialise import element_strides, storage
from nbcomp.graph.passes.outcome import outcome
from nbcomp.record import Remark
from nbcomp.sizes import among, hint

TINY = 4  # a reduction this short is an expression
CHEAP = 2  # instructions: cheaper to compute again than to store and load
ROW_BYTES = 256 << 10  # what a kernel keeps of one row between its passes over the row
SIBLINGS = 4096  # elements from which a second walk over an array is worth saving
SERIAL_SIZE = 1 << 15  # elements one core may walk several times without a second core helping

# The change that would help, by the reason of a refusal.
HINTS = {
    "the reduction runs across rows, and its result is complete only at the end": "reduced along "
    "the last axis of an array stored the other way round, each row would be complete at once",
    "its result is read in another order": "a reduction along the axis that is contiguous in both "
    "would keep the order",
    "they run over different shapes": "operands of one shape would share a loop",
}

# Kinds of groups that nothing joins.
APART = {
    "library": "a library routine works on whole arrays",
    "control": "loops are run as they were written",
    "recurrence": "a loop over steps works on whole arrays",
}

Kind = Literal[
    "map", "reduce", "attention", "pieces", "contract", "recurrence", "library", "control"
]


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes computed by one kernel: `nodes` in order, `outputs` are written to memory.

    space: the shape the loops cover; axes: those reduced; components: short axes written out.
    """

    name: str
    kind: Kind
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    space: tuple[int, ...]
    axes: tuple[int, ...]
    components: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FusedGraph:
    """A graph and its groups in an order in which they can run."""

    graph: Graph
    groups: tuple[Group, ...]
    remarks: tuple[Remark, ...]

    def __str__(self) -> str:
        from nbcomp.graph.printer import node_names

        names = node_names(self.graph)
        lines = [str(self.graph), ""]
        for group in self.groups:
            members = ", ".join(f"%{names[n]}" for n in group.nodes)
            outputs = ", ".join(f"%{names[n]}" for n in group.outputs)
            lines.append(f"kernel {group.name} ({group.kind}): {members} -> {outputs}")
        return "\n".join(lines)


@dataclass(eq=False)
class _Draft:
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

    @property
    def whole(self) -> int:
        """Elements of the space."""
        return math.prod(self.space)

    @property
    def spread(self) -> int:
        """The cost of the values that are spread over more elements."""
        return sum(cost for size, cost in self.costs.items() if size < self.whole)

    @property
    def outer(self) -> int:
        """Iterations outside the reduction."""
        kept = (n for k, n in enumerate(self.space) if k not in (*self.axes, *self.components))
        return math.prod(kept)

    @property
    def row(self) -> int:
        """Iterations of the reduction."""
        return math.prod(self.space[k] for k in self.axes)


def fuse(graph: Graph) -> FusedGraph:
    """Group nodes into kernels: chains, and reductions with what feeds and follows them."""
    return _Fuser(graph).run()


def separate(graph: Graph) -> FusedGraph:
    """Give each node a kernel of its own: the program as NumPy runs it, array by array."""
    return _Fuser(graph).run(merging=False)


def base_of(node: Node) -> Node:
    """The computing node behind views (not reshapes, which are other memory)."""
    while isinstance(node.op, View):
        node = node.inputs[0]
    return node


def source_of(node: Node) -> Node:
    """The computing node behind views and reshapes."""
    while isinstance(node.op, View) or node.op.name == "reshape":
        node = node.inputs[0]
    return node


def inlined(node: Node) -> bool:
    """Never computed on its own: read in place wherever it is used."""
    return isinstance(node.op, Input | Constant | View | Source) or node.op.name == "reshape"


class _Fuser:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.bit = {n: 1 << k for k, n in enumerate(graph.nodes)}
        self.ancestors: dict[Node, int] = {}
        for node in graph.nodes:
            mask = 0
            for i in node.inputs:
                mask |= self.ancestors[i] | self.bit[i]
            self.ancestors[node] = mask
        self.group: dict[Node, _Draft] = {}
        self.drafts: dict[_Draft, None] = {}  # a set in the order in which they were made
        self.refused: list[tuple[Node, Node, Remark]] = []
        self.stored = self._stored()

    def _stored(self) -> set[Node]:
        """Nodes that need memory whatever fuses: results, and what reshapes and libraries read."""
        found = {storage(n) for n in self.graph.outputs}
        for node in self.graph.nodes:
            whole = isinstance(node.op, Library | Contract | Windowed | Recurrence | Control)
            if node.op.name == "reshape" or whole:
                found.update(storage(base_of(i)) for i in node.inputs)
        return found

    # ------------------------------------------------------------------------------------ driving

    def run(self, merging: bool = True) -> FusedGraph:
        for node in self.graph.nodes:
            if not inlined(node):
                self.visit(node, merging)
        if merging:
            self.join_siblings()
            self.join_attention()
            self.absorb_contracts()
        # What was refused at first may have come together in the end.
        apart = (r for a, b, r in self.refused if self.group[a] is not self.group[b])
        groups = tuple(self.finish())
        return FusedGraph(self.graph, groups, (*apart, *outcome(self.graph, groups)))

    def visit(self, node: Node, merging: bool) -> None:
        if isinstance(node.op, Result):
            draft = self.group[node] = self.group[node.inputs[0]]
            draft.nodes.append(node)
            draft.mask |= self.bit[node]
            return
        draft = self.draft(node)
        draft.costs[node.type.size] += node.op.cost
        for needed in {self.group.get(source_of(i)) for i in node.inputs} - {None}:
            assert needed is not None
            draft.before |= needed.mask | needed.before
        self.drafts[draft] = None
        self.group[node] = draft
        if merging:
            draft = self.absorb_producers(node, draft)
        for i in node.inputs:  # not earlier: what `node` reads is looked at one by one
            draft.reads |= self.bit[source_of(i)]

    def absorb_producers(self, node: Node, draft: _Draft) -> _Draft:
        """The group of a new node, with all those of its operands that may join."""
        producers = dict.fromkeys(
            self.group[b] for b in (base_of(i) for i in node.inputs) if b in self.group
        )
        for producer in sorted(producers, key=lambda p: -math.prod(p.space)):
            if producer is draft or self.group[producer.nodes[0]] is not producer:
                continue
            why = self.why_not(node, draft, producer)
            if why:
                self.refuse(node, producer, why)
            else:
                draft = self.merge(producer, draft, node)
        return draft

    def draft(self, node: Node) -> _Draft:
        op, bit = node.op, self.bit[node]
        if isinstance(op, Elementwise):
            return _Draft("map", [node], node.shape, mask=bit)
        if isinstance(op, Reduce):
            space = node.inputs[0].shape
            if _tiny(node):
                return _Draft("map", [node], space, components=op.axes, mask=bit)
            return _Draft("reduce", [node], space, op.axes, _short_tail(op, space), mask=bit)
        if isinstance(op, Piecewise):
            return _Draft("pieces", [node], node.shape, mask=bit)
        kind: Kind = "contract" if isinstance(op, Contract | Windowed) else "library"
        if isinstance(op, Control):
            kind = "control"
        if isinstance(op, Recurrence):
            kind = "recurrence"
        return _Draft(kind, [node], node.shape, mask=bit)

    def late(self, node: Node, draft: _Draft, producer: _Draft) -> bool:
        """Whether the two together have full-size nodes that need a finished reduction."""
        full = bool(producer.axes) and self.level(node, producer) == "full"
        return full or producer.late or draft.late

    def merge(self, producer: _Draft, draft: _Draft, node: Node) -> _Draft:
        """One group of both; the larger space and the reduction carry over."""
        if draft.kind == "pieces":
            return self.join(producer, draft, "pieces", draft.space)
        reducing = producer if producer.axes else draft
        wide = producer if producer.axes or producer.components else draft
        return self.join(
            producer,
            draft,
            "reduce" if reducing.axes else "map",
            wide.space,
            reducing.axes,
            producer.components or draft.components,
            self.late(node, draft, producer),
        )

    def join(
        self,
        first: _Draft,
        second: _Draft,
        kind: Kind,
        space: tuple[int, ...],
        axes: tuple[int, ...] = (),
        components: tuple[int, ...] = (),
        late: bool = False,
    ) -> _Draft:
        """One group in the place of two; what needs one of them now needs all that both need."""
        kept, gone = (first, second) if len(first.nodes) >= len(second.nodes) else (second, first)
        kept.kind, kept.space, kept.axes, kept.components = kind, space, axes, components
        kept.late = late
        kept.nodes += gone.nodes
        kept.mask |= gone.mask
        kept.reads |= gone.reads
        kept.costs += gone.costs
        kept.before = (kept.before | gone.before) & ~kept.mask
        for n in gone.nodes:
            self.group[n] = kept
        del self.drafts[gone]
        for other in self.drafts:
            if other.before & kept.mask:
                other.before |= kept.mask | kept.before
        return kept

    def refuse(self, node: Node, producer: _Draft, why: str) -> None:
        last = max(producer.nodes, key=self.bit.__getitem__)
        reason = f"{last.title} and {node.title} are kept apart: {why}"
        made = Remark("missed", "fusion", reason, node.location, HINTS.get(why, ""))
        self.refused.append((last, node, made))

    # ------------------------------------------------------------------------------------ legality

    def why_not(self, node: Node, draft: _Draft, producer: _Draft) -> str:
        """Why the producer cannot join the group of `node`; empty if it can."""
        for kind, why in APART.items():
            if kind in (producer.kind, draft.kind):
                return why
        if producer.kind == "contract":
            return "the product is needed whole first"  # may join at the end (`absorb_contracts`)
        if draft.kind == "contract":
            return "a matrix product reads its operands from memory"
        if producer.kind == "pieces":
            return "it is put together from parts, which are written first"
        if self.cyclic(draft, producer):
            return "a step between them needs all of the first"
        if self.tangled(draft, producer):
            return "they need each other's results in another order"
        if draft.kind == "pieces":
            return self.into_pieces(node, draft, producer)
        if producer.axes:
            why = self.after_reduction(node, draft, producer)
        else:
            why = self.map_into(node, draft, producer)
        return why or self.spread_anew(node, draft, producer)

    def cyclic(self, draft: _Draft, producer: _Draft) -> bool:
        """Whether some group outside both needs one of them and is needed by one of them."""
        both = draft.mask | producer.mask
        before = draft.before | producer.before
        others = (d for d in self.drafts if d is not draft and d is not producer)
        return any(d.mask & before and d.before & both for d in others)

    def tangled(self, draft: _Draft, producer: _Draft) -> bool:
        """Whether more than the node being visited reads across them: that was refused before."""
        return bool(producer.reads & draft.mask or draft.reads & producer.mask)

    def level(self, node: Node, draft: _Draft) -> str:
        """Where a result sits in a group's space: "full", "row" (reduced) or "" (elsewhere)."""
        if _matches(node.shape, draft.space, draft.components):
            return "full"
        if draft.axes and _matches(
            node.shape, draft.space, (*draft.axes, *draft.components), draft.axes
        ):
            return "row"
        return ""

    def map_into(self, node: Node, draft: _Draft, producer: _Draft) -> str:
        """A producer without reduction, read by `node`."""
        space = draft.space
        seen = [i for i in node.inputs if self.group.get(base_of(i)) is producer]
        if producer.components:
            return self.components_into(draft, producer, seen)
        if all(map(_aligned, seen)):
            if draft.components and _matches(producer.space, space, draft.components):
                return ""
            if producer.space == space and all(i.shape == space for i in seen):
                return ""
        if not all(map(_aligned, seen)) and _follows_windows(producer):
            return "it is computed while what it is made from is in registers"
        paths = {_path(i) for i in seen}
        if self.private(producer, draft):
            cheap = sum(n.op.cost for n in producer.nodes) <= CHEAP
            nest = _Nest.of(draft)
            once = all(nest.evaluations(i) <= base_of(i).type.size for i in seen)
            in_order = all(map(_aligned, seen)) or producer.spread <= CHEAP
            if cheap or (len(paths) == 1 and once and in_order):
                return ""
        if len(paths) > 1:
            return f"its elements are read {len(paths)} times, at different places"
        return _too_often(seen, draft)

    def components_into(self, draft: _Draft, producer: _Draft, seen: list[Node]) -> str:
        """A producer with short axes written out."""
        space = draft.space
        fits = _matches(space, producer.space, producer.components) or space == producer.space
        same = (draft.components, space) == (producer.components, producer.space)
        if draft.components and not same:
            fits = False
        if len(space) == len(producer.space) and set(draft.axes) & set(producer.components):
            return "an axis is written out in one and reduced in the other"
        if draft.axes and space != producer.space:
            # The axes are those of the draft's space: right in both if the components are last.
            fits &= min(producer.components) == len(producer.space) - len(producer.components)
        if not fits:
            return "they run over different shapes"
        if not all(map(_aligned, seen)):
            return "its result is read in another order"
        if len(space) == len(producer.space) and not all(
            _spread_along(i, producer.components, producer.space) for i in seen
        ):
            return "its result is spread along another axis than the one reduced"
        return ""

    def spread_anew(self, node: Node, draft: _Draft, producer: _Draft) -> str:
        """Why not, because of what a reduction's order of loops would compute again and again."""
        axes = producer.axes or draft.axes
        if not axes or draft.spread + producer.spread <= CHEAP:
            return ""
        wide = producer if producer.axes or producer.components else draft
        components = producer.components or draft.components
        nest = _Nest.made(wide.space, axes, components, self.late(node, draft, producer))
        inside = draft.mask | producer.mask
        for user in (*producer.nodes, *draft.nodes):
            for seen in user.inputs if user.type.size >= wide.whole else ():
                base = base_of(seen)
                if not self.bit[base] & inside or base.type.size >= wide.whole:
                    continue
                again = nest.evaluations(seen) > base.type.size
                if again and self.price(base, inside) > CHEAP:
                    return f"{base.title} would be computed more than once"
        return ""

    def price(self, node: Node, inside: int) -> int:
        """The cost of one element, computed from what is outside."""
        needed = (self.ancestors[node] | self.bit[node]) & inside
        size = node.type.size
        return sum(n.op.cost for n in self.group if self.bit[n] & needed and n.type.size == size)

    def private(self, producer: _Draft, draft: _Draft) -> bool:
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

    def into_pieces(self, node: Node, draft: _Draft, producer: _Draft) -> str:
        if producer.axes or producer.components:
            return "it is reduced first"
        seen = [i for i in node.inputs if self.group.get(base_of(i)) is producer]
        if len({_path(i) for i in seen}) > 1 or len(seen) > 1:
            return "its elements are read at several places"
        if not self.private(producer, draft):
            return "it is needed elsewhere too"
        if _piece_evaluations(node, seen[0]) > base_of(seen[0]).type.size:
            return "it would be computed more than once"
        return ""

    def after_reduction(self, node: Node, draft: _Draft, producer: _Draft) -> str:
        """The producer reduces; `node` follows it."""
        if draft.axes and (draft.axes != producer.axes or draft.space != producer.space):
            return f"it reduces {_axes(draft)}, after a reduction of {_axes(producer)}"
        if draft.components and draft.components != producer.components:
            return "they run over different shapes"
        if any(self.group.get(base_of(i)) is producer and not _aligned(i) for i in node.inputs):
            return "its result is read in another order"
        level = self.level(node, producer)
        if isinstance(node.op, Reduce):
            level = "full" if draft.axes or draft.components else ""
        if not level:
            return f"it runs over {_dims(node.shape)}, the reduction over {_dims(producer.space)}"
        if level == "row":
            return ""
        if not all(self.lined_up(i, producer) for i in node.inputs):
            return "its result is spread along another axis than the one reduced"
        if not self.uses_result(node, producer):
            return ""
        return self.second_walk(node, producer)

    def lined_up(self, seen: Node, producer: _Draft) -> bool:
        """Whether a reduced operand is broadcast along just the axes that were reduced."""
        base = base_of(seen)
        if self.group.get(base) is not producer or self.level(base, producer) != "row":
            return True
        return _spread_along(seen, producer.axes, producer.space)

    def uses_result(self, node: Node, producer: _Draft) -> bool:
        """Whether the node needs a finished reduction of the group, or what comes after one."""
        reduces = 0
        for n in producer.nodes:
            if isinstance(n.op, Reduce) and n.op.axes == producer.axes and not _tiny(n):
                reduces |= self.bit[n]
        return bool(self.ancestors[node] & reduces)

    def second_walk(self, node: Node, producer: _Draft) -> str:
        """Why not walk the same rows again: it pays while a row stays cached and cores are busy."""
        kept = tuple(k for k in range(len(producer.space)) if k not in producer.components)
        trailing = kept[len(kept) - len(producer.axes) :]
        size = math.prod(producer.space)
        inner = math.prod(producer.space[k] for k in kept if k > max(producer.axes))
        if producer.axes != trailing and (inner > TINY or size > SERIAL_SIZE):
            return "the reduction runs across rows, and its result is complete only at the end"
        if producer.row * node.type.dtype.itemsize > ROW_BYTES:
            return f"one row of {producer.row:,} elements does not stay in the cache"
        if producer.outer < 2 and size > SERIAL_SIZE:
            return "every core needs the finished reduction first"
        return ""

    # -------------------------------------------------------------------------------- after merging

    def join_siblings(self) -> None:
        """Groups that walk over the same array, neither needing the other, share the walk."""
        waiting = list(self.drafts)
        while waiting:
            first = waiting.pop(0)
            second = next((d for d in waiting if self.siblings(first, d)), None)
            if second is not None:
                waiting[waiting.index(second)] = self.join(
                    first,
                    second,
                    first.kind,
                    first.space,
                    first.axes,
                    first.components,
                    first.late or second.late,
                )

    def siblings(self, first: _Draft, second: _Draft) -> bool:
        """Same loops, an array of the whole space in common, and no path from one to the other."""
        if first.kind not in ("map", "reduce"):
            return False
        key = (first.kind, first.axes, first.components, first.space)
        if key != (second.kind, second.axes, second.components, second.space):
            return False
        if not self.reads(first) & self.reads(second) or math.prod(first.space) < SIBLINGS:
            return False
        if first.before & second.mask or second.before & first.mask:
            return False
        return not self.cyclic(first, second)

    def reads(self, draft: _Draft) -> set[Node]:
        """Arrays of the whole space that a group reads from memory."""
        found = {base_of(i) for n in draft.nodes for i in n.inputs if i.shape == draft.space}
        return {n for n in found if not self.bit[n] & draft.mask and n.shape == draft.space}

    def join_attention(self) -> None:
        """Two products and the kernel between them that works on rows become one kernel."""
        results = frozenset(map(storage, self.graph.outputs))
        found = attention.attentions(self.graph.nodes, self.group, self.real_users, results)
        for one, why in list(found):
            rows, parts = self.group[one.weights], (one.scores, one.result)
            space, axes = rows.space, rows.axes
            if not why and any(self.cyclic(rows, self.group[n]) for n in parts):
                why = "a step between them needs all of the first"
            if why:
                self.refused.append((one.scores, one.result, attention.refused(one, why)))
                continue
            for node in parts:
                rows = self.join(rows, self.group[node], "attention", space, axes, late=True)
            self.stored -= {one.scores, one.weights}
            attention.applied(one)

    def absorb_contracts(self) -> None:
        """A product whose only reader is one group becomes that kernel's first stage."""
        for node in self.graph.nodes:
            if not isinstance(node.op, Contract | Windowed) or node in self.stored:
                continue
            users = {self.group[u] for u in self.real_users(node) if u in self.group}
            producer = self.group[node]
            if (
                producer.kind == "attention"
                or len(users) != 1
                or len(list(self.real_users(node))) == 0
            ):
                continue
            (target,) = users
            if target.kind not in _stages(node) or self.cyclic(target, producer):
                continue
            if any(isinstance(n.op, Contract | Windowed) for n in target.nodes):
                continue
            generated = isinstance(node.op, Contract) and node.op.generated
            if generated and not self.in_step(node, target):
                why = "its result is read in another order"
                self.refuse(next(self.real_users(node)), producer, why)
                continue
            if isinstance(node.op, Windowed) and (why := self.unlike(node, target)):
                self.refuse(next(self.real_users(node)), producer, why)
                continue
            self.join(
                target,
                producer,
                target.kind,
                target.space,
                target.axes,
                target.components,
                target.late,
            )

    def in_step(self, node: Node, target: _Draft) -> bool:
        """Whether a group reads a generated product, and what is made of it, only at the element
        that is being computed, as it must be in the loops of the product."""
        for user in target.nodes:
            for operand in user.inputs:
                base = base_of(operand)
                made_of_it = base is node or self.ancestors[base] & self.bit[node]
                if made_of_it and not (_aligned(operand) and operand.shape == node.shape):
                    return False
        return True

    def unlike(self, node: Node, target: _Draft) -> str:
        """Why a group cannot follow a convolution, element by element, while it is in registers."""
        if isinstance(node.op, ChannelsLast):
            return self.unlike_last(node, target)
        if target.space != node.shape or target.components:
            return "they run over different shapes"
        rank = len(node.op.kernel)  # type: ignore[attr-defined]
        operands = (i for n in target.nodes for i in n.inputs)
        if not all(follows(i, node.shape, rank) for i in operands):
            return "an operand is not laid out as the result is"
        return ""

    def unlike_last(self, node: Node, target: _Draft) -> str:
        """The same where channels come last: the result may be given margins, too."""
        whole = target.space
        for framing in (n for n in target.nodes if isinstance(n.op, Piecewise)):
            if framing.op.name != "pad_constant":
                return "it is put together from parts"
            whole = framing.inputs[0].shape
        if whole != node.shape or target.components:
            return "they run over different shapes"
        return "" if self.in_step(node, target) else "its result is read in another order"

    def finish(self) -> Iterator[Group]:
        """Groups in an order in which every group comes after those it reads."""
        names: dict[str, int] = {}
        waiting = sorted(self.drafts, key=lambda d: d.mask & -d.mask)
        done = 0
        while waiting:
            ready = next(d for d in waiting if not d.before & ~done)
            waiting.remove(ready)
            done |= ready.mask
            yield self.group_of(ready, names)

    def group_of(self, draft: _Draft, names: dict[str, int]) -> Group:
        nodes = sorted(draft.nodes, key=self.bit.__getitem__)
        outputs = []
        for n in nodes if draft.kind != "control" else nodes[1:]:
            outside = any(not self.bit[u] & draft.mask for u in self.real_users(n))
            if n in self.stored or outside:
                outputs.append(n)
        name = "attention" if draft.kind == "attention" else kernel_name(nodes, outputs)
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name}_{names[name]}"
        return Group(
            name,
            draft.kind,
            tuple(nodes),
            tuple(outputs),
            draft.space,
            draft.axes,
            draft.components,
        )


def kernel_name(nodes: list[Node], outputs: list[Node]) -> str:
    """A name for a kernel: what it computes, by the operators that matter most."""
    nodes = [n for n in nodes if not isinstance(n.op, Result)]
    telling = sorted({n.op.name for n in nodes}, key=lambda o: [n.op.name for n in nodes].index(o))
    heavy = [
        n.op.name
        for n in nodes
        if isinstance(n.op, Reduce | Contract | Windowed | Piecewise | Recurrence | Library)
        or n.op.cost > 4
    ]
    parts = list(dict.fromkeys(heavy)) or telling
    return "_".join(parts[:4])


@dataclass(frozen=True)
class _Nest:
    """The loops of a group, outside in, as they will be lowered: by rows or by columns."""

    space: tuple[int, ...]
    loops: tuple[int, ...]  # axes
    components: tuple[int, ...]

    @staticmethod
    def of(draft: _Draft) -> _Nest:
        """The loops of a draft as it is."""
        return _Nest.made(draft.space, draft.axes, draft.components, draft.late)

    @staticmethod
    def made(
        space: tuple[int, ...], axes: tuple[int, ...], components: tuple[int, ...], late: bool
    ) -> _Nest:
        """The loops over a space in which these axes are reduced."""
        kept = [k for k in range(len(space)) if k not in axes and k not in components]
        tail = [k for k in kept if axes and k > max(axes)]
        if math.prod(space[k] for k in tail) <= 4 or late:
            tail = []
        outer = [k for k in kept if k not in tail]
        return _Nest(space, (*outer, *axes, *tail), components)

    def evaluations(self, seen: Node) -> int:
        """How often the loops evaluate an operand, hoisted as far out as it goes."""
        offset = len(self.space) - len(seen.shape)
        if offset < 0:
            return seen.type.size
        real = {k + offset for k, n in enumerate(seen.shape) if n != 1}
        inside = [place for place, k in enumerate(self.loops) if k in real]
        loops = self.loops[: max(inside, default=-1) + 1]
        written_out = (k for k in self.components if k in real)
        return math.prod(self.space[k] for k in (*loops, *written_out))


def _piece_evaluations(node: Node, seen: Node) -> int:
    """How often the loops over the boxes of a result evaluate an operand."""
    assert isinstance(node.op, Piecewise)
    total = 0
    for piece in node.op.pieces(node.type, *(i.type for i in node.inputs)):
        if node.inputs[piece.operand] is seen:
            offset = len(piece.extent) - len(seen.shape)
            real = [
                k
                for k, (n, factor) in enumerate(zip(piece.extent, piece.factor, strict=True))
                if n != 1 and factor and k >= offset and seen.shape[k - offset] != 1
            ]
            total += math.prod(piece.extent[: max(real, default=-1) + 1])
    return total


def _too_often(seen: list[Node], draft: _Draft) -> str:
    """That an operand would be computed again and again, if that is what is wrong."""
    nest = _Nest.of(draft)
    worst = max(seen, key=nest.evaluations)
    size = base_of(worst).type.size
    times = hint(nest.evaluations(worst)) / max(hint(size), 1)
    if times <= 1:
        return "its result is also needed in another order"
    return (
        f"it has {size:,} elements and would be computed {times:,.0f} times each "
        f"in the loop over {_dims(draft.space)}"
    )


def _spread_along(seen: Node, axes: tuple[int, ...], space: tuple[int, ...]) -> bool:
    """Whether an operand is the same all along these axes, or is as large as the whole space."""
    offset = len(space) - len(seen.shape)
    if seen.shape == space and base_of(seen).type.size == math.prod(space):
        return True
    return all(k < offset or seen.shape[k - offset] == 1 or space[k] == 1 for k in axes)


def _dims(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "one element"


def _axes(draft: _Draft) -> str:
    return f"axis {draft.axes[0]}" if len(draft.axes) == 1 else f"axes {draft.axes}"


def _tiny(node: Node) -> bool:
    assert isinstance(node.op, Reduce)
    shape = node.inputs[0].shape
    length = math.prod(shape[k] for k in node.op.axes)
    return not node.op.axes or (0 < length <= TINY and math.prod(shape) > TINY)


def _short_tail(op: Reduce, space: tuple[int, ...]) -> tuple[int, ...]:
    """The axes after the reduced ones, if they are short enough to be written out.

    Each element is then added to one of a few sums, in one walk over memory.
    """
    tail = tuple(range(max(op.axes) + 1, len(space)))
    short = 1 < math.prod(space[k] for k in tail) <= TINY < math.prod(space)
    return tail if short else ()


def _stages(node: Node) -> tuple[Kind, ...]:
    """The kinds of groups that a product may be the first stage of."""
    if isinstance(node.op, ChannelsLast):
        return ("map", "pieces")
    generated = isinstance(node.op, Windowed) or getattr(node.op, "generated", False)
    return ("map",) if generated else ("map", "reduce")


def _follows_windows(draft: _Draft) -> bool:
    """Whether a group works on the elements of a convolution that it may be the end of."""
    operands = (base_of(i) for n in draft.nodes for i in n.inputs)
    return any(isinstance(i.op, ChannelsLast) for i in operands)


def follows(node: Node, shape: tuple[int, ...], rank: int) -> bool:
    """Whether an operand can be read along the last `rank` axes of a shape as if they were one:
    it is the same along all of them, or has them all, one after another in memory."""
    space = node.shape[max(0, len(node.shape) - rank) :]
    if all(n == 1 for n in space):
        return not isinstance(node.op, View) or _aligned(node)
    base = base_of(node)
    if space != shape[len(shape) - rank :] or not _aligned(node) or isinstance(base.op, Source):
        return False
    strides = element_strides(base)
    return strides is not None and as_one(space, strides[len(strides) - rank :])


def as_one(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether neighbouring axes are one axis in memory."""
    long = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    return all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(long))


def is_tiny(node: Node) -> bool:
    """Whether a reduction is short enough to be written out as an expression."""
    return isinstance(node.op, Reduce) and _tiny(node)


def _matches(
    shape: tuple[int, ...],
    space: tuple[int, ...],
    gone: tuple[int, ...],
    required: tuple[int, ...] = (),
) -> bool:
    """Whether a shape is `space`, with the axes in `gone` kept, of length 1, or dropped.

    required: axes that must not be kept at full length.
    """
    if not required and among(shape, (space,)):
        return True
    kept = tuple(n for k, n in enumerate(space) if k not in gone)
    ones = tuple(1 if k in gone else n for k, n in enumerate(space))
    if among(shape, (kept, ones)):
        return True
    if required and set(gone) != set(required):
        rest = tuple(k for k in gone if k not in required)
        with_rest = tuple(n for k, n in enumerate(space) if k not in required)
        ones_rest = tuple(1 if k in required else n for k, n in enumerate(space))
        return bool(rest) and among(shape, (with_rest, ones_rest))
    return False


def _path(node: Node) -> tuple[object, ...]:
    """The views an operand is read through."""
    path: list[object] = []
    while isinstance(node.op, View):
        if not _aligning(node):
            path.append((node.op, node.inputs[0].shape))
        node = node.inputs[0]
    return tuple(path)


def _aligning(node: Node) -> bool:
    """A view that only adds or drops axes of length 1."""
    return node.op.name in ("expand_dims", "squeeze")


def _aligned(node: Node) -> bool:
    """Reached from its base through views that only add or drop axes of length 1."""
    while isinstance(node.op, View):
        if not _aligning(node):
            return False
        node = node.inputs[0]
    return True
