"""The payload is what its schema says: the contract between Python and the explorer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from nbcomp.display.payload import payload
from nbcomp.display.view.checks import LevelCheck
from nbcomp.display.view.reads import Fallback
from nbcomp.display.view.view import view
from nbcomp.measure.comparison import Comparison
from nbcomp.measure.scaling import Scaling
from nbcomp.record import Location

SCHEMA = json.loads(files("nbcomp.display").joinpath("schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)

# Every section, as small as it can be and still say something.
FULL: dict[str, Any] = {
    "version": 2,
    "name": "f",
    "status": "faster",
    "title": "f: 2 operators in 1 kernel",
    "sentences": ["compiled in 1 ms"],
    "show": ["speed"],
    "source": {
        "file": "<cell>",
        "first": 2,
        "lines": ["def f(x):", "    return np.exp(x) + 1"],
        "marks": [{"line": 3, "mark": "applied", "topic": "fusion", "reason": "r", "hint": ""}],
        "cost": [None, 1.0],
    },
    "places": [{"line": 3, "column": 11, "end_line": 3, "end_column": 20, "function": "f"}],
    "constructs": ["loop control", "tail"],
    "graphs": {
        "after": {
            "width": 90,
            "height": 60.5,
            "summary": "Graph of f",
            "boxes": [{"kind": "op", "title": "exp", "width": 9, "height": 9, "places": [0]}],
            "frames": [{"title": "exp_add", "kind": "map", "group": 0, "width": 9, "height": 9}],
            "wires": [{"points": [[0, 0], [0, 9.5]], "label": "f32[8]", "label_at": [0, 4]}],
        }
    },
    "kernels": [
        {
            "name": "exp_add",
            "kind": "map",
            "number": 0,
            "operators": "exp add",
            "lines": "line 3",
            "texts": {
                "asm": {
                    "text": "vaddps\nret",
                    "cut": False,
                    "total": 2,
                    "places": [[0], -1],
                    "constructs": [-1, 0],
                }
            },
            "facts": [["vector width", "512 bit"]],
            "cpus": [{"name": "SSE2", "note": "text only", "text": {"text": "addps"}}],
        }
    ],
    "cpus": [
        {
            "name": "SSE2",
            "seconds": 1e-4,
            "low": 9e-5,
            "high": 2e-4,
            "note": "",
            "vector_bits": 128,
            "in_loops": 9,
        }
    ],
    "passes": [
        {
            "name": "fuse",
            "level": "graph",
            "description": "Fuse.",
            "seconds": 1e-4,
            "added": 1,
            "removed": 0,
            "diffs": [["", ["+ a"]]],
            "measured": {"seconds": 1e-5, "low": 9e-6, "high": 2e-5, "same": True, "note": ""},
        }
    ],
    "stages": [{"name": "llvm", "seconds": 0.01}],
    "ablation": [
        {"name": "fusion", "seconds": 2e-5, "low": 1e-5, "high": 3e-5, "ratio": 1.4, "note": ""}
    ],
    "numbers": {
        "machine": {
            "name": "a CPU",
            "threads": 2,
            "peak_flops": [{"threads": 1, "dtype": "float32", "value": 1.7e11}],
            "bandwidth": [{"threads": 1, "level": "memory", "value": 2e10}],
        },
        "kernels": [
            {
                "kernel": "exp_add",
                "seconds": 1e-5,
                "low": 1e-5,
                "high": 1e-5,
                "operations": 1e6,
                "bytes": 8e6,
                "intensity": 0.125,
                "flops_per_second": 1e11,
                "bound": "memory",
                "of_limit": 0.8,
            }
        ],
        "memory": {
            "peak": 64,
            "arena": 0,
            "buffers": [
                {"name": "x", "bytes": 32, "offset": None, "first": 0, "last": 0, "role": "input"}
            ],
            "steps": ["exp_add"],
        },
    },
    "provenance": [{"kernel": "exp_add", "mapped": 9, "in_loop": 10}],
    "history": {
        "when": "a minute ago",
        "title": "the same kernels",
        "changes": ["exp_add is new"],
        "diffs": [{"level": "loop", "kernel": "exp_add", "lines": ["+ a"]}],
        "seconds": 1e-5,
        "previous_seconds": None,
    },
    "id": "5a17-1",
    "stale": ["W1 is another array than it was"],
    "remarks": [
        {
            "line": 3,
            "source": "np.exp(x)",
            "done": True,
            "topic": "fusion",
            "reason": "r",
            "hint": "",
            "mark": "applied",
        }
    ],
    "checks": [{"level": "graph", "ulp": 0, "problem": "", "words": "right (0 ulp)"}],
    "speed": [{"size": 8, "ratio": None}],
    "speed_notes": ["no gain"],
    "help": {"op:exp": {"text": "e to the power of each element.", "source": "numpy.exp"}},
}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_a_whole_payload_is_valid() -> None:
    VALIDATOR.validate(FULL)
    assert FULL.keys() == SCHEMA["properties"].keys(), "the example has every section"


def test_what_is_made_today_is_valid(
    compiled: SimpleNamespace, measured: tuple[Comparison, Scaling]
) -> None:
    VALIDATOR.validate(payload(view(compiled, *measured, [LevelCheck("graph", 1.0, "")])))
    where = Location("<cell>", 4)
    VALIDATOR.validate(payload(view(Fallback("f", "np.fft.fft is not compiled", where))))


def test_unknown_keys_are_no_error() -> None:
    VALIDATOR.validate(FULL | {"tomorrow": 1})


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every leaf of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list) and item:
            yield from leaves(item, (*path, key))
        else:
            yield (*path, key)


@pytest.mark.parametrize("path", list(leaves(FULL)), ids=lambda p: ".".join(map(str, p)))
def test_every_key_has_a_type(path: tuple[Any, ...]) -> None:
    wrong = deepcopy(FULL)
    at = wrong
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = {"not": "this"}
    with pytest.raises(ValidationError):
        VALIDATOR.validate(wrong)


@pytest.mark.parametrize("key", ["version", "name", "title", "sentences"])
def test_the_headline_is_required(key: str) -> None:
    with pytest.raises(ValidationError):
        VALIDATOR.validate({k: v for k, v in FULL.items() if k != key})


def test_a_newer_version_is_not_this_one() -> None:
    with pytest.raises(ValidationError):
        VALIDATOR.validate(FULL | {"version": 3})
