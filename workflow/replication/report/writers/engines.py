"""The engines' page."""

from __future__ import annotations

from pathlib import Path

from replication.compare.agreement import TABLES
from replication.report.charts.verdict import engine_figures
from replication.report.pages.engines import MEANINGS, OUTCOMES, engines_page
from replication.report.parts.figure import write_figures
from replication.report.parts.page import write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write engines.html into `folder`, if an engine ran; see `report.render.write_part`."""
    if not source.engines:
        return
    view = engines_page(source)
    figures = engine_figures(source.cells, source.engines) if view.agreement else []
    write_page(
        source,
        folder,
        "engines.html",
        view=view,
        figures=write_figures(figures, folder),
        outcomes=OUTCOMES,
        downloads=[name for name in TABLES if (source.data / name).is_file()],
        meanings=MEANINGS,
    )
