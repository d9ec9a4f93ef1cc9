"""A published congestion window and the measured ones on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import altair as alt
import pandas as pd

from replication.compare.trace_comparison import PUBLISHED as PUBLISHED_SOURCE
from replication.report.charts.figure import (
    DASHES,
    INK,
    PALETTE,
    PUBLISHED,
    WIDTH,
    Drawing,
    Figure,
    legend_filter,
    legend_of,
    levels_of,
    make_figure,
    stacked,
    three_digits,
    tips,
    zoom_of,
)
from replication.study.model import EngineName

HEIGHT = 150
#: An engine has one colour and dash, whichever others ran; the published line has the ink.
_ENGINES = sorted(get_args(EngineName))


def overlay_figures(windows: pd.DataFrame, comparison: pd.DataFrame) -> list[Figure]:
    """Return a figure for each published trace of one study.

    The published windows are among the others where there are raw traces; the published means of
    the comparison are drawn where there are none.
    """
    return [
        _overlay(str(trace), part, comparison[comparison["trace"] == trace])
        for trace, part in windows.groupby("trace", sort=False)
    ]


def trace_overview(figures: Sequence[Figure], engine: str) -> list[Figure]:
    """Return the first flow of each trace in one figure, published and on one engine.

    `figures` are the overlays of an experiment's traces; none for fewer than two.
    """
    if len(figures) < 2:
        return []
    panels, words = [], "Congestion window of the first flow of each published trace and of ours."
    parts = []
    for figure in figures:
        own = figure.data[figure.data["source"].isin([PUBLISHED, engine])]
        first = own[own["flow"] == own["flow"].iloc[0]]
        trace = figure.title.partition(":")[0]
        panel = _overlay_panel(first, trace, [PUBLISHED, engine], alt.value(1), None)
        panels.append(panel.properties(width=250, height=130))
        parts.append(first.assign(trace=trace))
        for source, run in first.groupby("source", sort=False):
            values = run["cwnd_segments"]
            words += (
                f" {trace}, {source}: {three_digits(values.min())} to {three_digits(values.max())}."
            )
    chart = alt.concat(*panels, columns=2).resolve_scale(color="shared", strokeDash="shared")
    title = "Congestion windows over time, published and measured"
    name = ["", "traces", engine]
    return [make_figure(name, title, chart, words, pd.concat(parts))]


def _overlay(trace: str, windows: pd.DataFrame, comparison: pd.DataFrame) -> Figure:
    data = pd.DataFrame(
        {
            "flow": windows["flow"].to_numpy(),
            "source": windows["source"].replace(PUBLISHED_SOURCE, PUBLISHED).to_numpy(),
            "time_s": windows["time_s"].round(3).to_numpy(),
            "cwnd_segments": [float(f"{value:.4g}") for value in windows["cwnd_segments"]],
        }
    )
    order = [source for source in (PUBLISHED, *_ENGINES) if (data["source"] == source).any()]
    means = _published_means(comparison) if PUBLISHED not in order else {}
    picked, opacity = legend_filter("source", trace)
    panels = [
        _overlay_panel(part, str(flow), order, opacity, means.get(str(flow)))
        for flow, part in data.groupby("flow", sort=False)
    ]
    chart = stacked(panels, 10, picked, zoom_of(trace))
    title = f"Trace {trace}: congestion windows, published and measured"
    return make_figure(["", "trace", trace], title, chart, _overlay_description(data, means), data)


def _published_means(comparison: pd.DataFrame) -> dict[str, float]:
    rows = comparison[comparison["metric"] == "cwnd_mean"].drop_duplicates("flow")
    return {str(flow): float(v) for flow, v in zip(rows["flow"], rows["published"], strict=True)}


def _overlay_panel(
    data: pd.DataFrame, flow: str, order: list[str], opacity: Any, mean: float | None
) -> Drawing:
    x = alt.X("time_s:Q", title="Time since the flow's start (s)")
    y = alt.Y("cwnd_segments:Q", title="Window (segments)", scale=alt.Scale(zero=True))
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=1.5)
        .encode(
            x=x,
            y=y,
            color=_styles(alt.Color, order, INK, PALETTE),
            strokeDash=_styles(alt.StrokeDash, order, DASHES[0], DASHES[1:]),
            opacity=opacity,
            tooltip=[
                *tips("N", source="Source"),
                *tips("Q", ".4g", time_s="Time (s)", cwnd_segments="Window (segments)"),
            ],
        )
    )
    layers: list[Drawing] = [lines]
    if mean is not None:
        base = alt.Chart(pd.DataFrame({"cwnd_segments": [mean], "word": ["published mean"]}))
        base = base.encode(y=y)
        layers.append(base.mark_rule(color=INK, strokeDash=[6, 3], strokeWidth=1.4))
        words = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, fontSize=10)
        layers.append(words.encode(text="word:N", x=alt.value(0)))
    return alt.layer(*layers).properties(title=flow, width=WIDTH + 60, height=HEIGHT)


def _styles(channel: type[Any], order: list[str], published: Any, engines: Any) -> Any:
    """Return an encoding of the source: the published style, and one of each engine for good."""
    styles = {PUBLISHED: published, **dict(zip(_ENGINES, engines, strict=False))}
    used = [styles[source] for source in order]
    return levels_of(channel, "source", order, used, legend_of(order, lines=True))


def _overlay_description(data: pd.DataFrame, means: dict[str, float]) -> str:
    words = (
        "Congestion window (segments) against the time since the flow's start (s), a panel for "
        "each flow; of each engine the first replicate."
    )
    for (flow, source), part in data.groupby(["flow", "source"], sort=False):
        low, high = float(part["cwnd_segments"].min()), float(part["cwnd_segments"].max())
        words += (
            f" {flow}, {str(source).lower()}: from {three_digits(low)} to {three_digits(high)}."
        )
    for flow, mean in means.items():
        words += f" {flow}: published mean {three_digits(mean)}."
    return words
