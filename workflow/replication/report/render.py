"""The report: a folder of HTML that answers the question offline, from the file system.

Pages are rendered into a temporary folder beside the target, which they replace only when all of
them are written: a failed rendering leaves the last report in place.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import jinja2
import pandas as pd
from altair.utils.schemapi import debug_mode

from replication.compare.agreement_table import TABLES
from replication.measure.results import Results
from replication.plan.notebook_kind import SENSITIVITY, made_from, notebook_names
from replication.report.charts.data import read_cells
from replication.report.charts.engine import engine_figures
from replication.report.charts.experiment import Figure, figures_of, scatter_figure
from replication.report.charts.run import run_chart
from replication.report.crate import write_crate
from replication.report.notebooks.notebook import recorded_origin, to_html
from replication.report.pages.agreement import MEANINGS
from replication.report.pages.bench import bench_view
from replication.report.pages.engines import engines_page
from replication.report.pages.overview import overview, ran
from replication.report.pages.point import FLOW_COLUMNS, point_pages
from replication.report.pages.reliability import reliability_view
from replication.report.pages.robust import robust_view
from replication.report.pages.study import study_page, topologies
from replication.report.pages.surprise import surprises
from replication.report.pages.traces import FILES as TRACE_FILES
from replication.report.pages.traces import trace_figures, trace_section
from replication.report.parts.bench_model import NAME as BENCH
from replication.report.parts.download import copy_download
from replication.report.parts.environment import environment_rows
from replication.report.parts.figure import chart_script, script_json, write_figures
from replication.report.parts.ledger import ledger
from replication.report.parts.number import count
from replication.report.parts.reliability import NAME as RELIABILITY
from replication.report.parts.source import Source
from replication.report.parts.verdict import VERDICTS
from replication.study.files import write_text
from replication.study.seal import check, open_sealed, seal
from replication.study.study import Study

PACKAGE = Path(__file__).parent
#: Merged results that a reader can download from the pages.
DOWNLOADS = ("cells.csv", "claims.csv", "audit.csv", "provenance.json")
#: Those that not every folder of results has.
OPTIONAL_DOWNLOADS = ("conformance.csv", BENCH, RELIABILITY, *TRACE_FILES, *TABLES)
#: What each column of the downloads means.
DICTIONARY = PACKAGE / "dictionary.csv"
#: Results of one study, by the end of their names.
STUDY_DOWNLOADS = {
    "design.parquet": "every point, replicate and scenario",
    "quantities.parquet": "mean and interval of the headline metrics at every point",
    "flows.parquet": "every flow of every run",
}
#: Hosts that the bundled libraries mention; XML namespaces are names, not addresses.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`<>)\\]*")


def render(root: Path, data: Path, notebooks: Path, out: Path) -> None:
    """Write the whole report, and a seal over its files.

    Parameters
    ----------
    root
        The project's folder, with configs and published numbers.
    data
        Folder of reproduced results.
    notebooks
        Folder of executed notebooks, ``<study>.<name>.ipynb``; only those are shown that were
        executed on these results.
    out
        The report's folder, replaced as a whole.

    Raises
    ------
    InputError
        A result is missing or malformed; the message names the file and what to run.
    """
    source = Source.load(root, data)
    with replacing(out) as folder:
        _copy_data(source, folder)
        _write_studies(source, notebooks, folder)
        _write_index(source, folder)
        if source.engines:
            _write_engines(source, folder)
        _write_optional(source, folder, "bench", bench_view(source))
        _write_optional(source, folder, "reliability", reliability_view(source.data))
        _write_assets(folder)
        write_crate(folder, source.provenance)
        seal(folder)


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
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
    environment.filters["script_json"] = script_json
    environment.globals.update(
        verdicts=VERDICTS,
        studies=list(source.studies.values()),
        ran=ran(source.provenance),
        several_engines=len(source.engines) > 1,
        engines_page=bool(source.engines),
        bench_page=(source.data / BENCH).is_file(),
        reliability_page=(source.data / RELIABILITY).is_file(),
        up="",
    )
    return environment


def _write_page(path: Path, text: str) -> None:
    """Write a page without its templates' indentation, a thirtieth of its size."""
    write_text(path, re.sub(r"\n\s+", "\n", text))


