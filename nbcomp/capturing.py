"""`trace` and `export`: a function or model, run once on examples, as a `GraphModule`.

Knows capture and graph modules, not layers: a model is whatever has a `state_dict`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from nbcomp.conditions import Conditions
from nbcomp.errors import CaptureError, NbcompError
from nbcomp.frontend.location import here
from nbcomp.frontend.outputs import Outputs
from nbcomp.frontend.result import Out, Static, Tree, bind, leaves, resolve, with_leaves
from nbcomp.frontend.trace import Capture, capture, signature_of
from nbcomp.graph.ir import Graph, Node, rewrite
from nbcomp.graph_module import GraphModule, argument_guard, inputs_of, parameter
from nbcomp.openings import examples, of_types, stand_in
from nbcomp.ops.nn import Linear
from nbcomp.returning import returned
from nbcomp.runtime.plan import Guard
from nbcomp.wrapped import unwrapped


class TraceWarning(UserWarning):
    """A traced function decided by a value of the example, and will always decide that way."""


# ------------------------------------------------------------------------------------- tracing


def trace(function: Any, *inputs: Any, **named: Any) -> GraphModule:
    """Capture a function or model by running it once on example inputs.

    inputs: arrays, numbers, or `nbcomp.f32[…]` types; also all of them as one tuple.  Where Python
    control flow depends on array values, the way that the example takes is the program's, and a
    `TraceWarning` points at the line.  Raises Unsupported for what is not compiled, and what the
    function itself raises.
    """
    inputs = _spread(function, inputs, named)
    captured = _captured(function, inputs, named, freeze=True)[0]
    for error in {e.location: e for e in captured.frozen}.values():
        _warn(error)
    return GraphModule(captured, function)


def _spread(function: Any, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The inputs one by one, where they are given as one tuple, as PyTorch has them."""
    one = inputs[0] if len(inputs) == 1 else None
    if type(one) is not tuple:
        return inputs
    try:
        signature_of(_python(function)).bind(*inputs, **named)
    except TypeError:
        return one
    return one if len(one) == 1 else inputs


def _warn(error: CaptureError) -> None:
    place = error.location
    condition = f"`{place.source()}`" if place else "a condition"
    line = f" at line {place.line}" if place else ""
    text = (
        f"{condition}{line} depends on an array's values: the traced function always does what the"
        f" example did; to keep both sides: {error.hint}"
    )
    file, number = (place.file, place.line) if place else ("<traced>", 1)
    warnings.warn_explicit(text, TraceWarning, file, number)


def _python(function: Any) -> Any:
    """The Python function that a jitted one stands for."""
    return unwrapped(function)


def _captured(
    function: Any, inputs: Sequence[Any], named: Mapping[str, Any], freeze: bool = False
) -> tuple[Capture, list[Any], dict[str, Any]]:
    """The capture, and the arguments it was made for: lengths that types name are left open."""
    python = _python(function)
    lengths = examples((*inputs, *named.values()))
    args = [stand_in(v, lengths) for v in inputs]
    kwargs = {k: stand_in(v, lengths) for k, v in named.items()}
    if not lengths:
        return capture(python, args, kwargs, freeze=freeze), args, kwargs
    signature = signature_of(python)
    given = bind(signature, inputs, dict(named), python)
    opened = of_types(given, list(signature.parameters))
    with Conditions(where=here).in_force():
        return capture(python, args, kwargs, freeze=freeze, opened=opened), args, kwargs


# ----------------------------------------------------------------------------------- exporting


class ExportedModule(GraphModule):
    """A program whose parameters are arguments like its inputs; `params` are their present arrays,
    by name, in the order of the arguments."""

    def __init__(self, captured: Capture, function: Any, params: dict[str, Any]) -> None:
        super().__init__(captured, function)
        self.params = params


