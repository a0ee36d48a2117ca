"""Bytecode instructions that make and take apart tuples, lists, dicts, sets and text.

Knows Python's containers, not arrays.
"""

from __future__ import annotations

import types
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.bytecode import calls
from nbcomp.frontend.bytecode.control import iterator
from nbcomp.frontend.bytecode.instructions import Instruction
from nbcomp.frontend.bytecode.machine import Frame
from nbcomp.frontend.bytecode.table import (
    PYTHON_3_11,
    PYTHON_3_13,
    op,
)
from nbcomp.frontend.bytecode.values import force
from nbcomp.frontend.location import here
from nbcomp.frontend.objects import Shadow

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
