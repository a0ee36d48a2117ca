"""Numbers whose kind is known at run time only: Python's on one way, NumPy's on another.

`s = 0; for v in a: s += v` leaves an int where `a` is empty and a NumPy scalar where it is not, and
every operation means what it means for the one there is.  Such a number is kept in a dtype that
holds all of its kinds, with a tag beside it.  An operation on it is written for each kind: where
that comes to the same, it is written once, else the tag chooses.  Knows numbers, not operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nbcomp.frontend.script.emitter import Emitter
from nbcomp.frontend.script.values import (
    KINDS,
    NONE,
    PY_BOOL,
    PYTHONS,
    TAG,
    Either,
    Kind,
    Local,
    NotElements,
    Number,
    Raises,
    Scalar,
    Variable,
    Varying,
    Way,
    carrier,
    describe,
    exact_range,
    is_number,
    is_numeric,
    numeric,
    union,
)
from nbcomp.loop.grammar import (
    OVERFLOWS,
    Affine,
    Apply,
    Cast,
    Const,
    Exit,
    Expr,
    If,
    Let,
    Load,
    Select,
    Stmt,
    Var,
    const,
)
from nbcomp.types import BOOL, DType

Side = tuple[Way, list[Stmt], Any]  # a kind, what is done for it, and the value then
NOTHING: Any = object()  # in place of a value where the kernel ends


class Ways(Emitter):
    """Where ways meet, and what follows."""

    # ------------------------------------------------------------------------------ variables

    def memory(self, name: str, ways: tuple[Way, ...]) -> Variable:
        """The memory of a variable while it holds numbers of these kinds."""
        buffer = self.local(name, carrier(ways))
        if len(ways) == 1:
            return Local(ways[0].kind, buffer, ways[0].low, ways[0].high)
        return Varying(ways, buffer, self.local(name, TAG, "kind"))

    def value_of(self, variable: Variable) -> Number:
        """A variable's present value."""
        load = Load(variable.buffer.dtype, variable.buffer, ())
        if isinstance(variable, Varying):
            return Either(variable.ways, load, Load(TAG, variable.tag, ()))
        expr = self.exactly(load, variable.kind.dtype)
        return Scalar(variable.kind, expr, variable.low, variable.high)

    def put(self, target: Variable, value: Number, source: Any = None) -> None:
        """Give a variable a number of its kinds; `source`: the variable it is the value of."""
        tag = target.tag if isinstance(target, Varying) else None
        if tag is not None and isinstance(source, Varying) and source.tag is tag:
            tag = None  # it is there
        # What the tag is may depend on what the variable held until now.
        kind = None if tag is None else self.kept(self.tag_of(value), "kind")
        if not (isinstance(source, Local | Varying) and source.buffer is target.buffer):
            self.store(target.buffer, self.held(value, target.buffer.dtype))
        if tag is not None and kind is not None:
            self.store(tag, kind)

    def tag_of(self, value: Number) -> Expr:
        """The tag of a number's kind."""
        return value.tag if isinstance(value, Either) else const(value.ways[0].tag, TAG)

    def held(self, value: Number, dtype: DType) -> Expr:
        """A number in a dtype that holds its kinds; what is not exact in it is left to Python."""
        expr = value.expr
        if expr.dtype == dtype or expr.dtype.kind == "f":
            return self.to_dtype(expr, dtype)
        if not all(way.fits(dtype) for way in value.ways):
            expr = self.kept(expr, "t")
            self.needs_bounds(expr, *exact_range(dtype))
        return self.to_dtype(expr, dtype)

    def needs_bounds(self, expr: Expr, low: int, high: int) -> None:
        """Leave whole numbers outside of low..high to Python."""
        least, most = Kind(expr.dtype).bounds()
        message = "a whole number that its variable cannot hold on all ways"
        with self.uncertain():
            for fn, bound in (("less", max(low, least)), ("greater", min(high, most))):
                bad = self.compare(fn, expr, const(bound, expr.dtype))
                self.fail_if(bad, "OverflowError", message)

    # ------------------------------------------------------------------- one of several values

    def one_of(self, test: Expr, a: Any, b: Any, bodies: Sequence[list[Stmt]]) -> Any:
        """a if test else b, each with the statements it needs."""
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b) and not any(bodies):
            return tuple(self.one_of(test, x, y, ([], [])) for x, y in zip(a, b, strict=True))
        if a is b and not any(bodies):
            return a
        if not all(is_numeric(x) or x is None for x in (a, b)):
            raise NotElements(f"a choice between {describe(a)} and {describe(b)}")
        yes, no = numeric(a), numeric(b)
        ways = union(yes.ways, no.ways)
        if any(bodies) and all(map(_is_light, (yes.expr, no.expr))) and _are_light(bodies):
            self.on_both_ways(test, bodies)
            bodies = ([], [])
        if not any(bodies):
            with self.body() as checks:
                exprs = [self.held(n, carrier(ways)) for n in (yes, no)]
            if not checks:
                expr = exprs[0] if same_expr(*exprs) else self.choose(test, *exprs)
                if len(ways) == 1:
                    return Scalar(ways[0].kind, expr, ways[0].low, ways[0].high)
                return Either(ways, expr, self.choose(test, self.tag_of(yes), self.tag_of(no)))
        place = self.memory(self.fresh("choice"), ways)
        sides = []
        for value, own in ((yes, bodies[0]), (no, bodies[1])):
            with self.body() as stmts:
                stmts.extend(own)
                self.put(place, value)
            sides.append(tuple(stmts))
        self.add(If(test, sides[0], sides[1], self.location))
        return self.keep(self.value_of(place))

    def on_both_ways(self, test: Expr, bodies: Sequence[list[Stmt]]) -> None:
        """The statements of both ways, one after the other: what ends the kernel on one of them
        also asks for the test.  A jump that is hard to foresee takes longer than a few sums."""
        otherwise = self.apply("logical_not", test, dtype=BOOL)
        for taken, body in zip((test, otherwise), bodies, strict=True):
            for stmt in body:
                if isinstance(stmt, If):
                    bad = self.apply("logical_and", taken, stmt.condition, dtype=BOOL)
                    stmt = replace(stmt, condition=bad)
                self.add(stmt)

    # --------------------------------------------------------------------------------- by kind

    def is_none(self, value: Any) -> Any:
        """`value is None`"""
        if not (isinstance(value, Either) and any(w.kind == NONE for w in value.ways)):
            return value is None
        none = const(KINDS.index(NONE), TAG)
        return Scalar(PY_BOOL, self.compare("equal", value.tag, none), 0, 1)

    def each_way(self, values: Sequence[Any], compute: Callable[..., Any]) -> Any:
        """compute(*values), for the kinds that they are of."""
        chosen = next((v for v in values if isinstance(v, Either)), None)
        if chosen is None:
            return compute(*values)
        values = [self.at_hand(v) if isinstance(v, Either) else v for v in values]
        chosen = next(v for v in values if isinstance(v, Either))
        sides, reasons = list[Side](), list[Exception]()
        for way in chosen.ways:
            plain = [self.of_kind(v, way.kind, chosen.tag) for v in values]
            with self.body() as body:
                try:
                    result = self.each_way(plain, compute)
                except (NotElements, Raises, *PYTHONS) as error:
                    reasons.append(error)
                    result = self.left_to_python(error)
            sides.append((way, body, result))
        if len(reasons) == len(sides):
            raise next((r for r in reasons if isinstance(r, NotElements)), reasons[0])
        return self.by_tag(chosen.tag, sides)

    def at_hand(self, value: Either) -> Either:
        """A number that is read without computing it anew."""
        simple = all(_simple(e) for e in (value.expr, value.tag))
        return (
            value
            if simple
            else replace(value, expr=self.kept(value.expr, "t"), tag=self.kept(value.tag, "kind"))
        )

    def of_kind(self, value: Any, kind: Kind, tag: Expr) -> Any:
        """A number where the tag says that it is of this kind; others as they are."""
        if not (isinstance(value, Either) and same_expr(value.tag, tag)):
            return value
        if kind == NONE:
            return None
        way = next(w for w in value.ways if w.kind == kind)
        return Scalar(kind, self.exactly(value.expr, kind.dtype), way.low, way.high)

    def left_to_python(self, error: Exception) -> Any:
        """What is not compiled for numbers of one kind."""
        with self.uncertain():
            self.fail("TypeError", str(error).replace("{", "{{").replace("}", "}}"))
        return NOTHING

    def by_tag(self, tag: Expr, sides: list[Side]) -> Any:
        """One of several values, by a tag; one that is the same for all is itself."""
        if any(value is NotImplemented for _, _, value in sides):
            return NotImplemented
        first = sides[0][2]
        if not any(body for _, body, _ in sides) and all(_alike(first, v) for _, _, v in sides):
            return _joined([value for _, _, value in sides])
        _, body, value = sides[-1]
        for other, own, found in sides[-2::-1]:
            test = self.compare("equal", tag, const(other.tag, TAG))
            with self.body() as both:
                value = self.one_or_nothing(test, (own, found), (body, value))
            body = both
        self.stmts.extend(body)
        return value

    def one_or_nothing(
        self, test: Expr, yes: tuple[list[Stmt], Any], no: tuple[list[Stmt], Any]
    ) -> Any:
        """One of two values, where the kernel may end instead."""
        if yes[1] is NOTHING:
            self.add(If(test, tuple(yes[0]), (), self.location))
            self.stmts.extend(no[0])
            return no[1]
        if no[1] is NOTHING:
            other = self.apply("logical_not", test, dtype=BOOL)
            return self.one_or_nothing(other, no, yes)
        return self.one_of(test, yes[1], no[1], (yes[0], no[0]))


