"""Bytecode instructions on values: the stack, variables, operators, attributes.

Knows stacks and Python's operators, not arrays.
"""

from __future__ import annotations

import builtins
import opcode
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from nbcomp.errors import Unsupported, an
from nbcomp.frontend.bytecode import calls
from nbcomp.frontend.bytecode.instructions import Instruction
from nbcomp.frontend.bytecode.machine import Frame
from nbcomp.frontend.bytecode.table import (
    PYTHON_3_11,
    PYTHON_3_12,
    PYTHON_3_13,
    VERSION,
    op,
)
from nbcomp.frontend.bytecode.values import NULL, UNBOUND, force, noticed
from nbcomp.frontend.location import here
from nbcomp.frontend.tracer import Tracer


@op("NOP", "RESUME", "PRECALL", "CACHE", "SETUP_ANNOTATIONS")
def _nothing(f: Frame, i: Instruction) -> None:
    pass


# ------------------------------------------------------------------------------------- the stack


@op("POP_TOP")
def _pop_top(f: Frame, i: Instruction) -> None:
    f.raw()


@op("PUSH_NULL")
def _push_null(f: Frame, i: Instruction) -> None:
    f.push(NULL)


@op("COPY")
def _copy(f: Frame, i: Instruction) -> None:
    f.push(f.stack[-i.arg])


@op("SWAP")
def _swap(f: Frame, i: Instruction) -> None:
    f.stack[-1], f.stack[-i.arg] = f.stack[-i.arg], f.stack[-1]


@op("LOAD_CONST")
def _load_const(f: Frame, i: Instruction) -> None:
    f.push(i.operand)


@op("LOAD_ASSERTION_ERROR")
def _assertion_error(f: Frame, i: Instruction) -> None:
    f.push(AssertionError)


# ----------------------------------------------------------------------------------- variables


@op("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CLOSURE")
def _load_fast(f: Frame, i: Instruction) -> None:
    value = f.variables.get(i.operand, UNBOUND)
    if value is UNBOUND:
        message = f"cannot access local variable {i.operand!r} where it is not associated"
        raise UnboundLocalError(message)
    f.push(value)


@op("LOAD_FAST_AND_CLEAR", table=PYTHON_3_12)
def _load_and_clear(f: Frame, i: Instruction) -> None:
    value = f.variables.pop(i.operand, UNBOUND)
    f.push(NULL if value is UNBOUND else value)


@op("STORE_FAST")
def _store_fast(f: Frame, i: Instruction) -> None:
    value = f.raw()
    f.variables[i.operand] = UNBOUND if value is NULL else value


@op("DELETE_FAST")
def _delete_fast(f: Frame, i: Instruction) -> None:
    _load_fast(f, i)
    f.raw()
    f.variables[i.operand] = UNBOUND


@op("MAKE_CELL")
def _make_cell(f: Frame, i: Instruction) -> None:
    value = f.variables.get(i.operand, UNBOUND)
    f.variables[i.operand] = types.CellType() if value is UNBOUND else types.CellType(value)


@op("COPY_FREE_VARS")
def _copy_free_vars(f: Frame, i: Instruction) -> None:
    cells = f.function.__closure__ or ()
    f.variables.update(zip(f.f_code.co_freevars, cells, strict=True))


def cell(f: Frame, name: str) -> types.CellType:
    """The cell of a variable."""
    found: types.CellType = f.variables[name]
    return found


@op("LOAD_DEREF")
def _load_deref(f: Frame, i: Instruction) -> None:
    try:
        f.push(cell(f, i.operand).cell_contents)
    except ValueError:
        raise NameError(f"cannot access free variable {i.operand!r}") from None


@op("STORE_DEREF")
def _store_deref(f: Frame, i: Instruction) -> None:
    value = f.raw()
    target = cell(f, i.operand)
    f.machine.lifter.check_assignable(target, i.operand)
    target.cell_contents = value


@op("LOAD_GLOBAL")
def _load_global(f: Frame, i: Instruction) -> None:
    value = f.machine.global_(f, i.operand)
    if i.arg & 1 and VERSION < (3, 13):
        f.push(NULL)
    f.push(value)
    if i.arg & 1 and VERSION >= (3, 13):
        f.push(NULL)


@op("IMPORT_NAME")
def _import_name(f: Frame, i: Instruction) -> None:
    level, names = f.pops(2)
    if level or i.operand not in sys.modules:
        raise Unsupported(f"import {i.operand} is done by Python", here(), "import it outside")
    module = builtins.__import__(i.operand, {}, {}, names, level)
    f.push(f.machine.lifter.module(module))


@op("IMPORT_FROM")
def _import_from(f: Frame, i: Instruction) -> None:
    f.push(f.machine.attribute(force(f.stack[-1]), i.operand))


# ---------------------------------------------------------------------------------- operators


@op("UNARY_POSITIVE", table=PYTHON_3_11)
def _positive(f: Frame, i: Instruction) -> None:
    f.push(+f.pop())


@op("UNARY_NEGATIVE")
def _negative(f: Frame, i: Instruction) -> None:
    f.push(-f.pop())


@op("UNARY_INVERT")
def _invert(f: Frame, i: Instruction) -> None:
    f.push(~f.pop())


@op("UNARY_NOT")
def _not(f: Frame, i: Instruction) -> None:
    f.push(not f.pop())


