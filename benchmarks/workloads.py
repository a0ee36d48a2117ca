"""The workloads: each is written once, as a NumPy user writes it, and timed by every contestant.

A contestant with another array namespace runs the same code with its own module in the place of
`np` (`spelled`).  Only where a namespace cannot say a thing (in-place writes) has a row a variant.
Knows nothing of who runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]
Traffic = Literal["copy", "read", ""]


@dataclass(frozen=True)
class Workload:
    """One row: a function, its inputs, and how it is judged.

    rtol: allowed difference from NumPy's own answer, relative to the largest magnitude in it.
    traffic: "copy" or "read" for a row whose time is that of moving its arrays once.
    functional: the same work without in-place writes.  numexpr: one expression per output.
    batched: the inputs whose first axis may be longer; all of the first one's shape when empty.
    """

    name: str
    title: str
    function: Function
    inputs: Mapping[str, Callable[[np.random.Generator], Array]]
    rtol: float
    traffic: Traffic = ""
    functional: Function | None = None
    numexpr: tuple[str, ...] = field(default=())
    batched: tuple[str, ...] = ()

    def arrays(self, seed: int = 0) -> dict[str, Array]:
        """The inputs, the same in every process."""
        rng = np.random.default_rng(seed)
        return {name: make(rng) for name, make in self.inputs.items()}


WORKLOADS: dict[str, Workload] = {}


def workload(title: str, rtol: float, **options: Any) -> Callable[[Function], Function]:
    """Enter the decorated function into the table; `inputs` and other fields come as keywords."""

    def add(function: Function) -> Function:
        name = function.__name__
        WORKLOADS[name] = Workload(name, title, function, rtol=rtol, **options)
        return function

    return add


def spelled(function: Function, namespace: Any) -> Function:
    """The same code with `namespace` where the source says `np`."""
    assert isinstance(function, FunctionType)
    return FunctionType(
        function.__code__, {**function.__globals__, "np": namespace}, function.__name__
    )


def uniform(
    *shape: int, dtype: Any = np.float32, lo: float = -1.0, hi: float = 1.0
) -> Callable[[np.random.Generator], Array]:
    """Random numbers in lo..hi."""
    return lambda rng: (lo + (hi - lo) * rng.random(shape)).astype(dtype)


GELU = "0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))"


@workload("gelu, 1 k", 2e-6, inputs={"x": uniform(1 << 10, lo=-4, hi=4)}, numexpr=(GELU,))
def gelu_1k(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@workload("gelu, 1 M", 2e-6, inputs={"x": uniform(1 << 20, lo=-4, hi=4)}, numexpr=(GELU,))
def gelu_1m(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@workload(
    "gelu, 16 M",
    2e-6,
    inputs={"x": uniform(1 << 24, lo=-4, hi=4)},
    numexpr=(GELU,),
    traffic="copy",
)
def gelu_16m(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@workload("softmax 4096×1024", 2e-6, inputs={"x": uniform(4096, 1024, lo=-8, hi=8)}, traffic="copy")
def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@workload(
    "layernorm 4096×1024",
    1e-5,
    inputs={"x": uniform(4096, 1024), "g": uniform(1024), "b": uniform(1024)},
    traffic="copy",
)
def layernorm(x: Any, g: Any, b: Any) -> Any:
    m = np.mean(x, axis=-1, keepdims=True)
    d = x - m
    v = np.mean(d * d, axis=-1, keepdims=True)
    return d / np.sqrt(v + 1e-5) * g + b


@workload(
    "column sums of squares 4096²",
    1e-5,
    inputs={"x": uniform(4096, 4096)},
    numexpr=("sum(x * x, axis=0)",),
    traffic="read",
)
def colsum_sq(x: Any) -> Any:
    return np.sum(x * x, axis=0)


@workload(
    "squared distance, 2×16 M",
    1e-4,
    inputs={"x": uniform(1 << 24), "y": uniform(1 << 24)},
    numexpr=("sum((x - y) * (x - y))",),
    traffic="read",
)
def dist2(x: Any, y: Any) -> Any:
    d = x - y
    return np.sum(d * d)


CALL = (
    "s / (1 + exp(-1.702 * (log(s / k) + 0.1 * t + 0.02 * t) / sqrt(0.08 * t)))"
    " - exp(-0.1 * t) * k / (1 + exp(-1.702 * (log(s / k) + 0.1 * t - 0.02 * t) / sqrt(0.08 * t)))"
)


@workload(
    "Black–Scholes, 1 M float64",
    1e-12,
    inputs={
        "s": uniform(1 << 20, dtype=np.float64, lo=10, hi=50),
        "k": uniform(1 << 20, dtype=np.float64, lo=10, hi=50),
        "t": uniform(1 << 20, dtype=np.float64, lo=1, hi=2),
    },
    numexpr=(CALL, f"{CALL} - s + exp(-0.1 * t) * k"),
)
def black_scholes(s: Any, k: Any, t: Any) -> Any:
    rate, volatility = 0.1, 0.2
    a = np.log(s / k)
    b = t * rate
    z = t * volatility * volatility * 2
    c = 0.25 * z
    y = 1.0 / np.sqrt(z)
    w1 = (a + b + c) * y
    w2 = (a + b - c) * y
    # The normal CDF by its logistic approximation, so that every contestant has the functions.
    d1 = 1.0 / (1.0 + np.exp(-1.702 * w1))
    d2 = 1.0 / (1.0 + np.exp(-1.702 * w2))
    discounted = np.exp(-b) * k
    call = s * d1 - discounted * d2
    return call, call - s + discounted


def _mlp_inputs(batch: int) -> dict[str, Callable[[np.random.Generator], Array]]:
    return {
        "x": uniform(batch, 784),
        "w1": uniform(256, 784),
        "b1": uniform(256),
        "w2": uniform(10, 256),
        "b2": uniform(10),
    }


@workload("MLP 784-256-10, batch 1", 1e-5, inputs=_mlp_inputs(1))
def mlp_b1(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return np.maximum(x @ w1.T + b1, 0) @ w2.T + b2


@workload("MLP 784-256-10, batch 128", 1e-5, inputs=_mlp_inputs(128))
def mlp_b128(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return np.maximum(x @ w1.T + b1, 0) @ w2.T + b2


@workload(
    "RNN cell 32×256",
    1e-5,
    inputs={
        "x": uniform(32, 256),
        "h": uniform(32, 256),
        "w": uniform(256, 256),
        "b": uniform(256),
    },
)
def rnn_cell(x: Any, h: Any, w: Any, b: Any) -> Any:
    return np.tanh(x @ w.T + b + h)


@workload(
    "attention 8×512×64",
    1e-5,
    inputs={"q": uniform(8, 512, 64), "k": uniform(8, 512, 64), "v": uniform(8, 512, 64)},
)
def attention(q: Any, k: Any, v: Any) -> Any:
    s = (q @ np.swapaxes(k, -1, -2)) * 0.125
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    p = e / np.sum(e, axis=-1, keepdims=True)
    return p @ v


@workload(
    "matmul 512³ + bias + relu",
    1e-5,
    inputs={"x": uniform(512, 512), "y": uniform(512, 512), "b": uniform(512)},
    batched=("x",),
)
def matmul512_bias_relu(x: Any, y: Any, b: Any) -> Any:
    return np.maximum(x @ y + b, 0)


@workload(
    "matmul 64×1024×1024 + gelu",
    1e-5,
    inputs={"x": uniform(64, 1024), "y": uniform(1024, 1024), "b": uniform(1024)},
)
def matmul64_gelu(x: Any, y: Any, b: Any) -> Any:
    z = x @ y + b
    return 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))


def _jacobi_functional(a: Any) -> Any:
    for _ in range(20):
        c = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a = a.at[1:-1, 1:-1].set(c)
    return a


@workload(
    "Jacobi 1000², 20 steps, float64",
    1e-13,
    inputs={"a": uniform(1000, 1000, dtype=np.float64)},
    functional=_jacobi_functional,
)
def jacobi(a: Any) -> Any:
    for _ in range(20):
        c = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a = np.copy(a)
        a[1:-1, 1:-1] = c
    return a


@workload("pairwise forces, 1500 bodies", 1e-4, inputs={"p": uniform(1500, 3)})
def pairwise(p: Any) -> Any:
    d = p[:, None, :] - p[None, :, :]
    r2 = np.sum(d * d, axis=-1) + 1e-3
    return np.sum(d / (r2 * np.sqrt(r2))[..., None], axis=1)


@workload(
    "logits + NLL 256×1000×1000",
    1e-5,
    inputs={"x": uniform(256, 1000), "w": uniform(1000, 1000)},
)
def logits_nll(x: Any, w: Any) -> Any:
    z = x @ w
    m = np.max(z, axis=-1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(z - m), axis=-1)) + m[:, 0] - z[:, 0])
