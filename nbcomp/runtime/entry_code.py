"""The native entry, written as LLVM text: walk the variants, check their guards, run the first that holds.

Three functions: `entry` is what Python calls (METH_FASTCALL | METH_KEYWORDS), `match` runs one variant's
guard program over the arguments, `run` allocates outputs and runs the steps.  All of them interpret the
structs of `layout`; nothing here depends on a particular plan.  Everything refused goes to Python.

The frame of a call lies on the stack, in areas whose offsets the variant states: values (arguments, then
what was fetched, which this call owns), slots, scalar storage, a step's buffers, and the results.
"""

from __future__ import annotations

from nbcomp.runtime import layout as at
from nbcomp.runtime.emit import Function, Local, Value
from nbcomp.runtime.layout import (
    CHECK,
    OUTPUT,
    PAIR,
    PLACED,
    RECORD,
    STEP,
    TABLE,
    VARIANT,
    api,
    call,
)

_STACK = 32 * 1024  # bytes; larger frames lie on the heap
_TRACE_DOMAIN = 389047  # NumPy's domain for tracemalloc (numpy/_core/src/multiarray/alloc.h)


def emit() -> list[str]:
    """The definitions; the module must also hold `@api`, `pool_run`, `take` and `give`."""
    return [_entry(), _match(), _run(), _allocate(), _slow(), _failed(), _arguments(), _release()]


def _i32(f: Function, value: int) -> Value:
    return f.constant(value, "i32")


def _null(f: Function) -> Value:
    return f.constant(0, "ptr")


def _entry() -> str:
    f = Function("entry", "ptr", self="ptr", args="ptr", count="i64", names="ptr")
    record = f["self"].load("ptr", at.DATA)
    with f.when(record.is_(0)):  # cleared by the garbage collector
        call(f, "PyErr_SetNone", "void", api(f, "ReferenceError"))
        f.give(0)
    f.goto_if(f["names"].is_not(0), "refused")
    table = record.field(RECORD, "table")
    size = table.field(TABLE, "frame")
    frame = f.local("ptr")
    heap = f.local("ptr", 0)
    with f.when(size <= _STACK):
        frame.set(f.value(f"alloca i8, {size}, align 16", "ptr"))
    with f.when(size > _STACK):
        heap.set(call(f, "PyMem_RawMalloc", "ptr", size))
        f.goto_if(heap.get().is_(0), "refused")
        frame.set(heap.get())
    record.set_field(RECORD, "active", record.field(RECORD, "active") + 1)
    result = f.local("ptr", 0)
    with f.count(table.field(TABLE, "count")) as index:
        variant = table.at(TABLE.itemsize).item(index)
        with f.when(variant.field(VARIANT, "positional").is_(f["count"])):
            held = f.call("match", "i64", variant, f["args"], frame.get())
            with f.when(held.is_not(0)):
                result.set(f.call("run", "ptr", record, variant, f["args"], f["count"], frame.get()))
                f.goto("finish")
    _leave(f, record, heap)
    f.label("refused")
    f.give(f.call("slow", "ptr", record.field(RECORD, "slow"), f["args"], f["count"], f["names"]))
    f.label("finish")
    _leave(f, record, heap)
    f.give(result.get())
    return f.text()


def _leave(f: Function, record: Value, heap: Local) -> None:
    """Undo what `entry` did at its start."""
    record.set_field(RECORD, "active", record.field(RECORD, "active") - 1)
    block = heap.get()
    with f.when(block.is_not(0)):
        call(f, "PyMem_RawFree", "void", block)


# Guards


