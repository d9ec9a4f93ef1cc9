"""Render the report from existing results, with data to download; make a release of both."""

import csv
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from altair.utils.schemapi import disable_debug_mode
from jinja2 import Environment

from replication.base.errors import InputError
from replication.base.files import read_json, write_text
from replication.base.table import REGIONS_TABLE, read_frame, write_frame
from replication.compare.agreement import TABLES
from replication.compare.trace_comparison import COMPARISON, NEARNESS, SAMPLES
from replication.design.notebook_names import ANY_STUDY, SENSITIVITY, lecture_names, notebook_names
from replication.metrics.results import Results
from replication.report import release
from replication.report.charts.experiment import figures_of
from replication.report.charts.figure import Figure
from replication.report.manifest import ARCHIVE, MANIFEST, PAGES, PROVENANCE, RELEASED, manifest
from replication.report.notebooks.notebook import to_html
from replication.report.pages import assumptions, evidence, overview
from replication.report.pages.causes import interventions_view
from replication.report.pages.changes import Changes, changes_page
from replication.report.pages.conclusions import Conclusions, conclusions
from replication.report.pages.engines import differences_of, engines_page
from replication.report.pages.page import environment, ran, study_downloads, write_figures
from replication.report.pages.point import FLOW_COLUMNS, point_pages
from replication.report.pages.regions import RUNS, WORDS, regions_page, runs_table
from replication.report.pages.rules import Rules
from replication.report.pages.shown import parse
from replication.report.pages.source import COPIED, Source
from replication.report.pages.study import numbers_of_points, study_page
from replication.report.release import replacing
from replication.study.setup import Setup
from replication.study.study import Study

PACKAGE = Path(__file__).parent
#: Merged tables that a reader can download from the pages, and those that only some results have.
DOWNLOADS = (*release.JUDGED, PROVENANCE)
_FURTHER_DOWNLOADS = (REGIONS_TABLE, COMPARISON, NEARNESS, SAMPLES, *TABLES)
#: Where the pages of the release find its tables.
RELEASED_TABLES = os.path.relpath(RELEASED, PAGES)
#: The meaning of each column of the downloads.
DICTIONARY = PACKAGE / "dictionary.csv"
#: Addresses in the bundled libraries, which a page must not contain, except XML namespaces.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[^\s\"'`<>)\\]*")


def render(root: Path, data: Path, notebooks: Path, out: Path, downloads: str = COPIED) -> None:
    """Write the report on the results in `data` and the executed `notebooks`; replace `out`.

    `downloads` is the folder of the tables relative to `out`, by default a copy in it.
    InputError: a result is missing or malformed; the message says what to run.
    """
    source = Source.load(root, data, downloads)
    with replacing(out) as folder, worker_pool(len(source.studies)) as pool:
        write_report(pool, source, notebooks, folder)


def worker_pool(most: int) -> Executor:
    """Return at most so many processes that judge or render, one for each core."""
    workers = min(most, os.cpu_count() or 1)
    # Checking charts against Altair's schema would take longer than making them.
    return ProcessPoolExecutor(workers, initializer=disable_debug_mode)


def write_report(pool: Executor, source: Source, notebooks: Path, folder: Path) -> None:
    """Write the pages and what they link into an empty `folder`, by the processes of `pool`."""
    changed = changes_page(source.root, source.studies.values())
    lectures = _lectures(source, notebooks)
    # A thread copies the source for the processes, so nothing may be cached in it from now on.
    papers = source.papers
    pages = pool.submit(_write_pages, source, notebooks, folder, changed, lectures)
    write_study = partial(_write_study, source, notebooks, folder)
    written = pool.map(write_study, source.studies.values())
    findings = [lesson for lesson in written if lesson.study.id in papers]
    has_lectures = bool(lectures)
    index = pool.submit(_write_index, source, folder, findings, changed.total, has_lectures)
    index.result()
    pages.result()
    if not source.is_release:
        _copy_data(source, folder / COPIED)
    shutil.copyfile(DICTIONARY, folder / DICTIONARY.name)
    shutil.copytree(PACKAGE / "assets", folder / "assets")
    write_text(folder / "assets" / "vega.js", _vega_script())


@dataclass(frozen=True)
class Lesson:
    """The findings of a study with the chart of the first, for the first page."""

    study: Study
    conclusions: Conclusions
    figure: Figure | None


class Notebook(NamedTuple):
    """A page that a notebook was converted to; `page` is relative to the report's folder."""

    name: str
    page: str


def _write(
    templates: Environment,
    folder: Path,
    page: str,
    template: str = "",
    file: str = "",
    **shown: Any,
) -> None:
    """Write a page; its template and file are named after it by default."""
    text = templates.get_template(f"{template or page}.html").render(page=page, **shown)
    write_text(folder / (file or f"{page}.html"), text)


