"""Calls through the native entry: results, outputs of every kind, refusals, errors, references."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nbcomp.runtime import entry, interpret
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.plan import (
    Given,
    HostStep,
    LengthGuard,
    Output,
    Plan,
    ScalarGuard,
    Source,
    ValueGuard,
)
from nbcomp.types import FLOAT64
from tests.runtime.kernels import (
    add_plan,
    argument,
    guarded_plan,
    like,
    scalar_plan,
    scale_plan,
    step,
)

Make = Callable[..., NativeFunction]


def _refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return ("slow", args, kwargs)


@pytest.fixture(params=["native", "python"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a function out of plans, walked natively or from Python."""
    if request.param == "python":
        monkeypatch.setattr(entry, "library", lambda: None)

    def build(*plans: Plan, slow: Any = _refused, **rest: Any) -> NativeFunction:
        function = NativeFunction("f", "f(x)\n--\n\nDoc.", slow, **rest)
        for plan in plans:
            function.add(plan)
        return function

    return build


def test_a_call_computes(make: Make, rng: np.random.Generator) -> None:
    f = make(add_plan(100)).callable
    x, y = rng.random((2, 100))
    np.testing.assert_array_equal(f(x, y), x + y)
    x[3] = 7  # mutation between calls is seen
    np.testing.assert_array_equal(f(x, y), x + y)
    np.testing.assert_array_equal(f(x, x), x + x)


def test_the_result_is_an_ordinary_array(make: Make) -> None:
    result = make(add_plan(4)).callable(np.ones(4), np.ones(4))
    assert type(result) is np.ndarray
    assert result.base is None
    flags = result.flags
    assert flags.owndata and flags.writeable and flags.aligned and flags.c_contiguous  # noqa: PT018
    result.resize(8, refcheck=False)  # pytest itself refers to it
    assert result.tolist() == [2, 2, 2, 2, 0, 0, 0, 0]


def test_the_native_callable_is_a_builtin_with_name_and_signature() -> None:
    function = NativeFunction("gelu", "gelu(x)\n--\n\nSmooth.", _refused)
    assert type(function.callable) is type(len)
    assert function.callable.__name__ == "gelu"
    assert function.callable.__doc__ == "Smooth."
    assert function.callable.__text_signature__ == "(x)"


def test_what_no_plan_takes_goes_to_the_slow_path(make: Make) -> None:
    function = make(add_plan(4))
    x, y = np.ones(4), np.ones(5)
    assert function.callable(x, y)[1][1] is y
    assert function.callable(x) == ("slow", (x,), {})
    assert function.callable() == ("slow", (), {})
    assert function.callable(1, b=2, c=3) == ("slow", (1,), {"b": 2, "c": 3})
    assert make().callable(1) == ("slow", (1,), {})


def test_plans_are_tried_in_order_and_can_be_cleared(make: Make) -> None:
    plans = [add_plan(n) for n in (3, 4, 5)]
    function = make(*plans)
    assert function.plans == tuple(plans)
    for n in (5, 3, 4):
        assert function.callable(np.ones(n), np.ones(n)).tolist() == [2.0] * n
    function.remove(plans[1])
    assert function.plans == (plans[0], plans[2])
    assert function.callable(np.ones(4), np.ones(4))[0] == "slow"
    function.clear()
    assert function.plans == ()
    assert function.callable(1) == ("slow", (1,), {})
    function.add(add_plan(2))
    assert function.callable(np.ones(2), np.ones(2)).tolist() == [2.0, 2.0]


def test_errors_of_the_slow_path_propagate(make: Make) -> None:
    def slow(args: Any, kwargs: Any) -> Any:
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        make(slow=slow).callable(1)


def test_the_slow_path_may_change_the_plans(make: Make) -> None:
    def slow(args: Any, kwargs: Any) -> Any:
        function.clear()
        function.add(add_plan(len(args[0])))
        return function.callable(*args)

    function = make(add_plan(1), slow=slow)
    for n in (3, 4, 5):
        assert function.callable(np.ones(n), np.ones(n)).tolist() == [2.0] * n


