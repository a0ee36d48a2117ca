"""The limits of this machine, measured: multiply-adds a second, and bytes a second of each cache.

The probes are a few lines of LLVM IR each, steps like those of a plan, run by the same pool of
threads.  The first call of `limits` takes some 0.25 s; a process measures once.  Knows the target
and the pool; it must not know what is held against the limits.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from nbcomp.machine import host
from nbcomp.measure.roofline import Bandwidth, Limits, Peak
from nbcomp.measure.timing import Neighbours
from nbcomp.runtime import memory, pool
from nbcomp.runtime.engine import Code, load, target_machine
from nbcomp.target.llvm.emit import host_cpu
from nbcomp.types import FLOAT32

VECTOR = 64  # bytes of the widest vectors in use; LLVM splits them where they are narrower
CHAINS = 12  # independent multiply-adds: latency 4 × 2 units needs 8
STREAMS = (1, 2, 4)  # of reading beyond the caches; the best counts
PROBE = 0.7e-3  # seconds a probe takes about, where it can be chosen
FORKED = 10e-6  # seconds of work for each thread when the cost of starting them is measured
REPEAT = 3  # runs of each probe; the fastest counts, since nothing makes a run too fast
SMALLEST, LARGEST = 96 << 20, 256 << 20  # bytes of the array beyond the caches
QUIET = 0.2  # cores other programs may use without disturbing
ATTRIBUTES = '"prefer-vector-width"="512" "min-legal-vector-width"="512" nounwind'


# --------------------------------------------------------------------------------- the probes' code


def _step(name: str, vector: int, before: str, body: str, after: str, streams: int = 1) -> str:
    """A step of a plan: params[1] times the body, %i walking over 0..params[0] bytes, in circles.

    Chunk number `begin` works at that many times streams · params[0] bytes from the start of the
    two buffers.  vector: bytes the body walks at a time.
    """
    return f"""
define i64 @{name}(ptr %buffers, ptr %params, i64 %begin, i64 %end) #0 {{
entry:
  %second = getelementptr i8, ptr %buffers, i64 8
  %source = load ptr, ptr %buffers
  %target = load ptr, ptr %second
  %other = getelementptr i8, ptr %params, i64 8
  %n = load i64, ptr %params
  %times = load i64, ptr %other
  %chunk = mul i64 %n, {streams}
  %start = mul i64 %begin, %chunk
  %from = getelementptr i8, ptr %source, i64 %start
  %to = getelementptr i8, ptr %target, i64 %start
  br label %loop
loop:
  %t = phi i64 [ 0, %entry ], [ %t.next, %loop ]
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
{before}
  %p = getelementptr i8, ptr %from, i64 %i
  %q = getelementptr i8, ptr %to, i64 %i
{body}
  %i.up = add i64 %i, {vector}
  %round = icmp uge i64 %i.up, %n
  %i.next = select i1 %round, i64 0, i64 %i.up
  %t.next = add i64 %t, 1
  %more = icmp ult i64 %t.next, %times
  br i1 %more, label %loop, label %done
