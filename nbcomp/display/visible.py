"""Text of others made harmless to show: what would be invisible, or act, is shown as what it is.

A name, a docstring or a comment may hold escape sequences of terminals, characters that turn the
direction of writing round (so that code reads as what it is not; Boucher & Anderson, "Trojan
Source", 2021), or characters without width.  Every form of a report passes its texts through
`visible`, and every markup through `escape`.
"""

from __future__ import annotations

import html
import re

# Control characters but for tab and newline; format characters (category Cf: directions, zero
# width, tags); separators of lines and paragraphs; halves of surrogate pairs; blank letters and
# variation selectors.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """The text with every hidden character as its code, such as ⟨U+202E⟩; ESC is ␛."""
    if text.isascii() and text.isprintable():  # most texts, and quickly told
        return text
    return _HIDDEN.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the pictures of control characters: ␀, ␛, …
    return f"⟨U+{code:04X}⟩"


def escape(text: str) -> str:
    """The text for HTML and SVG, attributes included."""
    return html.escape(visible(text))
