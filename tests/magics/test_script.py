"""`%%compile --script`: the functions of a cell compiled from their source."""

from __future__ import annotations

from typing import Any

import numpy as np

import nbcomp

CELL = """\
%%compile --script --no-bench --check
def running(a):
    s = 0.0
    for i in range(len(a)):
        if a[i] < 0:
            continue
        s += a[i]
        a[i] = s
    return a

running(np.array([1.0, -2.0, 3.0]))
"""


def test_a_scripted_cell(notebook: Any) -> None:
    notebook.run("import numpy as np")
    result = notebook.run(CELL)
    assert result.success
    assert result.result.tolist() == [1.0, -2.0, 4.0]
    function = notebook.shell.user_ns["running"]
    assert type(function).__name__ == "Script"
    assert "loops" in str(function.graph)
    assert function(np.array([2.0, 2.0])).tolist() == [2.0, 4.0]
    assert not function.fallbacks
    assert isinstance(function.compiled, nbcomp.Compiled)


def checks(notebook: Any, cell: str) -> str:
    """What a cell shows of its levels."""
    notebook.run("import numpy as np, functools")
    notebook.value(cell)
    text: str = notebook.outputs[-1].data["text/plain"]
    return text


def test_levels_of_a_call_that_python_runs(notebook: Any) -> None:
    text = checks(
        notebook,
        "%%compile --script --no-bench --check\ndef product(n):\n    p = 1\n"
        "    for i in range(1, n):\n        p *= i\n    return p\n\nproduct(40)",
    )
    assert "leaves this call to Python" in text
    assert "WRONG" not in text


def test_levels_of_parts(notebook: Any) -> None:
    cell = (
        "%%compile --no-bench --check\ndef f(x):\n    y = x * 2\n    print(y.sum())\n"
        "    return y + x\n\nf(np.ones(3))"
    )
    text = checks(notebook, cell)
    assert "part at line 3: machine code" in text
    assert "all parts, with Python between them" in text
    assert "gives NumPy's answer" in text


def test_checks_leave_closures_alone(notebook: Any) -> None:
    cell = (
        "%%compile --no-bench --check\ndef f(x):\n    def add(k):\n        print(k)\n"
        "        x[k] += 1\n    for k in range(3):\n        add(k)\n    return x\n\nf(np.zeros(3))"
    )
    text = checks(notebook, cell)
    assert "WRONG" not in text
    assert notebook.names["f"](np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_methods_and_functions_behind_a_cache(notebook: Any) -> None:
    notebook.run("import numpy as np, functools")
    cell = (
        "%%compile --no-bench\nclass Scale:\n    def __init__(self):\n        self.w = np.ones(3)\n"
        "    def go(self, x):\n        return x * self.w + 1\n\np = Scale()\np.go(np.ones(3))"
    )
    assert notebook.value(cell).tolist() == [2.0, 2.0, 2.0]
    assert "go: 2 operators" in notebook.outputs[-1].data["text/plain"]
    cell = (
        "%%compile --no-bench\n@functools.lru_cache\ndef table(n):\n"
        "    return np.arange(n) * 2.0\n\ntable(3)"
    )
    assert notebook.value(cell).tolist() == [0.0, 2.0, 4.0]
    assert "table: " in notebook.outputs[-1].data["text/plain"]
