"""Trace comparison: published congestion windows next to reproduced ones, as numbers.

For every flow of a published trace and every engine that ran its point: the figures of
`metrics.cwnd` of the trace, and the mean over replicates of ours (over several like flows, their
mean). All windows of a flow are cut to the shortest, in time since each flow's own first sample.
Where the raw trace is not there, its committed summary figures are compared alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from replication.compare.raw_samples import SAMPLES, read_transcribed, sample_rows
from replication.design.config import load_study
from replication.engines.path import FlowPaths
from replication.metrics.cell_map import MappedCell, map_cells
from replication.metrics.collect import load_sampled
from replication.metrics.cwnd import DISTANCE, FIGURES, MINUTE_S, Samples, Window
from replication.metrics.metric import chosen_flows
from replication.metrics.sampled import RUN, SampledResults, samples, thin
from replication.metrics.statistic import estimate
from replication.metrics.trace import TABLE_PREFIX, read_flows, trace_files
from replication.study.claim_model import Quantity
from replication.study.published import published_path, read_published
from replication.study.scenario import Scenario
from replication.study.storage.table import (
    TRACE_COLUMNS,
    TRACE_NEARNESS_COLUMNS,
    TRACE_SAMPLE_COLUMNS,
    TRACE_WINDOW_COLUMNS,
    write_parquet,
    write_table,
)
from replication.study.study import Study

COMPARISON = "trace_comparison.csv"
NEARNESS = "trace_nearness.csv"
WINDOWS = "trace_windows.parquet"
#: Where a published figure comes from.
RAW, SUMMARY = "raw trace", "summary figure"
#: Source of a drawn window that is the published one; the others are engines.
PUBLISHED = "published"
#: Summary figures by the metric of the study's tables.
_SUMMARIES = {
    "cwnd_mean_segments": "cwnd_mean",
    "cwnd_peak_segments": "cwnd_peak",
    "cwnd_minimum_segments": "cwnd_minimum",
    "window_reductions": "reductions_per_minute",
}
#: What of the series is compared.
_SAMPLED = ("cwnd_bytes", "ssthresh_bytes")
#: Samples of a window that are kept for drawing.
DRAWN_SAMPLES = 220


@dataclass(frozen=True)
class PublishedFlow:
    """One flow of a published trace, which is called by its file name without the suffix.

    `quantity` has the points and flows that rebuild it; its metric is that of any of the summary
    figures, which are by metric. `samples` is None without the raw trace.
    """

    trace: str
    flow: str
    quantity: Quantity
    summary: Mapping[str, float]
    samples: Samples | None = None


def published_flows(
    study: Study, published: Path, files: Mapping[str, Path]
) -> list[PublishedFlow]:
    """Return the flows of a study's traces; `files` are the raw ones by name."""
    names = {table.id.removeprefix(TABLE_PREFIX): list(table.rows or {}) for table in study.tables}
    raw = {trace: read_flows(path, names[trace]) for trace, path in files.items() if trace in names}
    mapped: dict[tuple[str, str], list[MappedCell]] = {}
    for cell in map_cells(study, read_published(published)):
        if cell.table.startswith(TABLE_PREFIX):
            mapped.setdefault((cell.table.removeprefix(TABLE_PREFIX), cell.row), []).append(cell)
    flows = []
    for (trace, name), cells in mapped.items():
        samples = None
        if trace in raw:
            table = raw[trace][name]
            window, threshold = table["cwnd_segments"], table["ssthresh_segments"]
            samples = Samples.of(table["time_s"], window, threshold)
        summary = {cell.cell.metric: cell.value for cell in cells}
        flows.append(PublishedFlow(trace, name, cells[0].quantity, summary, samples))
    return flows


