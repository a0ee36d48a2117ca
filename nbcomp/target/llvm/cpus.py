"""CPUs by name: what the same kernels are compiled for besides this machine.

An x86-64 level runs here if this machine has it; for every other CPU there is the text, scheduled
for the width of its own vectors.  Knows LLVM's names of CPUs and features, and machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache

import llvmlite.binding as llvm

from nbcomp.machine import FEATURES, host
from nbcomp.target.llvm.compile import LlvmTarget, host_target
from nbcomp.target.llvm.emit import Cpu

# x86-64-v3 and -v4 of the psABI (x86-64 psABI 1.0, 3.1.1), by LLVM's names of features.
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_TILES = ("amx-tile", "amx-bf16", "amx-int8")
_AMX = (*_V4, "avx512vnni", "avx512bf16", *_TILES)


@dataclass(frozen=True)
class NamedCpu:
    """A CPU that is compiled for: its title, LLVM's names, bytes of a vector, what it needs to run.

    attributes: of LLVM functions.  without: optimisations of the schedule that make no sense there.
    """

    name: str
    title: str
    triple: str
    cpu: str
    features: str
    vector_bytes: int
    needs: tuple[str, ...] | None = None  # features; None: another architecture
    attributes: str = ""
    without: frozenset[str] = frozenset()
    note: str = ""

    @property
    def runs(self) -> bool:
        """Whether this machine can run its code."""
        return self.needs is not None and set(self.needs) <= _host_features()

    @property
    def missing(self) -> str:
        """Why this machine cannot run its code; empty if it can."""
        if self.needs is None:
            return "another architecture than this machine's"
        absent = [f for f in self.needs if f not in _host_features()]
        return f"this machine has no {', '.join(absent)}" if absent else ""


_LINUX = "x86_64-unknown-linux-gnu"
_NO_FMA = (
    "no fused multiply-add: terms of products are rounded, and elementary functions call the C"
    " library's, lane by lane"
)

CPUS = (
    NamedCpu("sse2", "x86-64 (SSE2)", _LINUX, "x86-64", "", 16, (), note=_NO_FMA),
    NamedCpu("avx2", "x86-64-v3 (AVX2, FMA)", _LINUX, "x86-64-v3", "", 32, _V3),
    NamedCpu("avx512", "x86-64-v4 (AVX-512)", _LINUX, "x86-64-v4", "-prefer-256-bit", 64, _V4),
    NamedCpu(
        "amx",
        "Sapphire Rapids (AMX)",
        _LINUX,
        "sapphirerapids",
        "-prefer-256-bit",
        64,
        _AMX,
        note="tiles multiply bfloat16 and int8 only; products of floats stay BLAS and vectors",
    ),
    NamedCpu("neon", "AArch64 NEON", "aarch64-unknown-linux-gnu", "generic", "+neon", 16),
    NamedCpu(
        "sve",
        "AArch64 SVE, 256 bits",
        "aarch64-unknown-linux-gnu",
        "generic",
        "+sve",
        32,
        attributes="vscale_range(2,2)",
        note="for machines with 256-bit SVE, such as Neoverse V1",
    ),
    NamedCpu(
        "rvv",
        "RISC-V V, 256 bits",
        "riscv64-unknown-linux-gnu",
        "generic-rv64",
        "+m,+a,+f,+d,+c,+v,+zvl256b",
        32,
        attributes="vscale_range(4,4)",
        note="for machines with vectors of 256 bits",
    ),
    NamedCpu(
        "wasm",
        "WebAssembly SIMD",
        "wasm32-unknown-unknown",
        "generic",
        "+simd128",
        16,
        note=_NO_FMA,
    ),
    NamedCpu(
        "ptx",
        "NVIDIA PTX, sm_80",
        "nvptx64-nvidia-cuda",
        "sm_80",
        "+ptx75",
        16,
        without=frozenset(("vectorize", "interleave", "tile")),
        note="the loops as one GPU thread would run them: nbcomp has no schedule for GPUs",
    ),
)


def cpu_named(name: str) -> NamedCpu:
    """A CPU by name ("avx2") or by LLVM's ("x86-64-v3").  Raises ValueError for another one."""
    for cpu in CPUS:
        if name in (cpu.name, cpu.cpu) and name != "generic":
            return cpu
    near = get_close_matches(name, [c.name for c in CPUS], 1, 0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"no CPU {name!r}{hint}; there are host, {', '.join(c.name for c in CPUS)}")


def without_on(name: str) -> frozenset[str]:
    """The optimisations that make no sense on a CPU."""
    return frozenset() if name == "host" else cpu_named(name).without


def target_for(name: str) -> LlvmTarget:
    """The target of a CPU by name; "host" is this machine.  Raises ValueError for another one."""
    if name == "host":
        return host_target()
    found = cpu_named(name)
    features = frozenset(found.needs or ()) & frozenset(FEATURES.values())
    machine = replace(host(), name=found.title, vector_bytes=found.vector_bytes, features=features)
    cpu = Cpu(found.triple, found.cpu, found.features, found.attributes)
    return LlvmTarget(cpu, machine, refusal=found.missing)


@cache
def _host_features() -> frozenset[str]:
    """LLVM's names of what this machine has; empty on another architecture than x86-64."""
    host_target()
    if not llvm.get_process_triple().startswith("x86_64"):
        return frozenset()
    return frozenset(name for name, on in llvm.get_host_cpu_features().items() if on)


@cache
def every_architecture() -> None:
    """Make LLVM's other architectures known to it; more than once does nothing."""
    initialise: tuple[Callable[[], None], ...] = (
        llvm.initialize_all_targets,
        llvm.initialize_all_asmprinters,
    )
    for part in initialise:
        part()
