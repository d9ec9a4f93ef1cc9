"""The first page: findings of each study, what matches, surprises, and every number."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from replication.explore.regions.border import row_at
from replication.explore.regions.region_result import region_results
from replication.metrics.cell_map import map_cells
from replication.metrics.metric import quantity
from replication.metrics.metric_model import MetricError
from replication.metrics.metric_model import display_unit as unit_of
from replication.metrics.results import Results
from replication.report.charts.cells import ratio_figure
from replication.report.charts.data import proper, read_judged
from replication.report.charts.figure import Figure
from replication.report.pages import shown
from replication.report.pages.evidence import explanation_of
from replication.report.pages.page import short_title
from replication.report.pages.source import LABELS, Source, of_study
from replication.study.claim_model import (
    Fact,
    PublishedRun,
    Quantity,
    SimpleTest,
    load_findings,
    sides,
)
from replication.study.published import published_path, read_published
from replication.study.setup import Setup
from replication.study.stated_cause import StatedCause
from replication.study.study import Study
from replication.study.table import grouped
from replication.study.verdict import DECIDED, Verdict
from replication.verdicts.comparison import UntestableError, compare
from replication.verdicts.self_consistency import printed_numbers
from replication.verdicts.verdict_table import CellRow, Share, Tally, tallies
from replication.verdicts.wording import wording


def overview(source: Source) -> dict[str, Any]:
    """Return what the first page shows except its findings and charts."""
    return {
        "setups": source.setups,
        "lines": [
            {
                "study": study,
                "counted": {setup: _counted(source, name, setup) for setup in source.setups},
                "primary": source.primary_engines[name],
                "explanation": explanation_of(source.root, source.data, study),
            }
            for name, study in source.studies.items()
        ],
        "impossible": _impossible(source),
        "deviations": _deviations(source, source.on_primary(source.cells)),
        "divided": list(_divided(source)),
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
    return cells.join(pd.to_numeric(explained).rename("explained"), on=key)


def all_numbers(source: Source) -> list[Figure]:
    """Return the chart of all numbers; none if no number was printed."""
    parts = [primary_cells(source, study) for study in source.studies.values()]
    known = [part for part in parts if part["reproduced_mean"].notna().any()]
    if not known:
        return []
    titles = {name: short_title(study) for name, study in source.studies.items()}
    return [ratio_figure(pd.concat(known, ignore_index=True), source.studies, titles)]


def _impossible(source: Source) -> list[tuple[Study, int, str]]:
    """Return the number of impossible values of each study, and the reason of the first."""
    rows = [row for row in source.findings if row["finding"] == Verdict.IMPOSSIBLE]
    return [
        (
            source.studies[study],
            len(own),
            f"{source.table_name(study, own[0]['table'])}: {own[0]['reason']}",
        )
        for (study,), own in grouped(rows, "study").items()
    ]


def _deviations(source: Source, cells: Sequence[CellRow]) -> list[tuple[Study, str, CellRow]]:
    """Return the number of each study that deviates most, with its name, largest first."""
    tested = [row for row in cells if row.verdict != Verdict.NOT_TESTABLE]
    sized = [row for row in tested if shown.parse(row.relative_deviation) is not None]
    worst = [max(own, key=_factor) for own in grouped(sized, "study").values()]
    worst.sort(key=_factor, reverse=True)
    return [
        (source.studies[row.study], source.table_name(row.study, row.table), row) for row in worst
    ]


def _factor(row: CellRow) -> float:
    """Return the factor by which a number deviates; a third counts as three times."""
    ratio = max(1 + row.relative_deviation, 1e-9)
    return max(ratio, 1 / ratio)


def _divided(source: Source) -> Iterator[dict[str, Any]]:
    """Yield for each study the claims on which engines disagree: their share, and the first."""
    for name, study in source.studies.items():
        engines = source.shown_engines(name)
        rows = [row for row in of_study(source.claims, name) if row.setup == Setup.DEFAULTS]
        rows = [row for row in rows if row.counted and row.engine in engines]
        rows = [row for row in rows if row.verdict in DECIDED]
        several = [own for own in grouped(rows, "claim").values() if len(own) > 1]
        if apart := [own for own in several if len({row.verdict for row in own}) > 1]:
            first = sorted(apart[0], key=lambda row: engines.index(row.engine))
            yield {"study": study, "share": Share(len(apart), len(several)), "first": first}


#: What a finding rests on, in words.
_RESTS_ON = {
    "defaults": "",
    "region": "from the map of where it holds",
}


class _Conclusion(NamedTuple):
    """A finding on these results; `text` is empty if its facts do not hold."""

    text: str
    rests_on: str
    chart: str | None
    causes: list[StatedCause]


def conclusions(source: Source, study: Study, results: Results) -> list[_Conclusion]:
    """Return a study's findings, except those that need a search or region that was not run.

    `results` are those on the primary engine.
    """
    facts, found = _Facts(source, study, results), []
    for finding in load_findings(source.root, study.id):
        known = {name: one for name, fact in finding.facts.items() if (one := facts.number(fact))}
        if len(known) == len(finding.facts):
            text = finding.text.format_map({name: words for name, (words, _) in known.items()})
            text = text if all(holds for _, holds in known.values()) else ""
            rests_on = _RESTS_ON[finding.rests_on]
            found.append(_Conclusion(text, rests_on, finding.chart, finding.causes))
    return found


class _Facts:
    def __init__(self, source: Source, study: Study, results: Results) -> None:
        self.source, self.study, self.results = source, study, results

    def number(self, fact: Fact) -> tuple[str, bool] | None:
        """Return a number in words and whether its condition holds; None if it was not run."""
        if test := fact.ours or fact.paper:
            return self._statistic(test, self._measured if fact.ours else self._printed)
        return self._on_region(fact)

    def _statistic(
        self, test: SimpleTest, look_up: Callable[[Quantity], pd.DataFrame]
    ) -> tuple[str, bool]:
        try:
            frames = [look_up(wanted) for wanted in sides(test)]
            if any(frame.empty for frame in frames):
                return "", False
            value = float(compare(self.study, test, frames).values.mean())
        except (UntestableError, MetricError):
            return "", False
        words = wording(self.study, test)
        holds = not isinstance(test.expect, PublishedRun) and test.expect.holds(value)
        return f"{_rounded(value * words.factor)}\u00a0{words.unit}".rstrip(), holds

    def _measured(self, wanted: Quantity) -> pd.DataFrame:
        return quantity(self.results, wanted).drop(columns="engine").dropna(subset="value")

    @cached_property
    def _printed(self) -> Callable[[Quantity], pd.DataFrame]:
        path = published_path(self.source.root, self.study.id)
        return printed_numbers(self.study, map_cells(self.study, read_published(path)))

    def _on_region(self, fact: Fact) -> tuple[str, bool] | None:
        """Return a border or quantity of a region; None if it was not run on the engine."""
        found = self._regions.get((str(fact.region), str(fact.engine)))
        if found is None or not found["panels"]:
            return None
        value = row_at(found, found["panels"][0], fact.at or 0.0).number(str(fact.gives))
        if value is None:
            return "", False
        unit = found["axes"][0]["unit"] if fact.gives in ("from", "to") else "1"
        holds = fact.expect is None or fact.expect.holds(value)
        return _rounded(value * unit_of(unit)[1]), holds

    @cached_property
    def _regions(self) -> dict[tuple[str, str], dict[str, Any]]:
        found = region_results(self.source.data)
        return {(one["region"], one["engine"]): one for one in found}


def _rounded(value: float) -> str:
    """Return a number with two digits, as for a sentence."""
    # Shares and indices near 1 need one more digit.
    digits = 2 if 0.9 < value < 1 else 1
    known = value and math.isfinite(value)
    decimals = max(0, digits - math.floor(math.log10(abs(value)))) if known else 0
    return f"{value:,.{decimals}f}".replace("-", "−")
