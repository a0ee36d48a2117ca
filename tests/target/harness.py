"""Compile one scalar function over arrays: a loop of vectors, the rest one element at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from nbcomp.target.llvm import scalars
from nbcomp.target.llvm.builder import Builder, Value, element_type
from nbcomp.types import DType

Emit = Callable[[Builder, tuple[Value, ...]], Value]


@cache
def host_features() -> frozenset[str]:
    """LLVM's names of the features of this machine."""
    return frozenset(name for name, on in llvm.get_host_cpu_features().items() if on)


def machine(features: frozenset[str] | None = None) -> llvm.TargetMachine:
    """A target machine for this CPU, with 512-bit vectors, or one with the given features only.

    A new one each time: a JIT engine takes over the one it is made with.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    target = llvm.Target.from_triple(triple)
    if features is None:
        text = llvm.get_host_cpu_features().flatten() + ",-prefer-256-bit"
        return target.create_target_machine(
            llvm.get_host_cpu_name(), features=text, opt=3, jit=True
        )
    text = ",".join(f"+{f}" for f in sorted(features))
    return target.create_target_machine(
        "x86-64", features=text, opt=3, codemodel="jitdefault", jit=True
    )


def memory(element: str) -> str:
    """The LLVM type in memory: bool is a byte."""
    return "i8" if element == "i1" else element


def load(b: Builder, dtype: DType, pointer: str, lanes: int) -> Value:
    """A value or vector at an address."""
    element = element_type(dtype)
    kind = Value("", memory(element), lanes).type
    raw = b.emit(f"load {kind}, ptr {pointer}, align 1", memory(element), lanes)
    if element != "i1":
        return raw
    return b.emit(f"trunc {raw} to {Value('', 'i1', lanes).type}", "i1", lanes)


def store(b: Builder, value: Value, pointer: str) -> None:
    """Write a value or vector to an address."""
    if value.element == "i1":
        value = b.emit(f"zext {value} to {Value('', 'i8', value.lanes).type}", "i8", value.lanes)
    b.effect(f"store {value}, ptr {pointer}, align 1")


def module(
    emit: Emit, arg_dtypes: Sequence[DType], result: DType, lanes: int, features: frozenset[str]
) -> str:
    """The LLVM text of `void f(n, out, args...)`, n a multiple of the lanes (0 lanes: scalars)."""
    b = Builder()
    b.features = features
    step = max(lanes, 1)
    pointers = ", ".join(f"ptr noalias %p{i}" for i in range(len(arg_dtypes)))
    lines = [f"define void @f(i64 %n, ptr noalias %out, {pointers}) {{", "entry:"]
    lines += ["  %none = icmp eq i64 %n, 0", "  br i1 %none, label %done, label %loop", "loop:"]
    lines += ["  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    args = []
    for i, dtype in enumerate(arg_dtypes):
        kind = memory(element_type(dtype))
        b.effect(f"%q{i} = getelementptr {kind}, ptr %p{i}, i64 %i")
        args.append(load(b, dtype, f"%q{i}", lanes))
    value = emit(b, tuple(args))
    b.effect(f"%o = getelementptr {memory(element_type(result))}, ptr %out, i64 %i")
    store(b, value, "%o")
    lines += b.lines
    lines += [f"  %next = add i64 %i, {step}", "  %more = icmp ult i64 %next, %n"]
    lines += ["  br i1 %more, label %loop, label %done", "done:", "  ret void", "}"]
    return "\n".join([*lines, *b.declarations.values()])


class Compiled:
    """A compiled scalar function, callable on arrays of equal length."""

    def __init__(
        self,
        emit: Emit,
        arg_dtypes: Sequence[DType],
        result: DType,
        lanes: int,
        features: frozenset[str] | None = None,
    ) -> None:
        self.result, self.lanes, self.arg_dtypes = result, lanes, tuple(arg_dtypes)
        self.features = features
        known = host_features() if features is None else features
        self.text = module(emit, arg_dtypes, result, lanes, known)
        tm = machine(features)
        self._engine = llvm.create_mcjit_compiler(self._optimised(tm), tm)
        self._engine.finalize_object()
        pointers = [ctypes.c_void_p] * (1 + len(arg_dtypes))
        address = self._engine.get_function_address("f")
        self._f = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)(address)

    def _optimised(self, tm: llvm.TargetMachine) -> llvm.ModuleRef:
        """The module after LLVM's passes; its own vectorisers are off, as in the compiler."""
        parsed = llvm.parse_assembly(self.text)
        parsed.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = False
        options.loop_unrolling = options.loop_interleaving = False
        builder = llvm.create_pass_builder(tm, options)
        builder.getModulePassManager().run(parsed, builder)
        return parsed

    @property
    def asm(self) -> str:
        """The assembly of the module."""
        tm = machine(self.features)
        return str(tm.emit_assembly(self._optimised(tm)))

    def into(self, out: np.ndarray, *args: np.ndarray) -> None:
        """Run on contiguous arrays whose length is a multiple of the lanes."""
        self._f(out.size, out.ctypes.data, *(a.ctypes.data for a in args))

    def __call__(self, *args: np.ndarray) -> np.ndarray:
        """Run on 1-d arrays of any equal length (padded with their first element)."""
        n = args[0].size
        pad = -n % max(self.lanes, 1)
        full = [
            np.ascontiguousarray(np.concatenate([a, a[:1].repeat(pad)]) if pad else a, dtype)
            for a, dtype in zip(args, self.arg_dtypes, strict=True)
        ]
        out = np.empty(n + pad, self.result)
        self.into(out, *full)
        return out[:n]


@cache
def function(
    fn: str,
    args: str,
    result: str,
    lanes: int,
    features: frozenset[str] | None = None,
) -> Compiled:
    """`scalars.emit` of a ufunc, by dtype characters, e.g. function("add", "ff", "f", 16)."""
    dtypes = tuple(np.dtype(c) for c in args)
    out = np.dtype(result)
    return Compiled(
        lambda b, values: scalars.emit(b, fn, out, dtypes, values), dtypes, out, lanes, features
    )


@cache
def caster(source: str, target: str, lanes: int) -> Compiled:
    """`scalars.cast` by dtype characters."""
    a, c = np.dtype(source), np.dtype(target)
    return Compiled(lambda b, v: scalars.cast(b, v[0], a, c), (a,), c, lanes)
