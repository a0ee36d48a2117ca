"""Lists, dicts, sets, attributes, iterators and closures that a function changes where values
decide: either the change is joined, or Python runs the function and says so."""
# ruff: noqa: B006, B023, E731, SIM108

from __future__ import annotations

import copy
import itertools
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.script.conftest import assert_same

Program = Callable[..., Any]
JOINED: list[Program] = []  # these stay compiled
LEFT: list[Program] = []  # Python may run these


class Box:
    """An object with an attribute."""

    v: Any = 1


class Slotted:
    """Attributes that are not in a dict."""

    __slots__ = ("v",)


class Points(list[Any]):
    """A list of the user's own."""


def joined(program: Program) -> Program:
    JOINED.append(program)
    return program


def left(program: Program) -> Program:
    LEFT.append(program)
    return program


@joined
def both_append(x):
    kept = []
    if x.sum() > 0:
        kept.append(x * 2)
    else:
        kept.append(x * 3)
    return kept


@joined
def entry_of_a_dict(x):
    d = {"a": x, "n": 0}
    if x.sum() > 0:
        d["a"] = x * 2
        d["n"] += 1
    return d


@joined
def entry_of_a_list(x):
    kept = [x, x]
    if x.sum() > 0:
        kept[0] = x * 5
    return kept


@joined
def in_place(x):
    d = {"w": x.copy(), "n": 0}
    if x.sum() > 0:
        d["w"] -= 0.1 * x
        d["n"] += 1
    return d


@joined
def in_place_in_an_object(x):
    box = Box()
    box.v = [x.copy()]
    if x.sum() > 0:
        box.v[0][0] = 7.0
    return box.v[0]


@joined
def attribute(x):
    box = Box()
    box.v = x * 1
    if x.sum() > 0:
        box.v = x * 5
    return box.v


@joined
def slot(x):
    box = Slotted()
    box.v = 1
    if x.sum() > 0:
        box.v = 2
    return x * box.v


@joined
def state_of_a_loop(x):
    state = {"n": 0}
    while np.abs(x).max() > 1e-3:
        x = x * 0.5
        state["n"] += 1
    return state, x


@joined
def list_of_a_loop(x):
    kept = [0, x]
    while np.abs(kept[1]).max() > 1e-3:
        kept[1] = kept[1] * 0.5
        kept[0] += 1
    return kept


@joined
def object_of_a_loop(x):
    box = Box()
    box.v = 0
    while np.abs(x).max() > 1e-3:
        x = x * 0.5
        if x.sum() > 0.1:
            box.v += 1
    return box.v


@joined
def history_of_a_long_loop(x):
    h, kept = x * 0, []
    for t in range(100):
        h = h * 0.5 + x * t
        kept.append(h)
    return np.stack(kept)


@joined
def counted_by_a_closure(x):
    c = 0

    def inc():
        nonlocal c
        c += 1

    if x.sum() > 0:
        inc()
    while np.abs(x).max() > 1e-3:
        x = x * 0.5
        inc()
    return x * c


@joined
def returned_from_branches(x):
    kept = [x]
    if x.sum() > 0:
        kept.append(x * 2)
        return kept[-1]
    kept[0] = x * 3
    return kept[0]


@joined
def swapped(x):
    kept = [x * 1, x + 1]
    if x.sum() > 0:
        a, b = kept
    else:
        b, a = kept
    return a - 2 * b


@left
def words(x):
    seen = []
    if x.sum() > 0:
        seen.append("pos")
    else:
        seen.append("neg")
    return seen


@left
def one_appends(x):
    kept = []
    if x.sum() > 0:
        kept.append(x * 2)
    return kept


@left
def appends_in_an_expression(x):
    kept = []
    kept.append(x * 2) if x.sum() > 0 else None
    x.sum() > 0 and kept.append(x)
    return kept


@left
def appends_by_a_method(x):
    kept = Points()
    add = kept.append
    if x.sum() > 0:
        add(1)
    return len(kept)


@joined
def appends_by_a_function(x):
    kept = []

    def add(v):
        kept.append(v)
        return v

    y = add(x * 2) if x.sum() > 0 else add(x * 3)
    return kept, y


@left
def other_keys(x):
    d = {}
    if x.sum() > 0:
        d["a"] = x
    else:
        d["b"] = x
    return d


@left
def extended(x):
    kept = [x]
    if x.sum() > 0:
        kept += [x]
    return len(kept)


@left
def popped(x):
    kept = [1, 2, 3]
    if x.sum() > 0:
        kept.pop()
    return x * sum(kept)


@joined
def ordered(x):
    kept = [3, 1, 2]
    if x.sum() > 0:
        kept.sort()
    return x * kept[0]


@left
def deleted(x):
    kept = [x, x * 2, x * 3]
    if x.sum() > 0:
        del kept[0]
    return kept[0] * 1


