"""The first page and the summary."""

from __future__ import annotations

from pathlib import Path

from replication.judge.verdict_table import read_table
from replication.report.charts.experiment import scatter_figure
from replication.report.pages.card import write_card
from replication.report.pages.overview import overview
from replication.report.pages.surprise import surprises
from replication.report.parts.figure import write_figures
from replication.report.parts.page import short_title, write_page
from replication.report.parts.source import Source


def write(source: Source, notebooks: Path, folder: Path) -> None:
    """Write index.html and summary.html into `folder`; see `report.render.write_part`."""
    cells = read_table(source.data / "cells.parquet").to_pandas()
    # A cell stands once: on the engine whose verdicts are its study's.
    chosen = {name: found.engine for name, found in source.headlines.items()}
    cells = cells[cells["engine"] == cells["study"].map(chosen)]
    titles = {name: short_title(study) for name, study in source.studies.items()}
    scatter = [scatter_figure(cells, titles)] if source.cells else []
    figures = write_figures(scatter, folder)
    view = overview(source)
    write_page(
        source, folder, "index.html", overview=view, surprises=surprises(source), figures=figures
    )
    write_card(view, scatter, folder)
    sheets = [row for row in view.rows if row.stands]
    write_page(source, folder, "summary.html", overview=view, sheets=sheets)
