"""What is shipped to the browser: small, fetched from nowhere, made from these sources."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import nbcomp

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "extension"
MOST = 100_000  # bytes, compressed


def hook() -> ModuleType:
    """extension/hatch_build.py, as a module."""
    spec = importlib.util.spec_from_file_location("hatch_build", FOLDER / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def front_end() -> list[Path]:
    """The built files; where the front end is required they must be there and of these sources."""
    build = hook()
    if os.environ.get("NBCOMP_LABEXTENSION") == "require":
        assert build.built(), "the front end was not built from the present sources"
    elif not build.built():
        pytest.skip("the front end is not built: python extension/hatch_build.py")
    return [*build.LABEXTENSION.rglob("*.js"), build.SCRIPT]


def test_the_bundle_is_small(front_end: list[Path]) -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in front_end}
    alone = sizes.pop("explorer.js")
    assert alone <= MOST
    assert sum(sizes.values()) <= MOST


def test_nothing_is_fetched(front_end: list[Path]) -> None:
    for path in front_end:
        text = path.read_text(encoding="utf-8")
        addresses = set(re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]{2,}[^\s\"'`)]*", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
        assert "innerHTML" not in text
        assert not re.search(r"\b(XMLHttpRequest|WebSocket|sendBeacon|eval)\b", text)


def test_the_script_is_whole(front_end: list[Path]) -> None:
    script = front_end[-1].read_text(encoding="utf-8")
    assert not re.search(r"\b(import|require)\s*[({'\"]", script)
    assert "</script" not in script.lower(), "it can be put inside a page"


def test_the_lock_is_yarns_own() -> None:
    lock = (FOLDER / "yarn.lock").read_text(encoding="utf-8")
    assert re.search("^__metadata:", lock, re.MULTILINE), "npm rewrote it: use jlpm only"
    assert "://" not in lock


def test_versions_agree() -> None:
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == nbcomp.__version__


node = pytest.mark.skipif(shutil.which("node") is None, reason="no node here")


@node
def test_the_types_are_the_schemas() -> None:
    subprocess.run(["node", "scripts/schema.mjs", "--check"], cwd=FOLDER, check=True)


@node
@pytest.mark.usefixtures("front_end")
def test_the_core() -> None:
    """The unit tests in extension/tests, run by node on the compiled core."""
    if not (FOLDER / "lib").exists():
        pytest.skip("the core was not compiled here")
    tests = [str(path) for path in sorted((FOLDER / "tests").glob("*.test.mjs"))]
    done = subprocess.run(
        ["node", "--test", *tests], cwd=FOLDER, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_build_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    build = hook()
    monkeypatch.setenv("NBCOMP_LABEXTENSION", "perhaps")
    with pytest.raises(ValueError, match="none of auto, require, skip"):
        _ = build.FrontEnd(str(ROOT), {}, None, None, str(tmp_path), "wheel").mode
