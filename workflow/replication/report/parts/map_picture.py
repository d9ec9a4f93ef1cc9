"""The picture of a map: cells by side, points, the paper's own and theory, as parts of an SVG.

No script draws it: it stands in the page, takes the page's colours and its points are links.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from replication.report.parts.map import Account, Axis, axes_of

#: Ground of the picture and what is left around it for words, in its own units.
SIDE, LEFT, BELOW, ABOVE, RIGHT = 300.0, 58.0, 46.0, 8.0, 14.0
_STEPS = (1, 2, 5)
_MOST_TICKS = 6


@dataclass(frozen=True)
class Tick:
    """A mark of an axis: where it stands, and what it says."""

    at: float
    label: str


@dataclass(frozen=True)
class Cell:
    """A cell of the grid, and its side of the border."""

    x: float
    y: float
    width: float
    height: float
    side: str


@dataclass(frozen=True)
class Point:
    """A point that was run: a symbol by its verdict, a link to its runs."""

    x: float
    y: float
    side: str
    fresh: bool
    wrong: bool
    anchor: str
    words: str


@dataclass(frozen=True)
class Line:
    """A law that is drawn in; `path` in the SVG's own language."""

    path: str
    dash: str
    title: str


@dataclass(frozen=True)
class Picture:
    """The picture of one facet on one engine.

    `paper` is where the paper's own point is drawn; `beyond` says that it lies outside, past there.
    """

    width: ClassVar[float] = LEFT + SIDE + RIGHT
    height: ClassVar[float] = ABOVE + SIDE + BELOW
    left: ClassVar[float] = LEFT
    top: ClassVar[float] = ABOVE
    side: ClassVar[float] = SIDE
    cells: list[Cell]
    points: list[Point]
    lines: list[Line]
    paper: tuple[float, float] | None
    beyond: bool
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    x_label: str
    y_label: str


def picture(account: Account, grid: Mapping[str, Any], anchors: Mapping[int, str]) -> Picture:
    """Return the picture of one facet.

    Parameters
    ----------
    account, grid
        A map on an engine, and one of its grids.
    anchors
        By the place of a point in the account: where the page tells of its runs.
    """
    across, up = axes_of(account)
    paper = grid["paper"]
    return Picture(
        cells=list(_cells(grid)),
        points=list(_points(account, grid, anchors, across, up)),
        lines=list(_lines(grid)),
        paper=None if paper is None else _own(paper["at"]),
        beyond=paper is not None and paper["side"] == "outside",
        x_ticks=[Tick(_x(place), label) for place, label in ticks(across)],
        y_ticks=[Tick(_y(place), label) for place, label in ticks(up)],
        x_label=across.label,
        y_label=up.label,
    )


def _x(place: float) -> float:
    return round(LEFT + SIDE * place, 1)


def _y(place: float) -> float:
    return round(ABOVE + SIDE * (1 - place), 1)


def _own(at: Sequence[float | None]) -> tuple[float, float] | None:
    """Return where the paper's point is drawn, on the edge that is nearest to it if outside."""
    if any(place is None for place in at):
        return None
    across, up = (min(1.0, max(0.0, place)) for place in at if place is not None)
    return _x(across), _y(up)


def _cells(grid: Mapping[str, Any]) -> Iterator[Cell]:
    size = grid["size"]
    for i, j, step, side in grid["leaves"]:
        width = round(SIDE * step / size, 2)
        yield Cell(_x(i / size), _y((j + step) / size), width, width, side)


def _points(
    account: Account,
    grid: Mapping[str, Any],
    anchors: Mapping[int, str],
    across: Axis,
    up: Axis,
) -> Iterator[Point]:
    for number, point in enumerate(account["points"]):
        if point["facet"] != grid["facet"]:
            continue
        holds, expected = point["holds"], point["expected"]
        side = "unknown" if holds is None else "holds" if holds else "fails"
        x, y = point["x"] * across.factor, point["y"] * up.factor
        yield Point(
            x=_x(_place(across, x)),
            y=_y(_place(up, y)),
            side=side,
            fresh=expected is not None,
            wrong=expected is not None and holds is not None and holds is not expected,
            anchor=anchors[number],
            words=f"{across.title} {x:.3g} {across.unit}, {up.title} {y:.3g} {up.unit}: {side}",
        )


def _place(axis: Axis, value: float) -> float:
    if axis.log:
        return math.log(value / axis.low) / math.log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


def _lines(grid: Mapping[str, Any]) -> Iterator[Line]:
    dashes = ("7 4", "2 3", "9 3 2 3")
    for number, law in enumerate(grid["theory"]):
        if len(law["points"]) > 1:
            steps = " L".join(f"{_x(a)} {_y(b)}" for a, b in law["points"])
            yield Line(f"M{steps}", dashes[number % len(dashes)], law["title"])


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return the marks of an axis: positions from 0 to 1 and what they say, round numbers."""
    values = _log_ticks(axis) if axis.log else _even_ticks(axis)
    return [(_place(axis, value), f"{value:g}") for value in values]


def _log_ticks(axis: Axis) -> list[float]:
    powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    slack = 1 + 1e-9
    for steps in (_STEPS, (1, 3), (1,)):
        values = [
            step * 10.0**power
            for power in powers
            for step in steps
            if axis.low / slack <= step * 10.0**power <= axis.high * slack
        ]
        if len(values) <= _MOST_TICKS:
            break
    return values


def _even_ticks(axis: Axis) -> list[float]:
    rough = (axis.high - axis.low) / (_MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough)
    first = math.ceil(axis.low / step)
    return [number * step for number in range(first, math.floor(axis.high / step) + 1)]
