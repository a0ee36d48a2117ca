"""What a function is called with where nobody called it: `--inputs`, annotations, variables.

Knows functions and the notebook's names; it must not know cells.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from IPython.core.error import UsageError

from nbcomp.magics.recording import Call
from nbcomp.openings import examples, of_types, with_lengths
from nbcomp.types import TensorType

SEED = 0  # of inputs made up from annotations

Namespace = dict[str, Any]


class NoInput(Exception):
    """A function is to be called, and nothing says with what."""

    def __init__(self, parameter: str, function: str) -> None:
        super().__init__(parameter, function)
        self.parameter, self.function = parameter, function

    def words(self, how: str) -> str:
        """What is missing, and what would help; how: where a call would be written."""
        return (
            f"no input for {self.parameter!r} of {self.function}: {how}, give --inputs, annotate "
            f"it ({self.parameter}: nbcomp.f32[8, 64]) or define a variable {self.parameter!r}"
        )


def call_with_inputs(function: Any, namespace: Namespace, inputs: str) -> Call:
    """Find arguments for a function that is not called in the cell."""
    if inputs:
        return _call_with(function, namespace, inputs)
    plain: Callable[..., Any] = function.__wrapped__
    try:
        signature = inspect.signature(plain, eval_str=True)
    except NameError:
        signature = inspect.signature(plain)
    args, kwargs = [], {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        found = _input(parameter, namespace)
        if found is inspect.Parameter.empty:
            raise NoInput(parameter.name, plain.__name__)
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = found
        else:
            args.append(found)
    taken = tuple(n for n, p in signature.parameters.items() if _is_taken(p, namespace))
    return _with_arrays(Call(function, tuple(args), kwargs, given_by=taken), signature)


def _call_with(function: Any, namespace: Namespace, inputs: str) -> Call:
    """A call with the text of its arguments, positional and by name."""
    try:
        make = compile(f"_({inputs})", "<inputs>", "eval")
    except SyntaxError as error:
        raise UsageError(
            f'--inputs takes arguments such as "x, y" or "x=np.ones(4)", not "{inputs}"'
        ) from error
    collect = {"_": lambda *args, **kwargs: Call(function, args, kwargs)}
    call: Call = eval(make, namespace, collect)
    return _with_arrays(call, inspect.signature(function.__wrapped__))


def _input(parameter: inspect.Parameter, namespace: Namespace) -> Any:
    if isinstance(parameter.annotation, TensorType):
        return parameter.annotation
    return namespace.get(parameter.name, parameter.default)


def _is_taken(parameter: inspect.Parameter, namespace: Namespace) -> bool:
    """Whether a parameter gets the notebook's variable of its name."""
    several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    typed = isinstance(parameter.annotation, TensorType)
    return not several and not typed and parameter.name in namespace


def _with_arrays(call: Call, signature: inspect.Signature) -> Call:
    """The call with arrays in place of types; lengths that these name are left open."""
    types = (*call.args, *call.kwargs.values())
    if not any(isinstance(t, TensorType) for t in types):
        return call
    lengths, rng = examples(types), np.random.default_rng(SEED)
    if lengths:
        bound = signature.bind(*call.args, **call.kwargs)
        bound.apply_defaults()
        values = [bound.arguments[name] for name in signature.parameters]
        call.function.lengths.declare(of_types(values, list(signature.parameters)))

    def made(value: Any) -> Any:
        is_type = isinstance(value, TensorType)
        return random_array(with_lengths(value, lengths), rng) if is_type else value

    return Call(
        call.function,
        tuple(map(made, call.args)),
        {k: made(v) for k, v in call.kwargs.items()},
        given_by=call.given_by,
    )


def random_array(t: TensorType, rng: np.random.Generator) -> Any:
    """An array of a type: floats from a standard normal, integers 0 to 9, booleans evenly."""
    if t.dtype.kind == "f":
        return rng.standard_normal(t.shape).astype(t.dtype)
    return rng.integers(0, 2 if t.dtype.kind == "b" else 10, t.shape).astype(t.dtype)
