"""The page of a study: experiments, their figures, tables in the paper's shape, and claims."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from replication.base.table import Row, flat, grouped
from replication.metrics.metric_model import METRICS, display_unit, metric_label
from replication.metrics.results import Results
from replication.metrics.unfilled import UnfilledPoint, unfilled_points
from replication.report.charts.data import (
    as_printed,
    cell_of,
    labels_of,
    level_label,
    order_in,
    proper,
)
from replication.report.charts.figure import Figure
from replication.report.charts.run import topology_lines
from replication.report.pages import shown
from replication.report.pages.source import PointLink, Source, cell_id, of_study, point_id
from replication.study.claim_model import Claim, SimpleTest
from replication.study.published import PublishedNumber, Table, published_path, read_published
from replication.study.setup import Setup
from replication.study.study import Experiment, Study
from replication.study.verdict import Verdict
from replication.verdicts.summary import failing
from replication.verdicts.verdict_table import (
    CellRow,
    ClaimRow,
    Numbers,
    PrimaryEngine,
    is_supported,
)
from replication.verdicts.wording import table_name, table_names, wording

#: A study with more printed numbers has its tables folded.
_MOST_NUMBERS = 100
#: What does not match, in words.
_NOUNS = {"printed": "printed number", "trace": "trace statistic", "claims": "claim"}


@dataclass(frozen=True)
class Measured:
    """Our value of a number, the verdict, and the reason without what a table says once."""

    reproduced: shown.Number
    verdict: shown.Badge
    reason: str


@dataclass(frozen=True)
class CellView:
    """A published number with ours on one engine; `textbook` is its second verdict, if any.

    `printed` is its row of the file of published numbers.
    """

    row: CellRow
    unit: str
    printed: PublishedNumber | None
    published: shown.Number
    measured: Measured
    textbook: Measured | None
    html_id: str
    points: list[PointLink]


@dataclass(frozen=True)
class TableView:
    """A published table with ours.

    `name` is "Table II" if the paper numbers it, and otherwise its title, which is not repeated.
    `columns` have the unit of their numbers if they share it; a cell of `rows` is None where the
    paper prints nothing. The study's page shows `printed` tables alone: traces have many numbers.
    """

    html_id: str
    evidence: str
    printed: bool
    name: str
    title: str
    columns: list[tuple[str, str]]
    rows: list[tuple[str, list[CellView | None]]]
    cells: list[CellView]
    tally: Numbers
    tolerances: list[str]
    engines: list[str]
    notes: list[str]

    @property
    def has_textbook(self) -> bool:
        """Whether any number has a second verdict."""
        return any(cell.textbook for cell in self.cells)

    @property
    def choices(self) -> list[tuple[shown.Badge, int]]:
        """The verdicts on all engines that the filter offers, with their numbers of cells."""
        counted = Counter(cell.measured.verdict for cell in self.cells)
        return [(badge, counted[badge]) for badge in shown.BADGES if counted[badge]]


class TestWords(NamedTuple):
    """A test of a claim in words; `direction` is empty if it has none."""

    statistic: str
    expected: str
    direction: str


@dataclass(frozen=True)
class ClaimCard:
    """A claim with its rows at the defaults and under the textbook set-up, primary engine first.

    `substituted` engines ran other values than those of the study. `self_consistency` says whether
    the paper's own numbers pass the test.
    """

    claim: Claim
    shares_quote: bool
    tests: list[TestWords]
    measured: str
    rows: list[ClaimRow]
    textbook: list[ClaimRow]
    textbook_measured: str
    substituted: list[str]
    self_consistency: Row | None
    points: list[PointLink]
    changes: int


@dataclass(frozen=True)
class PointOnEngine:
    """A point on an engine with its first row of the design: a scenario to rerun, or a refusal.

    `file` is its page. Without one the point's first row has the `html_id` that numbers link to.
    """

    labels: list[str]
    row: Row
    replicates: int
    file: str
    html_id: str


@dataclass(frozen=True)
class ExperimentView:
    """An experiment; at the points `unfilled` its link never fills under the textbook set-up."""

    experiment: Experiment
    answer: shown.Answer
    claims: list[ClaimCard]
    tables: list[TableView]
    points: list[PointOnEngine]
    unfilled: list[str]
    topology: list[str]
    figures: list[Figure]


@dataclass(frozen=True)
class AuditFinding:
    """A finding of the audit, with its number as printed, in SI units."""

    row: Row
    printed: str


@dataclass(frozen=True)
class StudyView:
    """What the pages of a study and its evidence show.

    `failing` has how many do not match by what they are, in words. `other_claims` belong to no
    experiment.
    """

    study: Study
    primary: PrimaryEngine
    failing: dict[str, int]
    tested: int
    experiments: list[ExperimentView]
    folds_tables: bool
    other_claims: list[ClaimCard]
    audit: list[AuditFinding]
    checks: int
    table_names: dict[str, str]
    answer: shown.Answer
    has_textbook: bool
    textbook_answer: shown.Answer
    runs: int
    scenarios: int

    @property
    def tables(self) -> list[TableView]:
        """The tables of all experiments."""
        return flat(view.tables for view in self.experiments)

    @property
    def claims(self) -> list[ClaimCard]:
        """All claims."""
        return flat(view.claims for view in self.experiments) + self.other_claims


def study_page(
    source: Source,
    study: Study,
    results: Results,
    textbook: Results | None,
    figures: Mapping[str, list[Figure]],
) -> StudyView:
    """Return what the pages of a study and its evidence show; figures are by experiment.

    `results` are those at the defaults, `textbook` those under the textbook set-up on the primary
    engine, if any.
    """
    engines = ("", *source.shown_engines(study.id))
    cells = [row for row in of_study(source.cells, study.id) if row.engine in engines]
    claims = [row for row in of_study(source.claims, study.id) if row.engine in engines]
    design = source.design(study.id)
    tables = _tables(source, study, cells)
    cards = list(_claim_cards(source, study, claims))
    # A claim on several experiments is shown with the first.
    homes = {c.id: next(q.experiment for q in c.quantities()) for c in study.claims if c.tests()}
    printed_for = {table.id: table.experiment for table in study.tables}
    numbers, results_of_claims = source.on_primary(cells), source.on_primary(claims)
    never_fills = unfilled_points(textbook) if textbook else []
    experiments = []
    for experiment in study.experiments:
        name = experiment.id
        rows = [row for row in design if row["experiment"] == name]
        ran = [row for row in rows if is_supported(row)]
        printed = [row for row in numbers if printed_for.get(row.table) == name]
        judged = [row for row in results_of_claims if homes.get(row.claim) == name]
        experiments.append(
            ExperimentView(
                experiment=experiment,
                answer=shown.answer(printed, judged),
                claims=[card for card in cards if homes.get(card.claim.id) == name],
                tables=tables.get(name, []),
                points=list(_points(source, experiment, rows)),
                unfilled=list(_labels(experiment, rows, never_fills)),
                topology=topology_lines(results.scenarios[ran[0]["scenario"]]) if ran else [],
                figures=figures[name],
            )
        )
    answer = shown.answer(numbers, results_of_claims)
    textbook_claims = source.on_primary(claims, Setup.TEXTBOOK)
    textbook_cells = source.on_primary(cells, Setup.TEXTBOOK)
    runs = [row for row in design if is_supported(row)]
    return StudyView(
        study=study,
        primary=source.primary_engines[study.id],
        failing={_NOUNS[what]: count for what, count in failing(answer.counted).items()},
        tested=sum(tally.tested for tally in answer.counted.values()),
        experiments=experiments,
        folds_tables=answer.counted["printed"].total > _MOST_NUMBERS,
        other_claims=[card for card in cards if card.claim.id not in homes],
        audit=list(_audited(source, study)),
        checks=len(of_study(source.audit, study.id)),
        table_names=table_names(study),
        answer=answer,
        has_textbook=bool(textbook_claims or textbook_cells),
        textbook_answer=shown.answer(textbook_cells, textbook_claims),
        runs=len(runs),
        scenarios=len({(row["engine"], row["scenario"]) for row in runs}),
    )


def _tables(source: Source, study: Study, cells: list[CellRow]) -> dict[str, list[TableView]]:
    """Return the tables of each experiment that have rows."""
    tables: dict[str, list[TableView]] = {}
    for number, table in enumerate(study.tables, start=1):
        if rows := [row for row in cells if row.table == table.id]:
            view = _table(f"table-{number}", table, rows, source)
            tables.setdefault(table.experiment, []).append(view)
    return tables


def _audited(source: Source, study: Study) -> Iterator[AuditFinding]:
    tables = {table.id: table for table in study.tables}
    for row in of_study(source.findings, study.id):
        # The column of a sum of numbers names each of theirs.
        factor = cell_of(tables[row["table"]], row["column"].partition("+")[0]).factor
        value = f"{float(row['published']) / factor:.10g}"
        yield AuditFinding(row, value if factor == 1 else f"{value} × {factor:g}")


def numbers_of_points(view: StudyView) -> dict[str, list[tuple[TableView, CellView]]]:
    """Return the numbers on the primary engine that rest on each point, by the point's page."""
    numbers: dict[str, list[tuple[TableView, CellView]]] = {}
    for table in view.tables:
        of_primary = [cell for cell in table.cells if cell.row.engine == view.primary.engine]
        for cell in of_primary:
            for point in cell.points:
                numbers.setdefault(point.file, []).append((table, cell))
    return numbers


