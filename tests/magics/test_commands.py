"""The line commands, their options, settings and completion; loading and unloading."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

from nbcomp import magics
from nbcomp.display.bundle import Explanation, Listing, Report
from nbcomp.display.payload import MIME
from nbcomp.magics.settings import NbComp


@pytest.fixture
def data(quick: Any) -> Any:
    quick.run("x = np.ones((6, 5), np.float32)")
    quick.value("%%compile\ndef f(v, scale=2.0):\n    return np.exp(v) * scale\nf(x)")
    return quick


def usage_error(notebook: Any, cell: str) -> str:
    error = notebook.run(cell).error_in_exec
    assert isinstance(error, UsageError)
    return str(error)


@pytest.mark.parametrize(
    ("level", "sign"),
    [("", "graph f("), ("graph", "exp("), ("loop", "kernel "), ("llvm", "define "), ("asm", "ret")],
)
def test_ir(data: Any, level: str, sign: str) -> None:
    listing = data.value(f"%ir f {level}")
    assert isinstance(listing, Listing)
    assert sign in str(listing)
    raw = data.value(f"%ir f {level} --raw")
    assert raw.text == data.names["f"].compiled.text(level or "graph")


def test_ir_shows_the_users_lines_in_machine_code(data: Any) -> None:
    assembly = str(data.value("%ir f asm"))
    assert "# line 3" in assembly
    assert not [
        line for line in assembly.splitlines() if line.lstrip().startswith((".cfi", ".loc"))
    ]
    assert "zmm" in assembly or "ymm" in assembly or "xmm" in assembly
    llvm = str(data.value("%ir f llvm"))
    assert "; line 3" in llvm
    assert "!dbg" not in llvm


def test_explain(data: Any) -> None:
    explanation = data.value("%explain f")
    assert isinstance(explanation, Explanation)
    assert str(explanation).startswith("f: ")


def test_compile_returns_a_report_and_leaves_the_function_compiled(data: Any) -> None:
    data.run("def g(v):\n    return v + 1\nplain = g")
    report = data.value("%compile g(x * 2)")
    assert isinstance(report, Report)
    np.testing.assert_array_equal(report.value, np.full((6, 5), 3.0))
    assert data.names["g"].__wrapped__ is data.names["plain"]
    assert "g: 1 operator in 1 kernel" in str(data.value("%explain g"))
    assert data.value("%compile f(x, scale=3.0)").comparison.agrees
    assert data.value("%compile g --inputs x").value.shape == (6, 5)


def test_a_compiled_function_shows_its_report(data: Any) -> None:
    shown = data.shell.display_formatter.format(data.names["f"].compiled)[0]
    assert {"text/plain", "text/html", MIME} <= shown.keys()
    assert "not compared with NumPy" in shown["text/plain"]
    magics.unload(data.shell)
    assert MIME not in data.shell.display_formatter.format(data.names["f"].compiled)[0]


def test_bench(data: Any) -> None:
    report = data.value("%bench f(x) --sizes 1,2 --seconds 0.3")
    assert report.comparison.compiled is not None
    assert report.scaling.points[0].size == 1
    assert "Kernels" not in str(report)
    assert "Speed across batch sizes" in str(report)


def test_user_errors_are_one_line(data: Any) -> None:
    data.run("def g(v):\n    return v\nh = 3")
    assert usage_error(data, "%ir nothing") == "name 'nothing' is not defined"
    assert "not a compiled function" in usage_error(data, "%ir g")
    assert "invalid choice: 'binary'" in usage_error(data, "%ir f binary")
    assert "did you mean loop?" in usage_error(data, "%ir f loops")
    assert "did you mean asm?" in usage_error(data, "%ir f(x) assembly")
    assert "one level at a time: %ir f asm" in usage_error(data, "%ir f asm llvm")
    assert "expected a function, not an int" in usage_error(data, "%compile h(x)")
    assert "such as f(x)" in usage_error(data, "%compile 1 + 2")
    assert "whole numbers such as 1,64,4096" in usage_error(data, "%%compile --sizes a\nf(x)")
    assert "speed, check, history" in usage_error(data, "%%compile --show all\nf(x)")
    assert "unrecognized arguments: --fast" in usage_error(data, "%%compile --fast\nf(x)")
    data.run("%%compile\ndef k(v):\n    return v\n\ndef m(v):\n    return v\nm(x)")
    assert "has not been compiled yet" in usage_error(data, "%ir k")


def test_a_function_that_nothing_is_known_to_be_called_with_is_one_line(data: Any) -> None:
    data.run("%%compile\ndef f(unknown):\n    return unknown + 1")
    for command in ("%compile f", "%cpus f"):
        error = data.shell.run_cell(command).error_in_exec
        assert type(error) is UsageError  # a subclass is shown with its frames
        assert str(error).startswith("no input for 'unknown' of f: write a call, such")


def test_functions_to_explain_are_named_or_called(data: Any) -> None:
    assert str(data.value("%explain f(x)")).startswith("f(x): ")
    assert str(data.value("%explain f(x, 3.0);")).startswith("f(x, 3.0): ")
    assert "graph f(" in str(data.value("%ir f(x, 3.0)"))
    assert "kernel " in str(data.value("%ir f(x, 3.0) loop;"))
    data.run("def later(v):\n    return v + 1")
    assert "graph later(" in str(data.value("%ir later(x)"))
    data.run("class Space:\n    pass\nspace = Space()\nspace.g = f")
    assert str(data.value("%explain space.g")).startswith("space.g: ")
    for text in ("np.sort", "np.sort(x)", "np.exp", "len", "len(x)"):
        name = text.partition("(")[0]
        assert usage_error(data, f"%explain {text}").startswith(f"{name} is not a function of the")
    assert "no attribute 'nope'" in usage_error(data, "%explain np.nope")
    assert "expected a function's name or a call" in usage_error(data, "%explain f x")
    assert "expected a function's name or a call" in usage_error(data, "%ir x + 1")


def test_a_call_is_explained_by_what_ran(data: Any) -> None:
    data.value("f(np.ones((3, 2)))")
    assert "f32[6, 5]" in str(data.value("%ir f(x)"))
    assert "f64[3, 2]" in str(data.value("%ir f"))


@pytest.mark.parametrize("line", ["f(x);", "f(x); --no-bench", "f(x) --no-bench;", " f(x) ; "])
def test_a_semicolon_on_a_commands_line_says_nothing(data: Any, line: str) -> None:
    assert isinstance(data.value(f"%compile {line}"), Report)


def test_settings_are_defaults(data: Any) -> None:
    data.run("%config NbComp.show = ['graph']")
    data.value("%%compile\nf(x)")
    assert "Kernels" not in data.outputs[0].data["text/plain"]
    data.value("%%compile --show kernels\nf(x)")
    assert "Kernels" in data.outputs[0].data["text/plain"]
    data.run("%config NbComp")
    for name in ("bench", "seconds", "sizes", "max_lines", "show", "debug"):
        assert f"NbComp.{name}=" in data.printed


def completions(notebook: Any, text: str) -> list[str]:
    with provisionalcompleter():
        return [c.text for c in notebook.shell.Completer.completions(text, len(text))]


def test_options_are_completed(data: Any) -> None:
    assert completions(data, "%%compile --s") == ["--script", "--seconds", "--show", "--sizes"]
    assert completions(data, "%%compile --no") == ["--no-bench"]
    assert completions(data, "%ir f l") == ["llvm", "loop"]
    for line in ("%bench f(x) --", "%tune --", "%cpus f(x) --", "%%schedule f(x) --"):
        assert "--seconds" in completions(data, line)
    assert completions(data, "%%compile --show pas") == ["passes"]
    assert completions(data, "%bench f(x) --show graph,k") == ["kernels"]
    assert completions(data, "%compile f(x) --precision ") == ["bf16"]
    assert "print" in completions(data, "%%compile --no-bench\npri")
    assert "scale" not in completions(data, "%%compile --no-bench\n--s")


def test_help_names_every_option(data: Any) -> None:
    doc = magics.CompilerMagics.compile.__doc__
    for option in ("--inputs", "--no-bench", "--sizes", "--seconds", "--show"):
        assert option in doc


def test_loading_twice_and_reloading_change_nothing(data: Any) -> None:
    NbComp.instance().seconds = 7.0
    magics.load(data.shell)
    assert completions(data, "%%compile --no") == ["--no-bench"]
    assert sum(isinstance(c, NbComp) for c in data.shell.configurables) == 1
    magics.unload(data.shell)
    assert "compile" not in data.shell.magics_manager.magics["cell"]
    assert completions(data, "%%compile --no") == []
    magics.load(data.shell)
    assert NbComp.instance().seconds == 7.0
    assert data.value("%ir f") is not None


def test_load_ext_works_and_reload_keeps_settings(notebook: Any) -> None:
    notebook.run("%load_ext nbcomp")
    notebook.run("%config NbComp.seconds = 3.0")
    assert notebook.run("%reload_ext nbcomp").success
    assert NbComp.instance().seconds == 3.0
    assert notebook.run("%unload_ext nbcomp").success


def test_loading_imports_no_plotting_library_and_no_compiler() -> None:
    program = (
        "from IPython.core.interactiveshell import InteractiveShell; import sys;"
        "InteractiveShell.instance().run_line_magic('load_ext', 'nbcomp');"
        "print([m for m in ('matplotlib', 'llvmlite', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr


def test_a_function_in_parts_is_explained(data: Any) -> None:
    data.value(
        "%%compile\ndef p(v):\n    w = v * 2\n    print(end='')\n    return w.sum() + 1\np(x)"
    )
    said = str(data.value("%explain p"))
    assert "it runs in parts: 2 graphs, 1 break" in said
    assert "print(...) may have effects" in said
    result = data.run("%ir p")
    error = result.error_in_exec or result.error_before_exec
    assert "is not one graph" in str(error)


def test_explain_after_a_fallback_gives_the_reason(data: Any) -> None:
    data.value("%%compile\ndef h(v):\n    return np.fft.fft(v)\nh(x)")
    said = str(data.value("%explain h"))
    assert said.startswith("h: 1 remark, it runs in NumPy")
    assert "np.fft.fft" in said
    assert "np.fft.fft" in usage_error(data, "%ir h asm")


def test_names_and_inputs_that_are_wrong_are_said_plainly(data: Any) -> None:
    assert usage_error(data, "%compile nothere(3)") == "name 'nothere' is not defined"
    assert data.value('%compile f --inputs "v=np.ones(4), scale=3.0"').value.shape == (4,)
    assert "--inputs takes arguments" in usage_error(data, '%compile f --inputs "v=="')
    data.run("def gen(v):\n    yield v")
    assert "gen is a generator" in usage_error(data, "%compile gen(x)")


def test_only_commands_that_work_are_suggested(data: Any) -> None:
    assert "%ir f asm" in str(data.value("%compile f(x)"))
    data.run("short = lambda v: v + 1")
    assert "%ir" not in str(data.value("%compile short(x)"))


def test_measure_and_ablate_are_part_of_the_report(data: Any) -> None:
    report = data.value("%compile f(x) --measure --ablate --seconds 0.4 --no-bench")
    assert isinstance(report, Report)
    measured = report.measured
    assert [p.name for p in measured.passes.passes][:2] == ["capture", "choose_windows"]
    assert measured.ablation.full is not None
    assert [k.kernel for k in measured.numbers.kernels] == ["exp"]
    assert all(p.same for p in measured.passes.passes)
    said = str(report)
    assert "Run time after each pass" in said
    assert "Each optimisation left out in turn" in said
    assert "Memory over the steps" in said
    assert data.value("%compile f(x) --no-bench").measured.passes is None


def test_ir_for_another_cpu(data: Any) -> None:
    assert "ymm" in str(data.value("%ir f asm --cpu avx2"))
    assert "f32x4" in str(data.value("%ir f asm --cpu wasm"))
    assert "no CPU 'avx3'" in usage_error(data, "%ir f asm --cpu avx3")


def test_cpus(data: Any) -> None:
    table = data.value("%cpus f(x) --seconds 0.1")
    assert table["host"].timing is not None
    assert "AArch64 NEON" in repr(table)


def test_a_page_has_what_was_measured(data: Any, tmp_path: Any) -> None:
    data.value("%%compile --sizes 1,2\ndef shown(x):\n    return x + 1\nshown(x)")
    path = data.names["shown"].report(tmp_path / "shown.html")
    assert "not compared with NumPy" not in path.read_text()


def test_a_library_of_the_notebook(quick: Any) -> None:
    quick.value(
        "import nbcomp\n"
        "mylib = nbcomp.Library('mylib')\n"
        "@mylib.routine(lambda x, y: x @ y)\n"
        "def product(x, y):\n    return x @ y\n"
        "def f(x):\n    return x @ x + 1\n"
        "x = np.ones((4, 4))"
    )
    assert "mylib.product" in str(quick.value("%compile f(x) --library mylib"))
    quick.value("%%compile --library mylib\ndef g(x):\n    return x @ x\ng(x)")
    assert "library_call" in quick.names["g"].compiled.text("graph")
    assert "the name of an nbcomp.Library, not g" in usage_error(quick, "%compile f(x) --library g")


def test_precision_is_asked_for_and_its_error_shown(quick: Any) -> None:
    quick.value("a = np.random.default_rng(0).random((32, 32), np.float32)")
    quick.value("def f(a):\n    return a @ a")
    said = str(quick.value("%compile f(a) --precision bf16"))
    assert "precision bf16, as asked for" in said
    assert "error against float64" in said
    assert "to_bfloat16" in quick.names["f"].compiled.text("graph")
    quick.value("def g(a):\n    return a[:, :4] @ a[:4]")
    said = " ".join(str(quick.value("%compile g(a) --precision bf16")).split())
    assert "precision bf16 was asked for, but nothing is rounded: a product of 32 rows" in said
    quick.value("def h(a):\n    return g(a) + a @ a")
    said = " ".join(str(quick.value("%compile h(a) --precision bf16")).split())
    assert "operands of products are rounded to bfloat16, but a product of 32 rows" in said
    quick.value("def s(a):\n    return a + 1")
    said = " ".join(str(quick.value("%compile s(a) --precision bf16")).split())
    assert "nothing is rounded: there is no float32 product" in said
    assert "--precision takes bf16, not fp8" in usage_error(quick, "%compile f(a) --precision fp8")


@pytest.mark.parametrize("command", ["%compile f(x) --seconds 0.1", "%bench f(x) --seconds 0.1"])
def test_commands_of_a_line_say_what_they_do_meanwhile(
    notebook: Any, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """In an output of their own, which is empty in the end: the report is what they return."""
    notebook.run("def f(v):\n    return v * 2\nx = np.ones(9)")
    monkeypatch.setattr(notebook.shell, "kernel", object(), raising=False)
    report = notebook.value(command)
    assert report.comparison.agrees
    said = [output.data["text/plain"] for output in notebook.outputs if "text/plain" in output.data]
    assert said[0] == "compiling …"
    assert any("comparing with NumPy" in words for words in said)
    assert "" in said[1:]
