"""Explores a region: an even first design, then points chosen for the contour, then validation.

Each further point is the one that is expected to make the claim's side known in the largest area:
it lowers the surface's variance around itself, and the entropy of "holds" over the area falls most
where the contour may lie. A point that is chosen again gets another replicate. The validation
points are random over the whole area, come after all that, and decide nothing.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from scipy.stats import norm, qmc

from replication.explore.regions.region_model import RegionSettings, Spending
from replication.explore.regions.sampler import PointResult, Sampler, Trial
from replication.explore.regions.space import Panel, Point
from replication.explore.regions.surface import Candidates, Surface

#: Runs without which a panel has no surface, and expected gain, as a share of the area, that a
#: further run has to promise.
LEAST_RUNS, LEAST_GAIN = 4, 1e-5


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
