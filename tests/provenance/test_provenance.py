"""Every machine instruction in a loop comes from a line of the user's or a named construct."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nbcomp.compiled import Compiled
from nbcomp.options import Options
from nbcomp.origin import Construct, Line
from nbcomp.pipeline import compile, compile_for
from nbcomp.provenance import instruction_mix, listing
from nbcomp.record import Location
from tests.provenance.programs import Array, gelu, one_a_line, programs, softmax

ENOUGH = 0.95  # of the instructions in loops


@pytest.fixture(scope="module")
def compiled() -> Callable[[str], Compiled]:
    """A program by name, compiled for this machine; its products are calls of BLAS."""
    every, options = programs(), Options(without=frozenset({"generate"}))
    known: dict[str, Compiled] = {}

    def find(name: str) -> Compiled:
        if name not in known:
            function, args = every[name]
            known[name] = compile_for("llvm", options)(function, *args)
        return known[name]

    return find


def lines_with(compiled: Compiled, pattern: str) -> list[Line]:
    """The lines of the assembly that fit."""
    every = (line for k in compiled.kernels for line in listing(compiled, k, "asm"))
    return [line for line in every if re.search(pattern, line.text)]


def spans(line: Line) -> set[str]:
    """The user's expressions a line came from."""
    return {place.source() for place in line.places}


# ------------------------------------------------------------------------------------- the figure


@pytest.mark.parametrize("name", programs())
def test_instructions_in_loops_are_mapped(name: str, compiled: Callable[[str], Compiled]) -> None:
    table = compiled(name).provenance()
    assert len(table.in_loops) > 10
    assert table.mapped >= ENOUGH
    assert sum(bool(row.lines) for row in table.in_loops) / len(table.in_loops) > 0.9


def test_rows_are_instructions_with_the_lines_of_the_cell(
    compiled: Callable[[str], Compiled],
) -> None:
    table = compiled("digits").provenance()
    assert {row.kernel for row in table} == {k.name for k in compiled("digits").kernels}
    assert {n for row in table for n in row.lines} == {2, 3, 4, 5}
    assert {row.construct for row in table} <= set(Construct)
    assert all(row.text and row.kind for row in table)


CPUS = ("sse2", "avx2", "avx512", "neon", "sve", "rvv", "wasm", "ptx")


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", programs())
def test_they_are_on_every_cpu(name: str, cpu: str, compiled: Callable[[str], Compiled]) -> None:
    table = compiled(name).for_cpu(cpu).provenance()
    assert len(table.in_loops) > 10
    # Spills of whole RISC-V registers go through a pointer and are not recognised.
    assert table.mapped >= (0.9 if cpu == "rvv" else ENOUGH)


# ------------------------------------------------------------------------------- the right answer

# What each line of `one_a_line` becomes.
ONE_A_LINE = {"add": 1, "mul": 2, "div": 3, "compare": 4, "store": 4}


@pytest.mark.parametrize("cpu", ["host", *CPUS])
def test_each_instruction_is_at_the_line_of_its_operator(cpu: str) -> None:
    a = np.ones(1001, np.float32)
    table = compile(one_a_line, a, a).for_cpu(cpu).provenance()
    first = one_a_line.__code__.co_firstlineno
    seen = set()
    for row in table.in_loops:
        wanted = ONE_A_LINE.get(row.kind)
        # In the tail, masks are made by additions and comparisons of whole numbers.
        masks = row.construct == Construct.TAIL and row.kind not in ("mul", "div")
        if wanted and not masks and row.construct not in (Construct.SPILL, Construct.LOOP):
            assert row.lines == (first + wanted,), row
            seen.add(row.kind)
    assert seen >= {"add", "mul", "div", "store"}


HOST = re.search(r"AVX-512|256-bit", compile(gelu, np.ones(9, np.float32)).target)
vectors = pytest.mark.skipif(HOST is None, reason="needs FMA")


