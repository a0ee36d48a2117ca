"""What the native entry needs more rarely, as LLVM text: the other half of `entry_code`.

Fetching values from globals, cells, dicts and attributes; the less common checks; large, scalar and
given outputs; arenas; steps in pieces, on all cores and open to Ctrl-C; and every way into Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nbcomp.runtime import layout as at
from nbcomp.runtime.emit import Function, Local, Value
from nbcomp.runtime.entry_code import Checks, area, new_array
from nbcomp.runtime.layout import OUTPUT, PAIR, PLACED, RECORD, STEP, VARIANT, api, call

_TRACE_DOMAIN = 389047  # NumPy's domain for tracemalloc (numpy/_core/src/multiarray/alloc.h)
_EQUAL = 2  # Py_EQ
_ERROR = -1  # a status of our own: an exception is set
_LEFT = 1  # the status of a host step that leaves the call to Python


def emit() -> list[str]:
    """The definitions; the module must also hold `@api`, `take`, `give` and `pool_run`."""
    return [
        _bind(),
        _Check(Function("check", "i64", check="ptr", values="ptr")).text(),
        _disjoint(), _prepare(), _take_arena(), _give_arena(), _output(), _allocate(), _segments(),
        _host(), _views(), _drop(), _assign(), _pack(), _fail(), _slow(), _arguments(),
    ]  # fmt: skip


def _null(f: Function) -> Value:
    return f.constant(0, "ptr")


# Arguments


def _bind() -> str:
    """Arguments in the order of the parameters, from positions, keywords and defaults: 1, or 0 when
    they do not fit (or there are no parameters to go by).  What `*args` gets is a new tuple, which
    is put at `rest`, too."""
    f = Function(
        "bind", "i64",
        record="ptr", args="ptr", count="i64", names="ptr", bound="ptr", rest="ptr",
    )  # fmt: skip
    record, bound, names = f["record"], f["bound"], f["names"]
    known, total = record.field(RECORD, "names"), record.field(RECORD, "count")
    limit = record.field(RECORD, "limit")
    more = f["count"] > limit
    f.goto_if(known.is_(0) | (more & record.field(RECORD, "rest").is_(0)), "fail")
    with f.count(total) as i:
        bound.set_item(i, _null(f))
    with f.count(f.select(more, limit, f["count"])) as i:
        bound.set_item(i, f["args"].item(i))
    f.goto_if(names.is_(0), "defaults")
    with f.count(call(f, "PyTuple_Size", "i64", names)) as i:
        name, place = call(f, "PyTuple_GetItem", "ptr", names, i), f.local("i64", 0)
        search, found = f.fresh("search"), f.fresh("found")
        f.label(search)
        f.goto_if(place.get() >= total, "fail")
        f.goto_if(known.item(place.get()).is_(name), found)
        place.set(place.get() + 1)
        f.goto(search)
        f.label(found)
        f.goto_if(bound.item(place.get()).is_not(0), "fail")
        bound.set_item(place.get(), f["args"].item(f["count"] + i))
    f.label("defaults")
    with f.count(total) as i, f.when(bound.item(i).is_(0)):
        default = record.field(RECORD, "defaults").item(i)
        f.goto_if(default.is_(0), "fail")
        bound.set_item(i, default)
    with f.when(more):  # `*args` comes after what may be given by position
        made = f.call("arguments", "ptr", f["args"].at(limit * 8), f["count"] - limit)
        f.goto_if(made.is_(0), "full")
        bound.set_item(limit, made)
        f["rest"].store(made)
    f.give(1)
    f.label("full")  # of memory: the slow path may not be called with an error set
    call(f, "PyErr_Clear", "void")
    f.label("fail")
    f.give(0)
    return f.text()


# Fetches and checks


class _Check(Checks):
    """The body of `check`: FETCHED when a value was put in place, 1 when a check held, else 0."""

    def text(self) -> str:
        f = self.f
        self.check, self.values = f["check"], f["values"]
        index = self.member("value").integer()
        self.value = self.values.item(index)
        self.got = f.local("ptr", 0)
        cases = {
            at.GLOBAL: self._global, at.CELL: self._cell, at.OBJECT: self._constant,
            at.ITEM: self._item, at.ATTRIBUTE: self._attribute, at.HAS_BITS: self._bits,
            at.EQUALS: self._equals, at.SATISFIES: self._satisfies, at.HAS_LENGTH: self._length,
            at.HAS_KEYS: self._keys, at.CODE: self._code, at.DEFAULTS: self._defaults,
            at.KWDEFAULTS: self._kwdefaults, at.KIND_OF: self._kind, at.MEMBER: self._member,
            at.OWN: self._own, at.MAYBE: self._maybe, at.IS_WHOLE: self._whole,
        }  # fmt: skip
        f.switch(self.member("op"), {n: f"op{n}" for n in cases}, "fail")
        for number, block in cases.items():
            f.label(f"op{number}")
            block()
            f.goto("held")
        f.label("held")
        f.give(1)
        f.label("borrowed")
        with f.when(self.got.get().is_not(0)):
            call(f, "Py_IncRef", "void", self.got.get())
        f.label("owned")
        f.goto_if(self.got.get().is_(0), "fail")
        self.values.set_item(index, self.got.get())
        f.give(at.FETCHED)
        f.label("fail")
        call(f, "PyErr_Clear", "void")
        f.give(0)
        return f.text()

    def _finish(self, value: Value, how: str) -> None:
        self.got.set(value)
        self.f.goto(how)

    def _pointer(self, name: str) -> Value:
        """A pointer kept in an integer member."""
        return self.check.address(at.CHECK, name).load("ptr")

    def _global(self) -> None:
        f = self.f
        name = self.member("second")
        found = call(f, "PyDict_GetItemWithError", "ptr", self.member("first"), name)
        with f.when(found.is_not(0)):
            self._finish(found, "borrowed")
        builtins = self._pointer("low")
        self._finish(call(f, "PyDict_GetItemWithError", "ptr", builtins, name), "borrowed")

    def _cell(self) -> None:
        self._finish(call(self.f, "PyCell_Get", "ptr", self.member("first")), "owned")

    def _code(self) -> None:
        self._part("PyFunction_GetCode")

    def _defaults(self) -> None:
        self._part("PyFunction_GetDefaults")

    def _kwdefaults(self) -> None:
        self._part("PyFunction_GetKwDefaults")

    def _part(self, getter: str) -> None:
        """Of a Python function."""
        self._finish(call(self.f, getter, "ptr", self.member("first")), "borrowed")

    def _kind(self) -> None:
        self._finish(self._parent().load("ptr", at.TYPE), "borrowed")

    def _member(self) -> None:
        """What a class or a base of it has under a name, or `MISSING`."""
        name = self.member("second")
        self._or_missing(call(self.f, "_PyType_Lookup", "ptr", self.member("first"), name))
        self.f.goto("borrowed")

    def _own(self) -> None:
        """What an object's own dict has under a name, or `MISSING`."""
        f = self.f
        table = call(f, "PyObject_GenericGetDict", "ptr", self._parent(), _null(f))
        with f.when(table.is_not(0)):
            name = self.member("first")
            self._or_missing(call(f, "PyDict_GetItemWithError", "ptr", table, name))
            call(f, "Py_DecRef", "void", table)  # the object has it, too
            f.goto("borrowed")
        self._or_missing(_null(f))
        f.goto("borrowed")

    def _maybe(self) -> None:
        """An attribute, or `MISSING`."""
        f = self.f
        found = call(f, "PyObject_GetAttr", "ptr", self._parent(), self.member("first"))
        with f.when(found.is_not(0)):
            self._finish(found, "owned")
        self._or_missing(found)
        f.goto("borrowed")

    def _or_missing(self, found: Value) -> None:
        """Take what was found; where nothing was, `MISSING`, without an error that says so."""
        f = self.f
        self.got.set(found)
        with f.when(found.is_(0)):
            call(f, "PyErr_Clear", "void")
            self.got.set(api(f, "MISSING"))

    def _constant(self) -> None:
        self._finish(self.member("first"), "borrowed")

    def _parent(self) -> Value:
        return self.values.item(self.member("parent").integer())

    def _item(self) -> None:
        """A dict's key, a list's or tuple's index (`low`, if `high`), else whatever `[]` gives."""
        f, key, parent = self.f, self.member("first"), self._parent()
        kind = parent.load("ptr", at.TYPE)
        with f.when(kind.is_(api(f, "dict"))):
            self._finish(call(f, "PyDict_GetItemWithError", "ptr", parent, key), "borrowed")
        sequence = kind.is_(api(f, "list")) | kind.is_(api(f, "tuple"))
        with f.when(sequence & self.member("high").is_not(0)):
            found = call(f, "PySequence_GetItem", "ptr", parent, self.member("low"))
            self._finish(found, "owned")
        self._finish(call(f, "PyObject_GetItem", "ptr", parent, key), "owned")

    def _attribute(self) -> None:
        found = call(self.f, "PyObject_GetAttr", "ptr", self._parent(), self.member("first"))
        self._finish(found, "owned")

    def _bits(self) -> None:
        """A float or complex (`low` doubles): the same bits, or NaN both."""
        f = self.f
        self.type_is(self.member("first"))
        expected = self.member("second")
        with f.count(self.member("low")) as i:
            have, want = (p.load("double", i * 8 + at.FLOAT) for p in (self.value, expected))
            bits = [f.value(f"bitcast {v} to i64", "i64") for v in (have, want)]
            nans = [f.value(f"fcmp uno {v}, {v.text}", "i1") for v in (have, want)]
            self.require(bits[0].is_(bits[1]) | (nans[0] & nans[1]))

    def _equals(self) -> None:
        """Exactly this type, and identical or `==` (only used for types whose == is plain)."""
        f = self.f
        self.type_is(self.member("first"))
        expected = self.member("second")
        f.goto_if(self.value.is_(expected), "held")
        self.require(self._same(self.value, expected) > 0)

    def _whole(self) -> None:
        """Exactly an int."""
        self.type_is(api(self.f, "int"))

    def _same(self, one: Value, two: Value) -> Value:
        equal = self.f.constant(_EQUAL, "i32")
        return call(self.f, "PyObject_RichCompareBool", "i32", one, two, equal)

    def _satisfies(self) -> None:
        """A Python predicate decides."""
        f = self.f
        argument = f.local("ptr", self.value)
        given = (self.member("first"), argument.pointer, 1, _null(f))
        answer = call(f, "PyObject_Vectorcall", "ptr", *given)
        self.require(answer.is_not(0))
        call(f, "Py_DecRef", "void", answer)
        self.require(answer.is_(api(f, "True")))  # only compared: True never goes away

    def _length(self) -> None:
        """A tuple or list (`first`) of `low` entries."""
        self.type_is(self.member("first"))
        self.require(self.value.load("i64", at.SIZE).is_(self.member("low")))

    def _keys(self) -> None:
        """A dict of `low` entries whose keys, in order, are those at `second`."""
        f = self.f
        self.type_is(api(f, "dict"))
        count = self.member("low")
        self.require(call(f, "PyDict_Size", "i64", self.value).is_(count))
        position, key = f.local("i64", 0), f.local("ptr", 0)
        with f.count(count) as i:
            given = (self.value, position.pointer, key.pointer, _null(f))
            self.require(call(f, "PyDict_Next", "i32", *given).is_not(0))
            expected = self.member("second").item(i)
            with f.when(key.get().is_not(expected)):
                held = key.get()
                call(f, "Py_IncRef", "void", held)
                same = self._same(held, expected)
                call(f, "Py_DecRef", "void", held)
                self.require(same > 0)


