"""Modules made of modules: `Sequential`, `ModuleList` and `ModuleDict`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MethodType
from typing import Any

from nbcomp.nn.module import Module
from nbcomp.wrapped import function_of


class _Numbered(Module):
    """Submodules in order, named by their position."""

    _items: list[Module]

    def named_children(self) -> Iterator[tuple[str, Module]]:
        return ((str(k), module) for k, module in enumerate(self._items))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            for own, module in self.named_children():
                if own == name:
                    return module
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items)

    def __getitem__(self, index: int | slice) -> Any:
        found = self._items[index]
        return type(self)._of(found) if isinstance(found, list) else found

    def __setitem__(self, index: int, module: Module) -> None:
        self._items[index] = _checked(module)

    def __delitem__(self, index: int | slice) -> None:
        del self._items[index]

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self._items.append(_checked(module))
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end."""
        self._items.extend(map(_checked, modules))
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before another."""
        self._items.insert(index, _checked(module))
        return self

    @classmethod
    def _of(cls, modules: list[Module]) -> Any:
        result = cls.__new__(cls)
        object.__setattr__(result, "_items", modules)
        return result


class ModuleList(_Numbered):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._items = [_checked(m) for m in modules]


class Sequential(_Numbered):
    """Modules that are called one after another, each with what the one before gave.

    Takes modules, or one dict of them by name.
    """

    def __init__(self, *modules: Any) -> None:
        self._names: list[str] | None = None
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            self._names = list(modules[0])
            modules = tuple(modules[0].values())
        self._items = [_checked(m) for m in modules]

    def named_children(self) -> Iterator[tuple[str, Module]]:
        names = vars(self).get("_names")
        if names is None or len(names) != len(self._items):
            return super().named_children()
        return zip(names, self._items, strict=True)

    def forward(self, x: Any) -> Any:
        """The last module's result."""
        for module in self._items:
            x = module(x)
        return x

    def __nbcomp_forward__(self) -> MethodType | None:
        forward = super().__nbcomp_forward__()
        if forward is None or forward.__func__ is not Sequential.forward:
            return forward
        return MethodType(_line_by_line(len(self._items)), self)


@functools.cache
def _line_by_line(count: int) -> Callable[..., Any]:
    """`Sequential.forward` with a line for each of so many modules, for compiling in parts: loops
    that break are run round by round."""
    lines = [
        "def forward(self, x):",
        f"    if len(self._items) != {count}:",
        "        return Sequential.forward(self, x)",
        *(f"    x = self._items[{k}](x)" for k in range(count)),
        "    return x",
    ]
    file = f"<nn.Sequential of {count}>"
    return function_of("\n".join(lines), file, Sequential=Sequential, __name__=__name__)


class ModuleDict(Module):
    """A dict of modules."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self._entries = {name: _checked(m) for name, m in (modules or {}).items()}

    def named_children(self) -> Iterator[tuple[str, Module]]:
        return iter(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> Module:
        return self._entries[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self._entries[name] = _checked(module)

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def keys(self) -> Any:
        """The names."""
        return self._entries.keys()

    def values(self) -> Any:
        """The modules."""
        return self._entries.values()

    def items(self) -> Any:
        """Names and modules."""
        return self._entries.items()

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules, or replace those of the same name."""
        self._entries.update({name: _checked(m) for name, m in modules.items()})


def _checked(module: Any) -> Module:
    if not isinstance(module, Module):
        raise TypeError(f"a module is expected here, not a {type(module).__name__}")
    return module
