"""Whether a group may join the group of a node that reads it, and if not, why, in the user's words.

Legal is what computes no element more often than NumPy computes it, unless computing it again is
cheaper than storing it, and what keeps a row in the cache between two walks over it.
"""

from __future__ import annotations

import math

from nbcomp.graph.ir import Node
from nbcomp.graph.op import ChannelsLast, Contract, Piecewise, Reduce, Windowed
from nbcomp.graph.passes.drafts import Draft, Drafts
from nbcomp.graph.passes.groups import Kind
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.graph.passes.nests import CHEAP, Nest, matches, piece_evaluations, spread_along
from nbcomp.graph.passes.operands import TINY, aligned, base_of, follows, is_tiny, path, source_of
from nbcomp.sizes import hint

ROW_BYTES = 256 << 10  # what a kernel keeps of one row between its passes over the row
SERIAL_SIZE = 1 << 15  # elements one core may walk several times without a second core helping
# Instructions per element of one kernel.  Compiling takes some milliseconds for every 10, and more
# than in proportion; beside so many the elements that go through memory in between cost nothing.
LONGEST = 1200

# Kinds of groups that nothing joins.
APART = {
    "library": "a library routine works on whole arrays",
    "control": "loops are run as they were written",
    "recurrence": "a loop over steps works on whole arrays",
    "indexed": "all indices are checked first",
}


def _what(draft: Draft, otherwise: str = "matrix product") -> str:
    """What the loops of a product, or others like it, compute."""
    names = " ".join(n.op.name for n in draft.nodes if isinstance(n.op, Windowed))
    return "convolution" if "conv" in names else "pool" if "window" in names else otherwise


def _of_their_kinds(draft: Draft, producer: Draft) -> str:
    """Why two groups stay apart whatever they have to do with each other."""
    for kind, why in APART.items():
        if kind in (producer.kind, draft.kind):
            return why
    if producer.kind == "contract":  # may join at the end (`absorb_contracts`)
        return f"the {_what(producer, 'product')} is needed whole first"
    if draft.kind == "contract":
        return f"a {_what(draft)} reads its operands from memory"
    if producer.kind == "pieces":
        return "it is put together from parts, which are written first"
    if producer.length + draft.length > LONGEST:
        return "one kernel of all that comes before would be long to compile"
    return ""


