"""Fixtures every test may use: golden texts and a seeded random generator."""

from __future__ import annotations

import difflib
import gc
import os
import re
import signal
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden"
os.environ["NBCOMP_RECORD"] = "off"  # what was tuned on this machine is no part of a test
os.environ["COLUMNS"] = "100"  # nor is how wide its terminal is
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background, as under nohup:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests send interrupts and wait


@pytest.fixture(scope="module", autouse=True)
def forget() -> Iterator[None]:
    """What a file leaves alive is not looked at again by every collection after it: in the end
    that is thousands of compiled programs."""
    yield
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture(autouse=True)
def no_contests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs compiled hangs on no clock: no call is short enough to be tried in Python."""
    monkeypatch.setattr("nbcomp.contests.LONGEST", -1.0)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`golden(text)` compares with tests/golden/<module>/<test>.txt; a suffix names a second."""
    name = re.sub(r"[^\w.-]+", "_", request.node.name).strip("_")
    folder = GOLDEN / request.node.path.stem.removeprefix("test_")
    update = request.config.getoption("--update-golden")

    def compare(text: str, suffix: str = "") -> None:
        path = folder / (f"{name}.{suffix}.txt" if suffix else f"{name}.txt")
        text = text.rstrip("\n") + "\n"
        if update:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        if not path.exists():
            pytest.fail(
                f"{path} is missing; write it with: pytest --update-golden {request.node.nodeid}"
            )
        expected = path.read_text()
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), str(path), "this run", lineterm=""
            )
            pytest.fail(
                "\n".join(lines)
                + f"\n\nif the new text is right: pytest --update-golden {request.node.nodeid}",
                pytrace=False,
            )

    return compare


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's own name: every run sees the same numbers."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