# Keywords and defaults


def _signature_plan() -> Plan:
    """x is an array of 3; a, b and c are any floats, and come back."""
    return Plan(
        guards=(
            like(np.empty(3), argument(0), 0),
            *(ScalarGuard(argument(i), float, i) for i in (1, 2, 3)),
        ),
        positional=4,
        slots=7,
        outputs=tuple(Output(FLOAT64, (), 3 + i, scalar=True) for i in (1, 2, 3)),
        steps=tuple(step("copy8", (i, 3 + i)) for i in (1, 2, 3)),
        single=False,
    )


def test_keywords_and_defaults_are_bound(make: Make) -> None:
    def example(x: Any, /, a: float, b: float = 2.0, *, c: float = 3.0) -> None: ...

    f = make(_signature_plan(), signature=inspect.signature(example)).callable
    x = np.ones(3)
    assert f(x, 1.0) == (1, 2, 3)
    assert f(x, 1.0, 5.0) == (1, 5, 3)
    assert f(x, a=1.0) == (1, 2, 3)
    assert f(x, c=7.0, a=1.0) == (1, 2, 7)
    assert f(x, 1.0, 5.0, c=6.0) == (1, 5, 6)
    for args, kwargs in (
        ((x,), {}),
        ((x, 1.0, 2.0, 3.0), {}),
        ((x, 1.0), {"a": 2.0}),
        ((x, 1.0), {"d": 2.0}),
        ((x, 1), {}),
        ((), {"x": x, "a": 1.0}),
        ((x, 1.0, 2.0, 3.0, 4.0), {"c": 1.0}),
    ):
        assert f(*args, **kwargs) == ("slow", args, kwargs)


def test_open_signatures_are_bound_where_nothing_is_open(make: Make) -> None:
    def example(x: Any, *rest: Any, y: Any) -> None: ...
    def named(x: Any, **rest: Any) -> None: ...

    def plan(count: int) -> Plan:
        guards = (like(np.empty(1), argument(0), 0), LengthGuard(argument(1), tuple, 0))
        return Plan(guards, count, 2, (Output(FLOAT64, (1,), 1),), (step("copy8", (0, 1)),))

    x, both = np.ones(1), inspect.signature(example)
    f = make(plan(3), signature=both).callable
    assert f(x, y=1).tolist() == [1]
    assert f(y=1, x=x).tolist() == [1]
    for args, names in (((x,), {}), ((x, ()), {"y": 1}), ((x, (), 1), {}), ((x,), {"rest": ()})):
        assert f(*args, **names)[0] == "slow"
    f = make(plan(2), signature=inspect.signature(named)).callable
    assert f(x)[0] == f(x, ())[0] == f(x, rest=())[0] == "slow"


def test_what_more_arguments_give_is_a_tuple(make: Make) -> None:
    def example(*rest: Any, y: Any = 1) -> None: ...

    x, y = np.arange(3.0), np.ones(3)
    items = [like(x, argument(0, ("item", k)), k) for k in range(2)]
    guards = (LengthGuard(argument(0), tuple, 2), *items)
    plan = Plan(
        guards, 2, 3, (Output(FLOAT64, (3,), 2),), (step("add", (0, 1, 2), extent=3),)
    )  # fmt: skip
    f = make(plan, signature=inspect.signature(example)).callable
    assert f(x, y).tolist() == f(x, y, y=1).tolist() == [1, 2, 3]
    counts = [sys.getrefcount(a) for a in (x, y)]
    for _ in range(50):
        f(x, y)
        for args in ((x,), (x, y, y), (x, 1), ()):
            assert f(*args) == ("slow", args, {})
    assert [sys.getrefcount(a) for a in (x, y)] == counts


