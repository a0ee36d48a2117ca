"""Prints kernels: a statement a line, indented as the loops nest, the user's line as a comment.

`kernel_lines` is the same with all the user's places of each line.
"""

from __future__ import annotations

from collections.abc import Iterator

from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    Cast,
    Const,
    Exit,
    Expr,
    For,
    If,
    Kernel,
    Leave,
    Let,
    Load,
    Poll,
    Prefetch,
    Select,
    Stmt,
    Store,
    Var,
    While,
    bodies,
    exprs_of,
)
from nbcomp.loop.places import construct_of, places_by_use
from nbcomp.origin import Construct
from nbcomp.record import Location
from nbcomp.types import contiguous_strides, short

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
}
_UPDATE = {"add": "+=", "multiply": "*="}


def print_expr(expr: Expr) -> str:
    """An expression as NumPy-like text."""
    match expr:
        case Const():
            return f"{expr.value}"
        case Var():
            return expr.name
        case Affine():
            return _affine(expr)
        case Load():
            return f"{expr.buffer.name}{_index(expr.indices)}"
        case Apply():
            args = [print_expr(a) for a in expr.args]
            symbol = _INFIX.get(expr.fn)
            if symbol and len(args) == 2:
                left, right = (_wrap(t, e) for t, e in zip(args, expr.args, strict=True))
                return f"{left} {symbol} {right}"
            return f"{expr.fn}({', '.join(args)})"
        case Cast():
            return f"{short(expr.dtype)}({print_expr(expr.value)})"
        case Select():
            parts = (expr.condition, expr.yes, expr.no)
            return f"where({', '.join(print_expr(p) for p in parts)})"
    raise TypeError(f"not an expression: {expr!r}")


def _wrap(text: str, expr: Expr) -> str:
    infix = isinstance(expr, Apply) and expr.fn in _INFIX and len(expr.args) == 2
    return f"({text})" if infix or (isinstance(expr, Affine) and " " in text) else text


def _affine(expr: Affine) -> str:
    parts = []
    for var, factor in expr.terms:
        sign = "-" if factor < 0 else "+"
        parts.append((sign, var if abs(factor) == 1 else f"{abs(factor)}*{var}"))
    if expr.constant or not parts:
        parts.append(("-" if expr.constant < 0 else "+", str(abs(expr.constant))))
    first_sign, first = parts[0]
    text = f"-{first}" if first_sign == "-" else first
    return text + "".join(f" {sign} {part}" for sign, part in parts[1:])


def _index(indices: tuple[Expr, ...]) -> str:
    return f"[{', '.join(map(print_expr, indices))}]"


def print_buffer(buffer: Buffer) -> str:
    """A buffer's declaration; strides are shown when they are not those of a C-order array."""
    text = f"{buffer.name}: {short(buffer.dtype)}[{', '.join(map(str, buffer.shape))}]"
    plain = buffer.strides == contiguous_strides(buffer.shape)
    return text if plain else f"{text} strides {list(buffer.strides)}"


def print_kernel(kernel: Kernel, mark: Stmt | None = None) -> str:
    """The whole kernel; the line of the statement `mark` is pointed at."""
    return "\n".join(line for line, _ in _lines(kernel, mark))


def kernel_lines(kernel: Kernel) -> Iterator[tuple[str, tuple[Location, ...], Construct]]:
    """The lines of a kernel: text, the user's places, and what the compiler added."""
    by_use = places_by_use(kernel)
    for line, stmt in _lines(kernel, None):
        yield line, _places(stmt, by_use) if stmt else (), construct_of(stmt)


def _places(stmt: Stmt, by_use: dict[int, Location]) -> tuple[Location, ...]:
    """All places of a statement and of the expressions on its line."""
    inside = (stmt, *exprs_of(stmt))
    found = (getattr(x, "location", None) or by_use.get(id(x)) for x in inside)
    return tuple(dict.fromkeys(p for location in found if location for p in location.every()))


