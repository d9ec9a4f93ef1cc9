"""Render: the whole report from existing results, with the data to download."""

from __future__ import annotations

import csv
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from altair.utils.schemapi import debug_mode

from replication.compare.agreement import TABLES
from replication.design.pipeline import ANY_STUDY, SENSITIVITY, notebook_names
from replication.metrics.results import Results
from replication.report.charts.experiment import figures_of
from replication.report.notebooks.notebook import to_html
from replication.report.pages.assumptions import (
    DOWN,
    MOVES,
    STAYED,
    UP,
    changes_view,
    parameter_tables,
)
from replication.report.pages.engines import differences_of, engines_page
from replication.report.pages.evidence import FILES as TRACE_FILES
from replication.report.pages.evidence import (
    figures_of_traces,
    robust_view,
    trace_section,
    why_view,
)
from replication.report.pages.overview import (
    all_numbers,
    conclusions,
    lead_findings,
    overview,
    primary_cells,
)
from replication.report.pages.page import environment, ran, study_downloads, write_figures
from replication.report.pages.point import FLOW_COLUMNS, point_pages
from replication.report.pages.regions import RUNS, regions_page, runs_table
from replication.report.pages.source import Source
from replication.report.pages.study import numbers_of_points, study_page
from replication.report.release import (
    ARCHIVE,
    MANIFEST,
    PACKED,
    PAGES,
    PROVENANCE,
    RELEASED,
    manifest,
    pack_series,
    replacing,
    restore,
    write_released,
)
from replication.study.errors import InputError
from replication.study.files import read_json, write_text
from replication.study.storage.table import read_frame, write_parquet
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
#: The field's terms and the project's, each with its meaning.
GLOSSARY = PACKAGE / "glossary.csv"
#: Hosts that the bundled libraries mention; XML namespaces are names, not addresses.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`<>)\\]*")


def render(root: Path, data: Path, notebooks: Path, out: Path, downloads: str = COPIED) -> None:
    """Write the whole report, its pages and studies a process each.

    Results are read from `data`, executed notebooks from `notebooks`; `out` is replaced as a whole.
    `downloads` is where its pages find the tables, from its folder; by default a copy in it.
    InputError names a result that is missing or malformed, and what to run.
    """
    source = Source.load(root, data, downloads)
    with replacing(out) as folder:
        write = partial(_write, source, notebooks, folder)
        names = [*_PAGES, *source.studies]
        with ProcessPoolExecutor(min(len(source.studies), os.cpu_count() or 1)) as pool:
            list(pool.map(write, names))
        if downloads == COPIED:
            _copy_data(source, folder / COPIED)
        shutil.copyfile(DICTIONARY, folder / DICTIONARY.name)
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
    found = lead_findings(source)
    write_figures([one["figure"] for one in found if one["figure"]], folder)
    return {
        "findings": found,
        "overview": overview(source),
        "figures": write_figures(all_numbers(source), folder),
        "changed": sum(len(study.changes) for study in source.studies.values()),
    }


def _changed(source: Source) -> list[dict[str, Any]]:
    return [changes_view(study) for study in source.studies.values() if study.changes]


def _method(source: Source, _: Path) -> dict[str, Any]:
    names = [path.stem for path in sorted((source.root / "notebooks").glob("*.ipynb"))]
    lectures = [] if source.downloads == COPIED else _linked(names)
    changed, tables = _changed(source), [(s, parameter_tables(s)) for s in source.studies.values()]
    moves = {way: sum(one["moves"][way] for one in changed) for way in (UP, DOWN, STAYED)}
    return {
        "changed": changed,
        "moves": moves,
        "parameters": [(s, len(one["published"]), len(one["assumed"])) for s, one in tables],
        "downloads": _downloads(source),
        "lectures": lectures,
        "glossary": [tuple(row) for row in csv.reader(GLOSSARY.read_text("utf-8").splitlines())],
    }


def _regions(source: Source, folder: Path) -> dict[str, Any] | None:
    """Write the pages of each study's regions; return what the page of all of them shows."""
    shown = regions_page(source)
    if shown is None:
        return None
    template = environment(source).get_template("region_study.html")
    for name in shown["by_study"]:
        text = template.render(page="regions", study=source.studies[name], **shown)
        write_text(folder / f"regions~{name}.html", text)
    runs = pa.Table.from_pandas(runs_table(shown["found"]), preserve_index=False)
    write_parquet(runs, folder / RUNS)
    return shown


#: What a page shows, which may write charts into the report's folder; None where there is none.
_PAGES: dict[str, Callable[[Source, Path], dict[str, Any] | None]] = {
    "index": _index,
    "changes": lambda source, _: {"changed": _changed(source), "moves": MOVES},
    "engines": lambda source, _: {"view": engines_page(source)} if source.engines else None,
    "regions": _regions,
    "method": _method,
}


