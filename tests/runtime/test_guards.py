"""Every kind of guard, asked natively and from Python: both must say the same."""

from __future__ import annotations

import collections
import types
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nbcomp.runtime import validity
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.plan import (
    MISSING,
    ArrayGuard,
    Guard,
    LengthGuard,
    ObjectGuard,
    Plan,
    ScalarGuard,
    Source,
    ValueGuard,
)
from nbcomp.types import FLOAT64
from tests.runtime.kernels import argument, guarded_plan, like


def accepts(plan: Plan, *args: Any) -> bool:
    """Whether the native entry takes the call; the interpreter must agree."""
    function = NativeFunction("f", None, lambda args, kwargs: "refused")
    function.add(plan)
    native = not isinstance(function.callable(*args), str)
    assert native == validity.matches(plan, args), validity.mismatch(plan, args)
    return native


def holds(guard: Guard, *args: Any) -> bool:
    return accepts(guarded_plan(guard, positional=len(args)), *args)


BASE = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "array",
    [
        BASE,
        BASE.T,
        np.asfortranarray(BASE),
        BASE[:, ::-1, ::2],
        BASE[0, 0],
        np.zeros(()),
        np.zeros((3, 0, 2)),
        np.zeros((1,) * 32),
        np.zeros((1, 2) * 16),
        np.zeros((1,) * 64),
        np.broadcast_to(np.zeros(3), (5, 3)),
        *(np.zeros(3, t) for t in "?bhilqBHILQefdgFDG"),
    ],
    ids=lambda a: f"{a.dtype}-{a.shape}",
)
def test_array_passes_its_own_guard(array: np.ndarray[Any, Any]) -> None:
    guard = like(array, argument(0), 0)
    assert holds(guard, array)
    assert not holds(guard, array.astype("M8[s]") if array.dtype == bool else array.astype(bool))
    assert not holds(guard, array[None]) if array.ndim < 64 else True
    assert not holds(guard, [1.0])


def test_array_guard_refuses_other_layouts() -> None:
    guard = like(BASE, argument(0), 0)
    assert not holds(guard, np.asfortranarray(BASE))
    assert not holds(guard, np.zeros((2, 3, 5)))
    assert not holds(guard, BASE.astype(np.float32))
    assert not holds(guard, BASE.astype(np.int64))
    assert not holds(guard, BASE.astype(">f8"))
    assert not holds(guard, BASE[0])
    assert not holds(guard, BASE.view(np.recarray))
    assert not holds(guard, np.ma.array(BASE))


def test_array_guard_wants_alignment() -> None:
    raw = np.zeros(33, np.uint8)
    odd = raw[1:].view(np.float64)
    assert not odd.flags.aligned
    assert not holds(like(odd, argument(0), 0), odd)


def test_array_guard_wants_write_access_only_when_it_writes() -> None:
    locked = np.zeros(3)
    locked.flags.writeable = False
    assert holds(like(locked, argument(0), 0), locked)
    assert not holds(like(locked, argument(0), 0, writable=True), locked)
    assert holds(like(locked, argument(0), 0, writable=True), np.zeros(3))


def test_strides_that_reach_nothing_are_free() -> None:
    guard = ArrayGuard(argument(0), FLOAT64, (1, 3), (24, 8), 0)
    odd = np.lib.stride_tricks.as_strided(np.zeros(3), (1, 3), (8, 8))
    assert holds(guard, odd)
    empty = ArrayGuard(argument(0), FLOAT64, (2, 0), (8, 8), 0)
    assert holds(empty, np.zeros((2, 0), order="F"))
    assert holds(empty, np.zeros((2, 5))[:, 5:])


def test_equal_dtypes_with_another_descriptor_pass() -> None:
    guard = like(np.zeros(3, np.int64), argument(0), 0)
    assert holds(guard, np.zeros(3, np.dtype("q")))
    assert holds(guard, np.zeros(3, np.dtype(np.int64, metadata={"unit": "m"})))
    assert not holds(guard, np.zeros(3, np.uint64))
    assert not holds(guard, np.zeros(3, ">i8"))
    assert not holds(guard, np.zeros(3, "m8[s]"))


