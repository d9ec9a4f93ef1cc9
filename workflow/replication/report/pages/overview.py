"""The first page: a finding of each study, what matches, what surprises, and every number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from replication.metrics.results import Results
from replication.report.charts.data import read_cells, with_explained
from replication.report.charts.experiment import figures_of
from replication.report.charts.figure import Figure
from replication.report.charts.ratio import ratio_figure
from replication.report.pages import number as numbers
from replication.report.pages.evidence import explanation_of
from replication.report.pages.finding import conclusions
from replication.report.pages.page import short_title
from replication.report.pages.source import Source, grouped, of_study
from replication.report.pages.verdict import by_size
from replication.study.study import Study
from replication.study.verdict import DECIDED, Verdict
from replication.verdicts.counts import Share, tallies
from replication.verdicts.verdict_table import Judged

#: How many of the largest deviations and of the claims that divide engines the page names.
LARGEST, DIVIDED = 5, 4


def overview(source: Source) -> dict[str, Any]:
    """Gather the first page but for its charts."""
    cells, claims = source.headline(source.cells), source.headline(source.claims)
    return {
        "lines": [_line(source, study, cells, claims) for study in source.studies.values()],
        "impossible": _impossible(source),
        "deviations": _deviations(source, cells),
        "divided": _divided(source),
    }


def _line(
    source: Source, study: Study, cells: list[Judged], claims: list[Judged]
) -> dict[str, Any]:
    """Return a study in a row of the table."""
    return {
        "study": study,
        "counted": tallies(of_study(cells, study.id), of_study(claims, study.id)),
        "headline": source.headlines[study.id],
        "explanation": explanation_of(source.root, source.data, study),
    }


def lead_findings(source: Source) -> list[dict[str, Any]]:
    """Return of each study that has findings all of them, and the chart of the first."""
    found = []
    for name, study in source.studies.items():
        results = source.primary_results(Results.load(source.data, name))
        said = conclusions(source, study, results)
        if said:
            found.append(
                {
                    "study": study,
                    "said": said,
                    "figure": chart_of(source, study, said[0].chart, results),
                }
            )
    return found


def chart_of(source: Source, study: Study, chart: str | None, results: Results) -> Figure | None:
    """Return the chart that a finding names; None where these results do not have it."""
    experiment = (chart or "").partition("~")[0]
    if experiment not in {one.id for one in study.experiments}:
        return None
    drawn = figures_of(results, primary_cells(source, study), study, experiment)
    return next((one for one in drawn if one.id == f"{study.id}~{chart}"), None)


def primary_cells(source: Source, study: Study) -> pd.DataFrame:
    """Return the judged cells of a study's primary engine, with those under its explanation."""
    cells = read_cells(source.data, study.id)
    if cells.empty:
        return cells
    cells = cells[cells["engine"] == source.headlines[study.id].engine]
    found = explanation_of(source.root, source.data, study)
    return with_explained(cells, found["rows"] if found and found["is_found"] else [])


def all_numbers(source: Source) -> list[Figure]:
    """Return the picture of all numbers, each once; none where no number was printed."""
    parts = [primary_cells(source, study) for study in source.studies.values()]
    known = [part for part in parts if len(part) and part["reproduced_mean"].notna().any()]
    if not known:
        return []
    titles = {name: short_title(study) for name, study in source.studies.items()}
    return [ratio_figure(pd.concat(known, ignore_index=True), source.studies, titles)]


def _impossible(source: Source) -> list[tuple[Study, int, str]]:
    """Return how many printed numbers of a study break a physical bound, and the first's reason."""
    rows = [row for row in source.findings if row["finding"] == Verdict.IMPOSSIBLE]
    return [
        (source.studies[study], len(own), f"{source.table_name(own[0])}: {own[0]['reason']}")
        for (study,), own in grouped(rows, "study").items()
    ]


def _deviations(source: Source, cells: Sequence[Judged]) -> list[tuple[Study, str, str]]:
    """Return the largest deviation of each study as a ratio in words, largest first."""
    tested = [row for row in cells if row["verdict"] != Verdict.NOT_TESTABLE]
    sized = [row for row in tested if numbers.parse(row["relative_deviation"]) is not None]
    found = []
    for (study,), own in grouped(sized, "study").items():
        worst = max(own, key=lambda row: by_size(row["relative_deviation"]))
        found.append((by_size(worst["relative_deviation"]), source.studies[study], worst))
    found.sort(key=lambda one: -one[0])
    return [(study, source.cell_name(row), compared(row)) for _, study, row in found[:LARGEST]]


def compared(row: Judged) -> str:
    """Return a number in words: what we measure, what is printed, and how many times that is."""
    unit = row["unit"]
    ours = numbers.number(row["reproduced_mean"], unit).shown
    printed = numbers.published(row["published"], row["published_half_ulp"], unit).shown
    shown = numbers.display_unit(unit)
    ratio = 1 + float(row["relative_deviation"])
    times = f", {numbers.times(ratio)} the published value" if ratio > 0 else ""
    return f"measured {ours} {shown}, published {printed} {shown}{times}".replace("  ", " ")


def _divided(source: Source) -> list[dict[str, Any]]:
    """Return of each study how many claims divide the engines that decide them, and the first."""
    found = []
    for name, study in source.studies.items():
        shown = source.shown_engines(name)
        rows = [r for r in of_study(source.claims, name) if r["counted"] and r["engine"] in shown]
        decided = grouped((r for r in rows if r["verdict"] in DECIDED), "claim")
        several = [own for own in decided.values() if len(own) > 1]
        apart = [own for own in several if len({row["verdict"] for row in own}) > 1]
        if apart:
            first = sorted(apart[0], key=lambda row: shown.index(row["engine"]))
            share = Share(len(apart), len(several))
            found.append({"study": study, "share": share, "first": first})
    return found[:DIVIDED]
