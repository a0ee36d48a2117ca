"""Expressions of element code: names, operators, subscripts, conditions.

An expression's value is a number or part of an array at run time, or whatever Python object is
known now.  What cannot be said in loops over elements raises `NotElements`.
"""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nbcomp.errors import NbcompError
from nbcomp.frontend.script.arithmetic import BINARY, COMPARE
from nbcomp.frontend.script.computed import is_array
from nbcomp.frontend.script.reductions import METHODS, Reductions, turned
from nbcomp.frontend.script.source import Source
from nbcomp.frontend.script.values import (
    NONE,
    PY_INT,
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
    is_numeric,
    narrowed,
    number,
    numeric,
    union,
)
from nbcomp.loop.grammar import Stmt
from nbcomp.record import Location
from nbcomp.types import BOOL

Env = dict[str, Any]
Places = dict[str, Location | None]  # where variables were assigned
LONGEST_CHOICE = 32  # entries of a tuple, one of which is chosen at run time
OF_ARRAYS = {*METHODS, "copy", "dot", "fill", "astype"}
# What evaluating something known now may raise: it is raised when the program gets there.
PYTHONS = (ArithmeticError, ValueError, TypeError, LookupError, NameError, AttributeError)


@dataclass(eq=False)
class Frame:
    """A function being written out: its variables, and where its other names are found."""

    source: Source
    env: Env
    lookup: Callable[[str], Any]
    label: str = ""  # of the block a `return` leaves
    results: list[Any] = field(default_factory=list)  # what it returned so far
    nested: int = 0  # control flow around the statement being written
    loops: list[Any] = field(default_factory=list)
    places: Places = field(default_factory=dict)


