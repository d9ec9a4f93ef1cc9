"""The page on speed."""

from __future__ import annotations

from pathlib import Path

from replication.report.pages.bench import bench_view
from replication.report.parts.page import write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write bench.html into `folder`, if it was measured; see `report.render.write_part`."""
    view = bench_view(source, folder)
    if view is not None:
        write_page(source, folder, "bench.html", view=view)
