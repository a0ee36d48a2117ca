"""The user's own objects and classes, as the traced function sees them.

A `Shadow` stands for an object: its attributes are lifted when they are read (so that `model.W` is
an input and a later change of it is seen), its methods run as lifted copies on the shadow.  A
class that the function makes instances of is replaced by a subclass with lifted methods.  Knows
Python's object model.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.session import Session
from nbcomp.runtime.plan import MISSING, ObjectGuard, Source, member, own

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


DERIVED: Any = property | functools.cached_property  # made of the object when they are read


class Lifts(Protocol):
    """What objects need of the lifter."""

    session: Session

    def lift(self, value: Any, source: Source, name: str = "") -> Any:
        """A lifted value."""

    def function(self, function: types.FunctionType, source: Source) -> Any:
        """A lifted function."""

    def is_followed(self, function: Any) -> bool:
        """Whether this is a function of the user's."""


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
    lifter.session.guard(ObjectGuard(_further(source, "type", "__class__"), cls))
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
    return _further(source, "attr", name)


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
        return attribute(self, name, implicit=True)(*args, **kwargs)

    return method


def attribute(self: Shadow, name: str, implicit: bool = False) -> Any:
    """An attribute of the object a shadow stands for, lifted; `implicit`: a special method, which
    Python looks for in the class."""
    lifter, value, _ = self._nbcomp
    cls = type(value)
    kept, mine = member(cls, name), MISSING if implicit else own(value, name)
    if mine is not MISSING and not hasattr(type(kept), "__set__"):
        return _plain_attribute(self, name)
    if kept is MISSING:
        return _missing(self, name)
    if _of_descriptor(lifter, kept, "__get__"):
        if not hasattr(type(kept), "__set__"):
            _guard_none_of_its_own(self, name)
        owner = lifter.lift(cls, Source("object", cls.__name__, cls))
        return _asked(lifter, cls, name, "__get__", self, owner)
    if not isinstance(kept, types.FunctionType | classmethod | DERIVED):
        return _plain_attribute(self, name)
    guard_member(lifter, cls, name)
    if not isinstance(kept, property) and not implicit:
        _guard_none_of_its_own(self, name)
    if isinstance(kept, types.FunctionType):
        return types.MethodType(lifter.function(kept, member_source(cls, name)), self)
    if isinstance(kept, classmethod):
        owner = lifter.lift(cls, Source("object", cls.__name__, cls))
        return types.MethodType(lifter.lift(kept.__func__, _itself(kept.__func__, name)), owner)
    getter = kept.fget if isinstance(kept, property) else kept.func
    return lifter.lift(getter, _itself(getter, name))(self)


def _of_descriptor(lifter: Lifts, kept: Any, name: str) -> bool:
    """Whether this is a descriptor with such a method in the user's code, which may have state."""
    return not isinstance(kept, DERIVED) and lifter.is_followed(member(type(kept), name))


def _asked(lifter: Lifts, cls: type, name: str, method: str, *args: Any) -> Any:
    """What a descriptor that a class keeps under a name gives, its state read at call time."""
    kept = guard_member(lifter, cls, name)
    found = guard_member(lifter, type(kept), method)
    lifted = lifter.lift(kept, member_source(cls, name), name)
    return lifter.function(found, member_source(type(kept), method))(lifted, *args)


def _guard_none_of_its_own(self: Shadow, name: str) -> None:
    """Assume that the object itself has nothing under a name."""
    lifter, value, source = self._nbcomp
    if hasattr(value, "__dict__"):
        lifter.session.guard(ObjectGuard(_further(source, "own", name), MISSING))


def _plain_attribute(self: Shadow, name: str) -> Any:
    """An attribute whose value is read at call time."""
    lifter, value, source = self._nbcomp
    try:
        found = getattr(value, name)
    except AttributeError:  # a slot without a value
        lifter.session.guard(ObjectGuard(_further(source, "maybe", name), MISSING))
        raise
    return lifter.lift(found, deeper(source, name), name)


