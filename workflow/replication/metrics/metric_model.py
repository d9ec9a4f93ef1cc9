"""Metrics: every quantity that a claim or a published cell may name, with its label and its unit.

Computing them takes `metrics.metric` and `metrics.sampled`; checking a study takes this alone.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication.study.claim_model import Flows, Quantity
from replication.study.errors import InputError
from replication.study.published import Cell
from replication.study.study import Study

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


class MetricError(InputError):
    """A metric is unknown, or asked for in a way that has no meaning."""


@dataclass(frozen=True)
class Metric:
    """One metric: a row of metrics.csv."""

    unit: str
    label: str
    #: A total of the "flow", a "sampled" column or a "feature" of its series, a "queue", or
    #: "fairness" of a set of flows.
    source: str
    #: The column of the series that is reduced over a window, if any; by mean, sum, or weighted by
    #: the bytes received.
    column: str
    reduce: str
    #: Numerator and denominator, or weighted value and weight, of the `pooled` aggregate.
    pooled: Sequence[str]
    #: Whether it counts events: whole numbers, larger the longer a run lasts.
    counts: bool
    description: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Metric:
        """Return the metric of a row of metrics.csv, every field as text."""
        pooled = row["pooled"].split(" / ") if row["pooled"] else ()
        return cls(**row | {"pooled": pooled, "counts": row["counts"] == "true"})


with (Path(__file__).parent / "metrics.csv").open(encoding="utf-8", newline="") as _file:
    METRICS = {row.pop("metric"): Metric.of(row) for row in csv.DictReader(_file)}
COUNTS = {name for name, metric in METRICS.items() if metric.counts}


def check_metric(
    name: str, aggregate: str = "mean", window: bool = False, links: Sequence[str] | None = None
) -> Metric:
    """Return the metric `name`; MetricError without it, or its aggregate, window or links."""
    if name not in METRICS:
        raise MetricError(f"unknown metric {name!r}; known metrics: {', '.join(METRICS)}")
    metric = METRICS[name]
    if window and metric.source == "flow" and not metric.column:
        sampled = (n for n, m in METRICS.items() if m.source != "flow" or m.column)
        raise MetricError(
            f"metric {name!r} is a total of the whole run and has no window_s; "
            f"metrics with a window: {', '.join(sampled)}"
        )
    if aggregate == "pooled" and (not metric.pooled or window):
        pooled = (n for n, m in METRICS.items() if m.pooled)
        raise MetricError(
            f"metric {name!r} cannot be pooled{' over a window' if window else ''}; "
            f"pooled has a meaning for whole runs of {', '.join(pooled)}"
        )
    if aggregate == "jain" and metric.source in ("queue", "fairness"):
        raise MetricError(f"metric {name!r} is not a value per flow: no Jain's index of it")
    if links is not None and metric.source != "queue":
        queues = (n for n, m in METRICS.items() if m.source == "queue")
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
    asked += [_whole(own.id, metric) for own in study.experiments for metric in CONTRASTED]
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
    """Check that every metric that claims and tables name can be had as asked; else MetricError."""
    named: list[tuple[str, Quantity | Cell]] = [
        (f"claim {claim.id}", wanted) for claim in study.claims for wanted in claim.quantities()
    ]
    for table in study.tables:
        cells = {"(every column)": table.cell} if table.cell else table.columns or {}
        named += [(f"table {table.id}, column {column}", cell) for column, cell in cells.items()]
    for place, one in named:
        try:
            check_metric(one.metric, one.aggregate, one.window_s is not None, one.links)
        except MetricError as error:
            raise MetricError(f"{study.id}: {place}: {error}") from None


def metric_label(metric: str) -> str:
    """Return what a metric is called within a sentence."""
    return METRICS[metric].label if metric in METRICS else metric.replace("_", " ")


def largest(metric: str, aggregate: str = "mean") -> float:
    """Return the largest value that a metric can have: 1 for shares of packets and Jain's index."""
    is_share = metric in ("delivery_ratio", "loss_rate") or metric.startswith("jain")
    return 1.0 if aggregate == "jain" or (is_share and aggregate != "sum") else math.inf


def capitalised(words: str) -> str:
    """Return `words` with a capital at their start."""
    return words[:1].upper() + words[1:]


def display_unit(unit: str) -> tuple[str, float]:
    """Return the unit to show `unit` in, and the factor to it."""
    return _DISPLAY.get(unit, (unit, 1.0))
