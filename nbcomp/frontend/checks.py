"""Nodes that end the program where a run-time value is bad, upon which Python runs the call.

Each is a small kernel that may exit; an operator in which NumPy may raise ends it as well.  Knows
graphs and the loop IR; no tracers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nbcomp.graph.control import Control, Loops, Result
from nbcomp.graph.ir import Node, apply, topological
from nbcomp.loop.grammar import (
    Block,
    Buffer,
    Exit,
    Expr,
    Failure,
    If,
    Kernel,
    Load,
    Store,
    const,
)
from nbcomp.ops.operand import cast
from nbcomp.record import Location
from nbcomp.types import BOOL, DType, TensorType


def scalars(names: str, dtype: DType) -> list[Buffer]:
    """Operands of a check: numbers of these names, a letter each."""
    return [Buffer(name, dtype, (), (), "input") for name in names]


def ending(
    name: str, failure: Failure, bad: Expr, value: Expr, operands: Sequence[Buffer], *args: Node
) -> tuple[Node, Node]:
    """`value`, and the node that ends the program instead where `bad` holds; both are of the
    operands, which are these arguments."""
    where = failure.location
    out = Buffer("out", value.dtype, (), (), "output")
    body = If(bad, (Exit(failure, None, where),), (), where), Store(out, (), value, where)
    kernel = Kernel(name, (*operands, out), (Block(body, where),), where, written=True)
    given = [cast(a, b.dtype) for a, b in zip(args, operands, strict=True)]
    loops = apply(Loops(kernel), *given, name=name)
    return apply(Result(0, TensorType(value.dtype, ())), loops), loops


def raising(kind: str, message: str, bad: Node, where: Location | None) -> Node:
    """The node that ends the program where `bad`, a bool, is true.

    kind, message: of what Python raises there, by the name of its class.
    """
    text = message.replace("{", "{{").replace("}", "}}")
    failure = Failure(kind, text, where, certain=False)
    (operand,) = scalars("a", BOOL)
    read = Load(BOOL, operand, (), where)
    return ending("check", failure, read, const(True, BOOL), [operand], bad)[1]


def results_of(node: Node) -> list[Node]:
    """The results of a control node."""
    types: Sequence[TensorType] = node.op.results()  # type: ignore[attr-defined]
    return [apply(Result(k, t), node) for k, t in enumerate(types)]


def results_to_reach(effects: Iterable[Node], outputs: Iterable[Node]) -> list[Node]:
    """What has to be an output besides these, for nodes that may end the program to be computed."""
    reached = set(topological(outputs))
    missing = [n for n in dict.fromkeys(effects) if n not in reached]
    inside = set(topological(operand for n in missing for operand in n.inputs))
    last = (n for n in missing if n not in inside)
    return [results_of(n)[0] if isinstance(n.op, Control) else n for n in last]
