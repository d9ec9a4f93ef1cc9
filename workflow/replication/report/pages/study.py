"""A study's page: its experiments with claims, tables and figures, as the template needs them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.judge.audit import SUSPICIOUS, readings_of
from replication.judge.cause import load_causes
from replication.judge.verdict_table import Headline, is_supported
from replication.judge.wording import table_names
from replication.measure.results import Results
from replication.report.charts.data import level_label, levels_in_brief, unsaid_unit
from replication.report.pages.cell_table import CellView, TableView, table_views
from replication.report.pages.claim import ClaimView, claim_cards, not_counted
from replication.report.pages.figure import FigureView
from replication.report.pages.ledger import changes_of
from replication.report.pages.number import parse
from replication.report.pages.source import PointLinks, Source, of_study
from replication.report.pages.topology import Topology, draw
from replication.report.pages.verdict import Tally, answer
from replication.study.claim_model import Claim
from replication.study.storage.table import Row
from replication.study.study import Experiment, Study
from replication.study.verdict import Verdict


@dataclass(frozen=True)
class PointView:
    """One point of an experiment on one engine, with the scenario to rerun."""

    labels: list[str]
    engine: str
    replicates: int
    scenario: str
    refusal: str
    file: str


@dataclass(frozen=True)
class ExperimentView:
    """An experiment's section."""

    experiment: Experiment
    factors: list[str]
    #: The answer to the question, a sentence or two made from the data.
    answer: list[str]
    #: The chart that leads, with what is published beside what was reproduced; then the others.
    chart: FigureView | None
    claims: list[ClaimView]
    tables: list[TableView]
    points: list[PointView]
    topology: Topology | None
    figures: list[FigureView] = field(default_factory=list)


@dataclass(frozen=True)
class ReadingAudit:
    """What the audit says of an atom that reads a table's numbers otherwise.

    Attributes
    ----------
    title
        What the atom says.
    impossible, suspicious
        How many values are so under it.
    possible
        How many that are impossible as stated are not under it.
    """

    title: str
    impossible: int
    suspicious: int
    possible: int


@dataclass(frozen=True)
class StudyPage:
    """Everything on a study's page but the ledger and the audit."""

    study: Study
    headline: Headline
    cells: Tally
    claims: Tally
    #: Claims that are judged and do not count, by what they are.
    apart: list[tuple[str, int]]
    #: How many readings, tests, defaults and tolerances were changed after results were seen.
    changes: int
    experiments: list[ExperimentView]
    other_claims: list[ClaimView]
    other_tables: list[TableView]
    audit: list[Row]
    checks: int
    readings: list[ReadingAudit]
    #: What holds and what does not, in a sentence or two.
    answer: list[str]
    runs: int
    scenarios: int

    @property
    def table_names(self) -> dict[str, str]:
        """Return what each table is called, by its id."""
        return table_names(self.study)

    def numbers(self) -> dict[str, list[tuple[TableView, CellView]]]:
        """Return the numbers that rest on each point, by its page, with their tables.

        They are those of the engine whose verdicts stand for the study.
        """
        found: dict[str, list[tuple[TableView, CellView]]] = {}
        tables = [table for e in self.experiments for table in e.tables]
        for table in [*tables, *self.other_tables]:
            for cell in table.cells:
                if cell.row["engine"] == self.headline.engine:
                    for point in cell.points:
                        found.setdefault(point.file, []).append((table, cell))
        return found


def topologies(study: Study, results: Results) -> dict[str, Topology]:
    """Return the drawing of each experiment, made from the scenario of its first point."""
    drawn = {}
    for experiment in study.experiments:
        runs = results.runs(experiment.id, {})
        first = runs.loc[runs["supported"], "scenario"]
        if len(first):
            drawn[experiment.id] = draw(results.scenarios[str(first.iloc[0])])
    return drawn


