"""What LLVM makes of a text: its passes, and then an object, or texts for a reader.

Where both are wanted one run gives them: the assembly that is shown is what `assembled` makes the
object of, and LLVM reads it in a small part of the time in which it wrote it.  Knows LLVM; not
kernels, and nothing of how code is loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from nbcomp.machine import host
from nbcomp.target.llvm import blas, jumps
from nbcomp.target.llvm.codegen import is_written


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
    llvm.initialize_native_asmparser()
    features = llvm.get_host_cpu_features()
    text = features.flatten()
    if host().vector_bytes == 64:
        text += ",-prefer-256-bit"
    return Cpu(llvm.get_process_triple(), llvm.get_host_cpu_name(), text)


@cache
def target_machine(cpu: Cpu, compact: bool = False) -> Any:
    """LLVM's target machine for JIT code; an engine takes possession of one, see `new_machine`."""
    return new_machine(cpu, compact)


def new_machine(cpu: Cpu, compact: bool) -> Any:
    """A target machine.

    compact: constants lie beside the code, and instructions read them from there.  The code of JITs
    has them anywhere, so that each takes an instruction and a register for its address.
    """
    target = llvm.Target.from_triple(cpu.triple)
    reloc, model = ("pic", "small") if compact else ("static", "jitdefault")
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=2, reloc=reloc, codemodel=model, jit=True
    )


def outside(text: str) -> dict[str, int]:
    """The functions of others that a text calls, and their addresses."""
    return blas.symbols(text) | jumps.symbols(text)


def is_compact(text: str, cpu: Cpu) -> bool:
    """Whether constants may lie beside this code: where it calls nobody, who may be far away."""
    return cpu.x86 and "linux" in cpu.triple and not is_written(text) and not outside(text)


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


class Texts(NamedTuple):
    """LLVM IR after LLVM's passes, and its assembly: instruction by instruction what runs."""

    optimised: str
    assembly: str


_llvm = threading.Lock()  # a context of LLVM's is for one thread at a time


@lru_cache(128)  # a cell that is run again has the same kernels
def made_here(text: str, cpu: Cpu) -> Texts:
    """What LLVM makes of a text."""
    _locate_what_llvm_adds()
    with _llvm:
        module = _optimised(text, cpu)
        optimised = str(module)  # now: machine code is made by changing the module
        with _as_written(text, cpu):
            assembly = target_machine(cpu, is_compact(text, cpu)).emit_assembly(module)
        return Texts(optimised, str(assembly))


def object_of(text: str, cpu: Cpu, compact: bool) -> bytes:
    """The object of a text, with or without its constants beside it."""
    with _llvm, _as_written(text, cpu):
        return bytes(target_machine(cpu, compact).emit_object(_optimised(text, cpu)))


@contextmanager
def _as_written(text: str, cpu: Cpu) -> Iterator[None]:
    """With LLVM's code generator set for our code inside.

    But for loops that were written, loop strength reduction is off: our code has its addresses
    where they change.  Looking for better ones takes LLVM most of its time where several rows are
    read side by side (sums of columns), and it finds none.  Sums of products are put in order from
    the top of a block down: from the bottom up all loads of a tile come first and wait in the
    registers that its sums need.  Switches are the process's, so they are as they were outside, for
    others that use LLVM.
    """
    switches = {} if is_written(text) else {"-disable-lsr": ("true", "false")}
    if cpu.x86 and "llvm.fmuladd" in text:  # others have another order of their own
        switches["-misched-prera-direction"] = ("topdown", "bottomup")
    for name, (ours, _) in switches.items():
        llvm.set_option("nbcomp", f"{name}={ours}")
    try:
        yield
    finally:
        for name, (_, usual) in switches.items():
            llvm.set_option("nbcomp", f"{name}={usual}")


def _optimised(text: str, cpu: Cpu) -> Any:
    module = parse(text, cpu)
    optimise(module, cpu, is_written(text))
    return module


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


def assembled(assembly: str, cpu: Cpu, compact: bool) -> bytes:
    """The object of an assembly text: it is read by LLVM's assembler."""
    module = f'module asm "{assembly.translate(_QUOTED)}"\n'
    with _llvm:
        return bytes(target_machine(cpu, compact).emit_object(parse(module, cpu)))


# In a string of LLVM's a character may be two hexadecimal digits.
_QUOTED = str.maketrans({c: f"\\{ord(c):02X}" for c in '\\"\n\t'})
