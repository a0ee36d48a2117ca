"""Builds kernels by hand, and runs them: by the loop interpreter, and as machine code.

The builders are the grammar with fewer words; `run` gives the arrays a kernel leaves behind.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    affine,
    const,
    loop_var,
)
from nbcomp.loop.interpreter import interpret
from nbcomp.loop.verifier import verify
from nbcomp.machine import host
from nbcomp.record import Location
from nbcomp.target.llvm.codegen import KernelCode, StageCode, generate
from nbcomp.target.llvm.compile import MachineCode, compile_kernel
from nbcomp.target.llvm.emit import host_cpu
from nbcomp.types import BOOL, FLOAT32, contiguous_strides

Array = np.ndarray[Any, Any]
Role = Literal["input", "output", "temp", "local"]
Kind = Literal["serial", "parallel", "vector", "unroll"]
Index = Expr | int | str


# ------------------------------------------------------------------------------------- builders


def buffer(
    name: str,
    shape: tuple[int, ...],
    role: Role = "input",
    dtype: Any = FLOAT32,
    strides: tuple[int, ...] | None = None,
    alias: str = "",
) -> Buffer:
    """A buffer, in C order unless strides (in elements) are given."""
    own = contiguous_strides(shape) if strides is None else strides
    return Buffer(name, np.dtype(dtype), shape, own, role, alias)


def at(*indices: Index) -> tuple[Expr, ...]:
    """Indices from numbers and names of loop variables."""
    return tuple(_index(i) for i in indices)


def _index(i: Index) -> Expr:
    if isinstance(i, Expr):
        return i
    return affine(i) if isinstance(i, int) else loop_var(i)


def load(source: Buffer, *indices: Index, location: Location | None = None) -> Load:
    """source[indices]"""
    return Load(source.dtype, source, at(*indices), location)


def apply(fn: str, *args: Expr, location: Location | None = None) -> Apply:
    """A ufunc by name; its result's dtype is NumPy's."""
    ufunc = getattr(np, fn)
    dtype = ufunc.resolve_dtypes((*(a.dtype for a in args), None))[-1]
    return Apply(dtype, fn, args, location)


def number(value: object, dtype: Any = FLOAT32) -> Const:
    """A literal."""
    return const(value, np.dtype(dtype))


def cast(value: Expr, dtype: Any) -> Cast:
    """value.astype(dtype)"""
    return Cast(np.dtype(dtype), value)


def select(condition: Expr, yes: Expr, no: Expr) -> Select:
    """np.where(condition, yes, no)"""
    return Select(yes.dtype, condition, yes, no)


def var(name: str, dtype: Any = FLOAT32) -> Var:
    """A value bound by Let."""
    return Var(np.dtype(dtype), name)


def index(constant: int = 0, **terms: int) -> Affine:
    """`index(3, i=2)` is 2*i + 3."""
    return affine(constant, **terms)


def store(
    target: Buffer, indices: Iterable[Index], value: Expr, location: Location | None = None
) -> Store:
    """target[indices] = value"""
    return Store(target, at(*indices), value, location)


def add_to(target: Buffer, indices: Iterable[Index], value: Expr, fn: str = "add") -> Accumulate:
    """target[indices] = fn(target[indices], value)"""
    return Accumulate(target, at(*indices), fn, value)


def loop(var: str, extent: Index, *body: Stmt, kind: Kind = "serial", unroll: int = 1) -> For:
    """for var in 0..extent: body"""
    return For(var, _index(extent), body, kind, unroll)


def kernel(*stages: Stmt, buffers: Iterable[Buffer], name: str = "k") -> Kernel:
    """A well-formed kernel."""
    return verify(Kernel(name, tuple(buffers), stages))


# -------------------------------------------------------------------------------------- running


def memory_of(kernel: Kernel, arrays: dict[str, Array]) -> dict[str, Array]:
    """A copy of the arrays, each laid out with its buffer's strides; outputs are filled with 77.

    The memory around a strided array is kept in `base`, so that stray writes show.
    """
    laid_out = {}
    for b in kernel.buffers:
        if b.alias:
            continue
        low = sum(s * (n - 1) for s, n in zip(b.strides, b.shape, strict=True) if s < 0)
        high = sum(s * (n - 1) for s, n in zip(b.strides, b.shape, strict=True) if s > 0)
        memory = np.full(high - low + 1 + 2 * MARGIN, 77).astype(b.dtype)
        size = b.dtype.itemsize
        view: Array = np.ndarray(
            b.shape, b.dtype, memory, (MARGIN - low) * size, tuple(s * size for s in b.strides)
        )
        if b.name in arrays:
            given = arrays[b.name]
            # A schedule may have merged axes; one element may stand for all.
            view[...] = given if given.size == 1 else given.reshape(b.shape)
        laid_out[b.name] = view
    return laid_out


MARGIN = 70  # elements before and after every array: a whole vector of bytes


def interpreted(kernel: Kernel, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays after the loop interpreter ran the kernel."""
    memory = memory_of(kernel, arrays)
    interpret(kernel, memory)
    return memory


