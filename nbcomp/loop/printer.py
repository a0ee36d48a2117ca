"""Prints kernels: a statement a line, indented as the loops nest, the user's line as a comment."""

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
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    While,
    bodies,
)
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
    signature = ", ".join(f"{b.role} {print_buffer(b)}" for b in kernel.buffers)
    lines = [f"kernel {kernel.name}({signature}) {{"]
    lines += [f"  // {note}" for note in kernel.notes]
    lines += _indented(kernel.stages, mark)
    return "\n".join([*lines, "}"])


def _indented(body: tuple[Stmt, ...], mark: Stmt | None) -> Iterator[str]:
    for stmt in body:
        lines = _simple(stmt) if not bodies(stmt) else _compound(stmt, mark)
        for number, line in enumerate(lines):
            pointer = "    <-- here" if stmt is mark and number == 0 else ""
            yield f"  {line}{pointer}"


def _simple(stmt: Stmt) -> Iterator[str]:
    """A statement without a body."""
    where = getattr(stmt, "location", None)
    note = f"  # {where}" if where else ""
    match stmt:
        case Store():
            how = "  // streaming" if stmt.streaming else ""
            target = f"{stmt.buffer.name}{_index(stmt.indices)}"
            yield f"{target} = {print_expr(stmt.value)}{how}{note}"
        case Accumulate():
            target = f"{stmt.buffer.name}{_index(stmt.indices)}"
            if stmt.fn in _UPDATE:
                yield f"{target} {_UPDATE[stmt.fn]} {print_expr(stmt.value)}{note}"
            else:
                yield f"{target} = {stmt.fn}({target}, {print_expr(stmt.value)}){note}"
        case Let():
            yield f"{stmt.name} = {print_expr(stmt.value)}{note}"
        case Alloc():
            yield f"alloc {print_buffer(stmt.buffer)}"
        case Call():
            options = "".join(f", {k}={v}" for k, v in stmt.options)
            parts = [
                b.name + (_index(at) if at else "")
                for b, at in zip(stmt.buffers, stmt.at, strict=False)
            ]
            box = ", ".join(f"{print_expr(start)} + {print_expr(n)}" for start, n in stmt.box)
            only = f" for [{box}]" if box else ""
            yield f"call {stmt.fn}({', '.join(parts)}{options}){only}{note}"


def _compound(stmt: Stmt, mark: Stmt | None) -> Iterator[str]:
    """A statement with bodies."""
    match stmt:
        case For():
            kind = "" if stmt.kind == "serial" else f" {stmt.kind}"
            unroll = f" unroll {stmt.unroll}" if stmt.unroll > 1 else ""
            yield f"for {stmt.var} in 0..{print_expr(stmt.extent)}{kind}{unroll}:"
        case If():
            yield f"if {print_expr(stmt.condition)}:"
        case While():
            yield f"while {print_expr(stmt.condition)}:"
        case Block():
            yield "do:"
    first, *others = bodies(stmt)
    yield from _indented(first, mark)
    for other in filter(None, others):
        yield "else:"
        yield from _indented(other, mark)