def _write_study(source: Source, notebooks: Path, folder: Path, study: Study) -> None:
    """Write a study's page, its evidence, the pages of its points, and its notebooks."""
    name = study.id
    results = Results.load(source.data, name)
    primary = source.primary_results(results)
    said = conclusions(source, study, primary)
    chart = next((f"{name}~{one.chart}" for one in said if one.chart), "")
    cells, traced, figures = primary_cells(source, study), figures_of_traces(source, study), {}
    for experiment in study.experiments:
        # First what a finding names, then published traces.
        found = traced.get(experiment.id, []) + figures_of(primary, cells, study, experiment.id)
        found.sort(key=lambda one: one.id != chart)
        figures[experiment.id] = write_figures(found, folder)
    view = study_page(source, study, results, figures)
    robust = robust_view(source, study)
    templates = environment(source)
    shown = {
        "page": name,
        "view": view,
        "conclusions": said,
        "why": why_view(source.root, source.data, study, folder),
        "notebooks": _write_notebooks(
            source, study, notebooks, folder, with_sensitivity=bool(robust and not robust["stale"])
        ),
    }
    write_text(folder / f"{name}.html", templates.get_template("study.html").render(**shown))
    text = templates.get_template("evidence.html").render(
        **shown,
        traces=trace_section(source, study),
        parameters=parameter_tables(study),
        robust=robust,
        downloads=study_downloads(source.data, name),
        known_differences=differences_of(source.root, results),
    )
    write_text(folder / f"{name}~evidence.html", text)
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


def _write_notebooks(
    source: Source, study: Study, notebooks: Path, folder: Path, *, with_sensitivity: bool
) -> list[tuple[str, str]]:
    """Convert a study's executed notebooks; return names and pages.

    The released report links the lectures instead.
    """
    if source.downloads != COPIED:
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
    """Return names and pages of lectures; `replicate refresh-notebooks` writes the pages."""
    return [(name.replace("_", " "), f"notebooks/{name}.html") for name in lectures]


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


def _downloads(source: Source) -> list[str]:
    found = [name for name in OPTIONAL_DOWNLOADS if (source.data / name).is_file()]
    return [*DOWNLOADS, *found]


def _copy_data(source: Source, folder: Path) -> None:
    folder.mkdir()
    for name in _downloads(source):
        shutil.copyfile(source.data / name, folder / name)
    for study in source.studies:
        for name, path, _ in study_downloads(source.data, study):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".csv":
                # A tenth of the size; every number is the same.
                table = pa.Table.from_pandas(read_frame(path), preserve_index=False)
                write_parquet(table, folder / name)
            else:
                shutil.copyfile(path, folder / name)


#: Most bytes of released data, and of pages without those of notebooks, which may add 1 MB.
LIMITS = {RELEASED: 7_000_000, PAGES: 7_000_000}


def make_release(root: Path, data: Path) -> str:
    """Write the data, pages and manifest of a release; return a line with their sizes.

    InputError: results are missing, or the release would be too large.
    """
    provenance = read_json(data / PROVENANCE)
    studies = sorted(path.stem for path in (data / "design").glob("*.csv"))
    archive = pack_series(root, data, studies)
    with (
        tempfile.TemporaryDirectory() as work,
        replacing(root / PAGES) as pages,
        replacing(root / RELEASED) as released,
    ):
        write_released(data, released)
        results = Path(work) / "data"
        restore(root, released, results)
        # Pages of notebooks are large, so the released report links to the lectures instead.
        link = os.path.relpath(RELEASED, PAGES)
        render(root, results, results / "no notebooks", pages, link)
        sizes = [_size_mb(released, RELEASED), _size_mb(pages, PAGES)]
        text = yaml.safe_dump(archive.model_dump(exclude_none=True), sort_keys=False)
        write_text(released / ARCHIVE.name, text)
    write_text(root / MANIFEST, manifest(root))
    tier, engines = provenance["tier"]["id"], ", ".join(provenance["engines"])
    return (
        f"{RELEASED}: {sizes[0]:.1f} MB, {PAGES}: {sizes[1]:.1f} MB, tier {tier}, {engines}; "
        f"{PACKED / archive.file}: {archive.bytes / 1e6:.1f} MB, not for git"
    )


def _size_mb(folder: Path, name: Path) -> float:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > LIMITS[name]:
        raise InputError(
            f"{name}: would have {size / 1e6:.1f} MB, more than {LIMITS[name] / 1e6:g}; release "
            "fewer studies or engines (STUDIES=, ENGINES=)"
        )
    return size / 1e6