@dataclass(frozen=True)
class OurFlow:
    """One flow of one run of ours, which its scenario describes by `document`.

    `empty_rtt_s` is the shortest and the longest round trip of a small packet on the empty path.
    `first_age_s` is how long the flow has been sending at its first sample with a window.
    """

    engine: str
    replicate: int
    document: Mapping[str, Any]
    samples: Samples
    duration_s: float
    empty_rtt_s: tuple[float, float]
    first_age_s: float

    @property
    def congestion_control(self) -> str:
        """Its congestion control."""
        return str(self.document["congestion_control"])

    @property
    def first_window_segments(self) -> float:
        """Its initial window."""
        return float(self.document["initial_window_segments"])

    def window_at(self, age_s: float) -> float:
        """Return the window at an age of the flow, in segments."""
        ages = [0.0, *(self.first_age_s + self.samples.time_s)]
        windows = [self.first_window_segments, *self.samples.cwnd_segments]
        return float(np.interp(age_s, ages, windows))


@dataclass(frozen=True)
class TraceComparison:
    """One published flow and ours at one point of the design, on one grid.

    `window` is the published one, None where the raw trace is not there; `like` are the other
    published flows of the same set-up and congestion control.
    """

    published: PublishedFlow
    point: str
    window: Window | None
    ours: list[tuple[OurFlow, Window]]
    like: Sequence[Samples] = ()

    @property
    def engines(self) -> list[str]:
        """Engines that ran the point, sorted."""
        return sorted({flow.engine for flow, _ in self.ours})

    @property
    def congestion_controls(self) -> list[str]:
        """Congestion controls of our flows, each once."""
        return list(dict.fromkeys(flow.congestion_control for flow, _ in self.ours))

    def own_distance(self) -> float:
        """Return the mean distance of the published window to those of its like; NaN without."""
        pairs = (on_one_grid([self.published.samples, other]) for other in self.like)
        return _mean([one.distance(other) for one, other in pairs])

    @property
    def by_threshold(self) -> bool:
        """Whether every side has a slow-start threshold at some time."""
        sides = [self.published.samples, *(flow.samples for flow, _ in self.ours)]
        return all(side is not None and side.has_threshold for side in sides)

    def figure(self, metric: str, window: Window) -> float:
        """Return a figure of one window."""
        if metric == DISTANCE:
            assert self.window is not None
            return self.window.distance(window)
        if metric == "slow_start_share":
            return window.slow_start_share(self.by_threshold)
        return FIGURES[metric][2](window)

    def published_figures(self) -> dict[str, float]:
        """Return metric to published figure; the distance is that of the paper's own like flows."""
        if self.window is not None:
            figures = {metric: self.figure(metric, self.window) for metric in FIGURES}
            return {**figures, DISTANCE: self.own_distance()}
        minutes = {"window_reductions": self.ours[0][0].duration_s / MINUTE_S}
        return {
            figure: self.published.summary[metric] / minutes.get(metric, 1.0)
            for metric, figure in _SUMMARIES.items()
            if metric in self.published.summary
        }

    def reproduced(self, metric: str, engine: str) -> list[float]:
        """Return a figure for each replicate of an engine: the mean over our flows."""
        values: dict[int, list[float]] = {}
        for flow, window in self.ours:
            if flow.engine == engine:
                values.setdefault(flow.replicate, []).append(self.figure(metric, window))
        return [_mean(values[replicate]) for replicate in sorted(values)]


def on_one_grid(several: Sequence[Samples | None]) -> list[Window]:
    """Return windows on one grid: up to the shortest's end, in the longest sampling interval."""
    known = [samples for samples in several if samples is not None]
    span_s = min(float(samples.time_s[-1]) for samples in known)
    interval_s = max(float(np.median(np.diff(samples.time_s))) for samples in known)
    return [samples.on_grid(interval_s, span_s) for samples in known]


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if not math.isnan(value)]
    return float(np.mean(finite)) if finite else math.nan


