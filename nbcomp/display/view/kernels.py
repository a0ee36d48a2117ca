"""One row for each kernel: what it computes, from which lines, and its text at each level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from nbcomp.display.listing import commented
from nbcomp.display.picture.clusters import is_once, numbers
from nbcomp.display.view.headline import operators, title
from nbcomp.display.view.reads import Compiled, CompiledKernel
from nbcomp.display.view.words import called
from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Input
from nbcomp.origin import Construct, Line, Listing

LEVELS = {"loop": "loop IR", "llvm": "LLVM IR", "asm": "assembly"}


@dataclass(frozen=True)
class KernelRow:
    """One kernel: what a call computes, from which lines, and its text at each of its levels.

    number: that of the first group it computes.  once: it runs when something it reads has changed,
    not at every call.
    """

    name: str
    kind: str
    number: int
    operators: str
    lines: str
    levels: tuple[str, ...]
    cost: int  # bytes of all that its calls touch, to compare kernels by
    calls: int
    once: bool
    bulk: int  # characters its machine code was made from
    listing: Callable[[str], Listing] = field(compare=False)
    begin: Callable[[Executor], None] = field(compare=False)  # to make its texts

    @property
    def title(self) -> str:
        """Its name, and how often it is called."""
        return called(self.name, self.calls)

    @property
    def sort(self) -> str:
        """What kind of kernel it is."""
        return f"{self.kind}, once" if self.once else self.kind

    def text(self, level: str) -> str:
        """The whole text at a level."""
        return self.listing(level).text

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """What its machine code does: see `kernel_facts`."""
        return kernel_facts(self.listing("asm"))


def _lines(nodes: Sequence[Node]) -> str:
    found = sorted({n.location.line for n in nodes if n.location})
    if not found:
        return ""
    if len(found) == 1:
        return f"line {found[0]}"
    if found == list(range(found[0], found[-1] + 1)):
        return f"lines {found[0]}–{found[-1]}"
    return "lines " + ", ".join(map(str, found))


def done_words(compiled: Compiled) -> str:
    """What was made of a function, in a line: its kernels, and what each computes."""
    rows = [f"{k.title} ({k.sort}): {k.operators}" for k in kernel_rows(compiled)]
    return f"{title(compiled)}: {'; '.join(rows)}" if rows else title(compiled)


def kernel_rows(compiled: Compiled, before: int = 0) -> list[KernelRow]:
    """The rows of all kernels and library calls, in the order in which they run first.

    before: how many groups come before, in other parts of the function.
    """
    by_name = {kernel.name: kernel for kernel in compiled.kernels}
    number_of = numbers(compiled.groups)
    calls = Counter(number_of[group.name] for group in compiled.groups)
    rows = []
    for number in sorted(set(number_of.values())):
        group = compiled.groups[number]
        kernel = by_name.get(group.name)
        found = operators(group.nodes)
        words = " ".join(f"{op}×{k}" if k > 1 else op for op, k in found.items())
        rows.append(
            KernelRow(
                name=group.name,
                kind=group.kind,
                once=is_once(group),
                number=before + number,
                operators=words,
                lines=_lines([n for n in group.nodes if not isinstance(n.op, (Input, Constant))]),
                levels=tuple(LEVELS) if kernel else (),
                cost=_touched(kernel) * calls[number] if kernel else 0,
                calls=calls[number],
                bulk=kernel.code.bulk if kernel else 0,
                listing=cache(partial(kernel_listing, kernel)) if kernel else _no_text,
                begin=kernel.code.begin if kernel else _no_work,
            )
        )
    return rows


def heading(rows: Sequence[KernelRow]) -> str:
    """What rows are of, each kind with how many: kernels as the report's title counts them."""
    kernels = [row for row in rows if row.levels]
    others = [row for row in rows if not row.levels]
    once = sum(row.once for row in others)
    kinds = {"library calls": len(others) - once, "made once": once}
    return ", ".join(
        [f"Kernels ({len(kernels)})", *(f"{kind} ({n})" for kind, n in kinds.items() if n)]
    )


LISTED = 20  # kernels that are listed one by one, however alike


def listed(rows: Sequence[KernelRow], detailed: Collection[int]) -> list[tuple[KernelRow, int]]:
    """The rows to list, each with how many others it stands for: of many kernels those that compute
    the same from the same lines are one, but for those of which everything is shown."""
    alike: dict[object, list[KernelRow]] = {}
    for row in rows:
        own = (row.number in detailed and row.levels) or len(rows) <= LISTED
        key = row.number if own else (row.sort, row.lines, row.operators, row.calls)
        alike.setdefault(key, []).append(row)
    return [(found[0], len(found) - 1) for found in alike.values()]


def _touched(kernel: CompiledKernel) -> int:
    """Bytes of the buffers a call touches."""
    return sum(b.nbytes for b in kernel.kernel.buffers)


def _no_text(level: str) -> Listing:
    return Listing(level, ())


def _no_work(worker: Executor) -> None:
    pass


def kernel_listing(kernel: CompiledKernel, level: str) -> Listing:
    """A kernel's text at a level, with the user's lines in it."""
    return commented(kernel.listing(level))


def kernel_text(kernel: CompiledKernel, level: str) -> str:
    """The same as one text."""
    return kernel_listing(kernel, level).text


def kernel_facts(lines: Iterable[Line]) -> list[tuple[str, str]]:
    """What the machine code of a kernel does, in its loops: vector width, kinds of instructions."""
    lines = list(lines)
    loops = [line for line in lines if line.in_loop]
    if not loops:
        return [("instructions", f"{sum(bool(line.kind) for line in lines):,}, none in a loop")]
    width = max(line.width for line in loops)
    kinds = Counter(line.kind for line in loops).most_common()
    spills = sum(line.construct == Construct.SPILL for line in loops)
    return [
        ("vectors", f"{width} bits wide" if width > 0 else "none" if not width else "scalable"),
        ("in loops", ", ".join(f"{n:,} {kind}" for kind, n in kinds)),
        ("spills", f"{spills:,} accesses to the stack for want of registers"),
    ]
