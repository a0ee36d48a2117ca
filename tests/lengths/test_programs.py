"""Programs with open lengths give NumPy's answer for every length, and are compiled a few times
only."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.sizes import Size
from nbcomp.types import TensorType
from tests.lengths.programs import LENGTHS, PROGRAMS, Program


def arguments(program: Program, length: int, rng: np.random.Generator) -> list[Any]:
    """Arrays in which the k-th open length is the length + k."""
    names = list(dict.fromkeys(n for s in program.shapes for n in s if isinstance(n, str)))
    sizes = {name: length + k for k, name in enumerate(names)}
    shapes = [tuple(sizes[n] if isinstance(n, str) else n for n in s) for s in program.shapes]
    if program.dtype == "i4":
        return [rng.integers(-50, 50, shape, np.int32) for shape in shapes]
    return [rng.random(shape, np.float32) for shape in shapes]


def same(got: Any, want: Any) -> None:
    """Equal structure, types, shapes; floats nearly."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        got, want = list(got.values()), list(want.values())
    if isinstance(want, list | tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
        return
    assert np.shape(got) == np.shape(want)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=3e-4, atol=1e-5)


def check(call: Any, program: Program, length: int, rng: np.random.Generator) -> None:
    """One call against NumPy, what is written to the arguments included."""
    args = arguments(program, length, rng)
    mine = copy.deepcopy(args)
    with np.errstate(all="ignore"):
        try:
            want = program.function(*args)
        except (ValueError, IndexError, ZeroDivisionError) as error:
            with pytest.raises(type(error)):
                call(*mine)
            return
    same(call(*mine), want)
    same(mine, args)


@pytest.mark.filterwarnings("ignore:.*(empty slice|Degrees of freedom)")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_length(name: str, rng: np.random.Generator) -> None:
    program = PROGRAMS[name]
    f = nbcomp.jit(program.function)
    for length in (n for n in LENGTHS if n <= program.longest):
        check(f, program, length, rng)
    assert len(f.variants) <= program.compiles, [str(v) for v in f.variants]
    opened = [v.plan.open.conditions for v in f.variants if v.plan.open]
    assert opened
    assert not [c for o in opened for c in o.fixed if c.needed and c.symbol.hint > 16]
    assert not [r for v in f.variants for r in v.explain() if "not left open" in r.reason]
    compiled = len(f.variants)
    for length in (43, 39, 997):
        check(f, program, length, rng)
    assert len(f.variants) == compiled


@pytest.mark.filterwarnings("ignore:.*(empty slice|Degrees of freedom)")
@pytest.mark.parametrize("name", ["map", "matmul", "softmax", "writes", "len", "transpose"])
def test_types_name_lengths(name: str, rng: np.random.Generator) -> None:
    program = PROGRAMS[name]
    types = [nbcomp.f32[shape] for shape in program.shapes]
    compiled = nbcomp.compile(program.function, *types)
    assert any(isinstance(n, Size) for node in compiled.captured.inputs for n in node.shape)
    assert "f32[n" in str(compiled.captured)
    for length in (3, 100, 5000, 2, 4):
        check(compiled, program, length, rng)
    assert isinstance(types[0], TensorType)


@pytest.mark.filterwarnings("ignore:.*(empty slice|Degrees of freedom|invalid value)")
@pytest.mark.parametrize(
    "function",
    [lambda x: x.mean(0), lambda x: x.std(0), lambda x: x * 1.5 / len(x), lambda x: x[-1]],
)
def test_no_rows_after_some(function: Any, rng: np.random.Generator) -> None:
    """What divides by a length has no value for 0 rows; its guards are asked all the same."""
    program = Program(function, (("n", 784),))
    compiled = nbcomp.compile(function, nbcomp.f32["n", 784])
    for length in (5, 0, 1):
        check(compiled, program, length, rng)
