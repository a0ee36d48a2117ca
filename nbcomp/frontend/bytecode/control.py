"""Bytecode instructions that go elsewhere: jumps, loops, calls, `with`, `try`, `match`.

Knows calling conventions and iterators, not arrays.
"""

from __future__ import annotations

import opcode
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported, an
from nbcomp.frontend.bytecode import calls
from nbcomp.frontend.bytecode.instructions import Instruction
from nbcomp.frontend.bytecode.machine import Frame, Returned, Yielded
from nbcomp.frontend.bytecode.operations import cell
from nbcomp.frontend.bytecode.table import (
    COMMON,
    PYTHON_3_11,
    PYTHON_3_12,
    PYTHON_3_13,
    VERSION,
    Table,
    op,
)
from nbcomp.frontend.bytecode.values import NULL, Rows, force, noticed
from nbcomp.frontend.lift import Lazy
from nbcomp.frontend.location import here
from nbcomp.frontend.objects import Shadow
from nbcomp.frontend.reporting import HINT, REASON, Reports, Silent
from nbcomp.frontend.tracer import Tracer

# ------------------------------------------------------------------------------------- jumps


@op("JUMP_FORWARD")
def _jump(f: Frame, i: Instruction) -> None:
    f.jump(i.operand)


@op("JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump_backward(f: Frame, i: Instruction) -> None:
    f.machine.check_loop(f, i.operand)
    f.jump(i.operand)


def _jumps(condition: Callable[[Any], bool], *names: str, table: Table = COMMON) -> None:
    def execute(f: Frame, i: Instruction) -> None:
        if condition(noticed(f.stack[-1])):
            f.raw()
            if i.operand.index < i.index:
                f.machine.check_loop(f, i.operand)
            f.jump(i.operand)
        else:
            f.raw()

    op(*names, table=table)(execute)


for _table, _ways in ((PYTHON_3_11, ("FORWARD_", "BACKWARD_")), (PYTHON_3_12, ("",))):
    for _way in _ways:
        _jumps(bool, f"POP_JUMP_{_way}IF_TRUE", table=_table)
        _jumps(operator.not_, f"POP_JUMP_{_way}IF_FALSE", table=_table)
        _jumps(lambda v: v is None, f"POP_JUMP_{_way}IF_NONE", table=_table)
        _jumps(lambda v: v is not None, f"POP_JUMP_{_way}IF_NOT_NONE", table=_table)


@op("JUMP_IF_FALSE_OR_POP", table=PYTHON_3_11)
def _jump_if_false_or_pop(f: Frame, i: Instruction) -> None:
    if force(f.stack[-1]):
        f.raw()
    else:
        f.jump(i.operand)


@op("JUMP_IF_TRUE_OR_POP", table=PYTHON_3_11)
def _jump_if_true_or_pop(f: Frame, i: Instruction) -> None:
    if force(f.stack[-1]):
        f.jump(i.operand)
    else:
        f.raw()


# ------------------------------------------------------------------------------------- loops

_ITERABLE = (str, bytes, list, tuple, dict, range, set, frozenset)
_BEYOND = {(3, 11): 0, (3, 12): 1, (3, 13): 2}  # FOR_ITER skips END_FOR, and POP_TOP, at the end


def iterator(f: Frame, value: Any) -> Any:
    """`iter(value)`.  Raises `Unsupported` for objects that nothing is known about."""
    if type(value) is Tracer:
        return Rows(value)
    plain = type(value).__module__.startswith(("nbcomp.frontend", "itertools", "collections"))
    builtin = type(value).__module__ == "builtins"
    if not (plain or builtin or isinstance(value, (*_ITERABLE, Shadow))):
        kind = type(value).__name__
        raise Unsupported(f"a loop over {an(kind)} is run by Python", here())
    return iter(value)


@op("GET_ITER")
def _get_iter(f: Frame, i: Instruction) -> None:
    f.push(iterator(f, f.pop()))


@op("FOR_ITER")
def _for_iter(f: Frame, i: Instruction) -> None:
    if type(f.stack[-1]) is Lazy:
        raise Unsupported(
            "the loop is run by Python, its rounds in parts: it had begun before",
            here(),
            "nbcomp.script compiles the loop itself",
        )
    values = f.stack[-1]
    try:
        f.push(next(values))
    except StopIteration:
        f.raw()
        f.jump(i.operand, _BEYOND.get(VERSION, 2))


@op("END_FOR", table=PYTHON_3_12)
def _end_for(f: Frame, i: Instruction) -> None:
    f.raws(2 if VERSION == (3, 12) else 1)


@op("RETURN_GENERATOR")
def _return_generator(f: Frame, i: Instruction) -> Any:
    return Yielded(None)


@op("YIELD_VALUE")
def _yield_value(f: Frame, i: Instruction) -> Any:
    return Yielded(f.raw())


@op("RETURN_VALUE")
def _return_value(f: Frame, i: Instruction) -> Any:
    return Returned(f.raw())


@op("RETURN_CONST", table=PYTHON_3_12)
def _return_const(f: Frame, i: Instruction) -> Any:
    return Returned(i.operand)


# ------------------------------------------------------------------------------------- calls


@op("KW_NAMES")
def _kw_names(f: Frame, i: Instruction) -> None:
    f.keywords = i.operand


@op("CALL", table=PYTHON_3_11)
def _call_311(f: Frame, i: Instruction) -> None:
    args = f.raws(i.arg)
    first, second = f.raws(2)
    names, f.keywords = f.keywords, ()
    if first is NULL:
        _call(f, second, args, names)
    else:
        _call(f, first, [second, *args], names)


@op("CALL", table=PYTHON_3_13)
def _call_313(f: Frame, i: Instruction) -> None:
    args = f.raws(i.arg)
    function, first = f.raws(2)
    _call(f, function, args if first is NULL else [first, *args], ())


@op("CALL_KW", table=PYTHON_3_13)
def _call_kw(f: Frame, i: Instruction) -> None:
    names = f.pop()
    args = f.raws(i.arg)
    function, first = f.raws(2)
    _call(f, function, args if first is NULL else [first, *args], names)


def _call(f: Frame, function: Any, args: list[Any], names: tuple[str, ...]) -> None:
    count = len(args) - len(names)
    function = force(function)
    args = _super_arguments(f) if function is super and not args else args
    kwargs = dict(zip(names, args[count:], strict=True)) if names else {}
    f.push(f.machine.call(function, args[:count] if names else args, kwargs))


def callee(f: Frame) -> int | None:
    """Where in the stack the function is that the next instruction calls; None if it is no call."""
    i = f.instructions[f.index]
    if i.name == "PRECALL":
        i = f.instructions[f.index + 1]
    names = i.name == "CALL_KW"
    if i.name == "CALL_FUNCTION_EX":
        count = 1 + (i.arg & 1)
    elif i.name == "CALL" or names:
        count = i.arg + names
    else:
        return None
    first, second = len(f.stack) - count - 2, len(f.stack) - count - 1
    if VERSION >= (3, 13):
        return first
    return second if f.stack[first] is NULL else first


def _super_arguments(f: Frame) -> list[Any]:
    first = f.variables[f.f_code.co_varnames[0]]
    if type(first) is types.CellType:
        first = first.cell_contents
    return [cell(f, "__class__").cell_contents, force(first)]


@op("CALL_FUNCTION_EX")
def _call_function_ex(f: Frame, i: Instruction) -> None:
    kwargs = f.pop() if i.arg & 1 else {}
    args = f.pop()
    first, second = f.raws(2)
    function = second if first is NULL else first
    function = force(function)
    f.push(f.machine.call(function, list(iterator(f, args)), dict(kwargs)))


_PARTS = (("defaults", 1), ("kwdefaults", 2), ("annotations", 4), ("closure", 8))


@op("MAKE_FUNCTION")
def _make_function(f: Frame, i: Instruction) -> None:
    code = f.pop()
    parts = {name: f.pop() for name, flag in reversed(_PARTS) if i.arg & flag}
    f.push(f.machine.make_function(f, code, parts))


@op("MAKE_FUNCTION", table=PYTHON_3_13)
def _make_function_313(f: Frame, i: Instruction) -> None:
    f.push(f.machine.make_function(f, f.pop(), {}))


@op("SET_FUNCTION_ATTRIBUTE", table=PYTHON_3_13)
def _set_function_attribute(f: Frame, i: Instruction) -> None:
    value, function = f.pops(2)
    name = next(name for name, flag in _PARTS if flag == i.arg)
    f.push(f.machine.with_part(f, function, name, value))


_INTRINSICS: dict[str, Callable[[Any], Any]] = {
    "INTRINSIC_UNARY_POSITIVE": operator.pos,
    "INTRINSIC_LIST_TO_TUPLE": tuple,
}


@op("CALL_INTRINSIC_1", table=PYTHON_3_12)
def _call_intrinsic(f: Frame, i: Instruction) -> None:
    names: Any = opcode._intrinsic_1_descs  # type: ignore[attr-defined]
    function = _INTRINSICS.get(names[i.arg])
    if function is None:
        raise Unsupported(f"the bytecode instruction {names[i.arg]} is run by Python")
    f.push(function(f.pop()))


# -------------------------------------------------------------------------- with, try, match


@op("BEFORE_WITH")
def _before_with(f: Frame, i: Instruction) -> None:
    manager = f.pop()
    if isinstance(manager, np.errstate) and type(manager) is not Silent:
        raise Reports(REASON, here(), HINT)  # made elsewhere: it may be another in the next call
    if type(manager) is Silent:
        f.push(_leave_errstate)
        f.push(None)
        return
    if not isinstance(manager, Shadow) and calls.is_foreign(type(manager)):
        kind = type(manager).__name__
        raise Unsupported(
            f"`with` {an(kind)} is run by Python", here(), "compile what is inside it"
        )
    f.push(manager.__exit__)
    f.push(f.machine.call(manager.__enter__, [], {}))


def _leave_errstate(*error: Any) -> None:
    pass


@op("PUSH_EXC_INFO")
def _push_exc_info(f: Frame, i: Instruction) -> None:
    error = f.raw()
    f.push(None)
    f.push(error)


@op("CHECK_EXC_MATCH")
def _check_exc_match(f: Frame, i: Instruction) -> None:
    kind = f.pop()
    f.push(isinstance(f.stack[-1], kind))


@op("POP_EXCEPT")
def _pop_except(f: Frame, i: Instruction) -> None:
    f.raw()


@op("RERAISE")
def _reraise(f: Frame, i: Instruction) -> None:
    raise f.raw()


@op("RAISE_VARARGS")
def _raise(f: Frame, i: Instruction) -> None:
    if not i.arg:
        raise Unsupported("a `raise` without an exception is run by Python")
    parts = f.pops(i.arg)
    error = parts[0]() if isinstance(parts[0], type) else parts[0]
    if not isinstance(error, Exception):
        raise Unsupported(f"{type(error).__name__} is raised by Python")
    if i.arg > 1:
        raise error from parts[1]
    raise error


@op("GET_LEN")
def _get_len(f: Frame, i: Instruction) -> None:
    f.push(len(force(f.stack[-1])))


@op("MATCH_SEQUENCE")
def _match_sequence(f: Frame, i: Instruction) -> None:
    value = noticed(f.stack[-1])
    f.push(isinstance(value, list | tuple | range))


@op("MATCH_MAPPING")
def _match_mapping(f: Frame, i: Instruction) -> None:
    f.push(isinstance(noticed(f.stack[-1]), dict))


@op("MATCH_KEYS")
def _match_keys(f: Frame, i: Instruction) -> None:
    keys, subject = force(f.stack[-1]), force(f.stack[-2])
    f.push(tuple(subject[k] for k in keys) if all(k in subject for k in keys) else None)