def test_further_arguments_are_a_tuple(make: Make) -> None:
    def example(x: Any, *rest: Any, scale: float = 2.0) -> None: ...

    guards = (
        like(np.empty(3), argument(0), 0),
        LengthGuard(argument(1), tuple, 2),
        like(np.empty(3), argument(1, ("item", 1)), 1),
        ScalarGuard(argument(2), float, 2),
    )
    plan = Plan(guards, 3, 4, (Output(FLOAT64, (3,), 3),), (step("add", (0, 1, 3), extent=3),))
    f = make(plan, signature=inspect.signature(example)).callable
    x, other, y = np.ones(3), object(), np.arange(3.0)
    before = [sys.getrefcount(one) for one in (x, other, y)]
    for _ in range(100):
        assert f(x, other, y).tolist() == [1, 2, 3]
        assert f(x, other, y, scale=3.0).tolist() == [1, 2, 3]
        for args, names in (
            ((x,), {}),
            ((x, y), {}),
            ((x, other, y, y), {}),
            ((x, other, other), {}),
            ((x, other, y), {"scale": 1}),
            ((x, other, y), {"rest": ()}),
            ((x, other, y), {"x": x}),
        ):
            assert f(*args, **names) == ("slow", args, names)
    del args, names
    assert [sys.getrefcount(one) for one in (x, other, y)] == before


def test_a_signature_without_parameters(make: Make) -> None:
    plan = Plan((), 0, 1, (Output(FLOAT64, (2,), 0),), (step("iota", (0,), extent=2),))
    f = make(plan, signature=inspect.Signature()).callable
    assert f().tolist() == [0, 1]
    assert f(1) == ("slow", (1,), {})
    assert f(a=1) == ("slow", (), {"a": 1})


def test_results_may_be_finished_in_python(make: Make) -> None:
    base = replace(add_plan(2), finish=lambda outputs: {"sum": outputs[0], "n": len(outputs)})
    result = make(base).callable(np.ones(2), np.ones(2))
    assert result["n"] == 1
    assert result["sum"].tolist() == [2, 2]
    with pytest.raises(ZeroDivisionError):
        make(replace(base, finish=lambda outputs: 1 / 0)).callable(np.ones(2), np.ones(2))


# Scalars, containers, constants


@pytest.mark.parametrize(
    ("kind", "copy", "dtype", "values"),
    [
        (float, "copy8", np.float64, [1.5, -0.0, np.inf]),
        (int, "copy8", np.int64, [0, -1, 2**63 - 1, -(2**63)]),
        (bool, "copy1", np.bool_, [True, False]),
    ],
)
def test_scalars_go_in_and_come_out(
    make: Make, kind: type, copy: str, dtype: Any, values: list[Any]
) -> None:
    f = make(scalar_plan(kind, copy, np.dtype(dtype))).callable
    for value in values:
        result = f(value)
        assert type(result) is dtype
        assert result == value
        assert np.signbit(result) == np.signbit(value) if kind is float else True


def test_a_scalar_scales(make: Make) -> None:
    f = make(scale_plan(3, ScalarGuard(argument(1), float, 1))).callable
    assert f(np.arange(3.0), 2.5).tolist() == [0, 2.5, 5]
    assert f(np.arange(3.0), -1.0).tolist() == [0, -1, -2]


def test_arrays_found_in_containers_and_globals(make: Make) -> None:
    namespace = {"w": np.array(3.0)}
    in_dict = scale_plan(3, like(np.array(0.0), argument(1, ("item", "w")), 1))
    in_global = scale_plan(3, like(np.array(0.0), Source("global", "w", namespace), 1), 1)
    f = make(in_dict, in_global).callable
    x = np.arange(3.0)
    assert f(x, {"w": np.array(2.0)}).tolist() == [0, 2, 4]
    assert f(x).tolist() == [0, 3, 6]
    namespace["w"] = np.array(5.0)
    assert f(x).tolist() == [0, 5, 10]


def test_outputs_as_tuple_nothing_and_given(make: Make) -> None:
    x = np.arange(3.0)
    guard = like(x, argument(0), 0, writable=True)
    base = Plan((guard,), 1, 2, (), (step("increment", (0,), extent=3),))
    assert make(base).callable(x) is None
    assert x.tolist() == [1, 2, 3]
    assert make(replace(base, single=False)).callable(x) == ()
    given = replace(base, outputs=(Given(argument(0)),))
    assert make(given).callable(x) is x
    several = replace(
        base,
        outputs=(
            Given(Source("object", root="note")),
            Output(FLOAT64, (3,), 1),
            Given(argument(0)),
        ),
        steps=(*base.steps, step("iota", (1,), extent=3)),
        single=False,
    )
    note, ramp, same = make(several).callable(x)
    assert note == "note"
    assert ramp.tolist() == [0, 1, 2]
    assert same is x
    assert x.tolist() == [4, 5, 6]


