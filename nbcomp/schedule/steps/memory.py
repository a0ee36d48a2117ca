"""Where values lie: parts of buffers kept close for a while, and buffers in another layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Affine,
    Alloc,
    Apply,
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    affine,
    bodies,
    index_add,
    index_scale,
    loads_of,
    map_stmt,
    walk,
)
from nbcomp.schedule.region import Access, Region, accesses, clipped, extents, region, used
from nbcomp.schedule.rewriting import (
    NEAR,
    Place,
    among_names,
    at,
    find,
    free_name,
    nest,
    on_stack,
    remapped,
    replace_buffer,
)
from nbcomp.sizes import leaves_rest
from nbcomp.types import INT64, contiguous_strides

ALIGNED = 256 << 10  # bytes from which the run time aligns an array to a cache line
LINE = 64  # bytes of a cache line


def stage(kernel: Kernel, buffer: str, loop: str, *order: int) -> Kernel:
    """`for i: S(x[i, ...])`
    ->  `for i: (alloc near[...]; near = x[i, ...]; S(near); x[i, ...] = near)`

    Copies the part of a buffer that one iteration of a loop uses to memory of its own, and back if
    it is written.  What is overwritten before it is read is not copied in.  order: the buffer's
    axes as they are in the copy, outermost first; as they are in the buffer, if not given.
    """
    whole = buffer_named(kernel, buffer)
    found = find(kernel, loop)
    outlives(whole, found)
    axes = order or tuple(range(len(whole.shape)))
    if sorted(axes) != list(range(len(whole.shape))):
        raise ScheduleError(f"{buffer} has {len(whole.shape)} axes: give each of them once")
    box = used(kernel, found, whole)
    size = tuple(box.size[k] for k in axes)
    places = accesses(found.body, whole)
    writes = any(a.writes for a in places)
    if writes and not box.dense:
        raise ScheduleError(f"{loop} does not write all of the part of {buffer} it uses")
    near = replace(
        whole,
        name=free_name(kernel, f"{buffer}_near"),
        shape=size,
        strides=contiguous_strides(size),
        role="local",
        alias="",
    )
    if near.nbytes > NEAR:
        raise ScheduleError(
            f"one iteration of {loop} uses {near.nbytes:,} bytes of {buffer}: more than {NEAR:,}",
            hint=f"stage it at a loop inside {loop}, or split {loop}",
        )

    def nearer(b: Buffer, indices: tuple[Expr, ...]) -> Place | None:
        if b != whole:
            return None
        pairs = ((indices[k], box.start[k]) for k in axes)
        return near, tuple(index_add(i, index_scale(s, -1)) for i, s in pairs)

    body: tuple[Stmt, ...] = remapped(found.body, nearer)
    if not writes or not _overwritten(found.body, places, whole, box):
        body = (_copy(kernel, whole, near, box, axes, "in"), *body)
    if writes:
        body = (*body, _copy(kernel, whole, near, box, axes, "out"))
    return at(kernel, loop, lambda f: replace(f, body=(Alloc(near), *body)))


def _overwritten(body: tuple[Stmt, ...], places: list[Access], whole: Buffer, box: Region) -> bool:
    """Whether the first thing that happens to the box is that all of it is stored to."""
    first = next(s for s in body if accesses((s,), whole))
    stores = [s for s in walk((first,)) if isinstance(s, Store) and s.buffer == whole]
    own = accesses((first,), whole)
    loops = all(isinstance(s, For | Store) for s in walk((first,)))
    return loops and len(own) == len(stores) == 1 and region((first,), whole).same_as(box)


def _copy(
    kernel: Kernel, whole: Buffer, near: Buffer, box: Region, axes: Sequence[int], how: str
) -> Stmt:
    """The loops that move a box into its copy or back, in the order of the copy."""

    def move(inside: list[Affine]) -> Stmt:
        outside = tuple(index_add(s, inside[axes.index(k)]) for k, s in enumerate(box.start))
        if how == "in":
            return Store(near, tuple(inside), Load(whole.dtype, whole, outside))
        return Store(whole, outside, Load(near.dtype, near, tuple(inside)))

    sizes = [clipped(kernel, whole, box, k) for k in axes]
    return nest(kernel, f"{near.name}_{how}", sizes, move)


def pack(kernel: Kernel, buffer: str, axis: int, by: int, *more: int) -> Kernel:
    """`S(b[k, 32*j + l])`  ->  `packed[j, k, l] = b[k, 32*j + l]; S(packed[j, k, l])`

    Gives an input a layout in blocks along an axis: the blocks first, then the other axes, then the
    place in the block.  more: further axes and the lengths of their blocks, in the order in which
    blocks and places are nested.  The copy is a stage of its own before the first that reads it.
    """
    whole = buffer_named(kernel, buffer)
    given = (axis, by, *more)
    blocked = dict(zip(given[::2], given[1::2], strict=False))
    if len(given) % 2 or 2 * len(blocked) != len(given):
        raise ScheduleError(f"give each axis of {buffer} once, and after it the length of a block")
    for k, n in blocked.items():
        if not 0 <= k < len(whole.shape):
            there = f"its axes are 0 to {len(whole.shape) - 1}" if whole.shape else "it has none"
            raise ScheduleError(f"{buffer} has no axis {k}: {there}")
        most = max(2 * whole.shape[k], LINE)
        if not 2 <= n <= most:
            raise ScheduleError(
                f"{buffer} cannot be packed in blocks of {n}: "
                f"axis {k} has {whole.shape[k]} elements",
                hint=f"blocks are of 2 to {most} elements",
            )
    places = accesses(kernel.stages, whole)
    if any(a.writes for a in places) or not places:
        why = "is written" if places else "is not read"
        raise ScheduleError(f"{buffer} {why}: only what is read can be packed")
    others = [k for k in range(len(whole.shape)) if k not in blocked]
    blocks = [-(-whole.shape[k] // n) for k, n in blocked.items()]
    shape = (*blocks, *(whole.shape[k] for k in others), *blocked.values())
    name = free_name(kernel, f"{buffer}_packed")
    packed = Buffer(name, whole.dtype, shape, contiguous_strides(shape), "temp")
    reach = extents(kernel)

    def moved(b: Buffer, indices: tuple[Expr, ...]) -> Place | None:
        if b != whole:
            return None
        pairs = [_in_blocks(whole, k, indices[k], n, reach) for k, n in blocked.items()]
        inside = (indices[k] for k in others)
        return packed, (*(b for b, _ in pairs), *inside, *(p for _, p in pairs))

    stages = remapped(kernel.stages, moved)
    buffers = (*(b for b in kernel.buffers if b.memory != whole.memory or b == whole), packed)
    return replace(
        kernel, buffers=buffers, stages=(_packing(kernel, whole, packed, blocked), *stages)
    )


def _in_blocks(
    whole: Buffer, axis: int, index: Expr, by: int, reach: dict[str, int]
) -> tuple[Affine, Affine]:
    """An index as (block, place in the block)."""
    if not isinstance(index, Affine):
        raise ScheduleError(f"data says where {whole.name} is read along axis {axis}")
    outer = tuple((v, f // by) for v, f in index.terms if f % by == 0)
    inner = tuple((v, f) for v, f in index.terms if f % by)
    start = index.constant % by
    last = start + sum(f * (reach.get(v, by + 1) - 1) for v, f in inner)
    if any(f < 0 for _, f in inner) or last >= by:
        loops = ", ".join(v for v, _ in inner)
        raise ScheduleError(
            f"{whole.name} is not read in blocks of {by} along axis {axis}: split {loops} by {by}"
        )
    return Affine(INT64, outer, index.constant // by), Affine(INT64, inner, start)


def _packing(kernel: Kernel, whole: Buffer, packed: Buffer, blocked: dict[int, int]) -> Stmt:
    """The loops that fill a packed buffer; what is beyond the end of the last block stays unset,
    since nothing reads it."""
    ways = len(blocked)

    def move(place: list[Affine]) -> Stmt:
        blocks, inner, places = place[:ways], place[ways:-ways], place[-ways:]
        source: list[Expr] = list(inner)
        for k in sorted(blocked):
            way = list(blocked).index(k)
            source.insert(k, index_add(index_scale(blocks[way], blocked[k]), places[way]))
        return Store(packed, tuple(place), Load(whole.dtype, whole, tuple(source)))

    name = f"{packed.name}_"
    sizes: list[Expr] = [affine(n) for n in packed.shape]
    for way, (k, by) in enumerate(blocked.items()):
        if leaves_rest(whole.shape[k], by):
            first = Affine(INT64, ((free_name(kernel, f"{name}{way}"), -by),), whole.shape[k])
            sizes[way - ways] = Apply(INT64, "minimum", (affine(by), first))
    return nest(kernel, name, sizes, move)


def pad(kernel: Kernel, buffer: str, to: int) -> Kernel:
    """`alloc s: f32[12, 10]`  ->  `alloc s: f32[12, 10] strides [16, 1]`, for `pad("s", 16)`

    Starts the rows of a local every `to` elements, so that they hold whole vectors.
    """
    whole = buffer_named(kernel, buffer)
    if whole.role != "local" or len(whole.shape) < 2:
        several = [b.name for b in _locals(kernel) if len(b.shape) > 1]
        raise ScheduleError(
            f"{buffer} is not a local of several rows: others have their places",
            hint=f"those are {', '.join(several)}" if several else "",
        )
    if to < whole.shape[-1]:
        raise ScheduleError(f"a row of {buffer} has {whole.shape[-1]} elements, more than {to}")
    rows = contiguous_strides((*whole.shape[:-1], to))
    padded = replace(whole, strides=rows)
    on_stack(replace(padded, shape=(*whole.shape[:-1], to)), f"with rows of {to:,}")
    return replace(kernel, stages=replace_buffer(kernel.stages, whole, padded))


def stream(kernel: Kernel, buffer: str) -> Kernel:
    """`for i vector: y[i] = v`  ->  `for i vector: y[i] = v  // streaming`

    Writes a result past the caches, where it is stored by whole vectors that start on cache lines.
    """
    whole = buffer_named(kernel, buffer)
    if whole.role not in ("output", "temp"):
        raise ScheduleError(f"{buffer} is not a result: only results are written past the caches")
    if whole.nbytes < ALIGNED or not whole.aligned:
        raise ScheduleError(f"{buffer} may not start on a cache line: that takes {ALIGNED:,} bytes")
    if any(e.buffer.memory == whole.memory for e in loads_of(kernel.stages)):
        raise ScheduleError(f"{buffer} is read again, and would have to come back from memory")
    streamed = 0

    def change(stmt: Stmt, vector: str) -> Stmt:
        nonlocal streamed
        if isinstance(stmt, Store) and stmt.buffer == whole and _on_lines(stmt, vector):
            streamed += 1
            return replace(stmt, streaming=True)
        inside = stmt.var if isinstance(stmt, For) and stmt.kind == "vector" else vector
        if bodies(stmt):
            return map_stmt(stmt, lambda e: e, lambda b: b, lambda s: change(s, inside))
        return stmt

    stages = tuple(change(s, "") for s in kernel.stages)
    if not streamed:
        raise ScheduleError(
            f"{buffer} is not stored by vectors that start on cache lines",
            hint="vectorize the loop along its last axis, with blocks and rows of whole lines "
            f"({LINE // whole.dtype.itemsize} elements)",
        )
    return replace(kernel, stages=stages)


def _on_lines(store: Store, vector: str) -> bool:
    """Whether the vectors of a store in the loop `vector` start on cache lines."""
    line = LINE // store.buffer.dtype.itemsize
    if not vector:
        return False
    offset = 0
    for index, stride in zip(store.indices, store.buffer.strides, strict=True):
        if not isinstance(index, Affine):
            return False
        offset += index.constant * stride
        for var, factor in index.terms:
            step = factor * stride
            if step != 1 if var == vector else step % line:
                return False
    return offset % line == 0


def outlives(buffer: Buffer, loop: For) -> None:
    """Raise ScheduleError for a local that each iteration of a loop has anew."""
    if any(isinstance(s, Alloc) and s.buffer == buffer for s in walk(loop.body)):
        raise ScheduleError(f"{buffer.name} is allocated inside {loop.var}: it is near already")


def buffer_named(kernel: Kernel, name: str) -> Buffer:
    """The buffer of that name, whether it is passed or allocated."""
    known = {b.name: b for b in (*kernel.buffers, *_locals(kernel))}
    if name not in known:
        raise ScheduleError(f"no buffer {among_names(name, list(known), 'buffers')}")
    return known[name]


def _locals(kernel: Kernel) -> list[Buffer]:
    """What a kernel allocates itself."""
    return [s.buffer for s in walk(kernel.stages) if isinstance(s, Alloc)]
