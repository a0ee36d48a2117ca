"""Small programs whose listings are looked at, and the `predict` of the digits notebook."""

from __future__ import annotations

import json
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Program = tuple[Callable[..., Any], tuple[Array, ...]]

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "01_first_compile.ipynb"


def softmax(z):  # type: ignore[no-untyped-def]
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x, gain, bias):  # type: ignore[no-untyped-def]
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def column_sums(x):  # type: ignore[no-untyped-def]
    return (x * x).sum(axis=0), x.max(axis=0)


def gelu(x):  # type: ignore[no-untyped-def]
    inner = 0.7978845608 * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def pairwise(a, b):  # type: ignore[no-untyped-def]
    difference = a[:, None, :] - b[None, :, :]
    return np.sqrt((difference**2).sum(axis=-1))


def black_scholes(spot, strike, years):  # type: ignore[no-untyped-def]
    spread = 0.2 * np.sqrt(years)
    d1 = (np.log(spot / strike) + 0.07 * years) / spread
    d2 = d1 - spread
    discount = strike * np.exp(-0.05 * years)
    return spot / (1 + np.exp(-1.702 * d1)) - discount / (1 + np.exp(-1.702 * d2))


def integers(i):  # type: ignore[no-untyped-def]
    return np.gcd(i, 12) + i % 7


def digits() -> Program:
    """The notebook's own cell, on arrays like its own."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    cell = next(t for t in texts if t.startswith("%%compile") and "def predict" in t)
    source = cell.partition("\n")[2]
    definition = source[: source.index("\npredict(")]
    name = "<digits>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    rng = np.random.default_rng(0)
    scope: dict[str, Any] = {"np": np}
    for key, shape in {"W1": (64, 128), "b1": (128,), "W2": (128, 10), "b2": (10,)}.items():
        scope[key] = rng.standard_normal(shape).astype(np.float32)
    exec(compile(definition, name, "exec"), scope)
    return scope["predict"], (rng.random((1797, 64), np.float32),)


def programs() -> dict[str, Program]:
    """All of them, with arguments."""
    rng = np.random.default_rng(1)

    def f32(*shape: int) -> Array:
        return rng.random(shape, np.float32) + np.float32(0.5)

    return {
        "digits": digits(),
        "softmax": (softmax, (f32(100, 1000),)),
        "layernorm": (layernorm, (f32(100, 300), f32(300), f32(300))),
        "column sums": (column_sums, (f32(500, 70),)),
        "gelu": (gelu, (f32(5000),)),
        "pairwise": (pairwise, (f32(40, 3), f32(50, 3))),
        "black scholes": (black_scholes, (f32(5000), f32(5000), f32(5000))),
        "integers": (integers, (rng.integers(1, 99, 5000),)),
    }


def one_a_line(a, b):  # type: ignore[no-untyped-def]
    total = a + b
    product = total * a
    quotient = product / b
    return np.maximum(quotient, a)