def _write_index(
    source: Source,
    folder: Path,
    findings: Sequence[Lesson],
    changed: int,
    has_lectures: bool,
) -> None:
    _write(
        environment(source),
        folder,
        "index",
        findings=[lesson for lesson in findings if lesson.conclusions.shown],
        unsupported=sum(lesson.conclusions.unsupported for lesson in findings),
        without_runs=sum(lesson.conclusions.without_runs for lesson in findings),
        overview=overview.overview(source),
        changed=changed,
        has_lectures=has_lectures,
    )


def _write_pages(
    source: Source, notebooks: Path, folder: Path, changed: Changes, lectures: Sequence[str]
) -> None:
    """Write the pages on all studies, those on engines and regions if there are results."""
    write, studies = partial(_write, environment(source), folder), source.studies.values()
    write("changes", changed=changed)
    write(
        "method",
        changed=changed,
        rule=Rules(),
        figures=write_figures(overview.all_numbers(source), folder),
        interventions=interventions_view(source.root),
        parameters=[(study, assumptions.parameter_tables(study)) for study in studies],
        downloads=_downloads(source),
        refuted=evidence.refuted_explanations(source),
        lectures=_write_lectures(source, notebooks, folder, lectures),
        glossary=list(csv.reader((PACKAGE / "glossary.csv").read_text("utf-8").splitlines())),
    )
    if source.engines:
        write("engines", view=engines_page(source))
    if view := regions_page(source):
        write_regions = partial(write, "regions", **vars(view), **WORDS)
        write_regions()
        for name in view.by_study:
            write_regions("region_study", f"regions~{name}.html", study=source.studies[name])
        write_frame(runs_table(view.region_results), folder / RUNS)


def _write_study(source: Source, notebooks: Path, folder: Path, study: Study) -> Lesson:
    """Write the pages of a study, its evidence, points and notebooks; return its findings."""
    name = study.id
    by_setup = Results.load_each(source.data, name)
    results = by_setup[0]
    on_primary = {ran.setup: source.primary_results(ran) for ran in by_setup}
    said = conclusions(source, study, on_primary)
    figures = _study_figures(source, study, on_primary[Setup.DEFAULTS], said, folder)
    view = study_page(source, study, results, on_primary.get(Setup.TEXTBOOK), figures)
    robust = evidence.robust_view(source, study)
    linked = _write_notebooks(source, study, notebooks, folder, with_sensitivity=bool(robust))
    templates = environment(source)
    write = partial(
        _write,
        templates,
        folder,
        name,
        view=view,
        conclusions=said,
        why=evidence.explanation_of(source.root, source.data, study),
        notebooks=linked,
        search_is_stale=evidence.is_stale(source.root, source.data, study),
    )
    write("study")
    write(
        "evidence",
        f"{name}~evidence.html",
        traces=evidence.trace_section(source, study),
        parameters=assumptions.parameter_tables(study),
        has_point_pages=source.has_point_pages(name),
        has_robustness=evidence.has_robustness(source, study),
        robust=robust,
        readings=evidence.readings_view(source, study),
        downloads=study_downloads(source.data, name),
        known_differences=differences_of(source.root, results),
    )
    if source.has_point_pages(name):
        write_point = partial(_write, templates, folder, name, "point")
        numbers = numbers_of_points(view)
        for point in point_pages(source, study, results):
            cells = numbers.get(point.file, [])
            write_point(point.file, view=point, cells=cells, up="../", flow_columns=FLOW_COLUMNS)
    chart = _chart_id(study, said)
    drawn = chain.from_iterable(figures.values())
    return Lesson(study, said, next((figure for figure in drawn if figure.id == chart), None))


def _chart_id(study: Study, said: Conclusions) -> str:
    """Return the id of the chart of a study's first finding; empty without one."""
    return f"{study.id}~{said.chart}" if said.chart else ""


def _study_figures(
    source: Source, study: Study, primary: Results, said: Conclusions, folder: Path
) -> dict[str, list[Figure]]:
    """Write the charts of each experiment: that of a finding, then published traces and others."""
    chart = _chart_id(study, said)
    judged = overview.primary_cells(source, study)
    traced = evidence.figures_of_traces(source, study)
    written = {}
    for experiment in study.experiments:
        drawn = figures_of(primary, judged, study, experiment.id)
        figures = [*traced.get(experiment.id, []), *drawn]
        figures.sort(key=lambda figure: figure.id != chart)
        titled = [said.titled(figure) if figure.id == chart else figure for figure in figures]
        written[experiment.id] = write_figures(titled, folder)
    return written


def _write_notebooks(
    source: Source, study: Study, notebooks: Path, folder: Path, *, with_sensitivity: bool
) -> list[Notebook]:
    """Convert a study's executed notebooks, or link lectures in a release; return their pages."""
    if source.is_release:
        return _linked(name for name in notebook_names(study, []) if name != ANY_STUDY)
    names = [*notebook_names(study, list(source.parts[study.id]))]
    if with_sensitivity:
        names.append(SENSITIVITY)
    shown, pages = [], _notebook_pages(source, notebooks)
    for name in names:
        path, page = notebooks / f"{study.id}.{name}.ipynb", f"notebooks/{study.id}.{name}.html"
        if path.is_file():
            to_html(path, folder / page, ran(source.provenance).whose, pages)
            shown.append(Notebook(name.replace("_", " "), page))
    return shown


