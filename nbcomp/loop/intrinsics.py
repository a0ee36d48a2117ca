"""Instructions that do what a block of loops does: each declared by those loops.

    for j in 0..16: for q in 0..4: sum[j] += int32(left[q]) * int32(right[j, q])      vpdpbusd

An `Intrinsic` is its meaning in the loop IR, and the features a CPU needs for it; what LLVM calls
it is the target's business, and on other CPUs the loops themselves run.  `match` holds a block of a
kernel against the meaning and says where the operands are, or why it is something else.  Nothing
here runs anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nbcomp.loop.bfloat16 import UINT16, widened
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    Load,
    Stmt,
    affine,
    index_add,
    index_scale,
    loop_var,
    walk_expr,
)
from nbcomp.types import FLOAT32, INT64, DType, contiguous_strides, short

INT8: DType = np.dtype(np.int8)
INT32: DType = np.dtype(np.int32)
UINT8: DType = np.dtype(np.uint8)


@dataclass(frozen=True)
class Intrinsic:
    """An instruction: its meaning, a nest of constant extents that only adds to a sum.

    features: sets of LLVM's names of CPU features, one of which has to be there.  free: axes of
    operands whose elements may lie any number of elements apart.  fewer: the outermost loop may
    have fewer iterations.
    """

    name: str
    meaning: For
    features: tuple[frozenset[str], ...]
    summary: str
    free: frozenset[tuple[str, int]] = frozenset()
    fewer: bool = True

    def runs_on(self, features: frozenset[str]) -> bool:
        """Whether a CPU with these features has it."""
        return any(needed <= features for needed in self.features)


@dataclass(frozen=True)
class Place:
    """Where an operand is: the element it begins with, and the steps along its free axes."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    steps: tuple[int, ...] = ()


class Mismatch(ValueError):
    """Why a block is not what an instruction does."""


def match(intrinsic: Intrinsic, block: For) -> dict[str, Place]:
    """The places of an instruction's operands, by name, if a block is what it does.

    Raises Mismatch, in the terms of the block.
    """
    found = _Matcher(intrinsic)
    found.loop(intrinsic.meaning, block, outermost=True)
    return found.places


class _Matcher:
    def __init__(self, intrinsic: Intrinsic) -> None:
        self.intrinsic = intrinsic
        self.own: dict[str, str] = {}  # loops of the block by those of the meaning
        self.places: dict[str, Place] = {}

    def loop(self, wanted: For, found: object, outermost: bool = False) -> None:
        name = self.intrinsic.name
        if not isinstance(found, For):
            raise Mismatch(f"{name} has a loop of {_extent(wanted)} iterations more inside")
        most = _extent(wanted)
        n = _extent(found)
        less = self.intrinsic.fewer and outermost and isinstance(n, int) and 0 < n < (most or 0)
        if n != most and not less:
            raise Mismatch(
                f"{found.var} has {'a varying number of' if n is None else n} iterations, "
                f"{name} does {most}: split it"
            )
        self.own[wanted.var] = found.var
        if len(found.body) != 1:
            raise Mismatch(f"{found.var} holds {len(found.body)} statements, {name} is one")
        (inner,), (own,) = wanted.body, found.body
        if isinstance(inner, For):
            self.loop(inner, own)
            return
        assert isinstance(inner, Accumulate)
        if not isinstance(own, Accumulate) or own.fn != inner.fn or not own.contract:
            raise Mismatch(f"{name} adds products to a sum, which is not what {found.var} does")
        self.access(inner.buffer, inner.indices, own.buffer, own.indices)
        self.value(inner.value, own.value)

    def value(self, wanted: Expr, found: Expr) -> None:
        """One expression held against the other."""
        same = type(wanted) is type(found) and wanted.dtype == found.dtype
        if isinstance(wanted, Load) and isinstance(found, Load):
            self.access(wanted.buffer, wanted.indices, found.buffer, found.indices)
            return
        if isinstance(wanted, Const) and isinstance(found, Const):
            same = same and wanted.value == found.value
        if isinstance(wanted, Apply) and isinstance(found, Apply):
            same = same and wanted.fn == found.fn
        if not same:
            raise Mismatch(f"{self.intrinsic.name} computes {self.intrinsic.summary}")
        for a, b in zip(_operands(wanted), _operands(found), strict=True):
            self.value(a, b)

    def access(
        self, wanted: Buffer, at: Sequence[Expr], found: Buffer, indices: tuple[Expr, ...]
    ) -> None:
        """One place in memory held against the other: the same steps along each loop."""
        name = self.intrinsic.name
        if wanted.dtype != found.dtype:
            kinds = f"{short(found.dtype)}, {name} takes {short(wanted.dtype)}"
            raise Mismatch(f"{found.name} is {kinds}")
        if not all(isinstance(i, Affine) for i in indices):
            raise Mismatch(f"data says where {found.name} is read")
        far = _steps(found.strides, indices)
        free: list[int] = []
        for loop, var in self.own.items():
            axis, step = _step(wanted, at, loop)
            if (wanted.name, axis) in self.intrinsic.free:
                free.append(far.get(var, 0))
            elif far.get(var, 0) != step:
                raise Mismatch(
                    f"{found.name} lies {far.get(var, 0)} elements apart along {var}, {name} takes "
                    f"{step}"
                )
        mine = set(self.own.values())
        base = tuple(
            Affine(INT64, tuple(t for t in i.terms if t[0] not in mine), i.constant)
            for i in indices
            if isinstance(i, Affine)
        )
        self.places[wanted.name] = Place(found, base, tuple(free))


