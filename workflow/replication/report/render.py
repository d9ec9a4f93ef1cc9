"""Render: the whole report from existing results, with the data to download."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from altair.utils.schemapi import debug_mode

from replication.compare.agreement import TABLES
from replication.design.pipeline import SENSITIVITY, notebook_names
from replication.metrics.results import Results
from replication.report.charts.cells import engine_figures
from replication.report.charts.data import read_cells, with_explained
from replication.report.charts.experiment import figures_of
from replication.report.charts.figure import Figure
from replication.report.charts.run import run_chart
from replication.report.notebooks.notebook import to_html
from replication.report.pages.engines import MEANINGS, OUTCOMES, differences_of, engines_page
from replication.report.pages.evidence import robust_view, why_view
from replication.report.pages.figure import (
    chart_script,
    copy_download,
    study_downloads,
    write_figures,
)
from replication.report.pages.ledger import changes_of, engines_of, ledger, replicates_of
from replication.report.pages.overview import all_numbers, overview
from replication.report.pages.page import environment, ran
from replication.report.pages.point import FLOW_COLUMNS, point_pages
from replication.report.pages.regions import regions_page
from replication.report.pages.source import Source
from replication.report.pages.study import numbers_of_points, study_page, topologies
from replication.report.pages.traces import FILES as TRACE_FILES
from replication.report.pages.traces import trace_figures, trace_section
from replication.study.files import write_text
from replication.study.storage.parquet import write_parquet
from replication.study.storage.table import Row, read_frame
from replication.study.study import REGIONS_TABLE, Study
from replication.verdicts.counts import COUNTS
from replication.verdicts.self_consistency import SELF_CONSISTENCY

PACKAGE = Path(__file__).parent
#: Merged results that a reader can download from the pages.
DOWNLOADS = ("cells.csv", "claims.csv", COUNTS, SELF_CONSISTENCY, "audit.csv", "provenance.json")
#: Those that not every folder of results has.
OPTIONAL_DOWNLOADS = (REGIONS_TABLE, *TRACE_FILES, *TABLES)
#: Where a report has its own copy of them; the release's pages link to the released tables.
COPIED = "data"
#: What each column of the downloads means.
DICTIONARY = PACKAGE / "dictionary.csv"
#: Hosts that the bundled libraries mention; XML namespaces are names, not addresses.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`<>)\\]*")


def render(root: Path, data: Path, notebooks: Path, out: Path, downloads: str = COPIED) -> None:
    """Write the whole report, its pages and studies a process each.

    Parameters
    ----------
    root, data, notebooks
        The folders of the project, of reproduced results and of executed notebooks.
    out
        The report's folder, replaced as a whole.
    downloads
        Where its pages find the tables, from its folder; by default a copy in it.

    Raises
    ------
    InputError
        A result is missing or malformed; the message names the file and what to run.
    """
    source = Source.load(root, data, downloads)
    with replacing(out) as folder:
        write = partial(_write, source, notebooks, folder)
        names = [*_PAGES, *source.studies]
        with ProcessPoolExecutor(min(len(source.studies), os.cpu_count() or 1)) as pool:
            list(pool.map(write, names))
        if downloads == COPIED:
            _copy_data(source, folder / COPIED)
        copy_download(DICTIONARY, folder / DICTIONARY.name)
        _write_assets(folder)


def _write(source: Source, notebooks: Path, folder: Path, name: str) -> None:
    """Write all of a study, or a page of `_PAGES` if it has anything to show."""
    # Altair would check every part of every chart against its schema again, which takes longer
    # than making them.
    with debug_mode(False):
        if name in source.studies:
            _write_study(source, notebooks, folder, source.studies[name])
        elif (shown := _PAGES[name](source, folder)) is not None:
            template = environment(source).get_template(f"{name}.html")
            write_text(folder / f"{name}.html", template.render(page=name, **shown))


def _index(source: Source, folder: Path) -> dict[str, Any]:
    figures = write_figures(all_numbers(source), folder)
    return {"overview": overview(source), "figures": figures}


def _changes(source: Source, _: Path) -> dict[str, Any]:
    found = [(study, changes_of(study)) for study in source.studies.values()]
    today = {(row["study"], row["claim"], row["engine"]): row["verdict"] for row in source.claims}
    return {"changed": [pair for pair in found if pair[1]], "today": today}


def _engines(source: Source, folder: Path) -> dict[str, Any] | None:
    if not source.engines:
        return None
    view = engines_page(source)
    figures = engine_figures(source.cells, source.engines) if view["agreement"] else []
    return {
        "view": view,
        "figures": write_figures(figures, folder),
        "outcomes": OUTCOMES,
        "downloads": [name for name in TABLES if (source.data / name).is_file()],
        "meanings": MEANINGS,
    }


#: What a page shows, which may write charts into the report's folder; None where there is none.
_PAGES: dict[str, Callable[[Source, Path], dict[str, Any] | None]] = {
    "index": _index,
    "changes": _changes,
    "engines": _engines,
    "regions": lambda source, _: regions_page(source),
}


def _write_study(source: Source, notebooks: Path, folder: Path, study: Study) -> None:
    """Write a study's page, the pages of its points, and its notebooks."""
    name = study.id
    results = Results.load(source.data, name)
    why = why_view(source.root, source.data, study, folder)
    explained = why["found"]["rows"] if why and why["found"]["is_found"] else []
    figures = {
        experiment: write_figures(found, folder)
        for experiment, found in _figures(source, study, results, explained).items()
    }
    view = study_page(source, study, figures, topologies(study, results))
    robust = robust_view(source, study, folder)
    templates = environment(source)
    text = templates.get_template("study.html").render(
        page=name,
        view=view,
        traces=trace_section(source, study),
        ledger=ledger(study),
        ran_on=engines_of(source, study),
        replicates=replicates_of(source, study),
        why=why,
        robust=robust,
        notebooks=_write_notebooks(
            source, study, notebooks, folder, with_sensitivity=bool(robust and not robust["stale"])
        ),
        downloads=study_downloads(source.data, name),
        known_differences=differences_of(source.root, results),
    )
    write_text(folder / f"{name}.html", text)
    template, numbers = templates.get_template("point.html"), numbers_of_points(view)
    for page in point_pages(source, study, results):
        text = template.render(
            page=name,
            view=page,
            cells=numbers.get(page["file"], []),
            up="../",
            flow_columns=FLOW_COLUMNS,
        )
        write_text(folder / page["file"], text)