def _lines(kernel: Kernel, mark: Stmt | None) -> Iterator[tuple[str, Stmt | None]]:
    """Each line, and the statement that begins on it."""
    signature = ", ".join(f"{b.role} {print_buffer(b)}" for b in kernel.buffers)
    yield f"kernel {kernel.name}({signature}) {{", None
    for note in kernel.notes:
        yield f"  // {note}", None
    yield from _indented(kernel.stages, mark)
    yield "}", None


def _indented(body: tuple[Stmt, ...], mark: Stmt | None) -> Iterator[tuple[str, Stmt | None]]:
    for stmt in body:
        lines = _compound(stmt, mark) if bodies(stmt) else ((_simple(stmt), stmt),)
        for number, (line, begun) in enumerate(lines):
            pointer = "    <-- here" if stmt is mark and number == 0 else ""
            yield f"  {line}{pointer}", begun


def _simple(stmt: Stmt) -> str:
    """A statement without a body."""
    where = getattr(stmt, "location", None)
    note = f"  # {where}" if where else ""
    match stmt:
        case Store():
            how = "  // streaming" if stmt.streaming else ""
            target = f"{stmt.buffer.name}{_index(stmt.indices)}"
            return f"{target} = {print_expr(stmt.value)}{how}{note}"
        case Accumulate():
            target = f"{stmt.buffer.name}{_index(stmt.indices)}"
            how = "  // contract" if stmt.contract else ""
            if stmt.fn in _UPDATE:
                return f"{target} {_UPDATE[stmt.fn]} {print_expr(stmt.value)}{how}{note}"
            return f"{target} = {stmt.fn}({target}, {print_expr(stmt.value)}){how}{note}"
        case Let():
            return f"{stmt.name} = {print_expr(stmt.value)}{note}"
        case Alloc():
            return f"alloc {print_buffer(stmt.buffer)}"
        case Call():
            options = "".join(f", {k}={v}" for k, v in stmt.options)
            parts = [
                b.name + (_index(at) if at else "")
                for b, at in zip(stmt.buffers, stmt.at, strict=False)
            ]
            box = ", ".join(f"{print_expr(start)} + {print_expr(n)}" for start, n in stmt.box)
            only = f" for [{box}]" if box else ""
            return f"call {stmt.fn}({', '.join(parts)}{options}){only}{note}"
    return f"{_jump(stmt)}{note}"


def _jump(stmt: Stmt) -> str:
    """A statement that changes where the program goes on."""
    match stmt:
        case Leave():
            return f"leave {stmt.label}"
        case Exit():
            detail = f", {print_expr(stmt.detail)}" if stmt.detail else ""
            return f"exit {stmt.failure.kind}({stmt.failure.text!r}{detail})"
        case Poll():
            return f"poll every {stmt.every}"
        case Prefetch():
            where = "" if stmt.near else " to L2"
            return f"prefetch{where} {stmt.buffer.name}{_index(stmt.indices)}"
    raise TypeError(f"not a simple statement: {stmt!r}")


def _compound(stmt: Stmt, mark: Stmt | None) -> Iterator[tuple[str, Stmt | None]]:
    """A statement with bodies."""
    yield _head(stmt), stmt
    first, *others = bodies(stmt)
    yield from _indented(first, mark)
    for other in filter(None, others):
        yield "else:", None
        yield from _indented(other, mark)


def _head(stmt: Stmt) -> str:
    match stmt:
        case For():
            kind = "" if stmt.kind == "serial" else f" {stmt.kind}"
            kind += f" {stmt.instruction}" if stmt.instruction else ""
            unroll = f" unroll {stmt.unroll}" if stmt.unroll > 1 else ""
            unroll += f" lanes {stmt.lanes}" if stmt.lanes else ""
            note = f"  // {stmt.note}" if stmt.note else ""
            return f"for {stmt.var} in 0..{print_expr(stmt.extent)}{kind}{unroll}:{note}"
        case If():
            return f"if {print_expr(stmt.condition)}:"
        case While():
            return f"while {print_expr(stmt.condition)}:"
        case Block():
            return f"do {stmt.label}:" if stmt.label else "do:"
    raise TypeError(f"not a compound statement: {stmt!r}")
