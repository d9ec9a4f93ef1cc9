"""Render the report from existing results, with data to download; make a release of both."""

from __future__ import annotations

import csv
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from altair.utils.schemapi import disable_debug_mode
from jinja2 import Environment

from replication.compare.agreement import TABLES
from replication.compare.trace_comparison import COMPARISON, NEARNESS, SAMPLES
from replication.design.pipeline import ANY_STUDY, SENSITIVITY, notebook_names
from replication.metrics.results import Results
from replication.report import release
from replication.report.charts.experiment import figures_of
from replication.report.notebooks.notebook import to_html
from replication.report.pages import assumptions, evidence, overview
from replication.report.pages.engines import differences_of, engines_page
from replication.report.pages.page import environment, ran, study_downloads, write_figures
from replication.report.pages.point import FLOW_COLUMNS, point_pages
from replication.report.pages.regions import RUNS, regions_page, runs_table
from replication.report.pages.source import Source
from replication.report.pages.study import numbers_of_points, study_page
from replication.report.release import PAGES, RELEASED, replacing
from replication.study.errors import InputError
from replication.study.files import read_json, write_text
from replication.study.study import REGIONS_TABLE, Study
from replication.study.table import read_frame, write_parquet

PACKAGE = Path(__file__).parent
#: Merged tables that a reader can download from the pages, and those that only some results have.
DOWNLOADS = (*release.JUDGED, release.PROVENANCE)
_FURTHER_DOWNLOADS = (REGIONS_TABLE, COMPARISON, NEARNESS, SAMPLES, *TABLES)
#: A report's copy of the tables; pages of the release link to data/release instead.
_COPIED = "data"
#: The meaning of each column of the downloads.
DICTIONARY = PACKAGE / "dictionary.csv"
#: Addresses in the bundled libraries, which a page must not contain, except XML namespaces.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`<>)\\]*")


def render(root: Path, data: Path, notebooks: Path, out: Path, downloads: str = _COPIED) -> None:
    """Write the report on the results in `data` and the executed `notebooks`; replace `out`.

    `downloads` is the folder of the tables relative to `out`, by default a copy in it.
    InputError: a result is missing or malformed; the message says what to run.
    """
    source = Source.load(root, data, downloads)
    workers = min(len(source.studies), os.cpu_count() or 1)
    with replacing(out) as folder:
        # Checking charts against Altair's schema would take longer than making them.
        with ProcessPoolExecutor(workers, initializer=disable_debug_mode) as pool:
            pages = [pool.submit(_write_page, source, folder, name) for name in _PAGES]
            write_study = partial(_write_study, source, notebooks, folder)
            findings = list(pool.map(write_study, source.studies.values()))
            pages.append(pool.submit(_write_index, source, folder, findings))
            for page in pages:
                page.result()
        if downloads == _COPIED:
            _copy_data(source, folder / _COPIED)
        shutil.copyfile(DICTIONARY, folder / DICTIONARY.name)
        shutil.copytree(PACKAGE / "assets", folder / "assets")
        write_text(folder / "assets" / "vega.js", _vega_script())


def _write_page(source: Source, folder: Path, name: str) -> None:
    """Write a page of `_PAGES` if it has anything to show."""
    if (shown := _PAGES[name](source, folder)) is not None:
        _write(environment(source), f"{name}.html", folder / f"{name}.html", page=name, **shown)


def _write(templates: Environment, template: str, path: Path, **shown: Any) -> None:
    write_text(path, templates.get_template(template).render(**shown))


def _write_index(source: Source, folder: Path, findings: Sequence[dict[str, Any]]) -> None:
    shown = {
        "findings": [one for one in findings if one["said"]],
        "overview": overview.overview(source),
        "figures": write_figures(overview.all_numbers(source), folder),
        "changed": sum(len(study.changes) for study in source.studies.values()),
    }
    _write(environment(source), "index.html", folder / "index.html", page="index", **shown)


