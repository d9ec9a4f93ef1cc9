"""The first page: the answer under both set-ups, what matches and surprises; every number."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from replication.base.table import Row, grouped
from replication.engines.catalogue import ENGINES
from replication.report.charts.cells import ratio_figure
from replication.report.charts.data import proper, read_judged
from replication.report.charts.figure import Figure
from replication.report.pages.answer import Answer, answer
from replication.report.pages.evidence import ExplanationView, explanation_of, is_stale
from replication.report.pages.page import short_titles
from replication.report.pages.source import LABELS, Source, of_study
from replication.study.setup import Setup
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.audit import CAPACITY_SUM
from replication.verdicts.summary import divided
from replication.verdicts.verdict_table import PrimaryEngine, Share, Tally, tallies

#: Engines that a reader may not know by their titles.
_MACHINES = {"linux": "a Linux kernel in virtual time"}


@dataclass(frozen=True)
class StudyLine:
    """A study in the table of what matches, with its counts by set-up."""

    study: Study
    counted: dict[Setup, dict[str, Tally]]
    primary: PrimaryEngine


@dataclass(frozen=True)
class Impossible:
    """How many numbers of a study cannot be true, and the reason of the first."""

    study: Study
    count: str
    words: str


@dataclass(frozen=True)
class Divided:
    """The share of a study's claims on which engines disagree."""

    study: Study
    share: Share


@dataclass(frozen=True)
class Overview:
    """What the first page shows except its findings and charts."""

    setups: list[Setup]
    answer: Answer
    papers: dict[str, Study]
    lines: list[StudyLine]
    searches: list[tuple[Study, ExplanationView]]
    stale_searches: list[Study]
    impossible: list[Impossible]
    divided: list[Divided]
    traced: bool
    ran_on: list[str]


def overview(source: Source) -> Overview:
    """Return what the first page shows except its findings and charts."""
    root, data, studies = source.root, source.data, source.studies
    searches = [(study, explanation_of(root, data, study)) for study in studies.values()]
    return Overview(
        setups=source.setups,
        answer=answer(source),
        papers=source.papers,
        lines=[_line(source, study) for study in studies.values()],
        searches=[(study, explanation) for study, explanation in searches if explanation],
        stale_searches=[study for study in studies.values() if is_stale(root, data, study)],
        impossible=list(_impossible(source)),
        divided=list(_divided(source)),
        traced=any(cell.kind == "trace" for cell in source.cells),
        ran_on=[_MACHINES.get(name, ENGINES[name].title) for name in source.engines],
    )


def _line(source: Source, study: Study) -> StudyLine:
    counted = {setup: _counted(source, study.id, setup) for setup in source.setups}
    return StudyLine(study, counted, source.primary_engines[study.id])


def _counted(source: Source, study: str, setup: Setup) -> dict[str, Tally]:
    """Return the counts of a study under a set-up on its primary engine."""
    cells = of_study(source.on_primary(source.cells, setup), study)
    claims = of_study(source.on_primary(source.claims, setup), study)
    return tallies(cells, claims)


def primary_cells(source: Source, study: Study) -> pd.DataFrame:
    """Return a study's cells on its primary engine, with values under its explanation if any."""
    cells = read_judged(source.data, study.id, "cells")
    cells = cells[cells["engine"] == source.primary_engines[study.id].engine]
    cells = cells.assign(**{name: cells[name].map(proper) for name in LABELS})
    explanation = explanation_of(source.root, source.data, study)
    if not explanation or not explanation.is_explanation or not explanation.rows:
        return cells
    key = ["table", "row", "column", "engine"]
    explained = pd.DataFrame(explanation.rows).set_index(key)["reproduced_mean"]
    return cells.join(explained.rename("explained"), on=key)


def all_numbers(source: Source) -> list[Figure]:
    """Return the chart of all numbers; none if no number was printed."""
    parts = [primary_cells(source, study) for study in source.studies.values()]
    known = [part for part in parts if part["reproduced_mean"].notna().any()]
    if not known:
        return []
    titles = short_titles(source.studies)
    return [ratio_figure(pd.concat(known, ignore_index=True), source.studies, titles)]


def _impossible(source: Source) -> Iterator[Impossible]:
    """Yield for each paper how many numbers or sums are impossible, and why the first is."""
    rows = [row for row in source.findings if row["finding"] == Verdict.IMPOSSIBLE]
    for (study,), of_paper in grouped(rows, "study").items():
        if study not in source.papers:
            continue
        numbers = [row for row in of_paper if row["check"] != CAPACITY_SUM]
        sums = [row for row in of_paper if row["check"] == CAPACITY_SUM]
        if numbers:
            number = "printed number" if len(numbers) == 1 else "printed numbers"
            yield _of_first(source, numbers, number)
        if sums:
            yield _of_first(source, sums, f"{'sum' if len(sums) == 1 else 'sums'} of numbers")


def _of_first(source: Source, rows: list[Row], noun: str) -> Impossible:
    study, first = rows[0]["study"], rows[0]
    words = f"{source.table_name(study, first['table'])}: {first['reason']}"
    return Impossible(source.studies[study], f"{len(rows)} {noun}", words)


def _divided(source: Source) -> Iterator[Divided]:
    """Yield the papers of which engines disagree on claims."""
    for name, study in source.papers.items():
        share = divided(of_study(source.claims, name), source.shown_engines(name))
        if share.part:
            yield Divided(study, share)
