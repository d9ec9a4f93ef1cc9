"""Charts over time: quantities of each flow and Jain's index, means with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.metrics.results import Results
from replication.metrics.statistic import estimate, jain_index
from replication.report.charts.data import (
    Display,
    DrawnRun,
    axis_factor,
    flow_label,
    level_label,
    read_series,
    runs_of,
    scenario_flows,
)
from replication.report.charts.figure import (
    INK,
    Drawing,
    Figure,
    colours,
    dashes,
    interval_tips,
    legend_filter,
    make_figure,
    three_digits,
    tips,
    zoom_of,
)
from replication.study.study import Experiment

BINS = 80


#: A quantity to its column of the series, how it is shown, and whether it is a rate of counts.
SAMPLED = {
    "throughput": ("throughput_bps", Display("Throughput", "Mbit/s", 1e-6), False),
    "latency": ("delay_s", Display("One-way delay", "ms", 1e3), False),
    "drops": ("drops", Display("Packets dropped", "packets/s", 1.0), True),
}
JAIN = Display("Jain's index of throughput", "1", 1.0, 1.0)


def time_figures(results: Results, experiment: Experiment) -> list[Figure]:
    """Return throughput, latency and drops of each flow over time, a panel a condition."""
    figures = []
    for engine, runs, series in _by_engine(results, experiment):
        starts = {run.label: _cbr_starts(results, run) for run in runs}
        for name, (_, display, _) in SAMPLED.items():
            parts = [_flows_over_time(results, series, run, name) for run in runs]
            frame = _over_replicates(pd.concat(parts, ignore_index=True), display)
            if frame.empty:
                continue
            chart = _panels(frame, display, f"{name} {engine}", starts)
            title = f"{experiment.title}: {display.label.lower()} over time on {engine}"
            words = f"{display.title} against time (s), a panel a condition."
            words += _describe(frame, display.unit)
            parts_of_name = [experiment.id, name, "time", engine]
            figures.append(make_figure(parts_of_name, title, chart, words, frame))
    return figures


def jain_figures(results: Results, experiment: Experiment) -> list[Figure]:
    """Return Jain's index of the TCP flows' throughput over time, a panel a delay."""
    axis = axis_factor(experiment)
    figures = []
    for engine, runs, series in _by_engine(results, experiment):
        parts = []
        for run in runs:
            values = _jain_over_time(results, series, run)
            panel = f"{axis.label}: {level_label(axis, run.levels[axis.id])}" if axis else ""
            name = run.series(experiment, axis)
            parts.append(values.assign(series=name, panel=panel, replicate=run.replicate))
        frame = _over_replicates(pd.concat(parts, ignore_index=True), JAIN)
        chart = _panels(frame, JAIN, f"jain {engine}", {}, zero=False)
        title = f"{experiment.title}: Jain's index over time on {engine}"
        words = "Jain's fairness index (1 is equal shares) against time (s)." + _describe(frame, "")
        parts_of_name = [experiment.id, "jain", "time", engine]
        figures.append(make_figure(parts_of_name, title, chart, words, frame))
    return figures


def _by_engine(
    results: Results, experiment: Experiment
) -> Iterator[tuple[str, list[DrawnRun], pd.DataFrame]]:
    """Yield each engine with its runs, and the series of all."""
    runs = runs_of(results, experiment)
    series = read_series(results, runs) if runs else pd.DataFrame()
    for engine in dict.fromkeys(run.engine for run in runs):
        yield engine, [run for run in runs if run.engine == engine], series


def _cbr_starts(results: Results, run: DrawnRun) -> list[float]:
    flows = scenario_flows(results, run.scenario).values()
    starts = (float(str(flow["start_s"])) for flow in flows if flow["kind"] == "cbr")
    return [start for start in starts if start > 0]


def _flows_over_time(
    results: Results, series: pd.DataFrame, run: DrawnRun, name: str
) -> pd.DataFrame:
    column, display, is_rate = SAMPLED[name]
    flows = scenario_flows(results, run.scenario)
    width = _bin_width(results, run)
    frame = _binned(series, run, list(flows), width)
    grouped = frame.groupby(["flow", "time_s"], observed=True)[column]
    values = grouped.sum(min_count=1) / width if is_rate else grouped.mean()
    frame = (values * display.factor).to_frame("value").reset_index()
    kinds = [str(flow["kind"]).upper() for flow in flows.values()]
    alike = len(set(kinds)) == len(kinds)  # one flow a kind: the panel's title says which
    names = kinds if alike else [flow_label(flow) for flow in flows.values()]
    labels = dict(zip(flows, names, strict=True))
    frame["series"] = frame["flow"].astype(str).map(labels)
    return frame.assign(panel=run.label, replicate=run.replicate)


def _jain_over_time(results: Results, series: pd.DataFrame, run: DrawnRun) -> pd.DataFrame:
    flows = [k for k, f in scenario_flows(results, run.scenario).items() if f["kind"] == "tcp"]
    frame = _binned(series, run, flows, _bin_width(results, run, at_least_s=1.0))
    shares = frame.groupby(["time_s", "flow"], observed=True)["throughput_bps"].mean()
    rows = [(t, jain_index(own.to_numpy(dtype=float))) for t, own in shares.groupby("time_s")]
    return pd.DataFrame(rows, columns=["time_s", "value"])


def _binned(
    series: pd.DataFrame, run: DrawnRun, flows: Sequence[str], width: float
) -> pd.DataFrame:
    """Return the samples of a run's flows, each at the end of its bin."""
    frame = series[(series["scenario"] == run.scenario) & (series["engine"] == run.engine)]
    frame = frame.assign(flow=frame["flow"].astype(object))
    frame = frame[frame["flow"].isin(flows)]
    return frame.assign(time_s=bin_ends(frame["time_s"], width))