@pytest.mark.parametrize(
    ("guard", "good", "bad"),
    [
        (ScalarGuard(argument(0), float, 0), [1.5, float("nan")], [1, True, np.float64(1), None]),
        (
            ScalarGuard(argument(0), int, 0),
            [0, -(2**63), 2**63 - 1],
            [2**63, -(2**63) - 1, 10**40, True, 1.0, np.int64(3)],
        ),
        (ScalarGuard(argument(0), int, 0, low=-3, high=5), [-3, 0, 5], [-4, 6, 2**70]),
        (ScalarGuard(argument(0), bool, 0), [True, False], [0, 1, np.True_, None]),
    ],
    ids=["float", "int", "range", "bool"],
)
def test_scalar_guard(guard: ScalarGuard, good: list[Any], bad: list[Any]) -> None:
    assert all(holds(guard, value) for value in good)
    assert not any(holds(guard, value) for value in bad)


def test_object_guard_is_identity() -> None:
    one, other = [1], [1]
    guard = ObjectGuard(argument(0), one)
    assert holds(guard, one)
    assert not holds(guard, other)


@pytest.mark.parametrize(
    ("value", "good", "bad"),
    [
        (1.5, [1.5], [1.25, np.float64(1.5), "1.5"]),
        (0.0, [0.0], [-0.0, 0, False]),
        (-0.0, [-0.0], [0.0]),
        (float("nan"), [float("nan"), -float("nan")], [0.0]),
        (3, [3], [3.0, 4, True, np.int64(3)]),
        (10**30, [10**30, int("1" + "0" * 30)], [10**30 + 1]),
        (True, [True], [1, False]),
        ("ab", ["ab", "".join(["a", "b"])], ["abc", b"ab", np.str_("ab")]),
        (b"ab", [bytes([97, 98])], ["ab"]),
        (None, [None], [0, False, ()]),
        (1 + 2j, [complex(1, 2)], [1 - 2j, 1.0]),
        (complex(0.0, -0.0), [complex(0.0, -0.0)], [0j]),
        ((1, (2.0, "x")), [(1, (2.0, "x"))], [(1, (2, "x")), [1, (2.0, "x")], (1,)]),
        ((-0.0,), [(-0.0,)], [(0.0,)]),
        (np.float32(2), [np.float32(2)], [np.float64(2), 2.0]),
        (slice(1, 2), [slice(1, 2)], [slice(1, 3)]),
    ],
    ids=repr,
)
def test_value_guard(value: Any, good: list[Any], bad: list[Any]) -> None:
    guard = ValueGuard(argument(0), value)
    assert all(holds(guard, other) for other in good)
    assert not any(holds(guard, other) for other in bad)


def test_length_guard() -> None:
    assert holds(LengthGuard(argument(0), tuple, 2), (1, 2))
    assert not holds(LengthGuard(argument(0), tuple, 2), (1, 2, 3))
    assert not holds(LengthGuard(argument(0), tuple, 2), [1, 2])
    named = collections.namedtuple("named", "a b")
    assert not holds(LengthGuard(argument(0), tuple, 2), named(1, 2))
    assert holds(LengthGuard(argument(0), list, 0), [])


def test_dict_guard_wants_the_keys_in_order() -> None:
    guard = LengthGuard(argument(0), dict, 2, ("a", "b"))
    assert holds(guard, {"a": 1, "b": 2})
    assert holds(guard, {"".join("a"): 1, bytes([98]).decode(): 2})
    assert not holds(guard, {"b": 2, "a": 1})
    assert not holds(guard, {"a": 1})
    assert not holds(guard, {"a": 1, "c": 2})
    assert not holds(guard, collections.OrderedDict(a=1, b=2))
    assert holds(LengthGuard(argument(0), dict, 1, ((1, 2),)), {(1, 2): 0})


