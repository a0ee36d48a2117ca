"""Tables of bytecode instructions: what each does, one table per version of CPython.

A table maps the name of an instruction to a function of a frame and the instruction.  `op` enters
one.  Knows versions, not instructions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from nbcomp.frontend.bytecode.machine import Execute

Table = dict[str, Execute]

COMMON: Table = {}
PYTHON_3_11: Table = {}
PYTHON_3_12: Table = {}  # 3.12 and later
PYTHON_3_13: Table = {}
VERSION = sys.version_info[:2]


def op(*names: str, table: Table = COMMON) -> Callable[[Execute], Execute]:
    """Declare what these instructions do."""

    def register(execute: Execute) -> Execute:
        table.update(dict.fromkeys(names, execute))
        return execute

    return register
