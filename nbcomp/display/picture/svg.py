"""A drawing as SVG that survives everywhere: no script, no style sheet, no ids, only attributes.

The ground is transparent and every text stands on its own light fill, so the picture reads on white
and on black.  Groups are told apart by colour (the palette of Okabe and Ito, made for colour-blind
readers) and also by the number in their title; library calls have a dashed outline.
"""

from __future__ import annotations

import base64

from nbcomp.display.picture.boxes import Box, Drawing, Frame, Wire
from nbcomp.display.picture.ranks import Point
from nbcomp.display.visible import escape

# (border, fill) of the groups in turn: as far from each other as colours that show on white and on
# black can be, also for those who see two kinds of light only, and light tints
# (tests/display/test_colours.py).
PALETTE = (
    ("#056af9", "#e6f0fe"),
    ("#f5670c", "#fef0e7"),
    ("#0da765", "#e7f6f0"),
    ("#ae03a6", "#f7e6f6"),
    ("#d373b8", "#fbf1f8"),
    ("#c40121", "#f9e6e9"),
    ("#616161", "#efefef"),
)
INK, FAINT, WIRE = "#1f2328", "#57606a", "#808a94"
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

LAYER = ("#8c959f", "#f6f8fa")  # border and fill of a layer's frame
# border, fill and corner radius of a box that is in no group
PLAIN = {
    "op": ("#57606a", "#ffffff", 4),
    "library": ("#57606a", "#ffffff", 4),
    "group": ("#57606a", "#ffffff", 4),
    "input": ("#57606a", "#fff8e1", 12),
    "constant": ("#8c959f", "#f1f3f5", 12),
    "output": ("#1f2328", "#e6e8eb", 12),
}


def svg(drawing: Drawing) -> str:
    """The picture as one `<svg>` element, with its summary as title and description."""
    width, height = drawing.width, drawing.height
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" font-family="{FONT}" font-size="12">'
    )
    parts = [head, f"<title>{escape(drawing.summary)}</title>"]
    parts += map(_frame, drawing.frames)
    parts += map(_wire, drawing.wires)
    parts += map(_name, drawing.frames)
    layers = {f.group for f in drawing.frames if f.kind == "layer"}
    parts += [_box(b, b.group >= 0 and b.group not in layers) for b in drawing.boxes]
    parts += [_label(w) for w in drawing.wires if w.label]
    return "\n".join([*parts, "</svg>"])


def data_uri(text: str) -> str:
    """An SVG as the source of an `<img>`."""
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def colours(group: int) -> tuple[str, str]:
    """Border and fill of a group."""
    return PALETTE[group % len(PALETTE)]


def _colours_of(frame: Frame) -> tuple[str, str]:
    """Colours tell kernels apart; layers have none."""
    return LAYER if frame.kind == "layer" else colours(frame.group)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _rect(x: float, y: float, width: float, height: float, attributes: str) -> str:
    return f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" {attributes}/>'


def _text(x: float, y: float, text: str, attributes: str) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}" {attributes}>{escape(text)}</text>'


def _frame(frame: Frame) -> str:
    border, fill = _colours_of(frame)
    dash = ' stroke-dasharray="6 3"' if frame.kind == "library" else ""
    outline = f'rx="8" fill="{fill}" stroke="{border}" stroke-width="1.5"{dash}'
    return _rect(frame.x, frame.y, frame.width, frame.height, outline)


def _name(frame: Frame) -> str:
    """A frame's title, on a patch of its fill, so that wires pass behind it."""
    width = (len(frame.title) + len(frame.kind) + 3) * 6.5 + 4
    kind = f'<tspan fill="{FAINT}" font-weight="normal"> · {escape(frame.kind)}</tspan>'
    patch = _rect(frame.x + 7, frame.y + 4, width, 15, f'rx="3" fill="{_colours_of(frame)[1]}"')
    return (
        f'{patch}<text x="{_n(frame.x + 9)}" y="{_n(frame.y + 15)}" font-size="10.5" '
        f'font-weight="bold" fill="{INK}">{escape(frame.title)}{kind}</text>'
    )


def _box(box: Box, coloured: bool) -> str:
    border, fill, radius = PLAIN[box.kind]
    if coloured:
        border, tint = colours(box.group)
        fill = tint if box.kind == "group" else "#ffffff"
    dash = ' stroke-dasharray="4 2"' if box.kind == "library" else ""
    outline = f'rx="{radius}" fill="{fill}" stroke="{border}"{dash}'
    middle = box.x + box.width / 2
    parts = [  # the tip is for the explorer: a picture in an `<img>` has none
        "<g>",
        _rect(box.x, box.y, box.width, box.height, outline),
        _text(middle, box.y + 16, box.title, f'text-anchor="middle" fill="{INK}"'),
    ]
    if box.detail:
        small = f'text-anchor="middle" font-size="10" fill="{FAINT}"'
        parts.append(_text(middle, box.y + 30, box.detail, small))
    return "".join([*parts, "</g>"])


def _label(wire: Wire) -> str:
    x, y = wire.label_at
    width = len(wire.label) * 6.1 + 6
    return _rect(x - width / 2, y - 7, width, 13, 'rx="3" fill="#f6f8fa"') + _text(
        x, y + 3.2, wire.label, f'text-anchor="middle" font-size="10" fill="{FAINT}"'
    )


def _wire(wire: Wire) -> str:
    """A curve with vertical tangents through the points, and an arrow head where it meets a box."""
    curve = f'<path d="{_curve(wire.points)}" fill="none" stroke="{WIRE}" stroke-width="1.3"/>'
    if not wire.arrow:
        return curve
    x, y = wire.points[-1]
    head = f"M{_n(x - 3.5)} {_n(y - 7)}L{_n(x)} {_n(y)}L{_n(x + 3.5)} {_n(y - 7)}z"
    return f'{curve}<path d="{head}" fill="{WIRE}"/>'


def _curve(points: tuple[Point, ...]) -> str:
    (x, y), *rest = points
    parts = [f"M{_n(x)} {_n(y)}"]
    for nx, ny in rest:
        if abs(nx - x) < 0.05:
            parts.append(f"V{_n(ny)}")
        else:
            half = (y + ny) / 2
            parts.append(f"C{_n(x)} {_n(half)} {_n(nx)} {_n(half)} {_n(nx)} {_n(ny)}")
        x, y = nx, ny
    return "".join(parts)
