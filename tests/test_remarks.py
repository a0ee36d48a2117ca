"""Every decision about a program is a remark at the user's line, made where it is decided."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.machine import host
from nbcomp.record import Remark, Trace, remark

RNG = np.random.default_rng(0)
A = RNG.random((64, 48), np.float32)
B = RNG.random((48, 32), np.float32)
TALL = RNG.random((2000, 300), np.float32)


def said(function: Callable[..., Any], *args: Any, without: str = "") -> set[str]:
    """ "kind topic: the source it is about: reason", for each remark."""
    options = nbcomp.Options(without=frozenset({without} - {""}))
    return {
        f"{r.kind} {r.topic}: {r.location.source() if r.location else ''}: {r.reason}"
        for r in nbcomp.compile_for("llvm", options)(function, *args).explain()
    }


def one(found: set[str], start: str) -> str:
    """The only remark that starts so."""
    (only,) = (line for line in found if line.startswith(start))
    return only


def test_library_or_generated() -> None:
    found = said(lambda a, b: a @ b, A, B)
    assert "on one core, BLAS" in one(found, "applied loops: a @ b: loops for a float32 product")
    found = said(lambda a, b: a @ b, A, B, without="generate")
    assert "applied library: a @ b: a float32 product: a call of BLAS" in found
    found = said(lambda a, b: a @ b, A.astype(np.int32), B.astype(np.int32))
    assert "BLAS has none" in one(found, "missed library: a @ b")
    found = said(lambda a: np.sort(a), A)
    assert "a call of NumPy" in one(found, "analysis library: np.sort(a)")


def test_fused_or_stored() -> None:
    def f(a: Any, b: Any) -> Any:
        h = np.exp(a) * 2
        return h @ b

    found = said(f, A, B)
    one(found, "applied fusion: np.exp(a): `np.exp(a)`: computed in the loops of")
    stored = one(found, "analysis store: np.exp(a) * 2: `h` is stored (12 KiB)")
    assert "`h @ b` reads it later" in stored
    one(found, "missed fusion: h @ b: `h` and `h @ b` are kept apart")


def test_values_of_one_name_are_told_apart() -> None:
    def f(x: Any, w: Any) -> Any:
        for _ in range(2):
            x = x @ w
        return x

    square = RNG.random((64, 64), np.float32)
    found = said(f, square, square)
    assert "`x` and the next `x` are kept apart" in one(found, "missed fusion")
    assert "since the next `x` reads it later" in one(found, "analysis store")


def test_recomputed_or_kept() -> None:
    def softmax(z: Any) -> Any:
        gap = z - z.max(axis=-1, keepdims=True)
        e = np.exp(gap)
        return e / e.sum(axis=-1, keepdims=True)

    found = said(softmax, TALL)
    assert "`e` is kept for one row (1,200 bytes)" in one(found, "applied store: np.exp(gap)")

    def variance(z: Any) -> Any:
        gap = z - z.mean(axis=-1, keepdims=True)
        return gap / np.sqrt((gap * gap).sum(axis=-1, keepdims=True))

    again = one(said(variance, TALL), "applied recompute: z - z.mean(axis=-1, keepdims=True)")
    assert "`gap` is computed again in each walk" in again


def test_small_results_of_one_place_are_said_together() -> None:
    norm = nbcomp.nn.BatchNorm2d(5).eval()
    found = nbcomp.compile(norm, RNG.random((1, 5, 8, 8), np.float32)).explain()
    (stored,) = (r.reason for r in found if r.topic == "store")
    assert "2 small results of `nn.BatchNorm2d` are stored (40 bytes together)" in stored


def test_copied_or_in_place() -> None:
    found = said(lambda a, b: np.maximum(a @ b, 0), A, B, without="generate")
    assert "finished in place" in one(found, "applied in place: a @ b")
    found = said(lambda a: np.reshape(a.T, (-1, 4)) + 1, A)
    assert "a reshape counts on elements in C order" in one(found, "missed copy: ")

    def write(a: Any) -> None:
        a[1:-1] = a[2:] + a[:-2]

    reason = one(said(write, A.copy()), "missed copy: ")
    assert "the new content of `a` is computed aside and copied there at the end" in reason


def test_vectorised_or_not() -> None:
    found = said(lambda a: a + 1, TALL)
    assert any(line.endswith("elements per instruction") for line in found)
    assert any("keeps 4 vectors in flight" in line for line in found)
    found = said(lambda a: a / a.sum(axis=-1, keepdims=True), TALL[:, :5].copy())
    assert "5 elements at a time for" in one(found, "analysis vectorize: a.sum(")
    found = said(lambda a: a[:, ::3] + 1, TALL)
    assert "in steps of 3 elements" in one(found, "missed vectorize: ")


def test_another_memory_order_is_advised_where_it_makes_reading_contiguous() -> None:
    def advised(f: Any, *args: Any) -> str:
        found = [r for r in nbcomp.compile(f, *args).explain() if "in steps of" in r.reason]
        return "; ".join(r.hint for r in found)

    x = RNG.random((64, 96), np.float32)
    assert "np.asfortranarray" in advised(lambda a: np.exp(a[:, 3]), x)
    assert "np.ascontiguousarray" in advised(lambda a: np.exp(a), x[:, ::2])
    assert not advised(lambda a: np.exp(a[:, ::2]), x)  # a step of the program's own
    assert not advised(lambda a: np.exp(a[::2, 3]), x)
    images = RNG.random((2, 2, 34, 30), np.float32)
    assert not advised(nbcomp.nn.Conv2d(2, 5, 3, padding=1, stride=2), images)
    assert not advised(lambda a: a[:64, :64] + a[:64, :64].T, x)  # read in both orders


def test_remarks_are_printed_a_line_each() -> None:
    found = nbcomp.compile(lambda a: np.exp(a), TALL).explain()
    assert str(found) == "\n".join(map(str, found))
    assert isinstance(found, list)


def test_parallel_or_not() -> None:
    if host().cores < 2:
        pytest.skip("one core")
    assert "spread over the cores" in one(said(lambda a: np.exp(a), TALL), "applied parallel: ")
    assert "take less time" in one(said(lambda a: np.exp(a), A[:4]), "analysis parallel: ")


def test_remarks_go_to_the_trace_that_listens_and_nowhere_else() -> None:
    outer, inner = Trace(), Trace()
    remark("applied", "fusion", "unheard")
    with outer.listening():
        remark("applied", "fusion", "one")
        with inner.listening():
            remark("missed", "fusion", "two")
        remark("applied", "fusion", "one")
    assert outer.remarks == [Remark("applied", "fusion", "one")]
    assert inner.remarks == [Remark("missed", "fusion", "two")]


def test_why_an_operand_is_copied_names_who_reads_it() -> None:
    def branch(x: Any) -> Any:
        y = x[::-1]
        if x.sum() > 3:
            return y * 2
        return y + 1

    def loop(x: Any, n: Any) -> Any:
        y = x.T
        while y.sum() < n:
            y = y * 2
        return y

    def copies(f: Any) -> str:
        return " ".join(r.reason for r in f.compiled.explain() if r.topic == "copy")

    chosen, repeated = nbcomp.script(branch), nbcomp.script(loop)
    chosen(np.arange(10))
    assert "`x[::-1]` is copied: an `if` takes whole arrays" in copies(chosen)
    repeated(np.ones((4, 5)), 1000)
    assert "`x.T` is copied: a loop takes whole arrays" in copies(repeated)
    found = nbcomp.jit(lambda a, b: a[:, ::2] @ b)
    found(np.ones((400, 500)), np.ones((250, 60)))
    generated = "applied loops" in " ".join(f"{r.kind} {r.topic}" for r in found.compiled.explain())
    assert ("BLAS" in copies(found)) is not generated


# ------------------------------------------------------------------------------- the user's words


def network() -> Any:
    layers = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    head = nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 10))
    return nn.Sequential(layers, head).eval()


def test_layers_of_one_call_are_told_apart() -> None:
    made = nbcomp.compile(network(), np.ones((2, 3, 16, 16), np.float32))
    reasons = [r.reason for r in made.explain()]
    assert any("nn.BatchNorm2d `0.1`" in r and "nn.BatchNorm2d `0.1`" in r for r in reasons)
    assert any("nn.ReLU `0.2` and nn.MaxPool2d `1.0` are kept apart: a pool" in r for r in reasons)
    assert not any("nbcomp.compile(" in r or "made" in r.split() for r in reasons)


def test_an_expression_that_is_one_layer_is_said_as_it_is_written() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            self.up, self.blocks = nn.Linear(20, 30), nn.Sequential(nn.Linear(30, 30), nn.Tanh())

        def forward(self, x: Any) -> Any:
            h = self.up(x)
            return self.blocks(h)

    made = nbcomp.compile(Own(), np.ones((40, 20), np.float32))
    titles = {n.op.name: n.title for n in made.captured.nodes if n.inputs}
    assert titles == {"linear": "nn.Linear `blocks.0`", "tanh": "nn.Tanh `blocks.1`"}
    assert "`h`" in [n.title for n in made.captured.nodes]


def test_values_without_a_name_are_told_by_their_expression() -> None:
    def top(x: Any) -> Any:
        return np.take_along_axis(x, np.argsort(-x, axis=1)[:, :5], axis=1)

    made = nbcomp.compile(top, np.ones((50, 200), np.float32))
    found = [r for r in made.explain() if "in steps of" in r.reason]
    assert [r.reason.partition(" is read")[0] for r in found] == ["`np.argsort(-x, axis=1)`"]
    assert found[0].hint == ""  # nobody could lay it out otherwise
    assert not any(re.search(r"\bt\d+\b", r.reason) for r in made.explain())


def test_a_loop_that_is_an_instruction_is_not_called_slow() -> None:
    def narrow(a: Any, b: Any) -> Any:
        return a.astype(np.int32) @ b.astype(np.int32)

    a, b = np.ones((64, 256), np.int8), np.ones((256, 96), np.int8)
    reasons = [r.reason for r in nbcomp.compile(narrow, a, b).explain()]
    assert not any("one element at a time" in r for r in reasons)


def test_only_what_the_caller_gives_could_be_laid_out_otherwise() -> None:
    def flat(x: Any) -> Any:
        return (x + 1).T.reshape(-1) * 2

    def given(x: Any) -> Any:
        return x.T.reshape(-1) * 2

    hints = []
    for function in (flat, given):
        made = nbcomp.compile(function, np.ones((30, 40), np.float32))
        hints += [r.hint for r in made.explain() if "counts on elements in C order" in r.reason]
    assert [bool(h) for h in hints] == [False, True]


def test_a_view_is_called_by_what_it_is_of() -> None:
    made = nbcomp.compile(lambda y: y @ y.T, np.ones((30, 20), np.float32))
    assert not any("`y_2`" in r.reason for r in made.explain())


def test_a_routine_of_numpys_is_told_by_the_users_expression() -> None:
    found = said(lambda x: np.cumsum(np.exp(x), axis=1), A)
    assert "`np.cumsum(np.exp(x), axis=1)` is a call of NumPy" in one(found, "analysis library: ")