class _Guards:
    """The body of `match`: one block per instruction of the guard program."""

    def __init__(self) -> None:
        f = Function("match", "i64", "internal", variant="ptr", args="ptr", frame="ptr")
        self.f = f
        self.variant = f["variant"]
        self.values = f["frame"].at(self.variant.field(VARIANT, "values"))
        self.slots = f["frame"].at(self.variant.field(VARIANT, "slots"))
        self.stores = f["frame"].at(self.variant.field(VARIANT, "stores"))
        positional = self.variant.field(VARIANT, "positional")
        with f.count(positional) as i:
            self.values.set_item(i, f["args"].item(i))
        self.fetched = f.local("i64", positional)
        self.got = f.local("ptr", 0)
        self.next = f.local("ptr", self.variant.field(VARIANT, "checks"))
        self.left = f.local("i64", self.variant.field(VARIANT, "check_count"))

    def text(self) -> str:
        f = self.f
        f.label("step")
        f.goto_if(self.left.get().is_(0), "pairs")
        self.left.set(self.left.get() - 1)
        self.check = self.next.get()
        self.next.set(self.check.at(CHECK.itemsize))
        self.index = self.check.field(CHECK, "value").integer()
        self.value = self.values.item(self.index)
        cases = {
            at.GLOBAL: self._global, at.CELL: self._cell, at.OBJECT: self._constant, at.ITEM: self._item,
            at.ATTRIBUTE: self._attribute, at.IS_ARRAY: self._array, at.IS_FLOAT: self._float,
            at.IS_INT: self._int, at.IS_BOOL: self._bool, at.IS_OBJECT: self._identity,
            at.HAS_BITS: self._bits, at.EQUALS: self._equals, at.SATISFIES: self._satisfies,
            at.HAS_LENGTH: self._length, at.HAS_KEYS: self._keys,
        }  # fmt: skip
        f.switch(self.check.field(CHECK, "op"), {n: f"op{n}" for n in cases}, "fail")
        for number, block in cases.items():
            f.label(f"op{number}")
            block()
            f.goto("step")
        self._fetched()
        self._pairs()
        f.label("fail")
        f.call("release", "void", self.variant, self.values, self.fetched.get())
        f.give(0)
        return f.text()

    def _require(self, condition: Value) -> None:
        after = self.f.fresh("ok")
        self.f.branch(condition, after, "fail")
        self.f.label(after)

    def _type_is(self, kind: Value) -> None:
        self._require(self.value.load("ptr", at.TYPE).is_(kind))

    def _member(self, name: str) -> Value:
        return self.check.field(CHECK, name)

    def _pointer(self, name: str) -> Value:
        """A member that holds a pointer in an integer field."""
        return self.check.address(CHECK, name).load("ptr")

    # Fetches: the value found is owned by the call from then on.

    def _borrowed(self, value: Value) -> None:
        self.got.set(value)
        self.f.goto("borrowed")

    def _owned(self, value: Value) -> None:
        self.got.set(value)
        self.f.goto("owned")

    def _fetched(self) -> None:
        f = self.f
        f.label("borrowed")
        with f.when(self.got.get().is_not(0)):
            call(f, "Py_IncRef", "void", self.got.get())
        f.label("owned")
        with f.when(self.got.get().is_(0)):
            call(f, "PyErr_Clear", "void")
            f.goto("fail")
        self.values.set_item(self.index, self.got.get())
        self.fetched.set(self.index + 1)
        f.goto("step")

    def _global(self) -> None:
        f = self.f
        name = self._member("second")
        found = call(f, "PyDict_GetItemWithError", "ptr", self._member("first"), name)
        self.got.set(found)
        builtins = self._pointer("low")
        with f.when(found.is_(0) & builtins.is_not(0)):
            self.got.set(call(f, "PyDict_GetItemWithError", "ptr", builtins, name))
        f.goto("borrowed")

    def _cell(self) -> None:
        self._owned(call(self.f, "PyCell_Get", "ptr", self._member("first")))

    def _constant(self) -> None:
        self._borrowed(self._member("first"))

    def _parent(self) -> Value:
        return self.values.item(self._member("parent").integer())

    def _item(self) -> None:
        """A dict's key, a list's or tuple's index (when `second` says so), else whatever `[]` gives."""
        f, key, parent = self.f, self._member("first"), self._parent()
        kind = parent.load("ptr", at.TYPE)
        with f.when(kind.is_(api(f, "dict"))):
            self._borrowed(call(f, "PyDict_GetItemWithError", "ptr", parent, key))
        sequence = kind.is_(api(f, "list")) | kind.is_(api(f, "tuple"))
        with f.when(sequence & self._member("high").is_not(0)):
            self._owned(call(f, "PySequence_GetItem", "ptr", parent, self._member("low")))
        self._owned(call(f, "PyObject_GetItem", "ptr", parent, key))

    def _attribute(self) -> None:
        self._owned(call(self.f, "PyObject_GetAttr", "ptr", self._parent(), self._member("first")))

    # Checks

    def _array(self) -> None:
        f, value = self.f, self.value
        self._type_is(api(f, "PyArray_Type"))
        nd = self._member("low")
        self._require(value.load("i32", at.NDIM).integer().is_(nd))
        dims, strides, wanted = value.load("ptr", at.DIMS), value.load("ptr", at.STRIDES), self._member("second")
        with f.count(nd) as i:  # wanted: dim, stride, mask of each axis
            row = wanted.at(i * 24)
            self._require(dims.item(i, "i64").is_(row.load("i64")))
            off = (strides.item(i, "i64") ^ row.load("i64", 8)) & row.load("i64", 16)
            self._require(off.is_(0))
        flags = self._member("high")
        self._require((value.load("i32", at.FLAGS).integer() & flags).is_(flags))
        descr, expected = value.load("ptr", at.DESCR), self._member("first")
        with f.when(descr.is_not(expected)):
            self._require(descr.load("i8", at.KIND).is_(expected.load("i8", at.KIND)))
            same = call(f, "PyArray_EquivTypes", "i8", descr, expected)
            self._require(same.is_not(0))
        self.slots.set_item(self._member("slot"), value.load("ptr", at.DATA))

    def _store(self) -> Value:
        """The scalar's storage, whose address goes to its slot."""
        place = self.stores.at(self._member("store").integer() * at.STORE)
        self.slots.set_item(self._member("slot"), place)
        return place

    def _float(self) -> None:
        self._type_is(api(self.f, "float"))
        self._store().store(self.value.load("double", at.FLOAT))

    def _long(self) -> Value:
        """The value of an int; fails when it does not fit."""
        f = self.f
        self._type_is(api(f, "int"))
        overflow = f.local("i32", 0)
        number = call(f, "PyLong_AsLongLongAndOverflow", "i64", self.value, overflow.pointer)
        self._require(overflow.get().is_(0))
        return number

    def _int(self) -> None:
        number = self._long()
        self._require((number >= self._member("low")) & (number <= self._member("high")))
        self._store().store(number)

    def _bool(self) -> None:
        self._type_is(api(self.f, "bool"))
        is_true = self.value.is_(api(self.f, "True"))
        self._store().store(self.f.select(is_true, 1, 0, "i8"))

    def _identity(self) -> None:
        self._require(self.value.is_(self._member("first")))

    def _bits(self) -> None:
        """A float or complex (`low` doubles): the same bits, or NaN both."""
        f = self.f
        self._type_is(self._member("first"))
        expected = self._member("second")
        with f.count(self._member("low")) as i:
            have, want = (p.load("double", i * 8 + at.FLOAT) for p in (self.value, expected))
            bits = [f.value(f"bitcast {v} to i64", "i64") for v in (have, want)]
            nans = [f.value(f"fcmp uno {v}, {v.text}", "i1") for v in (have, want)]
            self._require(bits[0].is_(bits[1]) | (nans[0] & nans[1]))

    def _equals(self) -> None:
        """Exactly this type, and identical or `==` (only used for types whose == is plain)."""
        f = self.f
        self._type_is(self._member("first"))
        expected = self._member("second")
        f.goto_if(self.value.is_(expected), "step")
        same = call(f, "PyObject_RichCompareBool", "i32", self.value, expected, _i32(f, 2))
        self._truth(same)

    def _truth(self, answer: Value) -> None:
        with self.f.when(answer < 0):
            call(self.f, "PyErr_Clear", "void")
            self.f.goto("fail")
        self._require(answer.is_not(0))

    def _satisfies(self) -> None:
        """A Python predicate decides."""
        f = self.f
        argument = f.local("ptr", self.value)
        call_ = api(f, "PyObject_Vectorcall")
        answer = f.call(call_, "ptr", self._member("first"), argument.pointer, 1, _null(f))
        with f.when(answer.is_(0)):
            call(f, "PyErr_Clear", "void")
            f.goto("fail")
        call(f, "Py_DecRef", "void", answer)  # True and False are immortal
        self._require(answer.is_(api(f, "True")))

    def _length(self) -> None:
        """A tuple or list (`first`) of `low` entries."""
        self._type_is(self._member("first"))
        self._require(self.value.load("i64", at.SIZE).is_(self._member("low")))

    def _keys(self) -> None:
        """A dict of `low` entries whose keys, in order, are those at `second`."""
        f = self.f
        self._type_is(api(f, "dict"))
        count = self._member("low")
        self._require(call(f, "PyDict_Size", "i64", self.value).is_(count))
        position, key = f.local("i64", 0), f.local("ptr", 0)
        with f.count(count) as i:
            going = call(f, "PyDict_Next", "i32", self.value, position.pointer, key.pointer, _null(f))
            self._require(going.is_not(0))
            expected = self._member("second").item(i)
            with f.when(key.get().is_not(expected)):
                held = key.get()
                call(f, "Py_IncRef", "void", held)
                same = call(f, "PyObject_RichCompareBool", "i32", held, expected, _i32(f, 2))
                call(f, "Py_DecRef", "void", held)
                self._truth(same)

    def _pairs(self) -> None:
        """Byte ranges that must be disjoint; then the variant holds."""
        f = self.f
        f.label("pairs")
        pairs = self.variant.field(VARIANT, "pairs")
        with f.count(self.variant.field(VARIANT, "pair_count")) as i:
            pair = pairs.at(i * PAIR.itemsize)
            one = self.slots.item(pair.field(PAIR, "slot"), "i64")
            two = self.slots.item(pair.field(PAIR, "other"), "i64")
            before = one + pair.field(PAIR, "high") <= two + pair.field(PAIR, "other_low")
            after = two + pair.field(PAIR, "other_high") <= one + pair.field(PAIR, "low")
            self._require(before | after)
        f.give(1)


