"""Charts over time: quantities of each flow, Jain's index, and windows of published traces."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.compare.trace_comparison import PUBLISHED as PUBLISHED_SOURCE
from replication.metrics.results import Results
from replication.metrics.sampled import kept_samples
from replication.metrics.statistic import jain_index
from replication.report.charts import data
from replication.report.charts import figure as draw
from replication.report.charts.data import Display
from replication.report.charts.figure import Drawing, Figure
from replication.report.charts.lines import spread
from replication.study.study import Experiment
from replication.verdicts.wording import lower

_BINS = 80
#: Width of a row of panels.
_ROW_WIDTH = 840
#: Width and height of a panel of windows, of which two stand side by side; most samples of all.
_WINDOW_WIDTH, _WINDOW_HEIGHT, _MOST_SAMPLES = 330, 90, 1800
EQUAL_SHARES = "Equal shares of path and queue"
#: Quantity: its column of the series, how it is shown, and whether counts become a rate.
_SAMPLED = {
    "throughput": ("throughput_bps", Display("Throughput", "Mbit/s", 1e-6), False),
    "latency": ("delay_s", Display("One-way delay", "ms", 1e3), False),
    "drops": ("drops", Display("Packets dropped", "packets/s", 1.0), True),
}
_JAIN = Display("Jain's index of throughput", "", 1.0, 1.0)


def time_figures(results: Results, experiment: Experiment) -> Iterator[Figure]:
    """Yield throughput, latency and drops of each flow over time, one panel for a condition."""
    runs = data.runs_of(results, experiment)
    frame = _binned(results, runs.assign(panel=runs["label"]))
    keys = ["run", "panel", "replicate", "width_s", "flow", "series", "time_s"]
    for name, (column, display, is_rate) in _SAMPLED.items() if len(frame) else ():
        grouped = frame.groupby(keys)[column]
        values = grouped.sum(min_count=1) if is_rate else grouped.mean()
        width_s = values.index.get_level_values("width_s") if is_rate else 1.0
        yield from _figure(experiment, runs, name, display, values / width_s * display.factor)


def jain_figures(results: Results, experiment: Experiment) -> list[Figure]:
    """Return Jain's index of the TCP flows' throughput over time, with a panel for each delay."""
    axis, runs = data.axis_factor(experiment), data.runs_of(results, experiment)
    of_axis = [data.labels_of(levels, [axis] if axis else []) for levels in runs["levels"]]
    runs["panel"] = [f"{axis.label}: {label}" if axis else "" for label in of_axis]
    frame = _binned(results, runs, at_least_s=1.0)
    frame["series"] = [data.series_of(levels, experiment, axis) for levels in frame["levels"]]
    keys = ["run", "panel", "replicate", "series", "time_s"]
    shares = frame[frame["kind"] == "tcp"].groupby([*keys, "flow"])["throughput_bps"].mean()
    values = shares.groupby(level=keys).agg(lambda rates: jain_index(rates.to_numpy(dtype=float)))
    return _figure(experiment, runs, "jain", _JAIN, values)


def _figure(
    experiment: Experiment, runs: pd.DataFrame, name: str, display: Display, values: pd.Series
) -> list[Figure]:
    """Return the figure of a quantity over time; none where nothing was sampled."""
    each = values.rename("value").reset_index()
    frame = data.over_replicates(each, ["panel", "series", "time_s"], 0.0, display.highest)
    frame = frame[frame["n"] > 0]
    means = ["mean", "low", "high"]
    frame[means] = frame[means].map(lambda value: float(f"{value:.5g}"))
    if frame.empty:
        return []
    engine = runs["engine"].iloc[0]
    title = f"{experiment.title}: {display.label} over time on {engine}"
    words = f"{display.title} against time (s), one panel for each condition."
    for (panel, series), part in frame.groupby(["panel", "series"], sort=False):
        low, mean, high = map(draw.three_digits, part["mean"].agg(["min", "mean", "max"]))
        words += f" {panel}, {series}: mean {mean}, from {low} to {high}."
    chart = _chart(frame, display)
    return [draw.make_figure([experiment.id, name, "time", engine], title, chart, words)]


def _binned(results: Results, runs: pd.DataFrame, at_least_s: float = 0.0) -> pd.DataFrame:
    """Return the samples of the runs' flows, each with its run and flow, at the end of its bin.

    Bins are multiples of the sampling interval, at least `at_least_s` long if 20 of them fit.
    """
    widths, flows = {}, list[tuple[str, ...]]()
    for name in set(runs["scenario"]):
        scenario = results.scenarios[name]
        duration, step = float(scenario["duration_s"]), float(scenario["sampling_interval_s"])
        wanted = max(duration / _BINS, min(at_least_s, duration / 20))
        widths[name] = step * max(1, round(wanted / step))
        kinds = [flow["kind"].upper() for flow in scenario["flows"]]
        # With one flow of each kind, the panel's title names it.
        alike = len(set(kinds)) == len(kinds)
        for flow, kind in zip(scenario["flows"], kinds, strict=True):
            flows.append((name, flow["id"], flow["kind"], kind if alike else data.flow_label(flow)))
    facts = pd.DataFrame(flows, columns=["scenario", "flow", "kind", "series"])
    frame = runs.assign(run=range(len(runs)), width_s=runs["scenario"].map(widths))
    series = data.read_series(results, runs).astype({"flow": object})
    frame = frame.merge(series, on=["scenario", "engine"]).merge(facts, on=["scenario", "flow"])
    return frame.assign(time_s=bin_ends(frame["time_s"], frame["width_s"]))


def bin_ends(time_s: npt.ArrayLike, width: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the end of each sample's bin; a sample covers the interval that ends with it."""
    times, width = np.asarray(time_s, dtype=float), np.asarray(width, dtype=float)
    return np.asarray((np.ceil(times / width - 1e-6) * width).round(9), dtype=np.float64)


