"""The grid of a panel: cells that are halved where the verdict changes, and what follows.

The bisection is our own, and no learner of the library `adaptive`: those pick points by the loss of
a number over triangles, and a verdict is a word that may be missing. Our points lie on the nodes of
the full grid that they spare, so that the saving is counted and not estimated; they come in sets,
which cost less to judge; and a tier of finer cells runs the points of a coarser one again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, get_args

from replication.explore.maps.sampler import PointResult
from replication.explore.maps.space import Panel, Point

#: Along x and y, in steps of the full grid.
Node = tuple[int, int]
Side = Literal["holds", "fails", "border", "unknown"]

#: Share of the lines along an axis that must cross the boundary for the axis to have a threshold.
_LEAST_SHARE = 0.5


@dataclass(frozen=True, order=True)
class Cell:
    """A square of the grid: its lowest node, and its side in steps of the full grid."""

    i: int
    j: int
    step: int

    @property
    def corners(self) -> list[Node]:
        """Its nodes, counter-clockwise."""
        i, j, s = self.i, self.j, self.step
        return [(i, j), (i + s, j), (i + s, j + s), (i, j + s)]

    @property
    def edges(self) -> list[tuple[Node, Node]]:
        """Its edges, each by its ends."""
        corners = self.corners
        return [*pairwise(corners), (corners[3], corners[0])]

    @property
    def between(self) -> list[Node]:
        """The nodes on its edges between corners, where smaller cells may lie beside it."""
        i, j, s = self.i, self.j, self.step
        along = range(1, s)
        return [
            node for n in along for node in ((i + n, j), (i + n, j + s), (i, j + n), (i + s, j + n))
        ]

    @property
    def quarters(self) -> list[Cell]:
        """The cells of half its side."""
        half = self.step // 2
        return [Cell(self.i + a, self.j + b, half) for a in (0, half) for b in (0, half)]


@dataclass
class Grid:
    """The grid of one panel.

    Attributes
    ----------
    results
        What was found at points, those of other panels too.
    probes
        Points that were run within cells, to try the grid.
    noise
        The margin up to which a single run is within the noise (a mean: by the root of n less).
    inferred, inferred_unsure
        Verdicts at nodes between two of one verdict, and those of them that are within the noise.
    leaves
        The cells, none inside another.
    """

    panel: Panel
    coarse_cells: int
    halvings: int
    results: Mapping[Point, PointResult]
    probes: list[Point] = field(default_factory=list)
    noise: float = 0.0
    inferred: dict[Node, bool | None] = field(default_factory=dict)
    inferred_unsure: set[Node] = field(default_factory=set)
    leaves: set[Cell] = field(default_factory=set)

    def __post_init__(self) -> None:
        step = 2**self.halvings
        self.leaves = {
            Cell(i, j, step) for i in range(0, self.size, step) for j in range(0, self.size, step)
        }

    @property
    def size(self) -> int:
        """Steps of the full grid along an axis."""
        return self.coarse_cells << self.halvings

    def coarse_points(self) -> list[Point]:
        """Return the points of the first grid."""
        shares = [number / self.coarse_cells for number in range(self.coarse_cells + 1)]
        return [Point(self.panel, x, y) for y in shares for x in shares]

    def point(self, node: Node) -> Point:
        """Return the point at a node."""
        return Point(self.panel, node[0] / self.size, node[1] / self.size)

    def result(self, node: Node) -> PointResult | None:
        """Return what was found at a node; None where it was not run."""
        return self.results.get(self.point(node))

    def verdict(self, node: Node) -> bool | None:
        """Return the verdict at a node, run or inferred; None where nothing can be said."""
        result = self.result(node)
        return self.inferred.get(node) if result is None else result.holds

    def is_unsure(self, node: Node) -> bool:
        """Return whether the verdict at a node is within the noise."""
        result = self.result(node)
        return node in self.inferred_unsure if result is None else result.is_unsure(self.noise)

    def learn_noise(self, deviations: float) -> None:
        """Set the noise to so many standard deviations of the panel's replicates that differ."""
        margins = [
            [margin for margin in one.margins if math.isfinite(margin)]
            for point, one in self.results.items()
            if point.panel == self.panel
        ]
        variances = [statistics.variance(own) for own in margins if len(set(own)) > 1]
        self.noise = deviations * math.sqrt(statistics.fmean(variances)) if variances else 0.0

    def side(self, cell: Cell) -> Side:
        """Return on which side of the boundary a cell lies, by all that was run in it.

        What is within the noise is on the boundary: a claim that holds in one run and fails in the
        next does neither there.
        """
        seen = {self.verdict(corner) for corner in cell.corners} - {None}
        # Each draw of a random point asks this: corners that differ need no look at the edges.
        if len(seen) == 2:
            return "border"
        run = [self.result(node) for node in cell.between]
        seen |= {one.holds for one in run if one is not None} - {None}
        if not seen:
            return "unknown"
        unsure = any(map(self.is_unsure, [*cell.corners, *cell.between]))
        if len(seen) == 2 or unsure or self._is_mixed(cell):
            return "border"
        return "holds" if seen == {True} else "fails"

    def to_halve(self) -> list[Cell]:
        """Return the widest cells on the boundary that may be halved, in their order.

        Of a cell that is within the noise at all of its corners, the half is no better known.
        """
        wide = [
            cell
            for cell, side in self.sides().items()
            if cell.step > 1 and side == "border" and not all(map(self.is_unsure, cell.corners))
        ]
        widest = max((cell.step for cell in wide), default=0)
        return [cell for cell in wide if cell.step == widest]

    def doubtful(self) -> list[Point]:
        """Return the corners to run of cells where a probe or a node contradicts the inferred."""
        cells = {self.cell_at(probe.x, probe.y) for probe in self.probes if self._is_denied(probe)}
        for (i, j), inferred in self.inferred.items():
            if self.result((i, j)) is not None and self.verdict((i, j)) is not inferred:
                cells |= {
                    self.cell_at(x / self.size, y / self.size)
                    for x in (i - 0.5, i + 0.5)
                    for y in (j - 0.5, j + 0.5)
                    if 0 < x < self.size and 0 < y < self.size
                }
        corners = sorted({corner for cell in cells for corner in cell.corners})
        return [self.point(node) for node in corners if self.result(node) is None]

    def _is_denied(self, probe: Point) -> bool:
        result = self.results[probe]
        corners = self.cell_at(probe.x, probe.y).corners
        denied = result.holds is not None and (not result.holds) in map(self.verdict, corners)
        return denied or result.is_unsure(self.noise)

    def _is_mixed(self, cell: Cell) -> bool:
        # A denied probe within a step of a cell that cannot be halved any more: mixed verdicts.
        i, j, end = cell.i - 1, cell.j - 1, cell.step + 2
        # Every cell asks this: most probes are far off, and need no look at their own cell.
        return any(
            0 <= probe.x * self.size - i <= end
            and 0 <= probe.y * self.size - j <= end
            and self._is_denied(probe)
            for probe in self.probes
        )

    def points_to_halve(self, cell: Cell) -> list[Point]:
        """Return the points to run before a cell is halved: middles of it and of mixed edges."""
        wanted = [_middle(cell.corners[0], cell.corners[2])]
        wanted += [_middle(*edge) for edge in cell.edges if not self._agree(*edge)]
        return [self.point(node) for node in wanted if self.result(node) is None]

    def _agree(self, one: Node, other: Node) -> bool:
        same_verdict = self.verdict(one) is self.verdict(other)
        return same_verdict and self.is_unsure(one) is self.is_unsure(other)

    def halve(self, cell: Cell) -> None:
        """Put the quarters of a cell in its place."""
        for one, other in cell.edges:
            if self._agree(one, other):
                middle = _middle(one, other)
                self.inferred.setdefault(middle, self.verdict(one))
                if self.is_unsure(one):
                    self.inferred_unsure.add(middle)
        self.leaves.remove(cell)
        self.leaves.update(cell.quarters)

    def sides(self) -> dict[Cell, Side]:
        """Return on which side of the boundary each cell lies."""
        return {cell: self.side(cell) for cell in sorted(self.leaves)}

    def area(self) -> dict[Side, float]:
        """Return the share of the area on each side."""
        shares: dict[Side, float] = dict.fromkeys(get_args(Side), 0.0)
        for cell, side in self.sides().items():
            shares[side] += (cell.step / self.size) ** 2
        return shares

    def share(self) -> float | None:
        """Return the share of the known area in which it holds; None where nothing is known.

        A cell on the boundary counts by its corners.
        """
        holds = known = 0.0
        for cell in sorted(self.leaves):
            seen = [v for v in map(self.verdict, cell.corners) if v is not None]
            if seen:
                area = (cell.step / self.size) ** 2
                known += area
                holds += area * seen.count(True) / len(seen)
        return holds / known if known else None

    def width(self) -> float:
        """Return the widest cell on the boundary, as a share of an axis; 0 without any."""
        wide = (cell.step for cell, side in self.sides().items() if side == "border")
        return max(wide, default=0) / self.size

    def at(self, x: float, y: float) -> Side:
        """Return on which side a point lies, 0 to 1 each way."""
        return self.side(self.cell_at(x, y))

    def cell_at(self, x: float, y: float) -> Cell:
        """Return the cell in which a point lies."""
        i, j = (min(int(share * self.size), self.size - 1) for share in (x, y))
        steps = [2**number for number in range(self.halvings + 1)]
        cells = (Cell(i - i % step, j - j % step, step) for step in steps)
        return next(cell for cell in cells if cell in self.leaves)

    def crossings(self, axis: int, at: float) -> list[tuple[float, bool]]:
        """Return where the verdict changes along a line, and whether it holds from there."""
        steps = [(step + 0.5) / self.size for step in range(self.size)]
        sides = [self.at(step, at) if axis == 0 else self.at(at, step) for step in steps]
        known = [(step, side) for step, side in enumerate(sides) if side in ("holds", "fails")]
        return [
            ((last + 1 + first) / 2 / self.size, after == "holds")
            for (last, before), (first, after) in pairwise(known)
            if after != before
        ]

    def boundary_from(self, x: float, y: float, axis: int) -> float | None:
        """Return where along an axis the boundary lies that is nearest to a point, 0 to 1."""
        own, other = (x, y) if axis == 0 else (y, x)
        places = [place for place, _ in self.crossings(axis, other)]
        return min(places, key=lambda place: abs(place - own), default=None)

    def threshold(self, axis: int) -> dict[str, float | bool] | None:
        """Return what an axis must be for the claim to hold; None where there is not one for all.

        Every line that crosses the boundary does so once and in one direction, and half of all
        lines do.
        """
        lines = [self.crossings(axis, (step + 0.5) / self.size) for step in range(self.size)]
        places = [place for line in lines for place, _ in line]
        directions = {above for line in lines for _, above in line}
        if max(map(len, lines)) > 1 or len(directions) != 1:
            return None
        if len(places) < _LEAST_SHARE * self.size:
            return None
        median = statistics.median(places)
        (above,) = directions
        return {"above": above, "lowest": min(places), "median": median, "highest": max(places)}


def _middle(one: Node, other: Node) -> Node:
    return (one[0] + other[0]) // 2, (one[1] + other[1]) // 2
