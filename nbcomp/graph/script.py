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

from nbcomp.graph.editable import EditableGraph
from nbcomp.graph.editable_node import EditableNode
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
    lines = [f"def forward({', '.join(['self', *inputs])}):"]
    for node in graph.nodes:
        match node.op:
            case "get_attr":
                lines.append(f"    {names[node]} = {attribute(str(node.target))}")
            case "call_function":
                where = f"  # {node.location}" if node.location else ""
                lines.append(f"    {names[node]} = {names.call(node, 'op')}{where}")
            case "output":
                lines += [f"    {array}[...] = {names[value]}" for array, value in writes]
                lines.append(f"    return {names.result(node, len(node.args) - len(writes))}")
    return "\n".join(lines) + "\n"


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
    """A Python name for every node, and what is written with them."""

    def __init__(self, graph: EditableGraph) -> None:
        self._names: dict[EditableNode, str] = {}
        taken = {"self", "np", "op", "R"}
        for node in graph.nodes:
            name = "".join(c if c.isalnum() else "_" for c in node.name)
            name = f"_{name}" if name[:1].isdigit() or keyword.iskeyword(name) else name
            while name in taken:
                name += "_"
            taken.add(name)
            self._names[node] = name

    def __getitem__(self, value: Any) -> str:
        return self._names[value] if isinstance(value, EditableNode) else literal(value)

    def call(self, node: EditableNode, prefix: str, numpy: bool = True) -> str:
        """A call as Python writes it; with `numpy`, by NumPy's name where that needs no more."""
        if node.operator is None:
            few = node.value.size <= MOST_WRITTEN and np.isfinite(node.value).all()
            value = node.value.tolist() if few else "..."
            return f'{prefix}.constant({value}, dtype="{node.value.dtype.name}")'
        args = [self[a] for a in node.args]
        args += [f"{k}={literal(v)}" for k, v in node.kwargs.items()]
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
