"""Networks whose images have their channels last inside: NumPy's answer for any of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.graph.op import ChannelsLast
from nbcomp.levels import levels
from nbcomp.machine import host
from nbcomp.nn import functional as F
from nbcomp.options import Options
from nbcomp.pipeline import compile_for

BOUND = {np.float32: 2e-5, np.float64: 1e-13}


class Drawn(nn.Module):
    """Convolutions, pools, residuals and joints in any order."""

    def __init__(self, rng: np.random.Generator, dtype: Any) -> None:
        self.layers = nn.ModuleList()
        self.kinds: list[str] = []
        self.channels = [int(rng.integers(1, 9))]
        for _ in range(int(rng.integers(2, 7))):
            kind = str(rng.choice(["conv", "conv", "wide", "depth", "pool", "norm", "add", "cat"]))
            self.kinds.append(kind)
            self.layers.append(self.layer(kind, rng))
        self.to(dtype)
        for name, value in self.state_dict().items():
            if not value.ndim:
                continue
            low, high = (0.5, 2) if "running_var" in name else (-1, 1)
            value[...] = rng.uniform(low, high, value.shape) / max(1, value[:1].size) ** 0.5
            if "running_var" in name:
                value += 1

    def layer(self, kind: str, rng: np.random.Generator) -> Any:
        c = self.channels[-1]
        k, s, p, d = (int(rng.integers(*r)) for r in ((1, 4), (1, 3), (0, 2), (1, 3)))
        s = s if len(self.layers) % 3 == 0 else 1  # what is left of the image is an image
        out = int(rng.choice([1, 7, 16, 24, 40, 70]))
        if kind in ("conv", "wide"):
            self.channels.append(out)
            kernel = (k, int(rng.integers(1, 4)))
            return nn.Conv2d(c, out, kernel, s, p, d, bias=bool(rng.integers(2)))
        if kind == "depth":
            return nn.Conv2d(c, c, k, s, p, groups=c)
        if kind == "pool":
            made = nn.MaxPool2d if rng.integers(2) else nn.AvgPool2d
            return made(k, s, min(p, k // 2))
        if kind == "norm":
            return nn.BatchNorm2d(c)
        if kind == "cat":
            self.channels.append(c + out)
        return nn.Conv2d(c, out if kind == "cat" else c, 1)

    def forward(self, x: Any) -> Any:
        for kind, layer in zip(self.kinds, self.layers, strict=True):
            y = layer(x)
            if kind == "add":
                x = F.relu(y + x)
            elif kind == "cat":
                x = np.concatenate([F.relu(y), x], axis=1)
            else:
                x = F.relu(y) if kind == "conv" else y
        return x


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn images however small the convolutions are."""
    monkeypatch.setattr("nbcomp.graph.passes.layout.TURNED", 0.0)


def drawn(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    dtype = rng.choice([np.float32, np.float32, np.float64])
    model = Drawn(rng, dtype)
    size = (int(rng.integers(1, 3)), model.channels[0], *map(int, rng.integers(24, 48, 2)))
    x = rng.standard_normal(size).astype(dtype)
    return model, np.asfortranarray(x) if rng.random() < 0.2 else x


def near(got: Any, wanted: Any) -> bool:
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    scale = np.abs(wanted).max(initial=0) + 1e-30
    return bool(np.abs(got - wanted).max(initial=0) <= BOUND[wanted.dtype.type] * scale)


def of_last(compiled: Any) -> int:
    return sum(isinstance(n.op, ChannelsLast) for n in compiled.graph.nodes)


@pytest.mark.parametrize("seed", range(24))
def test_drawn_networks_are_numpys(seed: int) -> None:
    model, x = drawn(seed)
    made = nbcomp.compile(model, x)
    assert near(made(x), model(x))
    assert made(x).flags.c_contiguous


@pytest.mark.parametrize("seed", [3, 8])
def test_every_level_gives_the_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = nn.Sequential(
        nn.Conv2d(2, 20, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2, 1, 1), nn.Conv2d(20, 5, (1, 2))
    )
    x = rng.standard_normal((1, 2, 9, 13)).astype(np.float32)
    made = nbcomp.compile(model, x)
    assert of_last(made) == 3
    for name, run in levels(made):
        assert near(np.asarray(run(x)), model(x)), name


@pytest.mark.parametrize("seed", range(100, 108))
def test_batches_that_differ_from_call_to_call(seed: int) -> None:
    model, x = drawn(seed)
    spec = (nbcomp.f32 if x.dtype == np.float32 else nbcomp.f64)["n", *x.shape[1:]]
    made = nbcomp.compile(model, spec)
    assert of_last(made) or not of_last(nbcomp.compile(model, np.ascontiguousarray(x)))
    rng = np.random.default_rng(seed)
    for batch in (1, 2, 3, 8):
        some = rng.standard_normal((batch, *x.shape[1:])).astype(x.dtype)
        assert near(made(some), model(some)), batch


def test_most_drawn_networks_have_channels_last() -> None:
    found = [of_last(nbcomp.compile(model, x)) > 1 for model, x in map(drawn, range(6))]
    assert sum(found) > 3


@pytest.mark.parametrize("kind", ["1d", "3d"])
def test_signals_and_volumes(kind: str) -> None:
    rng = np.random.default_rng(0)
    conv, pool = getattr(nn, f"Conv{kind}"), getattr(nn, f"MaxPool{kind}", None)
    layers = [conv(3, 18, 3, 2, 1), nn.ReLU(), conv(18, 18, 3, padding=1, groups=18)]
    model = nn.Sequential(*layers, *([pool(2)] if pool else []), conv(18, 33, 2))
    x = rng.standard_normal((2, 3, *((31,) if kind == "1d" else (9, 11, 12)))).astype(np.float32)
    made = nbcomp.compile(model, x)
    assert of_last(made) >= 3
    assert near(made(x), model(x))


def test_margins_are_shared_by_all_windows_of_an_image() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Conv2d(3, 16, 3, padding=1)
            self.wide = nn.Conv2d(16, 16, 5, padding=2)
            self.near = nn.Conv2d(16, 16, 3, padding=1)
            self.plain = nn.Conv2d(16, 16, 1, 2)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.first(x))
            y = F.relu(self.wide(x) + self.near(x) + x)
            return self.plain(x), F.max_pool2d(x, 3, 1, 1), y

    model = Two()
    x = np.random.default_rng(1).standard_normal((1, 3, 20, 17)).astype(np.float32)
    made = nbcomp.compile(model, x)
    for got, wanted in zip(made(x), model(x), strict=True):
        assert near(got, wanted)