def _points(source: Source, experiment: Experiment, design: list[Row]) -> Iterator[PointOnEngine]:
    shown = set[str]()
    for (point, _), rows in grouped(design, "point", "engine").items():
        levels = json.loads(rows[0]["levels"])
        study = rows[0]["study"]
        link = source.points(study).get((experiment.id, point))
        has_page = source.has_point_pages(study)
        yield PointOnEngine(
            labels=[level_label(f, levels.get(f.id, "")) for f in experiment.factors],
            row=rows[0],
            replicates=len(rows) if is_supported(rows[0]) else 0,
            file=link.file if link and has_page else "",
            html_id="" if has_page or point in shown else point_id(experiment.id, point),
        )
        shown.add(point)


def _labels(
    experiment: Experiment, design: list[Row], points: Sequence[UnfilledPoint]
) -> Iterator[str]:
    """Yield the labels of those points that are of an experiment."""
    levels = {row["point"]: json.loads(row["levels"]) for row in design}
    for point in points:
        if point.experiment == experiment.id:
            yield labels_of(levels[point.point], experiment.factors)


def _claim_cards(source: Source, study: Study, rows: Sequence[ClaimRow]) -> Iterator[ClaimCard]:
    """Yield the claims of a study that were judged."""
    engines = ["", *source.shown_engines(study.id)]
    quotes = Counter(claim.quote for claim in study.claims)
    for claim in study.claims:
        judged = [row for row in rows if row.claim == claim.id]
        judged.sort(key=lambda row: engines.index(row.engine))
        results = [row for row in judged if row.setup == Setup.DEFAULTS]
        textbook = [row for row in judged if row.setup == Setup.TEXTBOOK]
        if results:
            yield ClaimCard(
                claim=claim,
                shares_quote=quotes[claim.quote] > 1,
                tests=[_test_words(study, test) for test in claim.tests()],
                measured=_measured(study, claim, results[0]),
                rows=results,
                textbook=textbook,
                textbook_measured=_measured(study, claim, textbook[0]) if textbook else "",
                substituted=[name for name in engines if study.substituted(name)],
                self_consistency=source.self_consistency.get((study.id, claim.id)),
                points=source.under(judged),
                changes=len(study.changes_to("claims", claim.id)),
            )


