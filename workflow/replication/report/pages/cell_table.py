"""Published tables on a study's page: in the paper's own shape, and number by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from replication.metrics.metric_model import METRICS, metric_label
from replication.report.pages import number as numbers
from replication.report.pages.source import PointLinks, Source, cell_id, grouped, under
from replication.report.pages.verdict import BADGES, badge
from replication.study.study import Study
from replication.study.table_model import Cell, Table
from replication.verdicts.counts import Numbers
from replication.verdicts.verdict_table import Judged
from replication.verdicts.wording import table_name

#: Ends of the steps of a deviation's shade: beyond each the shade is one step stronger.
SHADES = (0.05, 0.2, 0.5)


#: A published number beside ours, as `_cells` makes it; and a table of them, as `_table` does.
CellView = dict[str, Any]
TableView = dict[str, Any]


def table_views(
    study: Study, cells: Sequence[Judged], source: Source, links: PointLinks
) -> dict[str, list[TableView]]:
    """Return the views by experiment; cells of a table that the study does not map under ""."""
    known = {table.id: table for table in study.tables}
    tables: dict[str, list[TableView]] = {}
    for number, name in enumerate(dict.fromkeys([*known, *(row["table"] for row in cells)])):
        rows = [row for row in cells if row["table"] == name]
        if rows:
            table = known.get(name)
            view = _table(f"table-{number + 1}", table, rows, source, links)
            tables.setdefault(table.experiment if table else "", []).append(view)
    return tables


def _table(
    html_id: str, table: Table | None, rows: list[Judged], source: Source, links: PointLinks
) -> TableView:
    """Return a published table; `html_id` is safe to link to, whatever the paper calls it."""
    study = rows[0]["study"]
    #: That of the headline first.
    engines = source.shown_engines(study)
    notes = _shared(rows)
    cells = list(_cells(rows, notes, source, links, table))
    title = table.title if table else ""
    name = table_name(rows[0]["table"], title)
    shown = ("", *engines[:1])
    return {
        "html_id": html_id,
        # The page that has every number on every engine.
        "evidence": f"{study}~evidence.html",
        # Only the evidence page shows statistics of published traces.
        "printed": any(row["kind"] == "printed" for row in rows),
        # "Table II" where the paper numbers it, and else its title, which then is not said again.
        "name": name,
        "title": "" if name == title else title,
        **_grid([cell for cell in cells if cell["row"]["engine"] in shown]),
        "cells": cells,
        "tally": Numbers(source.headline(rows)),
        "tolerances": _tolerances(table),
        "engines": engines,
        "notes": notes,
        # How many cells each verdict has, over all engines: the choices of the filter.
        "choices": [(v, n) for v in BADGES if (n := sum(cell["verdict"] == v for cell in cells))],
    }


def _grid(cells: Sequence[CellView]) -> dict[str, Any]:
    """Return the paper's columns, each with the unit that its numbers share, and its rows."""
    at = {(cell["row"]["row"], cell["row"]["column"]): cell for cell in cells}
    columns = {cell["row"]["column"]: cell["row"]["column_label"] for cell in cells}
    units: dict[str, set[str]] = {}
    for cell in cells:
        units.setdefault(cell["row"]["column"], set()).add(cell["unit"])
    return {
        "columns": [
            (label, next(iter(units[key])) if len(units[key]) == 1 else "")
            for key, label in columns.items()
        ],
        "rows": [
            # None where the paper prints no number.
            (label, [at.get((key, column)) for column in columns])
            for key, label in {c["row"]["row"]: c["row"]["row_label"] for c in cells}.items()
        ],
    }


def _cells(
    rows: Sequence[Judged],
    notes: Sequence[str],
    source: Source,
    links: PointLinks,
    table: Table | None,
) -> Iterator[CellView]:
    study = rows[0]["study"]
    printed = source.published(study)
    by_key = grouped(rows, "table", "row", "column")
    points = {key: under(links, same) for key, same in by_key.items()}
    for row in rows:
        unit, key = row["unit"], (row["table"], row["row"], row["column"])
        yield {
            "row": row,
            "unit": numbers.display_unit(unit),
            "printed": printed.get(key),
            "published": _printed(row, table),
            "reproduced": numbers.number(row["reproduced_mean"], unit),
            "deviation": numbers.percent(row["relative_deviation"]),
            "shade": shade(numbers.parse(row["relative_deviation"])),
            "interval": numbers.interval(row["reproduced_low"], row["reproduced_high"], unit),
            "verdict": badge(row["verdict"]),
            "reason": " ".join(part for part in row["reasons"] if part not in notes),
            "html_id": cell_id(*key),
            "points": points[key],
        }


def _printed(row: Judged, table: Table | None) -> numbers.Number:
    """Return a number with the paper's digits, and what it is multiplied by to be the metric."""
    cell = table and (table.cell or (table.columns or {}).get(row["column"]))
    factor = cell.factor if cell else 1.0
    value, half_ulp = row["published"] / factor, row["published_half_ulp"] / factor
    shown = numbers.published(value, half_ulp, row["unit"]).shown
    times = "" if factor == 1 else f" × {factor:g}"
    return numbers.Number(numbers.number(row["published"], row["unit"]).raw, f"{shown}{times}")


def shade(deviation: float | None) -> str:
    """Return how far off as a shade: "low-3" to "high-3", "near", empty without a value."""
    if deviation is None:
        return ""
    step = sum(abs(deviation) > end for end in SHADES)
    if not step:
        return "near"
    return f"{'high' if deviation > 0 else 'low'}-{step}"


def _shared(rows: Sequence[Judged]) -> list[str]:
    """Return the sentences that most reasons hold whatever the verdict, to be said once."""
    counted: Counter[str] = Counter()
    verdicts: dict[str, set[str]] = {}
    for row in rows:
        for part in dict.fromkeys(row["reasons"]):
            counted[part] += 1
            verdicts.setdefault(part, set()).add(row["verdict"])
    return [
        part for part, count in counted.items() if 2 * count > len(rows) and len(verdicts[part]) > 1
    ]


def _tolerances(table: Table | None) -> list[str]:
    """Return the preset rules of a table's cells, each with its reason, once."""
    if table is None:
        return []
    named: list[tuple[str, Cell]] = [
        (k.replace("_", " "), c) for k, c in (table.columns or {}).items()
    ]
    if table.cell is not None:
        named.append((metric_label(table.cell.metric), table.cell))
    lines: dict[tuple[str, str], list[str]] = {}
    for name, cell in named:
        tolerance, unit = cell.tolerance, METRICS[cell.metric].unit
        if tolerance.relative is not None:
            width = f"tolerance ±{100 * tolerance.relative:g} % of the published value"
        elif tolerance.absolute is not None:
            shown = numbers.number(tolerance.absolute, unit).shown
            width = f"tolerance ±{shown} {numbers.display_unit(unit)}".rstrip()
        else:
            width = f"central 95 % of our runs, and a factor of {tolerance.factor:g} of their mean"
        lines.setdefault((width, tolerance.reason), []).append(name)
    return [f"{', '.join(who)}: {width}. {reason}" for (width, reason), who in lines.items()]
