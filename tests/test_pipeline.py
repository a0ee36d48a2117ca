"""From a function to a `Compiled`: what is recorded, what can be looked at, what is refused."""

from __future__ import annotations

import collections
import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import pipeline
from nbcomp.errors import CaptureError, NbcompError, PassError, Unsupported
from nbcomp.graph.ir import Graph
from nbcomp.pipeline import GRAPH_PASSES, compile_for
from nbcomp.record import Location, Snapshot, Trace
from nbcomp.schedule.default import SCHEDULE

X = np.random.default_rng(3).random((5, 7))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def fresh(k: float) -> Callable[[Any], Any]:
    """A function nobody has compiled yet."""
    return lambda x: np.tanh(x * k) + x / 3


# ----------------------------------------------------------------------------------- the result


def test_a_compiled_function_is_called_on_arrays() -> None:
    compiled = nbcomp.compile(softmax, X)
    np.testing.assert_allclose(compiled(X), softmax(X), rtol=1e-14)
    np.testing.assert_allclose(compiled(x=X + 1), softmax(X), rtol=1e-12)
    assert compiled.name == "softmax"
    assert compiled.function is softmax
    assert "def softmax" in compiled.source
    assert compiled.location is not None
    assert compiled.location.line == inspect.getsourcelines(softmax)[1]
    assert repr(compiled) == f"<nbcomp softmax(f64[5, 7]): 1 kernel, {compiled.target}>"
    assert compiled.threads >= 1


def test_a_call_is_native(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = nbcomp.compile(softmax, X)

    def no_call(*args: Any) -> Any:
        raise AssertionError("Python looked at the plan")

    monkeypatch.setattr("nbcomp.runtime.interpret.execute", no_call)
    monkeypatch.setattr("nbcomp.runtime.validity.mismatch", no_call)
    np.testing.assert_allclose(compiled(X), softmax(X), rtol=1e-14)
    np.testing.assert_allclose(compiled(x=X), softmax(X), rtol=1e-14)


def test_other_arguments_are_refused_with_the_reason() -> None:
    compiled = nbcomp.compile(softmax, X)
    for wrong, why in (
        (X[:4], "shape"),
        (X.astype(np.float32), "float32"),
        (X.T.copy().T, "stride"),
    ):
        with pytest.raises(
            NbcompError, match="softmax was compiled for other arguments: "
        ) as found:
            compiled(wrong)
        assert why in str(found.value)
    with pytest.raises(TypeError, match="positional"):
        compiled(X, X)


def test_types_stand_for_arrays() -> None:
    compiled = nbcomp.compile(softmax, nbcomp.f64[5, 7])
    np.testing.assert_allclose(compiled(X), softmax(X), rtol=1e-14)
    assert nbcomp.compile(lambda n, x: x * n, 3, nbcomp.f32[4]).captured.inputs[1].shape == (4,)


@pytest.mark.parametrize("shape", [-1, 2.5, (3, "2 n"), None])
def test_types_of_no_shape(shape: Any) -> None:
    with pytest.raises(TypeError, match="whole numbers"):
        nbcomp.f32[shape]


def test_a_jitted_function_is_compiled_as_what_it_wraps() -> None:
    jitted = nbcomp.jit(softmax)
    compiled = nbcomp.compile(jitted, X)
    assert compiled.function is softmax
    assert jitted.variants == []


def test_every_level_has_a_text() -> None:
    compiled = nbcomp.compile(softmax, X)
    assert compiled.text("graph").startswith("graph softmax(%x: f64[5, 7]) {")
    assert "kernel max_exp_sum(input x: f64[5, 7]" in compiled.text("loop")
    assert "define" in compiled.text("llvm")
    assert len(compiled.text("llvm-before")) > 0
    assert ".loc" in compiled.text("asm")
    with pytest.raises(ValueError, match="no level 'ptx'"):
        compiled.text("ptx")


def test_names_of_the_users_are_in_the_llvm_text() -> None:
    assert "%x" in nbcomp.compile(softmax, X).text("llvm-before")


def test_what_was_done_is_explained() -> None:
    def f(x: Any) -> Any:
        e = np.exp(x)
        return e[1:] - e[:-1]

    (remark,) = (r for r in nbcomp.compile(f, X).explain() if r.kind == "missed")
    assert remark.topic == "fusion"
    assert "`e`" in remark.reason


# ------------------------------------------------------------------------------------ the trace


def test_every_step_is_recorded_in_order() -> None:
    compiled = nbcomp.compile(softmax, X)
    names = [s.name for s in compiled.trace.snapshots]
    loops = ["lower", *(step.__name__ for step in SCHEDULE)]
    passes = ("capture", *(p.__name__ for p in GRAPH_PASSES), "fuse", "share")
    assert names == [*passes, *loops]
    for snapshot in compiled.trace.snapshots:
        assert snapshot.description.endswith(".")
        assert snapshot.seconds >= 0
        assert snapshot.text == str(snapshot.value)
    assert set(compiled.trace.seconds) == {
        *("capture", "graph passes", "lower", "schedule", "memory plan", "code generation", "LLVM"),
    }
    assert compiled.compile_seconds >= sum(compiled.trace.seconds.values()) * 0.99


def test_known_code_is_not_compiled_again() -> None:
    function = fresh(1.25)
    first = nbcomp.compile(function, np.ones(1000))
    again = nbcomp.compile(function, np.ones(2000))
    assert first.cold
    assert not again.cold
    assert [k.known for k in again.kernels] == [True]
    assert again.kernels[0].code.stages[0].run == first.kernels[0].code.stages[0].run


def test_a_pass_that_fails_names_itself_and_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Graph) -> Graph:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(pipeline, "GRAPH_PASSES", (*GRAPH_PASSES[:2], broken))
    with pytest.raises(
        PassError, match="pass broken failed after choose_windows, choose_recurrences: Zero"
    ):
        nbcomp.compile(softmax, X)
    monkeypatch.setattr(pipeline, "GRAPH_PASSES", (broken,))
    with pytest.raises(PassError, match="pass broken failed after capture"):
        nbcomp.compile(softmax, X)


