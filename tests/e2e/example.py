"""What the explorer is given, made by the compiler: a small network's payload, and variations."""

from __future__ import annotations

import linecache
from copy import deepcopy
from typing import Any

import numpy as np

import nbcomp
from nbcomp.display.bundle import Report
from nbcomp.display.payload import payload
from tests.display.test_layers import Net

SOURCE = """\
def predict(x):
    h = np.maximum(x @ W1 + b1, 0)
    z = h @ W2 + b2
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
"""
EXP_LINE = 4


def compiled_payload() -> dict[str, Any]:
    """`predict`, compiled here, as the notebook would be given it."""
    rng = np.random.default_rng(0)
    names: dict[str, Any] = {"np": np}
    for name, shape in (("W1", (64, 128)), ("b1", 128), ("W2", (128, 10)), ("b2", 10)):
        names[name] = rng.standard_normal(shape).astype(np.float32)
    file = "<e2e cell>"
    linecache.cache[file] = (len(SOURCE), None, SOURCE.splitlines(True), file)
    exec(compile(SOURCE, file, "exec"), names)
    images = rng.standard_normal((1797, 64)).astype(np.float32)
    return payload(Report(nbcomp.compile(names["predict"], images)).view)


def layered_payload() -> dict[str, Any]:
    """A model of two layers of its own."""
    compiled = nbcomp.compile(Net(16, 2), np.ones((4, 16), np.float32))
    return payload(Report(compiled).view)


HOSTILE = (
    '<img src=x onerror="window.hacked=1">',
    "<script>window.hacked=1</script>",
    '"><svg onload=window.hacked=1>',
    "javascript:window.hacked=1",
    "\u202egnp.exe\u2066",
    "\x1b[31mred\x1b[0m",
    "__proto__",
)


def hostile(data: Any) -> Any:
    """Every text of a payload with markup, script and tricks in it, its structure unharmed."""
    changed = deepcopy(data)
    marks = "".join(HOSTILE)

    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: spoil(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [spoil(v, key) for v in value]
        fixed = {"status", "mark", "show"} | ({"kind"} if not isinstance(value, str) else set())
        if isinstance(value, str) and key not in fixed and key != "kind":
            return marks + value
        return value

    spoiled = spoil(changed)
    spoiled["help"] = {"__proto__": {"text": marks, "source": marks}} | changed.get("help", {})
    return spoiled
