"""Written schedules in a whole program: compiled, checked at every level, timed, adopted."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import ScheduleError
from nbcomp.levels import levels
from nbcomp.measure.schedules import try_schedule
from nbcomp.schedule.language import parse


def program(x, y):
    return np.exp(x) + y.T


@pytest.fixture
def arrays():
    rng = np.random.default_rng(3)
    return rng.random((48, 33), np.float32), rng.random((33, 48), np.float32)


PACKED = """\
split("i", 16)
interchange("i", "j")
pack("y", 1, 16)
vectorize("i")
parallelize("i_o")"""


@pytest.mark.parametrize(
    "text",
    ["", 'vectorize("j")', 'tile("i", "j", 16, 8)\nvectorize("j")\nparallelize("i_o")', PACKED],
)
def test_a_program_with_a_schedule_gives_the_same_answer(arrays, text) -> None:
    compiled = nbcomp.compile(program, *arrays)
    made = compiled.with_schedule("exp", parse(text))
    for name, run in levels(made):
        np.testing.assert_allclose(run(*arrays), program(*arrays), rtol=1e-5, err_msg=name)
    recorded = [s.name for s in made.trace.snapshots if s.level == "loop"]
    assert recorded == ["lower", *text.splitlines()]


def test_memory_a_schedule_asks_for_is_in_the_plan(arrays) -> None:
    compiled = nbcomp.compile(program, *arrays)
    made = compiled.with_schedule("exp", parse(PACKED))
    assert compiled.plan.arena == 0
    assert made.plan.arena >= 33 * 48 * 4


def test_a_trial(arrays) -> None:
    compiled = nbcomp.compile(program, *arrays)
    trial = try_schedule(compiled, "exp", parse(PACKED), arrays, seconds=0.2)
    assert trial.same
    assert [str(p.step) for p in trial.steps] == PACKED.splitlines()
    assert all(p.difference() for p in trial.steps)
    assert trial.own is not None
    assert trial.change is not None
    assert trial.since is None
    again = try_schedule(trial.compiled, "exp", parse('vectorize("j")'), arrays, seconds=0.2)
    assert again.since is not None


def test_adopted_schedules_are_what_runs(arrays) -> None:
    function = nbcomp.jit(program)
    function(*arrays)
    old = function.compiled
    new = old.with_schedule("exp", parse(PACKED))
    function.adopt(old, new)
    assert function.compiled is new
    np.testing.assert_allclose(function(*arrays), program(*arrays), rtol=1e-5)
    assert len(function.variants) == 1


def test_unknown_kernels_are_named_with_those_there_are(arrays) -> None:
    compiled = nbcomp.compile(program, *arrays)
    with pytest.raises(ScheduleError, match="no kernel sum; the kernels are exp"):
        compiled.with_schedule("sum", parse(""))
    with pytest.raises(ScheduleError, match="no kernel sum; the kernels are exp"):
        try_schedule(compiled, "sum", parse(""), arrays)


def test_illegal_steps_leave_everything_as_it_was(arrays) -> None:
    compiled = nbcomp.compile(program, *arrays)
    with pytest.raises(
        ScheduleError, match=r'step 2, parallelize\("j"\): j is not an outermost loop'
    ):
        compiled.with_schedule("exp", parse('split("j", 8)\nparallelize("j")'))
    np.testing.assert_allclose(compiled(*arrays), program(*arrays), rtol=1e-5)
