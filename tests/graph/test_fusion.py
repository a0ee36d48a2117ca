"""Which nodes become one kernel, which do not, the reasons, and that the answer stays the same."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.graph.passes.fusion import SIBLINGS
from nbcomp.graph.passes.groups import FusedGraph
from nbcomp.graph.passes.legality import ROW_BYTES, SERIAL_SIZE
from nbcomp.graph.passes.operands import base_of, source_of
from nbcomp.levels import levels
from nbcomp.loop import interpreter
from nbcomp.loop.grammar import Apply, Cast, Expr, Kernel, Select, Stmt
from nbcomp.loop.verifier import verify
from tests.graph.random_fusions import Program
from tests.programs import fused, kinds, members, ops, reasons, text

Golden = Callable[..., None]


def check(
    function: Callable[..., Any], *args: Any, rtol: float = 1e-5, without: str = ""
) -> FusedGraph:
    """The fused graph; the machine code agrees with NumPy."""
    wanted = function(*args)
    options = nbcomp.Options(without=frozenset({without} - {""}))
    compiled = nbcomp.compile_for("llvm", options)(function, *args)
    got = compiled(*args)
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)
    return compiled.fused


# ----------------------------------------------------------------------------- what is one kernel


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x: Any) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5)


@pytest.mark.parametrize("shape", [(64, 48), (3, 5, 17), (1, 9), (2, 3000)])
def test_softmax_is_one_kernel(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    assert kinds(check(softmax, rng.random(shape, np.float32))) == ["reduce"]


@pytest.mark.parametrize("shape", [(64, 48), (3, 5, 17), (2, 3000)])
def test_layernorm_is_one_kernel(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    assert kinds(check(layernorm, rng.random(shape, np.float32))) == ["reduce"]


def test_softmax_text(golden: Golden) -> None:
    golden(text(fused(softmax, np.ones((4, 6), np.float32))))


def test_a_product_with_its_epilogue_is_one_kernel(rng: np.random.Generator) -> None:
    def layer(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)

    result = check(layer, rng.random((32, 48), np.float32), *weights(rng))
    assert kinds(result) == ["map"]
    assert members(result.groups[0]) == {"matmul", "add", "maximum"}
    assert reasons(result) == ""  # nothing was kept apart in the end


def weights(rng: np.random.Generator) -> list[Any]:
    return [rng.random((48, 16), np.float32), rng.random(16, np.float32)]


def test_a_product_with_a_reduction_is_one_kernel(rng: np.random.Generator) -> None:
    result = check(
        lambda x, w, b: softmax(x @ w + b),
        rng.random((32, 48), np.float32),
        *weights(rng),
        without="generate",
    )
    assert kinds(result) == ["reduce"]


def test_two_products_are_two_kernels(rng: np.random.Generator) -> None:
    def two(x: Any, w: Any, b: Any) -> Any:
        return x @ w + np.tanh(x) @ w + b

    result = check(two, rng.random((32, 48), np.float32), *weights(rng))
    assert [sorted(members(g)) for g in result.groups].count(["matmul"]) == 1
    assert len(result.groups) == 3


def test_a_product_that_is_a_result_stays_one(rng: np.random.Generator) -> None:
    def both(x: Any, w: Any, b: Any) -> Any:
        h = x @ w
        return h, np.tanh(h + b)

    result = check(both, rng.random((32, 48), np.float32), *weights(rng))
    assert kinds(result) == ["contract", "map"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.exp(x) * np.sin(x) + np.sqrt(np.abs(x)),
        lambda x: np.where(x > 0.5, np.exp(x), -x) + x.T.T,
        lambda x: (np.exp(x) * 2)[::-1, 1:],
        lambda x: np.exp(x)[:, None, :] * 2,
        lambda x: np.exp(x.T[::2]) + 1,
        lambda x: np.exp(np.broadcast_to(x[:1], (64, 64))).sum(axis=0),
        lambda x: (x * x).sum(),
        lambda x: np.sqrt((x * x).sum(axis=1)),
        lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
        lambda x: (x - x.min()) / (x.max() - x.min()),
        lambda x: (x[:, :3] - x[:, :3].mean(axis=0)) / x[:, :3].std(axis=0),
        lambda x: x.reshape(-1, 4).sum(axis=1),
        lambda x: np.clip(x, 0.2, 0.8).max(axis=1) * 3,
        lambda x: x[None, :, :2] - x[:, None, :2],
    ],
)
def test_one_kernel(function: Callable[[Any], Any], rng: np.random.Generator) -> None:
    assert len(check(function, rng.random((64, 64))).groups) == 1


def test_pairwise_forces_are_one_kernel(rng: np.random.Generator) -> None:
    def forces(p: Any, m: Any) -> Any:
        d = p[None, :, :] - p[:, None, :]
        r2 = (d * d).sum(axis=2) + 0.01
        return (d * (m / (r2 * np.sqrt(r2)))[:, :, None]).sum(axis=1)

    assert kinds(check(forces, rng.random((70, 3)), rng.random(70))) == ["reduce"]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_short_axes_are_written_out(n: int, axis: int, rng: np.random.Generator) -> None:
    shape = [6, 7, 8]
    shape[axis] = n

    def norm(x: Any) -> Any:
        return x / np.sqrt((x * x).sum(axis=axis, keepdims=True))

    result = check(norm, rng.random(shape) + 0.1)
    assert kinds(result) == ["map"]
    assert result.groups[0].components == (axis,)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 70])
def test_sums_of_short_rows(rows: int, width: int, rng: np.random.Generator) -> None:
    """Centres of points: a column of costly weights, sums of each coordinate."""

    def centre(p: Any, d: Any) -> Any:
        w = np.exp(-d)[:, None]
        c = (w * p).sum(axis=0) / (w.sum(axis=0) + 1)
        return p - c, c * 2

    check(centre, rng.random((rows, width)), rng.random(rows))


def test_sums_of_short_rows_are_one_walk(rng: np.random.Generator) -> None:
    def weighted(p: Any, d: Any) -> Any:
        return (np.exp(-d)[:, None] * p).sum(axis=0) * 2

    result = check(weighted, rng.random((70, 3)), rng.random(70))
    assert kinds(result) == ["reduce"]
    assert result.groups[0].components == (1,)


def test_an_axis_of_one_reduced_twice(rng: np.random.Generator) -> None:
    def f(c: Any) -> Any:
        row = c.mean(axis=1, keepdims=True)
        return row * 1, row.max(axis=(0, 1))

    check(f, rng.random((9, 1)))
    check(lambda b: b.max(axis=1, keepdims=True).mean(axis=1, keepdims=True), rng.random((4, 4)))


# --------------------------------------------------------------------------------- what is refused


def test_the_wrong_axis_of_a_square(rng: np.random.Generator) -> None:
    """The sum over rows, spread over columns: both have the same length."""

    def f(x: Any) -> Any:
        s = x.sum(axis=1)
        return x / s

    def g(x: Any) -> Any:
        s = x.sum(axis=0)
        return x / s[:, None]

    for function, shown in ((f, "x / s"), (g, "x / s[:, None]")):
        result = check(function, rng.random((64, 64)))
        assert kinds(result) == ["reduce", "map"]
        assert reasons(result) == (
            f"`s` and `{shown}` are kept apart: its result is spread along another axis than the "
            "one reduced"
        )


def test_the_wrong_axis_of_a_short_square(rng: np.random.Generator) -> None:
    result = check(lambda x: x / x.sum(axis=1), rng.random((4, 4, 4))[0])
    assert "exp" not in ops(result.graph)
    check(lambda a, b: np.exp(-a.mean(axis=1)) + b[:, None], rng.random((4, 4)), rng.random(4))


def test_two_axes_are_two_kernels(rng: np.random.Generator) -> None:
    result = check(lambda x: x.sum(axis=0) + x.sum(axis=1), rng.random((64, 64)))
    assert kinds(result) == ["reduce", "reduce"]
    assert "it reduces axis" in reasons(result) or "after a reduction" in reasons(result)


def test_what_is_spread_over_more_elements_is_not_computed_again(rng: np.random.Generator) -> None:
    def f(x: Any, y: Any) -> Any:
        costly = np.exp(x)
        return (costly[:, None, :] * y).sum(axis=(0, 2))

    result = check(f, rng.random((40, 30)), rng.random((40, 50, 30)))
    assert (
        "`costly` and `costly[:, None, :] * y` are kept apart: it has 1,200 elements and would "
        in (reasons(result))
    )
    assert "computed 50 times each in the loop over 40×50×30" in reasons(result)


def test_what_an_outer_loop_can_hold_is_not_computed_again(rng: np.random.Generator) -> None:
    result = check(lambda v, y: np.exp(v)[:, None] * y, rng.random(40), rng.random((40, 50)))
    assert kinds(result) == ["map"]


def test_cheap_elements_are_computed_again(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        e = x + 1
        return e[1:] - e[:-1]

    assert kinds(check(f, rng.random((30, 30)))) == ["map"]


@pytest.mark.parametrize(
    "function",
    [
        lambda e: e[1:] - e[:-1],
        lambda e: e + e.T,
        lambda e: e[::-1] * e,
        lambda e: np.stack([e, e]),
    ],
)
def test_costly_elements_read_at_several_places_are_stored(
    function: Callable[[Any], Any], rng: np.random.Generator
) -> None:
    def f(x: Any) -> Any:
        e = np.exp(x)
        return function(e)

    result = check(f, rng.random((30, 30)))
    assert len(result.groups) == 2
    assert "are kept apart: its elements are read" in reasons(result)


def spread_rows(x: Any) -> Any:
    y = x * 2
    y[:] = np.exp(x[0])
    y[0] = 1
    return y


def deviations(x: Any) -> Any:
    return x - x.mean(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: np.tile(np.exp(x), 3), "would be computed 3 times each"),
        (lambda x: np.repeat(np.exp(x), 3, axis=0), "would be computed 3 times each"),
        (lambda x: np.pad(np.exp(x), 2, mode="wrap"), "it would be computed more than once"),
        (spread_rows, "it would be computed more than once"),
        (lambda x: np.pad(x.max(axis=0), 1), "it is reduced first"),
        (lambda x: np.concatenate([np.exp(x), x]) + 1, "put together from parts"),
        (lambda x: np.sort(np.exp(x)), "a library routine works on whole arrays"),
        (lambda x: np.exp(x) @ x, "a matrix product reads its operands from memory"),
        (lambda x: (x @ x) + np.sin(x @ x.T @ x), "the product is needed whole first"),
        (
            lambda x: deviations(x.reshape(10, 30, 3)).sum(axis=0),
            "it reduces axis 0, after a reduction of axis 1",
        ),
        (
            lambda x: x / x.sum(axis=0),
            "the reduction runs across rows, and its result is complete only at the end",
        ),
    ],
)
def test_reasons(function: Callable[[Any], Any], why: str, rng: np.random.Generator) -> None:
    assert why in reasons(check(function, rng.random((30, 30))))


def test_reasons_of_size(rng: np.random.Generator) -> None:
    apart = rng.random((SERIAL_SIZE // 512 + 1, 8, 64))
    result = check(lambda x: x / x.sum(axis=(0, 2), keepdims=True), apart)
    assert "the reduction runs across rows, and its result is complete only at the end" in (
        reasons(result)
    )
    result = check(lambda x: x / x.sum(), rng.random((SERIAL_SIZE // 64 + 1, 64), np.float32))
    assert "every core needs the finished reduction first" in reasons(result)
    wide = rng.random((3, ROW_BYTES // 8 + 1))
    assert "elements does not stay in the cache" in reasons(check(softmax, wide))


def test_a_remark_is_where_the_user_wrote_it() -> None:
    def f(x: Any) -> Any:
        e = np.exp(x)
        return e[1:] - e[:-1]

    (remark,) = (r for r in fused(f, np.ones((5, 5))).remarks if r.kind == "missed")
    assert remark.topic == "fusion"
    assert remark.location is not None
    assert remark.location.source() == "e[1:] - e[:-1]"


def test_pieces_take_in_what_they_are_made_of(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        y[1:-1] = 0.5 * (x[2:] + x[:-2])
        return y

    assert kinds(check(f, rng.random(50))) == ["pieces"]
    result = check(lambda x: np.concatenate([np.exp(x), np.sin(x)]), rng.random((4, 5)))
    assert kinds(result) == ["pieces"]
    check(
        lambda x, v: np.concatenate([x, np.broadcast_to(np.exp(v), (3, 5))]),
        rng.random((4, 5)),
        rng.random(5),
    )


def test_reshapes_of_what_is_computed_are_memory(rng: np.random.Generator) -> None:
    result = check(lambda x: np.exp(x).reshape(-1) * 2, rng.random((6, 5)))
    assert kinds(result) == ["map", "map"]


# ------------------------------------------------------------------------------- paths and cycles


def test_a_library_between_two_elementwise_steps(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        a = np.exp(x)
        return a + np.sort(a, axis=1)

    result = check(f, rng.random((20, 20)))
    assert kinds(result) == ["map", "library", "map"]
    assert "a step between them needs all of the first" in reasons(result)


def between(second: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Two groups that both need p, one of them in another order; a third joins them."""

    def f(x: Any, y: Any) -> Any:
        p = second(x)
        z0 = np.exp(y)
        z1 = z0 + p.T
        z2 = z0 * 2
        return z1, p + z2

    return f


