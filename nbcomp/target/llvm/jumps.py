"""Ways out of a kernel: a status and what it is about, and the look-out for Ctrl-C.

`poll` is what a loop that may run for ever does now and then: it takes the GIL, which the call may
have released, and lets Python handle signals; a handler that raises ends the kernel.  A call that
has not released it does so at its first poll, for the rest of the kernel, as it may be long.
"""

from __future__ import annotations

import ctypes

from nbcomp.loop.grammar import INTERRUPTED, STATUS_BITS, Exit, If, Stmt
from nbcomp.target.llvm.builder import Builder, Value

_POLL = """define internal i32 @nbcomp_poll(ptr %released) noinline cold nounwind {
  %gil = call i32 @PyGILState_Ensure()
  %found = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %gil)
  %held = icmp eq i32 %gil, 0
  %on = icmp eq i32 %found, 0
  %long = and i1 %held, %on
  br i1 %long, label %let, label %end
let:
  %thread = call ptr @PyEval_SaveThread()
  store ptr %thread, ptr %released
  br label %end
end:
  ret i32 %found
}"""
_FUNCTIONS = {
    "PyGILState_Ensure": ("i32",),
    "PyErr_CheckSignals": ("i32",),
    "PyGILState_Release": ("void", "i32"),
    "PyEval_SaveThread": ("ptr",),
    "PyEval_RestoreThread": ("void", "ptr"),
}

RARE = ', !prof !{!"branch_weights", i32 1, i32 9999}'  # of a branch that is hardly ever taken
_STATUS = f"""define internal i64 @nbcomp_status(i64 %detail, i64 %code) noinline cold nounwind {{
  %high = shl i64 %detail, {STATUS_BITS}
  %status = or i64 %high, %code
  ret i64 %status
}}"""


def fails(body: tuple[Stmt, ...]) -> bool:
    """Whether a body is there to end the kernel: an exit, or a check that leads to one."""
    first = body[0] if body else None
    if isinstance(first, If):
        return fails(first.yes)
    return isinstance(first, Exit)


def leave_kernel(b: Builder, code: int, detail: Value | None) -> None:
    """Return a status: the code in the low bits, the detail above."""
    if detail is None:
        b.effect(f"ret i64 {code}")
        return
    # Out of line: LLVM would otherwise keep the shifted index in the loop, ready to be returned.
    b.declarations.setdefault("nbcomp_status", _STATUS)
    status = b.emit(f"call i64 @nbcomp_status(i64 {detail.text}, i64 {code})", "i64")
    b.effect(f"ret i64 {status.text}")


def poll(b: Builder, entry: list[str], every: int, number: int) -> str:
    """Count down from `every`, then look for an interrupt; the label to go on with."""
    for name, types in _FUNCTIONS.items():
        b.declare(name, *types)
    b.declarations.setdefault("nbcomp_poll", _POLL)
    left = f"%countdown{number}"
    entry.append(f"  {left} = alloca i64")
    entry.append(f"  store i64 {every}, ptr {left}")
    before = b.emit(f"load i64, ptr {left}", "i64")
    after = b.emit(f"sub i64 {before.text}, 1", "i64")
    b.effect(f"store i64 {after.text}, ptr {left}")
    due = b.emit(f"icmp eq i64 {after.text}, 0", "i1")
    b.effect(f"br {due}, label %poll{number}, label %on{number}{RARE}")
    b.label(f"poll{number}")
    b.effect(f"store i64 {every}, ptr {left}")
    found = b.emit("call i32 @nbcomp_poll(ptr %released)", "i32")
    stop = b.emit(f"icmp ne i32 {found.text}, 0", "i1")
    b.effect(f"br {stop}, label %stop{number}, label %on{number}{RARE}")
    b.label(f"stop{number}")
    b.effect(f"ret i64 {INTERRUPTED}")
    return f"on{number}"


def polls(b: Builder) -> bool:
    """Whether the code polls; its function is given `%released` then."""
    return "nbcomp_poll" in b.declarations


def around_polls(call: str) -> list[str]:
    """A call of a function that polls, `%r`, with the GIL afterwards if it was there before."""
    return [
        "  %released = alloca ptr",
        "  store ptr null, ptr %released",
        call,
        "  %thread = load ptr, ptr %released",
        "  %gone = icmp ne ptr %thread, null",
        f"  br i1 %gone, label %take, label %done{RARE}",
        "take:",
        "  call void @PyEval_RestoreThread(ptr %thread)",
        "  br label %done",
        "done:",
    ]


def symbols(text: str) -> dict[str, int]:
    """What code that polls needs to find: functions of Python's and their addresses."""
    if "@nbcomp_poll" not in text:
        return {}
    python = ctypes.pythonapi
    cast = ctypes.cast
    return {name: cast(getattr(python, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS}
