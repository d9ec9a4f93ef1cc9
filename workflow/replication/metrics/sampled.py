"""Features: values read off the series of runs, for each flow, link or set of flows.

*Sampled* metrics and those of a *queue* are reduced over a time window. The window (a, b] has the
samples with a < time_s <= b; a sample describes the interval that ends at its time. *Features*
describe the shape of a flow's series (`metrics.feature`). *Fairness* is Jain's index of a set of
flows over time, reduced over the sampling times of a window. It is computed from each flow's
throughput in one sampling interval, or from everything received since the run's start (whatever
the window), where early unfairness is forgotten as slowly as its share of the time shrinks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.metrics.feature import FlowSeries, feature
from replication.metrics.metric_model import METRICS, Metric
from replication.metrics.results import SUBJECT, Results, Window
from replication.metrics.statistic import jain_index

RUN = ["scenario", "engine"]
#: Share of a flow's samples whose window is within a segment of the largest allowed.
SHARE_AT_WINDOW = "share_at_window"
#: A number that two flows share only if TCP did the same in all of their samples.
SERIES_DIGEST = "series_digest"
_DIGESTED = ["time_s", "cwnd_bytes", "ssthresh_bytes", "retransmissions"]
#: Sampling times are sums of intervals, and their rounding must not move a sample.
_SLACK_S = 1e-9
_SERIES_KEYS = ("scenario", "engine", "flow", "link")
_FLOW = [*RUN, "flow"]


@dataclass(frozen=True, kw_only=True)
class SampledResults(Results):
    """Results with the series of every run, from which features are computed when needed."""

    #: Returns one row per scenario, engine, time and flow or monitored link.
    read_series: Callable[[], pd.DataFrame]

    @cached_property
    def series(self) -> pd.DataFrame:
        """The series, with its keys as categories in the order of their names."""
        series = self.read_series()
        for key in _SERIES_KEYS:
            categories = series[key].astype("category").cat
            names = sorted(categories.categories)
            series = series.assign(**{key: categories.reorder_categories(names)})
        return series

    @cached_property
    def places(self) -> dict[tuple[str, str], npt.NDArray[np.intp]]:
        """The positions of each run's rows in the series."""
        places = self.series.groupby(RUN, observed=True, sort=False).indices
        return cast("dict[tuple[str, str], npt.NDArray[np.intp]]", places)

    def values(self, metric: str, window_s: Window, subjects: pd.DataFrame) -> pd.DataFrame:
        """Compute a metric; see `Results.values`."""
        values = _computed(self, metric, window_s, subjects)
        values = values.rename(columns={"flow": "subject", "link": "subject"})
        wanted = subjects[SUBJECT].drop_duplicates()
        joined = wanted.merge(values[[*SUBJECT, "value"]], on=SUBJECT, how="left")
        return joined.astype({"value": float}).sort_values(SUBJECT, ignore_index=True)


def _computed(
    results: SampledResults, name: str, window_s: Window, subjects: pd.DataFrame
) -> pd.DataFrame:
    """Return scenario, engine, subject and value of the subjects that have samples."""
    if name == SHARE_AT_WINDOW:
        return _share_at_window(results, subjects)
    if name == SERIES_DIGEST:
        return _series_digest(results, subjects, window_s)
    metric = METRICS[name]
    if metric.source == "queue":
        table = samples(results, subjects, RUN, window_s)
        return _reduced(table[table["link"].isin(subjects["subject"].unique())], "link", metric)
    if metric.source == "fairness":
        rows = []
        for subject, flows in subjects.groupby("subject", sort=False):
            for run, table in samples(results, flows, _FLOW, None).groupby(RUN):
                rows.append((*run, str(subject), _fairness(name, table, window_s)))
        return pd.DataFrame(rows, columns=[*SUBJECT, "value"]).astype({"value": float})
    table = samples(results, subjects.assign(flow=subjects["subject"]), _FLOW, window_s)
    if metric.source == "feature":
        return _features(results, name, table, window_s is not None)
    return _reduced(table, "flow", metric)


def samples(
    results: SampledResults, pairs: pd.DataFrame, keys: Sequence[str], window_s: Window
) -> pd.DataFrame:
    """Return the samples whose `keys` are among those of `pairs`, in time order."""
    runs = sorted(set(pairs[RUN].itertuples(index=False, name=None)))
    none = np.array([], dtype=np.intp)
    places = np.concatenate([none, *(results.places.get(run, none) for run in runs)])
    series = results.series.take(places)
    if window_s is not None:
        low, high = window_s
        after, until = series["time_s"] > low + _SLACK_S, series["time_s"] <= high + _SLACK_S
        series = series[after & until]
    if "flow" in keys:
        # The chosen flows may differ from run to run.
        wanted = pairs[list(keys)].drop_duplicates()
        for key in keys:
            wanted = wanted[wanted[key].isin(series[key].unique())]
        same = {key: series[key].dtype for key in keys}
        series = series.merge(wanted.astype(same), on=list(keys))
    # Ordered categories sort as fast as numbers.
    series = series.sort_values([*keys, "time_s"], ignore_index=True, kind="stable")
    return series.astype(dict.fromkeys(_SERIES_KEYS, object))


