"""Quantities: a metric of `metrics.metric_model` over chosen flows and points, a value a run.

*Flow totals* are columns of the flows table, over the flow's active time. What is read off the
series was computed when the results were collected (`metrics.sampled`). A metric that is both is a
flow total unless `window_s` is given.

Values are taken per flow, or per monitored link, then combined over the chosen ones: sum, mean,
maximum, minimum, Jain's index, or `pooled`, the ratio of sums over all packets of all flows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from replication.metrics.feature import WINDOW_FEATURES
from replication.metrics.metric_model import Metric, MetricError, check_metric, is_total
from replication.metrics.results import SUBJECT, Results
from replication.metrics.sampled import RUN
from replication.metrics.statistic import jain_index
from replication.study.claim_model import Flows, Links, Quantity, StartOrder
from replication.study.storage.table import COMPLETION


def quantity(results: Results, wanted: Quantity) -> pd.DataFrame:
    """Return engine, replicate, a column per factor (level key) and value of runs with results.

    The value is NaN where the metric is undefined for the run, such as the delay of a flow that
    received nothing. MetricError: no such metric, aggregate of it, flow or link.
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
        facts = results.scenario_flows
        named = facts.loc[facts["place"] == chosen.start_order, ["scenario", "flow"]]
        return flows.merge(named, on=["scenario", "flow"])
    unknown = sorted(set(chosen) - set(flows["flow"]))
    if unknown:
        known = ", ".join(sorted(flows["flow"].unique()))
        raise MetricError(f"no flow {unknown[0]!r} in {results.study_id}; flows: {known}")
    return flows[flows["flow"].isin(chosen)]


def subjects(
    results: Results, metric: Metric, flows: pd.DataFrame, wanted: Quantity
) -> pd.DataFrame:
    """Return what a feature is taken of in the runs of `flows`; see `Results.values`."""
    if metric.source == "queue":
        return monitored_links(results, flows, wanted.links)
    if metric.source == "fairness":
        return flows[[*RUN, "flow"]].assign(subject=_set_name(wanted.flows))
    if wanted.metric in WINDOW_FEATURES:
        flows = flows[flows["kind"] == "tcp"]
    return flows[[*RUN, "flow"]].rename(columns={"flow": "subject"})


def _set_name(flows: Flows) -> str:
    if isinstance(flows, StartOrder):
        return f"start_order {flows.start_order}"
    return flows if isinstance(flows, str) else "+".join(sorted(flows))


def monitored_links(
    results: Results, flows: pd.DataFrame, chosen: Links | None = None
) -> pd.DataFrame:
    """Return scenario, engine, subject: the monitored links of the runs of `flows`, or `chosen`."""
    pairs = flows[RUN].drop_duplicates()
    rows = [
        (scenario, engine, f"{monitor['link']}:{monitor['direction']}")
        for scenario, engine in zip(pairs["scenario"], pairs["engine"], strict=True)
        for monitor in results.scenarios[scenario].get("monitors", [])
    ]
    links = pd.DataFrame(rows, columns=SUBJECT, dtype=object)
    if chosen is None or pairs.empty:
        return links
    unknown = sorted(set(chosen) - set(links["subject"]))
    if unknown:
        known = ", ".join(sorted(links["subject"].unique()))
        raise MetricError(
            f"no monitored link {unknown[0]!r} in {results.study_id}; monitored: {known or 'none'}"
        )
    return links[links["subject"].isin(chosen)]


def _values(
    results: Results, wanted: Quantity, metric: Metric, flows: pd.DataFrame
) -> pd.DataFrame:
    if not is_total(wanted):
        of = subjects(results, metric, flows, wanted)
        values = results.values(wanted.metric, wanted.window_s, of)
        return values if metric.source == "fairness" else aggregate(values, wanted.aggregate)
    if wanted.aggregate == "pooled":
        return _pooled(metric, flows)
    per_flow = flows[[*RUN, "flow"]].assign(value=flows[wanted.metric].astype(float))
    if wanted.metric == COMPLETION:
        # A run has no value until all of its transfers are complete; other flows have none anyway.
        late = per_flow[per_flow["value"].isna()].merge(results.scenario_flows)
        late = late[late["transfer"]]
        is_late = pd.MultiIndex.from_frame(per_flow[RUN]).isin(pd.MultiIndex.from_frame(late[RUN]))
        per_flow.loc[is_late, "value"] = np.nan
    return aggregate(per_flow, wanted.aggregate)


def aggregate(per_flow: pd.DataFrame, how: str) -> pd.DataFrame:
    """Combine the values of the flows of each run, those that are NaN left out."""
    grouped = per_flow.groupby(RUN, observed=True)["value"]
    if how == "jain":
        combined = grouped.agg(lambda values: jain_index(values.to_numpy()))
    elif how == "sum":
        combined = grouped.sum(min_count=1)
    else:
        combined = grouped.agg({"mean": "mean", "maximum": "max", "minimum": "min"}[how])
    return combined.astype(float).reset_index()


def _pooled(metric: Metric, flows: pd.DataFrame) -> pd.DataFrame:
    top, bottom = metric.pooled
    table = flows[[*RUN]].assign(bottom=flows[bottom].astype(float))
    top_values = flows[top].astype(float)
    table["top"] = top_values if top.startswith("packets") else top_values * table["bottom"]
    # A flow without packets has no mean delay, and no weight either: NaN adds nothing.
    sums = table.groupby(RUN, observed=True)[["top", "bottom"]].sum()
    return (sums["top"] / sums["bottom"]).rename("value").reset_index()
