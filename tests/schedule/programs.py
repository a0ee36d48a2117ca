"""Kernels to schedule, and the check every step must pass: verified, and no answer changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.loop.grammar import Accumulate, Alloc, Block, Call, Kernel, walk
from nbcomp.loop.verifier import verify
from nbcomp.lowering.program import KernelStep
from nbcomp.types import FLOAT64
from tests.kernels import (
    add_to,
    apply,
    buffer,
    index,
    interpreted,
    kernel,
    load,
    loop,
    native,
    number,
    random_inputs,
    store,
)
from tests.programs import lowered

Golden = Callable[..., None]
Step = Callable[[Kernel], Kernel]


def check(k: Kernel, step: Step, golden: Golden | None = None, machine: bool = True) -> Kernel:
    """The scheduled kernel; its outputs are those it had before, interpreted and as machine code.

    Sums may be added up in another order.
    """
    rng = np.random.default_rng(7)
    inputs = random_inputs(rng, k)
    result = verify(step(k))
    wanted = interpreted(k, inputs)
    runs = [interpreted(result, inputs)] + ([native(result, inputs)] if machine else [])
    for b in k.buffers:
        for got in runs if b.role == "output" else ():
            np.testing.assert_allclose(got[b.name], wanted[b.name], rtol=2e-5, atol=2e-5)
    if golden is not None:
        golden(f"{k}\n\n{result}")
    return result


def bound_once(k: Kernel) -> None:
    """No two loops, values or locals of a kernel have one name."""
    bound = [getattr(s, "name", getattr(s, "var", "")) for s in walk(k.stages)]
    bound += [s.buffer.name for s in walk(k.stages) if isinstance(s, Alloc)]
    names = sorted(filter(None, bound))
    assert names == sorted(set(names))


def only(function: Callable[..., Any], *args: Any) -> Kernel:
    """The one kernel of a program, as it is before any step."""
    (k,) = (s.kernel for s in lowered(function, *args).steps if isinstance(s, KernelStep))
    return k


def softmax(rows: int = 7, columns: int = 40) -> Kernel:
    def f(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    return only(f, np.zeros((rows, columns), np.float32))


def matmul(
    m: int = 6, n: int = 40, depth: int = 9, dtype: Any = np.float32, turned: bool = False
) -> Kernel:
    """c = a @ b as it is written in a textbook; turned: c = a @ b.T."""
    a = buffer("a", (m, depth), dtype=dtype)
    b = buffer("b", (n, depth) if turned else (depth, n), dtype=dtype)
    c, s = buffer("c", (m, n), "output", dtype), buffer("s", (), "local", dtype)
    right = load(b, "j", "k") if turned else load(b, "k", "j")
    product = apply("multiply", load(a, "i", "k"), right)
    body = (
        Alloc(s),
        store(s, (), number(0.0, dtype)),
        loop("k", depth, Accumulate(s, (), "add", product, contract=True)),
        store(c, ("i", "j"), load(s)),
    )
    return kernel(loop("i", m, loop("j", n, *body)), buffers=[a, b, c])


def two_stages(n: int = 50) -> Kernel:
    """y = square(t) + 1 where t = x + x"""
    x, t = buffer("x", (n,)), buffer("t", (n,), "temp")
    y = buffer("y", (n,), "output")
    first = loop("i", n, store(t, ("i",), apply("add", load(x, "i"), load(x, "i"))))
    value = apply("add", apply("square", load(t, "j")), number(1.0))
    return kernel(first, loop("j", n, store(y, ("j",), value)), buffers=[x, y, t])


def blur(n: int = 48) -> Kernel:
    """y[j] = t[j] + t[j + 1] where t = x * x"""
    x, t = buffer("x", (n + 1,)), buffer("t", (n + 1,), "temp")
    y = buffer("y", (n,), "output")
    first = loop("i", n + 1, store(t, ("i",), apply("square", load(x, "i"))))
    value = apply("add", load(t, "j"), load(t, index(1, j=1)))
    return kernel(first, loop("j", n, store(y, ("j",), value)), buffers=[x, y, t])


def column_sums(m: int = 12, n: int = 20) -> Kernel:
    """out[j] = Σ x[i, j]"""
    x, out = buffer("x", (m, n)), buffer("out", (n,), "output")
    clear = loop("z", n, store(out, ("z",), number(0.0)))
    add = loop("i", m, loop("j", n, add_to(out, ("j",), load(x, "i", "j"))))
    return kernel(clear, add, buffers=[x, out])


def row_sums(m: int = 6, n: int = 70) -> Kernel:
    """out[i] = Σ x[i, r]"""
    x, out, total = buffer("x", (m, n)), buffer("out", (m,), "output"), buffer("total", (), "local")
    return kernel(
        loop(
            "i",
            m,
            Alloc(total),
            store(total, (), number(0)),
            loop("r", n, add_to(total, (), load(x, "i", "r"))),
            store(out, ("i",), load(total)),
        ),
        buffers=[x, out],
    )


def add_into(m: int = 6, n: int = 70) -> Kernel:
    """out[j] += x[i, j], for all i"""
    x, out = buffer("x", (m, n)), buffer("out", (n,), "output")
    body = loop("j", n, add_to(out, ("j",), load(x, "i", "j")))
    return kernel(loop("i", m, body), buffers=[x, out])


def carried() -> Kernel:
    """out[i + 1] = out[i] + x[i]"""
    x, out = buffer("x", (20,)), buffer("out", (21,), "output")
    value = apply("add", load(out, "i"), load(x, "i"))
    body = loop("i", 20, store(out, (index(1, i=1),), value))
    return kernel(Block((store(out, (0,), number(0)), body)), buffers=[x, out])


def product(m: int, n: int) -> Kernel:
    """c = a @ b by the library."""
    a, b = buffer("a", (m, 5), dtype=FLOAT64), buffer("b", (5, n), dtype=FLOAT64)
    c = buffer("c", (m, n), "output", FLOAT64)
    return kernel(Call("blas.gemm", (c, a, b), ((), (), ())), buffers=[a, b, c])
