"""Fake kernels for the run time's tests: small functions of a step's signature, and plans."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from nbcomp.runtime.engine import Code, load
from nbcomp.runtime.plan import ArrayGuard, Guard, Output, Plan, ScalarGuard, Source, Step
from nbcomp.types import FLOAT64, DType

_BODY = """
define i64 @{name}(ptr %buffers, ptr %params, i64 %begin, i64 %end) {{
entry:
{head}
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
{body}
  %next = add i64 %i, 1
  br label %loop
done:
  ret i64 0
}}
"""


def _buffer(index: int) -> str:
    return f"""  %p{index} = getelementptr ptr, ptr %buffers, i64 {index}
  %b{index} = load ptr, ptr %p{index}"""


def _element(buffer: int, index: str = "%i") -> str:
    return f"  %e{buffer} = getelementptr double, ptr %b{buffer}, i64 {index}"


_LOADS = "  %x = load double, ptr %e0\n  %y = load double, ptr %e1"

# add: c = a + b.  scale: b = a * (the double at buffer 1), c at buffer 2.  increment: a += 1.
# chunk: out[i] = sum of params[0] doubles from a[i * params[0]].  status: returns params[0].
# spin: params[0] rounds of work that cannot be optimised away.  iota: a[i] = i.
_TEXT = "\n".join(
    (
        _BODY.format(
            name="add",
            head="\n".join(map(_buffer, range(3))),
            body="\n".join(map(_element, range(3)))
            + f"\n{_LOADS}\n  %s = fadd double %x, %y\n  store double %s, ptr %e2",
        ),
        _BODY.format(
            name="scale",
            head="\n".join(map(_buffer, range(3))),
            body="\n".join((_element(0), _element(1, "0"), _element(2)))
            + f"\n{_LOADS}\n  %s = fmul double %x, %y\n  store double %s, ptr %e2",
        ),
        _BODY.format(
            name="increment",
            head=_buffer(0),
            body=_element(0)
            + "\n  %x = load double, ptr %e0\n  %s = fadd double %x, 1.0"
            + "\n  store double %s, ptr %e0",
        ),
        _BODY.format(
            name="iota",
            head=_buffer(0),
            body=_element(0) + "\n  %s = sitofp i64 %i to double\n  store double %s, ptr %e0",
        ),
        """
define i64 @chunk(ptr %buffers, ptr %params, i64 %begin, i64 %end) {
entry:
  %b0 = load ptr, ptr %buffers
  %p1 = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %p1
  %size = load i64, ptr %params
  br label %outer
outer:
  %i = phi i64 [ %begin, %entry ], [ %following, %store ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %start, label %done
start:
  %base = mul i64 %i, %size
  br label %inner
inner:
  %j = phi i64 [ 0, %start ], [ %next, %step ]
  %sum = phi double [ 0.0, %start ], [ %longer, %step ]
  %inside = icmp slt i64 %j, %size
  br i1 %inside, label %step, label %store
step:
  %at = add i64 %base, %j
  %e = getelementptr double, ptr %b0, i64 %at
  %x = load double, ptr %e
  %longer = fadd double %sum, %x
  %next = add i64 %j, 1
  br label %inner
store:
  %o = getelementptr double, ptr %b1, i64 %i
  store double %sum, ptr %o
  %following = add i64 %i, 1
  br label %outer
done:
  ret i64 0
}
define i64 @status(ptr %buffers, ptr %params, i64 %begin, i64 %end) {
  %s = load i64, ptr %params
  ret i64 %s
}
define i64 @copy8(ptr %buffers, ptr %params, i64 %begin, i64 %end) {
  %b0 = load ptr, ptr %buffers
  %p1 = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %p1
  %x = load i64, ptr %b0
  store i64 %x, ptr %b1
  ret i64 0
}
define i64 @copy1(ptr %buffers, ptr %params, i64 %begin, i64 %end) {
  %b0 = load ptr, ptr %buffers
  %p1 = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %p1
  %x = load i8, ptr %b0
  store i8 %x, ptr %b1
  ret i64 0
}
define i64 @spin(ptr %buffers, ptr %params, i64 %begin, i64 %end) {
entry:
  %each = load i64, ptr %params
  %count = sub i64 %end, %begin
  %rounds = mul i64 %each, %count
  %cell = alloca i64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store volatile i64 %i, ptr %cell
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %rounds
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}
""",
    )
)

NAMES = ("add", "scale", "increment", "iota", "chunk", "status", "copy8", "copy1", "spin")


@cache
def code() -> Code:
    """The kernels, compiled once."""
    return load(_TEXT, NAMES)


def step(name: str, slots: tuple[int, ...], params: tuple[int, ...] = (), **rest: Any) -> Step:
    """A step that runs one of the kernels."""
    return Step(code()[name], slots, params, name=name, **rest)


def argument(position: int, *path: tuple[str, Any]) -> Source:
    """A positional argument, or what a path from it reaches."""
    return Source("argument", position, path=path)


def like(array: np.ndarray[Any, Any], source: Source, slot: int, **rest: Any) -> ArrayGuard:
    """The guard that this array passes."""
    return ArrayGuard(source, array.dtype, array.shape, array.strides, slot, **rest)


def add_plan(size: int, dtype: DType = FLOAT64, **rest: Any) -> Plan:
    """Two vectors added."""
    sample = np.empty(size, dtype)
    return Plan(
        guards=(like(sample, argument(0), 0), like(sample, argument(1), 1)),
        positional=2,
        slots=3,
        outputs=(Output(dtype, (size,), 2),),
        steps=(step("add", (0, 1, 2), extent=size),),
        **rest,
    )


def scale_plan(size: int, guard: Guard, positional: int = 2) -> Plan:
    """A vector times a float that the guard puts into slot 1."""
    sample = np.empty(size)
    return Plan(
        guards=(like(sample, argument(0), 0), guard),
        positional=positional,
        slots=3,
        outputs=(Output(FLOAT64, (size,), 2),),
        steps=(step("scale", (0, 1, 2), extent=size),),
    )


def guarded_plan(*guards: Guard, positional: int = 1, value: float = 1.0) -> Plan:
    """A plan that only tests guards: it returns [value]."""
    return Plan(
        guards=guards,
        positional=positional,
        slots=4,
        outputs=(Output(FLOAT64, (1,), 3),),
        constants={2: np.array([value])},
        steps=(step("copy8", (2, 3)),),
    )


def scalar_plan(kind: type, copy: str, output: DType, **limits: int) -> Plan:
    """A Python scalar handed back as a NumPy scalar of its storage's dtype."""
    return Plan(
        guards=(ScalarGuard(argument(0), kind, 0, **limits),),
        positional=1,
        slots=2,
        outputs=(Output(output, (), 1, scalar=True),),
        steps=(step(copy, (0, 1)),),
    )