class Legality:
    """Judges pairs of groups of a graph that is being fused."""

    def __init__(self, drafts: Drafts) -> None:
        self.drafts = drafts

    def why_not(self, node: Node, draft: Draft, producer: Draft) -> str:
        """Why the producer cannot join the group of `node`; empty if it can."""
        if why := _of_their_kinds(draft, producer):
            return why
        if self.drafts.cyclic(draft, producer):
            return "a step between them needs all of the first"
        if self.tangled(draft, producer) or self.reshaped(node, producer):
            return "they need each other's results in another order"
        if draft.kind == "pieces":
            return self.into_pieces(node, draft, producer)
        if producer.axes:
            why = self.after_reduction(node, draft, producer)
        else:
            why = self.map_into(node, draft, producer)
        return why or self.spread_anew(node, draft, producer)

    def tangled(self, draft: Draft, producer: Draft) -> bool:
        """Whether more than the node being visited reads across them: that was refused before."""
        return bool(producer.reads & draft.mask or draft.reads & producer.mask)

    def reshaped(self, node: Node, producer: Draft) -> bool:
        """Whether the node also reads the group through a reshape, which is memory: elements of
        another place in the loops."""
        sources = (source_of(i) for i in node.inputs if source_of(i) is not base_of(i))
        return any(self.drafts.group.get(source) is producer for source in sources)

    def level(self, node: Node, draft: Draft) -> str:
        """Where a result sits in a group's space: "full", "row" (reduced) or "" (elsewhere)."""
        if matches(node.shape, draft.space, draft.components):
            return "full"
        if draft.axes and matches(
            node.shape, draft.space, (*draft.axes, *draft.components), draft.axes
        ):
            return "row"
        return ""

    def late(self, node: Node, draft: Draft, producer: Draft) -> bool:
        """Whether the two together have full-size nodes that need a finished reduction."""
        full = bool(producer.axes) and self.level(node, producer) == "full"
        return full or producer.late or draft.late

    def map_into(self, node: Node, draft: Draft, producer: Draft) -> str:
        """A producer without reduction, read by `node`."""
        space = draft.space
        seen = [i for i in node.inputs if self.drafts.group.get(base_of(i)) is producer]
        if producer.components:
            return self.components_into(draft, producer, seen)
        if all(map(aligned, seen)):
            if draft.components and matches(producer.space, space, draft.components):
                return ""
            if producer.space == space and all(i.shape == space for i in seen):
                return ""
        if not all(map(aligned, seen)) and _follows_windows(producer):
            return "it is computed while what it is made from is in registers"
        paths = {path(i) for i in seen}
        if self.drafts.private(producer, draft):
            cheap = sum(n.op.cost for n in producer.nodes) <= CHEAP
            nest = Nest.of(draft)
            once = all(nest.evaluations(i) <= base_of(i).type.size for i in seen)
            in_order = all(map(aligned, seen)) or producer.spread <= CHEAP
            if cheap or (len(paths) == 1 and once and in_order):
                return ""
        if len(paths) > 1:
            return f"its elements are read {len(paths)} times, at different places"
        return _too_often(seen, draft)

    def components_into(self, draft: Draft, producer: Draft, seen: list[Node]) -> str:
        """A producer with short axes written out."""
        space = draft.space
        fits = matches(space, producer.space, producer.components) or space == producer.space
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
        if not all(map(aligned, seen)):
            return "its result is read in another order"
        if len(space) == len(producer.space) and not all(
            spread_along(i, producer.components, producer.space) for i in seen
        ):
            return "its result is spread along another axis than the one reduced"
        return ""

    def spread_anew(self, node: Node, draft: Draft, producer: Draft) -> str:
        """Why not, because of what a reduction's order of loops would compute again and again."""
        axes = producer.axes or draft.axes
        if not axes or draft.spread + producer.spread <= CHEAP:
            return ""
        wide = producer if producer.axes or producer.components else draft
        components = producer.components or draft.components
        nest = Nest.made(wide.space, axes, components, self.late(node, draft, producer))
        inside = draft.mask | producer.mask
        for user in (*producer.nodes, *draft.nodes):
            for seen in user.inputs if user.type.size >= wide.whole else ():
                base = base_of(seen)
                if not self.drafts.bit[base] & inside or base.type.size >= wide.whole:
                    continue
                again = nest.evaluations(seen) > base.type.size
                if again and self.drafts.price(base, inside) > CHEAP:
                    return f"{base.title} would be computed more than once"
        return ""

    def into_pieces(self, node: Node, draft: Draft, producer: Draft) -> str:
        if producer.axes or producer.components:
            return "it is reduced first"
        seen = [i for i in node.inputs if self.drafts.group.get(base_of(i)) is producer]
        if len({path(i) for i in seen}) > 1 or len(seen) > 1:
            return "its elements are read at several places"
        if not self.drafts.private(producer, draft):
            return "it is needed elsewhere too"
        if piece_evaluations(node, seen[0]) > base_of(seen[0]).type.size:
            return "it would be computed more than once"
        return ""

    def after_reduction(self, node: Node, draft: Draft, producer: Draft) -> str:
        """The producer reduces; `node` follows it."""
        if draft.axes and (draft.axes != producer.axes or draft.space != producer.space):
            return f"it reduces {_axes(draft)}, after a reduction of {_axes(producer)}"
        if draft.components and draft.components != producer.components:
            return "they run over different shapes"
        if any(
            self.drafts.group.get(base_of(i)) is producer and not aligned(i) for i in node.inputs
        ):
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

    def lined_up(self, seen: Node, producer: Draft) -> bool:
        """Whether a reduced operand is broadcast along just the axes that were reduced."""
        base = base_of(seen)
        if self.drafts.group.get(base) is not producer or self.level(base, producer) != "row":
            return True
        return spread_along(seen, producer.axes, producer.space)

    def uses_result(self, node: Node, producer: Draft) -> bool:
        """Whether the node needs a finished reduction of the group, or what comes after one."""
        reduces = 0
        for n in producer.nodes:
            if isinstance(n.op, Reduce) and n.op.axes == producer.axes and not is_tiny(n):
                reduces |= self.drafts.bit[n]
        return bool(self.drafts.ancestors[node] & reduces)

    def second_walk(self, node: Node, producer: Draft) -> str:
        """Why not walk the same rows again: it pays while a row stays cached and cores are busy."""
        kept = [k for k in self.walked(producer) if k not in producer.components]
        trailing = kept[len(kept) - len(producer.axes) :]
        size = math.prod(producer.space)
        last = max(kept.index(k) for k in producer.axes)
        inner = math.prod(producer.space[k] for k in kept[last + 1 :])
        if set(producer.axes) != set(trailing) and (inner > TINY or size > SERIAL_SIZE):
            return "the reduction runs across rows, and its result is complete only at the end"
        if producer.row * node.type.dtype.itemsize > ROW_BYTES:
            return f"one row of {producer.row:,} elements does not stay in the cache"
        if producer.outer < 2 and size > SERIAL_SIZE:
            return "every core needs the finished reduction first"
        return ""

    def walked(self, draft: Draft) -> list[int]:
        """The axes of a group's space as what it reads lies in memory, outermost first."""
        plain = list(range(len(draft.space)))
        for operand in (i for n in draft.nodes for i in n.inputs if i.shape == draft.space):
            other = self.drafts.group.get(operand)
            if other is draft:
                continue
            if other is not None:
                return self.walked(other) if other.space == draft.space else plain
            strides = element_strides(operand)
            if strides is not None and all(strides):
                return sorted(plain, key=lambda k: -abs(strides[k]))
        return plain

    # ---------------------------------------------------------------- a product and what follows it

    def why_not_stage(self, node: Node, target: Draft) -> str:
        """Why a product cannot be the first stage of the kernel of those who read it."""
        if isinstance(node.op, Windowed):
            return self.unlike(node, target)
        generated = isinstance(node.op, Contract) and node.op.generated
        if generated and not self.in_step(node, target):
            return "its result is read in another order"
        return ""

    def in_step(self, node: Node, target: Draft) -> bool:
        """Whether a group reads a generated product, and what is made of it, only at the element
        that is being computed, as it must be in the loops of the product."""
        for user in target.nodes:
            for operand in user.inputs:
                base = base_of(operand)
                made_of_it = base is node or self.drafts.ancestors[base] & self.drafts.bit[node]
                if made_of_it and not (aligned(operand) and operand.shape == node.shape):
                    return False
        return True

    def unlike(self, node: Node, target: Draft) -> str:
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

    def unlike_last(self, node: Node, target: Draft) -> str:
        """The same where channels come last: the result may be given margins, too."""
        whole = target.space
        for framing in (n for n in target.nodes if isinstance(n.op, Piecewise)):
            if framing.op.name != "pad_constant":
                return "it is put together from parts"
            whole = framing.inputs[0].shape
        if whole != node.shape or target.components:
            return "they run over different shapes"
        return "" if self.in_step(node, target) else "its result is read in another order"


