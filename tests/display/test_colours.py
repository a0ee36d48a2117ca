"""The explorer's colours: texts can be read on every ground, kernels be told apart by everyone.

Contrast is that of WCAG 2.2; seeing with two kinds of cones is simulated as in Machado, Oliveira
and Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009);
distances are in CIELAB.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nbcomp.display.html.style import MARKS
from nbcomp.display.picture.svg import PALETTE

STYLE = Path(__file__).resolve().parents[2] / "extension" / "src" / "style.ts"
TEXTS = ("ink0", "faint0", "good", "bad", "keyword", "type", "value", "literal")
SELECTED = 0.16  # of a mark's colour over the ground
VISIONS = {
    "three kinds": np.eye(3),
    "no long": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no middle": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def colours(theme: str) -> dict[str, Any]:
    """The colours of a theme by name, as shares of red, green and blue."""
    found = re.search(rf"const {theme} = `(.*?)`", STYLE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return {name: rgb(code) for name, code in re.findall(r"--nbx-(\w+): (#\w{6})", found[1])}


def rgb(code: str) -> Any:
    return np.array([int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def linear(colour: Any) -> Any:
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


def contrast(a: Any, b: Any) -> float:
    low, high = sorted(float(XYZ[1] @ linear(c)) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


def lab(light: Any) -> Any:
    x, y, z = XYZ @ np.clip(light, 0, 1) / (0.95047, 1.0, 1.08883)
    f = np.cbrt
    return np.array([116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))])


@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
def test_texts_can_be_read(theme: str) -> None:
    known = colours(theme)
    for ground in (known["ground0"], known["sheet0"]):
        selected = SELECTED * known["mark"] + (1 - SELECTED) * ground
        for name in TEXTS:
            assert contrast(known[name], ground) >= 4.5, name
            assert contrast(known[name], selected) >= 4.5, name


@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
def test_kernels_can_be_told_apart(theme: str) -> None:
    known = colours(theme)
    groups = [known[f"g{i}"] for i in range(7)]
    assert "g7" not in known
    assert all(contrast(c, known["sheet0"]) >= 3 for c in groups)
    told_apart(groups)


def test_kernels_of_static_pictures_can_be_told_apart() -> None:
    """Which are the same on light and dark grounds: see test_drawing."""
    told_apart([rgb(border) for border, _ in PALETTE])


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_marks_of_the_static_form_can_be_read_on_any_ground(ground: str) -> None:
    """No colour has 4.5 on both: on white it would be darker than it has to be on black."""
    assert all(contrast(rgb(colour), rgb(ground)) > 4.25 for colour in MARKS.values())


def told_apart(groups: list[Any]) -> None:
    for vision, matrix in VISIONS.items():
        seen = [lab(np.asarray(matrix) @ linear(c)) for c in groups]
        least = min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))
        assert least > 20, vision
