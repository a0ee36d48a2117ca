"""Networks, each written once over a namespace of layers: `nbcomp.nn` and `torch.nn` have the same.

Weights are random but the same for everybody, by the names of the parameters.  Knows layers; it
must not know who runs them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Network:
    """One row: a model over a namespace, and the shapes of its inputs.

    rtol: allowed difference from NumPy's answer, relative to the largest magnitude in it.
    numpy: whether NumPy takes part in the timing (its convolutions take seconds).  timed: whether
    it is run at all, or only compiled.
    """

    name: str
    title: str
    build: Callable[[Any], Any]
    shapes: Mapping[str, tuple[int, ...]]
    rtol: float = 1e-4
    numpy: bool = True
    timed: bool = True

    def inputs(self) -> list[Array]:
        """The inputs, the same in every process."""
        rng = np.random.default_rng(0)
        return [rng.standard_normal(s).astype(np.float32) for s in self.shapes.values()]


NETWORKS: dict[str, Network] = {}


def network(title: str, *, name: str = "", **options: Any) -> Callable[[Any], Any]:
    """Enter the decorated builder into the table."""

    def enter(build: Any) -> Any:
        known = name or build.__name__
        NETWORKS[known] = Network(known, title, build, **options)
        return build

    return enter


def weights_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """A value for each parameter and statistic, of a size that keeps activations near one."""
    made = {}
    for name, shape in shapes.items():
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        if name.endswith("running_var"):
            value = rng.uniform(0.5, 1.5, shape)
        elif len(shape) < 2:
            scale = name.endswith("weight")
            value = rng.uniform(0.5, 1, shape) if scale else 0.1 * rng.normal(size=shape)
        else:
            value = rng.standard_normal(shape) * math.sqrt(1.5 / math.prod(shape[1:]))
        made[name] = np.asarray(value, np.float32)
    return made


# ------------------------------------------------------------------------------------ convolutions


def _one(size: int, *conv: int, **options: int) -> dict[str, Any]:
    """The options of a row that is one convolution, bias and ReLU."""

    def build(nn: Any) -> Any:
        return nn.Sequential(nn.Conv2d(*conv, **options), nn.ReLU())

    return {"build": build, "shapes": {"x": (1, conv[0], size, size)}}


for _name, _title, _options in (
    ("conv3_64", "conv 3×3, 64→64, 56²", _one(56, 64, 64, 3, padding=1)),
    ("conv3_256", "conv 3×3, 256→256, 14²", _one(14, 256, 256, 3, padding=1)),
    ("conv1_1024", "conv 1×1, 256→1024, 14²", _one(14, 256, 1024, 1)),
    ("conv7_64", "conv 7×7 stride 2, 3→64, 224²", _one(224, 3, 64, 7, stride=2, padding=3)),
    ("depthwise", "depthwise 3×3, 128, 56²", _one(56, 128, 128, 3, padding=1, groups=128)),
):
    NETWORKS[_name] = Network(_name, _title, **_options)


# ----------------------------------------------------------------------------------------- vision


@network("ResNet-18, 224²", shapes={"x": (1, 3, 224, 224)}, numpy=False)
def resnet18(nn: Any) -> Any:
    """He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, arXiv:1512.03385."""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outer)
            self.relu = nn.ReLU()
            self.down: Any = nn.Identity()
            if stride != 1 or inner != outer:
                self.down = nn.Sequential(
                    nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
                )

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.down(x))

    blocks: list[Any] = []
    inner = 64
    for outer, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Block(inner, outer, stride), Block(outer, outer, 1)]
        inner = outer
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000),
    )  # fmt: skip


@network("MobileNet-v2, 224²", shapes={"x": (1, 3, 224, 224)}, numpy=False)
def mobilenet_v2(nn: Any) -> Any:
    """Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, arXiv:1801.04381."""

    def conv(
        inner: int, outer: int, kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> list[Any]:
        made = nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False)
        return [made, nn.BatchNorm2d(outer)]

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, inner: int, outer: int, stride: int, widen: int) -> None:
            super().__init__()
            wide = inner * widen
            first = [*conv(inner, wide), nn.ReLU6()] if widen != 1 else []
            middle = [*conv(wide, wide, 3, stride, wide), nn.ReLU6()]
            self.body = nn.Sequential(*first, *middle, *conv(wide, outer))
            self.residual = stride == 1 and inner == outer

        def forward(self, x: Any) -> Any:
            return x + self.body(x) if self.residual else self.body(x)

    layers, inner = [*conv(3, 32, 3, 2), nn.ReLU6()], 32
    for widen, outer, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):  # fmt: skip
        for k in range(count):
            layers.append(Block(inner, outer, stride if k == 0 else 1, widen))
            inner = outer
    return nn.Sequential(
        *layers, *conv(320, 1280), nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000),
    )  # fmt: skip


# -------------------------------------------------------------------------------------- sequences


@network("attention 8×512×64", shapes={"q": (8, 512, 64), "k": (8, 512, 64), "v": (8, 512, 64)})
def attention(nn: Any) -> Any:
    class Attention(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.softmax = nn.Softmax(-1)

        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return self.softmax(q @ k.swapaxes(1, 2) * 0.125) @ v

    return Attention()


def _gpt2(nn: Any) -> Any:
    """A block of GPT-2 small, with keys and values of the positions before, which come first.

    Radford et al., Language Models are Unsupervised Multitask Learners, 2019.
    """

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, size: int = 768, heads: int = 12) -> None:
            super().__init__()
            self.heads, self.each = heads, size // heads
            self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
            self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
            self.value, self.out = nn.Linear(size, size), nn.Linear(size, size)
            self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
            self.gelu, self.softmax = nn.GELU(approximate="tanh"), nn.Softmax(-1)

        def split(self, x: Any) -> Any:
            return x.reshape(x.shape[0], x.shape[1], self.heads, self.each).swapaxes(1, 2)

        def forward(self, x: Any, mask: Any, *past: Any) -> Any:
            y = self.norm1(x)
            q, k, v = (self.split(p(y)) for p in (self.query, self.key, self.value))
            if past:  # the caches hold room for this position, which the masks add to
                keys, values, here = past
                k, v = keys + here * k, values + here * v
            scores = q @ k.swapaxes(2, 3) * 0.125 + mask
            joined = (self.softmax(scores) @ v).swapaxes(1, 2).reshape(x.shape)
            x = x + self.out(joined)
            return x + self.narrow(self.gelu(self.wide(self.norm2(x))))

    return Block()


@network("GPT-2 block, prefill 128", shapes={"x": (1, 128, 768), "mask": (128, 128)})
def gpt2_prefill(nn: Any) -> Any:
    return _gpt2(nn)


_PAST = {"keys": (1, 12, 512, 64), "values": (1, 12, 512, 64), "here": (512, 1)}


@network("GPT-2 block, decode 1 of 512", shapes={"x": (1, 1, 768), "mask": (1, 512), **_PAST})
def gpt2_decode(nn: Any) -> Any:
    return _gpt2(nn)


@network("LSTM 256, 64 steps", shapes={"x": (64, 1, 256)})
def lstm(nn: Any) -> Any:
    class Last(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(256, 256)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0]

    return Last()


# ------------------------------------------------------------------------- only to be compiled


def _transformer(layers: int) -> Callable[[Any], Any]:
    def build(nn: Any) -> Any:
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
        return nn.TransformerEncoder(layer, layers)

    return build


for _layers in (12, 24, 48):
    network(
        f"transformer, {_layers} layers of 256, 64 positions",
        name=f"transformer{_layers}",
        shapes={"x": (1, 64, 256)},
        timed=False,
    )(_transformer(_layers))