@pytest.mark.parametrize(
    "second",
    [
        np.exp,
        lambda x: x / x.sum(axis=1, keepdims=True),
        lambda x: x.sum(axis=1, keepdims=True),
        lambda x: np.sort(np.exp(x)),
        lambda x: (x - x.max(axis=0)) * 3,
        lambda x: np.pad(x[1:-1, 1:-1], 1),
    ],
)
def test_groups_that_need_each_other_twice(
    second: Callable[[Any], Any], rng: np.random.Generator
) -> None:
    check(between(second), rng.random((30, 30)), rng.random((30, 30)))


def test_siblings_that_wait_for_each_other(rng: np.random.Generator) -> None:
    """a and b walk over x, c and d over y; b needs d and c needs a: joining both is a cycle."""

    def f(x: Any, y: Any) -> Any:
        a, d = x.sum(axis=0), y.sum(axis=1)
        c = (y * np.sort(a)[None]).sum(axis=1)
        b = (x * np.sort(d)[:, None]).sum(axis=0)
        return a, b, c, d

    check(f, rng.random((300, 300)), rng.random((300, 300)))


def test_siblings_share_a_walk(rng: np.random.Generator) -> None:
    side = int(SIBLINGS**0.5) + 1
    x = rng.random((side, side))
    result = check(lambda x: (x.sum(), x.max(), (x * x).sum()), x)
    assert kinds(result) == ["reduce"]
    result = check(lambda x: (np.exp(x), np.sin(x) + 1), x)
    assert kinds(result) == ["map"]
    result = check(lambda x, y: (np.exp(x), np.sin(y)), x, x.copy())
    assert kinds(result) == ["map", "map"]  # nothing in common
    result = check(lambda x: (np.exp(x), np.sin(x)), x[:8, :8])
    assert kinds(result) == ["map", "map"]  # not worth it


