"""The native entry, as LLVM text: walk the variants, check their guards, run the first that holds.

`entry` is what Python calls (METH_FASTCALL | METH_KEYWORDS; a `Callable` calls `vectorcall`),
`match` runs one variant's guard program over the arguments and gives the variant to run (another
one where lengths are open, see `size_code`), `run` allocates outputs and runs the steps.  They
interpret the structs of `layout`; nothing here depends on a particular plan.  This is only what a
small call needs; everything rarer is a call into `rare_code`, whose machine code is even cheaper to
make.

The frame of a call lies on the stack if small, in areas whose offsets the variant states: values
(arguments, then what was fetched, which the call owns), slots, scalar storage, a step's buffers,
and the results.
"""

from __future__ import annotations

from nbcomp.runtime import layout as at
from nbcomp.runtime.emit import Function, Local, Value
from nbcomp.runtime.layout import CHECK, OUTPUT, RECORD, STEP, TABLE, VARIANT, api, call

_STACK = 3072  # bytes; larger frames lie on the heap (a page or more would need stack probes)
# With register allocation but without the optimiser (for which the module is generated at level 1):
# within 10 % of the speed of optimised code, at less than half of the time to compile it.
QUICK = "noinline optnone"


def emit() -> list[str]:
    """The definitions; the module must also hold `@api`."""
    return [_vectorcall(), _entry(), _match(), _run()]


def area(f: Function, name: str) -> Value:
    """One area of the frame of a function with `variant` and `frame`."""
    return f["frame"].at(f["variant"].field(VARIANT, name))


def _vectorcall() -> str:
    """The entry as PEP 590 wants it: the record lies in the object that is called."""
    f = Function("vectorcall", "ptr", callable="ptr", args="ptr", count="i64", names="ptr")
    f.attributes = QUICK
    record = f["callable"].load("ptr", at.CALLABLE_RECORD)
    with f.when(record.is_(0)):  # cleared by the garbage collector
        call(f, "PyErr_SetNone", "void", api(f, "ReferenceError"))
        f.give(0)
    count = f["count"] & ~at.ARGUMENTS_OFFSET
    f.give(f.call("entry", "ptr", record, f["args"], count, f["names"]))
    return f.text()