def _test_words(study: Study, test: SimpleTest) -> TestWords:
    words = wording(study, test)
    direction = words.condition(test.direction) if test.direction else ""
    return TestWords(words.statistic, words.condition(test.expect), direction)


def _measured(study: Study, claim: Claim, row: ClaimRow) -> str:
    """Return the statistic of a row in words; empty if it decides nothing."""
    value = shown.parse(row.observed)
    if value is None or row.verdict == Verdict.NOT_TESTABLE:
        return ""
    if len(tests := claim.tests()) > 1:
        if row.margin == "the part":
            holds = row.verdict == Verdict.REPRODUCED
            return f"its one part {'holds' if holds else 'does not hold'}"
        # "1 of 2 parts is reproduced", without those that cannot fail.
        counted = row.reasons[0].partition(" parts")[0]
        return f"{counted} parts {'holds' if counted.startswith('1 ') else 'hold'}"
    return f"measured {wording(study, tests[0]).value(value)}"


def _table(html_id: str, table: Table, rows: list[CellRow], source: Source) -> TableView:
    """Return a published table; `html_id` is a safe id, which the paper's name may not be."""
    study = rows[0].study
    place = order_in(source.studies[study], table)
    rows = sorted(rows, key=lambda row: place(row.row, row.column))
    engines, notes = source.shown_engines(study), _shared(rows)
    cells = list(_cells(rows, notes, source, table))
    name = table_name(table.id, table.title)
    in_grid = [cell for cell in cells if cell.row.engine in ("", *engines[:1])]
    columns = grouped([cell.row for cell in in_grid], "column", "column_label")
    keys = sorted(columns, key=lambda key: place("", key[0]))
    at = {(cell.row.row, cell.row.column): cell for cell in in_grid}
    labels = dict.fromkeys((cell.row.row, cell.row.row_label) for cell in in_grid)
    return TableView(
        html_id=html_id,
        evidence=f"{study}~evidence.html",
        printed=any(row.kind == "printed" for row in rows),
        name=name,
        title="" if name == table.title else table.title,
        columns=[(label, _unit(label, columns[column, label])) for column, label in keys],
        rows=[(label, [at.get((row, column)) for column, _ in keys]) for row, label in labels],
        cells=cells,
        tally=Numbers(source.on_primary(rows)),
        tolerances=_tolerances(table),
        engines=engines,
        notes=notes,
    )


