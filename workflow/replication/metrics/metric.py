"""Quantities: a metric of `metrics.metric_model` over chosen flows and points, one value a run.

*Flow totals* are columns of the flows table, or follow from them, over the flow's active time.
Other values were read off the series when the results were collected (`metrics.sampled`). A metric
that is both is a flow total unless `window_s` is given.

Values of single flows, or monitored links, are combined: sum, mean, maximum, minimum, Jain's index,
or `pooled`, the ratio of sums over all packets of all flows.
"""

import numpy as np
import pandas as pd

from replication.base.table import COMPLETION
from replication.metrics.feature import WINDOW_FEATURES
from replication.metrics.metric_model import Metric, MetricError, check_metric, is_total
from replication.metrics.results import SUBJECT, Results
from replication.metrics.sampled import RUN
from replication.metrics.statistic import jain_index
from replication.study.claim_model import Flows, Quantity, StartOrder

#: A total that the flows table has no column of.
BEFORE_LOSS = "throughput_before_loss_bps"


def quantity(results: Results, wanted: Quantity) -> pd.DataFrame:
    """Return engine, replicate, a column for each factor (level key) and value of each run.

    The value is NaN if the metric is undefined for the run, such as the delay of a flow that
    received nothing. MetricError: the metric, aggregate or flow is unknown.
    """
    key = wanted.to_json()
    if key not in results.memo:
        results.memo[key] = _quantity(results, wanted)
    return results.memo[key].copy()


def defined(results: Results, wanted: Quantity) -> pd.DataFrame:
    """Return replicate, factors and the defined values of a quantity on the only engine."""
    return quantity(results, wanted).drop(columns="engine").dropna(subset="value")


def _quantity(results: Results, wanted: Quantity) -> pd.DataFrame:
    windowed = wanted.window_s is not None
    metric = check_metric(wanted.metric, wanted.aggregate, windowed)
    runs = results.runs(wanted.experiment, wanted.where)
    factors = [str(c) for c in runs if c not in ("scenario", "supported", "reason", "point")]
    flows = chosen_flows(results, runs, wanted.flows)
    values = _values(results, wanted, metric, flows)
    joined = runs[runs["supported"]].merge(values, on=RUN, how="inner")
    if wanted.window_s is not None:
        # A run that ends within the window has no value.
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
    """Return the subjects of a feature in the runs of `flows`; see `Results.values`."""
    if metric.source == "queue":
        return monitored_links(results, flows)
    if metric.source == "fairness":
        chosen = wanted.flows
        name = "+".join(sorted(chosen)) if isinstance(chosen, list) else str(chosen)
        if isinstance(chosen, StartOrder):
            name = f"start_order {chosen.start_order}"
        return flows[[*RUN, "flow"]].assign(subject=name)
    if wanted.metric in WINDOW_FEATURES:
        flows = flows[flows["kind"] == "tcp"]
    return flow_subjects(flows)


def flow_subjects(flows: pd.DataFrame) -> pd.DataFrame:
    """Return scenario, engine, subject of flows; see `Results.values`."""
    return flows[[*RUN, "flow"]].rename(columns={"flow": "subject"})


def monitored_links(results: Results, flows: pd.DataFrame) -> pd.DataFrame:
    """Return scenario, engine, subject: the monitored links of the runs of `flows`."""
    rows = []
    for scenario, engine in flows[RUN].drop_duplicates().itertuples(index=False, name=None):
        for monitor in results.scenarios[scenario].get("monitors", []):
            rows.append((scenario, engine, f"{monitor['link']}:{monitor['direction']}"))
    return pd.DataFrame(rows, columns=SUBJECT, dtype=object)


def _values(
    results: Results, wanted: Quantity, metric: Metric, flows: pd.DataFrame
) -> pd.DataFrame:
    if not is_total(wanted):
        of = subjects(results, metric, flows, wanted)
        values = results.values(wanted.metric, wanted.window_s, of)
        return values if metric.source == "fairness" else aggregate(values, wanted.aggregate)
    if wanted.aggregate == "pooled":
        return _pooled(metric, flows)
    per_flow = flows[[*RUN, "flow"]].assign(value=_totals(flows, wanted.metric))
    if wanted.metric == COMPLETION:
        # A run has no value until all of its transfers are complete.
        late = per_flow[per_flow["value"].isna()].merge(results.scenario_flows)
        late = late[late["transfer"]]
        is_late = pd.MultiIndex.from_frame(per_flow[RUN]).isin(pd.MultiIndex.from_frame(late[RUN]))
        per_flow.loc[is_late, "value"] = np.nan
    return aggregate(per_flow, wanted.aggregate)


def _totals(flows: pd.DataFrame, metric: str) -> pd.Series:
    """Return a total of each flow: a column of the flows table, or what follows from several."""
    if metric != BEFORE_LOSS:
        return flows[metric].astype(float)
    received = flows["packets_received"].astype(float)
    sent = (received + flows["packets_dropped"].astype(float)) / received.where(received > 0)
    return flows["throughput_bps"].astype(float) * sent


def aggregate(per_flow: pd.DataFrame, how: str) -> pd.DataFrame:
    """Combine the values of each run's flows; NaN are left out."""
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
    # A flow without packets has no mean delay, and NaN adds nothing to the sums.
    sums = table.groupby(RUN, observed=True)[["top", "bottom"]].sum()
    return (sums["top"] / sums["bottom"]).rename("value").reset_index()
