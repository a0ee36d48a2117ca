"""Random programs agree at every level: NumPy, the graph before and after each pass, the kernels
before and after scheduling, and the machine code.

A failure prints the seed, the program, and the first level that is wrong with its pass.
To look at one seed, or at many: `python -m tests.test_random_graphs SEED` or `FIRST:LAST`.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.levels import levels
from tests.random_programs import Program, difference, generate, outputs, run_quietly

SEEDS = range(120)  # every level
LARGER = range(1000, 1060)  # arrays that fill vectors and threads; not the slow loop interpreter
LONG = range(10_000, 14_000)  # make conformance
FOUND = (10_288, 10_435, 10_466, 10_470, 10_484, 10_539, 10_599, 10_693, 11_003, 11_011)


def first_bad(program: Program, kernels: bool) -> str:
    """The first level that differs from NumPy, and how; empty when all agree."""
    arguments = program.arguments()
    wanted = outputs(run_quietly(program.function, *arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = nbcomp.compile(program.function, *program.arguments())
    for level, run in levels(compiled, kernels):
        own = program.arguments()
        try:
            got = outputs(run(*own))
        except Exception as error:
            return f"{level}: {type(error).__name__}: {error}"
        problem = compare(got, wanted, program.tolerance) or compare(
            [a for a in own if isinstance(a, np.ndarray)],
            [a for a in arguments if isinstance(a, np.ndarray)],
            (0.0,) * len(own),
        )
        if problem:
            return f"{level}: {problem}"
    return ""


def compare(got: list[Any], wanted: list[Any], tolerance: tuple[float, ...]) -> str:
    if len(got) != len(wanted):
        return f"{len(got)} outputs, not {len(wanted)}"
    for i, (a, b, t) in enumerate(zip(got, wanted, tolerance, strict=False)):
        if problem := difference(a, b, t):
            return f"output {i}: {problem}"
    return ""


def check(seed: int, limit: int, kernels: bool) -> None:
    program = generate(seed, limit)
    try:
        problem = first_bad(program, kernels)
    except nbcomp.Unsupported as reason:
        pytest.skip(str(reason))
    except Exception as error:
        pytest.fail(f"{program}\n{type(error).__name__}: {error}", pytrace=False)
    if problem:
        pytest.fail(f"{program}\nfirst wrong: {problem}", pytrace=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_level_agrees(seed: int) -> None:
    check(seed, limit=120, kernels=True)


@pytest.mark.parametrize("seed", LARGER)
def test_larger_arrays_agree(seed: int) -> None:
    check(seed, limit=20_000, kernels=False)


@pytest.mark.parametrize("seed", FOUND)
def test_what_longer_runs_found(seed: int) -> None:
    check(seed, limit=200, kernels=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", LONG)
def test_many_more(seed: int) -> None:
    check(seed, limit=200, kernels=True)


def report(seed: int, limit: int = 120, kernels: bool = True) -> str:
    """What is wrong with a seed, in one line."""
    try:
        return first_bad(generate(seed, limit), kernels) or "right"
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")


def sweep(seeds: range) -> None:
    """Report every seed that is not right, each in a process of its own: a crash is a line too."""
    for seed in seeds:
        child = subprocess.run(
            [sys.executable, "-m", __spec__.name, str(seed)], capture_output=True, text=True
        )
        line = child.stdout.strip().splitlines()[-1:] or [f"died with status {child.returncode}"]
        if line != ["right"]:
            print(seed, line[0][:300], flush=True)


if __name__ == "__main__":
    first, _, last = sys.argv[1].partition(":")
    if last:
        sweep(range(int(first), int(last)))
    else:
        print(generate(int(first), 120))
        print(report(int(first)))
