"""The explorer in JupyterLab and Notebook 7: a notebook that runs, and notebooks of strangers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tests.e2e.conftest import PICTURES, ROOT, Frontend, Sight
from tests.e2e.example import EXP_LINE, compiled_payload, hostile
from tests.e2e.notebooks import saved, written

See = Callable[..., Sight]


@pytest.fixture(scope="module")
def payload() -> dict[str, Any]:
    return compiled_payload()


def ready(page: Page) -> None:
    """Wait until there is a kernel: the indicator says idle even before."""
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').first.wait_for()
    kernel = page.locator(".jp-KernelName, .jp-Toolbar-kernelName").first
    expect(kernel).not_to_have_text(re.compile("^(No Kernel)?$"))
    page.wait_for_timeout(1000)


def run_all(page: Page) -> None:
    """Run all cells; again if they were lost, which happens while a connection is being made."""
    begun = page.locator(".jp-InputPrompt", has_text=re.compile(r"\[[*\d]"))
    for _ in range(3):
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        try:
            begun.first.wait_for(timeout=30_000)
            return
        except TimeoutError:
            continue
    raise AssertionError("the cells do not run")


def explorer(page: Page, number: int = 0) -> Any:
    return page.locator(".nbx-explorer").nth(number)


def line(page: Page, number: int) -> Any:
    return explorer(page).locator(".nbx-source .nbx-line").nth(number - 1)


def shown(page: Page, number: int = 0) -> Any:
    """The explorer, once its cell has run."""
    explorer(page, number).wait_for()
    return explorer(page, number)


def first_compilation() -> str:
    """The digits notebook up to its first compilation."""
    path = ROOT / "notebooks" / "01_first_compile.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    end = next(i for i, c in enumerate(cells) if "".join(c["source"]).startswith("%%compile"))
    return json.dumps(notebook | {"cells": cells[: end + 1]})


def test_the_digits_notebook(frontend: Frontend, see: See) -> None:
    (frontend.folder / "digits.ipynb").write_text(first_compilation(), encoding="utf-8")
    frontend.theme("Light")
    sight = see(frontend.url("digits.ipynb"))
    page = sight.page
    ready(page)
    run_all(page)
    source = shown(page).locator(".nbx-source")
    source.scroll_into_view_if_needed()
    exp = source.locator(".nbx-line", has_text="np.exp")
    exp.hover()
    expect(exp).to_have_class(re.compile("nbx-same"))
    tab = explorer(page).get_by_role("tab", name=re.compile("^Assembly"))
    expect(tab.locator(".nbx-badge")).not_to_be_empty()
    exp.click()
    tab.click()
    number = int(exp.locator(".nbx-number").text_content() or "")
    found = explorer(page).locator(".nbx-levels .nbx-line.nbx-same")
    expect(found.first).to_be_visible()
    for origin in found.locator(".nbx-origin").all_text_contents():
        lines = [int(n) for n in re.findall(r"\d+", origin)]
        assert min(lines) <= number <= max(lines)
    sight.picture(f"{frontend.kind}_digits")
    sight.blameless()


def test_dark(frontend: Frontend, see: See, payload: dict[str, Any]) -> None:
    saved(frontend.folder / "dark.ipynb", payload)
    frontend.theme("Dark")
    sight = see(frontend.url("dark.ipynb"))
    page = sight.page
    ready(page)
    line(page, EXP_LINE).click()
    expect(line(page, EXP_LINE)).to_have_class(re.compile("nbx-same"))
    assert brightness(page) < 200
    page.wait_for_timeout(200)
    sight.picture(f"{frontend.kind}_dark")
    sight.blameless()


def brightness(page: Page) -> int:
    """Of the ground code is shown on: 0 is black, 765 white."""
    shade = explorer(page).locator(".nbx-code").first
    colour = shade.evaluate("e => getComputedStyle(e).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


STALE = [
    "%load_ext nbcomp\nimport numpy as np\nx, scale = np.ones((40, 5)), np.ones(5)",
    "%%compile --no-bench\ndef f(x):\n    return x * scale + 1\nf(x)",
    "pass",
]


def test_marks_survive_a_reload(frontend: Frontend, see: See) -> None:
    """A page that is loaded anew is told by the kernel what has gone stale."""
    written(frontend.folder / "stale.ipynb", *STALE)
    frontend.theme("Light")
    sight = see(frontend.url("stale.ipynb"))
    page = sight.page
    ready(page)
    run_all(page)
    shown(page)
    notice = explorer(page).locator(".nbx-notice")
    expect(notice).to_have_count(0)
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1000)
    run_last(page, "scale = np.ones((40, 5))")
    expect(notice).to_contain_text("scale had shape (5,)")
    sight.picture(f"{frontend.kind}_stale")
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1000)
    page.reload()
    ready(page)
    shown(page)
    expect(notice).to_contain_text("scale had shape (5,)")
    run_last(page, "scale = np.ones(5)")
    expect(notice).to_have_count(0)
    run_last(page, "scale = np.ones(7)")
    expect(notice).to_contain_text("now has (7,)")
    sight.blameless()


def run_last(page: Page, text: str) -> None:
    """Write a text into the last cell, and run it."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth(len(STALE) - 1)
    cell.locator(".cm-content").fill(text)
    page.keyboard.press("Control+Enter")


