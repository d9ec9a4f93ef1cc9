"""A figure: a chart with its words and numbers, and the one theme of all charts.

Text, axes and published values are drawn in ``currentColor`` on a transparent ground: in a page the
chart takes the page's ink, in light, dark and print alike. Colours are those of Okabe and Ito that
have contrast on both grounds; every colour goes with a symbol or a dash of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import pandas as pd

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
VERDICTS = (
    "reproduced",
    "direction only",
    "not reproduced",
    "not testable",
    "impossible",
    "not run",
)
VERDICT_COLOURS = ("#009E73", "#56B4E9", "#D55E00", "#8C8C8C", "#CC79A7", "#B8B8B8")
VERDICT_SYMBOLS = ("circle", "triangle-up", "cross", "stroke", "square", "triangle-down")
WIDTH = 520
MAXIMUM_POINTS = 2000


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    id
        Unique among a study's figures, safe as an HTML id and a file name.
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

    def png(self, scale: float = 1.5) -> bytes:
        """Return the chart as a PNG on white, for readers that show no Vega-Lite."""
        import vl_convert

        specification = self.specification() | {"background": "white"}
        return bytes(vl_convert.vegalite_to_png(specification, scale=scale))


def make_figure(
    parts: Sequence[object], title: str, chart: Drawing, description: str, data: object
) -> Figure:
    """Put a figure together: `parts` become its id, and the chart gets the theme."""
    assert isinstance(data, pd.DataFrame)
    return Figure(html_id(*parts), title, themed(chart), description, data)


def html_id(*parts: object) -> str:
    """Return `parts` as one text of letters, digits and hyphens that starts with a letter."""
    words = [re.sub(r"[^a-z0-9]+", "-", str(part).lower()).strip("-") for part in parts]
    text = "-".join(word for word in words if word)
    return text if text[:1].isalpha() else f"figure-{text}"


def themed(chart: Drawing) -> Drawing:
    """Return the chart with the theme of all charts."""
    text = {"color": INK}
    labels = {"labelColor": INK, "titleColor": INK}
    chart = chart.properties(background="transparent")
    return chart.configure(
        font="sans-serif",
        axis=alt.AxisConfig(
            **labels,
            domainColor=INK,
            domainOpacity=0.4,
            tickColor=INK,
            tickOpacity=0.4,
            gridColor=INK,
            gridOpacity=0.12,
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
        ),
        legend=alt.LegendConfig(
            **labels,
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
            symbolStrokeWidth=2,
            symbolSize=90,
            labelLimit=240,
        ),
        header=alt.HeaderConfig(**labels, labelFontSize=12, titleFontSize=12, labelLimit=360),
        title=alt.TitleConfig(**text, fontSize=13, fontWeight="normal", anchor="start"),
        text=alt.MarkConfig(**text),
        view=alt.ViewConfig(stroke=INK, strokeOpacity=0.2),
    )


def ordinal(
    channel: type[Any], field: str, order: Sequence[str], values: Sequence[Any], title: str | None
) -> Any:
    """Return a nominal encoding whose levels take `values` in their order, for ever."""
    used = [values[i % len(values)] for i in range(len(order))]
    return channel(
        field=field,
        type="nominal",
        sort=list(order),
        scale=alt.Scale(domain=list(order), range=used),
        legend=alt.Legend(title=title, orient="top", columns=min(4, max(1, len(order)))),
    )


def colours(field: str, order: Sequence[str], title: str | None = None) -> Any:
    """Return the colour encoding of `field`."""
    return ordinal(alt.Color, field, order, PALETTE, title)


def symbols(field: str, order: Sequence[str], title: str | None = None) -> Any:
    """Return the symbol encoding of `field`."""
    return ordinal(alt.Shape, field, order, SYMBOLS, title)


def dashes(field: str, order: Sequence[str], title: str | None = None) -> Any:
    """Return the dash encoding of `field`."""
    return ordinal(alt.StrokeDash, field, order, DASHES, title)


def legend_filter(field: str, name: str) -> tuple[alt.Parameter, Any]:
    """Return a parameter that picks levels of `field` in the legend, and the opacity it gives."""
    picked = alt.selection_point(
        name=html_id(name).replace("-", "_"), fields=[field], bind="legend"
    )
    return picked, alt.condition(picked, alt.value(1.0), alt.value(0.12))


def number(value: float) -> str:
    """Return `value` with three significant digits, for prose and alternative texts."""
    if pd.isna(value):
        return "unknown"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def with_prefix(figures: Sequence[Figure], prefix: str) -> list[Figure]:
    """Return the figures with ids that begin with `prefix`."""
    return [replace(figure, id=html_id(prefix, figure.id)) for figure in figures]