def _disjoint() -> str:
    """Whether the byte ranges that must not overlap do not."""
    f = Function("disjoint", "i64", variant="ptr", slots="ptr")
    pairs = f["variant"].field(VARIANT, "pairs")
    with f.count(f["variant"].field(VARIANT, "pair_count")) as i:
        pair = pairs.at(i * PAIR.itemsize)
        one = f["slots"].item(pair.field(PAIR, "slot"), "i64")
        two = f["slots"].item(pair.field(PAIR, "other"), "i64")
        before = one + pair.field(PAIR, "high") <= two + pair.field(PAIR, "other_low")
        after = two + pair.field(PAIR, "other_high") <= one + pair.field(PAIR, "low")
        with f.when((before | after) ^ 1):
            f.give(0)
    f.give(1)
    return f.text()


# Storage


def _prepare() -> str:
    """Constants and temps to their slots, and the pool started: 1, or 0 with an exception set."""
    f = Function("prepare", "i64", variant="ptr", frame="ptr", arena="ptr")
    variant, slots = f["variant"], area(f, "slots")
    with f.count(variant.field(VARIANT, "constant_count")) as i:
        row = variant.field(VARIANT, "constants").at(i * PLACED.itemsize)
        slots.set_item(row.field(PLACED, "slot"), row.address(PLACED, "at").load("ptr"))
    with f.when(variant.field(VARIANT, "arena").is_not(0)):
        arena = f.call("take_arena", "ptr", variant)
        f["arena"].store(arena)
        with f.when(arena.is_(0)):
            call(f, "PyErr_NoMemory", "ptr")
            f.give(0)
        with f.count(variant.field(VARIANT, "temp_count")) as i:
            row = variant.field(VARIANT, "temps").at(i * PLACED.itemsize)
            slots.set_item(row.field(PLACED, "slot"), arena.at(row.field(PLACED, "at")))
    started = Value(f, "@pool_started", "ptr").load("i64")
    with f.when(variant.field(VARIANT, "parallel").is_not(0) & started.is_(0)):
        given = (api(f, "start_pool"), _null(f), 0, _null(f))
        done = call(f, "PyObject_Vectorcall", "ptr", *given)
        with f.when(done.is_(0)):
            f.give(0)
        call(f, "Py_DecRef", "void", done)
    f.give(1)
    return f.text()


