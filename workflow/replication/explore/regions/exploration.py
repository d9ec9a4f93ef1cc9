"""Explores a region: runs points, reads what its claim compares, and chooses where to run next.

The compared quantity is one logarithm a run. A share of alternatives that must all be above another
is the ratio to the best of them; two that must be alike are their ratio between two bounds. Of
several clauses the one closest to failing decides, by the distance from its bounds.

Where the compared runs are without congestion the alternatives cannot differ, by the rule of
verdicts: such a run is in a state of its own, and its place neither holds nor fails.

After an even first design, each further point has the largest expected gain: a run lowers the
surface's variance around it, and so the entropy of "holds", most where the contour may lie. A point
that is chosen again gets another replicate. The validation points are random, and come last.
"""

import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy

from replication.base.errors import InputError
from replication.base.files import digest_of
from replication.base.table import flat
from replication.design.design import Run
from replication.explore.machine import Costs, Machine
from replication.explore.regions.region_model import DIGITS, RegionSettings, Spending
from replication.explore.regions.region_rows import PointRow, Shares, ValidationRow
from replication.explore.regions.space import Panel, Point, Space
from replication.explore.regions.surface import REACH, Bounds, Surface, best_places
from replication.metrics.metric import defined
from replication.metrics.results import Results
from replication.study.claim_model import (
    Claim,
    Condition,
    EquivalenceTest,
    RatioTest,
    ShareTest,
    SimpleTest,
    ValueTest,
    sides,
)
from replication.study.study import Study
from replication.study.variation import rounded
from replication.verdicts.comparison import UntestableError, compare
from replication.verdicts.congestion import alternatives_cannot_differ
from replication.verdicts.sample import Coverage, starved, starved_note

#: A replicate of a point.
Trial = tuple[Point, int]
#: Largest factor by which a quantity is above or below another, such as one of nothing.
LARGEST = 1000.0
#: Fewest runs of a surface, and smallest expected gain of a further run as a share of the area.
LEAST_RUNS, LEAST_GAIN = 4, 1e-5


def as_clause(test: SimpleTest) -> tuple[RatioTest | ValueTest, Bounds]:
    """Return a test as a ratio or a value, and the logarithms between which it holds.

    InputError where no single quantity decides it at a point.
    """
    if isinstance(test, RatioTest | ValueTest) and isinstance(test.expect, Condition):
        low, high = test.expect.at_least, test.expect.at_most
        if any(bound is not None and bound <= 0 for bound in (low, high)):
            text = "expect: a region needs bounds above zero, since it takes their logarithms"
            raise InputError(text, ("test", "expect"))
        least = -math.inf if low is None else math.log(low)
        return test, Bounds(least, math.inf if high is None else math.log(high))
    reduce = "mean"
    if isinstance(test, EquivalenceTest):
        bounds = Bounds(math.log(1 - test.margin), math.log(1 + test.margin))
    elif not isinstance(test, ShareTest) or test.expect.at_least != 1:
        text = f"claim: a test of kind {test.kind!r} has no quantity with a threshold"
        raise InputError(text, ("test",))
    elif test.relation == "above":
        bounds = Bounds(low=math.log(test.factor * (1 + test.tie)))
        reduce = "minimum"
    else:
        bounds = Bounds(high=math.log(test.factor * (1 - test.tie)))
        reduce = "maximum"
    both: dict[str, Any] = {"left": test.left, "right": test.right}
    return RatioTest.model_construct(kind="ratio", reduce=reduce, **both), bounds


class Compared:
    """What a claim compares: its clauses, and the bounds of the quantity that they make together.

    InputError where that is no quantity with a threshold.
    """

    def __init__(self, claim: Claim) -> None:
        self.tests = claim.tests()
        self.clauses = [as_clause(test) for test in self.tests]
        if not self.clauses:
            raise InputError(f"claim: {claim.id} cannot be tested", ("test",))
        self.bounds = self.clauses[0][1] if len(self.clauses) == 1 else Bounds(low=0.0)

    def values(self, study: Study, results: Results) -> dict[int, float]:
        """Return the logarithm of the quantity of each replicate that has one."""
        clauses, reach = [], math.log(LARGEST)
        for test, bounds in self.clauses:
            frames = [defined(results, wanted) for wanted in sides(test)]
            try:
                values = compare(study, test, frames).values.dropna()
            except UntestableError:
                return {}
            logs = pd.Series(np.log(values.astype(float).clip(1e-300, 1e300)))
            logs = logs.clip(bounds.centre - reach, bounds.centre + reach)
            margin = np.minimum(logs - bounds.low, bounds.high - logs)
            clauses.append(logs if len(self.clauses) == 1 else margin)
        together = pd.concat(clauses, axis=1, join="inner").min(axis=1)
        return {int(str(replicate)): float(value) for replicate, value in together.items()}

    def cannot_differ(self, study: Study, results: Results, engine: str) -> set[int]:
        """Return the replicates in which the alternatives of no clause can differ."""
        coverage = Coverage(study, results, engine)
        each = [set(alternatives_cannot_differ(coverage, test)) for test in self.tests]
        return set.intersection(*each)


