"""`Module`, the base of layers and models: PyTorch's protocol over NumPy arrays.

A module's parameters, buffers and submodules are its attributes, found by looking at them: there is
no second table that could disagree.  Names and layouts of `state_dict` are PyTorch's, so that the
arrays of its checkpoints load unchanged.  Calls run NumPy; compiled, the same `forward` is captured
with every parameter as an input.  Knows arrays and names, not layers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MethodType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nbcomp.capturing import ExportedModule, export
from nbcomp.errors import NbcompError
from nbcomp.nn.arrays import (
    METHODS,
    Parameter,
    Tensor,
    as_arrays,
    as_tensors,
    enter,
    is_inside,
    leave,
)

M = TypeVar("M", bound="Module")


class StateMismatch(NbcompError, RuntimeError):
    """A state does not fit the model: which names are missing, unexpected or of another shape."""


class LoadedKeys(NamedTuple):
    """What `load_state_dict` did not find in the state, and what it had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class _ForwardSignature:
    """`inspect.signature(module)` is that of its `forward`."""

    def __get__(self, instance: Any, owner: type | None = None) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return inspect.signature(instance.forward)


class Module:
    """A layer or model: set parameters and submodules as attributes, and define `forward`.

    Modules are in inference mode when they are made; `train()` switches dropout and batch
    statistics on.
    """

    training: bool = False
    _compiled: bool = False  # whether `forward` is machine code, which takes plain arrays
    __signature__ = _ForwardSignature()
    __nbcomp_computes__ = ("forward", METHODS)  # for capture from the source

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every module defines its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self.forward, self._compiled, args, kwargs)

    def __nbcomp_forward__(self) -> MethodType | None:
        """What a call computes, where that is a method which can be compiled in parts."""
        plain = type(self).__call__ is Module.__call__ and not self._compiled
        forward: Any = self.forward
        own = type(forward) is MethodType and forward.__self__ is self
        return forward if plain and own else None

    @staticmethod
    def __nbcomp_eager__(forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a `forward` that runs in Python, at least in parts; tensors give tensors."""
        inner = any(type(x) is Tensor for x in (*args, *kwargs.values()))
        token = enter()
        try:
            result = forward(*as_tensors(args), **as_tensors(kwargs))
            return as_tensors(result) if inner else as_arrays(result)
        finally:
            leave(token)

    @classmethod
    def with_compiled_forward(cls, forward: Callable[..., Any]) -> Callable[..., Any]:
        """Note that this class's `forward` is compiled; gives it as it runs where it is not."""
        cls._compiled = True
        return cls.__nbcomp_python__(forward)

    @staticmethod
    def __nbcomp_calls__(compiled: Callable[..., Any]) -> Callable[..., Any]:
        """What calls a module with a compiled `forward` in place of its own."""

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            return _call(MethodType(compiled, module), True, args, kwargs)

        return call

    @classmethod
    def __nbcomp_python__(cls, forward: Callable[..., Any]) -> Callable[..., Any]:
        """A `forward` as it runs where it is not compiled."""

        @functools.wraps(forward)
        def eager(*args: Any, **kwargs: Any) -> Any:
            return as_arrays(forward(*as_tensors(args), **as_tensors(kwargs)))

        setattr(eager, "__nbcomp_eager__", cls.__nbcomp_eager__)  # noqa: B010
        return eager

    def __setattr__(self, name: str, value: Any) -> None:
        known = vars(self).get(name)
        if isinstance(known, Parameter) and isinstance(value, np.ndarray | np.generic):
            value = Parameter(value, known.requires_grad)
        elif name in self._buffers and value is not None:
            value = np.asarray(value)
        object.__setattr__(self, name, value)

    # ---------------------------------------------------------------------------- registration

    @property
    def _buffers(self) -> dict[str, bool]:
        """The names of the buffers, and whether the state has them."""
        names: dict[str, bool] = vars(self).get("_buffer_names", {})
        return names

    def register_buffer(self, name: str, array: Any, persistent: bool = True) -> None:
        """An array that belongs to the module but is not learned, e.g. a running mean.

        persistent: it is part of the state.  Raises KeyError for a name with a dot or one that an
        attribute has, TypeError for one that is no string.
        """
        self._check_name(name)
        vars(self).setdefault("_buffer_names", {})[name] = persistent
        setattr(self, name, array)

    def _check_name(self, name: str) -> None:
        """Raise for a name that no further buffer can have, as PyTorch does."""
        if not isinstance(name, str):
            raise TypeError(f"the name of a buffer is a string, not {name!r}")
        if not name or "." in name:
            raise KeyError(f"the name of a buffer is not empty and has no dot: {name!r}")
        if name not in self._buffers and hasattr(self, name):
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already")

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """The same as setting the attribute."""
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Module | None) -> None:
        """The same as setting the attribute."""
        setattr(self, name, module)

    register_module = add_module

    # ------------------------------------------------------------------------------- contents

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The submodules and their names, in the order they were set."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """The submodules."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all within it, each once, with their paths (`encoder.0.norm1`)."""
        seen: set[int] = set()
        for name, module in self._paths(prefix):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def _paths(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Every path to a module: one that is shared has several."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child._paths(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all within it, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with their paths (`fc1.weight`)."""
        return _once(self._members(Module._own_parameters, prefix, recurse))

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
        """The buffers, each once, with their paths (`bn1.running_mean`)."""
        return _once(self._members(Module._own_buffers, prefix, recurse))

    def buffers(self, recurse: bool = True) -> Iterator[np.ndarray[Any, Any]]:
        """The buffers, each once."""
        return (array for _, array in self.named_buffers(recurse=recurse))

    def _members(
        self, own: Callable[[Module], Iterator[tuple[str, Any]]], prefix: str, recurse: bool
    ) -> Iterator[tuple[str, Any]]:
        for path, module in self._paths(prefix) if recurse else [(prefix, self)]:
            for name, value in own(module):
                yield f"{path}.{name}" if path else name, value

    def _own_parameters(self) -> Iterator[tuple[str, Parameter]]:
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield name, value

    def _own_buffers(self) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
        for name in self._buffers:
            if getattr(self, name) is not None:
                yield name, getattr(self, name)

    def get_submodule(self, path: str) -> Module:
        """The module at a path such as `encoder.0`; raises AttributeError."""
        found = dict(self._paths())
        if path not in found:
            raise AttributeError(f"{type(self).__name__} has no module {path!r}")
        return found[path]

    def get_parameter(self, path: str) -> Parameter:
        """The parameter at a path such as `fc1.weight`; raises AttributeError."""
        found = dict(self._members(Module._own_parameters, "", True))
        if path not in found:
            raise AttributeError(f"{type(self).__name__} has no parameter {path!r}")
        parameter: Parameter = found[path]
        return parameter

    # ---------------------------------------------------------------------------------- state

    def state_dict(self, prefix: str = "") -> dict[str, np.ndarray[Any, Any]]:
        """All parameters and persistent buffers by path: the module's own arrays, not copies."""
        state: dict[str, np.ndarray[Any, Any]] = {}
        for path, module in self._paths(prefix.removesuffix(".")):
            lead = f"{path}." if path else ""
            for name, parameter in module._own_parameters():
                state[lead + name] = parameter.data
            for name, array in module._own_buffers():
                if module._buffers[name]:
                    state[lead + name] = array
        return state

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadedKeys:
        """Write the arrays of a state (also PyTorch's) into this module's parameters and buffers.

        Arrays are written in place and converted to the dtype that is there: nothing compiled has
        to be compiled again.  Raises `StateMismatch` for shapes that differ and, when `strict`, for
        missing and unexpected names; then nothing is written.
        """
        __tracebackhide__ = True
        if not isinstance(state, Mapping):
            kind = type(state).__name__
            raise TypeError(
                f"a state is a dict of arrays by name, as state_dict() gives; not a {kind}"
            )
        own = self.state_dict()
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        given = {name: _as_array(name, state[name]) for name in own if name in state}
        wrong = [
            f"{name}: the state has shape {array.shape}, the model {own[name].shape}"
            for name, array in given.items()
            if array.shape != own[name].shape
        ]
        if wrong or (strict and (missing or unexpected)):
            raise StateMismatch(
                _mismatch(type(self).__name__, missing, unexpected, wrong, strict),
                hint="strict=False loads what fits by name" if not wrong else "",
            )
        for name, array in given.items():
            own[name][...] = array
        return LoadedKeys(missing, unexpected)

    # --------------------------------------------------------------------------------- changes

    def apply(self: M, function: Callable[[Module], Any]) -> M:
        """Call a function with every module, inner ones first."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Switch dropout and batch statistics on (or off), in all modules."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """Inference mode, which is how modules are made."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Mark all parameters as learned or fixed."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def to(self: M, dtype: Any) -> M:
        """Convert all floating-point parameters and buffers to a dtype."""
        wanted = np.dtype(dtype)
        for parameter in self.parameters():
            if parameter.dtype.kind == "f":
                parameter.data = parameter.data.astype(wanted)
        for module in self.modules():
            for name, array in list(module._own_buffers()):
                if array.dtype.kind == "f":
                    setattr(module, name, array.astype(wanted))
        return self

    def half(self: M) -> M:
        """All floating-point parameters and buffers in float16."""
        return self.to(np.float16)

    def float(self: M) -> M:
        """All floating-point parameters and buffers in float32."""
        return self.to(np.float32)

    def double(self: M) -> M:
        """All floating-point parameters and buffers in float64."""
        return self.to(np.float64)

    # ------------------------------------------------------------------------------- exported

    def export(self, *spec: Any, **named: Any) -> ExportedModule:
        """The model as a graph with its parameters as inputs; see `nbcomp.export`.

        `model.export(nbcomp.f32[1, 784]).show()` prints it in typed form.
        """
        return export(self, *spec, **named)

    # --------------------------------------------------------------------------------- printed

    def extra_repr(self) -> str:
        """What the module's line in the printed tree says."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): {_indented(repr(c))}" for name, c in self.named_children()]
        if not children:
            return f"{type(self).__name__}({extra})"
        lines = [*extra.splitlines(), *children]
        return f"{type(self).__name__}(\n" + "".join(f"  {line}\n" for line in lines) + ")"


def _call(forward: Callable[..., Any], compiled: bool, args: Any, kwargs: Any) -> Any:
    """Call a module's `forward`; a compiled one takes plain arrays."""
    if is_inside():
        given = as_arrays if compiled else as_tensors
        return as_tensors(forward(*given(args), **given(kwargs)))
    token = enter()
    try:
        if compiled:
            return forward(*args, **kwargs)
        return as_arrays(forward(*as_tensors(args), **as_tensors(kwargs)))
    finally:
        leave(token)


def named_as_called(cls: type[Module]) -> None:
    """Let errors name this class, not a private one that it has its methods of."""
    for name in ("__init__", "forward"):
        method = getattr(cls, name)
        if name not in vars(cls) and method.__qualname__.startswith("_"):
            setattr(cls, name, _renamed(method, f"{cls.__qualname__}.{name}"))


def _renamed(method: FunctionType, qualname: str) -> FunctionType:
    """The same function under another name."""
    code, variables, defaults = method.__code__, method.__globals__, method.__defaults__
    made = FunctionType(code, variables, method.__name__, defaults, method.__closure__)
    for attribute in ("__doc__", "__module__", "__annotations__", "__kwdefaults__"):
        setattr(made, attribute, getattr(method, attribute))
    made.__qualname__ = qualname
    return made


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _once(members: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each object under its first name."""
    seen: set[int] = set()
    for name, value in members:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


def _as_array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """An array, a parameter or a tensor of PyTorch's as an array."""
    try:
        plain = value.detach().cpu() if hasattr(value, "detach") else value
        array = np.asarray(plain)
    except (TypeError, RuntimeError) as error:  # a dtype NumPy lacks, or memory elsewhere
        raise StateMismatch(
            f"{name}: {error}", hint=f"convert it first: {name}.float().numpy()"
        ) from None
    if array.dtype.kind not in "biufc":
        raise StateMismatch(f"{name} is a {type(value).__name__}, not an array of numbers")
    return array


def _mismatch(
    model: str, missing: list[str], unexpected: list[str], wrong: list[str], strict: bool
) -> str:
    lines = [f"the state does not fit {model}:"]
    if strict and missing:
        lines.append(f"  missing: {', '.join(missing)}")
    if strict and unexpected:
        lines.append(f"  unexpected: {', '.join(unexpected)}")
    return "\n".join([*lines, *(f"  {line}" for line in wrong)])