def _take_arena() -> str:
    """The variant's own arena, or one from the cache when it has none or another thread uses it."""
    f = Function("take_arena", "ptr", "internal", variant="ptr")
    variant = f["variant"]
    block = variant.field(VARIANT, "arena_block")
    with f.when(block.is_not(0) & variant.field(VARIANT, "arena_busy").is_(0)):
        variant.set_field(VARIANT, "arena_busy", 1)
        f.give(block)
    f.give(f.call("take", "ptr", variant.field(VARIANT, "arena")))
    return f.text()


def _give_arena() -> str:
    f = Function("give_arena", "void", variant="ptr", arena="ptr")
    with f.when(f["arena"].is_(f["variant"].field(VARIANT, "arena_block"))):
        f["variant"].set_field(VARIANT, "arena_busy", 0)
        f.give()
    f.call("give", "void", f["arena"])
    f.give()
    return f.text()


def _output() -> str:
    """Storage for output number `index` that is not a small array: 1, or 0 with an exception
    set.
    """
    f = Function("output", "i64", variant="ptr", frame="ptr", output="ptr", index="i64")
    output, index, slots, results = f["output"], f["index"], area(f, "slots"), area(f, "results")
    kind, slot = output.field(OUTPUT, "kind"), output.field(OUTPUT, "slot")
    with f.when(kind.is_(at.LARGE)):
        array = f.call("allocate", "ptr", output)
        with f.when(array.is_(0)):
            f.give(0)
        results.set_item(index, array)
        slots.set_item(slot, array.load("ptr", at.DATA))
    with f.when(kind.is_(at.SCALAR)):
        place = output.field(OUTPUT, "bytes") * at.STORE
        slots.set_item(slot, area(f, "stores").at(place))
    with f.when(kind.is_(at.GIVEN)):
        value = area(f, "values").item(slot)
        call(f, "Py_IncRef", "void", value)
        results.set_item(index, value)
    f.give(1)
    return f.text()


