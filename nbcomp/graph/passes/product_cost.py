"""What a matrix product costs, by loops of our own and by BLAS: an analytic model, in clock cycles.

Both are counted in vector multiply-adds, at one a cycle, on one core; only their ratio decides.
Products with a matrix are split over the cores alike on both sides.  Products with a vector are as
fast as memory: loops of ours share them out, a call of BLAS is one core's (`loops_cores`).
The constants are fits to `python -m benchmarks.products --model`, which prints what the model says
next to what is measured.  Knows shapes and the machine; not how either side does it.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbcomp.machine import Machine

CLOCK = 3.5e9  # cycles a second, to say a cost in seconds
NEAR, FAR = 16.0, 6.0  # bytes a cycle from the last cache, and from memory
STREAM = 3.3  # times as long as a multiply-add: one whose operand comes from a cache at each use

# Loops of our own (nbcomp.schedule.products).
OWN = 0.96  # of the peak, in tiles
FEW, NARROW = 16, 16  # rows and columns up to which turned operands are multiplied as they lie
LANES = 1.5  # cycles to add up the lanes of an element
COPY, TURN = 2.0, 4.0  # cycles to copy a vector of the right operand, and to turn it
BLOCKS = 0.95  # of the peak, where operands are beyond the caches

SPREAD = 768 << 10  # bytes from which on loops over a matrix and a vector pay on all cores

# OpenBLAS 0.3 on AVX-512.  Small products are not packed, by the rule of its file
# kernel/x86_64/sgemm_small_kernel_permit_skylakex.c.
BLAS = {4: 0.95, 8: 0.95}
SMALL, SMALL_TURNED, SMALL_RATE = 1e6, 1200, 0.95  # multiply-adds; elements; of the peak
SMALL_STREAM = 2.4  # as STREAM
CALL = 700.0  # cycles to pass arguments and look at the number of threads
PACK, PACK_TURNED = 1.2, 2.5  # cycles to pack an element
EPILOGUE = 3.0  # cycles a vector of the result, to be read again by what follows


@dataclass(frozen=True)
class Product:
    """`batch` products of (rows, inner) and (inner, columns), of elements of `size` bytes.

    turned: the right operand lies along the sum.  follows: operators that work on each element of
    the result.
    """

    batch: int
    rows: int
    inner: int
    columns: int
    size: int
    turned: bool = False
    follows: bool = False

    @property
    def right(self) -> int:
        """Bytes of the right operand."""
        return self.inner * self.columns * self.size


def loops_cores(p: Product, machine: Machine) -> int:
    """How many cores loops of our own are spread over where a call of BLAS takes one."""
    large = p.batch * p.rows * p.inner * p.columns * p.size >= SPREAD
    return machine.cores if large and min(p.rows, p.columns) == 1 else 1


def generated(p: Product, machine: Machine) -> float:
    """Cycles of loops of our own, on one core."""
    lanes = machine.vector_bytes // p.size
    if min(p.rows, p.columns) == 1:
        cycles = STREAM * p.rows * p.inner * p.columns / lanes
    elif p.turned and (p.rows <= FEW or p.columns <= NARROW):
        cycles = p.rows * p.columns * (p.inner / lanes / OWN + LANES)
    else:
        beyond = max(p.right, p.rows * p.inner * p.size) > 4 * machine.l2
        rate = BLOCKS if beyond else OWN
        cycles = p.rows * p.inner * _whole(p.columns, lanes) / lanes / rate
        if p.turned or p.rows > FEW:
            cycles += p.inner * p.columns / lanes * (TURN if p.turned else COPY)
    return p.batch * max(cycles, _moving(p, machine))


def blas(p: Product, machine: Machine) -> float:
    """Cycles of a call of BLAS for each matrix, and of what follows it, on one core."""
    lanes = machine.vector_bytes // p.size
    vectors = min(p.rows * _whole(p.columns, lanes), p.columns * _whole(p.rows, lanes)) / lanes
    cycles = vectors * p.inner
    if p.rows * p.inner * p.columns <= SMALL and (
        not p.turned or p.rows * p.columns <= SMALL_TURNED
    ):
        cycles *= SMALL_STREAM if min(p.rows, p.columns) == 1 else 1 / SMALL_RATE
    else:
        cycles /= BLAS[p.size]
        packing = PACK_TURNED if p.turned else PACK
        cycles += p.rows * p.inner * PACK + p.inner * p.columns * packing
    cycles = CALL + max(cycles, _moving(p, machine))
    if p.follows:
        cycles += p.rows * p.columns / lanes * EPILOGUE
    return p.batch * cycles


def _moving(p: Product, machine: Machine) -> float:
    """Cycles to read the right operand, if it is beyond the second cache."""
    if p.right <= machine.l2:
        return 0.0
    return p.right / (NEAR if p.right <= machine.l3 // 2 else FAR)


def _whole(n: int, lanes: int) -> int:
    return -(-n // lanes) * lanes