class Expressions(Reductions, ABC):
    """The values of expressions, in the frame that is being written."""

    frame: Frame
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
        a, b = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            return self.product(a, b)
        if type(node.op) not in BINARY:
            raise NotElements(f"`{ast.unparse(node)}` in a loop over elements", node)
        python, fn = BINARY[type(node.op)]
        return self.each(partial(self.binary, fn, python), a, b)

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

    def expr_Compare(self, node: ast.Compare) -> Any:
        left = self.frozen(self.value(node.left)) if len(node.ops) > 1 else self.value(node.left)
        result: Any = None
        sides = [left]

        def next_one(op: ast.cmpop, right: ast.expr) -> Any:
            sides.append(
                self.value(right) if len(node.ops) == 1 else self.frozen(self.value(right))
            )
            return self.one_comparison(op, sides[-2], sides[-1])

        for position, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            later = partial(next_one, op, right)
            result = self.both(result, later, True) if position else later()
            if len(sides) == position + 1:
                break  # known to be false already
        return result

    def one_comparison(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Is | ast.IsNot):
            return self.identity(isinstance(op, ast.Is), left, right)
        if isinstance(op, ast.In | ast.NotIn):
            return self.membership(op, left, right)
        python, fn = COMPARE[type(op)]
        return self.each(partial(self.compared, fn, python), left, right)

    def identity(self, wanted: bool, left: Any, right: Any) -> Any:
        """`left is right`, or `is not`."""
        if left is None:
            left, right = right, left
        if isinstance(left, Scalar | Either) and right is not None:
            raise NotElements("`is` between numbers", hint="use ==")
        same = self.is_none(left) if right is None else left is right
        return same if wanted else self.negated(same)

    def membership(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """`x in (1, 2, 3)`"""
        if not isinstance(right, tuple | list):
            raise NotElements(f"`in` of {describe(right)}")
        left = self.frozen(self.scalar_of(left))
        found: Any = False
        for entry in right:
            equal = self.compared("equal", operator.eq, left, self.scalar_of(entry))
            found = self.both(found, partial(_identity, equal), False)
        return found if isinstance(op, ast.In) else self.negated(found)

    def expr_BoolOp(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        result = self.scalar_of(self.value(node.values[0]))
        for later in node.values[1:]:
            outer = dict(self.frame.env)
            self.refine(node.values[0], is_and)
            result = self.both(result, partial(self.number_at, later), is_and)
            self.frame.env = {**self.frame.env, **{k: outer[k] for k in outer}}
        return result

    def number_at(self, node: ast.expr) -> Any:
        """An expression's value, an element for a part without axes."""
        return self.scalar_of(self.value(node))

    def both(self, first: Any, later: Callable[[], Any], is_and: bool) -> Any:
        """`first and later()` or `first or later()`, the second evaluated only if need be."""
        truth = self.truth(first)
        if not isinstance(truth, Scalar):
            return later() if truth == is_and else first
        first = self.frozen(first)
        truth = self.truth(first)
        with self.body() as body, self.perhaps():
            second = later()
        if not is_numeric(second):
            raise NotElements(f"`and` and `or` of {describe(second)}")
        one, two = numeric(first), numeric(second)
        yes, no = (two, one) if is_and else (one, two)
        if body or not one.expr.dtype == two.expr.dtype == BOOL:
            bodies: tuple[list[Stmt], list[Stmt]] = (body, []) if is_and else ([], body)
            return self.one_of(truth.expr, yes, no, bodies)
        fn = "logical_and" if is_and else "logical_or"
        ways, expr = union(yes.ways, no.ways), self.apply(fn, one.expr, two.expr, dtype=BOOL)
        if len(ways) == 1:
            return Scalar(ways[0].kind, expr, 0, 1)
        return Either(ways, expr, self.choose(truth.expr, self.tag_of(yes), self.tag_of(no)))

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """Around what is evaluated on some ways only: it cannot end the statement."""
        try:
            yield
        except Raises as raised:
            raise NotElements(f"part of an expression always raises: {raised}") from None

    def expr_IfExp(self, node: ast.IfExp) -> Any:
        test = self.truth(self.scalar_of(self.value(node.test)))
        if not isinstance(test, Scalar):
            return self.value(node.body if test else node.orelse)
        test = self.keep(test)
        sides, bodies = [], []
        for branch, holds in ((node.body, True), (node.orelse, False)):
            outer = dict(self.frame.env)
            self.refine(node.test, holds)
            with self.body() as body, self.perhaps():
                sides.append(self.scalar_of(self.value(branch)))
            self.frame.env = outer
            bodies.append(body)
        return self.one_of(test.expr, sides[0], sides[1], bodies)

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

    # ------------------------------------------------------------------- what conditions tell

    def refine(self, test: ast.expr, holds: bool) -> None:
        """Narrow the bounds of variables by a condition that holds, or does not, from here on."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                self.refine(operand, not holds)
            case ast.BoolOp(op, values) if isinstance(op, ast.And) == holds:
                for v in values:
                    self.refine(v, holds)
            case ast.Compare(left, ops, comparators) if holds or len(ops) == 1:
                sides = [left, *comparators]
                for a, relation, b in zip(sides, ops, comparators, strict=False):
                    self.narrow(a, type(relation), b, holds)

    def narrow(self, a: ast.expr, op: type[ast.cmpop], b: ast.expr, holds: bool) -> None:
        """One comparison of a variable with something whose bounds are known."""
        if op in (ast.Is, ast.IsNot):
            self.narrow_none(a, b, (op is ast.Is) == holds)
            return
        op = op if holds else _OPPOSITE.get(op, op)
        if not holds and op not in _MIRROR:
            return
        for one, relation, other in ((a, op, b), (b, _MIRROR.get(op, op), a)):
            found = self.frame.env.get(one.id) if isinstance(one, ast.Name) else None
            if not (isinstance(found, Local | Scalar) and found.kind.is_int):
                continue
            bounds = self.bounds_of(other)
            if bounds is not None:
                allowed = _ALLOWED.get(relation)
                low, high = allowed(*bounds) if allowed else (None, None)
                assert isinstance(one, ast.Name)
                new_low = found.low if low is None else max(found.low, low)
                new_high = found.high if high is None else min(found.high, high)
                self.frame.env[one.id] = replace(found, low=new_low, high=new_high)

    def narrow_none(self, a: ast.expr, b: ast.expr, is_none: bool) -> None:
        """A variable is None from here on, or not."""
        match a, b:
            case ast.Name(name), ast.Constant(None):
                found = self.frame.env.get(name)
                if isinstance(found, Varying):
                    ways = tuple(w for w in found.ways if (w.kind == NONE) == is_none)
                    self.frame.env[name] = narrowed(found, ways) if ways else found

    def bounds_of(self, node: ast.expr) -> tuple[int, int] | None:
        """The bounds of a whole number, found without writing anything; None if not known."""
        env = dict(self.frame.env)
        with self.discarded():
            try:
                s = number(self.scalar_of(self.value(node)))
            except (NotElements, Raises, NbcompError):
                return None
            finally:
                self.frame.env = env
        return (s.low, s.high) if s.kind.is_int else None


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_MIRROR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
}
_ALLOWED: dict[type[ast.cmpop], Callable[[int, int], tuple[int | None, int | None]]] = {
    ast.Lt: lambda low, high: (None, high - 1),
    ast.LtE: lambda low, high: (None, high),
    ast.Gt: lambda low, high: (low + 1, None),
    ast.GtE: lambda low, high: (low, None),
    ast.Eq: lambda low, high: (low, high),
}


def _identity(value: Any) -> Any:
    return value
