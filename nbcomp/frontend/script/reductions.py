"""NumPy's functions of arrays, of parts of arrays in element code: sums, extremes, products of
vectors, and functions that are taken element by element.

Knows which functions those are and in which dtypes NumPy computes them; nothing of syntax.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nbcomp.frontend.script.computed import ComputedArrays, Index, is_array, kind_of
from nbcomp.frontend.script.values import (
    NP_BOOL,
    Computed,
    Kind,
    Method,
    NotElements,
    Scalar,
    View,
    from_index,
    number,
)
from nbcomp.loop.grammar import Accumulate, Expr, If, Load, Store, affine, const, neutral
from nbcomp.types import BOOL, FLOAT64, INT64, DType

Array = View | Computed
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)


class Reductions(ComputedArrays):
    """Functions and methods of arrays."""

    def array_function(self, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """A function of arrays; `NotImplemented` for one that is not taken in loops."""
        if named or not args:
            return NotImplemented
        reduction = REDUCTIONS.get(function)
        if reduction is not None and len(args) == 1 and is_array(args[0]):
            return self.reduced(reduction, args[0])
        if function in PRODUCTS and len(args) == 2:
            return self.product(*args)
        if function is np.outer and len(args) == 2:
            return self.outer(*args)
        if function is np.copy and len(args) == 1 and is_array(args[0]):
            return self.moving(args[0], self.materialised)
        return NotImplemented

    def method(self, method: Method, args: list[Any], named: dict[str, Any]) -> Any:
        """The value of a call of an array's method."""
        array, name = method.array, method.name
        if not named and not args and name == "copy":
            return self.moving(array, self.materialised)
        if not named and not args and name in METHODS:
            return self.reduced(name, array)
        if not named and len(args) == 1 and name == "dot":
            return self.product(array, args[0])
        if not named and len(args) == 1 and name == "fill" and isinstance(array, View):
            self.fill(array, args[0])
            return None
        if not named and len(args) == 1 and name == "astype":
            kind = Kind(np.dtype(args[0]))
            return self.elementwise(
                lambda s: Scalar(kind, self.cast(s.expr, kind), *kind.bounds()), array
            )
        raise NotElements(f".{name}() of an array in a loop over elements")

    @abstractmethod
    def fill(self, target: View, value: Any) -> None:
        """A number or an array to a part of an array."""

    def moving(self, array: Array, function: Callable[[Array], Any]) -> Any:
        """A function of a part of an array; of a whole one in one place it is a graph's."""
        local = isinstance(array, View) and array.memory.origin is None
        if not (array.moves or local):
            raise NotElements("an operation on a whole array")
        return function(array)

    def reduced(self, fn: str, array: Array) -> Any:
        """One number for all elements."""
        return self.moving(array, getattr(self, f"reduce_{fn}"))

    def reduce_sum(self, array: Array) -> Scalar:
        """NumPy adds small whole numbers in 64 bits, and float16 in float32."""
        dtype = np.add.reduce(np.zeros(0, kind_of(array).dtype)).dtype
        return self.sum_in(dtype, array)

    def sum_in(self, dtype: DType, array: Array, fn: str = "add") -> Scalar:
        wide = SINGLE if dtype == HALF else dtype
        start = neutral(fn, wide)
        total = self.accumulated(fn, wide, array, start, lambda s: self.to_dtype(s.expr, wide))
        if fn == "add" and wide.kind == "f":  # the sum of no numbers is 0.0, that of -0.0 is -0.0
            for n in map(number, array.shape):
                if n.low <= 0:
                    empty = self.compare("equal", from_index(n.expr), self.int_const(0))
                    total = self.choose(empty, const(0.0, wide), total)
        return Scalar(Kind(dtype), self.to_dtype(total, dtype), *Kind(dtype).bounds())

    def reduce_prod(self, array: Array) -> Scalar:
        """The product of all elements."""
        dtype = np.multiply.reduce(np.ones(0, kind_of(array).dtype)).dtype
        return self.sum_in(dtype, array, "multiply")

    def reduce_mean(self, array: Array) -> Any:
        """The sum by the number of elements; NumPy adds whole numbers as doubles."""
        dtype = kind_of(array).dtype
        total = self.sum_in(
            SINGLE if dtype == HALF else dtype if dtype.kind == "f" else FLOAT64, array
        )
        found = self.ufunc("divide", (total, self.size_of(array)))
        return self.converted(found, Kind(dtype)) if dtype == HALF else found

    def size_of(self, array: Array) -> Scalar:
        """The number of elements."""
        size = number(1)
        for n in array.shape:
            size = self.int_multiply(size, number(n))
        return size

    def reduce_max(self, array: Array) -> Scalar:
        """The largest element, NaN if there is one."""
        return self.extreme_element("maximum", array)

    def reduce_min(self, array: Array) -> Scalar:
        """The smallest element, NaN if there is one."""
        return self.extreme_element("minimum", array)

    def extreme_element(self, fn: str, array: Array) -> Scalar:
        kind = kind_of(array)
        self.need_elements(
            array, f"zero-size array to reduction operation {fn} which has no identity"
        )
        if kind.dtype == BOOL:
            truth = self.reduce_any(array) if fn == "maximum" else self.reduce_all(array)
            return Scalar(kind, truth.expr, 0, 1)
        least, most = kind.bounds() if kind.is_int else (-np.inf, np.inf)
        start = least if fn == "maximum" else most
        found = self.accumulated(fn, kind.dtype, array, start, lambda s: s.expr)
        return Scalar(kind, found, *kind.bounds())

    def need_elements(self, array: Array, message: str) -> None:
        """Raise as NumPy does where there are no elements."""
        for n in array.shape:
            length = number(n)
            if length.low <= 0:
                empty = self.compare("equal", self.keep(length).expr, self.int_const(0))
                self.fail_if(empty, "ValueError", message)

    def reduce_any(self, array: Array) -> Scalar:
        """Whether one is true."""
        return self.truths("logical_or", array, False)

    def reduce_all(self, array: Array) -> Scalar:
        """Whether all are true."""
        return self.truths("logical_and", array, True)

    def truths(self, fn: str, array: Array, start: bool) -> Scalar:
        found = self.accumulated(fn, BOOL, array, start, lambda s: number(self.truth(s)).expr)
        return Scalar(NP_BOOL, found, 0, 1)

    def accumulated(
        self,
        fn: str,
        dtype: DType,
        array: Array,
        start: Any,
        term: Callable[[Scalar], Expr],
        contract: bool = False,
    ) -> Expr:
        """What a function of two makes of all elements."""
        total = self.local(self.fresh("total"), dtype)
        self.store(total, const(start, dtype))

        def add(index: Index) -> None:
            value = term(self.element_at(array, index))
            self.add(Accumulate(total, (), fn, value, self.location, contract))

        self.over(array.shape, add, sums=True)
        return self.kept(Load(dtype, total, ()), "total")

    def reduce_argmax(self, array: Array) -> Scalar:
        """The index of the largest element, the first of several; of the first NaN."""
        return self.extreme_index("greater", array)

    def reduce_argmin(self, array: Array) -> Scalar:
        """The index of the smallest element, the first of several; of the first NaN."""
        return self.extreme_index("less", array)

    def extreme_index(self, fn: str, array: Array) -> Scalar:
        if len(array.shape) != 1 or kind_of(array).dtype == BOOL:
            raise NotElements("argmax and argmin of several axes, or of bools")
        which = "argmax" if fn == "greater" else "argmin"
        self.need_elements(array, f"attempt to get {which} of an empty sequence")
        kind, zero = kind_of(array), affine(0)
        best = self.local(self.fresh("best"), kind.dtype)
        place = self.local(self.fresh("at"), INT64)
        self.store(best, self.element_at(array, (zero,)).expr)
        self.store(place, self.int_const(0))

        def look(index: Index) -> None:
            value = self.kept(self.element_at(array, index).expr, "t")
            known = Load(kind.dtype, best, ())
            better = self.compare(fn, value, known)
            if kind.dtype.kind == "f":  # a number that is none is the best
                nan, old = (self.compare("not_equal", e, e) for e in (value, known))
                fresh_nan = self.and_also(nan, self.apply("logical_not", old, dtype=BOOL))
                better = self.apply("logical_or", better, fresh_nan, dtype=BOOL)
            taken = Store(best, (), value, self.location), Store(place, (), index[0], self.location)
            self.add(If(better, taken, (), self.location))

        self.over(array.shape, look)
        found = self.kept(Load(INT64, place, ()), "at")
        return Scalar(Kind(INT64), found, 0, max(number(array.shape[0]).high - 1, 0))

    def reduce_norm(self, array: Array) -> Any:
        """The root of the sum of squares; of whole numbers as doubles."""
        kind = kind_of(array)
        if kind.dtype.kind != "f" or kind.dtype == HALF:
            array = self.elementwise(lambda s: self.converted(s, Kind(FLOAT64)), array)
        return self.ufunc("sqrt", (self.dot(array, array),))

    # ------------------------------------------------------------------------------- products

    def product(self, a: Any, b: Any) -> Any:
        """`a @ b` of vectors, and of a matrix and a vector."""
        if not (is_array(a) and is_array(b)):
            raise NotElements("a product of arrays and numbers")
        if not (a.moves or b.moves):
            raise NotElements("an operation on a whole array")
        match len(a.shape), len(b.shape):
            case 1, 1:
                return self.dot(a, b)
            case 2, 1:
                return self.rows_times(a, b)
            case 1, 2:
                return self.rows_times(turned(b), a)
        raise NotElements("a product of matrices in a loop over elements")

    def dot(self, a: Array, b: Array) -> Scalar:
        """Σ a·b, in the dtype of the products."""
        dtypes = {kind_of(a).dtype, kind_of(b).dtype}
        if dtypes == {BOOL} or HALF in dtypes:
            raise NotElements("a product of bools or of float16")
        self.need_equal(a.shape[0], b.shape[0])
        terms = self.elementwise(partial(self.numpy_binary, "multiply"), a, b)
        dtype = terms.kind.dtype
        total = self.accumulated("add", dtype, terms, 0, lambda s: s.expr, contract=True)
        return Scalar(terms.kind, total, *terms.kind.bounds())

    def rows_times(self, matrix: Array, vector: Array) -> Computed:
        """The products of a matrix' rows with a vector."""
        self.need_equal(matrix.shape[1], vector.shape[0])
        row = matrix.shape[1:]

        def element(index: Index) -> Scalar:
            part = Computed(
                kind_of(matrix),
                row,
                lambda k: self.element_at(matrix, (*index, *k)),
                (),
                self.writes,
            )
            return self.dot(part, vector)

        return self.computed(matrix.shape[:1], element, (matrix, vector), aligned=False)

    def outer(self, a: Any, b: Any) -> Computed:
        """a[i]·b[j]"""
        if not (is_array(a) and is_array(b) and len(a.shape) == len(b.shape) == 1):
            raise NotElements("np.outer of what are no vectors")

        def element(index: Index) -> Scalar:
            parts = self.element_at(a, index[:1]), self.element_at(b, index[1:])
            return self.numpy_binary("multiply", *parts)

        return self.computed((*a.shape, *b.shape), element, (a, b), aligned=False)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """`np.where` of numbers: both are computed, in the dtype that holds both."""
        test = self.truth(condition)
        weak = [_example(number(x)) for x in (a, b)]
        kind = Kind(np.dtype(np.result_type(*weak)))
        yes, no = (self.converted(number(x), kind) for x in (a, b))
        if not isinstance(test, Scalar):
            return yes if test else no
        low, high = min(yes.low, no.low), max(yes.high, no.high)
        return Scalar(kind, self.choose(test.expr, yes.expr, no.expr), low, high)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """`np.clip` of a number."""
        return self.ufunc("minimum", (self.ufunc("maximum", (x, low)), high))


def turned(array: Array) -> Array:
    """The transpose."""
    if isinstance(array, View):
        return View(array.memory, array.start, array.axes[::-1])
    element = array.element
    reads = tuple((view, False) for view, _ in array.reads)
    return Computed(
        array.kind, array.shape[::-1], lambda index: element(index[::-1]), reads, array.writes
    )


def _example(s: Scalar) -> Any:
    """What NumPy's promotion sees of a number."""
    return s.kind.python(0) if s.kind.python in (int, float) else s.dtype


REDUCTIONS: dict[Any, str] = {
    **{np.sum: "sum", np.prod: "prod", np.mean: "mean", np.max: "max", np.min: "min"},
    **{np.amax: "max", np.amin: "min", np.any: "any", np.all: "all"},
    **{np.argmax: "argmax", np.argmin: "argmin", np.linalg.norm: "norm"},
}
METHODS = ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin")
PRODUCTS = (np.dot, np.matmul, np.vdot, np.inner)
