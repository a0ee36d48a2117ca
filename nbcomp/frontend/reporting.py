"""Where a program asks to be told of floating-point errors: compiled code never tells.

NumPy reports them as `np.errstate` and `np.seterr` say, its warnings become errors or are recorded
as the filters of `warnings` say.  What runs under such a setting is Python's to run.  Knows code
objects and NumPy's settings; no values.
"""

from __future__ import annotations

import dis
import types
import warnings
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here

SILENT = ("ignore", None)  # None: as it was
STARTING = ("ignore", "warn")  # NumPy begins with these; the warnings of compiled code are left out
SETTING = {"simplefilter", "filterwarnings", "seterr", "seterrcall"}
GLOBAL = {"seterr", "seterrcall"}  # whose effect does not end with a `with`
NULLS = ("PUSH_NULL", "KW_NAMES")
HINT = "np.errstate(all='ignore')"
REASON = "compiled code reports no floating-point errors"


class Reports(Unsupported):
    """From here on, to the end of a `with`, floating-point errors are to be reported."""


class Silent(np.errstate):
    """What the program asked for has no effect on compiled code: errors are ignored."""


def errstate(**kinds: Any) -> np.errstate:
    """`np.errstate` as a program sees it.  Raises `Reports` where it reports anything."""
    if any(kind not in SILENT for name, kind in kinds.items() if name != "call"):
        raise Reports(REASON, here(), HINT)
    return Silent(**kinds)


def check_call(function: Any, args: list[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise `Reports` for a `warnings.catch_warnings` that records, or sets a filter that does not
    ignore."""
    if function is warnings.catch_warnings and (args or set(kwargs.values()) - {"ignore"}):
        raise Reports("warnings are recorded, and compiled code gives none", here())


def in_force() -> bool:
    """Whether NumPy reports floating-point errors now, other than by a warning."""
    return any(kind not in STARTING for kind in np.geterr().values())


def check_state() -> None:
    """Raise `Reports` where a library has set what is reported, for the program that is traced."""
    if in_force():
        raise Reports(REASON, here(), HINT)


@lru_cache(maxsize=512)
def settings(code: types.CodeType) -> Mapping[int, str]:
    """The calls in a code object after which something may be reported: their names by offset.

    Those whose first argument is "ignore", as it stands there, are not among them.
    """
    found = dict(_settings([i for i in dis.get_instructions(code) if i.opname not in NULLS]))
    return types.MappingProxyType(found)


def _settings(instructions: list[dis.Instruction]) -> Iterator[tuple[int, str]]:
    for i, following in pairwise(instructions):
        ignoring = following.opname == "LOAD_CONST" and following.argval == "ignore"
        if _loads(i, SETTING) and not ignoring:
            yield i.offset, i.argval


def _loads(i: dis.Instruction, names: Collection[str]) -> bool:
    """Whether an instruction reads one of these names, or attributes."""
    return i.opname.startswith("LOAD_") and i.opname != "LOAD_CONST" and i.argval in names


def of_whole(code: types.CodeType) -> str:
    """The name of a call that lasts beyond the function or a `with` in it; "" if there is none."""
    caught = "catch_warnings" in code.co_names or "catch_warnings" in code.co_varnames
    names = settings(code).values()
    return min((n for n in names if n in GLOBAL or not caught), default="")


def refuse(code: types.CodeType) -> None:
    """Raise `Reports` for a function that is traced in one piece, and sets what is reported."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            refuse(inner)
    names = settings(code).values()
    if names:
        raise Reports(f"{REASON}, which {min(names)} in {code.co_name} asks for")
    if "catch_warnings" in code.co_names and _records(code):
        raise Reports(f"warnings are recorded in {code.co_name}, and compiled code gives none")


def _records(code: types.CodeType) -> bool:
    """Whether `catch_warnings` is called with arguments."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in NULLS]
    return any(
        _loads(i, ("catch_warnings",)) and following.opname not in ("CALL", "PRECALL")
        for i, following in pairwise(instructions)
    )
