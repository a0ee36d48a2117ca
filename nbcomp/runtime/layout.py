"""What the native code sees: our own structs, CPython's and NumPy's, and a table of functions.

Our structs are NumPy dtypes that Python fills and generated code reads.  The layouts of
`PyArrayObject`, `PyFloatObject`, `PyComplexObject` and a ctypes object are fixed by their public
headers; `trusted` compares them with real objects once, and without its consent no native entry is
used.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import sysconfig
from functools import cache
from typing import Any

import numpy as np

from nbcomp.runtime.emit import Function, Value, struct
from nbcomp.runtime.plan import MISSING, LeftToPython

# Offsets in bytes, on 64-bit builds with a 16-byte object header: numpy/ndarraytypes.h
# (tagPyArrayObject_fields), cpython/{floatobject,complexobject}.h, _ctypes/ctypes.h (b_ptr).
TYPE, SIZE, FLOAT = 8, 16, 16
DATA, NDIM, DIMS, STRIDES, BASE, DESCR, FLAGS, HANDLER = 16, 24, 32, 40, 48, 56, 64, 88
OBVAL = 16  # of NumPy's scalars (numpy/arrayscalars.h): all that compute have it there
KIND = 24  # of PyArray_Descr: one character
OWNDATA, ALIGNED, WRITEABLE = 0x4, 0x100, 0x400

# Of a `callable.Callable`: the vectorcall function, then the record it is for.
CALLABLE_ENTRY, CALLABLE_RECORD = 16, 24
ARGUMENTS_OFFSET = -(1 << 63)  # PY_VECTORCALL_ARGUMENTS_OFFSET, a flag in the number of arguments

# One instruction of a guard program: fetch a value into values[value], or check it.
CHECK = struct(
    op="i4", value="i4", parent="i4", store="i4",
    slot="i8", first="u8", second="u8", low="i8", high="i8",
)  # fmt: skip
GLOBAL, CELL, OBJECT, ITEM, ATTRIBUTE, CODE = range(6)
IS_ARRAY, IS_FLOAT, IS_INT, IS_BOOL, IS_OBJECT, IS_NUMPY = range(6, 12)
HAS_BITS, EQUALS, SATISFIES, HAS_LENGTH, HAS_KEYS = range(12, 17)
DEFAULTS, KWDEFAULTS, KIND_OF, MEMBER, OWN, MAYBE = range(17, 23)  # fetches, too
IS_WHOLE = 23
FETCHED = 2  # what a fetch answers; a check that holds answers 1, a failed one 0

# Two byte ranges, relative to the pointers in two slots, that must not overlap.
PAIR = struct(slot="i8", low="i8", high="i8", other="i8", other_low="i8", other_high="i8")

# kind: a small array, a large one from the buffer cache, a scalar, or the object values[slot].
OUTPUT = struct(kind="i8", slot="i8", descr="u8", nd="i8", dims="u8", strides="u8", bytes="i8")
SMALL, LARGE, SCALAR, GIVEN = range(4)
LARGE_BYTES = 256 * 1024  # from here on outputs are aligned and recycled (`memory`)

# kind: one call does it all; in pieces of `segment` iterations, looking at signals between them if
# `check`; or a Python function on `inputs` views, into `outputs` further ones (`out`: by keyword).
STEP = struct(
    kind="i8", function="u8", slots="u8", count="i8", params="u8", extent="i8", grain="i8",
    segment="i8", check="i8", views="u8", inputs="i8", outputs="i8", out="u8",
)  # fmt: skip
PLAIN, PIECES, HOST = range(3)
PLACED = struct(slot="i8", at="i8")  # a slot and what goes there: an address or an arena offset

# prepare, pack: there is work of this kind; release: run without the GIL; owner: the plan.
# The last six are areas of a call's frame, as offsets.
VARIANT = struct(
    positional="i8", checks="u8", check_count="i8", pairs="u8", pair_count="i8",
    constants="u8", constant_count="i8", temps="u8", temp_count="i8",
    arena="i8", arena_block="u8", arena_busy="i8",
    outputs="u8", output_count="i8", steps="u8", step_count="i8",
    open="u8", seen="u8", patchs="u8", patch_count="i8", busy="i8",
    single="i8", parallel="i8", release="i8", prepare="i8", pack="i8", owner="u8", finish="u8",
    value_count="i8", values="i8", slots="i8", stores="i8", buffers="i8", results="i8",
)  # fmt: skip
# Of a plan with open lengths: instructions over registers that read lengths and strides, check them
# and compute numbers; and instances, which are variants: `seen` has what was read when they got
# their numbers, `patchs` say where these go, `busy` how many calls are running them.
OPEN = struct(
    reads="u8", read_count="i8", checks="u8", check_count="i8", numbers="u8", number_count="i8",
    instances="u8", instance_count="i8", next="i8",
)  # fmt: skip
FORMULA = struct(op="i4", to="i4", a="i4", b="i4", low="i8", high="i8")
LENGTH, STRIDE, NUMBER, ADD, MULTIPLY, QUOTIENT, WITHIN, SAME, NOT_ZERO, INT = range(10)
PATCH = struct(register="i8", at="u8")
REGISTERS = 256
NOT_SEEN = -(1 << 63)  # no length, and no number that is taken
TABLE = struct(count="i8", frame="i8")  # followed by `count` pointers to variants
# names: of the parameters (null: not by keyword), defaults: of those that have one; limit: how many
# may be given by position; exact: with so many arguments by position there is nothing to bind;
# rest: whether there are `*args`, which take what more is given.
RECORD = struct(
    table="u8", active="i8", slow="u8", failed="u8",
    names="u8", defaults="u8", count="i8", limit="i8", exact="i8", rest="i8",
)  # fmt: skip
PARAMETERS = 32  # calls of functions with more are not bound natively
STORE = 32  # bytes of one scalar's storage: the largest NumPy scalar is complex256

_FUNCTIONS = (
    "Py_IncRef", "Py_DecRef", "PyErr_Clear", "PyErr_Occurred", "PyErr_CheckSignals",
    "PyErr_ExceptionMatches",
    "PyErr_NoMemory", "PyErr_SetNone", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyMem_RawMalloc", "PyMem_RawFree", "PyDict_GetItemWithError", "PyDict_Size", "PyDict_Next",
    "PyDict_New", "PyDict_SetItem", "PyCell_Get", "PyFunction_GetCode", "PySequence_GetItem",
    "PyTuple_New",
    "PyTuple_Size", "PyTuple_GetItem", "PyTuple_SetItem", "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong", "PyObject_GetItem", "PyObject_GetAttr", "PyObject_RichCompareBool",
    "PyObject_Vectorcall", "PyThread_acquire_lock", "PyThread_release_lock",
    "PyTraceMalloc_Track", "PyFunction_GetDefaults", "PyFunction_GetKwDefaults", "_PyType_Lookup",
    "PyObject_GenericGetDict",
)  # fmt: skip
NUMPY = {  # indices into the table, numpy/__multiarray_api.h
    "PyArray_Type": 2, "PyArray_CopyObject": 84, "PyArray_Scalar": 60, 
    "PyArray_NewFromDescr": 94, "PyArray_EquivTypes": 182, "PyDataMem_GetHandler": 305,
}  # fmt: skip
_OBJECTS: dict[str, Any] = {
    "float": float, "int": int, "bool": bool, "dict": dict, "tuple": tuple, "list": list,
    "None": None, "True": True, "ReferenceError": ReferenceError,
    "LeftToPython": LeftToPython, "MISSING": MISSING,
}  # fmt: skip
# Of the C library; null where it has none.
_LIBRARY = ("malloc", "free", "madvise", "sched_getcpu", "sched_setaffinity")
_CONNECTED = ("start_pool", "handler")  # objects of `pool` and `memory`, filled in by them
RARE = (  # our own functions that the entry calls
    "check", "disjoint", "prepare", "give_arena", "output", "segments", "pack", "fail", "slow",
    "host", "bind", "settle",
)  # fmt: skip

API = struct(**dict.fromkeys((*_FUNCTIONS, *NUMPY, *_OBJECTS, *_LIBRARY, *_CONNECTED, *RARE), "u8"))


def api(f: Function, name: str) -> Value:
    """In generated code: a function or object out of the table."""
    return Value(f, "@api", "ptr").field(API, name)


def call(f: Function, name: str, result: str, *args: Value | int) -> Value:
    """In generated code: call a function of the table."""
    return f.call(api(f, name), result, *args)


def function_address(function: Any) -> int:
    """The address of a ctypes function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def numpy_api() -> Any:
    """NumPy's table of C functions, as an array of addresses."""
    # The name by which every compiled extension imports it.
    module: Any = importlib.import_module("numpy._core._multiarray_umath")
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
    address = get(module._ARRAY_API, None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))


