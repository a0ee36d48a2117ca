"""The user's own objects and classes, as the traced function sees them.

A `Shadow` stands for an object: its attributes are lifted when they are read (so that `model.W` is
an input and a later change of it is seen), its methods run as lifted copies on the shadow.  A
class that the function makes instances of is replaced by a subclass with lifted methods.  Knows
Python's object model.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.session import Session
from nbcomp.runtime.plan import LengthGuard, ObjectGuard, Source

MADE_NAMES = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__slots__"),
    *(
        "__annotations__",
        "__orig_bases__",
        "__parameters__",
        "__match_args__",
        "__abstractmethods__",
    ),
    *("__dataclass_fields__", "__dataclass_params__", "__hash__", "_fields", "_field_defaults"),
    *("_abc_impl", "__static_attributes__", "__firstlineno__", "__annotate_func__"),
}
COMPARING = frozenset(
    (
        *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"),
        *("__repr__", "__str__", "__format__"),
    )
)
# Special methods that a shadow gets from its own class or that make no sense on it.
KEPT = (frozenset(vars(object)) - COMPARING) | {
    *("__del__", "__getattr__", "__dict__", "__weakref__", "__slots__", "__setstate__"),
    *("__class_getitem__", "__copy__", "__deepcopy__"),
}


class Lifts(Protocol):
    """What objects need of the lifter."""

    session: Session

    def lift(self, value: Any, source: Source, name: str = "") -> Any:
        """A lifted value."""

    def function(self, function: types.FunctionType, source: Source) -> Any:
        """A lifted function."""


class Shadow:
    """Stands for an object of the user's; made by `shadow`."""

    __slots__ = ("_nbcomp",)

    _nbcomp: tuple[Lifts, Any, Source]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        lifter, value, _ = self._nbcomp
        cls = type(value)
        lifted: type = lifter.lift(cls, Source("object", cls.__name__, cls))
        return lifted

    def __getattr__(self, name: str) -> Any:
        return attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _, _, source = self._nbcomp
        if hasattr(self, name) and attribute(self, name) is value:
            return  # `model.w += 1` has written to the array, and stores the same one
        raise Unsupported(
            f"the function sets {source.describe()}.{name}; a compiled function only writes to"
            " arrays",
            here(),
            "return the new value",
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)


def shadow(lifter: Lifts, value: Any, source: Source) -> Shadow:
    """The shadow of an object found at a source; assumes its class."""
    cls = type(value)
    lifter.session.guard(ObjectGuard(deeper(source, "__class__"), cls))
    result = object.__new__(_shadow_class(cls))  # type: ignore[arg-type]
    object.__setattr__(result, "_nbcomp", (lifter, value, source))
    return result


def source_of(value: Any) -> Source | None:
    """Where the object a shadow stands for is found; None for anything else."""
    known = shadowed(value)
    return known[1] if known is not None else None


def shadowed(value: Any) -> tuple[Any, Source] | None:
    """The object a shadow stands for and where it is found; None for anything else."""
    if issubclass(type(value), Shadow):
        _, original, source = object.__getattribute__(value, "_nbcomp")
        return original, source
    return None


def deeper(source: Source, name: str) -> Source:
    """An attribute of what is at a source."""
    return replace(source, path=(*source.path, ("attr", name)))


@functools.lru_cache(maxsize=256)
def _shadow_class(cls: Any) -> type[Shadow]:
    """A shadow class with the special methods of this class."""
    namespace: dict[str, Any] = {"__slots__": ()}
    for base in reversed(cls.__mro__[:-1]):
        for name, value in vars(base).items():
            if name.startswith("__") and name.endswith("__") and name not in KEPT:
                method = isinstance(value, types.FunctionType) or hasattr(value, "__wrapped__")
                namespace[name] = _special(name) if method else value
    for name in ("__doc__", "__module__", "__dataclass_fields__", "__match_args__"):
        if hasattr(cls, name):
            namespace[name] = getattr(cls, name)
    if "__eq__" not in namespace:
        namespace["__hash__"] = object.__hash__
    return type(cls.__name__, (Shadow,), namespace)


def _special(name: str) -> Callable[..., Any]:
    def method(self: Shadow, *args: Any, **kwargs: Any) -> Any:
        return attribute(self, name)(*args, **kwargs)

    return method


def attribute(self: Shadow, name: str) -> Any:
    """An attribute of the object a shadow stands for, lifted."""
    lifter, value, source = self._nbcomp
    cls = type(value)
    try:
        found = inspect.getattr_static(value, name)
    except AttributeError:
        return _missing(self, name)
    owner = Source("object", cls.__name__, cls)
    if isinstance(found, types.FunctionType) and name not in getattr(value, "__dict__", ()):
        lifter.session.guard(ObjectGuard(deeper(owner, name), found))
        return types.MethodType(lifter.function(found, deeper(owner, name)), self)
    if isinstance(found, property | functools.cached_property | classmethod):
        _guard_member(lifter, owner, name, found)
    if isinstance(found, property | functools.cached_property):
        getter = found.fget if isinstance(found, property) else found.func
        place = Source("object", name, getter)
        return lifter.lift(getter, place)(self)
    if isinstance(found, classmethod):
        function = found.__func__
        lifted = lifter.lift(function, Source("object", name, function))
        return types.MethodType(lifted, lifter.lift(cls, owner))
    return lifter.lift(getattr(value, name), deeper(source, name), name)


