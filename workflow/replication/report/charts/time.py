"""Charts over time: quantities of each flow and Jain's index, means with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    legend_filter,
    make_figure,
    three_digits,
    zoom_of,
)
from replication.study.study import Experiment

BINS = 80


@dataclass(frozen=True)
class Sampled:
    """A column of the series as a quantity over time."""

    column: str
    display: Display
    reduce: str


SAMPLED = {
    "throughput": Sampled("throughput_bps", Display("Throughput", "Mbit/s", 1e-6), "mean"),
    "latency": Sampled("delay_s", Display("One-way delay", "ms", 1e3), "mean"),
    "drops": Sampled("drops", Display("Packets dropped", "packets/s", 1.0), "rate"),
}


def time_figures(results: Results, experiment: Experiment) -> list[Figure]:
    """Return throughput, latency and drops of each flow over time, a panel a condition."""
    figures = []
    runs = runs_of(results, experiment)
    if not runs:
        return []
    series = read_series(results, runs)
    for engine in dict.fromkeys(run.engine for run in runs):
        ours = [run for run in runs if run.engine == engine]
        for name, sampled in SAMPLED.items():
            parts = [_flows_over_time(results, series, run, sampled) for run in ours]
            frame = _over_replicates(pd.concat(parts, ignore_index=True), sampled.display)
            if not frame.empty:
                figures.append(_time_figure(results, experiment, ours, (name, sampled), frame))
    return figures


def _flows_over_time(
    results: Results, series: pd.DataFrame, run: DrawnRun, sampled: Sampled
) -> pd.DataFrame:
    flows = scenario_flows(results, run.scenario)
    frame = _of_run(series, run)
    frame = frame[frame["flow"].isin(list(flows))]
    width = _bin_width(results, run)
    frame = frame.assign(time_s=bin_ends(frame["time_s"], width))
    grouped = frame.groupby(["flow", "time_s"], observed=True)[sampled.column]
    values = grouped.sum(min_count=1) / width if sampled.reduce == "rate" else grouped.mean()
    frame = (values * sampled.display.factor).to_frame("value").reset_index()
    kinds = [str(flow["kind"]).upper() for flow in flows.values()]
    alike = len(set(kinds)) == len(kinds)  # one flow a kind: the panel's title says which
    names = kinds if alike else [flow_label(flow) for flow in flows.values()]
    labels = dict(zip(flows, names, strict=True))
    frame["series"] = frame["flow"].astype(str).map(labels)
    return frame.assign(panel=run.label, replicate=run.replicate)


def _time_figure(
    results: Results,
    experiment: Experiment,
    runs: Sequence[DrawnRun],
    shown: tuple[str, Sampled],
    frame: pd.DataFrame,
) -> Figure:
    name, sampled = shown
    engine = runs[0].engine
    starts = {
        run.label: [
            float(str(flow["start_s"]))
            for flow in scenario_flows(results, run.scenario).values()
            if flow["kind"] == "cbr" and float(str(flow["start_s"])) > 0
        ]
        for run in runs
    }
    chart = _panels(frame, sampled.display, f"{name} {engine}", starts)
    title = f"{experiment.title}: {sampled.display.label.lower()} over time on {engine}"
    words = f"{sampled.display.title} against time (s), a panel a condition." + _describe(
        frame, sampled.display.unit
    )
    return make_figure([experiment.id, name, "time", engine], title, chart, words, frame)


def jain_figures(results: Results, experiment: Experiment) -> list[Figure]:
    """Return Jain's index of the TCP flows' throughput over time, a panel a delay."""
    runs = runs_of(results, experiment)
    if not runs:
        return []
    series = read_series(results, runs)
    axis = axis_factor(experiment)
    figures = []
    for engine in dict.fromkeys(run.engine for run in runs):
        parts = []
        for run in (run for run in runs if run.engine == engine):
            values = _jain_over_time(results, series, run)
            name, panel = run.series(experiment, axis), ""
            if axis is not None:
                panel = f"{axis.label}: {level_label(axis, run.levels[axis.id])}"
            parts.append(values.assign(series=name, panel=panel, replicate=run.replicate))
        display = Display("Jain's index of throughput", "1", 1.0, 1.0)
        frame = _over_replicates(pd.concat(parts, ignore_index=True), display)
        chart = _panels(frame, display, f"jain {engine}", {}, zero=False)
        title = f"{experiment.title}: Jain's index over time on {engine}"
        words = "Jain's fairness index (1 is equal shares) against time (s)." + _describe(frame, "")
        figures.append(
            make_figure([experiment.id, "jain", "time", engine], title, chart, words, frame)
        )
    return figures


def _jain_over_time(results: Results, series: pd.DataFrame, run: DrawnRun) -> pd.DataFrame:
    flows = [k for k, f in scenario_flows(results, run.scenario).items() if f["kind"] == "tcp"]
    frame = _of_run(series, run)
    frame = frame[frame["flow"].isin(flows)]
    width = _bin_width(results, run, at_least_s=1.0)
    frame = frame.assign(time_s=bin_ends(frame["time_s"], width))
    shares = frame.groupby(["time_s", "flow"], observed=True)["throughput_bps"].mean()
    rows = [
        (time, jain_index(values.to_numpy(dtype=float)))
        for time, values in shares.groupby("time_s")
    ]
    return pd.DataFrame(rows, columns=["time_s", "value"])


def _of_run(series: pd.DataFrame, run: DrawnRun) -> pd.DataFrame:
    frame = series[(series["scenario"] == run.scenario) & (series["engine"] == run.engine)]
    return frame.assign(flow=frame["flow"].astype(object))


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
            rows.append((*key, *(_round(v) for v in (found.mean, found.low, found.high)), found.n))
    return pd.DataFrame(rows, columns=["panel", "series", "time_s", "mean", "low", "high", "n"])


def _round(value: float) -> float:
    return float(f"{value:.5g}")


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
    zoom = zoom_of(name)
    colour = colours("series", order, lines=True)
    base = alt.Chart(frame.drop(columns="panel")).encode(x=alt.X("time_s:Q", title="Time (s)"))
    scale = alt.Scale(domain=domain, nice=True, clamp=True)
    y = alt.Y("mean:Q", title=display.title, scale=scale)
    layers: list[Drawing] = []
    if frame["low"].notna().any():
        layers.append(
            base.mark_area(opacity=0.18).encode(
                y=alt.Y("low:Q", title=display.title, scale=scale), y2="high:Q", color=colour
            )
        )
    layers.append(
        base.mark_line(strokeWidth=1.5)
        .encode(
            y=y,
            color=colour,
            strokeDash=dashes("series", order),
            opacity=opacity,
            tooltip=[
                alt.Tooltip("series:N", title="Series"),
                alt.Tooltip("time_s:Q", title="Time (s)", format=".3g"),
                alt.Tooltip("mean:Q", title=display.title, format=".4g"),
                alt.Tooltip("low:Q", title="95 % interval from", format=".4g"),
                alt.Tooltip("high:Q", title="to", format=".4g"),
                alt.Tooltip("n:Q", title="Replicates"),
            ],
        )
        .add_params(picked, zoom)
    )
    for start in sorted(set(starts)):
        place = alt.Chart(pd.DataFrame({"time_s": [start], "word": ["CBR starts"]}))
        at = place.encode(x=alt.X("time_s:Q", title="Time (s)"))
        layers.append(at.mark_rule(color=INK, strokeDash=[2, 3], opacity=0.7))
        layers.append(
            at.mark_text(align="left", dx=3, dy=4, baseline="top", fontSize=10).encode(
                text="word:N", y=alt.value(0)
            )
        )
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
