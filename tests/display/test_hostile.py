"""Names, docstrings and source of others do nothing in any form: they are shown as text."""

from __future__ import annotations

import base64
import json
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.compiled import Compiled
from nbcomp.display.bundle import Explanation, Listing, Report
from nbcomp.display.html import page as pages
from nbcomp.display.payload import MIME
from nbcomp.display.text.ink import Ink, terminal_ink
from nbcomp.display.text.tables import columns, cut
from nbcomp.display.view.remarks import remark_row
from nbcomp.display.view.source import source_of
from nbcomp.display.visible import escape, visible
from nbcomp.record import Remark

RTL, ZERO, ESC, TAG = "\u202e", "\u200b", "\x1b[31m", "\U000e0041"
EVIL = f"</script><script>alert(1)</script><img src=x onerror=alert(2)>{RTL}{ZERO}{ESC}{TAG}"
HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2066-\u2069\x1b\U000e0000-\U000e0fff]")
FILE = "<a cell of an enemy>"
SOURCE = f'''\
def f(x):  # {EVIL}
    """{EVIL}"""
    if "{RTL}" != "{ZERO}":
        return np.exp(x) * 2  # `{ESC}`
'''


@pytest.fixture(scope="module")
def compiled() -> Iterator[Compiled]:
    """A function whose name and source try everything."""
    lines = SOURCE.splitlines(keepends=True)
    linecache.cache[FILE] = (len(SOURCE), None, lines, FILE)
    space: dict[str, Any] = {"np": np}
    exec(compile(SOURCE, FILE, "exec"), space)
    function = space["f"]
    function.__name__ = function.__qualname__ = EVIL
    yield nbcomp.compile(function, np.ones((40, 5)))
    del linecache.cache[FILE]


def forms(report: Report) -> dict[str, str]:
    """Every form, the pictures in it decoded."""
    data = report._repr_mimebundle_()
    html = data["text/html"]
    pictures = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", html)
    return {
        "text": data["text/plain"],
        "html": html,
        "pictures": "".join(base64.b64decode(p).decode() for p in pictures),
        "json": json.dumps(data[MIME], ensure_ascii=False),
    }


def test_nothing_hidden_gets_into_any_form(compiled: Compiled) -> None:
    for name, form in forms(Report(compiled, full=True)).items():
        assert not HIDDEN.search(form), name
        if name != "pictures":
            assert "⟨U+202E⟩" in form
            assert "⟨U+200B⟩" in form
            assert "␛[31m" in form


def test_nothing_of_it_is_markup(compiled: Compiled) -> None:
    found = forms(Report(compiled))
    for form in (found["html"], found["pictures"]):
        assert "<script" not in form
        assert "<img src=x" not in form
    assert "&lt;script&gt;alert(1)" in found["html"]


def test_a_page_holds_it_as_data(compiled: Compiled, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(pages, "explorer", lambda: "/* the explorer */")
    text = Report(compiled).save(tmp_path / "x.html").read_text(encoding="utf-8")
    assert not HIDDEN.search(text)
    assert text.count("<script") == text.count("</script>") == 2
    data = text.split(f'<script type="{MIME}">')[1].split("</script>")[0]
    assert "</script><script>alert(1)" in json.loads(data)["source"]["lines"][0]
    whole = pages.page("", EVIL)
    assert "<title>&lt;/script&gt;&lt;script&gt;" in whole
    assert "<script" not in whole


def test_the_explorers_script_cannot_end_its_element(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "explorer.js").write_text("x = '</script><!-- </SCRIPT>'", encoding="utf-8")
    monkeypatch.setattr(pages, "files", lambda _: tmp_path)
    assert pages.explorer() == r"x = '\x3c/script>\x3c!-- \x3c/SCRIPT>'"
    (tmp_path / "explorer.js").unlink()
    assert pages.explorer() == ""
    written = pages.page("<p>static</p>", "t", MIME, {"version": 2})
    assert "<script" not in written
    assert "<p>static</p>" in written


def test_explanations_and_listings(compiled: Compiled) -> None:
    remarks = [*compiled.explain(), Remark("missed", EVIL, EVIL, None, EVIL)]
    rows = tuple(map(remark_row, remarks))
    explained = Explanation(
        EVIL, rows, EVIL, source_of(compiled.location, compiled.source, [compiled], remarks)
    )
    for shown in (explained, Listing(EVIL, "graph", compiled.text("graph") + EVIL)):
        for form in shown._repr_mimebundle_().values():
            assert not HIDDEN.search(form)
            assert "␛[31m" in form
        assert "<script" not in shown._repr_mimebundle_()["text/html"]


def test_colours_are_our_own_escapes_only(compiled: Compiled) -> None:
    coloured = Report(compiled).text(Ink(True))
    assert "\x1b[1m" in coloured
    assert not re.search(r"\x1b(?!\[\d*m)", coloured)
    bare = re.sub(r"\x1b\[\d*m", "", coloured)
    assert bare == Report(compiled).text()


@pytest.mark.parametrize(
    ("environment", "tty", "coloured"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm"}, False, False),
    ],
)
def test_colours_only_where_they_are_wanted(
    environment: dict[str, str], tty: bool, coloured: bool, monkeypatch: Any
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: tty, raising=False)
    assert terminal_ink().coloured is coloured


def test_what_is_plain_stays_as_it_is() -> None:
    for text in ("plain\n\ttext", "größer ≤ 𝟙 日本語", "e\u0301"):
        assert visible(text) == text
    assert visible("\x00\x7f\ud800\u2028") == "␀⟨U+007F⟩⟨U+D800⟩⟨U+2028⟩"
    assert escape("a<b>&\"'\u202e") == "a&lt;b&gt;&amp;&quot;&#x27;⟨U+202E⟩"


def test_columns_are_those_of_a_terminal() -> None:
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert cut("日本語", 5) == "日本…"
    assert cut("short", 5) == "short"
