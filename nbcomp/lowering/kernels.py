"""A fused group becomes a `Kernel`: the loop structure of each kind of group.

Only structure is decided here (which loops, which passes over a row, which partial results); how
loops run (vectors, cores, unrolling) is the schedule's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Contract, Piecewise, Reduce, Source, View
from nbcomp.graph.passes.fusion import CHEAP, Group, base_of, is_tiny
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Block,
    Buffer,
    Call,
    Expr,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    affine,
    buffers_in,
    const,
    expressions,
    index_add,
    index_scale,
    loop_var,
    neutral,
    walk_expr,
)
from nbcomp.lowering.elements import Elements, Index, broadcast_index
from nbcomp.lowering.writer import Writer
from nbcomp.types import INT64, DType, contiguous_strides

BLOCK = (
    2048  # terms added up before their sum joins the others: bounds the rounding error of long sums
)
LONG = 4096  # reductions up to this length are one block
WIDE = 1024  # columns reduced together: their accumulators stay in the first-level cache
SPLIT = 1 << 15  # elements from which a reduction to few results is split over the cores
GROUP = 64  # partial results added up together
DEEP = 4  # rows added to an accumulator while it is in a register

AXES = "ijklmnpq"


@dataclass(frozen=True)
class Lowered:
    """A kernel and the graph node behind each of its buffers (None: a temp of its own)."""

    kernel: Kernel
    nodes: tuple[Node | None, ...]


def lower(group: Group, names: dict[Node, str]) -> Lowered:
    """The kernel of a fused group."""
    return _Lowering(group, names).run()


def copy_kernel(node: Node, name: str, strides: tuple[int, ...]) -> Kernel:
    """Copies a contiguous array into one with these strides (in elements)."""
    dtype, shape = node.type.dtype, node.shape
    source = Buffer("new", dtype, shape, contiguous_strides(shape), "input")
    target = Buffer(name, dtype, shape, strides, "output")
    writer = Writer()
    with writer.loops([AXES[k % 8] for k in range(len(shape))], list(shape)) as index:
        writer.add(Store(target, index, Load(dtype, source, index), node.location))
    return Kernel(f"write_{name}", (source, target), writer.stage(), node.location)


class _Lowering:
    def __init__(self, group: Group, names: dict[Node, str]) -> None:
        self.group, self.names = group, names
        self.writer = Writer()
        self.elements = Elements(self.writer, group.nodes, names)
        self.buffers: dict[Buffer, Node | None] = {}
        self.stages: list[Stmt] = []
        self.inside = set(group.nodes)
        self.location = group.outputs[-1].location if group.outputs else None

    # -------------------------------------------------------------------------------------- buffers

    def run(self) -> Lowered:
        for node in self.group.nodes:
            if not isinstance(node.op, Contract):
                for operand in node.inputs:
                    self.reachable(operand)
        self.outputs = {n: self.output(n) for n in self.group.outputs}
        for node in self.group.nodes:
            if isinstance(node.op, Contract):
                self.contract(node)
        if self.group.kind == "pieces":
            self.pieces()
        elif self.group.kind == "map":
            self.map()
        elif self.group.kind == "reduce":
            self.reduce()
        order = {"input": 0, "output": 1, "temp": 2}
        touched = {b for stage in self.stages for b in buffers_in(stage)}
        used = [(b, n) for b, n in self.buffers.items() if b in touched or b.role == "output"]
        used.sort(key=lambda pair: order[pair[0].role])
        kernel = Kernel(
            self.group.name, tuple(b for b, _ in used), tuple(self.stages), self.location
        )
        return Lowered(kernel, tuple(n for _, n in used))

    def reachable(self, operand: Node) -> None:
        """Give every operand that is in memory a buffer."""
        node = base_of(operand)
        if node in self.inside or node in self.elements.memory or not self.in_memory(node):
            return
        strides = element_strides(node) or contiguous_strides(node.shape)
        self.elements.memory[node] = self.buffer(node, strides, "input")

    def in_memory(self, node: Node) -> bool:
        if isinstance(node.op, Constant):
            return len(node.shape) > 0
        return not isinstance(node.op, Source)

    def buffer(self, node: Node | None, strides: tuple[int, ...], role: str) -> Buffer:
        assert node is not None
        name = self.writer.fresh(_identifier(self.names[node]))
        made = Buffer(name, node.type.dtype, node.shape, strides, role)  # type: ignore[arg-type]
        self.buffers[made] = node
        return made

    def output(self, node: Node) -> Buffer:
        return self.buffer(node, contiguous_strides(node.shape), "output")

    def temp(self, base: str, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        """Memory of the kernel's own that its stages share."""
        made = Buffer(self.writer.fresh(base), dtype, shape, contiguous_strides(shape), "temp")
        self.buffers[made] = None
        return made

    def local(self, base: str, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        made = Buffer(self.writer.fresh(base), dtype, shape, contiguous_strides(shape), "local")
        return self.writer.alloc(made)

    def close_stage(self) -> None:
        """End the stage: what was written becomes one top-level statement."""
        stmts = self.writer.stage()
        if len(stmts) == 1:
            self.stages.append(stmts[0])
        elif stmts:
            self.stages.append(Block(stmts, self.location))

    # --------------------------------------------------------------------------------- contractions

    def contract(self, node: Node) -> None:
        """out = a @ b by BLAS, batch by batch; the product stays in the kernel when it may."""
        target = self.outputs.get(node) or self.product_target(node)
        operands = []
        for operand in node.inputs:
            strides = element_strides(operand)
            assert strides is not None
            made = self.buffer(operand, strides, "input")
            operands.append(made)
        batch = list(node.shape[:-2])
        if node.type.size == 0 or operands[0].shape[-1] == 0:
            self.zeros(target)
        else:
            with self.writer.loops([AXES[k] for k in range(len(batch))], batch) as index:
                at = [index, *(broadcast_index(index, o.shape[:-2]) for o in operands)]
                self.writer.add(
                    Call("blas.gemm", (target, *operands), tuple(at), location=node.location)
                )
        self.close_stage()
        self.elements.memory[node] = target

    def product_target(self, node: Node) -> Buffer:
        """Where a product only this kernel needs goes: into the result it becomes, if it can."""
        for out, buffer in self.outputs.items():
            single = len(self.outputs) == 1 and self.group.kind == "map"
            if single and out.type == node.type and self.read_in_place(node):
                return buffer
        return self.temp(node.name or "product", node.type.dtype, node.shape)

    def read_in_place(self, node: Node) -> bool:
        """Every reader reads the very element it is about to overwrite."""
        for user in self.group.nodes:
            for operand in user.inputs:
                moved = operand is not node and _behind_moves(operand) is node
                aligned = user.shape == node.shape and not _moves(user)
                if moved or (operand is node and not aligned):
                    return False
        return True

    def zeros(self, buffer: Buffer) -> None:
        with self.writer.loops([*AXES[: len(buffer.shape)]], list(buffer.shape)) as index:
            self.writer.add(Store(buffer, index, const(0, buffer.dtype), self.location))

    # ----------------------------------------------------------------------------------------- maps

    def map(self) -> None:
        """One loop nest over the space; short axes are written out."""
        space, components = self.group.space, self.group.components
        axes = [k for k in range(len(space)) if k not in components]
        with self.writer.loops(
            [AXES[n % 8] for n in range(len(axes))], [space[k] for k in axes], self.location
        ) as index:
            at = dict(zip(axes, index, strict=True))
            for node, buffer in self.outputs.items():
                if isinstance(node.op, Contract):
                    continue
                for own in self.component_indices(node, at):
                    value = self.elements.at(node, own)
                    self.writer.add(Store(buffer, own, value, node.location))
        self.close_stage()

    def component_indices(self, node: Node, at: dict[int, Affine]) -> Iterator[Index]:
        """A node's own indices at one point of the loops: one, or one per component."""
        space, components = self.group.space, self.group.components
        if node.shape == space:
            for position in np.ndindex(*(space[k] for k in components)):
                fixed = dict(zip(components, position, strict=True))
                yield tuple(
                    affine(int(fixed[k])) if k in fixed else at[k] for k in range(len(space))
                )
            return
        yield self.reduced_index(node, at, components)

    def reduced_index(self, node: Node, at: dict[int, Affine], gone: Sequence[int]) -> Index:
        """The index of a node whose shape has each of the `gone` axes dropped or of length 1."""
        space, components = self.group.space, self.group.components
        whole = range(len(space))
        rest = [k for k in whole if k in gone and k not in components]
        for dropped in ((), tuple(gone), components, tuple(rest)):
            left = [k for k in whole if k not in dropped]
            if node.shape == tuple(1 if k in gone else space[k] for k in left):
                return tuple(affine(0) if k in gone else at[k] for k in left)
        raise AssertionError(f"{node.op.name} of shape {node.shape} in the space {space}")

    def pieces(self) -> None:
        """One loop nest per box of a result that is put together from parts."""
        (node,) = self.group.outputs
        assert isinstance(node.op, Piecewise)
        buffer = self.outputs[node]
        for piece in node.op.pieces(node.type, *(i.type for i in node.inputs)):
            if math.prod(piece.extent) == 0:
                continue
            operand = node.inputs[piece.operand]
            with self.writer.loops(
                [AXES[k % 8] for k in range(len(piece.extent))], list(piece.extent), node.location
            ) as index:
                place = _stepped(index, piece.step, piece.start)
                source = _stepped(index, piece.factor, piece.offset)
                value = self.elements.at(operand, broadcast_index(source, operand.shape))
                self.writer.add(Store(buffer, place, value, node.location))
            self.close_stage()

    # ----------------------------------------------------------------------------------- reductions

    def reduce(self) -> None:
        space, axes = self.group.space, self.group.axes
        self.main = [
            n
            for n in self.group.nodes
            if isinstance(n.op, Reduce)
            and n.op.axes == axes
            and not is_tiny(n)
            and self.full(n.inputs[0])
        ]
        self.phases = self.number_phases()
        order = self.memory_order()
        self.reduced = [k for k in order if k in axes]
        kept = [k for k in order if k not in axes]
        last = order.index(self.reduced[-1])
        self.tail = self.columns_together(order[last + 1 :])
        late = max(self.phases.values(), default=0) > 0 and any(
            self.full(n) and self.phases[n] > 0 for n in self.group.nodes
        )
        size, row = math.prod(space), math.prod(space[k] for k in axes)
        outer = math.prod(space[k] for k in kept)
        if self.tail and not late and math.prod(space[k] for k in self.tail) > 4:
            self.columns([k for k in kept if k not in self.tail], row)
        elif not late and outer < 64 and size >= SPLIT and row >= 2 * BLOCK:
            self.split_rows(kept)
        else:
            self.rows(kept, row)

    def columns_together(self, tail: list[int]) -> list[int]:
        """The innermost of the axes after the reduced ones whose accumulators fit the cache."""
        space = self.group.space
        while len(tail) > 1 and math.prod(space[k] for k in tail[1:]) > WIDE:
            tail = tail[1:]
        return tail

    def memory_order(self) -> list[int]:
        """The axes that are looped over, those with the largest steps in memory first.

        Decided by the largest array that is read along all of them; else the order of the space.
        """
        space, components = self.group.space, self.group.components
        axes = [k for k in range(len(space)) if k not in components]
        best: tuple[int, list[int]] = (0, axes)
        for load in self.probe(axes):
            steps = dict.fromkeys(axes, 0)
            for place, stride in zip(load.indices, load.buffer.strides, strict=True):
                for var, factor in place.terms if isinstance(place, Affine) else ():
                    steps[int(var[1:])] += abs(stride * factor)
            if all(steps[k] or space[k] == 1 for k in axes) and load.buffer.nbytes > best[0]:
                best = (load.buffer.nbytes, sorted(axes, key=lambda k: -steps[k]))
        return best[1]

    def probe(self, axes: list[int]) -> Iterator[Load]:
        """What the reductions read, as loads indexed by one variable per axis, `a0`, `a1`, …"""
        writer = Writer()
        elements = Elements(writer, self.group.nodes, self.names)
        elements.memory = self.elements.memory
        position = {k: loop_var(f"a{k}") if self.group.space[k] > 1 else affine(0) for k in axes}
        writer.depth = {f"a{k}": 0 for k in axes}
        for node in self.main:
            for _, index in self.operand_indices(node.inputs[0], position):  # type: ignore[arg-type]
                if self.phases[node] == 0:
                    writer.add(Let("probe", elements.at(node.inputs[0], index)))
        for stmt in writer.stage():
            for root in expressions(stmt):
                yield from (e for e in walk_expr(root) if isinstance(e, Load))

    def full(self, node: Node) -> bool:
        """Whether a node (seen through views) has the whole space, components kept or not."""
        space, components = self.group.space, self.group.components
        dropped = tuple(n for k, n in enumerate(space) if k not in components)
        ones = tuple(1 if k in components else n for k, n in enumerate(space))
        return node.shape in (space, dropped, ones)

    def number_phases(self) -> dict[Node, int]:
        """In which walk over the reduced axes each node is computed; a reduction ends its walk."""
        phases: dict[Node, int] = {}
        for node in self.group.nodes:
            phase = 0
            for operand in node.inputs:
                b = base_of(operand)
                if b in phases:
                    phase = max(phase, phases[b] + (1 if b in self.main else 0))
            phases[node] = phase
        return phases

    # ---- rows: the reduced axes are the inner loops; several walks over a row while it is cached

    def rows(self, kept: list[int], row: int) -> None:
        space = self.group.space
        with self.writer.loops(
            [AXES[n % 8] for n in range(len(kept))], [space[k] for k in kept], self.location
        ) as index:
            at = dict(zip(kept, index, strict=True))
            keep = self.rows_to_keep(at)
            last = max(
                [self.phases[n] for n in (*self.main, *keep)] + self.full_output_phases() + [0]
            )
            for phase in range(last + 1):
                self.walk_row(phase, at, keep, row)
            self.row_outputs(at)
        self.close_stage()

    def full_output_phases(self) -> list[int]:
        return [self.phases[n] for n in self.outputs if self.is_full_output(n)]

    def is_full_output(self, node: Node) -> bool:
        return (
            self.full(node)
            and node in self.phases
            and node not in self.main
            and not isinstance(node.op, Contract)
        )

    def rows_to_keep(self, at: dict[int, Affine]) -> dict[Node, Buffer]:
        """Nodes of one walk that a later one needs, dearer to compute again than to keep."""
        keep: dict[Node, Buffer] = {}
        for node in self.group.nodes:
            if not self.full(node) or node in self.main or isinstance(node.op, Contract):
                continue
            walk = self.phases[node]
            if walk == 0 and self.price(node, {}) <= CHEAP:
                continue
            later = any(
                self.phases[u] > walk and self.full(u)
                for u in self.group.nodes
                if any(base_of(i) is node for i in u.inputs)
            )
            if later and self.price(node, keep) > CHEAP:
                if node in self.outputs:
                    keep[node] = self.outputs[node]
                else:
                    keep[node] = self.local(
                        node.name or f"{node.op.name}_row", node.type.dtype, self.row_shape(node)
                    )
        return keep

    def row_shape(self, node: Node) -> tuple[int, ...]:
        """The part of a node's shape that one row has."""
        space, axes, components = self.group.space, self.group.axes, self.group.components
        with_components = node.shape == space
        return tuple(
            space[k]
            for k in range(len(space))
            if k in axes or (k in components and with_components)
        )

    def price(self, node: Node, keep: dict[Node, Buffer]) -> int:
        """Instructions to compute a full node again from what is in memory or per row."""
        total, seen, stack = 0, set(), [node]
        while stack:
            n = base_of(stack.pop())
            if n in seen or n in keep or n not in self.inside or n in self.main:
                continue
            if not self.full(n) or isinstance(n.op, Contract):
                continue
            seen.add(n)
            total += n.op.cost
            stack.extend(n.inputs)
        return total

    def walk_row(
        self, phase: int, at: dict[int, Affine], keep: dict[Node, Buffer], row: int
    ) -> None:
        """One walk over the reduced axes: what this phase accumulates, keeps and stores."""
        reduced = [n for n in self.main if self.phases[n] == phase]
        kept_now = [n for n in keep if self.phases[n] == phase and n not in self.outputs]
        stored = phase in self.full_output_phases()
        accumulators = {n: self.accumulator(n) for n in reduced}
        blocked = row > LONG and any(n.op.fn in ("add", "multiply") for n in reduced)  # type: ignore[attr-defined]

        def body(position: dict[int, Expr], targets: dict[Node, Buffer]) -> None:
            for node in reduced:
                self.accumulate(node, position, targets[node], ())
            for node in kept_now:
                self.keep_element(node, position, keep[node])
            self.store_full(position, phase)

        if blocked:
            self.blocked_walk(at, row, accumulators, body)
        elif reduced or kept_now or stored:
            self.plain_walk(at, accumulators, body)
        for node, buffer in accumulators.items():
            self.elements.finished[node] = self.finished_row(node, buffer)
        for node, buffer in keep.items():
            if self.phases[node] == phase:
                self.elements.finished[node] = self.kept_row(node, buffer)

    def plain_walk(
        self,
        at: dict[int, Affine],
        targets: dict[Node, Buffer],
        body: Callable[[dict[int, Expr], dict[Node, Buffer]], None],
    ) -> None:
        axes = self.reduced
        extents = [self.group.space[k] for k in axes]
        names = ["r" if len(axes) == 1 else f"r{n}" for n in range(len(axes))]
        with self.writer.loops(names, extents, self.location) as index:
            body({**at, **dict(zip(axes, index, strict=True))}, targets)

    def blocked_walk(
        self,
        at: dict[int, Affine],
        row: int,
        accumulators: dict[Node, Buffer],
        body: Callable[[dict[int, Expr], dict[Node, Buffer]], None],
    ) -> None:
        """Long sums by blocks, whose sums are then added up: the rounding error stays NumPy's."""
        first, *rest = self.reduced
        extent = self.group.space[first]
        chunk = max(1, BLOCK // max(1, row // max(extent, 1)))
        blocks = -(-extent // chunk)
        partial = {
            n: self.local(f"{b.name}_parts", b.dtype, (blocks, *b.shape))
            for n, b in accumulators.items()
        }
        with self.writer.loop("b", blocks, self.location) as block:
            sums = {n: self.accumulator(n) for n in accumulators}
            inner = self.block_extent(block, chunk, extent)
            with (
                self.writer.loop("r", inner, self.location) as within,
                self.writer.loops(
                    [f"r{n}" for n in range(len(rest))], [self.group.space[k] for k in rest]
                ) as index,
            ):
                place = index_add(index_scale(block, chunk), within)
                body({**at, first: place, **dict(zip(rest, index, strict=True))}, sums)
            self.store_parts(sums, partial, (block,))
        for node, buffer in accumulators.items():
            self.sum_parts(node, partial[node], blocks, buffer, ())

    def block_extent(self, block: Affine, chunk: int, extent: int) -> Expr | int:
        """Iterations of a block: `chunk`, fewer in the last one."""
        if extent % chunk == 0 or extent <= chunk:
            return min(chunk, extent)
        left = index_scale(block, -chunk, extent)
        return Apply(INT64, "minimum", (affine(chunk), left))

    def accumulator(self, node: Node) -> Buffer:
        """A local for a reduction's result at one point of the outer loops, one per component."""
        shape = self.component_shape(node)
        buffer = self.local(node.name or f"{node.op.name}_", node.type.dtype, shape)
        self.start(buffer, (), node)
        return buffer

    def component_shape(self, node: Node) -> tuple[int, ...]:
        """Lengths of the component axes that a reduction keeps."""
        space, components = self.group.space, self.group.components
        if node.inputs[0].shape != space:
            return ()
        return tuple(space[k] for k in components)

    def start(self, buffer: Buffer, at: Index, node: Node) -> None:
        """buffer[at, …] = the value a reduction starts from."""
        assert isinstance(node.op, Reduce)
        empty = math.prod(self.group.space[k] for k in self.group.axes) == 0
        value = node.op.identity(buffer.dtype) if empty else neutral(node.op.fn, buffer.dtype)
        for position in np.ndindex(*buffer.shape[len(at) :]):
            own = tuple(affine(int(p)) for p in position)
            self.writer.add(Store(buffer, (*at, *own), const(value, buffer.dtype), node.location))

    def accumulate(self, node: Node, position: dict[int, Expr], target: Buffer, at: Index) -> None:
        """target[at, component] op= the operand's element, for every component."""
        assert isinstance(node.op, Reduce)
        operand = node.inputs[0]
        for component, index in self.operand_indices(operand, position):
            value = self.elements.at(operand, index)
            own = tuple(affine(c) for c in component) if self.component_shape(node) else ()
            self.writer.add(Accumulate(target, (*at, *own), node.op.fn, value, node.location))

    def operand_indices(
        self, operand: Node, position: dict[int, Expr]
    ) -> Iterator[tuple[tuple[int, ...], Index]]:
        """(component, index) of a full node at one point of the loops."""
        space, components = self.group.space, self.group.components
        if operand.shape != space:
            yield (), self.reduced_index(operand, position, components)  # type: ignore[arg-type]
            return
        for component in np.ndindex(*(space[k] for k in components)):
            fixed = dict(zip(components, map(int, component), strict=True))
            yield (
                tuple(fixed.values()),
                tuple(affine(fixed[k]) if k in fixed else position[k] for k in range(len(space))),
            )

    def finished_row(self, node: Node, buffer: Buffer) -> Callable[[Index], Expr]:
        """A finished reduction, read from its accumulator."""

        def read(index: Index) -> Expr:
            own = self.components_of(node, index)
            key = (buffer, tuple(str(o) for o in own))
            known = self.writer.recall(key)
            if known is not None:
                return known
            load = Load(buffer.dtype, buffer, own, node.location)
            name = self.writer.fresh(node.name or node.op.name)
            # The accumulator is final from here on, not earlier: bind it exactly here.
            frame = self.row_frame
            self.writer.frames[frame].stmts.append(Let(name, load, node.location))
            self.writer.depth[name] = frame
            value = Var(buffer.dtype, name)
            self.writer.frames[frame].memo[key] = value
            return value

        self.row_frame = len(self.writer.frames) - 1
        return read

    def components_of(self, node: Node, index: Index) -> Index:
        """The component part of a reduction's own index."""
        if not self.component_shape(node):
            return ()
        assert isinstance(node.op, Reduce)
        left = iter(index)
        own = []
        for k in range(len(self.group.space)):
            if k in node.op.axes:
                if node.op.keepdims:
                    next(left)
                continue
            place = next(left)
            if k in self.group.components:
                own.append(place)
        return tuple(own)

    def keep_element(self, node: Node, position: dict[int, Expr], buffer: Buffer) -> None:
        for component, index in self.operand_indices(node, position):
            value = self.elements.at(node, index)
            axes = [position[k] for k in self.group.axes]
            place = self.merge_row_index(axes, component)
            self.writer.add(Store(buffer, place, value, node.location))

    def merge_row_index(self, axes: list[Expr], component: tuple[int, ...]) -> Index:
        """Reduced axes and components in the order of the space."""
        reduced, parts = iter(axes), iter(component)
        place: list[Expr] = []
        for k in range(len(self.group.space)):
            if k in self.group.axes:
                place.append(next(reduced))
            elif k in self.group.components and component:
                place.append(affine(next(parts)))
        return tuple(place)

    def kept_row(self, node: Node, buffer: Buffer) -> Callable[[Index], Expr]:
        """A node kept from an earlier walk, read back."""
        whole = buffer.role == "output"

        def read(index: Index) -> Expr:
            own = index
            if not whole:
                space, axes, components = (
                    self.group.space,
                    self.group.axes,
                    self.group.components,
                )
                if len(index) == len(space):
                    keep = [k for k in range(len(space)) if k in axes or k in components]
                    own = tuple(index[k] for k in keep)[: len(buffer.shape)]
                    if node.shape != space:
                        own = tuple(index[k] for k in range(len(space)) if k in axes)
                else:
                    left = [k for k in range(len(space)) if k not in components]
                    own = tuple(i for k, i in zip(left, index, strict=True) if k in axes)
            return Load(buffer.dtype, buffer, own, node.location)

        return read

    def row_outputs(self, at: dict[int, Affine]) -> None:
        """Results with one element per row (per component)."""
        axes, components = self.group.axes, self.group.components
        for node, buffer in self.outputs.items():
            if self.is_full_output(node) or isinstance(node.op, Contract):
                continue
            for index in self.row_indices(node, at, (*axes, *components)):
                value = self.elements.at(node, index)
                self.writer.add(Store(buffer, index, value, node.location))

    def row_indices(
        self, node: Node, at: dict[int, Affine], gone: Sequence[int]
    ) -> Iterator[Index]:
        """The indices of a per-row node: one, or one per component it keeps."""
        space, axes, components = self.group.space, self.group.axes, self.group.components
        keeps = [k for k in range(len(space)) if k not in axes]
        with_components = node.shape in (
            tuple(space[k] for k in keeps),
            tuple(1 if k in axes else n for k, n in enumerate(space)),
        )
        if not components or not with_components:
            yield self.reduced_index(node, at, gone)
            return
        ones = len(node.shape) == len(space)
        for component in np.ndindex(*(space[k] for k in components)):
            fixed = dict(zip(components, map(int, component), strict=True))
            full = {**at, **{k: affine(c) for k, c in fixed.items()}}
            yield tuple(
                affine(0) if k in axes else full[k]
                for k in range(len(space))
                if ones or k not in axes
            )

    # ---- a long reduction to few results: blocks over the cores, then their partial results

    def split_rows(self, kept: list[int]) -> None:
        space = self.group.space
        first, *rest = self.reduced
        row = math.prod(space[k] for k in self.group.axes)
        extent = space[first]
        chunk = max(1, BLOCK // max(1, row // extent))
        blocks = -(-extent // chunk)
        outer = [space[k] for k in kept]
        names = [AXES[n % 8] for n in range(len(kept))]
        parts = {
            n: self.temp(
                f"{n.name or n.op.name}_parts",
                n.type.dtype,
                (blocks, *outer, *self.component_shape(n)),
            )
            for n in self.main
        }
        with (
            self.writer.loop("b", blocks, self.location) as block,
            self.writer.loops(names, outer, self.location) as index,
        ):
            at = dict(zip(kept, index, strict=True))
            accumulators = {n: self.accumulator(n) for n in self.main}
            inner = self.block_extent(block, chunk, extent)
            with (
                self.writer.loop("r", inner, self.location) as within,
                self.writer.loops(
                    [f"r{n}" for n in range(len(rest))], [space[k] for k in rest]
                ) as tail,
            ):
                place = index_add(index_scale(block, chunk), within)
                position = {**at, first: place, **dict(zip(rest, tail, strict=True))}
                for node, buffer in accumulators.items():
                    self.accumulate(node, position, buffer, ())
                self.store_full(position)
            self.store_parts(accumulators, parts, (block, *index))
        self.close_stage()
        parts, blocks = self.fewer_parts(parts, blocks, names, outer)
        with self.writer.loops(names, outer, self.location) as index:
            at = dict(zip(kept, index, strict=True))
            for node in self.main:
                buffer = self.accumulator(node)
                self.sum_parts(node, parts[node], blocks, buffer, index)
                self.elements.finished[node] = self.finished_row(node, buffer)
            self.row_outputs(at)
        self.close_stage()

    def store_parts(
        self, accumulators: dict[Node, Buffer], parts: dict[Node, Buffer], at: Index
    ) -> None:
        for node, buffer in accumulators.items():
            for position in np.ndindex(*buffer.shape):
                own = tuple(affine(int(p)) for p in position)
                value = Load(buffer.dtype, buffer, own)
                self.writer.add(Store(parts[node], (*at, *own), value, node.location))

    def fewer_parts(
        self, parts: dict[Node, Buffer], blocks: int, names: list[str], outer: list[int]
    ) -> tuple[dict[Node, Buffer], int]:
        """Add up many partial results in groups first, so that no sum has many terms."""
        if blocks <= 2 * GROUP:
            return parts, blocks
        groups = -(-blocks // GROUP)
        fewer = {
            n: self.temp(f"{b.name}_groups", b.dtype, (groups, *b.shape[1:]))
            for n, b in parts.items()
        }
        with (
            self.writer.loop("g", groups, self.location) as group,
            self.writer.loops(names, outer, self.location) as index,
        ):
            accumulators = {n: self.accumulator(n) for n in parts}
            inner = self.block_extent(group, GROUP, blocks)
            with self.writer.loop("b", inner, self.location) as within:
                block = index_add(index_scale(group, GROUP), within)
                for node, buffer in accumulators.items():
                    self.add_part(node, parts[node], (block, *index), buffer)
            self.store_parts(accumulators, fewer, (group, *index))
        self.close_stage()
        return fewer, groups

    def sum_parts(
        self, node: Node, parts: Buffer, blocks: int, target: Buffer, index: Index
    ) -> None:
        """target op= parts[0..blocks, index], for every component."""
        with self.writer.loop("b", blocks, self.location) as block:
            self.add_part(node, parts, (block, *index), target)

    def add_part(self, node: Node, parts: Buffer, at: Index, target: Buffer) -> None:
        assert isinstance(node.op, Reduce)
        for position in np.ndindex(*target.shape):
            own = tuple(affine(int(p)) for p in position)
            value = Load(parts.dtype, parts, (*at, *own))
            self.writer.add(Accumulate(target, own, node.op.fn, value, node.location))

    # ---- columns: whole rows are added to a row of accumulators, so that memory is walked in order

    def columns(self, outer: list[int], row: int) -> None:
        space = self.group.space
        first, *rest = self.tail
        inner = math.prod(space[k] for k in rest)
        tile = max(1, min(space[first], WIDE // max(inner, 1)))
        tiles = -(-space[first] // tile)
        tasks = tiles * math.prod(space[k] for k in outer)
        deep = row * math.prod(space[k] for k in self.tail) * math.prod(space[k] for k in outer)
        if deep >= SPLIT and row >= 64 and (tasks < 16 or row > LONG):
            self.split_columns(outer, tile, tiles, row, tasks)
            return
        names = [AXES[n % 8] for n in range(len(outer))]
        with (
            self.writer.loops(names, [space[k] for k in outer], self.location) as index,
            self.writer.loop("t", tiles, self.location) as block,
        ):
            at: dict[int, Expr] = dict(zip(outer, index, strict=True))
            accumulators = self.column_accumulators(tile)
            width = self.block_extent(block, tile, space[first])
            self.each_column(
                block, tile, width, lambda where, _: self.start_columns(accumulators, where)
            )
            self.add_rows(
                at,
                self.reduced[0],
                space[self.reduced[0]],
                affine(0),
                block,
                tile,
                width,
                accumulators,
            )

            def finish(where: Index, position: dict[int, Expr]) -> None:
                for node, buffer in accumulators.items():
                    self.elements.finished[node] = self.column_value(node, buffer, where)
                self.column_outputs({**at, **position})

            self.each_column(block, tile, width, finish)
        self.close_stage()

    def column_accumulators(self, tile: int) -> dict[Node, Buffer]:
        shape = (tile, *(self.group.space[k] for k in self.tail[1:]))
        return {
            n: self.local(
                n.name or f"{n.op.name}_", n.type.dtype, (*shape, *self.component_shape(n))
            )
            for n in self.main
        }

    def each_column(
        self,
        block: Affine,
        tile: int,
        width: Expr | int,
        body: Callable[[Index, dict[int, Expr]], None],
    ) -> None:
        """For every column of a tile: body(index within the tile, index of the kept axes)."""
        first, *rest = self.tail
        with (
            self.writer.loop("c", width, self.location) as within,
            self.writer.loops(
                [f"c{n}" for n in range(len(rest))], [self.group.space[k] for k in rest]
            ) as index,
        ):
            place = index_add(index_scale(block, tile), within)
            body((within, *index), {first: place, **dict(zip(rest, index, strict=True))})

    def start_columns(self, accumulators: dict[Node, Buffer], where: Index) -> None:
        for node, buffer in accumulators.items():
            self.start(buffer, where, node)

    def add_rows(
        self,
        at: dict[int, Expr],
        axis: int,
        extent: Expr | int,
        base: Expr,
        block: Affine,
        tile: int,
        width: Expr | int,
        accumulators: dict[Node, Buffer],
    ) -> None:
        """Add rows base..base+extent of the first reduced axis to the accumulators."""
        others = [k for k in self.reduced if k != axis]

        def add(rows: list[Expr], position: dict[int, Expr]) -> None:
            def body(where: Index, columns: dict[int, Expr]) -> None:
                for r in rows:
                    place = {**at, **position, **columns, axis: r}
                    for node, buffer in accumulators.items():
                        self.accumulate(node, place, buffer, where)
                    self.store_full(place)

            self.each_column(block, tile, width, body)

        def nest(rows: list[Expr]) -> None:
            with self.writer.loops(
                [f"s{n}" for n in range(len(others))], [self.group.space[k] for k in others]
            ) as index:
                add(rows, dict(zip(others, index, strict=True)))

        if isinstance(extent, int):
            whole, left = divmod(extent, DEEP)
            if whole:
                with self.writer.loop("r", whole, self.location) as r:
                    start = index_add(base, index_scale(r, DEEP))
                    nest([index_add(start, affine(d)) for d in range(DEEP)])
            for d in range(left):
                nest([index_add(base, affine(whole * DEEP + d))])
            return
        with self.writer.loop("r", extent, self.location) as r:
            nest([index_add(base, r)])

    def store_full(self, position: dict[int, Expr], phase: int = 0) -> None:
        """Store the results of a walk that have the whole space, at one point of the loops."""
        for node, buffer in self.outputs.items():
            if self.is_full_output(node) and self.phases[node] == phase:
                for own in self.component_indices(node, position):  # type: ignore[arg-type]
                    value = self.elements.at(node, own)
                    self.writer.add(Store(buffer, own, value, node.location))

    def column_value(self, node: Node, buffer: Buffer, where: Index) -> Callable[[Index], Expr]:
        def read(index: Index) -> Expr:
            own = self.components_of(node, index)
            return Load(buffer.dtype, buffer, (*where, *own), node.location)

        return read

    def column_outputs(self, at: dict[int, Expr]) -> None:
        axes, components = self.group.axes, self.group.components
        for node, buffer in self.outputs.items():
            if isinstance(node.op, Contract):
                continue
            if self.is_full_output(node):
                continue
            for index in self.row_indices(node, at, (*axes, *components)):  # type: ignore[arg-type]
                value = self.elements.at(node, index)
                self.writer.add(Store(buffer, index, value, node.location))

    def split_columns(self, outer: list[int], tile: int, tiles: int, row: int, tasks: int) -> None:
        """The reduced axis in blocks too: partial rows, then their sum."""
        space = self.group.space
        axis = self.reduced[0]
        extent = space[axis]
        blocks = min(extent, max(2, -(-32 // tasks), -(-row // BLOCK)))
        chunk = -(-extent // blocks)
        chunk += -chunk % DEEP
        blocks = -(-extent // chunk)
        names = [AXES[n % 8] for n in range(len(outer))]
        outer_shape = tuple(space[k] for k in outer)
        tail_shape = tuple(space[k] for k in self.tail)
        parts = {
            n: self.temp(
                f"{n.name or n.op.name}_parts",
                n.type.dtype,
                (blocks, *outer_shape, *tail_shape, *self.component_shape(n)),
            )
            for n in self.main
        }
        with (
            self.writer.loop("b", blocks, self.location) as piece,
            self.writer.loops(names, list(outer_shape), self.location) as index,
            self.writer.loop("t", tiles, self.location) as block,
        ):
            at: dict[int, Expr] = dict(zip(outer, index, strict=True))
            accumulators = self.column_accumulators(tile)
            width = self.block_extent(block, tile, space[self.tail[0]])
            self.each_column(
                block, tile, width, lambda where, _: self.start_columns(accumulators, where)
            )
            base = index_scale(piece, chunk)
            whole = extent // chunk
            if whole * chunk == extent:
                self.add_rows(at, axis, chunk, base, block, tile, width, accumulators)
            else:
                self.add_uneven(at, axis, extent, chunk, piece, block, tile, width, accumulators)

            def store(where: Index, position: dict[int, Expr]) -> None:
                columns = tuple(position[k] for k in self.tail)
                for node, buffer in accumulators.items():
                    for component in np.ndindex(*self.component_shape(node)):
                        own = tuple(affine(int(c)) for c in component)
                        value = Load(buffer.dtype, buffer, (*where, *own))
                        self.writer.add(
                            Store(
                                parts[node], (piece, *index, *columns, *own), value, node.location
                            )
                        )

            self.each_column(block, tile, width, store)
        self.close_stage()
        self.sum_columns(outer, names, parts, blocks, tile, tiles)

    def add_uneven(
        self,
        at: dict[int, Expr],
        axis: int,
        extent: int,
        chunk: int,
        piece: Affine,
        block: Affine,
        tile: int,
        width: Expr | int,
        accumulators: dict[Node, Buffer],
    ) -> None:
        """As `add_rows`, when the last block has fewer rows: groups of rows, then the rest."""
        count = self.block_extent(piece, chunk, extent)
        assert isinstance(count, Expr)
        base = index_scale(piece, chunk)
        groups = Apply(INT64, "floor_divide", (count, affine(DEEP)))
        with self.writer.loop("r", groups, self.location) as r:
            start = index_add(base, index_scale(r, DEEP))
            self.add_rows(at, axis, DEEP, start, block, tile, width, accumulators)
        rest = Apply(INT64, "remainder", (count, affine(DEEP)))
        left = index_add(base, affine(0))
        done = Apply(INT64, "multiply", (groups, affine(DEEP)))
        start_rest = Apply(INT64, "add", (left, done))
        self.add_rows(at, axis, rest, start_rest, block, tile, width, accumulators)

    def sum_columns(
        self,
        outer: list[int],
        names: list[str],
        parts: dict[Node, Buffer],
        blocks: int,
        tile: int,
        tiles: int,
    ) -> None:
        space = self.group.space
        with (
            self.writer.loops(names, [space[k] for k in outer], self.location) as index,
            self.writer.loop("t", tiles, self.location) as block,
        ):
            at: dict[int, Expr] = dict(zip(outer, index, strict=True))
            accumulators = self.column_accumulators(tile)
            width = self.block_extent(block, tile, space[self.tail[0]])
            self.each_column(
                block, tile, width, lambda where, _: self.start_columns(accumulators, where)
            )
            with self.writer.loop("b", blocks, self.location) as piece:

                def add(where: Index, position: dict[int, Expr]) -> None:
                    columns = tuple(position[k] for k in self.tail)
                    for node, buffer in accumulators.items():
                        assert isinstance(node.op, Reduce)
                        for component in np.ndindex(*self.component_shape(node)):
                            own = tuple(affine(int(c)) for c in component)
                            value = Load(buffer.dtype, parts[node], (piece, *index, *columns, *own))
                            self.writer.add(
                                Accumulate(buffer, (*where, *own), node.op.fn, value, node.location)
                            )

                self.each_column(block, tile, width, add)

            def finish(where: Index, position: dict[int, Expr]) -> None:
                for node, buffer in accumulators.items():
                    self.elements.finished[node] = self.column_value(node, buffer, where)
                self.column_outputs({**at, **position})

            self.each_column(block, tile, width, finish)
        self.close_stage()


def _stepped(index: Index, factors: tuple[int, ...], offsets: tuple[int, ...]) -> Index:
    return tuple(index_scale(i, f, o) for i, f, o in zip(index, factors, offsets, strict=True))


def _identifier(name: str) -> str:
    """A buffer name: the user's own, or t7 for the seventh node."""
    return f"t{name}" if name[:1].isdigit() else name


def _moves(node: Node) -> bool:
    """Whether its elements are another array's at other indices."""
    return isinstance(node.op, View) or node.op.name == "reshape"


def _behind_moves(node: Node) -> Node:
    """The node whose elements these are."""
    while _moves(node):
        node = node.inputs[0]
    return node
