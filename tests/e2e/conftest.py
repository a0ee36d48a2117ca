"""A browser and two servers, JupyterLab and Notebook 7, with the front end of this checkout.

Pictures are left in build/e2e for people to look at.  Where there is no Chromium or no built front
end the tests are skipped, unless NBCOMP_LABEXTENSION=require says that they must run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "build" / "e2e"
TOKEN = "nbcomp-e2e"
PATIENCE = 120_000  # ms, until something is said not to come: other tests may keep all cores busy
expect.set_options(timeout=PATIENCE)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
OPTIONS = {
    "lab": (
        "jupyterlab",
        [
            "--no-browser",
            "--LabApp.extension_manager=readonly",
            "--LabApp.news_url=None",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ],
    ),
    "notebook": (
        "notebook",
        [
            "--ServerApp.open_browser=False",
            "--JupyterNotebookApp.extension_manager=readonly",
            "--JupyterNotebookApp.news_url=None",
            "--JupyterNotebookApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ],
    ),
}


def _skip_or_fail(reason: str) -> None:
    if os.environ.get("NBCOMP_LABEXTENSION") == "require":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or what is on the path by one of its names."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        _skip_or_fail("no Chromium here")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def script() -> str:
    """The explorer as one script."""
    path = ROOT / "nbcomp" / "display" / "explorer.js"
    if not path.exists():
        _skip_or_fail("the front end is not built: python extension/hatch_build.py")
    return path.read_text(encoding="utf-8")


@dataclass
class Frontend:
    """A running server: its kind, its address, the folder with its notebooks."""

    kind: str
    address: str
    folder: Path
    settings: Path

    def theme(self, name: str) -> None:
        """Light or dark, for pages opened from now on."""
        path = self.settings / "@jupyterlab" / "apputils-extension"
        path.mkdir(parents=True, exist_ok=True)
        (path / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
        (path / "themes.jupyterlab-settings").write_text(
            json.dumps({"theme": f"JupyterLab {name}"})
        )

    def url(self, notebook: str) -> str:
        path = "lab/tree" if self.kind == "lab" else "notebooks"
        return f"{self.address}/{path}/{notebook}?reset&token={TOKEN}"


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the user's own configuration, and the front end and package of this checkout."""
    extension = home / "data" / "labextensions" / "nbcomp-lab"
    shutil.copytree(ROOT / "nbcomp" / "labextension", extension)
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    paths = {name: str(home / folder) for name, folder in folders.items()}
    return {**os.environ, **paths, "JUPYTER_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)}


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    request = urllib.request.Request(f"{address}/api/status")
    request.add_header("Authorization", f"token {TOKEN}")
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(request, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session", params=["lab", "notebook"])
def frontend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, script: str
) -> Iterator[Frontend]:
    """JupyterLab and Notebook 7 in turn."""
    kind = request.param
    home = tmp_path_factory.mktemp(kind)
    folder = home / "notebooks"
    folder.mkdir()
    module, options = OPTIONS[kind]
    if importlib.util.find_spec(module) is None:
        _skip_or_fail(f"no {module} here")
    port = _free_port()
    command = [sys.executable, "-m", module, *options, "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += [f"--ServerApp.root_dir={folder}"]
    log = home / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(home),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, server, log)
        yield Frontend(kind, address, folder, home / "settings")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@dataclass
class Sight:
    """A page with what it did: requests to elsewhere, dialogs, errors of our own code."""

    page: Page
    elsewhere: list[str]
    dialogs: list[str]
    errors: list[str]

    def picture(self, name: str, of: Locator | None = None) -> None:
        """Leave a screenshot in build/e2e."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        (of or self.page).screenshot(path=PICTURES / f"{name}.png")

    def blameless(self) -> None:
        """Nothing was fetched from elsewhere, no dialog opened, none of our code failed."""
        assert (self.elsewhere, self.dialogs, self.errors) == ([], [], [])


@pytest.fixture
def see(browser: Browser) -> Iterator[Callable[..., Sight]]:
    """`see(url, **context options)` opens a page."""
    contexts = []

    def opened(url: str, **options: object) -> Sight:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        sight = Sight(page, [], [], [])
        home = url.split("/", 3)[2]
        page.on(
            "request",
            lambda r: (
                sight.elsewhere.append(r.url)
                if r.url.startswith("http") and r.url.split("/", 3)[2] != home
                else None
            ),
        )
        page.on("dialog", lambda d: (sight.dialogs.append(d.message), d.dismiss()))
        page.on(
            "pageerror",
            lambda e: (
                sight.errors.append(f"{e}\n{e.stack}")
                if "nbcomp" in (e.stack or "") or home == ""
                else None
            ),
        )
        page.goto(url)
        return sight

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page_of(script: str, tmp_path: Path) -> Callable[[object], str]:
    """`page_of(payload)` is the address of a page with that payload, a static form, the script."""

    def make(payload: object) -> str:
        data = json.dumps(payload).replace("<", "\\u003c")
        path = tmp_path / "page.html"
        path.write_text(
            '<!doctype html><html><head><meta charset="utf-8">'
            '<meta name="color-scheme" content="light dark"></head><body>'
            f'<script type="application/vnd.nbcomp.compilation+json">{data}</script>'
            f'<div id="static">the static form</div><script>{script}</script></body></html>',
            encoding="utf-8",
        )
        return path.as_uri()

    return make
