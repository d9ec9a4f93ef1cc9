"""Samples: which points and replicates a verdict rests on, and what a reader must know of them.

A verdict that rests on less than the paper's experiment says so. Replicates that lack a point are
left out of a statistic, so that all are taken over the same points. They are named, and with more
than a fifth of them gone nothing is `reproduced`. A mean over replicates with two outcomes stands
for neither: both are named, with their shares.

A compared flow is *starved* if it gets less than a tenth of its fair share, which is the rate of a
link over the number of flows that cross it, least along the path. What is compared with it is
compared with next to nothing: a delay without a queue, a loss rate without packets. The verdict
stays, and its reason says so.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from replication.engines.model import FlowPaths
from replication.metrics.metric import chosen_flows, quantity
from replication.metrics.metric_model import COUNTS, metric_label
from replication.metrics.results import Results
from replication.metrics.sampled import RUN
from replication.metrics.statistic import two_outcomes, wilson_interval
from replication.study.claim_model import Quantity
from replication.study.scenario import Scenario
from replication.study.storage.table import COMPLETION
from replication.study.study import Study
from replication.study.verdict import ReasonCode
from replication.verdicts.bound import durations_s
from replication.verdicts.wording import amount, levels_in_words

#: With a larger share of the replicates left out nothing is reproduced.
MOST_LEFT_OUT = 0.2
#: Points that a sentence names; of the others it gives the number.
_NAMED = 2
#: Why a metric has no value where it has none.
UNDEFINED = {COMPLETION: " (a transfer is not complete)"}


def points_of(study: Study, wanted: Quantity) -> int:
    """Return how many points of its experiment a quantity is taken over."""
    return math.prod(
        len(set(wanted.where.get(factor.id, [level.key for level in factor.levels])))
        for factor in study.experiment(wanted.experiment).axes
    )


class Coverage:
    """What was run of one study, against what the study asks for."""

    def __init__(self, study: Study, results: Results) -> None:
        self.study = study
        self.results = results
        self._full_duration_s = functools.cache(self._duration_of)
        self._known_runs: dict[str, pd.DataFrame] = {}
        self._known = set(zip(results.flows["scenario"], results.flows["engine"], strict=True))

    def notes(self, engine: str, wanted: Quantity) -> Iterator[str]:
        """Yield what `engine` left out of a quantity's points, in sentences."""
        runs = self._runs(engine, wanted)
        supported, refused = runs[runs["supported"]], runs[~runs["supported"]]
        needed, designed = points_of(self.study, wanted), runs["point"].nunique()
        gone = []
        if not refused.empty:
            why = ", ".join(sorted(set(refused["reason"])))
            gone.append(f"{engine} refuses {refused['point'].nunique()} ({why})")
        if needed > designed:
            gone.append(f"this tier leaves out {needed - designed}")
        if gone:
            ran = supported["point"].nunique()
            yield f"{ran} of {needed} points were run: {'; '.join(gone)}."
        pairs = zip(supported["scenario"], supported["engine"], strict=True)
        if failed := sum(pair not in self._known for pair in pairs):
            yield f"{failed} of {len(supported)} runs have no result."
        short, full = self.shortened(engine, wanted)
        if short < full:
            yield f"Runs last {short:g} s, the study's {full:g} s."

    def points(self, engine: str, quantities: Iterable[Quantity]) -> list[dict[str, str]]:
        """Return the points of the quantities that `engine` ran, each once, as the table's rows."""
        found: dict[tuple[str, str], None] = {}
        for wanted in quantities:
            runs = self._runs(engine, wanted)
            points = runs.loc[runs["supported"], "point"]
            found |= dict.fromkeys((wanted.experiment, str(point)) for point in points)
        return [{"experiment": experiment, "point": point} for experiment, point in found]

    def shortened(
        self, engine: str, wanted: Quantity, replicate: int | None = None
    ) -> tuple[float, float]:
        """Return the shortest duration that was run, and the study's own for these points, in s.

        With `replicate`, of the runs of that replicate alone.
        """
        runs = self._runs(engine, wanted)
        if replicate is not None:
            runs = runs[runs["replicate"] == replicate]
        scenarios = runs.loc[runs["supported"], "scenario"].unique()
        full = self._full_duration_s(_points_key(wanted))
        durations = [float(self.results.scenarios[s]["duration_s"]) for s in scenarios]
        return min([full, *durations]), full

    def lack(self, engine: str, quantities: Iterable[Quantity]) -> ReasonCode:
        """Return why nothing can be made of the runs of these: by the engine, or by the tier."""
        quantities = list(quantities)
        if all(self._runs(engine, wanted)["supported"].all() for wanted in quantities):
            for wanted in quantities:
                short, full = self.shortened(engine, wanted)
                points = self._runs(engine, wanted)["point"].nunique()
                if short < full or points < points_of(self.study, wanted):
                    return ReasonCode.TOO_FEW_RUNS
        return ReasonCode.ENGINE_LACKS_IT

    def replicates(self, engine: str, quantities: Sequence[Quantity]) -> set[int]:
        """Return the replicates that the design has at every point that `engine` supports."""
        found = []
        for wanted in quantities:
            runs = self._runs(engine, wanted)
            runs = runs[runs["supported"]]
            points = runs.groupby("replicate")["point"].nunique()
            found.append({int(n) for n in points.index[points == runs["point"].nunique()]})
        return set.intersection(*found)

    def _runs(self, engine: str, wanted: Quantity) -> pd.DataFrame:
        key = _points_key(wanted)
        if key not in self._known_runs:
            self._known_runs[key] = self.results.runs(wanted.experiment, wanted.where)
        runs = self._known_runs[key]
        return runs[runs["engine"] == engine]

    def _duration_of(self, points: str) -> float:
        return min(durations_s(self.study, *json.loads(points)))


