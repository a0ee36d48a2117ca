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
