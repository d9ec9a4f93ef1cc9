"""Verdicts on published cells: each number of a table against the runs it stands for.

A cell is `reproduced` if the mean over replicates lies within the preset tolerance of the
published value widened by half its last printed digit. That is all that can be asked: the papers
print no variance, so equality cannot be tested. A value that the audit finds to break a physical
bound is `impossible`; one whose points were not run is `not testable`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from replication.claim import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED
from replication.claim_model import Quantity, Where
from replication.comparison import complete
from replication.coverage import Coverage
from replication.errors import InputError
from replication.metric import COUNTS, check_metric, quantity
from replication.results import Results
from replication.statistic import Estimate, estimate, half_ulp, relative_deviation
from replication.study import Cell, Study, Table, Tolerance
from replication.table import PUBLISHED_COLUMNS

IMPOSSIBLE = "impossible"


class CellError(InputError):
    """A published number cannot be read or mapped; the message names table, row and column."""


@dataclass(frozen=True)
class MappedCell:
    """A published number and the quantity it stands for.

    Attributes
    ----------
    table, row, column
        Keys of the published number.
    unit
        SI unit of `value`.
    value
        Published value in SI rows.
    half_ulp
        Half a unit of its last printed digit, in the same unit.
    printed
        The figure as printed.
    cell
        Metric, aggregate and tolerance.
    quantity
        The quantity over the points that the row and column name.
    """

    table: str
    row: str
    column: str
    unit: str
    value: float
    half_ulp: float
    printed: str
    cell: Cell
    quantity: Quantity

    @property
    def key(self) -> tuple[str, str, str]:
        """Table, row and column."""
        return self.table, self.row, self.column

    @property
    def band(self) -> tuple[float, float]:
        """The published value give or take half its last digit."""
        return self.value - self.half_ulp, self.value + self.half_ulp


def read_published(path: Path) -> pd.DataFrame:
    """Read the published numbers of one study.

    Raises
    ------
    CellError
        The file is missing, lacks columns, repeats a cell, or a value is not a finite number.
    """
    if not path.is_file():
        raise CellError(f"{path}: no such file; transcribe the paper's numbers into it")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise CellError(f"{path}: is not a CSV table: {error}") from None
    absent = [name for name in PUBLISHED_COLUMNS if name not in table]
    if absent:
        raise CellError(f"{path}: has no column {', '.join(absent)}")
    values = pd.to_numeric(table["value"], errors="coerce").astype(float)
    for row, value in zip(table.itertuples(), values, strict=True):
        if not math.isfinite(value):
            raise CellError(
                f"{path}: table {row.table}, row {row.row}, column {row.column}: "
                f"value {row.value!r} is not a finite number"
            )
    twice = table.duplicated(["table", "row", "column"])
    if twice.any():
        first = table[twice].iloc[0]
        raise CellError(
            f"{path}: table {first['table']}, row {first['row']}, column {first['column']} "
            "is there twice"
        )
    return table.assign(value=values)


def map_cells(study: Study, published: pd.DataFrame) -> list[MappedCell]:
    """Map every published number of the tables that the study maps, in the file's order.

    Raises
    ------
    CellError
        A number of a mapped table has no row, no column or no points in the study.
    """
    tables = {table.id: table for table in study.tables}
    rows = _Rows(study)
    cells = []
    for row in published.to_dict("records"):
        if row["table"] not in tables:
            continue
        table = tables[row["table"]]
        cell = rows.cell(table, row["row"], row["column"])
        experiment, where = rows.where(table, row["row"], row["column"])
        rows.check_unit(row, cell)
        own_flows = table.rows[row["row"]].flows if table.rows else None
        cells.append(
            MappedCell(
                table=row["table"],
                row=row["row"],
                column=row["column"],
                unit=row["unit"],
                value=row["value"],
                half_ulp=half_ulp(row["printed"], row["value"]),
                printed=row["printed"],
                cell=cell,
                quantity=Quantity(
                    experiment=experiment,
                    metric=cell.metric,
                    flows=cell.flows if own_flows is None else own_flows,
                    aggregate=cell.aggregate,
                    where=where,
                    window_s=cell.window_s,
                ),
            )
        )
    return cells


class _Rows:
    """Finds what a table's row and column stand for."""

    def __init__(self, study: Study) -> None:
        self.study = study

    def cell(self, table: Table, row: str, column: str) -> Cell:
        if table.cell is not None:
            return table.cell
        columns = table.columns or {}
        if column not in columns:
            raise self._unknown(table, row, column, "column", list(columns))
        return columns[column]

    def check_unit(self, row: Mapping[Hashable, Any], cell: Cell) -> None:
        unit = "1" if cell.aggregate == "jain" else check_metric(cell.metric).unit
        if unit != row["unit"]:
            raise CellError(
                f"{self.study.id}: table {row['table']}, row {row['row']}, column "
                f"{row['column']}: the number is in {row['unit']!r}, metric {cell.metric} in "
                f"{unit!r}; convert the published value or map another metric"
            )

    def where(self, table: Table, row: str, column: str) -> tuple[str, Where]:
        experiment, where = table.experiment, dict(table.where)
        if table.rows is not None:
            if row not in table.rows:
                raise self._unknown(table, row, column, "row", list(table.rows))
            experiment = table.rows[row].experiment or experiment
            where |= table.rows[row].where
        for factor, key, what in (
            (table.row_factor, row, "row"),
            (table.column_factor, column, "column"),
        ):
            if factor is not None:
                levels = [
                    level.key for level in self.study.experiment(experiment).factor(factor).levels
                ]
                if key not in levels:
                    raise self._unknown(table, row, column, what, levels)
                where[factor] = key
        return experiment, where

    def _unknown(
        self, table: Table, row: str, column: str, what: str, known: list[str]
    ) -> CellError:
        return CellError(
            f"{self.study.id}: table {table.id}, row {row}, column {column}: the study maps no "
            f"such {what}; it knows {', '.join(known)}"
        )


