"""Objects of the running program that have to be there when Python goes on: iterators, functions.

Arrays and containers become result trees as those that a function returns do; an iterator is made
anew at its position, and a function that was defined in the captured part over its cells.  Knows
the machine and result trees.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nbcomp.frontend.bytecode.calls import BOUND
from nbcomp.frontend.bytecode.machine import Machine
from nbcomp.frontend.bytecode.values import Method, Rows
from nbcomp.frontend.namespace import Namespace, NumpyModule
from nbcomp.frontend.result import Record, Static, Tree

ITERATORS = (
    *map(type, (iter([]), iter(()), iter(range(0)), iter(""), iter({}), iter({}.values()))),
    *map(type, (iter({}.items()), iter(range(1 << 70)), reversed([]), reversed(range(0)))),
    *(enumerate, zip, map, filter, Rows),
)


def remade(machine: Machine, value: Any, tree: Callable[[Any], Tree]) -> Tree | None:
    """The tree of an object that is made anew; None for any other."""
    if type(value) is Method:
        return Record(partial(_attribute, value.name), {"owner": tree(value.owner)})
    if type(value) in ITERATORS:
        return _iterator(value, tree)
    if type(value) is set:
        return Record(_set, {f"part{k}": tree(part) for k, part in enumerate(value)})
    if type(value) is NumpyModule:
        return Static(vars(value)["_module"])
    if type(value) is types.CellType:
        return Record(_cell, {"value": tree(value.cell_contents)})
    if isinstance(value, BOUND) and not isinstance(value.__self__, types.ModuleType):
        return Record(partial(_attribute, value.__name__), {"owner": tree(value.__self__)})
    if isinstance(value, types.MethodType):
        return made_of(types.MethodType, (value.__func__, value.__self__), tree)
    copy = machine.copy_of(value)
    return None if copy is None else _function(copy, tree)


def _iterator(value: Any, tree: Callable[[Any], Tree]) -> Tree:
    make, args, *state = value.__reduce__()
    return made_of(make, args, tree, state[0] if state else None)


def made_of(
    make: Callable[..., Any],
    parts: Sequence[Any],
    tree: Callable[[Any], Tree],
    state: Any = None,
) -> Tree:
    """The tree of what is made anew of such parts."""
    fields = {f"part{k}": tree(part) for k, part in enumerate(parts)}
    return Record(partial(_again, make, state), fields)


def _again(make: Any, state: Any, **parts: Any) -> Any:
    """What pickle does."""
    made = make(*parts.values())
    if state is not None:
        made.__setstate__(state)
    return made


def _attribute(name: str, owner: Any) -> Any:
    return getattr(owner, name)


def _set(**parts: Any) -> set[Any]:
    return set(parts.values())


def _cell(value: Any) -> types.CellType:
    return types.CellType(value)


def _function(copy: types.FunctionType, tree: Callable[[Any], Tree]) -> Tree:
    names = copy.__globals__
    variables = names.variables if isinstance(names, Namespace) else names
    fields: dict[str, Tree] = {
        "defaults": tree(copy.__defaults__),
        "kwdefaults": tree(copy.__kwdefaults__),
    }
    for k, cell in enumerate(copy.__closure__ or ()):
        fields[f"cell{k}"] = tree(cell)
    return Record(partial(_defined, copy.__code__, variables, copy.__qualname__), fields)


def _defined(
    code: types.CodeType,
    variables: dict[str, Any],
    qualname: str,
    defaults: Any,
    kwdefaults: Any,
    **cells: Any,
) -> types.FunctionType:
    """What a `def` statement does."""
    made = types.FunctionType(code, variables, code.co_name, defaults, tuple(cells.values()))
    made.__kwdefaults__, made.__qualname__ = kwdefaults, qualname
    return made
