"""The addresses of functions that others compiled, from the forms in which Python has them."""

from __future__ import annotations

import ctypes
from typing import Any


def address_of(pointer: Any) -> int:
    """The address of a function: a number, a function of ctypes, a PyCapsule, or an object that has
    it as `address` (Numba's).

    Raises TypeError for anything else, ValueError for the null pointer.
    """
    found = _address(pointer)
    if found is None:
        kind = type(pointer).__name__
        raise TypeError(
            f"a C function is an address, a function of ctypes or a PyCapsule, not {kind}"
        )
    if not found:
        raise ValueError("a C function at the null pointer")
    return found


def _address(pointer: Any) -> int | None:
    if isinstance(pointer, int) and not isinstance(pointer, bool):
        return pointer
    if type(pointer).__name__ == "PyCapsule":
        name = ctypes.pythonapi.PyCapsule_GetName
        name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return int(get(pointer, name(pointer)) or 0)
    if isinstance(pointer, ctypes._CFuncPtr | ctypes.c_void_p):  # type: ignore[attr-defined]
        return ctypes.cast(pointer, ctypes.c_void_p).value or 0
    address = getattr(pointer, "address", None)
    return address if isinstance(address, int) else None
