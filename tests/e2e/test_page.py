"""The explorer in a page of its own: every view, by mouse and by keyboard, light and dark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

import nbcomp
from nbcomp.display.bundle import Report
from nbcomp.display.payload import payload as payload_of
from tests.display.test_linked import KINDS, of_loops, of_parts
from tests.display.test_schema import FULL
from tests.e2e.conftest import Sight
from tests.e2e.example import EXP_LINE, compiled_payload, hostile, layered_payload

See = Callable[..., Sight]
PageOf = Callable[[object], str]


@pytest.fixture(scope="module")
def payload() -> dict[str, Any]:
    return compiled_payload()


@pytest.fixture(scope="module")
def everything(payload: dict[str, Any]) -> dict[str, Any]:
    """A real compilation, with the sections that only measuring or a second run would bring."""
    data = deepcopy(FULL | payload)
    data["kernels"][0]["cpus"] = [
        {"name": name, "note": "", "text": data["kernels"][0]["texts"]["asm"]}
        for name in ("SSE2", "AVX2", "NEON")
    ]
    data["speed"] = [
        {"size": n, "ratio": r, "low": 0.9 * r, "high": 1.1 * r, "ours": 1e-5, "theirs": r * 1e-5}
        for n, r in ((1, 0.8), (64, 2.0), (1024, 6.0))
    ]
    for section in ("numbers", "ablation", "history", "provenance", "stale", "checks"):
        data[section] = deepcopy(FULL[section])
    data["numbers"]["kernels"][0]["kernel"] = data["kernels"][0]["name"]
    return data


def line(page: Page, number: int) -> Any:
    """A line of the user's source."""
    return page.locator(".nbx-source .nbx-line").nth(number - 1)


def tab(page: Page, name: str) -> Any:
    return page.get_by_role("tab", name=re.compile(f"^{name}"))


def chosen_in_sight(page: Page) -> None:
    """Wait until a highlighted line of the level that is shown is inside its pane."""
    page.wait_for_function(
        """() => [...document.querySelectorAll('.nbx-levels .nbx-line.nbx-same')].some(line => {
            const [l, p] = [line, line.closest('.nbx-lines')].map(e => e.getBoundingClientRect());
            return p.height && l.top >= p.top && l.bottom <= p.bottom;
        })"""
    )


def badge(page: Page, name: str) -> int:
    text = tab(page, name).locator(".nbx-badge").text_content() or "0"
    return int(text)


