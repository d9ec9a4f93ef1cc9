"""Explores a region: runs points, reads what its claim compares, and chooses where to run next.

The compared quantity is one logarithm a run. A share of alternatives that must all be above another
is the ratio to the best of them; two that must be alike are their ratio between two bounds. Of
several clauses the one that is closest to failing decides: the quantity is then how far inside its
bounds that one is.

After an even first design, each further point is the one that is expected to make the claim's side
known in the largest area: it lowers the surface's variance around itself, and the entropy of
"holds" over the area falls most where the contour may lie. A point that is chosen again gets
another replicate. The validation points are random over the whole area, come after all that, and
decide nothing.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

import numpy as np
import pandas as pd
from scipy.stats import norm, qmc

from replication.design.design import Run
from replication.explore.machine import Costs, Machine
from replication.explore.regions.region_model import RegionSettings, Spending
from replication.explore.regions.space import Panel, Point, Space
from replication.explore.regions.surface import Bounds, Candidates, Surface
from replication.metrics.metric import quantity
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
from replication.study.errors import InputError
from replication.study.study import Study
from replication.verdicts.comparison import UntestableError, compare
from replication.verdicts.sample import starved, starved_note

#: A replicate of a point.
Trial = tuple[Point, int]
#: Largest factor by which a quantity is above or below another, such as one of nothing.
LARGEST = 1000.0
#: Runs without which a panel has no surface, and expected gain, as a share of the area, that a
#: further run has to promise.
LEAST_RUNS, LEAST_GAIN = 4, 1e-5


@dataclass(frozen=True)
class Clause:
    """A clause of a claim: a ratio or a value, and between which logarithms of it it holds."""

    test: RatioTest | ValueTest
    bounds: Bounds

    @classmethod
    def of(cls, test: SimpleTest) -> Clause:
        """Return a test as a clause; InputError where no single quantity decides it at a point."""
        if isinstance(test, RatioTest | ValueTest) and isinstance(test.expect, Condition):
            least, most = test.expect.at_least, test.expect.at_most
            low = -math.inf if least is None else math.log(least)
            return cls(test, Bounds(low, math.inf if most is None else math.log(most)))
        reduce = "mean"
        if isinstance(test, EquivalenceTest):
            bounds = Bounds(math.log(1 - test.margin), math.log(1 + test.margin))
        elif not isinstance(test, ShareTest) or test.expect.at_least != 1:
            raise InputError(
                f"claim: a test of kind {test.kind!r} has no quantity with a threshold"
            )
        elif test.relation == "above":
            bounds, reduce = Bounds(low=math.log(test.factor * (1 + test.tie))), "minimum"
        else:
            bounds, reduce = Bounds(high=math.log(test.factor * (1 - test.tie))), "maximum"
        ratio = RatioTest.model_construct(
            kind="ratio", left=test.left, right=test.right, reduce=reduce
        )
        return cls(ratio, bounds)

    def values(self, study: Study, results: Results) -> pd.Series[float]:
        """Return the logarithm of the quantity in each replicate; one without any is left out."""
        frames = [
            quantity(results, wanted).drop(columns="engine").dropna(subset="value")
            for wanted in sides(self.test)
        ]
        try:
            found = compare(study, self.test, frames).values.dropna()
        except UntestableError:
            return pd.Series(dtype=float)
        logs = pd.Series(np.log(found.astype(float).clip(1e-300, 1e300)))
        reach = math.log(LARGEST)
        return logs.clip(self.bounds.centre - reach, self.bounds.centre + reach)


@dataclass(frozen=True)
class Compared:
    """What a claim compares: its clauses, and the bounds of the quantity that they make."""

    clauses: Sequence[Clause]
    bounds: Bounds

    @classmethod
    def of(cls, claim: Claim) -> Compared:
        """Return what a claim compares; InputError where that is no quantity with a threshold."""
        clauses = [Clause.of(test) for test in claim.tests()]
        if not clauses:
            raise InputError(f"claim: {claim.id} cannot be tested")
        return cls(clauses, clauses[0].bounds if len(clauses) == 1 else Bounds(low=0.0))

    def values(self, study: Study, results: Results) -> dict[int, float]:
        """Return the logarithm of the quantity in each replicate that has one."""
        found = [clause.values(study, results) for clause in self.clauses]
        if len(found) > 1:
            margins = [
                np.minimum(own - clause.bounds.low, clause.bounds.high - own)
                for clause, own in zip(self.clauses, found, strict=True)
            ]
            found = [pd.concat(margins, axis=1, join="inner").min(axis=1)]
        return {int(str(replicate)): float(value) for replicate, value in found[0].items()}


@dataclass(frozen=True)
class PointResult:
    """One replicate of a point: where it was run, and the logarithm of the compared quantity.

    `value` is NaN where the quantity is undefined or nothing was run; `note` says why, or which
    flow is starved.
    """

    at: Point
    value: float = math.nan
    runs: Sequence[Run] = ()
    note: str = ""


@dataclass
class Sampler:
    """Runs replicates of points on an engine; all but the first lie `offset` off their point."""

    space: Space
    machine: Machine
    offset: float = 0.0
    costs: Costs = field(default_factory=Costs)
    _designed: dict[Trial, tuple[list[Run], str]] = field(default_factory=dict)

    @cached_property
    def compared(self) -> Compared:
        """What the claim compares."""
        return Compared.of(self.space.claim)

    @property
    def spent_s(self) -> float:
        """Expected CPU time of all that was run."""
        return self.costs.spent_s

    def cost_s(self, trials: Iterable[Trial]) -> float:
        """Return what trials cost beyond what was run already."""
        return self.costs.further_s(run for trial in trials for run in self._runs(trial)[0])

    def sample(self, trials: Sequence[Trial]) -> dict[Trial, PointResult]:
        """Return what is found in trials; run what lacks."""
        designed = {trial: self._runs(trial) for trial in trials}
        ran = [trial for trial, (runs, _) in designed.items() if runs]
        self.costs.count(run for trial in ran for run in designed[trial][0])
        values: dict[int, float] = {}
        notes: dict[int, str] = {}
        if ran:
            results = self.machine.results(
                self.space.base.id, [designed[trial][0] for trial in ran]
            )
            values = self.compared.values(self.space.study, results)
            wanted = [one for test in self.space.claim.tests() for one in sides(test)]
            hungry = starved(results, self.machine.engine, wanted)
            notes = {int(str(n)): starved_note(own) for n, own in hungry.groupby("replicate")}
        number = {trial: place for place, trial in enumerate(ran)}
        found = {}
        for trial, (runs, refusal) in designed.items():
            place = number.get(trial, -1)
            value = values.get(place, math.nan)
            undefined = "the quantity is undefined" if math.isnan(value) else ""
            note = notes.get(place) or refusal or undefined
            found[trial] = PointResult(replicate_point(*trial, self.offset), value, runs, note)
        return found

    def _runs(self, trial: Trial) -> tuple[list[Run], str]:
        if trial not in self._designed:
            point, replicate = trial
            try:
                runs = self.space.runs(replicate_point(point, replicate, self.offset), replicate)
                refusal = next(filter(None, map(self.machine.refusal, runs)), "")
            except InputError as error:
                runs, refusal = [], str(error)
            self._designed[trial] = ([] if refusal else runs, refusal)
        return self._designed[trial]


def replicate_point(point: Point, replicate: int, offset: float) -> Point:
    """Return where a replicate of a point is run: the first at it, the others on both its sides.

    Many configurations leave nothing to chance: with other seeds alone, their replicates would be
    one run and their noise nought, where a hundredth more of a delay gives another result.
    """
    off = offset * ((replicate + 1) // 2) * (1 if replicate % 2 else -1)
    x, y = (min(1.0, max(0.0, share + off)) for share in (point.x, point.y))
    return Point(point.panel, x, y)


@dataclass(frozen=True)
class Validated:
    """A validation point: how the mean of its runs compares with what was predicted of it.

    `deviations` are the standard deviations of the prediction by which it is off, `probability` the
    predicted one that it meets the claim; `covered` is whether it lies in the interval of `LEVEL`.
    """

    point: Point
    results: Sequence[PointResult]
    deviations: float
    probability: float
    holds: bool
    covered: bool


@dataclass
class Exploration:
    """Explores a region on an engine, and keeps what was found.

    `name` seeds the random points; `left_out` are panels beyond the budget.
    """

    name: str
    panels: Sequence[Panel]
    sampler: Sampler
    settings: RegionSettings
    spending: Spending
    budget_s: float
    left_out: list[Panel] = field(default_factory=list)
    results: dict[Trial, PointResult] = field(default_factory=dict)
    surfaces: dict[Panel, Surface] = field(default_factory=dict)
    validation: list[Validated] = field(default_factory=list)

    def run(self) -> None:
        """Explore; the same is found for the same inputs, however often it was cut short."""
        for panel in self.panels:
            self._start(panel)
        self._fit()
        while batch := self._chosen():
            self.results |= self.sampler.sample(batch)
            self._fit()
            line = f"{self.name}: {len(self.results)} runs, {self.undecided():.0%} undecided"
            print(line, file=sys.stderr)
        self._validate()

    def undecided(self) -> float:
        """Return the share of the drawn area that is undecided."""
        return float(np.mean([one.shares()[2] for one in self.surfaces.values()] or [1.0]))

    def _replicated(self, points: Iterable[Point]) -> list[Trial]:
        return [(point, n) for point in points for n in range(self.settings.replicates)]

    def _start(self, panel: Panel) -> None:
        drawn = qmc.Sobol(2, rng=self.settings.seed).random(self.spending.first_points)
        trials = self._replicated(_place(panel, *at) for at in drawn)
        # A first look is always had: a region without a point would say nothing.
        if self.results and self.sampler.cost_s(trials) > self._left_s():
            self.left_out.append(panel)
        else:
            self.results |= self.sampler.sample(trials)

    def _fit(self) -> None:
        for panel in self.panels:
            runs = [
                (point, one)
                for (point, _), one in self.results.items()
                if point.panel == panel and not math.isnan(one.value)
            ]
            fitted = self.surfaces.get(panel)
            if len(runs) < LEAST_RUNS or (fitted and fitted.runs == len(runs)):
                continue
            places = np.array([(one.at.x, one.at.y) for _, one in runs])
            values = np.array([one.value for _, one in runs])
            bounds = self.sampler.compared.bounds
            self.surfaces[panel] = Surface.fit(places, values, bounds, _noise(runs))

    def _left_s(self) -> float:
        return self.budget_s - self.sampler.spent_s

    def _validation_points(self) -> int:
        each_s = self.sampler.spent_s / max(1, len(self.results)) * self.settings.replicates
        room = self.settings.validation_share * self.budget_s / each_s if each_s else math.inf
        return min(self.spending.validation_points, math.ceil(room))

    def _chosen(self) -> list[Trial]:
        """Return the trials of the next batch; none where enough is known or nothing affordable."""
        if not self.surfaces or self.undecided() <= self.settings.enough:
            return []
        each_s = self.sampler.spent_s / len(self.results)
        reserve_s = self._validation_points() * self.settings.replicates * each_s
        count = Counter(point for point, _ in self.results)
        candidates = {panel: Candidates(surface) for panel, surface in self.surfaces.items()}
        chosen: list[Trial] = []
        for _ in range(math.ceil(self.settings.batch_share * len(self.results))):
            panel = max(candidates, key=lambda one: candidates[one].gain)
            if candidates[panel].gain < LEAST_GAIN:
                break
            x, y = candidates[panel].take()
            point = Point(panel, float(x), float(y))
            trial = (point, count[point])
            if self.sampler.cost_s([*chosen, trial]) > self._left_s() - reserve_s:
                break
            count[point] += 1
            chosen.append(trial)
        return chosen

    def _validate(self) -> None:
        """Run random points of the whole area, and compare them with what is predicted there."""
        panels = list(self.surfaces)
        if not panels:
            return
        seed = int.from_bytes(sha256(self.name.encode()).digest()[:4], "big")
        random = np.random.Generator(np.random.PCG64([self.settings.seed, seed]))
        drawn = [
            _place(panels[int(random.integers(len(panels)))], *random.random(2))
            for _ in range(self._validation_points())
        ]
        found = self.sampler.sample(self._replicated(drawn))
        for point in drawn:
            runs = [found[trial] for trial in self._replicated([point])]
            if not any(math.isnan(one.value) for one in runs):
                self.validation.append(self._compared(point, runs))

    def _compared(self, point: Point, runs: Sequence[PointResult]) -> Validated:
        surface = self.surfaces[point.panel]
        observed = float(np.mean(surface.bounds.warp(np.array([one.value for one in runs]))))
        means, sds = surface.predict(np.array([(point.x, point.y)]), len(runs))
        low, high = surface.bounds.ends()
        deviations = (observed - float(means[0])) / float(sds[0])
        probability = float(surface.bounds.holds(means, sds)[0])
        holds, covered = low <= observed <= high, abs(deviations) <= surface.reach
        return Validated(point, runs, deviations, probability, holds, covered)


def _place(panel: Panel, x: float, y: float) -> Point:
    return Point(panel, round(float(x), 4), round(float(y), 4))


def _noise(runs: Sequence[tuple[Point, PointResult]]) -> float:
    """Return the standard deviation of runs at one point; at most points, not at cliffs."""
    values: defaultdict[Point, list[float]] = defaultdict(list)
    for point, one in runs:
        values[point].append(one.value)
    found = [float(np.std(own, ddof=1)) for own in values.values() if len(own) > 1]
    # Of a normal pair half the deviations are below 0.67 of the standard deviation.
    return float(np.median(found)) / float(norm.ppf(0.75)) if found else 0.0