def _figures(
    source: Source, study: Study, results: Results, explained: Sequence[Row]
) -> dict[str, list[Figure]]:
    """Return the figures of each experiment, first those with published traces in them."""
    cells = with_explained(read_cells(source.data, study.id), explained)
    traced = trace_figures(source, study)
    return {
        experiment.id: [
            *traced.get(experiment.id, []),
            *figures_of(results, cells, study, experiment.id),
        ]
        for experiment in study.experiments
    }


def _write_notebooks(
    source: Source, study: Study, notebooks: Path, folder: Path, *, with_sensitivity: bool
) -> list[tuple[str, str]]:
    """Convert a study's executed notebooks; return names and pages."""
    names = notebook_names(study, list(source.parts[study.id]))
    shown = []
    for name in (*names, *([SENSITIVITY] if with_sensitivity else [])):
        path, page = notebooks / f"{study.id}.{name}.ipynb", f"notebooks/{study.id}.{name}.html"
        if path.is_file():
            to_html(path, folder / page, ran(source.provenance)["whose"])
            shown.append((name.replace("_", " "), page))
    return shown


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
    found = [name for name in OPTIONAL_DOWNLOADS if (source.data / name).is_file()]
    for name in (*DOWNLOADS, *found):
        copy_download(source.data / name, folder / name)
    for study in source.studies:
        for name, path, _ in study_downloads(source.data, study):
            if path.suffix == ".csv":
                # A tenth of the size; every number is the same.
                table = pa.Table.from_pandas(read_frame(path), preserve_index=False)
                write_parquet(table, folder / name)
            else:
                copy_download(path, folder / name)
