"""What each optimisation is worth to the finished program: the program without it.

Knows the list of optimisations; it must not know how programs are timed or shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.measure.figures import UNUSED, Ablation, Without
from nbcomp.measure.timing import ratio
from nbcomp.measure.variants import Say, Variant, idle, measure_variants
from nbcomp.options import OPTIMISATIONS, Optimisation

TELLING = ("fuse", "vectorize", "parallelize", "blas")  # to be measured before the others


def ablate(
    compiled: Compiled,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | None = None,
    seconds: float = 5.0,
    say: Say = lambda _: None,
) -> Ablation:
    """Compile the program without each of its optimisations in turn, and time all of them in turn.

    About `seconds` in all.  Each is compared with NumPy first; a wrong answer is not timed.
    """
    base = compiled.options
    used = [o for o in OPTIMISATIONS if base.does(o.name)]
    unused = idle(compiled)
    without = [base if o.name in unused else base.leaving(o.name) for o in used]
    most = [0, *(k for k, o in enumerate(used, 1) if o.name in TELLING)]
    (full, *rest), others = measure_variants(
        compiled, [base, *without], args, kwargs, reference, seconds, say, before=most
    )
    rows = (_row(o, variant, full) for o, variant in zip(used, rest, strict=True))
    return Ablation(full.timing, tuple(rows), full.note, others)


def _row(optimisation: Optimisation, variant: Variant, full: Variant) -> Without:
    note, change = variant.note, None
    if variant.first == full.first and not note:
        note = UNUSED
    elif variant.samples and full.samples:
        change = ratio(variant.samples, full.samples)
    return Without(
        optimisation.name, optimisation.description, variant.timing, change, variant.same, note
    )