def test_outputs_of_any_rank_and_order(make: Make) -> None:
    for shape, strides in (
        ((2, 3), None),
        ((2, 3), (8, 16)),
        ((), None),
        ((0, 4), None),
        ((1,) * 64, None),
        ((2, 3, 4), (96, 8, 24)),
    ):
        size = int(np.prod(shape))
        output = Output(FLOAT64, shape, 0, strides=strides)
        plan = Plan((), 0, 1, (output,), (step("iota", (0,), extent=size),))
        result = make(plan).callable()
        assert type(result) is np.ndarray
        assert result.shape == shape
        assert result.base is None
        assert result.flags.owndata
        assert result.strides == (strides or np.empty(shape).strides)
        assert sorted(result.ravel("K").tolist()) == list(range(size))


@pytest.mark.parametrize("letter", list("?bhilqBHILQefdgFDG"))
def test_scalar_outputs_of_every_dtype(make: Make, letter: str) -> None:
    dtype = np.dtype(letter)
    constant = np.ones(3, dtype)  # longer than the 8 bytes that are copied
    plan = Plan(
        (),
        0,
        2,
        (Output(dtype, (), 1, scalar=True),),
        (step("copy8", (0, 1)),),
        constants={0: constant},
    )
    result = make(plan).callable()
    assert type(result) is type(dtype.type(0)) or dtype.itemsize > 8
    if dtype.itemsize <= 8:
        assert result == 1


def test_constants_and_temps(make: Make) -> None:
    weights = np.arange(4.0)
    plan = Plan(
        guards=(like(np.empty(4), argument(0), 0),),
        positional=1,
        slots=5,
        outputs=(Output(FLOAT64, (4,), 4),),
        constants={1: weights},
        temps={2: 0, 3: 64},
        arena=128,
        steps=(
            step("add", (0, 1, 2), extent=4),
            step("add", (2, 2, 3), extent=4),
            step("add", (3, 0, 4), extent=4),
        ),
    )
    x = np.array([1.0, 2, 3, 4])
    f = make(plan).callable
    assert f(x).tolist() == (2 * (x + weights) + x).tolist()
    weights[0] = 10
    assert f(x).tolist() == (2 * (x + weights) + x).tolist()


def test_large_arenas_are_recycled(make: Make) -> None:
    size = 1 << 16
    plan = Plan(
        guards=(like(np.empty(size), argument(0), 0),),
        positional=1,
        slots=3,
        outputs=(Output(FLOAT64, (size,), 2),),
        temps={1: 0},
        arena=size * 8,
        steps=(step("add", (0, 0, 1), extent=size), step("add", (1, 0, 2), extent=size)),
    )
    x = np.arange(float(size))
    f = make(plan).callable
    for _ in range(5):
        np.testing.assert_array_equal(f(x), 3 * x)


def test_many_slots_need_a_frame_on_the_heap(make: Make) -> None:
    count = 6000
    plan = Plan(
        guards=(like(np.empty(4), argument(0), 0),),
        positional=1,
        slots=count,
        outputs=(Output(FLOAT64, (4,), count - 1),),
        steps=(step("add", (0, 0, count - 1), extent=4),),
    )
    assert make(plan).callable(np.arange(4.0)).tolist() == [0, 2, 4, 6]


# Host steps and statuses


def _host_plan(function: Callable[..., Any], into: bool = False, **rest: Any) -> Plan:
    shape, strides = (2, 3), (24, 8)
    return Plan(
        guards=(like(np.empty(shape), argument(0), 0),),
        positional=1,
        slots=3,
        outputs=(Output(FLOAT64, (3, 2), 2),),
        temps={1: 0},
        arena=64,
        steps=(
            step("add", (0, 0, 1), extent=6),
            HostStep(
                function,
                ((1, FLOAT64, shape, strides),),
                ((2, FLOAT64, (3, 2), (16, 8)),),
                into=into,
            ),
        ),
        **rest,
    )


