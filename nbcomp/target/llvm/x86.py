"""AVX-512 instructions that shorten elementary functions: scale by 2**n, split a float, look up.

Each works on any number of lanes: they are cut or padded to 512 bits.  Where the target has no
AVX-512, and for scalars, the callers in `elementary` compute the same bits in portable code; so do
those of `larger` and `smaller`, which are for whole registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import pack, unpack

from nbcomp.target.llvm.builder import Builder, Value, float_literal
from nbcomp.target.llvm.lanes import V

_NATIVE = {"float": 16, "double": 8, "i32": 16, "i64": 8}
_SUFFIX = {"float": "ps", "double": "pd"}


def has_avx512(v: V) -> bool:
    """Whether the value is a vector on a target with AVX-512 (F, DQ)."""
    return bool(v.lanes) and {"avx512f", "avx512dq"} <= v.b.features


def scalef(x: V, n: V) -> V:
    """x · 2**floor(n), rounded once, for any float n."""
    return _by_registers(lambda parts: _unmasked("scalef", *parts), [x, n])


def getexp(x: V) -> V:
    """floor(log2 |x|) as a float: -inf for 0, inf for inf, NaN for NaN."""
    return _by_registers(lambda parts: _unmasked("getexp", *parts), [x])


def getmant(x: V) -> V:
    """x scaled by a power of two into [3/4, 3/2); 1 for 0 and inf, NaN for negative x and NaN."""
    return _getmant(x, 15)


def getmant_of_size(x: V) -> V:
    """The same of |x|."""
    return _getmant(x, 7)


def _getmant(x: V, interval: int) -> V:
    kind = x.scalar("i32", interval)
    return _by_registers(lambda parts: _unmasked("getmant", *parts, kind), [x])


# The vector maximum and minimum of registers of so many bytes, and the feature they come with.
_EXTREMES = {64: ("avx512f", "avx512.{}.{}.512"), 32: ("avx", "avx.{}.{}.256")}


def has_extremes(v: V) -> bool:
    """Whether `larger` and `smaller` take the value: a whole register of floats."""
    size = {"float": 4, "double": 8}.get(v.element, 0) * v.lanes
    return size in _EXTREMES and _EXTREMES[size][0] in v.b.features


def larger(a: V, b: V) -> V:
    """a if a > b, else b, for NaN and ±0 too: `vmaxps`, which LLVM takes apart where a comparison
    and a select are written and another select follows."""
    return _extreme("max", a, b)


def smaller(a: V, b: V) -> V:
    """a if a < b, else b, for NaN and ±0 too: `vminps`."""
    return _extreme("min", a, b)


def _extreme(which: str, a: V, b: V) -> V:
    size = {"float": 4, "double": 8}[a.element] * a.lanes
    name = "llvm.x86." + _EXTREMES[size][1].format(which, _SUFFIX[a.element])
    values = [a.value, b.value]
    if size == 64:
        values.append(a.scalar("i32", 4).value)  # rounding: none takes place
    a.b.declare(name, a.value.type, *(v.type for v in values))
    text = f"call {a.value.type} @{name}({', '.join(map(str, values))})"
    return V(a.b, a.b.emit(text, a.element, a.lanes))


# Places of the classes and numbers of the outcomes in the table of vfixupimm.
_CLASSES = {"nan": (0, 1), "zero": (2,), "one": (3,), "-inf": (4,), "inf": (5,), "negative": (6,)}
_OUTCOMES = {"argument": 2, "nan": 3, "-inf": 4, "inf": 5}


def fix_up(result: V, x: V, special: dict[str, str]) -> V:
    """The result, but for arguments x of the classes in `special` the outcome given there."""
    token = sum(_OUTCOMES[out] << 4 * k for name, out in special.items() for k in _CLASSES[name])
    suffix = _SUFFIX[x.element]
    name = f"llvm.x86.avx512.mask.fixupimm.{suffix}.512"

    def one(parts: list[V]) -> V:
        given, argument = parts
        values = [given, argument, argument.bits().const(token), given.scalar("i32", 0)]
        values += [given.scalar(f"i{given.lanes}", -1), given.scalar("i32", 4)]
        given.b.declare(name, given.value.type, *(v.value.type for v in values))
        text = f"call {given.value.type} @{name}({', '.join(str(v.value) for v in values)})"
        return V(given.b, given.b.emit(text, given.element, given.lanes))

    return _by_registers(one, [result, x])


def reciprocal14(x: V) -> V:
    """1 / x within a relative 2^-14, for float32; scalars too."""
    if not x.lanes:
        poison = V(x.b, Value("poison", x.element, _NATIVE[x.element]))
        return reciprocal14(poison.insert(0, x)).extract(0)

    def one(parts: list[V]) -> V:
        (v,) = parts
        name, kind = "llvm.x86.avx512.rcp14.ps.512", v.value.type
        v.b.declare(name, kind, kind, kind, "i16")
        text = f"call {kind} @{name}({v.value}, {kind} zeroinitializer, i16 -1)"
        return V(v.b, v.b.emit(text, v.element, v.lanes))

    return _by_registers(one, [x])


def permute(table: list[V], index: V) -> V:
    """Look up in a table held in one or two registers, by the low bits of an integer index."""

    def one(parts: list[V]) -> V:
        (i,) = parts
        first = table[0]
        kind, indices = first.value.type, i.value.type
        if len(table) == 1:
            name = f"llvm.x86.avx512.permvar.{'sf' if first.element == 'float' else 'df'}.512"
            i.b.declare(name, kind, kind, indices)
            text = f"call {kind} @{name}({first.value}, {i.value})"
        else:
            name = f"llvm.x86.avx512.vpermi2var.{_SUFFIX[first.element]}.512"
            i.b.declare(name, kind, kind, indices, kind)
            text = f"call {kind} @{name}({first.value}, {i.value}, {table[1].value})"
        return V(i.b, i.b.emit(text, first.element, first.lanes))

    return _by_registers(one, [index])


def register(b: Builder, element: str, numbers: Sequence[float]) -> V:
    """A full register of different constants."""
    return V(b, Value(_written(element, pack(f"{len(numbers)}d", *numbers)), element, len(numbers)))


@lru_cache
def _written(element: str, packed: bytes) -> str:
    """The literal of constants, by their bits: the same tables are written wherever code reads them
    again, and zeros of both signs are equal."""
    numbers = unpack(f"{len(packed) // 8}d", packed)
    return f"<{', '.join(f'{element} {float_literal(n, element)}' for n in numbers)}>"


def _unmasked(name: str, *args: V) -> V:
    """A masked 512-bit intrinsic on all lanes, rounding as usual (4: the current direction)."""
    x = args[0]
    full = f"llvm.x86.avx512.mask.{name}.{_SUFFIX[x.element]}.512"
    every = x.scalar(f"i{x.lanes}", -1)
    values = [a.value for a in (*args, x.const(0), every, x.scalar("i32", 4))]
    x.b.declare(full, x.value.type, *(v.type for v in values))
    text = f"call {x.value.type} @{full}({', '.join(map(str, values))})"
    return V(x.b, x.b.emit(text, x.element, x.lanes))


def _by_registers(one: Callable[[list[V]], V], args: list[V]) -> V:
    """Apply an operation on full registers to values of any number of lanes (a power of two)."""
    lanes, native = args[0].lanes, _NATIVE[args[0].element]
    if lanes == native:
        return one(args)
    parts = [one([a.slice(start, native) for a in args]) for start in range(0, lanes, native)]
    while len(parts) > 1:
        parts = [low.concat(high) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0] if lanes >= native else parts[0].slice(0, lanes)
