"""What a notebook shows of one study and one type of experiment.

Prose about findings is made from verdicts and numbers, so that it cannot say anything else than
the tables and charts beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from replication.judge.flags.claim_flag import read_flags
from replication.judge.flags.own_data import FAILS
from replication.judge.verdict_table import read_table
from replication.measure.results import Results
from replication.plan.config import load_study
from replication.report.charts.experiment import figures_of, tables_of
from replication.report.drawing.data import read_cells
from replication.report.drawing.figure import Figure
from replication.report.notebooks.markup import Html, interval, percent, rounded, show, table, text
from replication.report.parts.flag import OWN_WORDS
from replication.study.errors import InputError
from replication.study.study import Experiment, Parameter, Study, parameters_of
from replication.study.table import FLAG_COLUMNS
from replication.study.verdict import Verdict

_STUDIES = Path("configs") / "studies"


@dataclass(frozen=True)
class ExperimentNotebook:
    """Results of one study's experiments of one type.

    Attributes
    ----------
    study, kind
        The study and the type of experiment.
    results
        What was run.
    cells, claims
        Judged cells and claims of the whole study.
    """

    study: Study
    kind: str
    results: Results
    cells: pd.DataFrame
    claims: pd.DataFrame

    @classmethod
    def open(cls, study: str, kind: str, data: str, root: str = "") -> ExperimentNotebook:
        """Open the notebook.

        Parameters
        ----------
        study, kind
            Id of the study, type of experiment.
        data
            Folder of results, relative to `root`.
        root
            The project's folder; by default the nearest one above the working folder.

        Raises
        ------
        InputError
            The project, the study or its results are not there, or it has no such experiment.
        """
        project = Path(root) if root else find_project(Path.cwd())
        folder = Path(data) if Path(data).is_absolute() else project / data
        document = load_study(project, study)
        if all(experiment.type != kind for experiment in document.experiments):
            raise InputError(f"study {study} has no experiment of type {kind}")
        results = Results.load(folder, study)
        evaluation = folder / "evaluation" / study
        claims = read_table(evaluation / "claims.parquet").to_pandas()
        flags = pd.DataFrame(read_flags(evaluation), columns=list(FLAG_COLUMNS))
        claims = claims.merge(flags, on=["study", "claim", "engine"], how="left")
        return cls(document, kind, results, read_cells(folder, study), claims)

    @property
    def experiments(self) -> list[Experiment]:
        """Return the study's experiments of the notebook's type."""
        return [e for e in self.study.experiments if e.type == self.kind]

    def question(self) -> Html:
        """Return the paper, its questions and where it asks them."""
        paper = self.study.bibliography
        year = f", {paper.year}" if paper.year else ""
        head = f"<p><cite>{text(paper.title)}</cite> ({text(', '.join(paper.authors))}{year})</p>"
        items = "".join(
            f"<li><b>{text(e.title)}</b>: {text(e.question)} ({text(e.place)})</li>"
            for e in self.experiments
        )
        return Html(f"{head}<ul>{items}</ul>")

    def setup(self) -> Html:
        """Return the factors and parameters, and which of them the paper does not state."""
        parts = []
        for experiment in self.experiments:
            factors = [
                (f.label, ", ".join(level.label for level in f.levels), f.unit or "–")
                for f in experiment.factors
            ]
            parameters = parameters_of(self.study, experiment)
            rows = [_parameter_row(name, p) for name, p in parameters.items()]
            assumed = sum(p.assumed is not None for p in parameters.values())
            parts += [
                table(["Factor", "Levels", "Unit"], factors, f"{experiment.title}: factors"),
                f"<p>{assumed} of {len(rows)} parameters are not in the paper; they are marked "
                "<i>assumed</i>, with the reason and what else would be plausible.</p>",
                table(["Parameter", "Value", "Unit", "Source", "Where or why"], rows, "Parameters"),
            ]
        return Html("".join(parts))

    def findings(self) -> Html:
        """Return what was found, in sentences made from the verdicts."""
        runs = pd.concat([self.results.runs(e.id, {}) for e in self.experiments])
        supported = runs[runs["supported"]]
        count = supported["scenario"].nunique()
        points = supported[["point", "engine"]].drop_duplicates().shape[0]
        engines = ", ".join(sorted(supported["engine"].unique())) or "no engine"
        words = f"<p>{count} runs at {points} points on {text(engines)}."
        claims, cells = self._own_claims(), self._own_cells()
        words += _counts("claims", claims) + _counts("published numbers", cells) + "</p>"
        lines = [
            f"<li><b>{text(row['verdict'])}</b>{_flagged(row)} ({text(row['claim'])}, "
            f"{text(row['engine'])}): <q>{text(row['quote'])}</q> {text(row['finding'])}</li>"
            for row in claims.to_dict("records")
        ]
        return Html(words + (f"<ul>{''.join(lines)}</ul>" if lines else ""))

    def claim_table(self) -> Html:
        """Return the notebook's claims: statistic, interval, what was asked, verdict, flags."""
        rows = [
            (
                row["claim"],
                row["engine"],
                row["statistic"],
                rounded(row["observed"]),
                interval(row["low"], row["high"]),
                row["margin"],
                row["verdict"],
                row["evidence"] if row["vacuous"] == "true" else "–",
                row["own_data"],
            )
            for row in self._own_claims().to_dict("records")
        ]
        head = ["Claim", "Engine", "Statistic", "Observed", "95 % interval", "Asked for", "Verdict"]
        head += ["Vacuous", "Paper's own data"]
        return Html(table(head, rows, "Claims") if rows else "<p>No claims.</p>")

    def cell_table(self) -> Html:
        """Return the notebook's published numbers beside the reproduced ones."""
        rows = []
        for row in self._own_cells().to_dict("records"):
            factor = row["display_factor"]
            low, high = factor * row["reproduced_low"], factor * row["reproduced_high"]
            rows.append(
                (
                    f"{row['table']}: {row['row']}, {row['column']}",
                    row["engine"],
                    row["display_unit"],
                    rounded(factor * row["published"]),
                    rounded(factor * row["reproduced_mean"]),
                    interval(low, high),
                    percent(row["relative_deviation"]),
                    row["verdict"],
                )
            )
        if not rows:
            return Html("<p>The paper prints no numbers for these experiments.</p>")
        head = ["Number", "Engine", "Unit", "Published", "Reproduced", "95 % interval"]
        return Html(table([*head, "Deviation", "Verdict"], rows, "Published numbers"))

    def figures(self) -> list[Figure]:
        """Return the figures of all experiments of the notebook."""
        return [
            figure
            for experiment in self.experiments
            for figure in figures_of(self.results, self.cells, self.study, experiment.id)
        ]

    def show_figures(self) -> None:
        """Display each figure under its title; its description is the image's alternative text."""
        show(self.figures())

    def _own_claims(self) -> pd.DataFrame:
        ids = {e.id for e in self.experiments}
        own = [c.id for c in self.study.claims if any(q.experiment in ids for q in c.quantities())]
        return self.claims[self.claims["claim"].isin(own)]

    def _own_cells(self) -> pd.DataFrame:
        if self.cells.empty:
            return self.cells
        parts = [
            _cells_of(self.cells, table.id, table.rows, table.experiment, experiment)
            for experiment in self.experiments
            for table in tables_of(self.study, experiment)
        ]
        return pd.concat(parts) if parts else self.cells.iloc[:0]