def test_host_steps_see_the_slots(make: Make) -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(make(_host_plan(np.transpose)).callable(x), 2 * x.T)


def test_host_steps_may_write_into_the_output(make: Make) -> None:
    def transpose(array: Any, out: Any) -> None:
        out[...] = array.T

    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(make(_host_plan(transpose, True)).callable(x), 2 * x.T)


def test_host_steps_get_the_gil_back(make: Make) -> None:
    x = np.arange(6.0).reshape(2, 3)
    f = make(_host_plan(np.transpose, seconds=1.0)).callable
    np.testing.assert_array_equal(f(x), 2 * x.T)


def test_host_steps_with_odd_strides_and_several_outputs(make: Make) -> None:
    x = np.arange(6.0)
    view = (0, FLOAT64, (3, 2), (-16, -8))
    plan = Plan(
        guards=(like(x[::-1], argument(0), 0),),
        positional=1,
        slots=3,
        outputs=(Output(FLOAT64, (3,), 1), Output(FLOAT64, (3,), 2)),
        steps=(
            HostStep(
                lambda a: (a[:, 0], a[:, 1]),
                (view,),
                ((1, FLOAT64, (3,), (8,)), (2, FLOAT64, (3,), (8,))),
            ),
        ),
        single=False,
    )
    one, two = make(plan).callable(x[::-1])
    assert one.tolist() == [5, 3, 1]
    assert two.tolist() == [4, 2, 0]


def test_errors_of_host_steps_propagate(make: Make) -> None:
    def broken(array: Any) -> Any:
        raise ZeroDivisionError("in the library")

    for into in (False, True):
        with pytest.raises(ZeroDivisionError, match="in the library"):
            make(_host_plan(lambda a, out=None: broken(a), into)).callable(np.zeros((2, 3)))
    with pytest.raises((TypeError, ValueError)):  # a result that does not fit
        make(_host_plan(lambda a: "text")).callable(np.zeros((2, 3)))


def _status_plan() -> Plan:
    return Plan(
        (like(np.empty(3), argument(0), 0),),
        1,
        2,
        (Output(FLOAT64, (3,), 1),),
        (step("add", (0, 0, 1), extent=3), step("status", (0,), (5,))),
    )


def test_a_status_is_reported(make: Make) -> None:
    seen = []

    def failed(args: Any, plan: Plan, number: int, status: int) -> str:
        seen.append((args, plan, number, status))
        return "numpy"

    plan, x = _status_plan(), np.ones(3)
    assert make(plan, failed=failed).callable(x) == "numpy"
    assert seen == [((x,), plan, 1, 5)]
    assert make(plan).callable(x) == ("slow", (x,), {})


def test_execute_raises_on_a_status() -> None:
    with pytest.raises(interpret.StepFailed, match="step 1 returned status 5"):
        interpret.execute(_status_plan(), (np.ones(3),))


# References and memory


def _everything() -> tuple[NativeFunction, list[tuple[Any, ...]], dict[str, Any]]:
    """A function and calls that go down every path, refused and failing ones too."""
    namespace: dict[str, Any] = {"w": np.array(3.0)}
    function = NativeFunction("f", None, lambda args, kwargs: None)
    function.add(add_plan(3))
    function.add(scale_plan(3, like(np.array(0.0), argument(1, ("item", "w")), 1)))
    function.add(scale_plan(4, like(np.array(0.0), Source("global", "w", namespace), 1), 1))
    function.add(scalar_plan(float, "copy8", FLOAT64))
    function.add(guarded_plan(ValueGuard(argument(0), (1, 2.0))))
    function.add(guarded_plan(ValueGuard(argument(0, ("item", 5)), "x")))
    function.add(replace(_status_plan(), guards=(like(np.empty(5), argument(0), 0),)))
    function.add(_host_plan(np.transpose))
    function.add(replace(add_plan(6), finish=lambda outputs: [outputs]))
    x = np.ones(3)
    calls = [
        (x, x),
        (x, {"w": np.array(2.0)}),
        (x, {"v": 1}),
        (np.ones(4),),
        (2.5,),
        ((1, 2.0),),
        ((1, 3.0),),
        ([1, 2],),
        (np.ones(5),),
        (np.ones((2, 3)),),
        (np.ones(6), np.ones(6)),
        (),
        (None, "keyword"),
    ]
    return function, calls, namespace


