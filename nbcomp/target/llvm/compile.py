"""The LLVM target: kernels to machine code, through the passes that pay, and a cache of code.

A kernel's LLVM text is its key: kernels that differ only in sizes share one piece of machine code,
and compiling a new shape of a known program never reaches LLVM.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel
from nbcomp.machine import Machine, host
from nbcomp.origin import Listing
from nbcomp.record import Trace
from nbcomp.sizes import IN_FORCE, Asked, asking
from nbcomp.target.base import Stage
from nbcomp.target.llvm import blas, jumps
from nbcomp.target.llvm.apart import made_apart
from nbcomp.target.llvm.codegen import KernelCode, generate, is_written
from nbcomp.target.llvm.dialects import dialect_of
from nbcomp.target.llvm.listing import assembly_listing, llvm_listing


@dataclass(frozen=True)
class Cpu:
    """What code is generated for: an LLVM triple, CPU name, feature string, function attributes."""

    triple: str
    name: str
    features: str
    attributes: str = ""

    @property
    def native(self) -> bool:
        """Whether it has this machine's architecture."""
        here = str(llvm.get_process_triple())
        return self.triple.split("-")[0] == here.split("-")[0]

    @property
    def x86(self) -> bool:
        """Whether x86-64's own instructions may be written."""
        return self.triple.startswith("x86_64")


@cache
def host_cpu() -> Cpu:
    """This machine's CPU, with full-width vectors (LLVM's own tuning prefers 256 bits on many)."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    text = features.flatten()
    if host().vector_bytes == 64:
        text += ",-prefer-256-bit"
    return Cpu(llvm.get_process_triple(), llvm.get_host_cpu_name(), text)


@cache
def target_machine(cpu: Cpu) -> Any:
    """LLVM's target machine for JIT code."""
    target = llvm.Target.from_triple(cpu.triple)
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=2, reloc="static", codemodel="jitdefault", jit=True
    )


# The code comes with its loops, vectors and invariants in place.  LLVM's whole -O2 pipeline finds
# nothing more in it and takes ten times as long (benchmarks/run.py, rows "compile time").
_PASSES = ("sroa", "instruction_combine", "simplify_cfg", "new_gvn", "dead_store_elimination")


@cache
def _pipeline(cpu: Cpu) -> tuple[Any, Any]:
    builder = llvm.create_pass_builder(target_machine(cpu), llvm.create_pipeline_tuning_options())
    manager = llvm.create_new_function_pass_manager()
    for name in _PASSES:
        getattr(manager, f"add_{name}_pass")()
    return manager, builder


@cache
def _inliner(cpu: Cpu) -> tuple[Any, Any]:
    """Puts the bodies of `outline` where they are called: a call would spill every constant."""
    builder = llvm.create_pass_builder(target_machine(cpu), llvm.create_pipeline_tuning_options())
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_global_dead_code_eliminate_pass()
    return manager, builder


def _whole_pipeline(cpu: Cpu) -> tuple[Any, Any]:
    """LLVM's -O3: for loops that come as they were written, element by element; to be run once."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = llvm.create_pass_builder(target_machine(cpu), options)
    return builder.getModulePassManager(), builder


def optimise(module: Any, cpu: Cpu, written: bool = False) -> None:
    """LLVM's passes over our vectors: memory to registers, no redundant memory access.

    written: over loops that have no vectors yet, all of them.
    """
    if written:
        manager, builder = _whole_pipeline(cpu)
        manager.run(module, builder)
        return
    if any(not f.is_declaration and f.linkage == llvm.Linkage.internal for f in module.functions):
        manager, builder = _inliner(cpu)
        manager.run(module, builder)
    manager, builder = _pipeline(cpu)
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)


@dataclass
class MachineCode:
    """Compiled functions, by symbol.  Keeps the memory they live in."""

    llvm_text: str  # as generated
    cpu: Cpu
    addresses: dict[str, int]
    seconds: float
    engine: Any = field(default=None, repr=False)

    @cached_property
    def texts(self) -> Texts:
        """What LLVM made of it."""
        return made_here(self.llvm_text, self.cpu)


class Texts(NamedTuple):
    """LLVM IR after LLVM's passes, and its assembly: instruction by instruction what runs."""

    optimised: str
    assembly: str