def _entry() -> str:
    f = Function("entry", "ptr", self="ptr", args="ptr", count="i64", names="ptr")
    f.attributes = QUICK
    record = f["self"].load("ptr", at.DATA)
    with f.when(record.is_(0)):  # cleared by the garbage collector
        call(f, "PyErr_SetNone", "void", api(f, "ReferenceError"))
        f.give(0)
    args, count = f.local("ptr", f["args"]), f.local("i64", f["count"])
    rest, result = f.local("ptr", 0), f.local("ptr", 0)
    plain = f["names"].is_(0)
    exact = record.field(RECORD, "names").is_(0) | count.get().is_(record.field(RECORD, "exact"))
    with f.when((plain & exact) ^ 1):
        bound = f.reserve("ptr", at.PARAMETERS)
        call_ = (record, f["args"], f["count"], f["names"], bound, rest.pointer)
        f.goto_if(call(f, "bind", "i64", *call_).is_(0), "refused")
        args.set(bound)
        count.set(record.field(RECORD, "count"))
    table = record.field(RECORD, "table")
    size = table.field(TABLE, "frame")
    frame, heap = f.local("ptr", f.reserve("<2 x i64>", _STACK // 16)), f.local("ptr", 0)
    with f.when(size > _STACK):
        heap.set(call(f, "PyMem_RawMalloc", "ptr", size))
        f.goto_if(heap.get().is_(0), "refused")
        frame.set(heap.get())
    record.set_field(RECORD, "active", record.field(RECORD, "active") + 1)
    with f.count(table.field(TABLE, "count")) as index:
        variant = table.at(TABLE.itemsize).item(index)
        with f.when(variant.field(VARIANT, "positional").is_(count.get())):
            chosen = f.call("match", "ptr", variant, args.get(), frame.get())
            with f.when(chosen.is_not(0)):
                given = (record, chosen, args.get(), frame.get())
                chosen.set_field(VARIANT, "busy", chosen.field(VARIANT, "busy") + 1)
                result.set(f.call("run", "ptr", *given))
                chosen.set_field(VARIANT, "busy", chosen.field(VARIANT, "busy") - 1)
                f.goto("finish")
    _leave(f, record, heap)
    f.label("refused")
    slow = record.field(RECORD, "slow")
    result.set(call(f, "slow", "ptr", slow, f["args"], f["count"], f["names"]))
    f.goto("end")
    f.label("finish")
    _leave(f, record, heap)
    f.label("end")
    with f.when(rest.get().is_not(0)):
        call(f, "Py_DecRef", "void", rest.get())
    f.give(result.get())
    return f.text()


def _leave(f: Function, record: Value, heap: Local) -> None:
    """Undo what `entry` did at its start."""
    record.set_field(RECORD, "active", record.field(RECORD, "active") - 1)
    block = heap.get()
    with f.when(block.is_not(0)):
        call(f, "PyMem_RawFree", "void", block)


# Guards


class Checks:
    """Code that checks one value against one instruction of a guard program; failing goes to
    "fail".
    """

    def __init__(self, f: Function) -> None:
        self.f = f
        self.check = self.value = f.constant(0, "ptr")

    def require(self, condition: Value) -> None:
        """Go on only when a condition holds."""
        after = self.f.fresh("ok")
        self.f.branch(condition, after, "fail")
        self.f.label(after)

    def type_is(self, kind: Value) -> None:
        """The value has exactly this type."""
        self.require(self.value.load("ptr", at.TYPE).is_(kind))

    def member(self, name: str) -> Value:
        """A member of the instruction."""
        return self.check.field(CHECK, name)


class _Match(Checks):
    """The body of `match`: the common checks, one block each."""

    def text(self) -> str:
        f = self.f
        f.attributes = QUICK
        values, self.slots, self.stores = (area(f, n) for n in ("values", "slots", "stores"))
        variant, fetched, following, left = (
            f["variant"],
            f.local("i64"),
            f.local("ptr"),
            f.local("i64"),
        )
        positional = variant.field(VARIANT, "positional")
        with f.count(positional) as i:
            values.set_item(i, f["args"].item(i))
        fetched.set(positional)
        following.set(variant.field(VARIANT, "checks"))
        left.set(variant.field(VARIANT, "check_count"))
        f.label("step")
        f.goto_if(left.get().is_(0), "pairs")
        left.set(left.get() - 1)
        self.check = following.get()
        following.set(self.check.at(CHECK.itemsize))
        index = self.member("value").integer()
        self.value = values.item(index)
        cases = {
            at.IS_ARRAY: self._array,
            at.IS_FLOAT: self._float,
            at.IS_INT: self._int,
            at.IS_BOOL: self._bool,
            at.IS_OBJECT: self._identity,
            at.IS_NUMPY: self._numpy_scalar,
        }
        f.switch(self.member("op"), {n: f"op{n}" for n in cases}, "rare")
        for number, block in cases.items():
            f.label(f"op{number}")
            block()
            f.goto("step")
        f.label("rare")
        answer = call(f, "check", "i64", self.check, values)
        self.require(answer.is_not(0))
        with f.when(answer.is_(at.FETCHED)):
            fetched.set(index + 1)
        f.goto("step")
        f.label("pairs")
        chosen = f.local("ptr", variant)
        with f.when(variant.field(VARIANT, "open").is_not(0)):
            chosen.set(call(f, "settle", "ptr", variant, values))
            self.require(chosen.get().is_not(0))
        with f.when(variant.field(VARIANT, "pair_count").is_not(0)):
            self.require(call(f, "disjoint", "i64", chosen.get(), self.slots).is_not(0))
        f.give(chosen.get())
        f.label("fail")
        release(f, values, fetched.get())
        f.give(0)
        return f.text()

    def _array(self) -> None:
        f, value = self.f, self.value
        self.type_is(api(f, "PyArray_Type"))
        nd = self.member("low")
        self.require(value.load("i32", at.NDIM).integer().is_(nd))
        dims, strides = value.load("ptr", at.DIMS), value.load("ptr", at.STRIDES)
        wanted = self.member("second")
        with f.count(nd) as i:  # wanted: dim, its mask, stride, its mask, of each axis
            row = wanted.at(i * 32)
            off = (dims.item(i, "i64") ^ row.load("i64")) & row.load("i64", 8)
            other = (strides.item(i, "i64") ^ row.load("i64", 16)) & row.load("i64", 24)
            self.require((off | other).is_(0))
        flags = self.member("high")
        self.require((value.load("i32", at.FLAGS).integer() & flags).is_(flags))
        descr, expected = value.load("ptr", at.DESCR), self.member("first")
        with f.when(descr.is_not(expected)):  # another descriptor may mean the same dtype
            self.require(descr.load("i8", at.KIND).is_(expected.load("i8", at.KIND)))
            self.require(call(f, "PyArray_EquivTypes", "i8", descr, expected).is_not(0))
        self.slots.set_item(self.member("slot"), value.load("ptr", at.DATA))

    def _store(self) -> Value:
        """The scalar's storage, whose address goes to its slot."""
        place = self.stores.at(self.member("store").integer() * at.STORE)
        self.slots.set_item(self.member("slot"), place)
        return place

    def _float(self) -> None:
        self.type_is(api(self.f, "float"))
        self._store().store(self.value.load("double", at.FLOAT))

    def _int(self) -> None:
        f = self.f
        self.type_is(api(f, "int"))
        overflow = f.local("i32", 0)
        number = call(f, "PyLong_AsLongLongAndOverflow", "i64", self.value, overflow.pointer)
        self.require(overflow.get().is_(0))
        self.require((number >= self.member("low")) & (number <= self.member("high")))
        self._store().store(number)

    def _bool(self) -> None:
        self.type_is(api(self.f, "bool"))
        is_true = self.value.is_(api(self.f, "True"))
        self._store().store(self.f.select(is_true, 1, 0, "i8"))

    def _numpy_scalar(self) -> None:
        self.type_is(self.member("first"))
        self.slots.set_item(self.member("slot"), self.value.at(at.OBVAL))

    def _identity(self) -> None:
        self.require(self.value.is_(self.member("first")))


def _match() -> str:
    return _Match(
        Function("match", "ptr", "internal", variant="ptr", args="ptr", frame="ptr")
    ).text()


def release(f: Function, values: Value, upto: Value) -> None:
    """Give back the values fetched so far: indices positional … upto - 1."""
    first = f["variant"].field(VARIANT, "positional")
    with f.count(upto - first) as i:
        call(f, "Py_DecRef", "void", values.item(first + i))


# Running


def _run() -> str:
    f = Function("run", "ptr", "internal", record="ptr", variant="ptr", args="ptr", frame="ptr")
    f.attributes = QUICK
    variant, slots, results = f["variant"], area(f, "slots"), area(f, "results")
    outputs, count = variant.field(VARIANT, "outputs"), variant.field(VARIANT, "output_count")
    result, thread, arena = f.local("ptr", 0), f.local("ptr", 0), f.local("ptr", 0)
    status, number = f.local("i64", 0), f.local("i64", 0)
    with f.count(count) as i:
        results.set_item(i, f.constant(0, "ptr"))
    with f.when(variant.field(VARIANT, "prepare").is_not(0)):
        ready = call(f, "prepare", "i64", variant, f["frame"], arena.pointer)
        f.goto_if(ready.is_(0), "fail")
    with f.count(count) as i:
        output = outputs.at(i * OUTPUT.itemsize)
        plain = output.field(OUTPUT, "kind").is_(at.SMALL)
        with f.when(plain):
            array = new_array(f, output)
            f.goto_if(array.is_(0), "fail")
            results.set_item(i, array)
            slots.set_item(output.field(OUTPUT, "slot"), array.load("ptr", at.DATA))
        with f.when(plain ^ 1):
            made = call(f, "output", "i64", variant, f["frame"], output, i)
            f.goto_if(made.is_(0), "fail")
    with f.when(variant.field(VARIANT, "release").is_not(0)):
        thread.set(call(f, "PyEval_SaveThread", "ptr"))
    _steps(f, slots, thread, status, number)
    with f.when(thread.get().is_not(0)):
        call(f, "PyEval_RestoreThread", "void", thread.get())
    f.goto_if(status.get().is_not(0), "fail")
    result.set(results.item(0))
    with f.when(variant.field(VARIANT, "pack").is_not(0)):
        result.set(call(f, "pack", "ptr", variant, f["frame"]))
        f.goto_if(result.get().is_(0), "fail")
    f.label("clean")
    with f.when(arena.get().is_not(0)):
        call(f, "give_arena", "void", variant, arena.get())
    release(f, area(f, "values"), variant.field(VARIANT, "value_count"))
    f.give(result.get())
    f.label("fail")
    given = (f["record"], variant, f["args"], f["frame"], number.get(), status.get())
    result.set(call(f, "fail", "ptr", *given))
    f.goto("clean")
    return f.text()


def _steps(f: Function, slots: Value, thread: Local, status: Local, number: Local) -> None:
    """Run the steps in order until one has a status; `number` says which."""
    buffers, steps = area(f, "buffers"), f["variant"].field(VARIANT, "steps")
    with f.count(f["variant"].field(VARIANT, "step_count")) as at_step:
        number.set(at_step)
        step = steps.at(at_step * STEP.itemsize)
        indices = step.field(STEP, "slots")
        with f.count(step.field(STEP, "count")) as i:
            buffers.set_item(i, slots.item(indices.item(i, "i64")))
        kind = step.field(STEP, "kind")
        with f.when(kind.is_(at.PLAIN)):
            function, params = step.field(STEP, "function"), step.field(STEP, "params")
            status.set(f.call(function, "i64", buffers, params, 0, step.field(STEP, "extent")))
        with f.when(kind.is_(at.PIECES)):
            status.set(call(f, "segments", "i64", step, buffers, thread.pointer))
        with f.when(kind.is_(at.HOST)):
            status.set(call(f, "host", "i64", step, slots, buffers, thread.pointer))
        f.goto_if(status.get().is_not(0), "stopped")
    f.label("stopped")


def new_array(f: Function, output: Value, data: Value | None = None) -> Value:
    """PyArray_NewFromDescr for a row of OUTPUT: over `data`, else over memory of NumPy's own."""
    descr = output.field(OUTPUT, "descr")
    call(f, "Py_IncRef", "void", descr)
    nd = f.value(f"trunc {output.field(OUTPUT, 'nd')} to i32", "i32")
    shape = (nd, output.field(OUTPUT, "dims"), output.field(OUTPUT, "strides"))
    null = f.constant(0, "ptr")
    # Flags describe given data; without any, a flag other than 0 would ask for Fortran order.
    flags = f.constant(at.ALIGNED | at.WRITEABLE if data else 0, "i32")
    given = (api(f, "PyArray_Type"), descr, *shape, data or null, flags, null)
    return call(f, "PyArray_NewFromDescr", "ptr", *given)