@left
def inserted(x):
    kept = [x * 1]
    if x[0] > 0:
        kept.insert(0, x * 2)
    return kept[0] * 1


@left
def of_a_set(x):
    s = {1}
    if x.sum() > 0:
        s.add(2)
    return x * len(s)


@left
def of_a_deque(x):
    s = deque([1, 2])
    if x.sum() > 0:
        s.rotate()
    return x * s[0]


@left
def of_bytes(x):
    s = bytearray(b"ab")
    if x.sum() > 0:
        s[0] = 1
    return x * s[0]


@left
def iterator(x):
    it = iter([1, 2, 3])
    if x.sum() > 0:
        next(it)
    return x * next(it)


@left
def generator(x):
    it = (k * k for k in range(1, 9))
    if x.sum() > 0:
        next(it)
    return x * next(it)


@left
def enumerated(x):
    it = enumerate([5, 6, 7])
    if x.sum() > 0:
        next(it)
    return x * next(it)[1]


@left
def counter(x):
    it = itertools.count(3)
    while np.abs(x).max() > 1e-3:
        x = x * 0.5
        next(it)
    return x * next(it)


@left
def within_a_comprehension(x):
    return [(kept.append(1) if x.sum() > 0 else kept.append([2])) or kept for kept in ([], [])]


@left
def default_argument(x):
    def count(v, kept=[]):
        kept.append(v)
        return len(kept)

    if x.sum() > 0:
        count(1)
    return x * count(2)


@left
def attribute_of_a_function(x):
    def g(v):
        return v

    g.n = []
    if x.sum() > 0:
        g.n.append(1)
    return x * len(g.n)


@left
def grows_while(x):
    kept = []
    while np.abs(x).max() > 1e-3:
        x = x * 0.5
        kept.append(x.sum())
    return kept


@left
def shrinks_while(x):
    kept = [1, 2, 3, 4]
    while np.abs(x).max() > 1e-3 and kept:
        x = x * 0.5
        kept.pop()
    return x, len(kept)


@left
def grows_in_a_written_loop(x):
    kept = []
    for t in range(len(x)):
        if x[t] > 0:
            kept.append(t)
    return kept


@left
def best_so_far(x):
    state = {"best": np.inf, "wait": 0}
    for e in range(4):
        loss = (x**2).sum()
        if loss < state["best"]:
            state["best"] = loss
            state["wait"] = 0
        else:
            state["wait"] += 1
        x = x * (-1.5 if e % 2 else 0.5)
    return state, x


@left
def one_of_two_objects(x):
    box = Box()
    box.v = 1
    p = box
    if x.sum() > 0:
        p = Box()
        p.v = 5
    p.v += 1
    return x * box.v


@left
def text_that_a_loop_changes(x):
    mode = "double"
    while np.abs(x).sum() < 100:
        x = x * 2 if mode == "double" else x + np.sign(x)
        mode = "more"
    return x


@joined
def taken_back(x, given=None):
    kept = given if given is not None else [0]
    if x.sum() > 0:
        kept.append(1)
    else:
        kept.append(2)
    return x * kept.pop()


# ------------------------------------------------------------------------------------ closures


@joined
def closure_reads_what_is_assigned_later(x):
    k = 2

    def g(v):
        return v * k

    k = 3
    return g(x)


@joined
def closure_of_a_later_function(x):
    def g(v):
        return h(v) * 2

    def h(v):
        return v + 1

    return g(x)


@joined
def functions_of_a_loop(x):
    late, early = [], []
    for i in range(3):
        late.append(lambda v: v * i)
        early.append(lambda v, i=i: v * i)
    i = 7
    return [f(x) for f in late], [f(x) for f in early]


@joined
def functions_of_a_comprehension(x):
    return [f(x) for f in [lambda v: v * i for i in range(3)]]


@joined
def closure_in_a_branch(x):
    k = 2.0
    g = lambda v: v * k
    if x.sum() > 0:
        k = 3.0
    return g(x), k


@joined
def closure_in_a_loop(x):
    k = 1.0
    g = lambda v: v * k
    while np.abs(g(x)).max() < 50:
        k = k * 2
    return g(x), k


@joined
def closure_in_a_kernel(x):
    k = 2.0

    def g(v):
        return v * k

    y = g(x)
    s = np.float64(0)
    for i in range(len(x)):
        k = x[i]
        s += g(x[i])
    return y, s, g(x)


@joined
def closure_in_a_kernel_after_a_branch(x):
    k = 2.0
    g = lambda v: v * k
    y = g(x)
    if x.sum() > 0:
        k = 3.0
    s = np.float64(0)
    for i in range(len(x)):
        s += g(x[i])
    return y, s


@joined
def closures_on_two_ways(x):
    c = 1.0

    def bump(v):
        nonlocal c
        c += 1.0
        return v * c

    def peek(v):
        return v * c

    y = bump(x) if x.sum() > 0 else peek(x)
    return y, peek(x), c


