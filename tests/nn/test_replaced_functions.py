"""Functions of `nbcomp.nn.functional` that the user replaces: compiled code notices, both ways."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
import nbcomp.nn.functional as F
from nbcomp import nn
from nbcomp.errors import NbcompError

X = np.array([-1, 2], np.float32)


class Relu(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.relu(x)


class ByPath(nn.Module):
    def forward(self, x: Any) -> Any:
        return nbcomp.nn.functional.relu(x)


class ByPackage(nn.Module):
    def forward(self, x: Any) -> Any:
        return nn.functional.relu(x)


def function(x: Any) -> Any:
    return F.relu(x)


PROGRAMS = [Relu(), ByPath(), ByPackage(), function]


def sevenfold(x: Any) -> Any:
    return x * 7


@pytest.mark.parametrize("compiler", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_replaced_function_is_noticed(
    program: Any, compiler: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compiler(program)
    np.testing.assert_array_equal(compiled(X), [0, 2])
    with monkeypatch.context() as patch:
        patch.setattr(F, "relu", sevenfold)
        np.testing.assert_array_equal(compiled(X), [-7, 14])
        while_replaced = compiler(program)
        np.testing.assert_array_equal(while_replaced(X), [-7, 14])
    np.testing.assert_array_equal(compiled(X), [0, 2])
    np.testing.assert_array_equal(while_replaced(X), [0, 2])


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_compiled_once_says_so(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = nbcomp.compile(program, X)
    monkeypatch.setattr(F, "relu", sevenfold)
    with pytest.raises(NbcompError, match="relu is another object now"):
        compiled(X)