def _match() -> str:
    return _Guards().text()


def _release() -> str:
    """Give back the values fetched so far: indices positional … upto - 1."""
    f = Function("release", "void", "internal", variant="ptr", values="ptr", upto="i64")
    first = f["variant"].field(VARIANT, "positional")
    with f.count(f["upto"] - first) as i:
        call(f, "Py_DecRef", "void", f["values"].item(first + i))
    f.give()
    return f.text()


# Running


class _Runner:
    """The body of `run`."""

    def __init__(self) -> None:
        f = Function(
            "run", "ptr", "internal", record="ptr", variant="ptr", args="ptr", count="i64", frame="ptr"
        )
        self.f, self.variant = f, f["variant"]
        area = {
            name: f["frame"].at(self.variant.field(VARIANT, name))
            for name in ("values", "slots", "stores", "buffers", "results")
        }
        self.values, self.slots, self.stores = area["values"], area["slots"], area["stores"]
        self.buffers, self.results = area["buffers"], area["results"]
        self.arena, self.thread = f.local("ptr", 0), f.local("ptr", 0)
        self.status, self.result = f.local("i64", 0), f.local("ptr", 0)
        self.steps_done = f.local("i64", 0)

    def text(self) -> str:
        f = self.f
        host = self.variant.field(VARIANT, "host")
        with f.when(host.is_not(0)):
            arguments = f.call("arguments", "ptr", f["args"], f["count"])
            self.result.set(_python(f, host, arguments))
            f.goto("release")
        with f.count(self._count("output")) as i:
            self.results.set_item(i, _null(f))
        self._place()
        self._outputs()
        self._start_pool()
        with f.when(self.variant.field(VARIANT, "release").is_not(0)):
            self.thread.set(call(f, "PyEval_SaveThread", "ptr"))
        self._steps()
        self._restore()
        f.goto_if(self.status.get().is_not(0), "failed")
        self._scalars()
        self._pack()
        f.label("fail")
        with f.count(self._count("output")) as i:
            made = self.results.item(i)
            with f.when(made.is_not(0)):
                call(f, "Py_DecRef", "void", made)
        f.label("clean")
        self._clean()
        f.give(self.result.get())
        f.label("failed")
        arguments = (f["args"], f["count"], self.steps_done.get(), self.status.get())
        self.result.set(f.call("failed", "ptr", f["record"], self.variant, *arguments))
        f.goto("fail")
        return f.text()

    def _count(self, what: str) -> Value:
        return self.variant.field(VARIANT, f"{what}_count")

    def _place(self) -> None:
        """Constants and temps to their slots; an arena already in use by another thread is left alone."""
        f, variant = self.f, self.variant
        with f.count(self._count("constant")) as i:
            row = variant.field(VARIANT, "constants").at(i * PLACED.itemsize)
            self.slots.set_item(row.field(PLACED, "slot"), row.address(PLACED, "at").load("ptr"))
        size = variant.field(VARIANT, "arena")
        f.goto_if(size.is_(0), "placed")
        block = variant.field(VARIANT, "arena_block")
        own = block.is_not(0) & variant.field(VARIANT, "arena_busy").is_(0)
        with f.when(own):
            variant.set_field(VARIANT, "arena_busy", 1)
            self.arena.set(block)
        with f.when(self.arena.get().is_(0)):
            self.arena.set(f.call("take", "ptr", size))
        with f.when(self.arena.get().is_(0)):
            call(f, "PyErr_NoMemory", "ptr")
            f.goto("fail")
        with f.count(self._count("temp")) as i:
            row = variant.field(VARIANT, "temps").at(i * PLACED.itemsize)
            self.slots.set_item(row.field(PLACED, "slot"), self.arena.get().at(row.field(PLACED, "at")))
        f.label("placed")

    def _outputs(self) -> None:
        f = self.f
        with f.count(self._count("output")) as i:
            output = self.variant.field(VARIANT, "outputs").at(i * OUTPUT.itemsize)
            kind, slot = output.field(OUTPUT, "kind"), output.field(OUTPUT, "slot")
            with f.when(kind <= at.LARGE):
                array = f.call("allocate", "ptr", output)
                f.goto_if(array.is_(0), "fail")
                self.results.set_item(i, array)
                self.slots.set_item(slot, array.load("ptr", at.DATA))
            with f.when(kind.is_(at.SCALAR)):
                self.slots.set_item(slot, self.stores.at(output.field(OUTPUT, "bytes") * at.STORE))
            with f.when(kind.is_(at.SAME)):
                value = self.values.item(slot)
                call(f, "Py_IncRef", "void", value)
                self.results.set_item(i, value)

    def _start_pool(self) -> None:
        f = self.f
        started = Value(f, "@pool_started", "ptr").load("i64")
        parallel = self.variant.field(VARIANT, "parallel")
        with f.when(parallel.is_not(0) & started.is_(0)):
            starter = api(f, "start_pool")
            done = f.call(api(f, "PyObject_Vectorcall"), "ptr", starter, _null(f), 0, _null(f))
            f.goto_if(done.is_(0), "fail")
            call(f, "Py_DecRef", "void", done)

    def _steps(self) -> None:
        f = self.f
        with f.count(self._count("step")) as number:
            self.steps_done.set(number)
            step = self.variant.field(VARIANT, "steps").at(number * STEP.itemsize)
            indices = step.field(STEP, "slots")
            with f.count(step.field(STEP, "count")) as i:
                self.buffers.set_item(i, self.slots.item(indices.item(i, "i64")))
            self._segments(step)
            f.goto_if(self.status.get().is_not(0), "stop")
        f.label("stop")

    def _segments(self, step: Value) -> None:
        """A step in pieces of `segment` iterations; between pieces of long plans Ctrl-C is noticed."""
        f = self.f
        begin, end, extent = f.local("i64", 0), f.local("i64", 0), step.field(STEP, "extent")
        again, done = f.fresh("again"), f.fresh("done")
        f.label(again)
        f.goto_if(begin.get() >= extent, done)
        end.set(begin.get() + step.field(STEP, "segment"))
        with f.when(end.get() > extent):
            end.set(extent)
        where = (self.buffers, step.field(STEP, "params"), begin.get(), end.get())
        grain, function = step.field(STEP, "grain"), step.field(STEP, "function")
        with f.when(grain.is_(0)):
            self.status.set(f.call(function, "i64", *where))
        with f.when(grain.is_not(0)):
            self.status.set(f.call("pool_run", "i64", function, *where, grain))
        f.goto_if(self.status.get().is_not(0), done)
        with f.when(step.field(STEP, "check").is_not(0)):
            self._signals()
        begin.set(end.get())
        f.goto(again)
        f.label(done)

    def _restore(self) -> None:
        f = self.f
        with f.when(self.thread.get().is_not(0)):
            call(f, "PyEval_RestoreThread", "void", self.thread.get())

    def _signals(self) -> None:
        f = self.f
        self._restore()
        pending = call(f, "PyErr_CheckSignals", "i32")
        f.goto_if(pending.is_not(0), "fail")
        with f.when(self.thread.get().is_not(0)):
            self.thread.set(call(f, "PyEval_SaveThread", "ptr"))

    def _scalars(self) -> None:
        f = self.f
        with f.count(self._count("output")) as i:
            output = self.variant.field(VARIANT, "outputs").at(i * OUTPUT.itemsize)
            with f.when(output.field(OUTPUT, "kind").is_(at.SCALAR)):
                data = self.slots.item(output.field(OUTPUT, "slot"))
                descr = output.field(OUTPUT, "descr")
                scalar = call(f, "PyArray_Scalar", "ptr", data, descr, _null(f))
                f.goto_if(scalar.is_(0), "fail")
                self.results.set_item(i, scalar)

    def _pack(self) -> None:
        """The result: the one output, a tuple of them, or None when there is nothing to return."""
        f, single, count = self.f, self.variant.field(VARIANT, "single"), self._count("output")
        with f.when(single.is_not(0) & count.is_not(0)):
            self.result.set(self.results.item(0))
            f.goto("clean")
        with f.when(single.is_not(0)):
            none = api(f, "None")
            call(f, "Py_IncRef", "void", none)
            self.result.set(none)
            f.goto("clean")
        self.result.set(call(f, "PyTuple_New", "ptr", count))
        f.goto_if(self.result.get().is_(0), "fail")
        with f.count(count) as i:
            call(f, "PyTuple_SetItem", "i32", self.result.get(), i, self.results.item(i))
        f.goto("clean")

    def _clean(self) -> None:
        f, variant = self.f, self.variant
        arena = self.arena.get()
        with f.when(arena.is_not(0)):
            own = arena.is_(variant.field(VARIANT, "arena_block"))
            with f.when(own):
                variant.set_field(VARIANT, "arena_busy", 0)
            with f.when(own ^ 1):
                f.call("give", "void", arena)
        f.label("release")
        f.call("release", "void", variant, self.values, variant.field(VARIANT, "value_count"))


