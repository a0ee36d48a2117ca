"""One row for each batch size that was timed, and what is to be said of all of them."""

from __future__ import annotations

from dataclasses import dataclass

from nbcomp.display.view.headline import others_words
from nbcomp.display.view.words import distance_words, ratio_words, seconds
from nbcomp.measure.scaling import Scaling

VERDICTS = {
    "faster": "faster",
    "slower": "slower than NumPy",
    "same": "same speed within the spread",
}


@dataclass(frozen=True)
class SpeedRow:
    """One batch size: seconds of both sides, their ratio with quartiles, what to say of it."""

    size: int
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    ulp: float
    first_call: float
    verdict: str
    scaled: float = 0.0


def speed_rows(scaling: Scaling | None) -> list[SpeedRow]:
    """The rows of all batch sizes."""
    rows = []
    for point in scaling.points if scaling else ():
        c = point.comparison
        if c.compiled is None or c.reference is None:
            problem = next((d.problem for d in c.differences if d.problem), "not timed")
            nan = float("nan")
            numbers = (nan,) * 5
            verdict = f"WRONG ANSWER: {problem}"
        else:
            numbers = (
                c.compiled.median,
                c.reference.median,
                c.speedup,
                c.speedup_low,
                c.speedup_high,
            )
            status, _ = ratio_words(*numbers[2:])
            verdict = VERDICTS[status]
        rows.append(SpeedRow(point.size, *numbers, c.ulp, point.first_call, verdict, c.scaled))
    return rows


def speed_notes(scaling: Scaling | None) -> list[str]:
    """What is to be said of all sizes together, and why some are missing."""
    if scaling is None:
        return []
    notes = [scaling.reason] if scaling.reason else []
    slower = [p.size for p in scaling.points if p.comparison.speedup_high < 1.0]
    unclear = [
        p.size
        for p in scaling.points
        if p.size not in slower and p.comparison.speedup_low < 1.0 and p.comparison.speedup < 1.0
    ]
    if slower:
        notes.append(f"slower than NumPy at batch {', '.join(f'{n:,}' for n in slower)}")
    if unclear:
        notes.append(f"unclear which is faster at batch {', '.join(f'{n:,}' for n in unclear)}")
    elif not slower and scaling.points and not scaling.wrong:
        notes.append("at no measured batch size slower than NumPy")
    if scaling.wrong:
        notes.append(f"WRONG ANSWER at batch {', '.join(f'{n:,}' for n in scaling.wrong)}")
    by_reason: dict[str, list[int]] = {}
    for size, why in scaling.skipped:
        by_reason.setdefault(why, []).append(size)
    if words := others_words(scaling.others):
        notes.append(f"{words}: the times are uncertain")
    for why, sizes in by_reason.items():
        notes.append(f"not measured: batch {', '.join(f'{n:,}' for n in sizes)} ({why})")
    return notes


def speed_cells(row: SpeedRow) -> tuple[str, ...]:
    """The cells of one row of the speed table."""
    if row.ratio != row.ratio:  # not timed
        return (f"{row.size:,}", "", "", "", "", "", row.verdict)
    return (
        f"{row.size:,}",
        seconds(row.ours),
        seconds(row.theirs),
        f"{_ratio(row.ratio)}×",
        f"{_ratio(row.low)}–{_ratio(row.high)}",
        distance_words(row.ulp, row.scaled),
        row.verdict,
    )


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"