@vectors
def test_the_polynomial_of_exp_is_that_of_the_users_exp(
    compiled: Callable[[str], Compiled],
) -> None:
    found = lines_with(compiled("digits"), "vf[n]?m(add|sub)")
    assert len(found) >= 8
    assert {s for line in found for s in spans(line)} == {
        "np.exp(z - z.max(axis=-1, keepdims=True))"
    }


@vectors
def test_the_division_is_the_users_division(compiled: Callable[[str], Compiled]) -> None:
    found = lines_with(compiled("digits"), "vdivps")
    assert found
    assert {s for line in found for s in spans(line)} == {"e / e.sum(axis=-1, keepdims=True)"}


@vectors
def test_constants_belong_to_the_expressions_that_use_them(
    compiled: Callable[[str], Compiled],
) -> None:
    loaded = [x for x in lines_with(compiled("softmax"), "vbroadcastss.*\\(") if not x.in_loop]
    assert loaded
    assert {line.construct for line in loaded} == {Construct.CONSTANT}
    assert all(line.places for line in loaded)
    data = lines_with(compiled("softmax"), r"\.long\s+0x3fb8aa3b")  # log2(e), in exp only
    assert {s for x in data for s in spans(x)} == {"np.exp(z - z.max(axis=-1, keepdims=True))"}


def test_stores_of_the_result_are_the_last_expression(
    compiled: Callable[[str], Compiled],
) -> None:
    stores = [x for x in lines_with(compiled("gelu"), "") if x.kind == "store" and x.in_loop]
    assert stores
    assert {s for x in stores for s in spans(x)} == {"0.5 * x * (1 + np.tanh(inner))"}


def test_loops_are_at_the_lines_of_what_they_compute(compiled: Callable[[str], Compiled]) -> None:
    (kernel,) = compiled("softmax").kernels
    first = softmax.__code__.co_firstlineno
    heads = [x.numbers for x in listing(compiled("softmax"), kernel, "loop") if " for " in x.text]
    assert heads[0] == (first + 1, first + 2)  # rows: all of it
    assert heads[1] == (first + 1,)  # the maximum
    assert heads[-1][-1] == first + 2  # the division


def test_the_parts_of_a_loop_have_names(compiled: Callable[[str], Compiled]) -> None:
    counts = compiled("softmax").provenance().counts()
    for construct in (Construct.LOOP, Construct.TAIL, Construct.COPY, Construct.REDUCTION):
        assert counts[construct] > 0, construct
    assert counts[""] > 0
    calls = compiled("digits").provenance().counts()
    assert calls[Construct.CALL] > 0


def test_scalar_functions_with_loops_of_their_own_are_their_callers(
    compiled: Callable[[str], Compiled],
) -> None:
    rows = [row for row in compiled("integers").provenance() if row.in_loop]
    sources = [{p.source() for p in row.places} for row in rows]
    assert sum(s == {"np.gcd(i, 12)"} for s in sources) > 10
    assert not any(row.construct == "helper" for row in rows)  # the loop is inside the user's


def test_rare_cases_kept_outside_are_their_callers() -> None:
    def wave(x: Array) -> Any:
        return np.sin(x)  # huge arguments are reduced elsewhere

    made = compile(wave, np.ones(100, np.float32))
    helper = [row for row in made.provenance() if row.construct == "helper"]
    assert helper
    assert all(row.in_loop for row in helper)  # also what is outside of their own loops
    assert {p.source() for row in helper for p in row.places} == {"np.sin(x)"}


def test_what_is_computed_once_has_all_its_places() -> None:
    def twice(x: Array) -> Any:
        a = np.exp(x)
        b = np.exp(x)
        return a * b

    x = np.ones(100, np.float32)
    made = compile(twice, x)
    first = twice.__code__.co_firstlineno
    exp = [row for row in made.provenance() if row.in_loop and len(row.lines) > 1]
    assert {row.lines for row in exp} >= {(first + 1, first + 2)}
    graph = listing(made, None, "graph")
    assert f"# lines {first + 1}, {first + 2}" in graph.text


# ----------------------------------------------------------------------------------------- levels


