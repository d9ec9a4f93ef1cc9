"""Published tables: what points of an experiment their rows and columns stand for, and how close is
close."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.change import Changes
from replication.study.claim_model import Flows, Where
from replication.study.model import LINE, Document, Identifier, Text, Window


class Tolerance(Document):
    """Half-width of the band around the published value, set before any run was looked at."""

    relative: Annotated[float, Field(gt=0, lt=1)] | None = None
    absolute: Annotated[float, Field(gt=0)] | None = None
    reason: Text
    changed: Changes = []

    @model_validator(mode="after")
    def _one_kind(self) -> Tolerance:
        if (self.relative is None) == (self.absolute is None):
            raise ValueError("give exactly one of relative and absolute")
        return self


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
    tolerance: Tolerance
    """One of `relative` (0 to 1, of the published value) and `absolute` (in the unit of the
    CSV), with `reason` *, `changed`."""
    monotonic: Literal["increasing", "decreasing"] | None = None
    """`increasing` or `decreasing`: how the column has to run along its rows; the audit checks
    the published numbers against it."""


class TableRow(Document):
    """A published row that is not a factor level: the points, or the flows, it stands for.

    `flows` takes the place of the cells' own `flows`, for tables with a row per flow.
    """

    experiment: Identifier | None = None
    where: Where
    flows: Flows | None = None


class Table(Document):
    """Maps a published table to points of an experiment.

    Rows are the levels of `row_factor` (row key = level key) or listed in `rows`. Columns are the
    levels of `column_factor` with one `cell`, or listed in `columns`. Every row has a published
    number in every column but those that `not_printed` names: row to the columns that the paper
    leaves empty there.
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
    """Map of row key to `{where, experiment, flows}`: the points of that row (`where` *), of
    another experiment, or the flows it stands for instead of the cell's."""
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
    changed: Changes = []
    """List of [changes](#changes-after-results) made after results were seen."""

    @model_validator(mode="after")
    def _shape(self) -> Table:
        if (self.row_factor is None) == (self.rows is None):
            raise ValueError(f"table {self.id}: give exactly one of row_factor and rows")
        if (self.column_factor is None) == (self.columns is None):
            raise ValueError(f"table {self.id}: give exactly one of column_factor and columns")
        if (self.column_factor is None) != (self.cell is None):
            raise ValueError(f"table {self.id}: cell goes with column_factor")
        return self
