"""A study's page, the pages of its points, and its notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from replication.measure.results import Results
from replication.plan.notebook_kind import SENSITIVITY, notebook_names
from replication.report.charts.experiment import figures_of
from replication.report.drawing.data import read_cells, with_explained
from replication.report.drawing.figure import Figure
from replication.report.notebooks.notebook import to_html
from replication.report.pages.point import FLOW_COLUMNS, point_pages
from replication.report.pages.sensitivity import robust_view, why_view
from replication.report.pages.study import study_page, topologies
from replication.report.pages.traces import trace_figures, trace_section
from replication.report.parts.figure import study_downloads, write_figures
from replication.report.parts.ledger import environment_rows, ledger
from replication.report.parts.page import environment, ran
from replication.report.parts.source import Source
from replication.study.files import write_text
from replication.study.storage.table import Row
from replication.study.study import Study


def write(source: Source, notebooks: Path, folder: Path, name: str) -> None:
    """Write all of study `name` into `folder`; see `report.render.write_part`."""
    study = source.studies[name]
    results = Results.load(source.data, name)
    why = why_view(source.root, source.data, study, folder)
    explained = why.explanation.cells if why and why.explanation.is_found else []
    figures = {
        experiment: write_figures(found, folder)
        for experiment, found in _figures(source, study, results, explained).items()
    }
    view = study_page(source, study, figures, topologies(study, results))
    parameters = ledger(study)
    robust = robust_view(source.root, source.data, study, folder)
    templates = environment(source)
    text = templates.get_template("study.html").render(
        page=name,
        view=view,
        traces=trace_section(source, study),
        ledger=parameters,
        environment=environment_rows(source, study, parameters),
        why=why,
        robust=robust,
        notebooks=_write_notebooks(
            source, study, notebooks, folder, with_sensitivity=bool(robust and not robust.stale)
        ),
        downloads=[
            (f"{name}.{end}", download.meaning)
            for end, download in study_downloads(source.data, name).items()
        ],
    )
    write_text(folder / f"{name}.html", text)
    template, numbers = templates.get_template("point.html"), view.numbers()
    for page in point_pages(source, study, results):
        text = template.render(
            page=name,
            view=page,
            cells=numbers.get(page.file, []),
            up="../",
            flow_columns=FLOW_COLUMNS,
        )
        write_text(folder / page.file, text)


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
            to_html(path, folder / page, ran(source.provenance).whose)
            shown.append((name.replace("_", " "), page))
    return shown