def study_page(
    source: Source,
    study: Study,
    figures: dict[str, list[FigureView]],
    topologies: dict[str, Topology],
) -> StudyPage:
    """Gather a study's page; `figures` and `topologies` are by the experiment's id."""
    shown = ("", *source.shown_engines(study.id))
    cells = [row for row in of_study(source.cells, study.id) if row["engine"] in shown]
    claims = [row for row in of_study(source.claims, study.id) if row["engine"] in shown]
    design = source.design(study.id)
    links = PointLinks.of(study, design)
    tables = table_views(study, cells, source, links)
    cards = claim_cards(source, study, claims, links)
    homes = {claim.id: home for claim in study.claims if (home := _home(claim))}
    experiments = [
        ExperimentView(
            experiment=e,
            factors=[_factor_line(e, factor.id) for factor in e.factors],
            answer=answer(
                [table.tally for table in tables.get(e.id, [])],
                source.tally_claims(
                    row for row in source.headline(claims) if homes.get(row["claim"]) == e.id
                ),
                _deviations(tables.get(e.id, [])),
            ),
            chart=next(iter(figures.get(e.id, [])), None),
            claims=[card for card in cards if homes.get(card.id) == e.id],
            tables=tables.get(e.id, []),
            points=_points(e, design, links),
            topology=topologies.get(e.id),
            figures=figures.get(e.id, [])[1:],
        )
        for e in study.experiments
    ]
    ours = [row for row in design if is_supported(row)]
    return StudyPage(
        study=study,
        headline=source.headlines[study.id],
        cells=Tally.of(row["verdict"] for row in source.headline(cells)),
        claims=source.tally_claims(source.headline(claims)),
        apart=not_counted([study]),
        changes=len(changes_of(study)),
        experiments=experiments,
        other_claims=[card for card in cards if card.id not in homes],
        other_tables=tables.get("", []),
        audit=of_study(source.findings, study.id),
        checks=sum(not row["reading"] for row in of_study(source.audit, study.id)),
        readings=_readings(source, study),
        answer=answer(
            [table.tally for own in tables.values() for table in own],
            source.tally_claims(source.headline(claims)),
            _deviations([table for own in tables.values() for table in own]),
        ),
        runs=len(ours),
        scenarios=len({(row["engine"], row["scenario"]) for row in ours}),
    )


def _readings(source: Source, study: Study) -> list[ReadingAudit]:
    found: dict[tuple[str, str], set[tuple[str, str, str]]] = {}
    for row in of_study(source.audit, study.id):
        found.setdefault((row["reading"], row["finding"]), set()).add(
            (row["table"], row["row"], row["column"])
        )
    stated = found.get(("", Verdict.IMPOSSIBLE), set())
    audits = []
    for name, atom, level, _ in readings_of(load_causes(source.root, study.id)):
        impossible = found.get((name, Verdict.IMPOSSIBLE), set())
        suspicious = found.get((name, SUSPICIOUS), set())
        concerned = {key for key in stated if atom.concerns(key[0], key[2])}
        counts = len(impossible), len(suspicious), len(concerned - impossible)
        audits.append(ReadingAudit(level.title or atom.title, *counts))
    return audits


def _deviations(tables: Iterable[TableView]) -> list[float]:
    """Return the relative deviations of the numbers that the tables show, where known."""
    cells = (cell for table in tables for row in table.grid.rows for cell in row.cells)
    found = (parse(cell.deviation.raw) for cell in cells if cell is not None)
    return [value for value in found if value is not None]


def _home(claim: Claim) -> str:
    return next((quantity.experiment for quantity in claim.quantities()), "")


def _factor_line(experiment: Experiment, name: str) -> str:
    factor = experiment.factor(name)
    unit = f" ({unsaid})" if (unsaid := unsaid_unit(factor)) else ""
    averaged = ", averaged over" if factor.averaged else ""
    return f"{factor.label}{unit}{averaged}: {levels_in_brief(factor)}"


def _points(experiment: Experiment, design: list[Row], links: PointLinks) -> list[PointView]:
    points: dict[tuple[str, str], list[Row]] = {}
    for row in design:
        if row["experiment"] == experiment.id:
            points.setdefault((row["point"], row["engine"]), []).append(row)
    views = []
    for (point, engine), rows in points.items():
        levels = json.loads(rows[0]["levels"])
        refused = not is_supported(rows[0])
        link = links.find(experiment.id, point)
        views.append(
            PointView(
                labels=[level_label(f, levels.get(f.id, "")) for f in experiment.axes],
                engine=engine,
                replicates=0 if refused else len(rows),
                scenario=rows[0]["scenario"],
                refusal=rows[0]["reason"] if refused else "",
                file=link.file if link else "",
            )
        )
    return views
