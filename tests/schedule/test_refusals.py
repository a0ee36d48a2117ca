"""What a step that is not legal gets: which loop, which dependence or which remainder, and what
would be legal instead.  Refusals of single steps are also in the tests of these."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Alloc, Buffer, Kernel, affine
from nbcomp.schedule import steps
from nbcomp.schedule.language import parse
from nbcomp.types import INT64
from tests.kernels import add_to, apply, buffer, cast, index, kernel, load, loop, number, store
from tests.programs import lowered
from tests.schedule.programs import (
    add_into,
    blur,
    carried,
    column_sums,
    matmul,
    product,
    row_sums,
    two_stages,
)

Make = Callable[[], Kernel]


def shifted() -> Kernel:
    """out[i + 1, j] = out[i, j] + 1: rows depend on each other, columns do not."""
    out = buffer("out", (9, 16), "output")
    value = apply("add", load(out, "i", "j"), number(1))
    inner = loop("j", 16, store(out, (index(1, i=1), "j"), value))
    return kernel(loop("i", 8, inner), buffers=[out])


def gathered() -> Kernel:
    """out[j] = x[int(t[j])]"""
    x, t, out = buffer("x", (20,)), buffer("t", (20,)), buffer("out", (20,), "output")
    value = load(x, cast(load(t, "j"), INT64))
    return kernel(loop("j", 20, store(out, ("j",), value)), buffers=[x, t, out])


def triangle() -> Kernel:
    """out[i] += x[j], j up to i."""
    x, out = buffer("x", (20,)), buffer("out", (20,), "output")
    inner = loop("j", affine(1, i=1), add_to(out, ("i",), load(x, "j")))
    return kernel(loop("i", 20, inner), buffers=[x, out])


def two_stage_sums() -> Kernel:
    """t[j] = Σ x[i, j] in parts, then out = t."""
    x, t = buffer("x", (6, 20)), buffer("t", (20,), "temp")
    out = buffer("out", (20,), "output")
    clear = loop("z", 20, store(t, ("z",), number(0)))
    adds = loop("i", 6, loop("j", 20, add_to(t, ("j",), load(x, "i", "j"))))
    return kernel(clear, adds, loop("k", 20, store(out, ("k",), load(t, "k"))), buffers=[x, t, out])


def two_loops_write() -> Kernel:
    """t[j] = x[j] + x[j] by two statements of one loop, then y = t."""
    x, t = buffer("x", (50,)), buffer("t", (50,), "temp")
    y = buffer("y", (50,), "output")
    first = loop("i", 50, store(t, ("i",), load(x, "i")), store(t, ("i",), load(x, "i")))
    return kernel(first, loop("j", 50, store(y, ("j",), load(t, "j"))), buffers=[x, y, t])


def squared_in_place() -> Kernel:
    """t[i] = t[i] + x[i], then y = t."""
    x, t = buffer("x", (50,)), buffer("t", (50,), "temp")
    y = buffer("y", (50,), "output")
    first = loop("i", 50, store(t, ("i",), apply("add", load(t, "i"), load(x, "i"))))
    return kernel(first, loop("j", 50, store(y, ("j",), load(t, "j"))), buffers=[x, y, t])


def every_other() -> Kernel:
    """t[2·i] = x[i], then y = t."""
    x, t = buffer("x", (25,)), buffer("t", (50,), "temp")
    y = buffer("y", (50,), "output")
    first = loop("i", 25, store(t, (index(i=2),), load(x, "i")))
    return kernel(first, loop("j", 50, store(y, ("j",), load(t, "j"))), buffers=[x, y, t])


def of_two() -> Kernel:
    """y = t + u, which other loops compute."""
    x, t, u = buffer("x", (50,)), buffer("t", (50,), "temp"), buffer("u", (50,), "temp")
    y = buffer("y", (50,), "output")
    both = loop("i", 50, store(t, ("i",), load(x, "i")), store(u, ("i",), load(x, "i")))
    value = apply("add", load(t, "j"), load(u, "j"))
    return kernel(both, loop("j", 50, store(y, ("j",), value)), buffers=[x, y, t, u])


def needs_what_follows() -> Kernel:
    """t = x; u = x·x; y = t + u: u is not there yet in the loop of t."""
    x, t, u = buffer("x", (50,)), buffer("t", (50,), "temp"), buffer("u", (50,), "temp")
    y = buffer("y", (50,), "output")
    first = loop("i", 50, store(t, ("i",), load(x, "i")))
    second = loop("k", 50, store(u, ("k",), apply("square", load(x, "k"))))
    value = apply("add", load(t, "j"), load(u, "j"))
    return kernel(first, second, loop("j", 50, store(y, ("j",), value)), buffers=[x, y, t, u])


def two_sums() -> Kernel:
    """s[i] and t[i] are both Σ x[i, k]."""
    x = buffer("x", (6, 20))
    s, t = buffer("s", (6,), "output"), buffer("t", (6,), "output")
    adds = (add_to(b, ("i",), load(x, "i", "k")) for b in (s, t))
    return kernel(loop("i", 6, loop("k", 20, *adds)), buffers=[x, s, t])


def apart() -> Kernel:
    """out[i] = x[i] + x[2·i]: two places that no box holds."""
    x, out = buffer("x", (40,)), buffer("out", (20,), "output")
    value = apply("add", load(x, "i"), load(x, index(i=2)))
    return kernel(loop("i", 20, store(out, ("i",), value)), buffers=[x, out])


def as_two_shapes() -> Kernel:
    """out[i] = x[i] + x as rows of 5."""
    x, out = buffer("x", (20,)), buffer("out", (20,), "output")
    rows = Buffer("x_rows", x.dtype, (4, 5), (5, 1), "input", "x")
    value = apply("add", load(x, "i"), load(rows, 0, 0))
    return kernel(loop("i", 20, store(out, ("i",), value)), buffers=[x, rows, out])


def short_rows() -> Kernel:
    """y[i, k] = x[i, k], k up to i, in a loop whose last loop has as many."""
    x, y = buffer("x", (8, 8)), buffer("y", (8, 8), "output")
    t = buffer("t", (8,), "local")
    early = loop("j", affine(1, i=1), store(t, ("j",), load(x, "i", "j")))
    late = loop("k", affine(1, i=1), store(y, ("i", "k"), load(t, "k")))
    return kernel(loop("i", 8, Alloc(t), early, late), buffers=[x, y])


def short_pairs() -> Kernel:
    """y[i, k] = z[i, k] = x[i, k], k up to i."""
    x = buffer("x", (8, 8))
    y, z = buffer("y", (8, 8), "output"), buffer("z", (8, 8), "output")
    both = (store(b, ("i", "k"), load(x, "i", "k")) for b in (y, z))
    return kernel(loop("i", 8, loop("k", affine(1, i=1), *both)), buffers=[x, y, z])


REFUSED: tuple[tuple[Make, str, str, str], ...] = (
    # which dependence, and which loops are free of it
    (
        shifted,
        'vectorize("i")',
        r"iterations of i are not independent: they share out (out[i, j] is read, out[i + 1, j] is "
        "written)",
        "the iterations of j may run in any order",
    ),
    (carried, 'vectorize("i")', "(out[i] is read, out[i + 1] is written)", ""),
    (
        add_into,
        'parallelize("i")',
        "iterations of i add to the same elements of out (out[j] is added to)",
        "the iterations of j may run in any order",
    ),
    (row_sums, 'parallelize("r")', "r is not an outermost loop", "the outermost loops are i"),
    (row_sums, 'parallelize("q")', "no loop q; the loops are i, r", ""),
    # which remainder, and what would leave none
    (
        matmul,
        'split("j", 16)\nunroll("j")',
        "the extent of j is not a constant: minimum(16, -16*j_o + 40)",
        'the last of the blocks that j_o counts has 8 iterations, not 16: peel("j_o", 1) before, '
        "or split by a number that divides 40",
    ),
    (matmul, 'split("j", 16)\nsplit("j", 4)', "the extent of j is not a constant", "peel("),
    (matmul, 'split("j", 16)\npeel("j")', "the extent of j is not a constant", "peel("),
    (triangle, 'unroll("j")', "the extent of j is not a constant: i + 1", ""),
    (triangle, 'interchange("i", "j")', "the extent of j depends on i", ""),
    (triangle, 'rfactor("j")', "the extent of j is not a constant", ""),
    # nests that are not what they should be
    (
        matmul,
        'interchange("j", "k")',
        "k is not the only statement of j",
        'distribute("j") gives each statement of j a loop of its own',
    ),
    (matmul, 'interchange("i", "k")', "k is not the only", "the loops right inside i are j"),
    (matmul, 'tile("i", "j", 0, 4)', "i cannot be split into blocks of 0", ""),
    (matmul, 'tile_sums("i", "k")', "k is not the only statement of i", ""),
    (matmul, "tile_sums()", "give the loops of a tile, outermost first", ""),
    (shifted, 'tile_sums("i", "j")', "iterations of i are not independent", ""),
    (shifted, 'distribute("i")', "i has a single statement", ""),
    (matmul, 'reorder("i")', "give two or more different loops", ""),
    # numbers that are too large, too small, or none
    (matmul, 'interleave("j", 2)', "j is not a vector loop", ""),
    (matmul, 'vectorize("j", unroll=65)', "j cannot run 65 vectors at a time: 1 to 64", ""),
    (matmul, 'split("i", 99999999999)', "by is too large: more than 2,147,483,648", ""),
    (
        lambda: matmul(2, 100, 100),
        'unroll("j")\nunroll("k")',
        "k and the loops written out with it make 10,000 copies, more than 4,096",
        "split k, and unroll the inner loop",
    ),
    (
        lambda: matmul(400, 400, 2),
        'distribute("j")\ndistribute("i")',
        "s would take 640,000 bytes for all iterations of i, over 262,144",
        "split the loops first",
    ),
    (
        lambda: matmul(400, 400, 2),
        'tile_sums("i", "j")',
        "s would take 640,000 bytes for a tile of i, j",
        "split the loops first",
    ),
    (
        lambda: matmul(3, 10),
        'distribute("j")\ndistribute("i")\npad("s", 100000)',
        "s would take 1,200,000 bytes with rows of 100,000",
        "",
    ),
    (matmul, 'pack("b", 1, 4096)', "cannot be packed in blocks of 4096: axis 1 has 40", ""),
    (lambda: matmul(2, 300, 300), 'stage("b", "i")', "uses 360,000 bytes", "stage it at a loop"),
    (lambda: product(70, 40), "split_product(0, 0, 0)", "no 0 parts along axis 0", ""),
    (lambda: product(70, 40), "split_product(0, 2, 7)", "no 2 parts along axis 7", ""),
    (lambda: product(70, 40), "split_product(5, 2, 0)", "stage 5 is not a whole product", "0"),
    (lambda: product(70, 40), "generate(1)", "stage 1 is not", "whole products are the stages 0"),
    # what is computed elsewhere
    (matmul, 'inline("a")', "a is passed by the caller", ""),
    (two_stage_sums, 'inline("t")', "t is not computed by one stage", ""),
    (two_stages, 'compute_at("t", "i")', "i is in the loops that compute t", ""),
    (two_stages, 'reverse_compute_at("y", "j")', "j is in the loops that compute y", ""),
    (blur, 'reverse_compute_at("y", "i")', "y is not made element by element", ""),
    (matmul, 'stage("s", "i")', "s is allocated inside i: it is near already", ""),
    (matmul, 'software_pipeline("s", "j")', "every iteration of j reads the same part of s", ""),
    (
        matmul,
        'vectorize("i")\nannotate("i", "x")\ninterchange("i", "j")\nvectorize("j")',
        "loop i inside j is a vector loop already",
        "",
    ),
    (
        matmul,
        'vectorize("i")\nvectorize("j")',
        "loop i around j is a vector loop already",
        "",
    ),
    (
        matmul,
        'split("j", 8)\nparallelize("i")\nreorder("j_o", "j", "i")',
        'reorder("j_o", "j", "i"): there would be a parallel loop inside another statement: i',
        "steps that shape a nest come before",
    ),
    (
        matmul,
        'unroll("j")\nsplit("j", 16)',
        "there would be a loop to write out whose extent is not a constant: j",
        "steps that shape a nest come before",
    ),
    (
        two_stages,
        'peel("i", 2)\nreverse_compute_at("y", "i")',
        "i computes a part of t: the rest is elsewhere",
        "",
    ),
    (
        two_stages,
        'prefetch("t", "j", 2)\ninline("t")',
        "t is fetched ahead: that comes after it has its place",
        "",
    ),
    (gathered, 'stage("x", "j")', "data says where x is accessed", ""),
    (gathered, 'pack("x", 0, 4)', "data says where x is read along axis 0", ""),
    (column_sums, 'rfactor("z")', "z does not only add up", ""),
    (two_stages, 'fuse("i", "j")', "j is not the only statement of i", ""),
    (two_stages, 'join("i", "i")', "i does not follow i", ""),
    # loops that do not stand to each other as they should
    (matmul, 'interchange("j", "i")', "i is not the only", "i is around j: give the outer loop"),
    (matmul, 'tile("i", "i", 2, 2)', "i is given twice: two different loops are wanted", ""),
    (two_stages, 'fuse("i", "j")', "j is not the only", 'join("i", "j") walks them as one'),
    (matmul, 'fuse("i", "j")', "b is not walked along both i and j", "two axes of each"),
    (matmul, 'distribute("i")', "nothing to distribute", "loops with several are j"),
    (matmul, 'rfactor("i")', "i does not only add up", "loops that only add to one buffer are k"),
    (matmul, 'software_pipeline("c", "k")', "c is not used in k", "that use it are i, j"),
    # loops of which it has been said how they run
    (matmul, 'parallelize("i")\nvectorize("i")', "i is spread over the cores already", "split i"),
    (matmul, 'unroll("j")\nvectorize("j")', "j is written out already", "split j before"),
    (matmul, 'vectorize("j")\nunroll("j")', "j is a vector loop already", "split j before"),
    (matmul, 'interleave("j", 2)', "j is not a vector loop", 'vectorize("j") before'),
    # names and numbers of steps
    (matmul, 'split("I", 4)', "no loop I (did you mean i?); the loops are i, j, k", ""),
    (matmul, 'split("", 4)', "no loop ''; the loops are", ""),
    (matmul, 'split("i\\u202e", 4)', r"no loop 'i\u202e' (did you mean i?)", ""),
    (matmul, 'stage("B", "j")', "no buffer B (did you mean b?); the buffers are a, b, c, s", ""),
    (matmul, 'split("i", -4)', "i cannot be split into blocks of -4: they are of 1 or more", ""),
    (matmul, 'pack("b", 1, 0)', "blocks of 0: axis 1 has 40", "blocks are of 2 to 80 elements"),
    (matmul, 'pack("s", 0, 4)', "s has no axis 0: it has none", ""),
    (matmul, "generate(0)", "stage 0 is not a whole product", "its products are loops"),
    (row_sums, 'reverse_compute_at("x", "i")', "x is passed by the caller: it is not computed", ""),
    # what is not made element by element, or not there yet
    (two_loops_write, 'inline("t")', "t is not computed by one statement in perfect loops", ""),
    (squared_in_place, 'inline("t")', "t is computed from itself", ""),
    (every_other, 'inline("t")', "t is not computed one element per iteration", ""),
    (every_other, 'reverse_compute_at("y", "i")', "i computes a part of t", ""),
    (of_two, 'reverse_compute_at("y", "i")', "y is not made from one result of these loops", ""),
    (needs_what_follows, 'reverse_compute_at("y", "i")', "something y needs is not there yet", ""),
    (
        every_other,
        'split("i", 5)\nreverse_compute_at("y", "i_o")',
        "i_o computes t only here and there",
        "",
    ),
    # what is no box, or has no size
    (apart, 'stage("x", "i")', "x is accessed in several places along axis 0", ""),
    (as_two_shapes, 'stage("x", "i")', "x is also accessed in another shape", ""),
    (lambda: product(70, 40), 'pack("a", 1, 2)', "a is passed to blas.gemm", ""),
    (two_sums, 'rfactor("k")', "k adds to several buffers", ""),
    (
        lambda: add_into(1000, 70),
        'rfactor("i")',
        "1,000 parts of out take 280,000 bytes",
        "split i",
    ),
    (triangle, 'tile_sums("i")', "the extent of j is not the same for the whole tile", ""),
    (short_rows, 'overlap("i", "j", "k")', "the extent of k depends on i", ""),
    (triangle, 'stage("x", "i")', "the part of x that is used has no constant size", ""),
    (short_pairs, 'distribute("k")', "the extent of k is not a constant", ""),
)


@pytest.mark.parametrize(("make", "text", "message", "hint"), REFUSED)
def test_a_refusal_says_what_and_what_would_do(
    make: Make, text: str, message: str, hint: str
) -> None:
    *before, last = text.splitlines()
    k = parse("\n".join(before))(make())
    with pytest.raises(ScheduleError) as caught:
        parse(last)(k)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert bool(hint) or "peel" not in caught.value.hint


WRITTEN: tuple[tuple[str, str], ...] = (
    ('split("i", factor=4)', "no argument factor; the arguments are loop, by"),
    ('split("i", 4, 5)', "too many positional arguments"),
    ("split(i, 4)", "line 1: arguments are names in quotes and whole numbers"),
    ('split("i", 2 + 2)', "line 1: arguments are names in quotes and whole numbers"),
    ('x = 3\nsplit("i", 4)', "line 1: a step is written as a call such as"),
    ('splt("i", 4)', "no step splt (did you mean split?)"),
    ("{bad", "not a saved schedule, since no JSON"),
    ('{"format": 1}', 'not a saved schedule: "steps" is missing'),
    ('{"format": "1"}', 'not a saved schedule: "format" is not a whole number'),
    ('{"format": 1, "steps": {"a": 1}}', 'not a saved schedule: "steps" is not a list'),
    ('{"format": 1, "steps": [{"step": "split"}]}', '"arguments" is missing'),
    ('{"format": 1, "steps": [7]}', 'not a saved schedule: "step" is missing'),
    ('{"format": 2, "steps": []}', "a schedule of format 2; this version reads 1"),
)


@pytest.mark.parametrize(("text", "message"), WRITTEN)
def test_what_is_no_schedule_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    assert message in caught.value.message


def test_the_step_is_named_with_its_number_and_the_hint_stays() -> None:
    with pytest.raises(ScheduleError) as caught:
        parse('split("j", 16)\nunroll("j")')(matmul())
    assert caught.value.message.startswith('step 2, unroll("j"): the extent of j is not a constant')
    assert re.search(r"\nhint: the last of the blocks", str(caught.value))


def test_locals_may_be_as_large_as_the_stack_has_room() -> None:
    k = steps.distribute(steps.distribute(matmul(250, 250, 2), "j"), "i")
    assert "s: f32[250, 250]" in str(k)


def test_a_product_that_a_library_computes_has_no_loops_yet() -> None:
    square = np.ones((40, 40), np.float32)
    (step,) = lowered(lambda a, b: a @ b, square, square, calls=True).steps
    called = step.kernel  # type: ignore[union-attr]
    with pytest.raises(ScheduleError) as refused:
        steps.tile(called, "i", "j", 5, 7)
    assert refused.value.hint == ("the product is a call of BLAS: generate(0) writes its loops out")
    written = steps.generate(called, 0)
    steps.tile(written, "i", "j", 5, 7)
    with pytest.raises(ScheduleError) as refused:
        steps.reorder(written, "k", "j", "i")
    assert 'distribute("j")' in refused.value.hint
    steps.distribute(steps.distribute(written, "j"), "i")


def test_the_same_step_twice_is_none() -> None:
    once = steps.vectorize(row_sums(), "i")
    with pytest.raises(ScheduleError, match="i is a vector loop already"):
        steps.vectorize(once, "i")
    assert steps.vectorize(once, "i", 2) != once