@lru_cache(64)  # a cell that is run again has the same kernels
def made_here(text: str, cpu: Cpu) -> Texts:
    """What LLVM makes of a text."""
    _locate_what_llvm_adds()
    module = parse(text, cpu)
    optimise(module, cpu, is_written(text))
    optimised = str(module)  # now: machine code is made by changing the module
    return Texts(optimised, str(target_machine(cpu).emit_assembly(module)))


@cache
def _locate_what_llvm_adds() -> None:
    # Otherwise the code generator's own instructions (copies between registers, spills) seem to
    # come from the line before them.  Changes line tables only.
    llvm.set_option("nbcomp", "-use-unknown-locations=Enable")


def parse(text: str, cpu: Cpu) -> Any:
    """An LLVM module from text."""
    module = llvm.parse_assembly(text)
    module.triple = cpu.triple
    module.data_layout = str(target_machine(cpu).target_data)
    return module


_cache: dict[tuple[str, Cpu], MachineCode] = {}
_compiling = threading.Lock()  # a symbol may be added to the engine only once


@cache
def _engine(cpu: Cpu) -> Any:
    """One JIT engine for all code of a CPU; objects are added to it and never leave."""
    backing = llvm.parse_assembly("")
    backing.triple = cpu.triple
    target = llvm.Target.from_triple(cpu.triple)
    machine = target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=2, reloc="static", codemodel="jitdefault", jit=True
    )
    return llvm.create_mcjit_compiler(backing, machine)


def compile_kernel(code: KernelCode, cpu: Cpu) -> tuple[MachineCode, bool]:
    """Machine code for a kernel and whether it was compiled now (False: found in the cache)."""
    key = (code.text, cpu)
    with _compiling:
        known = key in _cache
        if not known:
            _cache[key] = _compiled(code, cpu)
        return _cache[key], not known


def _compiled(code: KernelCode, cpu: Cpu) -> MachineCode:
    start = time.perf_counter()
    # Symbols are process-wide: make them unique by content.
    content = f"{cpu.name} {cpu.features}\n{code.text}"
    tag = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
    unique = {s.symbol: f"{s.symbol}.{tag}" for s in code.stages}
    text = code.text
    for symbol, name in unique.items():
        text = text.replace(f'@"{symbol}"', f'@"{name}"').replace(
            f'@"{symbol}.code"', f'@"{name}.code"'
        )
    for name, where in (blas.symbols(text) | jumps.symbols(text)).items():
        llvm.add_symbol(name, where)
    module = parse(text, cpu)
    optimise(module, cpu, is_written(code.text))
    binary = target_machine(cpu).emit_object(module)
    engine = _engine(cpu)
    engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
    engine.finalize_object()
    addresses = {s: engine.get_function_address(name) for s, name in unique.items()}
    seconds = time.perf_counter() - start
    return MachineCode(code.text, cpu, addresses, seconds, engine=engine)


@dataclass(frozen=True)
class LlvmCode:
    """A kernel's machine code, with all the texts it came from.

    The texts are those of `located`: the same code, every instruction with a debug location.
    """

    kernel: Kernel
    code: KernelCode
    machine: MachineCode
    known: bool
    stages: tuple[Stage, ...]
    vector_bytes: int
    asked: Asked | None = None  # what decides about sizes that are open
    features: frozenset[str] = frozenset()  # of the CPU

    @property
    def bulk(self) -> int:
        """Characters of its LLVM IR."""
        return len(self.machine.llvm_text)

    @cached_property
    def located(self) -> KernelCode:
        """The code as it was generated, with locations."""
        cpu = self.machine.cpu
        with asking(self.asked):
            return generate(
                self.kernel,
                self.vector_bytes,
                located=True,
                x86=cpu.x86,
                attributes=cpu.attributes,
                features=self.features,
            )

    def begin(self, worker: Executor) -> None:
        """Begin to make its texts: LLVM works on them while something else is done here."""
        if not self._begun and "_texts" not in self.__dict__:
            self._begun.append(worker.submit(self._make, self.located.text))

    @cached_property
    def _begun(self) -> list[Future[Texts]]:
        return []

    def _make(self, text: str) -> Texts:
        cpu = self.machine.cpu
        return made_here(text, cpu) if cpu.native else Texts(*made_apart(text, astuple(cpu)))

    @cached_property
    def _texts(self) -> Texts:
        return self._begun.pop().result() if self._begun else self._make(self.located.text)

    def _raw(self, level: str) -> str:
        match level:
            case "llvm":
                return self._texts.optimised
            case "llvm-before":
                return self.located.text
            case "asm":
                return self._texts.assembly
        raise ValueError(f"no level {level!r}: llvm-before, llvm or asm")

    def text(self, level: str) -> str:
        """ "llvm" (after LLVM's passes), "llvm-before" or "asm", with the kernel's own names."""
        return self.code.readable(self._raw(level))

    @cached_property
    def _listings(self) -> dict[str, Listing]:
        return {}

    def listing(self, level: str) -> Listing:
        """The same for readers, each line with its origin."""
        if level not in self._listings:
            self._listings[level] = self._listing(level)
        return self._listings[level]

    def _listing(self, level: str) -> Listing:
        text, places, names = self._raw(level), self.located.places, self.code.readable
        if level == "asm":
            return assembly_listing(text, places, names, dialect_of(self.machine.cpu.triple))
        return llvm_listing(level, text, places, names)