def _simple(expr: Expr) -> bool:
    return isinstance(expr, Const | Var) or (isinstance(expr, Load) and not expr.indices)


def _alike(a: Any, b: Any) -> bool:
    """Whether two values are the same, their bounds aside."""
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a.kind == b.kind and same_expr(a.expr, b.expr)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(map(_alike, a, b))
    plain = is_number(a) and is_number(b) and not isinstance(a, Scalar | None)
    return plain and type(a) is type(b) and repr(a) == repr(b)


def _joined(values: list[Any]) -> Any:
    """One value for several that are alike."""
    first = values[0]
    if isinstance(first, tuple):
        return tuple(_joined(list(parts)) for parts in zip(*values, strict=True))
    if not isinstance(first, Scalar):
        return first
    return replace(first, low=min(v.low for v in values), high=max(v.high for v in values))


def same_expr(a: Expr, b: Expr) -> bool:
    """Whether two expressions are written alike, so that they have one value at one moment."""
    if a is b:
        return True
    if type(a) is not type(b) or a.dtype != b.dtype:
        return False
    match a, b:
        case Const(), Const():
            return a.value.tobytes() == b.value.tobytes()
        case Var(), Var():
            return a.name == b.name
        case Affine(), Affine():
            return (a.terms, a.constant) == (b.terms, b.constant)
        case (Load(), Load()) if a.buffer != b.buffer:
            return False
        case (Apply(), Apply()) if a.fn != b.fn:
            return False
    mine, yours = _parts(a), _parts(b)
    return len(mine) == len(yours) and all(map(same_expr, mine, yours))


