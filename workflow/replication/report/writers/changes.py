"""The page on what was changed after results were seen."""

from __future__ import annotations

from pathlib import Path

from replication.report.parts.ledger import changes_of
from replication.report.parts.page import write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write changes.html into `folder`; see `report.render.write_part`."""
    found = [(study, changes_of(study)) for study in source.studies.values()]
    write_page(source, folder, "changes.html", changed=[pair for pair in found if pair[1]])