def _operands(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Apply):
        return expr.args
    return (expr.value,) if isinstance(expr, Cast) else ()


def _extent(loop: For) -> int | None:
    """The iterations of a loop; None where they vary."""
    constant = isinstance(loop.extent, Affine) and not loop.extent.terms
    return loop.extent.constant if constant else None  # type: ignore[attr-defined]


def _steps(strides: Sequence[int], indices: Sequence[Expr]) -> dict[str, int]:
    """How far a place moves in memory, in elements, with each loop variable."""
    total: Expr = affine(0)
    for index, stride in zip(indices, strides, strict=True):
        total = index_add(total, index_scale(index, stride))
    return dict(total.terms) if isinstance(total, Affine) else {}


def _step(buffer: Buffer, indices: Sequence[Expr], loop: str) -> tuple[int, int]:
    """The axis along which a loop of a meaning walks, and how far in memory."""
    for axis, index in enumerate(indices):
        if isinstance(index, Affine) and (factor := dict(index.terms).get(loop)):
            return axis, factor * buffer.strides[axis]
    return -1, 0


def terms(intrinsic: Intrinsic) -> int:
    """How many neighbouring products an instruction adds up: the length of its innermost loop."""
    loop = intrinsic.meaning
    while isinstance(loop.body[0], For):
        loop = loop.body[0]
    return _extent(loop) or 1


def operands(intrinsic: Intrinsic) -> tuple[DType, DType, DType]:
    """The dtypes of an instruction's operands and of its sums."""
    adding: Stmt = intrinsic.meaning
    while isinstance(adding, For):
        (adding,) = adding.body
    assert isinstance(adding, Accumulate)
    factors = _operands(adding.value)
    left, right = (e.dtype for f in factors for e in walk_expr(f) if isinstance(e, Load))
    return left, right, adding.buffer.dtype


def dots(intrinsic: Intrinsic) -> tuple[int, tuple[DType, DType, DType]] | None:
    """Lanes, and the dtypes of the operands and the sums, of an instruction whose sums are lanes of
    a vector; None for tiles."""
    lanes = intrinsic.meaning
    (terms,) = lanes.body
    assert isinstance(terms, For)
    if isinstance(terms.body[0], For) or not isinstance(lanes.extent, Affine):
        return None
    return lanes.extent.constant, operands(intrinsic)


