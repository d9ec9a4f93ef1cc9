"""Surprises for the first page: claims that divide the engines, claims that one choice flips.

What the papers' own numbers and the largest deviations say stands in `report.pages.overview`.
"""

from __future__ import annotations

from dataclasses import dataclass

from replication.judge.verdict_table import Judged
from replication.report.parts.source import Source, of_study
from replication.sensitivity.explore_study import RobustnessRows, is_current
from replication.study.storage.table import Row
from replication.study.study import Study
from replication.study.verdict import DECIDED, Verdict

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
    if not (folder / "claims.csv").is_file() or not is_current(source.root, folder, study):
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
