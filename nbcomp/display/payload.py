"""The same view as plain data, for the JupyterLab explorer: versioned, JSON only, capped in size.

A reader ignores keys it does not know and shows a notice for a newer `version`; a change of meaning
raises the number.  Knows views and drawings; it must not know how they will look.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from nbcomp.display.drawing import Drawing
from nbcomp.display.view.kernels import KernelRow
from nbcomp.display.view.view import View

MIME = "application/vnd.nbcomp.compilation+json"
VERSION = 1
MAX_CHARACTERS = 200_000  # of one kernel's text at one level


def payload(view: View) -> dict[str, Any]:
    """The report as JSON values: `version`, the words of the headline, graphs, kernels, passes,
    speed.
    """
    graphs = {"before": view.before, "after": view.after}
    data = {
        "version": VERSION,
        "name": view.name,
        "show": list(view.show),
        "status": view.status,
        "title": view.title,
        "sentences": list(view.sentences),
        "graphs": {name: _drawing(d) for name, d in graphs.items() if d},
        "kernels": [_kernel(k) for k in view.kernels],
        "passes": [asdict(p) for p in view.passes],
        "stages": [{"name": name, "seconds": value} for name, value in view.stages],
        "remarks": [asdict(r) for r in view.remarks],
        "checks": [asdict(c) for c in view.checks],
        "speed": [asdict(r) for r in view.speed],
        "speed_notes": list(view.speed_notes),
    }
    plain: dict[str, Any] = _plain(data)
    return plain


def _plain(value: Any) -> Any:
    """JSON has lists rather than tuples, and no NaN or infinity: those become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 9) if math.isfinite(value) else None
    return value


def _drawing(drawing: Drawing) -> dict[str, Any]:
    return {k: v for k, v in asdict(drawing).items() if k != "boxes"} | {
        "boxes": [
            {k: v for k, v in asdict(b).items() if v not in ("", 0, -1)} for b in drawing.boxes
        ]
    }


def _kernel(kernel: KernelRow) -> dict[str, Any]:
    texts = {}
    for level in kernel.levels:
        text = kernel.text(level)
        texts[level] = {"text": text[:MAX_CHARACTERS], "cut": len(text) > MAX_CHARACTERS}
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "number": kernel.number,
        "operators": kernel.operators,
        "lines": kernel.lines,
        "texts": texts,
    }
