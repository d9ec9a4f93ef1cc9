"""Published tables: what points of an experiment their rows and columns stand for, and how close is
close."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.claim_model import Flows, Links, Where
from replication.study.model import (
    LINE,
    OPTIONAL,
    WHOLE,
    Document,
    Identifier,
    Label,
    Text,
    Window,
    one_of,
)


class Spread(Document):
    """The printed standard deviations of several published runs, by which their mean is judged."""

    column: Identifier
    """The table's column that has them (`over_runs: standard_deviation`)."""
    runs: Annotated[int, Field(ge=2, le=10**6), WHOLE]
    """How many runs were published. Where that is not printed their standard deviation says too
    little: give `relative` or `absolute`, and say so in `reason`."""


class Tolerance(Document):
    """How close is close, set before any run was looked at.

    `relative` and `absolute` are half-widths of the band around the published value; `spread` gives
    it the 95 % band of a difference of two means, of the published runs and of ours. With `factor`
    the value is that of one published run: it has to be one that our runs could give, and may
    differ from their mean by this factor (`verdicts.published_run`).
    """

    relative: Annotated[float, Field(gt=0, lt=1)] | None = None
    absolute: Annotated[float, Field(gt=0)] | None = None
    factor: Annotated[float, Field(gt=1, le=3)] | None = None
    spread: Spread | None = OPTIONAL
    """`{column, runs}`: the column with the printed standard deviations, and of how many runs."""
    reason: Text

    _one_kind = one_of("relative", "absolute", "factor", "spread")


class Cell(Document):
    """What a published cell means as a quantity of our runs, and how close is close."""

    metric: Identifier
    """See `replicate metrics`."""
    flows: Flows = "tcp"
    """`tcp`, `cbr`, `all`, flow ids, or `{start_order: k}`, the k-th TCP flow to start."""
    aggregate: Literal["sum", "mean", "maximum", "minimum", "pooled", "jain"] = "mean"
    """Over flows: `mean`, `sum`, `maximum`, `minimum`, `pooled` (ratio of sums over all
    packets), `jain`."""
    window_s: Window | None = None
    """[from, to]: only this part of the run, for metrics of the series."""
    links: Links | None = OPTIONAL
    """Monitored links, each with its direction as in the series, `[bottleneck:ab]`, that a metric
    of links is taken over; without it all that are monitored. `aggregate` combines them."""
    factor: Annotated[float, Field(gt=0)] = 1.0
    """What the number is multiplied by to be the metric: 0.5 for a printed round trip of which the
    metric is one way, 8 for bytes."""
    over_runs: Literal["mean", "standard_deviation"] = "mean"
    """What the number is of the runs: their `mean`, or their `standard_deviation` (of a sample,
    n - 1), which takes three replicates."""
    tolerance: Tolerance
    """One of `relative` (0 to 1, of the published value), `absolute` (in the unit of the CSV),
    `spread` (printed standard deviations) and `factor` (above 1, of a number of one published
    run), with `reason` *."""
    monotonic: Literal["increasing", "decreasing"] | None = None
    """`increasing` or `decreasing`: how the column has to run along its rows; the audit checks
    the published numbers against it."""
    label: Label | None = None
    """Head of the column in the report; without it the key's words, or the level's label."""

    @model_validator(mode="after")
    def _spread_of_runs(self) -> Cell:
        if self.over_runs != "mean" and self.tolerance.factor is not None:
            raise ValueError("tolerance: a standard deviation is of several runs and has no factor")
        return self


class TableRow(Document):
    """A published row that is not a factor level; `flows` takes the place of the cells' own."""

    experiment: Identifier | None = None
    where: Where
    flows: Flows | None = None
    label: Label | None = None


class Table(Document):
    """Maps a published table to points of an experiment.

    Every row has a published number in every column but those that `not_printed` names.
    """

    id: Annotated[str, Field(min_length=1, max_length=64), LINE]
    """The `table` of the CSV; text, so `"1"` in quotes."""
    title: Text
    """Title in the report."""
    experiment: Identifier
    """The experiment's id."""
    where: Where = {}
    """Factor to level, or to a list of levels, for the whole table."""
    row_factor: Identifier | None = None
    """The factor whose level keys are the row keys; or else `rows`."""
    rows: dict[Identifier, TableRow] | None = None
    """Map of row key to `{where, experiment, flows, label}`: the points of that row (`where` *), of
    another experiment, the flows it stands for instead of the cell's, and its head in the
    report."""
    column_factor: Identifier | None = None
    """The factor whose level keys are the column keys, with one `cell` for all; or else
    `columns`."""
    cell: Cell | None = None
    """Goes with `column_factor`."""
    columns: dict[Identifier, Cell] | None = None
    """Map of column key to cell."""
    not_printed: dict[Identifier, list[Identifier]] = {}
    """Row key to the columns that the paper leaves empty there; every other cell needs its
    number in the CSV."""
    not_comparable: dict[Identifier, dict[Identifier, Text]] = {}
    """Row key to column key to reason: the number is printed, but of another thing than the
    metric, and is `not testable`."""

    _one_of_rows = one_of("row_factor", "rows")
    _one_of_columns = one_of("column_factor", "columns")

    @model_validator(mode="after")
    def _has_cell(self) -> Table:
        if (self.column_factor is None) != (self.cell is None):
            raise ValueError(f"table {self.id}: cell goes with column_factor")
        columns = self.columns or {}
        for cell in [self.cell] if self.cell else columns.values():
            spread = cell.tolerance.spread
            named = columns.get(spread.column) if spread else None
            if spread and (named is None or named.over_runs == "mean"):
                raise ValueError(
                    f"table {self.id}: tolerance.spread.column: {spread.column!r} is no column of "
                    "standard deviations; give one that has over_runs: standard_deviation"
                )
        return self
