"""Metrics: every quantity that a claim or a published cell may name, with its label and its unit.

They are computed in `measure.metric` and `measure.sampled`; this module has their names, so that a
study can be checked without what computing takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replication.study.claim_model import Flows, Quantity
from replication.study.errors import InputError
from replication.study.study import Study

Source = Literal["flow", "sampled", "feature", "queue", "fairness"]


class MetricError(InputError):
    """A metric is unknown, or asked for in a way that has no meaning."""


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    unit
        "1" for numbers without a unit.
    label
        What people call it within a sentence.
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
    label: str
    description: str
    source: Source
    column: str = ""
    reduce: Literal["mean", "sum", "weighted"] = "mean"
    pooled: tuple[str, str] | None = None


METRICS: dict[str, Metric] = {
    "throughput_bps": Metric(
        "bit/s",
        "throughput",
        "IP bytes at the receiver over the flow's active time; in a window, mean of the samples",
        "flow",
        "throughput_bps",
    ),
    "goodput_bps": Metric(
        "bit/s", "goodput", "in-order application bytes over the active time", "flow"
    ),
    "delay_mean_s": Metric(
        "s",
        "mean one-way delay",
        "mean one-way delay of received data packets, queueing included; in a window, weighted "
        "by the bytes received per sample",
        "flow",
        "delay_s",
        "weighted",
        ("delay_mean_s", "packets_received"),
    ),
    "delay_p95_s": Metric(
        "s",
        "95th percentile of the one-way delay",
        "95th percentile of the one-way delay of data packets",
        "flow",
    ),
    "rtt_mean_s": Metric(
        "s",
        "mean round-trip time",
        "mean round-trip time sampled by the sender",
        "flow",
        "rtt_s",
        "mean",
    ),
    "packets_sent": Metric(
        "packets", "packets sent", "data packets sent, retransmissions included", "flow"
    ),
    "packets_received": Metric(
        "packets", "packets received", "data packets received, duplicates included", "flow"
    ),
    "packets_dropped": Metric(
        "packets", "packets dropped", "data packets dropped", "flow", "drops", "sum"
    ),
    "packets_in_flight": Metric(
        "packets", "packets under way at the end", "data packets still under way at the end", "flow"
    ),
    "retransmissions": Metric(
        "packets", "retransmissions", "data packets sent again", "flow", "retransmissions", "sum"
    ),
    "timeouts": Metric("1", "timeouts", "retransmission timeouts", "flow"),
    "loss_rate": Metric(
        "1", "drop rate", "dropped over sent", "flow", pooled=("packets_dropped", "packets_sent")
    ),
    "delivery_ratio": Metric(
        "1",
        "delivery ratio",
        "received over sent",
        "flow",
        pooled=("packets_received", "packets_sent"),
    ),
    "delay_s": Metric(
        "s",
        "one-way delay",
        "sampled one-way delay, weighted by bytes received",
        "sampled",
        "delay_s",
        "weighted",
    ),
    "rtt_s": Metric(
        "s", "round-trip time", "mean of the sampled round-trip time", "sampled", "rtt_s"
    ),
    "cwnd_bytes": Metric(
        "bytes",
        "congestion window",
        "mean of the sampled congestion window",
        "sampled",
        "cwnd_bytes",
    ),
    "drops": Metric(
        "packets", "packets dropped", "packets dropped in the window", "sampled", "drops", "sum"
    ),
    "cwnd_mean_segments": Metric(
        "segments",
        "mean congestion window",
        "time-weighted mean congestion window after start-up",
        "feature",
    ),
    "cwnd_peak_segments": Metric(
        "segments",
        "largest congestion window",
        "largest congestion window, slow-start overshoot included",
        "feature",
    ),
    "cwnd_minimum_segments": Metric(
        "segments",
        "smallest congestion window",
        "smallest congestion window after start-up",
        "feature",
    ),
    "cwnd_spread": Metric(
        "1",
        "spread of the congestion window",
        "median distance of the congestion window from its median, over the median, after "
        "start-up; 1/6 for a regular saw-tooth from half a window to a whole one",
        "feature",
    ),
    "window_reductions": Metric(
        "1",
        "reductions of the window",
        "falls of the congestion window by at least 20 % and two segments",
        "feature",
    ),
    "start_up_duration_s": Metric(
        "s", "duration of start-up", "time from the first sample to the end of start-up", "feature"
    ),
    "slow_start_growth": Metric(
        "1",
        "growth per round trip in slow start",
        "factor by which the window grows per RTT in the initial slow start: median of the window "
        "over the window one RTT before",
        "feature",
    ),
    "slow_start_reentries": Metric(
        "1",
        "returns to slow start",
        "falls to at most two segments below the threshold after start-up",
        "feature",
    ),
    "sawtooth_count": Metric(
        "1",
        "saw-teeth of the window",
        "rise-and-fall cycles of the window after start-up",
        "feature",
    ),
    "sawtooth_depth": Metric(
        "1",
        "share of the window kept at a reduction",
        "window after over before a reduction, mean over reductions after start-up",
        "feature",
    ),
    "window_growth_rate": Metric(
        "segments/s",
        "growth rate of the window",
        "growth of the window while it does not fall, after start-up",
        "feature",
    ),
    "rise_curvature": Metric(
        "1",
        "curvature of the window's rise",
        "share of what a straight line leaves of a sawtooth's rises that a cubic explains: "
        "0 straight, 1 cubic",
        "feature",
    ),
    "rtt_peak_s": Metric(
        "s", "largest round-trip time", "largest sampled round-trip time", "feature"
    ),
    "rtt_minimum_s": Metric(
        "s", "smallest round-trip time", "smallest sampled round-trip time", "feature"
    ),
    "queue_mean_packets": Metric(
        "packets", "mean queue", "mean length of the monitored queues", "queue", "queue_packets"
    ),
    "queue_peak_packets": Metric(
        "packets",
        "largest queue",
        "largest sampled length of the monitored queues",
        "queue",
        "queue_packets",
    ),
    "queue_drops": Metric(
        "packets",
        "packets dropped at the queue",
        "packets dropped at the monitored queues",
        "queue",
        "drops",
    ),
    "jain_mean": Metric(
        "1",
        "mean of Jain's index",
        "Jain's index of the flows' throughput per sampling interval, mean",
        "fairness",
    ),
    "jain_minimum": Metric(
        "1",
        "smallest Jain's index",
        "Jain's index of the flows' throughput per sampling interval, minimum",
        "fairness",
    ),
    "jain_since_start_mean": Metric(
        "1",
        "mean of Jain's index since the start",
        "Jain's index of the IP bytes received since the run's start, mean over time",
        "fairness",
    ),
    "jain_since_start_variation": Metric(
        "1",
        "variation of Jain's index since the start",
        "standard deviation over time of Jain's index since the run's start",
        "fairness",
    ),
    "jain_since_start_early_growth": Metric(
        "1",
        "share of the growth of Jain's index done in the first half",
        "share of the growth of Jain's index since the start that is done in the first half of "
        "the window; undefined where it grows by less than 0.01",
        "fairness",
    ),
}

#: Unit of the data to the unit to show, and the factor to it.
_DISPLAY = {"bit/s": ("Mbit/s", 1e-6), "s": ("ms", 1e3)}
#: What engines are compared by, over whole runs: what senders did, and what the path did to them.
CONTRASTED = (
    "throughput_bps",
    "rtt_mean_s",
    "cwnd_mean_segments",
    "start_up_duration_s",
    "window_reductions",
    "retransmissions",
    "timeouts",
    "packets_dropped",
    "queue_mean_packets",
)
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


def check_metric(
    name: str,
    aggregate: str = "mean",
    window: bool = False,
    links: Sequence[str] | None = None,
) -> Metric:
    """Return the metric called `name`.

    Parameters
    ----------
    name
        Its key in `METRICS`.
    aggregate
        How flows are to be combined.
    window
        Whether it is wanted over a time window.
    links
        The monitored links that it is wanted over, if they are named.

    Raises
    ------
    MetricError
        There is no such metric, or it has no such aggregate, window or links.
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
    if links is not None and metric.source != "queue":
        queues = [n for n, m in METRICS.items() if m.source == "queue"]
        raise MetricError(
            f"links: {', '.join(links)}, but metric {name!r} is not taken over links; leave links "
            f"out, or name one of {', '.join(queues)}"
        )
    return metric


