"""Expressions of element code: names, operators, subscripts, conditions.

An expression's value is a number or part of an array at run time, or whatever Python object is
known now.  What cannot be said in loops over elements raises `NotElements`.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from nbcomp.errors import NbcompError
from nbcomp.frontend.script.arithmetic import BINARY, Operator, updating
from nbcomp.frontend.script.choices import Choices
from nbcomp.frontend.script.computed import is_array
from nbcomp.frontend.script.reductions import METHODS, turned
from nbcomp.frontend.script.source import Source
from nbcomp.frontend.script.values import (
    PY_INT,
    PYTHONS,
    Computed,
    Either,
    GeneratorOf,
    Length,
    Local,
    LocalFunction,
    Maybe,
    Method,
    NotElements,
    Raises,
    Rows,
    Scalar,
    Torn,
    Varying,
    View,
    describe,
)

LONGEST_CHOICE = 32  # entries of a tuple, one of which is chosen at run time
OF_ARRAYS = {*METHODS, "copy", "dot", "fill", "astype"}


class Update(ast.BinOp):
    """`a op b` of a statement `a op= b`, which says so in what it raises."""


class Expressions(Choices):
    """The values of expressions, in the frame that is being written."""

    depth_of_loops = 0

    def __init__(self) -> None:
        super().__init__()
        self.flagged: set[str] = set()
        self.eager = False  # whether what is read is kept at once: something may change it

    def value(self, node: ast.expr) -> Any:
        """An expression's value."""
        method = getattr(self, f"expr_{type(node).__name__}", None)
        if method is None:
            raise NotElements(f"`{ast.unparse(node)}` in a loop over elements", node)
        outer, self.location = self.location, self.frame.source.at(node)
        try:
            return method(node)
        except NotElements as error:
            if error.node is None:
                error.node = node
            raise
        except NbcompError as error:
            if error.location is None:
                raise type(error)(error.message, self.location, error.hint) from None
            raise
        except PYTHONS as error:
            raise Raises(error) from None
        finally:
            self.location = outer

    def expr_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def expr_Name(self, node: ast.Name) -> Any:
        return self.read(node.id)

    def read(self, name: str) -> Any:
        """A variable's value."""
        if name not in self.frame.env:
            self.unset(name)
            return self.entered(self.frame.lookup(name), name)
        found = self.frame.env[name]
        if isinstance(found, Maybe):
            self.need_assigned(name)
            found = found.value
        if isinstance(found, Torn):
            raise NotElements(
                f"`{name}` is {found.one} on one way here and {found.other} on another"
            )
        if isinstance(found, Local | Varying):
            s = self.value_of(found)
            return self.keep(s, name) if self.eager else s
        return found

    def unset(self, name: str) -> None:
        """A name is read that no variable has here."""

    @abstractmethod
    def need_assigned(self, name: str) -> None:
        """End the kernel where a variable that may be unassigned is."""

    @abstractmethod
    def entered(self, value: Any, name: str) -> Any:
        """A value from outside the loops."""

    def expr_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.frozen(self.value(e)) for e in node.elts)

    def expr_List(self, node: ast.List) -> Any:
        """A list that is only read: what would change it is not compiled."""
        if not (self.depth_of_loops or self.frame.nested):
            raise NotElements("a list", node)
        return [self.frozen(self.value(e)) for e in node.elts]

    def expr_Dict(self, node: ast.Dict) -> Any:
        """The same of a dict, whose keys are known."""
        if not (self.depth_of_loops or self.frame.nested):
            raise NotElements("a dict", node)
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.frozen(self.value(value))
            if key is None and isinstance(found, dict):
                made |= found
            elif isinstance(key, ast.Constant):
                made[key.value] = found
            else:
                raise NotElements("a dict with keys known only at run time", node)
        return made

    def frozen(self, value: Any) -> Any:
        """A value that no later assignment changes."""
        if isinstance(value, tuple):
            return tuple(map(self.frozen, value))
        if type(value) in (list, dict):
            parts = value.values() if isinstance(value, dict) else value
            made = [self.frozen(v) for v in parts]
            if all(new is old for new, old in zip(made, parts, strict=True)):
                return value
            return dict(zip(value, made, strict=True)) if isinstance(value, dict) else made
        if isinstance(value, Computed):
            return self.moving(value, self.materialised)
        if isinstance(value, GeneratorOf):
            raise NotElements("a generator that is not used at once")
        return self.keep(value) if isinstance(value, Scalar | Either) else value

    # -------------------------------------------------------------------------------- operators

    def expr_BinOp(self, node: ast.BinOp) -> Any:
        return self.operation(node, lambda python: python)

    def expr_Update(self, node: Update) -> Any:
        return self.operation(node, updating)

    def operation(self, node: ast.BinOp, form: Callable[[Operator], Operator]) -> Any:
        """An operation; `form`: what Python's own operator becomes."""
        a, b = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            return self.product(a, b)
        if type(node.op) not in BINARY:
            raise NotElements(f"`{ast.unparse(node)}` in a loop over elements", node)
        python, fn = BINARY[type(node.op)]
        return self.each(partial(self.binary, fn, form(python)), a, b)

    def each(self, compute: Callable[..., Any], *values: Any) -> Any:
        """compute(*values) of numbers, or for each element of arrays."""
        if any(map(is_array, values)):
            return self.elementwise(compute, *map(self.item_of, values))
        return compute(*map(self.scalar_of, values))

    def item_of(self, value: Any) -> Any:
        """An array as it is, anything else as a number."""
        return value if is_array(value) else self.scalar_of(value)

    def scalar_of(self, value: Any) -> Any:
        """A 0-d part of an array is its element."""
        if isinstance(value, View | Computed):
            if is_array(value):
                raise NotElements("an operation on a whole array")
            return self.element_at(value, ())
        return value

    def expr_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self.each(partial(self.unary, node.op), self.value(node.operand))

    def expr_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.frozen(self.value(node.value))
        self.assign(node.target, value)
        return value

    @abstractmethod
    def assign(self, target: ast.expr, value: Any) -> None:
        """`target = value`"""

    # ----------------------------------------------------------------------- parts of values

    def expr_Subscript(self, node: ast.Subscript) -> Any:
        base = self.value(node.value)
        index = self.index(node.slice)
        if isinstance(base, Computed):
            base = self.frozen(base)
        if isinstance(base, View) and isinstance(index, list):
            return Rows(tuple(self.row(base, k) for k in index))
        if isinstance(base, View):
            found = self.part(base, index)
            if found.axes:
                return self.still(found)
            element = self.element(found)
            return self.keep(element) if self.eager else element
        if isinstance(base, Scalar | Either):
            raise NotElements("an element of a number")
        if isinstance(index, Scalar) and isinstance(base, tuple | list):
            return self.entry(base, index)
        if isinstance(index, Scalar | Either):
            raise NotElements(f"{describe(base)} indexed by a number known only at run time")
        return self.entered(base[index], "")

    def entry(self, entries: tuple[Any, ...] | list[Any], index: Scalar) -> Any:
        """One of a few values, by a number known at run time only."""
        if not 0 < len(entries) <= LONGEST_CHOICE or not index.kind.is_int:
            raise NotElements("an entry of a tuple or list at a place known only at run time")
        s = self.keep(self.converted(index, PY_INT))
        with self.uncertain():  # whose message differs from that of arrays
            place = self.inside(s, len(entries), 0)
        values = [self.frozen(self.entered(v, "")) for v in entries]
        found = values[-1]
        for k in range(len(values) - 2, -1, -1):
            here = self.compare("equal", place, self.int_const(k))
            found = self.one_of(here, values[k], found, ([], []))
        return found

    def row(self, view: View, index: Any) -> Any:
        """A part of an array as it is now."""
        found = self.part(view, index)
        copied = self.moving(found, self.materialised) if found.axes else self.element(found)
        return self.frozen(copied)

    def still(self, view: View) -> View:
        """A part of an array whose place no later assignment changes."""
        start = tuple(self.keep(Scalar(PY_INT, e), "at").expr for e in view.start)
        return replace(view, start=start)

    def index(self, node: ast.expr) -> Any:
        """What is between brackets."""
        if isinstance(node, ast.Tuple):
            return tuple(map(self.index, node.elts))
        if isinstance(node, ast.List):
            return [self.frozen(self.index(e)) for e in node.elts]
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if p is None else self.scalar_of(self.value(p)) for p in parts))
        return self.scalar_of(self.value(node))

    def expr_Slice(self, node: ast.Slice) -> Any:
        return self.index(node)

    def expr_Attribute(self, node: ast.Attribute) -> Any:
        base = self.value(node.value)
        if isinstance(base, Computed) or (isinstance(base, View) and node.attr in OF_ARRAYS):
            return Method(base, node.attr)
        if isinstance(base, View):
            return self.attribute(base, node.attr)
        if isinstance(base, Scalar | Either):
            if node.attr == "dtype" and isinstance(base, Scalar) and base.kind.python is None:
                return base.dtype
            raise NotElements(f".{node.attr} of a number")
        if isinstance(base, LocalFunction):
            raise NotElements(f".{node.attr} of a function")
        return self.entered(getattr(base, node.attr), node.attr)

    def attribute(self, view: View, name: str) -> Any:
        """What is known of an array, and its transpose."""
        known = {
            "shape": view.shape,
            "ndim": len(view.shape),
            "size": self.elements_of(view.shape),
            "dtype": view.memory.buffer.dtype,
        }
        if name in known:
            return known[name]
        if name == "T":
            return turned(view)
        raise NotElements(f".{name} of an array in a loop over elements")

    def elements_of(self, shape: tuple[Length, ...]) -> Length:
        """How many elements an array of this shape has."""
        size: Length = 1
        for n in shape:
            size = self.scaled(size, n)
        return size

    def expr_Lambda(self, node: ast.Lambda) -> Any:
        source = Source(node, self.frame.source.file, "<lambda>")
        return self.local_function(source)

    def local_function(self, source: Source) -> LocalFunction:
        """A function defined here, with the values its default arguments have now."""
        a = source.node.args
        defaults = tuple(self.frozen(self.value(d)) for d in a.defaults)
        pairs = zip(a.kwonlyargs, a.kw_defaults, strict=True)
        named = {p.arg: self.frozen(self.value(d)) for p, d in pairs if d is not None}
        return LocalFunction(source, self.frame, defaults, named)
