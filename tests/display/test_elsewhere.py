"""Where the extension is missing: saved notebooks, sanitisers, PDF, plain HTML."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter, LatexExporter

import nbcomp
from nbcomp.display.bundle import Report
from nbcomp.display.payload import MIME

X = np.random.default_rng(0).random((50, 20), np.float32)


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def report() -> Report:
    return Report(nbcomp.compile(softmax, X))


@pytest.fixture(scope="module")
def notebook(report: Report) -> Any:
    """A notebook with the report as its only output."""
    data = report._repr_mimebundle_()
    output = nbformat.v4.new_output("display_data", data=data)
    cell = nbformat.v4.new_code_cell("softmax(x)", outputs=[output], execution_count=1)
    return nbformat.v4.new_notebook(cells=[cell])


def test_stripped_of_everything_it_is_complete(report: Report) -> None:
    soup = BeautifulSoup(report.html(), "html.parser")
    for tag in soup(["script", "style", "link", "svg"]):
        tag.decompose()
    for tag in soup.find_all(True):
        tag.attrs = {k: v for k, v in tag.attrs.items() if k == "alt"}
    words = " ".join(soup.get_text(" ").split())
    words += " ".join(image["alt"] for image in soup.find_all("img"))
    view = report.view
    assert view.source is not None
    facts = [view.title, *view.sentences, *(m.reason.replace("`", "") for m in view.source.marks)]
    facts += [line.strip() for line in view.source.lines if line.strip()]
    facts += [k.name for k in view.kernels] + [p.name for p in view.passes]
    facts += ["vmaxps", "Graph of softmax", "for i in 0..50", "define"]
    flat = re.sub(r"\s", "", words)
    assert not [fact for fact in facts if re.sub(r"\s", "", fact) not in flat]


def test_no_attribute_acts_and_nothing_is_fetched(report: Report) -> None:
    soup = BeautifulSoup(report.html(), "html.parser")
    for tag in soup.find_all(True):
        assert set(tag.attrs) <= {"style", "class", "src", "alt", "open", "aria-hidden"}
        assert tag.get("src", "data:image/").startswith("data:image/")


def test_leading_spaces_of_lines_survive_a_parser(report: Report) -> None:
    soup = BeautifulSoup(report.html(), "html.parser")
    (line,) = (p for p in soup.find_all("pre") if p.get_text().strip().startswith("return e /"))
    assert line.get_text().startswith("    return")


def test_a_saved_notebook_is_a_page(notebook: Any) -> None:
    html, _ = HTMLExporter().from_notebook_node(notebook)
    assert "softmax: 5 operators in 1 kernel" in html
    assert "Line by line" in html


def test_a_saved_notebook_is_a_paper_without_inkscape(notebook: Any) -> None:
    latex, _ = LatexExporter().from_notebook_node(notebook)
    assert "softmax: 5 operators in 1 kernel" in latex


def test_what_it_adds_to_a_notebook_is_bounded(report: Report) -> None:
    assert len(json.dumps(report._repr_mimebundle_()).encode()) < 1_000_000

    def many(x: Any) -> Any:
        for _ in range(60):
            x = np.sort(softmax(x) @ x.T @ x, axis=0)
        return x

    large = Report(nbcomp.compile(many, X))
    assert len(json.dumps(large._repr_mimebundle_()).encode()) < 1_000_000
    assert "--full" in json.dumps(large._repr_mimebundle_()[MIME])


def test_a_terminal_imports_no_matplotlib_for_text() -> None:
    program = (
        "import nbcomp, numpy as np, sys;"
        "str(nbcomp.compile(lambda x: x + 1, np.ones(9)));"
        "sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
