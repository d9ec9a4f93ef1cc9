"""Samples: the points and replicates behind a verdict, and what a reader must know of them.

Replicates that lack a point are left out of a statistic, so that all are taken over the same
points. Where replicates have two outcomes the mean represents neither; the reason names both.

A compared flow is *starved* if it gets less than a tenth of its fair share: the least, along its
path, of a link's rate over the number of flows that cross it. A comparison with such a flow means
little: its delay meets no queue, its loss rate rests on few packets. The verdict stays, and its
reason says so. Behind a link that changes or has opportunities no flow counts as starved, since its
fair share is not a link's rate, nor does a flow that shares none of its links.
"""

import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar, cast

import pandas as pd

from replication.base.table import COMPLETION
from replication.engines.path import FlowPaths
from replication.metrics.metric import chosen_flows, quantity
from replication.metrics.metric_model import COUNTS, metric_label
from replication.metrics.results import Results
from replication.metrics.same_run import run_digests
from replication.metrics.sampled import RUN
from replication.metrics.statistic import two_outcomes, wilson_interval
from replication.study.claim_model import Quantity, Where
from replication.study.scenario import Scenario
from replication.study.study import Study
from replication.study.verdict import ReasonCode
from replication.verdicts.bound import StatedPoint, shortest_duration_s
from replication.verdicts.wording import amount, levels_in_words, window_in_words

#: If a larger share of the replicates is left out, nothing is reproduced.
MOST_LEFT_OUT = 0.2
#: A sentence names so many points and counts the others.
_NAMED = 2
#: Why a metric may have no value.
UNDEFINED = {COMPLETION: " (a transfer is not complete)"}


def points_of(study: Study, wanted: Quantity) -> int:
    """Return how many points of its experiment a quantity is taken over."""
    levels = []
    for factor in study.experiment(wanted.experiment).factors:
        keys = [level.key for level in factor.levels]
        levels.append(len(set(wanted.where.get(factor.id, keys))))
    return math.prod(levels)


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _once_per_points(method: _Method) -> _Method:
    """Keep what a method finds, which depends on nothing but the points of a quantity."""

    @functools.wraps(method)
    def kept(self: Any, wanted: Quantity) -> Any:
        key = (method.__name__, wanted.experiment, json.dumps(wanted.where, sort_keys=True))
        if key not in self.memo:
            self.memo[key] = method(self, wanted)
        return self.memo[key]

    return cast(_Method, kept)


