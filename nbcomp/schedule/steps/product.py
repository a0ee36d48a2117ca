"""Library products in parts."""

from __future__ import annotations

from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Apply, Call, Expr, For, Kernel, affine, index_scale, loop_var
from nbcomp.schedule.rewriting import free_name
from nbcomp.types import INT64


def split_product(kernel: Kernel, stage: int, parts: int, axis: int) -> Kernel:
    """`call gemm(c, a, b)`  ->  `for p in 0..parts: call gemm(c, a, b) for [its rows or columns]`

    stage: the position of the call among the kernel's stages.  axis: 0 for rows, 1 for columns.
    """
    call = kernel.stages[stage]
    if not isinstance(call, Call) or call.box:
        raise ScheduleError(f"stage {stage} is not a whole product")
    shape = call.buffers[0].shape[-2:]
    chunk = -(-shape[axis] // parts)
    chunk += -chunk % 16  # whole register blocks
    parts = -(-shape[axis] // chunk)
    part_name = free_name(kernel, "p")
    part = loop_var(part_name)
    start = index_scale(part, chunk)
    count: Expr = affine(chunk)
    if shape[axis] % chunk:
        left = index_scale(part, -chunk, shape[axis])
        count = Apply(INT64, "minimum", (affine(chunk), left))
    whole: tuple[Expr, Expr] = (affine(0), affine(shape[1 - axis]))
    box = ((start, count), whole) if axis == 0 else (whole, (start, count))
    made = For(part_name, affine(parts), (replace(call, box=box),), location=call.location)
    stages = (*kernel.stages[:stage], made, *kernel.stages[stage + 1 :])
    return replace(kernel, stages=stages)
