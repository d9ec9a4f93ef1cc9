"""The first page: the answer under both set-ups, what matches and surprises; every number."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from replication.engines.catalogue import ENGINES
from replication.report.charts.cells import ratio_figure
from replication.report.charts.data import proper, read_judged
from replication.report.charts.figure import Figure
from replication.report.pages.answer import answer
from replication.report.pages.evidence import explanation_of, is_stale
from replication.report.pages.page import short_titles
from replication.report.pages.source import LABELS, Source, of_study
from replication.study.setup import Setup
from replication.study.study import Study
from replication.study.table import grouped
from replication.study.verdict import DECIDED, Verdict
from replication.verdicts.audit import CAPACITY_SUM
from replication.verdicts.verdict_table import Share, Tally, tallies

#: Engines that a reader may not know by their titles.
_MACHINES = {"linux": "a Linux kernel in virtual time"}


def overview(source: Source) -> dict[str, Any]:
    """Return what the first page shows except its findings and charts."""
    return {
        "setups": source.setups,
        **answer(source),
        "papers": source.papers,
        "lines": [
            {
                "study": study,
                "counted": {setup: _counted(source, name, setup) for setup in source.setups},
                "primary": source.primary_engines[name],
            }
            for name, study in source.studies.items()
        ],
        "searches": [
            (study, explanation_of(source.root, source.data, study))
            for study in source.studies.values()
        ],
        "stale_searches": [
            study for study in source.studies.values() if is_stale(source.root, source.data, study)
        ],
        "impossible": list(_impossible(source)),
        "divided": list(_divided(source)),
        "traced": any(cell.kind == "trace" for cell in source.cells),
        "ran_on": [_MACHINES.get(name, ENGINES[name].title) for name in source.engines],
    }


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
    found = explanation_of(source.root, source.data, study)
    if not found or not found["is_explanation"] or not found["rows"]:
        return cells
    key = ["table", "row", "column", "engine"]
    explained = pd.DataFrame(found["rows"]).set_index(key)["reproduced_mean"]
    return cells.join(explained.rename("explained"), on=key)


def all_numbers(source: Source) -> list[Figure]:
    """Return the chart of all numbers; none if no number was printed."""
    parts = [primary_cells(source, study) for study in source.studies.values()]
    known = [part for part in parts if part["reproduced_mean"].notna().any()]
    if not known:
        return []
    titles = short_titles(source.studies)
    return [ratio_figure(pd.concat(known, ignore_index=True), source.studies, titles)]


def _impossible(source: Source) -> Iterator[tuple[Study, str, str]]:
    """Yield for each study how many numbers or sums are impossible, and the reason of the first."""
    rows = [row for row in source.findings if row["finding"] == Verdict.IMPOSSIBLE]
    for (study,), own in grouped(rows, "study").items():
        if study not in source.papers:
            continue
        numbers = [row for row in own if row["check"] != CAPACITY_SUM]
        sums = [row for row in own if row["check"] == CAPACITY_SUM]
        for several, one, many in (
            (numbers, "printed number", "printed numbers"),
            (sums, "sum of numbers", "sums of numbers"),
        ):
            if several:
                count = f"{len(several)} {one if len(several) == 1 else many}"
                table = source.table_name(study, several[0]["table"])
                yield source.studies[study], count, f"{table}: {several[0]['reason']}"


def _divided(source: Source) -> Iterator[tuple[Study, Share]]:
    """Yield for each study the share of its claims on which engines disagree, if they do."""
    for name, study in source.papers.items():
        engines = source.shown_engines(name)
        rows = [row for row in of_study(source.claims, name) if row.setup == Setup.DEFAULTS]
        rows = [row for row in rows if row.counted and row.engine in engines]
        rows = [row for row in rows if row.verdict in DECIDED]
        several = [own for own in grouped(rows, "claim").values() if len(own) > 1]
        if apart := [own for own in several if len({row.verdict for row in own}) > 1]:
            yield study, Share(len(apart), len(several))
