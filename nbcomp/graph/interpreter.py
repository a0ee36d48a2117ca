"""Runs a graph node by node, by each operator's NumPy reference: the meaning of the graph IR.

`Interpreter` is made to be subclassed (to time, count, record or replace what nodes compute), and
`Transformer` is one whose values are nodes: what it computes is another graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from nbcomp.graph.control import Control
from nbcomp.graph.ir import Graph, Node, apply, at
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Constant, Input, Op
from nbcomp.settling import Lengths, lengths_of, numbers
from nbcomp.sizes import is_open


def interpret(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs, in order, for one array per input.  Floating-point warnings are silenced."""
    values = evaluate(graph, arrays)
    return [values[n] for n in graph.outputs]


def evaluate(
    graph: Graph, arrays: Sequence[Any], known: Lengths = MappingProxyType({})
) -> dict[Node, Any]:
    """The value of every node.  known: lengths that are open, and that no input tells."""
    values: dict[Node, Any] = {}
    position = {node: i for i, node in enumerate(graph.inputs)}
    lengths = {**known, **lengths_in(graph, arrays)}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if isinstance(node.op, Input):
                values[node] = np.asarray(arrays[position[node]])
            else:
                op = numbers(node.op, lengths) if lengths else node.op
                result = op.reference(*(values[i] for i in node.inputs))
                values[node] = result if isinstance(node.op, Control) else np.asarray(result)
    return values


def lengths_in(graph: Graph, arrays: Sequence[Any]) -> Lengths:
    """The lengths of arrays that a graph leaves open."""
    if not any(is_open(n.shape) for n in graph.inputs):
        return {}
    return lengths_of((n.shape, np.shape(a)) for n, a in zip(graph.inputs, arrays, strict=True))


# What torch.fx's interpreters call, and what these call instead.
OF_TORCH = {
    "call_function": "call, or call_<operator>",
    "call_method": "call, or call_<operator>",
    "call_module": "call, or call_<operator> (call_linear)",
    "placeholder": "input",
    "get_attr": "input, which has the parameters, or constant",
}


class Interpreter:
    """Runs a graph, each step of it open to a subclass.

    `run_node` computes one node and is called for all of them in order; `call` computes one
    operator.  A method `call_softmax(self, op, x)` is called for that operator instead of `call`.
    `values` holds what was computed so far, by the nodes of `graph`, each of which has a name: the
    user's, or one made of its operator.  Nodes are operators, not calls of modules and
    functions: a subclass with torch.fx's `call_function`, `call_module`, ... raises TypeError.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raises TypeError for methods of torch.fx's that nothing would call."""
        super().__init_subclass__(**kwargs)
        for name, ours in OF_TORCH.items():
            if name in vars(cls):
                raise TypeError(
                    f"{cls.__name__}.{name} would not be called: nodes are operators here, not"
                    f" calls as in torch.fx; override {ours}"
                )

    def __init__(self, graph: Any) -> None:
        self.graph, self._names_made = with_names(as_graph(graph))
        self.values: dict[Node, Any] = {}
        self._lengths: Lengths = {}  # that the graph leaves open

    def run(self, *arguments: Any) -> Any:
        """The output, or a tuple of several, for one value per input."""
        graph = self.graph
        if len(arguments) != len(graph.inputs):
            names = ", ".join(n.name for n in graph.inputs)
            raise TypeError(f"{graph.name} takes {len(graph.inputs)} inputs ({names})")
        self.values = {}
        if not any(isinstance(a, Node) for a in arguments):
            self._lengths = lengths_in(graph, arguments)
        given = dict(zip(graph.inputs, arguments, strict=True))
        with np.errstate(all="ignore"):
            for node in graph.nodes:
                try:
                    is_input = isinstance(node.op, Input)
                    self.values[node] = (
                        self.input(node, given[node]) if is_input else self.run_node(node)
                    )
                except Exception as error:
                    _say_where(error, node)
                    raise
        return self.output(tuple(self.values[n] for n in graph.outputs))

    def input(self, node: Node, value: Any) -> Any:
        """The value of an input."""
        return np.asarray(value)

    def run_node(self, node: Node) -> Any:
        """The value of a node whose operands have theirs."""
        if isinstance(node.op, Constant):
            return self.constant(node)
        operands = (self.values[n] for n in node.inputs)
        op = numbers(node.op, self._lengths) if self._lengths else node.op
        special = getattr(self, f"call_{op.name}", None)
        return special(op, *operands) if special else self.call(op, *operands)

    def constant(self, node: Node) -> Any:
        """The value of a constant."""
        return node.op.reference()

    def call(self, op: Op, *operands: Any) -> Any:
        """What an operator makes of its operands."""
        return op.reference(*operands)

    def output(self, values: tuple[Any, ...]) -> Any:
        """What `run` returns."""
        return values[0] if len(values) == 1 else values


class Transformer(Interpreter):
    """An interpreter whose values are nodes: `transform` gives the graph of what it computes.

    Override `call`, or `call_<operator>`, to write a node in other operators:

        class Approximate(Transformer):
            def call_gelu(self, op, x):
                return self.call(Gelu(tanh=True), x)
    """

    def transform(self) -> Graph:
        """The new graph, with the same inputs."""
        outputs = self.run(*self.graph.inputs)
        roots = outputs if isinstance(outputs, tuple) else (outputs,)
        return Graph(self.graph.name, self.graph.inputs, roots)

    def input(self, node: Node, value: Any) -> Any:
        return value

    def run_node(self, node: Node) -> Any:
        with at(node.location, node.layers):
            result: Node = super().run_node(node)
        if result is self.values.get(node) or isinstance(result.op, Input):
            return result
        if result.name or node in self._names_made:
            return result
        return replace(result, name=node.name)

    def constant(self, node: Node) -> Any:
        return replace(node, name="") if node in self._names_made else node

    def call(self, op: Op, *operands: Any) -> Any:
        """The operator on these nodes."""
        return apply(op, *operands)

    def numpy(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The node, or nodes, of a NumPy function's call on nodes and numbers."""
        return NUMPY[function].trace(*args, **kwargs)


def with_names(graph: Graph) -> tuple[Graph, set[Node]]:
    """The graph with a name for every node, and the nodes whose name is not the user's but made of
    their operator (`matmul`, `matmul_1`)."""
    taken = {node.name for node in graph.nodes}
    counts: Counter[str] = Counter()
    new: dict[Node, Node] = {}
    made: set[Node] = set()
    for node in graph.nodes:
        inputs = tuple(new[i] for i in node.inputs)
        new[node] = replace(node, inputs=inputs, name=node.name or _unused(node, taken, counts))
        if not node.name:
            made.add(new[node])
    inputs, outputs = (tuple(new[n] for n in part) for part in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, outputs), made


def _unused(node: Node, taken: set[str], counts: Counter[str]) -> str:
    """A name of an operator's that no node has yet."""
    base = f"arg{node.op.index}" if isinstance(node.op, Input) else node.op.name
    while True:
        name = f"{base}_{counts[base]}" if counts[base] else base
        counts[base] += 1
        if name not in taken:
            return name


def as_graph(value: Any) -> Graph:
    """A graph, that of an editable graph, or that of whatever has one as its `graph`."""
    found = value if hasattr(value, "inputs") or hasattr(value, "to_graph") else value.graph
    graph: Graph = found.to_graph() if hasattr(found, "to_graph") else found
    return graph


def _say_where(error: Exception, node: Node) -> None:
    """Note which node it was, and the user's line."""
    where = f"\n{node.location.excerpt()}" if node.location else ""
    note = f"while running the node {node.name or node.op.name}: {node.type}{where}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
