"""Metrics: every quantity that a claim or a published cell may name, and how it is computed.

Three kinds. *Flow totals* are columns of the flows table, over the flow's active time. *Sampled*
metrics are reduced over a time window of the series: the window (a, b] holds the samples with
a < time_s <= b, a sample standing for the interval that ends at its time. *Features* read the
shape of the series (`replication.feature`). A metric that is both a flow total and sampled is a
flow total unless `window_s` is given.

Values are taken per flow, then combined over the chosen flows: sum, mean, maximum, minimum, Jain's
index, or `pooled`, the ratio of sums over all packets of all flows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from replication.claim_model import Flows, Quantity
from replication.errors import InputError
from replication.feature import WINDOW_FEATURES, FlowSeries, feature
from replication.results import Results
from replication.statistic import jain_index
from replication.study import Study

Source = Literal["flow", "sampled", "feature", "queue", "fairness"]
RUN = ["scenario", "engine"]


class MetricError(InputError):
    """A metric is unknown, or asked for in a way that has no meaning."""


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    unit
        "1" for numbers without a unit.
    description
        Its definition, in one line.
    source
        Where it comes from; see the module's docstring.
    column
        Column of the series that a sampled metric reduces; empty where there is none.
    reduce
        How the samples of a window combine.
    pooled
        Numerator and denominator, or weighted value and weight, of the `pooled` aggregate.
    """

    unit: str
    description: str
    source: Source
    column: str = ""
    reduce: Literal["mean", "sum", "weighted"] = "mean"
    pooled: tuple[str, str] | None = None


METRICS: dict[str, Metric] = {
    "throughput_bps": Metric(
        "bit/s",
        "IP bytes at the receiver over the flow's active time; in a window, mean of the samples",
        "flow",
        "throughput_bps",
    ),
    "goodput_bps": Metric("bit/s", "in-order application bytes over the active time", "flow"),
    "delay_mean_s": Metric(
        "s",
        "mean one-way delay of received data packets, queueing included; in a window, weighted "
        "by the bytes received per sample",
        "flow",
        "delay_s",
        "weighted",
        ("delay_mean_s", "packets_received"),
    ),
    "delay_p95_s": Metric("s", "95th percentile of the one-way delay of data packets", "flow"),
    "rtt_mean_s": Metric(
        "s", "mean round-trip time sampled by the sender", "flow", "rtt_s", "mean"
    ),
    "packets_sent": Metric("packets", "data packets sent, retransmissions included", "flow"),
    "packets_received": Metric("packets", "data packets received, duplicates included", "flow"),
    "packets_dropped": Metric("packets", "data packets dropped", "flow", "drops", "sum"),
    "packets_in_flight": Metric("packets", "data packets still under way at the end", "flow"),
    "retransmissions": Metric(
        "packets", "data packets sent again", "flow", "retransmissions", "sum"
    ),
    "timeouts": Metric("1", "retransmission timeouts", "flow"),
    "loss_rate": Metric(
        "1", "dropped over sent", "flow", pooled=("packets_dropped", "packets_sent")
    ),
    "delivery_ratio": Metric(
        "1", "received over sent", "flow", pooled=("packets_received", "packets_sent")
    ),
    "delay_s": Metric(
        "s", "sampled one-way delay, weighted by bytes received", "sampled", "delay_s", "weighted"
    ),
    "rtt_s": Metric("s", "mean of the sampled round-trip time", "sampled", "rtt_s"),
    "cwnd_bytes": Metric("bytes", "mean of the sampled congestion window", "sampled", "cwnd_bytes"),
    "drops": Metric("packets", "packets dropped in the window", "sampled", "drops", "sum"),
    "cwnd_mean_segments": Metric(
        "segments", "time-weighted mean congestion window after start-up", "feature"
    ),
    "cwnd_peak_segments": Metric(
        "segments", "largest congestion window, slow-start overshoot included", "feature"
    ),
    "cwnd_minimum_segments": Metric(
        "segments", "smallest congestion window after start-up", "feature"
    ),
    "cwnd_variation": Metric(
        "1", "coefficient of variation of the congestion window after start-up", "feature"
    ),
    "window_reductions": Metric(
        "1", "falls of the congestion window by at least 20 % and two segments", "feature"
    ),
    "start_up_duration_s": Metric(
        "s", "time from the first sample to the end of start-up", "feature"
    ),
    "slow_start_growth": Metric(
        "1",
        "factor by which the window grows per RTT in the initial slow start: 2 to the Theil-Sen "
        "slope of log2(window) over elapsed RTTs",
        "feature",
    ),
    "slow_start_reentries": Metric(
        "1", "falls to at most two segments below the threshold after start-up", "feature"
    ),
    "sawtooth_count": Metric("1", "rise-and-fall cycles of the window after start-up", "feature"),
    "sawtooth_depth": Metric(
        "1", "window after over before a reduction, mean over reductions after start-up", "feature"
    ),
    "window_growth_rate": Metric(
        "segments/s", "growth of the window while it does not fall, after start-up", "feature"
    ),
    "early_growth": Metric(
        "1",
        "share of a sawtooth's rise done in the first half of its time: 0.5 linear, above concave",
        "feature",
    ),
    "throughput_variation": Metric(
        "1", "coefficient of variation of the throughput per sampling interval", "feature"
    ),
    "rtt_peak_s": Metric("s", "largest sampled round-trip time", "feature"),
    "rtt_minimum_s": Metric("s", "smallest sampled round-trip time", "feature"),
    "rtt_variation": Metric(
        "1", "coefficient of variation of the round-trip time after start-up", "feature"
    ),
    "queue_mean_packets": Metric(
        "packets", "mean length of the monitored queues", "queue", "queue_packets"
    ),
    "queue_peak_packets": Metric(
        "packets", "largest sampled length of the monitored queues", "queue", "queue_packets"
    ),
    "queue_drops": Metric("packets", "packets dropped at the monitored queues", "queue", "drops"),
    "jain_mean": Metric(
        "1", "Jain's index of the flows' throughput per sampling interval, mean", "fairness"
    ),
    "jain_minimum": Metric(
        "1", "Jain's index of the flows' throughput per sampling interval, minimum", "fairness"
    ),
    "jain_variation": Metric(
        "1", "standard deviation of Jain's index per sampling interval", "fairness"
    ),
}