def _itself(function: Any, name: str) -> Source:
    """A function that a guard has found already."""
    return Source("object", name, function)


def _further(source: Source, how: str, name: str) -> Source:
    return replace(source, path=(*source.path, (how, name)))


def member_source(cls: type, name: str) -> Source:
    """What a class or a base of it keeps under a name."""
    return Source("object", cls.__name__, cls, (("member", name),))


def guard_member(lifter: Lifts, cls: type, name: str) -> Any:
    """What a class or a base of it keeps under a name, which is assumed; `MISSING` for nothing."""
    found = member(cls, name)
    lifter.session.guard(ObjectGuard(member_source(cls, name), found))
    return found


def guard_missing(lifter: Lifts, value: Any, name: str) -> None:
    """Assume that a function or module at hand has no such attribute."""
    source = Source("object", getattr(value, "__name__", ""), value, (("maybe", name),))
    lifter.session.guard(ObjectGuard(source, MISSING))


def _missing(self: Shadow, name: str) -> Any:
    """An attribute that is not there, unless the class makes it up."""
    lifter, value, _ = self._nbcomp
    cls = type(value)
    guard_member(lifter, cls, name)
    _guard_none_of_its_own(self, name)
    made_up = guard_member(lifter, cls, "__getattr__")
    if isinstance(made_up, types.FunctionType):
        return lifter.function(made_up, member_source(cls, "__getattr__"))(self, name)
    raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")


# ------------------------------------------------------------------------------------ classes


def subclass(lifter: Lifts, cls: type) -> type:
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
    namespace = {"__qualname__": cls.__qualname__, "__module__": cls.__module__}
    copy: type = _meta(lifter, cls)(cls.__name__, (cls,), namespace)
    return copy


def _meta(lifter: Lifts, cls: type) -> type:
    """The class of a subclass that is to be taken for its class."""

    def missing(_: Any, name: str) -> Any:
        guard_member(lifter, cls, name)
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

    def change(_: Any, name: str, value: Any = None) -> Any:
        raise Unsupported(
            f"the function sets {cls.__name__}.{name}; a compiled function only writes to arrays",
            here(),
            "return the new value",
        )

    meta = type(cls)
    members: dict[str, Any] = {
        "__setattr__": change,
        "__delattr__": change,
        "__instancecheck__": lambda _, value: isinstance(value, cls),
        "__subclasscheck__": lambda _, other: issubclass(other, cls),
    }
    if not hasattr(meta, "__getattr__"):
        members["__getattr__"] = missing
    return type(meta.__name__, (meta,), members)


def add_methods(lifter: Lifts, copy: type, cls: type) -> None:
    """Give the subclass the members of the class and of its bases, lifted when they are used."""
    for name in {name for base in cls.__mro__[:-1] for name in vars(base)}:
        kept = member(cls, name)
        if isinstance(kept, property):
            type.__setattr__(copy, name, _lifted_property(lifter, cls, name, kept))
        elif _of_descriptor(lifter, kept, "__set__"):
            type.__setattr__(copy, name, DataMember(lifter, cls, name))
        elif (
            _of_descriptor(lifter, kept, "__get__")
            or isinstance(kept, types.FunctionType | staticmethod | classmethod)
            or not (hasattr(type(kept), "__get__") or name in MADE_NAMES)
        ):
            type.__setattr__(copy, name, Member(lifter, cls, name))
    if not _overridden(cls, "__getattr__"):

        def missing(self: Any, name: str) -> Any:
            guard_member(lifter, cls, name)
            raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")

        type.__setattr__(copy, "__getattr__", missing)


def _overridden(cls: type, name: str) -> bool:
    return any(name in vars(base) for base in cls.__mro__[:-1])