def _points_key(wanted: Quantity) -> str:
    return json.dumps([wanted.experiment, wanted.where], sort_keys=True)


@dataclass(frozen=True)
class LeftOut:
    """How many replicates a statistic leaves out of how many, and a sentence on which and why."""

    count: int
    total: int
    sentence: str

    @property
    def too_many(self) -> bool:
        """Whether what is left decides nothing in favour of the paper."""
        return self.count > MOST_LEFT_OUT * self.total


def left_out(
    coverage: Coverage, engine: str, quantities: Sequence[Quantity], used: Collection[int]
) -> LeftOut:
    """Return which replicates of the quantities' points on `engine` are not among those `used`.

    A replicate that the design has at some of the points only is none that was left out.
    """
    designed = coverage.replicates(engine, quantities)
    missing = designed - set(used)
    if not missing:
        return LeftOut(0, len(designed), "")
    found = (_causes(coverage, engine, wanted, missing) for wanted in quantities)
    causes = list(dict.fromkeys(itertools.chain(*found)))
    more = len(causes) - _NAMED
    named = causes[:_NAMED] + ([f"{more} more"] if more > 0 else [])
    why = "; ".join(named) or "a run without a result"
    sentence = f"{len(missing)} of {len(designed)} replicates left out: {why}."
    return LeftOut(len(missing), len(designed), sentence)


def _causes(coverage: Coverage, engine: str, wanted: Quantity, missing: set[int]) -> Iterator[str]:
    """Yield where the quantity is undefined in one of the replicates."""
    frame = values_on(coverage.results, engine, wanted)
    undefined = frame[frame["value"].isna() & frame["replicate"].isin(missing)]
    if undefined.empty:
        return
    sent = wanted.model_copy(
        update={"metric": "packets_sent", "aggregate": "sum", "window_s": None, "links": None}
    )
    keys = [column for column in undefined if column != "value"]
    counted = undefined[keys].merge(values_on(coverage.results, engine, sent), on=keys, how="left")
    for row in counted.to_dict("records"):
        no_packet = " (no packet sent)" if row.pop("value") == 0 else ""
        silent = no_packet or UNDEFINED.get(wanted.metric, "")
        row.pop("replicate")
        levels = {str(factor): [str(key)] for factor, key in row.items()}
        where = levels_in_words(coverage.study, wanted.experiment, levels)
        yield f"no {metric_label(wanted.metric)} at {where}{silent}"


