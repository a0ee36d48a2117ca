"""Recurrent layers over a sequence: the steps of an RNN, LSTM or GRU, one after another.

The part of the gates that does not depend on the state is an operand; what is left of a step is a
product of the state with the weights, and a few functions of the gates.  One operator is the whole
sequence, so that it may be one loop; `expand` writes the steps out.  Gates are in PyTorch's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Library, Recurrence, Sample
from nbcomp.ops import values
from nbcomp.ops.index import index
from nbcomp.ops.nn import NODES, CheckedFormula, Linear, Relu, Sigmoid
from nbcomp.types import FLOAT32, FLOAT64, TensorType

GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}
STATES = {"tanh": 1, "relu": 1, "lstm": 2, "gru": 1}


def step(xp: Any, kind: str, given: Any, own: Any, states: Any) -> tuple[Any, ...]:
    """The new states, from each gate's two parts (of the input, of the state) and the states.

    lstm: input, forget, cell, output.  Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.
    gru: reset, update, new.  Cho et al., Learning Phrase Representations, arXiv:1406.1078.
    tanh, relu: h' = f(W_ih x + b_ih + W_hh h + b_hh).
    """

    def sigmoid(x: Any) -> Any:
        return Sigmoid().formula(xp, x)

    if kind == "gru":
        (h,) = states
        reset, update = (sigmoid(xp.add(given[k], own[k])) for k in (0, 1))
        new = xp.tanh(xp.add(given[2], xp.multiply(reset, own[2])))
        old = xp.multiply(update, h)
        return (xp.add(xp.multiply(xp.subtract(1, update), new), old),)
    gates = [xp.add(a, b) for a, b in zip(given, own, strict=True)]
    if kind == "lstm":
        i, f, g, o = gates
        kept = xp.multiply(sigmoid(f), states[1])
        cell = xp.add(kept, xp.multiply(sigmoid(i), xp.tanh(g)))
        return xp.multiply(sigmoid(o), xp.tanh(cell)), cell
    return (xp.tanh(gates[0]) if kind == "tanh" else Relu().formula(xp, gates[0]),)


@dataclass(frozen=True)
class Recurrent(CheckedFormula, name="recurrent"):
    """The states after each step of a recurrent layer: (states, steps, batch, hidden)

    Operands: gates (steps, batch, G · hidden), the part of them that is made of the input; the
    initial states, each (batch, hidden): h, and c of an LSTM; weight (G · hidden, hidden) and
    optionally bias (G · hidden,) of the state.  kind: "lstm", "gru", "tanh" or "relu".  backwards:
    the last step is taken first.
    """

    kind: str
    backwards: bool = False

    @property
    def gates(self) -> int:
        """How many times the state's size the gates have."""
        return GATES[self.kind]

    @property
    def states(self) -> int:
        """Arrays of state."""
        return STATES[self.kind]

    def infer(self, *types: TensorType) -> TensorType:
        gates, weight = types[0], types[1 + self.states]
        states, bias = types[1 : 1 + self.states], types[2 + self.states :]
        hidden = weight.shape[-1] if weight.ndim == 2 else -1
        if weight.ndim != 2 or weight.shape[0] != self.gates * hidden:
            raise ValueError(
                f"the weights of a state are ({self.gates} · hidden, hidden), not {weight.shape}"
            )
        if gates.ndim != 3 or gates.shape[2] != self.gates * hidden:
            raise ValueError(
                f"gates of shape {gates.shape} do not fit a state of {hidden} with {self.gates}"
                " gates"
            )
        for state in states:
            if state.shape != (gates.shape[1], hidden):
                raise ValueError(
                    f"an initial state of shape {state.shape} does not fit (batch, hidden) ="
                    f" {(gates.shape[1], hidden)}"
                )
        if bias and bias[0].shape != (self.gates * hidden,):
            raise ValueError(f"a bias of shape {bias[0].shape} for {self.gates} · {hidden} gates")
        dtype = np.result_type(*(t.dtype for t in types))
        dtype = dtype if dtype.kind in "fc" else FLOAT64
        return TensorType(dtype, (self.states, gates.shape[0], gates.shape[1], hidden))

    def formula(self, xp: Any, *x: Any) -> Any:
        gates, weights = x[0], x[1 + self.states :]
        state = tuple(x[1 : 1 + self.states])
        at = index if xp is NODES else np.ndarray.__getitem__
        steps = range(gates.shape[0])
        found: list[tuple[Any, ...]] = []
        for t in reversed(steps) if self.backwards else steps:
            given = xp.split(at(gates, t), self.gates, axis=-1)
            own = xp.split(Linear().formula(xp, state[0], *weights), self.gates, axis=-1)
            state = step(xp, self.kind, given, own, state)
            found.append(state)
        if not found:
            dtype = x[0].type.dtype if xp is NODES else x[0].dtype
            return xp.zeros((self.states, *gates.shape[:2], weights[0].shape[-1]), dtype)
        if self.backwards:
            found.reverse()
        return xp.stack([xp.stack([s[k] for s in found]) for k in range(self.states)])

    def looped(self, *inputs: Node) -> Node:
        """The same as one loop, with packed weights."""
        weight = inputs[1 + self.states]
        block = min(weight.shape[1], BLOCK // weight.type.dtype.itemsize)
        packed = apply(PackGates(self.gates, block), weight)
        made = RecurrentLoop(self.kind, self.backwards)
        rest = inputs[2 + self.states :]
        return apply(made, *inputs[: 1 + self.states], packed, *rest)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for kind, backwards, dtype in (
            ("lstm", False, FLOAT32), ("gru", True, FLOAT64), ("tanh", True, FLOAT32),
            ("relu", False, FLOAT32), ("lstm", True, FLOAT64),
        ):  # fmt: skip
            arrays = _operands(rng, kind, 3, 2, 5, dtype)
            yield Sample(cls(kind, backwards), arrays, 64)
            yield Sample(cls(kind, backwards), arrays[:-1], 64)


BLOCK = 128  # bytes of the units of a block: the vectors of sums of all gates are in registers


def _operands(
    rng: np.random.Generator, kind: str, steps: int, batch: int, hidden: int, dtype: Any
) -> tuple[Any, ...]:
    wide, shapes = GATES[kind] * hidden, [(batch, hidden)] * STATES[kind]
    shapes = [(steps, batch, wide), *shapes, (wide, hidden), (wide,)]  # type: ignore[list-item]
    return tuple(rng.uniform(0.1, 0.9, s).astype(dtype) for s in shapes)


@dataclass(frozen=True)
class PackGates(Library, name="pack_gates"):
    """Weights (gates · hidden, hidden) as (blocks, hidden, gates, block): the weights of a block of
    units for one element of the state side by side, the last block filled with zeros"""

    gates: int
    block: int

    kept: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        (w,) = types
        hidden = w.shape[1]
        return TensorType(w.dtype, (-(-hidden // self.block), hidden, self.gates, self.block))

    def reference(self, *arrays: Any) -> Any:
        weight = np.asarray(arrays[0])
        hidden = weight.shape[1]
        blocks = -(-hidden // self.block)
        padded = np.zeros((self.gates, blocks * self.block, hidden), weight.dtype)
        padded[:, :hidden] = weight.reshape(self.gates, hidden, hidden)
        parts = padded.reshape(self.gates, blocks, self.block, hidden)
        return np.ascontiguousarray(parts.transpose(1, 3, 0, 2))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for gates, hidden, block in ((4, 8, 4), (3, 5, 2), (1, 7, 7)):
            weight = values.ordinary(rng, FLOAT32, (gates * hidden, hidden))
            yield Sample(cls(gates, block), (weight,))


@dataclass(frozen=True)
class RecurrentLoop(Recurrence, name="recurrent_loop"):
    """`recurrent` as one loop over its steps, with packed weights"""

    @property
    def meaning(self) -> Recurrent:
        """The same with weights as they are."""
        return Recurrent(self.kind, self.backwards)

    @property
    def states(self) -> int:
        return STATES[self.kind]

    @property
    def gates(self) -> int:
        return GATES[self.kind]

    def infer(self, *types: TensorType) -> TensorType:
        _, hidden, gates, _ = types[1 + self.states].shape
        weight = TensorType(types[0].dtype, (gates * hidden, hidden))
        rest = types[2 + self.states :]
        return self.meaning.infer(*types[: 1 + self.states], weight, *rest)

    def reference(self, *arrays: Any) -> Any:
        packed = np.asarray(arrays[1 + self.states])
        _, hidden, gates, _ = packed.shape
        rows = packed.transpose(2, 0, 3, 1).reshape(gates, -1, hidden)[:, :hidden]
        weight = np.ascontiguousarray(rows).reshape(gates * hidden, hidden)
        rest = arrays[2 + self.states :]
        return self.meaning.reference(*arrays[: 1 + self.states], weight, *rest)

    def step(self, given: tuple[Node, ...], own: tuple[Node, ...], states: Any) -> tuple[Node, ...]:
        return step(NODES, self.kind, given, own, states)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for kind, backwards, hidden, steps, batch, dtype in (
            ("lstm", False, 40, 5, 1, FLOAT32), ("lstm", True, 9, 4, 3, FLOAT64),
            ("gru", False, 16, 4, 2, FLOAT32), ("gru", True, 37, 1, 1, FLOAT32),
            ("tanh", False, 70, 3, 2, FLOAT32), ("relu", True, 33, 2, 1, FLOAT64),
        ):  # fmt: skip
            *first, weight, bias = _operands(rng, kind, steps, batch, hidden, dtype)
            weight = (weight - weight.dtype.type(0.5)) / weight.dtype.type(hidden)
            block = min(hidden, BLOCK // dtype.itemsize)
            packed = PackGates(GATES[kind], block).reference(weight)
            yield Sample(cls(kind, backwards), (*first, packed, bias), 64)
            yield Sample(cls(kind, backwards), (*first, packed), 64)
