"""The picture of the speed-up: all that was timed is in it, within its frame."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from nbcomp.display.plots.plane import HEIGHT, WIDTH, ticks
from nbcomp.display.plots.speedup import speedup_plot
from nbcomp.display.view.speed import SpeedRow

NAN = float("nan")


def row(size: int, ratio: float, low: float = 0.0, high: float = 0.0) -> SpeedRow:
    """A timed size with its quartiles."""
    return SpeedRow(size, 1.0, ratio, ratio, low or ratio, high or ratio, 1.0, 0.1, "")


def drawn(*rows: SpeedRow) -> ElementTree.Element:
    """The picture, parsed."""
    uri = speedup_plot(rows)
    return ElementTree.fromstring(base64.b64decode(uri.split(",")[1]))


def texts(picture: ElementTree.Element) -> list[str]:
    return [t.text or "" for t in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_every_size_is_marked_and_slower_ones_by_shape() -> None:
    picture = drawn(row(1, 0.9, 0.8, 1.1), row(16, 2.0), row(4096, 30.0, 20.0, 41.0))
    kinds = [e.tag.split("}")[1] for e in picture]
    assert kinds.count("circle") == 2 + 1  # and one in the legend
    assert kinds.count("path") == 1 + 1
    assert {"1", "16", "4,096", "1×", "10×", "slower than NumPy"} <= set(texts(picture))
    assert "slower than NumPy" not in texts(drawn(row(1, 2.0), row(2, 2.0)))


@pytest.mark.parametrize(
    "rows",
    [
        [row(7, 1.0)],
        [row(1, 1e-5), row(1_000_000, 1e5)],
        [row(n, 1.5, 1.4, 1.6) for n in range(1, 40)],
        [row(5, 2.0), row(5, 2.5)],
    ],
)
def test_nothing_is_drawn_outside(rows: list[SpeedRow]) -> None:
    for element in drawn(*rows).iter():
        for name, value in element.attrib.items():
            if name in ("x", "x1", "x2", "cx"):
                assert -1 <= float(value) <= WIDTH + 1
            if name in ("y", "y1", "y2", "cy"):
                assert -1 <= float(value) <= HEIGHT + 1


def test_what_was_not_timed_is_left_out() -> None:
    assert speedup_plot([]) == ""
    assert speedup_plot([row(1, NAN)]) == ""
    assert len(
        re.findall("circle", ElementTree.tostring(drawn(row(1, NAN), row(2, 3.0)), "unicode"))
    )


@pytest.mark.parametrize(("low", "high"), [(0.8, 1.3), (0.5, 100.0), (1e-3, 1e4)])
def test_ticks_are_round_and_few(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 1 <= len(found) <= 8
    assert all(low <= t <= high for t in found)


def test_no_plotting_library_is_loaded() -> None:
    program = (
        "from tests.display.test_speedup import row, speedup_plot; import sys;"
        "assert speedup_plot([row(1, 2.0)]); sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