def test_a_source_line_is_found_at_every_level(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    sight = see(page_of(payload))
    page = sight.page
    expect(page.locator("#static")).to_be_hidden()
    names = [kernel["name"] for kernel in payload["kernels"]]
    expect(page.locator(".nbx-overview b")).to_have_text(names)
    line(page, EXP_LINE).hover()
    expect(page.locator(".nbx-overview")).to_have_count(0)
    for name in ("Graph", "Loops", "LLVM IR", "Assembly"):
        expect(tab(page, name).locator(".nbx-badge")).not_to_be_empty()
    places = {i for i, p in enumerate(payload["places"]) if p["line"] == EXP_LINE}
    lists = [p for k in payload["kernels"] for p in k["texts"]["asm"]["places"]]
    expected = sum(bool(places & set(p if isinstance(p, list) else [p])) for p in lists)
    assert badge(page, "Assembly") == expected > 0
    line(page, EXP_LINE).click()
    tab(page, "Assembly").click()
    chosen_in_sight(page)
    first = page.locator(".nbx-levels .nbx-line.nbx-same").first
    assert str(EXP_LINE) in (first.locator(".nbx-number").text_content() or "")
    sight.blameless()


def test_an_instruction_is_found_in_the_source(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    page = see(page_of(payload)).page
    tab(page, "Assembly").click()
    mapped = page.locator(".nbx-levels .nbx-line:has(.nbx-origin:not(:empty))").first
    number = int(re.findall(r"\d+", mapped.locator(".nbx-origin").text_content() or "")[0])
    mapped.hover()
    expect(line(page, number)).to_have_class(re.compile("nbx-same"))
    expect(page.locator(".nbx-source .nbx-span").first).to_be_visible()
    expect(page.get_by_role("status").filter(has_text=f"line {number}")).to_be_visible()


UNLIKE: dict[str, Callable[[], Any]] = {
    "a convolutional network": lambda: nbcomp.compile(*of_kind("a convolutional network")),
    "sort and argmax": lambda: nbcomp.compile(*of_kind("sort and argmax")),
    "bits": lambda: nbcomp.compile(*of_kind("bits")),
    "loops as they were written": lambda: of_loops("smith_waterman"),
    "parts": of_parts,
}


def of_kind(name: str) -> tuple[Any, ...]:
    function, args = KINDS[name]
    return function, *args


@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_programs_are_tied_together_both_ways(name: str, see: See, page_of: PageOf) -> None:
    data = payload_of(Report(UNLIKE[name]()).view)
    first, shown = data["source"]["first"], len(data["source"]["lines"])
    listed = [
        p for k in data["kernels"] if "asm" in k["texts"] for p in k["texts"]["asm"]["places"]
    ]
    found = Counter(q for p in listed for q in (p if isinstance(p, list) else [p]) if q >= 0)
    on = Counter[int]()
    for place, times in found.items():
        on[data["places"][place]["line"]] += times
    number = next(n for n, _ in on.most_common() if first <= n < first + shown)
    page = see(page_of(data)).page
    line(page, number - first + 1).hover()
    for level in ("Graph", "Loops", "LLVM IR", "Assembly"):
        expect(tab(page, level).locator(".nbx-badge")).not_to_be_empty()
    line(page, number - first + 1).click()
    tab(page, "Assembly").click()
    chosen_in_sight(page)
    page.keyboard.press("Escape")
    page.locator("h2").hover()
    same = page.locator(".nbx-levels .nbx-line", has=page.get_by_text(str(number), exact=True))
    same.first.hover()
    expect(line(page, number - first + 1)).to_have_class(re.compile("nbx-same"))


def test_a_click_is_one_however_long_the_button_is_held(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    page = see(page_of(payload)).page
    line(page, EXP_LINE).hover()
    expect(tab(page, "Assembly").locator(".nbx-badge")).not_to_be_empty()
    page.mouse.down()
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")
    page.mouse.up()
    tab(page, "Assembly").click()
    chosen_in_sight(page)


def test_a_click_keeps_and_escape_lets_go(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    page = see(page_of(payload)).page
    line(page, EXP_LINE).click()
    line(page, 2).hover()
    expect(line(page, EXP_LINE)).to_have_class(re.compile("nbx-same"))
    page.keyboard.press("Escape")
    page.locator("h2").hover()
    expect(page.locator(".nbx-same")).to_have_count(0)


def test_boxes_are_found_and_kernels_fold(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    page = see(page_of(payload)).page
    box = page.locator(".nbx-graph:not(.nbx-hidden) .nbx-box", has_text="exp").first
    page.get_by_role("button", name="Fit the graph into the pane").click()
    box.hover()
    expect(line(page, EXP_LINE)).to_have_class(re.compile("nbx-same"))
    boxes = page.locator(".nbx-graph:not(.nbx-hidden) .nbx-box")
    before = boxes.count()
    title = page.locator(".nbx-graph:not(.nbx-hidden) .nbx-frame-title").first
    title.click()
    expect(title).to_have_attribute("aria-expanded", "false")
    assert boxes.count() < before
    line(page, 2).hover()
    expect(page.locator(".nbx-frame.nbx-same")).to_have_count(1)
    page.get_by_role("button", name="Unfold all kernels").click()
    page.get_by_role("button", name="Fit the graph into the pane").click()
    expect(boxes).to_have_count(before)
    tab(page, "Loops").click()
    head = page.locator(".nbx-head:visible").first
    head.click()
    expect(head).to_have_attribute("aria-expanded", "false")


def test_layers_fold(see: See, page_of: PageOf) -> None:
    page = see(page_of(layered_payload())).page
    page.get_by_role("button", name="The graph as written").click()
    page.get_by_role("button", name="Fit the graph into the pane").click()
    titles = page.locator(".nbx-graph:not(.nbx-hidden) .nbx-frame-title")
    expect(titles).to_have_count(2)
    expect(titles.first).to_contain_text("blocks.0: Block")
    page.get_by_role("button", name="Fold all").first.click()
    page.get_by_role("button", name="Fit the graph into the pane").click()
    expect(titles.first).to_contain_text("7 operators")
    boxes = page.locator(".nbx-graph:not(.nbx-hidden) .nbx-box")
    expect(boxes.locator("text")).to_have_text(["x", "multiply(·, 2)", "result"])


def test_all_of_it_by_keyboard(see: See, page_of: PageOf, payload: dict[str, Any]) -> None:
    page = see(page_of(payload)).page
    tab(page, "Levels").focus()
    page.keyboard.press("ArrowRight")
    expect(tab(page, "Why")).to_be_focused()
    page.keyboard.press("Home")
    source = page.get_by_role("tree", name="source")
    source.focus()
    for _ in range(EXP_LINE - 1):
        page.keyboard.press("ArrowDown")
    expect(line(page, EXP_LINE)).to_have_class(re.compile("nbx-same"))
    page.keyboard.press("Enter")
    tab(page, "Graph").focus()
    page.keyboard.press("End")
    expect(tab(page, "Assembly")).to_have_attribute("aria-selected", "true")
    chosen_in_sight(page)
    asm = page.get_by_role("tree", name="Assembly")
    asm.focus()
    page.keyboard.press("ArrowLeft")
    expect(asm.locator(".nbx-head").first).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Escape")
    expect(page.locator(".nbx-pinned")).to_have_count(0)
    tab(page, "Graph").focus()
    page.keyboard.press("Home")
    page.locator(".nbx-graph:not(.nbx-hidden) .nbx-box[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".nbx-box:focus")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".nbx-pinned").first).to_be_attached()


def test_every_focusable_element_keeps_its_keys(
    see: See, page_of: PageOf, everything: dict[str, Any]
) -> None:
    page = see(page_of(everything)).page
    for name in ("Levels", "Why", "Numbers", "Passes", "CPUs", "History"):
        tab(page, name).click()
    bare = page.eval_on_selector_all(
        ".nbx [tabindex], .nbx button, .nbx input, .nbx select",
        "all => all.filter(e => !e.dataset.lmSuppressShortcuts).map(e => e.outerHTML)",
    )
    assert bare == []


def test_search_goes_through_all_levels(see: See, page_of: PageOf, payload: dict[str, Any]) -> None:
    page = see(page_of(payload)).page
    tab(page, "Numbers").click()
    page.keyboard.press("/")
    page.keyboard.type("MAX")
    expect(tab(page, "Levels")).to_have_attribute("aria-selected", "true")
    texts = ["\n".join(payload["source"]["lines"])]
    texts += [t["text"] for k in payload["kernels"] for t in k["texts"].values()]
    count = page.locator(".nbx-count")
    expect(count).to_have_text(re.compile(r"^1 of \d+$"))
    total = int((count.text_content() or "").split()[-1])
    assert total >= sum(text.lower().count("max") for text in texts)
    page.keyboard.press("Shift+Enter")
    expect(count).to_have_text(f"{total} of {total}")
    expect(page.locator(".nbx-now:visible")).to_have_count(1)
    expect(tab(page, "Assembly")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator(".nbx-hit:visible")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view(scheme: str, see: See, page_of: PageOf, everything: dict[str, Any]) -> None:
    sight = see(page_of(everything), color_scheme=scheme)
    page = sight.page
    expect(page.locator(".nbx-notice")).to_contain_text("W1 is another array")
    line(page, EXP_LINE).click()
    sight.picture(f"page_levels_{scheme}")
    shown = {
        "Why": ".nbx-decision",
        "Numbers": ".nbx-plot",
        "Passes": ".nbx-pass",
        "CPUs": ".nbx-two .nbx-line",
        "History": ".nbx-short .nbx-line",
    }
    for name, sign in shown.items():
        tab(page, name).click()
        expect(page.locator(sign).first).to_be_visible()
        sight.picture(f"page_{name.lower()}_{scheme}")
    tab(page, "Numbers").click()
    for title in ("Roofline", "Memory over time", "Compile time", "Provenance", "Speed-up"):
        expect(page.locator("figcaption", has_text=title)).to_be_visible()
    sight.blameless()


def test_side_by_side_and_narrow(see: See, page_of: PageOf, payload: dict[str, Any]) -> None:
    wide = see(page_of(payload), viewport={"width": 1700, "height": 760})
    line(wide.page, EXP_LINE).click()
    for name in ("Loops", "LLVM IR", "Assembly"):
        expect(wide.page.get_by_role("tree", name=name)).to_be_visible()
    wide.picture("page_side_by_side")
    narrow = see(page_of(payload), viewport={"width": 420, "height": 900})
    sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    expect(line(narrow.page, 1)).to_be_visible()
    assert narrow.page.evaluate(sideways) <= 0
    narrow.picture("page_narrow")


def test_text_alone_can_be_told_without_colour(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    """What is highlighted has a border, and the strong kind another one than the weak kind."""
    page = see(page_of(payload), forced_colors="active", reduced_motion="reduce").page
    line(page, EXP_LINE).click()
    style = "e => getComputedStyle(e).borderLeftStyle + getComputedStyle(e).borderLeftWidth"
    assert line(page, EXP_LINE).evaluate(style) == "solid3px"
    moving = "all => all.some(e => parseFloat(getComputedStyle(e).transitionDuration))"
    assert not page.eval_on_selector_all(".nbx *", moving)


def test_on_paper_there_is_the_static_form(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    page = see(page_of(payload)).page
    page.emulate_media(media="print")
    expect(page.locator("#static")).to_be_visible()
    expect(page.locator(".nbx")).to_be_hidden()


def test_without_script_there_is_the_static_form(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    page = see(page_of(payload), java_script_enabled=False).page
    expect(page.locator("#static")).to_be_visible()


def test_a_picture_that_is_saved_needs_no_style_sheet(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    page = see(page_of(payload), accept_downloads=True).page
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save the picture").click()
    assert saving.value.suggested_filename == "predict.svg"
    tree = ElementTree.parse(saving.value.path())
    names = {"".join(e.itertext()) for e in tree.iter("{http://www.w3.org/2000/svg}text")}
    titles = {box["title"] for box in payload["graphs"]["after"]["boxes"]}
    assert titles <= names
    assert not any(e.get("class") for e in tree.getroot().iter() if e is not tree.getroot())


@pytest.mark.parametrize("data", [None, 7, [], {"version": 2}, {"version": 99, "name": "f"}])
def test_what_cannot_be_read_leaves_the_static_form(
    data: object, see: See, page_of: PageOf
) -> None:
    sight = see(page_of(data))
    expect(sight.page.locator(".nbx-notice").first).to_be_visible()
    expect(sight.page.locator("#static")).to_be_visible()
    sight.blameless()


def test_a_broken_section_is_named_and_the_rest_shown(
    see: See, page_of: PageOf, payload: dict[str, Any]
) -> None:
    sight = see(page_of(payload | {"passes": [{"name": 3}]}))
    expect(sight.page.locator(".nbx-notice")).to_contain_text("passes[0]")
    expect(line(sight.page, EXP_LINE)).to_be_visible()
    expect(tab(sight.page, "Passes")).to_have_count(0)


def test_names_with_markup_are_text(see: See, page_of: PageOf, everything: dict[str, Any]) -> None:
    sight = see(page_of(hostile(everything)))
    page = sight.page
    for name in ("Levels", "Why", "Numbers", "Passes", "CPUs", "History"):
        tab(page, name).click()
    tab(page, "Levels").click()
    for level in ("Loops", "LLVM IR", "Assembly", "Graph"):
        tab(page, level).click()
    assert page.evaluate("window.hacked") is None
    assert page.locator(".nbx img, .nbx script, .nbx a, .nbx iframe").count() == 0
    text = page.locator(".nbx h2").text_content() or ""
    assert "<script>" in text
    assert "⟨U+202E⟩" in text
    sight.picture("page_hostile")
    sight.blameless()