def _chart(frame: pd.DataFrame, display: Display) -> Drawing:
    order = list(dict.fromkeys(frame["series"]))
    low, high = float(frame["mean"].min()), float(frame["mean"].max())
    # Indices near 1 differ little, so their axis begins just below the smallest.
    domain = [max(0.0, low - 0.05) if display is _JAIN else 0.0, high * 1.05 or 1.0]
    scale = alt.Scale(domain=domain, nice=True, clamp=True)
    columns = draw.balanced(frame["panel"].nunique(), draw.MOST_COLUMNS)
    width = _ROW_WIDTH // columns
    panels = []
    for name, part in frame.groupby("panel", sort=False):
        panel = _panel(part, order, display, scale, _ROW_WIDTH)
        heading = draw.lines_of(str(name), draw.PANEL_TITLE)
        panels.append(panel.properties(title=heading, width=width, height=170))
    axes = draw.title_of_panels([display.title, "against time (s)"])
    chart = alt.concat(*panels, columns=columns, title=axes)
    return chart.resolve_scale(color="shared", strokeDash="shared")


def _panel(
    frame: pd.DataFrame, order: list[str], display: Display, scale: alt.Scale, legend_width: int
) -> Drawing:
    looks = draw.look("series", order, lines=True, width=legend_width)
    x = alt.X("time_s:Q", title=None)
    base = alt.Chart(frame.drop(columns="panel")).encode(x=x, color=looks["color"])
    tooltip = draw.tips("N", series="Series") + draw.tips("Q", ".3g", time_s="Time (s)")
    line = base.mark_line(strokeWidth=1.5).encode(
        y=alt.Y("mean:Q", title=None, scale=scale),
        strokeDash=looks["strokeDash"],
        tooltip=tooltip + draw.interval_tips(display.title),
    )
    if frame["low"].isna().all():
        return line
    low = alt.Y("low:Q", title=None, scale=scale)
    return alt.layer(base.mark_area(opacity=0.18).encode(y=low, y2="high:Q"), line)


def trace_figures(
    windows: pd.DataFrame,
    traces: Sequence[str],
    engine: str,
    equal_windows: Mapping[str, float] | None = None,
) -> list[Figure]:
    """Return one figure of all flows of each trace, published (if it is there) next to ours.

    `equal_windows` has by trace the window (segments) at which its flows share path and queue
    equally.
    """
    sources = [PUBLISHED_SOURCE, engine]
    shown = windows[windows["source"].isin(sources) & windows["trace"].isin(traces)]
    if shown.empty:
        return []
    shown = shown.drop(columns="study")
    thinned = _thinned(shown)
    order = sorted(set(shown["flow"]))
    panels, words = [], "Congestion windows of all flows of each published trace."
    for name, of_trace in shown.groupby("trace", sort=False):
        equal = (equal_windows or {}).get(str(name))
        highest = max(float(of_trace["cwnd_segments"].max()), equal or 0.0)
        step = draw.round_step(highest, 5)
        top = step * math.ceil(highest / step)
        for source in sources:
            windows = of_trace[of_trace["source"] == source]
            if windows.empty:
                continue
            who = draw.PUBLISHED if source == PUBLISHED_SOURCE else source
            panel = f"{data.proper(str(name))}, {lower(who)}"
            ends = _window_ends(windows, top)
            drawn = thinned.loc[thinned.index.intersection(windows.index)].assign(source=who)
            panels.append(_window_panel(drawn, ends, panel, order, top, equal))
            said = ", ".join(str(end["words"]) for end in ends)
            words += f" {panel}: median windows {said}."
        if equal:
            words += f" Equal shares of path and queue: {draw.three_digits(equal)}."
    axes = "Window (segments) against the flow's time (s)"
    heading = draw.title_of_panels([axes, "At the right: median windows"])
    chart = alt.concat(*panels, columns=2, title=heading)
    chart = chart.resolve_scale(color="shared", strokeDash="shared", opacity="shared")
    title = "Congestion windows over time, published and measured"
    return [draw.make_figure(["traces", engine], title, chart, words)]


