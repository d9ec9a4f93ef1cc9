"""A study's page: its experiments with claims, tables and figures, as the template needs them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replication.judge.atom import load_atoms
from replication.judge.audit import SUSPICIOUS
from replication.judge.audit_reading import readings_of
from replication.judge.headline import Headline
from replication.judge.participation import is_supported
from replication.judge.verdict_table import Judged
from replication.measure.metric_model import METRICS
from replication.measure.results import Results
from replication.report.parts import number as numbers
from replication.report.parts.changes import changes_of
from replication.report.parts.claim_card import ClaimView, claim_cards, not_counted
from replication.report.parts.figure import FigureView
from replication.report.parts.link import PointLink, PointLinks, cell_id
from replication.report.parts.number import Number
from replication.report.parts.source import Row, Source, of_study
from replication.report.parts.topology import Topology, draw
from replication.report.parts.verdict import BADGES, Badge, OtherEngine, Tally, badge, beside
from replication.study.claim_model import Claim
from replication.study.published import PublishedNumber
from replication.study.study import Experiment, Study
from replication.study.table_model import Cell, Table
from replication.study.verdict import Verdict


@dataclass(frozen=True)
class CellView:
    """One published number beside ours."""

    row_key: str
    row: str
    column_key: str
    column: str
    engine: str
    unit: str
    printed: str
    place: str
    published: Number
    reproduced: Number
    deviation: Number
    interval: str
    n: str
    verdict: Badge
    reason: str
    #: Another engine's verdict, where this one stands but cannot test the cell.
    beside: OtherEngine | None
    #: Where the page shows it, empty on engines whose verdicts do not stand.
    html_id: str
    points: list[PointLink]


@dataclass(frozen=True)
class TableView:
    """A published table; `html_id` is safe to link to, whatever the paper calls it."""

    html_id: str
    id: str
    title: str
    cells: list[CellView]
    tally: Tally
    tolerances: list[str]
    #: The engines that ran the study, that of the headline first.
    engines: list[str]
    notes: list[str]
    #: How many cells each verdict has, over all engines: the choices of the filter.
    choices: list[tuple[Badge, int]]


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

    id: str
    title: str
    question: str
    place: str
    type: str
    factors: list[str]
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
    runs: int
    scenarios: int

    def numbers(self) -> dict[str, list[tuple[TableView, CellView]]]:
        """Return the numbers that rest on each point, by its page, with their tables.

        They are those of the engine whose verdicts stand for the study.
        """
        found: dict[str, list[tuple[TableView, CellView]]] = {}
        tables = [table for e in self.experiments for table in e.tables]
        for table in [*tables, *self.other_tables]:
            for cell in table.cells:
                if cell.engine == self.headline.engine:
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
    tables = _tables(study, cells, source, links)
    cards = claim_cards(source, study, claims, links)
    homes = {claim.id: home for claim in study.claims if (home := _home(claim))}
    experiments = [
        ExperimentView(
            id=e.id,
            title=e.title,
            question=e.question,
            place=e.place,
            type=e.type,
            factors=[_factor_line(e, factor.id) for factor in e.factors],
            claims=[card for card in cards if homes.get(card.id) == e.id],
            tables=tables.get(e.id, []),
            points=_points(e, design, links),
            topology=topologies.get(e.id),
            figures=figures.get(e.id, []),
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
        runs=len(ours),
        scenarios=len({(row["engine"], row["scenario"]) for row in ours}),
    )


def _readings(source: Source, study: Study) -> list[ReadingAudit]:
    found: dict[tuple[str, str], set[tuple[str, str, str]]] = {}
    for row in of_study(source.audit, study.id):
        found.setdefault((row["reading"], row["finding"]), set()).add(_key(row))
    stated = found.get(("", Verdict.IMPOSSIBLE), set())
    audits = []
    for name, atom, level, _ in readings_of(load_atoms(source.root, study.id)):
        impossible = found.get((name, Verdict.IMPOSSIBLE), set())
        suspicious = found.get((name, SUSPICIOUS), set())
        concerned = {key for key in stated if atom.concerns(key[0], key[2])}
        counts = len(impossible), len(suspicious), len(concerned - impossible)
        audits.append(ReadingAudit(level.title or atom.title, *counts))
    return audits


def _home(claim: Claim) -> str:
    return next((quantity.experiment for quantity in claim.quantities()), "")


def _factor_line(experiment: Experiment, name: str) -> str:
    factor = experiment.factor(name)
    labels = ", ".join(level.label for level in factor.levels)
    return f"{factor.label}{f' ({factor.unit})' if factor.unit else ''}: {labels}"


def _tables(
    study: Study, cells: list[Judged], source: Source, links: PointLinks
) -> dict[str, list[TableView]]:
    """Return the views by experiment; cells of a table that the study does not map under ""."""
    known = {table.id: table for table in study.tables}
    printed = source.published(study.id)
    tables: dict[str, list[TableView]] = {}
    for number, name in enumerate(dict.fromkeys([*known, *(row["table"] for row in cells)])):
        rows = [row for row in cells if row["table"] == name]
        if not rows:
            continue
        table = known.get(name)
        notes = _shared(rows)
        engines = source.shown_engines(study.id)
        by_key: dict[tuple[str, str, str], list[Judged]] = {}
        for row in rows:
            by_key.setdefault(_key(row), []).append(row)
        points = {key: links.under(same) for key, same in by_key.items()}
        views = [
            _cell(
                row,
                printed.get(_key(row)),
                notes,
                beside(by_key[_key(row)], row["engine"]) if row["engine"] in engines[:1] else None,
                points[_key(row)],
            )
            for row in rows
        ]
        tables.setdefault(table.experiment if table else "", []).append(
            TableView(
                html_id=f"table-{number + 1}",
                id=name,
                title=table.title if table else "",
                cells=views,
                tally=Tally.of(row["verdict"] for row in source.headline(rows)),
                tolerances=_tolerances(table),
                engines=engines,
                notes=notes,
                choices=[(v, n) for v in BADGES if (n := sum(view.verdict == v for view in views))],
            )
        )
    return tables


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["table"], row["row"], row["column"]


def _shared(rows: list[Judged]) -> list[str]:
    """Return the sentences that most reasons hold whatever the verdict, to be said once."""
    counted: Counter[str] = Counter()
    verdicts: dict[str, set[str]] = {}
    for row in rows:
        for part in dict.fromkeys(row["reasons"]):
            counted[part] += 1
            verdicts.setdefault(part, set()).add(row["verdict"])
    return [
        part for part, count in counted.items() if 2 * count > len(rows) and len(verdicts[part]) > 1
    ]


def _cell(
    row: Judged,
    printed: PublishedNumber | None,
    notes: list[str],
    beside: OtherEngine | None,
    points: list[PointLink],
) -> CellView:
    unit = row["unit"]
    mean = numbers.number(row["reproduced_mean"], unit)
    return CellView(
        row_key=row["row"],
        row=row["row_label"],
        column_key=row["column"],
        column=row["column_label"],
        engine=row["engine"],
        unit=numbers.display_unit(unit),
        printed=printed.printed if printed else "",
        place=printed.place if printed else "",
        published=numbers.published(row["published"], row["published_half_ulp"], unit),
        reproduced=mean,
        deviation=numbers.percent(row["relative_deviation"]),
        interval=numbers.interval(row["reproduced_low"], row["reproduced_high"], unit),
        n=str(row["n"]),
        verdict=badge(row["verdict"]),
        reason=" ".join(part for part in row["reasons"] if part not in notes),
        beside=beside,
        html_id=cell_id(*_key(row)),
        points=points,
    )


def _tolerances(table: Table | None) -> list[str]:
    """Return the preset tolerances of a table's cells, each with its reason, once."""
    if table is None:
        return []
    named: list[tuple[str, Cell]] = [
        (k.replace("_", " "), c) for k, c in (table.columns or {}).items()
    ]
    if table.cell is not None:
        named.append(("", table.cell))
    lines = []
    for name, cell in named:
        tolerance, unit = cell.tolerance, METRICS[cell.metric].unit
        if tolerance.relative is not None:
            width = f"±{100 * tolerance.relative:g} % of the published value"
        elif tolerance.absolute is not None:
            width = f"±{tolerance.absolute:g}{'' if unit == '1' else f' {unit}'}"
        else:
            width = "rank among the replicates"
        lines.append(f"{f'{name}: ' if name else ''}{width}. {tolerance.reason}")
    return lines


def _points(experiment: Experiment, design: list[Row], links: PointLinks) -> list[PointView]:
    points: dict[tuple[str, str], list[Row]] = {}
    for row in design:
        if row["experiment"] == experiment.id:
            points.setdefault((row["point"], row["engine"]), []).append(row)
    views = []
    for (point, engine), rows in points.items():
        refused = not is_supported(rows[0])
        link = links.find(experiment.id, point)
        views.append(
            PointView(
                labels=_level_labels(experiment, json.loads(rows[0]["levels"])),
                engine=engine,
                replicates=0 if refused else len(rows),
                scenario=rows[0]["scenario"],
                refusal=rows[0]["reason"] if refused else "",
                file=link.file if link else "",
            )
        )
    return views


def _level_labels(experiment: Experiment, levels: dict[str, str]) -> list[str]:
    labels = []
    for factor in experiment.factors:
        key = levels.get(factor.id, "")
        labels.append(next((x.label for x in factor.levels if x.key == key), key))
    return labels
