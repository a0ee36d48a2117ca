"""One row for each decision, on the user's line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

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


def merged(remarks: Iterable[Remark]) -> list[Remark]:
    """Remarks of one line that differ only in the number of a kernel or a layer, as one: layers are
    alike."""
    alike: dict[tuple[object, ...], list[Remark]] = {}
    for r in remarks:
        where = (r.location.file, r.location.line) if r.location else ()
        key = (where, r.kind, r.topic, r.hint, _NUMBER.sub("", r.reason))
        alike.setdefault(key, []).append(r)
    return [_one(found) for found in alike.values()]


_NUMBER = re.compile(r"(?<=\w)_\d+\b|(?<=[`.])\d+(?=[`.])")


def _one(found: list[Remark]) -> Remark:
    if len(found) == 1:
        return found[0]
    more = f"{found[0].reason}; {len(found) - 1} more like it"
    return replace(found[0], reason=more)


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
