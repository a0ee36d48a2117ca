"""The same program for many CPUs, in every form, and help for what they run."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import nbcomp
from nbcomp.display import help as hover
from nbcomp.display.bundle import Report
from nbcomp.display.payload import MIME
from nbcomp.measure.cpus import CpuTable, compare_cpus

X = np.random.default_rng(0).random((64, 40), np.float32)
SCHEMA = json.loads(files("nbcomp.display").joinpath("schema.json").read_text(encoding="utf-8"))
OTHERS = ("neon", "sve", "rvv", "wasm", "ptx")


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def table() -> CpuTable:
    return compare_cpus(nbcomp.compile(softmax, X), (X,), seconds=0.2, names=("sse2", *OTHERS))


def test_every_form_has_the_cpus(table: CpuTable) -> None:
    report = Report(nbcomp.compile(softmax, X), cpus=tuple(table))
    data = report._repr_mimebundle_()
    Draft202012Validator(SCHEMA).validate(data[MIME])
    (kernel,) = data[MIME]["kernels"]
    assert len(kernel["cpus"]) == sum(row.compiled is not None for row in table)
    for row, shown in zip((r for r in table if r.compiled), kernel["cpus"], strict=True):
        assert shown["name"].startswith(row.name)
        assert len(shown["text"]["places"]) == len(shown["text"]["text"].splitlines())
        prefix = shown["text"].get("notation", "asm")
        assert any(key.startswith(f"{prefix}:") for key in data[MIME]["help"])
        assert row.title in data["text/html"]
        assert row.name in data["text/plain"]
    (own, *_) = rows = data[MIME]["cpus"]
    assert [row["name"] for row in rows] == [f"{row.name} ({row.title})" for row in table]
    assert own["seconds"] == pytest.approx(table.rows[0].timing.median, abs=1e-8)  # type: ignore[union-attr]
    assert [row["seconds"] is not None for row in rows] == [row.timing is not None for row in table]


@pytest.mark.parametrize("name", OTHERS)
def test_instructions_of_other_machines_are_explained(name: str, table: CpuTable) -> None:
    compiled = table[name].compiled
    if compiled is None:
        pytest.skip(f"no code for {name} here: {table[name].note}")
    listings = [k.listing("asm") for k in compiled.kernels]
    tokens = {(t, x.language) for x in listings for t in hover.machine_tokens(x.text)}
    assert len(tokens) > 20
    assert not sorted(t for t, language in tokens if hover.machine(t, language) is None)
