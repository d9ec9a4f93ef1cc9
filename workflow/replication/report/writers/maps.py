"""The page of maps."""

from __future__ import annotations

from pathlib import Path

from replication.report.pages.maps import maps_view
from replication.report.parts.page import write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write maps.html into `folder`, if there are maps; see `report.render.write_part`."""
    view = maps_view(source)
    if view is not None:
        write_page(source, folder, "maps.html", view=view)
