"""Assignments of element code: variables, elements and parts of arrays, unpacking.

A variable that holds a number has memory of its own, one place for each kind of number; a name may
stand for one kind here and another there.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

import numpy as np

from nbcomp.frontend.script.arithmetic import BINARY
from nbcomp.frontend.script.calls import Calls
from nbcomp.frontend.script.computed import is_array
from nbcomp.frontend.script.expressions import Update
from nbcomp.frontend.script.mathematics import ROUNDING
from nbcomp.frontend.script.source import Source, names_in
from nbcomp.frontend.script.values import (
    Computed,
    Either,
    GeneratorOf,
    NotElements,
    Rows,
    Scalar,
    View,
    describe,
    is_numeric,
    numeric,
)
from nbcomp.loop.grammar import Expr, Load, const
from nbcomp.types import BOOL


class Restart(Exception):
    """Something was learnt that statements already written depend on: write them again."""


class Assignments(Calls):
    """Statements that give names and elements their values."""

    def stmt_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        if len(node.targets) > 1 or isinstance(node.targets[0], ast.Tuple | ast.List):
            value = self.frozen(value)
        with self.used_once(value if self.is_rounding(node) else None):
            for target in node.targets:
                self.assign(target, value)

    def is_rounding(self, node: ast.Assign) -> bool:
        """Whether a statement does nothing but assign a number that Python's `int` or the like
        gives to an element."""
        match node:
            case ast.Assign([ast.Subscript()], ast.Call(ast.Name() | ast.Attribute() as function)):
                with self.discarded():
                    return any(self.value(function) is f for f in (int, round, *ROUNDING))
        return False

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
        if is_array(value):
            value = self.frozen(value)
            if not isinstance(value.shape[0], int):
                raise NotElements("unpacking an array of a length known only at run time")
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
        if isinstance(value, View) and not is_array(value):
            value = self.scalar_of(value)
        elif isinstance(value, Computed | GeneratorOf):
            value = self.frozen(value)
        if isinstance(value, Scalar | Either):
            variable = self.memory(name, value.ways)
            self.put(variable, value)
            value = variable
        self.frame.env[name] = value
        self.frame.places[name] = self.location
        if name in self.flagged:
            self.store(self.flag(name), const(True, BOOL))

    def set_item(self, base: Any, index: Any, value: Any) -> None:
        """`base[index] = value`"""
        if not isinstance(base, View):
            raise NotElements(f"assignment to an element of {describe(base)}")
        if isinstance(index, list):
            self.set_rows(base, index, value)
            return
        value = self.item_of(value)
        if not is_numeric(value) and not is_array(value):
            raise NotElements(f"assigning {describe(value)} to an element")
        if isinstance(value, Scalar | Either):
            value = self.keep(value) if self.eager and not self.only else value
        target = self.part(base, index)
        self.fill(target, value)

    def set_rows(self, base: View, index: list[Any], value: Any) -> None:
        """`base[[i, j]] = value`: one part after the other."""
        parts = value.parts if isinstance(value, Rows) else (value,) * len(index)
        if len(parts) != len(index) or is_array(value):
            raise NotElements("assigning an array to parts that a list names")
        for k, part in zip(index, parts, strict=True):
            self.set_item(base, k, part)

    def fill(self, target: View, value: Any) -> None:
        """A number to every element of a part of an array, or an array's elements."""
        if is_array(value):
            if not target.axes:
                raise NotElements("assigning an array to an element")
            self.copy_into(target, value)
            return
        if not target.axes:
            self.set_element(target, value)
            return
        value = self.frozen(numeric(value))
        self.over(target.shape, lambda index: self.set_element(self.place(target, index), value))

    def index_sum(self, a: Expr, b: Expr) -> Expr:
        """The sum of two indices."""
        return self.index_arithmetic("add", a, b) or self.apply("add", a, b)

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            current = self.read(node.target.id)
            if isinstance(current, View):
                self.update(node, current)
                return
            operation = Update(_loaded(node.target), node.op, node.value)
            self.bind(node.target.id, self.value(ast.copy_location(operation, node)))
            return
        if not isinstance(node.target, ast.Subscript):
            raise NotElements(f"assignment to `{ast.unparse(node.target)}`", node)
        base = self.value(node.target.value)
        if not isinstance(base, View):
            raise NotElements(f"assignment to an element of {describe(base)}")
        index = self.index(node.target.slice)
        if isinstance(index, list):
            raise NotElements("an operation on parts that a list names, in place")
        self.update(node, self.still(self.part(base, self.frozen(index))))

    def update(self, node: ast.AugAssign, target: View) -> None:
        """A part of an array with an operation on it in its place."""
        if type(node.op) not in BINARY:
            raise NotElements(f"`{first_line(node)}` in a loop over elements", node)
        python, fn = BINARY[type(node.op)]
        if not target.axes:
            old = self.element(target)
            old = self.keep(old) if self.eager else old
            self.set_element(
                target, self.binary(fn, python, old, self.scalar_of(self.value(node.value)))
            )
            return
        new = self.each(partial(self.binary, fn, python), target, self.value(node.value))
        if not np.can_cast(new.kind.dtype, target.memory.buffer.dtype, "same_kind"):
            raise NotElements(f"an operation in place whose result is {new.kind}")
        self.copy_into(target, new)

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