def finite(value: float | None) -> float | None:
    """Return a number as it is written; None for one that is undefined or infinite."""
    return None if value is None or not math.isfinite(value) else rounded(value, DIGITS)


@dataclass(frozen=True)
class PointResult:
    """One replicate of a point: its place, and the logarithm of the compared quantity."""

    at: Point
    value: float = math.nan  # undefined, or not run
    runs: Sequence[Run] = ()
    note: str = ""  # why it is undefined, or which flow is starved
    cannot_differ: bool = False  # its runs are without congestion, so the alternatives are alike

    def row(self, space: Space) -> PointRow:
        """Return its row of a region's result."""
        x, y = space.values(self.at)
        return PointRow(
            panel=list(self.at.panel),
            x=x,
            y=y,
            quantity=finite(math.exp(self.value)),
            scenarios=list(dict.fromkeys(run.scenario_id for run in self.runs)),
            note=self.note,
            cannot_differ=self.cannot_differ,
        )


class Sampler:
    """Runs replicates of points on an engine; all but the first lie `offset` off their point."""

    def __init__(self, space: Space, machine: Machine, offset: float = 0.0) -> None:
        self.space, self.machine, self.offset = space, machine, offset
        self.compared, self.costs = Compared(space.claim), Costs()
        self._designed: dict[Trial, tuple[list[Run], str]] = {}

    def cost_s(self, trials: Iterable[Trial]) -> float:
        """Return the expected CPU time of trials, without runs that were made already."""
        return self.costs.further_s(flat(self._design(trial)[0] for trial in trials))

    def sample(self, trials: Sequence[Trial]) -> dict[Trial, PointResult]:
        """Return the results of trials; run those that are not in the store."""
        designed = [self._design(trial) for trial in trials]
        points = [runs for runs, _ in designed]
        every = flat(points)
        self.costs.count(every)
        values = dict[int, float]()
        notes = dict[int, str]()
        alike = set[int]()
        if every:
            results = self.machine.results(self.space.base.id, points)
            values = self.compared.values(self.space.study, results)
            alike = self.compared.cannot_differ(self.space.study, results, self.machine.engine.name)
            hungry = starved(results, self.machine.engine.name, list(self.space.claim.quantities()))
            notes = {int(str(n)): starved_note(flows) for n, flows in hungry.groupby("replicate")}
        sampled = {}
        for number, trial in enumerate(trials):
            runs, refusal = designed[number]
            value = values.get(number, math.nan)
            undefined = "the quantity is undefined" if math.isnan(value) else ""
            note = notes.get(number) or refusal or undefined
            at = replicate_point(*trial, self.offset)
            sampled[trial] = PointResult(at, value, runs, note, number in alike)
        return sampled

    def _design(self, trial: Trial) -> tuple[list[Run], str]:
        """Return the runs of a trial, or none and why."""
        if trial not in self._designed:
            point, replicate = trial
            try:
                runs = self.space.runs(replicate_point(point, replicate, self.offset), replicate)
                refusals = [refusal for run in runs if (refusal := self.machine.refusal(run))]
                refusal = refusals[0] if refusals else ""
            except InputError as error:
                runs, refusal = [], str(error)
            self._designed[trial] = ([] if refusal else runs, refusal)
        return self._designed[trial]


