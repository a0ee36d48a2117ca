"""`EditableNode`, a node of an editable graph, with the fields that users of `torch.fx` know.

Knows its operands and readers; what it needs of the graph it is in is `Owner`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, Protocol
from typing import Literal as OneOf

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Op
from nbcomp.record import Location
from nbcomp.types import TensorType

Opcode = OneOf["placeholder", "get_attr", "call_function", "output"]


class EditError(NbcompError):
    """An edit that would leave the graph without meaning; says which node and why."""


class Owner(Protocol):
    """The graph a node is in."""

    @property
    def nodes(self) -> list[EditableNode]:
        """All nodes, in order."""

    def changed(self) -> None:
        """Types have to be inferred anew."""

    def node_of(self, value: Any) -> Node:
        """The compiler's node for one."""


@dataclass(frozen=True, eq=False)
class Literal:
    """Something a program returns that no node computes, by its text."""

    text: str

    def __repr__(self) -> str:
        return self.text


class EditableNode:
    """A node of an editable graph.

    op: its opcode.  target: the argument's name, the attribute's path, or the function (a NumPy
    function where there is one, else the operator's class).  args: nodes, and numbers for scalar
    constants.  operator: what a call computes.  value: an attribute's array, if it is a constant.
    given, strides: the type of a placeholder or attribute, and its strides in elements if it is
    not in C order.  variable: the user's, if the node is named after one.  weak: a
    Python number, whose dtype gives way to that of arrays.
    """

    def __init__(
        self,
        graph: Owner,
        op: Opcode,
        name: str,
        args: tuple[Any, ...] = (),
        operator: Op | None = None,
        target: Any = None,
    ) -> None:
        self.graph, self.op, self.name, self.operator = graph, op, name, operator
        self._target = _target(operator) if target is None else target
        self.users: dict[EditableNode, None] = {}
        self.location: Location | None = None
        self.value: Any = None
        self.variable = ""
        self.weak = False
        self.given: TensorType | None = None  # the type of a placeholder or attribute
        self.strides: tuple[int, ...] | None = None
        self._args: tuple[Any, ...] = ()
        self.args = args

    @property
    def target(self) -> Any:
        """What is called or read.  Setting it raises `EditError` for calls, whose operands another
        function may take in another way."""
        return self._target

    @target.setter
    def target(self, target: Any) -> None:
        if self.operator is not None:
            raise EditError(
                f"{self.name} stays a call of {getattr(self.target, '__name__', self.target)}: make"
                f" another one with graph.call_function, then {self.name}.replace_all_uses_with it"
            )
        self._target = target

    @property
    def args(self) -> tuple[Any, ...]:
        """The operands, in order."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        for old in self.all_input_nodes:
            old.users.pop(self, None)
        self._args = tuple(args)
        for new in self.all_input_nodes:
            new.users[self] = None
        self.graph.changed()

    @property
    def kwargs(self) -> dict[str, Any]:
        """The operator's attributes by name; setting them makes it another operator."""
        return {} if self.operator is None else self.operator.attributes()

    @kwargs.setter
    def kwargs(self, attributes: dict[str, Any]) -> None:
        if self.operator is None:
            raise EditError(f"{self.name} is no call, it has no attributes")
        self.operator = type(self.operator)(**attributes)
        self.graph.changed()

    @property
    def written_kwargs(self) -> dict[str, Any]:
        """The attributes that are not what the operator takes by itself, as they are printed."""
        if self.operator is None:
            return {}
        usual = {f.name: f.default for f in fields(self.operator)}
        return {k: v for k, v in self.kwargs.items() if usual[k] is MISSING or v != usual[k]}

    @property
    def all_input_nodes(self) -> list[EditableNode]:
        """The nodes among the operands, each once."""
        return list(dict.fromkeys(a for a in self._args if isinstance(a, EditableNode)))

    @property
    def type(self) -> TensorType | None:
        """What the node computes: inferred from the operands as they are now; None for the output
        and for arguments that nothing reads.

        Raises `EditError` where that is impossible.
        """
        if self.op == "output" or (self.op == "placeholder" and self.given is None):
            return None
        return self.graph.node_of(self).type

    @property
    def next(self) -> EditableNode:
        """The node after this one; the last one's is the first."""
        nodes = self.graph.nodes
        return nodes[(nodes.index(self) + 1) % len(nodes)]

    @property
    def prev(self) -> EditableNode:
        """The node before this one; the first one's is the last."""
        nodes = self.graph.nodes
        return nodes[nodes.index(self) - 1]

    def replace_all_uses_with(self, other: EditableNode) -> list[EditableNode]:
        """Let everything that reads this node read another; gives the nodes that were changed.

        What the other node is computed from, it included, keeps reading this one.
        """
        before = other.ancestors() | {other}
        users = [user for user in self.users if user not in before]
        for user in users:
            user.replace_input_with(self, other)
        return users

    def ancestors(self) -> set[EditableNode]:
        """All nodes this one is computed from."""
        found: set[EditableNode] = set()
        stack = [self]
        while stack:
            new = set(stack.pop().all_input_nodes) - found
            found |= new
            stack.extend(new)
        return found

    def replace_input_with(self, old: EditableNode, new: EditableNode) -> None:
        """Read another node in place of one of the operands."""
        self.args = tuple(new if a is old else a for a in self._args)

    def __repr__(self) -> str:
        return self.name


def _target(operator: Op | None) -> Any:
    """The function an operator is known by."""
    if operator is None:
        return None
    function = operator.numpy[0] if operator.numpy else getattr(np, operator.name, None)
    return function if function in NUMPY else type(operator)