@op("TO_BOOL", table=PYTHON_3_13)
def _to_bool(f: Frame, i: Instruction) -> None:
    f.push(bool(f.pop()))


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "&": operator.and_, "//": operator.floordiv, "<<": operator.lshift,
    "@": operator.matmul, "*": operator.mul, "%": operator.mod, "|": operator.or_,
    "**": operator.pow, ">>": operator.rshift, "-": operator.sub, "/": operator.truediv,
    "^": operator.xor, "+=": operator.iadd, "&=": operator.iand, "//=": operator.ifloordiv,
    "<<=": operator.ilshift, "@=": operator.imatmul, "*=": operator.imul, "%=": operator.imod,
    "|=": operator.ior, "**=": operator.ipow, ">>=": operator.irshift, "-=": operator.isub,
    "/=": operator.itruediv, "^=": operator.ixor,
}  # fmt: skip
_BINARY = [_OPERATORS[symbol] for _, symbol in opcode._nb_ops]  # type: ignore[attr-defined]


@op("BINARY_OP")
def _binary(f: Frame, i: Instruction) -> None:
    left, right = f.pops(2)
    function = _BINARY[i.arg]
    if function.__name__.startswith("i") and isinstance(left, list | dict | set):
        calls.check_own(f.machine.lifter, left, "an augmented assignment")
    if isinstance(left, str | bytes):
        _check_operand_of_text(function, left, right)
    f.push(function(left, right))


def _check_operand_of_text(function: Any, left: str | bytes, right: Any) -> None:
    """Raise `Unsupported` for what Python makes of text and arrays."""
    if function.__name__ in ("mod", "imod"):
        calls.check_text(right)
    elif type(right) is Tracer:
        place = here()
        where = f" of `{place.source()}`" if place else ""
        raise Unsupported(f"the left side{where} is {an(type(left).__name__)}, no array", place)


_COMPARISONS = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@op("COMPARE_OP")
def _compare(f: Frame, i: Instruction) -> None:
    left, right = f.pops(2)
    result = _COMPARISONS[i.operand](left, right)
    f.push(bool(result) if VERSION >= (3, 13) and i.arg & 16 else result)


@op("IS_OP")
def _is(f: Frame, i: Instruction) -> None:
    left, right = (noticed(v) for v in f.raws(2))
    if left is not right and all(_is_callers(f, v) for v in (left, right)):
        raise Unsupported("whether two arguments are one object is asked by Python", here())
    f.push((left is right) != bool(i.arg))


def _is_callers(f: Frame, value: Any) -> bool:
    """Whether this stands for an array or container of the caller's, which may be another's too."""
    if type(value) is Tracer:
        return value._place.storage.read is not None
    return id(value) in f.machine.lifter.containers


@op("CONTAINS_OP")
def _contains(f: Frame, i: Instruction) -> None:
    left, right = f.pops(2)
    f.push((left in right) != bool(i.arg))


@op("BINARY_SUBSCR")
def _subscript(f: Frame, i: Instruction) -> None:
    container, key = f.pops(2)
    f.push(container[key])


@op("BINARY_SLICE", table=PYTHON_3_12)
def _binary_slice(f: Frame, i: Instruction) -> None:
    container, start, stop = f.pops(3)
    f.push(container[slice(start, stop)])


@op("STORE_SUBSCR")
def _store_subscript(f: Frame, i: Instruction) -> None:
    value, container, key = f.pops(3)
    _set_item(f, container, key, value)


@op("STORE_SLICE", table=PYTHON_3_12)
def _store_slice(f: Frame, i: Instruction) -> None:
    value, container, start, stop = f.pops(4)
    _set_item(f, container, slice(start, stop), value)


def _set_item(f: Frame, container: Any, key: Any, value: Any) -> None:
    if isinstance(container, list | dict):
        known = f.machine.lifter.containers.get(id(container))
        if known and key in known[1] and isinstance(container, dict) and container[key] is value:
            return  # `params["w"] -= g` has written to the array, and stores the same one
        calls.check_own(f.machine.lifter, container, "an assignment to an entry")
    container[key] = value


@op("DELETE_SUBSCR")
def _delete_subscript(f: Frame, i: Instruction) -> None:
    container, key = f.pops(2)
    calls.check_own(f.machine.lifter, container, "del")
    del container[key]


@op("BUILD_SLICE")
def _build_slice(f: Frame, i: Instruction) -> None:
    f.push(slice(*f.pops(i.arg)))


# --------------------------------------------------------------------------------- attributes


@op("LOAD_ATTR", table=PYTHON_3_11)
def _load_attr_311(f: Frame, i: Instruction) -> None:
    f.push(f.machine.attribute_of(f.raw(), i.operand))


@op("LOAD_METHOD", table=PYTHON_3_11)
def _load_method(f: Frame, i: Instruction) -> None:
    value = f.machine.attribute_of(f.raw(), i.operand)
    f.push(NULL)
    f.push(value)


@op("LOAD_ATTR", table=PYTHON_3_12)
def _load_attr(f: Frame, i: Instruction) -> None:
    value = f.machine.attribute_of(f.raw(), i.operand)
    if i.arg & 1:
        callable_and_null(f, value)
    else:
        f.push(value)


@op("LOAD_SUPER_ATTR", table=PYTHON_3_12)
def _load_super_attr(f: Frame, i: Instruction) -> None:
    function, cls, self = f.pops(3)
    parent = f.machine.call(function, [cls, self], {})
    value = f.machine.attribute(parent, i.operand)
    if i.arg & 1:
        callable_and_null(f, value)
    else:
        f.push(value)


def callable_and_null(f: Frame, function: Any) -> None:
    """What CALL expects below its arguments."""
    for value in (function, NULL) if VERSION >= (3, 13) else (NULL, function):
        f.push(value)


@op("STORE_ATTR")
def _store_attr(f: Frame, i: Instruction) -> None:
    value, owner = f.pops(2)
    if isinstance(owner, type | types.ModuleType | types.FunctionType):
        raise Unsupported(
            f"the attribute {i.operand} of {an(type(owner).__name__)} is set by Python",
            here(),
        )
    setattr(owner, i.operand, value)
