"""The first page."""

from __future__ import annotations

from pathlib import Path

from replication.report.pages.overview import all_numbers, overview, surprises
from replication.report.parts.figure import write_figures
from replication.report.parts.page import write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write index.html into `folder`; see `report.render.write_part`."""
    write_page(
        source,
        folder,
        "index.html",
        overview=overview(source),
        surprises=surprises(source),
        figures=write_figures(all_numbers(source), folder),
    )
