"""What `make demo` does: the first notebook, run without a browser, and the page it leaves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What it prints, and the page."""
    page = tmp_path_factory.mktemp("demo") / "page.html"
    command = [sys.executable, "notebooks/demo.py", "notebooks/01_first_compile.ipynb", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, page


def test_it_prints_the_headline_and_the_speed_table(demo: tuple[str, Path]) -> None:
    printed, _ = demo
    assert "predict: " in printed
    assert "kernel" in printed
    assert "compiled in" in printed
    assert "largest difference from NumPy" in printed
    assert "batch" in printed


def test_the_page_has_every_level(demo: tuple[str, Path]) -> None:
    text = demo[1].read_text(encoding="utf-8")
    assert "data:image/svg+xml;base64," in text
    for level in ("<16 x float>", "<8 x float>", "<4 x float>"):
        if level in text or level.replace("<", "&lt;").replace(">", "&gt;") in text:
            break
    else:
        pytest.fail("no vector type in the LLVM IR on the page")


@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
def test_the_page_can_be_looked_at(demo: tuple[str, Path], tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    subprocess.run(
        [
            str(BROWSER),
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--hide-scrollbars", "--window-size=1100,4000", f"--user-data-dir={tmp_path}/user"),
            *(f"--screenshot={picture}", demo[1].as_uri()),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    pixels = np.asarray(Image.open(picture).convert("L"))
    ink = (pixels < 200).mean(axis=1) > 0
    assert pixels.shape[0] >= 4000
    assert ink.mean() > 0.2, "the page is almost empty"