def api_table() -> np.ndarray[Any, Any]:
    """The filled table; the objects in it are immortal."""
    table = np.zeros(1, API)
    for name in _FUNCTIONS:
        table[0][name] = function_address(getattr(ctypes.pythonapi, name))
    for name, index in NUMPY.items():
        table[0][name] = numpy_api()[index] or 0
    for name, value in _OBJECTS.items():
        table[0][name] = id(value)
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    for name in _LIBRARY:
        table[0][name] = function_address(getattr(library, name)) if hasattr(library, name) else 0
    return table


class _Probe(ctypes.Structure):
    _fields_ = [("field", ctypes.c_int64 * 8)]


def _read(owner: object, offset: int, kind: Any = ctypes.c_int64) -> Any:
    return kind.from_address(id(owner) + offset).value


def _array_layout_holds() -> bool:
    """A few real arrays read at our offsets give what NumPy says of them."""
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for array in (base, base.T, base[::-1, 1:], np.zeros((), np.int8), np.zeros((2, 0), ">f8")):
        dims = (ctypes.c_int64 * array.ndim).from_address(_read(array, DIMS) or id(array))
        strides = (ctypes.c_int64 * array.ndim).from_address(_read(array, STRIDES) or id(array))
        flags = _read(array, FLAGS, ctypes.c_int32)
        facts = (
            _read(array, TYPE) == id(np.ndarray) == numpy_api()[2],
            _read(array, DATA) == array.__array_interface__["data"][0],
            _read(array, NDIM, ctypes.c_int32) == array.ndim,
            tuple(dims) == array.shape and tuple(strides) == array.strides,
            _read(array, BASE) == (0 if array.base is None else id(array.base)),
            _read(array, DESCR) == id(array.dtype),
            bool(flags & WRITEABLE) == array.flags.writeable,
            bool(flags & ALIGNED) == array.flags.aligned,
            bool(flags & OWNDATA) == array.flags.owndata,
            _read(array.dtype, KIND, ctypes.c_char) == array.dtype.kind.encode(),
        )
        if not all(facts):
            return False
    return True


def _handler_layout_holds() -> bool:
    """An array that owns its data keeps NumPy's memory handler where we think."""
    get = ctypes.PYFUNCTYPE(ctypes.py_object)(numpy_api()[305])
    return bool(_read(np.empty(3), HANDLER) == id(get()))


@cache
def trusted() -> bool:
    """True when this interpreter and this NumPy are laid out as the native code assumes."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return False
    probe = _Probe()
    value = 0.1 + len(sys.version) / 3.0
    number = complex(value, -value)
    return (
        _read(value, FLOAT, ctypes.c_double) == value
        and _read(number, FLOAT + 8, ctypes.c_double) == -value
        and _read((1, 2, 3), SIZE) == 3
        and _read([1, 2], SIZE) == 2
        and _read(probe, DATA) == ctypes.addressof(probe)
        and _array_layout_holds()
        and _handler_layout_holds()
    )
