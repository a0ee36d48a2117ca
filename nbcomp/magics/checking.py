"""`--check`: every level of a compilation, or of each part of one, run on what a call was given.

All are held against Python's answer in one way, that of `measure.comparison`.  Knows calls and
levels; it must not know how checks are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from nbcomp.display.view.checks import LevelCheck
from nbcomp.frontend.result import resolve
from nbcomp.magics.plain import plain
from nbcomp.magics.recording import Call, parts_of
from nbcomp.measure.arguments import Elsewhere, twin
from nbcomp.measure.comparison import Comparison, Wanted, coarsest
from nbcomp.measure.differences import differences
from nbcomp.measure.surroundings import Surroundings

LONGEST = 2.0  # seconds that the interpreter may take for one set of kernels
Say = Callable[[str], None]


def check_levels(
    call: Call, reference: Callable[..., Any], elsewhere: Elsewhere, say: Say = lambda _: None
) -> Iterator[LevelCheck]:
    """Run each level of the compilation on the call's arguments, up to the first wrong one.

    elsewhere: the other arrays it writes to, which are compared as well.  say: told of each level
    before it is run.
    """
    eps = coarsest(call.compiled.captured, call.compiled.options.precision)
    wanted = Wanted.of(reference, call.args, call.kwargs, True, eps, elsewhere)
    for level, run, long in _levels_of(call.compiled, call.args, call.kwargs, say):
        if long:
            yield LevelCheck(level, left_out=long)
            continue
        try:
            found = wanted.check(run)
        except Exception as error:
            yield _left_to_python(call, level, error)
            continue
        yield LevelCheck(level, found.ulp, found.problem, scaled=found.scaled)
        if found.problem:
            return


def _levels_of(
    compiled: Any, args: Sequence[Any], kwargs: Mapping[str, Any], say: Say
) -> Iterator[tuple[str, Callable[..., Any], str]]:
    """The levels of a compilation, each announced; with why it is not to be run, if it is not: the
    interpreter of loops works one element at a time."""
    from nbcomp.levels import Interpreted, levels  # with the compiler: not when commands are loaded

    found = list(levels(compiled))
    for number, (level, run) in enumerate(found, 1):
        say(f"running level {number} of {len(found)}: {level} …")
        time = run.seconds(*args, **kwargs) if isinstance(run, Interpreted) else 0.0
        long = f"interpreting the loops would take about {time:.0f} s" if time > LONGEST else ""
        yield level, run, long


def _left_to_python(call: Call, level: str, error: Exception) -> LevelCheck:
    """A level that ends with an error: right where the program does, and Python then runs it."""
    message = f"{type(error).__name__}: {error}"
    if call.compiled.leaves_to_python(error):
        why = f" ({message})" if type(error).__module__ == "builtins" else ""
        return LevelCheck(level, other=f"leaves this call to Python{why}")
    return LevelCheck(level, problem=message)


def check_parts(call: Call, say: Say = lambda _: None) -> Iterator[LevelCheck]:
    """Run each level of each part on what it is given when the call is made once more, against the
    graph that was captured; then the answer of the whole, and what it wrote, against Python's.

    What the two calls write to besides their arguments is afterwards as it was."""
    found: list[LevelCheck] = []
    seen: set[int] = set()

    def observe(region: Any, args: tuple[Any, ...]) -> None:
        variant = region.find(args)
        if variant is not None and id(variant) not in seen:
            seen.add(id(variant))
            part = f"part at line {region.location.line}"
            found.extend(_levels_of_part(variant, args, part, say))

    around = Surroundings(call.function.__wrapped__)
    with redirect_stdout(StringIO()):  # the call that counts has printed already
        what = plain(call.function), call.args, call.kwargs
        wanted = Wanted.of(*what, True, coarsest_part(call), around)
        whole = wanted.check(call.function.parts.observed(observe))
    yield from found
    all_parts = "all parts, with Python between them"
    yield LevelCheck(all_parts, whole.ulp, whole.problem, scaled=whole.scaled)


def coarsest_part(call: Call) -> float:
    """What one rounding may change, relatively, in the coarsest of a function's parts."""
    parts = parts_of(call.function)
    return max((coarsest(p.captured, p.options.precision) for p in parts), default=0.0)


def _levels_of_part(
    variant: Any, args: tuple[Any, ...], part: str, say: Say
) -> Iterator[LevelCheck]:
    wanted: Any = None
    eps = coarsest(variant.captured, variant.options.precision)
    written = [resolve(source, args) for source, _ in variant.capture.writes]
    saved = [array.copy() for array in written]
    for level, run, long in _levels_of(variant, args, {}, lambda text: say(f"{part}: {text}")):
        if long:
            yield LevelCheck(f"{part}: {level}", left_out=long)
            continue
        found = _arrays_of(twin(run(*args)))
        for array, old in zip(written, saved, strict=True):
            array[...] = old
        wanted = found if wanted is None else wanted
        worst = Comparison(differences(found, wanted, eps=eps))
        yield LevelCheck(f"{part}: {level}", worst.ulp, worst.problem, scaled=worst.scaled)
        if worst.problem:
            return


def _arrays_of(value: Any) -> list[Any]:
    """What a part computed, of all it hands out."""
    if isinstance(value, tuple | list):
        return [a for v in value for a in _arrays_of(v)]
    return [value] if isinstance(value, np.ndarray | np.generic | int | float) else []