done:
{after}
  ret i64 0
}}
"""


def _copy(name: str, hint: str) -> str:
    """Four vectors from the source to the target."""
    kind, lines = f"<{VECTOR // 4} x float>", []
    for k in range(4):
        lines += [
            f"  %p{k} = getelementptr i8, ptr %p, i64 {k * VECTOR}",
            f"  %q{k} = getelementptr i8, ptr %q, i64 {k * VECTOR}",
            f"  %x{k} = load {kind}, ptr %p{k}, align 64",
            f"  store {kind} %x{k}, ptr %q{k}, align 64{hint}",
        ]
    return _step(name, 4 * VECTOR, "", "\n".join(lines), "")


def _accumulators(
    kind: str, count: int, update: Callable[[int], list[str]]
) -> tuple[str, str, str]:
    """`count` vector accumulators: their phis, their updates, and a store of their sum."""
    before = "\n".join(
        f"  %a{k} = phi {kind} [ zeroinitializer, %entry ], [ %b{k}, %loop ]" for k in range(count)
    )
    body = "\n".join(line for k in range(count) for line in update(k))
    sums = [f"  %s0 = fadd {kind} %b0, zeroinitializer"]
    sums += [f"  %s{k} = fadd {kind} %s{k - 1}, %b{k}" for k in range(1, count)]
    return before, body, "\n".join([*sums, f"  store {kind} %s{count - 1}, ptr %target, align 64"])


def _read(streams: int) -> str:
    """Eight vectors added up, from several streams: each its own part of the chunk."""
    kind, vectors = f"<{VECTOR // 4} x float>", 8 // streams

    def update(k: int) -> list[str]:
        stream, vector = divmod(k, vectors)
        return [
            f"  %o{k} = mul i64 %n, {stream}",
            f"  %m{k} = getelementptr i8, ptr %p, i64 %o{k}",
            f"  %p{k} = getelementptr i8, ptr %m{k}, i64 {vector * VECTOR}",
            f"  %x{k} = load {kind}, ptr %p{k}, align 64",
            f"  %b{k} = fadd {kind} %a{k}, %x{k}",
        ]

    name, parts = f"read{streams}", _accumulators(kind, 8, update)
    return _step(name, vectors * VECTOR, *parts, streams=streams)


def _fma(name: str, element: str, size: int) -> str:
    """Twelve multiply-adds that do not wait for each other."""
    lanes = VECTOR // size
    kind, letter = f"<{lanes} x {element}>", 8 * size

    def update(k: int) -> list[str]:
        call = f"call {kind} @llvm.fma.v{lanes}f{letter}({kind} %a{k}, {kind} %c, {kind} %c)"
        return [f"  %b{k} = {call}"]

    before, body, after = _accumulators(kind, CHAINS, update)
    constant = f"  %c = load {kind}, ptr %from, align 64"
    return _step(name, VECTOR, before, f"{constant}\n{body}", after)


@cache
def probes() -> Code:
    """All probes, compiled for this machine at its full vector width."""
    text = "\n".join(
        [
            *(
                f"declare <{VECTOR // s} x {t}> @llvm.fma.v{VECTOR // s}f{8 * s}"
                f"({', '.join([f'<{VECTOR // s} x {t}>'] * 3)})"
                for t, s in (("float", 4), ("double", 8))
            ),
            _copy("copy", ""),
            _copy("stream", ", !nontemporal !0"),
            *(_read(streams) for streams in STREAMS),
            _fma("fma4", "float", 4),
            _fma("fma8", "double", 8),
            "define i64 @nothing(ptr %b, ptr %p, i64 %begin, i64 %end) nounwind {\n  ret i64 0\n}",
            f"attributes #0 = {{ {ATTRIBUTES} }}",
            "!0 = !{i32 1}",
        ]
    )
    names = ("copy", "stream", *(f"read{n}" for n in STREAMS), "fma4", "fma8", "nothing")
    cpu = host_cpu()
    return load(text, names, target_machine(2, cpu.name, cpu.features))


def _ready(
    name: str, source: int, target: int, size: int, times: int, threads: int
) -> Callable[[], int]:
    """A probe with `size` bytes and `times` iterations for each thread, ready to be run."""
    buffers = (ctypes.c_void_p * 2)(source, target)
    params = (ctypes.c_int64 * 2)(size, times)
    return pool.prepared(probes()[name], buffers, params, threads, 1 if threads > 1 else 0)


def nothing() -> Callable[[], int]:
    """A step that does nothing, ready to be run: what calling one takes."""
    return _ready("nothing", 0, 0, 0, 0, 1)


READS = tuple(f"read{n}" for n in STREAMS)


def prepared_probe(
    name: str, source: Any, target: Any, size: int, threads: int
) -> Callable[[], int]:
    """A probe of memory that walks `size` bytes of two arrays once, ready to be run.

    name: "copy", "stream" or one of `READS`.  Each thread has a part of its own.
    """
    part = size // threads // 4096 * 4096
    streams = int(name[4:]) if name in READS else 1
    step = VECTOR * (8 // streams if name in READS else 4)
    size = part // streams
    return _ready(name, source.ctypes.data, target.ctypes.data, size, size // step, threads)


# -------------------------------------------------------------------------------------- measuring


@dataclass
class _Bench:
    """An array beyond every cache for the probes to work on."""

    array: Any
    repeat: int

    @staticmethod
    def made(size: int, repeat: int) -> _Bench:
        array = memory.empty(FLOAT32, (size // 4,))
        array.fill(0.5)  # the pages are there, and no denormal numbers
        return _Bench(array, repeat)

    def seconds(self, name: str, threads: int, size: int, times: int) -> float:
        """The shortest run of a probe with `size` bytes and `times` iterations for each thread."""
        start = self.array.ctypes.data
        run = _ready(name, start, start + self.array.nbytes // 2, size, times, threads)
        return min(_timed(run) for _ in range(self.repeat))

    def rate(self, name: str, threads: int, size: int, step: int, about: float) -> float:
        """Bytes walked per second; as many iterations as take PROBE seconds at `about` bytes/s."""
        once = size // step
        times = once * max(1, round(about * PROBE / size))
        return threads * times * step / self.seconds(name, threads, size, times)

    def peak(self, size: int, threads: int) -> float:
        """Operations per second; a multiply-add is two."""
        times = int(PROBE * 3e9 * 2 / CHAINS)
        operations = 2 * CHAINS * (VECTOR // size) * times * threads
        return operations / self.seconds(f"fma{size}", threads, VECTOR, times)

    def beyond(self, threads: int) -> Iterator[tuple[str, float]]:
        """Bytes moved per second beyond the caches: reading, copying, copying past the caches."""
        whole = self.array.nbytes // threads // 4096 * 4096
        reads = (
            n * self.rate(f"read{n}", threads, whole // n, 8 // n * VECTOR, 0.0) for n in STREAMS
        )
        yield "memory", max(reads)
        for name in ("copy", "stream"):
            yield name, 2 * self.rate(name, threads, whole // 2, 4 * VECTOR, 0.0)

    def fork(self, threads: int) -> float:
        """Seconds that work of FORKED takes longer when others do the same at the same time."""
        if threads == 1:
            return 0.0
        times = int(FORKED * 3e9 * 2 / CHAINS)
        alone, together = (self.seconds("fma4", n, VECTOR, times) for n in (1, threads))
        return max(together - alone, 0.0)


def _timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure_limits(counts: tuple[int, ...], repeat: int = REPEAT, size: int = 0) -> Limits:
    """The limits for these numbers of threads, each at most the pool's.

    size: bytes of the array beyond the caches (0: as large as the last cache needs).
    """
    begin, neighbours, machine = time.perf_counter(), Neighbours(), host()
    size = size or min(max(machine.l3 * 3, SMALLEST), LARGEST)
    bench = _Bench.made(size, repeat)
    caches = (("L1", machine.l1, 2e11), ("L2", machine.l2, 1e11), ("L3", machine.l3, 5e10))
    peaks, bandwidths = [], []
    for threads in counts:
        for dtype, width in (("float32", 4), ("float64", 8)):
            peaks.append(Peak(threads, dtype, bench.peak(width, threads)))
        for level, capacity, about in caches:
            shared = threads if level == "L3" else 1
            part = max(capacity // 2 // shared // 4096, 1) * 4096
            rate = bench.rate("read1", threads, min(part, size // threads), 8 * VECTOR, about)
            bandwidths.append(Bandwidth(threads, level, rate))
        for level, rate in bench.beyond(threads):
            bandwidths.append(Bandwidth(threads, level, rate))
    return Limits(
        name=machine.name,
        threads=max(counts),
        peaks=tuple(peaks),
        bandwidths=tuple(bandwidths),
        fork=bench.fork(max(counts)),
        capacities=(("L1", machine.l1), ("L2", machine.l2), ("L3", machine.l3)),
        seconds=time.perf_counter() - begin,
        others=neighbours.cores(),
    )


_known: dict[int, Limits] = {}


def limits(again: bool = False) -> Limits:
    """The limits on one thread and on all of the pool's, measured once per process.

    What was measured while other programs ran is measured anew, and with `again` in any case; of
    each limit the best counts, since nothing makes a machine faster than it is.
    """
    threads = pool.threads()
    known = _known.get(threads)
    if known is None or again or known.others > QUIET:
        new = measure_limits(tuple(sorted({1, threads})))
        _known[threads] = new if known is None else _best(known, new)
    return _known[threads]


def _best(one: Limits, other: Limits) -> Limits:
    peaks = zip(one.peaks, other.peaks, strict=True)
    bandwidths = zip(one.bandwidths, other.bandwidths, strict=True)
    return replace(
        other,
        peaks=tuple(max(pair, key=lambda p: p.value) for pair in peaks),
        bandwidths=tuple(max(pair, key=lambda b: b.value) for pair in bandwidths),
        fork=min(one.fork, other.fork),
        seconds=one.seconds + other.seconds,
        others=min(one.others, other.others),
    )
