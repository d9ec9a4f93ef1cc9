"""The first page: the answer in a sentence, verdicts per study, surprises, what ran.

Surprises are claims that divide the engines, and claims that one choice flips.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from replication.explore.study import is_current
from replication.report.charts.cells import scatter_figure
from replication.report.charts.figure import Figure
from replication.report.pages import number as numbers
from replication.report.pages.claim import not_counted
from replication.report.pages.evidence import explanation_of, varied_claims
from replication.report.pages.ledger import changes_of
from replication.report.pages.page import short_title
from replication.report.pages.source import Source, grouped, of_study
from replication.report.pages.verdict import answer
from replication.study.storage.table import Row
from replication.study.study import Study
from replication.study.verdict import DECIDED, Verdict
from replication.verdicts.counts import Share, tallies
from replication.verdicts.verdict_table import Judged, read_table

#: How many of the largest deviations the first page names, in all and of one study.
LARGEST = 8
LARGEST_OF_STUDY = 3
#: How many claims of a study it names.
NAMED = 2


def overview(source: Source) -> dict[str, Any]:
    """Gather the first page."""
    cells, claims = source.headline(source.cells), source.headline(source.claims)
    flips = [one for s in source.studies.values() if (one := _flips(source, s)) is not None]
    divided = [_divided(source, study) for study in source.studies.values()]
    changed = {
        (study.id, one["kind"], one["key"]): one["kind"]
        for study in source.studies.values()
        for one in changes_of(study)
    }
    return {
        "lines": [_line(source, study, cells, claims) for study in source.studies.values()],
        "rows": list(_rows(source)),
        "counted": tallies(cells, claims),
        # Sentences that do not count, by what they are.
        "apart": not_counted(source.studies.values()),
        # How many claims, tables and parameters were changed after results were seen.
        "changed": Counter(changed.values()),
        "findings": _findings(source),
        "deviations": _deviations(source, cells),
        "divided": [one for one in divided if one[1].part],
        "varied": bool(flips),
        "flips": [one for one in flips if one[1].part],
    }


def all_numbers(source: Source) -> list[Figure]:
    """Return the picture of all numbers, each once; none where no number was printed.

    A number stands on the engine whose verdicts are its study's.
    """
    if not source.cells:
        return []
    cells = read_table(source.data, "cells").to_pandas()
    chosen = {name: found.engine for name, found in source.headlines.items()}
    titles = {name: short_title(study) for name, study in source.studies.items()}
    return [scatter_figure(cells[cells["engine"] == cells["study"].map(chosen)], titles)]


def _line(
    source: Source, study: Study, cells: list[Judged], claims: list[Judged]
) -> dict[str, Any]:
    """Return a study in a line: what holds, and what is known of what does not."""
    cells, claims = of_study(cells, study.id), of_study(claims, study.id)
    return {
        "study": study,
        "answer": answer(cells, claims),
        "mark": source.headlines[study.id].mark,
        "impossible": tallies(cells, [])["printed"].count(Verdict.IMPOSSIBLE),
        # Claims that the paper's own data do not meet.
        "own": sum(source.fails_own_data(row) for row in claims if row["counted"]),
        "explanation": explanation_of(source.root, source.data, study),
    }


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
                "counted": tallies(
                    [row for row in cells if row["engine"] in ("", engine)],
                    [row for row in claims if row["engine"] in ("", engine)],
                ),
            }


def _findings(source: Source) -> list[tuple[Study, int, str, Row]]:
    """Return of each study and kind of finding: how many, and one with the name of its table."""
    groups = grouped(source.findings, "study", "check", "finding").values()
    ordered = sorted(
        groups, key=lambda rows: (rows[0]["finding"] != Verdict.IMPOSSIBLE, -len(rows))
    )
    return [
        (source.studies[rows[0]["study"]], len(rows), source.table_name(rows[0]), rows[0])
        for rows in ordered
    ]


def _deviations(source: Source, cells: list[Judged]) -> list[tuple[Study, str, Judged]]:
    """Return the numbers that are furthest off, at most a few of one study."""
    tested = [row for row in cells if row["verdict"] != Verdict.NOT_TESTABLE]
    sized = [row for row in tested if numbers.parse(row["relative_deviation"]) is not None]
    sized.sort(key=lambda row: -abs(row["relative_deviation"]))
    named: Counter[str] = Counter()
    largest = []
    for row in sized:
        named[row["study"]] += 1
        if named[row["study"]] <= LARGEST_OF_STUDY:
            largest.append((source.studies[row["study"]], source.cell_name(row), row))
    return largest[:LARGEST]


def _flips(source: Source, study: Study) -> tuple[Study, Share, list[tuple[str, Row]]] | None:
    """Return how many of the claims that were varied one choice flips, and the first's words.

    None where nothing was varied on the files as they are now.
    """
    folder = source.data / "sensitivity" / study.id
    if not (folder / "claims.csv").is_file() or not is_current(source.root, source.data, study.id):
        return None
    rows, _ = varied_claims(source, study)
    tested = [row for row in rows if row["verdict_default"] != Verdict.NOT_TESTABLE]
    flipped = [row for row in tested if row["flipped_by"]]
    quotes = {claim.id: claim.quote for claim in study.claims}
    named = [(quotes[row["claim"]], row) for row in flipped[:NAMED]]
    return study, Share(len(flipped), len(tested)), named


def _divided(source: Source, study: Study) -> tuple[Study, Share, list[list[Judged]]]:
    """Return how many of the claims that several engines decide divide them, and some rows."""
    shown, claims = source.shown_engines(study.id), of_study(source.claims, study.id)
    counted = (r for r in claims if r["counted"] and r["engine"] in shown)
    decided = (r for r in counted if r["verdict"] in DECIDED)
    several = [rows for rows in grouped(decided, "claim").values() if len(rows) > 1]
    apart = [rows for rows in several if len({row["verdict"] for row in rows}) > 1]
    named = [sorted(rows, key=lambda row: shown.index(row["engine"])) for rows in apart[:NAMED]]
    return study, Share(len(apart), len(several)), named