def _run() -> str:
    return _Runner().text()


def _allocate() -> str:
    """A new array for an output; a large one lies in a recycled 64-byte aligned block that it owns."""
    f = Function("allocate", "ptr", output="ptr")
    output = f["output"]
    data = f.local("ptr", 0)
    large = output.field(OUTPUT, "kind").is_(at.LARGE)
    with f.when(large):
        data.set(f.call("take", "ptr", output.field(OUTPUT, "bytes")))
    descr = output.field(OUTPUT, "descr")
    call(f, "Py_IncRef", "void", descr)
    nd = f.value(f"trunc {output.field(OUTPUT, 'nd')} to i32", "i32")
    shape = (nd, output.field(OUTPUT, "dims"), output.field(OUTPUT, "strides"))
    # Flags only matter when data is given: C-contiguous unless strides say otherwise.
    flags = _i32(f, at.ALIGNED | at.WRITEABLE)
    array = call(
        f, "PyArray_NewFromDescr", "ptr", api(f, "PyArray_Type"), descr, *shape, data.get(), flags, _null(f)
    )
    f.goto_if(large ^ 1, "plain")
    f.goto_if(data.get().is_(0), "none")
    with f.when(array.is_(0)):
        f.call("give", "void", data.get())
        f.give(0)
    handler = api(f, "handler")
    call(f, "Py_IncRef", "void", handler)
    array.store(handler, at.HANDLER)
    owned = array.load("i32", at.FLAGS) | at.OWNDATA
    array.store(owned, at.FLAGS)
    domain = _i32(f, _TRACE_DOMAIN)
    size = output.field(OUTPUT, "bytes")
    call(f, "PyTraceMalloc_Track", "i32", domain, data.get().integer(), size)
    f.label("plain")
    f.give(array)
    f.label("none")  # NumPy has raised its MemoryError, or would give a block that is not aligned
    with f.when(array.is_not(0)):
        call(f, "Py_DecRef", "void", array)
        call(f, "PyErr_NoMemory", "ptr")
    f.give(0)
    return f.text()