class Coverage:
    """What an engine ran of a study, compared with what the study describes."""

    def __init__(self, study: Study, results: Results, engine: str) -> None:
        self.study, self.results, self.engine = study, results, engine
        self._known = set(results.flows.loc[results.flows["engine"] == engine, "scenario"])
        self.memo: dict[tuple[str, str, str], Any] = {}

    @classmethod
    def of_all(cls, study: Study, results: Results) -> list[Self]:
        """Return the coverage of each engine of the design."""
        return [cls(study, results, engine) for engine in results.engines]

    @_once_per_points
    def _designed(self, wanted: Quantity) -> pd.DataFrame:
        return self.results.runs(wanted.experiment, wanted.where, self.engine)

    @_once_per_points
    def ran(self, wanted: Quantity) -> pd.DataFrame:
        """Return the runs of a quantity's points that the engine supports, as `Results.runs`."""
        runs = self._designed(wanted)
        return runs[runs["supported"]]

    def run_point(self, scenario: str) -> StatedPoint:
        """Return the scenario of a run as a point of which the paper states nothing."""
        key = ("run_point", scenario, "")
        if key not in self.memo:
            document = self.results.scenarios[scenario]
            self.memo[key] = StatedPoint(Scenario.model_validate(document), set())
        point: StatedPoint = self.memo[key]
        return point

    def values(self, wanted: Quantity) -> pd.DataFrame:
        """Return replicate, factors and value of a quantity."""
        return values_on(self.results, self.engine, wanted)

    @_once_per_points
    def notes(self, wanted: Quantity) -> list[str]:
        """Return in sentences which points of a quantity the engine did not run in full."""
        runs = self._designed(wanted)
        supported, refused = runs[runs["supported"]], runs[~runs["supported"]]
        needed = points_of(self.study, wanted)
        designed = runs["point"].nunique()
        why = ", ".join(sorted(set(refused["reason"])))
        count = refused["point"].nunique()
        missing = [f"{self.engine} refuses {count} ({why})"] if count else []
        if needed > designed:
            missing.append(f"this tier leaves out {needed - designed}")
        notes = []
        if supported.empty and count == needed:
            points = "the point" if count == 1 else f"all {count} points"
            notes.append(f"{self.engine} refuses {points} ({why}).")
        elif missing:
            ran = supported["point"].nunique()
            notes.append(f"{ran} of {needed} points were run: {'; '.join(missing)}.")
        if failed := sum(scenario not in self._known for scenario in supported["scenario"]):
            notes.append(f"{failed} of {len(supported)} runs have no result.")
        short, full = self.shortened(wanted)
        if short < full:
            notes.append(f"Runs last {short:g} s instead of the paper's {full:g} s.")
        return notes

    def no_value(self, wanted: Quantity) -> str:
        """Return in sentences why no run of the engine has a value of a quantity."""
        sentences = self.notes(wanted)
        if not self.ran(wanted).empty:
            what = f"{metric_label(wanted.metric)}{window_in_words(wanted)}"
            none = f"no run has a value for {what}{UNDEFINED.get(wanted.metric, '')}."
            sentences = [none, *sentences]
        return " ".join(sentences)

    def points(self, quantities: Iterable[Quantity]) -> list[dict[str, str]]:
        """Return the points of the quantities that the engine ran, each once."""
        points: dict[tuple[str, str], dict[str, str]] = {}
        for wanted in quantities:
            for point in self.ran(wanted)["point"].unique():
                name = str(point)
                points[wanted.experiment, name] = {"experiment": wanted.experiment, "point": name}
        return list(points.values())

    def shortened(self, wanted: Quantity, replicate: int | None = None) -> tuple[float, float]:
        """Return in s the shortest duration that was run, and the paper's for these points.

        With `replicate`, only the runs of that replicate count.
        """
        runs = self.ran(wanted)
        if replicate is not None:
            runs = runs[runs["replicate"] == replicate]
        full = shortest_duration_s(self.study, wanted)
        shortest = full
        for scenario in runs["scenario"].unique():
            shortest = min(shortest, float(self.results.scenarios[scenario]["duration_s"]))
        return shortest, full

    def lack(self, quantities: Iterable[Quantity]) -> ReasonCode:
        """Return whether the engine or the tier is why these quantities cannot be judged."""
        compared = list(quantities)
        if not all(self._designed(wanted)["supported"].all() for wanted in compared):
            return ReasonCode.ENGINE_LACKS_IT
        if any(self._is_cut(wanted) for wanted in compared):
            return ReasonCode.TOO_FEW_RUNS
        return ReasonCode.ENGINE_LACKS_IT

    def _is_cut(self, wanted: Quantity) -> bool:
        """Return whether runs of a quantity are shortened, or the tier leaves out points."""
        short, full = self.shortened(wanted)
        points = self._designed(wanted)["point"].nunique()
        return short < full or points < points_of(self.study, wanted)

    def replicates(self, quantities: Iterable[Quantity]) -> set[int]:
        """Return the replicates that the design has at every point that the engine supports."""
        return set.intersection(*(self._whole_replicates(wanted) for wanted in quantities))

    @_once_per_points
    def _whole_replicates(self, wanted: Quantity) -> set[int]:
        runs = self.ran(wanted)
        points = runs.groupby("replicate")["point"].nunique()
        return {int(n) for n in points.index[points == runs["point"].nunique()]}

    def fingerprints(self, quantities: Sequence[Quantity]) -> list[Hashable]:
        """Return what TCP does in each replicate at the points of the quantities.

        It does not depend on the metric, so runs are independent or not in every table alike.
        """
        compared = [self._compared(wanted) for wanted in quantities]
        fingerprints: list[Hashable] = []
        for replicate in sorted(self.replicates(quantities)):
            flows: list[tuple[object, ...]] = []
            for by_replicate in compared:
                flows += by_replicate.get(replicate, [])
            fingerprints.append(tuple(flows))
        return fingerprints

    @_once_per_points
    def _compared(self, wanted: Quantity) -> dict[int, list[tuple[object, ...]]]:
        runs = self.ran(wanted)
        table = run_digests(self.results, runs)
        flows: dict[int, list[tuple[object, ...]]] = {}
        for replicate, *flow in table.itertuples(index=False, name=None):
            flows.setdefault(replicate, []).append(tuple(flow))
        return flows


class LeftOut(NamedTuple):
    """The replicates that a statistic leaves out, in a sentence, and whether they are too many."""

    sentence: str = ""
    too_many: bool = False


def left_out(coverage: Coverage, quantities: Sequence[Quantity], used: Collection[int]) -> LeftOut:
    """Return which replicates are not `used`.

    A replicate that the design has at some of the points only does not count as left out.
    """
    designed = coverage.replicates(quantities)
    missing = designed - set(used)
    if not missing:
        return LeftOut()
    causes: dict[str, None] = {}
    for wanted in quantities:
        causes |= dict.fromkeys(_causes(coverage, wanted, missing))
    named = list(causes)[:_NAMED]
    if len(causes) > _NAMED:
        named.append(f"{len(causes) - _NAMED} more")
    why = "; ".join(named) or "a run without a result"
    sentence = f"{len(missing)} of {len(designed)} replicates are left out: {why}."
    return LeftOut(sentence, len(missing) > MOST_LEFT_OUT * len(designed))


