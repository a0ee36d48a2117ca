"""`agree`: a captured function does what the plain one does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.frontend.result import bind
from nbcomp.frontend.trace import Capture, capture
from tests.frontend.replay import run, same, sharing


@pytest.fixture
def agree() -> Callable[..., Capture]:
    """`agree(f, *args, **kwargs)` checks that f captured does what f does, to its arguments too."""

    def check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Capture:
        mine, theirs = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
        traced = copy.deepcopy((args, kwargs))
        captured = capture(function, *traced)
        same(traced, (args, kwargs))  # capturing changes nothing
        with np.errstate(all="ignore"):
            expected = function(*theirs[0], **theirs[1])
            result = run(captured, *mine[0], **mine[1])
        same(result, expected)
        same(mine, theirs)
        bound_mine = bind(captured.signature, *mine)
        bound_theirs = bind(captured.signature, *theirs)
        assert sharing(bound_mine, result) == sharing(bound_theirs, expected)
        return captured

    return check
