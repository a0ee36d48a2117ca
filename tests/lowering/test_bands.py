"""Convolutions one after another by bands of lines: NumPy's answer, whatever lies between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.levels import levels
from nbcomp.loop.grammar import If, walk
from nbcomp.loop.verifier import verify
from nbcomp.nn import functional as F
from tests.lowering.test_channels_last import near


class Inverted(nn.Module):
    """Widened, a kernel per channel, narrowed: in any sizes, with what is around them."""

    def __init__(self, seed: int, dtype: Any = np.float32) -> None:
        rng = np.random.default_rng(seed)
        self.inner, wide, self.outer = (int(n) for n in rng.choice([3, 8, 20, 33], 3))
        wide *= 2
        kernel = (int(rng.integers(1, 4)), int(rng.integers(1, 5)))
        stride = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
        margins = (int(rng.integers(0, 2)), int(rng.integers(0, 3)))
        margins = tuple(min(m, k // 2) for m, k in zip(margins, kernel, strict=True))
        dilation = (int(rng.integers(1, 3)), 1)
        bias = bool(rng.integers(2))
        self.first = nn.Conv2d(self.inner, wide, 1, bias=bias)
        self.norm = nn.BatchNorm2d(wide)
        self.middle = nn.Conv2d(wide, wide, kernel, stride, margins, dilation, groups=wide)
        self.last = nn.Conv2d(wide, self.outer, 1, bias=not bias)
        self.kind = str(rng.choice(["plain", "residual", "framed", "no first"]))
        self.after = nn.Conv2d(self.outer, 5, 3, padding=1)
        self.to(dtype)
        for name, value in self.state_dict().items():
            if value.ndim:
                value[...] = rng.uniform(-1, 1, value.shape) + (2 if "running_var" in name else 0)

    def forward(self, x: Any) -> Any:
        wide = x
        if self.kind != "no first":
            wide = np.minimum(F.relu(self.norm(self.first(x))), 6)
        y = self.last(F.relu(self.middle(wide)))
        if self.kind == "residual":
            y = y + y.mean()
        if self.kind == "framed":
            y = self.after(F.relu(y))
        return y


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take bands however small the images are."""
    monkeypatch.setattr("nbcomp.graph.passes.layout.TURNED", 0.0)
    monkeypatch.setattr("nbcomp.graph.passes.bands.LARGE", 0)
    monkeypatch.setattr("nbcomp.graph.passes.bands.AGAIN", 4.0)


def of_bands(made: Any) -> list[Any]:
    return [g for g in made.groups if g.kind == "bands"]


def image(model: Any, seed: int, dtype: Any = np.float32) -> Any:
    rng = np.random.default_rng(seed)
    channels = model.first.in_channels if model.kind != "no first" else model.middle.in_channels
    size = (int(rng.integers(1, 4)), channels, *map(int, rng.integers(9, 26, 2)))
    return rng.standard_normal(size).astype(dtype)


@pytest.mark.parametrize("seed", range(24))
def test_drawn_chains_are_numpys(seed: int) -> None:
    dtype = np.float64 if seed % 5 == 0 else np.float32
    model = Inverted(seed, dtype)
    x = image(model, seed, dtype)
    made = nbcomp.compile(model, x)
    assert near(made(x), model(x))
    for kernel in made.kernels:
        verify(kernel.kernel)


def test_most_drawn_chains_are_bands() -> None:
    found = [bool(of_bands(nbcomp.compile(m, image(m, s)))) for s, m in drawn(8)]
    assert sum(found) > 5


def drawn(count: int) -> Any:
    return [(s, Inverted(s)) for s in range(count)]


def plain(margins: int = 1, channels: int = 12, stride: int = 1) -> Any:
    return nn.Sequential(
        nn.Conv2d(4, channels, 1), nn.ReLU6(),
        nn.Conv2d(channels, channels, 3, stride, margins, groups=channels), nn.ReLU6(),
        nn.Conv2d(channels, 6, 1),
    )  # fmt: skip


@pytest.mark.parametrize("stride", [1, 2])
def test_every_level_gives_the_answer(stride: int) -> None:
    model = plain(stride=stride)
    x = np.random.default_rng(0).standard_normal((1, 4, 13, 11)).astype(np.float32)
    made = nbcomp.compile(model, x)
    (group,) = of_bands(made)
    assert sum(n.op.name == "convolution_last" for n in group.nodes) == 3
    for name, run in levels(made):
        assert near(np.asarray(run(x)), model(x)), name


def test_what_lies_between_is_never_stored() -> None:
    model = plain()
    x = np.zeros((1, 4, 40, 40), np.float32)
    made = nbcomp.compile(model, x)
    (group,) = of_bands(made)
    assert [n.shape[-1] for n in group.outputs] == [6]
    (remark,) = (r for r in made.explain() if r.topic == "bands")
    assert "one kernel" in remark.reason
    assert "12" in remark.reason


def test_lines_beyond_the_image_are_its_margin() -> None:
    """With no margins along the lines every line of a band is in the image."""
    x = np.ones((1, 4, 20, 20), np.float32)
    for margins, conditions in ((1, True), (0, False)):
        made = nbcomp.compile(plain(margins), x)
        (kernel,) = (k for k in made.kernels if k.groups[0].kind == "bands")
        assert any(isinstance(s, If) for s in walk(kernel.kernel.stages)) == conditions


def test_an_image_that_is_needed_elsewhere_is_stored() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            self.first, self.last = nn.Conv2d(4, 12, 1), nn.Conv2d(12, 6, 1)
            self.middle = nn.Conv2d(12, 12, 3, padding=1, groups=12)

        def forward(self, x: Any) -> Any:
            wide = self.first(x)
            near = self.middle(wide)
            return self.last(near), (wide * wide).sum()

    model, x = Twice(), np.random.default_rng(1).standard_normal((1, 4, 16, 16)).astype(np.float32)
    made = nbcomp.compile(model, x)
    for got, wanted in zip(made(x), model(x), strict=True):
        assert near(np.asarray(got), np.asarray(wanted))
    (group,) = of_bands(made)
    assert sum(n.op.name == "convolution_last" for n in group.nodes) == 2


def test_batches_that_differ_from_call_to_call() -> None:
    model = plain()
    made = nbcomp.compile(model, nbcomp.f32["n", 4, 12, 10])
    assert of_bands(made)
    rng = np.random.default_rng(2)
    for batch in (1, 2, 5):
        x = rng.standard_normal((batch, 4, 12, 10)).astype(np.float32)
        assert near(made(x), model(x))


def test_nan_and_infinity_stay_where_they_are() -> None:
    model = plain()
    x = np.zeros((1, 4, 12, 12), np.float32)
    x[0, 0, 2, 2], x[0, 1, 9, 9] = np.nan, np.inf
    with np.errstate(all="ignore"):
        wanted = model(x)
        got = nbcomp.compile(model, x)(x)
    assert np.array_equal(np.isnan(got), np.isnan(wanted))


def test_small_images_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbcomp.graph.passes.bands.LARGE", 256 << 10)
    assert not of_bands(nbcomp.compile(plain(), np.zeros((1, 4, 20, 20), np.float32)))
