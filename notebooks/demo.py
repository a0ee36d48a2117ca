"""Runs a notebook without a browser and shows what came out.

python notebooks/demo.py notebooks/01_first_compile.ipynb build/01_first_compile.html

Prints the headline and the speed table of its first compilation, and leaves the executed notebook
as an HTML page.  Ends with an error when a cell fails.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

MIME = "application/vnd.nbcomp.compilation+json"


def reports(notebook: nbformat.NotebookNode) -> list[str]:
    """The text form of every report in the notebook, in order."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", ())]
    shown = [o["data"] for o in outputs if MIME in o.get("data", {})]
    return [data["text/plain"] for data in shown]


def parts(report: str) -> str:
    """The headline and the speed table of a report; its blocks are separated by empty lines."""
    headline, *blocks = report.split("\n\n")
    speed = [b for b in blocks if b.startswith("Speed")]
    return "\n\n".join([headline, *speed])


def main(source: str, target: str) -> int:
    """Execute `source`, print the result, write `target`; the exit status."""
    notebook = nbformat.read(source, as_version=4)
    folder = str(Path(source).resolve().parent)
    client = NotebookClient(
        notebook,
        timeout=600,
        resources={"metadata": {"path": folder}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    print(f"running {source} …", flush=True)
    try:
        client.execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    found = reports(notebook)
    if not found:
        print("the notebook shows no compilation", file=sys.stderr)
        return 1
    html, _ = HTMLExporter(theme="light").from_notebook_node(notebook)
    page = Path(target)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(html, encoding="utf-8")
    print(f"\n{parts(found[0])}\n\nThe whole notebook, with every level of the code: {page}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python notebooks/demo.py NOTEBOOK.ipynb PAGE.html", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