def _allocate() -> str:
    """A new array; a large one lies in a recycled 64-byte aligned block that it owns."""
    f = Function("allocate", "ptr", output="ptr")
    output = f["output"]
    size = output.field(OUTPUT, "bytes")
    with f.when(output.field(OUTPUT, "kind").is_not(at.LARGE) | (size < at.LARGE_BYTES)):
        f.give(new_array(f, output))
    data = f.call("take", "ptr", size)
    with f.when(data.is_(0)):  # let NumPy say it, unless it finds memory, which is not aligned
        unaligned = new_array(f, output)
        with f.when(unaligned.is_not(0)):
            call(f, "Py_DecRef", "void", unaligned)
            call(f, "PyErr_NoMemory", "ptr")
        f.give(0)
    array = new_array(f, output, data)
    with f.when(array.is_(0)):
        f.call("give", "void", data)
        f.give(0)
    handler = api(f, "handler")
    call(f, "Py_IncRef", "void", handler)
    array.store(handler, at.HANDLER)
    array.store(array.load("i32", at.FLAGS) | at.OWNDATA, at.FLAGS)
    domain = f.constant(_TRACE_DOMAIN, "i32")
    call(f, "PyTraceMalloc_Track", "i32", domain, data.integer(), size)
    f.give(array)
    return f.text()


# Steps and results