def compare_traces(root: Path, data: Path, studies: Sequence[str]) -> str:
    """Compare the traces of studies; write the tables and return a line that says what was done."""
    rows: list[dict[str, object]] = []
    first: list[dict[str, object]] = []
    windows = [pd.DataFrame(columns=list(TRACE_WINDOW_COLUMNS))]
    for name in studies:
        study = load_study(root, name)
        results = load_sampled(data, name, _SAMPLED)
        published = published_path(root, name)
        flows = published_flows(study, published, trace_files(root, name))
        transcribed = read_transcribed(root, name)
        for comparison in compare_flows(results, flows):
            rows += comparison_rows(name, comparison)
            windows.append(drawn_windows(name, comparison))
            if transcribed is not None:
                first += sample_rows(name, comparison, transcribed)
    write_table(data / COMPARISON, rows, TRACE_COLUMNS)
    table = pd.DataFrame(rows, columns=list(TRACE_COLUMNS))
    write_table(data / SAMPLES, first, TRACE_SAMPLE_COLUMNS)
    write_table(data / NEARNESS, nearness(table), TRACE_NEARNESS_COLUMNS)
    drawn = pa.Table.from_pandas(pd.concat(windows, ignore_index=True), preserve_index=False)
    write_parquet(drawn, data / WINDOWS)
    evidence = table.drop_duplicates(["study", "trace", "flow"])["evidence"]
    raw = int((evidence == RAW).sum())
    return f"{data / COMPARISON}: {len(evidence)} published flows, {raw} of them with raw traces"


def compare_flows(
    results: SampledResults, flows: Sequence[PublishedFlow]
) -> Iterator[TraceComparison]:
    """Yield a comparison for each published flow and point of ours that was run."""
    found = [
        _compared(flow, point, ours)
        for flow in flows
        for point, ours in _our_flows(results, flow).items()
    ]
    for one in found:
        kind = (one.point, one.congestion_controls)
        like = [
            other.published.samples
            for other in found
            if other is not one and (other.point, other.congestion_controls) == kind
        ]
        yield replace(one, like=[samples for samples in like if samples is not None])


def _compared(published: PublishedFlow, point: str, ours: Sequence[OurFlow]) -> TraceComparison:
    windows = on_one_grid([published.samples, *(flow.samples for flow in ours)])
    theirs = None if published.samples is None else windows.pop(0)
    return TraceComparison(published, point, theirs, list(zip(ours, windows, strict=True)))


def _our_flows(results: SampledResults, published: PublishedFlow) -> dict[str, list[OurFlow]]:
    wanted = published.quantity
    runs = results.runs(wanted.experiment, wanted.where)
    chosen = chosen_flows(results, runs, wanted.flows)
    chosen = chosen[chosen["kind"] == "tcp"].merge(runs[[*RUN, "point", "replicate"]], on=RUN)
    keys = [*RUN, "flow"]
    series = samples(results, chosen, keys, None)
    by_flow = {key: group for key, group in series.groupby(keys, sort=False)}
    found: dict[str, list[OurFlow]] = {}
    for row in chosen.sort_values(["point", "engine", "replicate", "flow"]).to_dict("records"):
        scenario = results.scenarios[row["scenario"]]
        document = next(flow for flow in scenario["flows"] if flow["id"] == row["flow"])
        group = by_flow[tuple(row[key] for key in keys)]
        segment = float(document["segment_bytes"])
        stop_s = min(float(document["stop_s"]), float(group["time_s"].max()))
        window, threshold = group["cwnd_bytes"] / segment, group["ssthresh_bytes"] / segment
        found.setdefault(row["point"], []).append(
            OurFlow(
                engine=row["engine"],
                replicate=int(row["replicate"]),
                document=document,
                samples=Samples.of(group["time_s"], window, threshold, stop_s),
                duration_s=stop_s - float(document["start_s"]),
                empty_rtt_s=_empty_rtt(scenario, row["flow"]),
                first_age_s=_first_age(document, group.loc[group["cwnd_bytes"].notna(), "time_s"]),
            )
        )
    return found


