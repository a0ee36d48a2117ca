"""Library products: in parts, or as loops of our own."""

from __future__ import annotations

from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Alloc,
    Apply,
    Buffer,
    Call,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    affine,
    const,
    index_scale,
    loop_var,
    walk,
)
from nbcomp.schedule.rewriting import free_name, replace_in
from nbcomp.sizes import Size, leaves_rest
from nbcomp.types import INT64


def split_product(kernel: Kernel, stage: int, parts: int, axis: int) -> Kernel:
    """`call gemm(c, a, b)`  ->  `for p in 0..parts: call gemm(c, a, b) for [its rows or columns]`

    stage: the position of the call among the kernel's stages.  axis: 0 for rows, 1 for columns.
    """
    call = kernel.stages[stage] if 0 <= stage < len(kernel.stages) else None
    if not isinstance(call, Call) or call.box:
        raise ScheduleError(f"stage {stage} is not a whole product", hint=_products(kernel))
    if axis not in (0, 1) or parts < 1:
        raise ScheduleError(
            f"no {parts} parts along axis {axis}: one part or more, of rows (0) or columns (1)"
        )
    shape = call.buffers[0].shape[-2:]
    chunk = -(-shape[axis] // parts)
    chunk += -chunk % 16  # whole register blocks
    if isinstance(shape[axis], Size):  # as many as are asked for
        if shape[axis] <= 16 * parts * (parts - 1):
            raise ScheduleError(f"{parts} parts of stage {stage} would be too small")
    else:
        parts = -(-shape[axis] // chunk)
    part_name = free_name(kernel, "p")
    part = loop_var(part_name)
    start = index_scale(part, chunk)
    count: Expr = affine(chunk)
    if leaves_rest(shape[axis], chunk):
        left = index_scale(part, -chunk, shape[axis])
        count = Apply(INT64, "minimum", (affine(chunk), left))
    whole: tuple[Expr, Expr] = (affine(0), affine(shape[1 - axis]))
    box = ((start, count), whole) if axis == 0 else (whole, (start, count))
    made = For(part_name, affine(parts), (replace(call, box=box),), location=call.location)
    stages = (*kernel.stages[:stage], made, *kernel.stages[stage + 1 :])
    return replace(kernel, stages=stages)


def _products(kernel: Kernel) -> str:
    """Which stages are whole products, in words."""
    found = [
        str(k)
        for k, stage in enumerate(kernel.stages)
        if any(isinstance(s, Call) and not s.box for s in walk((stage,)))
    ]
    if found:
        return f"whole products are the stages {', '.join(found)}"
    return "the kernel has none: its products are loops, or it computes none"


def generate(kernel: Kernel, stage: int) -> Kernel:
    """`call gemm(c, a, b)`
    ->  `for i: for j: (alloc s; s = 0; for k: s += a[i, k] * b[k, j]; c[i, j] = s)`

    Writes a library product out as loops.  stage: the position among the kernel's stages of the
    call, or of the loops around it.
    """
    found = kernel.stages[stage] if 0 <= stage < len(kernel.stages) else None
    calls = [s for s in walk((found,)) if isinstance(s, Call)] if found else []
    if found is None or len(calls) != 1 or calls[0].fn != "blas.gemm" or calls[0].box:
        raise ScheduleError(f"stage {stage} is not a whole product", hint=_products(kernel))
    stages = list(kernel.stages)
    stages[stage] = replace_in(found, calls[0], _written_out(kernel, calls[0]), lambda b: b)
    return replace(kernel, stages=tuple(stages))


def _written_out(kernel: Kernel, call: Call) -> Stmt:
    """The loops of a product."""
    (out, left, right), places = call.buffers, call.at
    names: list[str] = []
    scope = kernel
    for base in ("i", "j", "k", "total"):
        names.append(free_name(scope, base))
        scope = replace(scope, stages=(*scope.stages, For(names[-1], affine(1), ())))
    i, j, k = map(loop_var, names[:3])
    total = Buffer(names[3], out.dtype, (), (), "local")
    factors = (
        Load(left.dtype, left, (*places[1], i, k), call.location),
        Load(right.dtype, right, (*places[2], k, j), call.location),
    )
    term = Apply(out.dtype, "multiply", factors, call.location)
    at, where = (*places[0], i, j), call.location
    adding = Accumulate(total, (), "add", term, where, contract=True)
    body: tuple[Stmt, ...] = (
        Alloc(total),
        Store(total, (), const(0, out.dtype), where),
        For(names[2], affine(left.shape[-1]), (adding,), location=where),
        Store(out, at, Load(out.dtype, total, (), where), where),
    )
    for name, length in ((names[1], out.shape[-1]), (names[0], out.shape[-2])):
        body = (For(name, affine(length), body, location=where),)
    return body[0]