@dataclass(frozen=True)
class LlvmTarget:
    """Machine code for a CPU; loaded into this process only if this machine can run it.

    refusal: why it cannot; then there are the texts, and calling the program says so.
    """

    cpu: Cpu
    machine: Machine
    refusal: str = ""
    name: str = "llvm"
    levels: tuple[str, ...] = ("llvm-before", "llvm", "asm")

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector register."""
        return self.machine.vector_bytes

    def describe(self) -> str:
        """The machine in a few words."""
        width = {64: "AVX-512", 32: "256-bit", 16: "128-bit"}.get(self.vector_bytes, "")
        arch = self.cpu.triple.split("-")[0]
        if arch != "x86_64":
            return self.machine.name
        return f"{arch} {width} vectors ({self.vector_bytes // 4} float32 lanes)"

    def compile(self, kernel: Kernel, trace: Trace) -> LlvmCode:
        """LLVM IR, then machine code, unless equal code is there already."""
        code = self._generated(kernel, trace)
        with trace.timed("LLVM"):
            made, new = self._machine_code(code)
        return self._code(kernel, code, made, new)

    def compile_all(self, kernels: Iterable[Kernel], trace: Trace) -> list[LlvmCode]:
        """Kernels in order: while LLVM works on those that are there, the next one is made.

        LLVM's seconds in the trace are those that were spent waiting for it.
        """
        worker = ThreadPoolExecutor(1, "nbcomp-llvm")
        try:
            begun = []
            for kernel in kernels:
                code = self._generated(kernel, trace)
                begun.append((kernel, code, worker.submit(self._machine_code, code)))
            with trace.timed("LLVM"):
                return [self._code(k, code, *later.result()) for k, code, later in begun]
        finally:
            worker.shutdown(cancel_futures=True)

    def _generated(self, kernel: Kernel, trace: Trace) -> KernelCode:
        with trace.timed("code generation"):
            return generate(
                kernel,
                self.vector_bytes,
                x86=self.cpu.x86,
                attributes=self.cpu.attributes,
                features=self.machine.features,
            )

    def _machine_code(self, code: KernelCode) -> tuple[MachineCode, bool]:
        """The code in memory, and whether it is new; only its text for a CPU that is not here."""
        if self.refusal:
            return MachineCode(code.text, self.cpu, {}, 0.0), True
        return compile_kernel(code, self.cpu)

    def _code(self, kernel: Kernel, code: KernelCode, made: MachineCode, new: bool) -> LlvmCode:
        stages = tuple(
            Stage(
                f"{kernel.name}.{n}",
                self._refuse if self.refusal else made.addresses[s.symbol],
                s.slots,
                s.params,
                s.extent,
                s.parallel,
                s.round,
            )
            for n, s in enumerate(code.stages)
        )
        return LlvmCode(
            kernel,
            code,
            made,
            not new,
            stages,
            self.vector_bytes,
            IN_FORCE.get(),
            self.machine.features,
        )

    def _refuse(self, *arrays: object) -> tuple[()]:
        raise NbcompError(f"this is code for {self.machine.name}: {self.refusal}")


@cache
def host_target() -> LlvmTarget:
    """Machine code for this machine."""
    return LlvmTarget(host_cpu(), host())
