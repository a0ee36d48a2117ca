"""Reduction of huge arguments by pi/2, after M. Payne and R. Hanek, SIGNUM Newsletter 18 (1983).

x = m·2^e with a whole m: of the binary digits of 2/pi only those count in x·(2/pi) mod 4 that
neither make a multiple of 4 nor stay below the result's precision.  Three words of them, found by
e, times m give 128 bits of fraction, so that even the double closest to a multiple of pi/2 keeps
all its digits. Scalar code, one lane after the other: it is the rare case.
"""

from __future__ import annotations

from itertools import pairwise

from nbcomp.target.llvm import outline
from nbcomp.target.llvm.builder import Value
from nbcomp.target.llvm.lanes import V

# A word of zeros, and 2/pi in words of 64 bits (mpmath).
_TWO_OVER_PI = (
    0x0000000000000000,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)
_HALF_PI = (float.fromhex("0x1.921fb54442d18p0"), float.fromhex("0x1.1a62633145c07p-54"))


def reduce_lanes(a: V) -> list[V]:
    """[r, low, n] with a = n·pi/2 + r + low modulo 2·pi, for lanes of a >= 2^15 (float, double).

    n is an integer as wide as the float.  Smaller lanes get some value.  Inside an outlined body.
    """
    wide = a.to_float("double")
    r, low, n = _each_lane(wide) if a.lanes else _call_one(wide)
    if a.element == "double":
        return [r, low, n]
    short = r.to_float("float")
    rest = (r - short.to_float("double")) + low
    return [short, rest.to_float("float"), n.resize("i32", signed=False)]


def _call_one(x: V) -> list[V]:
    return outline.call("trig.huge.one", [x], _reduce_one, outline.COLD)


def _each_lane(wide: V) -> list[V]:
    """A loop over the lanes in memory: a sixteenth of the code, for the rare case."""
    b = wide.b
    elements = ("double", "double", "i64")
    given = _allocate(wide)
    found = [_allocate(wide.of(element, 0)) for element in elements]
    b.effect(f"store {wide.value}, ptr {given}")

    def step(state: list[V]) -> list[V]:
        (lane,) = state
        x = V(b, b.emit(f"load double, ptr {_place(given, 'double', lane)}", "double"))
        for item, place in zip(_call_one(x), found, strict=True):
            b.effect(f"store {item.value}, ptr {_place(place, item.element, lane)}")
        return [lane + 1]

    outline.loop([wide.scalar("i64", 0)], lambda state: state[0].lt(wide.lanes), step)
    results = []
    for element, place in zip(elements, found, strict=True):
        kind = Value("", element, wide.lanes)
        results.append(V(b, b.emit(f"load {kind.type}, ptr {place}", element, wide.lanes)))
    return results


def _allocate(like: V) -> str:
    return like.b.emit(f"alloca {like.value.type}", "ptr").text


def _place(base: str, element: str, lane: V) -> str:
    return lane.b.emit(f"getelementptr {element}, ptr {base}, {lane.value}", "ptr").text


def _reduce_one(args: list[V]) -> list[V]:
    (x,) = args
    bits = x.bits()
    m = ((bits & ((1 << 52) - 1)) | (1 << 52)).resize("i128", signed=False)
    # Skip the first e - 2 digits, where x = m·2^e: they give multiples of 4.
    skip = (bits.lshr(52) - (1075 + 2 - 64)).smax(0)
    word, shift = skip.lshr(6), skip & 63
    digits = [_word(word + k) for k in range(4)]
    high, middle, lowest = (
        _funnel(a, b, shift).resize("i128", signed=False) for a, b in pairwise(digits)
    )
    product = m * middle + (m * lowest).lshr(64) + ((m * high) << 64)  # modulo 2^128
    n = (product.lshr(64).resize("i64", signed=False) + (1 << 61)).lshr(62)
    fraction = product << 2  # of a quadrant, signed: -1/2 <= fraction/2^128 < 1/2
    negative = fraction.lt(0)
    size = negative.select(-fraction, fraction)
    zeros = size.leading_zeros()
    size = size << zeros
    first = size.lshr(75).resize("i64", signed=False).to_float("double")  # 53 digits
    second = size.lshr(11).resize("i64", signed=False).to_float("double", signed=False)
    unit = (((zeros * -1) + (1023 - 53)).resize("i64", signed=True) << 52).bitcast("double")
    high_part, low_part = first * unit, second * unit * 2.0**-64
    p1, p2 = _HALF_PI
    top = high_part * p1
    rest = high_part.fma(p1, -top) + high_part.fma(p2, low_part * p1)
    r = top + rest
    low = rest - (r - top)
    return [negative.select(-r, r), negative.select(-low, low), n]


def _word(index: V) -> V:
    """The word of `_TWO_OVER_PI` at an index."""
    b, count = index.b, len(_TWO_OVER_PI)
    symbol, kind = "@nb.table.two_over_pi", f"[{count} x i64]"
    items = ", ".join(f"i64 {w - (w >> 63 << 64)}" for w in _TWO_OVER_PI)
    b.declarations[symbol] = f"{symbol} = private unnamed_addr constant {kind} [{items}]"
    safe = index.smin(count - 1)
    pointer = b.emit(f"getelementptr inbounds {kind}, ptr {symbol}, i64 0, {safe.value}", "ptr")
    return V(b, b.emit(f"load i64, {pointer}", "i64"))


def _funnel(high: V, low: V, shift: V) -> V:
    """The upper word of (high:low) << shift, 0 <= shift < 64."""
    return V(high.b, high.b.intrinsic("fshl", high.value, low.value, shift.value))
