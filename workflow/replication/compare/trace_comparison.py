"""Compare published congestion windows and first samples of `ss` with ours.

The figures of `metrics.cwnd` are computed for each published flow and for our replicates, averaged
over our matching flows. All windows of a flow are cut to the shortest, counted from each flow's
first sample. Without the raw trace only its committed summary figures are compared.

First samples are in data/published/STUDY/raw_samples.csv, which
workflow/scripts/transcribe_raw_samples.py made from the authors' recordings of `ss -ti`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from replication.base.table import (
    TRACE_COLUMNS,
    TRACE_NEARNESS_COLUMNS,
    TRACE_SAMPLE_COLUMNS,
    TRACE_WINDOW_COLUMNS,
    read_frame,
    write_frame,
    write_table,
)
from replication.design.config import load_study
from replication.engines.path import FlowPaths
from replication.metrics.cell_map import MappedCell, cells_of
from replication.metrics.collect import load_sampled
from replication.metrics.cwnd import DISTANCE, FIGURES, MINUTE_S, CwndSeries
from replication.metrics.metric import chosen_flows
from replication.metrics.sampled import RUN, SampledResults, kept_samples, samples
from replication.metrics.statistic import estimate
from replication.metrics.trace import read_flows
from replication.metrics.trace_source import TABLE_PREFIX, trace_files
from replication.study.claim_model import Quantity
from replication.study.scenario import Scenario
from replication.study.study import Study

COMPARISON = "trace_comparison.csv"
NEARNESS = "trace_nearness.csv"
WINDOWS = "trace_windows.parquet"
#: Sources of a published figure.
RAW, SUMMARY = "raw trace", "summary figure"
#: Source of the published window that is drawn; the other sources are engines.
PUBLISHED = "published"
#: Figure of `metrics.cwnd` by the metric of the study's tables.
_SUMMARIES = {
    "cwnd_mean_segments": "cwnd_mean",
    "cwnd_peak_segments": "cwnd_peak",
    "cwnd_minimum_segments": "cwnd_minimum",
    "window_reductions": "reductions_per_minute",
}
#: Columns of the series that are compared.
_SAMPLED = ("cwnd_bytes", "ssthresh_bytes")
#: Samples of a window that are kept for drawing.
DRAWN_SAMPLES = 220

TRANSCRIBED = "data/published/{}/raw_samples.csv"
SAMPLES = "trace_samples.csv"
_FIRST_SAMPLE = ("minrtt_s", "first_pacing_rate_bps", "first_busy_s", "first_cwnd_segments")
#: A longer round trip has met a queue: a packet alone takes 10 ms at 1 Mbit/s.
_EMPTY_PATH_S = 0.01
#: Pacing gains of Linux before the first loss: tcp_pacing_ss_ratio, and 2/ln 2 of BBR.
_PACING_GAIN, _BBR_GAIN = 2.0, 2 / math.log(2)


@dataclass(frozen=True)
class PublishedFlow:
    """One flow of a published trace; `key` has its study, trace (the file's name) and flow.

    `quantity` names the points and flows that rebuild it (its metric does not matter), `summary`
    has the published figures by metric. `samples` is None without the raw trace.
    """

    key: dict[str, str]
    quantity: Quantity
    summary: Mapping[str, float]
    samples: CwndSeries | None = None


def _published_flows(root: Path, study: Study) -> Iterator[PublishedFlow]:
    names = {table.id.removeprefix(TABLE_PREFIX): list(table.rows or {}) for table in study.tables}
    files = trace_files(root, study.id)
    raw = {trace: read_flows(path, names[trace]) for trace, path in files.items() if trace in names}
    mapped: dict[tuple[str, str], list[MappedCell]] = {}
    for cell in cells_of(root, study):
        if cell.table.startswith(TABLE_PREFIX):
            mapped.setdefault((cell.table.removeprefix(TABLE_PREFIX), cell.row), []).append(cell)
    for (trace, name), cells in mapped.items():
        samples = None
        if trace in raw:
            table = raw[trace][name]
            window, threshold = table["cwnd_segments"], table["ssthresh_segments"]
            samples = CwndSeries.of(table["time_s"], window, threshold)
        key = {"study": study.id, "trace": trace, "flow": name}
        summary = {cell.cell.metric: cell.value for cell in cells}
        yield PublishedFlow(key, cells[0].quantity, summary, samples)


@dataclass(frozen=True)
class OurFlow:
    """One flow of a run, its part of the scenario, and its age at the first sampled window."""

    engine: str
    replicate: int
    scenario: Mapping[str, Any]
    document: Mapping[str, Any]
    samples: CwndSeries
    duration_s: float
    first_age_s: float

    def window_at(self, age_s: float) -> float:
        """Return the interpolated window (segments) at an age of the flow."""
        ages = [0.0, *(self.first_age_s + self.samples.time_s)]
        windows = [self.document["initial_window_segments"], *self.samples.cwnd_segments]
        return float(np.interp(age_s, ages, windows))


@dataclass(frozen=True)
class TraceComparison:
    """A published flow and our runs of it at a point, with their windows on one time grid.

    Without the raw trace, `window` is None.
    """

    published: PublishedFlow
    point: str
    window: CwndSeries | None
    runs: list[tuple[OurFlow, CwndSeries]]

    @property
    def engines(self) -> list[str]:
        """Engines that ran the point."""
        return sorted({flow.engine for flow, _ in self.runs})

    @property
    def congestion_controls(self) -> list[str]:
        """Congestion controls of our flows, each once."""
        return list(dict.fromkeys(flow.document["congestion_control"] for flow, _ in self.runs))

    def _figure(self, metric: str, window: CwndSeries) -> float:
        if metric == DISTANCE:
            assert self.window is not None
            return self.window.distance(window)
        if metric == "slow_start_share":
            # Thresholds decide only if the published flow and all of ours report one.
            sides = [self.published.samples, *(flow.samples for flow, _ in self.runs)]
            by_threshold = all(side is not None and side.has_threshold for side in sides)
            return window.slow_start_share(by_threshold)
        return FIGURES[metric][2](window)

    def published_figures(self, others: Sequence[TraceComparison]) -> dict[str, float]:
        """Return the published figures; the distance is the mean one to like flows of the paper."""
        if self.window is not None:
            figures = {metric: self._figure(metric, self.window) for metric in FIGURES}
            distances = pd.Series(self._distances(others), dtype=float)
            return figures | {DISTANCE: float(distances.mean())}
        minutes = {"window_reductions": self.runs[0][0].duration_s / MINUTE_S}
        summary = self.published.summary
        given = {metric: name for metric, name in _SUMMARIES.items() if metric in summary}
        return {name: summary[metric] / minutes.get(metric, 1.0) for metric, name in given.items()}

    def _distances(self, others: Sequence[TraceComparison]) -> Iterator[float]:
        for other in others:
            if self._is_like(other) and other.published.samples:
                samples = [self.published.samples, other.published.samples]
                window, like = _on_one_grid(samples)
                yield window.distance(like)

    def _is_like(self, other: TraceComparison) -> bool:
        is_same = other.congestion_controls == self.congestion_controls
        return other is not self and other.point == self.point and is_same

    def reproduced(self, metric: str, engine: str) -> pd.Series[float]:
        """Return a figure of each replicate on an engine, averaged over our flows."""
        runs = [(flow, window) for flow, window in self.runs if flow.engine == engine]
        values = pd.Series([self._figure(metric, window) for _, window in runs], dtype=float)
        return values.groupby([flow.replicate for flow, _ in runs]).mean()


def _on_one_grid(several: Sequence[CwndSeries | None]) -> list[CwndSeries]:
    """Resample to the longest sampling interval, up to the end of the shortest."""
    known = [samples for samples in several if samples is not None]
    span_s = min(float(samples.time_s[-1]) for samples in known)
    interval_s = max(float(np.median(np.diff(samples.time_s))) for samples in known)
    return [samples.on_grid(interval_s, span_s) for samples in known]


def compare_traces(root: Path, data: Path, studies: Sequence[str]) -> str:
    """Write the tables of the studies' traces; return a line with the counts."""
    rows: list[dict[str, object]] = []
    first: list[dict[str, object]] = []
    windows = [pd.DataFrame(columns=list(TRACE_WINDOW_COLUMNS))]
    for name in studies:
        study = load_study(root, name)
        results = load_sampled(data, name, _SAMPLED)
        path = root / TRANSCRIBED.format(name)
        transcribed = read_frame(path) if path.is_file() else None
        comparisons = list(_compare_flows(results, _published_flows(root, study)))
        for comparison in comparisons:
            rows += _comparison_rows(comparison, comparisons)
            windows += _drawn_windows(comparison)
            if transcribed is not None:
                first += _sample_rows(comparison, transcribed)
    write_table(data / COMPARISON, rows, TRACE_COLUMNS)
    table = pd.DataFrame(rows, columns=list(TRACE_COLUMNS))
    write_table(data / SAMPLES, first, TRACE_SAMPLE_COLUMNS)
    write_table(data / NEARNESS, nearness(table), TRACE_NEARNESS_COLUMNS)
    write_frame(pd.concat(windows, ignore_index=True), data / WINDOWS)
    evidence = table.drop_duplicates(["study", "trace", "flow"])["evidence"]
    raw = int((evidence == RAW).sum())
    return f"{data / COMPARISON}: {len(evidence)} published flows, {raw} of them with raw traces"


def _compare_flows(
    results: SampledResults, flows: Iterable[PublishedFlow]
) -> Iterator[TraceComparison]:
    """Yield a comparison for each published flow and each of its points that was run."""
    for flow in flows:
        for point, simulated in _our_flows(results, flow).items():
            windows = _on_one_grid([flow.samples, *(run.samples for run in simulated)])
            published = None if flow.samples is None else windows.pop(0)
            runs = list(zip(simulated, windows, strict=True))
            yield TraceComparison(flow, point, published, runs)


def _our_flows(results: SampledResults, published: PublishedFlow) -> dict[str, list[OurFlow]]:
    wanted = published.quantity
    runs = results.runs(wanted.experiment, wanted.where)
    chosen = chosen_flows(results, runs, wanted.flows)
    chosen = chosen[chosen["kind"] == "tcp"].merge(runs[[*RUN, "point", "replicate"]], on=RUN)
    keys = [*RUN, "flow"]
    series = samples(results, chosen, keys, None)
    by_flow = {key: group for key, group in series.groupby(keys, sort=False)}
    by_point: dict[str, list[OurFlow]] = {}
    for row in chosen.sort_values(["point", "engine", "replicate", "flow"]).to_dict("records"):
        scenario = results.scenarios[row["scenario"]]
        document = next(flow for flow in scenario["flows"] if flow["id"] == row["flow"])
        group = by_flow[tuple(row[key] for key in keys)]
        segment = float(document["segment_bytes"])
        stop_s = min(float(document["stop_s"]), float(group["time_s"].max()))
        window, threshold = group["cwnd_bytes"] / segment, group["ssthresh_bytes"] / segment
        by_point.setdefault(row["point"], []).append(
            OurFlow(
                engine=row["engine"],
                replicate=int(row["replicate"]),
                scenario=scenario,
                document=document,
                samples=CwndSeries.of(group["time_s"], window, threshold, stop_s),
                duration_s=stop_s - float(document["start_s"]),
                first_age_s=_first_age(document, group.loc[group["cwnd_bytes"].notna(), "time_s"]),
            )
        )
    return by_point


def _first_age(flow: Mapping[str, Any], time_s: pd.Series[float]) -> float:
    """Return the age (s) of a flow at its first sample with a window; `time_s` has such samples."""
    if flow.get("connect_s") is None:
        # It sends its first data after the handshake, some time within the sampling interval.
        return float(time_s.diff().median()) / 2
    return float(time_s.min()) - float(flow["start_s"])


def _empty_rtt(flow: OurFlow) -> tuple[float, float]:
    """Return the shortest and longest round trip (s) of a small packet without queueing."""
    ends = flow.document["source"], flow.document["destination"]
    path = [link for link, _ in FlowPaths(Scenario.model_validate(flow.scenario)).links(*ends)]
    least = 2 * sum(link.delay_range_s[0] for link in path)
    return least, 2 * sum(link.delay_range_s[1] + link.jitter_s for link in path)


def _comparison_rows(
    comparison: TraceComparison, others: Sequence[TraceComparison]
) -> Iterator[dict[str, object]]:
    """Yield one row for each metric and engine."""
    experiment = comparison.published.quantity.experiment
    of_flow = {
        **comparison.published.key,
        "experiment": experiment,
        "point": comparison.point,
        "congestion_control": ", ".join(comparison.congestion_controls),
        "evidence": SUMMARY if comparison.window is None else RAW,
    }
    for metric, value in comparison.published_figures(others).items():
        unit = "segments" if metric == DISTANCE else FIGURES[metric][1]
        highest = 1.0 if metric == "slow_start_share" else math.inf
        for engine in comparison.engines:
            reproduced = estimate(comparison.reproduced(metric, engine), 0.0, highest)
            yield {
                **of_flow,
                "engine": engine,
                "metric": metric,
                "unit": unit,
                "published": value,
                "reproduced_mean": reproduced.mean,
                "reproduced_low": reproduced.low,
                "reproduced_high": reproduced.high,
                "n": reproduced.n,
                "relative_deviation": (reproduced.mean - value) / value if value else math.nan,
            }


def nearness(table: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield the share of flows to which each engine is nearest, for each study and metric.

    The nearest engine has the mean closest to the published value, among flows that every engine
    has; ties share the flow. A single engine has no row.
    """
    # The published distance is a yardstick: the nearest window has a distance of 0.
    aim = table["published"].where(table["metric"] != DISTANCE, 0.0)
    gap = (table["reproduced_mean"] - aim).astype(float).abs()
    for (study, metric), group in table.assign(gap=gap).groupby(["study", "metric"], sort=False):
        wide = group.pivot(index=["point", "trace", "flow"], columns="engine", values="gap")
        wide = wide.dropna()
        if wide.shape[1] < 2 or wide.empty:
            continue
        is_least = wide.le(wide.min(axis=1) + 1e-12, axis=0)
        shares = is_least.div(is_least.sum(axis=1), axis=0)
        for engine, share in shares.items():
            yield {
                "study": study,
                "metric": metric,
                "engine": engine,
                "nearest": float(share.sum()),
                "flows": len(wide),
                "share": float(share.mean()),
            }


def _drawn_windows(comparison: TraceComparison) -> Iterator[pd.DataFrame]:
    """Yield the published window and the first of each engine, thinned for drawing."""
    windows = {} if comparison.window is None else {PUBLISHED: comparison.window}
    key = comparison.published.key
    named = [run for run in comparison.runs if run[0].document["id"] == key["flow"]]
    for flow, window in named or comparison.runs:
        windows.setdefault(flow.engine, window)
    for source, window in windows.items():
        kept = kept_samples(window.time_s, window.cwnd_segments, DRAWN_SAMPLES // 4)
        columns = {"time_s": window.time_s[kept], "cwnd_segments": window.cwnd_segments[kept]}
        yield pd.DataFrame({**key, "source": source, **columns})


def _sample_rows(
    comparison: TraceComparison, transcribed: pd.DataFrame
) -> Iterator[dict[str, object]]:
    """Yield a row of `SAMPLES` for each engine: a published first sample, and ours.

    Our round trip is that of the empty path, our pacing rate follows the kernel's rule for the
    first window over it, and our window is interpolated at the age of the published sample. The
    round trip of the cookie of iperf3, which our flows do not send, is subtracted from that age.
    """
    key = comparison.published.key
    is_it = (transcribed["trace"] == key["trace"]) & (transcribed["flow"] == key["flow"])
    for sample in transcribed[is_it].to_dict("records"):
        was_empty = sample["minrtt_s"] < _EMPTY_PATH_S
        cookie_s = sample["cookie_rtt_s"]
        age_s = sample["first_busy_s"] - (0 if math.isnan(cookie_s) else cookie_s)
        published = {name: sample[name] for name in _FIRST_SAMPLE}
        for engine in comparison.engines:
            flows = [flow for flow, _ in comparison.runs if flow.engine == engine]
            empty = [_empty_rtt(flow) for flow in flows]
            low = min(least for least, _ in empty)
            high = max(most for _, most in empty)
            first = flows[0].document
            gain = _BBR_GAIN if first["congestion_control"] == "bbr" else _PACING_GAIN
            bits = gain * 8 * sample["mss_bytes"] * first["initial_window_segments"]
            yield {
                **key,
                "engine": engine,
                "n": len(flows),
                **published,
                "our_rtt_low_s": low if was_empty else math.nan,
                "our_rtt_high_s": high if was_empty else math.nan,
                "our_pacing_low_bps": bits / high if was_empty else math.nan,
                "our_pacing_high_bps": bits / low if was_empty else math.nan,
                "our_cwnd_segments": float(np.mean([flow.window_at(age_s) for flow in flows])),
            }