def _parts(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Load():
            return e.indices
        case Apply():
            return e.args
        case Cast():
            return (e.value,)
        case Select():
            return (e.condition, e.yes, e.no)
        case _:
            return ()


LIGHT = 8  # operations of both ways that take no longer than a jump that was not foreseen
_LIGHT = frozenset((*OVERFLOWS, "add", "subtract", "bitwise_and", "bitwise_or", "bitwise_xor"))
_LIGHT |= {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def _are_light(bodies: Sequence[list[Stmt]]) -> bool:
    """Whether all that is done on two ways may be done on both: a few operations that always have a
    result, and checks."""
    exprs = list[Expr]()
    for stmt in (s for body in bodies for s in body):
        match stmt:
            case Let(value=value):
                exprs.append(value)
            case If(condition=condition, yes=(Exit(detail=None),), no=()):
                exprs.append(condition)
            case _:
                return False
    return len(exprs) <= LIGHT and all(map(_is_light, exprs))


def _is_light(expr: Expr) -> bool:
    """Whether an expression of whole numbers takes a moment, and cannot go wrong."""
    match expr:
        case Apply(fn="multiply" | "floor_divide" | "remainder", args=(one, Const(value=by))):
            light = by > 0  # type: ignore[operator]
            return light and one.dtype.kind in "iu" and _is_light(one)
        case Apply(fn="multiply", args=(Const(), one)):
            return one.dtype.kind in "iu" and _is_light(one)
        case Apply(fn=fn, args=args):
            return fn in _LIGHT and all(a.dtype.kind in "iu" and _is_light(a) for a in args)
        case Load(indices=indices):
            return not indices
    return isinstance(expr, Const | Var | Affine)
