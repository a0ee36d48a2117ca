"""The source of a function: its syntax tree, with the positions of the file or cell it is in.

Knows Python's syntax and where cells keep their text; nothing of arrays.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from nbcomp.errors import CaptureError
from nbcomp.record import Location

Definition = ast.FunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Source:
    """A function's definition, and the file or cell it is in."""

    node: Definition
    file: str
    name: str

    def at(self, node: ast.AST) -> Location:
        """Where a part of it is."""
        line = getattr(node, "lineno", self.node.lineno)
        column = getattr(node, "col_offset", 0)
        end, end_column = getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
        return Location(self.file, line, column, end or 0, end_column or 0, self.name)

    @property
    def text(self) -> str:
        """It as Python, without comments and decorators."""
        plain = self.node
        if isinstance(plain, ast.FunctionDef):
            fields = dict(ast.iter_fields(plain)) | {"decorator_list": []}
            plain = ast.copy_location(ast.FunctionDef(**fields), plain)
        return ast.unparse(plain)

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; a lambda is one `return`."""
        if isinstance(self.node, ast.FunctionDef):
            return self.node.body
        value = self.node.body
        return [ast.copy_location(ast.Return(value), value)]


def source_of(function: types.FunctionType) -> Source:
    """The definition of a function written in Python.

    Raises CaptureError when its text is not at hand, or is no longer the one that was compiled.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    tree = _parsed(code.co_filename, "".join(lines))
    found = [n for n in _defined_at(tree, code.co_firstlineno) if _may_be(n, code)]
    if len(found) > 1:
        found = _innermost([n for n in found if _holds(n, code)])
    if len(found) == 1:
        return Source(found[0], code.co_filename, code.co_name)
    raise CaptureError(
        f"the source of {function.__name__} is not at hand",
        Location(code.co_filename, code.co_firstlineno, function=function.__name__),
        "define it in a cell or a file",
    )


@lru_cache(maxsize=64)
def _parsed(file: str, text: str) -> ast.AST:
    """The syntax tree of a text; an empty one for what is none."""
    for attempt in (text, textwrap.dedent(text)):
        try:
            return ast.parse(attempt)
        except (SyntaxError, ValueError):
            continue
    return ast.Module([], [])


def _defined_at(tree: ast.AST, line: int) -> Iterator[Definition]:
    """The definitions of functions around a line; the rest of a long file is passed by."""
    for node in ast.iter_child_nodes(tree):
        first = min([getattr(node, "lineno", 0), *(d.lineno for d in _decorators(node))])
        if first <= line <= getattr(node, "end_lineno", line):
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                yield node
            yield from _defined_at(node, line)


def _decorators(node: ast.AST) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


def _may_be(node: Definition, code: types.CodeType) -> bool:
    """Whether a definition has a code object's name, first line and parameters."""
    first = min([node.lineno, *(d.lineno for d in _decorators(node))])
    named = getattr(node, "name", "<lambda>") == code.co_name
    return first == code.co_firstlineno and named and _same_arguments(node, code)


def _holds(node: Definition, code: types.CodeType) -> bool:
    """Whether all instructions are of the definition's body; columns count bytes in both."""
    body = node.body if isinstance(node.body, list) else [node.body]
    first, last = _span(body)
    found = False
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if column == end_column == 0:
            continue  # RESUME and the like
        if not first <= (line, column) <= (end_line, end_column) <= last:
            return False
        found = True
    return found


def _span(body: Sequence[ast.AST]) -> tuple[tuple[int, int], tuple[int, int]]:
    first, last = body[0], body[-1]
    return (
        (getattr(first, "lineno", 0), getattr(first, "col_offset", 0)),
        (getattr(last, "end_lineno", 0), getattr(last, "end_col_offset", 0)),
    )


def _innermost(nodes: list[Definition]) -> list[Definition]:
    """Of definitions in one another, the one in all others."""
    inner = [n for n in nodes if not any(m is not n and m in ast.walk(n) for m in nodes)]
    return inner


def _same_arguments(node: Definition, code: types.CodeType) -> bool:
    a = node.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return names == list(code.co_varnames[: len(names)])


# ------------------------------------------------------------------------------------- names


@dataclass
class Names(ast.NodeVisitor):
    """The variables a piece of a function assigns and reads, nested functions' reads included."""

    assigned: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    jumps: bool = False  # it holds a `return`

    def visit_Name(self, node: ast.Name) -> None:
        where = self.read if isinstance(node.ctx, ast.Load) else self.assigned
        where.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.assigned.add(node.name)
        self._inner(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inner(node)

    def visit_Return(self, node: ast.Return) -> None:
        self.jumps = True
        self.generic_visit(node)

    def _comprehension(self, node: Comprehension) -> None:
        """Its variables are its own, but for those of `:=`; the first iterable is outside."""
        inner = Names()
        for part in ast.iter_child_nodes(node):
            inner.visit(part)
        own = names_in([g.target for g in node.generators]).assigned
        self.read |= inner.read - own
        self.assigned |= inner.assigned - own
        self.visit(node.generators[0].iter)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _inner(self, node: ast.FunctionDef | ast.Lambda) -> None:
        inner = Names()
        body = node.body if isinstance(node.body, list) else [node.body]
        for part in body:
            inner.visit(part)
        own = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        self.read |= inner.read - own - inner.assigned
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)


def names_in(nodes: Sequence[ast.AST]) -> Names:
    """The variables of some statements."""
    found = Names()
    for names in map(_names_of, nodes):
        found.assigned |= names.assigned
        found.read |= names.read
        found.jumps |= names.jumps
    return found


@lru_cache(maxsize=4096)
def _names_of(node: ast.AST) -> Names:
    """Those of one, which is asked for again and again, and is not changed."""
    found = Names()
    found.visit(node)
    return found
