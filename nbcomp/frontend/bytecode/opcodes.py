"""What each bytecode instruction does, one table per version of CPython.

A table maps the name of an instruction to a function of a frame and the instruction.  Instructions
that a table lacks are left to Python.  Knows stacks and calling conventions, not arrays.
"""

from __future__ import annotations

import builtins
import opcode
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.bytecode import calls
from nbcomp.frontend.bytecode.instructions import Instruction
from nbcomp.frontend.bytecode.machine import Execute, Frame, Returned, Yielded
from nbcomp.frontend.bytecode.values import NULL, UNBOUND, Rows, force, noticed
from nbcomp.frontend.lift import Lazy
from nbcomp.frontend.location import here
from nbcomp.frontend.objects import Shadow
from nbcomp.frontend.tracer import Tracer

COMMON: dict[str, Execute] = {}
PYTHON_3_11: dict[str, Execute] = {}
PYTHON_3_12: dict[str, Execute] = {}  # 3.12 and later
PYTHON_3_13: dict[str, Execute] = {}
VERSION = sys.version_info[:2]
Table = dict[str, Execute]


def op(*names: str, table: Table = COMMON) -> Callable[[Execute], Execute]:
    """Declare what these instructions do."""

    def register(execute: Execute) -> Execute:
        table.update(dict.fromkeys(names, execute))
        return execute

    return register


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
        calls.check_text(right)
    f.push(function(left, right))


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
            f"the attribute {i.operand} of a {type(owner).__name__} is set by Python", here()
        )
    setattr(owner, i.operand, value)


# ---------------------------------------------------------------------------------- containers


@op("BUILD_TUPLE")
def _build_tuple(f: Frame, i: Instruction) -> None:
    f.push(tuple(v if type(v) is types.CellType else force(v) for v in f.raws(i.arg)))


@op("BUILD_LIST")
def _build_list(f: Frame, i: Instruction) -> None:
    f.push(f.pops(i.arg))


@op("BUILD_SET")
def _build_set(f: Frame, i: Instruction) -> None:
    f.push(set(f.pops(i.arg)))


@op("BUILD_MAP")
def _build_map(f: Frame, i: Instruction) -> None:
    values = f.pops(2 * i.arg)
    f.push(dict(zip(values[::2], values[1::2], strict=True)))


@op("BUILD_CONST_KEY_MAP")
def _build_const_key_map(f: Frame, i: Instruction) -> None:
    keys = f.pop()
    f.push(dict(zip(keys, f.pops(i.arg), strict=True)))


@op("BUILD_STRING")
def _build_string(f: Frame, i: Instruction) -> None:
    f.push("".join(f.pops(i.arg)))


@op("LIST_APPEND")
def _list_append(f: Frame, i: Instruction) -> None:
    value = f.pop()
    f.stack[-i.arg].append(value)


@op("SET_ADD")
def _set_add(f: Frame, i: Instruction) -> None:
    value = f.pop()
    f.stack[-i.arg].add(value)


@op("MAP_ADD")
def _map_add(f: Frame, i: Instruction) -> None:
    key, value = f.pops(2)
    f.stack[-i.arg][key] = value


@op("LIST_EXTEND")
def _list_extend(f: Frame, i: Instruction) -> None:
    values = f.pop()
    f.stack[-i.arg].extend(values)


@op("SET_UPDATE")
def _set_update(f: Frame, i: Instruction) -> None:
    values = f.pop()
    f.stack[-i.arg].update(values)


@op("DICT_UPDATE")
def _dict_update(f: Frame, i: Instruction) -> None:
    values = f.pop()
    f.stack[-i.arg].update(values)


@op("DICT_MERGE")
def _dict_merge(f: Frame, i: Instruction) -> None:
    values = f.pop()
    target = f.stack[-i.arg]
    for key in values:
        if key in target:
            raise TypeError(f"got multiple values for keyword argument {key!r}")
        target[key] = values[key]


@op("LIST_TO_TUPLE", table=PYTHON_3_11)
def _list_to_tuple(f: Frame, i: Instruction) -> None:
    f.push(tuple(f.pop()))


@op("UNPACK_SEQUENCE")
def _unpack_sequence(f: Frame, i: Instruction) -> None:
    values = list(iterator(f, f.pop()))
    if len(values) != i.arg:
        few = "not enough" if len(values) < i.arg else "too many"
        raise ValueError(f"{few} values to unpack (expected {i.arg})")
    f.stack.extend(reversed(values))


@op("UNPACK_EX")
def _unpack_ex(f: Frame, i: Instruction) -> None:
    before, after = i.arg & 255, i.arg >> 8
    values = list(iterator(f, f.pop()))
    if len(values) < before + after:
        raise ValueError(f"not enough values to unpack (expected at least {before + after})")
    end = len(values) - after
    f.stack.extend(reversed([*values[:before], values[before:end], *values[end:]]))


@op("FORMAT_VALUE")
def _format_value(f: Frame, i: Instruction) -> None:
    spec = f.pop() if i.arg & 4 else ""
    f.push(format(_converted(f.pop(), i.arg & 3), spec))


def _converted(value: Any, how: int) -> Any:
    if isinstance(value, Shadow):
        raise Unsupported(f"the text of a {value.__class__.__name__} is made by Python", here())
    calls.check_text(value)
    return (lambda v: v, str, repr, ascii)[how](value)


@op("CONVERT_VALUE", table=PYTHON_3_13)
def _convert_value(f: Frame, i: Instruction) -> None:
    f.push(_converted(f.pop(), i.arg))


@op("FORMAT_SIMPLE", table=PYTHON_3_13)
def _format_simple(f: Frame, i: Instruction) -> None:
    f.push(format(_converted(f.pop(), 0), ""))


@op("FORMAT_WITH_SPEC", table=PYTHON_3_13)
def _format_with_spec(f: Frame, i: Instruction) -> None:
    value, spec = f.pops(2)
    f.push(format(_converted(value, 0), spec))


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
        raise Unsupported(f"a loop over a {kind} is run by Python", here())
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
    if isinstance(manager, np.errstate):  # has no effect on compiled code
        f.push(_leave_errstate)
        f.push(None)
        return
    if not isinstance(manager, Shadow) and calls.is_foreign(type(manager)):
        kind = type(manager).__name__
        raise Unsupported(f"`with` a {kind} is run by Python", here(), "compile what is inside it")
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


TABLES = {
    (3, 11): COMMON | PYTHON_3_11,
    (3, 12): COMMON | PYTHON_3_12 | {"CALL": PYTHON_3_11["CALL"]},
    (3, 13): COMMON | PYTHON_3_12 | PYTHON_3_13,
}
