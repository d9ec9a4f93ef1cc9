"""The sampler: runs points of a map, judges its claim there, and counts what they cost.

Costs are the engine's cost model's, and every scenario counts once whether the store had it or
not: where a map looks next must not hang on a clock or on what was run before.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replication.design.design import Run
from replication.explore.machine import Machine
from replication.explore.maps.space import Point, Space
from replication.metrics.metric import quantity
from replication.metrics.results import Results
from replication.study.claim_model import Condition, PublishedRun
from replication.study.errors import InputError
from replication.study.verdict import Verdict
from replication.verdicts.claim import conditions, evaluate_claim
from replication.verdicts.congestion import runs_without_congestion

#: Where the replicates of a point lie, along x and y.
_DIRECTIONS = ((1, 1), (-1, -1), (1, -1), (-1, 1))


@dataclass(frozen=True)
class PointResult:
    """What was found at a point.

    Attributes
    ----------
    holds
        Whether the claim holds in most replicates; None where nothing can be said, with a `reason`.
    statistic, margin
        Means over replicates: of the claim's statistic, and of how far inside its bound it is, as
        a share of the bound; the least of its parts. NaN where undefined.
    margins
        The margin of each replicate.
    """

    holds: bool | None
    statistic: float = math.nan
    margin: float = math.nan
    margins: tuple[float, ...] = ()
    runs: tuple[Run, ...] = ()
    reason: str = ""

    def is_unsure(self, noise: float) -> bool:
        """Return whether the mean margin is within the noise of single runs, and chance matters.

        It does not where all replicates are the same, nor in a tie of counts: two flows without a
        drop have a margin of nought.
        """
        own = self.margins
        is_chance = self.margin != 0 if len(own) == 1 else len(set(own)) > 1
        return is_chance and abs(self.margin) < noise / math.sqrt(len(own))


@dataclass
class Sampler:
    """Judges the claim of a map at points on an engine; replicates lie `offset` off a point."""

    space: Space
    machine: Machine
    offset: float = 0.0
    spent_s: float = 0.0
    _charged: set[str] = field(default_factory=set)
    _designed: dict[tuple[Point, int], list[Run] | str] = field(default_factory=dict)

    def cost_s(self, points: Sequence[Point], replicates: int) -> float:
        """Return what points cost beyond what was run already."""
        costs: dict[str, float] = {}
        for point in points:
            runs = self._runs(point, replicates)
            if not isinstance(runs, str):
                costs |= {r.scenario_id: r.cost_s for r in runs}
        return math.fsum(cost for key, cost in costs.items() if key not in self._charged)

    def sample(self, points: Sequence[Point], replicates: int) -> dict[Point, PointResult]:
        """Return what is found at points, each with so many replicates; run what lacks."""
        self.spent_s += self.cost_s(points, replicates)
        found: dict[Point, PointResult] = {}
        designed: dict[Point, list[Run]] = {}
        for point in points:
            runs = self._runs(point, replicates)
            if isinstance(runs, str):
                found[point] = PointResult(None, reason=runs)
            else:
                designed[point] = runs
                self._charged |= {run.scenario_id for run in runs}
        if designed:
            found |= self._judged(designed)
        return {point: found[point] for point in points}

    def _runs(self, point: Point, replicates: int) -> list[Run] | str:
        found: list[Run] = []
        for number in range(replicates):
            key = point, number
            if key not in self._designed:
                self._designed[key] = self._design(point, number)
            own = self._designed[key]
            if isinstance(own, str):
                return own
            found += own
        return found

    def _design(self, point: Point, replicate: int) -> list[Run] | str:
        try:
            runs = self.space.runs(replicate_point(point, replicate, self.offset), replicate)
        except InputError as error:
            return str(error)
        refused = [run.refusal for run in runs if run.refusal]
        if refused:
            return refused[0]
        return "its kernel is not there" if any(map(self.machine.missing_kernel, runs)) else runs

    def _judged(self, designed: Mapping[Point, Sequence[Run]]) -> dict[Point, PointResult]:
        single = [
            (point, [run for run in runs if run.replicate == number])
            for point, runs in designed.items()
            for number in sorted({run.replicate for run in runs})
        ]
        results = self.machine.results(self.space.base.id, [runs for _, runs in single])
        # Looked up for all at once: it takes as long for one.
        for wanted in self.space.claim.quantities():
            quantity(results, wanted)
        runs_without_congestion(results)
        found: dict[Point, list[PointResult]] = {point: [] for point in designed}
        for number, (point, _) in enumerate(single):
            found[point].append(self._judge(results.alone(number)))
        return {point: combined(found[point], runs) for point, runs in designed.items()}

    def _judge(self, results: Results) -> PointResult:
        study, claim = self.space.study, self.space.claim
        tests = list(claim.tests())
        parts = [claim.model_copy(update={"test": test}) for test in tests]
        judged = [evaluate_claim(study, part, results)[0] for part in parts]
        verdicts = [Verdict(str(row["verdict"])) for row in judged]
        if Verdict.NOT_TESTABLE in verdicts and Verdict.NOT_REPRODUCED not in verdicts:
            reason = judged[verdicts.index(Verdict.NOT_TESTABLE)]["reason"]
            return PointResult(None, reason=str(reason))
        values = [float(str(row["observed"])) for row in judged]
        margins = [
            margin(conditions(test)[0], value) for test, value in zip(tests, values, strict=True)
        ]
        least = min(range(len(margins)), key=lambda part: _or_least(margins[part]))
        holds = all(verdict == Verdict.REPRODUCED for verdict in verdicts)
        return PointResult(holds, values[least], margins[least], (margins[least],))


def replicate_point(point: Point, replicate: int, offset: float) -> Point:
    """Return where a replicate of a point is run: the first at it, the others around it.

    Many configurations leave nothing to chance: with other seeds alone, their replicates would be
    one run and their noise nought, where a hundredth more of a delay gives another verdict.
    """
    if replicate == 0:
        return point
    step, turn = divmod(replicate - 1, len(_DIRECTIONS))
    x, y = (
        min(1.0, max(0.0, share + sign * offset * (1 + step)))
        for share, sign in zip((point.x, point.y), _DIRECTIONS[turn], strict=True)
    )
    return Point(point.panel, x, y)


def combined(single: Sequence[PointResult], runs: Sequence[Run]) -> PointResult:
    """Return what the replicates of a point say together."""
    defined = [one for one in single if one.holds is not None]
    if not defined:
        return PointResult(None, runs=tuple(runs), reason=single[0].reason)
    margins = tuple(one.margin for one in defined)
    return PointResult(
        holds=2 * sum(bool(one.holds) for one in defined) > len(defined),
        statistic=_mean([one.statistic for one in defined]),
        margin=_mean(margins),
        margins=margins,
        runs=tuple(runs),
    )


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return statistics.fmean(defined) if defined else math.nan


def margin(expect: Condition | PublishedRun, value: float) -> float:
    """Return how far inside its bounds a value is, as a share of the bound; below 0 outside."""
    assert not isinstance(expect, PublishedRun)
    low, high = expect.at_least, expect.at_most
    found = [] if low is None else [(value - low) / (abs(low) or 1.0)]
    if high is not None:
        found.append((high - value) / (abs(high) or 1.0))
    return min(found)


def _or_least(value: float) -> float:
    return -math.inf if math.isnan(value) else value
