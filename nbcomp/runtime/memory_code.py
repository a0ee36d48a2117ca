"""The cache of large buffers, as LLVM text: `take`, `give`, and a NumPy memory handler on them.

A block is 64-byte aligned and has a header of 64 bytes before it that holds its raw pointer and
its capacity.  Large ones fill huge pages of 2 MB.  Each starts at another place in a page than the
one before it, and than NumPy's arrays, which start at its beginning: a load whose address has the
same last 12 bits as that of a store under way waits for it (4K aliasing), so rows of one array that
are read while those of another are written should not begin alike.

Freed blocks wait in a short list, newest last; the list is bounded in entries and bytes, and the
oldest go first.  All of it runs with the GIL held.
"""

from __future__ import annotations

import sys

from nbcomp.runtime.emit import Function, Value, struct
from nbcomp.runtime.layout import call

ENTRIES = 32
MEMORY = struct(limit="i8", bytes="i8", count="i8", hits="i8", misses="i8", lent="i8", start="i8")
ENTRY = struct(block="u8", capacity="i8")
_HEADER = 64
_RAW, _CAPACITY = -64, -56  # offsets from the block
_UNIT = 64 * 1024  # capacities are multiples of this
_HUGE, _HUGE_PAGE = 4 << 20, 2 << 20  # from this size on, ask for huge pages (as NumPy does)
_PAGE = 4096
_APART = 3 * _PAGE // 8  # between where blocks start in their pages, each after the other
_MADV_HUGEPAGE = 14  # linux/mman.h

_SIZE = MEMORY.itemsize + ENTRIES * ENTRY.itemsize
GLOBALS = f"@memory = global [{_SIZE} x i8] zeroinitializer, align 64"


def emit() -> list[str]:
    """The definitions; the module must also hold `@api`."""
    return [_take(), _give(), _acquire(), _remove(), _trim(), *_handler()]


def _memory(f: Function) -> Value:
    return Value(f, "@memory", "ptr")


def _add(f: Function, name: str, amount: Value | int) -> None:
    _memory(f).set_field(MEMORY, name, _memory(f).field(MEMORY, name) + amount)


def _entry(f: Function, index: Value) -> Value:
    return _memory(f).at(index * ENTRY.itemsize + MEMORY.itemsize)


def _take() -> str:
    """A block of at least `size` bytes, or null: the newest cached one that fits, or a new one."""
    f = Function("take", "ptr", size="i64")
    capacity = (f["size"] + (_UNIT - 1)) & -_UNIT
    f.goto_if((f["size"] < 0) | (f["size"] > (1 << 62)), "none")
    loose = capacity + (capacity >> 2)  # a block up to a quarter too large will do
    index = f.local("i64", _memory(f).field(MEMORY, "count"))
    f.label("search")
    f.goto_if(index.get().is_(0), "miss")
    index.set(index.get() - 1)
    have = _entry(f, index.get()).field(ENTRY, "capacity")
    f.goto_if((have < capacity) | (have > loose), "search")
    block = _entry(f, index.get()).field(ENTRY, "block")
    f.call("remove", "void", index.get())
    _add(f, "hits", 1)
    _add(f, "lent", have)
    f.give(block)
    f.label("miss")
    _add(f, "misses", 1)
    fresh = f.local("ptr", f.call("acquire", "ptr", capacity))
    with f.when(fresh.get().is_(0)):  # perhaps the cache holds what is missing
        f.call("trim", "void")
        fresh.set(f.call("acquire", "ptr", capacity))
    with f.when(fresh.get().is_not(0)):
        _add(f, "lent", capacity)
    f.give(fresh.get())
    f.label("none")
    f.give(0)
    return f.text()


def _acquire() -> str:
    """A new block from the C library."""
    f = Function("acquire", "ptr", "internal", capacity="i64")
    capacity = f["capacity"]
    huge = capacity >= _HUGE
    alignment = f.select(huge, _HUGE_PAGE, _PAGE)
    raw = call(f, "malloc", "ptr", capacity + alignment + (_PAGE + _HEADER))
    with f.when(raw.is_(0)):
        f.give(0)
    following = (_memory(f).field(MEMORY, "start") + _APART) & (_PAGE - 1)
    start = f.select(following.is_(0), _APART, following)
    _memory(f).set_field(MEMORY, "start", start)
    first = (raw.integer() + alignment + (_HEADER - 1)) & (f.constant(0, "i64") - alignment)
    pages = f.value(f"inttoptr {first} to ptr", "ptr")
    block = pages.at(start)
    block.store(raw, _RAW)
    block.store(capacity, _CAPACITY)
    if sys.platform == "linux":
        with f.when(huge):
            call(f, "madvise", "i32", pages, capacity, f.constant(_MADV_HUGEPAGE, "i32"))
    f.give(block)
    return f.text()


