"""The grid of a facet: cells that are halved where the verdict changes, and what follows.

The bisection is our own, and no learner of the library `adaptive`: those pick points by the loss of
a number over triangles, and a verdict is a word that may be missing. Our points lie on the nodes of
the full grid that they spare, so that the saving is counted and not estimated; they come in sets,
which cost less to judge; and a tier of finer cells runs the points of a coarser one again.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

#: Across and up, in steps of the full grid.
Node = tuple[int, int]
#: Whether the sentence holds; None where nothing can be said.
Verdict = bool | None
Side = Literal["holds", "fails", "border", "unknown"]

#: Share of the lines along an axis that a threshold must cross to be told.
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
    def quarters(self) -> list[Cell]:
        """The cells of half its side."""
        half = self.step // 2
        return [Cell(self.i + a, self.j + b, half) for a in (0, half) for b in (0, half)]


@dataclass
class Grid:
    """The grid of one facet.

    Attributes
    ----------
    coarse_cells, halvings
        Cells of the first grid along an axis, and how often those on the border are halved.
    found
        Verdicts at nodes that were run.
    inferred
        At nodes between two of one verdict, taken to have it too: a border crosses an edge once.
    probed
        Verdicts at places within cells, 0 to 1 each way, that were run to try the grid.
    unsure, unsure_probes
        Nodes and places whose margin is within the noise: another run may say otherwise.
    leaves
        The cells, none inside another.
    """

    coarse_cells: int
    halvings: int
    found: dict[Node, Verdict] = field(default_factory=dict)
    inferred: dict[Node, Verdict] = field(default_factory=dict)
    probed: dict[tuple[float, float], Verdict] = field(default_factory=dict)
    unsure: set[Node] = field(default_factory=set)
    unsure_probes: set[tuple[float, float]] = field(default_factory=set)
    leaves: set[Cell] = field(default_factory=set)

    def __post_init__(self) -> None:
        step = 2**self.halvings
        places = range(0, self.size, step)
        self.leaves = {Cell(i, j, step) for i in places for j in places}

    @property
    def size(self) -> int:
        """Steps of the full grid along an axis."""
        return self.coarse_cells << self.halvings

    @property
    def full_points(self) -> int:
        """Nodes of the full grid."""
        return (self.size + 1) ** 2

    def coarse_nodes(self) -> list[Node]:
        """Return the nodes of the first grid."""
        places = range(0, self.size + 1, 2**self.halvings)
        return [(i, j) for j in places for i in places]

    def verdict(self, node: Node) -> Verdict:
        """Return the verdict at a node, run or inferred."""
        return self.found.get(node, self.inferred.get(node))

    def side(self, cell: Cell) -> Side:
        """Return on which side of the border a cell lies, by all that was run in it.

        What is within the noise is on the border: a sentence that holds in one run and fails in
        the next does neither there.
        """
        corners = cell.corners
        seen = {self.verdict(corner) for corner in corners} - {None}
        # Each draw of a random place asks this: corners that differ need no look at the edges.
        if len(seen) == 2:
            return "border"
        edges = list(_on_edges(cell))
        seen |= {self.found.get(node) for node in edges} - {None}
        if not seen:
            return "unknown"
        if len(seen) == 2 or not self.unsure.isdisjoint([*corners, *edges]) or self._is_mixed(cell):
            return "border"
        return "holds" if seen == {True} else "fails"

    def to_halve(self) -> list[Cell]:
        """Return the widest cells on the border that may be halved, in their order.

        Of a cell that is within the noise at all of its corners, the half is no better known.
        """
        wide = [
            cell
            for cell in self.leaves
            if cell.step > 1 and self.side(cell) == "border" and set(cell.corners) - self.unsure
        ]
        widest = max((cell.step for cell in wide), default=0)
        return sorted(cell for cell in wide if cell.step == widest)

    def doubtful(self) -> list[Node]:
        """Return nodes to run since what is inferred there may be wrong.

        They are the corners of cells in which a probe, and of cells beside nodes at which a run,
        found what was not to be expected.
        """
        cells = {self._cell_at(*place) for place in self.probed if self._is_denied(place)}
        for node, inferred in self.inferred.items():
            if self.found.get(node, inferred) is not inferred:
                cells.update(self._cells_beside(node))
        return sorted({corner for cell in cells for corner in cell.corners} - self.found.keys())

    def _cells_beside(self, node: Node) -> Iterator[Cell]:
        for i in (node[0] - 0.5, node[0] + 0.5):
            for j in (node[1] - 0.5, node[1] + 0.5):
                if 0 < i < self.size and 0 < j < self.size:
                    yield self._cell_at(i / self.size, j / self.size)

    def _is_denied(self, place: tuple[float, float]) -> bool:
        """Return whether a probe found what corners of its cell do not say, or nothing for sure."""
        if place in self.unsure_probes:
            return True
        told = self.probed[place]
        corners = self._cell_at(*place).corners
        return told is not None and (not told) in map(self.verdict, corners)

    def _is_mixed(self, cell: Cell) -> bool:
        """Return whether a probe in a cell, or within a step of it, is denied by its corners.

        Where a cell cannot be halved any more, no border is to be seen: verdicts are mixed there.
        """
        i, j, end = cell.i - 1, cell.j - 1, cell.step + 2
        # Every cell asks this: most probes are far off, and need no look at their own cell.
        return any(
            0 <= place[0] * self.size - i <= end
            and 0 <= place[1] * self.size - j <= end
            and self._is_denied(place)
            for place in self.probed
        )

    def nodes_of(self, cell: Cell) -> list[Node]:
        """Return the nodes that have to be run before a cell is halved.

        Its middle, and the middles of edges whose ends differ.
        """
        wanted = [_middle(cell.corners[0], cell.corners[2])]
        for one, other in _edges(cell):
            if not self._agree(one, other):
                wanted.append(_middle(one, other))
        return [node for node in wanted if node not in self.found]

    def _agree(self, one: Node, other: Node) -> bool:
        """Return whether two nodes say the same, as surely."""
        same_verdict = self.verdict(one) is self.verdict(other)
        return same_verdict and (one in self.unsure) is (other in self.unsure)

    def halve(self, cell: Cell) -> None:
        """Put the quarters of a cell in its place."""
        for one, other in _edges(cell):
            if self._agree(one, other):
                middle = _middle(one, other)
                self.inferred.setdefault(middle, self.verdict(one))
                if one in self.unsure and middle not in self.found:
                    self.unsure.add(middle)
        self.leaves.remove(cell)
        self.leaves.update(cell.quarters)

    def area(self) -> Mapping[Side, float]:
        """Return the share of the area on each side."""
        shares: dict[Side, float] = {"holds": 0.0, "fails": 0.0, "border": 0.0, "unknown": 0.0}
        for cell in sorted(self.leaves):
            shares[self.side(cell)] += (cell.step / self.size) ** 2
        return shares

    def share(self) -> float | None:
        """Return the share of the known area in which it holds; None where nothing is known.

        A cell on the border counts by its corners.
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
        """Return the widest cell on the border, as a share of an axis; 0 without any."""
        wide = (cell.step for cell in self.leaves if self.side(cell) == "border")
        return max(wide, default=0) / self.size

    def at(self, across: float, up: float) -> Side:
        """Return on which side a place lies, 0 to 1 each way."""
        return self.side(self._cell_at(across, up))

    def _cell_at(self, across: float, up: float) -> Cell:
        i, j = (min(int(share * self.size), self.size - 1) for share in (across, up))
        return next(cell for cell in self._around(i, j) if cell in self.leaves)

    def _around(self, i: int, j: int) -> Iterator[Cell]:
        step = 1
        while step <= 2**self.halvings:
            yield Cell(i - i % step, j - j % step, step)
            step *= 2

    def line(self, axis: int, place: float) -> list[Side]:
        """Return the sides along a line of an axis (0 across, 1 up), a word a step."""
        steps = [(step + 0.5) / self.size for step in range(self.size)]
        return [self.at(step, place) if axis == 0 else self.at(place, step) for step in steps]


