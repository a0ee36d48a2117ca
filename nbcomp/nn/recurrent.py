"""Recurrent layers: PyTorch's names, arguments and layouts (gates in its order, one above another).

What does not depend on the state, the product of the whole input with its weights, is one product
for all steps; the steps are one operator, `recurrent`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from nbcomp.nn import functional as F
from nbcomp.nn import init
from nbcomp.nn.function import Described, function
from nbcomp.nn.inputs import check_axes, check_last, check_shape
from nbcomp.nn.module import Module
from nbcomp.ops.recurrent import Recurrent


@function
def recurrent(
    gates: Any, states: Any, weight: Any, bias: Any, kind: str, backwards: bool = False
) -> Described:
    """The states after each step, (states, steps, batch, hidden); see `ops.recurrent`."""
    return Recurrent(kind, backwards), (gates, *states, weight, bias)


def _zeros(x: Any, *shape: int) -> Any:
    """An initial state of x's dtype."""
    return np.zeros_like(x, shape=shape)


def _states(layer: _Recurrent | _Cell, state: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The states given; raises TypeError for another number, ValueError for another shape."""
    states = tuple(state) if isinstance(state, tuple | list) else (state,)
    name = type(layer).__name__
    if len(states) != layer.states:
        wanted = "a pair (h, c)" if layer.states == 2 else "one array"
        raise TypeError(f"the state of {name} is {wanted}, not {len(states)}")
    for given in states:
        check_shape(name, "states", given, shape)
    return states


# ---------------------------------------------------------------------------------- sequences


class _Recurrent(Module):
    """Layers of cells over a sequence."""

    gates: ClassVar[int] = 1  # the state's size is multiplied by it in the weights
    states: ClassVar[int] = 1  # arrays of state
    kind: str = "tanh"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        init.check_sizes(input_size, hidden_size, num_layers)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional = bidirectional
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
        tall = self.gates * hidden_size
        for layer in range(num_layers):
            size = input_size if layer == 0 else hidden_size * (2 if bidirectional else 1)
            for suffix in ("", "_reverse")[: 2 if bidirectional else 1]:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (tall, size), "weight_hh": (tall, hidden_size),
                    **({"bias_ih": (tall,), "bias_hh": (tall,)} if bias else {}),
                }  # fmt: skip
                for name, shape in shapes.items():
                    parameter = init.parameter(*shape, bound=bound, dtype=dtype)
                    setattr(self, f"{name}_l{layer}{suffix}", parameter)

    def forward(self, x: Any, state: Any = None) -> Any:
        """(steps, batch, input_size) → (steps, batch, directions · hidden_size), last states.

        With batch_first the batch's axis comes first, and one sequence may have none.  States have
        the shape (layers · directions, batch, hidden_size); an LSTM's is a pair of them.
        """
        order = "batch, steps" if self.batch_first else "steps, batch"
        check_axes(self, x, f"({order}, input_size) or (steps, input_size)", (2, 3))
        check_last(self, x, self.input_size)
        alone = len(x.shape) == 2
        if alone:
            x = np.expand_dims(x, 1)
        elif self.batch_first:
            x = np.swapaxes(x, 0, 1)
        if not x.shape[0]:
            raise ValueError(f"{type(self).__name__} takes a sequence of one step or more")
        initial = self._initial(x, state, alone)
        last: list[Any] = []
        suffixes = ("", "_reverse") if self.bidirectional else ("",)
        for layer in range(int(self.num_layers)):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for suffix in suffixes:
                start = tuple(s[len(last)] for s in initial)
                output, end = self._direction(x, start, f"_l{layer}{suffix}", suffix != "")
                outputs.append(output)
                last.append(end)
            x = np.concatenate(outputs, axis=-1) if len(outputs) > 1 else outputs[0]
        ends = tuple(np.stack([end[k] for end in last]) for k in range(self.states))
        if alone:
            x, ends = x[:, 0], tuple(e[:, 0] for e in ends)
        elif self.batch_first:
            x = np.swapaxes(x, 0, 1)
        return x, ends if len(ends) > 1 else ends[0]

    def _initial(self, x: Any, state: Any, alone: bool) -> tuple[Any, ...]:
        """The states to begin with, each (layers · directions, batch, hidden_size)."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        if state is None:
            return (_zeros(x, count, x.shape[1], self.hidden_size),) * int(self.states)
        batch = () if alone else (x.shape[1],)
        states = _states(self, state, (count, *batch, self.hidden_size))
        return tuple(np.expand_dims(s, 1) if alone else s for s in states)

    def _direction(self, x: Any, state: Any, suffix: str, backwards: bool) -> tuple[Any, Any]:
        """One layer in one direction: its outputs for all steps, and its last state."""
        bias_ih = getattr(self, f"bias_ih{suffix}") if self.bias else None
        bias_hh = getattr(self, f"bias_hh{suffix}") if self.bias else None
        gates = F.linear(x, getattr(self, f"weight_ih{suffix}"), bias_ih)
        weight = getattr(self, f"weight_hh{suffix}")
        states = recurrent(gates, state, weight, bias_hh, self.kind, backwards)
        last = 0 if backwards else -1
        return states[0], tuple(states[k, last] for k in range(self.states))

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, default in (
            ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
            ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


class RNN(_Recurrent):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        self.kind = self.nonlinearity = _nonlinearity(nonlinearity)
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )


def _nonlinearity(name: str) -> str:
    if name not in ("tanh", "relu"):
        raise ValueError(f"nonlinearity is 'tanh' or 'relu', not {name!r}")
    return name


class LSTM(_Recurrent):
    """Long short-term memory; its state is a pair (h, c)."""

    gates, states, kind = 4, 2, "lstm"


class GRU(_Recurrent):
    """Gated recurrent units."""

    gates, kind = 3, "gru"


# -------------------------------------------------------------------------------------- cells


class _Cell(Module):
    """One step of a recurrent layer."""

    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    kind: str = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = np.float32
    ) -> None:
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
        tall = self.gates * hidden_size
        self.weight_ih = init.parameter(tall, input_size, bound=bound, dtype=dtype)
        self.weight_hh = init.parameter(tall, hidden_size, bound=bound, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            value = init.parameter(tall, bound=bound, dtype=dtype) if bias else None
            setattr(self, name, value)

    bias_ih: Any
    bias_hh: Any

    def forward(self, x: Any, state: Any = None) -> Any:
        """(batch, input_size) or (input_size,) → the new state, of the shape (..., hidden_size)."""
        check_axes(self, x, "(batch, input_size) or (input_size,)", (1, 2))
        check_last(self, x, self.input_size)
        if state is None:
            state = (_zeros(x, *x.shape[:-1], self.hidden_size),) * int(self.states)
        states = _states(self, state, (*x.shape[:-1], self.hidden_size))
        gates = F.linear(x, self.weight_ih, self.bias_ih)
        lead = x.shape[:-1]
        rows = np.reshape(gates, (1, -1, gates.shape[-1]))
        flat = [np.reshape(s, (-1, s.shape[-1])) for s in states]
        found = recurrent(rows, flat, self.weight_hh, self.bias_hh, self.kind)
        new = tuple(np.reshape(found[k, 0], (*lead, self.hidden_size)) for k in range(len(flat)))
        return new if len(new) > 1 else new[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = np.float32,
    ) -> None:
        self.kind = self.nonlinearity = _nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype)


class LSTMCell(_Cell):
    """One step of an LSTM: takes and gives (h, c)."""

    gates, states, kind = 4, 2, "lstm"


class GRUCell(_Cell):
    """One step of a GRU."""

    gates, kind = 3, "gru"
