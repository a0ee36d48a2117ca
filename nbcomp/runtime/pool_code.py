"""The thread pool's loops and atomics, as LLVM text: `pool_run` for the caller, `pool_worker`.

A job is opened to whoever comes: `gate` counts the workers inside and has a bit that says it is
open. The caller opens it, wakes sleepers, takes chunks itself, closes the gate and waits for those
inside; a worker that wakes too late finds it closed, so nobody ever waits for a sleeper.  Workers
spin briefly for the next job, then sleep on a CPython thread lock: a plain semaphore that needs no
GIL, everywhere.

The iterations are shared out before: each thread has a run of its own, the same one in every job of
so many, so that it finds in its caches what it wrote there in the last job.  Whoever is done helps
the others.

Workers keep off the core the caller is on.  Left to itself, a system whose other cores look busy
(OpenBLAS's threads go on spinning after a product) queues a worker behind the caller, who then does
all the work while the worker waits for it to be done.
"""

from __future__ import annotations

import numpy as np

from nbcomp.runtime.emit import Function, Struct, Value
from nbcomp.runtime.layout import call

_LINE = 64
_OPEN = 1 << 32
_INSIDE = _OPEN - 1
_SPIN = 600  # pauses before sleeping: some 20 µs, longer than the gap between two steps of a call
_FAN = 4  # sleepers each thread wakes: log4(n) hops instead of n system calls by one thread


def _lines(*groups: dict[str, str]) -> Struct:
    """A struct whose groups of members lie on cache lines of their own."""
    names, formats, offsets = [], [], []
    for line, group in enumerate(groups):
        for i, (name, kind) in enumerate(group.items()):
            names.append(name)
            formats.append(kind)
            offsets.append(line * _LINE + 8 * i)
    spec = {"names": names, "formats": formats, "offsets": offsets, "itemsize": len(groups) * _LINE}
    return np.dtype(spec)  # type: ignore[call-overload, no-any-return]


POOL = _lines(
    {"epoch": "i8", "stop": "i8"},  # what workers watch
    {"gate": "i8"},
    {"function": "u8", "buffers": "u8", "params": "u8", "end": "i8", "grain": "i8", "status": "i8"},
    {"shares": "u8", "shared": "i8"},  # the runs of the job, and how many there are
    {"busy": "i8", "waiting": "i8", "lock": "u8", "workers": "u8", "count": "i8", "wanted": "i8"},
    # The cores there are, a bit each, in so many bytes (null: workers run anywhere); the caller's.
    {"cores": "u8", "bytes": "i8", "home": "i8"},
)
WORKER = _lines({"asleep": "i8", "lock": "u8", "thread": "i8"})
SHARE = _lines({"next": "i8", "end": "i8"})  # the iterations next … end of a run are to be done
SHARES = 16  # at most: further threads start as helpers

GLOBALS = f"""@pool = global [{POOL.itemsize} x i8] zeroinitializer, align 64
@pool_started = global i64 0"""


def emit() -> list[str]:
    """The definitions; the module must also hold `@api`."""
    return [_run(), _deal(), _share(), _worker(), _wake(), _keep_off(), _lock(), _unlock()]


def _pool(f: Function, name: str) -> Value:
    return Value(f, "@pool", "ptr").address(POOL, name)


def _get(f: Function, pointer: Value) -> Value:
    return f.value(f"load atomic i64, {pointer} seq_cst, align 8", "i64")


def _set(f: Function, pointer: Value, value: int) -> None:
    f.effect(f"store atomic i64 {value}, {pointer} seq_cst, align 8")


def _update(f: Function, op: str, pointer: Value, value: Value | int) -> Value:
    """Atomic read-modify-write; gives the old value."""
    return f.value(f"atomicrmw {op} {pointer}, {f.constant(value, 'i64')} seq_cst", "i64")


def _swap_if(f: Function, pointer: Value, old: Value | int, new: Value | int) -> Value:
    """Compare and exchange; gives whether it happened."""
    values = f"{f.constant(old, 'i64')}, {f.constant(new, 'i64')}"
    pair = f.value(f"cmpxchg {pointer}, {values} seq_cst seq_cst", "{ i64, i1 }")
    return f.value(f"extractvalue {pair}, 1", "i1")


def _sleep(f: Function, flag: Value, lock: Value, ready: Value) -> None:
    """Sleep on `lock` with `flag` up; `ready` was computed after the flag went up.

    Whoever lowers the flag owes the lock one release, which the sleeper consumes.
    """
    after = f.fresh("awake")
    block = f.fresh("block")
    f.goto_if(ready ^ 1, block)
    f.goto_if(_update(f, "xchg", flag, 0).is_(1), after)
    f.label(block)
    call(f, "PyThread_acquire_lock", "i32", lock, f.constant(1, "i32"))
    f.label(after)


