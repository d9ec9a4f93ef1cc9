"""Downloads: the report's tables as a spreadsheet may open them, where a text may be a formula.

Nothing of ours reads them again: every stage reads the tables in the data folder.
"""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path
from typing import NamedTuple

from replication.study.files import write_text

#: What makes a spreadsheet read a field as a formula, or as the field after it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class StudyDownload(NamedTuple):
    """Results of one study that a reader can download: the file behind them, and what they are."""

    path: Path
    meaning: str


def study_downloads(data: Path, study: str) -> dict[str, StudyDownload]:
    """Return the downloads of a study whose files are in `data`, by the end of their names."""
    every = {
        "design.parquet": StudyDownload(
            data / "design" / f"{study}.csv", "every point, replicate and scenario"
        ),
        "quantities.parquet": StudyDownload(
            data / "evaluation" / study / "quantities.csv",
            "mean and interval of the headline metrics at every point",
        ),
        "flows.parquet": StudyDownload(
            data / "results" / study / "flows.parquet", "every flow of every run"
        ),
    }
    return {end: found for end, found in every.items() if found.path.is_file()}


def write_download(path: Path, text: str) -> None:
    """Write a CSV text in which no field is a formula: such texts follow a `'`, numbers stay."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if any(_is_formula(field) for row in rows for field in row):
        safe = io.StringIO()
        # Every field is quoted: the writer by itself would not quote a lone carriage return.
        writer = csv.writer(safe, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([f"'{f}" if _is_formula(f) else f for f in row] for row in rows)
        text = safe.getvalue()
    write_text(path, text)


def copy_download(source: Path, target: Path) -> None:
    """Copy a file into the report; a CSV as `write_download` does."""
    if source.suffix == ".csv":
        write_download(target, source.read_bytes().decode("utf-8"))
    else:
        shutil.copyfile(source, target)


def _is_formula(field: str) -> bool:
    if not field.startswith(_FORMULA):
        return False
    try:
        float(field)
    except ValueError:
        return True
    # A number with a line break before it is a text to us.
    return field[0] not in "+-"
