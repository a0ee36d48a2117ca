"""Editable graphs as Python: `code`, a function that can be run, and `script`, the typed form.

`code` is written in NumPy's names where a call is one, else in those of `nbcomp.op`.  `script` is
the notation that users of TVM's Relax know: one dataflow block, every value with its shape and
dtype.  Knows how Python is written; changes nothing.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbcomp.graph.branches import If, While
from nbcomp.graph.control import Control, Result
from nbcomp.graph.editable import EditableGraph
from nbcomp.graph.editable_node import EditableNode
from nbcomp.graph.ir import Graph
from nbcomp.graph.op import Op
from nbcomp.types import TensorType

MOST_WRITTEN = 32  # elements of a constant that are written out


def code(graph: EditableGraph, writes: Sequence[tuple[str, Any]] = ()) -> str:
    """The program as a method: its attributes are those of `self`.

    writes: the arrays it writes to, as Python names them, with what is written; these stand last
    among what the graph returns.
    """
    names = _Names(graph)
    inputs = [names[n] for n in graph.nodes if n.op == "placeholder"]
    lines = [f"def forward({', '.join(['self', *inputs])}):", *_statements(graph, names)]
    lines += [f"    {array}[...] = {names[value]}" for array, value in writes]
    output = graph.output_node
    lines.append(f"    return {names.result(output, len(output.args) - len(writes))}")
    return "\n".join(lines) + "\n"


def _statements(graph: EditableGraph, names: _Names, indent: str = "    ") -> list[str]:
    """The nodes' assignments, and control flow as Python's."""
    lines: list[str] = []
    for node in graph.nodes:
        where = f"  # {node.location}" if node.location else ""
        if node.op == "get_attr":
            lines.append(f"{indent}{names[node]} = {attribute(str(node.target))}")
        elif isinstance(node.operator, If):
            lines += _branches(node, node.operator, names, indent, where)
        elif isinstance(node.operator, While):
            lines += _loop(node, node.operator, names, indent, where)
        elif node.op == "call_function" and not isinstance(node.operator, Result):
            left = ", ".join(_results(node, names)) or names[node]
            lines.append(f"{indent}{left} = {names.call(node, 'op')}{where}")
    return lines


def _results(node: EditableNode, names: _Names) -> list[str]:
    """The variables for the results of a control node; none for any other."""
    if not isinstance(node.operator, Control):
        return []
    made = {u.kwargs["index"]: names[u] for u in node.users if isinstance(u.operator, Result)}
    return [made.get(k) or names.new("_") for k in range(len(node.operator.results()))]


def _branches(node: EditableNode, op: If, names: _Names, indent: str, where: str) -> list[str]:
    results = _results(node, names)
    condition, *operands = node.args
    lines = []
    for head, block in ((f"if {names[condition]}:{where}", op.then), ("else:", op.orelse)):
        lines += [
            indent + head,
            *_block(block, [names[a] for a in operands], names, indent, results),
        ]
    return lines


def _loop(node: EditableNode, op: While, names: _Names, indent: str, where: str) -> list[str]:
    carried = _results(node, names)
    operands = [names[a] for a in node.args]
    variables = [*carried, *operands[len(carried) :]]
    test = names.new("test")
    return [
        f"{indent}{', '.join(carried)} = {', '.join(operands[: len(carried)])}",
        f"{indent}while True:{where}",
        *_block(op.test, variables, names, indent, [test]),
        f"{indent}    if not {test}:",
        f"{indent}        break",
        *_block(op.body, variables, names, indent, carried),
    ]


def _block(
    block: Graph, variables: list[str], names: _Names, indent: str, results: list[str]
) -> list[str]:
    """A graph that a control node owns, on these variables, its outputs assigned to others."""
    inner = EditableGraph(block)
    indent += "    "
    inside = _Names(inner, names, dict(zip(inner.inputs(), variables, strict=True)))
    lines = _statements(inner, inside, indent)
    values = [inside[a] for a in inner.output_node.args]
    if results:
        lines.append(f"{indent}{', '.join(results)} = {', '.join(values)}")
    return lines or [f"{indent}pass"]


def script(graph: EditableGraph, inputs: list[EditableNode], function: str = "forward") -> str:
    """The program as a module with one typed function."""
    names = _Names(graph)
    calls = [n for n in graph.nodes if n.op == "call_function" or n.value is not None]
    parameters = [f"{names[n]}: {tensor(n.type)}" for n in inputs]
    results = [a.type if isinstance(a, EditableNode) else None for a in graph.output_node.args]
    shown = ", ".join(map(tensor, results))
    returned = shown if len(results) == 1 else f"R.Tuple({shown})"
    lines = [
        "from nbcomp import op as R",
        "",
        "@R.module",
        f"class {graph.name}:",
        "    @R.function",
        *_heading(function, parameters, returned),
        "        with R.dataflow():",
    ]
    texts = [f"{names[n]}: {tensor(n.type)} = {names.call(n, 'R', False)}" for n in calls]
    width = min(96, max(map(len, texts), default=0))
    for node, text in zip(calls, texts, strict=True):
        where = f"  # {node.location}" if node.location else ""
        lines.append(f"            {text:<{width}}{where}".rstrip())
    lines.append(f"            R.output({', '.join(names[a] for a in graph.output_node.args)})")
    lines.append(f"        return {names.result(graph.output_node)}")
    return "\n".join(lines) + "\n"


def _heading(function: str, parameters: list[str], returned: str) -> list[str]:
    """A function's first line, or a line for each parameter."""
    line = f"    def {function}({', '.join(parameters)}) -> {returned}:"
    if len(line) <= 100:
        return [line]
    return [f"    def {function}(", *(f"        {p}," for p in parameters), f"    ) -> {returned}:"]


