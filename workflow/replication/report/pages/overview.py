"""The first page: the answer in a sentence, verdicts per study, surprises, what ran.

Surprises are claims that divide the engines, and claims that one choice flips.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from replication.judge.verdict_table import Judged, read_table
from replication.report.charts.cells import scatter_figure
from replication.report.charts.figure import Figure
from replication.report.pages import number as numbers
from replication.report.pages.claim import not_counted
from replication.report.pages.explanation import Explanation, explanation_of
from replication.report.pages.ledger import changes_of
from replication.report.pages.page import short_title
from replication.report.pages.source import Source, of_study
from replication.report.pages.verdict import Tally, answer
from replication.sensitivity.explore_study import RobustnessRows, is_current
from replication.study.storage.table import Row
from replication.study.study import Study
from replication.study.verdict import DECIDED, Verdict

#: How many of the largest deviations the first page names, in all and of one study.
LARGEST = 8
LARGEST_OF_STUDY = 3


@dataclass(frozen=True)
class TallyRow:
    """Verdicts of one study on one engine."""

    study: Study
    engine: str
    #: Whether its verdicts stand for the study, and whether the paper ran its family.
    stands: bool
    original: bool
    #: What a reader must know if another engine than the paper's own stands; else empty.
    mark: str
    cells: Tally
    claims: Tally


@dataclass(frozen=True)
class StudyLine:
    """A study in a line: what holds, and why what does not."""

    study: Study
    answer: list[str]
    why: list[str]
    explanation: Explanation | None


@dataclass(frozen=True)
class AuditFinding:
    """What the audit found by one check of one study."""

    study: Study
    count: int
    #: What the example's table is called.
    table: str
    example: Row


@dataclass(frozen=True)
class Overview:
    """Everything on the first page."""

    answer: list[str]
    lines: list[StudyLine]
    #: Those whose best explanation was searched.
    explained: list[StudyLine]
    rows: list[TallyRow]
    cells: Tally
    claims: Tally
    #: Claims that are judged and do not count, by what they are.
    apart: list[tuple[str, int]]
    #: How much was changed after results were seen.
    changes: int
    findings: list[AuditFinding]
    #: The cells farthest from their published values: study, what each is called, and its row.
    deviations: list[tuple[Study, str, Judged]]


def overview(source: Source) -> Overview:
    """Gather the first page."""
    cells, claims = source.headline(source.cells), source.headline(source.claims)
    cell_tally = Tally.of(row["verdict"] for row in cells)
    claim_tally = source.tally_claims(claims)
    lines = [_line(source, study, cells, claims) for study in source.studies.values()]
    return Overview(
        answer=_answer(len(source.studies), cell_tally, claim_tally),
        lines=lines,
        explained=[line for line in lines if line.explanation],
        rows=_rows(source),
        cells=cell_tally,
        claims=claim_tally,
        apart=not_counted(source.studies.values()),
        changes=sum(len(changes_of(study)) for study in source.studies.values()),
        findings=_findings(source),
        deviations=_deviations(source, cells),
    )


def all_numbers(source: Source) -> list[Figure]:
    """Return the picture of all numbers; none where no number was printed.

    A number stands once: on the engine whose verdicts are its study's.
    """
    if not source.cells:
        return []
    cells = read_table(source.data, "cells").to_pandas()
    chosen = {name: found.engine for name, found in source.headlines.items()}
    titles = {name: short_title(study) for name, study in source.studies.items()}
    return [scatter_figure(cells[cells["engine"] == cells["study"].map(chosen)], titles)]


def _answer(studies: int, cells: Tally, claims: Tally) -> list[str]:
    """Return the answer: a sentence on the numbers and one on the claims."""
    where = f"in {studies} studies" if studies > 1 else "in the study"
    sentences = []
    if cells.total:
        tested = cells.total - cells.count(Verdict.NOT_TESTABLE)
        sentences.append(
            f"Of {cells.total} published numbers {where}, {tested} could be tested: "
            f"{_share_of(cells.count(Verdict.REPRODUCED), tested)} inside the tolerance set before "
            f"the run, {cells.count(Verdict.NOT_REPRODUCED)} outside{_impossible(cells)}."
        )
    if claims.total:
        tested = claims.total - claims.count(Verdict.NOT_TESTABLE)
        sentences.append(
            f"Of {claims.total} claims{'' if cells.total else f' {where}'}, {tested} could be "
            f"tested: {_share_of(claims.count(Verdict.REPRODUCED), tested)} reproduced, "
            f"{claims.count(Verdict.DIRECTION_ONLY)} in direction only, "
            f"{claims.count(Verdict.NOT_REPRODUCED)} not reproduced{_impossible(claims)}"
            f"{_vacuous(claims)}."
        )
    return sentences or ["Nothing has been evaluated yet."]


def _line(source: Source, study: Study, cells: list[Judged], claims: list[Judged]) -> StudyLine:
    cells, claims = of_study(cells, study.id), of_study(claims, study.id)
    numbers_of, claims_of = Tally.of(row["verdict"] for row in cells), source.tally_claims(claims)
    own = sum(bool(source.flag(row).own_words) for row in claims if source.is_counted(row))
    off = [
        value for row in cells if (value := numbers.parse(row["relative_deviation"])) is not None
    ]
    why = [source.headlines[study.id].mark]
    for count, one, several in (
        (
            numbers_of.count(Verdict.IMPOSSIBLE),
            "1 printed number breaks a bound of the paper's own set-up",
            "{} printed numbers break a bound of the paper's own set-up",
        ),
        (
            claims_of.vacuous.count,
            "1 claim compares what could not differ in this set-up",
            "{} claims compare what could not differ in this set-up",
        ),
        (
            own,
            "1 claim is not met by the paper's own data",
            "{} claims are not met by the paper's own data",
        ),
    ):
        if count:
            why.append(one if count == 1 else several.format(count))
    return StudyLine(
        study,
        answer([numbers_of], claims_of, off),
        [part for part in why if part],
        explanation_of(source.root, source.data, study),
    )


def _share_of(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.0f} %)" if total else str(count)


def _vacuous(tally: Tally) -> str:
    count = tally.vacuous.count
    return f", and {count} vacuous: what they compare could not differ" if count else ""


def _impossible(tally: Tally) -> str:
    count = tally.count(Verdict.IMPOSSIBLE)
    return f", {count} impossible as printed" if count else ""


def _rows(source: Source) -> list[TallyRow]:
    """Return the tallies of each study by engine, that of its headline first."""
    rows = []
    for name, study in source.studies.items():
        cells, claims = of_study(source.cells, name), of_study(source.claims, name)
        chosen = source.headlines[name]
        for engine in source.shown_engines(name) or [""]:
            stands = engine == chosen.engine
            rows.append(
                TallyRow(
                    study=study,
                    engine=engine,
                    stands=stands,
                    original=engine == chosen.original,
                    mark=chosen.mark if stands else "",
                    cells=Tally.of(r["verdict"] for r in cells if r["engine"] in ("", engine)),
                    claims=source.tally_claims(r for r in claims if r["engine"] in ("", engine)),
                )
            )
    return rows


def _findings(source: Source) -> list[AuditFinding]:
    """Return the audit's findings, one line for each study and kind, impossible ones first."""
    found = source.findings
    counted = Counter((row["study"], row["check"], row["finding"]) for row in found)
    first: dict[tuple[str, str, str], Row] = {}
    for row in found:
        first.setdefault((row["study"], row["check"], row["finding"]), row)
    return [
        AuditFinding(source.studies[key[0]], count, source.table_name(first[key]), first[key])
        for key, count in sorted(
            counted.most_common(), key=lambda pair: pair[0][2] != Verdict.IMPOSSIBLE
        )
    ]


