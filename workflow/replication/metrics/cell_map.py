"""The mapping of published numbers to quantities of our runs, by the tables of a study."""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from replication.base.errors import InputError, check_known, cut
from replication.base.position import within
from replication.metrics.metric_model import check_metric
from replication.study.claim_model import Quantity
from replication.study.parameter import Level
from replication.study.published import (
    Cell,
    PublishedNumber,
    Table,
    half_ulp,
    keys_of,
    published_path,
    read_published,
)
from replication.study.study import Study

#: Tables of published files without a mapping: results in prose, and figures of the set-up.
UNMAPPED = ("text", "setup")


@dataclass(frozen=True)
class MappedCell:
    """A published number and the quantity that it reports.

    `value` and `half_ulp`, half a unit of its last printed digit, are in SI units, times the
    column's factor; `quantity` is over the points of row and column. `not_comparable` says why the
    number measures something other than the metric; it is empty if it does not.
    """

    table: str
    row: str
    column: str
    row_label: str
    column_label: str
    unit: str
    value: float
    half_ulp: float
    printed: str
    cell: Cell
    quantity: Quantity
    not_comparable: str = ""
    #: Row and column of the numbers that are judged together with it, and its own; empty if alone.
    together: Sequence[tuple[str, str]] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """Table, row and column."""
        return self.table, self.row, self.column

    @property
    def is_spread(self) -> bool:
        """Whether the number is a spread of several runs, which no single run has."""
        return self.cell.over_runs != "mean"

    @property
    def band(self) -> tuple[float, float]:
        """The published value minus and plus half its last digit."""
        return self.value - self.half_ulp, self.value + self.half_ulp


def cells_of(root: Path, study: Study) -> list[MappedCell]:
    """Return the mapped published numbers of a study of the project in `root`."""
    return map_cells(study, read_published(published_path(root, study.id)))


def map_cells(study: Study, numbers: Iterable[PublishedNumber]) -> list[MappedCell]:
    """Map each published number of the study's tables; InputError names one of no cell."""
    tables = {table.id: table for table in study.tables}
    cells = []
    for number in numbers:
        if number.table in tables:
            cells.append(_map_cell(study, tables[number.table], number))
        check_known(f"{number.where}: table", [number.table], [*tables, *UNMAPPED])
    return cells


def _map_cell(study: Study, table: Table, number: PublishedNumber) -> MappedCell:
    if table.columns is not None:
        check_known(f"{number.where}: column", [number.column], table.columns)
    cell, row = table.cell_of(number.column), None
    experiment, where = table.experiment, dict(table.where)
    if table.rows is not None:
        check_known(f"{number.where}: row", [number.row], table.rows)
        row = table.rows[number.row]
        experiment, where = row.experiment or experiment, where | row.where
    for what, factor, key in (
        ("row", table.row_factor, number.row),
        ("column", table.column_factor, number.column),
    ):
        if factor is not None:
            check_known(f"{number.where}: {what}", [key], _levels(study, experiment, factor))
            where[factor] = [key]
    where_cell = ("tables", table.id, "columns" if table.cell is None else "cell", number.column)
    with within(*where_cell, words=f"table {table.id}, column {cut(number.column, 64)}"):
        unit = check_metric(cell.metric).unit
    unit = "1" if cell.aggregate == "jain" else unit
    if unit != number.unit:
        raise InputError(
            f"{number.where}: the number is in {number.unit!r}, metric {cell.metric} in "
            f"{unit!r}; convert the published value or map another metric"
        )
    return MappedCell(
        table=number.table,
        row=number.row,
        column=number.column,
        row_label=(row and row.label) or _label(study, table, table.row_factor, number.row),
        column_label=_label(study, table, table.column_factor, number.column),
        unit=number.unit,
        value=number.value * cell.factor,
        half_ulp=half_ulp(number.printed, number.value) * cell.factor,
        printed=number.printed,
        cell=cell,
        quantity=Quantity(
            experiment=experiment,
            metric=cell.metric,
            flows=cell.flows if row is None or row.flows is None else row.flows,
            aggregate=cell.aggregate,
            where=where,
            window_s=cell.window_s,
        ),
        not_comparable=table.not_comparable.get(number.row, {}).get(number.column, ""),
        together=table.group_of(number.row, number.column),
    )


def _levels(study: Study, experiment: str, factor: str | None) -> dict[str, Level]:
    if factor is None:
        return {}
    return {level.key: level for level in study.experiment(experiment).factor(factor).levels}


def _label(study: Study, table: Table, factor: str | None, key: str) -> str:
    """Return the label of a row or column: its level's, or its key in words."""
    level = _levels(study, table.experiment, factor).get(key)
    if factor is None or level is None:
        return key.replace("_", " ")
    unit = study.experiment(table.experiment).factor(factor).unit
    # A bare number needs its unit.
    return f"{key} {unit}" if level.label == key and unit not in ("", "1") else level.label


def check_complete(study: Study, cells: Sequence[MappedCell], published: str) -> None:
    """Check that each cell of the tables has a number or is `not_printed`, or InputError."""
    given = {cell.key for cell in cells}
    for table in study.tables:
        with within("tables", table.id, words=f"table {table.id}"):
            _check_table(study, table, given, published)


def _check_table(
    study: Study, table: Table, given: Collection[tuple[str, str, str]], published: str
) -> None:
    rows = list(table.rows or _levels(study, table.experiment, table.row_factor))
    columns = list(table.columns or _levels(study, table.experiment, table.column_factor))
    absent = keys_of(table.not_printed)
    printed = [key for key in itertools.product(rows, columns) if key not in absent]
    for row, column in absent:
        check_known("not_printed: row", [row], rows, ("not_printed",))
        check_known("not_printed: column", [column], columns, ("not_printed", row))
        if (table.id, row, column) in given:
            number = f"{published} has a number for {column}"
            place = "not_printed", row, column
            raise InputError(f"not_printed.{row}: {number}; remove one of them", place)
    for group in table.together:
        for row, column in keys_of(group):
            if (row, column) not in printed:
                text = f"together: row {row}, column {column}: no number is printed; remove it"
                raise InputError(text, ("together",))
    for row, column in keys_of(table.not_comparable):
        if (row, column) not in printed:
            place = "not_comparable", row, column
            raise InputError(f"{'.'.join(place)}: no number is printed; remove it", place)
    if missing := [key for key in printed if (table.id, *key) not in given]:
        row, column = missing[0]
        raise InputError(
            f"row {row}, column {column}: has no number in {published}, one of {len(missing)} in "
            "the table; add it there, or name it under not_printed here",
            (),
        )