def _causes(coverage: Coverage, wanted: Quantity, missing: set[int]) -> Iterator[str]:
    """Yield where the quantity is undefined in one of the missing replicates."""
    frame = coverage.values(wanted)
    undefined = frame[frame["value"].isna() & frame["replicate"].isin(missing)]
    if undefined.empty:
        return
    whole = {"aggregate": "sum", "window_s": None, "links": None}
    sent = wanted.model_copy(update={"metric": "packets_sent", **whole})
    keys = [column for column in undefined if column != "value"]
    counted = undefined[keys].merge(coverage.values(sent), on=keys, how="left")
    for packets, where in zip(counted["value"], _levels(counted), strict=True):
        why = " (no packet sent)" if packets == 0 else UNDEFINED.get(wanted.metric, "")
        at = levels_in_words(coverage.study, wanted.experiment, where)
        yield f"no {metric_label(wanted.metric)} at {at}{why}"


def _levels(values: pd.DataFrame) -> list[Where]:
    rows = values.drop(columns=["replicate", "value"], errors="ignore").to_dict("records")
    return [{str(factor): [str(key)] for factor, key in row.items()} for row in rows]


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
    for _, group in values.groupby(keys, sort=False) if keys else [((), values)]:
        both = two_outcomes(group["value"].to_numpy(dtype=float), least)
        if both is None:
            continue
        low, high = both
        runs = low.size + high.size
        start, end = (100 * share for share in wilson_interval(high.size, runs))
        at = levels_in_words(study, wanted.experiment, _levels(group.head(1))[0])
        yield (
            f"There are two outcomes for the {metric_label(wanted.metric)} of {at}: "
            f"{amount(wanted, high.mean())} ({high.size} of {runs}, Wilson interval {start:.0f} "
            f"to {end:.0f} %) and {amount(wanted, low.mean())} ({low.size} of {runs})."
        )


#: A flow is starved below this share of its fair share.
STARVED_SHARE = 0.1
#: Fair shares of a scenario's flows, by the scenario's id.
_SHARES: dict[str, dict[str, float]] = {}


def starved(results: Results, engine: str, compared: Sequence[Quantity]) -> pd.DataFrame:
    """Return replicate, scenario, flow, throughput_bps, fair_bps and share of starved TCP flows.

    The worst come first. A single quantity compares no flows, so none is starved.
    """
    columns = ["replicate", "scenario", "flow", "throughput_bps"]
    if len(compared) < 2:
        return pd.DataFrame(columns=[*columns, "fair_bps"])
    of_sides = []
    for wanted in compared:
        runs = results.runs(wanted.experiment, wanted.where, engine)
        flows = chosen_flows(results, runs, wanted.flows)
        flows = flows.loc[flows["kind"] == "tcp", [*RUN, "flow", "throughput_bps"]]
        of_sides.append(runs[["replicate", *RUN]].merge(flows, on=RUN))
    every = pd.concat(of_sides)[columns].drop_duplicates()
    fair = []
    for scenario, flow in every[["scenario", "flow"]].itertuples(index=False, name=None):
        fair.append(_fair_shares(scenario, results.scenarios[scenario])[flow])
    every = every.assign(fair_bps=fair, share=every["throughput_bps"] / fair)
    return every[every["share"] < STARVED_SHARE].sort_values(["share", "scenario", "flow"])


def starved_note(flows: pd.DataFrame) -> str:
    """Return a sentence on the flow that is `starved` most; empty if none is."""
    if flows.empty:
        return ""
    worst = flows.iloc[0]
    runs = flows[["replicate", "scenario"]].drop_duplicates()
    got, fair = (worst[name] / 1e6 for name in ("throughput_bps", "fair_bps"))
    more = "" if len(runs) == 1 else f" ({len(runs)} runs have a starved flow)"
    return f"Starved: flow {worst['flow']} gets {got:.2g} of {fair:.3g} Mbit/s{more}."


def _fair_shares(scenario_id: str, document: Mapping[str, Any]) -> dict[str, float]:
    if scenario_id not in _SHARES:
        scenario = Scenario.model_validate(document)
        routes = FlowPaths(scenario)
        paths = {flow.id: routes.links(flow.source, flow.destination) for flow in scenario.flows}
        crossing: Counter[tuple[str, str]] = Counter()
        for path in paths.values():
            crossing.update((link.id, way) for link, way in path)
        shares = {}
        for flow, path in paths.items():
            is_constant = all(link.is_constant for link, _ in path)
            is_shared = any(crossing[link.id, way] > 1 for link, way in path)
            shares[flow] = math.nan
            if is_constant and is_shared:
                shares[flow] = min(link.rate_bps / crossing[link.id, way] for link, way in path)
        _SHARES[scenario_id] = shares
    return _SHARES[scenario_id]
