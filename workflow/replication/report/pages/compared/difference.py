"""The page that sets two results side by side, and the table behind it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from replication.compare.run_difference import COLUMNS, Counts, Difference, counts
from replication.report.parts.page import ASSETS, plain_environment
from replication.study.files import write_text
from replication.study.storage.table import write_table

PAGE, TABLE = "index.html", "differences.csv"


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
            rows=moved,
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
