"""Explores a map: a coarse grid, halved along the border, tried, then checked by fresh points.

Bisection sees a border only where the corners of a cell differ. Random places try what it says: a
cell in which one is denied is on the border, and halved as the others are. So is what lies within
the noise, which all replicates of a facet tell. The fresh points of the check come after all that,
and decide nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

import numpy as np

from replication.explore.maps.grid import Cell, Grid, Node
from replication.explore.maps.map_model import MapSettings, Spending
from replication.explore.maps.space import Place
from replication.explore.maps.survey import Reading, Surveyor
from replication.metrics.statistic import wilson_interval

#: Draws of a fresh point before a side counts as too small to have any.
_MOST_DRAWS = 2000
Facet = tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """A fresh point: what the border says there, and what was found."""

    place: Place
    expected: bool
    reading: Reading

    @property
    def is_right(self) -> bool:
        """Whether the border says what was found."""
        return self.reading.holds is self.expected


@dataclass
class Explored:
    """All that was found of a map on an engine.

    By facet: the grids, and the margin up to which a single run is within the noise (a mean: by the
    root of n less). By place: the readings, without the fresh points of `checks`. `left_out` are
    facets beyond the budget.
    """

    grids: dict[Facet, Grid] = field(default_factory=dict)
    readings: dict[Place, Reading] = field(default_factory=dict)
    noise: dict[Facet, float] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    left_out: list[Facet] = field(default_factory=list)
    spent_s: float = 0.0

    @property
    def full_points(self) -> int:
        """Points of full grids of the same resolution."""
        return sum(grid.full_points for grid in self.grids.values())

    def share(self) -> float | None:
        """Return the share of the known area in which the sentence holds."""
        shares = [s for grid in self.grids.values() if (s := grid.share()) is not None]
        return statistics.fmean(shares) if shares else None

    def width(self) -> float:
        """Return the widest cell on the border, as a share of an axis."""
        return max((grid.width() for grid in self.grids.values()), default=0.0)

    def right(self) -> tuple[int, int]:
        """Return how many fresh points could be judged, and at how many the border is right."""
        judged = [check for check in self.checks if check.reading.holds is not None]
        return len(judged), sum(check.is_right for check in judged)

    def right_interval(self) -> tuple[float, float] | None:
        """Return Wilson's 95 % interval of the share right; None without fresh points."""
        judged, right = self.right()
        return wilson_interval(right, judged) if judged else None


