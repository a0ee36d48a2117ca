"""Results in the memory of an operand: `x *= 2` works on x where it lies.

A value may take over the memory of another that nobody needs any more, if its loops read every
element before they write to it.  What is known only when a call is made, whether arguments share
memory, is a guard of the plan.  Knows groups and loops; it must not know slots.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Indexed, Input, Library, Source, View, is_kept
from nbcomp.graph.passes.groups import FusedGraph, Group
from nbcomp.graph.passes.materialise import element_strides, storage
from nbcomp.graph.passes.share import corresponding
from nbcomp.loop.dependence import read_first
from nbcomp.loop.grammar import (
    Affine,
    Alloc,
    Block,
    Buffer,
    Call,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    While,
    buffers_in,
    walk,
    with_buffers,
)
from nbcomp.types import contiguous_strides

KINDS = ("map", "reduce", "pieces", "indexed")
FAILING = ("library", "control", "indexed")  # kinds of groups that may end a call
IDLE = (Let, Alloc, For, If, While, Block)  # statements that by themselves do nothing
UPDATES = ("assign", "scatter")  # most of the result is the first operand


@dataclass(frozen=True)
class Target:
    """Memory that a value may take over: the node it belongs to, and its strides in elements."""

    node: Node
    strides: tuple[int, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """Its axes, outermost in memory first."""
        return tuple(sorted(range(len(self.strides)), key=lambda k: -abs(self.strides[k])))


def targets(
    fused: FusedGraph, writes: Mapping[int, int], turned: Container[Node]
) -> dict[Node, Target]:
    """What each value may take over, as far as other groups are concerned.

    writes: outputs (by position) that are the new content of an input (by position).  turned:
    values that are wanted in another order than C.
    """
    search = _Search(fused, writes, turned)
    search.run()
    return search.found


class _Search:
    def __init__(
        self, fused: FusedGraph, writes: Mapping[int, int], turned: Container[Node]
    ) -> None:
        self.graph, self.groups, self.turned = fused.graph, fused.groups, turned
        self.found: dict[Node, Target] = {}
        self.place = {n: k for k, g in enumerate(fused.groups) for n in g.nodes}
        self.results = {storage(n) for n in self.graph.outputs}
        self.written = {
            storage(self.graph.outputs[k]): self.graph.inputs[i] for k, i in writes.items()
        }
        self.arrays = dict(self.written)
        for node, array in self.written.items():
            chain = list(_updated(node))
            if chain[-1] is array:
                self.arrays |= dict.fromkeys(chain[:-1], array)
        self.certain = max((k for k, g in enumerate(self.groups) if g.kind in FAILING), default=0)

    def run(self) -> None:
        """Find each value that may take over memory, and which."""
        for group in self.groups:
            for node in group.outputs or group.nodes[:1]:
                old = self.wanted(node)
                if old is None or not self.free(node, old, group):
                    continue
                strides = element_strides(old) or contiguous_strides(old.shape)
                plain = strides == contiguous_strides(old.shape)
                alone = node.shape == old.shape and not self.read_elsewhere(node, group)
                if plain or alone:
                    own = strides if node.shape == old.shape else contiguous_strides(node.shape)
                    self.found[node] = Target(old, own)
        calls: dict[str, list[Group]] = {}
        for group in self.groups:
            calls.setdefault(group.name, []).append(group)
        for same in calls.values():
            if len(same) > 1:
                self.agree(same)

    def agree(self, groups: Sequence[Group]) -> None:
        """Keep what all calls of one kernel may take over."""
        first, *others = groups
        matches = [corresponding(group, first) for group in others]
        for node in first.outputs:
            target = self.found.get(node)
            if target is None or not all(self.like(target, node, own) for own in matches):
                for own in ({node: node}, *matches):
                    self.found.pop(own[node], None)

    def like(self, target: Target, node: Node, own: Mapping[Node, Node]) -> bool:
        """Whether another call takes over what corresponds to the target of the first.

        own: for each node of the first call that of the other.
        """
        other = self.found.get(own[node])
        if other is None or other.strides != target.strides:
            return False
        read = {own[n] for n in own if storage(n) is target.node}
        return {n for n in own.values() if storage(n) is other.node} == read

    def wanted(self, node: Node) -> Node | None:
        """Whose memory a value should be in: that of what it updates, or the caller's array."""
        array = self.arrays.get(node)
        if node.op.name in UPDATES:
            base = storage(node.inputs[0])
            if base is array or not isinstance(base.op, View | Input | Constant | Source):
                return base
        return array

    def free(self, node: Node, old: Node, group: Group) -> bool:
        """Whether nobody needs the old value once this group has run."""
        here = self.place[node]
        if old in self.results or self.place.get(old) == here or is_kept(old.op, old.inputs):
            return False
        own = node in self.results and node not in self.written  # it needs memory of its own
        if own and (node in self.turned or isinstance(self.root(old).op, Input)):
            return False
        if node.type.dtype != old.type.dtype or node.type.size != old.type.size:
            return False
        if any(self.place[u] > here for u in self.readers(old)):
            return False
        if isinstance(old.op, Input) and here < self.certain:
            return False  # the call may still fail, and is then run again
        if group.kind == "library":
            if isinstance(self.root(old).op, Input) and _ends_midway(node):
                return False
            return isinstance(node.op, Library) and node.op.takes_out and not node.op.brought
        return group.kind in KINDS

    def root(self, node: Node) -> Node:
        """The value that a memory has at first."""
        while node in self.found:
            node = self.found[node].node
        return node

    def readers(self, node: Node) -> Iterator[Node]:
        """Who reads a value, through views and reshapes."""
        for user in self.graph.users[node]:
            if isinstance(user.op, View) or user.op.name == "reshape":
                yield from self.readers(user)
            elif user in self.place:
                yield user

    def read_elsewhere(self, node: Node, group: Group) -> bool:
        inside = set(group.nodes)
        return any(u not in inside for u in self.readers(node))


