"""Schedules as code and as JSON, played on other sizes, and what they say of mistakes."""

from __future__ import annotations

import pytest

from nbcomp.errors import ScheduleError
from nbcomp.schedule import steps
from nbcomp.schedule.language import Schedule, Step, from_json, parse, usage
from nbcomp.version import VERSION
from tests.schedule.programs import Golden, check, matmul, two_stages

GEMM = """\
tile("i", "j", 4, 32)
distribute("j")
distribute("i")
reorder("k", "i_2", "j_2")
vectorize("j", unroll=2)
vectorize("j_2", unroll=2)
vectorize("j_3", unroll=2)
unroll("i")
unroll("i_2")
unroll("i_3")
pack("b", 1, 32)
pack("a", 0, 4)
parallelize("i_o")"""


def test_a_schedule_is_its_text() -> None:
    schedule = parse(GEMM)
    assert str(schedule) == GEMM
    assert parse(str(schedule)) == schedule
    assert from_json(schedule.to_json()) == schedule


@pytest.mark.parametrize("shape", [(8, 64, 20), (12, 96, 5), (4, 32, 1)])
def test_the_path_of_a_matrix_product(shape: tuple[int, int, int]) -> None:
    check(matmul(*shape), parse(GEMM))


def test_the_last_kernel_of_the_path(golden: Golden) -> None:
    check(matmul(8, 64, 20), parse(GEMM), golden)


def test_each_step_is_played_with_its_kernel() -> None:
    played = list(parse(GEMM).play(matmul(8, 64, 20)))
    assert [str(step) for step, _ in played] == GEMM.splitlines()
    assert len({str(kernel) for _, kernel in played}) == len(played)


def test_every_step_is_documented_with_what_it_writes() -> None:
    for name in steps.__all__:
        doc = getattr(steps, name).__doc__
        assert doc.startswith("`"), name
        assert "->" in doc, name
        assert usage(name).parameters, name


def test_a_schedule_plays_on_other_sizes_of_the_same_kernel() -> None:
    schedule = parse(GEMM).of(matmul(8, 64, 20))
    check(matmul(16, 32, 3), from_json(schedule.to_json()))


def test_a_schedule_for_another_kernel_is_refused() -> None:
    schedule = parse('split("i", 8)').of(two_stages())
    with pytest.raises(ScheduleError, match="another kernel: it has no input x: float32, 1 axes"):
        schedule(matmul())
    with pytest.raises(ScheduleError, match="loop k"):
        schedule(matmul())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('spilt("i", 3)', r"line 1: no step spilt \(did you mean split\?\)"),
        ('split("i", 3)\nsplit(i, 3)', "line 2: arguments are names in quotes"),
        ('split("i")', r"line 1: split\(loop: str, by: int\): missing a required argument: 'by'"),
        ('split("i", "a")', "by is a whole number, not 'a'"),
        ('split("i", True)', "by is a whole number, not True"),
        ('reorder("a", 3)', "order is a name in quotes, not 3"),
        ("x = 1", r'a step is written as a call such as split\("i", 64\)'),
        ("__import__('os').system('true')", "a step is written as a call"),
        ("split('i', __import__('os'))", "arguments are names in quotes"),
        ("split(", "line 1: "),
    ],
)
def test_mistakes_in_a_schedule(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        parse(text)


def test_an_illegal_step_is_named() -> None:
    with pytest.raises(ScheduleError, match=r'step 2, vectorize\("q"\): no loop q; the loops are'):
        parse('split("i", 2)\nvectorize("q")')(matmul())


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "structure": [], "steps": [3]}']
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(ScheduleError, match="not a saved schedule"):
        from_json(text)


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(ScheduleError, match="a schedule of format 99"):
        from_json('{"format": 99, "structure": [], "steps": []}')


def test_an_empty_schedule_changes_nothing() -> None:
    kernel = matmul()
    assert Schedule()(kernel) is kernel
    assert Step("split", ("i", 2))(kernel) is not kernel


def test_json_is_read_where_code_is() -> None:
    schedule = parse(GEMM).of(matmul(8, 64, 20))
    assert parse(f"\n{schedule.to_json()}\n") == schedule


def test_a_schedule_of_another_version_is_refused_with_its_steps() -> None:
    text = parse(GEMM).to_json().replace(f'"version": "{VERSION}"', '"version": "0.0.7"')
    with pytest.raises(ScheduleError, match=f"saved by version 0.0.7 of nbcomp; this is {VERSION}"):
        from_json(text)
    with pytest.raises(ScheduleError, match=r'take its steps anew:\ntile\("i", "j", 4, 32\)\n'):
        from_json(text)


@pytest.mark.parametrize("text", ["split(" * 400, "split(\0)", "split({[]: 1}, 2)", "split(**{})"])
def test_hostile_text_is_no_schedule(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse(text)
