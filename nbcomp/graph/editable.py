"""A graph people can edit: nodes in an order, inserted, replaced and erased in place.

The compiler's `Graph` never changes; `EditableGraph(graph)` is a copy that does, and `to_graph()`
the way back, which infers every type anew.  Nodes have the opcodes and fields that users of
`torch.fx` know: placeholder, get_attr, call_function, output; target, args, kwargs, users.  Knows
graphs and the tracers of NumPy functions, not where graphs come from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nbcomp.errors import VerifyError
from nbcomp.graph.editable_copy import Copying, attribute, back, operand
from nbcomp.graph.editable_node import EditableNode, EditError, Literal
from nbcomp.graph.ir import Graph, Node, apply
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Input, Op
from nbcomp.types import TensorType


class EditableGraph:
    """The nodes of a program in the order in which they run."""

    def __init__(self, graph: Graph, attributes: Mapping[Node, str] | None = None) -> None:
        """attributes: the inputs that are read from somewhere, with their paths."""
        self.name = graph.name
        self._nodes: list[EditableNode] = []
        self._at: int | None = None  # where nodes are inserted; None: before the output
        self._graph: tuple[Graph, dict[EditableNode, Node]] | None = None
        self._copying = Copying(self, self._unused)
        paths = attributes or {}
        inputs = sorted(graph.inputs, key=lambda n: n in paths)
        for node in (*inputs, *(n for n in graph.nodes if n not in graph.inputs)):
            made = self._copying.node(node, paths.get(node))
            if made is not None:
                self._nodes.append(made)
        returned = tuple(self.copied[n] for n in graph.outputs)
        last = EditableNode(self, "output", self._unused("output"), returned, target="output")
        self._nodes.append(last)

    # --------------------------------------------------------------------------------- reading

    @property
    def copied(self) -> dict[Node, Any]:
        """What each node of the original graph became; scalar constants became numbers."""
        return self._copying.made

    @property
    def nodes(self) -> list[EditableNode]:
        """All nodes, in order: a copy, so that a loop over them may edit the graph."""
        return list(self._nodes)

    def __iter__(self) -> Iterator[EditableNode]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def output_node(self) -> EditableNode:
        """The node that says what the program returns."""
        return self._nodes[-1]

    def find_nodes(self, op: str, target: Any = None) -> list[EditableNode]:
        """The nodes with this opcode and, if given, target (e.g. np.add)."""
        return [n for n in self._nodes if n.op == op and target in (None, n.target)]

    # --------------------------------------------------------------------------------- editing

    @contextlib.contextmanager
    def inserting_before(self, node: EditableNode | None = None) -> Iterator[None]:
        """Insert what is made inside before a node (default: at the beginning)."""
        with self._inserting(0 if node is None else self._index(node)):
            yield

    @contextlib.contextmanager
    def inserting_after(self, node: EditableNode | None = None) -> Iterator[None]:
        """Insert what is made inside after a node (default: at the end)."""
        if node is self.output_node:
            raise EditError("nothing comes after the output")
        with self._inserting(len(self._nodes) - 1 if node is None else self._index(node) + 1):
            yield

    @contextlib.contextmanager
    def _inserting(self, index: int) -> Iterator[None]:
        before, self._at = self._at, index
        try:
            yield
        finally:
            self._at = before

    def placeholder(
        self, name: str, type: TensorType | None, before: EditableNode | None = None
    ) -> EditableNode:
        """A new input, after the others (or before one of them); without type, one not read."""
        node = EditableNode(self, "placeholder", self._unused(name), target=name)
        node.given = type
        places = [k for k, n in enumerate(self._nodes) if n.op == "placeholder"]
        index = places[-1] + 1 if places else 0
        index = index if before is None else self._index(before)
        self._nodes.insert(index, node)
        if self._at is not None and index <= self._at:
            self._at += 1
        return node

    def constant(self, value: Any, name: str = "constant") -> EditableNode:
        """An array that is part of the program."""
        return self._inserted(attribute(self, self._unused(f"_{name}"), np.asarray(value)))

    def call_function(
        self, function: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The call of a NumPy function, a function of `nn.functional`, or an operator.

        args may hold nodes, numbers and arrays.  Inserts as many nodes as the call is operators
        (a cast where dtypes differ, say) and gives that of the result; a tuple for several.
        Raises what the function raises for such operands, and `EditError` for other functions.
        """
        standing: dict[Node, EditableNode] = {}

        def stand_in(value: Any) -> Any:
            if isinstance(value, EditableNode):
                self._owned(value)
                assert value.type is not None
                node = Node(Input(len(standing), value.type), (), value.type, weak=value.weak)
                standing[node] = value
                return node
            if isinstance(value, tuple | list):
                return type(value)(map(stand_in, value))
            return value

        given = tuple(map(stand_in, args))
        named = {k: stand_in(v) for k, v in (kwargs or {}).items()}
        if isinstance(function, Op):
            result: Any = apply(function, *given)
        elif isinstance(function, type) and issubclass(function, Op):
            result = apply(function(**named), *given)
        elif function in NUMPY:
            result = NUMPY[function].trace(*given, **named)
        else:
            raise EditError(
                f"{function!r} is not an operator",
                hint="a NumPy function, one of nbcomp.nn.functional, or an operator's class",
            )
        return self._spliced(result, standing)

    def output(self, value: Any) -> EditableNode:
        """Return something else: a node or a tuple of nodes."""
        nodes = tuple(value) if isinstance(value, tuple | list) else (value,)
        self.output_node.args = nodes
        return self.output_node

    def erase_node(self, node: EditableNode) -> None:
        """Take out a node that nothing reads; raises `EditError` for any other."""
        self._owned(node)
        if node.users:
            readers = ", ".join(n.name for n in node.users)
            raise EditError(f"{node.name} is read by {readers}; replace its uses first")
        if node.op == "output":
            raise EditError("a program has an output")
        node.args = ()
        index = self._index(node)
        del self._nodes[index]
        if self._at is not None and index < self._at:
            self._at -= 1
        self.changed()

    def eliminate_dead_code(self) -> bool:
        """Erase calls and attributes that nothing reads; tells whether there were any."""
        before = len(self._nodes)
        for node in reversed(self.nodes):
            if not node.users and node.op in ("call_function", "get_attr"):
                self.erase_node(node)
        return len(self._nodes) < before

    # ------------------------------------------------------------------------------- meaning

    def lint(self) -> None:
        """Raise VerifyError unless nodes are computed before they are read, belong to this graph,
        have names of their own, and every operator takes its operands."""
        seen: set[EditableNode] = set()
        names: set[str] = set()
        for node in self._nodes:
            if node.name in names:
                raise VerifyError(f"two nodes have the name {node.name}", node.location)
            for read in node.all_input_nodes:
                if read.graph is not self or read not in self._nodes:
                    raise VerifyError(
                        f"{node.name} reads {read.name}, which is not in this graph",
                        node.location,
                    )
                if read not in seen:
                    raise VerifyError(
                        f"{node.name} reads {read.name}, which is computed after it",
                        node.location,
                    )
            seen.add(node)
            names.add(node.name)
        try:
            self._nodes_of_graph()
        except EditError as error:
            raise VerifyError(error.message, error.location) from None

    def to_graph(self) -> Graph:
        """The program as the compiler takes it: its inputs are the placeholders, then attributes.

        Raises `EditError` where an operator does not take its operands.
        """
        self._nodes_of_graph()
        assert self._graph is not None
        return self._graph[0]

    def inputs(self) -> list[EditableNode]:
        """The nodes that are inputs of `to_graph()`, in their order."""
        nodes = [n for n in self._nodes if n.op in ("placeholder", "get_attr") and n.given]
        return sorted((n for n in nodes if n.value is None), key=lambda n: n.op != "placeholder")

    def node_of(self, value: Any) -> Node:
        """The node of `to_graph()` that a node is; a constant for a number."""
        return operand(value, self._nodes_of_graph())

    def _nodes_of_graph(self) -> dict[EditableNode, Node]:
        if self._graph is None:
            returned = [a for a in self.output_node.args if _is_computed(a)]
            self._graph = back(self.name, self.inputs(), self._nodes, returned)
        return self._graph[1]

    # ------------------------------------------------------------------------------- the parts

    def changed(self) -> None:
        """Types have to be inferred anew."""
        self._graph = None

    def _index(self, node: EditableNode) -> int:
        self._owned(node)
        return self._nodes.index(node)

    def _owned(self, node: EditableNode) -> None:
        if node.graph is not self or node not in self._nodes:
            raise EditError(f"{node.name} is not in this graph")

    def _unused(self, name: str) -> str:
        taken = {n.name for n in self._nodes}
        result, count = name, 0
        while result in taken:
            count += 1
            result = f"{name}_{count}"
        return result

    def _inserted(self, node: EditableNode) -> EditableNode:
        index = len(self._nodes) - 1 if self._at is None else self._at
        self._nodes.insert(index, node)
        if self._at is not None:
            self._at += 1
        self.changed()
        return node

    def _spliced(self, result: Any, standing: dict[Node, EditableNode]) -> Any:
        """Insert the nodes of a small graph; the stand-ins are nodes that are here already."""
        if isinstance(result, tuple | list):
            return tuple(self._spliced(r, standing) for r in result)
        copying = Copying(self, self._unused)
        copying.made.update(standing)
        for node in Graph("", (), (result,)).nodes:
            if node not in copying.made:
                made = copying.node(node)
                if made is not None:
                    self._inserted(made)
        standing.update(copying.made)
        return standing[result]

    # --------------------------------------------------------------------------------- printed

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs."""
        from nbcomp.graph.table import table  # the printers import what they print

        print(table(self))

    def to_networkx(self) -> Any:
        """The graph as a `networkx.DiGraph`, an edge from each operand to its readers."""
        from nbcomp.graph.table import to_networkx

        return to_networkx(self)

    def __str__(self) -> str:
        from nbcomp.graph.table import text

        return text(self)


def _is_computed(value: Any) -> bool:
    """Whether what is returned is computed, and no argument that nothing reads."""
    if isinstance(value, EditableNode):
        return value.op != "placeholder" or value.given is not None
    return not isinstance(value, Literal)
