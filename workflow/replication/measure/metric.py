"""How the metrics of `measure.metric_model` are computed from results.

Four kinds. *Flow totals* are columns of the flows table, over the flow's active time. *Sampled*
metrics are reduced over a time window of the series: the window (a, b] holds the samples with
a < time_s <= b, a sample standing for the interval that ends at its time. *Features* read the
shape of the series (`measure.feature`). Metrics of *links* are taken of each monitored link and
combined over the links (`measure.link_delay`). A metric that is both a flow total and sampled is a
flow total unless `window_s` is given.

Values are taken per flow, then combined over the chosen flows: sum, mean, maximum, minimum, Jain's
index, or `pooled`, the ratio of sums over all packets of all flows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import pandas as pd

from replication.measure.fairness import fairness_values
from replication.measure.feature import WINDOW_FEATURES, FlowSeries, feature
from replication.measure.link_delay import link_delays
from replication.measure.metric_model import METRICS, Metric, MetricError, check_metric
from replication.measure.results import Results
from replication.measure.statistic import estimate, jain_index
from replication.study.claim_model import Flows, Links, Quantity, StartOrder

RUN = ["scenario", "engine"]
#: Given for each flow at every point, whatever a study asks for.
HEADLINE_METRICS = (
    "throughput_bps",
    "goodput_bps",
    "delay_mean_s",
    "loss_rate",
    "delivery_ratio",
)

_QUEUE: dict[str, str] = {
    "queue_mean_packets": "mean",
    "queue_peak_packets": "max",
    "queue_drops": "sum",
}


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
        Unknown metric, aggregate without meaning, or flows or links that no scenario has.
    """
    key = wanted.model_dump_json()
    if key not in results.memo:
        results.memo[key] = _quantity(results, wanted)
    return results.memo[key].copy()


def _quantity(results: Results, wanted: Quantity) -> pd.DataFrame:
    windowed = wanted.window_s is not None
    metric = check_metric(wanted.metric, wanted.aggregate, windowed, wanted.links)
    runs = results.runs(wanted.experiment, wanted.where)
    factors = [str(c) for c in runs if c not in ("scenario", "supported", "reason", "point")]
    flows = chosen_flows(results, runs, wanted.flows)
    values = _values(results, wanted, metric, flows)
    joined = runs[runs["supported"]].merge(values, on=RUN, how="inner")
    if wanted.window_s is not None:
        # A run that ends within the window has no value: half a window is another quantity.
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
    if isinstance(chosen, StartOrder):
        places = results.start_order
        named = places.loc[places["place"] == chosen.start_order, ["scenario", "flow"]]
        return flows.merge(named, on=["scenario", "flow"])
    unknown = sorted(set(chosen) - set(flows["flow"]))
    if unknown:
        known = ", ".join(sorted(flows["flow"].unique()))
        raise MetricError(f"no flow {unknown[0]!r} in {results.study_id}; flows: {known}")
    return flows[flows["flow"].isin(chosen)]


def chosen_links(results: Results, series: pd.DataFrame, chosen: Links | None) -> pd.DataFrame:
    """Return the series' samples of the monitored links that are `chosen`; of all without."""
    monitored = series[series["link"].notna() & (series["link"] != "")]
    if chosen is None or series.empty:
        return monitored
    unknown = sorted(set(chosen) - set(monitored["link"]))
    if unknown:
        known = ", ".join(sorted(monitored["link"].unique()))
        raise MetricError(
            f"no monitored link {unknown[0]!r} in {results.study_id}; monitored: {known or 'none'}"
        )
    return monitored[monitored["link"].isin(chosen)]


def _values(
    results: Results, wanted: Quantity, metric: Metric, flows: pd.DataFrame
) -> pd.DataFrame:
    """Return scenario, engine, value."""
    window = wanted.window_s
    if metric.source == "queue":
        return _queue_values(results, wanted, metric, flows)
    if metric.source == "fairness":
        table = samples(results, flows, [*RUN, "flow"], None)
        return fairness_values(wanted.metric, table, RUN, window)
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
    series = results.series_of(pairs[RUN].drop_duplicates())
    if window_s is not None:
        low, high = window_s
        # Sampling times are sums of intervals: a rounding error must not move a sample out.
        slack = 1e-9
        series = series[(series["time_s"] > low + slack) & (series["time_s"] <= high + slack)]
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
    segment = table["segment_bytes"].to_numpy(dtype=float)
    columns = {
        "time_s": table["time_s"].to_numpy(dtype=float),
        "cwnd_segments": table["cwnd_bytes"].to_numpy(dtype=float) / segment,
        "ssthresh_segments": table["ssthresh_bytes"].to_numpy(dtype=float) / segment,
        "rtt_s": table["rtt_s"].to_numpy(dtype=float),
        "throughput_bps": table["throughput_bps"].to_numpy(dtype=float),
    }
    rows = []
    for key, places in table.groupby(keys, sort=True).indices.items():
        one = {column: values[places] for column, values in columns.items()}
        series = FlowSeries(**one, windowed=window_s is not None)
        rows.append((*cast("tuple[str, ...]", key), feature(name, series)))
    return pd.DataFrame(rows, columns=[*keys, "value"]).astype({"value": float})


def _queue_values(
    results: Results, wanted: Quantity, metric: Metric, flows: pd.DataFrame
) -> pd.DataFrame:
    table = samples(results, flows, RUN, wanted.window_s)
    links = chosen_links(results, table, wanted.links)
    if wanted.metric in _QUEUE:
        grouped = links.groupby([*RUN, "link"])[metric.column]
        per_link = grouped.agg(_QUEUE[wanted.metric]).rename("value").reset_index()
    else:
        per_link = link_delays(results.scenarios, links, table)
    return aggregate(per_link, wanted.aggregate)


def headline_quantities(results: Results) -> Iterator[dict[str, object]]:
    """Yield mean and interval of each headline metric for every point, engine and flow."""
    design = results.design[results.design["supported"]]
    runs = design.assign(levels=[json.dumps(levels) for levels in design["levels"]])
    table = runs.merge(results.flows, on=["scenario", "engine"])
    keys = ["experiment", "point", "levels", "engine", "flow", "kind"]
    for key, group in table.groupby(keys, sort=False):
        for metric in HEADLINE_METRICS:
            found = estimate(group[metric].to_numpy(dtype=float))
            yield {
                "study": results.study_id,
                **dict(zip(keys, key, strict=True)),
                "metric": metric,
                "unit": METRICS[metric].unit,
                "mean": found.mean,
                "low": found.low,
                "high": found.high,
                "n": found.n,
            }
