"""Variables that inner functions use: cells, which a function shares with those made in it.

Between statements the variables are what counts, and while one is run its cells are.  Knows Python
functions and syntax trees, nothing of arrays.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.script.source import Source


class Cells:
    """The cells of one call of a function.

    own: by the names of its variables.  all: those it found in its closure included.
    identities: the ids of its own.  names: the variables, by the ids of their cells.
    """

    def __init__(self, function: types.FunctionType) -> None:
        code = function.__code__
        self.own = {name: types.CellType() for name in code.co_cellvars}
        found = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.all: dict[str, types.CellType] = {**found, **self.own}
        self.names = {id(cell): name for name, cell in self.own.items()}
        self.identities = frozenset(self.names)

    def fill(self, env: Mapping[str, Any]) -> None:
        """Give the cells what the variables hold."""
        for name, cell in self.own.items():
            if name in env:
                cell.cell_contents = env[name]
            elif _is_filled(cell):
                del cell.cell_contents

    def read(self, env: dict[str, Any]) -> None:
        """Give the variables what the cells hold."""
        for name, cell in self.own.items():
            if _is_filled(cell):
                env[name] = cell.cell_contents
            else:
                env.pop(name, None)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def check_names(source: Source) -> None:
    """Raise `Unsupported` for a function that assigns variables that are not its own."""
    stack: list[ast.AST] = list(source.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            kind = "global" if isinstance(node, ast.Global) else "nonlocal"
            raise Unsupported(
                f"{source.name} assigns variables that are not its own: {kind}"
                f" {', '.join(node.names)}",
                source.at(node),
                "return the new value",
            )
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))


@lru_cache(maxsize=4096)
def returning(node: ast.expr) -> ast.Return:
    """An expression as the statement that returns it."""
    return ast.copy_location(ast.Return(node), node)


@lru_cache(maxsize=4096)
def statement_code(
    source: Source,
    node: ast.stmt,
    parameters: tuple[str, ...],
    shared: tuple[str, ...],
    unset: tuple[str, ...],
    results: tuple[str, ...],
) -> types.CodeType:
    """A statement as the code of a function.

    shared: variables in cells around it.  unset: variables that have no value yet.  results: whose
    values it returns, unless it deletes.
    """
    never: list[ast.stmt] = [
        ast.If(ast.Constant(0), [ast.Assign([ast.Name(n, ast.Store())], ast.Constant(0))], [])
        for n in unset
        if n not in shared
    ]
    outside: list[ast.stmt] = [ast.Nonlocal(list(shared))] if shared else []
    values = [ast.Name(n, ast.Load()) for n in results]
    back: list[ast.stmt] = (
        [ast.Return(ast.Tuple(list(values), ast.Load()))]
        if results and not isinstance(node, ast.Delete)
        else []
    )
    name = source.name if source.name.isidentifier() else "lambda_"
    # Under another name, which the statement does not use: its own it may call.
    function = _function("nbcomp_statement", parameters, [*outside, *never, node, *back])
    around = _function("nbcomp_around", shared, [function])
    for part in (function, around, *outside, *never, *back):
        ast.copy_location(part, node)
    ast.fix_missing_locations(around)
    code = compile(ast.Module([around], []), source.file, "exec")
    for _ in range(2):
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    return code.replace(co_name=name, co_qualname=name)


def _function(name: str, parameters: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, [])
    function = ast.FunctionDef(name, arguments, body, [], None)
    if hasattr(function, "type_params"):
        function.type_params = []
    return function
