"""The input of the report (verdicts, design, provenance, studies), and links to points."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from replication.base import table as tables
from replication.base.files import read_json
from replication.base.table import AnyRow, Row, field_of, read_rows
from replication.design.config import load_study_of
from replication.metrics.results import Results
from replication.report.charts.data import labels_of, proper
from replication.report.charts.figure import file_of, name_of
from replication.study.setup import Setup
from replication.study.study import PAPERS, Study
from replication.study.verdict import Verdict
from replication.verdicts import verdict_table
from replication.verdicts.audit import CONSISTENT
from replication.verdicts.self_consistency import SELF_CONSISTENCY
from replication.verdicts.verdict_table import (
    CellRow,
    ClaimRow,
    EngineCoverage,
    RowType,
    is_supported,
    read_cells,
    read_claims,
    rows_on,
    runs_under,
)
from replication.verdicts.wording import table_names

#: Columns of a cell that readers see.
LABELS = ("row_label", "column_label")


#: A report's copy of the tables; pages of the release link to data/release instead.
COPIED = "data"


class PointLink(NamedTuple):
    """A point of an experiment and its page or place; `file` is relative to the report's folder."""

    label: str
    file: str


@dataclass(frozen=True)
class Source:
    """The report's input except the series behind the charts.

    `self_consistency` has the rows of self_consistency.csv by study and claim. `downloads` is the
    folder of the tables, relative to the report's folder.
    """

    root: Path
    data: Path
    cells: list[CellRow]
    claims: list[ClaimRow]
    audit: list[Row]
    provenance: dict[str, Any]
    self_consistency: dict[tuple[str, str], Row]
    downloads: str

    @classmethod
    def load(cls, root: Path, data: Path, downloads: str = COPIED) -> Self:
        """Read the merged tables in `data`; InputError if one is missing or malformed."""
        of_papers = read_rows(data / SELF_CONSISTENCY, tables.SELF_CONSISTENCY_COLUMNS)
        return cls(
            root=root,
            data=data,
            cells=[_with_names(row) for row in read_cells(data)],
            claims=read_claims(data),
            audit=read_rows(data / "audit.csv", tables.AUDIT_COLUMNS),
            provenance=read_json(data / "provenance.json"),
            self_consistency={(row["study"], row["claim"]): row for row in of_papers},
            downloads=downloads,
        )

    @cached_property
    def studies(self) -> dict[str, Study]:
        """The evaluated studies by id: papers, then further works, each sorted."""
        names = {cell.study for cell in self.cells} | {claim.study for claim in self.claims}
        names |= {row["study"] for row in self.audit}
        studies = [load_study_of(self.root, self.data, name) for name in sorted(names)]
        studies.sort(key=lambda study: study.group != PAPERS)
        return {study.id: study for study in studies}

    @cached_property
    def papers(self) -> dict[str, Study]:
        """The studies that the first page's answer is about: papers, or all if there is none."""
        papers = {name: study for name, study in self.studies.items() if study.group == PAPERS}
        return papers or self.studies

    @cached_property
    def parts(self) -> dict[str, dict[str, EngineCoverage]]:
        """What each engine ran and refused of each study, in the order of the design."""
        return {name: verdict_table.engine_coverage(self.design(name)) for name in self.studies}

    @cached_property
    def engines(self) -> list[str]:
        """The engines that ran a point of any study, in the order of the designs."""
        parts = itertools.chain.from_iterable(study.values() for study in self.parts.values())
        return list(dict.fromkeys(part.engine for part in parts if part.ran))

    @cached_property
    def primary_engines(self) -> dict[str, verdict_table.PrimaryEngine]:
        """The primary engine of each study, with a note if it is not the paper's."""
        engines = {}
        for name, study in self.studies.items():
            original = study.original_system.engine
            engines[name] = verdict_table.primary_engine(original, self.parts[name])
        return engines

    def shown_engines(self, study: str) -> list[str]:
        """Return the engines that ran any point of a study, the primary engine first."""
        primary, parts = self.primary_engines[study].engine, self.parts[study]
        ran = [engine for engine, part in parts.items() if part.ran and engine != primary]
        return [primary, *ran] if primary else ran

    def on_primary(self, rows: Sequence[RowType], setup: Setup = Setup.DEFAULTS) -> list[RowType]:
        """Return the rows of a set-up on the primary engine of their study, or on no engine."""
        engines = {name: primary.engine for name, primary in self.primary_engines.items()}
        return rows_on(rows, engines, setup)

    @cached_property
    def setups(self) -> list[Setup]:
        """The set-ups that any study has verdicts of, `defaults` first."""
        judged = {cell.setup for cell in self.cells} | {claim.setup for claim in self.claims}
        return [setup for setup in Setup if setup in judged | {Setup.DEFAULTS}]

    def table_name(self, study: str, table: str) -> str:
        """Return the name of a table of a study; empty for a claim, which has none."""
        return table_names(self.studies[study]).get(table, "")

    @cached_property
    def findings(self) -> list[Row]:
        """The findings of the audit, impossible values first."""
        findings = [row for row in self.audit if row["finding"] not in ("", CONSISTENT)]
        return sorted(findings, key=lambda row: row["finding"] != Verdict.IMPOSSIBLE)

    def primary_results(self, results: Results) -> Results:
        """Return the results of a study on its primary engine."""
        engine = self.primary_engines[results.study_id].engine
        design, flows = results.design, results.flows
        return replace(
            results,
            design=design[design["engine"] == engine],
            flows=flows[flows["engine"] == engine],
        )

    @cached_property
    def _points(self) -> dict[str, dict[tuple[str, str], PointLink]]:
        return {}

    @property
    def is_release(self) -> bool:
        """Whether the pages are those of the release, which links its tables and lectures."""
        return self.downloads != COPIED

    def has_point_pages(self, study: str) -> bool:
        """Return whether points of a study have pages, which further works lack in a release."""
        return not self.is_release or self.studies[study].group == PAPERS

    def points(self, study: str) -> dict[tuple[str, str], PointLink]:
        """Return the points of a study that any engine ran."""
        if study not in self._points:
            rows = [row for row in self.design(study) if is_supported(row)]
            ran = {(row["experiment"], row["point"]): row["levels"] for row in rows}
            self._points[study] = {key: self._link(study, *key, ran[key]) for key in ran}
        return self._points[study]

    def _link(self, study: str, experiment: str, point: str, levels: str) -> PointLink:
        factors = self.studies[study].experiment(experiment).factors
        if self.has_point_pages(study):
            file = f"runs/{file_of(name_of(study, experiment, point))}.html"
        else:
            file = f"{study}~evidence.html#{point_id(experiment, point)}"
        return PointLink(labels_of(json.loads(levels), factors), file)

    def under(self, rows: Sequence[CellRow] | Sequence[ClaimRow]) -> list[PointLink]:
        """Return the points that a number or claim rests on, given its rows on all engines."""
        points = itertools.chain.from_iterable(row.points for row in rows)
        wanted = {(point["experiment"], point["point"]) for point in points}
        return [link for key, link in self.points(rows[0].study).items() if key in wanted]

    def design(self, study: str) -> list[Row]:
        """Return the rows of a study's design at the defaults."""
        return runs_under(tables.read_design(self.data, study))


def _with_names(cell: CellRow) -> CellRow:
    """Return a cell whose labels have the names of congestion controls and queues."""
    return replace(
        cell,
        row_label=proper(cell.row_label),
        column_label=proper(cell.column_label),
    )


def read_if_there(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a CSV file; none if it is missing."""
    return read_rows(path, columns) if path.is_file() else []


def of_study(rows: Sequence[AnyRow], study: str) -> list[AnyRow]:
    """Return the rows of one study."""
    return [row for row in rows if field_of(row, "study") == study]


def cell_id(table: str, row: str, column: str) -> str:
    """Return the HTML id of a number's row; the charts' script makes the same."""
    return f"cell={name_of(table, row, column)}"


def point_id(experiment: str, point: str) -> str:
    """Return the HTML id of a point's row among the runs of a study."""
    return f"point={name_of(experiment, point)}"
