"""Finds the user's place in the source: the running line and column, and the syntax tree around it.

`here` walks the Python stack to the innermost frame that belongs neither to nbcomp nor to NumPy
and reads the span of the instruction it executes.  `target_name` and `enclosing` look the span up
in the syntax tree of the file or cell.  Knows Python, not arrays.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import numpy as np

from nbcomp.record import Location

Span = tuple[int, int, int, int]  # line, column, end line, end column; columns count UTF-8 bytes

NOTEBOOK = ("IPython", "ipykernel")
_LAYERS = str(Path(__file__).parent.parent / "nn") + "/"
_MACHINE = str(Path(__file__).parent / "bytecode") + "/"
_LIBRARY = tuple(str(p) + "/" for p in (Path(__file__).parent.parent, Path(np.__file__).parent))


@lru_cache(maxsize=1024)
def _skipped(file: str) -> bool:
    return file.startswith(_LIBRARY) or file.startswith("<__array_function__")


class Running(Protocol):
    """What is asked of a frame: its code, its variables, and where in the code it is."""

    @property
    def f_code(self) -> CodeType:
        """The code."""

    @property
    def f_lasti(self) -> int:
        """The byte offset."""

    @property
    def f_locals(self) -> Mapping[str, Any]:
        """The variables by name."""


class _Interpreted(threading.local):
    """The frames of the user's code that the symbolic machine runs, innermost last."""

    def __init__(self) -> None:
        self.frames: list[Any] = []


INTERPRETED = _Interpreted()


def user_frame() -> Running | None:
    """The innermost frame of code that is neither nbcomp's nor NumPy's."""
    if INTERPRETED.frames:
        running: Running = INTERPRETED.frames[-1]
        return running
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _skipped(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None or _is_notebooks(frame) else frame


def _is_notebooks(frame: FrameType) -> bool:
    """Whether a frame is of what runs the notebook's cells and commands, which are above it."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in NOTEBOOK


def user_frames(root: CodeType | None) -> Iterator[Running]:
    """The frames of the user's code, innermost first, up to the one that calls from `root`."""
    if INTERPRETED.frames:
        yield from reversed(INTERPRETED.frames)
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not root and not _is_notebooks(frame):
        if not _skipped(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def layer_frames() -> Iterator[FrameType]:
    """The frames of nbcomp's own layers that the user's innermost frame has called, innermost
    first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _skipped(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith(_MACHINE):  # below it are the user's frames
            return
        if frame.f_code.co_filename.startswith(_LAYERS):
            yield frame
        frame = frame.f_back


@lru_cache(maxsize=256)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def location_of(code: CodeType, instruction: int) -> Location:
    """The span of the instruction at this byte offset of a code object."""
    line, end_line, column, end_column = _positions(code)[max(0, instruction) // 2]
    return Location(
        code.co_filename,
        line or code.co_firstlineno,
        column or 0,
        end_line or line or code.co_firstlineno,
        end_column or 0,
        "" if code.co_name == "<module>" else code.co_name,
    )


def returned_at(function: Any) -> Location | None:
    """The return statement of a Python function; None where it has several, or no bytecode."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, CodeType):
        return None
    places = {
        location_of(code, i.offset)
        for i in dis.get_instructions(code)
        if i.opname.startswith("RETURN_") and i.opname != "RETURN_GENERATOR"
    }
    return places.pop() if len(places) == 1 else None


def here() -> Location | None:
    """Where the user's program is now."""
    frame = user_frame()
    return location_of(frame.f_code, frame.f_lasti) if frame is not None else None


def raised_at(error: BaseException) -> Location | None:
    """Where in the user's code an exception was raised: the innermost of its frames there."""
    found, traceback = None, error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not _skipped(code.co_filename):
            found = location_of(code, traceback.tb_lasti)
        traceback = traceback.tb_next
    return found


# ------------------------------------------------------------------------------- the syntax tree

_trees: dict[str, tuple[list[str], dict[Span, list[ast.AST]], dict[ast.AST, ast.AST]]] = {}


def _span(node: ast.AST) -> Span | None:
    if not isinstance(node, ast.expr | ast.stmt):
        return None
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _tables(file: str) -> tuple[dict[Span, list[ast.AST]], dict[ast.AST, ast.AST]]:
    """For a file or cell: its syntax nodes by span (outermost first) and each node's parent."""
    lines = linecache.getlines(file)
    known = _trees.get(file)
    if known is not None and known[0] is lines:
        return known[1:]
    spans: dict[Span, list[ast.AST]] = {}
    parents: dict[ast.AST, ast.AST] = {}
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):  # e.g. a cell with magics of its own, kept untransformed
        tree = ast.parse("")
    for node in ast.walk(tree):
        span = _span(node)
        if span is not None:
            spans.setdefault(span, []).append(node)
        for child in ast.iter_child_nodes(node):
            parents[child] = node
    if lines:
        _trees[file] = (lines, spans, parents)
    return spans, parents


def _key(location: Location) -> Span:
    return location.line, location.column, location.end_line, location.end_column


def enclosing(location: Location) -> list[ast.AST]:
    """The syntax nodes with exactly this span and all around them, innermost first."""
    spans, parents = _tables(location.file)
    found = spans.get(_key(location), [])
    chain: list[ast.AST] = []
    node: ast.AST | None = found[-1] if found else None
    while node is not None:
        chain.append(node)
        node = parents.get(node)
    return chain


def span_of(node: ast.AST, within: Location) -> Location:
    """The location of a syntax node in the same file and function."""
    span = _span(node)
    return Location(within.file, *span, within.function) if span else within


def target_name(location: Location) -> str:
    """The variable that the expression or assignment at this location gives a value, or ""."""
    chain = enclosing(location)
    if not chain:
        return ""
    node = chain[0]
    parent = chain[1] if len(chain) > 1 else None
    if isinstance(node, ast.AugAssign):
        return _root_name(node.target)
    if (
        isinstance(node, ast.Subscript)
        and isinstance(parent, ast.Assign)
        and node in parent.targets
    ):
        return _root_name(node)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        return _plain_name(parent.targets[0])
    if isinstance(parent, ast.Tuple) and len(chain) > 2:
        return _unpacked_name(node, parent, chain[2])
    if isinstance(parent, ast.AnnAssign | ast.NamedExpr) and parent.value is node:
        return _plain_name(parent.target)
    return ""


def _unpacked_name(node: ast.AST, values: ast.Tuple, assignment: ast.AST) -> str:
    """The variable for one of several values, as in `a, b = x + 1, x + 2`."""
    match assignment:
        case ast.Assign([ast.Tuple(elts=targets)]) if len(targets) == len(values.elts):
            return _plain_name(targets[values.elts.index(node)])  # type: ignore[arg-type]
        case _:
            return ""


def _plain_name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def _root_name(target: ast.expr) -> str:
    while isinstance(target, ast.Subscript):
        target = target.value
    return _plain_name(target)