def test_paths_reach_into_containers_and_objects() -> None:
    array = np.zeros(3)
    nested = types.SimpleNamespace(layers=[{"w": array}, (array, array)])

    def guard(*path: tuple[str, Any]) -> ArrayGuard:
        return like(array, argument(0, *path), 0)

    layers = ("attr", "layers")
    assert holds(guard(layers, ("item", 0), ("item", "w")), nested)
    assert holds(guard(layers, ("item", -1), ("item", -2)), nested)
    assert not holds(guard(layers, ("item", 2), ("item", 0)), nested)
    assert not holds(guard(layers, ("item", 0), ("item", "v")), nested)
    assert not holds(guard(("attr", "nothing")), nested)
    assert not holds(guard(("item", 0)), nested)
    assert not holds(guard(("item", "w")), {"w": array.astype(np.float32)})
    assert holds(guard(("item", 1)), {1: array})
    assert holds(guard(("item", "k")), collections.defaultdict(lambda: array))
    assert holds(guard(("item", 0)), collections.deque([array]))


def test_a_property_that_raises_is_a_mismatch() -> None:
    class Model:
        @property
        def weight(self) -> Any:
            raise ValueError("not loaded")

    guard = like(np.zeros(3), argument(0, ("attr", "weight")), 0)
    assert not holds(guard, Model())


def test_shared_prefixes_are_looked_up_once() -> None:
    seen = []

    class Model:
        def __getattr__(self, name: str) -> Any:
            seen.append(name)
            return {"a": np.zeros(3), "b": np.zeros(4)}

    guards = [
        like(np.zeros(n), argument(0, ("attr", "params"), ("item", key)), slot)
        for n, key, slot in ((3, "a", 0), (4, "b", 1))
    ]
    function = NativeFunction("f", None, lambda args, kwargs: "refused")
    function.add(guarded_plan(*guards))
    assert function.callable(Model())[0] == 1.0
    assert seen == ["params"]


def test_globals_are_read_at_each_call() -> None:
    namespace: dict[str, Any] = {"scale": 2.0, "__builtins__": __builtins__}
    plan = guarded_plan(ValueGuard(Source("global", "scale", namespace), 2.0), positional=0)
    assert accepts(plan)
    namespace["scale"] = 3.0
    assert not accepts(plan)
    del namespace["scale"]
    assert not accepts(plan)


def test_globals_fall_back_to_builtins_until_shadowed() -> None:
    namespace: dict[str, Any] = {"__builtins__": __builtins__}
    plan = guarded_plan(ObjectGuard(Source("global", "len", namespace), len), positional=0)
    assert accepts(plan)
    namespace["len"] = max
    assert not accepts(plan)


def test_cells_are_read_at_each_call() -> None:
    cell = types.CellType(np.zeros(3))
    plan = guarded_plan(like(np.zeros(3), Source("cell", "w", cell), 0), positional=0)
    assert accepts(plan)
    cell.cell_contents = np.zeros(4)
    assert not accepts(plan)
    del cell.cell_contents
    assert not accepts(plan)


def test_objects_are_their_own_source() -> None:
    model = types.SimpleNamespace(n=3)
    source = Source("object", "model", model, (("attr", "n"),))
    plan = guarded_plan(ValueGuard(source, 3), positional=0)
    assert accepts(plan)
    model.n = 4
    assert not accepts(plan)


def test_ranges_that_must_not_overlap() -> None:
    memory = np.zeros(20)

    def plan(one: Any, two: Any) -> Plan:
        guards = (like(one, argument(0), 0), like(two, argument(1), 1))
        base = guarded_plan(*guards, positional=2)
        return Plan(**{**vars(base), "disjoint": ((0, 1),)})

    first = memory[:10]
    for start, expected in ((10, True), (9, False), (0, False)):
        other = memory[start : start + 10]
        assert accepts(plan(first, other), first, other) is expected
        assert accepts(plan(other, first), other, first) is expected
    backwards = memory[9::-1]
    assert accepts(plan(backwards, memory[10:]), backwards, memory[10:])
    assert not accepts(plan(backwards, memory[9:19]), backwards, memory[9:19])
    assert accepts(plan(memory[:0], memory), memory[:0], memory)


