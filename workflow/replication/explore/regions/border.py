"""Borders as numbers: along the axis x, where a claim holds, where it fails, and by how much."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from replication.explore.regions.region_rows import PanelRow, RegionResult
from replication.explore.regions.surface import SURE


class State(StrEnum):
    """What is known of the claim at a place."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    CANNOT_DIFFER = "cannot differ"


@dataclass(frozen=True)
class Stretch:
    """A part of a row in one state: its ends on the axis x, and the range of the quantity in it.

    An end is None where the stretch goes on to the edge of the area.
    """

    state: State
    low: float | None
    high: float | None
    least: float
    most: float


@dataclass(frozen=True)
class Row:
    """The stretches of a panel at one value of the axis y, from the lowest x to the highest.

    `first` and `last` are the quantity at both ends.
    """

    y: float
    stretches: tuple[Stretch, ...]
    first: float
    last: float

    def only(self, state: State) -> Stretch | None:
        """Return the stretch in a state; None if there is none, or more than one."""
        in_state = [stretch for stretch in self.stretches if stretch.state == state]
        return in_state[0] if len(in_state) == 1 else None

    def number(self, gives: str) -> float | None:
        """Return a border or the quantity at an end, as of `Fact.gives`; None without a border."""
        if gives == "first":
            return self.first
        if gives == "last":
            return self.last
        holds = self.only(State.HOLDS)
        if holds is None:
            return None
        return holds.low if gives == "from" else holds.high


def row_at(result: RegionResult, panel: PanelRow, y: float) -> Row:
    """Return the row of a panel that is nearest to a value of the axis y."""
    x_span, y_span = (axis.span() for axis in result.axes)
    cells = len(panel.quantity)
    number = min(cells - 1, max(0, int(y_span.position(y) * cells)))
    quantity, at = panel.quantity[number], 0
    stretches = []
    for state, group in groupby(_states(panel, number)):
        end = at + len(list(group))
        stretches.append(
            Stretch(
                state,
                low=x_span.at(at / cells) if at else None,
                high=x_span.at(end / cells) if end < cells else None,
                least=min(quantity[at:end]),
                most=max(quantity[at:end]),
            )
        )
        at = end
    y_middle = y_span.at((number + 0.5) / cells)
    return Row(y_middle, tuple(stretches), first=quantity[0], last=quantity[-1])


def _states(panel: PanelRow, number: int) -> Iterator[State]:
    alike = panel.alike[number] if panel.alike else []
    for cell, probability in enumerate(panel.probability[number]):
        if alike and alike[cell]:
            yield State.CANNOT_DIFFER
        elif probability > SURE:
            yield State.HOLDS
        elif probability < 1 - SURE:
            yield State.FAILS
        else:
            yield State.UNDECIDED


def told_rows(result: RegionResult, panel: PanelRow) -> list[Row]:
    """Return the rows that words tell: at the paper's own y or the middle, and at both ends of y.

    A single one where all rows of the panel are alike, from the same x on to the same x.
    """
    y_axis = result.axes[1]
    span = y_axis.span()
    y = y_axis.paper if y_axis.has_paper else None
    named = row_at(result, panel, span.at(0.5) if y is None else y)
    if is_same_everywhere(panel):
        return [named]
    ends = [row_at(result, panel, span.at(share)) for share in (0.0, 1.0)]
    return [named, *(row for row in ends if row.y != named.y)]


def is_same_everywhere(panel: PanelRow) -> bool:
    """Return whether each place of the axis x is in one state over the whole axis y."""
    first, *others = (list(_states(panel, number)) for number in range(len(panel.probability)))
    return all(states == first for states in others)
