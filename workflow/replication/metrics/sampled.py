"""Features: what is read off the series of runs, for each flow, link or set of flows.

*Sampled* metrics are reduced over a time window of the series: the window (a, b] holds the samples
with a < time_s <= b, a sample standing for the interval that ends at its time. *Features* of a flow
read the shape of its series (`metrics.feature`). *Queue* metrics are of each monitored link.
*Fairness* is Jain's index of a set of flows over time, reduced over the sampling times of a window:
of each flow's throughput in one sampling interval, or of what it has received since the run's start
whatever the window, where early unfairness is forgotten slowly, as the share of the past.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.metrics.feature import FlowSeries, feature
from replication.metrics.metric_model import METRICS, Metric
from replication.metrics.results import SUBJECT, Results, Window
from replication.metrics.statistic import jain_index

RUN = ["scenario", "engine"]
#: Share of a flow's samples with a congestion window within a segment of the largest allowed.
SHARE_AT_WINDOW = "share_at_window"
SINCE_START = "jain_since_start_"
#: Sampling times are sums of intervals: a rounding error must not move a sample.
_SLACK_S = 1e-9
_QUEUE = {"queue_mean_packets": "mean", "queue_peak_packets": "max", "queue_drops": "sum"}
_SERIES_KEYS = ("scenario", "engine", "flow", "link")


@dataclass(frozen=True, kw_only=True)
class SampledResults(Results):
    """Results with the series of every run, from which features are computed when needed."""

    #: Returns one row per scenario, engine, time and flow or monitored link.
    read_series: Callable[[], pd.DataFrame]

    @cached_property
    def series(self) -> pd.DataFrame:
        """The series; scenario, engine, flow and link are categories in order of name."""
        series = self.read_series()
        categories = {key: series[key].astype("category").cat for key in _SERIES_KEYS}
        return series.assign(
            **{key: c.reorder_categories(sorted(c.categories)) for key, c in categories.items()}
        )

    def series_of(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the series of the runs, once each, by scenario and engine, in the file's order."""
        pairs = sorted(set(runs[RUN].itertuples(index=False, name=None)))
        none = np.array([], dtype=np.intp)
        return self.series.take(np.concatenate([none, *(self._places.get(p, none) for p in pairs)]))

    @cached_property
    def _places(self) -> dict[tuple[str, str], npt.NDArray[np.intp]]:
        """Where the rows of each run are in the series."""
        places = self.series.groupby(RUN, observed=True, sort=False).indices
        return cast("dict[tuple[str, str], npt.NDArray[np.intp]]", places)

    def values(self, metric: str, window_s: Window, subjects: pd.DataFrame) -> pd.DataFrame:
        """Compute a metric; see `Results.values`."""
        found = _computed(self, metric, window_s, subjects)
        wanted = subjects[SUBJECT].drop_duplicates()
        joined = wanted.merge(found[[*SUBJECT, "value"]], on=SUBJECT, how="left")
        return joined.astype({"value": float}).sort_values(SUBJECT, ignore_index=True)


def _computed(
    results: SampledResults, name: str, window_s: Window, subjects: pd.DataFrame
) -> pd.DataFrame:
    """Return scenario, engine, subject, value of those that have samples."""
    if name == SHARE_AT_WINDOW:
        return _at_window(results, subjects)
    metric = METRICS[name]
    if metric.source == "queue":
        return _queue_values(results, name, subjects, window_s)
    if metric.source == "fairness":
        rows = [
            (*run, str(subject), _fairness(name, table, window_s))
            for subject, flows in subjects.groupby("subject", sort=False)
            for run, table in samples(results, flows, [*RUN, "flow"], None).groupby(RUN)
        ]
        return pd.DataFrame(rows, columns=[*SUBJECT, "value"]).astype({"value": float})
    flows = subjects.assign(flow=subjects["subject"])
    if metric.source == "feature":
        return _features(results, name, flows, window_s)
    return _sampled(results, metric, flows, window_s)


def samples(
    results: SampledResults, pairs: pd.DataFrame, keys: Sequence[str], window_s: Window
) -> pd.DataFrame:
    """Return the samples of the series whose `keys` are among those of `pairs`, in time order."""
    series = results.series_of(pairs)
    if window_s is not None:
        low, high = window_s
        after, until = series["time_s"] > low + _SLACK_S, series["time_s"] <= high + _SLACK_S
        series = series[after & until]
    if "flow" in keys:
        # Which flows are asked for may differ from run to run.
        wanted = pairs[list(keys)].drop_duplicates()
        for key in keys:
            wanted = wanted[wanted[key].isin(series[key].unique())]
        same = {key: series[key].dtype for key in keys}
        series = series.merge(wanted.astype(same), on=list(keys))
    # Categories stand in order, and sort as fast as numbers do.
    series = series.sort_values([*keys, "time_s"], ignore_index=True, kind="stable")
    return series.astype({key: object for key in ("scenario", "engine", "flow", "link")})


