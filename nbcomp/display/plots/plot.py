"""Pictures by matplotlib, of what is measured on request.  Only this and `charts` know it."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

from nbcomp.display.picture.svg import data_uri

FASTER, SLOWER, INK = "#0072b2", "#d55e00", "#24292f"


def picture(
    height: float,
    draw: Callable[[Any], None],
    place: tuple[float, float, float, float] | None = None,
) -> str:
    """What `draw` puts on the axes of a figure so many inches high, as the data URI of an SVG.

    place: of the axes in the figure; by default as large as their labels leave room for.
    """
    import matplotlib  # here, because importing it takes a third of a second
    from matplotlib.figure import Figure

    # Fixed ids make the picture the same every time; text stays text, so the file stays small.
    with matplotlib.rc_context({"svg.hashsalt": "nbcomp", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.8, height), facecolor="white")
        if place is None:
            figure.set_layout_engine("constrained")
        draw(figure.add_axes(place) if place else figure.add_subplot())
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # The reader's own fonts show the letters that matplotlib's lack.
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
            figure.savefig(buffer, format="svg", metadata={"Date": None})
    return data_uri(buffer.getvalue())
