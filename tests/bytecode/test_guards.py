"""What a compiled call assumes: what the program used, all of it, and nothing else."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import parts
from nbcomp.jitted import Jit

X = np.arange(1.0, 5.0)
SCALE: Any = 2.0
TABLE = np.arange(4.0)
UNUSED: Any = 0
PARAMS: dict[str, Any] = {"w": np.ones(4), "b": 1.0}


def variants(f: Jit) -> int:
    """How many graphs there are."""
    return len(f.explain().graphs)


def uses_much(x: Any, y: Any = 3.0, *, k: int = 1, ignored: Any = None) -> Any:
    return x * SCALE + TABLE * y + PARAMS["w"] * k


def test_what_is_not_used_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nbcomp.jit(uses_much)
    for ignored in (None, 1, "text", X, X[:2], [1, 2], object(), open, {"a": X}):
        np.testing.assert_array_equal(f(X, ignored=ignored), uses_much(X))
    for value in (1, "other", X):
        monkeypatch.setitem(globals(), "UNUSED", value)
        np.testing.assert_array_equal(f(X), uses_much(X))
    assert variants(f) == 1


def test_a_branch_that_is_not_taken_assumes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any, which: bool) -> Any:
        return x * SCALE if which else y + TABLE[0]

    g = nbcomp.jit(f)
    for y in (X, X[:2], "text", None):
        np.testing.assert_array_equal(g(X, y, True), X * SCALE)
    monkeypatch.setitem(globals(), "TABLE", np.ones(7))
    np.testing.assert_array_equal(g(X, X, True), X * SCALE)
    assert variants(g) == 1
    np.testing.assert_array_equal(g(X, X, False), X + 1)
    assert variants(g) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("SCALE", 5.0), ("SCALE", 3), ("SCALE", np.ones(4)), ("TABLE", np.full(4, 7.0))],
)
def test_a_changed_global_is_seen(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = nbcomp.jit(uses_much)
    f(X)
    monkeypatch.setitem(globals(), name, value)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), uses_much(X))


def test_a_builtin_that_is_hidden_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        return abs(x) + 1

    np.testing.assert_array_equal(f(-X), X + 1)
    monkeypatch.setitem(globals(), "abs", lambda x: x * 10)
    np.testing.assert_array_equal(f(-X), -X * 10 + 1)


def test_changed_entries_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nbcomp.jit(uses_much)
    f(X)
    monkeypatch.setitem(PARAMS, "w", np.full(4, 9.0))
    np.testing.assert_array_equal(f(X), uses_much(X))
    monkeypatch.setitem(PARAMS, "w", 4)
    np.testing.assert_array_equal(f(X), uses_much(X))


def test_changed_defaults_are_seen() -> None:
    def f(x: Any, y: Any = 2.0, *, z: Any = 1.0) -> Any:
        return x * y + z

    g = nbcomp.jit(f)
    for y, z in ((2.0, 1.0), (3.0, 1.0), (X, 2.0), (4, 1.5)):
        f.__defaults__, f.__kwdefaults__ = (y,), {"z": z}
        for _ in range(2):
            np.testing.assert_array_equal(g(X), f(X))
            np.testing.assert_array_equal(g(X, 7.0), f(X, 7.0))


def test_changed_defaults_are_seen_in_parts() -> None:
    def f(x: Any, y: Any = 2.0) -> Any:
        z = x * y
        str(z)
        return z + y

    g = nbcomp.jit(f)
    for y in (2.0, 3.0, X):
        f.__defaults__ = (y,)
        for _ in range(2):
            np.testing.assert_array_equal(g(X), f(X))


def test_a_closure_variable_is_seen() -> None:
    scale: Any = 2.0

    @nbcomp.jit
    def f(x: Any) -> Any:
        y = x * scale
        str(y)
        return y + scale

    for scale in (2.0, 3.0, 5, X):
        for _ in range(2):
            np.testing.assert_array_equal(f(X), X * scale + scale)


def test_an_attribute_is_seen() -> None:
    class Model:
        offset = 1.0

        def __init__(self) -> None:
            self.w = X * 2
            self.name = "unused"

        @nbcomp.jit
        def __call__(self, x: Any) -> Any:
            return x * self.w + self.offset

    model = Model()
    jitted: Jit = Model.__dict__["__call__"]
    np.testing.assert_array_equal(model(X), X * X * 2 + 1)
    model.name = "other"
    np.testing.assert_array_equal(model(X), X * X * 2 + 1)
    assert variants(jitted) == 1
    model.w = X[::-1].copy()
    np.testing.assert_array_equal(model(X), X * X[::-1] + 1)
    Model.offset = 5.0
    np.testing.assert_array_equal(model(X), X * X[::-1] + 5)
    model.offset = 7
    np.testing.assert_array_equal(model(X), X * X[::-1] + 7)


def test_a_module_attribute_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = types.ModuleType("config_of_a_test")
    config.scale, config.function = 2.0, np.sin
    monkeypatch.setitem(sys.modules, "config_of_a_test", config)
    monkeypatch.setitem(globals(), "config", config)

    @nbcomp.jit
    def f(x: Any) -> Any:
        return config.function(x) * config.scale

    np.testing.assert_allclose(f(X), np.sin(X) * 2)
    config.scale = 3.0
    np.testing.assert_allclose(f(X), np.sin(X) * 3)
    config.function = np.cos
    np.testing.assert_allclose(f(X), np.cos(X) * 3)


def test_dtypes_and_shapes_are_seen() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        str(y)
        return y + 1

    g = nbcomp.jit(f)
    for x in (X, np.float32(X), X[:2], X.reshape(2, 2), X.astype(int), X[::2], np.array(3.0)):
        for _ in range(2):
            got = g(x)
            assert (got.dtype, got.shape) == (f(x).dtype, f(x).shape)
            np.testing.assert_array_equal(got, f(x))


def test_none_and_types_that_are_asked_for() -> None:
    def f(x: Any, y: Any) -> Any:
        if y is None:
            return x + 1
        return x * 2 if isinstance(y, np.ndarray) else x * 3

    g = nbcomp.jit(f)
    for y in (None, X, X[:2], 1.0, "text", None, X):
        np.testing.assert_array_equal(g(X, y), f(X, y))


def test_functions_handed_in_are_known_by_their_code() -> None:
    def apply(x: Any, function: Any) -> Any:
        return function(x) + 1

    f = nbcomp.jit(apply)
    for k in range(5):
        np.testing.assert_array_equal(f(X, lambda v, k=k: v * k), X * k + 1)
    factor = 3.0
    for factor in (3.0, 4.0, 5.0):
        np.testing.assert_array_equal(f(X, lambda v: v * factor), X * factor + 1)  # noqa: B023
    assert variants(f) <= 7


# -------------------------------------------------------------------------------- recompilation


def test_a_recompilation_says_which_guard_failed_and_what_it_cost() -> None:
    f = nbcomp.jit(lambda x: x * 2)
    f(X)
    f(np.float32(X))
    f(X[:3])
    first, second = f.explain().recompilations
    assert first.reason == "x had dtype float64 and now has float32"
    assert second.reason == "x had shape (4,) and now has (3,)"
    assert first.seconds > 0
    assert "ms" in str(first)


def test_explain_lists_graphs_breaks_and_guards() -> None:
    def f(x: Any) -> Any:
        y = x * SCALE
        print(end="")
        return y.sum() + 1

    g = nbcomp.jit(f)
    g(X)
    said = g.explain()
    assert [len(said.graphs), len(said.breaks)] == [2, 1]
    why = said.breaks[0]
    assert why.location.line == f.__code__.co_firstlineno + 2
    assert "print" in why.reason
    assert why.hint
    assert said.graphs[0].guards[:2] == ["SCALE is a Python float", "x is f64[4]"] or set(
        said.graphs[0].guards
    ) == {"x is f64[4]", "SCALE is a Python float"}
    text = str(said)
    for part in ("2 graphs", "1 break", "x is f64[4]", "print", f"line {why.location.line}"):
        assert part in text


def test_many_values_of_a_number_do_not_compile_for_ever() -> None:
    def f(x: Any) -> Any:
        total = x * 0
        for k in range(40):
            str(total)
            total = total + x[k % 4] * x
        return total

    g = nbcomp.jit(f)
    np.testing.assert_allclose(g(X), f(X))
    assert g.parts is not None
    assert len(g.parts.compiled) <= 8


def test_the_limit_on_variants_is_said_and_right() -> None:
    def f(x: Any) -> Any:
        str(x)
        return x * 2 + 1

    g = nbcomp.jit(f)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for n in range(1, parts.VARIANTS + 6):
            np.testing.assert_array_equal(g(np.arange(n) * 1.0), f(np.arange(n) * 1.0))
    assert [w.category for w in said] == [parts.RecompileLimit]
    assert str(parts.VARIANTS) in str(said[0].message)
    assert "x had shape" in str(said[0].message)
    assert any(r.topic == "variants" for r in g.explain().remarks)


def reloaded(x: Any) -> Any:
    return x + 1


def reloaded_with_break(x: Any) -> Any:
    y = x + 1
    str(y)
    return y * 2


def another(x: Any) -> Any:
    y = x + 5
    str(y)
    return y * 3


def follows(x: Any) -> Any:
    return reloaded(x) * 2


def follows_break(x: Any) -> Any:
    return reloaded_with_break(x) * 2


@pytest.mark.parametrize(
    ("function", "changed"),
    [
        (reloaded, reloaded),
        (follows, reloaded),
        (reloaded_with_break, reloaded_with_break),
        (follows_break, reloaded_with_break),
    ],
)
def test_other_code_is_seen(function: Any, changed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = nbcomp.jit(function)
    before = function(X)
    np.testing.assert_array_equal(f(X), before)
    monkeypatch.setattr(changed, "__code__", another.__code__)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), function(X))
    monkeypatch.undo()
    for _ in range(2):
        np.testing.assert_array_equal(f(X), before)


class Answers:
    """Has any attribute."""

    def __getattr__(self, name: str) -> Any:
        return np.full(4, 2.0)


class Forwards:
    """KeyError for what it has not."""

    known = {"k": np.full(4, 3.0)}  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        return self.known[name]


@pytest.mark.parametrize("kind", [Answers, Forwards])
def test_attributes_that_are_made_up(kind: Any) -> None:
    value = kind()
    f = nbcomp.jit(lambda x: x + value.k)
    g = nbcomp.jit(lambda x, o: x + o.k)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), X + value.k)
        np.testing.assert_array_equal(g(X, value), X + value.k)


def test_any_number_of_arguments() -> None:
    def f(x: Any, *rest: Any) -> Any:
        return x + len(rest)

    def g(x: Any, **rest: Any) -> Any:
        return x + len(rest), rest

    compiled, named = nbcomp.jit(f), nbcomp.jit(g)
    for _ in range(2):
        for rest in ((), (X,), ((),), ((), ()), (1, 2)):
            np.testing.assert_array_equal(compiled(X, *rest), f(X, *rest))
        one, other = named(X)[1], named(X)[1]
        assert one == other == {}
        assert one is not other
    assert "because of *rest" in str(compiled.explain())
    assert "because of **rest" in str(named.explain())
    with pytest.raises(TypeError):
        named(X, {})
