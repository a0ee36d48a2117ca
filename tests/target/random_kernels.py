"""Random kernels, each from a seed: every statement, every kind of loop, odd shapes and strides.

Every kernel is well formed, and right whatever the kinds of its loops: iterations touch memory of
their own, and what is added up is whole and small, so that the order makes no difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from nbcomp.loop.grammar import (
    Alloc,
    Block,
    Buffer,
    Expr,
    If,
    Kernel,
    Let,
    Stmt,
    While,
    affine,
    index_add,
    loop_var,
    neutral,
)
from nbcomp.types import INT64, DType, contiguous_strides
from tests.kernels import (
    Array,
    Kind,
    add_to,
    apply,
    buffer,
    cast,
    kernel,
    load,
    loop,
    number,
    random_array,
    select,
    store,
    var,
)

T = TypeVar("T")

DTYPES = "?bBhHiIqQefd"
EXTENTS = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 70, 100, 131)
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
UNARY = ("negative", "absolute", "square", "sign")


class RandomKernel:
    """A kernel and its inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.buffers: list[Buffer] = []
        self.arrays: dict[str, Array] = {}
        self.count = 0
        makers: list[Callable[[], Stmt]] = [
            *(self.map, self.map, self.rows, self.columns, self.lanes, self.branches, self.steps),
        ]
        stages = [makers[self.rng.integers(len(makers))]() for _ in range(self.rng.integers(1, 4))]
        order = {"input": 0, "output": 1, "temp": 2}
        ordered = sorted(self.buffers, key=lambda b: order[b.role])
        self.kernel: Kernel = kernel(*stages, buffers=ordered, name=f"seed{seed}")

    # ------------------------------------------------------------------------------------ choices

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def one_of(self, *choices: T) -> T:
        return choices[self.rng.integers(len(choices))]

    def dtype(self) -> DType:
        return np.dtype(self.one_of(*DTYPES))

    def shape(self, rank: int, limit: int = 2000) -> tuple[int, ...]:
        while True:
            shape = tuple(int(self.one_of(*EXTENTS)) for _ in range(rank))
            if math.prod(shape) <= limit:
                return shape

    def kinds(self, rank: int) -> list[Kind]:
        """Kinds for a nest: perhaps parallel outside, perhaps vector inside."""
        kinds: list[Kind] = [self.one_of("serial", "serial", "vector") for _ in range(rank)]
        if rank > 1 and self.rng.random() < 0.5:
            kinds[0] = "parallel"
        vectors = [k for k, kind in enumerate(kinds) if kind == "vector"]
        for k in vectors[1:]:
            kinds[k] = "serial"
        return kinds

    def nest(
        self, names: list[str], shape: tuple[int, ...], kinds: list[Kind], *body: Stmt
    ) -> Stmt:
        """for i: for j: … body"""
        stmts = body
        for name, n, kind in reversed(list(zip(names, shape, kinds, strict=True))):
            stmts = (loop(name, n, *stmts, kind=kind, unroll=int(self.one_of(1, 2, 3, 4, 8))),)
        (made,) = stmts
        return made

    # ------------------------------------------------------------------------------------- memory

    def input(self, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        """An input, perhaps strided, reversed or broadcast along an axis."""
        order = self.rng.permutation(len(shape))
        strides, step = [0] * len(shape), 1
        for k in order:
            factor = int(self.one_of(1, 1, 1, 2, 3, -1))
            strides[k] = 0 if self.rng.random() < 0.1 else step * factor
            step *= max(1, shape[k]) * abs(factor)
        plain = self.rng.random() < 0.5
        own = contiguous_strides(shape) if plain else tuple(strides)
        made = buffer(self.name("in"), shape, "input", dtype, own)
        self.buffers.append(made)
        self.arrays[made.name] = random_array(self.rng, dtype, shape)
        if 0 in own:
            self.arrays[made.name][...] = self.arrays[made.name][
                tuple(slice(0, 1) if s == 0 else slice(None) for s in own)
            ]
        return made

    def output(self, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        made = buffer(self.name("out"), shape, self.one_of("output", "output", "temp"), dtype)
        self.buffers.append(made)
        return made

    def read(self, dtype: DType, names: list[str], shape: tuple[int, ...]) -> Expr:
        """An element of a new input at a place that the loops determine."""
        kept = [k for k in range(len(shape)) if self.rng.random() < 0.8]
        self.rng.shuffle(kept)
        indices, sizes = [], []
        for k in kept:
            factor, start = int(self.one_of(1, 1, 1, -1, 2, 3)), int(self.rng.integers(0, 4))
            last = max(shape[k] - 1, 0)
            offset = start + (last * abs(factor) if factor < 0 else 0)
            sizes.append(last * abs(factor) + start + 1)
            indices.append(affine(offset, **{names[k]: factor}))
        if self.rng.random() < 0.2:  # a short last axis, whose elements are read one by one
            width = int(self.one_of(2, 3, 4))
            sizes.append(width)
            indices.append(affine(int(self.rng.integers(width))))
        if indices and self.rng.random() < 0.15:
            return self.gathered(dtype, indices, sizes)
        return load(self.input(dtype, tuple(sizes)), *indices)

    def gathered(self, dtype: DType, indices: list[Expr], sizes: list[int]) -> Expr:
        """An element whose place along the first axis is read from memory."""
        table = buffer(self.name("places"), (sizes[0],), "input", INT64)
        self.buffers.append(table)
        self.arrays[table.name] = self.rng.integers(0, sizes[0], sizes[0])
        place = load(table, indices[0])
        return load(self.input(dtype, tuple(sizes)), place, *indices[1:])

    # ------------------------------------------------------------------------------------- values

    def value(self, dtype: DType, names: list[str], shape: tuple[int, ...], depth: int) -> Expr:
        """A random expression, right to the bit however it is computed."""
        if depth == 0:
            return self.leaf(dtype, names, shape)
        a = self.value(dtype, names, shape, depth - 1)
        choice = self.rng.random()
        if choice < 0.15:
            return self.converted(dtype, names, shape, depth)
        if choice < 0.3:
            other = self.value(dtype, names, shape, depth - 1)
            return select(self.condition(dtype, names, shape, depth), a, other)
        if choice < 0.45:
            return self.bounded(apply("logical_not" if dtype.kind == "b" else self.unary(dtype), a))
        b = a if self.rng.random() < 0.2 else self.value(dtype, names, shape, depth - 1)
        return self.bounded(apply(self.binary(dtype), a, b))

    def unary(self, dtype: DType) -> str:
        return self.one_of("absolute", "square") if dtype.kind == "u" else self.one_of(*UNARY)

    def binary(self, dtype: DType) -> str:
        if dtype.kind == "b":
            return self.one_of("logical_and", "logical_or", "bitwise_xor")
        return self.one_of(*BINARY)

    def bounded(self, e: Expr) -> Expr:
        """Floats stay small enough for sums to be exact."""
        if e.dtype.kind != "f":
            return e
        return apply("maximum", apply("minimum", e, number(9, e.dtype)), number(-9, e.dtype))

    def leaf(self, dtype: DType, names: list[str], shape: tuple[int, ...]) -> Expr:
        choice = self.rng.random()
        if choice < 0.1:
            return number(int(self.rng.integers(0, 2 if dtype.kind == "b" else 10)), dtype)
        if choice < 0.2 and names:
            k = int(self.rng.integers(len(names)))
            place = affine(int(self.rng.integers(-3, 4)), **{names[k]: int(self.one_of(1, -2, 5))})
            return self.bounded(cast(place, dtype))
        return self.read(dtype, names, shape)

    def converted(self, dtype: DType, names: list[str], shape: tuple[int, ...], depth: int) -> Expr:
        source = self.dtype()
        if source.kind == "f" and dtype.kind == "u":
            source = np.dtype(np.int16)  # negative floats to unsigned are not defined
        return self.bounded(cast(self.value(source, names, shape, depth - 1), dtype))

    def condition(self, dtype: DType, names: list[str], shape: tuple[int, ...], depth: int) -> Expr:
        a, b = (self.value(dtype, names, shape, depth - 1) for _ in range(2))
        return apply(self.one_of("less", "equal", "greater_equal"), a, b)

    # ------------------------------------------------------------------------------------- stages

    def map(self) -> Stmt:
        """Elements from elements, with values bound on the way and perhaps two results."""
        rank = int(self.rng.integers(1, 4))
        shape = self.shape(rank)
        names = [self.name("i") for _ in range(rank)]
        body: list[Stmt] = []
        dtype = self.dtype()
        bound = self.name("h")
        body.append(Let(bound, self.value(dtype, names, shape, 1)))
        for _ in range(self.rng.integers(1, 3)):
            value = self.bounded(
                apply(self.binary(dtype), var(bound, dtype), self.value(dtype, names, shape, 2))
            )
            body.append(self.scattered_store(names, shape, value))
        return self.nest(names, shape, self.kinds(rank), *body)

    def scattered_store(self, names: list[str], shape: tuple[int, ...], value: Expr) -> Stmt:
        """A store at a place of its own for each iteration: permuted, reversed, spread."""
        indices, sizes = [], []
        for k in self.rng.permutation(len(shape)):
            factor, last = int(self.one_of(1, 1, 1, -1, 2, 3)), max(shape[k] - 1, 0)
            sizes.append(last * abs(factor) + 1)
            indices.append(affine(last * abs(factor) if factor < 0 else 0, **{names[k]: factor}))
        return store(self.output(value.dtype, tuple(sizes)), indices, value)

    def sum_of(self, dtype: DType) -> str:
        if dtype.kind == "b":
            return self.one_of("logical_or", "logical_and")
        if dtype.char == "e" or dtype.kind == "f":
            return self.one_of("add", "maximum", "minimum")
        return self.one_of("add", "multiply", "maximum", "minimum", "bitwise_xor")

    def rows(self) -> Stmt:
        """Reductions of rows, several at once, into locals of one or a few elements."""
        rows, length = self.shape(2)
        i, r = self.name("i"), self.name("r")
        dtype, few = self.dtype(), int(self.one_of(0, 0, 2, 3))
        shape = (few,) if few else ()
        fn = self.sum_of(dtype)
        acc = buffer(self.name("acc"), shape, "local", dtype)
        places = [(k,) for k in range(few)] if few else [()]
        start = number(neutral(fn, dtype), dtype)
        adds = [
            add_to(acc, p, self.bounded(self.value(dtype, [i, r], (rows, length), 1)), fn)
            for p in places
        ]
        kind: Kind = self.one_of("vector", "vector", "serial")
        inner = loop(r, length, *adds, kind=kind, unroll=int(self.one_of(1, 2, 3, 4, 8)))
        out = self.output(dtype, (rows, *shape))
        body = [
            Alloc(acc),
            *(store(acc, p, start) for p in places),
            inner,
            *(store(out, (i, *p), load(acc, *p)) for p in places),
        ]
        outer: Kind = self.one_of("serial", "parallel")
        return loop(i, rows, *body, kind=outer)

    def columns(self) -> Stmt:
        """Whole rows added to a row of accumulators."""
        rows, width = self.shape(2)
        dtype = self.dtype()
        fn = self.sum_of(dtype)
        acc = buffer(self.name("acc"), (width,), "local", dtype)
        c, r, d, e = (self.name(n) for n in "crde")
        kind: Kind = self.one_of("vector", "serial")
        out = self.output(dtype, (width,))
        start = number(neutral(fn, dtype), dtype)
        term = self.bounded(self.value(dtype, [r, d], (rows, width), 1))
        return Block(
            (
                Alloc(acc),
                loop(c, width, store(acc, (c,), start), kind=kind),
                loop(r, rows, loop(d, width, add_to(acc, (d,), term, fn), kind=kind, unroll=2)),
                loop(e, width, store(out, (e,), load(acc, e)), kind=kind, unroll=4),
            )
        )

    def lanes(self) -> Stmt:
        """A vector loop with locals of its own: an inner loop adds up in every lane."""
        n, inner = int(self.one_of(*EXTENTS)), int(self.rng.integers(0, 5))
        dtype = self.dtype()
        fn = self.sum_of(dtype)
        acc = buffer(self.name("acc"), (2,), "local", dtype)
        i, j = self.name("i"), self.name("j")
        out = self.output(dtype, (n, 2))
        term = self.bounded(self.value(dtype, [i, j], (n, inner), 1))
        kind: Kind = self.one_of("serial", "unroll")
        start = number(neutral(fn, dtype), dtype)
        return loop(
            i,
            n,
            Alloc(acc),
            store(acc, (0,), start),
            store(acc, (1,), self.value(dtype, [i], (n,), 1)),
            loop(j, inner, add_to(acc, (0,), term, fn), kind=kind),
            add_to(acc, (1,), load(acc, 0), fn),
            store(out, (i, 0), load(acc, 0)),
            store(out, (i, 1), load(acc, 1)),
            kind="vector",
            unroll=int(self.one_of(1, 2, 4)),
        )

    def branches(self) -> Stmt:
        """A condition that is the same for all lanes, around and inside a vector loop."""
        n, m = self.shape(2)
        dtype = self.dtype()
        i, j, k = self.name("i"), self.name("j"), self.name("k")
        out = self.output(dtype, (n, m))
        odd = apply("equal", apply("remainder", loop_var(i), affine(2)), affine(1))
        yes = self.value(dtype, [i, j], (n, m), 1)
        no = self.value(dtype, [i, k], (n, m), 1)
        inside = loop(j, m, If(odd, (store(out, (i, j), yes),)), kind="vector")
        around = If(odd, (), (loop(k, m, store(out, (i, k), no), kind="vector", unroll=2),))
        return loop(i, n, inside, around)

    def steps(self) -> Stmt:
        """A while loop over memory it changes, and the same expression before and after a store."""
        n = int(self.rng.integers(0, 9))
        seen, count = self.output(INT64, (3,)), self.output(INT64, ())
        j = self.name("j")
        now = load(count)
        step = add_to(count, (), number(1, INT64))
        return Block(
            (
                store(count, (), number(0, INT64)),
                store(seen, (0,), now),
                While(
                    apply("less", now, number(n, INT64)),
                    (loop(j, 3, step), If(apply("greater", now, number(4, INT64)), (step,))),
                ),
                store(seen, (1,), now),
                step,
                store(seen, (2,), index_add(now, now)),
            )
        )
