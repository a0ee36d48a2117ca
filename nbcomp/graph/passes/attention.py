"""Attention: a product, a kernel that works on its rows (softmax), and a product with the result.

Found by its shape, not by its operators: whatever is done to the scores between the two products,
scaled, masked, capped, as long as a row is all that an element needs, stays between them.  Such a
group is computed by blocks of rows, which never leave the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract
from nbcomp.graph.passes.drafts import Draft, Drafts
from nbcomp.graph.passes.materialise import storage
from nbcomp.record import Remark, overtaken, remark
from nbcomp.sizes import is_open
from nbcomp.types import FLOAT32, FLOAT64

FEW_ROWS = 8  # queries: below, the products are those of vectors, whose operands are read once
ROWS_BYTES = 256 << 10  # of the scores that a kernel keeps


@dataclass(frozen=True)
class Attention:
    """The two products and a node of the kernel between them."""

    scores: Node
    weights: Node
    result: Node


def attentions(drafts: Drafts) -> Iterator[tuple[Attention, str]]:
    """Every candidate among the groups, and why it cannot be one kernel (empty if it can)."""
    for node in drafts.graph.nodes:
        if _wide_product(node) and node.inputs[0] in drafts.group:
            rows = drafts.group[node.inputs[0]]
            scores = [n for n in _read_by(rows) if _wide_product(n)]
            if _reduces_rows(rows) and len(scores) == 1:
                found = Attention(scores[0], node.inputs[0], node)
                yield found, _why_not(found, rows, drafts)


def _wide_product(node: Node) -> bool:
    return isinstance(node.op, Contract) and not node.op.narrow


def _read_by(rows: Draft) -> Iterator[Node]:
    """Products that a group reads, each once."""
    inside = set(rows.nodes)
    operands = dict.fromkeys(i for n in rows.nodes for i in n.inputs if i not in inside)
    return (n for n in operands if n.shape == rows.space)


def _reduces_rows(rows: Draft) -> bool:
    last = (len(rows.space) - 1,)
    return rows.kind == "reduce" and rows.axes == last and not rows.components


def _why_not(found: Attention, rows: Draft, drafts: Drafts) -> str:
    inside = {*rows.nodes, found.result}
    if found.result.type.dtype not in (FLOAT32, FLOAT64):
        return "its tiles are for float32 and float64"
    if found.weights.shape != rows.space or found.result.shape[:-2] != rows.space[:-2]:
        return "the second product has a batch of its own"
    if is_open(rows.space[-2:]):
        return "blocks of rows are made for lengths that are known, and these are open"
    if rows.space[-2] < FEW_ROWS:
        return f"{rows.space[-2]} rows are too few to share what they read"
    if FEW_ROWS * rows.space[-1] * found.result.type.dtype.itemsize > ROWS_BYTES:
        return f"rows of {rows.space[-1]:,} scores do not stay in the cache"
    results = set(map(storage, drafts.graph.outputs))
    for node in (found.scores, *rows.nodes):
        if node in results or any(u not in inside for u in drafts.real_users(node)):
            return f"{node.title} is needed whole elsewhere"
    if found.result.inputs[1] in inside:
        return "the second product needs all of the first"
    return ""


def refused(found: Attention, why: str) -> Remark:
    """That two products and what lies between them stay apart."""
    what = f"{found.scores.title}, its rows and {found.result.title}"
    hint = "what is needed of the weights can be computed from them by rows, in the same place"
    hint = hint if "elsewhere" in why else ""
    return Remark("missed", "attention", f"{what} are separate: {why}", found.result.location, hint)


def applied(found: Attention) -> None:
    """Say that an attention is one kernel."""
    size = found.scores.type
    reason = (
        f"{found.result.title} is one kernel with the scores it is made from: these ({size}) are"
        " computed by blocks of rows and never stored whole"
    )
    for product in (found.scores, found.result):
        overtaken(("library", "loops"), product.location)
    remark("applied", "attention", reason, found.result.location)
