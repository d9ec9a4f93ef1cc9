"""Metrics: every quantity that a claim or a published cell may name, with label and unit."""

import csv
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from replication.base.errors import InputError, quoted
from replication.study.claim_model import Flows, PublishedRun, Quantity, sides
from replication.study.finding_model import Finding
from replication.study.published import Table
from replication.study.study import Experiment, ExperimentType, Study

#: Unit of the data: unit to show, and factor to it.
_DISPLAY = {"bit/s": ("Mbit/s", 1e-6), "s": ("ms", 1e3)}
#: Metrics of whole runs that engines are compared by.
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


#: Metrics that charts draw of every experiment of a type; of the others, those that are published
#: or in claims.
DRAWN: Mapping[ExperimentType, Sequence[str]] = {
    "cbr_sweep": ("throughput_bps", "delay_mean_s", "loss_rate"),
    "pairwise_fairness": ("throughput_bps", "delay_mean_s", "loss_rate"),
    "bdp_jain": ("throughput_bps", "rtt_mean_s", "loss_rate"),
    "cwnd_traces": ("throughput_bps", "goodput_bps"),
}


class MetricError(InputError):
    """A metric is unknown, or has no such aggregate or window."""


@dataclass(frozen=True)
class Metric:
    """One metric: a row of metrics.csv."""

    unit: str
    label: str
    #: "flow": a total of the flow; "sampled" and "feature": of its series; "queue"; "fairness".
    source: str
    #: The column of the series that is reduced over a window, if any.
    column: str
    #: mean, sum, max, or "weighted" by the bytes received.
    reduce: str
    #: Numerator and denominator, or weighted value and weight, of the `pooled` aggregate.
    pooled: Sequence[str]
    #: Whether it counts events, more of them the longer a run lasts.
    counts: bool
    description: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Return the metric of a row of metrics.csv."""
        pooled = row["pooled"].split(" / ") if row["pooled"] else ()
        return cls(**row | {"pooled": pooled, "counts": row["counts"] == "true"})


with (Path(__file__).parent / "metrics.csv").open(encoding="utf-8", newline="") as _file:
    METRICS = {row.pop("metric"): Metric.of(row) for row in csv.DictReader(_file)}
COUNTS = {name for name, metric in METRICS.items() if metric.counts}


def check_metric(name: str, aggregate: str = "mean", window: bool = False) -> Metric:
    """Return the metric `name`; MetricError if it, its aggregate or window does not exist."""
    if name not in METRICS:
        near = get_close_matches(name, METRICS, 1) or [m for m in METRICS if name in m]
        nearest = f"nearest: {near[0]}; " if near else ""
        text = f"metric: {quoted(name)} is unknown; {nearest}`replicate metrics` lists all"
        raise MetricError(text, ("metric",))
    metric = METRICS[name]

    def others(matches: Callable[[Metric], object]) -> str:
        return ", ".join(n for n, m in METRICS.items() if matches(m))

    if window and metric.source == "flow" and not metric.column:
        raise MetricError(
            f"metric {name!r} is a total of the whole run and has no window_s; "
            f"metrics with a window: {others(lambda m: m.source != 'flow' or m.column)}",
            ("window_s",),
        )
    if aggregate == "pooled" and (not metric.pooled or window):
        raise MetricError(
            f"metric {name!r} cannot be pooled{' over a window' if window else ''}; "
            f"pooled needs whole runs of {others(lambda m: m.pooled)}",
            ("aggregate",),
        )
    if aggregate == "jain" and metric.source in ("queue", "fairness"):
        text = f"metric {name!r} has no value for each flow, so no Jain's index"
        raise MetricError(text, ("aggregate",))
    return metric


def is_total(wanted: Quantity) -> bool:
    """Return whether a quantity is a total of flows, not read off their series."""
    return METRICS[wanted.metric].source == "flow" and wanted.window_s is None


def wanted_quantities(study: Study, findings: Sequence[Finding] = ()) -> list[Quantity]:
    """Return the quantities of a study that are read off series, each over a whole experiment.

    They are those of its claims, tables, findings and charts, and those that engines are compared
    by. A quantity covers every choice of flows, unless it is a property of these flows together.
    """
    needed: list[Quantity] = []
    for claim in study.claims:
        needed += claim.quantities()
    for table in study.tables:
        needed += _of_table(table)
    for finding in findings:
        needed += finding.quantities()
    for experiment in study.experiments:
        metrics = [*CONTRASTED, *DRAWN.get(experiment.type, ())]
        needed += [_whole(experiment.id, metric) for metric in metrics]
    by_json = {}
    for wanted in needed:
        if not is_total(wanted):
            quantity = _as_collected(wanted)
            by_json[quantity.to_json()] = quantity
    return [by_json[key] for key in sorted(by_json)]


def check_collected(
    experiment: Experiment, wanted: Quantity, collected: Collection[Quantity]
) -> None:
    """Raise InputError if a chart of an experiment draws a quantity that results do not have."""
    if not is_total(wanted) and _as_collected(wanted) not in collected:
        window = "{:g} to {:g} s".format(*wanted.window_s) if wanted.window_s else "the whole run"
        raise InputError(
            f"experiment {experiment.id}: a chart draws {wanted.metric} of {window}, which is not "
            f"collected; add it to DRAWN[{experiment.type!r}] in metrics/metric_model.py, or use "
            "it in a claim, then run `make report`"
        )


def _as_collected(wanted: Quantity) -> Quantity:
    """Return a quantity at all points and, unless it is of flows together, of all flows."""
    flows = wanted.flows if METRICS[wanted.metric].source == "fairness" else "all"
    return _whole(wanted.experiment, wanted.metric, flows, wanted.window_s)


def _of_table(table: Table) -> Iterator[Quantity]:
    """Yield the quantities of a table's cells, each over whole experiments."""
    rows = list((table.rows or {}).values())
    chosen = [row.flows for row in rows if row.flows is not None]
    for cell in table.cells:
        for flows in [cell.flows, *chosen]:
            for experiment in _experiments(table):
                yield _whole(experiment, cell.metric, flows, cell.window_s)


