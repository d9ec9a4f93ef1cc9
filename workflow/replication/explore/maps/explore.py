"""Explores a map: a coarse grid, halved along the boundary, probed, then validated.

Bisection sees a boundary only where the corners of a cell differ. Random probes try what it says: a
cell in which one is denied is on the boundary, and halved as the others are. So is what lies within
the noise, which all replicates of a panel tell. The validation points come after all that, and
decide nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

import numpy as np

from replication.explore.maps.grid import Cell, Grid
from replication.explore.maps.map_model import MapSettings, Spending
from replication.explore.maps.sampler import PointResult, Sampler
from replication.explore.maps.space import Panel, Point

#: Draws of a random point before a side counts as too small to have any.
_MOST_DRAWS = 2000


@dataclass
class Explorer:
    """Explores a map on an engine, and keeps what was found.

    `name` seeds the random points, cells on the boundary are halved `halvings` times at most, and
    `left_out` are panels beyond the budget. The points of `validation` (whether the claim should
    hold there, and what was found) are not among `results`.
    """

    name: str
    panels: Sequence[Panel]
    sampler: Sampler
    settings: MapSettings
    spending: Spending
    halvings: int
    budget_s: float
    say: Callable[[str], None] = lambda line: None
    grids: dict[Panel, Grid] = field(default_factory=dict)
    left_out: list[Panel] = field(default_factory=list)
    results: dict[Point, PointResult] = field(default_factory=dict)
    validation: list[tuple[Point, bool, PointResult]] = field(default_factory=list)
    #: Sets of random points that are kept room for: one that validates, one that probes.
    _sets_to_come: int = 1

    def run(self) -> None:
        """Explore; the same is found for the same inputs, however often it was cut short."""
        for panel in self.panels:
            self._start(panel)
        # Probes may cost less, so that no panel is left out for them; halvings leave them room.
        self._sets_to_come = 2
        # One halving of all panels before the next: where the budget ends, all are known as well.
        for number in range(self.halvings):
            for grid in self.grids.values():
                self._halve(grid)
            self.say(f"{self.name}: halved {number + 1} times, {len(self.results)} points")
        self._sets_to_come = 1
        for number in range(self.spending.tries):
            if not self._probe():
                break
            self.say(f"{self.name}: probed {number + 1} times, {len(self.results)} points")
        self._validate()

    def share(self) -> float | None:
        """Return the share of the known area in which the claim holds."""
        shares = [s for grid in self.grids.values() if (s := grid.share()) is not None]
        return statistics.fmean(shares) if shares else None

    def right(self) -> tuple[int, int]:
        """Return how many validation points could be judged, and at how many it is right."""
        judged = [
            (expected, one.holds) for _, expected, one in self.validation if one.holds is not None
        ]
        return len(judged), sum(expected is holds for expected, holds in judged)

    def _start(self, panel: Panel) -> None:
        """Run the coarse grid of a panel, and learn how noisy its margins are."""
        grid = Grid(panel, self.spending.coarse_cells, self.halvings, self.results)
        points = grid.coarse_points()
        # A first look is always had: a map without a point would say nothing.
        if self.grids and not self._is_affordable(points):
            self.left_out.append(panel)
            return
        self.grids[panel] = grid
        self.results |= self.sampler.sample(points, 1)
        differing = [cell for cell in grid.leaves if len(set(map(grid.verdict, cell.corners))) > 1]
        on_boundary = {grid.point(node) for cell in differing for node in cell.corners}
        near = sorted(
            (point for point in points if math.isfinite(self.results[point].margin)),
            key=lambda point: (point not in on_boundary, abs(self.results[point].margin), point),
        )[: self.settings.noise_points]
        self.results |= self.sampler.sample(near, self.settings.replicates)
        grid.learn_noise(self.settings.noise_deviations)
        self._keep({point: self.results[point] for point in points})

    def _halve(self, grid: Grid) -> bool:
        """Halve the widest cells on a grid's boundary that the budget allows; return if any."""
        cells: list[Cell] = []
        points: dict[Point, None] = {}
        for cell in grid.to_halve():
            more = points | dict.fromkeys(grid.points_to_halve(cell))
            if not self._is_affordable(list(more)):
                break
            points = more
            cells.append(cell)
        self._keep(self.sampler.sample(list(points), 1))
        for cell in cells:
            grid.halve(cell)
        return bool(cells)

    def _probe(self) -> bool:
        """Run random points on both sides, refine where one is denied; return whether any was."""
        expected = dict(self._drawn())
        points = list(expected)
        while points and not self._is_affordable(points):
            points = points[1::2]
        results = self.sampler.sample(points, 1)
        for point in results:
            self.grids[point.panel].probes.append(point)
        believed = self._keep(results)
        for grid in self.grids.values():
            while self._run_doubtful(grid) or self._halve(grid):
                pass
        return any(one.holds is (not expected[point]) for point, one in believed.items())

    def _run_doubtful(self, grid: Grid) -> bool:
        points = grid.doubtful()
        is_run = bool(points) and self._is_affordable(points)
        if is_run:
            self._keep(self.sampler.sample(points, 1))
        return is_run

    def _validate(self) -> None:
        """Run random points on both sides of the boundary, none within its width."""
        drawn = self._drawn()
        results = self._believed(self.sampler.sample([point for point, _ in drawn], 1))
        self.validation = [(point, expected, results[point]) for point, expected in drawn]

    def _drawn(self) -> list[tuple[Point, bool]]:
        """Return random points, as many a side as the tier has, and whether the claim holds."""
        found: list[tuple[Point, bool]] = []
        panels = list(self.grids)
        for side in ("holds", "fails"):
            enough = len(found) + self.spending.checks_a_side
            for _ in range(_MOST_DRAWS):
                if len(found) == enough:
                    break
                panel = panels[int(self._random.integers(len(panels)))]
                x, y = (round(float(share), 4) for share in self._random.random(2))
                if self.grids[panel].at(x, y) == side:
                    found.append((Point(panel, x, y), side == "holds"))
        return found

    @cached_property
    def _random(self) -> np.random.Generator:
        seed = int.from_bytes(sha256(self.name.encode()).digest()[:4], "big")
        return np.random.Generator(np.random.PCG64([self.settings.seed, seed]))

    def _is_affordable(self, points: Sequence[Point]) -> bool:
        # The random points to come should cost as much as the points so far, each.
        spent_s = self.sampler.spent_s
        each_s = spent_s / len(self.results) if self.results else 0.0
        reserve_s = self._sets_to_come * 2 * self.spending.checks_a_side * each_s
        return self.sampler.cost_s(points, 1) <= self.budget_s - reserve_s - spent_s

    def _keep(self, results: Mapping[Point, PointResult]) -> Mapping[Point, PointResult]:
        believed = self._believed(results)
        self.results |= believed
        for grid in self.grids.values():
            grid.learn_noise(self.settings.noise_deviations)
        return believed

    def _believed(self, results: Mapping[Point, PointResult]) -> Mapping[Point, PointResult]:
        """Return what was found, by replicates where a run is within its panel's noise."""
        unsure = [
            point
            for point, one in results.items()
            if len(one.margins) == 1 and one.is_unsure(self.grids[point.panel].noise)
        ]
        return {**results, **self.sampler.sample(unsure, self.settings.replicates)}