def test_a_pass_may_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(graph: Graph) -> Graph:
        raise Unsupported("not today")

    monkeypatch.setattr(pipeline, "GRAPH_PASSES", (refusing,))
    with pytest.raises(Unsupported, match="not today"):
        nbcomp.compile(softmax, X)
    jitted = nbcomp.jit(softmax)
    with pytest.warns(nbcomp.NumpyFallback, match="softmax runs in NumPy: not today"):
        np.testing.assert_allclose(jitted(X), softmax(X))


def test_errors_of_the_function_are_its_own() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nbcomp.compile(f, X)


def test_control_flow_on_values_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"np\.where"):
        nbcomp.compile(lambda x: x if x.sum() > 0 else -x, X)


def test_strides_of_parts_of_elements_are_refused() -> None:
    pairs = np.zeros(4, [("a", np.int8), ("b", np.float64)])
    with pytest.raises(Unsupported):
        nbcomp.compile(lambda x: x + 1, pairs["b"])


# ---------------------------------------------------------------------------------- other targets


def test_the_interpreted_target_gives_the_same_answers() -> None:
    for function, args in (
        (softmax, [X]),
        (lambda x: np.sort(x, axis=0) @ x.T + x.sum(), [X]),
        (lambda x, k: (x[::2] * k, x.max()), [X, 3]),
        (lambda x: np.concatenate([x, np.exp(x)]), [X]),
    ):
        slow = compile_for("interpreted")(function, *args)
        fast = compile_for("llvm")(function, *args)
        got, wanted = slow(*args), fast(*args)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=1e-13)
        assert "Python" in slow.target
        with pytest.raises(ValueError, match="ends with the loops"):
            slow.text("llvm")


def test_unknown_targets_are_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no target 'gpu'; there are llvm, interpreted"):
        compile_for("gpu")


# ----------------------------------------------------------------------------- plain data: traces


def test_a_trace_tells_what_each_pass_changed() -> None:
    trace = Trace()
    for name, text in (("one", "a\nb\nc"), ("two", "a\nB\nc"), ("three", "a\nB\nc")):
        trace.record(Snapshot(name, "graph", f"{name}.", text, 0.0))
    trace.record(Snapshot("other", "loop", "Another level.", "x", 0.0, kernel="k"))
    changed = {s.name: lines for s, lines in trace.changed()}
    assert changed["one"] == []
    assert [line for line in changed["two"] if line[0] in "+-"] == ["-b", "+B"]
    assert changed["three"] == changed["other"] == []


def fail_in(trace: Trace) -> None:
    with trace.timed("stage"):
        time.sleep(0.001)
        raise ValueError("oh")


def test_seconds_add_up_by_stage_even_when_it_fails() -> None:
    trace = Trace()
    for _ in range(2):
        with pytest.raises(ValueError, match="oh"):
            fail_in(trace)
    assert trace.seconds["stage"] >= 0.002


def test_remarks_are_listed_once() -> None:
    compiled = nbcomp.compile(lambda x: np.exp(x)[1:] + np.sort(np.exp(x))[1:], X)
    assert len(compiled.trace.remarks) == len(set(compiled.trace.remarks))


def at(source: str, text: str) -> Location:
    """The location of a piece of one line of source; its columns count bytes, as Python's do."""
    import linecache

    name = "<a cell of a test>"
    linecache.cache[name] = (len(source), None, [source + "\n"], name)
    start = source.index(text)
    left = len(source[:start].encode())
    return Location(name, 1, left, 1, left + len(text.encode()), "f")


@pytest.mark.parametrize(
    ("source", "piece"),
    [
        ("    y = np.exp(x) + 1", "np.exp(x)"),
        ("    größe = np.exp(ü) + 1", "np.exp(ü)"),
        ("\ty = '日本' + f(x)", "f(x)"),
        ("x", "x"),
    ],
)
def test_an_excerpt_has_its_caret_under_the_piece(source: str, piece: str) -> None:
    location = at(source, piece)
    assert location.source() == piece
    where, line, carets = location.excerpt().split("\n")
    assert where == "line 1, in f"
    assert line == "    " + source.strip()
    assert line[carets.index("^") : carets.rindex("^") + 1] == piece


def test_a_location_without_its_source() -> None:
    location = Location("<nowhere>", 12)
    assert str(location) == "line 12"
    assert location.excerpt() == "line 12"
    assert location.source() == ""


def test_an_error_ends_with_its_hint() -> None:
    error = Unsupported("no such thing", at("y = f(x)", "f(x)"), "write g(x)")
    assert str(error).split("\n") == [
        "line 1, in f",
        "    y = f(x)",
        "        ^^^^",
        "no such thing",
        "hint: write g(x)",
    ]


# ------------------------------------------------------------------------ results of any kind

Pair = collections.namedtuple("Pair", "left right")


def test_results_keep_their_containers() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return Pair(y, [x, {"same": y, "view": y[1:], "none": None}])

    got, wanted = nbcomp.compile(f, X)(X), f(X)
    assert type(got) is Pair
    assert got.right[0] is X
    assert got.right[1]["same"] is got.left
    assert np.shares_memory(got.right[1]["view"], got.left)
    np.testing.assert_array_equal(got.left, wanted.left)
    assert got.right[1]["none"] is None
