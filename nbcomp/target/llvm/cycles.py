"""Which nodes of a graph lie on a cycle: the instructions of loops.

R. E. Tarjan, "Depth-first search and linear graph algorithms", 1972, without recursion.
"""

from __future__ import annotations

from collections.abc import Sequence


def cyclic(after: Sequence[Sequence[int]]) -> list[bool]:
    """For each node of a graph whether it can be reached from itself."""
    search = _Components(after)
    for root in range(len(after)):
        if root not in search.order:
            search.visit(root)
    return search.found


class _Components:
    """Strongly connected components, without recursion."""

    def __init__(self, after: Sequence[Sequence[int]]) -> None:
        self.after = after
        self.order: dict[int, int] = {}
        self.low: dict[int, int] = {}
        self.open: dict[int, None] = {}  # nodes whose component is not complete, in order
        self.found = [False] * len(after)

    def visit(self, root: int) -> None:
        """All that the root reaches."""
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                self.order[node] = self.low[node] = len(self.order)
                self.open[node] = None
            if at < len(self.after[node]):
                work.append((node, at + 1))
                child = self.after[node][at]
                if child not in self.order:
                    work.append((child, 0))
                elif child in self.open:
                    self.low[node] = min(self.low[node], self.order[child])
                continue
            if work:
                parent = work[-1][0]
                self.low[parent] = min(self.low[parent], self.low[node])
            if self.low[node] == self.order[node]:
                self.close(node)

    def close(self, node: int) -> None:
        """The component whose first node this is, is complete."""
        members: list[int] = []
        while not members or members[-1] != node:
            members.append(self.open.popitem()[0])
        for member in members:
            self.found[member] = len(members) > 1 or node in self.after[node]