def native(
    kernel: Kernel, arrays: dict[str, Array], vector_bytes: int | None = None
) -> dict[str, Array]:
    """The arrays after the machine code ran, parallel stages in uneven pieces, back to front."""
    code, machine = compiled(kernel, vector_bytes)
    memory = memory_of(kernel, arrays)
    for stage in code.stages:
        run_stage(stage, machine, kernel, memory)
    return memory


def compiled(kernel: Kernel, vector_bytes: int | None = None) -> tuple[KernelCode, MachineCode]:
    """LLVM text and machine code, for this machine's vectors or narrower ones."""
    code = generate(kernel, vector_bytes or host().vector_bytes)
    return code, compile_kernel(code, host_cpu())[0]


def run_stage(
    stage: StageCode, machine: MachineCode, kernel: Kernel, memory: dict[str, Array]
) -> None:
    """Call one function of a kernel."""
    function = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )(machine.addresses[stage.symbol])
    pointers = (ctypes.c_void_p * max(1, len(stage.slots)))(
        *(memory[kernel.buffers[k].memory].ctypes.data for k in stage.slots)
    )
    params = (ctypes.c_int64 * max(1, len(stage.params)))(*stage.params)
    length = stage.round or stage.extent
    for first in range(0, stage.extent, length) if length else ():
        for begin, end in pieces(length) if stage.parallel else [(0, 1)]:
            assert function(pointers, params, first + begin, first + end) == 0


def pieces(extent: int) -> list[tuple[int, int]]:
    """0..extent in three uneven parts, the last first, with an empty one between."""
    cuts = sorted({0, extent // 3, extent // 2, extent})
    return [*reversed(list(pairwise(cuts))), (extent, extent)]


def same_memory(
    got: dict[str, Array], wanted: dict[str, Array], ulp: float = 0, zeros: bool = True
) -> None:
    """Assert that all arrays and the memory around them agree, bit for bit or within `ulp`.

    zeros: in the sign of zero, too.
    """
    for name, array in wanted.items():
        left, right = base(got[name]), base(array)
        if array.dtype.kind == "f":
            agree(left, right, ulp, name, zeros)
        else:
            np.testing.assert_array_equal(left, right, err_msg=name)


def base(array: Array) -> Array:
    """The memory an array of `memory_of` lies in."""
    found = array.base
    assert isinstance(found, np.ndarray)
    return found


def agree(got: Array, wanted: Array, ulp: float, name: str, zeros: bool = True) -> None:
    """Floats: NaN where NaN is, the same zeros, and no further apart than `ulp`."""
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), nan, err_msg=name)
    if ulp == 0:
        np.testing.assert_array_equal(got, wanted, err_msg=name)
        if zeros:
            signs = np.signbit(got[~nan]), np.signbit(wanted[~nan])
            np.testing.assert_array_equal(*signs, err_msg=f"{name}: the sign of zero")
        return
    apart = np.abs(got[~nan].astype(np.longdouble) - wanted[~nan])
    step = np.spacing(np.abs(wanted[~nan])).astype(np.longdouble)
    same = got[~nan] == wanted[~nan]
    assert np.all(same | (apart <= ulp * step)), name


def random_array(
    rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], low: int = -9, high: int = 10
) -> Array:
    """Small whole numbers, exact in every dtype, so that the order of a sum makes no difference."""
    kind = np.dtype(dtype)
    if kind == BOOL:
        return rng.integers(0, 2, shape).astype(kind)
    return rng.integers(0 if kind.kind == "u" else low, high, shape).astype(kind)


def random_inputs(rng: np.random.Generator, k: Kernel) -> dict[str, Array]:
    """An array for each input of a kernel, by name."""
    inputs = (b for b in k.buffers if b.role == "input")
    return {b.name: random_array(rng, b.dtype, b.shape) for b in inputs}
