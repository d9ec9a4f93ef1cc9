"""The verdicts on cells and claims as one typed table, which every later stage only formats.

`verdicts.parquet` holds the columns of cells.csv and claims.csv, typed, and what a verdict rests
on: the points that its engine ran, the quantities over them, the labels and the unit to show, and
the reason in its parts. Each study has one; the CSV files are those of all studies together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from replication.study.errors import InputError
from replication.study.files import REMEDY
from replication.study.storage.parquet import read_parquet, write_parquet
from replication.study.storage.table import CELL_COLUMNS, CLAIM_COLUMNS, DIGITS, write_table
from replication.study.verdict import Verdict

#: A row of a typed table: text, numbers, truth values and lists; None where there is no value.
Judged = dict[str, Any]

_TEXT, _NUMBER = pa.string(), pa.float64()
_POINTS = pa.list_(pa.struct([("experiment", _TEXT), ("point", _TEXT)]))
_TYPES = {
    **dict.fromkeys(("published", "published_half_ulp", "relative_deviation"), _NUMBER),
    **dict.fromkeys(("reproduced_mean", "reproduced_low", "reproduced_high"), _NUMBER),
    **dict.fromkeys(("observed", "low", "high", "accepted_margin", "display_factor"), _NUMBER),
    **dict.fromkeys(("p", "p_adjusted"), _NUMBER),
    "n": pa.int64(),
    "inside": pa.bool_(),
    "points": _POINTS,
    **dict.fromkeys(("quantities", "reasons"), pa.list_(_TEXT)),
}
#: What stands beside the columns of the CSV; `quantities` are JSON of `study.claim_model.Quantity`.
_SHARED = ("points", "quantities", "reasons")
_SHOWN = (
    *("row_label", "column_label", "display_unit", "display_factor", "accepted_margin"),
    *("p", "p_adjusted"),
)
COLUMNS = {
    "cells": (*CELL_COLUMNS, *_SHOWN, *_SHARED),
    "claims": (*CLAIM_COLUMNS, "statistic_unit", "finding", *_SHARED),
}
CSV_COLUMNS = {"cells": CELL_COLUMNS, "claims": CLAIM_COLUMNS}
NAME = "verdicts.parquet"
#: Which of the two a row is, and the columns of both.
KIND = "kind"
SCHEMA = pa.schema(
    [
        (column, _TYPES.get(column, _TEXT))
        for column in dict.fromkeys([KIND, *COLUMNS["cells"], *COLUMNS["claims"]])
    ]
)
Rows = Iterable[Mapping[str, Any]]


def write_verdicts(folder: Path, cells: Rows, claims: Rows) -> None:
    """Write the rows of cells and of claims as a typed table.

    Numbers have as many digits as in the CSV files, so that either gives the same page.
    """
    judged = [
        {KIND: kind} | {column: _plain(row[column]) for column in COLUMNS[kind]}
        for kind, rows in (("cells", cells), ("claims", claims))
        for row in rows
    ]
    write_parquet(pa.Table.from_pylist(judged, SCHEMA), folder / NAME)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
    return value


def read_verdicts(folder: Path, kind: str) -> list[Judged]:
    """Return the rows of "cells" or "claims" of the typed table in a folder.

    Raises
    ------
    InputError
        It is missing, damaged, of another version, or has an unknown verdict.
    """
    rows: list[Judged] = read_table(folder, kind).to_pylist()
    return rows


def read_table(folder: Path, kind: str) -> pa.Table:
    """Return the part of a typed table, as `read_verdicts` does."""
    table = _read(folder)
    return table.filter(pc.equal(table[KIND], kind)).select(list(COLUMNS[kind]))


def _read(folder: Path) -> pa.Table:
    path = folder / NAME
    table = read_parquet(path)
    if table.schema != SCHEMA:
        raise InputError(f"{path}: made by another version; {REMEDY}")
    for word in table["verdict"].unique().to_pylist():
        if word not in set(Verdict):
            raise InputError(f"{path}: verdict {word!r} is unknown; {REMEDY}")
    return table


def merge_verdicts(folders: Sequence[Path], out_dir: Path) -> None:
    """Put the typed tables of several studies together, in the order given; write the CSV files."""
    write_parquet(pa.concat_tables(map(_read, folders)), out_dir / NAME)
    for kind, columns in CSV_COLUMNS.items():
        rows = read_table(out_dir, kind).select(list(columns)).to_pylist()
        write_table(out_dir / f"{kind}.csv", rows, columns)