def evaluate_cells(
    cells: list[MappedCell],
    study: Study,
    results: Results,
    impossible: Mapping[tuple[str, str, str], str],
) -> Iterator[dict[str, object]]:
    """Judge every mapped cell on every engine, as rows of cells.csv.

    Parameters
    ----------
    cells
        What `map_cells` returns.
    study, results
        The study and what was run for it.
    impossible
        (table, row, column) to the reason, for values that the audit finds impossible.
    """
    coverage = Coverage(study, results)
    for cell in cells:
        values = quantity(results, cell.quantity)
        for engine in results.engines:
            ours = values[values["engine"] == engine].drop(columns="engine")
            ours = ours.dropna(subset="value")
            # A cell over several points is their mean, taken within each replicate.
            means = pd.Series(dtype=float)
            if not ours.empty:
                means = complete(ours).groupby("replicate")["value"].mean()
            found = estimate(means.to_numpy(dtype=float))
            why_not = _why_not(coverage, engine, cell, found.n > 0)
            note = coverage.note(engine, cell.quantity)
            broken = impossible.get(cell.key, "")
            yield judge_cell(study.id, cell, engine, found, why_not, broken, note)


def _why_not(coverage: Coverage, engine: str, cell: MappedCell, measured: bool) -> str:
    """Return why a cell cannot be tested; empty if it can."""
    note = coverage.note(engine, cell.quantity)
    if not measured:
        return f"no run gives {cell.quantity.metric}. {note}".strip()
    short, full = coverage.shortened(engine, cell.quantity)
    if cell.quantity.metric in COUNTS and short < full:
        return f"a count over {short:g} s says nothing of {full:g} s."
    return ""


def judge_cell(
    study: str,
    cell: MappedCell,
    engine: str,
    found: Estimate,
    why_not: str = "",
    impossible: str = "",
    note: str = "",
) -> dict[str, object]:
    """Return the row of cells.csv for one cell on one engine.

    Parameters
    ----------
    study, cell, engine
        What is judged.
    found
        Mean over replicates and interval; n = 0 where nothing was run.
    why_not
        Why what was run decides nothing, or an empty text.
    impossible
        Why the published value cannot be, or an empty text.
    note
        What was not run of the cell's points, or an empty text.
    """
    margin = half_width(cell.cell.tolerance, cell.value)
    low, high = cell.band
    inside = found.n > 0 and low - margin <= found.mean <= high + margin
    verdict = REPRODUCED if inside else NOT_REPRODUCED
    if not found.n or why_not:
        verdict = NOT_TESTABLE
    if impossible:
        verdict = IMPOSSIBLE
    return {
        "study": study,
        "table": cell.table,
        "row": cell.row,
        "column": cell.column,
        "engine": engine,
        "unit": cell.unit,
        "published": cell.value,
        "published_half_ulp": cell.half_ulp,
        "reproduced_mean": found.mean,
        "reproduced_low": found.low,
        "reproduced_high": found.high,
        "n": found.n,
        "relative_deviation": relative_deviation(found.mean, cell.value),
        "inside": inside if found.n else None,
        "verdict": verdict,
        "reason": " ".join(
            part
            for part in (
                impossible,
                f"Not testable: {why_not}" if why_not else "",
                _deviation(cell, found, margin) if found.n and not why_not else "",
                note if not why_not else "",
            )
            if part
        ),
    }


def half_width(tolerance: Tolerance, value: float) -> float:
    """Return the tolerance in the unit of the published `value`."""
    if tolerance.absolute is not None:
        return tolerance.absolute
    assert tolerance.relative is not None  # the model demands one of the two
    return tolerance.relative * abs(value)


def _deviation(cell: MappedCell, found: Estimate, margin: float) -> str:
    tolerance = cell.cell.tolerance
    unit = "" if cell.unit == "1" else f" {cell.unit}"
    allowed = f"{margin:g}{unit}"
    if tolerance.relative is not None:
        allowed = f"{100 * tolerance.relative:g} %"
    size = f"{found.mean - cell.value:+.4g}{unit}"
    if cell.value and tolerance.relative is not None:
        size = f"{100 * relative_deviation(found.mean, cell.value):+.1f} %"
    return (
        f"Deviation {size}, tolerance {allowed} and half the last printed digit. "
        "The paper gives no variance: equality cannot be tested."
    )
