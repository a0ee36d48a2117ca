"""Private helper functions of a module: scalar functions that need branches or loops of their own.

A scalar function is normally straight-line code in the caller's block.  One that loops until all
lanes are done (`fmod`, `gcd`) or takes a slow path for rare lanes (`sin` of huge arguments) is
built here as a small LLVM function on vectors, marked for inlining where that pays, so that the
caller's own blocks stay as they were.  The definition travels with the declarations of the
builder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nbcomp.target.llvm.builder import Builder, Value
from nbcomp.target.llvm.lanes import V

State = list[V]
INLINE = "alwaysinline nounwind"
COLD = "noinline cold nounwind"


def call(
    name: str, args: Sequence[V], build: Callable[[State], State], attributes: str = INLINE
) -> State:
    """Call the private function `name` on values of equal lanes; `build` writes its body once.

    Versions for other lane counts and element types are functions of their own.
    """
    b = args[0].b
    full = ".".join(["nb", name, *(f"v{a.lanes}{a.element}" for a in args)])
    if full not in b.declarations:
        b.declarations[full] = ""  # keeps its place while the body adds what it needs
        b.declarations[full] = _definition(full, args, build, attributes)
    types = _result_types(b.declarations[full])
    struct = "{ " + ", ".join(t.type for t in types) + " }"
    given = ", ".join(str(a.value) for a in args)
    whole = b.emit(f"call {struct} @{full}({given})", struct)
    return [
        V(b, b.emit(f"extractvalue {whole}, {i}", t.element, t.lanes)) for i, t in enumerate(types)
    ]


def _definition(
    full: str, args: Sequence[V], build: Callable[[State], State], attributes: str
) -> str:
    """The text of a function that returns the built values as a struct."""
    inner = Builder()
    inner.declarations, inner.features = args[0].b.declarations, args[0].b.features
    inner.label("entry")
    params = [V(inner, Value(f"%a{i}", a.element, a.lanes)) for i, a in enumerate(args)]
    results = build(params)
    struct = "{ " + ", ".join(r.value.type for r in results) + " }"
    whole = "poison"
    for i, r in enumerate(results):
        whole = inner.emit(f"insertvalue {struct} {whole}, {r.value}, {i}", struct).text
    inner.effect(f"ret {struct} {whole}")
    given = ", ".join(str(p.value) for p in params)
    head = f"define internal {struct} @{full}({given}) {attributes} {{"
    return "\n".join([head, *inner.lines, "}"])


def _result_types(definition: str) -> list[Value]:
    """The types of the results in a definition's first line."""
    kinds = definition.split("{ ", 1)[1].split(" }", 1)[0].split(", ")
    found = []
    for kind in kinds:
        lanes, _, element = kind.strip("<>").rpartition(" x ")
        found.append(Value("", element, int(lanes or 0)))
    return found


def loop(state: State, running: Callable[[State], V], step: Callable[[State], State]) -> State:
    """Inside an outlined body: repeat `step` while `running` (an i1 per lane) holds in any lane."""
    b = state[0].b
    before = _block(b)
    stem = b.name()[1:]
    head, body, done = f"head{stem}", f"body{stem}", f"done{stem}"
    b.effect(f"br label %{head}")
    b.label(head)
    ahead = b.ahead(head)
    phis = [V(b, Value(f"%p{b.name()[1:]}", s.element, s.lanes)) for s in state]
    b.effect(f"br {running(phis).any().value}, label %{body}, label %{done}")
    b.label(body)
    after = step(phis)
    last = _block(b)
    b.effect(f"br label %{head}")
    b.label(done)
    ahead.lines.extend(
        f"  {p.value.text} = phi {p.value.type} [ {s.value.text}, %{before} ], "
        f"[ {a.value.text}, %{last} ]"
        for p, s, a in zip(phis, state, after, strict=True)
    )
    return phis


def rarely(mask: V, usual: State, slow: Callable[[], State]) -> State:
    """Inside an outlined body: `usual`, or `slow()` (for all lanes) if `mask` holds in any lane."""
    b = mask.b
    before = _block(b)
    stem = b.name()[1:]
    condition = mask.any().value
    rare, join = f"rare{stem}", f"join{stem}"
    weights = '!prof !{!"branch_weights", i32 1, i32 9999}'
    b.effect(f"br {condition}, label %{rare}, label %{join}, {weights}")
    b.label(rare)
    others = slow()
    last = _block(b)
    b.effect(f"br label %{join}")
    b.label(join)
    return [
        V(
            b,
            b.emit(
                f"phi {u.value.type} [ {u.value.text}, %{before} ], [ {o.value.text}, %{last} ]",
                u.element,
                u.lanes,
            ),
        )
        for u, o in zip(usual, others, strict=True)
    ]


def _block(b: Builder) -> str:
    """The label of the block being written."""
    return next(line[:-1] for line in reversed(b.lines) if line.endswith(":"))
