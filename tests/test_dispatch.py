"""Library dispatch: routines that a user brings along, in place of the patterns they stand for."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.display.view.headline import title
from nbcomp.errors import NbcompError
from nbcomp.levels import levels
from nbcomp.nn import functional as F
from nbcomp.record import Remark
from nbcomp.runtime.plan import HostStep, Step
from nbcomp.target.llvm.blas import _cython_blas


def linear_relu(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w.T + b, 0)


class Mlp(nn.Module):
    """The model with which library dispatch is introduced."""

    def __init__(self) -> None:
        self.fc1 = nn.Linear(12, 8)
        self.fc2 = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        return self.fc2(F.relu(self.fc1(x)))


def compiled_with(*libraries: Any) -> Any:
    return nbcomp.compile_for("llvm", nbcomp.Options(libraries=libraries))


def sgemm(*arrays: Any) -> tuple[Any, ...]:
    """The arguments of BLAS for out = x @ w.T, of arrays in C order."""
    out, x, w = arrays
    rows, columns = out.shape
    one, zero = np.float32(1), np.float32(0)
    steps = (w.strides[0], x.strides[0], out.strides[0])
    sizes = (columns, rows, x.shape[1])
    return "T", "N", *sizes, one, w, steps[0], x, steps[1], zero, out, steps[2]


def with_sgemm(**options: Any) -> Any:
    library = nbcomp.Library("cblas")
    pointer = _cython_blas().__pyx_capi__["sgemm"]
    library.c_routine("sgemm", lambda x, w: x @ w.T, pointer, sgemm, by_reference=True, **options)
    return library


def texts(compiled: Any, kind: str) -> list[str]:
    found: list[Remark] = compiled.trace.remarks
    return [r.reason for r in found if r.topic == "routine" and r.kind == kind]


def test_linear_with_bias_and_relu_is_one_call_and_the_second_bias_stays(
    rng: np.random.Generator, golden: Any
) -> None:
    library, model = nbcomp.Library("mylib"), Mlp()
    calls = []

    @library.routine(linear_relu, where=lambda x, w, b: x.dtype == np.float32)
    def fused(x: Any, w: Any, b: Any, out: Any) -> None:
        calls.append(x.shape)
        np.matmul(x, w.T, out=out)
        out += b
        np.maximum(out, 0, out=out)

    x = rng.standard_normal((6, 12)).astype(np.float32)
    made = compiled_with(library)(model, x)
    graphs = {s.name: s.text for s in made.trace.snapshots if s.level == "graph"}
    golden(f"{_plain(graphs['expand'])}\n{_plain(graphs['dispatch'])}")
    np.testing.assert_allclose(made(x), model(x), rtol=1e-5, atol=1e-6)
    assert calls == [(6, 12)]
    (said,) = texts(made, "applied")
    assert "matmul + add + maximum: a call of mylib.fused" in said
    assert any(isinstance(s, HostStep) and s.name == "mylib.fused" for s in made.plan.steps)


def _plain(text: str) -> str:
    """A graph without the numbers of lines of a file."""
    return "\n".join(line.split("  #")[0].rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("shape", [(6, 12), (1, 12), (0, 12)])
def test_a_c_function_is_called_inside_the_native_function(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    model, x = Mlp(), rng.standard_normal(shape).astype(np.float32)
    made = compiled_with(with_sgemm())(model, x)
    np.testing.assert_allclose(made(x), model(x), rtol=1e-5, atol=1e-6)
    steps = [s for s in made.plan.steps if s.name == "cblas.sgemm"]
    assert len(steps) == 2
    assert all(isinstance(s, Step) for s in steps)


def test_operands_of_c_functions_are_in_c_order(rng: np.random.Generator) -> None:
    x = rng.standard_normal((12, 6)).astype(np.float32)[:, ::2].T
    w = np.asfortranarray(rng.standard_normal((5, 12)).astype(np.float32))
    made = compiled_with(with_sgemm())(lambda x, w: (x @ w.T) * 2, x, w)
    np.testing.assert_allclose(made(x, w), (x @ w.T) * 2, rtol=1e-5, atol=1e-6)
    copies = [r for r in made.trace.remarks if r.topic == "copy"]
    assert len(copies) == 2
    assert all("functions of C get their operands in C order" in r.reason for r in copies)


def test_operands_that_may_change_places_are_found_in_either_order(
    rng: np.random.Generator,
) -> None:
    library = nbcomp.Library("mylib")
    library.routine(linear_relu)(linear_relu)
    arrays = [rng.random(s, np.float32) for s in ((3, 4), (5, 4), (5,))]

    def other(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(0, b + x @ w.T)

    made = compiled_with(library)(other, *arrays)
    assert len(texts(made, "applied")) == 1
    np.testing.assert_array_equal(made(*arrays), linear_relu(*arrays))


def test_lengths_that_are_open(rng: np.random.Generator) -> None:
    library = with_sgemm()
    library.routine(linear_relu)(linear_relu)
    w, b = rng.random((5, 4), np.float32), rng.random(5, np.float32)
    made = compiled_with(library)(linear_relu, nbcomp.f32["n", 4], w, b)
    for rows in (1, 3, 8):
        x = rng.random((rows, 4), np.float32)
        np.testing.assert_allclose(made(x, w, b), linear_relu(x, w, b), rtol=1e-6)
    plain = compiled_with(library)(lambda x, w: x @ w.T, nbcomp.f32["n", 4], w)
    for rows in (1, 3, 8):
        x = rng.random((rows, 4), np.float32)
        np.testing.assert_allclose(plain(x, w), x @ w.T, rtol=1e-6)


def test_where_says_for_which_types(rng: np.random.Generator) -> None:
    made = compiled_with(with_sgemm(where=lambda x, w: x.dtype == np.float32))
    x, w = rng.random((3, 4)), rng.random((5, 4))
    found = made(lambda x, w: x @ w.T, x, w)
    assert texts(found, "missed") == [
        "`x @ w.T`: matmul: cblas.sgemm is not for f64[3, 4], f64[5, 4]"
    ]
    np.testing.assert_allclose(found(x, w), x @ w.T)


def test_mistakes_in_a_rule_are_said_of_the_rule(rng: np.random.Generator) -> None:
    def where(x: Any, w: Any) -> Any:
        return x.kind == "f"  # the user's mistake

    def seconds(x: Any, w: Any) -> Any:
        return "fast"

    x, w = rng.random((3, 4)), rng.random((5, 4))
    for options, words in (
        ({"where": where}, "`where` of cblas.sgemm failed for f64[3, 4], f64[5, 4]: Attribute"),
        ({"seconds": seconds}, "`seconds` of cblas.sgemm failed for f64[3, 4], f64[5, 4]: Value"),
    ):
        with pytest.raises(NbcompError) as raised:
            compiled_with(with_sgemm(**options))(lambda x, w: x @ w.T, x, w)
        assert type(raised.value) is NbcompError
        assert raised.value.message.startswith(words)
        if "where" in options:
            assert raised.value.location is not None
            assert "the user's mistake" in raised.value.location.source_line()


@pytest.mark.parametrize(("seconds", "kind"), [(1e-12, "applied"), (1.0, "missed")])
def test_the_faster_one_is_chosen(seconds: float, kind: str, rng: np.random.Generator) -> None:
    library = with_sgemm(seconds=lambda x, w: seconds)
    x, w = rng.random((3, 4), np.float32), rng.random((5, 4), np.float32)
    made = compiled_with(library)(lambda x, w: x @ w.T, x, w)
    (said,) = texts(made, kind)
    assert "the compiler's own code" in said
    np.testing.assert_allclose(made(x, w), x @ w.T, rtol=1e-6)


def test_what_is_read_elsewhere_is_no_match(rng: np.random.Generator) -> None:
    library = nbcomp.Library("mylib")
    library.routine(linear_relu)(linear_relu)
    arrays = [rng.random(s, np.float32) for s in ((3, 4), (5, 4), (5,))]

    def both(x: Any, w: Any, b: Any) -> Any:
        before = x @ w.T + b
        return np.maximum(before, 0), before

    made = compiled_with(library)(both, *arrays)
    assert not texts(made, "applied")


def test_check_finds_a_routine_that_computes_something_else(rng: np.random.Generator) -> None:
    library = nbcomp.Library("mylib")
    library.routine(lambda x, y: x + y)(lambda x, y: x - y)
    x = rng.random(5)
    made = compiled_with(library)(lambda x: x + 1.5 * x, x)
    wrong = [name for name, run in levels(made) if not np.allclose(run(x), 2.5 * x)]
    assert wrong == ["machine code"]


def test_a_result_of_another_type_is_refused(rng: np.random.Generator) -> None:
    library = nbcomp.Library("mylib")
    library.routine(lambda x, y: x + y)(lambda x, y: (x + y)[:-1])
    x = rng.random(5)
    made = compiled_with(library)(lambda x: x + x * 2, x)
    with pytest.raises(NbcompError, match=r"gave f64\[4\], but what it stands for is f64\[5\]"):
        made(x)


def test_what_a_routine_raises_is_seen(rng: np.random.Generator) -> None:
    library = nbcomp.Library("mylib")

    @library.routine(lambda x, y: x @ y)
    def broken(x: Any, y: Any) -> Any:
        raise RuntimeError("no licence")

    x = rng.random((3, 3))
    fast = nbcomp.jit(lambda x: x @ x, libraries=[library])
    with pytest.raises(RuntimeError, match="no licence"):
        fast(x)


def test_jit_takes_libraries_and_keeps_them_in_parts(rng: np.random.Generator) -> None:
    library, seen = nbcomp.Library("mylib"), []

    @library.routine(lambda x, y: x @ y)
    def product(x: Any, y: Any) -> Any:
        seen.append(x.shape)
        return x @ y

    @nbcomp.jit(libraries=[library])
    def f(x: Any) -> Any:
        y = x @ x
        print(end="")
        return y @ x

    x = rng.random((3, 3))
    np.testing.assert_allclose(f(x), x @ x @ x)
    assert len(seen) == 2
    again = nbcomp.jit(f)
    assert again is f
    assert nbcomp.jit(f, libraries=[nbcomp.Library("other")]) is not f


def test_functions_of_ctypes_with_values(rng: np.random.Generator) -> None:
    """memcpy, which takes pointers and a size_t by value."""
    memcpy = ctypes.CDLL(None).memcpy
    library = nbcomp.Library("c")
    library.c_routine(
        "memcpy",
        lambda x: x * 1.0,
        memcpy,
        lambda out, x: (out, x, np.int64(x.type.nbytes)),
    )
    x = rng.random((4, 5))
    made = compiled_with(library)(lambda x: (x * 1.0).sum(0), x)
    assert texts(made, "applied")
    np.testing.assert_allclose(made(x), x.sum(0))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda lib: lib.routine(lambda x: x + 1)(lambda x, y: x), TypeError, "other arguments"),
        (lambda lib: nbcomp.Library("my lib"), ValueError, "one like mylib"),
        (
            lambda lib: lib.c_routine("f", lambda x: -x, "sgemm", lambda *a: a),
            TypeError,
            "an address, a function of ctypes or a PyCapsule, not str",
        ),
        (
            lambda lib: lib.c_routine("f", lambda x: -x, 0, lambda *a: a),
            ValueError,
            "null pointer",
        ),
    ],
)
def test_bad_routines_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(nbcomp.Library("mylib"))


def test_bad_patterns_and_arguments_name_the_routine(rng: np.random.Generator) -> None:
    library = nbcomp.Library("mylib")
    library.routine(lambda x, y: x + 1)(lambda x, y: x)
    with pytest.raises(NbcompError, match=r"mylib\.<lambda>: .*nothing from its argument y"):
        compiled_with(library)(lambda x: x + 1, rng.random(3))
    library = nbcomp.Library("mylib")
    library.c_routine("f", lambda x: -x, 1, lambda out, x: (out, x, "long"))
    with pytest.raises(NbcompError, match="cannot be passed 'long'"):
        compiled_with(library)(lambda x: -x, rng.random(3))


def test_a_pattern_that_raises_is_named_with_its_line(rng: np.random.Generator) -> None:
    lib = nbcomp.Library("lib")
    lib.routine(lambda a: a.foo())(lambda a: a)
    x = rng.standard_normal(8).astype(np.float32)
    with pytest.raises(nbcomp.NbcompError, match=r"pattern of lib\.<lambda> fails") as refused:
        nbcomp.compile(lambda a: np.sin(a) + 1, x, libraries=lib)
    assert "AttributeError" in refused.value.message
    assert refused.value.location is not None
    assert refused.value.location.source() == "a.foo"


def test_reports_name_the_routine(rng: np.random.Generator) -> None:
    library = nbcomp.Library("mylib")
    library.routine(linear_relu)(linear_relu)
    arrays = [rng.random(s, np.float32) for s in ((3, 4), (5, 4), (5,))]
    made = compiled_with(library)(linear_relu, *arrays)
    assert "1 library call (mylib.linear_relu)" in title(made)


def changing(x: Any) -> Any:
    x += 1
    return x


def changing_by_ufunc(x: Any) -> Any:
    return np.add(x, 1, out=x)


def changing_a_part(x: Any) -> Any:
    x[0, ::2] = 0
    return x + 1


@pytest.mark.parametrize("routine", [changing, changing_by_ufunc, changing_a_part])
@pytest.mark.parametrize("make", [nbcomp.jit, compiled_with])
def test_routines_that_write_to_their_arguments_are_refused(make: Any, routine: Any) -> None:
    library = nbcomp.Library("mine")
    library.routine(lambda x: x + 1)(routine)
    x = np.zeros((3, 4))

    def function(x: Any) -> Any:
        return np.sqrt(x + 1)

    jitted = nbcomp.jit(function, libraries=[library])
    call = jitted if make is nbcomp.jit else compiled_with(library)(function, x)
    with pytest.raises(NbcompError, match=f"mine.{routine.__name__} writes to an array") as caught:
        call(x)
    assert "copy" in str(caught.value)
    np.testing.assert_array_equal(x, 0)


def test_routines_may_write_to_copies_and_to_out() -> None:
    library = nbcomp.Library("mine")

    @library.routine(lambda x: x + 1)
    def increased(x: Any, out: Any) -> None:
        x = x.copy()
        x += 1
        out[...] = x

    x = np.zeros((3, 4))
    np.testing.assert_array_equal(nbcomp.jit(lambda x: (x + 1) * 2, libraries=[library])(x), 2)
    np.testing.assert_array_equal(x, 0)


def test_other_errors_of_routines_are_the_users_own() -> None:
    library = nbcomp.Library("mine")

    @library.routine(lambda x: x + 1)
    def failing(x: Any) -> Any:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        nbcomp.jit(lambda x: (x + 1) * 2, libraries=[library])(np.zeros(3))
