"""Between the compiler's graphs and editable ones: copying in, and the way back.

Knows both kinds of node; which nodes there are and in which order is the editable graph's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.graph.editable_node import EditableNode, EditError, Opcode, Owner
from nbcomp.graph.ir import Graph, Node, apply, at
from nbcomp.graph.op import Constant, Input
from nbcomp.types import TensorType


class Copying:
    """Makes editable nodes of the compiler's.

    unused: a name that no node has yet, from one that is wanted.  made: what each node became; a
    scalar constant became its number.
    """

    def __init__(self, owner: Owner, unused: Callable[[str], str]) -> None:
        self.owner, self.unused = owner, unused
        self.made: dict[Node, Any] = {}

    def node(self, node: Node, path: str | None = None) -> EditableNode | None:
        """The editable node, None for a scalar constant; path: of an input read from there."""
        if isinstance(node.op, Constant) and not node.shape:
            self.made[node] = node.op.value[()]
            return None
        if isinstance(node.op, Constant):
            made = self._constant(node)
        elif isinstance(node.op, Input):
            made = self._input(node, path)
        else:
            args = tuple(self.made[n] for n in node.inputs)
            name = self.unused(node.name or node.op.name)
            made = EditableNode(self.owner, "call_function", name, args, node.op)
        made.location, made.variable, made.weak = node.location, node.name, node.weak
        self.made[node] = made
        return made

    def _input(self, node: Node, path: str | None) -> EditableNode:
        assert isinstance(node.op, Input)
        name = self.unused(node.name or f"arg{node.op.index}")
        opcode: Opcode = "placeholder" if path is None else "get_attr"
        made = EditableNode(self.owner, opcode, name, target=name if path is None else path)
        made.given, made.strides = node.type, node.op.strides
        return made

    def _constant(self, node: Node) -> EditableNode:
        assert isinstance(node.op, Constant)
        return attribute(self.owner, self.unused("_constant"), node.op.value)


def attribute(owner: Owner, name: str, value: Any) -> EditableNode:
    """An array that is part of the program."""
    made = EditableNode(owner, "get_attr", name, target=name)
    made.value, made.given = value, TensorType(value.dtype, value.shape)
    return made


def back(
    name: str,
    inputs: Sequence[EditableNode],
    nodes: Sequence[EditableNode],
    returned: Sequence[Any],
) -> tuple[Graph, dict[EditableNode, Node]]:
    """The compiler's graph of editable nodes, and what each became; infers every type.

    Raises `EditError` where an operator does not take its operands.
    """
    made: dict[EditableNode, Node] = {}
    for index, node in enumerate(inputs):
        assert node.given is not None
        op = Input(index, node.given, node.strides)
        made[node] = Node(op, (), node.given, node.location, node.name, node.weak)
    for node in nodes:
        if node.op == "call_function" or node.value is not None:
            made[node] = _made(node, made)
    outputs = tuple(operand(a, made) for a in returned)
    return Graph(name, tuple(made[n] for n in inputs), outputs), made


def _made(node: EditableNode, made: dict[EditableNode, Node]) -> Node:
    """The compiler's node for one whose operands have theirs."""
    if node.value is not None:
        return Node(Constant(node.value), (), TensorType(node.value.dtype, node.value.shape))
    assert node.operator is not None
    try:
        with at(node.location):
            operands = [operand(a, made, node) for a in node.args]
            result = apply(node.operator, *operands, name=node.variable)
    except NbcompError:
        raise
    except Exception as error:
        raise EditError(f"{node.name}: {error}", node.location) from None
    return replace(result, weak=True) if node.weak else result


def operand(value: Any, made: dict[EditableNode, Node], user: EditableNode | None = None) -> Node:
    """An operand's node; a Python number has the dtype of the arrays it meets."""
    if isinstance(value, EditableNode):
        if value not in made:
            reader = user.name if user else "the output"
            raise EditError(f"{reader} reads {value.name}, which is not computed before it")
        return made[value]
    dtypes = [made[n].type.dtype for n in user.all_input_nodes if n in made] if user else []
    weak = type(value) in (int, float, bool) and dtypes
    dtype = np.result_type(*dtypes, value) if weak else None
    return apply(Constant(np.asarray(value, dtype)))
