"""Plans as C structs: what the native entry reads, built once per plan and owned by NumPy arrays.

Guards become a program of fetches and checks, cheapest and most telling first; sources that share a
prefix share its fetches.  Knows the layouts and the plan, nothing of how they are run.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from nbcomp.runtime import layout as at
from nbcomp.runtime import memory, pool, validity
from nbcomp.runtime.emit import Struct, address, fill
from nbcomp.runtime.plan import (
    KEPT,
    WHOLE,
    ArrayGuard,
    Given,
    Guard,
    HostStep,
    LengthGuard,
    ObjectGuard,
    OpenSizes,
    Output,
    Plan,
    ScalarGuard,
    Source,
    Step,
    ValueGuard,
    builtins_of,
)
from nbcomp.runtime.size_program import SizeProgram, TooLong
from nbcomp.settling import has_sizes
from nbcomp.sizes import Size, Symbol, hint, is_one, is_open, straight
from nbcomp.types import TensorType

INSTANCES = 4  # of a plan with open lengths: so many different ones at a time cost nothing
_SCALE = 1 << 20  # of estimates as whole numbers
_RELEASE = 50e-6  # seconds from which on a plan runs without the GIL
_NOTICE = 0.05  # about every so many seconds a long plan looks for Ctrl-C
_PLAIN = (int, bool, str, bytes)  # types whose == is nothing but equality
_PARTS = {"__code__": at.CODE, "__defaults__": at.DEFAULTS, "__kwdefaults__": at.KWDEFAULTS}
_LOOKS = {"attr": at.ATTRIBUTE, "type": at.KIND_OF, "own": at.OWN, "maybe": at.MAYBE}


def _cheapness(guard: Guard) -> int:
    """Array arguments tell variants apart best, then other plain arguments, then the rest."""
    if guard.source.kind != "argument" or guard.source.path:
        return 2
    return 0 if isinstance(guard, ArrayGuard) else 1


def _nothing_kept(holder: Source) -> Guard:
    """That nothing is kept of an array which the plan writes to."""
    return ObjectGuard(replace(holder, path=(*holder.path, ("attr", KEPT))), None)


class Variant:
    """One plan, flattened: the `address` of its struct, and the bytes of `frame` a call needs.

    Where lengths are open this is what their guards are checked with; its `instances` are run.
    """

    def __init__(self, plan: Plan, of: Variant | None = None) -> None:
        """of: the variant that this is an instance of."""
        self.plan = plan
        self._segments: list[Any] = of._segments if of else _segments(plan)
        self._keep: list[Any] = []
        self._numbers: list[tuple[Size, int]] = []  # formulas, and where their values go
        self._values: dict[Any, int] = {}
        self._checks: list[dict[str, int]] = []
        self._stores = 0
        members = {"positional": plan.positional, "owner": id(plan), "single": int(plan.single)}
        found: list[Guard] = [kept.guard for kept in plan.kept]
        found += [_nothing_kept(holder) for holder in plan.changed]
        for guard in sorted((*plan.guards, *found), key=_cheapness):
            self._guard(guard)
        members |= self._pointed("pair", at.PAIR, self._pairs())
        members |= self._work()
        members |= self._pointed("check", at.CHECK, self._checks)
        if plan.open is not None and of is None:
            members |= self._open(plan.open)
        self._block = self._filled(at.VARIANT, [members | self._frame()])
        self.address = address(self._block)

    def _kept(self, value: object) -> int:
        self._keep.append(value)
        return id(value)

    def _array(self, values: Any, dtype: Any = np.int64) -> int:
        """The address of a block with these numbers."""
        numbers = list(values) or [0]
        block = np.array([hint(n) for n in numbers], dtype)
        self._keep.append(block)
        start = address(block)
        self._numbers += [(n, start + 8 * k) for k, n in enumerate(numbers) if isinstance(n, Size)]
        return start

    def _filled(self, layout: Struct, rows: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
        """A block of structs; for formulas, the numbers of the lengths seen."""
        block = fill(layout, [{name: hint(v) for name, v in row.items()} for row in rows])
        assert layout.fields is not None
        first = address(block)
        for k, row in enumerate(rows):
            start = first + k * layout.itemsize
            for name, value in row.items():
                if isinstance(value, Size):
                    self._numbers.append((value, start + layout.fields[name][1]))
        return block

    def _pointed(self, name: str, layout: Struct, rows: list[dict[str, int]]) -> dict[str, int]:
        block = self._filled(layout, rows)
        self._keep.append(block)
        return {f"{name}s": address(block), f"{name}_count": len(rows)}

    # Open lengths

    def _open(self, opened: OpenSizes) -> dict[str, int]:
        """The program that reads and checks lengths, and the instances."""
        if has_sizes(self.plan.finish):
            raise TooLong
        program = SizeProgram()
        same: list[tuple[int, Any]] = []  # registers, and what must be in them
        known: set[Symbol] = set()
        for symbol, index, axis in opened.lengths:
            value = self._value(self.plan.guards[index].source)
            if axis == WHOLE:
                program.number(symbol, value)
            elif symbol not in known:
                program.length(symbol, value, axis)
                known.add(symbol)
            else:
                same.append((program.other_length(value, axis), symbol))
        for value, axis, stride in self._open_strides():
            same.append((program.stride(value, axis), stride))
        read = len(program.rows)
        for register, wanted in same:
            program.same(register, wanted)
        program.check(opened.conditions)
        checked = len(program.rows)
        instances = [Variant(self.plan, self) for _ in range(INSTANCES)]
        for instance in instances:
            instance.settle_by(program, read)
        self._keep += instances
        row = self._pointed("read", at.FORMULA, program.rows[:read])
        row |= self._pointed("check", at.FORMULA, program.rows[read:checked])
        row |= self._pointed("number", at.FORMULA, program.rows[checked:])
        row |= {
            "instances": self._array([v.address for v in instances], np.uint64),
            "instance_count": len(instances),
        }
        block = fill(at.OPEN, [row])
        self._keep.append(block)
        return {"open": address(block)}

    def _open_strides(self) -> Iterator[tuple[int, int, Any]]:
        """(value, axis, formula) of strides that depend on lengths."""
        for guard in self.plan.guards:
            if isinstance(guard, ArrayGuard) and 0 not in map(hint, guard.shape):
                for axis, (n, stride) in enumerate(zip(guard.shape, guard.strides, strict=True)):
                    if isinstance(stride, Size) and not is_one(n):
                        yield self._value(guard.source), axis, stride

    def settle_by(self, program: SizeProgram, read: int) -> None:
        """Let a program, which reads so many lengths and strides, put the numbers in here."""
        rows = [{"register": program.register(n), "at": where} for n, where in self._numbers]
        for name, value in self._pointed("patch", at.PATCH, rows).items():
            self._block[0][name] = value
        self._block[0]["seen"] = self._array([at.NOT_SEEN] * read)

    def _frame(self) -> dict[str, int]:
        """Offsets of a call's areas, 16-byte aligned."""
        plan = self.plan
        buffers = max(map(_pointers, plan.steps), default=0)
        sizes = {
            "stores": at.STORE * self._stores,
            "values": 8 * (plan.positional + len(self._values)),
            "slots": 8 * plan.slots,
            "buffers": 8 * buffers,
            "results": 8 * len(plan.outputs),
        }
        offsets, position = {}, 0
        for name, size in sizes.items():
            offsets[name] = position
            position += -(-size // 16) * 16
        self.frame = max(position, 16)
        return offsets | {"value_count": plan.positional + len(self._values)}

    # Sources

    def _value(self, source: Source) -> int:
        """The index of a source's value; what is missing on the way to it is fetched."""
        if source.kind == "argument" and not source.path:
            return int(source.key)
        key = (source.kind, source.key, id(source.root), source.path)
        if key not in self._values:
            row = self._last(source) if source.path else self._root(source)
            index = self.plan.positional + len(self._values)
            self._values[key] = index
            self._checks.append(row | {"value": index})
        return self._values[key]

    def _root(self, source: Source) -> dict[str, int]:
        """The fetch of a source without a path."""
        if source.kind == "object":
            return {"op": at.OBJECT, "first": self._kept(source.root)}
        if source.kind == "cell":
            return {"op": at.CELL, "first": self._kept(source.root)}
        name = sys.intern(source.key)
        fallback = self._kept(builtins_of(source.root))
        return {
            "op": at.GLOBAL,
            "first": self._kept(source.root),
            "second": self._kept(name),
            "low": fallback,
        }

    def _last(self, source: Source) -> dict[str, int]:
        """The fetch of the last element of a path."""
        how, key = source.path[-1]
        at_hand = source.kind == "object" and len(source.path) == 1
        if at_hand and isinstance(source.root, FunctionType) and how == "attr" and key in _PARTS:
            return {"op": _PARTS[key], "first": self._kept(source.root)}
        if at_hand and how == "member":
            name = self._kept(sys.intern(key))
            return {"op": at.MEMBER, "first": self._kept(source.root), "second": name}
        parent = self._value(Source(source.kind, source.key, source.root, source.path[:-1]))
        if how in _LOOKS:
            return {"op": _LOOKS[how], "parent": parent, "first": self._kept(sys.intern(key))}
        row = {"op": at.ITEM, "parent": parent, "first": self._kept(key)}
        return row | ({"low": key, "high": 1} if type(key) is int and abs(key) < 2**62 else {})

    # Guards

    def _guard(self, guard: Guard) -> None:
        value = self._value(guard.source)
        build = {
            ArrayGuard: self._array_check,
            ScalarGuard: self._scalar_check,
            ObjectGuard: self._object_check,
            ValueGuard: self._value_check,
            LengthGuard: self._length_check,
        }[type(guard)]
        self._checks.append(build(guard) | {"value": value})  # type: ignore[operator]

    def _array_check(self, guard: ArrayGuard) -> dict[str, int]:
        rows: list[int] = []
        empty = 0 in map(hint, guard.shape)
        for n, stride in zip(guard.shape, guard.strides, strict=True):
            free = empty or is_one(n)  # nothing is reached by this stride
            any_length, any_stride = isinstance(n, Size), isinstance(stride, Size)
            rows.extend((hint(n), 0 if any_length else -1))
            rows.extend((hint(stride), 0 if free or any_stride else -1))
        return {
            "op": at.IS_ARRAY,
            "slot": guard.slot,
            "first": self._kept(memory.native_dtype(guard.dtype)),
            "second": self._array(rows),
            "low": len(guard.shape),
            "high": at.ALIGNED | (at.WRITEABLE if guard.writable else 0),
        }

    def _scalar_check(self, guard: ScalarGuard) -> dict[str, int]:
        if issubclass(guard.type, np.generic):
            return {"op": at.IS_NUMPY, "slot": guard.slot, "first": self._kept(guard.type)}
        op = {float: at.IS_FLOAT, int: at.IS_INT, bool: at.IS_BOOL}[guard.type]
        self._stores += 1
        return {
            "op": op,
            "slot": guard.slot,
            "store": self._stores - 1,
            "low": guard.low,
            "high": guard.high,
        }

    def _object_check(self, guard: ObjectGuard) -> dict[str, int]:
        return {"op": at.IS_OBJECT, "first": self._kept(guard.object)}

    def _value_check(self, guard: ValueGuard) -> dict[str, int]:
        value, kind = guard.value, type(guard.value)
        if kind is Size:
            return {"op": at.IS_WHOLE}
        if value is None:
            return {"op": at.IS_OBJECT, "first": id(None)}
        if kind in (float, complex):
            count = 2 if kind is complex else 1
            return {"op": at.HAS_BITS, "first": id(kind), "second": self._kept(value), "low": count}
        if kind in _PLAIN:
            return {"op": at.EQUALS, "first": id(kind), "second": self._kept(value)}
        return {"op": at.SATISFIES, "first": self._kept(partial(validity.same, value))}

    def _length_check(self, guard: LengthGuard) -> dict[str, int]:
        if guard.type is dict:
            keys = self._array([self._kept(key) for key in guard.keys], np.uint64)
            return {"op": at.HAS_KEYS, "second": keys, "low": guard.length}
        return {"op": at.HAS_LENGTH, "first": id(guard.type), "low": guard.length}

    def _pairs(self) -> list[dict[str, int]]:
        """Ranges of arrays that must not overlap; empty arrays overlap nothing."""
        rows = []
        for pair in self.plan.disjoint:
            one, two = (validity.array_guard(self.plan, i) for i in pair)
            if 0 in map(hint, (*one.shape, *two.shape)):
                continue
            (low, high), (other_low, other_high) = validity.extent(one), validity.extent(two)
            rows.append(
                {
                    "slot": one.slot,
                    "low": low,
                    "high": high,
                    "other": two.slot,
                    "other_low": other_low,
                    "other_high": other_high,
                }
            )
        return rows

    # What is run

    def _work(self) -> dict[str, int]:
        """Storage, outputs and steps."""
        plan = self.plan
        constants = []
        for slot, array in plan.constants.items():
            constants.append({"slot": slot, "at": address(array)})
        temps = [{"slot": slot, "at": offset} for slot, offset in plan.temps.items()]
        members = self._pointed("constant", at.PLACED, constants)
        members |= self._pointed("temp", at.PLACED, temps)
        members |= self._pointed("output", at.OUTPUT, [self._output(o) for o in plan.outputs])
        members |= self._pointed("step", at.STEP, self._steps())
        members["release"] = _times(plan.seconds, _RELEASE)
        members["parallel"] = int(any(isinstance(s, Step) and s.grain for s in plan.steps))
        members["arena"] = plan.arena
        arena = isinstance(plan.arena, Size) or plan.arena > 0
        members["prepare"] = int(bool(plan.constants or arena or members["parallel"]))
        one = len(plan.outputs) == 1 and plan.single
        scalar = any(isinstance(o, Output) and o.scalar for o in plan.outputs)
        members["pack"] = int(scalar or not one or plan.finish is not None)
        members["finish"] = self._kept(plan.finish) if plan.finish else 0
        if not isinstance(plan.arena, Size) and 0 < plan.arena < memory.LARGE:
            block = np.empty(plan.arena + memory.ALIGNMENT, np.uint8)
            self._keep.append(block)
            members["arena_block"] = address(block) + -address(block) % memory.ALIGNMENT
        return members

    def _output(self, output: Output | Given) -> dict[str, int]:
        if isinstance(output, Given):
            return {"kind": at.GIVEN, "slot": self._value(output.source)}
        if output.scalar:
            self._stores += 1
            descr = id(memory.native_dtype(output.dtype))
            return {
                "kind": at.SCALAR,
                "slot": output.slot,
                "descr": descr,
                "bytes": self._stores - 1,
            }
        return self._described(output.dtype, output.shape, output.strides) | {"slot": output.slot}

    def _described(self, dtype: Any, shape: Any, strides: Any) -> dict[str, int]:
        if not is_open((*shape, *(strides or ()))):
            row, blocks = memory.describe(dtype, shape, strides)
            self._keep.append(blocks)
            return row
        row = {
            "kind": at.LARGE,  # perhaps: that is seen when it is made
            "descr": id(memory.native_dtype(dtype)),
            "nd": len(shape),
            "dims": self._array(shape),
            "bytes": TensorType(dtype, shape).nbytes,
        }
        return row | ({"strides": self._array(strides)} if strides is not None else {})

    def _steps(self) -> list[dict[str, int]]:
        each = _each(self.plan)
        rows, since = [], 0.0
        for step, segment in zip(self.plan.steps, self._segments, strict=True):
            since += each
            if isinstance(step, HostStep):
                rows.append(self._host(step))
                continue
            check = since >= _NOTICE
            since = 0.0 if check else since
            rows.append(self._step(step, segment, check))
        return rows

    def _step(self, step: Step, segment: Any, check: bool) -> dict[str, int]:
        """segment: iterations of its pieces.  check: look for Ctrl-C after it, and between them."""
        plain = not step.grain and not check and step.extent > 0
        return {
            "kind": at.PLAIN if plain else at.PIECES,
            "function": step.function,
            "slots": self._array(step.slots),
            "count": len(step.slots),
            "params": self._array(step.params),
            "extent": step.extent,
            "grain": step.grain,
            "segment": segment,
            "check": int(check),
        }

    def _host(self, step: HostStep) -> dict[str, int]:
        views = []
        for slot, dtype, shape, strides in (*step.inputs, *step.outputs):
            views.append(self._described(dtype, shape, strides) | {"slot": slot})
        return {
            "kind": at.HOST,
            "function": self._kept(step.function),
            "views": self._pointed("view", at.OUTPUT, views)["views"],
            "inputs": len(step.inputs),
            "outputs": len(step.outputs),
            "out": self._kept(("out",)) if step.into else 0,
        }


def _times(seconds: Any, unit: float) -> Any:
    """How many times a number of seconds has a unit: as a formula of whole numbers, roughly."""
    if not isinstance(seconds, Size):
        return int(seconds / unit)
    scaled: Any = 0
    for monomial, factor in _terms(straight(seconds)):
        # What is taken off a length is left out: rounded by itself, it could exceed the rest.
        whole = max(round(float(factor) / unit * _SCALE), 0)
        scaled = scaled + (Size({monomial: whole}) if monomial and whole else whole)
    return scaled // _SCALE


def _terms(value: Any) -> Iterable[tuple[tuple[Any, ...], Any]]:
    """Of a formula, or of a number."""
    return value.terms.items() if isinstance(value, Size) else [((), value)]


def _each(plan: Plan) -> float:
    """Seconds of a step, on average."""
    return float(hint(plan.seconds)) / max(len(plan.steps), 1)


def _segments(plan: Plan) -> list[Any]:
    """The iterations of a piece of each step.

    A piece takes about as long as somebody may wait for Ctrl-C to be noticed, and has chunks enough
    for every core: it is over when the last of them is.
    """
    seconds, waits = _each(plan), _times(plan.seconds, _NOTICE)
    return [_segment(s, waits, seconds) if isinstance(s, Step) else 0 for s in plan.steps]


def _segment(step: Step, waits: Any, seconds: float) -> Any:
    """waits: how many pieces the plan may have, where lengths are open.  seconds: of the step."""
    if not step.grain:
        return step.extent
    if step.round:
        return step.round
    least = step.grain * max(pool.threads(), pool.available())  # there may be more later on
    if is_open((step.extent, step.grain)):
        return step.extent // (waits + 1) + least
    pieces = max(1, math.ceil(seconds / _NOTICE))
    return max(-(-step.extent // (pieces * least)), 1) * least


def _pointers(step: Step | HostStep) -> int:
    """How many pointers a step works on at a time."""
    if isinstance(step, HostStep):
        return len(step.inputs) + len(step.outputs)
    return len(step.slots)
