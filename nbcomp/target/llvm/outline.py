"""Private helper functions of a module: scalar functions that need branches or loops of their own.

A scalar function is normally straight-line code in the caller's block.  One that loops until all lanes
are done (`fmod`, `gcd`) or takes a slow path for rare lanes (`sin` of huge arguments) is built here
as a small LLVM function on vectors, marked for inlining where that pays, so that the caller's own
blocks stay as they were.  The definition travels with the declarations of the builder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nbcomp.target.llvm.builder import Builder, Value
from nbcomp.target.llvm.lanes import V

State = list[V]


def call(
    name: str, args: Sequence[V], build: Callable[[State], V], *, attributes: str = "alwaysinline"
) -> V:
    """Call the private function `name` on values of equal lanes; `build` writes its body once.

    Versions for other lane counts and element types are functions of their own.
    """
    b = args[0].b
    full = ".".join(["nb", name, *(f"v{a.lanes}{a.element}" for a in args)])
    signature = ", ".join(str(a.value) for a in args)
    if full not in b.declarations:
        inner = Builder()
        inner.declarations, inner.features = b.declarations, b.features
        b.declarations[full] = ""  # keeps its place while the body adds what it needs
        inner.label("entry")
        params = [V(inner, Value(f"%a{i}", a.element, a.lanes)) for i, a in enumerate(args)]
        result = build(params)
        inner.effect(f"ret {result.value}")
        head = f"define internal {result.value.type} @{full}({', '.join(str(p.value) for p in params)})"
        b.declarations[full] = "\n".join([f"{head} {attributes} nounwind {{", *inner.lines, "}"])
    element, lanes = _result_type(b.declarations[full])
    kind = Value("", element, lanes).type
    return V(b, b.emit(f"call {kind} @{full}({signature})", element, lanes))


def loop(state: State, running: Callable[[State], V], step: Callable[[State], State]) -> State:
    """Inside an outlined body: repeat `step` while `running` (an i1 per lane) holds in any lane."""
    b = state[0].b
    before = _block(b)
    stem = b.name()[1:]
    head, body, done = f"head{stem}", f"body{stem}", f"done{stem}"
    b.effect(f"br label %{head}")
    b.label(head)
    at = len(b.lines)
    phis = [V(b, Value(f"%p{b.name()[1:]}", s.element, s.lanes)) for s in state]
    b.effect(f"br {running(phis).any().value}, label %{body}, label %{done}")
    b.label(body)
    after = step(phis)
    last = _block(b)
    b.effect(f"br label %{head}")
    b.label(done)
    b.lines[at:at] = [
        f"  {p.value.text} = phi {p.value.type} [ {s.value.text}, %{before} ], "
        f"[ {a.value.text}, %{last} ]"
        for p, s, a in zip(phis, state, after, strict=True)
    ]
    return phis


def rarely(mask: V, usual: V, slow: Callable[[], V]) -> V:
    """Inside an outlined body: `usual`, or `slow()` (for all lanes) if `mask` holds in any lane."""
    b = mask.b
    before = _block(b)
    stem = b.name()[1:]
    condition = mask.any().value
    rare, join = f"rare{stem}", f"join{stem}"
    weights = '!prof !{!"branch_weights", i32 1, i32 9999}'
    b.effect(f"br {condition}, label %{rare}, label %{join}, {weights}")
    b.label(rare)
    other = slow()
    last = _block(b)
    b.effect(f"br label %{join}")
    b.label(join)
    text = (
        f"phi {usual.value.type} [ {usual.value.text}, %{before} ], [ {other.value.text}, %{last} ]"
    )
    return V(b, b.emit(text, usual.element, usual.lanes))


def _block(b: Builder) -> str:
    """The label of the block being written."""
    return next(line[:-1] for line in reversed(b.lines) if line.endswith(":"))


def _result_type(definition: str) -> tuple[str, int]:
    """Element and lanes of the result of a definition's first line."""
    kind = definition.split("define internal ")[1].split(" @")[0]
    if kind.startswith("<"):
        lanes, element = kind[1:-1].split(" x ")
        return element, int(lanes)
    return kind, 0
