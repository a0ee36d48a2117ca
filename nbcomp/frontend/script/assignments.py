"""Assignments of element code: variables, elements and parts of arrays, unpacking.

A variable that holds a number has memory of its own, one place for each kind of number; a name may
stand for one kind here and another there.
"""

from __future__ import annotations

import ast
from typing import Any

from nbcomp.frontend.script.arithmetic import BINARY
from nbcomp.frontend.script.calls import Calls
from nbcomp.frontend.script.source import Source, names_in
from nbcomp.frontend.script.values import (
    Either,
    NotElements,
    Scalar,
    View,
    describe,
    is_numeric,
    numeric,
)
from nbcomp.loop.grammar import (
    Expr,
    For,
    Load,
    affine,
    const,
    loop_var,
)
from nbcomp.types import BOOL


class Restart(Exception):
    """Something was learnt that statements already written depend on: write them again."""


class Assignments(Calls):
    """Statements that give names and elements their values."""

    def stmt_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        if len(node.targets) > 1 or isinstance(node.targets[0], ast.Tuple | ast.List):
            value = self.frozen(value)
        for target in node.targets:
            self.assign(target, value)

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def assign(self, target: ast.expr, value: Any) -> None:
        """`target = value`"""
        match target:
            case ast.Name(name):
                self.bind(name, value)
            case ast.Tuple(targets) | ast.List(targets):
                self.unpack(targets, value)
            case ast.Subscript(base, index):
                self.set_item(self.value(base), self.index(index), value)
            case _:
                raise NotElements(f"assignment to `{ast.unparse(target)}`", target)

    def unpack(self, targets: list[ast.expr], value: Any) -> None:
        if isinstance(value, View) and value.axes:
            value = tuple(self.frozen(self.item(value, k)) for k in range(value.shape[0]))
        if not isinstance(value, tuple | list):
            raise NotElements(f"unpacking {describe(value)}")
        if any(isinstance(t, ast.Starred) for t in targets):
            raise NotElements("unpacking with *")
        if len(value) != len(targets):
            few = "not enough" if len(value) < len(targets) else "too many"
            expected = f" (expected {len(targets)}" + (
                f", got {len(value)})" if len(value) < len(targets) else ")"
            )
            raise ValueError(f"{few} values to unpack{expected}")
        for target, part in zip(targets, value, strict=True):
            self.assign(target, part)

    def item(self, view: View, index: Any) -> Any:
        """`view[index]`: a number, or a smaller part."""
        found = self.part(view, index)
        return found if found.axes else self.element(found)

    def bind(self, name: str, value: Any) -> None:
        """A variable's new value."""
        if isinstance(value, View) and not value.axes:
            value = self.element(value)
        if isinstance(value, Scalar | Either):
            variable = self.memory(name, value.ways)
            self.put(variable, value)
            value = variable
        self.frame.env[name] = value
        if name in self.flagged:
            self.store(self.flag(name), const(True, BOOL))

    def set_item(self, base: Any, index: Any, value: Any) -> None:
        """`base[index] = value`"""
        if not isinstance(base, View):
            raise NotElements(f"assignment to an element of {describe(base)}")
        if isinstance(value, View) and not value.axes:
            value = self.element(value)
        if not is_numeric(value):
            raise NotElements(f"assigning {describe(value)} to an element")
        if isinstance(value, Scalar | Either):
            value = self.keep(value) if self.eager else value
        target = self.part(base, index)
        self.fill(target, value)

    def fill(self, target: View, value: Any) -> None:
        """A number to every element of a part of an array."""
        if not target.axes:
            self.set_element(target, value)
            return
        value = self.frozen(numeric(value))
        axis = target.axes[0]
        var = self.fresh("k")
        inner = list(target.start)
        moved = self.index_arithmetic("multiply", loop_var(var), affine(axis.step))
        assert moved is not None
        inner[axis.position] = self.index_sum(inner[axis.position], moved)
        with self.body() as body:
            self.fill(View(target.memory, tuple(inner), target.axes[1:]), value)
        self.add(For(var, affine(axis.extent), tuple(body), location=self.location))

    def index_sum(self, a: Expr, b: Expr) -> Expr:
        """The sum of two indices."""
        return self.index_arithmetic("add", a, b) or self.apply("add", a, b)

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        operation = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
        if isinstance(node.target, ast.Name):
            current = self.read(node.target.id)
            if isinstance(current, View):
                raise NotElements("an operation on a whole array in place")
            self.bind(node.target.id, self.value(operation))
            return
        if not isinstance(node.target, ast.Subscript):
            raise NotElements(f"assignment to `{ast.unparse(node.target)}`", node)
        base = self.value(node.target.value)
        if not isinstance(base, View):
            raise NotElements(f"assignment to an element of {describe(base)}")
        target = self.part(base, self.frozen(self.index(node.target.slice)))
        if target.axes:
            raise NotElements("an operation on part of an array in place")
        target = self.still(target)
        self.set_element(target, self.updated(node, target))

    def updated(self, node: ast.AugAssign, target: View) -> Any:
        """The new value of an element."""
        old = self.element(target)
        old = self.keep(old) if self.eager else old
        python, fn = BINARY[type(node.op)]
        return self.binary(fn, python, old, self.scalar_of(self.value(node.value)))

    def stmt_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if not isinstance(node.value, ast.Call):
            self.value(node.value)
            return
        self.value(node.value)

    def stmt_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def stmt_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise NotElements("a decorated function in a loop over elements", node)
        source = Source(node, self.frame.source.file, node.name)
        self.frame.env[node.name] = self.local_function(source)

    def stmt_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                raise NotElements("`del` of a part")
            self.frame.env.pop(target.id, None)

    def need_assigned(self, name: str) -> None:
        if name not in self.flagged:
            self.flagged.add(name)
            raise Restart
        unset = self.apply("logical_not", self.flag_value(name), dtype=BOOL)
        message = f"cannot access local variable '{name}' where it is not associated with a value"
        self.fail_if(unset, "UnboundLocalError", message)

    def flag_value(self, name: str) -> Expr:
        """Whether a variable is assigned."""
        return Load(BOOL, self.flag(name), ())

    def start_flags(self, body: list[ast.stmt]) -> None:
        """At the start of a function none of its variables is assigned."""
        for name in sorted(self.flagged & names_in(body).assigned):
            self.store(self.flag(name), const(False, BOOL))


def _loaded(target: ast.expr) -> ast.expr:
    """A target as an expression that reads it."""
    match target:
        case ast.Name(name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Subscript(base, index):
            return ast.copy_location(ast.Subscript(base, index, ast.Load()), target)
        case _:
            return target


def first_line(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0]