def export(function: Any, *spec: Any, **named: Any) -> ExportedModule:
    """A function or model as a graph without state: what it reads becomes further arguments.

    spec: types (`nbcomp.f32[1, 784]`, or `nbcomp.f32["n", 784]` for all lengths) or arrays, one per
    argument, or a dict of them by name (also below the method's name, `{"forward": {"x": …}}`).
    `show()` prints the result in typed form, `params` has the arrays to call it with:
    `exported(x, *exported.params.values())`.

    Raises CaptureError for control flow that depends on array values, and Unsupported.
    """
    if "spec" in named and "spec" not in signature_of(_python(function)).parameters:
        spec = (*spec, named.pop("spec"))
    if len(spec) == 1 and isinstance(spec[0], Mapping):
        named, spec = dict(spec[0]) | named, ()
        if len(named) == 1 and isinstance(inner := next(iter(named.values())), Mapping):
            named = dict(inner)
    spec = _spread(function, spec, named)
    _check_examples((*spec, *named.values()))
    captured, args, kwargs = _captured(function, spec, named)
    if captured.writes:
        raise NbcompError(
            f"{captured.graph.name} writes to its arguments: it cannot be exported",
            hint="return the new arrays",
        )
    defaults = bind(captured.signature, args, kwargs, _python(function))
    given = {*captured.signature.bind(*args, **kwargs).arguments}
    return _exported(function, captured, given, defaults)


def _check_examples(given: tuple[Any, ...]) -> None:
    """Raise TypeError for shapes, which say no dtype, in place of types."""
    for value in given:
        if type(value) is tuple and value and all(isinstance(n, int) for n in value):
            inner = ", ".join(map(str, value))
            raise TypeError(f"{value} has no dtype: give an array or a type, nbcomp.f32[{inner}]")


def _exported(
    function: Any, captured: Capture, given: set[str], arguments: Sequence[Any]
) -> ExportedModule:
    """given: the parameters that stay those of the program; others are read, as their defaults."""
    inputs, names = inputs_of(captured), list(captured.signature.parameters)
    own = [
        (node, guard)
        for node, guard in inputs
        if guard.source.kind == "argument" and names[guard.source.key] in given
    ]
    read = [pair for pair in inputs if pair not in own]
    order = list(function.state_dict()) if hasattr(function, "state_dict") else []
    read.sort(key=lambda pair: _position(pair[1].source.dotted(), order))
    own.sort(key=lambda pair: int(pair[1].source.key))
    params = {node.name: resolve(guard.source, arguments) for node, guard in read}
    nodes, guards = zip(*own, *read, strict=True) if inputs else ((), ())
    result, outputs, scalars = _new_arrays(captured)
    sizes = captured.sizes
    with sizes.in_force() if sizes is not None else nullcontext():
        graph = rewrite(Graph(captured.graph.name, nodes, outputs), _as_products)
    made = replace(captured_graph(graph, result, scalars, guards), sizes=sizes)
    return ExportedModule(made, function, params)


def _new_arrays(captured: Capture) -> tuple[Tree, tuple[Node, ...], frozenset[int]]:
    """What is returned as new arrays: a program without state has no other."""
    places = {guard.source: node for node, guard in inputs_of(captured)}
    new: list[Any] = []
    outputs: list[Node] = []
    scalars = set()
    for leaf in leaves(captured.result):
        node = returned(leaf, captured.graph.outputs, places)
        if node is None and isinstance(leaf, Static):
            new.append(leaf)
            continue
        if node is None:
            raise NbcompError(
                f"{captured.graph.name} returns an argument as it is: it cannot be exported",
                hint="return arrays that are computed",
            )
        if isinstance(leaf, Out) and leaf.index in captured.scalar_outputs:
            scalars.add(len(outputs))
        new.append(Out(len(outputs), leaf.python if isinstance(leaf, Out) else None))
        outputs.append(node)
    return with_leaves(captured.result, new), tuple(outputs), frozenset(scalars)


def _as_products(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """Linear layers as the products they are, under the layer's name."""
    if not isinstance(node.op, Linear):
        return None
    return replace(node.op.expand(*inputs), name=node.name)


def _position(path: str, order: list[str]) -> int:
    return order.index(path) if path in order else len(order)


def captured_graph(
    graph: Graph,
    result: Tree = Outputs.first,
    scalars: frozenset[int] = frozenset(),
    guards: Sequence[Guard] = (),
) -> Capture:
    """A graph as a program: one argument per input, by its name.

    guards: how the inputs were read, where they were; those of numbers stay numbers.
    """
    numbered = tuple(
        replace(argument_guard(k, node, before), slot=k)
        for k, (node, before) in enumerate(zip_longest(graph.inputs, guards))
    )
    parameters = [parameter(node.name or f"arg{k}") for k, node in enumerate(graph.inputs)]
    signature = inspect.Signature(parameters)
    return Capture(graph, numbered, result, scalars, (), signature, len(parameters))