def _thinned(windows: pd.DataFrame) -> pd.DataFrame:
    """Return windows with the samples that show their shape, few enough for a page."""
    lines = windows.groupby(["trace", "source", "flow"], sort=False)
    bins = max(8, _MOST_SAMPLES // (4 * len(lines)))
    parts = []
    for _, line in lines:
        kept = kept_samples(line["time_s"].to_numpy(), line["cwnd_segments"].to_numpy(), bins)
        parts.append(line.iloc[kept])
    return pd.concat(parts).round({"time_s": 2, "cwnd_segments": 1})


def _window_ends(windows: pd.DataFrame, top: float) -> list[dict[str, Any]]:
    """Return for each flow its median window and the pixel of its label, from top to bottom."""
    ends: list[dict[str, Any]] = []
    for flow, line in windows.groupby("flow", sort=False):
        # Samples are not at equal intervals.
        times = line["time_s"].to_numpy(dtype=float)
        even = np.interp(np.linspace(times[0], times[-1], 400), times, line["cwnd_segments"])
        ends.append({"flow": data.proper(str(flow)), "median": float(np.median(even))})
    ends.sort(key=lambda end: -end["median"])
    wanted = [(_WINDOW_HEIGHT * (1 - end["median"] / top), 1) for end in ends]
    for end, y in zip(ends, spread(wanted, _WINDOW_HEIGHT), strict=True):
        decimals = 0 if end["median"] >= 10 else 1
        end["words"] = f"{end['flow']} {end['median']:.{decimals}f}"
        end["y"] = round(y, 1)
    return ends


def _window_panel(
    windows: pd.DataFrame,
    ends: Sequence[Mapping[str, Any]],
    title: str,
    order: Sequence[str],
    top: float,
    equal: float | None,
) -> Drawing:
    scale = alt.Scale(domain=[0, top], nice=False)
    looks = draw.look("flow", order, lines=True)
    looks = {key: draw.changed(channel, legend=None) for key, channel in looks.items()}
    numbers = draw.tips("Q", ".4g", time_s="Time (s)", cwnd_segments="Window (segments)")
    lines = alt.Chart(windows).mark_line(strokeWidth=1.4)
    layers: list[Drawing] = [
        lines.encode(
            x=alt.X("time_s:Q", title=None, scale=alt.Scale(nice=False)),
            y=alt.Y("cwnd_segments:Q", title=None, scale=scale, axis=alt.Axis(tickCount=5)),
            **looks,
            tooltip=draw.tips("N", source="Source", flow="Flow") + numbers,
        )
    ]
    names = draw.labels_of(f"windows of {title}", ends)
    names = names.mark_text(align="left", baseline="middle", dx=5)
    layers.append(names.encode(x=alt.value("width"), y=alt.Y("y:Q", scale=None), text="words:N"))
    if equal:
        law = pd.DataFrame({"equal": [round(equal, 1)], "law": [EQUAL_SHARES]})
        legend = alt.Legend(
            title=None,
            orient="top",
            symbolType="stroke",
            symbolSize=130,
            symbolDash=[4, 3],
            symbolStrokeColor=draw.INK,
            labelLimit=_WINDOW_WIDTH,
        )
        # The legend of a width would have its text on its symbol.
        named = alt.Scale(domain=[EQUAL_SHARES], range=[1])
        rule = alt.Chart(law).mark_rule(color=draw.INK, strokeDash=[4, 3])
        layers.append(
            rule.encode(
                y=alt.Y("equal:Q", title=None, scale=scale),
                opacity=alt.Opacity("law:N", scale=named, legend=legend),
            )
        )
    return alt.layer(*layers).properties(title=title, width=_WINDOW_WIDTH, height=_WINDOW_HEIGHT)