def _ends_midway(node: Node) -> bool:
    """Whether a routine may end the call when it has written some of its result: where it assigns
    at places, all of them are checked first."""
    return node.op.may_raise(*node.inputs) and not isinstance(node.op, Indexed)


def _updated(node: Node) -> Iterator[Node]:
    """A value, what it is an update of, what that is, and so on."""
    yield node
    while node.op.name in UPDATES:
        node = storage(node.inputs[0])
        yield node


def taken(
    kernel: Kernel, nodes: Mapping[str, Node], new: Node, target: Target
) -> tuple[Kernel, dict[str, Node]] | None:
    """A kernel with a result in the memory of what it takes over, and the node of each of its
    memories; None where it would read what it has overwritten.

    nodes: those of the kernel's memories, before.
    """
    out, *others = (b for b in kernel.buffers if nodes.get(b.memory) is new)
    old = [b for b in kernel.buffers if _is_of(nodes.get(b.memory), target.node)]
    if others or any(b.alias or b.shape != out.shape or b.strides != target.strides for b in old):
        return None
    if any(isinstance(s, Call) for s in walk(kernel.stages)) or _aliased(kernel, (out, *old)):
        return None
    name = old[0].name if old else out.name
    shared = Buffer(name, out.dtype, out.shape, target.strides, "output", aligned=False)
    gone = {b.name for b in (out, *old)}
    stages = with_buffers(kernel.stages, lambda b: shared if b.name in gone else b)
    stages = _without_idle(stages, shared, {})
    if not read_first(stages, shared.memory):
        return None
    touched = {b.name for s in stages for b in buffers_in(s)}
    buffers = tuple(
        shared if b.name == out.name else b
        for b in kernel.buffers
        if b.name == out.name or (b.name not in gone and b.name in touched)
    )
    own = {b.memory: nodes[b.memory] for b in buffers if b is not shared and b.memory in nodes}
    return replace(kernel, buffers=buffers, stages=stages), own | {name: new}


def _is_of(node: Node | None, old: Node) -> bool:
    return node is not None and storage(node) is old


def _aliased(kernel: Kernel, buffers: tuple[Buffer, ...]) -> bool:
    """Whether the memory of these is also shown in other shapes."""
    names = {b.name for b in buffers}
    return any(b.alias in names for b in kernel.buffers)


def _without_idle(
    stmts: tuple[Stmt, ...], buffer: Buffer, values: dict[str, Expr]
) -> tuple[Stmt, ...]:
    """Statements but for the stores that leave an element as it is, and loops of nothing else.

    values: what is bound, by name.
    """

    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return _without_idle(body, buffer, values)

    kept: list[Stmt] = []
    for stmt in stmts:
        made = stmt
        match stmt:
            case Let():
                values[stmt.name] = stmt.value
            case Store() if stmt.buffer == buffer and _is_there(stmt, values):
                continue
            case For() | Block() | While():
                made = replace(stmt, body=inside(stmt.body))
            case If():
                made = replace(stmt, yes=inside(stmt.yes), no=inside(stmt.no))
        if made is stmt or any(not isinstance(s, IDLE) for s in walk((made,))):
            kept.append(made)
    return tuple(kept)


def _is_there(store: Store, values: Mapping[str, Expr]) -> bool:
    """Whether what is stored is what was loaded from the same place."""
    value = store.value
    while isinstance(value, Var) and value.name in values:
        value = values[value.name]
    if not isinstance(value, Load) or value.buffer != store.buffer:
        return False
    return all(map(_same, value.indices, store.indices))


def _same(one: Expr, other: Expr) -> bool:
    if isinstance(one, Affine) and isinstance(other, Affine):
        return (one.terms, one.constant) == (other.terms, other.constant)
    return one is other