def _changed(source: Source) -> list[dict[str, Any]]:
    return [assumptions.changes_view(study) for study in source.studies.values() if study.changes]


def _method(source: Source, _: Path) -> dict[str, Any]:
    names = [path.stem for path in sorted((source.root / "notebooks").glob("*.ipynb"))]
    tables = [(s, assumptions.parameter_tables(s)) for s in source.studies.values()]
    glossary = (PACKAGE / "glossary.csv").read_text("utf-8").splitlines()
    return {
        "changed": _changed(source),
        "parameters": [(s, len(one["published"]), len(one["assumed"])) for s, one in tables],
        "downloads": _downloads(source),
        "lectures": [] if source.downloads == _COPIED else _linked(names),
        "glossary": list(csv.reader(glossary)),
    }


def _regions(source: Source, folder: Path) -> dict[str, Any] | None:
    """Write the page on each study's regions; return what the page on all regions shows."""
    shown = regions_page(source)
    if shown is None:
        return None
    templates = environment(source)
    for name in shown["by_study"]:
        own, path = shown | {"study": source.studies[name]}, folder / f"regions~{name}.html"
        _write(templates, "region_study.html", path, page="regions", **own)
    runs = pa.Table.from_pandas(runs_table(shown["found"]), preserve_index=False)
    write_parquet(runs, folder / RUNS)
    return shown


#: Views of pages, which may write charts into the report's folder; None: there is no page.
_PAGES: dict[str, Callable[[Source, Path], dict[str, Any] | None]] = {
    "changes": lambda source, _: {"changed": _changed(source), "moves": assumptions.MOVES},
    "engines": lambda source, _: {"view": engines_page(source)} if source.engines else None,
    "regions": _regions,
    "method": _method,
}


def _write_study(source: Source, notebooks: Path, folder: Path, study: Study) -> dict[str, Any]:
    """Write the pages of a study, its evidence, points and notebooks; return its findings.

    The first page shows the findings with the chart of the first.
    """
    name = study.id
    results = Results.load(source.data, name)
    primary = source.primary_results(results)
    said = overview.conclusions(source, study, primary)
    chart = f"{name}~{said[0].chart}" if said else ""
    judged, figures = overview.primary_cells(source, study), {}
    traced = evidence.figures_of_traces(source, study)
    for experiment in study.experiments:
        # The chart of a finding comes first, then published traces.
        found = traced.get(experiment.id, []) + figures_of(primary, judged, study, experiment.id)
        found.sort(key=lambda one: one.id != chart)
        figures[experiment.id] = write_figures(found, folder)
    view = study_page(source, study, results, figures)
    robust, templates = evidence.robust_view(source, study), environment(source)
    has_sensitivity = bool(robust and not robust["stale"])
    linked = _write_notebooks(source, study, notebooks, folder, with_sensitivity=has_sensitivity)
    why = evidence.why_view(source.root, source.data, study, folder)
    shown = {"page": name, "view": view, "conclusions": said, "why": why, "notebooks": linked}
    _write(templates, "study.html", folder / f"{name}.html", **shown)
    _write(
        templates,
        "evidence.html",
        folder / f"{name}~evidence.html",
        **shown,
        traces=evidence.trace_section(source, study),
        parameters=assumptions.parameter_tables(study),
        robust=robust,
        downloads=study_downloads(source.data, name),
        known_differences=differences_of(source.root, results),
    )
    numbers = numbers_of_points(view)
    for page in point_pages(source, study, results):
        further = {"cells": numbers.get(page["file"], []), "flow_columns": FLOW_COLUMNS}
        _write(
            templates,
            "point.html",
            folder / page["file"],
            page=name,
            view=page,
            up="../",
            **further,
        )
    drawn = (one for own in figures.values() for one in own)
    return {"study": study, "said": said, "figure": next((f for f in drawn if f.id == chart), None)}