@joined
def written_by_an_inner_function(x):
    total = x * 0

    def add(v):
        nonlocal total
        total = total + v

    for k in range(3):
        add(x * k)
    return total


@joined
def lazily_generated(x):
    k = 2
    parts = (x * k for _ in range(3))
    k = 3
    return list(parts)


@joined
def deleted_variable(x):
    k = 2
    g = lambda v: v * k  # noqa: F821
    del k
    try:
        return g(x)
    except NameError:
        return x


# ----------------------------------------------------------- what a program may catch, and types


@left
def raises_where_values_decide(x):
    try:
        if x.sum() > 0:
            y = x
        else:
            raise ValueError
    except ValueError:
        y = -x
    return y


@left
def catches_everything(x):
    try:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
    except Exception:
        y = -x
    return y


def _careful(x):
    try:
        return x * int(x.sum())
    except TypeError:
        return x * 100


@joined
def helper_that_catches(x):
    return _careful(x)


@joined
def index_of_values(x):
    path = [int(x.argmax())]
    return path


@left
def int_or_float(x):
    k = 2
    if x.sum() > 0:
        k = 2.5
    return x.astype("i4") * k


@left
def becomes_a_float(x):
    k = 0
    while np.abs(x).max() > 1e-3:
        x = x * 0.5
        k = k + 0.5
    return x.astype("i4") * k, k


@joined
def a_float_from_the_second_round(x):
    k, y = 0, x * 0
    for _ in range(100):
        y = y + (x.astype("i4") * k) * 0.5
        k = k + 0.5
    return y, k


@left
def text_of_branches(x):
    m = "a"
    if x.sum() > 0:
        m = "b"
    return x * 2 if m == "b" else x * 1


@left
def text_in_tuples(x):
    t = ("a", 1)
    if x.sum() > 0:
        t = ("b", 1)
    return x * 2 if t[0] == "b" else x * 1


@left
def class_attribute(x):
    if x.sum() > 0:
        Box.v = 1
    return x * Box.v


@joined
def kinds_of_results(x):
    if x.sum() > 0:
        return x, 1
    return x * 2


VALUES = (np.arange(6.0) - 1, -np.arange(6.0), np.arange(6.0) + 3, -np.arange(6.0) - 1)


def same(got: Any, want: Any) -> None:
    if isinstance(want, list | dict):
        assert type(got) is type(want)
        assert len(got) == len(want)
        if isinstance(want, dict):
            assert list(got) == list(want)
            got, want = list(got.values()), list(want.values())
        for g, w in zip(got, want, strict=True):
            same(g, w)
    elif isinstance(want, tuple):
        assert type(got) is tuple
        same(list(got), list(want))
    else:
        assert_same(got, want)


@pytest.mark.parametrize("program", [*JOINED, *LEFT], ids=lambda p: p.__name__)
def test_as_python_does(program: Program) -> None:
    scripted = nbcomp.script(program)
    for x in VALUES:
        given, kept = x.copy(), x.copy()
        with warnings.catch_warnings():
            action = "error" if program in JOINED else "ignore"
            warnings.simplefilter(action, nbcomp.NumpyFallback)
            got = scripted(given)
        same(got, program(kept))
        same(given, kept)
    assert bool(scripted.fallbacks) == (program not in JOINED)


def test_what_the_caller_holds_is_left_alone_or_changed_by_python() -> None:
    def f(x, kept):
        if x.sum() > 0:
            kept.append(1)
        else:
            kept.append(2)
        return x * kept.pop()

    scripted = nbcomp.script(f)
    for x in VALUES:
        ours, theirs = [0], [0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            same(scripted(x, ours), f(x, theirs))
        assert ours == theirs


def test_the_reason_names_the_object_and_the_line() -> None:
    def f(x):
        seen = {"a": [1]}
        if x.sum() > 0:
            seen["a"].append(2)
        return x * len(seen["a"])

    with pytest.warns(nbcomp.NumpyFallback, match=r"the list `seen\['a'\]` changes") as told:
        same(nbcomp.script(f)(np.ones(2)), np.ones(2) * 2)
    assert "if x.sum() > 0:" in str(told[0].message)


def test_the_reason_says_what_differs() -> None:
    def f(x):
        m = ("a", 1) if x.sum() > 0 else "b"
        return x * len(m)

    with pytest.warns(nbcomp.NumpyFallback, match=r"\('a', 1\) on one way and 'b' on the other"):
        nbcomp.script(f)(np.ones(2))


def test_arguments_that_are_objects() -> None:
    box, other = Box(), Box()
    box.v, other.v = [1], [1]

    def f(x, b):
        if x.sum() > 0:
            b.v[0] = 5
        return x * b.v[0]

    with pytest.warns(nbcomp.NumpyFallback):
        same(nbcomp.script(f)(np.ones(2), box), f(np.ones(2), copy.copy(other)))
    assert box.v == other.v
