"""What became of every node under fusion, as remarks: computed within a kernel's loops, stored and
read again, or left to a library.

Knows groups once they are final; it must not decide anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nbcomp.graph.ir import Graph, Node, told_apart
from nbcomp.graph.op import Contract, Library, View, is_kept
from nbcomp.graph.passes.groups import Group
from nbcomp.record import Location, Remark
from nbcomp.sizes import hint

SMALL = 4096  # bytes of a result that is worth no remark of its own
SHOWN = 4  # names in one remark


def outcome(graph: Graph, groups: Iterable[Group]) -> Iterator[Remark]:
    """The remarks about all groups, in order; small results of one place are said together."""
    small: dict[Location | None, list[tuple[Group, Node]]] = {}
    for group in groups:
        if group.kind == "library":
            yield from (_library(n) for n in group.nodes if not _spoken_of(n))
            continue
        if group.kind == "control":
            continue
        yield from _within(group)
        for node in group.outputs:
            if node in graph.outputs:
                continue
            if hint(node.type.nbytes) < SMALL:
                small.setdefault(node.location, []).append((group, node))
            else:
                yield from _stored(graph, group, node)
    for found in small.values():
        yield from _stored_together(graph, found)


def _spoken_of(node: Node) -> bool:
    """Whether another remark is about the call: of a library that was brought along, or of what is
    made once."""
    return isinstance(node.op, Library) and (node.op.brought or is_kept(node.op, node.inputs))


def _library(node: Node) -> Remark:
    reason = f"{node.title} is a call of NumPy, on whole arrays"
    return Remark("analysis", "library", reason, node.location)


def _within(group: Group) -> Iterator[Remark]:
    """What is computed inside a kernel and never stored as a whole, line by line."""
    inner: dict[int, list[Node]] = {}
    for node in group.nodes:
        if node not in group.outputs and not isinstance(node.op, Contract) and node.location:
            inner.setdefault(node.location.line, []).append(node)
    for nodes in inner.values():
        reason = f"{_names(nodes)}: computed in the loops of {group.name}, never stored whole"
        yield Remark("applied", "fusion", reason, nodes[0].location)


def _stored(graph: Graph, group: Group, node: Node) -> Iterator[Remark]:
    """A result that later kernels read from memory."""
    readers = [u for u in _readers(graph, node) if u not in group.nodes]
    if readers:
        size = _size(hint(node.type.nbytes))
        later = _listed(told_apart(node, reader)[1] for reader in readers)
        reason = (
            f"{told_apart(node, readers[0])[0]} is stored ({size}), since {later} reads it later"
        )
        yield Remark("analysis", "store", reason, node.location)


def _stored_together(graph: Graph, found: list[tuple[Group, Node]]) -> Iterator[Remark]:
    """Small results of one place in the user's source."""
    read = [(g, n) for g, n in found if any(u not in g.nodes for u in _readers(graph, n))]
    if len(read) < 2:
        for group, node in read:
            yield from _stored(graph, group, node)
        return
    nodes = [node for _, node in read]
    size = _size(sum(hint(n.type.nbytes) for n in nodes))
    reason = (
        f"{len(nodes)} small results of {_names(nodes)} are stored ({size} together), since later"
        " kernels read them"
    )
    yield Remark("analysis", "store", reason, nodes[0].location)


def _readers(graph: Graph, node: Node) -> Iterator[Node]:
    for user in graph.users[node]:
        if isinstance(user.op, View) or user.op.name == "reshape":
            yield from _readers(graph, user)
        else:
            yield user


def _names(nodes: Iterable[Node]) -> str:
    return _listed(n.title for n in nodes)


def _listed(titles: Iterable[str]) -> str:
    names = list(dict.fromkeys(titles))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _size(nbytes: int) -> str:
    """Bytes in the unit they are best read in."""
    if nbytes < 10_000:
        return f"{nbytes:,} bytes"
    return f"{nbytes / 2**10:,.0f} KiB" if nbytes < 10 << 20 else f"{nbytes / 2**20:,.0f} MiB"
