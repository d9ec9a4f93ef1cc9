"""The border of a facet in numbers: what an axis must be, and how far off a point lies."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from replication.sensitivity.maps.grid import Grid, Side, crossings

#: Share of the lines along an axis that a threshold must cross to be told.
_LEAST_SHARE = 0.5


@dataclass(frozen=True)
class Threshold:
    """What an axis must be for the sentence to hold: positions, 0 to 1.

    Attributes
    ----------
    above
        Whether it holds above the threshold, or below.
    lowest, median, highest
        Over the lines along the axis that cross the border.
    """

    above: bool
    lowest: float
    median: float
    highest: float


def threshold(grid: Grid, axis: int) -> Threshold | None:
    """Return the threshold of an axis (0 across, 1 up); None where there is not one for all.

    Every line that crosses the border does so once and in one direction, and half of all lines do.
    """
    found: list[tuple[float, bool]] = []
    for line in _lines(grid, axis):
        crossed = crossings(line)
        if len(crossed) > 1:
            return None
        found += crossed
    if len(found) < _LEAST_SHARE * grid.size or len({above for _, above in found}) != 1:
        return None
    places = [place / grid.size for place, _ in found]
    return Threshold(found[0][1], min(places), statistics.median(places), max(places))


def to_border(grid: Grid, across: float, up: float, axis: int) -> float | None:
    """Return where along an axis the border lies that is nearest to a point, 0 to 1."""
    line = grid.row(up) if axis == 0 else grid.column(across)
    own = across if axis == 0 else up
    places = [place / grid.size for place, _ in crossings(line)]
    return min(places, key=lambda place: abs(place - own), default=None)


def _lines(grid: Grid, axis: int) -> Sequence[list[Side]]:
    middles = [(step + 0.5) / grid.size for step in range(grid.size)]
    return [grid.row(m) if axis == 0 else grid.column(m) for m in middles]
