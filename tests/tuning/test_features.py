"""What a model is told of a kernel: counted by hand on small ones."""

from __future__ import annotations

import math

import pytest

from nbcomp.loop.grammar import Kernel
from nbcomp.machine import Machine
from nbcomp.schedule.language import parse
from nbcomp.tuning.features import NAMES, features_of
from tests.kernels import add_to, apply, buffer, kernel, load, loop, store

MACHINE = Machine("test", 64, 2, 32 << 10, 1 << 20, 32 << 20)


def told(k: Kernel, schedule: str = "") -> dict[str, float]:
    return features_of(parse(schedule)(k), MACHINE)


def number(features: dict[str, float], name: str) -> float:
    """A count, of which the logarithm is told."""
    return 2 ** features[name] - 1


def copied(turned: bool = False) -> Kernel:
    x, y = buffer("x", (256, 512)), buffer("y", (512, 256) if turned else (256, 512), "output")
    at = ("j", "i") if turned else ("i", "j")
    return kernel(loop("i", 256, loop("j", 512, store(y, at, load(x, "i", "j")))), buffers=[x, y])


def product() -> Kernel:
    a, b, c = buffer("a", (64, 128)), buffer("b", (128, 32)), buffer("c", (64, 32), "output")
    term = apply("multiply", load(a, "i", "k"), load(b, "k", "j"))
    inner = loop("k", 128, loop("j", 32, add_to(c, ("i", "j"), term)))
    return kernel(loop("i", 64, inner), buffers=[a, b, c])


def test_vectors_take_less_instructions_and_rounds() -> None:
    plain, wide = told(copied()), told(copied(), 'vectorize("j", unroll=4)')
    assert set(plain) == set(NAMES)
    assert number(plain, "loads") == pytest.approx(256 * 512)
    assert number(wide, "loads") == pytest.approx(256 * 512 / 16)
    assert number(wide, "rounds") == pytest.approx(256 + 256 * 512 / 64)
    assert wide["lanes of the hottest loop"] == 16
    assert wide["vectors of the hottest loop"] == 4


def test_elements_apart_are_told() -> None:
    assert number(told(copied(), 'vectorize("j")'), "stores apart") == pytest.approx(0)
    turned = told(copied(turned=True), 'vectorize("j")')
    assert number(turned, "stores apart") == pytest.approx(256 * 512)
    assert number(turned, "loads apart") == pytest.approx(0)
    blocks = 'tile("i", "j", 16, 16)\ninterchange("i", "j")\nunroll("i")\nvectorize("j")'
    assert number(told(copied(turned=True), blocks), "stores apart") == pytest.approx(0)
    lanes_only = 'tile("i", "j", 16, 16)\ninterchange("i", "j")\nvectorize("j")'
    assert number(told(copied(turned=True), lanes_only), "stores apart") == pytest.approx(256 * 512)


def test_blocks_take_less_from_the_next_cache() -> None:
    plain = told(copied(turned=True))
    blocks = told(copied(turned=True), 'tile("i", "j", 16, 16)')
    name = "bytes into the first cache"
    assert number(blocks, name) < number(plain, name) / 3
    assert number(blocks, "bytes from memory") == pytest.approx(2 * 4 * 256 * 512, rel=0.01)


def test_an_operand_that_is_read_again_moves_once_if_it_fits() -> None:
    features = told(product())
    least = 4 * (64 * 128 + 128 * 32 + 64 * 32)
    assert number(features, "bytes into the second cache") == pytest.approx(least, rel=0.01)
    again = 4 * (64 * 128 + 64 * 128 * 32 + 64 * 32)  # b fits, but only with nothing else
    assert number(features, "bytes into the first cache") <= again


def test_cores_share_the_work() -> None:
    alone, shared = told(product()), told(product(), 'parallelize("i")')
    assert alone["work outside of cores"] == pytest.approx(1, abs=0.01)
    assert shared["work outside of cores"] in (0, alone["work outside of cores"])
    assert math.isfinite(shared["imbalance"])