@pytest.mark.parametrize(
    ("guard", "value", "reason"),
    [
        (like(BASE, argument(0), 0), [1], "argument 0 was an array and is now of type list"),
        (like(BASE, argument(0), 0), BASE[0], "had shape (2, 3, 4) and now has (3, 4)"),
        (like(BASE, argument(0), 0), BASE.astype("f4"), "had dtype float64 and now has float32"),
        (ScalarGuard(argument(0), int, 0, 0, 9), 11, "is 11, outside of 0 … 9"),
        (ValueGuard(argument(0, ("item", "n")), 3), {"n": 4}, "argument 0['n'] was 3 and is now 4"),
        (ValueGuard(argument(0, ("item", "n")), 3), {}, "argument 0['n'] is not there any more"),
        (ValueGuard(argument(0), 3), BASE, "was 3 and is now an array, f64[2, 3, 4]"),
        (ValueGuard(argument(0), 3), [0.5] * 90, "was 3 and is now a list of 90"),
        (ObjectGuard(argument(0), None), BASE, "was None and is now an array, f64[2, 3, 4]"),
        (ObjectGuard(argument(0), BASE), None, "was an array, f64[2, 3, 4] and is now None"),
    ],
)
def test_the_reason_is_in_the_users_words(guard: Guard, value: Any, reason: str) -> None:
    told = validity.mismatch(guarded_plan(guard), (value,))
    assert told is not None
    assert reason in told


def test_sources_are_described_as_the_user_writes_them() -> None:
    path = (("attr", "layers"), ("item", 0), ("item", "W"))
    assert Source("argument", 0, path=path, name="model").describe() == "model.layers[0]['W']"
    assert Source("argument", 0, path=path[:1]).describe() == "argument 0.layers"
    assert Source("global", "scale", {}).describe() == "scale"
    assert Source("object", "relu", len).describe() == "relu"


def test_wrong_number_of_arguments_is_a_reason() -> None:
    plan = guarded_plan(ValueGuard(argument(0), 1))
    assert validity.mismatch(plan, (1, 2)) == "it was compiled for 1 arguments, not 2"


class Looked:
    def method(self) -> None:
        pass


class Sub(Looked):
    pass


class Slot:
    __slots__ = ("value",)


def test_members_are_looked_up_in_the_class_and_its_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Source("object", "Sub", Sub, (("member", "method"),))
    plan = guarded_plan(ObjectGuard(found, vars(Looked)["method"]), positional=0)
    none = guarded_plan(
        ObjectGuard(Source("object", "Sub", Sub, (("member", "more"),)), MISSING), positional=0
    )
    assert accepts(plan)
    assert accepts(none)
    monkeypatch.setattr(Looked, "more", 1, raising=False)
    assert not accepts(none)
    monkeypatch.setattr(Sub, "method", print, raising=False)
    assert not accepts(plan)


@pytest.mark.parametrize("how", ["own", "maybe"])
def test_what_an_object_lacks(how: str) -> None:
    guard = ObjectGuard(replace(argument(0), path=((how, "value"),)), MISSING)
    looked, slot = Looked(), Slot()
    assert all(holds(guard, value) for value in (looked, slot, 3, print, [1]))
    looked.value, slot.value = 1, 2  # type: ignore[attr-defined]
    assert not holds(guard, looked)
    assert holds(guard, slot) == (how == "own")
    looked.__dict__.clear()
    assert holds(guard, looked)


def test_the_type() -> None:
    guard = ObjectGuard(replace(argument(0), path=(("type", "__class__"),)), Sub)
    assert holds(guard, Sub())
    assert not any(holds(guard, value) for value in (Looked(), Sub, None))


@pytest.mark.parametrize("part", ["__defaults__", "__kwdefaults__"])
def test_the_defaults_of_a_function(part: str) -> None:
    def function(a: int = 1, *, b: int = 2) -> None: ...

    place = Source("object", "function", function, (("attr", part),))
    plan = guarded_plan(ObjectGuard(place, getattr(function, part)), positional=0)
    assert accepts(plan)
    setattr(function, part, type(getattr(function, part))())
    assert not accepts(plan)
    setattr(function, part, None)
    assert not accepts(plan)
