"""Published tables on a study's page: in the paper's own shape, and number by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replication.judge.verdict_table import Judged
from replication.judge.wording import table_name
from replication.measure.metric_model import METRICS, metric_label
from replication.report.pages import number as numbers
from replication.report.pages.number import Number
from replication.report.pages.source import PointLink, PointLinks, Source, cell_id
from replication.report.pages.verdict import (
    BADGES,
    Badge,
    OtherEngine,
    Tally,
    badge,
    beside,
)
from replication.study.published import PublishedNumber
from replication.study.study import Study
from replication.study.table_model import Cell, Table

#: Ends of the steps of a deviation's shade: beyond each the shade is one step stronger.
SHADES = (0.05, 0.2, 0.5)


@dataclass(frozen=True)
class CellView:
    """One published number beside ours, from its row of the typed table."""

    row: Judged
    unit: str
    printed: str
    place: str
    published: Number
    reproduced: Number
    deviation: Number
    #: How far off, as the name of a shade: "low-3" to "high-3", "near", empty without a value.
    shade: str
    interval: str
    verdict: Badge
    reason: str
    #: Another engine's verdict, where this one stands but cannot test the cell.
    beside: OtherEngine | None
    #: Where the page shows it: a cell of the paper's table, on the engine whose verdicts stand.
    html_id: str
    points: list[PointLink]


@dataclass(frozen=True)
class GridColumn:
    """A column of the paper's table; `unit` is empty where its numbers have several or none."""

    label: str
    unit: str


@dataclass(frozen=True)
class GridRow:
    """A row of the paper's table; None where the paper prints no number."""

    label: str
    cells: list[CellView | None]


@dataclass(frozen=True)
class Grid:
    """A table as the paper prints it, on the engine whose verdicts stand."""

    columns: list[GridColumn]
    rows: list[GridRow]

    @classmethod
    def of(cls, cells: Sequence[CellView]) -> Grid:
        """Put cells in rows and columns, both in the order in which they come."""
        at = {(cell.row["row"], cell.row["column"]): cell for cell in cells}
        columns = {cell.row["column"]: cell.row["column_label"] for cell in cells}
        units: dict[str, set[str]] = {}
        for cell in cells:
            units.setdefault(cell.row["column"], set()).add(cell.unit)
        return cls(
            columns=[
                GridColumn(label, next(iter(units[key])) if len(units[key]) == 1 else "")
                for key, label in columns.items()
            ],
            rows=[
                GridRow(label, [at.get((key, column)) for column in columns])
                for key, label in {c.row["row"]: c.row["row_label"] for c in cells}.items()
            ],
        )


@dataclass(frozen=True)
class TableView:
    """A published table; `html_id` is safe to link to, whatever the paper calls it."""

    html_id: str
    #: "Table II" where the paper numbers it, and else its title, which then is empty.
    name: str
    title: str
    grid: Grid
    cells: list[CellView]
    tally: Tally
    tolerances: list[str]
    #: The engines that ran the study, that of the headline first.
    engines: list[str]
    notes: list[str]
    #: How many cells each verdict has, over all engines: the choices of the filter.
    choices: list[tuple[Badge, int]]


def table_views(
    study: Study, cells: Sequence[Judged], source: Source, links: PointLinks
) -> dict[str, list[TableView]]:
    """Return the views by experiment; cells of a table that the study does not map under ""."""
    known = {table.id: table for table in study.tables}
    printed = source.published(study.id)
    engines = source.shown_engines(study.id)
    tables: dict[str, list[TableView]] = {}
    for number, name in enumerate(dict.fromkeys([*known, *(row["table"] for row in cells)])):
        rows = [row for row in cells if row["table"] == name]
        if rows:
            views = _Views(rows, printed, engines, links)
            table = known.get(name)
            tables.setdefault(table.experiment if table else "", []).append(
                _table(f"table-{number + 1}", name, table, views, source.headline(rows))
            )
    return tables


def _table(
    html_id: str, name: str, table: Table | None, views: _Views, headline: Iterable[Judged]
) -> TableView:
    cells = views.cells()
    title = table.title if table else ""
    called = table_name(name, title)
    stands = views.engines[0] if views.engines else ""
    return TableView(
        html_id=html_id,
        name=called,
        title="" if called == title else title,
        grid=Grid.of([cell for cell in cells if cell.row["engine"] in ("", stands)]),
        cells=cells,
        tally=Tally.of(row["verdict"] for row in headline),
        tolerances=_tolerances(table),
        engines=views.engines,
        notes=views.notes,
        choices=[(v, n) for v in BADGES if (n := sum(cell.verdict == v for cell in cells))],
    )


class _Views:
    """Makes the views of a table's cells from its rows on every engine that is shown."""

    def __init__(
        self,
        rows: Sequence[Judged],
        printed: Mapping[tuple[str, str, str], PublishedNumber],
        engines: list[str],
        links: PointLinks,
    ) -> None:
        self.rows, self.printed, self.engines = rows, printed, engines
        self.notes = _shared(rows)
        self._by_key: dict[tuple[str, str, str], list[Judged]] = {}
        for row in rows:
            self._by_key.setdefault(_key(row), []).append(row)
        self._points = {key: links.under(same) for key, same in self._by_key.items()}

    def cells(self) -> list[CellView]:
        return [self._cell(row) for row in self.rows]

    def _cell(self, row: Judged) -> CellView:
        unit, key = row["unit"], _key(row)
        printed = self.printed.get(key)
        stands = row["engine"] in self.engines[:1]
        return CellView(
            row=row,
            unit=numbers.display_unit(unit),
            printed=printed.printed if printed else "",
            place=printed.place if printed else "",
            published=numbers.published(row["published"], row["published_half_ulp"], unit),
            reproduced=numbers.number(row["reproduced_mean"], unit),
            deviation=numbers.percent(row["relative_deviation"]),
            shade=shade(numbers.parse(row["relative_deviation"])),
            interval=numbers.interval(row["reproduced_low"], row["reproduced_high"], unit),
            verdict=badge(row["verdict"]),
            reason=" ".join(part for part in row["reasons"] if part not in self.notes),
            beside=beside(self._by_key[key], row["engine"]) if stands else None,
            html_id=cell_id(*key),
            points=self._points[key],
        )


def shade(deviation: float | None) -> str:
    """Return the name of a relative deviation's shade; empty where there is none."""
    if deviation is None:
        return ""
    step = sum(abs(deviation) > end for end in SHADES)
    if not step:
        return "near"
    return f"{'high' if deviation > 0 else 'low'}-{step}"


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["table"], row["row"], row["column"]


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
    """Return the preset tolerances of a table's cells, each with its reason, once."""
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
            width = f"±{100 * tolerance.relative:g} % of the published value"
        elif tolerance.absolute is not None:
            shown = numbers.number(tolerance.absolute, unit).shown
            width = f"±{shown} {numbers.display_unit(unit)}".rstrip()
        else:
            width = "rank among the replicates"
        lines.setdefault((width, tolerance.reason), []).append(name)
    return [f"{', '.join(who)}: {width}. {reason}" for (width, reason), who in lines.items()]