# To Python


def _arguments() -> str:
    """The positional arguments as a new tuple."""
    f = Function("arguments", "ptr", "internal", args="ptr", count="i64")
    result = call(f, "PyTuple_New", "ptr", f["count"])
    with f.when(result.is_not(0)), f.count(f["count"]) as i:
        value = f["args"].item(i)
        call(f, "Py_IncRef", "void", value)
        call(f, "PyTuple_SetItem", "i32", result, i, value)
    f.give(result)
    return f.text()


def _python(f: Function, function: Value, *args: Value) -> Value:
    """Call a Python callable with these arguments, whose references are given up; null ones are errors."""
    array = f.reserve("ptr", len(args))
    for i, value in enumerate(args):
        array.set_item(i, value)
    result = f.local("ptr", 0)
    missing = args[0].is_(0)
    for value in args[1:]:
        missing = missing | value.is_(0)
    with f.when(missing ^ 1):
        vectorcall = api(f, "PyObject_Vectorcall")
        result.set(f.call(vectorcall, "ptr", function, array, len(args), _null(f)))
    for value in args:
        with f.when(value.is_not(0)):
            call(f, "Py_DecRef", "void", value)
    return result.get()


def _slow() -> str:
    """slow(args, kwargs)."""
    f = Function("slow", "ptr", "internal", function="ptr", args="ptr", count="i64", names="ptr")
    positional = f.call("arguments", "ptr", f["args"], f["count"])
    keywords = call(f, "PyDict_New", "ptr")
    with f.when(f["names"].is_not(0) & keywords.is_not(0)), f.count(f["names"].load("i64", at.SIZE)) as i:
        name = call(f, "PyTuple_GetItem", "ptr", f["names"], i)
        call(f, "PyDict_SetItem", "i32", keywords, name, f["args"].item(f["count"] + i))
    f.give(_python(f, f["function"], positional, keywords))
    return f.text()


def _failed() -> str:
    """failed(args, plan, step, status)."""
    f = Function(
        "failed", "ptr", "internal",
        record="ptr", variant="ptr", args="ptr", count="i64", step="i64", status="i64",
    )  # fmt: skip
    positional = f.call("arguments", "ptr", f["args"], f["count"])
    plan = f["variant"].field(VARIANT, "owner")
    call(f, "Py_IncRef", "void", plan)
    numbers = [call(f, "PyLong_FromLongLong", "ptr", f[n]) for n in ("step", "status")]
    f.give(_python(f, f["record"].field(RECORD, "failed"), positional, plan, *numbers))
    return f.text()
