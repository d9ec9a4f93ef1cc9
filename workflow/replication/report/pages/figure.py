"""Figures on the page, and the tables to download: files that are written beside the pages.

A chart's specification is a script file of its own, loaded when the chart comes into view: a page
from the file system may not fetch JSON, and a page with all its charts would be slow to open.
Tables are written as a spreadsheet may open them, where a text may be a formula.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from replication.report.charts.figure import Figure, short
from replication.study.files import write_text

#: What makes a spreadsheet read a field as a formula, or as the field after it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


#: Results of a study that a reader can download: name for readers, file in the data, what they are.
_STUDY_DOWNLOADS = (
    ("design/{}.parquet", "design/{}.csv", "every point, replicate and scenario"),
    ("results/{}/flows.parquet", "results/{}/flows.parquet", "every flow of every run"),
    (
        "results/{}/features.parquet",
        "results/{}/features.parquet",
        "what was read off the series of every run",
    ),
    ("results/{}/series.parquet", "results/{}/series.parquet", "the series that charts draw"),
)


def study_downloads(data: Path, study: str) -> list[tuple[str, Path, str]]:
    """Return the downloads of a study whose files are in `data`: name, file and meaning."""
    every = (
        (name.format(study), data / file.format(study), meaning)
        for name, file, meaning in _STUDY_DOWNLOADS
    )
    return [found for found in every if found[1].is_file()]


def copy_download(source: Path, target: Path) -> None:
    """Copy a file into the report; in a CSV a text that were a formula follows a `'`."""
    if source.suffix != ".csv":
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return
    text = source.read_bytes().decode("utf-8")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if any(_is_formula(field) for row in rows for field in row):
        safe = io.StringIO()
        # Every field is quoted: the writer by itself would not quote a lone carriage return.
        writer = csv.writer(safe, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([f"'{f}" if _is_formula(f) else f for f in row] for row in rows)
        text = safe.getvalue()
    write_text(target, text)


def _is_formula(field: str) -> bool:
    if not field.startswith(_FORMULA):
        return False
    try:
        float(field)
    except ValueError:
        return True
    # A number with a line break before it is a text to us.
    return field[0] not in "+-"


def write_figures(figures: Sequence[Figure], out: Path) -> list[Figure]:
    """Write the scripts of `figures` below the report's folder `out`; return them."""
    for figure in figures:
        write_text(out / figure.script, chart_script(figure.id, figure.specification()))
    return list(figures)


def chart_script(name: str, spec: dict[str, Any]) -> str:
    """Return the script that hands a specification to the page's chart loader."""
    spec = {key: value for key, value in spec.items() if key != "$schema"}
    datasets = spec.get("datasets", {})
    if datasets:
        spec["datasets"] = {key: _columns(records) for key, records in datasets.items()}
    document = json.dumps(spec, separators=(",", ":"), allow_nan=False, default=str)
    return f"(window.replicationCharts ??= {{}})[{json.dumps(name)}] = {document};\n"


def _columns(records: list[dict[str, Any]]) -> Any:
    """Return records as columns, repeated words as numbers of a list: half the size and less."""
    names = list(records[0]) if records else []
    if not records or any(list(record) != names for record in records):
        return records
    return {name: _column([record[name] for record in records]) for name in names}


def _column(values: list[Any]) -> Any:
    if not all(isinstance(value, str) for value in values):
        return [short(value) for value in values]
    words = {word: number for number, word in enumerate(dict.fromkeys(values))}
    runs = [(words[word], len(list(same))) for word, same in groupby(values)]
    if 2 * len(runs) < len(values):
        return {"of": list(words), "runs": runs}
    return {"of": list(words), "at": [words[value] for value in values]}
