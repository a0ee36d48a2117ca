"""Random programs with every length open: NumPy's answer for the lengths they are compiled for, and
for others that the conditions let through.

To look at one seed: `python -m tests.lengths.test_random SEED`; at many: `FIRST:LAST`.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

from nbcomp.compiled import Compiled
from nbcomp.conditions import Conditions
from nbcomp.errors import Unsupported
from nbcomp.frontend.session import Openings
from nbcomp.frontend.trace import capture
from nbcomp.pipeline import compile_captured
from nbcomp.runtime.plan import ArrayGuard, Source
from tests.random_programs import Program, difference, generate, outputs, run_quietly

SEEDS = range(60)


def compiled(program: Program) -> Compiled:
    """The program with every length open."""
    arguments = program.arguments()
    opened: Openings = {
        Source("argument", k): {axis: f"n{k}{axis}" for axis in range(a.ndim)}
        for k, a in enumerate(arguments)
        if isinstance(a, np.ndarray)
    }
    take = partial(capture, program.function, arguments, {}, opened=opened)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile_captured(program.function, take, opened=True)


def other_arguments(made: Compiled, program: Program, rng: np.random.Generator) -> list[Any] | None:
    """Arguments of other lengths that the conditions let through, if some are found."""
    opened = made.plan.open
    if opened is None:
        return None
    conditions: Conditions = opened.conditions
    for _ in range(40):
        found = {s: max(2, int(s.hint * 2.0 ** rng.uniform(-1.5, 2.5))) for s in opened.symbols}
        for gone, kept in conditions.same.items():
            found[gone] = found[kept]
        for symbol in opened.symbols:
            low, high = conditions.box[symbol]
            found[symbol] = min(max(found[symbol], low), high)
        if all(found[s] == s.hint for s in found) or conditions.why_not(found):
            continue
        arguments = program.arguments()
        for guard in made.plan.guards:
            if isinstance(guard, ArrayGuard) and guard.source.kind == "argument":
                shape = tuple(n.at(found) if hasattr(n, "at") else n for n in guard.shape)
                old = arguments[guard.source.key]
                arguments[guard.source.key] = _resized(old, shape)
        return arguments
    return None


def _resized(array: Any, shape: tuple[int, ...]) -> Any:
    """The elements again and again, laid out as they were."""
    new = np.resize(array, shape)
    if array.flags.c_contiguous or not array.flags.f_contiguous:
        return new
    return np.asfortranarray(new)


def problem(
    made: Compiled, program: Program, arguments: list[Any], own: list[Any], scale: float
) -> str:
    """How the answer on the second differs from NumPy's on the first; empty when it does not."""
    wanted = outputs(run_quietly(program.function, *arguments))
    got = outputs(made(*own))
    if len(got) != len(wanted):
        return f"{len(got)} outputs, not {len(wanted)}"
    tolerances = (*program.tolerance, *(0.0,) * len(got))
    for i, (a, b, t) in enumerate(zip(got, wanted, tolerances, strict=False)):
        largest = np.max(np.abs(b[np.isfinite(b)]), initial=0.0) if np.size(b) and t else 0.0
        if found := difference(a, b, max(t * scale, 1e-6 * scale * float(largest))):
            return f"output {i}: {found}"
    for a, b in zip(own, arguments, strict=True):
        if isinstance(a, np.ndarray) and (found := difference(a, b, scale * 1e-3)):
            return f"an argument: {found}"
    return ""


def check(seed: int) -> str:
    """What is wrong with a seed; how many other lengths were tried is told by the caller."""
    program = generate(seed)
    try:
        made = compiled(program)
    except Unsupported:
        return ""
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}\n{program.source}"
    if found := problem(made, program, program.arguments(), program.arguments(), 4.0):
        return f"seed {seed}, its own lengths: {found}\n{program.source}"
    rng = np.random.default_rng(seed)
    for _ in range(3):
        arguments = other_arguments(made, program, rng)
        if arguments is None or made.mismatch(arguments) is not None:
            continue
        TRIED.append(seed)
        shapes = [np.shape(a) for a in arguments]
        try:
            own = [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in arguments]
            found = problem(made, program, arguments, own, 400.0)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            return f"seed {seed}, lengths {shapes}: {found}\n{program.source}"
    return ""


TRIED: list[int] = []


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed: int) -> None:
    assert check(seed) == ""


def main() -> None:
    """`python -m tests.lengths.test_random FIRST:LAST`."""
    first, _, last = sys.argv[1].partition(":")
    for seed in range(int(first), int(last or int(first) + 1)):
        if found := check(seed):
            print(found)
    print(f"other lengths were tried {len(TRIED)} times, in {len(set(TRIED))} programs")


if __name__ == "__main__":
    main()
