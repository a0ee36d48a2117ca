"""Texts of code as HTML, with the words that carry the structure marked."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from nbcomp.display.html.style import FAINT, MARKS, PRE
from nbcomp.display.visible import escape

_LOOP = "kernel|for|parallel|vector|unroll|if|else|while|alloc|call"
_LLVM = "define|declare|ret|br|switch|phi|load|store|call|select"
_STRING = r"'[^'\\\n]*(?:\\.[^'\\\n]*)*'|" + r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_TOKENS = {
    "graph": r"(?P<c>#.*)|(?P<k>\b(?:graph|return)\b)",
    "loop": rf"(?P<c>#.*|//.*)|(?P<k>\b(?:{_LOOP})\b)",
    "llvm": rf"(?P<c>;.*)|(?P<k>\b(?:{_LLVM})\b)",
    "asm": r"(?P<c>#.*)|(?P<k>^[\w.$]+:)",
    "diff": r"(?P<a>^\+.*)|(?P<d>^-.*)|(?P<c>^@@.*)",
    "python": rf"(?P<c>#.*)|(?P<s>{_STRING})|(?P<k>\b(?:{'|'.join(keyword.kwlist)})\b)",
}
_MARKS = {
    "c": (f'<i style="color:{FAINT}">', "</i>"),
    "k": ("<b>", "</b>"),
    "s": ('<span style="color:var(--jp-mirror-editor-string-color,#b8860b)">', "</span>"),
    "a": (f'<span style="color:{MARKS["applied"]}">', "</span>"),
    "d": (f'<span style="color:{MARKS["missed"]}">', "</span>"),
}


def pre(text: str, level: str) -> str:
    """A whole text."""
    return f'<pre style="{PRE}">{marked(text, level)}</pre>'


def excerpt(lines: Sequence[str], total: int, level: str, rest: str = "") -> str:
    """The first lines of a text of `total` lines, and how to get the rest."""
    note = ""
    if len(lines) < total:
        more = f": all of it is {rest}" if rest else ""
        note = f'<p style="margin:2px 0;color:{FAINT}">… {total - len(lines)} more lines'
        note += f"{escape(more)}</p>"
    return f"{pre(chr(10).join(lines), level)}{note}"


def marked(text: str, level: str) -> str:
    """The text with keywords, comments and strings marked."""
    parts, end = [], 0
    for match in re.finditer(_TOKENS[level], text, re.MULTILINE):
        before, after = _MARKS[match.lastgroup or "k"]
        parts += [escape(text[end : match.start()]), before, escape(match.group()), after]
        end = match.end()
    return "".join([*parts, escape(text[end:])])
