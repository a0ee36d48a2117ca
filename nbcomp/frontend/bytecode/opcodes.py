"""The opcodes of each version of CPython that is known."""

from __future__ import annotations

from nbcomp.frontend.bytecode import containers, control, operations
from nbcomp.frontend.bytecode.table import COMMON, PYTHON_3_11, PYTHON_3_12, PYTHON_3_13

TABLES = {
    (3, 11): COMMON | PYTHON_3_11,
    (3, 12): COMMON | PYTHON_3_12 | {"CALL": PYTHON_3_11["CALL"]},
    (3, 13): COMMON | PYTHON_3_12 | PYTHON_3_13,
}

ENTERED_BY = (operations, containers, control)  # importing them fills the tables