def _experiments(table: Table) -> set[str]:
    """Return the experiments of a table and of its rows."""
    of_rows = {row.experiment for row in (table.rows or {}).values() if row.experiment}
    return of_rows | {table.experiment}


def digested_experiments(study: Study) -> list[str]:
    """Return the experiments that numbers of one published run are judged by, sorted."""
    names: set[str] = set()
    for claim in study.claims:
        for test in claim.tests():
            if isinstance(test.expect, PublishedRun):
                names.update(wanted.experiment for wanted in sides(test))
    for table in study.tables:
        if any(cell.tolerance.factor is not None for cell in table.cells):
            names |= _experiments(table)
    return sorted(names)


def _whole(
    experiment: str, metric: str, flows: Flows = "all", window_s: tuple[float, float] | None = None
) -> Quantity:
    return Quantity(experiment=experiment, metric=metric, flows=flows, window_s=window_s)


def metric_label(metric: str) -> str:
    """Return the name of a metric within a sentence."""
    return METRICS[metric].label if metric in METRICS else metric.replace("_", " ")


def largest(metric: str, aggregate: str = "mean") -> float:
    """Return the largest possible value of a metric: 1 for shares of packets and Jain's index."""
    is_share = metric in ("delivery_ratio", "loss_rate") or metric.startswith("jain")
    return 1.0 if aggregate == "jain" or (is_share and aggregate != "sum") else math.inf


def capitalised(words: str) -> str:
    """Return `words` with a capital first letter."""
    return words[:1].upper() + words[1:]


def display_unit(unit: str) -> tuple[str, float]:
    """Return the unit to show `unit` in, and the factor to it."""
    return _DISPLAY.get(unit, (unit, 1.0))
