"""A captured program that a function calls: its graph becomes part of the function's.

The arguments are checked as the program itself checks them; what it reads besides becomes an input
of the capture, read at every call.  Knows captures as data, not who made them.
"""

from __future__ import annotations

from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.dispatch import fresh, lower
from nbcomp.frontend.location import here
from nbcomp.frontend.result import Out, ViewOf, bind, leaves, rebuild, resolve
from nbcomp.frontend.session import attributed
from nbcomp.graph.ir import Node, apply, noting
from nbcomp.graph.op import Input
from nbcomp.runtime.plan import Guard
from nbcomp.sizes import is_open

CAPTURED = "__nbcomp_captured__"  # names the attribute with the capture an object stands for


class Inlined:
    """What the traced function sees in place of a captured program.

    lifter: lifts what the program reads besides its arguments.
    """

    def __init__(self, lifter: Any, program: Any) -> None:
        self._lifter, self._session = lifter, lifter.session
        self.__name__ = program.name
        self._capture = getattr(program, getattr(type(program), CAPTURED))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The program's results, as nodes of the running capture.

        Raises TypeError for arguments that do not fit, and `Unsupported` for other types than the
        program was captured with, and for what cannot be part of another program.
        """
        captured = self._capture
        self._check_composes()
        values = bind(captured.signature, args, kwargs)
        nodes: dict[Node, Node] = {}
        inputs = captured.graph.inputs
        for node, guard in zip(inputs, captured.guards[: len(inputs)], strict=True):
            nodes[node] = self._input(node, guard, values)
        effects = self._session.effects
        with attributed(self._session.layers()), noting(effects):
            for node in captured.graph.nodes:
                if not isinstance(node.op, Input):
                    made = apply(node.op, *(nodes[i] for i in node.inputs), name=node.name)
                    nodes[node] = made
        returned = {leaf.index for leaf in leaves(captured.result) if isinstance(leaf, Out)}
        effects += [nodes[n] for k, n in enumerate(captured.graph.outputs) if k not in returned]
        scalars = captured.scalar_outputs
        outputs = [
            fresh(self._session, nodes[n], k in scalars)
            for k, n in enumerate(captured.graph.outputs)
        ]
        return rebuild(captured.result, outputs, values)

    def _check_composes(self) -> None:
        """Raise `Unsupported` for a program whose results are more than new arrays."""
        captured, why = self._capture, ""
        shown = leaves(captured.result)
        returned = {leaf.index for leaf in shown if isinstance(leaf, Out)}
        if captured.writes:
            why = "writes to its arguments"
        elif any(isinstance(leaf, ViewOf) for leaf in shown):
            why = "returns a view"
        elif any(isinstance(leaf, Out) and leaf.python for leaf in shown):
            why = "returns a Python number"
        elif captured.sizes is not None:
            why = "has lengths left open"
        elif returned != {*range(len(captured.graph.outputs))}:
            why = "checks values at run time"
        if why:
            raise Unsupported(
                f"{self.__name__} {why}: such a captured program is not made part of another one",
                here(),
                "call the function it was captured from",
            )

    def _input(self, node: Node, guard: Guard, values: tuple[Any, ...]) -> Node:
        """The node for an input of the program."""
        source = guard.source
        value = resolve(source, values)
        if source.kind != "argument":
            value = self._lifter.lift(value, source)
        given = lower(self._session, value)
        found = given.type if isinstance(given, Node) else type(given).__name__
        if not isinstance(given, Node) or is_open(given.shape) or found != node.type:
            raise Unsupported(
                f"{self.__name__} was captured with {source.dotted()}: {node.type}, not {found}",
                here(),
                "capture it again with such an argument",
            )
        return given
