"""Lengths that are open, in the native entry: reads them, checks them and puts numbers in a plan.

A plan with open lengths has a few *instances*: variants like any other, with the numbers of the
lengths they saw last.  `settle` gives the one that has those of a call, or puts new numbers into
one that nobody is running.  As LLVM text; everything is done with the GIL held.
"""

from __future__ import annotations

from collections.abc import Callable

from nbcomp.runtime import layout as at
from nbcomp.runtime.emit import Function, Value
from nbcomp.runtime.layout import FORMULA, OPEN, PATCH, VARIANT

DECLARATIONS = [
    "declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)",
    "declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)",
]


def emit() -> list[str]:
    """The definitions."""
    return [_settle(), _patch(), _compute()]


def _settle() -> str:
    """The instance for the lengths of a call; null where the plan does not take them, or all
    instances are running."""
    f = Function("settle", "ptr", variant="ptr", values="ptr")
    opened = f["variant"].field(VARIANT, "open")
    registers = f.reserve("i64", at.REGISTERS)
    read = opened.field(OPEN, "read_count")
    instances, count = opened.field(OPEN, "instances"), opened.field(OPEN, "instance_count")

    def compute(name: str) -> Value:
        rows, number = opened.field(OPEN, f"{name}s"), opened.field(OPEN, f"{name}_count")
        return f.call("compute", "i64", rows, number, f["values"], registers)

    f.goto_if(compute("read").is_(0), "fail")
    same = f.local("i64", 0)
    with f.count(count) as k:
        instance = instances.item(k)
        seen = instance.field(VARIANT, "seen")
        same.set(1)
        with f.count(read) as i:
            equal = seen.item(i, "i64").is_(registers.item(i, "i64"))
            with f.when(equal ^ 1):
                same.set(0)
        with f.when(same.get().is_not(0)):
            f.give(instance)
    for part in ("check", "number"):
        f.goto_if(compute(part).is_(0), "fail")
    following = f.local("i64", opened.field(OPEN, "next"))
    with f.count(count):
        with f.when(following.get() >= count):
            following.set(0)
        instance = instances.item(following.get())
        following.set(following.get() + 1)
        with f.when(instance.field(VARIANT, "busy").is_(0)):
            f.call("patch", "void", instance, registers, read)
            opened.set_field(OPEN, "next", following.get())
            f.give(instance)
    f.label("fail")
    f.give(0)
    return f.text()


def _patch() -> str:
    """Put numbers into an instance."""
    f = Function("patch", "void", "internal", instance="ptr", registers="ptr", read="i64")
    instance, registers = f["instance"], f["registers"]
    seen = instance.field(VARIANT, "seen")
    with f.count(f["read"]) as i:
        seen.set_item(i, registers.item(i, "i64"))
    rows = instance.field(VARIANT, "patchs")
    with f.count(instance.field(VARIANT, "patch_count")) as i:
        row = rows.at(i * PATCH.itemsize)
        number = registers.item(row.field(PATCH, "register"), "i64")
        row.field(PATCH, "at").store(number)
    f.give()
    return f.text()


def _compute() -> str:
    """Run instructions: 1, or 0 where a check fails or a number leaves 64 bits."""
    f = Function(
        "compute", "i64", "internal", rows="ptr", count="i64", values="ptr", registers="ptr"
    )
    registers, values = f["registers"], f["values"]
    following, left = f.local("ptr", f["rows"]), f.local("i64", f["count"])
    f.label("step")
    with f.when(left.get().is_(0)):
        f.give(1)
    left.set(left.get() - 1)
    row = following.get()
    following.set(row.at(FORMULA.itemsize))
    a, b = (row.field(FORMULA, name).integer() for name in ("a", "b"))
    low, high = row.field(FORMULA, "low"), row.field(FORMULA, "high")
    to = row.field(FORMULA, "to").integer()

    def axis(where: int) -> None:
        numbers = values.item(a).load("ptr", where)
        registers.set_item(to, numbers.item(b, "i64"))

    def whole() -> None:
        overflow = f.local("i32", 0)
        read = (values.item(a), overflow.pointer)
        number = at.call(f, "PyLong_AsLongLongAndOverflow", "i64", *read)
        f.goto_if(overflow.get().is_not(0), "fail")
        f.goto_if(number.is_(at.NOT_SEEN), "fail")
        registers.set_item(to, number)

    def checked(name: str) -> None:
        x, y = registers.item(a, "i64"), registers.item(b, "i64")
        pair = f.value(f"call {{i64, i1}} @llvm.{name}.with.overflow.i64({x}, {y})", "{i64, i1}")
        lost = f.value(f"extractvalue {pair}, 1", "i1")
        f.goto_if(lost, "fail")
        registers.set_item(to, f.value(f"extractvalue {pair}, 0", "i64"))

    def quotient() -> None:
        x, y = registers.item(a, "i64"), registers.item(b, "i64")
        f.goto_if(y <= 0, "fail")
        down = f.value(f"sdiv {x}, {y.text}", "i64")
        rest = f.value(f"srem {x}, {y.text}", "i64")
        registers.set_item(to, down - f.select(rest < 0, 1, 0))

    def within() -> None:
        x = registers.item(a, "i64")
        f.goto_if((x < low) | (x > high), "fail")

    cases: dict[int, Callable[[], None]] = {
        at.LENGTH: lambda: axis(at.DIMS),
        at.STRIDE: lambda: axis(at.STRIDES),
        at.INT: whole,
        at.NUMBER: lambda: registers.set_item(to, low),
        at.ADD: lambda: checked("sadd"),
        at.MULTIPLY: lambda: checked("smul"),
        at.QUOTIENT: quotient,
        at.WITHIN: within,
        at.SAME: lambda: f.goto_if(
            registers.item(a, "i64").is_not(registers.item(b, "i64")), "fail"
        ),
        at.NOT_ZERO: lambda: f.goto_if(registers.item(a, "i64").is_(0), "fail"),
    }
    f.switch(row.field(FORMULA, "op"), {n: f"op{n}" for n in cases}, "fail")
    for number, block in cases.items():
        f.label(f"op{number}")
        block()
        f.goto("step")
    f.label("fail")
    f.give(0)
    return f.text()
