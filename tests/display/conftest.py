"""A compiled `predict` by hand: what the display is given, without the compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Input, Op
from nbcomp.loop import grammar as loop
from nbcomp.measure.comparison import Comparison
from nbcomp.measure.differences import Difference
from nbcomp.measure.scaling import Point, Scaling
from nbcomp.measure.timing import Timing
from nbcomp.options import EVERYTHING
from nbcomp.origin import Line, Listing
from nbcomp.record import Location, Remark, Snapshot, Trace
from nbcomp.types import FLOAT32, TensorType

SOURCE = """\
def predict(x):
    h = np.maximum(x @ W1 + b1, 0)
    z = h @ W2 + b2
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
"""


def operator(name: str, **attributes: Any) -> Op:
    """An operator that is only a name, with attributes."""
    kind = type(f"Fake{name}", (Op,), {"attributes": lambda self: attributes})
    kind.name = name
    return kind()


def node(
    name: str,
    shape: tuple[int, ...],
    *inputs: Node,
    user: str = "",
    line: int = 0,
    **attributes: Any,
) -> Node:
    """One node of float32."""
    location = Location("<cell>", line, 4, line, 20, "predict") if line else None
    return Node(operator(name, **attributes), inputs, TensorType(FLOAT32, shape), location, user)


@dataclass(frozen=True)
class Group:
    """A fused group, as the fusion pass makes it."""

    name: str
    kind: str
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]


@dataclass
class Kernel:
    """A compiled kernel with canned texts."""

    name: str
    groups: tuple[Group, ...]
    kernel: loop.Kernel
    texts: dict[str, str]
    asked: list[str] = field(default_factory=list)
    code: Any = field(default_factory=lambda: SimpleNamespace(bulk=9, begin=lambda _: None))

    def listing(self, level: str) -> Listing:
        self.asked.append(level)
        return Listing(level, tuple(map(Line, self.texts[level].splitlines())))


def value(name: str, shape: tuple[int, ...], index: int) -> Node:
    t = TensorType(FLOAT32, shape)
    return Node(Input(index, t), (), t, None, name)


def predict_graph() -> tuple[Graph, tuple[Group, ...]]:
    """The issue's example: an MLP with a softmax, and the groups it is fused into."""
    n = 1797
    x, w1, b1 = value("x", (n, 64), 0), value("W1", (64, 128), 1), value("b1", (128,), 2)
    w2, b2 = value("W2", (128, 10), 3), value("b2", (10,), 4)
    zero = Node(Constant(np.asarray(0, np.float32)), (), TensorType(FLOAT32, ()))
    m1 = node("matmul", (n, 128), x, w1, line=2)
    a1 = node("add", (n, 128), m1, b1, line=2)
    h = node("maximum", (n, 128), a1, zero, user="h", line=2)
    m2 = node("matmul", (n, 10), h, w2, line=3)
    z = node("add", (n, 10), m2, b2, user="z", line=3)
    top = node("max", (n, 1), z, line=4, axes=(1,), keepdims=True)
    gap = node("subtract", (n, 10), z, top, line=4)
    e = node("exp", (n, 10), gap, user="e", line=4)
    total = node("sum", (n, 1), e, line=5, axes=(1,), keepdims=True)
    result = node("divide", (n, 10), e, total, line=5)
    groups = (
        Group("matmul_1", "library", (m1,), (m1,)),
        Group("h", "map", (a1, h), (h,)),
        Group("matmul_2", "library", (m2,), (m2,)),
        Group("softmax", "rows", (z, top, gap, e, total, result), (result,)),
    )
    return Graph("predict", (x, w1, b1, w2, b2), (result,)), groups


def fake_compiled(**changes: Any) -> SimpleNamespace:
    """An object with the attributes the display reads of a `Compiled`."""
    graph, groups = predict_graph()
    texts = {
        "loop": "kernel k(x: f32[1797, 10]) {\n  for i in 0..1797 {\n    y[i] = exp(x[i])\n  }\n}",
        "llvm": "define void @k(ptr %x) {\n  ret void\n}",
        "asm": "\n".join(
            ["k:", *(f"    vaddps %zmm{i % 32}, %zmm1, %zmm2" for i in range(400)), "    retq"]
        ),
    }
    kernels = tuple(
        Kernel(g.name, (g,), loop.Kernel(g.name, (), ()), dict(texts))
        for g in groups
        if g.kind != "library"
    )
    remarks = (
        Remark(
            "applied",
            "fusion",
            "max, subtract, exp, sum and divide became one kernel",
            Location("<cell>", 4),
        ),
        Remark(
            "missed",
            "fusion",
            "x @ W1 stays a library call",
            Location("<cell>", 2),
            "matmul runs in BLAS",
        ),
    )
    before = "graph predict(x) {\n  a = add(x, 0)\n  b = exp(a)\n  return b\n}"
    after = "graph predict(x) {\n  b = exp(x)\n  return b\n}"
    trace = Trace(
        [
            Snapshot("capture", "graph", "what the function computes", before, 0.002),
            Snapshot("algebra", "graph", "Simplify x + 0 and the like.", after, 0.0004),
            Snapshot("dce", "graph", "Remove nodes that no output needs.", after, 0.0001),
            Snapshot("fusion", "graph", "Group nodes into kernels.", after, 0.0003, remarks),
        ],
        {"capture": 0.002, "passes": 0.001, "llvm": 0.02, "assembly": 0.03},
    )
    fields = {
        "name": "predict",
        "source": SOURCE,
        "location": Location("<cell>", 1),
        "captured": graph,
        "graph": graph,
        "groups": groups,
        "kernels": kernels,
        "trace": trace,
        "compile_seconds": 0.0534,
        "lengths": (),
        "constant": False,
        "options": EVERYTHING,
        "cold": True,
        "threads": 2,
        "target": "x86-64 AVX-512, 16 float32 lanes, 2 cores",
        "text": lambda level: f"the whole text of {level}",
        "explain": lambda: list(remarks),
    }
    return SimpleNamespace(**{**fields, **changes})


@pytest.fixture
def make_compiled() -> Callable[..., SimpleNamespace]:
    return fake_compiled


@pytest.fixture
def compiled() -> SimpleNamespace:
    return fake_compiled()


@pytest.fixture
def make_node() -> Callable[..., Node]:
    return node


@pytest.fixture
def make_input() -> Callable[..., Node]:
    return value


def timing(median: float) -> Timing:
    return Timing(median, median * 0.97, median * 1.05, 50, 10)


def comparison(ours: float, theirs: float, ulp: float = 3.0) -> Comparison:
    ratio = theirs / ours
    found = (Difference("result", ulp, 2.4e-7),)
    return Comparison(found, timing(ours), timing(theirs), ratio, ratio * 0.95, ratio * 1.04)


@pytest.fixture
def measured() -> tuple[Comparison, Scaling]:
    """A comparison, and a scaling that is slower than NumPy at one size."""
    seconds = {1: (9e-6, 8e-6), 16: (6e-6, 14e-6), 256: (4e-5, 1.3e-4), 4096: (5e-4, 2.1e-3)}
    points = tuple(Point(n, 0.012, comparison(a, b)) for n, (a, b) in seconds.items())
    return comparison(2e-4, 9e-4), Scaling(points, ((16384, "out of time"),))