def _lifted_property(lifter: Lifts, cls: type, name: str, kept: property) -> property:
    def lifted(part: Any) -> Any:
        def run(*args: Any) -> Any:
            guard_member(lifter, cls, name)
            return lifter.lift(part, _itself(part, name))(*args)

        return part and run

    parts: list[Any] = [kept.fget, kept.fset, kept.fdel]
    return property(*map(lifted, parts))


class Member:
    """What a class keeps under a name, lifted when it is used; instances may have their own."""

    def __init__(self, lifter: Lifts, cls: type, name: str) -> None:
        self._lifter, self._cls, self._name = lifter, cls, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        lifter, cls, name = self._lifter, self._cls, self._name
        return bound_member(lifter, cls, name, instance, owner)


class DataMember(Member):
    """A descriptor of the user's that is told what is assigned to it."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        lifter, cls, name = self._lifter, self._cls, self._name
        if instance is None or _of_descriptor(lifter, member(cls, name), "__get__"):
            return bound_member(lifter, cls, name, instance, owner)
        try:
            return vars(instance)[name]
        except KeyError:
            raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}") from None

    def __set__(self, instance: Any, value: Any) -> None:
        _asked(self._lifter, self._cls, self._name, "__set__", instance, value)

    def __delete__(self, instance: Any) -> None:
        _asked(self._lifter, self._cls, self._name, "__delete__", instance)


def bound_member(lifter: Lifts, cls: type, name: str, instance: Any, owner: Any) -> Any:
    """What a class keeps under a name, lifted, as an instance (None: the class `owner`) has it."""
    kept = member(cls, name)
    if _of_descriptor(lifter, kept, "__get__"):
        return _asked(lifter, cls, name, "__get__", instance, owner)
    if isinstance(kept, types.FunctionType | staticmethod | classmethod | DERIVED):
        guard_member(lifter, cls, name)
    match kept:
        case types.FunctionType():
            function = lifter.function(kept, member_source(cls, name))
            return function if instance is None else types.MethodType(function, instance)
        case classmethod() if isinstance(kept.__func__, types.FunctionType):
            function = lifter.function(kept.__func__, _itself(kept.__func__, name))
            return types.MethodType(function, owner)
        case staticmethod():
            return lifter.lift(kept.__func__, _itself(kept.__func__, name))
        case property() if instance is not None:
            return lifter.lift(kept.fget, _itself(kept.fget, name))(instance)
        case _ if hasattr(type(kept), "__get__"):
            return kept.__get__(instance, owner)
        case _:
            return lifter.lift(kept, deeper(Source("object", cls.__name__, cls), name), name)


class Super:
    """What `super()` gives in a lifted method: members of the classes that come next, lifted."""

    __slots__ = ("_nbcomp",)

    _nbcomp: tuple[Lifts, Any]

    def __getattribute__(self, name: str) -> Any:
        lifter, parent = object.__getattribute__(self, "_nbcomp")
        owner, instance = parent.__self_class__, parent.__self__
        order = owner.__mro__
        for cls in order[order.index(parent.__thisclass__) + 1 :]:
            if name == "__class__":
                break
            if cls is object:
                return _nothing_to_make if name == "__init__" else getattr(parent, name)
            guard_member(lifter, cls, name)
            if name in vars(cls):
                bound = None if instance is owner else instance
                return bound_member(lifter, cls, name, bound, owner)
        return getattr(parent, name)


def _nothing_to_make(*args: Any) -> None:
    """`super().__init__` where no base has one."""
    if args:
        raise Unsupported("object.__init__() with arguments", here())


def super_of(lifter: Lifts) -> Callable[..., Any]:
    """The builtin `super` for lifted methods."""

    def super_(*args: Any) -> Any:
        if not args:
            frame = sys._getframe(1)
            cls, self = frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]]
            args = (cls, self)
        made = Super()
        object.__setattr__(made, "_nbcomp", (lifter, super(*args)))
        return made

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
