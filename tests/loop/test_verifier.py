"""The rules of the loop grammar: each broken once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nbcomp.errors import VerifyError
from nbcomp.loop.grammar import (
    Accumulate,
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    Const,
    For,
    If,
    Kernel,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    While,
    affine,
)
from nbcomp.loop.verifier import verify
from nbcomp.types import BOOL, FLOAT32, FLOAT64, INT64
from tests.kernels import add_to, apply, at, buffer, cast, load, loop, number, store, var

x = buffer("x", (8,))
m = buffer("m", (4, 4), dtype=FLOAT64)
out = buffer("out", (8,), "output")
acc = buffer("acc", (), "local")
flag = number(True, np.bool_)
one = number(1)


def stored(value: Apply | Select | Const | Load | Var) -> Stmt:
    return loop("i", 8, Store(out, at("i"), value))


BROKEN: dict[str, tuple[Stmt, str]] = {
    "a value before it is bound": (loop("i", 8, store(out, ("i",), var("h"))), "h is read before"),
    "a value after its body": (
        Block((If(flag, (Let("h", one),)), store(out, (0,), var("h")))),
        "h is read before",
    ),
    "a value of the other branch": (
        If(flag, (Let("h", one),), (store(out, (0,), var("h")),)),
        "h is read before",
    ),
    "a name bound twice": (Block((Let("h", one), Let("h", one))), "h is bound already"),
    "a loop variable bound twice": (loop("i", 2, loop("i", 2)), "i is bound already"),
    "a loop variable outside": (store(out, ("i",), one), "a loop variable outside its loop"),
    "a variable in its own extent": (
        For("i", affine(i=1), ()),
        "a loop variable outside its loop",
    ),
    "an unknown buffer written": (
        store(buffer("y", (8,), "output"), (0,), one),
        "unknown buffer y",
    ),
    "an unknown buffer read": (store(out, (0,), load(buffer("y", (8,)), 0)), "unknown buffer y"),
    "a buffer of another shape": (
        store(replace(out, shape=(4, 2), strides=(2, 1)), (0, 0), one),
        "unknown buffer out",
    ),
    "a local after its body": (
        Block((Block((Alloc(acc), store(acc, (), one))), store(out, (0,), load(acc)))),
        "unknown buffer acc",
    ),
    "too few indices": (store(out, (), one), "0 indices for out of rank 1"),
    "too many indices": (store(out, (0, 0), one), "2 indices for out of rank 1"),
    "an index that is not whole": (Store(out, (one,), one), "an index that is not int64"),
    "an int32 index": (Store(out, (number(0, np.int32),), one), "an index that is not int64"),
    "an input written": (store(x, (0,), one), "an input is written"),
    "an input added to": (add_to(x, (0,), one), "an input is written"),
    "a value of another dtype": (
        store(out, (0,), number(1, FLOAT64)),
        "stores float64 into float32",
    ),
    "a sum of another dtype": (add_to(out, (0,), number(1, FLOAT64)), "stores float64 into"),
    "no associative function": (
        Accumulate(out, at(0), "subtract", one),
        "no reduction by subtract",
    ),
    "a parallel loop inside": (
        loop("i", 2, loop("k", 2, loop("j", 2, kind="parallel"))),
        "a parallel loop inside another statement",
    ),
    "a parallel loop in a block": (
        Block((loop("j", 2, kind="parallel"),)),
        "a parallel loop inside another statement",
    ),
    "a vector loop in a vector loop": (
        loop("i", 2, loop("j", 2, loop("k", 2, kind="vector")), kind="vector"),
        "a vector loop inside a vector loop",
    ),
    "an extent that is not whole": (For("i", one, ()), "an extent that is not int64"),
    "an unrolled loop of unknown extent": (
        loop("i", 8, loop("j", affine(i=1), kind="unroll")),
        "whose extent is not a constant",
    ),
    "an if that is not bool": (If(one, ()), "a condition that is not bool"),
    "a while that is not bool": (While(one, ()), "a condition that is not bool"),
    "an unknown routine": (Call("blas.axpy", (out, x), ((), ())), "no library routine blas.axpy"),
    "a routine that writes an input": (
        Call("blas.gemm", (m, m, m), ((), (), ())),
        "an input is written",
    ),
    "a routine on an unknown buffer": (
        Call("blas.gemm", (out, out, replace(m, name="n")), ((), (), ())),
        "unknown buffer n",
    ),
    "a routine with too few places": (
        Call("blas.gemm", (out, out, out), ((), ())),
        "2 places for 3 buffers",
    ),
    "a routine on too small a part": (
        Call("blas.gemm", (out, out, out), (at(0, 0), (), ())),
        "not a part of out",
    ),
    "a local that is not one": (Alloc(x), "x is allocated, but not local"),
    "a local twice": (Block((Alloc(acc), Alloc(acc))), "acc is allocated already"),
    "a literal of another dtype": (
        store(out, (0,), Const(FLOAT32, np.float64(1))),
        "a literal of float64 as float32",
    ),
    "a load of another dtype": (
        store(out, (0,), Load(FLOAT32, m, at(0, 0))),
        "reads m as float32",
    ),
    "a select by a number": (stored(Select(FLOAT32, one, one, one)), "condition that is not bool"),
    "a select of two dtypes": (
        stored(Select(FLOAT32, flag, one, number(1, FLOAT64))),
        "a select of float32 and float64",
    ),
    "mixed arguments": (
        stored(Apply(FLOAT32, "add", (one, number(1, FLOAT64)))),
        "add has no loop fd->f",
    ),
    "another result": (
        stored(Apply(FLOAT32, "less", (one, one))),
        "less has no loop ff->f",
    ),
    "integers where NumPy computes in floats": (
        stored(Apply(FLOAT32, "exp", (number(1, np.int32),))),
        "exp has no loop i->f",
    ),
    "an unknown function": (stored(Apply(FLOAT32, "frobnicate", (one,))), "frobnicate has no loop"),
    "too many arguments": (stored(Apply(FLOAT32, "exp", (one, one))), "exp has no loop ff->f"),
}


def of(stage: Stmt, *more: Buffer) -> Kernel:
    return Kernel("k", (x, m, out, *more), (stage,))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule(name: str) -> None:
    stage, why = BROKEN[name]
    with pytest.raises(VerifyError, match=why) as found:
        verify(of(stage))
    assert str(found.value).count("<-- here") == 1
    assert "kernel k(" in str(found.value)


def test_names_of_buffers() -> None:
    with pytest.raises(VerifyError, match="two buffers have the same name"):
        verify(Kernel("k", (x, replace(out, name="x")), ()))


@pytest.mark.parametrize(
    "wrong", [{"alias": "y"}, {"alias": "m"}], ids=["unknown", "of another dtype"]
)
def test_a_view_is_of_a_buffer(wrong: dict[str, str]) -> None:
    view = replace(buffer("flat", (2, 4), "output"), **wrong)
    with pytest.raises(VerifyError, match="flat is not a view of a buffer"):
        verify(of(Block(()), view))


def test_well_formed_kernels() -> None:
    flat = buffer("flat", (2, 4), "output", alias="out")
    stages = (
        loop("i", 2, loop("j", 4, store(flat, ("i", "j"), one)), kind="parallel"),
        loop("i", 8, Let("h", load(x, "i")), store(out, ("i",), var("h"))),
        loop("i", 8, Let("h", load(x, "i")), store(out, ("i",), var("h"))),
        Block((Alloc(acc), store(acc, (), one), add_to(acc, (), one, "maximum"))),
        Block((Alloc(acc), store(acc, (), one))),
        store(out, (0,), cast(apply("less", load(x, 0), one), FLOAT32)),
        Store(out, (Apply(INT64, "minimum", (affine(0), affine(1))),), one),
        If(Const(BOOL, np.True_), (), (store(out, (0,), one),)),
        store(out, (0,), Apply(FLOAT32, "bitcast", (number(0, np.int32),))),
        store(out, (0,), Apply(FLOAT32, "erf", (one,))),
    )
    k = Kernel("k", (x, m, out, flat), stages)
    assert verify(k) is k