#: Metrics that count events: whole numbers, larger the longer a run lasts.
COUNTS = {
    "packets_sent",
    "packets_received",
    "packets_dropped",
    "packets_in_flight",
    "retransmissions",
    "timeouts",
    "drops",
    "queue_drops",
    "window_reductions",
    "sawtooth_count",
    "slow_start_reentries",
}

_QUEUE: dict[str, str] = {
    "queue_mean_packets": "mean",
    "queue_peak_packets": "max",
    "queue_drops": "sum",
}


def check_metric(name: str, aggregate: str = "mean", window: bool = False) -> Metric:
    """Return the metric called `name`.

    Parameters
    ----------
    name
        Its key in `METRICS`.
    aggregate
        How flows are to be combined.
    window
        Whether it is wanted over a time window.

    Raises
    ------
    MetricError
        There is no such metric, or it has no such aggregate or window.
    """
    if name not in METRICS:
        raise MetricError(f"unknown metric {name!r}; known metrics: {', '.join(METRICS)}")
    metric = METRICS[name]
    if window and metric.source == "flow" and not metric.column:
        sampled = [n for n, m in METRICS.items() if m.source != "flow" or m.column]
        raise MetricError(
            f"metric {name!r} is a total of the whole run and has no window_s; "
            f"metrics with a window: {', '.join(sampled)}"
        )
    if aggregate == "pooled" and (metric.pooled is None or window):
        pooled = [n for n, m in METRICS.items() if m.pooled]
        raise MetricError(
            f"metric {name!r} cannot be pooled{' over a window' if window else ''}; "
            f"pooled has a meaning for whole runs of {', '.join(pooled)}"
        )
    if aggregate == "jain" and metric.source in ("queue", "fairness"):
        raise MetricError(f"metric {name!r} is not a value per flow: no Jain's index of it")
    return metric


def validate_study_metrics(study: Study) -> None:
    """Check that every metric named in claims and tables exists and can be had as asked.

    Raises
    ------
    MetricError
        Names the claim or table, the metric, and the known ones.
    """
    for claim in study.claims:
        for wanted in claim.quantities():
            _checked(f"{study.id}: claim {claim.id}", wanted)
    for table in study.tables:
        for column, cell in [("(every column)", table.cell), *(table.columns or {}).items()]:
            if cell is not None:
                _checked(f"{study.id}: table {table.id}, column {column}", cell)


