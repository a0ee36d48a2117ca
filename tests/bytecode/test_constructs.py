"""docs/capture.md says what becomes of each construct: each row is run against Python."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.bytecode.constructs import LAYER, LOG, ROWS, X, by_bytecode, by_trace
from tests.bytecode.test_random_programs import differs

PAGE = Path(__file__).parents[2] / "docs" / "capture.md"


def documented() -> dict[str, dict[str, str]]:
    """The table of the page: for each construct what each way of capture makes of it."""
    rows = [
        [cell.strip() for cell in line.strip("|\n").split(" | ")]
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ")
    ]
    start = next(k for k, row in enumerate(rows) if row[0] == "construct")
    head, body = rows[start], rows[start + 1 :]
    body = [row for row in body if len(row) == len(head)]  # other tables have fewer columns
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def test_every_row_is_documented() -> None:
    assert list(documented()) == [construct for construct, _ in ROWS]


@pytest.mark.parametrize(("construct", "function"), ROWS, ids=[f.__name__ for _, f in ROWS])
def test_constructs(construct: str, function: Any) -> None:
    row = documented()[construct]
    assert row["trace"] == by_trace(function)
    assert row["bytecode"] == by_bytecode(function)
    f = nbcomp.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        for _ in range(3):
            outcomes = []
            for run in (function, f):
                LOG.clear()
                given = X.copy()
                result = run(given)
                result = list(result) if function.__name__ == "generator" else result
                fields = vars(result) if function.__name__ == "data_class" else result
                last = np.array(getattr(LAYER, "last", 0.0))
                outcomes.append([fields, given, list(LOG), last])
            assert not differs(outcomes[1], outcomes[0])
