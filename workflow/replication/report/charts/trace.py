"""Published congestion windows and measured ones, a panel a trace."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from replication.compare.trace_comparison import PUBLISHED as PUBLISHED_SOURCE
from replication.report.charts.figure import (
    DASHES,
    INK,
    PALETTE,
    PUBLISHED,
    Drawing,
    Figure,
    legend_of,
    levels_of,
    make_figure,
    three_digits,
    tips,
)


def trace_figures(
    windows: pd.DataFrame, comparison: pd.DataFrame, traces: Sequence[str], engine: str
) -> list[Figure]:
    """Return the first flow of each trace in one figure, published and on one engine.

    Where there is no raw trace, the published mean of the comparison is drawn. The list is empty
    where there are no windows.
    """
    sources = [PUBLISHED_SOURCE, engine]
    own = windows[windows["source"].isin(sources) & windows["trace"].isin(traces)]
    panels, parts, words = [], [], "Congestion window of the first flow of each published trace."
    for trace in [trace for trace in traces if (own["trace"] == trace).any()]:
        part = own[own["trace"] == trace]
        part = part[part["flow"] == part["flow"].iloc[0]].round({"time_s": 3, "cwnd_segments": 2})
        part = part.assign(source=part["source"].replace(PUBLISHED_SOURCE, PUBLISHED))
        mean = None
        if PUBLISHED not in set(part["source"]):
            mean = _published_mean(comparison, trace, str(part["flow"].iloc[0]))
            words += f" {trace}: published mean {three_digits(mean)}."
        parts.append(part[["trace", "flow", "source", "time_s", "cwnd_segments"]])
        panels.append(_panel(parts[-1], trace, [PUBLISHED, engine], mean))
        for source, run in part.groupby("source", sort=False):
            low, high = run["cwnd_segments"].min(), run["cwnd_segments"].max()
            words += f" {trace}, {source}: {three_digits(low)} to {three_digits(high)}."
    if not panels:
        return []
    chart = alt.concat(*panels, columns=2).resolve_scale(color="shared", strokeDash="shared")
    title = "Congestion windows over time, published and measured"
    return [make_figure(["traces", engine], title, chart, words, pd.concat(parts))]


def _published_mean(comparison: pd.DataFrame, trace: str, flow: str) -> float:
    rows = comparison[(comparison["trace"] == trace) & (comparison["metric"] == "cwnd_mean")]
    return float(rows.loc[rows["flow"].astype(str) == flow, "published"].iloc[0])


def _panel(data: pd.DataFrame, title: str, order: list[str], mean: float | None) -> Drawing:
    x = alt.X("time_s:Q", title="Time since the flow's start (s)")
    y = alt.Y("cwnd_segments:Q", title="Window (segments)", scale=alt.Scale(zero=True))
    legend = legend_of(order, lines=True)
    lines = alt.Chart(data).mark_line(strokeWidth=1.5)
    lines = lines.encode(
        x=x,
        y=y,
        color=levels_of(alt.Color, "source", order, [INK, PALETTE[0]], legend),
        strokeDash=levels_of(alt.StrokeDash, "source", order, DASHES, legend),
        tooltip=[
            *tips("N", source="Source"),
            *tips("Q", ".4g", time_s="Time (s)", cwnd_segments="Window (segments)"),
        ],
    )
    layers: list[Drawing] = [lines]
    if mean is not None:
        base = alt.Chart(pd.DataFrame({"cwnd_segments": [mean], "word": ["published mean"]}))
        base = base.encode(y=y)
        layers.append(base.mark_rule(color=INK, strokeDash=[6, 3], strokeWidth=1.4))
        words = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, fontSize=10)
        layers.append(words.encode(text="word:N", x=alt.value(0)))
    return alt.layer(*layers).properties(title=title, width=250, height=130)