def _segments() -> str:
    """A step in pieces of `segment` iterations, on all cores if it may; between pieces of long
    plans Ctrl-C is noticed.  Gives the status."""
    f = Function("segments", "i64", step="ptr", buffers="ptr", thread="ptr")
    step = f["step"]
    begin, end, extent = f.local("i64", 0), f.local("i64", 0), step.field(STEP, "extent")
    status = f.local("i64", 0)
    f.label("again")
    f.goto_if(begin.get() >= extent, "done")
    end.set(begin.get() + step.field(STEP, "segment"))
    with f.when(end.get() > extent):
        end.set(extent)
    where = (f["buffers"], step.field(STEP, "params"), begin.get(), end.get())
    grain, function = step.field(STEP, "grain"), step.field(STEP, "function")
    with f.when(grain.is_(0)):
        status.set(f.call(function, "i64", *where))
    with f.when(grain.is_not(0)):
        status.set(f.call("pool_run", "i64", function, *where, grain))
    f.goto_if(status.get().is_not(0), "done")
    with f.when(step.field(STEP, "check").is_not(0)):
        _signals(f, status)
        f.goto_if(status.get().is_not(0), "done")
    begin.set(end.get())
    f.goto("again")
    f.label("done")
    f.give(status.get())
    return f.text()


@contextmanager
def _gil(f: Function) -> Iterator[None]:
    """With the GIL, which the call may have released (then `thread` is not null)."""
    thread = f["thread"].load("ptr")
    with f.when(thread.is_not(0)):
        call(f, "PyEval_RestoreThread", "void", thread)
    yield
    with f.when(thread.is_not(0)):
        f["thread"].store(call(f, "PyEval_SaveThread", "ptr"))


def _signals(f: Function, status: Local) -> None:
    """Look for pending signals."""
    with _gil(f), f.when(call(f, "PyErr_CheckSignals", "i32").is_not(0)):
        status.set(_ERROR)


def _host() -> str:
    """A Python function on views of the slots; its result goes to the output views.

    `buffers` holds the views.  The function must not keep them: they do not own their memory.
    """
    f = Function("host", "i64", step="ptr", slots="ptr", buffers="ptr", thread="ptr")
    step, views = f["step"], f["buffers"]
    inputs, outputs = step.field(STEP, "inputs"), step.field(STEP, "outputs")
    count, status, result = inputs + outputs, f.local("i64", _ERROR), f.local("ptr", 0)
    function, out = step.field(STEP, "function"), step.field(STEP, "out")
    with _gil(f):
        f.goto_if(f.call("views", "i64", step, f["slots"], views, count).is_(0), "drop")
        result.set(call(f, "PyObject_Vectorcall", "ptr", function, views, inputs, out))
        with f.when(result.get().is_(0)):
            left = call(f, "PyErr_ExceptionMatches", "i32", api(f, "LeftToPython"))
            with f.when(left.is_not(0)):
                call(f, "PyErr_Clear", "void")
                status.set(_LEFT)
        f.goto_if(result.get().is_(0), "drop")
        status.set(0)
        f.goto_if(out.is_not(0), "drop")
        targets = views.at(inputs * 8)
        status.set(f.call("assign", "i64", targets, outputs, result.get()))
        f.label("drop")
        f.call("drop", "void", views, count)
        with f.when(result.get().is_not(0)):
            call(f, "Py_DecRef", "void", result.get())
    f.give(status.get())
    return f.text()


def _views() -> str:
    """Arrays over the slots, or null ones: 1, or 0 with an exception set."""
    f = Function("views", "i64", "internal", step="ptr", slots="ptr", views="ptr", count="i64")
    with f.count(f["count"]) as i:
        f["views"].set_item(i, _null(f))
    with f.count(f["count"]) as i:
        row = f["step"].field(STEP, "views").at(i * OUTPUT.itemsize)
        view = new_array(f, row, f["slots"].item(row.field(OUTPUT, "slot")))
        f["views"].set_item(i, view)
        with f.when(view.is_(0)):
            f.give(0)
    f.give(1)
    return f.text()


def _drop() -> str:
    """Give back references; null ones are left alone."""
    f = Function("drop", "void", "internal", objects="ptr", count="i64")
    with f.count(f["count"]) as i:
        one = f["objects"].item(i)
        with f.when(one.is_not(0)):
            call(f, "Py_DecRef", "void", one)
    f.give()
    return f.text()