def stages(node: Node) -> tuple[Kind, ...]:
    """The kinds of groups that a product may be the first stage of."""
    if isinstance(node.op, ChannelsLast):
        return ("map", "pieces")
    generated = isinstance(node.op, Windowed) or getattr(node.op, "generated", False)
    return ("map",) if generated else ("map", "reduce")


def _too_often(seen: list[Node], draft: Draft) -> str:
    """That an operand would be computed again and again, if that is what is wrong."""
    nest = Nest.of(draft)
    worst = max(seen, key=nest.evaluations)
    size = base_of(worst).type.size
    times = hint(nest.evaluations(worst)) / max(hint(size), 1)
    if times <= 1:
        return "its result is also needed in another order"
    return (
        f"it has {size:,} elements and would be computed {times:,.0f} times each "
        f"in the loop over {_dims(draft.space)}"
    )


def _follows_windows(draft: Draft) -> bool:
    """Whether a group works on the elements of a convolution that it may be the end of."""
    operands = (base_of(i) for n in draft.nodes for i in n.inputs)
    return any(isinstance(i.op, ChannelsLast) for i in operands)


def _dims(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "one element"


def _axes(draft: Draft) -> str:
    return f"axis {draft.axes[0]}" if len(draft.axes) == 1 else f"axes {draft.axes}"