def is_total(wanted: Quantity) -> bool:
    """Return whether a quantity is a total of flows, and not read off their series."""
    return METRICS[wanted.metric].source == "flow" and wanted.window_s is None


def wanted_quantities(study: Study) -> list[Quantity]:
    """Return the quantities of a study that are read off series, each over a whole experiment.

    Values are taken flow by flow, or link by link: one quantity stands for all choices of flows,
    unless the flows together have the value.
    """
    asked = [wanted for claim in study.claims for wanted in claim.quantities()]
    for table in study.tables:
        rows = list((table.rows or {}).values())
        experiments = {table.experiment, *(row.experiment for row in rows if row.experiment)}
        for cell in [table.cell] if table.cell else (table.columns or {}).values():
            for flows in [cell.flows, *(row.flows for row in rows if row.flows is not None)]:
                asked += [_whole(e, cell.metric, flows, cell.window_s) for e in experiments]
    for own in study.experiments:
        asked += [_whole(own.id, metric) for metric in CONTRASTED]
    found = {}
    for wanted in asked:
        if not is_total(wanted):
            is_joint = METRICS[wanted.metric].source == "fairness"
            flows = wanted.flows if is_joint else "all"
            one = _whole(wanted.experiment, wanted.metric, flows, wanted.window_s)
            found[one.model_dump_json()] = one
    return [found[key] for key in sorted(found)]


def _whole(
    experiment: str, metric: str, flows: Flows = "all", window_s: tuple[float, float] | None = None
) -> Quantity:
    return Quantity(experiment=experiment, metric=metric, flows=flows, window_s=window_s)


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
            getattr(wanted, "links", None),
        )
    except MetricError as error:
        raise MetricError(f"{place}: {error}") from None


def metric_label(metric: str) -> str:
    """Return what a metric is called within a sentence."""
    return METRICS[metric].label if metric in METRICS else metric.replace("_", " ")


def capitalised(words: str) -> str:
    """Return `words` with a capital at their start."""
    return words[:1].upper() + words[1:]


def display_unit(unit: str) -> tuple[str, float]:
    """Return the unit to show `unit` in, and the factor to it."""
    return _DISPLAY.get(unit, (unit, 1.0))