def _guard_member(lifter: Lifts, owner: Source, name: str, found: Any) -> None:
    """Assume that the class keeps this property or class method."""
    place, member = deeper(owner, name), found
    if isinstance(found, classmethod):
        place, member = deeper(place, "__func__"), found.__func__
    now: Any = owner.root
    for _, attr in place.path:
        now = getattr(now, attr, None)
    if now is member:
        lifter.session.guard(ObjectGuard(place, member))


def _missing(self: Shadow, name: str) -> Any:
    """An attribute that is not there, unless the class makes it up."""
    lifter, value, source = self._nbcomp
    made_up = inspect.getattr_static(type(value), "__getattr__", None)
    if isinstance(made_up, types.FunctionType):
        return lifter.function(made_up, Source("object", "__getattr__", made_up))(self, name)
    if hasattr(value, "__dict__"):  # that there is none is assumed
        keys = tuple(vars(value))
        lifter.session.guard(LengthGuard(deeper(source, "__dict__"), dict, len(keys), keys))
    raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")


# ------------------------------------------------------------------------------------ classes


def subclass(cls: type) -> type:
    """A subclass of a user's class for lifted methods; `isinstance` takes it for the class.

    Raises `Unsupported` for classes whose making has effects of its own.
    """
    meta = type(cls)
    own = "metaclass" if meta.__call__ is not type.__call__ else ""
    own = "__init_subclass__" if _overridden(cls, "__init_subclass__") else own
    if own:
        raise Unsupported(
            f"the class {cls.__name__} has a {own} of its own: its instances cannot be made in"
            " compiled code",
            here(),
            "make the instance outside and pass it",
        )
    checks = {
        "__instancecheck__": lambda _, value: isinstance(value, cls),
        "__subclasscheck__": lambda _, other: issubclass(other, cls),
    }
    namespace = {"__qualname__": cls.__qualname__, "__module__": cls.__module__}
    copy: type = type(meta.__name__, (meta,), checks)(cls.__name__, (cls,), namespace)
    return copy


def add_methods(lifter: Lifts, copy: type, cls: type) -> None:
    """Give the subclass the methods of the class and of its bases, lifted."""
    for name in {name for base in cls.__mro__[:-1] for name in vars(base)}:
        base = next(b for b in cls.__mro__ if name in vars(b))
        value = vars(base)[name]
        source = deeper(Source("object", base.__name__, base), name)
        lifted = _lifted_member(lifter, value, source)
        if lifted is not value:
            setattr(copy, name, lifted)


def _overridden(cls: type, name: str) -> bool:
    return any(name in vars(base) for base in cls.__mro__[:-1])


def _lifted_member(lifter: Lifts, value: Any, source: Source) -> Any:
    match value:
        case types.FunctionType():
            return lifter.function(value, source)
        case staticmethod() | classmethod():
            function = value.__func__
            if not isinstance(function, types.FunctionType):
                return value
            return type(value)(lifter.function(function, deeper(source, "__func__")))
        case property():
            parts: list[Any] = [value.fget, value.fset, value.fdel]
            return property(*(p and lifter.lift(p, Source("object", "", p)) for p in parts))
        case _ if hasattr(type(value), "__get__") or source.path[-1][1] in MADE_NAMES:
            return value
        case _:
            return ClassAttribute(lifter, source)


class ClassAttribute:
    """A value kept in a class: it is lifted when it is read, unless the instance has its own."""

    def __init__(self, lifter: Lifts, source: Source) -> None:
        self._lifter, self._source = lifter, source

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        name = self._source.path[-1][1]
        return self._lifter.lift(vars(self._source.root)[name], self._source, name)


class Super:
    """What `super()` gives in a lifted method: the next class's methods, lifted."""

    def __init__(self, lifter: Lifts, parent: Any) -> None:
        self._lifter, self._parent = lifter, parent

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._parent, name)
        if isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType):
            function = value.__func__
            lifted = self._lifter.function(function, Source("object", name, function))
            return types.MethodType(lifted, value.__self__)
        return value


def super_of(lifter: Lifts) -> Callable[..., Any]:
    """The builtin `super` for lifted methods."""

    def super_(*args: Any) -> Any:
        if not args:
            frame = sys._getframe(1)
            cls, self = frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]]
            args = (cls, self)
        return Super(lifter, super(*args))

    return super_


class _TypeOf(type):
    """`type(x)` answers for the value x stands for; otherwise it is `type`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            return args[0].__class__
        return type(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, type)


class type_of(metaclass=_TypeOf):
    """The builtin `type` for lifted functions."""
