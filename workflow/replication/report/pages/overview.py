"""The first page: the answer in a sentence, verdicts per study, surprises, what ran.

Surprises are claims that divide the engines, and claims that one choice flips.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from replication.explore.study import RobustnessRows, is_current
from replication.report.charts.cells import scatter_figure
from replication.report.charts.figure import Figure
from replication.report.pages import number as numbers
from replication.report.pages.claim import not_counted
from replication.report.pages.evidence import explanation_of
from replication.report.pages.ledger import changes_of
from replication.report.pages.page import short_title
from replication.report.pages.source import Source, of_study
from replication.report.pages.verdict import Tally, answer
from replication.study.storage.table import Row
from replication.study.study import Study
from replication.study.verdict import DECIDED, Verdict
from replication.verdicts.verdict_table import Judged, read_table

#: How many of the largest deviations the first page names, in all and of one study.
LARGEST = 8
LARGEST_OF_STUDY = 3


def overview(source: Source) -> dict[str, Any]:
    """Gather the first page but its surprises."""
    cells, claims = source.headline(source.cells), source.headline(source.claims)
    cell_tally = Tally(row["verdict"] for row in cells)
    claim_tally = source.tally_claims(claims)
    lines = [_line(source, study, cells, claims) for study in source.studies.values()]
    return {
        "answer": _answer(len(source.studies), cell_tally, claim_tally),
        "lines": lines,
        # Those whose best explanation was searched.
        "explained": [line for line in lines if line["explanation"]],
        "rows": list(_rows(source)),
        "cells": cell_tally,
        "claims": claim_tally,
        # Claims that are judged and do not count, by what they are.
        "apart": not_counted(source.studies.values()),
        "changes": sum(len(changes_of(study)) for study in source.studies.values()),
        "findings": _findings(source),
        "deviations": _deviations(source, cells),
    }


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
            f"{claims.count(Verdict.NOT_REPRODUCED)} not reproduced{_impossible(claims)}."
        )
    return sentences or ["Nothing has been evaluated yet."]


def _line(
    source: Source, study: Study, cells: list[Judged], claims: list[Judged]
) -> dict[str, Any]:
    """Return a study in a line: what holds, and why what does not."""
    cells, claims = of_study(cells, study.id), of_study(claims, study.id)
    numbers_of, claims_of = Tally(row["verdict"] for row in cells), source.tally_claims(claims)
    own = sum(source.fails_own_data(row) for row in claims if source.is_counted(row))
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
            own,
            "1 claim is not met by the paper's own data",
            "{} claims are not met by the paper's own data",
        ),
    ):
        if count:
            why.append(one if count == 1 else several.format(count))
    return {
        "study": study,
        "answer": answer(numbers_of, claims_of, off),
        "why": [part for part in why if part],
        "explanation": explanation_of(source.root, source.data, study),
    }


def _share_of(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.0f} %)" if total else str(count)


def _impossible(tally: Tally) -> str:
    count = tally.count(Verdict.IMPOSSIBLE)
    return f", {count} impossible as printed" if count else ""


def _rows(source: Source) -> Iterator[dict[str, Any]]:
    """Yield the tallies of each study by engine, that of its headline first."""
    for name, study in source.studies.items():
        cells, claims = of_study(source.cells, name), of_study(source.claims, name)
        chosen = source.headlines[name]
        for engine in source.shown_engines(name) or [""]:
            stands = engine == chosen.engine
            yield {
                "study": study,
                "engine": engine,
                "stands": stands,
                "original": engine == chosen.original,
                "mark": chosen.mark if stands else "",
                "cells": Tally(r["verdict"] for r in cells if r["engine"] in ("", engine)),
                "claims": source.tally_claims(r for r in claims if r["engine"] in ("", engine)),
            }


def _findings(source: Source) -> list[tuple[Study, int, str, Row]]:
    """Return of each study and kind of finding: how many, and one with the name of its table."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in source.findings:
        groups.setdefault((row["study"], row["check"], row["finding"]), []).append(row)
    by_size = sorted(groups.values(), key=len, reverse=True)
    by_size.sort(key=lambda rows: rows[0]["finding"] != Verdict.IMPOSSIBLE)
    return [
        (source.studies[rows[0]["study"]], len(rows), source.table_name(rows[0]), rows[0])
        for rows in by_size
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
    return [(source.studies[row["study"]], source.cell_name(row), row) for row in largest[:LARGEST]]


#: How many claims of a study the first page names.
NAMED = 2


def surprises(source: Source) -> dict[str, Any]:
    """Gather claims that divide the engines, and claims that one unstated choice flips.

    ``varied`` says whether unstated choices were varied at all.
    """
    flips, varied = [], False
    for name, study in source.studies.items():
        rows = _sensitivity(source, name)
        varied = varied or rows is not None
        flipped = [row for row in rows or [] if row["flipped_by"]]
        if flipped:
            total = sum(row["word"] != Verdict.NOT_TESTABLE for row in rows or [])
            quotes = {claim.id: claim.quote for claim in study.claims}
            named = [(quotes.get(row["claim"], ""), row) for row in flipped[:NAMED]]
            flips.append((study, len(flipped), total, named))
    divided = [_divided(source, study) for study in source.studies.values()]
    return {"divided": [one for one in divided if one[1]], "flips": flips, "varied": varied}


def _divided(source: Source, study: Study) -> tuple[Study, int, int, list[list[Judged]]]:
    """Return how many claims divide a study's engines, of how many, and the rows of the first."""
    claims: dict[str, list[Judged]] = {}
    shown = source.shown_engines(study.id)
    for row in of_study(source.claims, study.id):
        if row["verdict"] in DECIDED and row["engine"] in shown:
            claims.setdefault(row["claim"], []).append(row)
    several = [rows for rows in claims.values() if len(rows) > 1]
    apart = [rows for rows in several if len({row["verdict"] for row in rows}) > 1]
    named = [sorted(rows, key=lambda row: shown.index(row["engine"])) for rows in apart[:NAMED]]
    return study, len(apart), len(several), named


def _sensitivity(source: Source, study: str) -> list[Row] | None:
    folder = source.data / "sensitivity" / study
    if not (folder / "claims.csv").is_file() or not is_current(source.root, source.data, study):
        return None
    return RobustnessRows.load(folder).claims
