"""The first page and the summary."""

from __future__ import annotations

from pathlib import Path

from replication.report.pages.card import all_numbers
from replication.report.pages.overview import overview
from replication.report.pages.surprise import surprises
from replication.report.parts.figure import write_figures
from replication.report.parts.page import write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write index.html and summary.html into `folder`; see `report.render.write_part`."""
    figures = write_figures(all_numbers(source), folder)
    view = overview(source)
    write_page(
        source, folder, "index.html", overview=view, surprises=surprises(source), figures=figures
    )
    sheets = [row for row in view.rows if row.stands]
    write_page(source, folder, "summary.html", overview=view, sheets=sheets)
