"""The LLVM target: kernels to machine code, through the passes that pay, and a cache of code.

A kernel's LLVM text is its key: kernels that differ only in sizes share one piece of machine code,
and compiling a new shape of a known program never reaches LLVM.
"""

from __future__ import annotations

import hashlib
import re
import struct
import threading
import time
from collections.abc import Collection, Iterable
from concurrent.futures import Executor, Future
from dataclasses import astuple, dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as llvm

from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel
from nbcomp.machine import Machine, host
from nbcomp.origin import Listing
from nbcomp.record import Trace
from nbcomp.sizes import IN_FORCE, Asked, asking
from nbcomp.target.base import Stage
from nbcomp.target.llvm.apart import made_apart
from nbcomp.target.llvm.beside import beside
from nbcomp.target.llvm.codegen import KernelCode, generate
from nbcomp.target.llvm.dialects import dialect_of
from nbcomp.target.llvm.emit import (
    Cpu,
    Texts,
    assembled,
    host_cpu,
    is_compact,
    made_here,
    new_machine,
    object_of,
    outside,
)
from nbcomp.target.llvm.listing import assembly_listing, llvm_listing


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


_cache: dict[tuple[str, Cpu], MachineCode] = {}
_compiling = threading.Lock()  # a symbol may be added to the engine only once


@cache
def _engine(cpu: Cpu, compact: bool) -> Any:
    """One JIT engine for all code of a CPU; objects are added to it and never leave.

    Objects with their constants beside them get one piece of memory each, by llvmlite's memory
    manager; that has no room for the addresses of others.
    """
    backing = llvm.parse_assembly("")
    backing.triple = cpu.triple
    return llvm.create_mcjit_compiler(backing, new_machine(cpu, compact), use_lmm=compact)


def forget() -> None:
    """Compile and write everything anew from here on, as a new process would."""
    with _compiling:
        _cache.clear()
        _engine.cache_clear()
        made_here.cache_clear()


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

    def unique(text: str) -> str:
        return _SYMBOL.sub(rf"\g<0>.{tag}", text)

    compact = is_compact(code.text, cpu)
    if code.located_text:  # it will be looked at: what is shown is what is loaded
        binary = assembled(unique(made_here(code.located_text, cpu).assembly), cpu, compact)
    else:
        binary = object_of(unique(code.text), cpu, compact)
    if compact and _needs_others(binary):
        compact, binary = False, object_of(unique(code.text), cpu, compact=False)
    for name, where in outside(code.text).items():
        llvm.add_symbol(name, where)
    engine = _engine(cpu, compact)
    engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
    engine.finalize_object()
    addresses = {s.symbol: engine.get_function_address(unique(s.symbol)) for s in code.stages}
    seconds = time.perf_counter() - start
    return MachineCode(code.text, cpu, addresses, seconds, engine=engine)


_ELF = struct.Struct("<IBBHQQ")  # a symbol: name, info, other, section, value, size


def _needs_others(binary: bytes) -> bool:
    """Whether an ELF object has symbols that are defined elsewhere: LLVM makes calls of its own
    where a CPU has no instruction."""
    for section in llvm.ObjectFileRef.from_data(binary).sections():
        if section.name() == b".symtab":
            return any(name and not at for name, _, _, at, _, _ in _ELF.iter_unpack(section.data()))
    return True


_SYMBOL = re.compile(r"\bkernel\.\d+\b")  # of a stage, in LLVM IR and in assembly


@dataclass(frozen=True)
class LlvmCode:
    """A kernel's machine code, with all the texts it came from.

    The texts are those of the same code where every instruction has a debug location.
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
        if self.code.located_text:
            return self.code
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
            self._begun.append(worker.submit(self._make, self.located.located_text))

    @cached_property
    def _begun(self) -> list[Future[Texts]]:
        return []

    def _make(self, text: str) -> Texts:
        cpu = self.machine.cpu
        return made_here(text, cpu) if cpu.native else Texts(*made_apart(text, astuple(cpu)))

    @cached_property
    def _texts(self) -> Texts:
        return self._begun.pop().result() if self._begun else self._make(self.located.located_text)

    def _raw(self, level: str) -> str:
        match level:
            case "llvm":
                return self._texts.optimised
            case "llvm-before":
                return self.located.located_text
            case "asm":
                return self._texts.assembly
        raise ValueError(f"no level {level!r}: llvm-before, llvm or asm")

    def text(self, level: str) -> str:
        """ "llvm" (after LLVM's passes), "llvm-before" or "asm", with the kernel's own names."""
        return self.code.readable(self._raw(level))

    def read(self) -> None:
        """Make its listings now, in time that would be spent waiting."""
        for level in ("llvm", "asm"):
            self.listing(level)

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

    def compile_all(
        self, kernels: Iterable[Kernel], trace: Trace, shown: Collection[str] = ()
    ) -> list[LlvmCode]:
        """Kernels in order: while LLVM works on those that are there, the next one is made, and
        then texts that are there are read for who will look at them.

        LLVM's seconds in the trace are those that were spent waiting for it.
        """
        begun, made = [], list[LlvmCode]()
        with beside("nbcomp-llvm") as worker:
            for kernel in kernels:
                code = self._generated(kernel, trace, kernel.name in shown)
                begun.append((kernel, code, worker.submit(self._machine_code, code)))
            with trace.timed("LLVM"):
                for kernel, code, later in begun:
                    made.append(self._code(kernel, code, *later.result()))
                    if code.located_text and not begun[-1][2].done():
                        made[-1].read()
        return made

    def _generated(self, kernel: Kernel, trace: Trace, located: bool = False) -> KernelCode:
        with trace.timed("code generation"):
            code = generate(
                kernel,
                self.vector_bytes,
                located=located,
                x86=self.cpu.x86,
                attributes=self.cpu.attributes,
                features=self.machine.features,
            )
        if len(code.text) > trace.shown.characters:
            return replace(code, located_text="", places=())
        return code

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
