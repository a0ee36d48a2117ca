"""Written out, a result tree gives what walking it gives, shared parts included."""

from __future__ import annotations

import random
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from nbcomp.frontend.rebuilding import rebuilder
from nbcomp.frontend.result import Out, Record, Static, rebuild

Pair = namedtuple("Pair", "a b")
OUTPUTS = (np.float64(2.5), np.arange(3), "object")


def drawn(rng: random.Random, depth: int, made: list[Any]) -> Any:
    kind = rng.randrange(8 if depth else 3)
    if made and rng.random() < 0.2:
        return rng.choice(made)
    parts = [drawn(rng, depth - 1, made) for _ in range(rng.randrange(3))] if kind > 2 else []
    tree: Any = {
        0: Out(rng.randrange(3)), 1: Out(0, float), 2: Static(rng.random()),
        3: tuple(parts), 4: parts, 5: {("k", k): p for k, p in enumerate(parts)},
        6: Record(Pair, {"a": Out(1), "b": tuple(parts)}),
        7: Record(dict, {f"part{k}": p for k, p in enumerate(parts)}),
    }[kind]  # fmt: skip
    made.append(tree)
    return tree


@pytest.mark.parametrize("seed", range(60))
def test_random_trees(seed: int) -> None:
    tree = drawn(random.Random(seed), 4, [])
    assert repr(rebuilder(tree)(OUTPUTS)) == repr(rebuild(tree, OUTPUTS, ()))


def test_one_part_is_one_object() -> None:
    part = [Out(1)]
    one, two = rebuilder((part, part))(OUTPUTS)
    assert one is two
    assert one[0] is OUTPUTS[1]
    assert rebuilder([part])(OUTPUTS)[0] is not one  # made anew in each call


def test_deep_and_long_trees() -> None:
    deep: Any = Out(0)
    for _ in range(300):
        deep = [deep]
    assert repr(rebuilder(deep)(OUTPUTS)) == repr(rebuild(deep, OUTPUTS, ()))
    assert rebuilder([Out(0)] * 3000)(OUTPUTS) == [2.5] * 3000


def test_names_and_keys_are_no_code() -> None:
    """What a program calls its fields and keys is never read as Python."""
    tree = Record(dict, {"'); boom(": Out(0), '"{x}\n': {"__import__('os')": Out(1)}})
    assert repr(rebuilder(tree)(OUTPUTS)) == repr(rebuild(tree, OUTPUTS, ()))
