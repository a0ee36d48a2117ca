"""`trace`, `export` and rewriting by patterns: the programs of the field's own introductions."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.errors import CaptureError, NbcompError, VerifyError
from nbcomp.graph.editable import EditableGraph
from nbcomp.jitted import Jit
from nbcomp.nn import functional as F


class TopRows(nn.Module):
    """The module with which graph capture is introduced."""

    def __init__(self) -> None:
        self.linear = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        return nbcomp.topk(nbcomp.sum(self.linear(x + self.linear.weight).relu(), dim=-1), 3)


class Cell(nn.Module):
    """The recurrent cell with which tracing is introduced."""

    def __init__(self) -> None:
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any, h: Any) -> Any:
        new_h = np.tanh(self.linear(x) + h)
        return new_h, new_h


class Mlp(nn.Module):
    """The model with which exporting is introduced."""

    def __init__(self) -> None:
        self.fc1 = nn.Linear(784, 256)
        self.act1 = nn.ReLU()
        self.fc2 = nn.Linear(256, 64)
        self.act2 = nn.GELU()
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        h1 = self.act1(self.fc1(x))
        h2 = self.act2(self.fc2(h1))
        return self.fc3(h2)


def gate(x: Any) -> Any:
    if x.sum() > 0:
        return x + 1
    return -x


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.standard_normal((5, 4)).astype(np.float32)


def _ran(module: Any, *args: Any) -> Any:
    """What the printed code computes."""
    scope: dict[str, Any] = {"np": np, "op": nbcomp.op}
    exec(module.code, scope)
    return scope["forward"](module, *args)


def _anywhere(text: str) -> str:
    """Printed text without the numbers of the lines of this file."""
    return re.sub(r"# line \d+", "# line N", text)


def test_a_module_as_a_table(x: Any, capsys: pytest.CaptureFixture[str], golden: Any) -> None:
    model = TopRows()
    traced = nbcomp.trace(model, x)
    traced.print_tabular()
    golden(_anywhere(f"{capsys.readouterr().out}\n{traced.code}\n{traced.graph}\n"))
    expected = model(x)
    for found in (traced(x), _ran(traced, x), nbcomp.jit(model)(x)):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[1], expected[1])
    assert set(traced.attributes) == {"linear.weight", "linear.bias"}
    assert traced.linear.weight is model.linear.weight.data
    model.linear.weight *= 3
    np.testing.assert_allclose(traced(x)[0], model(x)[0], rtol=1e-5, atol=1e-6)


def test_a_cell_is_traced(x: Any) -> None:
    cell = Cell()
    traced = nbcomp.trace(cell, x, x)
    assert "%new_h: f32[5, 4] = tanh(%add)" in str(traced.graph)
    assert "# line" in str(traced.graph)
    first, second = traced(x, h=x)
    assert first is second
    np.testing.assert_allclose(first, cell(x, x)[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(_ran(traced, x, x)[1], first, rtol=1e-5, atol=1e-6)
    stacked = nbcomp.trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), x)
    assert 'getattr(self, "0").weight' in stacked.code.replace("'", '"')
    np.testing.assert_allclose(_ran(stacked, x), stacked(x), rtol=1e-5, atol=1e-6)


def test_a_branch_on_values_warns_and_is_frozen(x: Any) -> None:
    with pytest.warns(nbcomp.TraceWarning) as record:
        traced = nbcomp.trace(gate, np.abs(x))
    (warning,) = record
    assert "`x.sum() > 0` at line" in str(warning.message)
    assert "np.where(x.sum() > 0, x + 1, ...)" in str(warning.message)
    assert warning.filename == __file__
    assert "neg" not in traced.code
    np.testing.assert_array_equal(traced(-np.abs(x)), 1 - np.abs(x))
    with pytest.raises(CaptureError, match=r"`x\.sum\(\) > 0` is known only at run time"):
        nbcomp.compile(gate, x)
    with pytest.raises(CaptureError):
        nbcomp.export(gate, nbcomp.f32[3])


def _while(x: Any) -> Any:
    while x.sum() < 100:
        x = x * 2.0
    return x


@pytest.mark.parametrize(
    ("function", "condition"),
    [
        (_while, "x.sum() < 100"),
        (lambda x: x * x.max().tolist(), "x.max().tolist()"),
        (lambda x: x + np.array(x.tolist()), "x.tolist()"),
        (lambda x: sum((x for _ in range(int(x.max()))), x), "int(x.max())"),
        (lambda x: x * min(x.max(), 3), "min(x.max(), 3)"),
        (lambda x: x if (x > 0).any() and x.max() < 3 else -x, "(x > 0).any() and x.max() < 3"),
    ],
)
def test_other_values_are_frozen_too(function: Any, condition: str) -> None:
    x = np.array([1.0, 2.0, 3.0])
    with pytest.warns(nbcomp.TraceWarning) as record:
        traced = nbcomp.trace(function, x)
    assert len(record) == 1
    assert f"`{condition}` at line" in str(record[0].message)
    np.testing.assert_array_equal(traced(x), function(x))


def test_shapes_and_layouts(x: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = nbcomp.trace(lambda x: (x * 2.0).sum(0), nbcomp.f32[5, 4])
    np.testing.assert_allclose(traced(np.asfortranarray(x)), (x * 2).sum(0), rtol=1e-5, atol=1e-6)
    with pytest.raises(NbcompError, match=r"captured with x: f32\[5, 4\], not f32\[3, 4\]"):
        traced(x[:3])
    with pytest.raises(NbcompError, match=r"not f64"):
        traced(x.astype(np.float64))
    with pytest.raises(TypeError):
        traced()
    layer = nn.Linear(4, 2)
    captured = nbcomp.trace(layer, x)
    layer.weight = np.ones((3, 4), np.float32)
    with pytest.raises(NbcompError, match=r"captured with weight: f32\[2, 4\], not f32\[3, 4\]"):
        captured(x)


def test_writes_constants_and_unread_arguments(x: Any) -> None:
    table = np.arange(4, dtype=np.float32)

    def program(x: Any, unread: Any, y: Any) -> Any:
        x += y * table
        return x, y[0], 3, None, {"sum": x.sum()}

    traced = nbcomp.trace(program, x.copy(), 7, x)
    assert traced.code.startswith("def forward(self, x, unread, y):")
    assert "    x[...] = x_1\n" in traced.code
    expected, given = x.copy(), x.copy()
    right = program(expected, 0, x)
    found = traced(given, 0, x)
    assert found[0] is given
    assert found[2:4] == (3, None)
    np.testing.assert_allclose(given, expected, rtol=1e-6)
    np.testing.assert_allclose(found[1], right[1])
    np.testing.assert_allclose(found[4]["sum"], right[4]["sum"], rtol=1e-5, atol=1e-6)
    again = x.copy()
    _ran(traced, again, 0, x)
    np.testing.assert_allclose(again, expected, rtol=1e-6)
    table *= 0
    assert np.array_equal(traced(x.copy(), 0, x)[0], x)
    returned = nbcomp.trace(lambda a, b: b, x, x)
    assert returned(1, x) is x


def test_views_are_shared_as_in_the_function(x: Any) -> None:
    def program(x: Any) -> Any:
        y = x * 2.0
        return y, y.T, x[1:]

    traced = nbcomp.trace(program, x)
    for found in (traced(x), _ran(traced, x)):
        for ours, theirs in zip(found, program(x), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    y, turned, part = traced(x)
    assert np.shares_memory(y, turned)
    assert np.shares_memory(part, x)
    both = nbcomp.trace(lambda a, x: (a, np.exp(x), 3, x), x, x)
    assert nbcomp.replace_pattern(both, lambda x: np.exp(x), lambda x: np.expm1(x) + 1)
    given = both(None, x)
    assert given[0] is None
    assert given[3] is x
    np.testing.assert_allclose(given[1], np.exp(x), rtol=1e-5, atol=1e-6)
    nbcomp.replace_pattern(traced, lambda x: x * 2.0, lambda x: x + x)
    assert "add" in traced.code
    assert np.shares_memory(*traced(x)[:2])


def test_an_edited_program_runs_after_recompile(x: Any) -> None:
    traced = nbcomp.trace(TopRows(), x)
    before = traced(x)
    relu = next(n for n in traced.graph if n.name == "relu")
    with traced.graph.inserting_after(relu):
        doubled = traced.graph.call_function(np.multiply, (relu, 2.0))
    assert [n.name for n in relu.replace_all_uses_with(doubled)] == ["sum"]
    np.testing.assert_array_equal(traced(x)[0], before[0])
    traced.recompile()
    np.testing.assert_allclose(traced(x)[0], 2 * before[0], rtol=1e-6)
    assert "np.multiply(relu, np.float32(2.0))" in traced.code or "2.0" in traced.code
    y = traced.graph.placeholder("y", nbcomp.f32[5, 5])
    with traced.graph.inserting_after(relu):
        shifted = traced.graph.call_function(np.add, (relu, y))
    doubled.args = (shifted, 2.0)
    traced.recompile()
    np.testing.assert_allclose(traced(x, np.zeros((5, 5), np.float32))[0], 2 * before[0], rtol=1e-6)
    traced.graph.output(doubled)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert traced(x, y=np.ones((5, 5), np.float32)).shape == (5, 5)
    shifted.args = (doubled, y)
    with pytest.raises(VerifyError, match="computed after it"):
        traced.recompile()


# --------------------------------------------------------------------------------- scripting


class Gated(nn.Module):
    """A decision on values, inside a model."""

    def __init__(self) -> None:
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        h = self.fc(x).relu()
        if h.sum() > 1:
            return h
        return -h


def _grown(x: Any, w: Any) -> Any:
    n = 0.0
    while x.sum() < 100:
        if x.max() > 5:
            x = x * w
            n = n + 0.5
        else:
            x = x + 1
        n = n + 1.0
    return x, n


def test_a_scripted_model_keeps_both_sides(x: Any) -> None:
    model = Gated()
    scripted = nbcomp.script(model)
    for given in (x * 10, x * 0 - 100):
        np.testing.assert_allclose(scripted(given), model(given), rtol=1e-5, atol=1e-5)
    assert "%fc_weight: f32[4, 4]" in str(scripted.graph)
    cell = nbcomp.script(Cell())
    np.testing.assert_allclose(cell(x, x)[0], cell.__wrapped__(x, x)[0], rtol=1e-5, atol=1e-6)
    assert "tanh" in str(cell.graph)


class Gate(nn.Module):
    """The decision gate with which scripting is introduced."""

    def forward(self, x: Any) -> Any:
        if x.sum() > 0:
            return x
        else:
            return -x


class GatedCell(nn.Module):
    """A recurrent cell that asks a gate, and the loop around it."""

    def __init__(self, gate: nn.Module) -> None:
        self.gate = gate
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any, h: Any) -> Any:
        new_h = np.tanh(self.gate(self.linear(x)) + h)
        return new_h, new_h


class Loop(nn.Module):
    """A recurrence over the first axis."""

    def __init__(self) -> None:
        self.cell = GatedCell(Gate())

    def forward(self, xs: Any) -> Any:
        h = np.zeros(xs.shape[1:], np.float32)
        for i in range(xs.shape[0]):
            y, h = self.cell(xs[i], h)
        return y, h


def test_modules_within_are_scripted_too(x: Any, rng: np.random.Generator) -> None:
    cell = GatedCell(Gate())
    with pytest.warns(nbcomp.TraceWarning, match=r"x\.sum\(\) > 0"):
        nbcomp.trace(cell, x, x)
    scripted = nbcomp.script(cell)
    for given in (x, -x):
        np.testing.assert_allclose(scripted(given, x)[0], cell(given, x)[0], rtol=1e-5, atol=1e-6)
    assert "if(" in str(scripted.graph)
    assert "    else:\n" in scripted.code
    loop, xs = Loop(), rng.standard_normal((6, 3, 4)).astype(np.float32)
    found = nbcomp.script(loop)(xs)
    np.testing.assert_allclose(found[0], loop(xs)[0], rtol=1e-5, atol=1e-6)


def _jitted_class() -> Any:
    @nbcomp.jit
    class Decorated(Turning):
        def forward(self, x: Any, *, scale: float = 1.0) -> Any:
            y = self.fc(x).relu()
            if y.sum() > 1:
                y = -y
            return (y * scale).sum(dim=-1)

    return Decorated()


class Turning(nn.Module):
    """Decides by what it computed, and goes on with the methods of layers."""

    def __init__(self) -> None:
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Any, *, scale: float = 1.0) -> Any:
        y = self.fc(x).relu()
        if y.sum() > 1:
            y = -y
        return (y * scale).sum(dim=-1)


@pytest.mark.parametrize("make", [lambda: nbcomp.jit(Turning()), _jitted_class])
def test_a_jitted_model_keeps_both_sides(make: Any, x: Any) -> None:
    program = make()
    jitted = program if isinstance(program, Jit) else type(program).__dict__["forward"]
    model = Turning()
    model.fc = getattr(program, "__wrapped__", program).fc
    for given in (x * 10, x * 0, x.astype(np.float64) * 10):
        for named in ({}, {"scale": 2.0}):
            found, want = program(given, **named), model(given, **named)
            assert type(found) is np.ndarray
            assert found.dtype == want.dtype
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    model.fc.weight[:] = 1
    np.testing.assert_allclose(program(x), model(x), rtol=1e-5, atol=1e-5)
    assert "if(" in str(jitted.compiled.captured)
    assert not jitted.fallbacks


def test_scripted_code_says_what_is_read_returned_and_written(x: Any) -> None:
    scripted = nbcomp.script(GatedCell(Gate()))
    expected = scripted(x, x)
    assert "linear_weight = self.linear.weight" in scripted.code
    scope: dict[str, Any] = {"np": np, "op": nbcomp.op}
    exec(scripted.code, scope)
    found = scope["forward"](scripted.__wrapped__, x, x)
    assert len(found) == len(expected) == 2
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    @nbcomp.script
    def writes(x: Any, y: Any) -> Any:
        x += y
        return y * 2

    writes(np.ones(3), np.ones(3))
    exec(writes.code, scope)
    a = np.ones(3)
    np.testing.assert_array_equal(scope["forward"](None, a, a * 4), np.full(3, 8.0))
    np.testing.assert_array_equal(a, np.full(3, 5.0))


def test_a_jitted_model_with_effects_and_decisions_has_them_once(x: Any) -> None:
    calls: list[int] = []

    class Counting(Turning):
        def forward(self, x: Any, *, scale: float = 1.0) -> Any:
            calls.append(1)
            return super().forward(x, scale=scale)

    model = Counting()
    jitted = nbcomp.jit(model)
    jitted(x)
    assert len(calls) == 1
    np.testing.assert_allclose(jitted(x), model(x), rtol=1e-5, atol=1e-6)
    assert len(calls) == 3


def test_functions_within_are_scripted_too(x: Any) -> None:
    def gate(x: Any, *, other: Any = None) -> Any:
        return x if x.sum() > 0 else (-x if other is None else other)

    def endless(x: Any) -> Any:
        return endless(x - 1) if x.sum() > 0 else x

    @nbcomp.script
    def program(x: Any) -> Any:
        return gate(x * 2) + gate(x - 5, other=x)

    for given in (x, -x, x + 9):
        np.testing.assert_allclose(program(given), program.__wrapped__(given), rtol=1e-6)
    recursive = nbcomp.script(lambda x: endless(x))
    with pytest.warns(nbcomp.NumpyFallback, match="calls within calls"):
        np.testing.assert_array_equal(recursive(x), endless(x))


def test_control_flow_is_printed_as_python(golden: Any) -> None:
    scripted = nbcomp.script(_grown)
    x, w = np.ones(3), np.full(3, 1.5)
    expected = _grown(x, w)
    graph = EditableGraph(scripted.graph) if scripted(x, w) else None
    golden(_anywhere(f"{scripted.code}\n{graph}\n"))
    scope: dict[str, Any] = {"np": np, "op": nbcomp.op}
    exec(scripted.code, scope)
    for found in (scripted(x, w), scope["forward"](None, x, w)):
        np.testing.assert_allclose(found[0], expected[0])
        assert found[1] == expected[1]


# --------------------------------------------------------------------------------- exporting


def test_a_model_is_exported(capsys: pytest.CaptureFixture[str], golden: Any) -> None:
    model = Mlp()
    exported = model.export({"forward": {"x": nbcomp.f32[1, 784]}})
    exported.show()
    shown = capsys.readouterr().out
    golden(_anywhere(shown))
    assert model.export(nbcomp.f32[1, 784]).script() == exported.script() == shown[:-1]
    names = [n.replace(".", "_") for n in model.state_dict()]
    assert list(exported.params) == names
    assert exported.params["fc1_weight"] is model.fc1.weight.data
    x = np.random.default_rng(0).standard_normal((1, 784)).astype(np.float32)
    np.testing.assert_allclose(exported(x, *exported.params.values()), model(x), atol=1e-5)
    np.testing.assert_allclose(exported(x=x, **exported.params), model(x), atol=1e-5)
    assert not exported.attributes
    scope: dict[str, Any] = {}
    exec(shown, scope)
    np.testing.assert_allclose(
        scope["Mlp"].forward(x, *exported.params.values()), model(x), atol=1e-5
    )


def test_what_cannot_be_exported(x: Any) -> None:
    with pytest.raises(NbcompError, match="cannot be exported"):
        nbcomp.export(lambda x: x, x)
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    exported = nbcomp.export(lambda x: attention(x, x, x, need_weights=False), nbcomp.f32[1, 5, 4])
    found, none = exported(x[None], *exported.params.values())
    assert none is None
    right = attention(x[None], x[None], x[None], need_weights=False)[0]
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_scripts_with_constants_and_several_results() -> None:
    small, large = np.arange(3.0), np.arange(100.0)
    exported = nbcomp.export(lambda x: (x * np.array([1.0, 2, 3]), x[0]), nbcomp.f64[2, 3])
    scope: dict[str, Any] = {}
    exec(exported.script(), scope)
    x = np.ones((2, 3))
    (program,) = (v for v in scope.values() if isinstance(v, type))
    for found in (program.forward(x), exported(x)):
        np.testing.assert_array_equal(found[0], x * [1, 2, 3])
        np.testing.assert_array_equal(found[1], x[0])
    assert "R.Tuple(" in exported.script()
    assert nbcomp.op.constant(small.tolist(), dtype="float64").tolist() == small.tolist()
    with pytest.raises(NbcompError, match="too large"):
        nbcomp.op.constant(..., dtype="float64")
    assert nbcomp.op.nn.relu(large - 50).min() == 0
    assert {"sum", "nn"} <= set(dir(nbcomp.op))
    with pytest.raises(AttributeError, match="no operator 'relu'"):
        nbcomp.op.relu  # noqa: B018


# ---------------------------------------------------------------------------------- patterns


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_patterns_are_functions(rng: np.random.Generator) -> None:
    def program(x: Any, w: Any) -> Any:
        h = np.maximum(x @ w, 0)
        return _softmax(h) + _softmax(h * 2.0)[..., ::-1]

    for shape in ((4, 6), (2, 4, 6)):
        x, w = rng.standard_normal(shape), rng.standard_normal((6, 5))
        traced = nbcomp.trace(program, x, w)
        assert len(nbcomp.replace_pattern(traced, _softmax, lambda x: F.softmax(x, -1))) == 2
        found = nbcomp.replace_pattern(traced, lambda x: np.maximum(x, 0), F.relu)
        assert [m.anchor.name for m in found] == ["h"]
        text = str(traced.graph)
        assert text.count("= softmax(") == 2
        assert "%h: " in text
        assert "maximum" not in text
        np.testing.assert_allclose(traced(x, w), program(x, w), rtol=1e-9)
        assert not nbcomp.replace_pattern(traced, lambda x: np.maximum(x, 1), F.relu)


def test_patterns_of_several_arguments(rng: np.random.Generator) -> None:
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((4, 6), (6, 5), (5,)))
    traced = nbcomp.trace(lambda x, w, b: np.tanh(x @ w + b) * 0.5, x, w, b)

    def affine(x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    right = traced(x, w, b)
    matches = nbcomp.replace_pattern(traced, affine, lambda x, w, b: F.linear(x, w.T, b))
    assert len(matches) == 1
    assert "linear" in str(traced.graph)
    np.testing.assert_allclose(traced(x, w, b), right, rtol=1e-4, atol=1e-6)
    halved = [nbcomp.f32[4, 5]]
    assert len(nbcomp.replace_pattern(traced, lambda x: x * 0.5, lambda x: x / 2, halved)) == 1
    assert not nbcomp.replace_pattern(traced, lambda x: x / 2, lambda x: x, [nbcomp.f32[5]])


def test_a_pattern_leaves_alone_what_is_read_elsewhere(x: Any) -> None:
    def program(x: Any) -> Any:
        inner = np.exp(x)
        return np.log(inner), inner

    traced = nbcomp.trace(program, x)
    assert not nbcomp.replace_pattern(traced, lambda x: np.log(np.exp(x)), lambda x: x)
    elsewhere = nbcomp.trace(lambda x: np.log(e := np.exp(x)) + e.sum(), x)
    assert not nbcomp.replace_pattern(elsewhere, lambda x: np.log(np.exp(x)), lambda x: x)
    alone = nbcomp.trace(lambda x: np.log(np.exp(x)) + 1, x)
    assert len(nbcomp.replace_pattern(alone, lambda x: np.log(np.exp(x)), lambda x: x * 1.0)) == 1
    np.testing.assert_allclose(alone(x), x + 1, rtol=1e-6)
    with pytest.raises(NbcompError, match="the replacement is"):
        nbcomp.replace_pattern(alone, lambda x: x + 1, lambda x: x.sum())
    with pytest.raises(NbcompError, match="computes nothing from its argument y"):
        nbcomp.replace_pattern(alone, lambda x, y: x + 1, lambda x, y: x)
    with pytest.raises(NbcompError, match="same arguments"):
        nbcomp.replace_pattern(alone, lambda x: x, lambda x, y: x)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (F.conv2d, [(1, 3, 8, 8), (4, 3, 3, 3)]),
        (F.max_pool1d, [(2, 3, 9), 3]),
        (F.relu, [(3, 4)]),
        (F.gelu, [(3, 4)]),
        (F.softmax, [(3, 4), -1]),
        (F.linear, [(3, 4), (5, 4)]),
    ],
)
def test_a_function_of_layers_by_itself(function: Any, shapes: list[Any]) -> None:
    rng = np.random.default_rng(0)
    args = [rng.random(s, np.float32) if isinstance(s, tuple) else s for s in shapes]
    jitted = nbcomp.jit(function)
    np.testing.assert_allclose(jitted(*args), function(*args), rtol=1e-5, atol=1e-6)
    assert jitted.compiled is not None


SCALE, COUNT, FACTOR = 2.5, 3, np.float32(2)


def test_an_exported_program_takes_the_numbers_that_it_reads() -> None:
    def function(x: Any, shift: float = 1.5) -> Any:
        return x * SCALE * shift + COUNT * FACTOR

    x = np.arange(4.0)
    exported = nbcomp.export(function, nbcomp.f64[4])
    assert list(exported.params) == ["shift", "SCALE", "COUNT", "FACTOR"]
    np.testing.assert_array_equal(exported(x, *exported.params.values()), function(x))
    np.testing.assert_array_equal(exported(x, 2.0, 1.0, 4, np.float32(3)), x * 2 + 12)
    given = nbcomp.export(function, nbcomp.f64[4], 2.0)
    np.testing.assert_array_equal(given(x, 3.0, *given.params.values()), function(x, 3.0))
    with pytest.raises(NbcompError, match="not float"):
        exported(x, 2.0, 1.0, 4.5, np.float32(3))


def test_inputs_may_be_one_tuple(rng: np.random.Generator) -> None:
    x, h = rng.random((2, 3, 4), np.float32)
    cell = Cell()
    traced = nbcomp.trace(cell, (x, h))
    assert str(traced.graph) == str(nbcomp.trace(cell, x, h).graph)
    pair = nbcomp.trace(lambda pair: pair[0] + pair[1], (x, h))  # a function of one tuple
    np.testing.assert_array_equal(pair((x, h)), x + h)


@pytest.mark.parametrize("way", ["type", "keyword", "spec"])
def test_exported_for_all_lengths(way: str, rng: np.random.Generator, capsys: Any) -> None:
    model, rows = Mlp(), nbcomp.f32["n", 784]
    given: Any = {
        "type": lambda: model.export(rows),
        "keyword": lambda: model.export(x=rows),
        "spec": lambda: model.export(spec={"forward": {"x": rows}}),
    }[way]()
    given.show()
    shown = capsys.readouterr().out
    assert 'x: R.Tensor((n, 784), dtype="float32")' in shown
    assert 'R.Tensor((n, 10), dtype="float32")' in shown
    for n in (1, 2, 7, 60, 400, 7):
        x = rng.random((n, 784), np.float32)
        found = given(x, *given.params.values())
        np.testing.assert_allclose(found, model(x), rtol=2e-5, atol=2e-5)
    with pytest.raises(NbcompError, match=r"was captured with x: f32\[n, 784\]"):
        given(np.ones((3, 7), np.float32), *given.params.values())


def test_a_trace_for_all_lengths_can_be_edited(rng: np.random.Generator) -> None:
    def f(a: Any, b: Any) -> Any:
        return (a @ b).reshape(-1), a.shape[0] * b

    traced = nbcomp.trace(f, nbcomp.f64["n", "k"], nbcomp.f64["k", 3])
    product = next(n for n in traced.graph.nodes if n.op == "call_function")
    with traced.graph.inserting_after(product):
        squashed = traced.graph.call_function(np.tanh, (product,))
    product.replace_all_uses_with(squashed)
    squashed.args = (product,)
    traced.graph.lint()
    traced.recompile()
    for n, k in ((4, 5), (1, 5), (30, 1), (200, 64)):
        a, b = rng.random((n, k)), rng.random((k, 3))
        for found, wanted in zip(traced(a, b), (np.tanh(a @ b).ravel(), n * b), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    a, b = rng.random((6, 5)), rng.random((5, 3))
    np.testing.assert_allclose(traced(a[::-1], b)[0], np.tanh(a[::-1] @ b).ravel(), rtol=1e-12)
