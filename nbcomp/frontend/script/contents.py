"""What arrays and objects hold at one moment: to be compared with another, and to be taken back.

Knows memory and objects; nothing of graphs or syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.script.heap import Heap, reach
from nbcomp.frontend.session import Read, Session
from nbcomp.frontend.storage import Storage
from nbcomp.frontend.tracer import Tracer
from nbcomp.graph.ir import Node


class Contents:
    """All that is in reach of some variables, as it is now.

    own: ids of the cells whose contents are among the variables.
    """

    def __init__(
        self, session: Session, variables: Mapping[str, Any], own: frozenset[int] = frozenset()
    ) -> None:
        self.session = session
        self.heap = Heap(variables, own)
        arrays = [leaf for leaf in self.heap.leaves if type(leaf) is Tracer]
        storages = {id(t._place.storage): t._place.storage for t in arrays}
        self.nodes: list[tuple[Storage, Node]] = [(s, s.node) for s in storages.values()]
        self.reads: list[tuple[Read, Node, bool]] = [
            (r, r.content, r.written) for r in session.reads.values()
        ]
        self.effects = len(session.effects)

    def changed(self) -> dict[Storage, Node]:
        """The storages that have another content now."""
        return {s: s.node for s, node in self.nodes if s.node is not node}

    def take_back(self) -> list[Node]:
        """Everything as it was; the checks that were made since.

        Raises `Unsupported` for what cannot be taken back.
        """
        self.session.check_unchanged()
        self.heap.restore()
        known = {id(s.read) for s, _ in self.nodes if s.read is not None}
        before = {id(r) for r, _, _ in self.reads}
        for read_ in self.session.reads.values():
            if id(read_) not in before and read_.written:
                raise _written(read_)
        for read_, content, written in self.reads:
            if read_.content is not content and id(read_) not in known:
                raise _written(read_)
            read_.content, read_.written = content, written
        for storage, node in self.nodes:
            if storage.node is not node:
                storage.node = node
                storage.version += 1
        made = self.session.effects[self.effects :]
        del self.session.effects[self.effects :]
        return made


def tracers(values: Iterable[Any]) -> Iterable[Tracer]:
    """All arrays in reach of some values."""
    return [v for _, v in reach(("", v) for v in values) if type(v) is Tracer]


def _written(read: Read) -> Unsupported:
    return Unsupported(f"{read.source.describe()} is written to in a branch", here(), "pass it in")