def _checked(place: str, wanted: object) -> None:
    try:
        check_metric(
            getattr(wanted, "metric", ""),
            getattr(wanted, "aggregate", "mean"),
            getattr(wanted, "window_s", None) is not None,
        )
    except MetricError as error:
        raise MetricError(f"{place}: {error}") from None


def quantity(results: Results, wanted: Quantity) -> pd.DataFrame:
    """Compute a quantity for every run that has results.

    Parameters
    ----------
    results
        Results of one study.
    wanted
        Metric, flows, aggregate, factor levels and window.

    Returns
    -------
    pandas.DataFrame
        engine, replicate, one column per factor (level key), value. A value is NaN where the
        metric is undefined for the run, such as the delay of a flow that received nothing.

    Raises
    ------
    MetricError
        Unknown metric, aggregate without meaning, or flows that no scenario has.
    """
    key = wanted.model_dump_json()
    if key not in results.memo:
        results.memo[key] = _quantity(results, wanted)
    return results.memo[key].copy()


def _quantity(results: Results, wanted: Quantity) -> pd.DataFrame:
    metric = check_metric(wanted.metric, wanted.aggregate, wanted.window_s is not None)
    runs = results.runs(wanted.experiment, wanted.where)
    factors = [str(c) for c in runs if c not in ("scenario", "supported", "reason", "point")]
    flows = chosen_flows(results, runs, wanted.flows)
    values = _values(results, wanted, metric, flows)
    joined = runs[runs["supported"]].merge(values, on=RUN, how="inner")
    if wanted.window_s is not None:
        # Half a window is another quantity: a run that ends before it has none.
        ends = joined["scenario"].map(lambda s: float(results.scenarios[s]["duration_s"]))
        joined.loc[ends < wanted.window_s[1] - 1e-9, "value"] = np.nan
    return joined[[*factors, "value"]].sort_values(factors, ignore_index=True)


def chosen_flows(results: Results, runs: pd.DataFrame, chosen: Flows) -> pd.DataFrame:
    """Return the flows table's rows of the supported `runs` and the flows `chosen`."""
    pairs = runs.loc[runs["supported"], RUN].drop_duplicates()
    flows = results.flows.merge(pairs, on=RUN)
    if chosen == "all" or flows.empty:
        return flows
    if isinstance(chosen, str):
        return flows[flows["kind"] == chosen]
    unknown = sorted(set(chosen) - set(flows["flow"]))
    if unknown:
        known = ", ".join(sorted(flows["flow"].unique()))
        raise MetricError(f"no flow {unknown[0]!r} in {results.study_id}; flows: {known}")
    return flows[flows["flow"].isin(chosen)]


def _values(
    results: Results, wanted: Quantity, metric: Metric, flows: pd.DataFrame
) -> pd.DataFrame:
    """Return scenario, engine, value."""
    window = wanted.window_s
    if metric.source == "queue":
        return _queue_values(results, wanted, metric, flows)
    if metric.source == "fairness":
        return _fairness_values(results, wanted, flows)
    if metric.source == "feature":
        per_flow = _features(results, wanted.metric, flows, window)
    elif metric.source == "sampled" or window is not None:
        per_flow = _sampled(results, metric, flows, window)
    elif wanted.aggregate == "pooled":
        return _pooled(metric, flows)
    else:
        per_flow = flows[[*RUN, "flow"]].assign(value=flows[wanted.metric].astype(float))
    return aggregate(per_flow, wanted.aggregate)


def aggregate(per_flow: pd.DataFrame, how: str) -> pd.DataFrame:
    """Combine the values of the flows of each run; NaN values are left out.

    Parameters
    ----------
    per_flow
        scenario, engine, value.
    how
        sum, mean, maximum, minimum or jain.
    """
    grouped = per_flow.groupby(RUN, observed=True)["value"]
    if how == "jain":
        combined = grouped.agg(lambda values: jain_index(values.to_numpy()))
    elif how == "sum":
        combined = grouped.sum(min_count=1)
    else:
        combined = grouped.agg({"mean": "mean", "maximum": "max", "minimum": "min"}[how])
    return combined.astype(float).reset_index()


