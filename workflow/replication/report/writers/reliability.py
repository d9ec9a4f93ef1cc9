"""The page on reliability."""

from __future__ import annotations

from pathlib import Path

from replication.report.pages.reliability import reliability_view
from replication.report.parts.page import write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write reliability.html into `folder`, if it was counted; see `report.render.write_part`."""
    view = reliability_view(source.data)
    if view is not None:
        write_page(source, folder, "reliability.html", view=view)
