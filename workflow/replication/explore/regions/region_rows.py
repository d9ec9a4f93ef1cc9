"""A region's result as data: `run_region` writes it as JSON, pages and notebooks read it.

Places along an axis are 0 to 1; a number that is undefined, or that the paper lacks, is None.
"""

from dataclasses import dataclass
from typing import get_type_hints

from replication.base.table import REGION_COLUMNS
from replication.study.variation import Range

#: Ends of straight pieces: x, y, x, y, each 0 to 1.
Segments = list[tuple[float, float, float, float]]
#: A row for each y, a column for each x, from the lowest.
Cells = list[list[float]]


@dataclass(frozen=True, kw_only=True)
class Shares:
    """The shares of an area in which a claim holds, fails, and is undecided; they add up to 1.

    Where the alternatives cannot differ the claim neither holds nor fails; this share is given
    apart too.
    """

    holds: float
    fails: float
    undecided: float
    cannot_differ: float

    def rounded(self) -> dict[str, float]:
        """Return the shares by their names, as they are written."""
        return {name: round(getattr(self, name), 6) for name in SHARES}

    @property
    def open(self) -> float:
        """The share that is undecided though the alternatives can differ."""
        return self.undecided - self.cannot_differ


SHARES = tuple(get_type_hints(Shares))


@dataclass(frozen=True)
class AxisRow:
    """An axis of the area."""

    id: str
    title: str
    unit: str
    low: float
    high: float
    log: bool
    #: The paper's own value.
    paper: float | None

    def span(self, factor: float = 1.0) -> Range:
        """Return the range of the axis times a factor."""
        return Range(low=self.low * factor, high=self.high * factor, log=self.log)

    @property
    def has_paper(self) -> bool:
        """Whether the paper's own value lies on the axis."""
        return self.paper is not None and 0 <= self.span().position(self.paper) <= 1


@dataclass(frozen=True)
class LevelAxisRow:
    """An axis without numbers; `levels` has the titles by key."""

    id: str
    title: str
    levels: dict[str, str]


@dataclass(frozen=True)
class Measure:
    """What the compared quantity is in words; a value times `factor` is shown in `unit`."""

    noun: str
    factor: float = 1.0
    unit: str = ""


@dataclass(frozen=True)
class LawAtPaper:
    """The share of the link that a law gives at the paper's own point."""

    title: str
    share: float


@dataclass(frozen=True)
class LawRow:
    """A law in a panel: where its share is crossed; nowhere, without segments."""

    title: str
    source: str
    condition: str
    segments: Segments


@dataclass(frozen=True)
class TraitRow:
    """A known difference of engines that shapes a panel: entry of engine_differences.yaml."""

    entry: str
    effect: str


@dataclass(frozen=True)
class PaperPoint:
    """Where the paper's own point lies in a panel; no probability outside of the area."""

    at: list[float | None]
    #: That the claim holds there.
    probability: float | None
    cannot_differ: bool


@dataclass(frozen=True)
class PointRow:
    """A run of a point: its place on the axes, and the compared quantity."""

    panel: list[str]
    x: float
    y: float
    quantity: float | None
    scenarios: list[str]
    #: Why the quantity is undefined, or which flow is starved.
    note: str
    #: Whether its runs are without congestion, so that the alternatives are alike.
    cannot_differ: bool


@dataclass(frozen=True)
class ValidationRow:
    """A random point: the mean of its runs, compared with the prediction of the surface."""

    panel: list[str]
    x: float
    y: float
    #: Whether the mean meets the claim, and whether it is inside the predicted 90 % interval.
    holds: bool
    covered: bool
    cannot_differ: bool
    #: Whether the surface is in the state of the runs there.
    state_predicted: bool
    #: Predicted probability that the claim holds.
    probability: float
    #: From the prediction, in standard deviations.
    deviations: float | None
    runs: list[PointRow]


@dataclass(frozen=True, kw_only=True)
class PanelRow(Shares):
    """The surface of a panel in cells, and what is drawn on it."""

    panel: list[str]
    #: Whether all runs tie.
    ties: bool
    quantity: Cells
    #: That the claim holds.
    probability: Cells
    #: 1 in the cells where the alternatives cannot differ; empty if there are none.
    alike: list[list[int]]
    contour: Segments
    band: Segments
    paper: PaperPoint | None
    laws: list[LawRow]
    traits: list[TraitRow]
    #: How many runs have a note, of how many.
    starved: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class RegionResult(Shares):
    """The result of a region on an engine."""

    region: str
    engine: str
    tier: str
    title: str
    study: str
    #: The study's claim; empty if the region has its own.
    claim: str
    quote: str
    place: str
    reading: str
    #: The claim's tests in words.
    asked: list[str]
    measure: Measure
    #: Why the region differs from the paper.
    reason: str
    #: Of the quantity, between which the claim holds.
    bounds: tuple[float | None, float | None]
    #: x and y.
    axes: tuple[AxisRow, AxisRow]
    level_axes: list[LevelAxisRow]
    laws_at_paper: list[LawAtPaper]
    panels: list[PanelRow]
    #: Panels beyond the budget.
    left_out: list[list[str]]
    points: list[PointRow]
    validation: list[ValidationRow]
    ties_everywhere: bool
    #: Share of the validation points inside their 90 % interval.
    coverage_90: float | None
    brier: float | None
    validation_points: int
    #: Expected, with validation.
    cpu_s: float
    input_hashes: dict[str, str]

    def row(self) -> dict[str, object]:
        """Return its row of regions.csv."""
        axes = [axis.id for axis in self.axes] + [axis.id for axis in self.level_axes]
        fields = vars(self) | {
            "axes": "; ".join(axes),
            "points": len(self.points),
            "cpu_minutes": round(self.cpu_s / 60, 2),
        }
        return {name: fields[name] for name in REGION_COLUMNS}
