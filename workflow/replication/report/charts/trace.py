"""Traces of one run on one time axis, and a published congestion window under reproduced ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import altair as alt
import pandas as pd

from replication.compare.trace_comparison import PUBLISHED as PUBLISHED_SOURCE
from replication.metrics.results import Results
from replication.report.charts.data import (
    DrawnRun,
    PublishedValue,
    flow_label,
    read_series,
    runs_of,
    scenario_flows,
)
from replication.report.charts.figure import (
    DASHES,
    INK,
    PALETTE,
    PUBLISHED,
    PUBLISHED_MARK,
    WIDTH,
    Drawing,
    Figure,
    colours,
    dashes,
    legend_filter,
    legend_of,
    make_figure,
    stacked,
    three_digits,
    zoom_of,
)
from replication.report.charts.run import (
    TITLES,
    line_frame,
    lines_of,
    loss_ticks,
    mark_frame,
    marks_of,
    quantity_lines,
)
from replication.study.claim_model import covers, flows_in_words
from replication.study.model import EngineName
from replication.study.study import Experiment

#: Samples that each panel may keep, all flows together; under 2000 in all.
LIMITS = {"cwnd": 720, "ssthresh": 200, "rtt": 360, "throughput": 300, "queue": 160}
MARKS = 240
#: Published metric to the panel it is drawn in and the word beside it.
_PLACES = {
    "cwnd_mean_segments": ("cwnd", "mean"),
    "cwnd_peak_segments": ("cwnd", "peak"),
    "cwnd_minimum_segments": ("cwnd", "minimum"),
    "rtt_mean_s": ("rtt", "mean"),
    "rtt_s": ("rtt", "mean"),
    "throughput_bps": ("throughput", "mean"),
    "goodput_bps": ("throughput", "mean"),
}


def trace_figures(
    results: Results, experiment: Experiment, published: Sequence[PublishedValue] = ()
) -> list[Figure]:
    """Return one figure a point and engine, drawn from the first replicate."""
    runs: dict[tuple[str, str], DrawnRun] = {}
    for run in runs_of(results, experiment):
        runs.setdefault((run.point, run.engine), run)
    if not runs:
        return []
    series = read_series(results, list(runs.values()))
    return [_trace_figure(results, experiment, series, run, published) for run in runs.values()]


def _trace_figure(
    results: Results,
    experiment: Experiment,
    series: pd.DataFrame,
    run: DrawnRun,
    published: Sequence[PublishedValue],
) -> Figure:
    flows = scenario_flows(results, run.scenario)
    samples = series[(series["scenario"] == run.scenario) & (series["engine"] == run.engine)]
    long = line_frame(lines_of(samples, flows, LIMITS))
    order = [flow_label(flow) for flow in flows.values()]
    own = [value for value in published if covers(value.quantity.where, run.levels)]
    marks = mark_frame(marks_of(samples, flows))
    end_s = float(results.scenarios[run.scenario]["duration_s"])
    picked, opacity = legend_filter("flow", run.point, run.engine)
    # Published values stand to the right of the end, where time has no meaning.
    domain = alt.Scale(domain=[0.0, 1.34 * end_s], nice=False)
    ticks = alt.Axis(labelExpr=f"datum.value <= {end_s} ? datum.label : ''")
    x = alt.X("time_s:Q", title="Time (s)", scale=domain, axis=ticks)
    panels = [
        _panel(long[long["panel"] == name], name, order, x, opacity, _diamonds(own, name, end_s))
        for name in TITLES
        if (long["panel"] == name).any()
    ]
    if len(marks):
        panels.append(_loss_panel(marks, order, x, opacity))
    chart = stacked(panels, 8, picked, zoom_of(run.point, run.engine))
    title = f"{experiment.title}: {run.label} on {run.engine}, replicate {run.replicate + 1}"
    words = _describe(long, marks, own)
    return make_figure([experiment.id, run.point, run.engine], title, chart, words, long)


def _diamonds(published: Sequence[PublishedValue], panel: str, end_s: float) -> pd.DataFrame:
    """Return time_s, value, word, flow, source: a column right of the lines for each word."""
    rows = []
    words: dict[str, int] = {}
    for value in published:
        where, word = _PLACES.get(value.quantity.metric, ("", ""))
        if where == panel:
            column = words.setdefault(word, len(words))
            flows = value.quantity.flows
            flow = "" if isinstance(flows, str) else flows_in_words(flows)
            source = f"table {value.table}, row {value.row}, column {value.column}"
            rows.append(((1.02 + 0.09 * column) * end_s, value.value, word, flow, source))
    frame = pd.DataFrame(rows, columns=["time_s", "value", "word", "flow", "source"])
    return _labels_apart(frame.sort_values(["word", "value"], ignore_index=True))


def _labels_apart(diamonds: pd.DataFrame) -> pd.DataFrame:
    """Give diamonds that would lie on each other one label together."""
    names = list(diamonds["flow"])
    words, values = list(diamonds["word"]), list(diamonds["value"])
    for upper in range(1, len(names)):
        close = values[upper] - values[upper - 1] < 0.07 * max(values)
        if close and words[upper] == words[upper - 1]:
            names[upper] = ", ".join(n for n in (names[upper - 1], names[upper]) if n)
            names[upper - 1] = ""
    return diamonds.assign(flow=names)


def _panel(
    long: pd.DataFrame,
    name: str,
    order: list[str],
    x: alt.X,
    opacity: Any,
    diamonds: pd.DataFrame,
) -> Drawing:
    # Room above the highest value for the words over the published ones.
    largest = max([*long["value"], *diamonds["value"]]) * (1.18 if len(diamonds) else 1.05)
    scale = alt.Scale(domain=[0.0, largest or 1.0], nice=True)
    y = alt.Y("value:Q", title=TITLES[name], scale=scale)
    base = alt.Chart(long.drop(columns="panel")).encode(x=x, y=y)
    coded = colours("flow", order, lines=True), dashes("flow", order), opacity
    layers = quantity_lines(base, name, coded, "ssthresh" in set(long["quantity"]))
    if len(diamonds):
        layers += _diamond_layers(diamonds, x, y)
    height = 190 if name == "cwnd" else 110
    chart = alt.layer(*layers).properties(width=WIDTH + 60, height=height)
    if name == "cwnd":
        note = "Lines: congestion window; dotted: slow-start threshold"
        note += "; diamonds: published" if len(diamonds) else ""
        chart = chart.properties(title=alt.TitleParams(note, fontSize=11))
    return chart


def _diamond_layers(diamonds: pd.DataFrame, x: alt.X, y: alt.Y) -> list[Drawing]:
    base = alt.Chart(diamonds).encode(x=x, y=y)
    tooltip = [
        alt.Tooltip("source:N", title="Published in"),
        alt.Tooltip("word:N", title="What"),
        alt.Tooltip("value:Q", title="Value", format=".4g"),
    ]
    highest = diamonds.sort_values("value").drop_duplicates("word", keep="last")
    words = alt.Chart(highest).encode(x=x, y=alt.value(9), text="word:N")
    return [
        base.mark_point(**PUBLISHED_MARK).encode(tooltip=tooltip),
        base.mark_text(align="left", dx=7, fontSize=10).encode(text="flow:N"),
        words.mark_text(fontSize=10),
    ]


def _loss_panel(
    marks: pd.DataFrame,
    order: list[str],
    x: alt.X,
    opacity: Any,
) -> Drawing:
    shown = marks
    if len(marks) > MARKS:
        # The largest are kept: the counts say what the marks cannot.
        shown = marks.nlargest(MARKS, "count").sort_index()
    offset = alt.YOffset("flow:N", sort=order)
    ticks = loss_ticks(alt.Chart(shown), x, offset, colours("flow", order, lines=True), opacity)
    return ticks.properties(width=WIDTH + 60, height=26 * max(2, len(order)))


def _describe(long: pd.DataFrame, marks: pd.DataFrame, published: Sequence[PublishedValue]) -> str:
    words = (
        "Congestion window and slow-start threshold (segments), round-trip time (ms), throughput "
        "(Mbit/s), queue (packets) and losses against time (s)."
    )
    windows = long[long["quantity"] == "cwnd"]
    for flow, part in windows.groupby("flow", sort=False):
        lost = marks[marks["flow"] == flow].groupby("event")["count"].sum()
        words += (
            f" {flow}: window from {three_digits(float(part['value'].min()))} to "
            f"{three_digits(float(part['value'].max()))} segments, "
            f"{int(lost.get('retransmissions', 0))} retransmissions, "
            f"{int(lost.get('drops', 0))} drops."
        )
    counts = [value for value in published if value.quantity.metric == "retransmissions"]
    for value in counts:
        words += (
            f" Published ({value.table}, {value.row}): {three_digits(value.value)} retransmissions."
        )
    if published:
        words += " Published values are hollow diamonds at the right."
    return words


HEIGHT = 150
#: An engine has one colour and dash, whichever others ran; the published line has the ink.
_ENGINES = sorted(get_args(EngineName))


def overlay_figures(windows: pd.DataFrame, comparison: pd.DataFrame) -> list[Figure]:
    """Return a figure for each published trace of one study.

    Parameters
    ----------
    windows
        Columns of trace_windows.parquet; the published windows are there with the raw traces.
    comparison
        Columns of trace_comparison.csv: without a raw trace its published means are drawn.
    """
    return [
        _overlay(str(trace), part, comparison[comparison["trace"] == trace])
        for trace, part in windows.groupby("trace", sort=False)
    ]


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
    title = f"Trace {trace}: congestion windows, published and reproduced"
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
                alt.Tooltip("source:N", title="Source"),
                alt.Tooltip("time_s:Q", title="Time (s)", format=".4g"),
                alt.Tooltip("cwnd_segments:Q", title="Window (segments)", format=".4g"),
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
    scale = alt.Scale(domain=order, range=[styles[source] for source in order])
    legend = legend_of(order, lines=True)
    return channel(field="source", type="nominal", sort=order, scale=scale, legend=legend)


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
