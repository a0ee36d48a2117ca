"""Objects called through the native entry: the protocol, their lives, and what watches them."""

import gc
import weakref

import numpy as np
import pytest

import nbcomp
from nbcomp.runtime.callable import Callable
from nbcomp.runtime.layout import trusted

HAVE_VECTORCALL = 1 << 11
X = np.arange(6.0)


@pytest.fixture
def double() -> object:
    function = nbcomp.jit(lambda x, k=2.0: x * k)
    function(X)
    return function


@pytest.mark.skipif(not trusted(), reason="no native entry here")
def test_calls_go_to_the_entry_by_pointer(double):
    assert type(double).__flags__ & HAVE_VECTORCALL
    assert double._record is not None


def test_every_way_to_call(double):
    np.testing.assert_array_equal(double(X), X * 2)
    np.testing.assert_array_equal(double(X, 3.0), X * 3)
    np.testing.assert_array_equal(double(x=X, k=4.0), X * 4)
    np.testing.assert_array_equal(double(*[X], **{"k": 5.0}), X * 5)
    np.testing.assert_array_equal(next(map(double, [X])), X * 2)
    np.testing.assert_array_equal(double.__call__(X), X * 2)

    class Model:
        scale = double

        def __init__(self):
            self.k = 3.0

    double_ = nbcomp.jit(lambda self, x: x * 2.0)
    Model.twice = double_
    np.testing.assert_array_equal(Model().twice(X), X * 2)


def test_wrong_calls_are_python_s(double):
    with pytest.raises(TypeError, match=r"missing|required"):
        double()
    with pytest.raises(TypeError, match="unexpected"):
        double(X, other=1)


def test_watching_and_back(double):
    seen = []

    def watcher(*args, **kwargs):
        seen.append(args)
        return double.unwatched(*args, **kwargs)

    double.watch(watcher)
    np.testing.assert_array_equal(double(X), X * 2)
    double.watch(None)
    np.testing.assert_array_equal(double(X), X * 2)
    assert len(seen) == 1


def test_two_functions_do_not_share_their_entry():
    one, two = nbcomp.jit(lambda x: x + 1), nbcomp.jit(lambda x: x + 2)
    for _ in range(3):
        np.testing.assert_array_equal(one(X), X + 1)
        np.testing.assert_array_equal(two(X), X + 2)


def test_it_ends_with_its_last_reference():
    function = nbcomp.jit(lambda x: x - 1)
    function(X)
    gone = weakref.ref(function)
    function.self_reference = function
    del function
    gc.collect()
    assert gone() is None


def test_called_while_it_is_being_cleared():
    """The garbage collector may have emptied it when the last to hold it is called."""
    answers = []

    class Last:
        def __init__(self, function):
            self.function = function
            self.me = self

        def __del__(self):
            answers.append(self.function(X))

    last = Last(nbcomp.jit(lambda x: x * 7))
    last.function(X)
    last.function.last = last
    del last
    gc.collect()
    np.testing.assert_array_equal(answers[0], X * 7)
    cleared = nbcomp.jit(lambda x: x)
    cleared(X)
    del cleared._record
    if trusted():
        with pytest.raises(ReferenceError):
            cleared(X)


def test_a_subclass_is_called_by_its_call_until_it_is_connected():
    class Plain(Callable):
        def __call__(self, x):
            return x + 1

    assert Plain()(2) == 3
    plain = Plain()
    plain.disconnect()
    assert plain(3) == 4