def _assign() -> str:
    """targets[0][...] = result, or each target its element of the result: a status."""
    f = Function("assign", "i64", "internal", targets="ptr", count="i64", result="ptr")
    with f.when(f["count"].is_(1)):
        done = call(f, "PyArray_CopyObject", "i32", f["targets"].item(0), f["result"])
        f.give(done.integer())
    with f.count(f["count"]) as i:
        element = call(f, "PySequence_GetItem", "ptr", f["result"], i)
        with f.when(element.is_(0)):
            f.give(_ERROR)
        done = call(f, "PyArray_CopyObject", "i32", f["targets"].item(i), element)
        call(f, "Py_DecRef", "void", element)
        with f.when(done.is_not(0)):
            f.give(_ERROR)
    f.give(0)
    return f.text()


def _pack() -> str:
    """Scalars made; then the one result, a tuple of them, or None when there is nothing to
    return.
    """
    f = Function("pack", "ptr", variant="ptr", frame="ptr")
    variant, slots, results = f["variant"], area(f, "slots"), area(f, "results")
    single, count = variant.field(VARIANT, "single"), variant.field(VARIANT, "output_count")
    with f.count(count) as i:
        output = variant.field(VARIANT, "outputs").at(i * OUTPUT.itemsize)
        with f.when(output.field(OUTPUT, "kind").is_(at.SCALAR)):
            data = slots.item(output.field(OUTPUT, "slot"))
            given = (data, output.field(OUTPUT, "descr"), _null(f))
            scalar = call(f, "PyArray_Scalar", "ptr", *given)
            results.set_item(i, scalar)
            with f.when(scalar.is_(0)):
                f.give(0)
    finish = variant.field(VARIANT, "finish")
    f.goto_if(single.is_(0) | finish.is_not(0), "tuple")
    with f.when(count.is_not(0)):
        f.give(results.item(0))
    call(f, "Py_IncRef", "void", api(f, "None"))
    f.give(api(f, "None"))
    f.label("tuple")
    result = call(f, "PyTuple_New", "ptr", count)
    with f.when(result.is_not(0)):
        with f.count(count) as i:
            call(f, "PyTuple_SetItem", "i32", result, i, results.item(i))
            results.set_item(i, _null(f))
        with f.when(finish.is_not(0)):
            f.give(_python(f, finish, result))
    f.give(result)
    return f.text()


# Into Python


def _fail() -> str:
    """Drop the results; a step's own status then goes to Python: failed(args, plan, step,
    status).
    """
    f = Function(
        "fail", "ptr",
        record="ptr", variant="ptr", args="ptr", frame="ptr", step="i64", status="i64",
    )  # fmt: skip
    variant, results = f["variant"], area(f, "results")
    f.call("drop", "void", results, variant.field(VARIANT, "output_count"))
    with f.when(f["status"].is_(0) | call(f, "PyErr_Occurred", "ptr").is_not(0)):
        f.give(0)
    positional = f.call("arguments", "ptr", f["args"], variant.field(VARIANT, "positional"))
    plan = variant.field(VARIANT, "owner")
    call(f, "Py_IncRef", "void", plan)
    numbers = [call(f, "PyLong_FromLongLong", "ptr", f[n]) for n in ("step", "status")]
    f.give(_python(f, f["record"].field(RECORD, "failed"), positional, plan, *numbers))
    return f.text()


def _slow() -> str:
    """slow(args, kwargs)."""
    f = Function("slow", "ptr", function="ptr", args="ptr", count="i64", names="ptr")
    names = f["names"]
    positional = f.call("arguments", "ptr", f["args"], f["count"])
    keywords = call(f, "PyDict_New", "ptr")
    with (
        f.when(names.is_not(0) & keywords.is_not(0)),
        f.count(call(f, "PyTuple_Size", "i64", names)) as i,
    ):
        name, value = call(f, "PyTuple_GetItem", "ptr", names, i), f["args"].item(f["count"] + i)
        with f.when(call(f, "PyDict_SetItem", "i32", keywords, name, value) < 0):
            call(f, "Py_DecRef", "void", keywords)
            call(f, "Py_DecRef", "void", positional)
            f.give(0)
    f.give(_python(f, f["function"], positional, keywords))
    return f.text()


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
    """Call a Python callable with arguments whose references it takes; a null one is an error."""
    array, result = f.reserve("ptr", len(args)), f.local("ptr", 0)
    missing = f.constant(0, "i1")
    for i, value in enumerate(args):
        array.set_item(i, value)
        missing = missing | value.is_(0)
    with f.when(missing ^ 1):
        given = (function, array, len(args), _null(f))
        result.set(call(f, "PyObject_Vectorcall", "ptr", *given))
    for value in args:
        with f.when(value.is_not(0)):
            call(f, "Py_DecRef", "void", value)
    return result.get()
