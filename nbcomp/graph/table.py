"""Editable graphs as a table, as text, and as a networkx graph: the forms users of `torch.fx` know.

Knows how graphs look; changes nothing.
"""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np

from nbcomp.graph.control import Control, Result
from nbcomp.graph.editable import EditableGraph
from nbcomp.graph.editable_node import EditableNode, EditError
from nbcomp.graph.ir import Graph
from nbcomp.graph.op import Op
from nbcomp.loop.grammar import Kernel
from nbcomp.types import TensorType

HEADINGS = ("opcode", "name", "target", "args", "kwargs")


def table(graph: EditableGraph) -> str:
    """The nodes, one a line, in columns."""
    rows = [HEADINGS, *(_row(node) for node in graph.nodes)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADINGS))]
    rows.insert(1, tuple("-" * w for w in widths))  # type: ignore[arg-type]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _row(node: EditableNode) -> tuple[str, str, str, str, str]:
    args: Any = node.args
    if node.op == "output":
        args = (node.args[0] if len(node.args) == 1 else node.args,)
    return (
        node.op,
        node.name,
        target_name(node.target),
        argument(args),
        argument(node.written_kwargs),
    )


def target_name(target: Any) -> str:
    """A target as a user writes it: np.add, nn.functional.relu, linear.weight."""
    if isinstance(target, str):
        return target
    if isinstance(target, type) and issubclass(target, Op):
        return f"nn.{target.name}" if target.dialect == "nn" else target.name
    module = getattr(target, "__module__", None) or "numpy"
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", repr(target))
    if isinstance(target, np.ufunc):
        return f"np.{target.__name__}"
    return f"{module.replace('numpy', 'np', 1).replace('nbcomp.', '', 1)}.{name}"


def argument(value: Any) -> str:
    """An argument as Python writes it; nodes by their names."""
    match value:
        case EditableNode():
            return value.name
        case tuple():
            inner = ", ".join(map(argument, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case dict():
            return "{" + ", ".join(f"{k!r}: {argument(v)}" for k, v in value.items()) + "}"
        case np.ndarray():
            return f"<{value.dtype} array {value.shape}>"
        case np.generic():
            return repr(value.item())
        case np.dtype():
            return value.name
        case Graph() | Kernel():
            return f"<{type(value).__name__.lower()} {value.name}>"
        case TensorType():
            return str(value)
        case _:
            return repr(value)


def text(graph: EditableGraph) -> str:
    """The graph in the compiler's own notation, with the user's lines."""
    inputs = ", ".join(f"%{n.name}: {_type(n)}" for n in graph.inputs())
    calls = [n for n in graph.nodes if n.op == "call_function" or n.value is not None]
    calls = [n for n in calls if not isinstance(n.operator, Result)]
    texts = [f"{_left(n)} = {_call(n)}" for n in calls]
    width = min(72, max(map(len, texts), default=0))
    lines = [f"graph {graph.name}({inputs}) {{"]
    for node, line in zip(calls, texts, strict=True):
        where = f"  # {node.location}" if node.location else ""
        lines.append(f"  {line:<{width}}{where}".rstrip())
        lines += _blocks(node)
    lines.append(f"  return {', '.join(_operand(a) for a in graph.output_node.args)}")
    return "\n".join([*lines, "}"])


def _type(node: EditableNode) -> str:
    try:
        return str(node.type)
    except EditError:
        return "?"


def _left(node: EditableNode) -> str:
    """What a line defines: a node, or the results of a control node."""
    if not isinstance(node.operator, Control):
        return f"%{node.name}: {_type(node)}"
    results = [u for u in node.users if isinstance(u.operator, Result)]
    results.sort(key=lambda u: int(u.kwargs["index"]))
    return ", ".join(f"%{u.name}: {_type(u)}" for u in results) or "_"


def _blocks(node: EditableNode) -> list[str]:
    """What a control node owns, indented."""
    lines = []
    for title, block in node.operator.blocks() if isinstance(node.operator, Control) else ():
        shown = str(EditableGraph(block)) if isinstance(block, Graph) else str(block)
        lines += [f"    {title}:", *(f"      {line}" for line in shown.splitlines())]
    return lines


def _operand(value: Any) -> str:
    return f"%{value.name}" if isinstance(value, EditableNode) else argument(value)


def _call(node: EditableNode) -> str:
    if node.operator is None:
        return "constant(<array>)"
    args = [_operand(a) for a in node.args]
    if not isinstance(node.operator, Control):
        args += [f"{k}={argument(v)}" for k, v in node.written_kwargs.items()]
    return f"{node.operator.name}({', '.join(args)})"


def to_networkx(graph: EditableGraph) -> networkx.DiGraph:
    """Nodes by name, with opcode, target, type and line; edges carry the operand's position."""
    result = networkx.DiGraph(name=graph.name)
    for node in graph.nodes:
        line = node.location.line if node.location else None
        result.add_node(
            node.name, op=node.op, target=target_name(node.target), type=_type(node), line=line
        )
    for node in graph.nodes:
        for position, operand in enumerate(node.args):
            if isinstance(operand, EditableNode):
                result.add_edge(operand.name, node.name, position=position)
    return result
