"""What was measured, as sections of the HTML form: a picture where there is one, and the table."""

from __future__ import annotations

from nbcomp.display.html.blocks import image, paragraph, section, table
from nbcomp.display.plots.charts import charts
from nbcomp.display.view.measured import tables
from nbcomp.measure.figures import Measured


def measured_html(measured: Measured, stages: tuple[tuple[str, float], ...] = ()) -> str:
    """A section for each part that was measured, and the seconds of each stage of compiling."""
    pictures = charts(measured, stages)
    parts = []
    for part in tables(measured):
        uri = pictures.get(part.chart, "")
        picture = image(uri, f"{part.title}: the numbers are in the table") if uri else ""
        notes = "".join(map(paragraph, part.notes))
        content = picture + table(part.head, part.rows, part.words) + notes
        parts.append(section(part.title, content, opened=True))
    if pictures and stages:
        words = ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in stages)
        parts.append(section("Compile time by stage", image(pictures["stages"], words)))
    return "".join(parts)
