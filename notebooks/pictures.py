"""Makes the pictures of the README: `make pictures`, or

    python notebooks/pictures.py docs/pictures

Compiles the digits network, times it, and takes screenshots (headless Chromium) of what a person
sees: the explorer, the static form that stands wherever the explorer cannot run, and a terminal.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nbcomp
from nbcomp.display.bundle import Report
from nbcomp.display.html.page import page
from nbcomp.display.text.ink import Ink
from nbcomp.display.view.headline import BUSY
from nbcomp.display.view.view import SECTIONS
from nbcomp.measure.comparison import check, compare
from nbcomp.measure.figures import Measured
from nbcomp.measure.kernels import measure_numbers

TRIES = 5
RNG = np.random.default_rng(0)
W1 = (RNG.standard_normal((64, 128)) * 0.2).astype(np.float32)
W2 = (RNG.standard_normal((128, 10)) * 0.2).astype(np.float32)
b1, b2 = np.zeros(128, np.float32), np.zeros(10, np.float32)
IMAGES = RNG.random((1797, 64), np.float32)


def predict(x: Any) -> Any:
    h = np.maximum(x @ W1 + b1, 0)
    z = h @ W2 + b2
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# Shows the assembly beside the source, and pins the line of the exponential.
CHOOSE = """
addEventListener('load', () => setTimeout(() => {
  const named = (selector, words) =>
    [...document.querySelectorAll(selector)].find(node => node.textContent.includes(words));
  named('[role=tab]', 'Assembly')?.click();
  setTimeout(() => named('.nbx-line', 'np.exp')?.click(), 200);
}, 200));
"""

TERMINAL = (
    "background:#16181d;color:#d7dae0;font:13px/1.4 'DejaVu Sans Mono',monospace;padding:16px"
)
ANSI = {"1": "font-weight:bold", "2": "opacity:.6", "32": "color:#4cc38a", "33": "color:#f0a860"}


def report() -> Report:
    """The compilation, compared with NumPy, timed, and held against the machine."""
    function = nbcomp.jit(predict)
    function(IMAGES)
    numbers = measure_numbers(function.compiled, (IMAGES,), seconds=1.0)
    for _ in range(TRIES):
        comparison = compare(function, predict, (IMAGES,), seconds=2.0)
        if comparison.others < BUSY:
            break
    else:  # a picture stays: no times in it that other programs disturbed
        comparison = check(function, predict, (IMAGES,))
    return Report(function.compiled, None, comparison, measured=Measured(numbers=numbers))


def pages(found: Report) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """(name, HTML, size in pixels) of each picture."""
    with tempfile.TemporaryDirectory() as folder:
        whole = found.save(Path(folder) / "x.html").read_text(encoding="utf-8")
    yield "explorer", whole.replace("</body>", f"<script>{CHOOSE}</script></body>"), (1200, 660)
    static = Report(
        found.compiled,
        None,
        found.comparison,
        show=tuple(s for s in SECTIONS if s in ("remarks", "graph", "kernels", "passes")),
        measured=found.measured,
    )
    yield "static", page(static.html(), "static"), (1000, 830)
    brief = Report(found.compiled, None, found.comparison, show=("remarks", "kernels"))
    lines = painted(brief.text(Ink(True)))
    yield "terminal", f'<body style="margin:0"><pre style="{TERMINAL}">{lines}</pre>', (860, 480)


def painted(text: str) -> str:
    """Text with a terminal's colours as HTML."""
    parts = re.split(r"\x1b\[(\d*)m", text)
    shown = [html.escape(parts[0])]
    for code, words in zip(parts[1::2], parts[2::2], strict=True):
        style = ANSI.get(code, "")
        shown.append(f'<span style="{style}">{html.escape(words)}</span>')
    return "".join(shown)


def shoot(name: str, text: str, size: tuple[int, int], folder: Path) -> Path:
    """A screenshot of a page."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if browser is None:
        sys.exit("no chromium here: it takes the pictures")
    target = folder.resolve() / f"{name}.png"
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary) / f"{name}.html"
        source.write_text(text, encoding="utf-8")
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=3000"]
        command += [f"--screenshot={target}", source.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
    return target


def main(folder: str) -> None:
    """Make all pictures."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, text, size in pages(report()):
        print(shoot(name, text, size, target))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
