"""The verdicts of a study as typed tables, which every later stage only formats.

`cells.parquet` and `claims.parquet` hold the columns of the CSV files of these names, typed, and
beside them what a verdict rests on: the points that its engine ran, the quantities over them, the
labels and the unit to show, and the reason in its parts. The CSV files are written from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

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
SCHEMAS = {
    name: pa.schema([(column, _TYPES.get(column, _TEXT)) for column in columns])
    for name, columns in COLUMNS.items()
}
CSV_COLUMNS = {"cells": CELL_COLUMNS, "claims": CLAIM_COLUMNS}


def write_verdicts(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of "cells" or "claims" as a typed table and as CSV.

    Numbers have as many digits in both, so that either gives the same page.
    """
    judged = [{column: _plain(row[column]) for column in COLUMNS[name]} for row in rows]
    write_parquet(pa.Table.from_pylist(judged, SCHEMAS[name]), folder / f"{name}.parquet")
    columns = CSV_COLUMNS[name]
    narrow = ({column: row[column] for column in columns} for row in judged)
    write_table(folder / f"{name}.csv", narrow, columns)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
    return value


def read_verdicts(path: Path) -> list[Judged]:
    """Return the rows of a typed table.

    Raises
    ------
    InputError
        It is missing, not what was written, of another version, or has an unknown verdict.
    """
    rows: list[Judged] = read_table(path).to_pylist()
    return rows


def read_table(path: Path) -> pa.Table:
    """Return a typed table, as `read_verdicts` does."""
    name = path.stem
    table = read_parquet(path)
    if table.schema != SCHEMAS[name]:
        raise InputError(f"{path}: made by another version; {REMEDY}")
    for word in table["verdict"].unique().to_pylist():
        if word not in set(Verdict):
            raise InputError(f"{path}: verdict {word!r} is unknown; {REMEDY}")
    return table


def merge_verdicts(folders: Sequence[Path], out_dir: Path) -> None:
    """Put the typed tables of several studies together, in the order given."""
    for name in COLUMNS:
        tables = [read_table(folder / f"{name}.parquet") for folder in folders]
        write_parquet(pa.concat_tables(tables), out_dir / f"{name}.parquet")
