"""What this machine is: cores, caches and vector width.  Plain data, read once."""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """A CPU as the compiler sees it: bytes of a vector register, cores, cache sizes in bytes.

    features: which instructions on several elements it has, by LLVM's names.
    """

    name: str
    vector_bytes: int
    cores: int
    l1: int
    l2: int
    l3: int
    features: frozenset[str] = frozenset()


def _cache_size(level: int) -> int:
    """Bytes of one data cache of the first core, 0 when the system does not tell (Linux only)."""
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if int((entry / "level").read_text()) != level:
                continue
            if (entry / "type").read_text().strip() == "Instruction":
                continue
            text = (entry / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        units = {"K": 1 << 10, "M": 1 << 20}
        return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)
    return 0


def _flags() -> tuple[str, set[str]]:
    """CPU model and feature flags from /proc/cpuinfo (empty elsewhere)."""
    name, flags = platform.processor() or platform.machine(), set()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() in ("flags", "Features"):
                flags = set(value.split())
                break
    except OSError:
        pass
    return name, flags


# LLVM's names of what is looked for, by Linux's.
FEATURES = {
    "avx512_vnni": "avx512vnni",
    "avx512_bf16": "avx512bf16",
    "avx512vl": "avx512vl",
    "avx_vnni": "avxvnni",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
}


_PRCTL, _ASK, _TILES = 158, 0x1023, 18  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)


def _with_tiles(flags: set[str]) -> set[str]:
    """The flags, without those of AMX where Linux does not let this process use tiles.

    A process has to ask first (Linux, Documentation/arch/x86/xstate.rst); otherwise the first
    instruction on a tile ends it.
    """
    if "amx_tile" not in flags or ctypes.CDLL(None).syscall(_PRCTL, _ASK, _TILES) == 0:
        return flags
    return {flag for flag in flags if not flag.startswith("amx")}


def cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def host() -> Machine:
    """This machine."""
    name, flags = _flags()
    flags = _with_tiles(flags)
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags
    vector = 64 if wide else 32 if "avx2" in flags else 16
    return Machine(
        name,
        vector,
        cores(),
        _cache_size(1) or 32 << 10,
        _cache_size(2) or 1 << 20,
        _cache_size(3) or 16 << 20,
        frozenset(name for flag, name in FEATURES.items() if flag in flags),
    )
