"""One row for each decision, on the user's line."""

from __future__ import annotations

from dataclasses import dataclass

from nbcomp.record import Kind, Remark


@dataclass(frozen=True)
class RemarkRow:
    """One decision: the user's line (0: none) and its text, what was decided and why."""

    line: int
    source: str
    done: bool
    topic: str
    reason: str
    hint: str
    mark: Kind = "missed"


def remark_row(remark: Remark) -> RemarkRow:
    """A remark with the text of its line."""
    location = remark.location
    return RemarkRow(
        line=location.line if location else 0,
        source=location.source_line().strip() if location else "",
        done=remark.kind == "applied",
        topic=remark.topic,
        reason=remark.reason,
        hint=remark.hint,
        mark=remark.kind,
    )