def _first_age(flow: Mapping[str, Any], time_s: pd.Series[float]) -> float:
    """Return the age of a flow's first sample with a window; `time_s` has those samples' times.

    A flow that connects when it starts sends its data a handshake later, through whatever queue
    there is: at some time of the sampling interval before, so half an interval ago.
    """
    if flow.get("connect_s") is None:
        return float(time_s.diff().median()) / 2
    return float(time_s.min()) - float(flow["start_s"])


def _empty_rtt(document: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return the shortest and the longest round trip of a flow's small packet without a queue."""
    scenario = Scenario.model_validate(document)
    flow = next(flow for flow in scenario.flows if flow.id == name)
    path = [link for link, _ in FlowPaths(scenario).links(flow.source, flow.destination)]
    least = 2 * sum(link.delay_s for link in path)
    return least, least + 2 * sum(link.jitter_s for link in path)


def comparison_rows(study: str, comparison: TraceComparison) -> Iterator[dict[str, object]]:
    """Yield the rows of the table for one flow: a row a metric and engine."""
    published = comparison.published
    of_flow = {
        **{"study": study, "trace": published.trace, "flow": published.flow},
        **{"experiment": published.quantity.experiment, "point": comparison.point},
        "congestion_control": ", ".join(comparison.congestion_controls),
        "evidence": SUMMARY if comparison.window is None else RAW,
    }
    for metric, value in comparison.published_figures().items():
        unit = "segments" if metric == DISTANCE else FIGURES[metric][1]
        highest = 1.0 if metric == "slow_start_share" else math.inf
        for engine in comparison.engines:
            found = estimate(comparison.reproduced(metric, engine), 0.0, highest)
            yield {
                **of_flow,
                **{"engine": engine, "metric": metric, "unit": unit, "published": value},
                **{"reproduced_mean": found.mean, "reproduced_low": found.low},
                **{"reproduced_high": found.high, "n": found.n},
                "relative_deviation": (found.mean - value) / value if value else math.nan,
            }


def nearness(table: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield, for each study, metric and engine, the share of flows to which it is the nearest.

    Nearest: the smallest distance of the mean over replicates from the published value, among the
    flows for which every engine has one, in the columns of trace_comparison.csv. Engines that are
    equally near share the flow. Nothing is yielded for a single engine.
    """
    # A distance is a gap already: the published one is a yardstick, not an aim.
    aim = table["published"].where(table["metric"] != DISTANCE, 0.0)
    gap = (table["reproduced_mean"] - aim).astype(float).abs()
    for (study, metric), group in table.assign(gap=gap).groupby(["study", "metric"], sort=False):
        wide = group.pivot(index=["point", "trace", "flow"], columns="engine", values="gap")
        wide = wide.dropna()
        if wide.shape[1] < 2 or wide.empty:
            continue
        is_least = wide.le(wide.min(axis=1) + 1e-12, axis=0)
        shares = is_least.div(is_least.sum(axis=1), axis=0)
        for engine, own in shares.items():
            row = {"study": study, "metric": metric, "engine": engine, "nearest": float(own.sum())}
            yield row | {"flows": len(wide), "share": float(own.mean())}


def drawn_windows(study: str, comparison: TraceComparison) -> pd.DataFrame:
    """Return the windows of a flow for drawing, thinned: the published one, one of each engine.

    Of each engine the first replicate, and of several like flows the one of the same name.
    """
    windows: dict[str, Window] = {}
    if comparison.window is not None:
        windows[PUBLISHED] = comparison.window
    named = [
        pair for pair in comparison.ours if pair[0].document["id"] == comparison.published.flow
    ]
    for flow, window in named or comparison.ours:
        windows.setdefault(flow.engine, window)
    names = {"study": study, "trace": comparison.published.trace, "flow": comparison.published.flow}
    parts = []
    for source, window in windows.items():
        columns = {"time_s": window.time_s, "cwnd_segments": window.cwnd_segments}
        drawn = pd.DataFrame({**names, "source": source, **columns})
        parts.append(thin(drawn, "cwnd_segments", ["source"], DRAWN_SAMPLES))
    return pd.concat(parts, ignore_index=True)