def values_on(results: Results, engine: str, wanted: Quantity) -> pd.DataFrame:
    """Return replicate, factors and value of a quantity on one engine."""
    frame = quantity(results, wanted)
    return frame[frame["engine"] == engine].drop(columns="engine")


def outcomes(study: Study, wanted: Quantity, values: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each point at which the replicates have two outcomes.

    `values` has replicate, factors and value of the quantity on one engine.
    """
    keys = [str(column) for column in values if column not in ("replicate", "value")]
    least = 1.0 if wanted.metric in COUNTS else 0.0
    for levels, group in values.groupby(keys, sort=False) if keys else [((), values)]:
        found = two_outcomes(group["value"].to_numpy(dtype=float), least)
        if found is None:
            continue
        where = {key: [str(level)] for key, level in zip(keys, levels, strict=True)}
        total = found.low_count + found.high_count
        low, high = (100 * end for end in wilson_interval(found.high_count, total))
        at = levels_in_words(study, wanted.experiment, where)
        ends = amount(wanted, found.high_mean), amount(wanted, found.low_mean)
        yield (
            f"The {metric_label(wanted.metric)} of {at} has two outcomes: {ends[0]} "
            f"({found.high_count} of {total}, Wilson interval {low:.0f} to {high:.0f} %) and "
            f"{ends[1]} ({found.low_count} of {total})."
        )


#: Below this share of its fair share a flow is starved.
STARVED_SHARE = 0.1
#: Fair shares of a scenario's flows by its id, which is a hash of what decides them.
_SHARES: dict[str, dict[str, float]] = {}


def starved(results: Results, engine: str, compared: Sequence[Quantity]) -> pd.DataFrame:
    """Return replicate, scenario, flow, throughput_bps and fair_bps of starved TCP flows.

    The worst come first. One quantity alone compares no flows: nothing is starved.
    """
    found = []
    for wanted in compared if len(compared) > 1 else []:
        runs = results.runs(wanted.experiment, wanted.where)
        runs = runs[(runs["engine"] == engine) & runs["supported"]]
        flows = chosen_flows(results, runs, wanted.flows)
        flows = flows.loc[flows["kind"] == "tcp", [*RUN, "flow", "throughput_bps"]]
        found.append(runs[["replicate", *RUN]].merge(flows, on=RUN))
    columns = ["replicate", "scenario", "flow", "throughput_bps"]
    if not found:
        return pd.DataFrame(columns=[*columns, "fair_bps"])
    every = pd.concat(found)[columns].drop_duplicates()
    fair = [
        _fair_shares(scenario, results.scenarios[scenario])[flow]
        for scenario, flow in zip(every["scenario"], every["flow"], strict=True)
    ]
    every = every.assign(fair_bps=fair, share=every["throughput_bps"] / fair)
    every = every[every["share"] < STARVED_SHARE].sort_values(["share", "scenario", "flow"])
    return every.drop(columns="share")


def starved_note(found: pd.DataFrame) -> str:
    """Return in words which flow is starved most; empty where none is."""
    if found.empty:
        return ""
    worst, runs = found.iloc[0], found[["replicate", "scenario"]].drop_duplicates()
    got, fair = (worst[name] / 1e6 for name in ("throughput_bps", "fair_bps"))
    more = "" if len(runs) == 1 else f" ({len(runs)} runs have a starved flow)"
    return f"Starved: flow {worst['flow']} gets {got:.2g} of {fair:.3g} Mbit/s{more}."


def _fair_shares(scenario_id: str, document: Mapping[str, Any]) -> dict[str, float]:
    if scenario_id not in _SHARES:
        scenario = Scenario.model_validate(document)
        routes = FlowPaths(scenario)
        hops = {f.id: routes.hops(f.source, f.destination) for f in scenario.flows}
        crossing = Counter(hop for own in hops.values() for hop in own)
        rates = [link.rate_bps for link in scenario.links for _ in "ab"]
        _SHARES[scenario_id] = {
            flow: min(rates[hop] / crossing[hop] for hop in own) for flow, own in hops.items()
        }
    return _SHARES[scenario_id]
