"""The page that sets two results side by side, and the table behind it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from replication.compare.verdicts import CELL, CLAIM, COLUMNS, Compared, counted
from replication.report.parts.page import ASSETS, plain_environment
from replication.study.files import write_text
from replication.study.storage.table import write_table

PAGE, TABLE = "index.html", "differences.csv"


def write_differences(found: Sequence[Compared], names: tuple[str, str], folder: Path) -> list[str]:
    """Write the page and its table into `folder`; return the counts in words.

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
    moved.sort(key=lambda item: (not item.verdict_moved, item.beyond_noise != "yes"))
    counts = [counted(kind, found) for kind in (CELL, CLAIM)]
    text = (
        plain_environment()
        .get_template("difference.html")
        .render(
            names=names,
            counts=counts,
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
    return counts