def _rouse(f: Function, flag: Value, lock: Value) -> None:
    """Wake whoever sleeps with `flag` up."""
    with f.when(_update(f, "xchg", flag, 0).is_(1)):
        call(f, "PyThread_release_lock", "void", lock)


def _wake() -> str:
    """Thread `me` (the caller is 0) wakes workers me·4+1 … me·4+4, as far as they are wanted."""
    f = Function("pool_wake", "void", "internal", me="i64")
    workers = _pool(f, "workers").load("ptr")
    wanted = _pool(f, "wanted").load("i64")
    with f.count(f.constant(_FAN, "i64")) as i:
        number = f["me"] * _FAN + i
        with f.when(number < wanted):
            worker = workers.at(number * WORKER.itemsize)
            asleep = worker.address(WORKER, "asleep")
            with f.when(_get(f, asleep).is_not(0)):
                _rouse(f, asleep, worker.field(WORKER, "lock"))
    f.give()
    return f.text()


def _keep_off() -> str:
    """Give all workers the cores but the one that the caller has moved to."""
    f = Function("pool_keep_off", "void", "internal")
    cores = _pool(f, "cores").load("ptr")
    f.goto_if(cores.is_(0), "done")
    core = call(f, "sched_getcpu", "i32").integer()
    home = _pool(f, "home")
    f.goto_if(core.is_(home.load("i64")), "done")
    home.store(core)
    size = _pool(f, "bytes").load("i64")
    place = core >> 3
    f.goto_if((place >= size) | (core < 0), "done")
    among = cores.at(place).load("i8")
    bit = f.value(f"trunc i64 {core.text} to i8", "i8") & 7
    bit = f.value(f"shl i8 1, {bit.text}", "i8")
    cores.store(among & (bit ^ -1), place)
    workers = _pool(f, "workers").load("ptr")
    with f.count(_pool(f, "count").load("i64")) as i:
        thread = workers.at(i * WORKER.itemsize).field(WORKER, "thread")
        thread = f.value(f"trunc {thread} to i32", "i32")
        call(f, "sched_setaffinity", "i32", thread, size, cores)
    cores.store(among, place)
    f.label("done")
    f.give()
    return f.text()


def _deal() -> str:
    """Share the chunks from `begin` on out among the threads that are wanted."""
    f = Function("pool_deal", "void", "internal", begin="i64", chunks="i64")
    begin, chunks = f["begin"], f["chunks"]
    end, grain = _pool(f, "end").load("i64"), _pool(f, "grain").load("i64")
    threads = _pool(f, "wanted").load("i64") + 1
    shared = f.select(threads < SHARES, threads, SHARES)
    _pool(f, "shared").store(shared)
    first = f.local("i64", begin)
    with f.count(shared) as i:
        share = _share_of(f, i)
        share.set_field(SHARE, "next", first.get())
        upto = begin + f.value(f"udiv {chunks * (i + 1)}, {shared.text}", "i64") * grain
        first.set(f.select(upto > end, end, upto))
        share.set_field(SHARE, "end", first.get())
    f.give()
    return f.text()


def _share_of(f: Function, number: Value) -> Value:
    return _pool(f, "shares").load("ptr").at(number * SHARE.itemsize)


def _share() -> str:
    """Take chunks of the open job until there are none, those of the own share first.

    A status other than 0 stops everybody.
    """
    f = Function("pool_share", "void", "internal", thread="i64")
    function, buffers, params = (_pool(f, n).load("ptr") for n in ("function", "buffers", "params"))
    grain, shared = _pool(f, "grain").load("i64"), _pool(f, "shared").load("i64")
    with f.count(shared) as i:
        number = f.value(f"urem {f['thread'] + i}, {shared.text}", "i64")
        share = _share_of(f, number)
        end = share.field(SHARE, "end")
        again, over, failed = (f.fresh(name) for name in ("chunk", "over", "failed"))
        f.label(again)
        begin = _update(f, "add", share.address(SHARE, "next"), grain)
        f.goto_if(begin >= end, over)
        upto = begin + grain
        upto = f.select(upto > end, end, upto)
        status = f.call(function, "i64", buffers, params, begin, upto)
        f.branch(status.is_(0), again, failed)
        f.label(failed)
        _update(f, "xchg", _pool(f, "status"), status)
        with f.count(shared) as k:
            rest = _share_of(f, k)
            _update(f, "xchg", rest.address(SHARE, "next"), rest.field(SHARE, "end"))
        f.label(over)
    f.give()
    return f.text()


