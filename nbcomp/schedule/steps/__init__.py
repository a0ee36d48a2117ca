"""Schedule steps: pure functions from kernels to kernels, in the terms of the field.

Each addresses loops by their variables and buffers by their names, checks that the result means the
same, and raises `ScheduleError` in the user's words where it would not.  `rewriting` has what they
share, `region` and `dependence` the analyses behind their checks.
"""

from nbcomp.schedule.steps.ahead import prefetch, software_pipeline
from nbcomp.schedule.steps.kinds import annotate, interleave, parallelize, unroll, vectorize
from nbcomp.schedule.steps.memory import pack, pad, stage, stream
from nbcomp.schedule.steps.merge import fuse, join
from nbcomp.schedule.steps.nests import (
    distribute,
    interchange,
    peel,
    peel_rest,
    reorder,
    split,
    tile,
)
from nbcomp.schedule.steps.overlap import overlap
from nbcomp.schedule.steps.parts import split_sum
from nbcomp.schedule.steps.placement import compute_at, inline, reverse_compute_at, sink
from nbcomp.schedule.steps.product import generate, split_product
from nbcomp.schedule.steps.reduction import rfactor
from nbcomp.schedule.steps.sums import tile_sums
from nbcomp.schedule.steps.tensor import tensorize

__all__ = [
    "annotate",
    "compute_at",
    "distribute",
    "fuse",
    "generate",
    "inline",
    "interchange",
    "interleave",
    "join",
    "overlap",
    "pack",
    "pad",
    "parallelize",
    "peel",
    "peel_rest",
    "prefetch",
    "reorder",
    "reverse_compute_at",
    "rfactor",
    "sink",
    "software_pipeline",
    "split",
    "split_product",
    "split_sum",
    "stage",
    "stream",
    "tensorize",
    "tile",
    "tile_sums",
    "unroll",
    "vectorize",
]