def _pooled(metric: Metric, flows: pd.DataFrame) -> pd.DataFrame:
    assert metric.pooled is not None  # check_metric refused the others
    top, bottom = metric.pooled
    table = flows[[*RUN]].assign(bottom=flows[bottom].astype(float))
    top_values = flows[top].astype(float)
    table["top"] = top_values if top.startswith("packets") else top_values * table["bottom"]
    # A flow without packets has no mean delay, and no weight either: NaN adds nothing.
    sums = table.groupby(RUN, observed=True)[["top", "bottom"]].sum()
    return (sums["top"] / sums["bottom"]).rename("value").reset_index()


def samples(
    results: Results,
    pairs: pd.DataFrame,
    keys: Sequence[str],
    window_s: tuple[float, float] | None,
) -> pd.DataFrame:
    """Return the samples of the series whose `keys` are among those of `pairs`, in time order."""
    series = results.series
    for key in keys:
        series = series[series[key].isin(pairs[key].unique())]
    if window_s is not None:
        low, high = window_s
        # Sampling times are sums of intervals: a rounding error must not move a sample out.
        slack = 1e-9
        series = series[(series["time_s"] > low + slack) & (series["time_s"] <= high + slack)]
    series = series.astype({key: object for key in ("scenario", "engine", "flow", "link")})
    series = series.merge(pairs[list(keys)].drop_duplicates(), on=list(keys))
    return series.sort_values([*keys, "time_s"], ignore_index=True, kind="stable")


def _sampled(
    results: Results, metric: Metric, flows: pd.DataFrame, window_s: tuple[float, float] | None
) -> pd.DataFrame:
    keys = [*RUN, "flow"]
    table = samples(results, flows, keys, window_s)
    table["value"] = table[metric.column].astype(float)
    if metric.reduce == "weighted":
        table = table[table["value"].notna() & (table["throughput_bps"] > 0)]
        table = table.assign(
            weight=table["throughput_bps"], value=table["value"] * table["throughput_bps"]
        )
        sums = table.groupby(keys)[["value", "weight"]].sum()
        values = (sums["value"] / sums["weight"]).rename("value")
    else:
        grouped = table.groupby(keys)["value"]
        values = grouped.sum(min_count=1) if metric.reduce == "sum" else grouped.mean()
    return values.reset_index()


def _features(
    results: Results, name: str, flows: pd.DataFrame, window_s: tuple[float, float] | None
) -> pd.DataFrame:
    keys = [*RUN, "flow"]
    if name in WINDOW_FEATURES:
        flows = flows[flows["kind"] == "tcp"]
    table = samples(results, flows, keys, window_s)
    table = table.merge(results.segment_bytes, on=["scenario", "flow"], how="left")
    rows = []
    for key, group in table.groupby(keys, sort=True):
        segment = group["segment_bytes"].to_numpy(dtype=float)
        series = FlowSeries(
            time_s=group["time_s"].to_numpy(dtype=float),
            cwnd_segments=group["cwnd_bytes"].to_numpy(dtype=float) / segment,
            ssthresh_segments=group["ssthresh_bytes"].to_numpy(dtype=float) / segment,
            rtt_s=group["rtt_s"].to_numpy(dtype=float),
            throughput_bps=group["throughput_bps"].to_numpy(dtype=float),
            windowed=window_s is not None,
        )
        rows.append((*key, feature(name, series)))
    return pd.DataFrame(rows, columns=[*keys, "value"]).astype({"value": float})


def _queue_values(
    results: Results, wanted: Quantity, metric: Metric, flows: pd.DataFrame
) -> pd.DataFrame:
    table = samples(results, flows, RUN, wanted.window_s)
    table = table[table["link"].notna() & (table["link"] != "")]
    grouped = table.groupby([*RUN, "link"])[metric.column]
    return aggregate(
        grouped.agg(_QUEUE[wanted.metric]).rename("value").reset_index(), wanted.aggregate
    )


def _fairness_values(results: Results, wanted: Quantity, flows: pd.DataFrame) -> pd.DataFrame:
    table = samples(results, flows, [*RUN, "flow"], wanted.window_s)
    table["value"] = table["throughput_bps"].astype(float)
    indices = table.groupby([*RUN, "time_s"])["value"].agg(lambda v: jain_index(v.to_numpy()))
    reducers: dict[str, Callable[[pd.Series], float]] = {
        "jain_mean": lambda v: float(v.mean()),
        "jain_minimum": lambda v: float(v.min()),
        "jain_variation": lambda v: float(np.std(v.dropna())) if v.notna().any() else np.nan,
    }
    return indices.groupby(RUN).agg(reducers[wanted.metric]).rename("value").reset_index()
