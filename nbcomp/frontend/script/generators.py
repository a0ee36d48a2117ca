"""Generator expressions that one of Python's functions uses up: `sum(f(v) for v in x if v > 0)`.

Each is written out as the loop it stands for, a function of its first iterable as in Python.
Knows syntax trees; how a loop is written is not its concern.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from nbcomp.frontend.script.choices import Frame
from nbcomp.frontend.script.errors import Words, words
from nbcomp.frontend.script.loops import LoopWriter
from nbcomp.frontend.script.source import Source, names_in
from nbcomp.frontend.script.values import (
    PY_FLOAT,
    GeneratorOf,
    LocalFunction,
    NotElements,
    describe,
    is_numeric,
    numeric,
)

CORRECTED = sys.version_info >= (3, 12)  # sum() of Python floats then adds what was rounded off


class Summand(ast.expr):
    """An expression whose number is added up by `sum`."""

    _fields = ("value",)


class Generators(LoopWriter):
    """Functions of generator expressions."""

    frame: Frame

    def expr_GeneratorExp(self, node: ast.GeneratorExp) -> GeneratorOf:
        if any(g.is_async for g in node.generators):
            raise NotElements("an asynchronous generator", node)
        return GeneratorOf(node, self.frame, self.frozen(self.value(node.generators[0].iter)))

    def expr_Summand(self, node: Summand) -> Any:
        value = self.number_at(node.value)  # type: ignore[attr-defined]
        if CORRECTED and is_numeric(value) and any(w.kind == PY_FLOAT for w in numeric(value).ways):
            raise NotElements("sum() of Python floats, which corrects what is rounded off")
        return value

    def used_up(self, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """What a function makes of all that a generator expression gives."""
        template = FUNCTIONS.get(function)
        first, *rest = args
        allowed = {sum: ("start",), min: ("default",), max: ("default",)}.get(function, ())
        if template is None or len(rest) > (function is sum) or not named.keys() <= {*allowed}:
            raise NotElements(f"{describe(first)} given to {getattr(function, '__name__', '?')}()")
        given = [*rest, *named.values()]
        source = _source(first, function.__name__, template, bool(given))
        loop = LocalFunction(source, first.frame, (), {})
        return self.written_out(loop, [first.items, *given], {})


def _source(generator: GeneratorOf, name: str, template: Template, given: bool) -> Source:
    """The function that a generator and what uses it up are, made once for each."""
    node = generator.node
    made: dict[Any, ast.FunctionDef] = vars(node).setdefault("nbcomp_loops", {})
    if (name, given) not in made:
        made[name, given] = _function(node, name, template, given)
    return Source(made[name, given], generator.frame.source.file, name)


def _function(
    node: ast.GeneratorExp, name: str, template: Template, given: bool
) -> ast.FunctionDef:
    own = names_in([node])
    taken = own.read | own.assigned | {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}

    def free(wanted: str) -> str:
        while any(name.startswith(wanted) for name in taken):  # templates have names of its kind
            wanted += "_"
        return wanted

    items, start, total = map(free, ("items", "start", "total"))
    before, each, after = template(start if given else "", total, node.elt)
    body: list[ast.stmt] = each
    for position, clause in reversed(list(enumerate(node.generators))):
        for test in reversed(clause.ifs):
            body = [ast.If(test, body, [])]
        over = clause.iter if position else ast.Name(items, ast.Load())
        body = [ast.For(clause.target, over, body, [])]
    names = [ast.arg(n) for n in (items, *[start] * given)]
    arguments = ast.arguments([], names, kwonlyargs=[], kw_defaults=[], defaults=[])
    made = ast.FunctionDef(name, arguments, [*before, *body, *after], [])
    return ast.fix_missing_locations(ast.copy_location(made, node))


# What comes before the loop, in it, and after it; start: the name of what was given, total: that of
# what is found; the expression.
Template = Callable[[str, str, ast.expr], tuple[list[ast.stmt], list[ast.stmt], list[ast.stmt]]]


def _statements(text: str, **parts: ast.expr) -> list[ast.stmt]:
    """Statements from their text, with expressions in place of names."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    tree = ast.parse(text)
    for node in ast.walk(tree):  # the places are those of the generator
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            if hasattr(node, name):
                delattr(node, name)
    return [Put().visit(stmt) for stmt in tree.body]


def _sum(start: str, total: str, value: ast.expr) -> tuple[list[Any], list[Any], list[Any]]:
    summand = ast.copy_location(Summand(), value)
    summand.value = value  # type: ignore[attr-defined]
    return (
        _statements(f"{total} = {start or 0}"),
        _statements(f"{total} = {total} + VALUE", VALUE=summand),
        _statements(f"return {total}"),
    )


def _extreme(
    raised: Words, sign: str, start: str, total: str, value: ast.expr
) -> tuple[list[Any], list[Any], list[Any]]:
    """raised: where there is nothing to choose from."""
    found, item = f"{total}_found", f"{total}_item"
    empty = f"return {start}" if start else "raise {}({!r})".format(*raised)
    each = f"""
{item} = VALUE
if not {found}:
    {total} = {item}
    {found} = True
elif {item} {sign} {total}:
    {total} = {item}
"""
    return (
        _statements(f"{found} = False"),
        _statements(each, VALUE=value),
        _statements(f"if not {found}:\n    {empty}\nreturn {total}"),
    )


def _any(start: str, total: str, value: ast.expr) -> tuple[list[Any], list[Any], list[Any]]:
    return [], _statements("if VALUE:\n    return True", VALUE=value), _statements("return False")


def _all(start: str, total: str, value: ast.expr) -> tuple[list[Any], list[Any], list[Any]]:
    no = _statements("if not VALUE:\n    return False", VALUE=value)
    return [], no, _statements("return True")


FUNCTIONS: dict[Any, Template] = {
    sum: _sum,
    min: partial(_extreme, words(min, ()), "<"),
    max: partial(_extreme, words(max, ()), ">"),
    any: _any,
    all: _all,
}