def _write_index(source: Source, folder: Path) -> None:
    types = {"table": str, "row": str, "column": str}
    cells = pd.read_csv(open_sealed(source.data / "cells.csv"), dtype=types)
    # A cell stands once: on the engine whose verdicts are its study's.
    chosen = {name: found.engine for name, found in source.headlines.items()}
    cells = cells[cells["engine"] == cells["study"].map(chosen)]
    figures = write_figures([scatter_figure(cells)] if source.cells else [], folder)
    environment, view = _environment(source), overview(source)
    text = environment.get_template("index.html").render(
        page="index", overview=view, surprises=surprises(source), figures=figures
    )
    _write_page(folder / "index.html", text)
    sheets = [row for row in view.rows if row.stands]
    text = environment.get_template("summary.html").render(
        page="summary", overview=view, sheets=sheets
    )
    _write_page(folder / "summary.html", text)


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
    _write_page(folder / "engines.html", text)


def _write_optional(source: Source, folder: Path, name: str, view: object | None) -> None:
    """Write a page of what not every folder of results has."""
    if view is not None:
        page = _environment(source).get_template(f"{name}.html")
        _write_page(folder / f"{name}.html", page.render(page=name, view=view))


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
    results = Results.load(source.data, study.id)
    # Altair would check every part of every chart against its schema again, which takes longer
    # than making them.
    with debug_mode(False):
        figures = {
            experiment: write_figures(found, folder)
            for experiment, found in _study_figures(source, study, results).items()
        }
        overlays = write_figures(trace_figures(source, study), folder)
    environment = _environment(source)
    view = study_page(source, study, figures, topologies(study, results))
    parameters = ledger(study)
    text = environment.get_template("study.html").render(
        page=study.id,
        view=view,
        traces=trace_section(source, study, overlays),
        ledger=parameters,
        environment=environment_rows(source, study, parameters),
        robust=robust_view(source.root, source.data, study, folder),
        notebooks=_write_notebooks(source, study, notebooks, folder),
        downloads=[
            (name, what)
            for end, what in STUDY_DOWNLOADS.items()
            if (folder / "data" / (name := f"{study.id}.{end}")).is_file()
        ],
    )
    _write_page(folder / f"{study.id}.html", text)
    template, numbers = environment.get_template("point.html"), view.numbers()
    for page in point_pages(source, study, results):
        cells = numbers.get(page.file, [])
        text = template.render(
            page=study.id, view=page, cells=cells, up="../", flow_columns=FLOW_COLUMNS
        )
        _write_page(folder / page.file, text)


def _study_figures(source: Source, study: Study, results: Results) -> dict[str, list[Figure]]:
    """Return the figures of each experiment."""
    cells = read_cells(source.data, study.id)
    return {
        experiment.id: figures_of(results, cells, study, experiment.id)
        for experiment in study.experiments
    }


def _write_assets(folder: Path) -> None:
    shutil.copytree(PACKAGE / "assets", folder / "assets")
    write_text(folder / "assets" / "vega.js", _vega_bundle())
    with debug_mode(False):
        write_text(folder / "charts" / "run.js", chart_script("run", run_chart().to_dict()))


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
        _copy(source.data / name, data / name)
    copy_download(DICTIONARY, data / DICTIONARY.name)
    for name in OPTIONAL_DOWNLOADS:
        if (source.data / name).is_file():
            _copy(source.data / name, data / name)
    for study in source.studies:
        for name, path in (
            ("design.parquet", source.data / "design" / f"{study}.csv"),
            ("quantities.parquet", source.data / "evaluation" / study / "quantities.csv"),
            ("flows.parquet", source.data / "results" / study / "flows.parquet"),
        ):
            if path.suffix == ".csv" and path.is_file():
                # A tenth of the size; every number is the same.
                pd.read_csv(open_sealed(path)).to_parquet(data / f"{study}.{name}", index=False)
            elif path.is_file():
                _copy(path, data / f"{study}.{name}")


def _copy(source: Path, target: Path) -> None:
    check(source)
    copy_download(source, target)


def _write_notebooks(
    source: Source, study: Study, notebooks: Path, folder: Path
) -> list[tuple[str, str]]:
    """Convert a study's notebooks that were executed on these results; return names and pages."""
    shown = []
    for name in (*notebook_names(study, list(source.parts[study.id])), SENSITIVITY):
        path, page = notebooks / f"{study.id}.{name}.ipynb", f"notebooks/{study.id}.{name}.html"
        if not path.is_file():
            continue
        if recorded_origin(path) == made_from(source.root, source.data, study.id, name):
            to_html(path, folder / page, ran(source.provenance).whose)
            shown.append((name.replace("_", " "), page))
        else:
            print(f"{path}: left out: it was executed on other results", file=sys.stderr)
    return shown
