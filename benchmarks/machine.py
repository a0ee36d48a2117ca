"""What the benchmark runs on, in one small record: processor, cores, versions, the BLAS in use."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def processor() -> str:
    """The processor's name as the operating system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def llvm_cpu_name() -> str:
    """This processor in LLVM's words, e.g. `znver4`."""
    llvm: Any = import_module("llvmlite.binding")
    return str(llvm.get_host_cpu_name())


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def busy() -> float:
    """Seconds of work all programs together have done on this machine; 0 where it does not tell."""
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, softirq = map(int, first.split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def blas() -> list[str]:
    """The BLAS libraries loaded in this process, with their kernel; empty without threadpoolctl."""
    import_module("numpy.linalg")
    try:
        pools: Any = import_module("threadpoolctl")
    except ImportError:
        return []
    return [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in pools.threadpool_info()
        if pool["user_api"] == "blas"
    ]


def installed(distribution: str) -> str:
    """The version of a distribution, or of a loaded module of that name; else an empty text."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return str(getattr(sys.modules.get(distribution), "__version__", ""))
