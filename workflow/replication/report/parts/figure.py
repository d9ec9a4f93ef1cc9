"""Figures on the page: each chart's specification, data and table, written beside the pages.

A specification is a script file of its own, loaded when its chart comes into view: a page from the
file system may not fetch JSON, and a page that carried all its charts would be slow to open.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from replication.report.drawing.figure import Figure
from replication.report.drawing.name import file_of
from replication.report.parts.download import write_download
from replication.report.parts.verdicts.number import MISSING, significant
from replication.study.files import write_text

#: Rows of a figure's data that the page itself shows; the CSV has all.
TABLE_ROWS = 40


@dataclass(frozen=True)
class FigureView:
    """A chart as the templates need it; paths are relative to the report's folder."""

    figure: Figure
    script: str
    csv: str
    columns: list[str]
    rows: list[list[str]]


def write_figures(figures: Sequence[Figure], out: Path) -> list[FigureView]:
    """Write scripts and data of `figures` below the report's folder `out`."""
    return [_write(figure, out) for figure in figures]


def _write(figure: Figure, out: Path) -> FigureView:
    file = file_of(figure.id)
    script, data = f"charts/{file}.js", f"data/figures/{file}.csv"
    write_text(out / script, chart_script(figure.id, figure.specification()))
    write_download(out / data, figure.data.to_csv(index=False))
    head = figure.data.head(TABLE_ROWS)
    return FigureView(
        figure=figure,
        script=script,
        csv=data,
        columns=[str(column) for column in head.columns],
        rows=[[_text(value) for value in row] for row in head.itertuples(index=False, name=None)],
    )


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
        return values
    words = {word: number for number, word in enumerate(dict.fromkeys(values))}
    return {"of": list(words), "at": [words[value] for value in values]}


def script_json(document: object) -> Markup:
    """Return a document as JSON that may stand in a script element of a page."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return significant(float(value)) if math.isfinite(value) else MISSING
