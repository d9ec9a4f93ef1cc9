"""The survey: runs places of a map, judges its sentence there, and keeps account of the cost.

Costs are the engine's cost model's, and every scenario counts once whether the store had it or
not: where a map looks next must not hang on a clock or on what was run before.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from replication.design.design import Run
from replication.explore.machine import Machine
from replication.explore.maps.space import Place, Space
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.study.claim_model import AmongReplicates, Claim, Condition
from replication.study.errors import InputError
from replication.study.verdict import Verdict
from replication.verdicts.claim import conditions, evaluate_claim

#: Runs whose results are looked up together.
_TOGETHER = 40
#: Where the replicates of a place lie, across and up.
_DIRECTIONS = ((1, 1), (-1, -1), (1, -1), (-1, 1))


@dataclass(frozen=True)
class Reading:
    """What was found at a place.

    Attributes
    ----------
    holds
        Whether the sentence holds in most replicates; None where nothing can be said.
    statistic, margin
        Means over replicates: of the sentence's statistic, and of how far inside its bound it is,
        as a share of the bound; the least of its parts. NaN where undefined.
    margins
        The margin of each replicate.
    runs
        Experiment, levels, replicate and scenario of each run.
    reason
        Why nothing can be said.
    """

    holds: bool | None
    statistic: float = math.nan
    margin: float = math.nan
    margins: tuple[float, ...] = ()
    runs: tuple[Run, ...] = ()
    reason: str = ""


class Surveyor(Protocol):
    """What finds out whether a sentence holds at places."""

    def cost_s(self, places: Sequence[Place], replicates: int) -> float:
        """Return what places cost beyond what was run already."""

    def read(self, places: Sequence[Place], replicates: int) -> dict[Place, Reading]:
        """Return what is found at places, each with so many replicates."""

    @property
    def spent_s(self) -> float:
        """What all places so far cost."""


@dataclass
class Survey:
    """Surveys a map on an engine by running its scenarios, replicates `offset` off a place."""

    space: Space
    machine: Machine
    offset: float = 0.0
    spent_s: float = 0.0
    _charged: set[str] = field(default_factory=set)
    _designed: dict[tuple[Place, int], list[Run] | str] = field(default_factory=dict)

    def runs(self, place: Place, replicates: int) -> list[Run] | str:
        """Return the runs of a place, or why there are none."""
        found: list[Run] = []
        for number in range(replicates):
            key = place, number
            if key not in self._designed:
                self._designed[key] = self._design(place, number)
            own = self._designed[key]
            if isinstance(own, str):
                return own
            found += own
        return found

    def _design(self, place: Place, replicate: int) -> list[Run] | str:
        try:
            runs = self.space.runs(offset_place(place, replicate, self.offset), replicate)
        except InputError as error:
            return str(error)
        refused = [run.refusal for run in runs if run.refusal]
        lacking = [run for run in runs if self.machine.missing_kernel(run)]
        if refused or lacking:
            return refused[0] if refused else "its kernel is not there"
        return runs

    def cost_s(self, places: Sequence[Place], replicates: int) -> float:
        """Return what places cost beyond what was run already."""
        costs: dict[str, float] = {}
        for place in places:
            runs = self.runs(place, replicates)
            if not isinstance(runs, str):
                costs |= {r.scenario_id: r.cost_s for r in runs}
        return math.fsum(cost for key, cost in costs.items() if key not in self._charged)

    def read(self, places: Sequence[Place], replicates: int) -> dict[Place, Reading]:
        """Return what is found at places, each with so many replicates; runs what lacks."""
        self.spent_s += self.cost_s(places, replicates)
        found: dict[Place, Reading] = {}
        together: list[tuple[Place, list[Run]]] = []
        for place in dict.fromkeys(places):
            runs = self.runs(place, replicates)
            if isinstance(runs, str):
                found[place] = Reading(None, reason=runs)
                continue
            self._charged |= {run.scenario_id for run in runs}
            together.append((place, runs))
            if sum(len(own) for _, own in together) >= _TOGETHER:
                found |= self._judged(together)
                together = []
        return found | self._judged(together)

    def _judged(self, together: Sequence[tuple[Place, list[Run]]]) -> dict[Place, Reading]:
        if not together:
            return {}
        alone = [
            (place, [run for run in runs if run.replicate == number])
            for place, runs in together
            for number in sorted({run.replicate for run in runs})
        ]
        results = self.machine.results(self.space.base.id, [runs for _, runs in alone])
        # Looked up for all at once: it takes as long for one.
        for wanted in self.space.claim.quantities():
            quantity(results, wanted)
        single: dict[Place, list[Reading]] = {}
        for number, (place, _) in enumerate(alone):
            single.setdefault(place, []).append(self._judge(results.alone(number)))
        return {place: combined(single[place], runs) for place, runs in together}

    def _judge(self, results: Results) -> Reading:
        """Return what one replicate says."""
        study, claim = self.space.study, self.space.claim
        parts = list(_parts(claim))
        judged = [evaluate_claim(study, part, results)[0] for part in parts]
        verdicts = [Verdict(str(row["verdict"])) for row in judged]
        if Verdict.NOT_TESTABLE in verdicts and Verdict.NOT_REPRODUCED not in verdicts:
            place = verdicts.index(Verdict.NOT_TESTABLE)
            return Reading(None, reason=str(judged[place]["reason"]))
        margins = [
            margin(_bound(part), float(str(row["observed"])))
            for part, row in zip(parts, judged, strict=True)
        ]
        least = min(range(len(parts)), key=lambda part: _worst(margins[part]))
        holds = all(verdict == Verdict.REPRODUCED for verdict in verdicts)
        statistic = float(str(judged[least]["observed"]))
        return Reading(holds, statistic, margins[least], (margins[least],))


def offset_place(place: Place, replicate: int, offset: float) -> Place:
    """Return where a replicate of a place is run: the first at it, the others around it.

    Many set-ups leave nothing to chance: with other seeds alone, their replicates would be one run
    and their noise nought, where a hundredth more of a delay gives another verdict.
    """
    if replicate == 0:
        return place
    across, up = _DIRECTIONS[(replicate - 1) % len(_DIRECTIONS)]
    far = offset * (1 + (replicate - 1) // len(_DIRECTIONS))
    return Place(
        place.facet,
        min(1.0, max(0.0, place.across + across * far)),
        min(1.0, max(0.0, place.up + up * far)),
    )


def combined(single: Sequence[Reading], runs: Sequence[Run]) -> Reading:
    """Return what the replicates of a place say together."""
    told = [one for one in single if one.holds is not None]
    if not told:
        return Reading(None, runs=tuple(runs), reason=single[0].reason)
    margins = tuple(one.margin for one in told)
    return Reading(
        holds=2 * sum(bool(one.holds) for one in told) > len(told),
        statistic=_mean([one.statistic for one in told]),
        margin=_mean(margins),
        margins=margins,
        runs=tuple(runs),
    )


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return statistics.fmean(defined) if defined else math.nan


def _parts(claim: Claim) -> Iterator[Claim]:
    """Yield the claim's parts as claims."""
    for test in claim.tests():
        yield claim.model_copy(update={"test": test})


def _bound(part: Claim) -> Condition:
    (test,) = part.tests()
    expect, _ = conditions(test)
    assert not isinstance(expect, AmongReplicates)
    return expect


def margin(expect: Condition, value: float) -> float:
    """Return how far inside its bounds a value is, as a share of the bound; below 0 outside."""
    found = []
    if expect.at_least is not None:
        found.append((value - expect.at_least) / _size(expect.at_least))
    if expect.at_most is not None:
        found.append((expect.at_most - value) / _size(expect.at_most))
    return min(found)


def _worst(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _size(bound: float) -> float:
    return abs(bound) or 1.0
