"""A figure: a chart with its words and numbers, and the one theme of all charts.

Text, axes and published values are drawn in ``currentColor`` on a transparent ground: in a page the
chart takes the page's ink, in light, dark and print alike. Colours are those of Okabe and Ito that
have contrast on both grounds; every colour goes with a symbol or a dash of its own.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import pandas as pd

from replication.report.drawing.name import name_of
from replication.study.verdict import Verdict

#: Any Altair chart: its classes share no useful type.
Drawing = Any
INK = "currentColor"
#: Okabe and Ito (2008): blue, vermillion, bluish green, reddish purple, orange, sky blue, grey.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
SYMBOLS = ("circle", "square", "triangle-up", "triangle-down", "cross", "triangle-right", "stroke")
DASHES = ([1, 0], [8, 3], [3, 3], [10, 3, 2, 3], [1, 3], [6, 2, 1, 2, 1, 2], [12, 4])
#: Published values look the same in every chart: a hollow diamond in the colour of the text.
PUBLISHED = "Published"
PUBLISHED_MARK: dict[str, Any] = {
    "shape": "diamond",
    "filled": False,
    "stroke": INK,
    "strokeWidth": 1.6,
    "size": 80,
    "opacity": 1.0,
}
VERDICT_COLOURS = dict(
    zip(Verdict, ("#009E73", "#56B4E9", "#D55E00", "#8C8C8C", "#CC79A7"), strict=True)
)
VERDICT_SYMBOLS = dict(
    zip(Verdict, ("circle", "triangle-up", "cross", "stroke", "square"), strict=True)
)
WIDTH = 520
MAXIMUM_POINTS = 2000


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    id
        Unique in a report and safe as an HTML id: see `report.drawing.name`.
    title
        What is shown, in a few words.
    chart
        The themed Altair chart; its own title is left to the page.
    description
        Alternative text: what is on the axes and what is seen, made from the data.
    data
        The numbers behind the chart, in display units.
    """

    id: str
    title: str
    chart: Drawing
    description: str
    data: pd.DataFrame

    def specification(self) -> dict[str, Any]:
        """Return the Vega-Lite specification, its data inside."""
        return dict(self.chart.to_dict(validate=False))


def to_png(specification: dict[str, Any], scale: float = 1.25) -> bytes:
    """Return a Vega-Lite specification as a PNG on white."""
    import oxipng
    import vl_convert

    drawn = specification | {"background": "white"}
    rendered = vl_convert.vegalite_to_png(drawn, scale=scale)
    # The renderer compresses for speed, and notebooks are kept in Git.
    return oxipng.optimize_from_memory(bytes(rendered), level=1)


def make_figure(
    parts: Sequence[str], title: str, chart: Drawing, description: str, data: pd.DataFrame
) -> Figure:
    """Put a figure together: `parts` become its id, and the chart gets the theme."""
    return Figure(name_of(*parts), title, themed(chart), description, data)


def themed(chart: Drawing) -> Drawing:
    """Return the chart with the theme of all charts."""
    words: dict[str, Any] = {"labelColor": INK, "titleColor": INK, "titleFontWeight": "normal"}
    sizes: dict[str, Any] = {"labelFontSize": 11, "titleFontSize": 12}
    lines = {"domainColor": INK, "domainOpacity": 0.4, "tickColor": INK, "tickOpacity": 0.4}
    grid = {"gridColor": INK, "gridOpacity": 0.12}
    legend = {"symbolStrokeWidth": 2, "symbolSize": 90, "symbolOpacity": 1, "labelLimit": 240}
    chart = chart.properties(background="transparent")
    return chart.configure(
        font="sans-serif",
        axis={**words, **sizes, **lines, **grid},
        legend={**words, **sizes, **legend},
        title={"color": INK, "fontSize": 13, "fontWeight": "normal", "anchor": "start"},
        text={"color": INK},
        view={"stroke": INK, "strokeOpacity": 0.2},
    )


def _levels(
    channel: type[Any], field: str, order: Sequence[str], values: Sequence[Any], legend: Any
) -> Any:
    """Return a nominal encoding whose levels take `values` in their order."""
    used = [values[i % len(values)] for i in range(len(order))]
    scale = alt.Scale(domain=list(order), range=used)
    return channel(field=field, type="nominal", sort=list(order), scale=scale, legend=legend)


def legend_of(order: Sequence[str], title: str | None = None, lines: bool = False) -> alt.Legend:
    """Return the legend of a series; of `lines`, with strokes for symbols."""
    columns = min(4, max(1, len(order)))
    if lines:
        return alt.Legend(
            title=title, orient="top", columns=columns, symbolType="stroke", symbolSize=300
        )
    return alt.Legend(title=title, orient="top", columns=columns)


def colours(field: str, order: Sequence[str], title: str | None = None, lines: bool = False) -> Any:
    """Return the colour encoding of `field`."""
    return _levels(alt.Color, field, order, PALETTE, legend_of(order, title, lines))


def symbols(field: str, order: Sequence[str], title: str | None = None) -> Any:
    """Return the symbol encoding of `field`, in one legend with its colours."""
    return _levels(alt.Shape, field, order, SYMBOLS, legend_of(order, title))


def dashes(field: str, order: Sequence[str], title: str | None = None, legend: bool = True) -> Any:
    """Return the dash encoding of `field`, in one legend with its colours or in none."""
    shown = legend_of(order, title, lines=True) if legend else None
    return _levels(alt.StrokeDash, field, order, DASHES, shown)


def legend_filter(field: str, *name: object) -> tuple[alt.Parameter, Any]:
    """Return a parameter that picks levels of `field` in the legend, and the opacity it gives."""
    picked = alt.selection_point(name=variable("pick", *name), fields=[field], bind="legend")
    return picked, alt.condition(picked, alt.value(1.0), alt.value(0.12))


def zoom_of(*name: object) -> alt.Parameter:
    """Return a parameter that zooms and pans the horizontal axis."""
    return alt.selection_interval(name=variable("zoom", *name), bind="scales", encodings=["x"])


def stacked(panels: Sequence[Drawing], spacing: int, *parameters: alt.Parameter) -> Drawing:
    """Return panels below one another with one axis of time, and parameters of all of them."""
    chart = alt.vconcat(*panels, spacing=spacing)
    chart = chart.resolve_scale(x="shared", color="shared", strokeDash="shared")
    with warnings.catch_warnings():
        # Altair warns that all panels get the same parameter, which is what is wanted.
        warnings.simplefilter("ignore", UserWarning)
        return chart.add_params(*parameters)


def variable(*parts: object) -> str:
    """Return `parts` as the name of a Vega signal."""
    return re.sub(r"[^a-z0-9]+", "_", " ".join(map(str, parts)).lower()).strip("_")


def three_digits(value: float) -> str:
    """Return `value` with three significant digits, for prose and alternative texts."""
    if math.isnan(value):
        return "unknown"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def with_prefix(figures: Sequence[Figure], *prefix: str) -> list[Figure]:
    """Return the figures with ids that begin with the parts `prefix`."""
    return [replace(figure, id=f"{name_of(*prefix)}~{figure.id}") for figure in figures]
