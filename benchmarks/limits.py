"""The limits of the machine, measured in the benchmark's own run: `python -m benchmarks.limits`.

Copy with ordinary and with streaming stores, reading, and the multiply-add peak; on one core and
on all.  The probes are a few lines of LLVM IR each, compiled by llvmlite and run from threads with
the GIL released.  Rates are bytes moved (read plus written) or operations, per second.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from benchmarks import machine

ARRAY = 1 << 27  # bytes; beyond every cache
LANES = 16  # float32 lanes of the widest vectors in use; LLVM splits them where they are narrower
STREAMS = (1, 2, 4)  # of reading; the best counts
CHAINS = 12  # independent multiply-adds: latency 4 × 2 units needs 8
FMA_STEPS = 20_000_000 // CHAINS
ATTRIBUTES = '"prefer-vector-width"="512" "min-legal-vector-width"="512" nounwind'


def _loop(name: str, before: str, body: str, after: str, step: int) -> str:
    """`float name(ptr from, ptr to, i64 n)`: body for i in 0..n by step, between the others."""
    return f"""
define float @{name}(ptr %from, ptr %to, i64 %n) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{before}
{body}
  %next = add i64 %i, {step}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{after}
}}
"""


def _copy(name: str, hint: str) -> str:
    lines = []
    for k in range(4):
        lines += [
            f"  %j{k} = add i64 %i, {k * LANES}",
            f"  %p{k} = getelementptr float, ptr %from, i64 %j{k}",
            f"  %q{k} = getelementptr float, ptr %to, i64 %j{k}",
            f"  %x{k} = load <{LANES} x float>, ptr %p{k}, align 64",
            f"  store <{LANES} x float> %x{k}, ptr %q{k}, align 64{hint}",
        ]
    return _loop(name, "", "\n".join(lines), "  ret float 0.0", 4 * LANES)


def _accumulators(count: int, update: Callable[[int], list[str]]) -> tuple[str, str, str]:
    """`count` vector accumulators: their phis, their updates, and their sum."""
    vector = f"<{LANES} x float>"
    before = "\n".join(
        f"  %a{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %loop ]"
        for k in range(count)
    )
    body = "\n".join(line for k in range(count) for line in update(k))
    sums = [f"  %s0 = fadd {vector} %b0, zeroinitializer"]
    sums += [f"  %s{k} = fadd {vector} %s{k - 1}, %b{k}" for k in range(1, count)]
    last = f"%s{count - 1}"
    call = f"call reassoc float @llvm.vector.reduce.fadd.v{LANES}f32(float 0.0, {vector} {last})"
    return before, body, "\n".join([*sums, f"  %r = {call}", "  ret float %r"])


def _read(streams: int) -> str:
    """Sums of several streams at once, each its own part of the memory: prefetchers like a few."""
    vectors = 8 // streams

    def update(k: int) -> list[str]:
        stream, vector = divmod(k, vectors)
        return [
            f"  %o{k} = mul i64 %n, {stream}",
            f"  %m{k} = add i64 %i, {vector * LANES}",
            f"  %j{k} = add i64 %o{k}, %m{k}",
            f"  %p{k} = getelementptr float, ptr %from, i64 %j{k}",
            f"  %x{k} = load <{LANES} x float>, ptr %p{k}, align 64",
            f"  %b{k} = fadd <{LANES} x float> %a{k}, %x{k}",
        ]

    return _loop(f"read{streams}", *_accumulators(8, update), vectors * LANES)


def _fma() -> str:
    vector = f"<{LANES} x float>"

    def update(k: int) -> list[str]:
        call = f"call {vector} @llvm.fma.v{LANES}f32({vector} %a{k}, {vector} %c, {vector} %c)"
        return [f"  %b{k} = {call}"]

    before, body, after = _accumulators(CHAINS, update)
    constant = f"  %c = load {vector}, ptr %from, align 64"
    return _loop("fma", before, f"{constant}\n{body}", after, 1)


def module() -> str:
    """All probes as LLVM IR."""
    vector = f"<{LANES} x float>"
    return "\n".join(
        [
            f"declare {vector} @llvm.fma.v{LANES}f32({vector}, {vector}, {vector})",
            f"declare float @llvm.vector.reduce.fadd.v{LANES}f32(float, {vector})",
            _copy("copy", ""),
            _copy("stream", ", !nontemporal !0"),
            *(_read(streams) for streams in STREAMS),
            _fma(),
            f"attributes #0 = {{ {ATTRIBUTES} }}",
            "!0 = !{i32 1}",
        ]
    )


@dataclass(frozen=True)
class Probes:
    """The compiled probes; `engine` owns their code."""

    engine: Any
    functions: dict[str, Any]


def compiled() -> Probes:
    """Compile for this machine at its full vector width."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = machine.llvm_features()
    tuned = target.create_target_machine(
        cpu=machine.llvm_cpu_name(), features=features, opt=3, jit=True
    )
    parsed = llvm.parse_assembly(module())
    parsed.verify()
    engine = llvm.create_mcjit_compiler(parsed, tuned)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    names = ("copy", "stream", *(f"read{streams}" for streams in STREAMS), "fma")
    return Probes(engine, {n: kind(engine.get_function_address(n)) for n in names})


def aligned(nbytes: int) -> Any:
    """A float32 array at a 64-byte boundary, its pages touched."""
    raw = np.ones(nbytes + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    array = raw[offset : offset + nbytes].view(np.float32)
    array[:] = 0.5
    return array


def _seconds(work: Callable[[int], Any], threads: int, repeat: int) -> float:
    """The shortest time of `work(thread)` in all threads at once, start to last end."""
    best = float("inf")
    for _ in range(repeat):
        gate = threading.Barrier(threads + 1)

        def run(index: int, gate: threading.Barrier = gate) -> None:
            gate.wait()
            work(index)

        workers = [threading.Thread(target=run, args=(t,)) for t in range(threads)]
        for worker in workers:
            worker.start()
        gate.wait()
        start = perf_counter()
        for worker in workers:
            worker.join()
        best = min(best, perf_counter() - start)
    return best


def measure(threads: int, repeat: int = 20) -> dict[str, float]:
    """Rates on this many threads: GB/s for copy, stream and read, GFLOP/s for fma (float32)."""
    probes = compiled()
    functions = probes.functions
    source, target = aligned(ARRAY), aligned(ARRAY)
    block = 8 * LANES
    per_thread = source.size // threads // block * block

    def rate(name: str, streams: int, factor: int) -> float:
        def move(index: int) -> None:
            at = index * per_thread * 4
            count = per_thread // streams
            functions[name](source.ctypes.data + at, target.ctypes.data + at, count)

        moved = factor * 4.0 * per_thread * threads
        return float(moved / _seconds(move, threads, repeat) / 1e9)

    rates = {
        "copy": rate("copy", 1, 2),
        "stream": rate("stream", 1, 2),
        "read": max(rate(f"read{streams}", streams, 1) for streams in STREAMS),
    }

    def multiply(index: int) -> None:
        functions["fma"](source.ctypes.data, target.ctypes.data, FMA_STEPS)

    operations = 2 * LANES * CHAINS * FMA_STEPS * threads
    rates["fma"] = operations / _seconds(multiply, threads, repeat) / 1e9
    return rates


def main() -> None:
    """Print the rates on one core and on all as JSON."""
    counts = sorted({1, machine.cores()})
    print(json.dumps({str(n): measure(n) for n in counts}))


if __name__ == "__main__":
    main()