def _lectures(source: Source, notebooks: Path) -> list[str]:
    """Return the names of the lectures that the report has: all in a release."""
    if source.is_release:
        return sorted(path.stem for path in (source.root / "notebooks").glob("*.ipynb"))
    names = lecture_names(source.studies)
    return [name for name in names if (notebooks / f"{name}.ipynb").is_file()]


def _write_lectures(
    source: Source, notebooks: Path, folder: Path, names: Sequence[str]
) -> list[Notebook]:
    """Convert lectures of no single study, which a release has already; return the pages."""
    if not source.is_release:
        whose, pages = ran(source.provenance).whose, _notebook_pages(source, notebooks)
        for name in names:
            to_html(notebooks / f"{name}.ipynb", folder / f"notebooks/{name}.html", whose, pages)
    return _linked(names)


def _notebook_pages(source: Source, notebooks: Path) -> dict[str, str]:
    """Return the page that links to a notebook lead to: its own, or that of its first study."""
    pages = {name: f"{name}.html" for name in _lectures(source, notebooks)}
    for path in sorted(notebooks.glob("*.*.ipynb")):
        study, name = path.stem.split(".", 1)
        if study in source.studies:
            pages.setdefault(name, f"{path.stem}.html")
    return pages


def _linked(lectures: Iterable[str]) -> list[Notebook]:
    """Return the pages of lectures, which `replicate refresh-notebooks` writes."""
    return [Notebook(name.replace("_", " "), f"notebooks/{name}.html") for name in lectures]


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
        if name.endswith(".csv"):
            _copy_for_spreadsheets(source.data / name, folder / name)
        else:
            shutil.copyfile(source.data / name, folder / name)
    for study in source.studies:
        for download in study_downloads(source.data, study):
            target = folder / download.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if download.path.suffix == ".csv":
                # Parquet has a tenth of the size.
                write_frame(read_frame(download.path), target)
            else:
                shutil.copyfile(download.path, target)


def _copy_for_spreadsheets(path: Path, target: Path) -> None:
    """Copy a CSV table so that no text of it is a formula, and no sign is unknown to a program."""
    with (
        path.open(encoding="utf-8", newline="") as file,
        target.open("w", encoding="utf-8", newline="") as copy,
    ):
        writer = csv.writer(copy, lineterminator="\n")
        writer.writerows([_unlike_formula(field) for field in row] for row in csv.reader(file))


def _unlike_formula(field: str) -> str:
    """Return a field with ASCII minus signs; an apostrophe marks text that looks like a formula."""
    text = field.replace("−", "-")
    is_formula = text.startswith(("=", "+", "-", "@")) and parse(text) is None
    return f"'{text}" if is_formula else text


#: Most bytes of released data, and of pages without those of lectures, which have 1.7 MB.
_LIMITS = {RELEASED: 7_000_000, PAGES: 8_300_000}


def make_release(root: Path, data: Path) -> str:
    """Write the data, pages and manifest of a release; return a line with their sizes.

    InputError: results are missing, or the release would be too large.
    """
    # Only a release needs the library of crates.
    from replication.report.crate import write_crate

    provenance = read_json(data / PROVENANCE)
    studies = sorted(path.stem for path in (data / "design").glob("*.csv"))
    archive = release.pack_series(root, data, studies)
    with (
        tempfile.TemporaryDirectory() as work,
        replacing(root / PAGES) as pages,
        replacing(root / RELEASED) as released,
    ):
        release.write_released(root, data, released)
        results = Path(work) / "data"
        release.restore(released, results)
        # Pages of notebooks are large, so the released report links to the lectures instead.
        render(root, results, results / "no notebooks", pages, RELEASED_TABLES)
        sizes = [_size_mb(released, RELEASED), _size_mb(pages, PAGES)]
        text = yaml.safe_dump(archive.model_dump(exclude_none=True), sort_keys=False)
        write_text(released / ARCHIVE.name, text)
        write_crate(root, released)
    write_text(root / MANIFEST, manifest(root))
    tier, engines = provenance["tier"]["id"], ", ".join(provenance["engines"])
    return (
        f"{RELEASED}: {sizes[0]:.1f} MB, {PAGES}: {sizes[1]:.1f} MB, tier {tier}, {engines}; "
        f"{release.PACKED / archive.file}: {archive.bytes / 1e6:.1f} MB, not for git"
    )


def _size_mb(folder: Path, name: Path) -> float:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > _LIMITS[name]:
        raise InputError(
            f"{name}: would have {size / 1e6:.1f} MB, more than {_LIMITS[name] / 1e6:g}; release "
            "fewer studies or engines (STUDIES=, ENGINES=)"
        )
    return size / 1e6
