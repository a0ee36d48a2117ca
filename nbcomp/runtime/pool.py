"""The thread pool: daemon threads that each sit in one native call, started when first needed.

The loops are native (`pool_code`); this module starts and stops the threads, follows forks and
interpreter exit, and decides how many there are.  Without the native library steps run on the
calling thread.
"""

from __future__ import annotations

import atexit
import ctypes
import operator
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from nbcomp.runtime.emit import address
from nbcomp.runtime.native import Library, library, loaded, part
from nbcomp.runtime.pool_code import SHARE, SHARES, WORKER

_guard = threading.Lock()  # one thread at a time starts or stops workers
_threads: list[threading.Thread] = []
_immortal: list[object] = []  # worker blocks: small, and a late reader may still look at one
_wanted: int | None = None
_FEW_CORES = 16  # up to which a worker is told where it may run: a system call for each
_STACK = 8 << 20  # bytes, as a main thread has: kernels keep tiles on the stack
_exiting = False


def available() -> int:
    """Cores this process may use: its affinity, and its share of a container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        cores = os.cpu_count() or 1
    return max(1, min(cores, _container_limit()))


@cache
def _container_limit() -> int:
    """Whole cores of the control group's quota (cgroup v2 `cpu.max`: quota and period in µs)."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):  # no control groups, or "max": no quota
        return 1 << 16


def threads() -> int:
    """How many threads run a parallel step, the caller included."""
    if _exiting:
        return 1
    return available() if _wanted is None else _wanted


def set_threads(count: int | None) -> None:
    """Use this many threads, the caller included; None: one for each available core.

    Takes effect at the next parallel step.  Raises ValueError below 1, TypeError for what is no
    whole number.
    """
    global _wanted
    if count is not None and (isinstance(count, bool) or not hasattr(count, "__index__")):
        raise TypeError(f"the number of threads is a whole number or None, not {count!r}")
    if count is not None and count < 1:
        raise ValueError(f"the number of threads is at least 1, not {count}")
    with _guard:
        _stop()
        _wanted = None if count is None else operator.index(count)


def processor_seconds() -> float:
    """Seconds that the calling thread and the workers have spent on processors, up to now.

    By the clock of each thread, where the system has such clocks.  That of the process is behind by
    some milliseconds for what runs on other cores.
    """
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None:
        return time.process_time()
    workers = [thread.ident for thread in _threads if thread.is_alive()]
    idents = [threading.get_ident(), *(ident for ident in workers if ident is not None)]
    return sum(time.clock_gettime(clock_of(ident)) for ident in idents)


def attach(native: Library) -> None:
    """Let a freshly compiled library start the pool by itself."""
    native.connect(start_pool=start)


def start() -> None:
    """Start the workers if they are not there; done by the first parallel step."""
    native = library()
    with _guard:
        if native is None or native.pool_started["value"]:
            return
        count = threads() - 1
        workers = np.zeros(max(count, 1), WORKER)
        workers["lock"] = [_new_lock() for _ in range(len(workers))]
        _immortal.append(workers)
        _keep_jobs_out(native)
        pool = native.pool
        for name in ("epoch", "stop", "gate", "waiting"):
            pool[name] = 0
        pool["lock"] = pool["lock"] or _new_lock()
        shares = np.zeros(SHARES, SHARE)
        _immortal.append(shares)
        pool["workers"], pool["shares"], pool["count"] = address(workers), address(shares), 0
        pool["count"] = _spawn(native, workers[:count])
        _keep_apart(pool, int(pool["count"]))
        native.pool_started["value"] = 1
        _let_jobs_in(native)


def _keep_apart(pool: Any, count: int) -> None:
    """Tell the pool the cores there are, if it is for it to say which workers run on.

    That is so on Linux, where all but one of a few cores have a worker: where there are more cores
    than that, the system finds an idle one, and telling many workers would take long.
    """
    pool["cores"], pool["bytes"], pool["home"] = 0, 0, -1
    if sys.platform != "linux":
        return
    cores = os.sched_getaffinity(0)
    if not 1 <= count < len(cores) == count + 1 <= _FEW_CORES:
        return
    allowed = np.zeros((max(cores) // 64 + 1) * 64, np.uint8)
    allowed[list(cores)] = 1
    bits = np.packbits(allowed, bitorder="little")
    _immortal.append(bits)
    pool["cores"], pool["bytes"] = address(bits), bits.nbytes


def _spawn(native: Library, workers: Any) -> int:
    """Start up to so many workers; a system that gives fewer threads gets fewer."""
    run = native.function("pool_worker", None, ctypes.c_int64, gil=False)
    default = threading.stack_size(_STACK)
    for number, worker in enumerate(workers):
        name = f"nbcomp-{number + 1}"
        thread = threading.Thread(target=run, args=(number,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            break
        worker["thread"] = thread.native_id
        _threads.append(thread)
    threading.stack_size(default)
    return len(_threads)


def _new_lock() -> int:
    """A CPython thread lock, taken: a semaphore at zero."""
    api = ctypes.pythonapi
    lock: int = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", api))()
    take = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    take(("PyThread_acquire_lock", api))(lock, 1)
    return lock


def _keep_jobs_out(native: Library) -> None:
    """Wait until no job runs, and let none start."""
    lock = native.function("pool_lock", ctypes.c_int64)
    while not lock():
        time.sleep(1e-4)


def _let_jobs_in(native: Library, stopping: int = 0) -> None:
    native.function("pool_unlock", None, ctypes.c_int64)(stopping)


def _stop() -> None:
    """End the workers and wait for them; `_guard` is held."""
    native = loaded()
    if native is None or not native.pool_started["value"]:
        return
    _keep_jobs_out(native)
    _let_jobs_in(native, stopping=1)
    for thread in _threads:
        thread.join()
    _threads.clear()
    native.pool["count"] = 0
    native.pool_started["value"] = 0
    _let_jobs_in(native)


def stop() -> None:
    """End the workers; the next parallel step starts them again."""
    with _guard:
        _stop()


_STEP = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


def prepared(
    function: int, buffers: Any, params: Any, extent: int, grain: int, length: int = 0
) -> Callable[[], int]:
    """A step that is ready to be run from Python (GIL released) any number of times: its status.

    buffers, params: ctypes arrays of pointers and int64.  length: of a round (`plan.Step`).
    """
    places = ctypes.byref(buffers), ctypes.byref(params)  # which keep them alive
    native = library()
    if not grain or native is None:
        return partial(_STEP(function), *places, 0, extent)
    start()
    pooled = native.function(
        "pool_run", ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, gil=False
    )
    if length:
        return partial(_in_rounds, pooled, (function, *places), extent, grain, length)
    return partial(pooled, function, *places, 0, extent, grain)


def _in_rounds(run: Any, what: tuple[Any, ...], extent: int, grain: int, length: int) -> int:
    """One round after another."""
    for begin in range(0, extent, length):
        status = int(run(*what, begin, begin + length, grain))
        if status:
            return status
    return 0


def run(function: int, buffers: Any, params: Any, extent: int, grain: int) -> int:
    """Run a step from Python once: its status."""
    return int(prepared(function, buffers, params, extent, grain)())


def _forget() -> None:
    """In a forked child there are no workers: start afresh."""
    _threads.clear()
    native = loaded()
    if native is not None:
        native.pool_started["value"] = 0
        native.pool[...] = np.zeros((), native.pool.dtype)
    _guard.release()


def _leave() -> None:
    """At interpreter exit no worker may still be in code that is about to go."""
    global _exiting
    _exiting = True
    stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget
    )
atexit.register(_leave)
part(attach)
