"""The page that sets two results side by side, and the table behind it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replication.compare.run_difference import COLUMNS, Counts, Difference, Side, counts
from replication.report.parts.page import ASSETS, plain_environment
from replication.report.parts.verdicts import number as numbers
from replication.report.parts.verdicts.number import MISSING, Number
from replication.report.parts.verdicts.verdict import Badge, badge
from replication.study.files import write_text
from replication.study.storage.table import write_table

PAGE, TABLE = "index.html", "differences.csv"


@dataclass(frozen=True)
class DifferenceView:
    """An item that moved; `beyond` says whether beyond noise."""

    study: str
    kind: str
    item: str
    engine: str
    unit: str
    before: Number
    after: Number
    change: Number
    beyond: str
    verdicts: list[Badge | None]
    verdict_moved: bool


def write_differences(
    found: Sequence[Difference], names: tuple[str, str], folder: Path
) -> list[Counts]:
    """Write the page and its table into `folder`; return the counts.

    Parameters
    ----------
    found
        Every item of both results.
    names
        What the results are called.
    folder
        Made if need be; nothing else in it is touched.
    """
    moved = [item for item in found if item.has_moved]
    moved.sort(key=lambda item: (not item.verdict_moved, item.beyond != "yes"))
    counted = counts(found)
    text = (
        plain_environment()
        .get_template("difference.html")
        .render(
            names=names,
            counts=counted,
            rows=[_view(item) for item in moved],
            table=TABLE,
        )
    )
    assets = folder / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    for name in ("report.css", "tables.js", "theme.js"):
        shutil.copy(ASSETS / name, assets / name)
    write_table(folder / TABLE, (item.row() for item in moved), COLUMNS)
    write_text(folder / PAGE, text)
    return counted


def _view(item: Difference) -> DifferenceView:
    unit = item.unit or "1"
    return DifferenceView(
        study=item.study,
        kind=item.kind,
        item=item.item,
        engine=item.engine,
        unit=numbers.display_unit(unit),
        before=_number(item.before, unit),
        after=_number(item.after, unit),
        change=numbers.percent(item.relative_change),
        beyond=item.beyond,
        verdicts=[badge(side.verdict) if side else None for side in (item.before, item.after)],
        verdict_moved=item.verdict_moved,
    )


def _number(side: Side | None, unit: str) -> Number:
    return numbers.number(side.value, unit) if side else Number("", MISSING)