def _write_notebooks(
    source: Source, study: Study, notebooks: Path, folder: Path, *, with_sensitivity: bool
) -> list[tuple[str, str]]:
    """Convert a study's executed notebooks, or link lectures in a release; return their pages."""
    if source.downloads != _COPIED:
        return _linked(name for name in notebook_names(study, []) if name != ANY_STUDY)
    names = notebook_names(study, list(source.parts[study.id]))
    shown = []
    for name in (*names, *([SENSITIVITY] if with_sensitivity else [])):
        path, page = notebooks / f"{study.id}.{name}.ipynb", f"notebooks/{study.id}.{name}.html"
        if path.is_file():
            to_html(path, folder / page, ran(source.provenance)["whose"])
            shown.append((name.replace("_", " "), page))
    return shown


def _linked(lectures: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pages of lectures, which `replicate refresh-notebooks` writes."""
    return [(name.replace("_", " "), f"notebooks/{name}.html") for name in lectures]


@cache
def _vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that defines only `vegaEmbed`."""
    import vl_convert

    bundle = _ADDRESS.sub("", vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    notice = "/* Vega, Vega-Lite, Vega-Embed: BSD 3-Clause License, Vega contributors. */"
    return f"{notice}\n(() => {{\n{bundle}\n}})();\n"


def _downloads(source: Source) -> list[str]:
    further = [name for name in _FURTHER_DOWNLOADS if (source.data / name).is_file()]
    return [*DOWNLOADS, *further]


def _copy_data(source: Source, folder: Path) -> None:
    folder.mkdir()
    for name in _downloads(source):
        shutil.copyfile(source.data / name, folder / name)
    for study in source.studies:
        for name, path, _ in study_downloads(source.data, study):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".csv":
                # Parquet has a tenth of the size.
                table = pa.Table.from_pandas(read_frame(path), preserve_index=False)
                write_parquet(table, folder / name)
            else:
                shutil.copyfile(path, folder / name)


#: Most bytes of released data, and of pages without those of notebooks, which may add 1 MB.
_LIMIT = 7_000_000


def make_release(root: Path, data: Path) -> str:
    """Write the data, pages and manifest of a release; return a line with their sizes.

    InputError: results are missing, or the release would be too large.
    """
    provenance = read_json(data / release.PROVENANCE)
    studies = sorted(path.stem for path in (data / "design").glob("*.csv"))
    archive = release.pack_series(root, data, studies)
    with (
        tempfile.TemporaryDirectory() as work,
        replacing(root / PAGES) as pages,
        replacing(root / RELEASED) as released,
    ):
        release.write_released(data, released)
        results = Path(work) / "data"
        release.restore(root, released, results)
        # Pages of notebooks are large, so the released report links to the lectures instead.
        link = os.path.relpath(RELEASED, PAGES)
        render(root, results, results / "no notebooks", pages, link)
        sizes = [_size_mb(released, RELEASED), _size_mb(pages, PAGES)]
        text = yaml.safe_dump(archive.model_dump(exclude_none=True), sort_keys=False)
        write_text(released / release.ARCHIVE.name, text)
    write_text(root / release.MANIFEST, release.manifest(root))
    tier, engines = provenance["tier"]["id"], ", ".join(provenance["engines"])
    return (
        f"{RELEASED}: {sizes[0]:.1f} MB, {PAGES}: {sizes[1]:.1f} MB, tier {tier}, {engines}; "
        f"{release.PACKED / archive.file}: {archive.bytes / 1e6:.1f} MB, not for git"
    )


def _size_mb(folder: Path, name: Path) -> float:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > _LIMIT:
        raise InputError(
            f"{name}: would have {size / 1e6:.1f} MB, more than {_LIMIT / 1e6:g}; release fewer "
            "studies or engines (STUDIES=, ENGINES=)"
        )
    return size / 1e6
