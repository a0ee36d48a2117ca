"""Workers: candidates are checked before they are timed; one that crashes or hangs is one trial."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel, While
from nbcomp.schedule.language import Schedule, parse
from nbcomp.tuning.bench import Bench, laid_out
from nbcomp.tuning.runner import Outcome
from nbcomp.tuning.tasks import Task, tasks_of
from nbcomp.tuning.workers import Workers
from tests.kernels import buffer, index, kernel, loop, number, store

X = np.random.default_rng(1).standard_normal((40, 70), dtype=np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def task_of(function: Callable[..., Any], *args: Any) -> Task:
    (task,) = tasks_of(nbcomp.compile(function, *args), args)
    return task


def simple(k: Kernel) -> Task:
    """A task of a kernel by hand, which reads nothing."""
    (out,) = k.buffers
    return Task(k, {}, {out.name: np.ones(out.shape, out.dtype)}, 0.0)


def crashing() -> Task:
    """A kernel that writes where no memory is."""
    out = buffer("out", (16,), "output")
    far = store(out, (index(1 << 40, i=1 << 36),), number(1))
    return simple(kernel(loop("i", 16, far), buffers=[out]))


def endless() -> Task:
    """A kernel that never ends."""
    out = buffer("out", (16,), "output")
    always = number(True, bool)
    k = kernel(loop("i", 16, store(out, ("i",), number(1))), buffers=[out])
    return simple(replace(k, stages=(*k.stages, While(always, (store(out, (0,), number(1)),)))))


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2, patience=20.0) as running:
        yield running


def outcomes(workers: Workers, task: Task, *schedules: str) -> list[Outcome]:
    found = dict(ChainMap(*map(dict, workers.run(task, [parse(s) for s in schedules]))))
    return [found[k] for k in range(len(schedules))]


def test_the_data_of_every_kernel() -> None:
    def two(a: Any, b: Any) -> Any:
        return softmax(np.tanh(a @ b)), (a * 2).sum()

    a, b = X[:, :30].copy(), X[:30].copy()
    compiled = nbcomp.compile(two, a, b)
    found = {t.kernel.name: t for t in tasks_of(compiled, (a, b))}
    assert set(found) == {k.name for k in compiled.kernels}
    whole = [w for t in found.values() for w in t.wanted.values()]
    assert any(np.allclose(w, softmax(np.tanh(a @ b)), rtol=1e-5) for w in whole if w.ndim == 2)
    begins = {s for t in found.values() for s in t.starts.values()}
    assert begins >= {a.ctypes.data % 4096, b.ctypes.data % 4096}
    for task in found.values():
        arrays = Bench(task).arrays
        assert {name: arrays[name].ctypes.data % 4096 for name in task.starts} == task.starts


def test_kernels_that_are_called_twice_are_one_task() -> None:
    def steps(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = np.tanh(x @ w)
        return x

    args = X, np.eye(70, dtype=np.float32)
    found = tasks_of(nbcomp.compile(steps, *args), args)
    assert len(found) < 4
    assert sum(t.calls for t in found) == 4


def test_arguments_stay_as_they_are() -> None:
    def double(x: Any) -> None:
        x *= 2

    x = X.copy()
    compiled = nbcomp.compile(double, x)
    given = x.copy()
    tasks_of(compiled, (x,))
    np.testing.assert_array_equal(x, given)
    with pytest.raises(NbcompError, match="was compiled for other arguments: x had shape"):
        tasks_of(compiled, (X[:3],))


def test_schedules_are_checked_then_timed(workers: Workers) -> None:
    good = 'vectorize("r")\nvectorize("r_2")\nvectorize("r_3")\nparallelize("i")'
    fine, plain, illegal = outcomes(workers, task_of(softmax, X), good, "", 'vectorize("q")')
    assert fine.seconds is not None
    assert plain.seconds is not None
    assert illegal.seconds is None
    assert "not legal: step 1" in illegal.note


def test_a_wrong_answer_is_not_timed(workers: Workers) -> None:
    task = task_of(softmax, X)
    (name,) = task.wanted
    value = task.wanted[name].copy()
    value[3, 5] *= 1.01
    (found,) = outcomes(workers, replace(task, wanted={name: value}), 'vectorize("r")')
    assert found.seconds is None
    assert "WRONG ANSWER" in found.note
    assert "differs at [3, 5]" in found.note


def test_elements_that_are_not_written_are_found() -> None:
    out = buffer("out", (16,), "output")
    half = kernel(loop("i", 8, store(out, ("i",), number(1))), buffers=[out])
    assert "WRONG ANSWER" in str(Bench(simple(half)).prepare(Schedule()))


def test_one_that_crashes_costs_one_trial(workers: Workers) -> None:
    lost = workers.lost
    found = outcomes(workers, crashing(), "", 'vectorize("i")')
    assert [o.note for o in found] == ["crashed (SIGSEGV)"] * 2
    assert workers.lost == lost + 2
    (after,) = outcomes(workers, task_of(softmax, X), "")
    assert after.seconds is not None


def test_one_that_hangs_costs_one_trial(workers: Workers) -> None:
    workers.patience, before = 1.5, workers.patience
    try:
        (found,) = outcomes(workers, endless(), "")
    finally:
        workers.patience = before
    assert found == Outcome(None, "took longer than 1.5 s")
    (after,) = outcomes(workers, task_of(softmax, X), "")
    assert after.seconds is not None


def test_candidates_in_turn(workers: Workers) -> None:
    task = task_of(softmax, X)
    default, good, bad, plain = workers.race(
        task, [parse('vectorize("r")'), parse('vectorize("q")'), Schedule()], 0.05
    )
    assert len(default) == len(good) == len(plain) >= 3
    assert bad == []


@pytest.mark.parametrize(
    "strides", [(70, 1), (1, 40), (-70, 1), (0, 1)], ids=["C", "F", "backwards", "broadcast"]
)
def test_memory_is_laid_out_as_a_buffer_says(strides: tuple[int, int]) -> None:
    made = laid_out(buffer("x", (40, 70), strides=strides))
    assert made.strides == tuple(4 * s for s in strides)
    assert laid_out(buffer("x", (40, 70), strides=strides), 528).ctypes.data % 4096 == 528
    made[...] = X[:1] if strides[0] == 0 else X
    np.testing.assert_array_equal(made, np.broadcast_to(X[:1], X.shape) if strides[0] == 0 else X)


def test_a_transposed_argument_is_read_as_it_lies() -> None:
    task = task_of(lambda x: np.exp(x) + 1, X.T)
    assert not isinstance(Bench(task).prepare(Schedule()), str)


def test_a_process_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with Workers(1) as broken, pytest.raises(NbcompError, match="no process to measure in: ended"):
        broken.use(task_of(softmax, X))


def test_the_workers_are_of_this_nbcomp(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    with Workers(1, patience=20.0) as one:
        (found,) = outcomes(one, task_of(softmax, X), "")
    assert found.seconds is not None