def _edges(cell: Cell) -> Iterator[tuple[Node, Node]]:
    corners = cell.corners
    return zip(corners, [*corners[1:], corners[0]], strict=True)


def _on_edges(cell: Cell) -> Iterator[Node]:
    """Yield the nodes on a cell's edges, where smaller cells may lie beside it."""
    for along in range(1, cell.step):
        yield from ((cell.i + along, cell.j), (cell.i + along, cell.j + cell.step))
        yield from ((cell.i, cell.j + along), (cell.i + cell.step, cell.j + along))


def _middle(one: Node, other: Node) -> Node:
    return (one[0] + other[0]) // 2, (one[1] + other[1]) // 2


def crossings(sides: Iterable[Side]) -> list[tuple[float, bool]]:
    """Return where the verdict changes along a line, in steps, and whether it holds from there."""
    found = []
    before: tuple[int, Side] | None = None
    for number, side in enumerate(sides):
        if side not in ("holds", "fails"):
            continue
        if before is not None and before[1] != side:
            found.append(((before[0] + 1 + number) / 2, side == "holds"))
        before = number, side
    return found


@dataclass(frozen=True)
class Threshold:
    """What an axis must be for the sentence to hold, over the lines that cross the border."""

    above: bool
    lowest: float
    median: float
    highest: float


def threshold(grid: Grid, axis: int) -> Threshold | None:
    """Return the threshold of an axis (0 across, 1 up); None where there is not one for all.

    Every line that crosses the border does so once and in one direction, and half of all lines do.
    """
    found: list[tuple[float, bool]] = []
    for step in range(grid.size):
        crossed = crossings(grid.line(axis, (step + 0.5) / grid.size))
        if len(crossed) > 1:
            return None
        found += crossed
    if len(found) < _LEAST_SHARE * grid.size or len({above for _, above in found}) != 1:
        return None
    places = [place / grid.size for place, _ in found]
    return Threshold(found[0][1], min(places), statistics.median(places), max(places))


def to_border(grid: Grid, across: float, up: float, axis: int) -> float | None:
    """Return where along an axis the border lies that is nearest to a point, 0 to 1."""
    own, other = (across, up) if axis == 0 else (up, across)
    places = [place / grid.size for place, _ in crossings(grid.line(axis, other))]
    return min(places, key=lambda place: abs(place - own), default=None)