def _give() -> str:
    """Take a block back into the cache, or free it when it is larger than the cache."""
    f = Function("give", "void", block="ptr")
    capacity = f["block"].load("i64", _CAPACITY)
    _add(f, "lent", f.constant(0, "i64") - capacity)
    memory = _memory(f)
    limit = memory.field(MEMORY, "limit")
    with f.when(capacity > limit):
        call(f, "free", "void", f["block"].load("ptr", _RAW))
        f.give()
    f.label("evict")
    full = memory.field(MEMORY, "count").is_(ENTRIES)
    f.goto_if((full | (memory.field(MEMORY, "bytes") + capacity > limit)) ^ 1, "insert")
    oldest = _entry(f, f.constant(0, "i64")).field(ENTRY, "block")
    f.call("remove", "void", 0)
    call(f, "free", "void", oldest.load("ptr", _RAW))
    f.goto("evict")
    f.label("insert")
    place = _entry(f, memory.field(MEMORY, "count"))
    place.set_field(ENTRY, "block", f["block"])
    place.set_field(ENTRY, "capacity", capacity)
    _add(f, "count", 1)
    _add(f, "bytes", capacity)
    f.give()
    return f.text()


def _remove() -> str:
    """Take entry `index` off the list; later ones move up."""
    f = Function("remove", "void", "internal", index="i64")
    _add(f, "bytes", f.constant(0, "i64") - _entry(f, f["index"]).field(ENTRY, "capacity"))
    _add(f, "count", -1)
    with f.count(_memory(f).field(MEMORY, "count") - f["index"]) as i:
        target, source = _entry(f, f["index"] + i), _entry(f, f["index"] + i + 1)
        target.set_field(ENTRY, "block", source.field(ENTRY, "block"))
        target.set_field(ENTRY, "capacity", source.field(ENTRY, "capacity"))
    f.give()
    return f.text()


def _trim() -> str:
    """Free every cached block."""
    f = Function("trim", "void")
    f.label("next")
    count = _memory(f).field(MEMORY, "count")
    f.goto_if(count.is_(0), "done")
    block = _entry(f, count - 1).field(ENTRY, "block")
    f.call("remove", "void", count - 1)
    call(f, "free", "void", block.load("ptr", _RAW))
    f.goto("next")
    f.label("done")
    f.give()
    return f.text()


def _handler() -> list[str]:
    """The four functions of NumPy's `PyDataMemAllocator` (ndarraytypes.h)."""
    malloc = Function("data_malloc", "ptr", context="ptr", size="i64")
    malloc.give(malloc.call("take", "ptr", malloc["size"]))

    calloc = Function("data_calloc", "ptr", context="ptr", count="i64", size="i64")
    total = calloc["count"] * calloc["size"]
    block = calloc.call("take", "ptr", total)
    with calloc.when(block.is_not(0)):
        calloc.effect(f"call void @llvm.memset.p0.i64({block}, i8 0, {total}, i1 false)")
    calloc.give(block)

    realloc = Function("data_realloc", "ptr", context="ptr", block="ptr", size="i64")
    old = realloc["block"]
    with realloc.when(old.is_(0)):
        realloc.give(realloc.call("take", "ptr", realloc["size"]))
    capacity = old.load("i64", _CAPACITY)
    with realloc.when(realloc["size"] <= capacity):
        realloc.give(old)
    fresh = realloc.call("take", "ptr", realloc["size"])
    with realloc.when(fresh.is_not(0)):
        realloc.effect(f"call void @llvm.memcpy.p0.p0.i64({fresh}, {old}, {capacity}, i1 false)")
        realloc.call("give", "void", old)
    realloc.give(fresh)

    free = Function("data_free", "void", context="ptr", block="ptr", size="i64")
    with free.when(free["block"].is_not(0)):
        free.call("give", "void", free["block"])
    free.give()
    return [malloc.text(), calloc.text(), realloc.text(), free.text()]
