"""The benchmark's result as tables: Markdown text from the plain record that is saved as JSON.

Knows only the record.  A row where nbcomp is behind the best of the others says so in words.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

from benchmarks.peers import PEERS

Row = dict[str, Any]
NOISE = 0.1  # cores kept busy by other programs that are worth a word


def microseconds(seconds: float) -> str:
    """A time in µs with about three significant digits."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def medians(row: Row) -> dict[str, float]:
    """Seconds per contestant that has times."""
    return {o["peer"]: o["time"]["median"] for o in row["outcomes"] if o["time"]}


def best_other(row: Row) -> tuple[str, float] | None:
    """The fastest contestant that is not nbcomp."""
    others = {peer: t for peer, t in medians(row).items() if peer != "nbcomp"}
    return min(others.items(), key=lambda item: item[1]) if others else None


def ratio(row: Row) -> float | None:
    """How many times as fast as the best of the others nbcomp is."""
    best, own = best_other(row), medians(row).get("nbcomp")
    return best[1] / own if best and own else None


def geometric_mean(values: list[float]) -> float:
    """Of a list that is not empty."""
    return exp(sum(log(v) for v in values) / len(values))


def _standing(row: Row) -> str:
    own = next((o for o in row["outcomes"] if o["peer"] == "nbcomp"), None)
    if own is None:
        return "–"
    if own["failed"]:
        return f"**failed**: {own['failed']}"
    value = ratio(row)
    if value is None:
        return "–"
    return f"{value:.2f}×" if value >= 1 else f"**behind: {value:.2f}×**"


def _share(row: Row) -> str:
    """The rate at which nbcomp moves a row's arrays, against that of memory right before and after,
    and against moving these arrays in the same rounds and nothing else: they may fit a cache."""
    own, limit = medians(row).get("nbcomp"), row["limit"]
    if own is None or limit is None:
        return ""
    how = {"read": "reading", "copy": "copying"}[row["traffic"]]
    rate = row["bytes"] / own / 1e9
    memory = f"{rate:.1f} GB/s, {rate / row['memory']:.0%} of memory's"
    return f"{memory}; {limit['median'] / own:.0%} of {how} the arrays"


def _cell(outcome: Row, best: str) -> str:
    if outcome["failed"]:
        return "✗"
    text = microseconds(outcome["time"]["median"])
    return f"**{text}**" if outcome["peer"] == best else text


def _table(header: list[str], lines: list[list[str]]) -> list[str]:
    rule = ["---", *["--:"] * (len(header) - 1)]
    return ["| " + " | ".join(cells) + " |" for cells in (header, rule, *lines)]


def times(record: Row) -> list[str]:
    """Median µs per row and contestant; the best of the others in bold, then how nbcomp stands."""
    peers = record["peers"]
    header = ["median µs", *(PEERS[p].label for p in peers)]
    header += ["best other / nbcomp", "nbcomp, 10–90 %", "bandwidth"]
    lines = []
    for row in record["rows"]:
        best = best_other(row)
        cells = [_cell(o, best[0] if best else "") for o in row["outcomes"]]
        spread = next((o["time"] for o in row["outcomes"] if o["peer"] == "nbcomp"), None)
        band = f"{microseconds(spread['low'])}–{microseconds(spread['high'])}" if spread else "–"
        lines.append([row["title"], *cells, _standing(row), band, _share(row)])
    return _table(header, lines)


def first_calls(record: Row) -> list[str]:
    """Seconds of the first call in a fresh process, imports and inputs done before."""
    peers = record["peers"]
    lines = [
        [row["title"], *("✗" if o["failed"] else f"{o['first_call']:.3f}" for o in row["outcomes"])]
        for row in record["rows"]
    ]
    return _table(["first call, s", *(PEERS[p].label for p in peers)], lines)


def failures(record: Row) -> list[str]:
    """Why a cell is ✗."""
    lines = [
        f"- {PEERS[o['peer']].label}, {row['title']}: {o['failed']}"
        for row in record["rows"]
        for o in row["outcomes"]
        if o["failed"]
    ]
    return ["✗ refused the row or gave another answer than NumPy:", "", *lines]


def summary(record: Row) -> list[str]:
    """One sentence: the geometric mean, and how many rows are behind."""
    ratios = [value for row in record["rows"] if (value := ratio(row)) is not None]
    if not ratios:
        return []
    behind = [row["title"] for row in record["rows"] if (ratio(row) or 1) < 1]
    text = (
        f"nbcomp against the best of the others, row by row: {geometric_mean(ratios):.2f}× in "
        f"geometric mean over {len(ratios)} rows; "
    )
    return [
        text + (f"behind on {len(behind)}: {'; '.join(behind)}." if behind else "behind on none.")
    ]


def setting(record: Row) -> list[str]:
    """The machine, its measured limits, versions, and how the numbers were taken."""
    machine = record["machine"]
    lines = [
        f"{machine['processor']}, {record['threads']} thread(s), Python {machine['python']}; "
        f"BLAS of NumPy: {', '.join(machine['blas']) or 'unknown'}.",
        "Versions: "
        + ", ".join(f"{PEERS[p].label} {v}" for p, v in record["versions"].items())
        + ".",
    ]
    for threads, rates in record["limits"].items():
        lines.append(
            f"Measured limits, {threads} thread(s): copy {rates['copy']:.1f} GB/s, with streaming "
            f"stores {rates['stream']:.1f} GB/s, read {rates['read']:.1f} GB/s, float32 "
            f"multiply-add {rates['fma']:.0f} GFLOP/s."
        )
    lines.append(
        f"{record['rounds']} alternating rounds of {record['seconds']} s each, every contestant in "
        "its own process, its result first compared with NumPy's (dtype, shape, and values within "
        "the row's tolerance, relative to the largest magnitude)."
    )
    if record["others_busy"] > NOISE:
        lines.append(
            f"**Other programs kept {record['others_busy']:.1f} cores busy meanwhile: the times "
            "are uncertain.**"
        )
    return lines


def overheads(record: Row) -> list[str]:
    """The rows that are not about arithmetic: calls, compiling, importing."""
    lines = [
        [o["title"], o["value"], o["against"], o["target"], "yes" if o["met"] else "**no**"]
        for o in record["overheads"]
    ]
    cold = [
        (o["first_call"], row["title"])
        for row in record["rows"]
        for o in row["outcomes"]
        if o["peer"] == "nbcomp" and o["first_call"] is not None
    ]
    if cold:
        seconds, title = max(cold)
        met = "yes" if seconds <= 0.25 else "**no**"
        lines.append(["slowest cold first call", f"{seconds:.3f} s", title, "0.25 s", met])
    return _table(["overhead", "nbcomp", "against", "target", "met"], lines) if lines else []


def markdown(record: Row) -> str:
    """The whole report."""
    parts = [summary(record), times(record), first_calls(record), overheads(record)]
    parts += (
        [failures(record)]
        if any(o["failed"] for r in record["rows"] for o in r["outcomes"])
        else []
    )
    parts.append(setting(record))
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
