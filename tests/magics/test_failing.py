"""Cells that fail say what their functions are now; answers that are constants are not timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError

OLD = "%%compile --no-bench\ndef f(x):\n    return x + 1\nf(x)"


@pytest.fixture
def data(quick: Any) -> Any:
    quick.run("x = np.ones((4, 4))")
    return quick


@pytest.mark.parametrize(
    "cell",
    [
        "%%compile\ndef f(x):\n    return x * 2\nf(nowhere)",
        "%%compile\ndef f(x):\n    raise ValueError('no')\nf(x)",
        "%%compile\ndef f(x):\n    raise KeyboardInterrupt\nf(x)",
        "%%compile\nnowhere\ndef f(x):\n    return x * 2\n",
        "%%compile --inputs x\ndef f(x):\n    return x * 2\nf(x)",
        "%%compile --sizes none\ndef f(x):\n    return x * 2\nf(x)",
        "%%compile --unknown\ndef f(x):\n    return x * 2\nf(x)",
    ],
)
def test_a_cell_that_fails_says_what_its_functions_are(data: Any, cell: str) -> None:
    def said() -> str:
        result = data.run(cell)
        error = result.error_in_exec
        if isinstance(error, UsageError):
            return str(error)
        assert error.__notes__[0] in data.printed
        assert "nbcomp/" not in data.printed
        assert len(error.__notes__) == 1
        return str(error.__notes__[0])

    assert said().endswith("the cell failed: f is not defined")
    assert "f" not in data.names
    data.value(OLD)
    number = data.shell.execution_count - 1
    assert said().endswith(f"the cell failed: f is still the function of Cell In[{number}]")
    assert data.value("f(x)[0, 0]") == 2.0
    data.run("f = 3")
    assert said().endswith("the cell failed: f is still what it was")


def test_an_answer_that_is_known_is_not_timed(notebook: Any) -> None:
    notebook.run("x = np.ones(4)")
    call = "%%compile --seconds 0.1 --sizes 1\ndef f(x):\n    return {}\nf(x)"
    for known in ("np.zeros(3) + 1", "x.shape[0] * 2", "np.arange(10).sum()"):
        notebook.value(call.format(known))
        headline = " ".join(notebook.last.headline.split())
        assert "not timed, because the answer is a constant for these arguments" in headline
        assert "faster" not in headline
        assert notebook.last.scaling is None
    for computed in ("x", "x[1:]", "x + 1", "np.zeros(3) + x[:3]"):
        notebook.value(call.format(computed))
        assert "constant" not in notebook.last.headline


def test_what_was_measured_is_in_the_page_of_a_function(notebook: Any, tmp_path: Any) -> None:
    notebook.run("x = np.ones((64, 64))\ndef mm(x):\n    return x @ x + 1")

    def page() -> str:
        path = notebook.names["mm"].report(tmp_path / "page.html")
        return str(path.read_text())

    notebook.value("%compile --seconds 0.1 --sizes 1 mm(x)")
    assert "not compared with NumPy" not in page()
    notebook.names["mm"].compiled.shown = None
    notebook.value("%bench --seconds 0.1 --sizes 1 mm(x)")
    assert "not compared with NumPy" not in page()
    assert "Kernels" in page()  # what %bench does not show is in it too
    notebook.value("%tune --seconds 0.5 mm(x)")
    assert "not compared with NumPy" not in page()


def test_remarks_on_a_model_do_not_point_into_ipython(data: Any) -> None:
    data.run("import nbcomp.nn as nn\nm = nn.Sequential(nn.Linear(4, 4), nn.ReLU())")
    data.run("y = x.astype(np.float32)")
    report = data.value("%compile m(y)")
    remarks = report.compiled.explain()
    assert remarks
    assert not any(r.location for r in remarks)
    assert "fn(*args" not in str(report)
    error = data.run("%explain m").error_in_exec
    assert "name one, such as %explain m(…)" in str(error)
    assert "remark" in str(data.value("%explain m(y)"))


def test_what_cannot_be_tuned_or_timed_is_said_in_a_line(data: Any) -> None:
    data.run(
        "def chk(x):\n    y = x + 1\n    if y.sum() > 0:\n        print(end='')\n    return y * 2"
    )
    error = data.run("%tune --seconds 1 chk(x)").error_in_exec
    assert isinstance(error, UsageError)
    assert str(error).startswith("chk is not tuned: it runs in parts")
    error = data.run("%bench x.sum()").error_in_exec
    assert "such as def f(x): return x.sum()" in str(error)
    error = data.run("%bench np.exp(x + x)").error_in_exec
    assert "such as def f(x): return np.exp(x + x)" in str(error)
    data.value(OLD)
    assert repr(data.names["f"]) == "<nbcomp.jit f: 1 signature compiled>"
    np.testing.assert_array_equal(data.value("f(x)"), 2 * np.ones((4, 4)))