def replicate_point(point: Point, replicate: int, offset: float) -> Point:
    """Return where a replicate of a point is run: the first at it, the others on both its sides.

    Many configurations have no random part: with other seeds alone, all replicates would be the
    same run without noise, while a delay that differs by 1 % gives another result.
    """
    off = offset * ((replicate + 1) // 2) * (1 if replicate % 2 else -1)
    x, y = (min(1.0, max(0.0, share + off)) for share in (point.x, point.y))
    return Point(point.panel, x, y)


@dataclass
class Exploration:
    """The exploration of a region on an engine, and its results.

    `name` seeds the random points, which are those `checked` and in the rows of `validation`.
    """

    name: str
    panels: Sequence[Panel]
    sampler: Sampler
    settings: RegionSettings
    spending: Spending
    budget_s: float
    results: dict[Trial, PointResult] = field(default_factory=dict)
    surfaces: dict[Panel, Surface] = field(default_factory=dict)
    checked: list[PointResult] = field(default_factory=list)
    validation: list[ValidationRow] = field(default_factory=list)

    def run(self) -> None:
        """Explore; the same inputs give the same results, also after an interruption."""
        for panel in self.panels:
            sobol = scipy.stats.qmc.Sobol(2, rng=self.settings.seed)
            drawn = sobol.random(self.spending.first_points)
            trials = self._replicated(_place(panel, *at) for at in drawn)
            # The first panel is always run, whatever it costs.
            if not self.results or self.sampler.cost_s(trials) <= self._left_s:
                self.results |= self.sampler.sample(trials)
        self._fit()
        while batch := self._choose():
            self.results |= self.sampler.sample(batch)
            self._fit()
            share = self.shares().open
            print(f"{self.name}: {len(self.results)} runs, {share:.0%} undecided", file=sys.stderr)
        if self.surfaces:
            self._validate()

    def shares(self) -> Shares:
        """Return the mean shares of the panels; without a surface all is undecided."""
        if not self.surfaces:
            return Shares(holds=0.0, fails=0.0, undecided=1.0, cannot_differ=0.0)
        panels = [surface.shares() for surface in self.surfaces.values()]
        return Shares(
            holds=float(np.mean([panel.holds for panel in panels])),
            fails=float(np.mean([panel.fails for panel in panels])),
            undecided=float(np.mean([panel.undecided for panel in panels])),
            cannot_differ=float(np.mean([panel.cannot_differ for panel in panels])),
        )

    def runs(self) -> list[Run]:
        """Return the runs of all points, those of the validation last."""
        return flat(result.runs for result in (*self.results.values(), *self.checked))

    @property
    def _left_s(self) -> float:
        return self.budget_s - self.sampler.costs.spent_s

    def _replicated(self, points: Iterable[Point]) -> list[Trial]:
        return list(itertools.product(points, range(self.settings.replicates)))

    def _fit(self) -> None:
        """Fit the surfaces of panels with further runs."""
        for panel in self.panels:
            points, runs = [], []
            for (point, _), result in self.results.items():
                if point.panel == panel and not math.isnan(result.value):
                    points.append(str(point))
                    runs.append(result)
            fitted = self.surfaces.get(panel)
            if len(runs) < LEAST_RUNS or (fitted and len(fitted.places) == len(runs)):
                continue
            places = np.array([(result.at.x, result.at.y) for result in runs])
            values = np.array([result.value for result in runs])
            # The median over points leaves cliffs out; of a normal pair it is 0.67 deviations.
            spread = pd.Series(values).groupby(points).std().median()
            noise = float(np.nan_to_num(spread)) / float(scipy.special.ndtri(0.75))
            self.surfaces[panel] = Surface.fit(
                places,
                values,
                self.sampler.compared.bounds,
                noise,
                alike=[result.cannot_differ for result in runs],
            )

    def _validation_points(self) -> int:
        each_s = self.sampler.costs.spent_s / max(1, len(self.results)) * self.settings.replicates
        most = self.settings.validation_share * self.budget_s / each_s if each_s else math.inf
        return min(self.spending.validation_points, math.ceil(most))

    def _choose(self) -> list[Trial]:
        """Return the trials of the next batch: none where enough is known, or none affordable."""
        if not self.surfaces or self.shares().open <= self.settings.enough:
            return []
        each_s = self.sampler.costs.spent_s / len(self.results)
        reserve_s = self._validation_points() * self.settings.replicates * each_s
        count = Counter(point for point, _ in self.results)
        places = {panel: best_places(surface) for panel, surface in self.surfaces.items()}
        best = {panel: next(options) for panel, options in places.items()}
        chosen: list[Trial] = []
        for _ in range(math.ceil(self.settings.batch_share * len(self.results))):
            panel = max(best, key=lambda panel: best[panel][0])
            gain, (x, y) = best[panel]
            if gain < LEAST_GAIN:
                break
            point = Point(panel, float(x), float(y))
            trial = (point, count[point])
            if self.sampler.cost_s([*chosen, trial]) > self._left_s - reserve_s:
                break
            best[panel] = next(places[panel])
            count[point] += 1
            chosen.append(trial)
        return chosen

    def _validate(self) -> None:
        """Run random points of the whole area, and compare them with their predictions."""
        panels = list(self.surfaces)
        seed = int(digest_of(self.name.encode())[:8], 16)
        random = np.random.Generator(np.random.PCG64([self.settings.seed, seed]))
        drawn = []
        for _ in range(self._validation_points()):
            panel = panels[int(random.integers(len(panels)))]
            drawn.append(_place(panel, *random.random(2)))
        sampled = self.sampler.sample(self._replicated(drawn))
        for point in drawn:
            results = [sampled[trial] for trial in self._replicated([point])]
            values = np.array([run.value for run in results])
            surface = self.surfaces[point.panel]
            if np.isnan(values).any():
                continue
            observed = float(np.mean(surface.bounds.warp(values)))
            place = np.array([(point.x, point.y)])
            mean, sd = surface.predict(place, len(results))
            low, high = surface.bounds.ends()
            alike = all(run.cannot_differ for run in results)
            deviations = (observed - float(mean[0])) / float(sd[0])
            space = self.sampler.space
            x, y = space.values(point)
            self.checked += results
            self.validation.append(
                ValidationRow(
                    panel=list(point.panel),
                    x=x,
                    y=y,
                    holds=low <= observed <= high,
                    covered=abs(deviations) <= REACH,
                    cannot_differ=alike,
                    state_predicted=bool(surface.cannot_differ(place)[0]) == alike,
                    probability=float(surface.bounds.holds(mean, sd)[0]),
                    deviations=finite(deviations),
                    runs=[run.row(space) for run in results],
                )
            )


def _place(panel: Panel, x: float, y: float) -> Point:
    return Point(panel, round(float(x), 4), round(float(y), 4))