def _bin_width(results: Results, run: DrawnRun, at_least_s: float = 0.0) -> float:
    """Return a multiple of the sampling interval; `at_least_s` as long as there are 20 bins."""
    scenario = results.scenarios[run.scenario]
    duration, step = float(scenario["duration_s"]), float(scenario["sampling_interval_s"])
    wanted = max(duration / BINS, min(at_least_s, duration / 20))
    return step * max(1, round(wanted / step))


def bin_ends(time_s: npt.ArrayLike, width: float) -> npt.NDArray[np.float64]:
    """Return the end of each sample's bin: a sample stands for the interval that ends with it."""
    times = np.asarray(time_s, dtype=float)
    return np.asarray((np.ceil(times / width - 1e-6) * width).round(9), dtype=np.float64)


def _over_replicates(frame: pd.DataFrame, display: Display) -> pd.DataFrame:
    rows = []
    for key, group in frame.groupby(["panel", "series", "time_s"], sort=False):
        found = estimate(group["value"].to_numpy(dtype=float), 0.0, display.highest)
        if found.n:
            ends = (float(f"{value:.5g}") for value in (found.mean, found.low, found.high))
            rows.append((*key, *ends, found.n))
    return pd.DataFrame(rows, columns=["panel", "series", "time_s", "mean", "low", "high", "n"])


def _panels(
    frame: pd.DataFrame,
    display: Display,
    name: str,
    starts: dict[str, list[float]],
    zero: bool = True,
) -> Drawing:
    order = list(dict.fromkeys(frame["series"]))
    limits = [float(frame["mean"].min()), float(frame["mean"].max())]
    domain = [0.0 if zero else max(0.0, limits[0] - 0.05), limits[1] * 1.05 or 1.0]
    panels = [
        _panel(
            part, order, display, f"{name} {index}", domain, starts.get(str(panel), [])
        ).properties(title=str(panel), width=250, height=170)
        for index, (panel, part) in enumerate(frame.groupby("panel", sort=False))
    ]
    return alt.concat(*panels, columns=2).resolve_scale(color="shared", strokeDash="shared")


def _panel(
    frame: pd.DataFrame,
    order: list[str],
    display: Display,
    name: str,
    domain: list[float],
    starts: list[float],
) -> Drawing:
    picked, opacity = legend_filter("series", name)
    colour = colours("series", order, lines=True)
    base = alt.Chart(frame.drop(columns="panel")).encode(x=alt.X("time_s:Q", title="Time (s)"))
    scale = alt.Scale(domain=domain, nice=True, clamp=True)
    y = alt.Y("mean:Q", title=display.title, scale=scale)
    layers: list[Drawing] = []
    if frame["low"].notna().any():
        low = alt.Y("low:Q", title=display.title, scale=scale)
        area = base.mark_area(opacity=0.18)
        layers.append(area.encode(y=low, y2="high:Q", color=colour))
    line = base.mark_line(strokeWidth=1.5).encode(
        y=y,
        color=colour,
        strokeDash=dashes("series", order),
        opacity=opacity,
        tooltip=[
            *tips("N", series="Series"),
            *tips("Q", ".3g", time_s="Time (s)"),
            *interval_tips(display.title),
        ],
    )
    layers.append(line.add_params(picked, zoom_of(name)))
    for start in sorted(set(starts)):
        place = alt.Chart(pd.DataFrame({"time_s": [start], "word": ["CBR starts"]}))
        at = place.encode(x=alt.X("time_s:Q", title="Time (s)"))
        layers.append(at.mark_rule(color=INK, strokeDash=[2, 3], opacity=0.7))
        word = at.mark_text(align="left", dx=3, dy=4, baseline="top", fontSize=10)
        layers.append(word.encode(text="word:N", y=alt.value(0)))
    return alt.layer(*layers)


def _describe(frame: pd.DataFrame, unit: str) -> str:
    words = ""
    for (panel, series), part in frame.groupby(["panel", "series"], sort=False):
        values = part["mean"]
        words += (
            f" {panel}, {series}: mean {three_digits(float(values.mean()))} {unit}".rstrip()
            + f", from {three_digits(float(values.min()))} to {three_digits(float(values.max()))}."
        )
    return words
