"""Contrasts: what two engines measured at the very same scenarios, side by side.

Engines run the same scenario in each replicate, so that their values are compared in pairs: of a
metric's differences, replicate by replicate and averaged over the points that both ran, the mean
and its 95 % interval. They differ beyond the replicates if the interval does not hold zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.compare.agreement import CELL, Pair
from replication.judge.wording import qualifier
from replication.measure.metric import quantity
from replication.measure.metric_model import METRICS
from replication.measure.results import Results
from replication.measure.statistic import Estimate, estimate
from replication.study.claim_model import Flows, Quantity, Where
from replication.study.study import Study

#: What is set side by side, whole runs: what the senders did, and what the path did to them.
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


@dataclass(frozen=True)
class ContrastSide:
    """Flows at points of one experiment that an item rests on; `label` tells sides apart."""

    label: str
    experiment: str
    flows: Flows
    wheres: tuple[Where, ...]


@dataclass(frozen=True)
class Contrast:
    """One metric of one side on two engines; `difference` is right minus left, in pairs."""

    side: str
    metric: str
    left: float
    right: float
    difference: Estimate

    @property
    def differs(self) -> bool | None:
        """Whether the engines differ beyond the replicates; None without an interval."""
        if not self.difference.has_interval:
            return None
        return not self.difference.low <= 0 <= self.difference.high

    def row(self) -> dict[str, object]:
        """Return what agreement_contrasts.csv says of it."""
        return {
            "side": self.side,
            "metric": self.metric,
            "unit": METRICS[self.metric].unit,
            "left_mean": self.left,
            "right_mean": self.right,
            "difference": self.difference.mean,
            "low": self.difference.low,
            "high": self.difference.high,
            "n": self.difference.n,
            "differs": self.differs,
        }


def sides(study: Study, pairs: Iterable[Pair]) -> list[ContrastSide]:
    """Return what a group of items rests on: each side of a claim, a column's cells at once."""
    found: dict[tuple[str, str, str], list[Where]] = {}
    flows: dict[str, Flows] = {}
    group = list(pairs)
    shared = _shared([wanted.where for pair in group for wanted in pair.quantities])
    for pair in group:
        for wanted in pair.quantities:
            where = shared if pair.kind == CELL else wanted.where
            label = qualifier(study, _whole(wanted, where)) or "all points"
            flows[str(wanted.flows)] = wanted.flows
            wheres = found.setdefault((label, wanted.experiment, str(wanted.flows)), [])
            if wanted.where not in wheres:
                wheres.append(wanted.where)
    return [
        ContrastSide(label, experiment, flows[chosen], tuple(wheres))
        for (label, experiment, chosen), wheres in found.items()
    ]


def _shared(wheres: list[Where]) -> Where:
    """Return the levels that are the same in all."""
    first = wheres[0] if wheres else {}
    return {k: v for k, v in first.items() if all(where.get(k) == v for where in wheres)}


def _whole(wanted: Quantity, where: Where) -> Quantity:
    """Return the mean of the quantity's flows over whole runs."""
    changes = {"metric": CONTRASTED[0], "aggregate": "mean", "where": where}
    return wanted.model_copy(update={**changes, "window_s": None, "links": None})


def contrasts(results: Results, side: ContrastSide, left: str, right: str) -> Iterator[Contrast]:
    """Yield each metric that both engines have at points that both ran.

    Parameters
    ----------
    results
        Results of the study.
    side
        Whose flows, at which points.
    left, right
        The engines.
    """
    for metric in CONTRASTED:
        wanted = Quantity(experiment=side.experiment, metric=metric, flows=side.flows)
        values = quantity(results, wanted).dropna(subset="value")
        values = values[_covered(values, side.wheres)]
        keys = [column for column in values if column not in ("engine", "value")]
        both = values[values["engine"] == left].merge(
            values[values["engine"] == right], on=keys, suffixes=("_left", "_right")
        )
        if both.empty:
            continue
        means = both.groupby("replicate")[["value_left", "value_right"]].mean()
        yield Contrast(
            side=side.label,
            metric=metric,
            left=float(means["value_left"].mean()),
            right=float(means["value_right"].mean()),
            difference=estimate((means["value_right"] - means["value_left"]).to_numpy()),
        )


def _covered(values: pd.DataFrame, wheres: Iterable[Where]) -> pd.Series[bool]:
    covered = pd.Series(False, index=values.index)
    for where in wheres:
        inside = pd.Series(True, index=values.index)
        for factor, keys in where.items():
            inside &= values[factor].isin(keys)
        covered |= inside
    return covered


def scenarios_of(
    results: Results, side: ContrastSide, engines: Iterable[str]
) -> list[Mapping[str, Any]]:
    """Return the scenarios of a side's points that all of the engines ran."""
    found: set[str] | None = None
    for engine in engines:
        ran: set[str] = set()
        for where in side.wheres:
            runs = results.runs(side.experiment, where)
            ran |= set(runs.loc[(runs["engine"] == engine) & runs["supported"], "scenario"])
        found = ran if found is None else found & ran
    return [results.scenarios[scenario] for scenario in sorted(found or ())]