def test_a_stranger_s_notebook(frontend: Frontend, see: See, payload: dict[str, Any]) -> None:
    """Untrusted, with odd outputs: what can be shown is, nothing runs, keys stay in the explorer,
    and there is more room elsewhere."""
    odd = [payload | {"version": 99}, 7, payload | {"kernels": 1}, hostile(payload)]
    saved(frontend.folder / "saved.ipynb", payload, *odd)
    frontend.theme("Light")
    sight = see(frontend.url("saved.ipynb"))
    page = sight.page
    ready(page)
    shown(page)
    assert brightness(page) > 600
    _keys(page)
    sight.picture(f"{frontend.kind}_light")
    _more_room(frontend, sight)
    _odd_outputs(page)
    sight.blameless()


def _keys(page: Page) -> None:
    """Arrow keys, letters and Enter in the explorer do not move, add or run cells."""
    cells = page.locator(".jp-Cell").count()
    tabs = explorer(page).locator(".nbx-views").get_by_role("tab")
    tabs.first.click()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(tabs.nth(2)).to_be_focused()
    page.keyboard.press("Home")
    source = explorer(page).get_by_role("tree", name="source")
    source.focus()
    for key in ["ArrowDown"] * (EXP_LINE - 1) + ["Enter", "b", "a"]:
        page.keyboard.press(key)
    expect(source).to_be_focused()
    expect(line(page, EXP_LINE)).to_have_class(re.compile("nbx-same"))
    assert page.locator(".jp-Cell").count() == cells


def _more_room(frontend: Frontend, sight: Sight) -> None:
    """Beside the notebook in JupyterLab, in a page of its own in Notebook 7."""
    page = sight.page
    button = explorer(page).get_by_role("button", name="Open in more room")
    if frontend.kind == "lab":
        button.click()
        expect(page.locator(".nbx-roomy .nbx-explorer")).to_be_visible()
        sight.picture("lab_panel")
        return
    with page.context.expect_page() as opened:
        button.click()
    other = opened.value
    expect(other.locator(".nbx-roomy .nbx-explorer")).to_be_visible()
    other.screenshot(path=PICTURES / "notebook_page.png")


def _odd_outputs(page: Page) -> None:
    outputs = page.locator(".jp-Notebook .nbx-output")
    for number, sign in ((1, "newer nbcomp"), (2, "not a compilation"), (3, "kernels")):
        outputs.nth(number).scroll_into_view_if_needed()
        expect(outputs.nth(number).locator(".nbx-notice")).to_contain_text(sign)
    for number in (1, 2):
        expect(outputs.nth(number).locator(".nbx-plain")).to_have_text("the plain form")
    outputs.nth(4).scroll_into_view_if_needed()
    expect(outputs.nth(4).locator("h2")).to_contain_text("<script>")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".nbx img, .nbx script").count() == 0