@pytest.mark.parametrize("name", ["digits", "softmax", "pairwise"])
def test_every_level_shows_every_line_of_the_user(
    name: str, compiled: Callable[[str], Compiled]
) -> None:
    made = compiled(name)
    levels = [listing(made, None, level) for level in ("source", "graph")]
    wanted = {n for line in levels[1] for n in line.numbers}
    for level in ("loop", "llvm", "asm"):
        lines = [line for k in made.kernels for line in listing(made, k, level)]
        assert {n for line in lines for n in line.numbers} == wanted, level
    assert {n for line in levels[0] for n in line.numbers} == wanted


def test_the_source_has_its_places(compiled: Callable[[str], Compiled]) -> None:
    lines = list(listing(compiled("digits"), None, "source"))
    assert [line.text.split()[0] for line in lines] == ["def", "h", "z", "e", "return"]
    assert spans(lines[2]) == {"h @ W2", "h @ W2 + b2"}
    assert not lines[0].places


def test_llvm_instructions_are_mapped(compiled: Callable[[str], Compiled]) -> None:
    for kernel in compiled("softmax").kernels:
        for level in ("llvm", "llvm-before"):
            inside = [x for x in listing(compiled("softmax"), kernel, level) if x.text[:2] == "  "]
            assert sum(line.mapped for line in inside) / len(inside) > 0.95
            assert not any("!dbg" in line.text for line in inside)


def test_an_unknown_level_is_an_error(compiled: Callable[[str], Compiled]) -> None:
    made = compiled("softmax")
    with pytest.raises(ValueError, match="no level 'bytecode'"):
        listing(made, made.kernels[0], "bytecode")
    with pytest.raises(ValueError, match="source or graph"):
        listing(made, None, "asm")


# ------------------------------------------------------------------------------------- the tables


def test_the_table_as_csv_and_dicts(tmp_path: Path, compiled: Callable[[str], Compiled]) -> None:
    table = compiled("softmax").provenance()
    table.to_csv(tmp_path / "p.csv")
    text = (tmp_path / "p.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == len(table) == len(table.to_dicts())
    assert list(rows[0]) == list(table.columns)
    assert rows[5]["text"] == table[5].text
    assert rows[5]["lines"].split() == [str(n) for n in table[5].lines]
    assert type(table.to_dicts()[5]["construct"]) is str


def test_the_repr_says_the_share(compiled: Callable[[str], Compiled]) -> None:
    text = repr(compiled("softmax").provenance())
    assert re.match(r"[\d,]+ instructions, [\d,]+ in loops, \d+\.\d% of them mapped\n", text)
    assert len(text.splitlines()) < 30


def test_what_a_line_became(compiled: Callable[[str], Compiled]) -> None:
    first = softmax.__code__.co_firstlineno
    table = compiled("softmax").provenance()
    exp, division = table.of_line(first + 1), table.of_line(first + 2)
    assert len(exp) > len(division) > 0
    assert any("div" in row.text for row in division)
    assert not any("div" in row.text for row in exp)


def test_the_mix_counts_what_loops_do(compiled: Callable[[str], Compiled]) -> None:
    for kernel in compiled("black scholes").kernels:
        mix = instruction_mix(kernel)
        rows = [row for row in compiled("black scholes").provenance() if row.kernel == kernel.name]
        assert sum(mix.all.values()) == len(rows)
        assert sum(mix.in_loops.values()) == sum(row.in_loop for row in rows)
        assert mix.loads >= 3
        assert mix.stores >= 1
    if HOST is not None:
        assert mix.in_loops["fma"] > 10
        assert mix.in_loops["div"] >= 4
        assert mix.vector_bits == {"AVX-512": 512, "256-bit": 256}[HOST[0]]


def test_places_are_the_users_own(compiled: Callable[[str], Compiled]) -> None:
    places = {p for row in compiled("pairwise").provenance() for p in row.places}
    assert all(
        isinstance(p, Location) and p.file == __file__.replace("test_provenance", "programs")
        for p in places
    )