def test_a_sibling_that_needs_the_other_is_none(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        a = x.sum(axis=1)
        b = (x * np.sort(a)[:, None]).sum(axis=1)
        return a, b

    result = check(f, rng.random((100, 100)))
    assert kinds(result) == ["reduce", "library", "reduce"]


def test_groups_come_after_what_they_read(rng: np.random.Generator) -> None:
    for seed in range(40):
        made = Program(seed)
        result = fused(made.function, *made.arguments)
        done: set[Any] = set()
        for group in result.groups:
            own = set(group.nodes)
            for node in group.nodes:
                for operand in result.graph.nodes:
                    if operand in node.inputs and any(operand in g.nodes for g in result.groups):
                        assert operand in own | done
            done |= own


def test_every_node_is_in_one_group() -> None:
    for seed in range(40):
        made = Program(seed)
        result = fused(made.function, *made.arguments)
        found = Counter(n for g in result.groups for n in g.nodes)
        assert set(found.values()) <= {1}
        for group in result.groups:
            assert set(group.outputs) <= set(group.nodes)
            assert group.outputs


def test_long_chains_are_one_kernel(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        for _ in range(600):
            x = x * 0.5 + 1
        return x

    assert len(check(f, rng.random(20)).groups) == 1


def test_long_expressions_without_names(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        values = [x]
        for _ in range(600):
            values.append(values[-1] * 0.5 + 1)
        return values[-1]

    assert len(check(f, rng.random(20)).groups) == 1


def test_an_escape_time_loop_is_one_kernel(rng: np.random.Generator) -> None:
    def mandelbrot(a: Any, b: Any) -> Any:
        x, y, count = a * 0, b * 0, np.zeros(a.shape, np.int64)
        for _ in range(60):
            x, y = x * x - y * y + a, 2 * x * y + b
            count += x * x + y * y < 4
        return count

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        check(mandelbrot, rng.uniform(-2, 1, 50), rng.uniform(-1, 1, 50))


# -------------------------------------------------- no element is computed more often than in NumPy


class Counting(interpreter._Frame):
    """Counts how often each function is evaluated; what one statement shares counts once."""

    counts: Counter[str]

    def statement(self, stmt: Stmt) -> None:
        self.known: dict[int, Any] = {}
        super().statement(stmt)

    def value(self, expr: Expr) -> Any:
        if not isinstance(expr, Apply | Select | Cast):
            return super().value(expr)
        if id(expr) not in self.known:
            self.known[id(expr)] = super().value(expr)
        return self.known[id(expr)]

    def function(self, expr: Apply, args: list[Any]) -> Any:
        self.counts[expr.fn] += 1
        return super().function(expr, args)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The evaluations of every function by the loop interpreter."""
    with monkeypatch.context() as patch:
        patch.setattr(Counting, "counts", Counter(), raising=False)
        patch.setattr(interpreter, "_Frame", Counting)
        yield Counting.counts


def agree(made: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """All levels agree with NumPy, and no exp is evaluated more often than NumPy evaluates it."""
    compiled = nbcomp.compile(made.function, *made.arguments)
    wanted = made.function(*made.arguments)
    for snapshot in compiled.trace.snapshots:
        if isinstance(snapshot.value, Kernel):
            verify(snapshot.value)
    for level, run in levels(compiled):
        with counted(monkeypatch) as counts:
            got = run(*(a.copy() for a in made.arguments))
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, err_msg=f"{level}\n{made}")
        if level.startswith("kernels"):
            exps = sum(n.type.size for n in compiled.captured.nodes if n.op.name == "exp")
            assert counts["exp"] <= exps, f"{counts['exp']} > {exps} {level}\n{made}"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: normal_columns(x * np.exp(w)[:, None]),
        lambda x, w: normal_columns(x.T * np.exp(w)),
        lambda x, w: (x * np.exp(w)[:, None]).max(axis=0),
        lambda x, w: (x[:, :3] * np.exp(w)[:, None]).sum(axis=0) * 2,
        lambda x, w: (x[:, None, :] * np.exp(w)[:, None, None]).sum(axis=(0, 2)),
        lambda x, w: (x * np.exp(w)[:, None]).T + np.ones((20, 30)),
        lambda x, w: np.exp(x @ x.T)[:, :, None] * np.ones(3),
        lambda x, w: np.exp(x.sum(axis=1))[:, None] * x,
    ],
)
def test_costly_values_are_computed_once_in_any_order_of_loops(
    function: Callable[..., Any], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = rng.random((30, 20)), rng.random(30)
    compiled = nbcomp.compile(function, x, w)
    wanted = sum(n.type.size for n in compiled.graph.nodes if n.op.name == "exp")
    for level, run in levels(compiled):
        with counted(monkeypatch) as counts:
            np.testing.assert_allclose(run(x, w), function(x, w), rtol=1e-12)
        assert counts["exp"] == wanted * level.startswith("kernels")


def normal_columns(y: Any) -> Any:
    e = np.exp(y - y.max(axis=0))
    return e / e.sum(axis=0)


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agree(Program(seed), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(10, 50))
def test_many_random_programs(hundred: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        agree(Program(seed), monkeypatch)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ((b := x * 2) * b.ravel()[:1], b + 1),
        lambda x: np.where(x > 0, (b := x * 2) * b.reshape(-1)[5], b),
        lambda x: (b := x * 2).sum(axis=1) * b.ravel()[3],
        lambda x: (b := x * 2) - b.reshape(x.shape[::-1])[:1, :1],
        lambda x: np.concatenate([b := x * 2, b.reshape(x.shape) + b]),
        lambda x: (b := x - x.max(axis=1, keepdims=True)) * b.ravel()[7],
    ],
)
def test_what_is_read_through_a_reshape_too_is_finished_first(function: Any) -> None:
    """A reshape is read from memory, at other places than the loops are at: b * b.ravel()[:1] was
    computed from what the memory held before."""
    x = np.linspace(-3, 4, 36 * 40).reshape(36, 40)
    graph = check(function, x)
    for group in graph.groups:
        inside = set(group.nodes)
        for node in group.nodes:
            for operand in node.inputs:
                assert source_of(operand) is base_of(operand) or source_of(operand) not in inside