def _deviations(source: Source, cells: list[Judged]) -> list[tuple[Study, str, Judged]]:
    sized = [
        (value, row)
        for row in cells
        if row["verdict"] != Verdict.NOT_TESTABLE
        and (value := numbers.parse(row["relative_deviation"])) is not None
    ]
    sized.sort(key=lambda pair: -abs(pair[0]))
    named: Counter[str] = Counter()
    largest = []
    for _, row in sized:
        named[row["study"]] += 1
        if named[row["study"]] <= LARGEST_OF_STUDY:
            largest.append(row)
    return [
        (
            source.studies[row["study"]],
            ", ".join([source.table_name(row), row["row_label"], row["column_label"]]),
            row,
        )
        for row in largest[:LARGEST]
    ]


#: How many claims of a study the first page names.
NAMED = 2


@dataclass(frozen=True)
class StudyDisagreements:
    """The claims of a study that divide its engines; the rows of the first few are named."""

    study: Study
    count: int
    decided: int
    named: list[list[Judged]]


@dataclass(frozen=True)
class StudyFlips:
    """The claims of a study that a single unstated choice flips: words and row of the first few."""

    study: Study
    count: int
    total: int
    named: list[tuple[str, Row]]


@dataclass(frozen=True)
class Surprises:
    """What divides and what flips; `varied` says whether unstated choices were varied at all."""

    divided: list[StudyDisagreements]
    flips: list[StudyFlips]
    varied: bool


def surprises(source: Source) -> Surprises:
    """Gather both."""
    flips, varied = [], False
    for name, study in source.studies.items():
        rows = _sensitivity(source, name)
        varied = varied or rows is not None
        if rows is not None and (found := _flips(study, rows)).count:
            flips.append(found)
    divided = [_divided(source, study) for study in source.studies.values()]
    return Surprises([one for one in divided if one.count], flips, varied)


def _divided(source: Source, study: Study) -> StudyDisagreements:
    claims: dict[str, list[Judged]] = {}
    shown = source.shown_engines(study.id)
    for row in of_study(source.claims, study.id):
        if row["verdict"] in DECIDED and row["engine"] in shown:
            claims.setdefault(row["claim"], []).append(row)
    several = {name: rows for name, rows in claims.items() if len(rows) > 1}
    apart = {
        name: rows for name, rows in several.items() if len({row["verdict"] for row in rows}) > 1
    }
    return StudyDisagreements(
        study=study,
        count=len(apart),
        decided=len(several),
        named=[
            sorted(rows, key=lambda row: shown.index(row["engine"]))
            for rows in list(apart.values())[:NAMED]
        ],
    )


def _sensitivity(source: Source, study: str) -> list[Row] | None:
    folder = source.data / "sensitivity" / study
    if not (folder / "claims.csv").is_file() or not is_current(source.root, source.data, study):
        return None
    return RobustnessRows.load(folder).claims


def _flips(study: Study, rows: list[Row]) -> StudyFlips:
    quotes = {claim.id: claim.quote for claim in study.claims}
    flipped = [row for row in rows if row["flipped_by"]]
    return StudyFlips(
        study=study,
        count=len(flipped),
        total=sum(row["word"] != Verdict.NOT_TESTABLE for row in rows),
        named=[(quotes.get(row["claim"], ""), row) for row in flipped[:NAMED]],
    )
