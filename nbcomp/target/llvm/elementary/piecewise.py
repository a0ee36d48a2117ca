"""Odd functions that reach ±1, in float32, from a table of 16 polynomials: tanh and erf.

t = scale·|x| + 1 rises from 1 and never passes 16, so its exponent and two leading mantissa bits
number 16 intervals, narrow near 0 and wide where the function is flat.  On AVX-512 each of the
seven look-ups is one permute of one register; there is no division.
"""

from __future__ import annotations

from nbcomp.target.llvm import x86
from nbcomp.target.llvm.builder import Value
from nbcomp.target.llvm.elementary.tables import Columns
from nbcomp.target.llvm.lanes import V

_FIRST_EDGE = 1.25  # of t


def odd_function(x: V, name: str, table: Columns, scale: float, last: float, terms: int) -> V:
    """f(x) for float32; from |x| = last on f is ±1; `terms` of p are in five columns."""
    a = x.const(last).min(x.abs())  # NaN stays
    t = a.fma(scale, 1)
    index = t.bits().lshr(21)
    centre, value, *powers = (
        lookup(f"{name}.{k}", column, index) for k, column in enumerate(table)
    )
    y = a - centre
    p = powers[-1]
    if terms == 6:  # the last number holds two
        p = (p.bits() << 16).bitcast("float").fma(y, p)
    for c in reversed(powers[:-1]):
        p = p.fma(y, c)
    value = t.lt(_FIRST_EDGE).select(a, value)  # the first interval: a + a·p(a)
    return p.fma(y, value).copysign(x)


def lookup(name: str, column: tuple[float, ...], index: V) -> V:
    """column[index % 16] for float32 columns of 16 numbers."""
    b = index.b
    if x86.has_avx512(index):
        return x86.permute([x86.register(b, "float", column)], index)
    items = ", ".join(str(b.constant(c, "float")) for c in column)
    kind = f"[{len(column)} x float]"
    symbol = f"@nb.table.{name}"
    b.declarations[symbol] = f"{symbol} = private unnamed_addr constant {kind} [{items}]"
    place = (index & (len(column) - 1)).resize("i64", signed=False)
    address = f"getelementptr inbounds {kind}, ptr {symbol}, i64 0, {place.value}"
    pointer = b.emit(address, "ptr", index.lanes)
    if not index.lanes:
        return V(b, b.emit(f"load float, {pointer}", "float"))
    return _gather(V(b, pointer))


def _gather(pointers: V) -> V:
    """Load one float32 per lane."""
    lanes, b = pointers.lanes, pointers.b
    result = Value("", "float", lanes).type
    mask = Value("", "i1", lanes).type
    name = f"llvm.masked.gather.v{lanes}f32.v{lanes}p0"
    b.declare(name, result, pointers.value.type, mask, result)
    on = f"{mask} splat (i1 true)"
    text = f"call {result} @{name}({pointers.value}, {on}, {result} zeroinitializer)"
    return V(b, b.emit(text, "float", lanes))