@dataclass
class Explorer:
    """Explores a map on an engine.

    `name` seeds the random places; cells on the border are halved `halvings` times at most; `say`
    takes lines on progress.
    """

    name: str
    facets: Sequence[Facet]
    surveyor: Surveyor
    settings: MapSettings
    spending: Spending
    halvings: int
    budget_s: float
    say: Callable[[str], None] = lambda line: None
    found: Explored = field(default_factory=Explored)
    #: Sets of random places that are kept room for: one that checks the grid, one that tries it.
    _sets_to_come: int = 1

    def run(self) -> Explored:
        """Return what is found; the same for the same inputs, however often it was cut short."""
        for facet in self.facets:
            self._first(facet)
        # What tries may cost less, so that no facet is left out for it; halvings leave room for it.
        self._sets_to_come = 2
        # One halving of all facets before the next: where the budget ends, all are known as well.
        for number in range(self.halvings):
            for facet in self.found.grids:
                self._halve(facet)
            self.say(f"{self.name}: halved {number + 1} times, {len(self.found.readings)} points")
        self._sets_to_come = 1
        for number in range(self.spending.tries):
            if not self._try():
                break
            self.say(f"{self.name}: tried {number + 1} times, {len(self.found.readings)} points")
        self._check()
        self.found.spent_s = self.surveyor.spent_s
        return self.found

    def _place(self, facet: Facet, node: Node) -> Place:
        size = self.found.grids[facet].size
        return Place(facet, node[0] / size, node[1] / size)

    def _try(self) -> bool:
        """Run random places on both sides, as far as the budget goes; refine where one is denied.

        Return whether any was.
        """
        said = {
            place: side == "holds" for side in ("holds", "fails") for place in self._drawn(side)
        }
        places = list(said)
        while places and self.surveyor.cost_s(places, 1) > self._left_s:
            places = places[1::2]
        readings = self._believed(self.surveyor.read(places, 1))
        for place, reading in readings.items():
            self.found.grids[place.facet].probed[place.across, place.up] = reading.holds
        self.found.readings |= readings
        for facet in self.found.grids:
            self._learn_noise(facet)
            while self._run_doubtful(facet) or self._halve(facet):
                pass
        return any(one.holds is (not said[place]) for place, one in readings.items())

    def _run_doubtful(self, facet: Facet) -> bool:
        """Run what was inferred about cells in which a place is denied; return whether any is."""
        nodes = {n: self._place(facet, n) for n in self.found.grids[facet].doubtful()}
        if not nodes or self.surveyor.cost_s(list(nodes.values()), 1) > self._left_s:
            return False
        self._keep(facet, nodes, self.surveyor.read(list(nodes.values()), 1))
        return True

    @property
    def _left_s(self) -> float:
        return self.budget_s - self._reserve_s - self.surveyor.spent_s

    @property
    def _reserve_s(self) -> float:
        """What the random places should cost: as much as points so far, each."""
        count = len(self.found.readings)
        each_s = self.surveyor.spent_s / count if count else 0.0
        return self._sets_to_come * 2 * self.spending.checks_a_side * each_s

    def _first(self, facet: Facet) -> None:
        """Run the coarse grid of a facet, and learn how noisy its margins are."""
        grid = Grid(self.spending.coarse_cells, self.halvings)
        self.found.grids[facet] = grid
        places = {node: self._place(facet, node) for node in grid.coarse_nodes()}
        is_first = not self.found.readings
        # A first look is always had: a map without a point would say nothing.
        if not is_first and self.surveyor.cost_s(list(places.values()), 1) > self._left_s:
            del self.found.grids[facet]
            self.found.left_out.append(facet)
            return
        readings = self.surveyor.read(list(places.values()), 1)
        on_border = self._on_border(grid, places, readings)
        near = sorted(
            (place for place in places.values() if math.isfinite(readings[place].margin)),
            key=lambda place: (place not in on_border, abs(readings[place].margin), place),
        )[: self.settings.noise_points]
        repeated = self.surveyor.read(near, self.settings.replicates)
        self.found.noise[facet] = self._noise(repeated.values())
        self._keep(facet, places, readings | repeated)

    @staticmethod
    def _on_border(
        grid: Grid, places: dict[Node, Place], readings: dict[Place, Reading]
    ) -> set[Place]:
        """Return the places at the corners of cells whose corners differ."""
        corners = [[places[node] for node in cell.corners] for cell in grid.leaves]
        differing = [own for own in corners if len({readings[p].holds for p in own}) > 1]
        return {place for own in differing for place in own}

    def _noise(self, readings: Iterable[Reading]) -> float:
        """Return the margin up to which another run may say otherwise, where chance has a say."""
        margins = [[m for m in one.margins if math.isfinite(m)] for one in readings]
        variances = [statistics.variance(own) for own in margins if len(set(own)) > 1]
        spread = math.sqrt(statistics.fmean(variances)) if variances else 0.0
        return self.settings.noise_deviations * spread

    def _learn_noise(self, facet: Facet) -> None:
        """Learn a facet's noise from all of its replicates, and mark what is within it."""
        own = {p: one for p, one in self.found.readings.items() if p.facet == facet}
        noise = self.found.noise[facet] = self._noise(own.values())
        unsure = {place for place, one in own.items() if self._is_unsure(one, noise)}
        grid = self.found.grids[facet]
        inferred = grid.unsure - grid.found.keys()
        grid.unsure = inferred | {n for n in grid.found if self._place(facet, n) in unsure}
        grid.unsure_probes = {p for p in grid.probed if Place(facet, *p) in unsure}

    @staticmethod
    def _is_unsure(one: Reading, noise: float) -> bool:
        """Return whether a reading's mean is within its noise, and chance has a say in it.

        It has none where all replicates are the same, nor in a tie of counts: two flows without a
        drop have a margin of nought.
        """
        own = one.margins
        is_chance = one.margin != 0 if len(own) == 1 else len(set(own)) > 1
        return is_chance and abs(one.margin) < noise / math.sqrt(len(own))

    def _keep(
        self, facet: Facet, places: dict[Node, Place], readings: dict[Place, Reading]
    ) -> None:
        """Keep what was read at nodes, again with replicates where one is not to be believed."""
        readings = self._believed(readings)
        grid = self.found.grids[facet]
        for node, place in places.items():
            grid.found[node] = readings[place].holds
            self.found.readings[place] = readings[place]
        self._learn_noise(facet)

    def _believed(self, readings: dict[Place, Reading]) -> dict[Place, Reading]:
        """Return the readings, those within their facet's noise by replicates."""
        unsure = [
            place
            for place, one in readings.items()
            if len(one.margins) == 1 and self._is_unsure(one, self.found.noise[place.facet])
        ]
        return readings | self.surveyor.read(unsure, self.settings.replicates)

    def _halve(self, facet: Facet) -> bool:
        """Halve the widest cells on a facet's border that the budget allows; return if any."""
        grid = self.found.grids[facet]
        cells: list[Cell] = []
        nodes: dict[Node, Place] = {}
        for cell in grid.to_halve():
            more = {node: self._place(facet, node) for node in grid.nodes_of(cell)}
            if self.surveyor.cost_s(list((nodes | more).values()), 1) > self._left_s:
                break
            nodes |= more
            cells.append(cell)
        self._keep(facet, nodes, self.surveyor.read(list(nodes.values()), 1))
        for cell in cells:
            grid.halve(cell)
        return bool(cells)

    def _check(self) -> None:
        """Run fresh points on both sides of the border, none within its width."""
        drawn = {side: self._drawn(side) for side in ("holds", "fails")}
        places = [place for side in drawn.values() for place in side]
        readings = self._believed(self.surveyor.read(places, 1))
        for side, own_places in drawn.items():
            self.found.checks += [Check(p, side == "holds", readings[p]) for p in own_places]

    @cached_property
    def _random(self) -> np.random.Generator:
        seed = int.from_bytes(sha256(self.name.encode()).digest()[:4], "big")
        return np.random.Generator(np.random.PCG64([self.settings.seed, seed]))

    def _drawn(self, side: str) -> list[Place]:
        """Return random places on a side, as many as the tier has of it."""
        facets = list(self.found.grids)
        places: list[Place] = []
        for _ in range(_MOST_DRAWS if facets else 0):
            if len(places) == self.spending.checks_a_side:
                break
            facet = facets[int(self._random.integers(len(facets)))]
            across, up = (round(float(share), 4) for share in self._random.random(2))
            if self.found.grids[facet].at(across, up) == side:
                places.append(Place(facet, across, up))
        return places