def _sampled(
    results: SampledResults, metric: Metric, flows: pd.DataFrame, window_s: Window
) -> pd.DataFrame:
    keys = [*RUN, "flow"]
    table = samples(results, flows, keys, window_s)
    # Runs without samples of sockets lack their columns.
    table["value"] = table[metric.column].astype(float) if metric.column in table else np.nan
    if metric.reduce == "weighted":
        table = table[table["value"].notna() & (table["throughput_bps"] > 0)]
        weight = table["throughput_bps"]
        table = table.assign(weight=weight, value=table["value"] * weight)
        sums = table.groupby(keys)[["value", "weight"]].sum()
        values = (sums["value"] / sums["weight"]).rename("value")
    else:
        grouped = table.groupby(keys)["value"]
        values = grouped.sum(min_count=1) if metric.reduce == "sum" else grouped.mean()
    return values.reset_index().rename(columns={"flow": "subject"})


def _features(
    results: SampledResults, name: str, flows: pd.DataFrame, window_s: Window
) -> pd.DataFrame:
    keys = [*RUN, "flow"]
    table = samples(results, flows, keys, window_s)
    table = table.merge(results.scenario_flows, on=["scenario", "flow"], how="left")
    names = ["time_s", "cwnd_bytes", "ssthresh_bytes", "rtt_s", "segment"]
    time_s, cwnd, ssthresh, rtt_s, segment = (table[n].to_numpy(dtype=float) for n in names)
    cwnd, ssthresh = cwnd / segment, ssthresh / segment
    rows = []
    for key, places in table.groupby(keys, sort=True).indices.items():
        values = time_s[places], cwnd[places], ssthresh[places], rtt_s[places]
        series = FlowSeries(*values, windowed=window_s is not None)
        rows.append((*cast("tuple[str, ...]", key), feature(name, series)))
    return pd.DataFrame(rows, columns=[*SUBJECT, "value"])


def _queue_values(
    results: SampledResults, name: str, links: pd.DataFrame, window_s: Window
) -> pd.DataFrame:
    table = samples(results, links, RUN, window_s)
    monitored = table[table["link"].isin(links["subject"].unique())]
    grouped = monitored.groupby([*RUN, "link"])[METRICS[name].column]
    return grouped.agg(_QUEUE[name]).rename("value").rename_axis([*SUBJECT]).reset_index()


def _at_window(results: SampledResults, flows: pd.DataFrame) -> pd.DataFrame:
    table = samples(results, flows.assign(flow=flows["subject"]), [*RUN, "flow"], None)
    table = table[table["cwnd_bytes"].notna()].merge(results.scenario_flows)
    # A congestion window counts whole segments, the largest window whole bytes.
    table["value"] = (table["cwnd_bytes"] >= table["most"] - table["segment"]).astype(float)
    found = table.groupby([*RUN, "flow"])["value"].mean().reset_index()
    return found.rename(columns={"flow": "subject"})


def _fairness(metric: str, flows: pd.DataFrame, window_s: Window) -> float:
    index = _index_over_time(flows, metric.startswith(SINCE_START))
    times = index.index.to_numpy(dtype=float)
    low, high = window_s or (0.0, float(times.max()))
    inside = index[(times > low + _SLACK_S) & (times <= high + _SLACK_S)].dropna()
    if inside.empty:
        return np.nan
    return float(inside.std(ddof=0) if metric.endswith("_variation") else inside.mean())


def _index_over_time(flows: pd.DataFrame, since_start: bool) -> pd.Series[float]:
    """Return the index at each sampling time, whose samples are of the interval that ends there."""
    rates = flows.pivot(index="time_s", columns="flow", values="throughput_bps").astype(float)
    if since_start:
        times = rates.index.to_numpy(dtype=float)
        # A flow that has not started has received nothing.
        rates = rates.fillna(0.0).mul(np.diff(times, prepend=0.0), axis=0).cumsum()
    return rates.apply(lambda row: jain_index(row.to_numpy()), axis=1).astype(float)


def kept_samples(time: npt.ArrayLike, values: npt.ArrayLike, bins: int) -> npt.NDArray[np.int64]:
    """Return the positions of the samples to keep, ascending, with time in so many equal bins.

    Each bin, a column of pixels, keeps its first, last, smallest and largest sample: the line that
    is drawn is the same, to the pixel (Jugel et al. 2014, "M4"). NaN are left out.
    """
    times, samples = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
    known = np.flatnonzero(np.isfinite(samples) & np.isfinite(times))
    if known.size <= 4 * bins:
        return known
    start, end = times[known[0]], times[known[-1]]
    width = (end - start) / bins or 1.0
    bin_of = np.minimum(((times[known] - start) / width).astype(int), bins - 1)
    edges = np.flatnonzero(np.diff(bin_of)) + 1
    kept = [
        members[np.array([0, -1, samples[members].argmin(), samples[members].argmax()])]
        for members in np.split(known, edges)
    ]
    return np.unique(np.concatenate(kept)).astype(np.int64)


def thin(frame: pd.DataFrame, value: str, by: list[str], limit: int) -> pd.DataFrame:
    """Thin series, which the columns `by` tell apart, to about `limit` samples in all."""
    known = frame[frame[value].notna()].sort_values([*by, "time_s"], kind="stable")
    if len(known) <= limit or known.empty:
        return known.reset_index(drop=True)
    groups = [group for _, group in known.groupby(by, sort=False, observed=True)]
    bins = max(1, limit // (4 * len(groups)))
    kept = [group.iloc[kept_samples(group["time_s"], group[value], bins)] for group in groups]
    return pd.concat(kept, ignore_index=True)