def _run() -> str:
    """Run begin … end of a step, `grain` iterations at a time, on all threads.

    Alone when that is one chunk, there are no workers or the pool is busy.
    """
    f = Function(
        "pool_run", "i64",
        function="ptr", buffers="ptr", params="ptr", begin="i64", end="i64", grain="i64",
    )  # fmt: skip
    begin, end, grain = f["begin"], f["end"], f["grain"]
    count = _pool(f, "count")
    f.goto_if((end - begin <= grain) | count.load("i64").is_(0), "alone")
    f.goto_if(_swap_if(f, _pool(f, "busy"), 0, 1) ^ 1, "alone")
    limit = count.load("i64")
    with f.when(limit.is_(0)):  # stopped in between
        _set(f, _pool(f, "busy"), 0)
        f.goto("alone")
    for name in ("function", "buffers", "params", "end", "grain"):
        _pool(f, name).store(f[name])
    _pool(f, "status").store(f.constant(0, "i64"))
    others = f.value(f"udiv {end - begin - 1}, {grain.text}", "i64")  # chunks but for one
    _pool(f, "wanted").store(f.select(others < limit, others, limit))
    f.call("pool_deal", "void", begin, others + 1)
    f.call("pool_keep_off", "void")
    _set(f, _pool(f, "gate"), _OPEN)
    _update(f, "add", _pool(f, "epoch"), 1)
    f.call("pool_wake", "void", 0)
    f.call("pool_share", "void", 0)
    _update(f, "and", _pool(f, "gate"), _INSIDE)
    _wait_for_workers(f)
    status = _pool(f, "status").load("i64")
    _set(f, _pool(f, "busy"), 0)
    f.give(status)
    f.label("alone")
    f.give(f.call(f["function"], "i64", f["buffers"], f["params"], begin, end))
    return f.text()


def _wait_for_workers(f: Function) -> None:
    """Until nobody is inside the (closed) gate: spin, then sleep."""
    gate, waiting, lock = _pool(f, "gate"), _pool(f, "waiting"), _pool(f, "lock")
    spins = f.local("i64", 8 * _SPIN)
    f.label("wait")
    f.goto_if(_get(f, gate).is_(0), "joined")
    f.pause()
    spins.set(spins.get() - 1)
    f.goto_if(spins.get() > 0, "wait")
    _update(f, "xchg", waiting, 1)
    _sleep(f, waiting, lock.load("ptr"), _get(f, gate).is_(0))
    f.goto("wait")
    f.label("joined")


def _worker() -> str:
    """A worker's life: wait for a new epoch, join its job if still open, until `stop` is set."""
    f = Function("pool_worker", "void", number="i64")
    me = _pool(f, "workers").load("ptr").at(f["number"] * WORKER.itemsize)
    asleep, lock = me.address(WORKER, "asleep"), me.field(WORKER, "lock")
    epoch, gate = _pool(f, "epoch"), _pool(f, "gate")
    seen, spins = f.local("i64", 0), f.local("i64", 0)
    f.label("idle")
    spins.set(_SPIN)
    f.label("spin")
    f.goto_if(_get(f, epoch).is_not(seen.get()), "news")
    f.pause()
    spins.set(spins.get() - 1)
    f.goto_if(spins.get() > 0, "spin")
    _update(f, "xchg", asleep, 1)
    _sleep(f, asleep, lock, _get(f, epoch).is_not(seen.get()))
    f.goto("idle")
    f.label("news")
    seen.set(_get(f, epoch))
    f.goto_if(_get(f, _pool(f, "stop")).is_not(0), "end")
    f.call("pool_wake", "void", f["number"] + 1)
    f.label("join")
    now = _get(f, gate)
    f.goto_if((now & _OPEN).is_(0), "idle")
    f.goto_if(_swap_if(f, gate, now, now + 1) ^ 1, "join")
    f.call("pool_share", "void", f["number"] + 1)
    with f.when(_update(f, "sub", gate, 1).is_(1)):  # the last one, and the gate is closed
        _rouse(f, _pool(f, "waiting"), _pool(f, "lock").load("ptr"))
    f.goto("idle")
    f.label("end")
    f.give()
    return f.text()


def _lock() -> str:
    """Try to keep jobs out (to start or stop workers): 1 when it worked."""
    f = Function("pool_lock", "i64")
    f.give(_swap_if(f, _pool(f, "busy"), 0, 1).integer())
    return f.text()


def _unlock() -> str:
    """Let jobs in again; with `stopping`, first tell every worker to end."""
    f = Function("pool_unlock", "void", stopping="i64")
    f.goto_if(f["stopping"].is_(0), "open")
    _set(f, _pool(f, "stop"), 1)
    _update(f, "add", _pool(f, "epoch"), 1)
    workers = _pool(f, "workers").load("ptr")
    with f.count(_pool(f, "count").load("i64")) as i:
        worker = workers.at(i * WORKER.itemsize)
        _rouse(f, worker.address(WORKER, "asleep"), worker.field(WORKER, "lock"))
    f.give()
    f.label("open")
    _set(f, _pool(f, "busy"), 0)
    f.give()
    return f.text()