def _unit(label: str, rows: Sequence[CellRow]) -> str:
    """Return the unit of a column's numbers if they share one and its label does not say it."""
    units = {shown.display_unit(row.unit) for row in rows}
    return "" if len(units) > 1 or label in units else units.pop()


def _cells(
    rows: Sequence[CellRow], notes: Sequence[str], source: Source, table: Table
) -> Iterator[CellView]:
    """Yield each number on each engine at the defaults, with its value by the textbook set-up."""
    published = read_published(published_path(source.root, rows[0].study))
    printed = {(number.table, number.row, number.column): number for number in published}
    by_key = grouped(rows, "table", "row", "column")
    points = {key: source.under(same) for key, same in by_key.items()}
    textbook = {_place(row): row for row in rows if row.setup == Setup.TEXTBOOK}
    for row in rows:
        if row.setup != Setup.DEFAULTS:
            continue
        key = (row.table, row.row, row.column)
        second = textbook.get(_place(row))
        yield CellView(
            row=row,
            unit=shown.display_unit(row.unit),
            printed=printed.get(key),
            published=_printed(row),
            measured=_judged(row, notes),
            textbook=_judged(second, notes) if second else None,
            html_id=cell_id(*key),
            points=points[key],
        )


def _place(row: CellRow) -> tuple[str, ...]:
    """Return what the rows of a number on one engine share under both set-ups."""
    return row.table, row.row, row.column, row.engine


def _judged(row: CellRow, notes: Sequence[str]) -> Measured:
    """Return our value, the verdict, and the reason without the sentences in `notes`."""
    return Measured(
        reproduced=shown.number(row.reproduced_mean, row.unit),
        verdict=shown.BADGE_OF[row.verdict],
        reason=" ".join(part for part in row.reasons if part not in notes),
    )


def _printed(row: CellRow) -> shown.Number:
    """Return a number with the paper's digits and the factor that converts it to the metric."""
    to_display = display_unit(row.unit)[1]
    text = as_printed(row.published, row.published_half_ulp, to_display, row.factor)
    return shown.Number(shown.number(row.published, row.unit).raw, text)


def _shared(rows: Sequence[CellRow]) -> list[str]:
    """Return the sentences that most reasons share across verdicts, to be shown once."""
    verdicts: dict[str, list[str]] = {}
    for row in rows:
        for part in dict.fromkeys(row.reasons):
            verdicts.setdefault(part, []).append(row.verdict)
    common = {part: of for part, of in verdicts.items() if 2 * len(of) > len(rows)}
    return [part for part, of in common.items() if len(set(of)) > 1]


def _tolerances(table: Table) -> list[str]:
    """Return each preset tolerance of a table with its reason and the columns it applies to."""
    columns = (table.columns or {}).items()
    named = [(proper(key.replace("_", " ")), cell) for key, cell in columns]
    if table.cell is not None:
        named.append((metric_label(table.cell.metric), table.cell))
        named += [(proper(key), table.cell_of(key)) for key in table.tolerances]
    lines: dict[tuple[str, str], list[str]] = {}
    for name, cell in named:
        tolerance, unit = cell.tolerance, METRICS[cell.metric].unit
        if tolerance.relative is not None:
            width = f"tolerance ±{100 * tolerance.relative:g} % of the published value"
        elif tolerance.absolute is not None:
            width = f"tolerance ±{shown.amount(tolerance.absolute, unit)}"
        elif tolerance.spread is not None:
            width = f"by the printed standard deviation of {tolerance.spread.runs} published runs"
        else:
            width = f"central 95 % of our runs, and a factor of {tolerance.factor:g} of their mean"
        lines.setdefault((width, tolerance.reason), []).append(name)
    return [f"{', '.join(who)}: {width}. {reason}" for (width, reason), who in lines.items()]
