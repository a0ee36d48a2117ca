"""Objects that Python calls through the native entry directly, like the functions of C extensions.

A class in Python has its calls made through `tp_call`: a tuple of arguments, a lookup of
`__call__`, a second call.  The vectorcall protocol (PEP 590) avoids all three, but only a type made
in C can offer it; `Callable` is such a type, made through the C API.  Where that is not possible
its subclasses are called by their `__call__`, as any object.  Knows CPython's type objects; nothing
of plans.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from nbcomp.runtime.layout import CALLABLE_ENTRY, CALLABLE_RECORD, trusted

# typeslots.h, structmember.h and object.h of CPython.
_TP_CALL, _TP_MEMBERS = 50, 72
_PYSSIZET, _READONLY = 19, 1
_BASETYPE, _HAVE_VECTORCALL = 1 << 10, 1 << 11
# Offsets in PyTypeObject (cpython/object.h), the same since 3.8; checked before they are used.
_OFFSET, _FLAGS = 56, 168


class _Member(ctypes.Structure):
    """`PyMemberDef`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class _Slot(ctypes.Structure):
    """`PyType_Slot`."""

    _fields_ = [("slot", ctypes.c_int), ("value", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    """`PyType_Spec`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("item", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    ]


def _base() -> type:
    """A type whose instances hold one pointer, to what a call of them runs."""
    members = (_Member * 2)(
        _Member(b"__vectorcalloffset__", _PYSSIZET, CALLABLE_ENTRY, _READONLY, None)
    )
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p)
    slots = (_Slot * 3)(
        _Slot(_TP_CALL, call), _Slot(_TP_MEMBERS, ctypes.addressof(members)), _Slot(0, None)
    )
    name = b"nbcomp.runtime.callable.Base"
    spec = _Spec(name, CALLABLE_RECORD, 0, _BASETYPE | _HAVE_VECTORCALL, ctypes.addressof(slots))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
    new = make(("PyType_FromSpec", ctypes.pythonapi))
    made: type = new(ctypes.addressof(spec))
    _kept.extend((members, slots, spec, name))
    return made


_kept: list[Any] = []  # CPython copies what it needs only since 3.11: this costs nothing


def _word(owner: object, offset: int) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(id(owner) + offset)


def _allow(cls: type) -> bool:
    """Let instances of a subclass be called by their pointer; False where it cannot be done.

    A class with a `__call__` in Python does not inherit that, since it might be replaced.
    """
    flags = _word(cls, _FLAGS)
    if not trusted() or flags.value & 0xFFFFFFFF != cls.__flags__ & 0xFFFFFFFF:
        return False
    if _word(cls, _OFFSET).value != CALLABLE_ENTRY:
        return False
    flags.value |= _HAVE_VECTORCALL
    return bool(cls.__flags__ & _HAVE_VECTORCALL)


if TYPE_CHECKING:

    class _Base:
        """What `_base` makes."""

else:
    _Base = _base() if trusted() else object


class Callable(_Base):
    """Called by its class's `__call__` until it is connected to an entry, and after by that.

    Subclasses define `__call__`.
    """

    __slots__ = ("__dict__", "__weakref__", "_record")

    _direct = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._direct = _Base is not object and _allow(cls)

    def connect(self, entry: int, record: object) -> bool:
        """Run the vectorcall function at address `entry`, which finds `record` in this object.

        False where that is not possible.
        """
        if not self._direct:
            return False
        self._record = record
        if _word(self, CALLABLE_RECORD).value != id(record):  # laid out as nobody expects
            return False
        _word(self, CALLABLE_ENTRY).value = entry
        return True

    def disconnect(self) -> None:
        """Be called by the class's `__call__` again."""
        if self._direct:
            _word(self, CALLABLE_ENTRY).value = 0
