"""The headline of a report: what was compiled, how fast it is, how far the answer is from NumPy's.

Every function gives sentences; they hold no markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nbcomp.display.picture.clusters import is_once
from nbcomp.display.view.checks import LevelCheck, check_sentence
from nbcomp.display.view.reads import Compiled
from nbcomp.display.view.words import count, distance_words, ratio_words, seconds
from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Input
from nbcomp.loop.grammar import Call, walk
from nbcomp.measure.comparison import Comparison
from nbcomp.measure.timing import BUSY
from nbcomp.ops.external import External

CONSTANT = "not timed, because the answer is a constant for these arguments"
MOST_REASONS = 2  # why something is not rounded, in a headline


def sentences(
    compiled: Compiled, comparison: Comparison | None, checks: Sequence[LevelCheck]
) -> tuple[str, tuple[str, ...]]:
    """The status word, and the sentences below the title."""
    status, speed = _speed_sentence(comparison)
    if compiled.constant and comparison is not None and comparison.agrees:
        status, speed = "untimed", [CONSTANT]
    found = [_compile_sentence(compiled), *_lengths_sentence(compiled), *speed]
    found += [_difference_sentence(compiled, comparison), _precision_sentence(compiled, comparison)]
    found.append(check_sentence(checks))
    target = str(compiled.target)
    threads = "" if "thread" in target else f"{count(compiled.threads, 'thread')}, "
    found.append(threads + target)
    return status, tuple(s for s in found if s)


def operators(nodes: Sequence[Node]) -> Counter[str]:
    """How often each operator occurs, inputs and constants left out."""
    return Counter(n.op.name for n in nodes if not isinstance(n.op, (Input, Constant)))


def title(compiled: Compiled) -> str:
    """The function's name, its operators, kernels and library calls."""
    total = operators(compiled.captured.nodes).total()
    made = len(compiled.kernels)
    own = {kernel.name for kernel in compiled.kernels}
    others = [group for group in compiled.groups if group.name not in own and not is_once(group)]
    calls = [routine for group in others for routine in _routines(group.nodes) or ["numpy"]]
    for kernel in compiled.kernels:
        each = [s.fn for s in walk(kernel.kernel.stages) if isinstance(s, Call)]
        calls += each * len(kernel.groups)
    names = ", ".join(dict.fromkeys(calls))
    library = f", with {count(len(calls), 'library call')} ({names})" if calls else ""
    run = sum(len(kernel.groups) for kernel in compiled.kernels)
    often = f" called {run} times" if run > made else ""
    where = f"{count(made, 'kernel')}{often}"
    return f"{compiled.name}: {count(total, 'operator')} in {where}{library}"


def _routines(nodes: Sequence[Node]) -> list[str]:
    """The routines of the user's libraries that are called."""
    return [n.op.routine.name for n in nodes if isinstance(n.op, External)]


def _compile_sentence(compiled: Compiled) -> str:
    return (
        f"compiled in {seconds(compiled.compile_seconds)} ({'cold' if compiled.cold else 'warm'})"
    )


def _lengths_sentence(compiled: Compiled) -> list[str]:
    """Which lengths the code is for, where they are left open."""
    open_lengths = ", ".join(compiled.lengths)
    return [f"one code for {open_lengths}"] if open_lengths else []


def _speed_sentence(comparison: Comparison | None) -> tuple[str, list[str]]:
    if comparison is None:
        return "untimed", ["not compared with NumPy"]
    if not comparison.agrees:
        return "wrong", ["not timed, because the answer is wrong"]
    if comparison.compiled is None or comparison.reference is None:
        return "untimed", ["not timed"]
    status, words = ratio_words(comparison.speedup, comparison.speedup_low, comparison.speedup_high)
    ours, theirs = comparison.compiled.median, comparison.reference.median
    uncertain = ", uncertain:" if comparison.others >= BUSY else ""
    disturbed = f"{uncertain} {others_words(comparison.others)}" if uncertain else ""
    return status, [f"runs in {seconds(ours)}, NumPy in {seconds(theirs)}: {words}{disturbed}"]


def parts_sentences(comparison: Comparison) -> tuple[str, ...]:
    """How fast a function in parts is against the same function in plain Python and NumPy."""
    _, speed = _speed_sentence(comparison)
    if not comparison.agrees:
        return (*speed, _wrong(comparison))
    tail = "; it is better left to Python as it is" if comparison.speedup_high < 1.0 else ""
    return tuple(s.replace("NumPy", "plain Python") + tail for s in speed)


def _wrong(comparison: Comparison, whose: str = "") -> str:
    return f"WRONG ANSWER: {comparison.problem}. Please report this as a bug of nbcomp{whose}"


def others_words(cores: float) -> str:
    """A warning when other programs disturbed the timing."""
    if cores < BUSY:
        return ""
    return f"other programs kept {cores:.1f} cores busy meanwhile"


def _difference_sentence(compiled: Compiled, comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    if not comparison.agrees:
        brought = _routines([n for group in compiled.groups for n in group.nodes])
        whose = f"; unless {' or '.join(brought)} is wrong" if brought else ""
        return _wrong(comparison, whose)
    if comparison.ulp == 0:
        return "the answer is NumPy's, bit for bit"
    amount = f"largest difference from NumPy's answer {comparison.absolute:.2g}"
    return f"{amount} ({distance_words(comparison.ulp, comparison.scaled)})"


def _precision_sentence(compiled: Compiled, comparison: Comparison | None) -> str:
    if not compiled.options.precision:
        return ""
    asked = _rounded_sentence(compiled)
    if comparison is None or comparison.against_float64 is None:
        return asked
    ours, theirs = comparison.against_float64
    return f"{asked}; error against float64 {ours:.1e} of the answer's size, NumPy's {theirs:.1e}"


def _rounded_sentence(compiled: Compiled) -> str:
    """What became of the precision that was asked for."""
    asked, said = f"precision {compiled.options.precision}", compiled.trace.remarks
    precision = [r for r in said if r.topic == "precision"]
    others = [r.reason for r in precision if r.kind == "missed"]
    left = "; ".join(list(dict.fromkeys(others))[:MOST_REASONS])
    if any(r.kind == "applied" for r in precision):
        done = f"{asked}, as asked for: operands of products are rounded to bfloat16"
        return f"{done}, but {left}" if left else done
    why = left or "there is no float32 product"
    return f"{asked} was asked for, but nothing is rounded: {why}"