# ------------------------------------------------------------------------------- what there is


def _nest(extents: Mapping[str, int], body: Accumulate) -> For:
    """Loops around a statement, outside in."""
    inner: For | Accumulate = body
    for var, n in reversed(list(extents.items())):
        inner = For(var, affine(n), (inner,))
    assert isinstance(inner, For)
    return inner


def _buffer(name: str, dtype: DType, *shape: int) -> Buffer:
    return Buffer(name, dtype, shape, contiguous_strides(shape))


def _product(left: Expr, right: Expr, total: DType) -> Apply:
    def wide(e: Expr) -> Expr:
        return widened(e) if e.dtype == UINT16 else Cast(total, e)

    return Apply(total, "multiply", (wide(left), wide(right)))


def _dots(left: DType, right: DType, total: DType, lanes: int, terms: int) -> For:
    """`lanes` sums, each of `terms` products: what lies side by side is multiplied and added."""
    j, q = loop_var("j"), loop_var("q")
    a, b = _buffer("left", left, terms), _buffer("right", right, lanes, terms)
    term = _product(Load(left, a, (q,)), Load(right, b, (j, q)), total)
    adding = Accumulate(_buffer("sum", total, lanes), (j,), "add", term, contract=True)
    return _nest({"j": lanes, "q": terms}, adding)


def _tiles(left: DType, right: DType, total: DType, terms: int) -> For:
    """16 x 16 sums of 16 groups of products: a product of two tiles."""
    i, j, q = map(loop_var, "ijq")
    a, b = _buffer("left", left, 16, 16 * terms), _buffer("right", right, 16, 16, terms)
    inner = Load(left, a, (i, affine(0, k=terms, q=1)))
    term = _product(inner, Load(right, b, (loop_var("k"), j, q)), total)
    adding = Accumulate(_buffer("sum", total, 16, 16), (i, j), "add", term, contract=True)
    return _nest({"i": 16, "j": 16, "k": 16, "q": terms}, adding)


def _vnni(lanes: int) -> tuple[frozenset[str], ...]:
    short_vectors = (frozenset(("avx512vnni", "avx512vl")), frozenset(("avxvnni",)))
    return (frozenset(("avx512vnni",)),) if lanes == 16 else short_vectors


ROWS = frozenset((("sum", 0), ("left", 0), ("right", 0)))  # of tiles: as far apart as one likes
_AMX8, _AMX16 = frozenset(("amx-tile", "amx-int8")), frozenset(("amx-tile", "amx-bf16"))
_INT = "sums of 4 products of bytes each, unsigned by signed"
_TILE = "16 x 16 sums of 16 groups of products"

INTRINSICS = {
    i.name: i
    for i in (
        Intrinsic("vpdpbusd", _dots(UINT8, INT8, INT32, 16, 4), _vnni(16), _INT),
        Intrinsic("vpdpbusd_su", _dots(INT8, UINT8, INT32, 16, 4), _vnni(16), _INT),
        Intrinsic("vpdpbusd_256", _dots(UINT8, INT8, INT32, 8, 4), _vnni(8), _INT),
        Intrinsic("vpdpbusd_su_256", _dots(INT8, UINT8, INT32, 8, 4), _vnni(8), _INT),
        Intrinsic(
            "vdpbf16ps",
            _dots(UINT16, UINT16, FLOAT32, 16, 2),
            (frozenset(("avx512bf16",)),),
            "sums of 2 products of bfloat16 each",
        ),
        Intrinsic("tdpbssd", _tiles(INT8, INT8, INT32, 4), (_AMX8,), _TILE, ROWS, False),
        Intrinsic("tdpbusd", _tiles(UINT8, INT8, INT32, 4), (_AMX8,), _TILE, ROWS, False),
        Intrinsic("tdpbf16ps", _tiles(UINT16, UINT16, FLOAT32, 2), (_AMX16,), _TILE, ROWS, False),
    )
}
