"""Products of bytes, exact as NumPy's, and of bfloat16, within what rounding the operands does."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.levels import levels
from nbcomp.loop.work import work_of
from nbcomp.machine import host
from nbcomp.measure.comparison import errors
from nbcomp.measure.kernels import _together

SHAPES = [(4, 16, 8), (5, 17, 10), (37, 53, 77), (8, 64, 48), (13, 250, 33), (70, 129, 100)]
KINDS = list(itertools.product(("u1", "i1"), repeat=2))


needs_instructions = pytest.mark.skipif(
    not {"avx512vnni", "avx512bf16"} <= host().features, reason="needs AVX512-VNNI and -BF16"
)


def product(a: Any, b: Any) -> Any:
    return a.astype(np.int32) @ b.astype(np.int32)


def byte(rng: np.random.Generator, kind: str, *shape: int) -> Any:
    """Every value, the ends more often."""
    limits = np.iinfo(kind)
    values = rng.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)
    ends = rng.choice(np.array([limits.min, limits.max], kind), shape)
    return np.where(rng.random(shape) < 0.3, ends, values)


def narrow(compiled: Any) -> bool:
    remarks = compiled.trace.remarks
    return any(r.topic in ("narrow", "precision") and r.kind == "applied" for r in remarks)


@pytest.mark.parametrize("cpu", ["host", "avx2"])
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_of_every_shape(
    shape: tuple[int, int, int], kinds: tuple[str, str], cpu: str, rng: np.random.Generator
) -> None:
    m, k, n = shape
    a, b = byte(rng, kinds[0], m, k), byte(rng, kinds[1], k, n)
    compiled = nbcomp.compile(product, a, b)
    assert narrow(compiled)
    compiled = compiled if cpu == "host" else compiled.for_cpu(cpu)
    np.testing.assert_array_equal(compiled(a, b), product(a, b))


@pytest.mark.parametrize("kinds", KINDS)
def test_arguments_of_any_layout(kinds: tuple[str, str], rng: np.random.Generator) -> None:
    a, b = byte(rng, kinds[0], 20, 68), byte(rng, kinds[1], 68, 40)
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2], a[::-1, ::-1][::-1, ::-1]):
        for right in (b, np.asfortranarray(b), np.repeat(b, 3, 0)[::3]):
            compiled = nbcomp.compile(product, left, right)
            assert narrow(compiled)
            np.testing.assert_array_equal(compiled(left, right), product(a, b))


def test_views_between_the_cast_and_the_product(rng: np.random.Generator) -> None:
    def f(x: Any, w: Any) -> Any:
        return x.astype(np.int32)[:, ::2] @ w.astype(np.int32).T

    x, w = byte(rng, "i1", 9, 80), byte(rng, "i1", 30, 40)
    compiled = nbcomp.compile(f, x, w)
    assert narrow(compiled)
    np.testing.assert_array_equal(compiled(x, w), f(x, w))


def test_stacks_and_what_follows(rng: np.random.Generator) -> None:
    def f(x: Any, w: Any, scale: Any, bias: Any) -> Any:
        return np.maximum(product(x, w) * scale + bias, 0)

    x, w = byte(rng, "u1", 3, 20, 40), byte(rng, "i1", 40, 50)
    arrays = (x, w, np.float32(0.01), rng.standard_normal(50).astype(np.float32))
    compiled = nbcomp.compile(f, *arrays)
    assert narrow(compiled)
    np.testing.assert_allclose(compiled(*arrays), f(*arrays), rtol=1e-6)
    both = (byte(rng, "i1", 3, 20, 40), byte(rng, "i1", 3, 40, 24))
    np.testing.assert_array_equal(nbcomp.compile(product, *both)(*both), product(*both))


def test_quantised_layers(rng: np.random.Generator) -> None:
    """Operands that are computed, by rounding and clipping."""

    def quantised(x: Any, w: Any) -> Any:
        q = np.clip(np.rint(x * 10), -128, 127).astype(np.int8)
        return (q.astype(np.int32) @ w.astype(np.int32).T).astype(np.float32) * np.float32(0.1)

    x, w = rng.standard_normal((16, 64)).astype(np.float32), byte(rng, "i1", 32, 64)
    compiled = nbcomp.compile(quantised, x, w)
    assert narrow(compiled)
    np.testing.assert_allclose(compiled(x, w), quantised(x, w), rtol=1e-6)


def test_sums_wrap_around_as_int32_do() -> None:
    a, b = np.full((8, 140_000), 255, np.uint8), np.full((140_000, 16), 127, np.int8)
    compiled = nbcomp.compile(product, a, b)
    assert narrow(compiled)
    np.testing.assert_array_equal(compiled(a, b), product(a, b))


def test_every_level_gives_the_same(rng: np.random.Generator) -> None:
    for kinds in KINDS:
        a, b = byte(rng, kinds[0], 9, 18), byte(rng, kinds[1], 18, 20)
        for name, run in levels(nbcomp.compile(product, a, b)):
            np.testing.assert_array_equal(run(a, b), product(a, b), err_msg=name)


@pytest.mark.parametrize(
    "shapes", [((1, 64), (64, 64)), ((64, 64), (64, 1)), ((4, 2), (2, 9)), ((0, 64), (64, 9))]
)
def test_few_rows_columns_or_terms_stay(shapes: Any, rng: np.random.Generator) -> None:
    a, b = (byte(rng, "i1", *s) for s in shapes)
    compiled = nbcomp.compile(product, a, b)
    assert not narrow(compiled)
    np.testing.assert_array_equal(compiled(a, b), product(a, b))


def test_other_dtypes_stay(rng: np.random.Generator) -> None:
    a, b = byte(rng, "i1", 16, 32).astype(np.int16), byte(rng, "i1", 32, 16)
    compiled = nbcomp.compile(product, a, b)
    assert not narrow(compiled)
    np.testing.assert_array_equal(compiled(a, b), product(a, b))


@pytest.mark.parametrize("kinds", KINDS)
def test_any_number_of_rows(kinds: tuple[str, str], rng: np.random.Generator) -> None:
    w = byte(rng, kinds[1], 33, 40)
    spec = {"i1": nbcomp.i8, "u1": nbcomp.u8}[kinds[0]]
    compiled = nbcomp.compile(product, spec["n", 33], w)
    assert narrow(compiled)
    for rows in (2, 4, 7, 20, 131, 300):
        a = byte(rng, kinds[0], rows, 33)
        np.testing.assert_array_equal(compiled(a, w), product(a, w))


def test_other_open_lengths_say_so(rng: np.random.Generator) -> None:
    compiled = nbcomp.compile(product, nbcomp.i8[16, "k"], nbcomp.i8["k", 24])
    assert not narrow(compiled)
    assert any("of open lengths" in r.reason for r in compiled.trace.remarks)
    for inner in (3, 40, 100):
        a, b = byte(rng, "i1", 16, inner), byte(rng, "i1", inner, 24)
        np.testing.assert_array_equal(compiled(a, b), product(a, b))


def test_can_be_left_out(rng: np.random.Generator) -> None:
    a, b = byte(rng, "i1", 16, 32), byte(rng, "i1", 32, 16)
    options = nbcomp.Options(without={"narrow_products"})
    compiled = nbcomp.compile_for("llvm", options)(product, a, b)
    assert not narrow(compiled)
    np.testing.assert_array_equal(compiled(a, b), product(a, b))


# ------------------------------------------------------------------------------------- bfloat16


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def in_bf16(function: Any, *arrays: Any) -> Any:
    return nbcomp.compile_for("llvm", nbcomp.Options(precision="bf16"))(function, *arrays)


@pytest.mark.parametrize("cpu", ["host", "avx2"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_bfloat16_within_its_rounding(
    shape: tuple[int, int, int], turned: bool, cpu: str, rng: np.random.Generator
) -> None:
    """Each operand is off by 2**-9 at most, each sum by 2**-24 of what it adds up, term by term."""
    m, k, n = shape
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    b = np.asfortranarray(b) if turned else b
    compiled = in_bf16(matmul, a, b)
    assert narrow(compiled)
    compiled = compiled if cpu == "host" else compiled.for_cpu(cpu)
    true = a.astype(np.float64) @ b
    size = np.abs(a).astype(np.float64) @ np.abs(b)
    assert np.all(np.abs(compiled(a, b) - true) <= size * (2.0**-8 + 2.0**-18 + k * 2.0**-23))


def test_bfloat16_of_exact_operands_is_exact(rng: np.random.Generator) -> None:
    a, b = (rng.integers(-100, 100, s).astype(np.float32) for s in ((16, 64), (64, 32)))
    np.testing.assert_array_equal(in_bf16(matmul, a, b)(a, b), a @ b)


def test_infinity_and_nan_pass_through() -> None:
    a, b = np.ones((4, 16), np.float32), np.ones((16, 16), np.float32)
    a[0, 3], a[1, 5], a[2, 0], b[2, 9] = np.inf, np.nan, -np.inf, np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(in_bf16(matmul, a, b)(a, b), a @ b)


def test_bfloat16_every_level(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((9, 17), (17, 20)))
    true = a.astype(np.float64) @ b
    for name, run in levels(in_bf16(lambda a, b: a @ b + 1, a, b)):
        np.testing.assert_allclose(run(a, b), true + 1, atol=0.1, err_msg=name)


def test_bfloat16_only_when_asked(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    assert not narrow(nbcomp.compile(matmul, a, b))
    fast = nbcomp.jit(matmul, precision="bf16")
    found = fast(a, b)
    assert narrow(fast.compiled)
    ours, numpys = errors(found, a @ b, matmul, ((a, b), {}))  # type: ignore[misc]
    assert 1e-4 < ours < 1e-2
    assert numpys < 1e-6
    assert not narrow(in_bf16(matmul, a.astype(np.float64), b.astype(np.float64)))
    with pytest.raises(ValueError, match="no precision 'fp8'; there is bf16"):
        nbcomp.jit(matmul, precision="fp8")


def missed(function: Any, *arrays: Any) -> list[str]:
    remarks = in_bf16(function, *arrays).trace.remarks
    return [r.reason for r in remarks if r.topic == "precision" and r.kind == "missed"]


def test_what_is_not_rounded_says_why(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((12, n)).astype(np.float32) for n in (10, 16))
    (small,) = missed(lambda a: a @ a.T, a)
    assert "12 rows, 12 columns and 10 terms stays as it is" in small
    assert not missed(lambda b: b @ b.T, b)
    (wide,) = missed(lambda b: b @ b.T, b.astype(np.float64))
    assert "a product of float64 stays" in wide
    images = rng.standard_normal((1, 8, 12, 12)).astype(np.float32)
    (windows,) = missed(nbcomp.nn.Conv2d(8, 8, 3), images)
    assert "a convolution stays as it is" in windows
    steps = rng.standard_normal((5, 4, 20)).astype(np.float32)
    assert any("recurrent layer" in m for m in missed(nbcomp.nn.LSTM(20, 32), steps))


def test_attention_in_bfloat16(rng: np.random.Generator) -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(0, 2, 1) / np.float32(8)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (weights / weights.sum(axis=-1, keepdims=True)) @ v

    arrays = [rng.standard_normal((2, 64, 64)).astype(np.float32) for _ in range(3)]
    compiled = in_bf16(attention, *arrays)
    np.testing.assert_allclose(compiled(*arrays), attention(*arrays), atol=0.03)


def test_every_entry_takes_the_precision(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    wanted = in_bf16(matmul, a, b)(a, b)
    for compiled in (
        nbcomp.compile(matmul, a, b, precision="bf16"),
        nbcomp.compile(nbcomp.jit(matmul, precision="bf16"), a, b),
        nbcomp.jit(matmul, precision="bf16").compile(a, b),
        nbcomp.script(matmul, precision="bf16").compile(a, b),
    ):
        assert narrow(compiled)
        np.testing.assert_array_equal(compiled(a, b), wanted)
    exact = nbcomp.compile(nbcomp.jit(matmul, precision="bf16"), a, b, precision="")
    assert not narrow(exact)
    with pytest.raises(ValueError, match="no precision 'fp8'; there is bf16"):
        nbcomp.compile(matmul, a, b, precision="fp8")


def test_a_parameter_of_the_functions_own_comes_first(rng: np.random.Generator) -> None:
    def scaled(a: Any, precision: float) -> Any:
        return a * precision

    a = rng.standard_normal(9).astype(np.float32)
    np.testing.assert_array_equal(nbcomp.compile(scaled, a, precision=3.0)(a, 3.0), a * 3.0)


# -------------------------------------------------------------------------------- packed weights


class Layer(nn.Module):
    """x @ weight.T in the numbers of the weight, with int32 sums for bytes."""

    def __init__(self, weight: Any) -> None:
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Any) -> Any:
        wide = np.int32 if x.dtype.itemsize == 1 else np.float32
        return x.astype(wide) @ self.weight.astype(wide).T


def packed(compiled: Any) -> bool:
    return any("packed once" in r.reason for r in compiled.trace.remarks)


@needs_instructions
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("shape", [(4, 67, 64), (7, 67, 70), (33, 256, 100)])
def test_weights_of_bytes_are_packed_once(
    shape: tuple[int, int, int], kinds: tuple[str, str], rng: np.random.Generator
) -> None:
    rows, inner, columns = shape
    x, layer = byte(rng, kinds[0], rows, inner), Layer(byte(rng, kinds[1], columns, inner))
    fast = nbcomp.jit(layer)
    np.testing.assert_array_equal(fast(x), layer(x))
    assert packed(fast.compiled)
    for name, run in levels(fast.compiled) if shape[0] == 4 else ():
        np.testing.assert_array_equal(run(x), layer(x), err_msg=name)
    layer.weight.data[...] = byte(rng, kinds[1], columns, inner)
    np.testing.assert_array_equal(fast(x), layer(x))
    np.testing.assert_array_equal(fast(x[:, ::-1][:, ::-1]), layer(x))


@needs_instructions
@pytest.mark.parametrize("shape", [(4, 64, 64), (7, 67, 70), (33, 256, 100), (6, 130, 48)])
def test_weights_are_rounded_once(shape: tuple[int, int, int], rng: np.random.Generator) -> None:
    rows, inner, columns = shape
    x = rng.standard_normal((2, rows, inner)).astype(np.float32)
    layer = nn.Linear(inner, columns)
    fast = nbcomp.jit(layer, precision="bf16")
    for _ in range(2):
        weight, bias = (np.asarray(p) for p in (layer.weight, layer.bias))
        true = x.astype(np.float64) @ weight.T + bias
        size = np.abs(x).astype(np.float64) @ np.abs(weight).T + np.abs(bias)
        np.testing.assert_array_less(np.abs(fast(x) - true), size * (2.0**-8 + 2.0**-15))
        layer.weight.data[...] = rng.standard_normal((columns, inner))
    assert packed(fast.compiled)
    assert not any(n.op.name == "to_bfloat16" and n.inputs[0].op.name == "input"
                   and n.inputs[0].op.held for n in fast.compiled.graph.nodes)  # fmt: skip
    text = fast.compiled.text("asm")
    assert "vdpbf16ps" in text


def test_tiles_are_picked_where_the_cpu_has_them(rng: np.random.Generator) -> None:
    """As text, on CPUs without: the sums of whole tiles by AMX, what is left by vectors."""
    a, b = byte(rng, "u1", 40, 64), byte(rng, "i1", 64, 50)
    text = nbcomp.compile(product, a, b).for_cpu("amx").text("asm")
    assert {"tdpbusd", "tileloadd", "tilerelease"} <= set(re.findall(r"\t(\w+)", text))
    assert "vpdpbusd" in text
    x, y = (rng.standard_normal((32, 64)).astype(np.float32) for _ in range(2))
    compiled = in_bf16(lambda a, b: np.maximum(a @ b.T + 1, 0), x, y).for_cpu("amx")
    assert "tdpbf16ps" in compiled.text("asm")
    assert any("tdpbf16ps adds" in r.reason for r in compiled.trace.remarks)
    for name, run in levels(compiled):
        if name != "machine code":
            np.testing.assert_allclose(
                run(x, y), np.maximum(x @ y.T + 1, 0), atol=0.3, err_msg=name
            )


@pytest.mark.skipif("avx512vnni" not in host().features, reason="needs AVX512-VNNI")
def test_the_instructions_are_there(rng: np.random.Generator) -> None:
    a, b = byte(rng, "i1", 64, 256), byte(rng, "i1", 256, 96)
    compiled = nbcomp.compile(product, a, b)
    assert "vpdpbusd" in compiled.text("asm")
    assert any("vpdpbusd adds 4 products" in r.reason for r in compiled.trace.remarks)
    assert "vpdpbusd" not in compiled.for_cpu("avx512").text("asm")
    x, y = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    assert "tdpbf16ps" in in_bf16(matmul, x, y).for_cpu("amx").text("asm")


def test_figures_are_held_against_what_the_instructions_can_do(rng: np.random.Generator) -> None:
    a, b = byte(rng, "u1", 256, 256), byte(rng, "i1", 256, 256)
    compiled = nbcomp.compile(product, a, b)
    work = work_of(compiled.kernels[-1].lowered)
    assert work.operations[4] == 2 * 256**3
    x, y = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    floats = work_of(in_bf16(matmul, x, y).kernels[-1].lowered)
    assert floats.operations[4] == 2 * 64**3
    if "avx512vnni" in host().features:
        assert _together(compiled.kernels[-1].kernel) == 4


@pytest.mark.skipif("avx512vnni" not in host().features, reason="needs AVX512-VNNI")
def test_instructions_say_where_they_come_from(rng: np.random.Generator) -> None:
    a, b = byte(rng, "u1", 64, 64), byte(rng, "i1", 64, 48)
    compiled = nbcomp.compile(product, a, b)
    rows = [row for row in compiled.provenance().rows if "vpdpbusd" in row.text]
    assert rows
    assert all(row.places for row in rows)