def tensor(t: TensorType | None) -> str:
    """A type as the script writes it."""
    return f'R.Tensor({t.shape!r}, dtype="{t.dtype.name}")' if t else "None"


def attribute(path: str) -> str:
    """An attribute's path as Python reads it from `self`; numbers are no names."""
    result = "self"
    for part in path.split("."):
        result = f"{result}.{part}" if part.isidentifier() else f"getattr({result}, {part!r})"
    return result


class _Names:
    """A Python name for every node, and what is written with them.

    outer: the names around, which are taken; given: the names of some nodes.
    """

    def __init__(
        self,
        graph: EditableGraph,
        outer: _Names | None = None,
        given: dict[EditableNode, str] | None = None,
    ) -> None:
        self._taken: set[str] = {"self", "np", "op", "R"} if outer is None else outer._taken
        self._names = dict(given or {})
        for node in graph.nodes:
            if node not in self._names:
                self._names[node] = self.new(node.name)

    def new(self, wanted: str) -> str:
        """A name that nothing has."""
        name = "".join(c if c.isalnum() else "_" for c in wanted)
        name = f"_{name}" if name[:1].isdigit() or keyword.iskeyword(name) else name
        base, count = name.rstrip("0123456789").rstrip("_") or name, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def __getitem__(self, value: Any) -> str:
        return self._names[value] if isinstance(value, EditableNode) else literal(value)

    def call(self, node: EditableNode, prefix: str, numpy: bool = True) -> str:
        """A call as Python writes it; with `numpy`, by NumPy's name where that needs no more."""
        if node.operator is None:
            few = node.value.size <= MOST_WRITTEN and np.isfinite(node.value).all()
            value = node.value.tolist() if few else "..."
            return f'{prefix}.constant({value}, dtype="{node.value.dtype.name}")'
        args = [self[a] for a in node.args]
        owned = isinstance(node.operator, Control)
        args += ["..."] if owned else [f"{k}={literal(v)}" for k, v in node.written_kwargs.items()]
        return f"{called(node.operator, prefix, numpy)}({', '.join(args)})"

    def result(self, node: EditableNode, count: int | None = None) -> str:
        """What the output node returns: all of it, or the first ones."""
        parts = [self[a] for a in node.args[:count]]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def called(operator: Op, prefix: str, numpy: bool) -> str:
    """The function that an operator's call is written with."""
    first = operator.numpy[0] if operator.numpy else None
    if numpy and isinstance(first, np.ufunc) and not operator.attributes():
        return f"np.{first.__name__}"
    dialect = "" if operator.dialect == "tensor" else f"{operator.dialect}."
    return f"{prefix}.{dialect}{operator.name}"


def literal(value: Any) -> str:
    """A constant as Python writes it, with its dtype where it is NumPy's."""
    match value:
        case np.dtype():
            return f'np.dtype("{value.name}")'
        case np.generic() if value.dtype.name in ("bool", "float64", "int64"):
            return literal(value.item())
        case np.generic():
            return f"np.{value.dtype.name}({literal(value.item())})"
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case tuple():
            inner = ", ".join(map(literal, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case _:
            return repr(value)
