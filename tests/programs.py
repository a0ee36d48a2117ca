"""NumPy functions as graphs, step by step: captured, after each pass, fused, lowered.

For tests of what lies between capture and machine code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import nbcomp.ops  # noqa: F401  (the operators register themselves)
from nbcomp.frontend.trace import capture
from nbcomp.graph.interpreter import interpret
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Input
from nbcomp.graph.passes.fusion import fuse
from nbcomp.graph.passes.groups import FusedGraph, Group
from nbcomp.graph.passes.products import call_products, choose_products
from nbcomp.graph.verifier import verify
from nbcomp.lowering.program import Program, lower_program
from nbcomp.pipeline import GRAPH_PASSES
from nbcomp.types import TensorType

Array = np.ndarray[Any, Any]
Pass = Callable[[Graph], Graph]


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    """The graph of a function for these arguments, as it is captured."""
    return verify(capture(function, args, {}).graph)


def passed(
    function: Callable[..., Any], *args: Any, until: Pass | None = None, calls: bool = False
) -> Graph:
    """The graph after the pipeline's passes, up to and with `until`.

    calls: products are calls of BLAS, whatever is faster.
    """
    graph = graph_of(function, *args)
    for step in GRAPH_PASSES:
        graph = verify((call_products if calls and step is choose_products else step)(graph))
        if step is until:
            break
    return graph


def fused(function: Callable[..., Any], *args: Any, calls: bool = False) -> FusedGraph:
    """The graph in groups."""
    return fuse(passed(function, *args, calls=calls))


def lowered(function: Callable[..., Any], *args: Any, calls: bool = False) -> Program:
    """The program, before it is scheduled."""
    return lower_program(fused(function, *args, calls=calls))


def run(graph: Graph, *args: Any) -> list[Any]:
    """The outputs of a graph, for its inputs in order."""
    assert len(args) == len(graph.inputs)
    return interpret(graph, args)


def text(ir: Any) -> str:
    """Printed without the lines of the user's source, which move when a test file changes."""
    return re.sub(r" *# lines? [\d, ]+", "", str(ir))


def ops(graph: Graph) -> list[str]:
    """The names of the operators, in order, but for inputs and constants."""
    names = [node.op.name for node in graph.nodes]
    return [name for name in names if name not in ("input", "constant")]


def kinds(result: FusedGraph) -> list[str]:
    """The kinds of the groups, in order."""
    return [group.kind for group in result.groups]


def members(group: Group) -> set[str]:
    """The names of the operators of a group."""
    return {node.op.name for node in group.nodes}


def reasons(result: FusedGraph) -> str:
    """All refusals of fusion, a line each."""
    return "\n".join(remark.reason for remark in result.remarks if remark.kind == "missed")


def inputs(*types: TensorType) -> tuple[Node, ...]:
    """Inputs of these types, named a, b, c, …"""
    return tuple(Node(Input(k, t), (), t, name="abcdefgh"[k]) for k, t in enumerate(types))


def parameters(function: Callable[..., Any]) -> int:
    """How many arguments a function takes."""
    return len(inspect.signature(function).parameters)


def same_bits(got: Any, wanted: Any) -> None:
    """Assert equal dtype, shape and values, the sign of zero included; NaN is NaN."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(got, wanted)
    if wanted.dtype.kind == "f":
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(wanted[numbers]))