def find_project(folder: Path) -> Path:
    """Return the nearest folder at or above `folder` that holds the studies.

    Raises
    ------
    InputError
        There is none.
    """
    for candidate in (folder, *folder.parents):
        if (candidate / _STUDIES).is_dir():
            return candidate
    raise InputError(f"no {_STUDIES.as_posix()} in this folder or above it; set `root`")


def _cells_of(
    cells: pd.DataFrame, table: str, rows: Any, owner: str, experiment: Experiment
) -> pd.DataFrame:
    ours = cells[cells["table"] == table]
    if not rows:
        return ours
    own = [key for key, row in rows.items() if (row.experiment or owner) == experiment.id]
    return ours[ours["row"].isin(own)]


def _parameter_row(name: str, parameter: Parameter) -> tuple[str, str, str, str, str]:
    value = parameter.value if isinstance(parameter.value, str) else json.dumps(parameter.value)
    if parameter.published is not None:
        return name, value, parameter.unit or "–", "published", parameter.published.place
    assert parameter.assumed is not None  # the model demands one of the two
    assumed = parameter.assumed
    plausible: Iterable[Any] = assumed.choices or []
    choices = ", ".join("none" if choice is None else str(choice) for choice in plausible)
    if assumed.range is not None:
        choices = f"{assumed.range[0]:g} to {assumed.range[1]:g}"
    why = f"{assumed.reason} Plausible: {choices}."
    return name, value, parameter.unit or "–", "assumed", why


def _flagged(row: Mapping[Any, Any]) -> str:
    """Return what stands beside a verdict: that it is vacuous, that the own data fail the test."""
    marks = ["vacuous"] if row["vacuous"] == "true" else []
    marks += [OWN_WORDS] if row["own_data"] == FAILS else []
    return "".join(f", <b>{text(mark)}</b>" for mark in marks)


def _counts(what: str, table: pd.DataFrame) -> str:
    if table.empty:
        return ""
    counts = table["verdict"].value_counts()
    each = [f"{counts[verdict]} {verdict}" for verdict in Verdict if verdict in counts]
    return f" Of {len(table)} {what}: {', '.join(each)}."
