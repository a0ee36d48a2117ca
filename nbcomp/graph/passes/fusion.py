"""Fusion: which nodes are computed by one kernel, in one walk over memory.

A `Group` has a space (the shape its loops cover), reduced axes, and short component axes (at most
TINY long) that are written out.  Nodes are visited in program order; each starts a group of its own
and then absorbs the groups of its operands where that is legal and no element is computed more
often than NumPy would compute it, unless computing it again is cheaper than storing it.  Every
refusal is a remark in the user's names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from nbcomp.graph.control import Result
from nbcomp.graph.ir import Graph, Node, told_apart
from nbcomp.graph.op import Contract, Windowed, is_kept
from nbcomp.graph.passes import attention, bands
from nbcomp.graph.passes.drafts import Draft, Drafts
from nbcomp.graph.passes.groups import FusedGraph, Group, kernel_name
from nbcomp.graph.passes.legality import Legality, stages
from nbcomp.graph.passes.operands import base_of, inlined, source_of
from nbcomp.graph.passes.outcome import outcome
from nbcomp.record import Remark

SIBLINGS = 4096  # elements from which a second walk over an array is worth saving

# The change that would help, by the reason of a refusal.
HINTS = {
    "the reduction runs across rows, and its result is complete only at the end": "reduced along "
    "the last axis of an array stored the other way round, each row would be complete at once",
    "its result is read in another order": "a reduction along the axis that is contiguous in both "
    "would keep the order",
    "they run over different shapes": "operands of one shape would share a loop",
}


def fuse(graph: Graph) -> FusedGraph:
    """Group nodes into kernels: chains, and reductions with what feeds and follows them."""
    return _Fuser(graph).run()


def separate(graph: Graph) -> FusedGraph:
    """Give each node a kernel of its own: the program as NumPy runs it, array by array."""
    return _Fuser(graph).run(merging=False)


class _Fuser:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.drafts = Drafts(graph)
        self.legality = Legality(self.drafts)
        self.refused: list[tuple[Node, Node, Remark]] = []

    # ------------------------------------------------------------------------------------ driving

    def run(self, merging: bool = True) -> FusedGraph:
        for node in self.graph.nodes:
            if not inlined(node):
                self.visit(node, merging)
        if merging:
            self.join_siblings()
            self.join_attention()
            self.absorb_contracts()
            self.join_bands()
        # What was refused at first may have come together in the end.
        apart = (r for a, b, r in self.refused if self.drafts.group[a] is not self.drafts.group[b])
        groups = tuple(self.finish())
        return FusedGraph(self.graph, groups, (*apart, *outcome(self.graph, groups)))

    def visit(self, node: Node, merging: bool) -> None:
        """A group for the node, with all those of its operands that may join."""
        if isinstance(node.op, Result):
            self.drafts.add(node, self.drafts.group[node.inputs[0]])
            return
        draft = self.drafts.start(node)
        if merging:
            draft = self.absorb_producers(node, draft)
        for i in node.inputs:  # not earlier: what `node` reads is looked at one by one
            draft.reads |= self.drafts.bit[source_of(i)]

    def absorb_producers(self, node: Node, draft: Draft) -> Draft:
        """The group of a new node, with all those of its operands that may join."""
        group = self.drafts.group
        producers = dict.fromkeys(group[b] for b in map(base_of, node.inputs) if b in group)
        for producer in sorted(producers, key=lambda p: -math.prod(p.space)):
            if producer is draft or group[producer.nodes[0]] is not producer:
                continue
            why = self.legality.why_not(node, draft, producer)
            if why:
                self.refuse(node, producer, why)
            else:
                draft = self.merge(producer, draft, node)
        return draft

    def merge(self, producer: Draft, draft: Draft, node: Node) -> Draft:
        """One group of both; the larger space and the reduction carry over."""
        if draft.kind == "pieces":
            return self.drafts.join(producer, draft, "pieces", draft.space)
        reducing = producer if producer.axes else draft
        wide = producer if producer.axes or producer.components else draft
        return self.drafts.join(
            producer,
            draft,
            "reduce" if reducing.axes else "map",
            wide.space,
            reducing.axes,
            producer.components or draft.components,
            self.legality.late(node, draft, producer),
        )

    def refuse(self, node: Node, producer: Draft, why: str) -> None:
        last = max(producer.nodes, key=self.drafts.bit.__getitem__)
        if is_kept(last.op, last.inputs):  # another remark says so
            return
        first, second = told_apart(last, node)
        reason = f"{first} and {second} are kept apart: {why}"
        made = Remark("missed", "fusion", reason, node.location, HINTS.get(why, ""))
        self.refused.append((last, node, made))

    # -------------------------------------------------------------------------------- after merging

    def join_siblings(self) -> None:
        """Groups that walk over the same array, neither needing the other, share the walk."""
        waiting = list(self.drafts.open)
        while waiting:
            first = waiting.pop(0)
            second = next((d for d in waiting if self.siblings(first, d)), None)
            if second is not None:
                waiting[waiting.index(second)] = self.drafts.join(
                    first,
                    second,
                    first.kind,
                    first.space,
                    first.axes,
                    first.components,
                    first.late or second.late,
                )

    def siblings(self, first: Draft, second: Draft) -> bool:
        """Same loops, an array of the whole space in common, and no path from one to the other."""
        if first.kind not in ("map", "reduce"):
            return False
        key = (first.kind, first.axes, first.components, first.space)
        if key != (second.kind, second.axes, second.components, second.space):
            return False
        if math.prod(first.space) < SIBLINGS:
            return False
        if not self.drafts.reads(first) & self.drafts.reads(second):
            return False
        if first.before & second.mask or second.before & first.mask:
            return False
        return not self.drafts.cyclic(first, second)

    def join_attention(self) -> None:
        """Two products and the kernel between them that works on rows become one kernel."""
        drafts = self.drafts
        for one, why in list(attention.attentions(drafts)):
            rows, parts = drafts.group[one.weights], (one.scores, one.result)
            space, axes = rows.space, rows.axes
            if not why and any(drafts.cyclic(rows, drafts.group[n]) for n in parts):
                why = "a step between them needs all of the first"
            if why:
                self.refused.append((one.scores, one.result, attention.refused(one, why)))
                continue
            for node in parts:
                rows = drafts.join(rows, drafts.group[node], "attention", space, axes, late=True)
            drafts.stored -= {one.scores, one.weights}
            attention.applied(one)

    def absorb_contracts(self) -> None:
        """A product whose only reader is one group becomes that kernel's first stage."""
        drafts = self.drafts
        for node in self.graph.nodes:
            if not isinstance(node.op, Contract | Windowed) or node in drafts.stored:
                continue
            users = {drafts.group[u] for u in drafts.real_users(node) if u in drafts.group}
            producer = drafts.group[node]
            if producer.kind == "attention" or len(users) != 1:
                continue
            (target,) = users
            if target.kind not in stages(node) or drafts.cyclic(target, producer):
                continue
            if any(isinstance(n.op, Contract | Windowed) for n in target.nodes):
                continue
            if why := self.legality.why_not_stage(node, target):
                self.refuse(next(drafts.real_users(node)), producer, why)
                continue
            drafts.join(
                target,
                producer,
                target.kind,
                target.space,
                target.axes,
                target.components,
                target.late,
            )

    def join_bands(self) -> None:
        """Convolutions one after another whose images would leave the cache become one kernel."""
        drafts = self.drafts
        for chain in list(bands.chains(drafts)):
            made, *rest = (drafts.group[link] for link in chain.links)
            if "bands" in (d.kind for d in (made, *rest)):  # a link is in a kernel of this kind
                continue
            if drafts.cyclic(made, *rest):
                self.refused.append((chain.links[0], chain.links[-1], bands.refused(chain)))
                continue
            for draft in rest:
                made = drafts.join(made, draft, "bands", draft.space)
            drafts.stored -= set(chain.images)
            bands.applied(chain)

    def finish(self) -> Iterator[Group]:
        """Groups in an order in which every group comes after those it reads."""
        names: dict[str, int] = {}
        waiting = sorted(self.drafts.open, key=lambda d: d.mask & -d.mask)
        done = 0
        while waiting:
            ready = next(d for d in waiting if not d.before & ~done)
            waiting.remove(ready)
            done |= ready.mask
            yield self.group_of(ready, names)

    def group_of(self, draft: Draft, names: dict[str, int]) -> Group:
        nodes = sorted(draft.nodes, key=self.drafts.bit.__getitem__)
        outputs = []
        for n in nodes if draft.kind != "control" else nodes[1:]:
            outside = any(not self.drafts.bit[u] & draft.mask for u in self.drafts.real_users(n))
            if n in self.drafts.stored or outside:
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
