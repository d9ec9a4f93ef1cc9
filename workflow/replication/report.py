"""The report: a folder of HTML that answers the question offline, from the file system.

Pages are rendered into a temporary folder beside the target, which they replace only when all of
them are written: a failed rendering leaves the last report in place.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import jinja2
import pandas as pd
from altair.utils.schemapi import debug_mode

from replication.agreement_table import TABLES
from replication.chart import Figure, figures_of, scatter_figure
from replication.chart_data import read_cells
from replication.chart_engine import engine_figures
from replication.files import write_text
from replication.notebook import to_html
from replication.report_agreement import MEANINGS
from replication.report_engines import engines_page
from replication.report_figure import write_figures
from replication.report_ledger import ledger
from replication.report_number import count
from replication.report_overview import overview, ran
from replication.report_robust import robust_view
from replication.report_source import Source
from replication.report_study import study_page
from replication.report_traces import FILES as TRACE_FILES
from replication.report_traces import trace_figures, trace_section
from replication.report_verdict import VERDICTS
from replication.results import Results
from replication.study import Study

PACKAGE = Path(__file__).parent
#: Merged results that a reader can download from the pages.
DOWNLOADS = ("cells.csv", "claims.csv", "audit.csv", "provenance.json")
#: Those that not every folder of results has.
OPTIONAL_DOWNLOADS = ("conformance.csv", *TRACE_FILES, *TABLES)
#: Results of one study, by the end of their names.
STUDY_DOWNLOADS = {
    "design": "every point, replicate and scenario",
    "quantities": "mean and interval of the headline metrics at every point",
}
#: Hosts that the bundled libraries mention; XML namespaces are names, not addresses.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`<>)\\]*")


def render(root: Path, data: Path, notebooks: Path, out: Path) -> None:
    """Write the whole report.

    Parameters
    ----------
    root
        The project's folder, with configs and published numbers.
    data
        Folder of reproduced results.
    notebooks
        Folder of executed notebooks, ``<study>.<type>.ipynb``; studies without them have no links.
    out
        The report's folder, replaced as a whole.

    Raises
    ------
    InputError
        A result is missing or malformed; the message names the file and what to run.
    """
    source = Source.load(root, data)
    with _replacing(out) as folder:
        _copy_data(source, folder)
        _write_studies(source, notebooks, folder)
        _write_index(source, folder)
        if source.engines:
            _write_engines(source, folder)
        _write_assets(folder)


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """Give a new folder beside `out` that takes its place only if the block succeeds."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
        fresh, old = Path(work) / "new", Path(work) / "old"
        fresh.mkdir()
        yield fresh
        if out.exists():
            out.replace(old)
        try:
            fresh.replace(out)
        except OSError:
            if old.exists():
                old.replace(out)
            raise


def _environment(source: Source) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PACKAGE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = count
    environment.globals.update(
        verdicts=VERDICTS,
        studies=list(source.studies.values()),
        ran=ran(source.provenance),
        several_engines=len(source.engines) > 1,
        engines_page=bool(source.engines),
    )
    return environment


def _write_index(source: Source, folder: Path) -> None:
    cells = pd.read_csv(source.data / "cells.csv", dtype={"table": str, "row": str, "column": str})
    # A cell stands once: on the engine whose verdicts are its study's.
    chosen = {name: found.engine for name, found in source.headlines.items()}
    cells = cells[cells["engine"] == cells["study"].map(chosen)]
    figures = write_figures([scatter_figure(cells)] if source.cells else [], folder)
    page = _environment(source).get_template("index.html")
    text = page.render(page="index", overview=overview(source), figures=figures)
    write_text(folder / "index.html", text)


def _write_engines(source: Source, folder: Path) -> None:
    view = engines_page(source)
    figures = write_figures(
        engine_figures(source.data, source.engines) if view.agreement else [], folder
    )
    section_figures = {
        section.id: write_figures(section.figures, folder) for section in view.sections
    }
    downloads = [name for name in TABLES if (folder / "data" / name).is_file()]
    page = _environment(source).get_template("engines.html")
    text = page.render(
        page="engines",
        view=view,
        figures=figures,
        section_figures=section_figures,
        downloads=downloads,
        meanings=MEANINGS,
    )
    write_text(folder / "engines.html", text)


def _write_studies(source: Source, notebooks: Path, folder: Path) -> None:
    """Write the studies' pages, a process each: making charts takes most of the time."""
    write = partial(_write_study, source, notebooks, folder)
    workers = min(len(source.studies), os.cpu_count() or 1)
    if workers < 2:
        for study in source.studies.values():
            write(study)
        return
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(write, source.studies.values()))


def _write_study(source: Source, notebooks: Path, folder: Path, study: Study) -> None:
    # Altair would check every part of every chart against its schema again, which takes longer
    # than making them.
    with debug_mode(False):
        figures = {
            experiment: write_figures(found, folder)
            for experiment, found in _study_figures(source, study).items()
        }
        overlays = write_figures(trace_figures(source, study), folder)
    page = _environment(source).get_template("study.html")
    text = page.render(
        page=study.id,
        view=study_page(source, study, figures),
        traces=trace_section(source, study, overlays),
        ledger=ledger(study),
        robust=robust_view(source.root, source.data, study, folder),
        notebooks=_write_notebooks(study, notebooks, folder / "notebooks"),
        downloads=[
            (name, what)
            for suffix, what in STUDY_DOWNLOADS.items()
            if (folder / "data" / (name := f"{study.id}.{suffix}.csv")).is_file()
        ],
    )
    write_text(folder / f"{study.id}.html", text)


def _study_figures(source: Source, study: Study) -> dict[str, list[Figure]]:
    """Return the figures of each experiment; one that several share stands with the first."""
    results, cells = Results.load(source.data, study.id), read_cells(source.data, study.id)
    figures: dict[str, list[Figure]] = {}
    seen: set[str] = set()
    for experiment in study.experiments:
        found = figures_of(results, cells, study, experiment.id)
        figures[experiment.id] = [figure for figure in found if figure.id not in seen]
        seen.update(figure.id for figure in found)
    return figures


def _write_assets(folder: Path) -> None:
    shutil.copytree(PACKAGE / "assets", folder / "assets")
    write_text(folder / "assets" / "vega.js", _vega_bundle())


@cache
def _vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that leaves only `vegaEmbed` behind."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    notice = "/* Vega, Vega-Lite, Vega-Embed: BSD 3-Clause License, Vega contributors. */"
    return f"{notice}\n(() => {{\n{_ADDRESS.sub('', bundle)}\n}})();\n"


def _copy_data(source: Source, folder: Path) -> None:
    data = folder / "data"
    data.mkdir()
    for name in DOWNLOADS:
        shutil.copyfile(source.data / name, data / name)
    for name in OPTIONAL_DOWNLOADS:
        if (source.data / name).is_file():
            shutil.copyfile(source.data / name, data / name)
    for study in source.studies:
        for kind, path in (
            ("design", source.data / "design" / f"{study}.csv"),
            ("quantities", source.data / "evaluation" / study / "quantities.csv"),
        ):
            if path.is_file():
                shutil.copyfile(path, data / f"{study}.{kind}.csv")


def _write_notebooks(study: Study, notebooks: Path, target: Path) -> list[str]:
    """Convert the executed notebooks of a study; return their names."""
    executed = sorted(notebooks.glob(f"{study.id}.*.ipynb"))
    for path in executed:
        to_html(path, target / f"{path.stem}.html")
    return [path.stem for path in executed]
