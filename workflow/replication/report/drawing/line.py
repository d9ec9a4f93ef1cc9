"""A panel of lines: means against a factor with intervals, published values and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from replication.report.drawing.data import Display
from replication.report.drawing.figure import (
    INK,
    PUBLISHED,
    PUBLISHED_MARK,
    WIDTH,
    Drawing,
    colours,
    dashes,
    legend_filter,
    symbols,
)

HEIGHT = 260
_COLUMNS = ("engine", "series", "x", "mean", "low", "high", "n")


@dataclass(frozen=True)
class Horizontal:
    """The horizontal axis: a factor with numbers or with names.

    Attributes
    ----------
    title
        What is on it, with its unit.
    values
        Numbers of the factor's levels, which get the ticks; empty for names.
    """

    title: str
    values: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        """Return Vega-Lite's name of the type."""
        return "quantitative" if self.values else "nominal"

    def encoding(self) -> alt.X:
        """Return the encoding; logarithmic where the levels span more than a decade and a half."""
        if not self.values:
            return alt.X("x:N", title=self.title, sort=None)
        low, high = min(self.values), max(self.values)
        axis = alt.Axis(
            values=list(self.values),
            labelOverlap="greedy",
            # A format of the axis itself would be rounded to the distance of its ticks.
            labelExpr="format(datum.value, '.6~g')",
        )
        if low > 0 and high / low >= 30:
            domain = [low / 1.3, high * 1.3]
            scale = alt.Scale(type="log", domain=domain, nice=False)
        else:
            pad = 0.04 * (high - low or 1.0)
            scale = alt.Scale(domain=[min(0.0, low), high + pad], nice=False)
        return alt.X("x:Q", title=self.title, scale=scale, axis=axis)


@dataclass(frozen=True)
class Panel:
    """One panel of lines.

    Attributes
    ----------
    frame
        engine, series, x, mean, low, high, n.
    order
        Labels of the series in their fixed order.
    x, display
        What is on the axes.
    name
        Unique within a chart; names the selections.
    published
        series, x, value, source of published values; may be empty.
    bounds
        x, x_end, value, word, source of published bounds; may be empty.
    engines
        Those of the whole chart, which tell lines apart by dashes; by default the frame's.
    """

    frame: pd.DataFrame
    order: Sequence[str]
    x: Horizontal
    display: Display
    name: str
    published: pd.DataFrame | None = None
    bounds: pd.DataFrame | None = None
    engines: Sequence[str] = ()

    def draw(self, width: int = WIDTH, height: int = HEIGHT) -> Drawing:
        """Return the layers: intervals, lines, symbols, published bounds and values."""
        picked, opacity = legend_filter("series", self.name)
        y = alt.Y("mean:Q", title=self.display.title, scale=alt.Scale(zero=True))
        engines = self.engines or sorted(self.frame["engine"].unique())
        base = alt.Chart(self.frame[list(_COLUMNS)]).encode(x=self.x.encoding(), opacity=opacity)
        base = base.encode(color=colours("series", self.order))
        lines = base.mark_line(strokeWidth=1.8).encode(y=y)
        if len(engines) > 1:
            lines = lines.encode(strokeDash=dashes("engine", engines, "Engine"))
        else:
            lines = lines.encode(strokeDash=dashes("series", self.order, legend=False))
        points = base.mark_point(filled=True, size=55).encode(
            y=y, shape=symbols("series", self.order), detail="engine:N", tooltip=self._tooltip()
        )
        layers: list[Drawing] = []
        if self.frame["low"].notna().any():
            bars = base.transform_filter("isValid(datum.low)").mark_errorbar(ticks=True)
            low = alt.Y("low:Q", title=self.display.title)
            layers.append(bars.encode(y=low, y2="high:Q"))
        layers += [lines, points.add_params(picked)]
        if self.bounds is not None and len(self.bounds):
            layers += bound_layers(self.bounds, self.x, self.display)
        if self.published is not None and len(self.published):
            layers.append(published_layer(self.published, self.x, self.display))
        return alt.layer(*layers).properties(width=width, height=height)

    def _tooltip(self) -> list[alt.Tooltip]:
        numeric: Any = ".4g" if self.x.values else alt.Undefined
        return [
            alt.Tooltip("series:N", title="Series"),
            alt.Tooltip("engine:N", title="Engine"),
            alt.Tooltip("x", type=self.x.kind, title=self.x.title, format=numeric),  # type: ignore[arg-type]
            alt.Tooltip("mean:Q", title=f"Mean ({self.display.unit})", format=".4g"),
            alt.Tooltip("low:Q", title="95 % interval from", format=".4g"),
            alt.Tooltip("high:Q", title="to", format=".4g"),
            alt.Tooltip("n:Q", title="Replicates"),
        ]


def published_layer(published: pd.DataFrame, x: Horizontal, display: Display) -> Drawing:
    """Return the layer of published values, with a legend entry of its own."""
    return (
        alt.Chart(published.assign(kind=PUBLISHED))
        .mark_point(**PUBLISHED_MARK)
        .encode(
            x=x.encoding(),
            y=alt.Y("value:Q", title=display.title),
            fill=published_legend(),
            tooltip=[
                alt.Tooltip("source:N", title="Published"),
                alt.Tooltip("series:N", title="Series"),
                alt.Tooltip("value:Q", title=f"Value ({display.unit})", format=".6g"),
            ],
        )
    )


def published_legend() -> alt.Fill:
    """Return the encoding that puts the published diamond into the legend."""
    return alt.Fill(
        "kind:N",
        scale=alt.Scale(domain=[PUBLISHED], range=["transparent"]),
        legend=alt.Legend(title=None, orient="top", symbolType="diamond", symbolStrokeColor=INK),
    )


def bound_layers(bounds: pd.DataFrame, x: Horizontal, display: Display) -> list[Drawing]:
    """Return the layers of published bounds: dashed lines in the text's colour, with a label."""
    base = alt.Chart(bounds).encode(x=x.encoding(), y=alt.Y("value:Q", title=display.title))
    tooltip = [alt.Tooltip("source:N", title="Published")]
    return [
        base.mark_rule(color=INK, strokeDash=[6, 3], strokeWidth=1.4, clip=True).encode(
            x2="x_end:Q", tooltip=tooltip
        ),
        base.mark_text(align="left", baseline="bottom", dy=-3, fontSize=10).encode(text="word:N"),
    ]
