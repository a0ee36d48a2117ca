"""Tracebacks show the user's lines only: no frame of nbcomp's, no name that it made up."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import PACKAGE


def frames_of(error: BaseException) -> list[str]:
    """The files of a traceback, outermost first."""
    return [f.filename for f in traceback.extract_tb(error.__traceback__)]


def error_of(call: Any) -> BaseException:
    with pytest.raises((TypeError, KeyboardInterrupt)) as caught:
        call()
    return caught.value


def test_a_missing_argument() -> None:
    f = nbcomp.jit(lambda x: x + 1)
    for _ in range(2):  # the first call goes another way than later ones
        error = error_of(lambda: f())
        assert isinstance(error, TypeError)
        assert not any(name.startswith(PACKAGE) for name in frames_of(error))
        f(np.ones(3))


def test_an_interrupt() -> None:
    def stopped(x: Any) -> Any:
        y = x + 1
        print(end="")
        raise KeyboardInterrupt
        return y

    f = nbcomp.jit(stopped)
    for _ in range(2):
        error = error_of(lambda: f(np.ones(3)))
        assert isinstance(error, KeyboardInterrupt)
        files = frames_of(error)
        assert not any(name.startswith(PACKAGE) for name in files)
        assert files[-1] == __file__


def test_what_goes_on_in_the_middle_shows_the_users_parameters(quick: Any) -> None:
    quick.run(
        "import nbcomp\n@nbcomp.jit\ndef g(x, *more, k=1):\n    y = x + 1\n    print(end='')\n"
        "    if y.sum() > 3:\n        return (y * 2) @ (1 + int(y.sum()))\n    return y"
    )
    quick.run("g(np.ones(9))")
    shown = quick.printed
    assert "in g(x, k, *more)" in shown or "in g(x, k, more)" in shown
    assert ".stack" not in shown
    assert "nbcomp/" not in shown


@pytest.mark.parametrize("count", [1, 40, 300])
def test_many_variables_in_the_middle(count: int) -> None:
    """More than an instruction has bits for, cells and unbound ones among them."""
    names = [f"v{k}" for k in range(count)]
    lines = [f"    {name} = x + {k}" for k, name in enumerate(names)]
    lines += ["    if flag:", "        late = 1", "    inner = lambda: v0", "    print(end='')"]
    lines.append(f"    return {' + '.join(names)} + inner() * float(v0.sum())")
    text = "\n".join(["def f(x, flag=False):", *lines])
    space: dict[str, Any] = {}
    exec(text, space)
    x = np.arange(4.0)
    np.testing.assert_allclose(nbcomp.jit(space["f"])(x), space["f"](x))


def test_text_where_an_array_should_be() -> None:
    w = np.ones(3)
    with (
        pytest.warns(nbcomp.NumpyFallback, match=r"the left side of `x \* w` is a str, no array"),
        pytest.raises(TypeError),
    ):
        nbcomp.jit(lambda x: x * w)("abc")


def test_a_call_on_a_commands_line_is_shown(quick: Any) -> None:
    quick.run("def h(x):\n    return x + 1")
    quick.run("%compile h(nowhere)")
    assert "----> 1 h(nowhere)" in quick.printed
    assert "Could not get source" not in quick.printed