def _reduced(table: pd.DataFrame, subject: str, metric: Metric) -> pd.DataFrame:
    """Reduce a metric's column over the samples of each flow or link."""
    # Runs without samples of sockets lack their columns.
    value = table[metric.column].astype(float) if metric.column in table else np.nan
    table = table.assign(value=value)
    if metric.reduce == "weighted":
        table = table[table["value"].notna() & (table["throughput_bps"] > 0)]
        weight = table["throughput_bps"]
        table = table.assign(weight=weight, value=table["value"] * weight)
        sums = table.groupby([*RUN, subject])[["value", "weight"]].sum()
        values = (sums["value"] / sums["weight"]).rename("value")
    else:
        grouped = table.groupby([*RUN, subject])["value"]
        is_sum = metric.reduce == "sum"
        values = grouped.sum(min_count=1) if is_sum else grouped.agg(metric.reduce)
    return values.reset_index()


def _features(
    results: SampledResults, name: str, table: pd.DataFrame, windowed: bool
) -> pd.DataFrame:
    table = table.merge(results.scenario_flows, on=["scenario", "flow"], how="left")
    names = ["time_s", "cwnd_bytes", "ssthresh_bytes", "rtt_s", "segment"]
    time_s, cwnd, ssthresh, rtt_s, segment = (table[n].to_numpy(dtype=float) for n in names)
    cwnd, ssthresh = cwnd / segment, ssthresh / segment
    rows = []
    for key, places in table.groupby(_FLOW, sort=True).indices.items():
        values = time_s[places], cwnd[places], ssthresh[places], rtt_s[places]
        series = FlowSeries(*values, windowed=windowed)
        rows.append((*cast("tuple[str, ...]", key), feature(name, series)))
    return pd.DataFrame(rows, columns=[*SUBJECT, "value"])


def _share_at_window(results: SampledResults, flows: pd.DataFrame) -> pd.DataFrame:
    table = samples(results, flows.assign(flow=flows["subject"]), _FLOW, None)
    table = table[table["cwnd_bytes"].notna()].merge(results.scenario_flows)
    # A congestion window counts whole segments, the largest window whole bytes.
    table["value"] = (table["cwnd_bytes"] >= table["most"] - table["segment"]).astype(float)
    return table.groupby(_FLOW)["value"].mean().reset_index()


def _series_digest(results: SampledResults, flows: pd.DataFrame, window_s: Window) -> pd.DataFrame:
    table = samples(results, flows.assign(flow=flows["subject"]), _FLOW, window_s)
    numbers = table[_DIGESTED].astype(float).fillna(-1.0).to_numpy()
    rows = []
    for key, places in table.groupby(_FLOW, sort=True).indices.items():
        digest = blake2b(numbers[places].tobytes(), digest_size=6).digest()
        # A float has every whole number of 48 bits.
        rows.append((*cast("tuple[str, ...]", key), float(int.from_bytes(digest))))
    return pd.DataFrame(rows, columns=[*SUBJECT, "value"]).astype({"value": float})


def _fairness(metric: str, flows: pd.DataFrame, window_s: Window) -> float:
    rates = flows.pivot(index="time_s", columns="flow", values="throughput_bps").astype(float)
    times = rates.index.to_numpy(dtype=float)
    if metric.startswith("jain_since_start_"):
        # A flow that has not started has received nothing.
        rates = rates.fillna(0.0).mul(np.diff(times, prepend=0.0), axis=0).cumsum()
    index = rates.apply(lambda row: jain_index(row.to_numpy()), axis=1).astype(float)
    low, high = window_s or (0.0, float(times.max()))
    inside = index[(times > low + _SLACK_S) & (times <= high + _SLACK_S)].dropna()
    if inside.empty:
        return np.nan
    return float(inside.std(ddof=0) if metric.endswith("_variation") else inside.mean())


def kept_samples(time: npt.ArrayLike, values: npt.ArrayLike, bins: int) -> npt.NDArray[np.int64]:
    """Return the positions, ascending, of the samples to keep in so many equal bins of time.

    Each bin, a column of pixels, keeps its first, last, smallest and largest sample, which draws
    the same line to the pixel (Jugel et al. 2014, "M4"). NaN are left out.
    """
    times, samples = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
    known = np.flatnonzero(np.isfinite(samples) & np.isfinite(times))
    if known.size <= 4 * bins:
        return known
    start, end = times[known[0]], times[known[-1]]
    width = (end - start) / bins or 1.0
    bin_of = np.minimum(((times[known] - start) / width).astype(int), bins - 1)
    edges = np.flatnonzero(np.diff(bin_of)) + 1
    kept = []
    for members in np.split(known, edges):
        smallest = samples[members].argmin()
        largest = samples[members].argmax()
        kept.append(members[np.array([0, -1, smallest, largest])])
    return np.unique(np.concatenate(kept)).astype(np.int64)
