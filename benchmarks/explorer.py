"""How quick the explorer is, in headless Chromium: drawing, switching tabs, hovering, scrolling.

    python -m benchmarks.explorer [--nodes 1000] [--lines 10000]

Prints medians in milliseconds, each from the call or the event to the end of the next frame, on a
made-up compilation of that size.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "nbcomp" / "display" / "explorer.js"
SOURCE_LINES = 60
PER_ROW = 8
REPEATS = 7

# Runs `act` and resolves, after the frame that shows its result, to the milliseconds it took.
TIMED = """
window.timed = act => new Promise(resolve => {
  const start = performance.now();
  act();
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resolve(performance.now() - start);
    channel.port2.postMessage(0);
  });
});
window.tab = name =>
  [...document.querySelectorAll('[role=tab]')].find(t => t.innerText.startsWith(name));
window.lines = name => document.querySelector(`.nbx-lines[aria-label="${name}"]`);
"""


def compilation(nodes: int, lines: int) -> dict[str, Any]:
    """A payload with a graph of `nodes` boxes and `lines` lines of assembly, all with places."""
    places = [{"line": 1 + i % SOURCE_LINES, "column": 4} for i in range(4 * SOURCE_LINES)]
    boxes = [
        {
            "kind": "op",
            "title": f"add_{i}",
            "detail": "f32[128, 784]",
            "tip": f"add\nline {1 + i % SOURCE_LINES}",
            "x": 150 * (i % PER_ROW),
            "y": 80 * (i // PER_ROW),
            "width": 120,
            "height": 39,
            "group": i // 50,
            "places": [i % len(places)],
        }
        for i in range(nodes)
    ]
    wires = [
        {
            "points": [[150 * (i % PER_ROW) + 60, y + 39], [150 * (j % PER_ROW) + 60, y + 80]],
            "label": "f32[128, 784]",
            "label_at": [150 * (i % PER_ROW) + 60, y + 60],
        }
        for i in range(nodes - PER_ROW)
        for y in [80 * (i // PER_ROW)]
        for j in (i, i + 1)
    ]
    height = 80 * (nodes // PER_ROW + 1)
    drawing = {"width": 150 * PER_ROW, "height": height, "boxes": boxes, "wires": wires}
    assembly = "\n".join(f"\tvfmadd231ps\t{i}(%rax), %zmm{i % 32}, %zmm1" for i in range(lines))
    text = {
        "text": assembly,
        "total": lines,
        "places": [i % len(places) for i in range(lines)],
        "constructs": [-1] * lines,
    }
    loops = {"text": "for i in 0..128 parallel:\n  a[i] = b[i]", "places": [0, 1]}
    return {
        "version": 2,
        "name": "large",
        "title": f"large: {nodes} operators",
        "sentences": [],
        "source": {"first": 1, "lines": ["    x = np.add(x, y)"] * SOURCE_LINES},
        "places": places,
        "graphs": {"after": drawing},
        "kernels": [
            {
                "name": "large",
                "kind": "map",
                "number": 0,
                "texts": {"loop": loops, "asm": text},
            }
        ],
    }


def measure(page: Page, act: str, prepare: str = "") -> float:
    """The median of several runs of a piece of script, in milliseconds."""
    times = []
    for i in range(REPEATS):
        page.evaluate(prepare.replace("STEP", str(i)) or "0")
        page.wait_for_timeout(60)
        times.append(float(page.evaluate(f"timed(() => {{ {act.replace('STEP', str(i))} }})")))
    return statistics.median(times)


def figures(page: Page) -> dict[str, float]:
    """All measurements, by name."""
    page.evaluate(TIMED)
    draw = (
        "document.body.innerText = ''; document.body.append(host = document.createElement('div'))"
    )
    hover = "document.querySelectorAll('.nbx-source .nbx-line')[STEP + 3]"
    over = f"{hover}.dispatchEvent(new MouseEvent('mouseover', {{bubbles: true}}))"
    found = {"the whole explorer, graph shown": measure(page, "nbcomp.explore(host, data)", draw)}
    found["hovering a source line, graph shown"] = measure(page, over)
    found["graph → assembly"] = measure(page, "tab('Assembly').click()", "tab('Graph').click()")
    fit = "document.querySelector('[aria-label^=Fit]').click()"
    zoom = "document.querySelector('[aria-label=\"Zoom in\"]').click()"
    closer = f"tab('Graph').click(); for (let i = 0; i < 9; i++) {zoom}"
    found["zooming out to the whole graph"] = measure(page, fit, closer)
    found["assembly → graph"] = measure(page, "tab('Graph').click()", "tab('Assembly').click()")
    page.evaluate("tab('Assembly').click()")
    found["hovering a source line, assembly shown"] = measure(page, over)
    jump = "lines('Assembly').scrollTop = (STEP + 1) * 20011"
    found["scrolling the assembly by 1,100 lines"] = measure(page, jump)
    step = "lines('Assembly').scrollTop += 120"
    found["scrolling the assembly by a notch"] = measure(page, step)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=10_000)
    wanted = parser.parse_args()
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for name in names if (path := shutil.which(name))), None)
    if browser is None or not SCRIPT.exists():
        raise SystemExit("this needs Chromium, and the front end: make explorer")
    data = json.dumps(compilation(wanted.nodes, wanted.lines)).replace("<", "\\u003c")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        script = SCRIPT.read_text(encoding="utf-8")
        file.write_text(
            '<!doctype html><meta charset="utf-8"><body><script>'
            f"{script}\nvar host, data = {data}</script></body>",
            encoding="utf-8",
        )
        launched = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = launched.new_page(viewport={"width": 1280, "height": 900})
        page.goto(file.as_uri())
        print(f"{wanted.nodes} nodes, {wanted.lines} lines of assembly; medians of {REPEATS}")
        for name, value in figures(page).items():
            print(f"{name:<42} {value:7.1f} ms")
        launched.close()


if __name__ == "__main__":
    main()