def test_nothing_leaks() -> None:
    function, calls, namespace = _everything()

    def run(times: int) -> None:
        for _ in range(times):
            for call in calls:
                function.callable(*call)
            function.callable(1, key=2)

    run(50)
    objects = [*calls, namespace["w"], np.dtype(float), None, True, function.callable]
    objects += [value for call in calls for value in call]
    before = [sys.getrefcount(o) for o in objects]
    tracemalloc.start()
    grown = []
    for _ in range(4):  # caches of others fill now and then; a leak shows in every round
        gc.collect()
        start = tracemalloc.get_traced_memory()[0]
        run(200)
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0] - start)
    tracemalloc.stop()
    assert min(grown) < 2000
    after = [sys.getrefcount(o) for o in objects]
    assert max(b - a for a, b in zip(before, after, strict=True)) < 20


def test_results_live_on_and_arguments_die() -> None:
    function = NativeFunction("f", None, _refused)
    function.add(add_plan(3))
    x = np.ones(3)
    reference = weakref.ref(x)
    result = function.callable(x, x)
    del x
    assert reference() is None
    del function
    gc.collect()
    assert result.tolist() == [2, 2, 2]


def test_functions_are_collected_even_in_cycles() -> None:
    class Owner:
        def slow(self, args: Any, kwargs: Any) -> Any:
            return self

    owner = Owner()
    owner.function = NativeFunction("f", None, owner.slow)  # type: ignore[attr-defined]
    owner.function.add(add_plan(3))  # type: ignore[attr-defined]
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_the_callable_alone_keeps_everything_alive() -> None:
    function = NativeFunction("f", None, _refused)
    function.add(add_plan(3))
    f = function.callable
    del function
    gc.collect()
    assert f(np.ones(3), np.ones(3)).tolist() == [2, 2, 2]
    assert f(1) == ("slow", (1,), {})


def test_clearing_while_a_guard_runs_python() -> None:
    class Model:
        @property
        def weight(self) -> Any:
            function.clear()
            gc.collect()
            return np.array(2.0)

    function = NativeFunction("f", None, _refused)
    function.add(scale_plan(3, like(np.array(0.0), argument(1, ("attr", "weight")), 1)))
    assert function.callable(np.ones(3), Model()).tolist() == [2, 2, 2]
    assert function.plans == ()
    assert function.callable(1) == ("slow", (1,), {})


def test_python_threads_share_a_function(rng: np.random.Generator) -> None:
    size = 50_000
    plan = Plan(
        guards=(like(np.empty(size), argument(0), 0),),
        positional=1,
        slots=3,
        outputs=(Output(FLOAT64, (size,), 2),),
        temps={1: 0},
        arena=200_000 * 8,
        steps=(
            step("add", (0, 0, 1), extent=size),
            step("spin", (), (1,), extent=20_000),
            step("add", (1, 0, 2), extent=size, grain=4096),
        ),
        seconds=1e-3,  # so that the GIL is released
    )
    # Calls that meet it without a plan, between `clear` and `add`, are right as well.
    function = NativeFunction("f", None, lambda args, _: 2 * args[0] + args[0])
    function.add(plan)
    errors: list[Any] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random(size)
        for _ in range(30):
            result = function.callable(x)
            between = isinstance(result, tuple)  # there was no plan just then
            if not between and not np.array_equal(result, 2 * x + x):
                errors.append(seed)
            if seed == 0:  # plans come and go meanwhile
                function.clear()
                function.add(plan)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
