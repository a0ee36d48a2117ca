"""Text, HTML and JSON of one report: the same facts in each, readable stripped, safe with any
names.
"""

from __future__ import annotations

import base64
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from nbcomp.display.bundle import Explanation, Listing, Report
from nbcomp.display.payload import MAX_TEXTS, MIME, VERSION
from nbcomp.display.text.report import text
from nbcomp.display.view.reads import Fallback
from nbcomp.display.view.remarks import remark_row
from nbcomp.display.view.view import SECTIONS, view
from nbcomp.display.view.words import ratio_words, seconds
from nbcomp.measure.comparison import Comparison
from nbcomp.measure.differences import Difference
from nbcomp.measure.scaling import Point, Scaling
from nbcomp.record import Location, Remark

Measured = tuple[Comparison, Scaling]
MakeCompiled = Callable[..., SimpleNamespace]


class Reader(HTMLParser):
    """The visible text of HTML, with `alt` in place of images; notes tags and attributes."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(k, v or "") for k, v in attrs]
        self.words += [v or "" for k, v in attrs if k == "alt"]
        if tag not in ("img", "br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def report(compiled: SimpleNamespace, measured: Measured) -> Report:
    return Report(compiled, "value", *measured)


# -------------------------------------------------------------------------------------- agreement


def test_every_format_holds_the_headline_and_the_facts(report: Report) -> None:
    data = report._repr_mimebundle_()
    assert list(data) == ["text/plain", "text/html", MIME]
    plain, seen, payload = data["text/plain"], Reader(data["text/html"]).text, data[MIME]
    assert payload["title"] == report.view.title
    facts = [report.view.title, *report.view.sentences, *report.view.speed_notes]
    facts += [k.name for k in report.view.kernels] + [p.name for p in report.view.passes]
    facts += [r.reason for r in report.view.remarks] + [r.hint for r in report.view.remarks]
    flat = " ".join(plain.split())
    for fact in facts:
        assert fact in flat
        assert fact in seen
        assert fact in " ".join(json.dumps(payload, ensure_ascii=False).split())


def test_the_sections_agree(report: Report) -> None:
    data = report._repr_mimebundle_()
    for title in ("Kernels", "Passes", "Line by line", "Speed across batch sizes"):
        assert f"\n{title}\n" in data["text/plain"]
        assert title in Reader(data["text/html"]).text
    assert {"kernels", "passes", "remarks", "speed", "graphs"} <= data[MIME].keys()


@pytest.mark.parametrize("section", SECTIONS)
def test_one_section_can_be_shown_alone(
    section: str, compiled: SimpleNamespace, measured: Measured
) -> None:
    data = Report(compiled, None, *measured, show=(section,))._repr_mimebundle_()
    others = {"speed": "Speed", "kernels": "Kernels", "passes": "Passes", "remarks": "Line by line"}
    for name, title in others.items():
        assert (f"\n{title}" in data["text/plain"]) == (name == section)
        assert (f"<b>{title}" in data["text/html"]) == (name == section)


def test_slower_is_said_plainly(report: Report) -> None:
    assert "slower than NumPy at batch 1" in report.view.speed_notes
    assert report.view.speed[0].verdict == "slower than NumPy"
    assert "slower than NumPy at batch 1" in str(report)
    assert "slower than NumPy at batch 1" in Reader(report.html()).text
    assert "not measured: batch 16,384 (out of time)" in str(report)


def test_a_wrong_answer_is_said_first(compiled: SimpleNamespace) -> None:
    wrong = Comparison((Difference("result", math.inf, 1.0, "differs at [0]: 1 where 2"),))
    report = Report(compiled, None, wrong)
    assert report.view.status == "wrong"
    assert "WRONG ANSWER: result differs at [0]: 1 where 2" in report.headline
    assert "not timed" in report.headline


def test_what_ran_in_numpy_says_why_and_where() -> None:
    location = Location("<cell>", 4)
    report = Report(Fallback("f", "np.fft.fft is not compiled", location, "use a matmul"), 1)
    for seen in (
        str(report),
        Reader(report.html()).text,
        json.dumps(report._repr_mimebundle_()[MIME]),
    ):
        assert "it ran in NumPy because of line 4" in seen
        assert "np.fft.fft is not compiled" in seen
        assert "use a matmul" in seen


# -------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_text_fits_its_width(report: Report, width: int) -> None:
    longest = max(max(map(len, line.split()), default=0) for line in str(report).splitlines())
    for line in text(report.view, width).splitlines():
        assert len(line) <= max(width, longest + 4)


def test_text_alone_makes_no_drawing_and_no_assembly(
    report: Report, compiled: SimpleNamespace
) -> None:
    data = report._repr_mimebundle_(include={"text/plain"})
    assert list(data) == ["text/plain"]
    assert all(not k.asked for k in compiled.kernels)
    assert "after" not in report.view.__dict__


def test_the_terminal_form(report: Report, golden: Callable[[str], None]) -> None:
    golden(text(report.view, 100))


# -------------------------------------------------------------------------------------------- html


def test_html_needs_no_script_and_no_style_sheet(report: Report) -> None:
    seen = Reader(report.html())
    assert not set(seen.tags) & {"script", "style", "link", "iframe", "svg", "input", "object"}
    assert not any(name.startswith("on") or name == "id" for name, _ in seen.attributes)
    assert [v for k, v in seen.attributes if k == "class"] == ["nbcomp"]
    assert seen.open == []


def test_html_stripped_of_styles_is_still_complete(report: Report) -> None:
    bare = re.sub(r' style="[^"]*"', "", report.html())
    seen = Reader(bare).text
    for fact in (report.view.title, "as written", "after the passes", "loop IR", "vaddps", "4.20×"):
        assert fact in seen
    assert "Graph of predict: 15 nodes in 4 kernels" in seen  # in place of the picture


def test_html_caps_long_texts_and_says_how_to_get_the_rest(report: Report) -> None:
    seen = Reader(report.html()).text
    assert "… 202 more lines" in seen
    assert 'predict.compiled.text("asm")' in seen


def test_pictures_are_embedded_and_described(report: Report) -> None:
    attributes = Reader(report.html()).attributes
    sources = [v for k, v in attributes if k == "src"]
    assert len(sources) == 3
    for source in sources:
        picture = base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode()
        assert "<svg" in picture
        assert "<script" not in picture
    assert all(v for k, v in attributes if k == "alt")


def test_colours_follow_the_theme(report: Report) -> None:
    root = dict(Reader(report.html()).attributes)["style"]
    assert "var(--jp-" in report.html()
    assert "var(--vscode-" in report.html()
    assert "background:#fff" not in root


EVIL = '<img src=x onerror="alert(1)"></pre><script>alert(2)</script>&amp;'


def test_names_sources_and_texts_are_shown_as_text(make_compiled: MakeCompiled) -> None:
    compiled = make_compiled(
        name=EVIL,
        target=EVIL,
        explain=lambda: [Remark("missed", EVIL, EVIL, Location(EVIL, 3), EVIL)],
    )
    for kernel in compiled.kernels:
        kernel.texts = {level: EVIL for level in kernel.texts}
    compiled.trace.snapshots[1].name = EVIL
    compiled.trace.snapshots[1].description = EVIL
    wrong = Comparison((Difference(EVIL, 1.0, 1.0, EVIL),))
    seen = Reader(Report(compiled, None, wrong, Scaling((), reason=EVIL)).html())
    assert seen.text.count(" ".join(EVIL.split())) >= 10
    assert "script" not in seen.tags
    assert not any(name == "onerror" for name, _ in seen.attributes)


def test_save_writes_a_page_of_its_own(report: Report, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        report.save(tmp_path / "nowhere" / "report.html")
    path = report.save(tmp_path / "report.html")
    written = path.read_text(encoding="utf-8")
    assert written.startswith("<!DOCTYPE html>")
    seen = Reader(written)
    assert all(v.startswith("data:") for k, v in seen.attributes if k in ("src", "href"))
    assert "url(" not in written
    assert "@import" not in written
    assert seen.open == []


def test_listing_and_explanation() -> None:
    listing = Listing("f: asm", "asm", "f:\n  ret # <b>")
    data = listing._repr_mimebundle_()
    assert data["text/plain"] == "f:\n  ret # <b>"
    assert "&lt;b&gt;" in data["text/html"]
    remarks = tuple(map(remark_row, [Remark("missed", "fusion", "why not", Location("<c>", 7))]))
    data = Explanation("f: 1 remark", remarks)._repr_mimebundle_()
    for seen in (data["text/plain"], Reader(data["text/html"]).text):
        assert "line 7" in seen
        assert "why not" in seen


# -------------------------------------------------------------------------------------------- json


def test_the_payload_is_plain_json(report: Report) -> None:
    payload = report._repr_mimebundle_()[MIME]
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    assert payload["version"] == VERSION
    after = payload["graphs"]["after"]
    assert len(after["frames"]) == 4
    assert {"title", "x", "y", "width", "height"} <= after["boxes"][0].keys()
    assert payload["kernels"][1]["texts"]["asm"]["cut"] is False


def test_the_payload_is_capped(compiled: SimpleNamespace) -> None:
    compiled.kernels[0].texts["asm"] = "nop\n" * 200_000
    payload = Report(compiled)._repr_mimebundle_()[MIME]
    capped = payload["kernels"][1]["texts"]["asm"]
    assert capped["cut"] is True
    assert len(capped["text"]) < MAX_TEXTS
    assert capped["total"] == 200_000
    assert len(capped["places"]) == len(capped["text"].splitlines())
    whole = Report(compiled, full=True)._repr_mimebundle_()[MIME]["kernels"][1]["texts"]["asm"]
    assert whole["cut"] is False
    assert len(whole["text"].splitlines()) == 200_000


def test_nan_becomes_null(compiled: SimpleNamespace) -> None:
    wrong = Comparison((Difference("result", math.inf, math.inf, "differs"),))
    scaling = Scaling((Point(4, 0.1, wrong),))
    row = Report(compiled, None, wrong, scaling)._repr_mimebundle_()[MIME]["speed"][0]
    assert row["ratio"] is None
    assert row["verdict"] == "WRONG ANSWER: differs"


def test_there_is_no_svg_at_the_top_level(report: Report) -> None:
    assert not any(mime.startswith("image/") for mime in report._repr_mimebundle_())


# ------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.5, "1.50 s"),
        (0.0534, "53.4 ms"),
        (9.9996e-4, "1.00 ms"),
        (2e-7, "200 ns"),
        (0.0, "0.00 ns"),
    ],
)
def test_seconds(value: float, words: str) -> None:
    assert seconds(value) == words


@pytest.mark.parametrize(
    ("ratio", "low", "high", "status"),
    [(2.0, 1.9, 2.1, "faster"), (1.02, 0.98, 1.05, "same"), (0.5, 0.4, 0.6, "slower")],
)
def test_a_gain_within_the_noise_is_no_gain(
    ratio: float, low: float, high: float, status: str
) -> None:
    assert ratio_words(ratio, low, high)[0] == status


def test_of_a_wide_spread_the_sure_end_is_said() -> None:
    assert ratio_words(80.0, 2.29, 493.0) == (
        "faster",
        "at least 2.29× faster than NumPy (up to 493)",
    )
    assert ratio_words(0.1, 0.02, 0.5) == (
        "slower",
        "at least 2.00× slower than NumPy (up to 50.0)",
    )
    assert "at least" not in ratio_words(8.0, 7.0, 12.0)[1]


def test_an_unmeasured_compilation(compiled: SimpleNamespace) -> None:
    shown = view(compiled)
    assert shown.status == "untimed"
    assert "not compared with NumPy" in shown.sentences


def test_importing_the_display_imports_no_plotting_library() -> None:
    program = "import nbcomp.display.bundle, sys; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_verdict_is_about_speed_and_has_its_own_column(report: Report) -> None:
    assert [row.verdict for row in report.view.speed] == ["slower than NumPy", *["faster"] * 3]
    assert "differs  verdict" in report.speed
    assert "unclear" in ratio_words(1.2, 0.5, 2.0)[1]
    assert "about as fast as NumPy" in ratio_words(1.0, 0.95, 1.04)[1]


def test_a_disturbed_speed_up_is_called_uncertain_beside_the_number(report: Report) -> None:
    busy = replace(report.comparison, others=1.5)
    (line,) = [s for s in view(report.compiled, busy).sentences if "faster" in s]
    assert line.endswith("uncertain: other programs kept 1.5 cores busy meanwhile")


def test_a_difference_near_zero_is_said_by_the_size_of_the_answer(report: Report) -> None:
    found = (Difference("result", 79433.0, 5e-15, "", 6.0),)
    words = view(report.compiled, replace(report.comparison, differences=found)).sentences
    said = "largest difference from NumPy's answer 5e-15 (6.0 ulp of the largest)"
    assert any(s.startswith(said) for s in words)
    assert not any("79433" in s for s in words)


def test_descriptions_of_passes_are_not_cut(report: Report) -> None:
    shown = " ".join(text(report.view, 60).split())
    for row in report.view.passes:
        assert (row.description if row.diffs else row.name) in shown


def test_passes_without_a_change_are_named_together(report: Report) -> None:
    shown = " ".join(text(report.view, 60).split())
    idle = [row.name for row in report.view.passes if not row.diffs]
    assert idle
    named = shown.partition("without a change: ")[2]
    assert all(name in named or f"graph {name}" in shown for name in idle)


def test_a_narrow_terminal_has_the_verdict_on_each_batch_size(report: Report) -> None:
    for width in (50, 60, 120):
        lines = text(report.view, width).splitlines()
        (head,) = (line for line in lines if line.startswith("  batch"))
        assert head.endswith("verdict")
