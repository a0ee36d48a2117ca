"""What a program finds in classes, functions and modules may be replaced: the next call sees it."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

X = np.ones(1)
Case = Callable[[], tuple[Callable[..., Any], Callable[[], Any]]]
CASES: list[Case] = []


def case(make: Case) -> Case:
    """A function, and what changes what it finds."""
    CASES.append(make)
    return make


@case
def a_method_of_super() -> Any:
    class P:
        def go(s, x):
            return x + 1

    class Q(P):
        def go(s, x):
            return super().go(x)

    o = Q()
    return o.go, lambda: setattr(P, "go", lambda s, x: x - 5)


@case
def a_method_in_between() -> Any:
    class P:
        def go(s, x):
            return x + 1

    class M(P):
        pass

    class Q(M):
        def go(s, x):
            return super().go(x)

    o = Q()
    return o.go, lambda: setattr(M, "go", lambda s, x: x - 5)


@case
def a_method_of_a_base_by_name() -> Any:
    class P:
        def go(s, x):
            return x + 1

    class Q(P):
        def go(s, x):
            return P.go(s, x)

    o = Q()
    return o.go, lambda: setattr(P, "go", lambda s, x: x - 5)


@case
def an_attribute_of_super() -> Any:
    class P:
        k = 2

    class Q(P):
        k = 3

        def go(s, x):
            return x * super().k

    o = Q()
    return o.go, lambda: setattr(P, "k", 7)


@case
def a_property_of_super() -> Any:
    class P:
        @property
        def k(s):
            return 2

    class Q(P):
        k = 3

        def go(s, x):
            return x * super().k

    o = Q()
    return o.go, lambda: setattr(P, "k", property(lambda s: 7))


@case
def a_class_method_of_super() -> Any:
    class P:
        @classmethod
        def k(c, x):
            return x * 2

    class Q(P):
        def go(s, x):
            return super().k(x)

    o = Q()
    return o.go, lambda: setattr(P, "k", classmethod(lambda c, x: x * 7))


@case
def a_static_method_of_super() -> Any:
    class P:
        @staticmethod
        def k(x):
            return x * 2

    class Q(P):
        def go(s, x):
            return super().k(x)

    o = Q()
    return o.go, lambda: setattr(P, "k", staticmethod(lambda x: x * 7))


@case
def a_static_method() -> Any:
    class Cfg:
        act = staticmethod(lambda x: x + 1)

    return lambda x: Cfg.act(x), lambda: setattr(Cfg, "act", staticmethod(lambda x: x - 9))


@case
def a_class_method() -> Any:
    class Cfg:
        @classmethod
        def act(c, x):
            return x + 1

    return lambda x: Cfg.act(x), lambda: setattr(Cfg, "act", classmethod(lambda c, x: x - 9))


@case
def a_class_attribute() -> Any:
    class Cfg:
        lr = 2

    return lambda x: Cfg.lr * x, lambda: setattr(Cfg, "lr", 5)


@case
def an_inherited_class_attribute() -> Any:
    class A:
        lr = 2

    class Cfg(A):
        pass

    return lambda x: Cfg.lr * x, lambda: setattr(A, "lr", 5)


@case
def a_class_attribute_that_hides_one() -> Any:
    class A:
        lr = 2

    class Cfg(A):
        pass

    return lambda x: Cfg.lr * x, lambda: setattr(Cfg, "lr", 5)


@case
def a_class_attribute_that_goes() -> Any:
    class A:
        lr = 2

    class Cfg(A):
        lr = 3

    return lambda x: Cfg.lr * x, lambda: delattr(Cfg, "lr")


@case
def how_instances_are_made() -> Any:
    class B:
        def __init__(s, x):
            s.v = x + 1

    return lambda x: B(x).v, lambda: setattr(B, "__init__", lambda s, x: setattr(s, "v", x * 9))


@case
def how_instances_of_a_subclass_are_made() -> Any:
    class A:
        def __init__(s, x):
            s.v = x + 1

    class B(A):
        pass

    return lambda x: B(x).v, lambda: setattr(B, "__init__", lambda s, x: setattr(s, "v", x * 9))


@case
def a_method_of_what_is_made_inside() -> Any:
    class B:
        def __init__(s, x):
            s.v = x + 1

        def m(s):
            return s.v * 2

    return lambda x: B(x).m(), lambda: setattr(B, "m", lambda s: s.v * 9)


@case
def an_operator_of_what_is_made_inside() -> Any:
    class B:
        def __init__(s, x):
            s.v = x + 1

        def __add__(s, o):
            return s.v + o.v

    return lambda x: B(x) + B(x), lambda: setattr(B, "__add__", lambda s, o: s.v * 9)


@case
def a_property_of_what_is_made_inside() -> Any:
    class B:
        def __init__(s, x):
            s.v = x + 1

        @property
        def m(s):
            return s.v * 2

    return lambda x: B(x).m, lambda: setattr(B, "m", property(lambda s: s.v * 9))


@case
def a_default() -> Any:
    def d(x, k=2):
        return x * k

    return lambda x: d(x), lambda: setattr(d, "__defaults__", (9,))


@case
def a_keyword_default() -> Any:
    def d(x, *, k=2):
        return x * k

    return lambda x: d(x), lambda: setattr(d, "__kwdefaults__", {"k": 9})


@case
def an_entry_of_keyword_defaults() -> Any:
    def d(x, *, k=2):
        return x * k

    return lambda x: d(x), lambda: d.__kwdefaults__.update(k=9)


@case
def a_default_of_a_method() -> Any:
    class B:
        def m(s, x, k=2):
            return x * k

    b = B()
    return lambda x: b.m(x), lambda: setattr(B.m, "__defaults__", (9,))


@case
def a_default_of_none() -> Any:
    def d(x, k=None):
        return x * 2 if k is None else x * 3

    return lambda x: d(x), lambda: setattr(d, "__defaults__", (9,))


@case
def a_default_that_goes() -> Any:
    def d(x, k=2):
        return x * k

    return lambda x: d(x, 3), lambda: setattr(d, "__defaults__", None)


@case
def an_attribute_a_class_lacks() -> Any:
    class C:
        pass

    return lambda x: x * 2 if hasattr(C, "zz") else x, lambda: setattr(C, "zz", 1)


@case
def an_attribute_the_class_of_an_object_lacks() -> Any:
    class C:
        pass

    c = C()
    return lambda x: x * 2 if hasattr(c, "zz") else x, lambda: setattr(C, "zz", 1)


@case
def an_attribute_an_object_lacks() -> Any:
    class C:
        pass

    c = C()
    return lambda x: x * 2 if hasattr(c, "zz") else x, lambda: setattr(c, "zz", 1)


@case
def an_attribute_with_a_default() -> Any:
    class C:
        pass

    return lambda x: x * getattr(C, "zz", 3), lambda: setattr(C, "zz", 1)


@case
def an_attribute_a_base_lacks() -> Any:
    class A:
        pass

    class C(A):
        pass

    return lambda x: x * 2 if hasattr(C, "zz") else x, lambda: setattr(A, "zz", 1)


@case
def a_slot_without_a_value() -> Any:
    class C:
        __slots__ = ("zz",)

    c = C()
    return lambda x: x * 2 if hasattr(c, "zz") else x, lambda: setattr(c, "zz", 1)


@case
def a_method_of_one_object() -> Any:
    class C:
        def m(s, x):
            return x + 1

    c = C()
    return lambda x: c.m(x), lambda: setattr(c, "m", lambda x: x * 9)


@case
def an_attribute_of_one_object() -> Any:
    class C:
        k = 2

    c = C()
    return lambda x: c.k * x, lambda: setattr(c, "k", 9)


@case
def a_method() -> Any:
    class C:
        def m(s, x):
            return x + 1

    c = C()
    return lambda x: c.m(x), lambda: setattr(C, "m", lambda s, x: x * 9)


@case
def a_call() -> Any:
    class C:
        def __call__(s, x):
            return x + 1

    c = C()
    return lambda x: c(x), lambda: setattr(C, "__call__", lambda s, x: x * 9)


@case
def an_operator() -> Any:
    class C:
        def __mul__(s, x):
            return x + 1

    c = C()
    return lambda x: c * x, lambda: setattr(C, "__mul__", lambda s, x: x * 9)


@case
def a_length() -> Any:
    class C:
        def __len__(s):
            return 2

    c = C()
    return lambda x: x * len(c), lambda: setattr(C, "__len__", lambda s: 9)


@case
def attributes_that_are_made_up() -> Any:
    class C:
        def __getattr__(s, n):
            return 2

    c = C()
    return lambda x: x * c.foo, lambda: setattr(C, "__getattr__", lambda s, n: 9)


@case
def a_property() -> Any:
    class C:
        @property
        def k(s):
            return 2

    c = C()
    return lambda x: x * c.k, lambda: setattr(C, "k", property(lambda s: 9))


@case
def a_class_method_of_an_object() -> Any:
    class C:
        @classmethod
        def k(s, x):
            return x + 2

    c = C()
    return lambda x: c.k(x), lambda: setattr(C, "k", classmethod(lambda s, x: x * 9))


@case
def a_static_method_of_an_object() -> Any:
    class C:
        @staticmethod
        def k(x):
            return x + 2

    c = C()
    return lambda x: c.k(x), lambda: setattr(C, "k", staticmethod(lambda x: x * 9))


@case
def a_method_of_the_type() -> Any:
    class C:
        def m(s, x):
            return x + 1

    c = C()
    return lambda x: type(c).m(c, x), lambda: setattr(C, "m", lambda s, x: x * 9)


@case
def an_attribute_of_a_class_in_a_class() -> Any:
    class N:
        k = 2

    class C:
        n = N

    return lambda x: x * C.n.k, lambda: setattr(N, "k", 9)


@case
def a_class_in_a_class() -> Any:
    class N:
        k = 2

    class N2:
        k = 9

    class C:
        n = N

    return lambda x: x * C.n.k, lambda: setattr(C, "n", N2)


@case
def an_attribute_of_a_function() -> Any:
    def h(x):
        return x * h.k

    h.k = 2
    return lambda x: h(x), lambda: setattr(h, "k", 9)


@case
def an_attribute_a_function_lacks() -> Any:
    def h(x):
        return x

    return lambda x: x * 2 if hasattr(h, "zz") else x, lambda: setattr(h, "zz", 9)


@case
def a_variable_a_module_lacks() -> Any:
    m = types.ModuleType("mm")
    m.__file__ = "/tmp/mm.py"
    return lambda x: x * 2 if hasattr(m, "zz") else x, lambda: setattr(m, "zz", 9)


@case
def the_bases() -> Any:
    class A:
        def m(s, x):
            return x

    class B:
        def m(s, x):
            return x * 9

    class C(A):
        pass

    c = C()
    return lambda x: c.m(x), lambda: setattr(C, "__bases__", (B,))


@case
def a_method_of_a_named_tuple() -> Any:
    T = collections.namedtuple("T", "a b")

    class P(T):
        def m(s):
            return s.a * 2

    return lambda x: P(x, x).m(), lambda: setattr(P, "m", lambda s: s.a * 9)


@case
def a_method_of_a_data_class() -> Any:
    @dataclasses.dataclass
    class P:
        a: object
        k: float = 2.0

        def m(s):
            return s.a * s.k

    return lambda x: P(x).m(), lambda: setattr(P, "m", lambda s: s.a * 9)


@case
def what_a_data_class_does_after_it_is_made() -> Any:
    @dataclasses.dataclass
    class P:
        a: object

        def __post_init__(s):
            s.b = s.a * 2

    return lambda x: P(x).b, lambda: setattr(P, "__post_init__", lambda s: setattr(s, "b", s.a * 9))


@case
def how_the_base_is_made() -> Any:
    class A:
        def __init__(s, x):
            s.v = x + 1

    class B(A):
        def __init__(s, x):
            super().__init__(x)
            s.v = s.v * 2

    return lambda x: B(x).v, lambda: setattr(A, "__init__", lambda s, x: setattr(s, "v", x * 9))


@case
def a_value_in_a_slot() -> Any:
    class A:
        __slots__ = ("k",)

        def __init__(s):
            s.k = 2

    a = A()
    return lambda x: x * a.k, lambda: setattr(a, "k", 9)


@case
def a_cached_property() -> Any:
    class A:
        @functools.cached_property
        def k(s):
            return 2

    a = A()
    return lambda x: x * a.k, lambda: a.__dict__.update(k=9)


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_changed_lookup_is_seen(make: Case) -> None:
    function, change = make()
    compiled = nbcomp.jit(function)
    before = function(X)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), before)
    change()
    after = function(X)
    assert not np.array_equal(before, after) or make in SAME
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), after)
    assert not compiled.fallbacks


SAME: tuple[Case, ...] = (a_default_that_goes,)


def test_what_is_found_again_is_not_compiled_again() -> None:
    class P:
        def go(self, x: Any) -> Any:
            return x + 1

    p = P()
    f = nbcomp.jit(lambda x: p.go(x))
    f(X)
    P.other = 3  # type: ignore[attr-defined]
    p.more = 4  # type: ignore[attr-defined]
    f(X)
    assert len(f.variants) == 1
