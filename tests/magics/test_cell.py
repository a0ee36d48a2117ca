"""`%%compile` cells: what they define, show and return, and what is left after an error."""

from __future__ import annotations

import gc
import inspect
import traceback
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError

import nbcomp
from nbcomp import pipeline
from nbcomp.display.bundle import Report
from nbcomp.display.payload import MIME
from nbcomp.graph.ir import Graph, rewrite
from nbcomp.graph.op import REGISTRY
from nbcomp.magics import measuring
from nbcomp.magics.plain import plain
from nbcomp.magics.recording import is_compiled
from nbcomp.target.llvm.compile import forget
from nbcomp.target.llvm.emit import made_here

SOFTMAX = """\
%%compile
def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

softmax(x)
"""


def error_of(notebook: Any, cell: str) -> BaseException:
    """The error of a cell that must fail."""
    result = notebook.run(cell)
    error = result.error_in_exec or result.error_before_exec
    assert error is not None
    return error


def users_lines(error: BaseException) -> list[int]:
    """The lines of the notebook's own frames, outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f.lineno for f in frames if f.filename.startswith("<ipython-input") and f.lineno]


@pytest.fixture
def data(quick: Any) -> Any:
    quick.run("x = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)")
    return quick


def test_what_a_cell_shows_comes_from_the_run_of_llvm_that_made_its_code(data: Any) -> None:
    forget()
    data.value(SOFTMAX)
    compiled = data.names["softmax"].compiled
    runs = made_here.cache_info().misses
    assert runs == len(compiled.kernels) > 0
    assert Report(compiled)._repr_mimebundle_()[MIME]["kernels"][0]["texts"]["asm"]["text"]
    assert made_here.cache_info().misses == runs
    assert all(k.code.code.located_text for k in compiled.kernels)


def test_the_value_of_the_cell_is_the_result_and_the_report_is_shown(data: Any) -> None:
    value = data.value(SOFTMAX)
    plain = data.names["softmax"].__wrapped__
    np.testing.assert_allclose(value, plain(data.names["x"]), rtol=1e-5)
    assert data.names["_"] is value
    (output,) = data.outputs
    assert {"text/plain", "text/html", MIME} <= output.data.keys()
    assert output.data["text/plain"].startswith("softmax: 5 operators in 1 kernel")


@pytest.mark.parametrize("end", [";", " ;  ", ";  # no value", "; \n\n"])
def test_a_value_before_a_semicolon_is_not_shown(data: Any, end: str) -> None:
    text = SOFTMAX.rstrip() + end
    assert data.value(text) is None
    assert isinstance(data.last, Report)
    assert len(data.outputs) == 1
    assert data.value(SOFTMAX.rstrip() + ".dtype.name + ';'") == "float32;"


def test_functions_become_compiled_functions(data: Any) -> None:
    data.value(SOFTMAX)
    softmax = data.names["softmax"]
    assert len(softmax.variants) == 1
    assert softmax.compiled.name == "softmax"
    data.value("y = softmax(np.ones((3, 2)))")
    np.testing.assert_allclose(data.names["y"], np.full((3, 2), 0.5))
    assert len(softmax.variants) == 2


def test_source_and_lines_are_the_cells(data: Any) -> None:
    data.value(SOFTMAX)
    softmax = data.names["softmax"]
    assert inspect.getsource(softmax.__wrapped__).startswith("def softmax(z):\n    e = np.exp(")
    lines = {n.location.line for n in softmax.compiled.captured.nodes if n.location}
    assert lines == {3, 4}  # the command itself is line 1


def test_a_helper_is_compiled_as_part_of_its_caller(data: Any) -> None:
    data.value(
        "%%compile\ndef relu(v):\n    return np.maximum(v, 0)\n"
        "def f(v):\n    return relu(v) + relu(-v)\nf(x)"
    )
    (output,) = data.outputs
    assert output.data["text/plain"].startswith("f: 4 operators in 1 kernel")
    assert data.names["relu"].variants == []
    np.testing.assert_array_equal(data.value("relu(x)"), np.maximum(data.names["x"], 0))


def test_the_comparison_is_with_plain_python(data: Any) -> None:
    data.value(
        "%%compile\ndef relu(v):\n    return np.maximum(v, 0)\n"
        "def half(v):\n    return relu(v) / 2\n"
        "def f(v):\n    return half(v) + relu(-v)\nf(x)"
    )
    python = plain(data.names["f"])
    assert not is_compiled(python.__globals__["relu"])
    assert not is_compiled(python.__globals__["half"].__globals__["relu"])
    expected = np.maximum(data.names["x"], 0) / 2 + np.maximum(-data.names["x"], 0)
    np.testing.assert_array_equal(python(data.names["x"]), expected)
    assert data.names["relu"].variants == data.names["half"].variants == []


def test_a_call_inside_a_larger_expression_gives_the_inputs(data: Any) -> None:
    value = data.value(SOFTMAX.replace("softmax(x)", "softmax(x).sum(axis=-1).shape"))
    assert value == (6,)
    assert data.outputs[0].data["text/plain"].startswith("softmax:")


def test_an_assignment_as_last_line(data: Any) -> None:
    assert data.value(SOFTMAX.replace("softmax(x)", "y = softmax(x)")) is None
    assert data.names["y"].shape == (6, 5)
    assert len(data.outputs) == 1


def test_a_cell_may_call_a_function_of_an_earlier_one(data: Any) -> None:
    data.value(SOFTMAX)
    assert data.value("%%compile\nsoftmax(x[:2])").shape == (2, 5)
    assert data.outputs[0].data["text/plain"].startswith("softmax:")


def test_keywords_defaults_and_stars(data: Any) -> None:
    data.names["pair"] = (data.names["x"], 3.0)
    value = data.value(
        "%%compile\ndef f(a, b, *, c=2.0, **rest):\n"
        "    return a * b + c + rest['d']\nf(*pair, d=1.0)"
    )
    np.testing.assert_array_equal(value, data.names["x"] * 3.0 + 2.0 + 1.0)


def test_no_private_name_is_left_behind(data: Any) -> None:
    before = set(data.names)
    data.value(SOFTMAX)
    new = set(data.names) - before
    assert not [n for n in new if n.startswith("_nbcomp")]


# ----------------------------------------------------------------------------------------- inputs


def test_inputs_from_an_option(data: Any) -> None:
    assert data.value('%%compile --inputs "x, 2"\ndef f(a, b):\n    return a * b') is not None
    np.testing.assert_array_equal(data.names["_"], data.names["x"] * 2)


def test_inputs_from_annotations(data: Any) -> None:
    data.run("import nbcomp")
    value = data.value("%%compile\ndef f(a: nbcomp.f32[4, 3], n: nbcomp.i64[3]):\n    return a + n")
    assert (value.shape, value.dtype) == ((4, 3), np.float64)


def test_types_that_name_lengths_leave_them_open(data: Any) -> None:
    data.run("import nbcomp")
    data.value(
        '%%compile\ndef f(a: nbcomp.f32["n", 3], b: nbcomp.f32["n"]):\n    return a.sum(1) + b'
    )
    assert "one code for n = " in data.outputs[0].data["text/plain"]
    f = data.names["f"]
    compiled = len(f.variants)
    for n in (600, 700, 1000):
        f(np.ones((n, 3), np.float32), np.ones(n, np.float32))
    assert len(f.variants) == compiled
    value = data.value(
        "%%compile --inputs \"nbcomp.f32['k', 4], nbcomp.f32[4]\"\ndef g(a, b):\n    return a * b"
    )
    assert value.shape[1] == 4
    assert "one code for k = " in data.outputs[-1].data["text/plain"]


def test_inputs_from_variables_of_the_same_name(data: Any) -> None:
    value = data.value("%%compile\ndef f(x, scale=3.0):\n    return x * scale")
    np.testing.assert_array_equal(value, data.names["x"] * 3.0)
    said = data.outputs[-1].data["text/plain"]
    assert "no call: it ran on the notebook's variable x" in said
    data.value("%%compile\ndef g(x, scale=3.0):\n    return x * scale\ng(x)")
    assert "no call" not in data.outputs[-1].data["text/plain"]


def test_missing_inputs_are_named(data: Any) -> None:
    data.value("%%compile\ndef f(unknown):\n    return unknown + 1")
    said = data.outputs[-1].data["text/plain"]
    assert said.startswith("f: compiled when called; there is no input for 'unknown' of f: call it")
    assert data.value("f(x)").shape == data.names["x"].shape
    assert len(data.names["f"].variants) == 1
    error = error_of(data, "def g(unknown):\n    return unknown + 1\n%compile g")
    assert isinstance(error, UsageError)


def test_a_cell_without_a_function(data: Any) -> None:
    error = error_of(data, "%%compile\na = 3")
    assert isinstance(error, UsageError)
    assert "a" not in data.names


# ----------------------------------------------------------------------------------------- errors


def test_a_failing_cell_leaves_all_names_as_they_were(data: Any) -> None:
    data.run("keep = 1\ndef f(v):\n    return v")
    old = data.names["f"]
    error = error_of(
        data, "%%compile\nkeep = 2\nnew = 3\ndef f(v):\n    return v + 1\nf(undefined)"
    )
    assert isinstance(error, NameError)
    assert data.names["keep"] == 1
    assert data.names["f"] is old
    assert "new" not in data.names


@pytest.mark.parametrize("measurement", ["compare", "scaling"])
def test_an_interrupt_while_timing_keeps_the_functions_and_what_was_measured(
    notebook: Any, monkeypatch: pytest.MonkeyPatch, measurement: str
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, measurement, interrupt)
    notebook.run("x = np.ones((4, 3))")
    error = error_of(notebook, "%%compile\nn = 7\ndef f(v):\n    return v * n\nf(x)")
    assert isinstance(error, KeyboardInterrupt)
    assert notebook.names["n"] == 7
    assert notebook.names["f"].compiled is not None
    shown = notebook.outputs[-1].data["text/plain"]
    assert "interrupted: what had not been measured by then is missing" in shown
    assert ("not compared with NumPy" in shown) == (measurement == "compare")


def test_an_interrupt_of_the_cell_itself_leaves_all_names_as_they_were(data: Any) -> None:
    error = error_of(data, "%%compile\nn = 7\ndef f(v):\n    return v\nraise KeyboardInterrupt")
    assert isinstance(error, KeyboardInterrupt)
    assert "n" not in data.names


def test_a_page_that_cannot_be_written_leaves_all_names_as_they_were(data: Any) -> None:
    error = error_of(data, "%%compile --html /no/such/x.html\ndef f(v):\n    return v * 2\nf(x)")
    assert isinstance(error, OSError)
    assert "f" not in data.names


def test_an_error_in_the_function_is_at_the_users_line(data: Any) -> None:
    cell = "%%compile\ndef f(v):\n    w = v + 1\n    return w @ w\nf(x)"
    error = error_of(data, cell)
    assert isinstance(error, ValueError)
    assert users_lines(error) == [1, 5, 4]
    frames = traceback.extract_tb(error.__traceback__)
    assert not [
        f for f in frames if "/nbcomp/frontend/" in f.filename or "/nbcomp/ops/" in f.filename
    ]


def test_the_compilers_frames_can_be_asked_for(data: Any) -> None:
    data.run("%config NbComp.debug = True")
    error = error_of(data, "%%compile\ndef f(v):\n    return v @ v\nf(x)")
    assert [f for f in traceback.extract_tb(error.__traceback__) if "/nbcomp/" in f.filename]


def test_control_flow_on_values_says_what_to_write(data: Any) -> None:
    data.value(
        "%%compile\ndef f(v):\n    if v.sum() > 0:\n        return v * 2\n    return -v\nf(x)"
    )
    text = data.outputs[0].data["text/plain"]
    assert "runs in parts" in text
    assert "np.where" in text
    assert [b.location.line for b in data.names["f"].breaks] == [3]


def test_a_syntax_error_has_its_own_line_and_caret(data: Any) -> None:
    error = error_of(data, "%%compile\ndef f(v):\n    return v +\nf(x)")
    assert isinstance(error, SyntaxError)
    assert error.lineno == 3
    assert error.text is not None
    assert "return v +" in error.text


def test_an_error_in_a_later_cell_shows_the_compiled_cells_line(data: Any) -> None:
    data.value("%%compile\ndef f(v):\n    return v.reshape(3, 10)\nf(x)")
    error = error_of(data, "f(x[:1])")
    assert isinstance(error, ValueError)
    assert 3 in users_lines(error)


def test_what_cannot_be_compiled_runs_in_numpy_and_says_why(data: Any) -> None:
    value = data.value("%%compile\ndef f(v):\n    return np.fft.fft(v)\nf(x)")
    np.testing.assert_array_equal(value, np.fft.fft(data.names["x"]))
    text = data.outputs[0].data["text/plain"]
    assert text.startswith("f was not compiled: it ran in NumPy because of line 3")
    assert "np.fft.fft" in text
    data.value("%%compile\nf(x)")  # and says it again when it is asked again
    assert "it ran in NumPy" in data.outputs[0].data["text/plain"]


def test_inputs_written_to_are_the_users_arrays(data: Any) -> None:
    data.run("a = np.zeros(3)")
    data.value("%%compile\ndef f(v):\n    v += 1\n    return v.sum()\nf(a)")
    assert data.names["a"].tolist() == [1.0, 1.0, 1.0]  # once, however often it was compared


def test_timed_reports(data: Any) -> None:
    data.value(SOFTMAX.replace("%%compile", "%%compile --seconds 0.3 --sizes 1,8"))
    shown = data.outputs[0].data
    assert "NumPy in" in shown["text/plain"]
    assert shown[MIME]["speed"][0]["size"] == 1


@pytest.mark.parametrize("show", ["graph", "kernels,passes"])
def test_sections_can_be_chosen(data: Any, show: str) -> None:
    data.value(SOFTMAX.replace("%%compile", f"%%compile --show {show}"))
    assert data.outputs[0].data[MIME]["show"] == show.split(",")


def test_every_level_can_be_checked(data: Any) -> None:
    data.value(SOFTMAX.replace("%%compile", "%%compile --check"))
    shown = data.outputs[0].data
    levels = [c["level"] for c in shown[MIME]["checks"]]
    assert levels[0] == "graph after capture"
    assert levels[-1] == "machine code"
    assert any(level.startswith("kernels after") for level in levels)
    assert f"each of {len(levels)} levels gives NumPy's answer" in shown["text/plain"]


def test_levels_that_would_take_long_are_left_out_and_said(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nbcomp.magics.checking.LONGEST", 0.0)
    data.value(SOFTMAX.replace("%%compile", "%%compile --check"))
    shown = data.outputs[0].data
    checks = shown[MIME]["checks"]
    kernels = [c for c in checks if c["level"].startswith("kernels after")]
    assert kernels
    assert all(c["words"].startswith("not run: ") and "ulp" not in c for c in kernels)
    text = shown["text/plain"]
    assert f"each of {len(checks) - len(kernels)} levels gives NumPy's answer" in text
    assert f"{len(kernels)} levels were not run: interpreting the loops would take" in text


def test_the_first_wrong_level_is_named(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def flip(graph: Graph) -> Graph:
        """Turn sums into differences."""
        minus = REGISTRY["subtract"]()
        return rewrite(
            graph,
            lambda n, i: replace(n, op=minus, inputs=i) if n.op.name == "add" else None,
        )

    passes = (*pipeline.GRAPH_PASSES[:2], flip, *pipeline.GRAPH_PASSES[2:])
    monkeypatch.setattr(pipeline, "GRAPH_PASSES", passes)
    data.value("%%compile\ndef f(v):\n    return v + 1\nf(x)")
    text = data.outputs[0].data["text/plain"]
    assert "WRONG ANSWER: result differs at [0, 0]" in text
    assert "first wrong level: graph after flip" in text
    assert "not timed, because the answer is wrong" in text


def test_a_report_is_an_object(data: Any) -> None:
    data.value(SOFTMAX)
    report = data.value("%compile")
    assert isinstance(report, Report)
    assert report.value.shape == (6, 5)
    assert report.comparison.agrees
    assert "softmax" in report.headline


def test_a_cell_with_statements_runs_as_python_does(data: Any) -> None:
    data.run("x = np.zeros((2, 2))")
    cell = "%%compile\ndef f1(x):\n    return x + 1\ny = f1(np.ones(3))\ny"
    assert data.value(cell).tolist() == [2.0, 2.0, 2.0]
    assert data.outputs[0].data["text/plain"].startswith("f1: ")
    assert data.value("%compile").value.tolist() == [2.0, 2.0, 2.0]


def test_variables_the_cell_does_not_name_are_left_alone(data: Any) -> None:
    data.run("x = np.zeros((2, 2))")
    update = "%%compile\ndef upd(x):\n    x += 1\n    return x\n"
    assert data.value(update + "data = np.ones(3)\nupd(data)\ndata").tolist() == [2.0, 2.0, 2.0]
    assert data.names["x"].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert data.value(update).tolist() == [[1.0, 1.0], [1.0, 1.0]]  # on a copy
    assert data.names["x"].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_functions_that_are_defined_but_not_called_are_called_on_nothing(data: Any) -> None:
    assert data.value("%%compile\ndef f(x):\n    return x + 1\na = 3\na") == 3
    assert data.names["f"].variants == []
    assert "f: compiled when called" in data.outputs[0].data["text/plain"]
    data.run("def g(x):\n    return x")
    error = error_of(data, "%%compile --inputs x\ndef f(x):\n    return x + 1\na = 3")
    assert isinstance(error, UsageError)


def test_all_functions_the_last_line_calls_are_reported(data: Any) -> None:
    two = "%%compile\ndef f1(v):\n    return v + 1\ndef f2(v):\n    return v * 2\n"
    value = data.value(two + "f1(x) + f2(x)")
    np.testing.assert_array_equal(value, data.names["x"] + 1 + data.names["x"] * 2)
    shown = [o.data["text/plain"].split(":")[0] for o in data.outputs]
    assert shown == ["f1", "f2"]
    data.value("%%compile\n[a] = map(f1, [x])\nfor i in range(3):\n    a = f2(a)\na.shape")
    assert data.outputs[0].data["text/plain"].startswith("f2: ")
    assert data.names["f1"]._watcher is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [("def f(x):\n    yield x", "generator"), ("async def f(x):\n    return x", "coroutine")],
)
def test_what_runs_in_pieces_is_not_compiled(data: Any, text: str, kind: str) -> None:
    assert f"f is a {kind}: it cannot be compiled" in str(error_of(data, "%%compile\n" + text))
    with warnings.catch_warnings():  # nor does Python warn of what nobody awaits
        warnings.simplefilter("error")
        error = str(error_of(data, f"%%compile\n{text}\nf(x)"))
        gc.collect()
    assert f"f is a {kind}: it cannot be compiled" in error


@pytest.mark.parametrize(
    ("body", "call"),
    [
        ("return np.diff(v).max()", "f(np.arange(6.0))"),
        ("return np.linalg.solve(v, b)", "f(np.eye(3))"),
        ("return np.stack([r * 2 for r in v])", "f(x)"),
        ("v *= 3\n    return v", "f(x.copy())"),
    ],
)
def test_the_sweep_never_makes_a_cell_fail(data: Any, body: str, call: str) -> None:
    data.run("b = np.ones(3)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data.value(f"%%compile --sizes 1,2,4 --seconds 0.4\ndef f(v):\n    {body}\n{call}")
    assert len(data.outputs) == 1


def test_measuring_leaves_global_arrays_as_the_call_left_them(data: Any) -> None:
    data.run("total = np.zeros(3)")
    cell = "def f(v):\n    total[:] = total + v\n    return total.sum()\nf(np.ones(3))"
    data.value("%%compile --seconds 0.3 --sizes 1,3\n" + cell)
    assert data.names["total"].tolist() == [1.0, 1.0, 1.0]


def test_a_syntax_error_shows_no_internal_frames(data: Any) -> None:
    data.run("%%compile\ndef f(v):\n    return v +\nf(x)")
    assert "return v +" in data.printed
    assert "run_cell_magic" not in data.printed
    assert "nbcomp" not in data.printed
    assert data.shell.custom_exceptions == ()
    data.run("1 +")
    assert "SyntaxError" in data.printed


def test_an_error_of_a_plain_call_shows_the_users_frames(data: Any) -> None:
    data.value("%%compile\ndef f(v):\n    return v.reshape(3, 10)\nf(x)")
    data.run("f(x[:1])")
    assert "reshape(3, 10)" in data.printed
    package = str(Path(nbcomp.__file__).parent)
    assert package not in data.printed
    frames = traceback.extract_tb(error_of(data, "f(x[:1])").__traceback__)
    assert [f.name for f in frames if f.filename.startswith(package)] == []


def test_the_fallback_warning_points_at_the_users_line() -> None:
    function = nbcomp.jit(lambda v: np.fft.fft(v))
    for a in (np.ones(3), np.ones(4)):  # the first call, and one of the native entry
        with pytest.warns(nbcomp.NumpyFallback) as said:
            function(a)
        assert said[0].filename == __file__


@pytest.mark.parametrize("decorator", ["", "@nbcomp.jit\n"])
def test_modules_are_compiled_where_they_are_called(data: Any, decorator: str) -> None:
    data.run("import nbcomp\nfrom nbcomp import nn\nlayers = nn.Sequential(nn.Linear(4, 3))")
    data.value("%%compile --no-bench\nlayers(np.ones((2, 4), np.float32))")
    assert data.outputs[0].data["text/plain"].startswith("Sequential: ")
    cell = f"""%%compile --no-bench
{decorator}class Model(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(4, 3)
    def forward(self, x):
        return self.fc(x).relu()
model = Model()
model(np.ones((2, 4), np.float32))"""
    value = data.value(cell)
    assert data.outputs[0].data["text/plain"].startswith("Model: ")
    assert value.shape == (2, 3)
    assert (value >= 0).all()


@pytest.mark.parametrize("decorator", ["nbcomp.jit", "nbcomp.script"])
def test_functions_that_are_decorated_in_the_cell_are_shown(data: Any, decorator: str) -> None:
    data.run("import nbcomp")
    value = data.value(f"%%compile\n@{decorator}\ndef halves(x):\n    return x / 2\n\nhalves(x)\n")
    np.testing.assert_array_equal(value, data.names["x"] / 2)
    assert data.names["halves"].compiled is not None


def test_what_has_nothing_to_compile_says_what_it_looks_for(data: Any) -> None:
    error = error_of(data, "%%compile\nimport functools\nfunctools.partial(max, 3)(4)\n")
    assert isinstance(error, UsageError)
    assert "neither defines a plain function nor calls a compiled one" in str(error)


def test_functions_that_are_not_written_in_python_are_refused(data: Any) -> None:
    error = error_of(data, "%compile np.tanh(x)")
    assert isinstance(error, UsageError)
    assert "tanh is not written in Python" in str(error)


ONCE = {  # what each refuses to be given again
    "if": """\
def f(x):
    if np.isclose(x.sum(), 1):
        raise ValueError("already normalised")
    x /= x.sum()
    return x
""",
    "loop": """\
def f(x):
    for i in range(len(x)):
        assert x[i] >= 0
        x[i] -= 20
    return x
""",
    "global": """\
def f(_):
    assert (x >= 0).all()
    x[...] = x - 20
    return x
""",
}


@pytest.mark.parametrize("way", ["", "--script"])
@pytest.mark.parametrize("kind", ONCE)
def test_a_cell_writes_once_to_what_it_is_given(notebook: Any, way: str, kind: str) -> None:
    cell = f"%%compile {way} --seconds 0.1 --sizes 1,5\n{ONCE[kind]}z = f(x) * 1"
    plain = {"np": np, "x": np.arange(5.0)}
    exec(f"{ONCE[kind]}z = f(x) * 1", plain)
    notebook.run("x = np.arange(5.)")
    notebook.value(cell)
    np.testing.assert_array_equal(notebook.names["x"], plain["x"])
    np.testing.assert_array_equal(notebook.names["z"], plain["z"])
    found = notebook.last.comparison
    assert found.agrees if found is not None else kind == "global" and notebook.last.notes