def test_nan_and_infinity_stay_where_they_are() -> None:
    model = nn.Sequential(nn.Conv2d(2, 16, 3, padding=1), nn.MaxPool2d(3, 1, 1))
    x = np.zeros((1, 2, 12, 12), np.float32)
    x[0, 0, 2, 2], x[0, 1, 9, 9] = np.nan, np.inf
    with np.errstate(all="ignore"):
        wanted = model(x)
    assert np.array_equal(np.isnan(nbcomp.compile(model, x)(x)), np.isnan(wanted))


def test_without_it_images_stay_as_they_are() -> None:
    model, x = drawn(0)
    made = compile_for("llvm", Options(without=frozenset({"choose_layout"})))(model, x)
    assert not of_last(made)
    assert near(made(x), model(x))


def test_weights_that_are_plain_arrays_are_not_packed() -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((1, 3, 20, 20), (16, 3, 3, 3)))
    assert not of_last(nbcomp.compile(lambda x, w: F.relu(F.conv2d(x, w)), x, w))


def test_it_is_not_done_where_turning_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbcomp.graph.passes.layout.TURNED", 1.0)
    model = nn.Conv2d(3, 16, 3)
    made = nbcomp.compile(model, np.zeros((1, 3, 20, 20), np.float32))
    assert not of_last(made)
    assert any(r.topic == "layout" and r.kind == "missed" for r in made.explain())


def test_loops_and_values_have_names_of_their_own() -> None:
    """The result of this one is called y, as the loop over its rows is."""
    model, x = drawn(718)
    assert near(nbcomp.compile(model, x)(x), model(x))


@pytest.mark.parametrize(("channels", "line", "turned"), [(40, 37, True), (40, 20, False)])
def test_wide_images_are_turned_while_they_get_their_margins(
    channels: int, line: int, turned: bool
) -> None:
    """Their lines are then a core's own, in this kernel and in the convolution."""
    model = nn.Conv2d(channels, 24, 3, padding=1)
    x = np.random.default_rng(3).standard_normal((2, channels, 9, line)).astype(np.float32)
    made = nbcomp.compile(model, x)
    (framed,) = (n for n in made.graph.nodes if n.op.name == "pad_constant")
    assert (framed.shape[-1] == channels) == turned
    assert near(made(x), model(x))


@pytest.mark.skipif(host().vector_bytes < 64, reason="a tile of 28 vectors takes 32 registers")
def test_sums_of_tiles_that_take_all_registers_stay_in_them() -> None:
    layers = [nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1)]
    compiled = nbcomp.compile(nn.Sequential(*layers), np.ones((1, 128, 28, 28), np.float32))
    tiles = [t for k in compiled.kernels for t in loops(k.text("asm")) if t.count("vfmadd") == 28]
    assert tiles
    assert not any("zmm" in line and "rsp" in line for t in tiles for line in t.splitlines())


def loops(assembly: str) -> list[str]:
    """What lies between a label and a jump to it, of the innermost loops of a text."""
    found = re.findall(r"^(\.LBB\w+):\n((?:(?!\.LBB).*\n)*?)\tj\w+\t\1$", assembly, re.MULTILINE)
    return [body for _, body in found]
