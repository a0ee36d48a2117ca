"""A report as one HTML file that needs nothing else: the explorer, and the static form inside it.

Where scripts do not run, or the explorer was not built, the static form is what is shown.  Nothing
a report holds can end the element it is in: `<` in data is written as an escape of JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from nbcomp.display.visible import escape

# For a page by itself: what JupyterLab's variables say in a notebook.
_SHEET = """\
:root{color-scheme:light dark}
body{margin:24px auto;max-width:1400px;padding:0 16px;background:#fff;color:#1f2328;
font-family:system-ui,sans-serif}
@media (prefers-color-scheme:dark){body{background:#111418;color:#e6e8eb}}
@media print{body{margin:0}details>*{display:block}}"""


def page(body: str, title: str, mime: str = "", payload: Mapping[str, Any] | None = None) -> str:
    """The whole file around the static form `body`; with a payload also the explorer of it."""
    script = explorer() if payload is not None else ""
    data = ""
    if script and payload is not None:
        text = json.dumps(payload, ensure_ascii=False).replace("<", "\\u003c")
        data = f'<script type="{escape(mime)}">{text}</script>\n'
        script = f"<script>{script}</script>\n"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title>\n<style>{_SHEET}</style></head>\n"
        f"<body>\n{data}{body}\n{script}</body></html>\n"
    )


def explorer() -> str:
    """The explorer's script; empty where it was not built into the package."""
    file = files("nbcomp.display").joinpath("explorer.js")
    if not file.is_file():
        return ""
    text = file.read_text(encoding="utf-8")
    # Within an element these would end it, or open a comment.
    return re.sub(r"<(?=/script|!--)", r"\\x3c", text, flags=re.IGNORECASE)
