"""What a compilation is to do: `Options`, plain data that is passed down from `compile_for`.

Every optimisation has a name and can be left out by it; the program then means the same and only
runs differently, which is how `nbcomp.measure` finds out what each is worth.  Knows names; it must
not know how an optimisation works.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class Optimisation:
    """Something a compilation may do or leave: its name, where it acts, and what it does.

    level: "graph" and "loop" optimisations are passes of that level, under that name; "plan" is
    how the finished program is put together.
    """

    name: str
    level: Literal["graph", "loop", "plan"]
    description: str


# In the order in which they act.
OPTIMISATIONS = (
    Optimisation("blas", "graph", "float products by BLAS, where it is faster"),
    Optimisation("generate", "graph", "float products by loops, where they are faster"),
    Optimisation("choose_windows", "graph", "convolutions and pools as loops over their windows"),
    Optimisation("choose_recurrences", "graph", "recurrent layers as loops over their steps"),
    Optimisation("narrow_products", "graph", "products of bytes without widening them first"),
    Optimisation("algebra", "graph", "exact identities"),
    Optimisation("fold", "graph", "constants computed once"),
    Optimisation("cse", "graph", "equal expressions computed once"),
    Optimisation("choose_layout", "graph", "images with their channels last, weights packed once"),
    Optimisation("pack_products", "graph", "weights of products packed once"),
    Optimisation("fuse", "graph", "operators share a walk over memory"),
    Optimisation("block_products", "loop", "generated products in register tiles"),
    Optimisation("block_sums", "loop", "sums of products within larger loops in register tiles"),
    Optimisation("split_products", "loop", "a part of a product for each core"),
    Optimisation("merge_loops", "loop", "neighbouring axes walked as one"),
    Optimisation("tile", "loop", "transposed walks in cached blocks"),
    Optimisation("overlap", "loop", "the end of a row beside the beginning of the next"),
    Optimisation("unroll", "loop", "short inner loops written out"),
    Optimisation("vectorize", "loop", "SIMD instructions"),
    Optimisation("interleave", "loop", "several vectors in flight"),
    Optimisation("parallelize", "loop", "outer loops spread over the cores"),
    Optimisation("stream", "loop", "results written past the caches"),
    Optimisation("fetch_ahead", "loop", "rows that are added up asked for before they are needed"),
    Optimisation("tuned", "loop", "schedules that tuning found"),
    Optimisation("reuse", "plan", "memory of dead values used again"),
)

PRECISIONS = ("", "bf16")
ENTRY = ("libraries", "precision")  # what every entry takes by name
NAMES = tuple(o.name for o in OPTIMISATIONS)


class Routines(Protocol):
    """Routines that a user brought along, each with when it is called (`dispatch.Library`)."""

    name: str
    rules: list[Any]


class Written(Protocol):
    """A schedule that somebody wrote for a kernel (`schedule.language.Schedule`)."""

    def play(self, kernel: Any) -> Iterator[tuple[Any, Any]]:
        """Each step with the kernel after it."""


@dataclass(frozen=True)
class Options:
    """A compilation leaves out the optimisations named in `without`; by default it does them all.

    schedules: (name of a kernel, the schedule it gets in place of the default one).  libraries:
    whose routines are called where their patterns are found (`nbcomp.Library`).  precision: "bf16"
    rounds the operands of float32 products to bfloat16; "" computes as NumPy does.  Raises
    ValueError for a name that is not in `OPTIMISATIONS`, or another precision.
    """

    without: frozenset[str] = frozenset()
    schedules: tuple[tuple[str, Written], ...] = ()
    libraries: tuple[Routines, ...] = ()
    precision: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.without, str):
            raise TypeError(f"without is a set of names, such as {{{self.without!r}}}")
        object.__setattr__(self, "without", frozenset(self.without))
        for library in self.libraries:
            if not hasattr(library, "rules"):
                raise TypeError(f"libraries are nbcomp.Library objects, not {library!r:.80}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"no precision {self.precision!r}; there is bf16, and NumPy's own")
        for name in sorted(self.without.difference(NAMES)):
            near = get_close_matches(name, NAMES, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"no optimisation {name!r}{hint}; there are {', '.join(NAMES)}")

    def asking(
        self,
        libraries: Routines | Sequence[Routines] | None = None,
        precision: str | None = None,
    ) -> Options:
        """These options with what every entry takes by name, where it is given."""
        given = () if libraries is None else libraries
        several = tuple(given) if isinstance(given, Sequence) else (given,)
        return replace(
            self,
            libraries=self.libraries if libraries is None else several,
            precision=self.precision if precision is None else precision,
        )

    def does(self, name: str) -> bool:
        """Whether this optimisation is done."""
        return name not in self.without

    def does_whole(self, level: str) -> bool:
        """Whether nothing of a level is left out."""
        return all(self.does(o.name) for o in OPTIMISATIONS if o.level == level)

    def leaving(self, *names: str) -> Options:
        """These options with more left out."""
        return replace(self, without=self.without.union(names))

    def scheduling(self, kernel: str, schedule: Written) -> Options:
        """These options with a schedule for one kernel."""
        others = tuple(pair for pair in self.schedules if pair[0] != kernel)
        return replace(self, schedules=(*others, (kernel, schedule)))

    def schedule_of(self, kernel: str) -> Written | None:
        """The schedule somebody wrote for this kernel, if there is one."""
        return dict(self.schedules).get(kernel)


EVERYTHING = Options()
