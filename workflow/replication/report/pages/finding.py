"""Findings on the page: each evaluated on the results at hand, or said not to be concluded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from replication.metrics.cell_map import map_cells
from replication.metrics.metric import quantity
from replication.metrics.metric_model import MetricError
from replication.metrics.results import Results
from replication.report.pages.evidence import explanation_of, title_of
from replication.report.pages.source import Source
from replication.study.claim_model import Condition, PublishedRun, Quantity, SimpleTest
from replication.study.finding_model import Fact, Finding, load_findings
from replication.study.published import published_path, read_published
from replication.study.storage.table import read_frame
from replication.study.study import REGIONS_TABLE, Study
from replication.verdicts.claim import conditions
from replication.verdicts.comparison import Lookup, UntestableError, compare
from replication.verdicts.self_consistency import printed_numbers
from replication.verdicts.wording import lower, wording

#: What a finding rests on, for readers.
RESTS_ON = {
    "defaults": "",
    "explanation": "found by the search for explanations",
    "region": "from the map of where it holds",
}


class Conclusion(NamedTuple):
    """A finding on the results at hand: its sentences, empty where its facts do not hold."""

    text: str
    rests_on: str
    chart: str | None


class _Number(NamedTuple):
    shown: str
    holds: bool


class _NotRunError(Exception):
    """A finding needs a search or a region that was not run."""


def conclusions(source: Source, study: Study, results: Results) -> list[Conclusion]:
    """Return a study's findings; those that need what was not run are left out."""
    facts = _Facts(source, study, results)
    return list(_concluded(load_findings(source.root, study.id), facts))


def _concluded(findings: list[Finding], facts: _Facts) -> Iterator[Conclusion]:
    for finding in findings:
        try:
            numbers = {name: facts.number(fact) for name, fact in finding.facts.items()}
        except _NotRunError:
            continue
        holds = all(number.holds for number in numbers.values())
        shown = {name: number.shown for name, number in numbers.items()}
        text = finding.text.format_map(shown) if holds else ""
        yield Conclusion(text, RESTS_ON[finding.rests_on], finding.chart)


class _Facts:
    """Looks up the numbers of a study's findings."""

    def __init__(self, source: Source, study: Study, results: Results) -> None:
        self.source, self.study, self.results = source, study, results
        self.engine = source.headlines[study.id].engine

    def number(self, fact: Fact) -> _Number:
        """Return a fact's number in words, and whether its condition holds.

        _NotRunError where the search or the region that it needs was not run.
        """
        if fact.ours:
            return self._statistic(fact.ours, lambda _, wanted: self._measured(wanted))
        if fact.paper:
            return self._statistic(fact.paper, lambda _, wanted: _some(self._printed(wanted)))
        if fact.cause:
            titles = [
                title_of(one) for one in self._explained["causes"] if one["cause"] == fact.cause
            ]
            return _Number("; ".join(map(lower, titles)), bool(titles))
        value = self._count(fact.explanation) if fact.explanation else self._share(fact)
        shown = f"{value:.0f}" if fact.explanation else f"{100 * value:.0f}\u00a0%"
        return _Number(shown, (fact.expect or Condition(at_least=0)).holds(value))

    def _statistic(self, test: SimpleTest, look_up: Lookup) -> _Number:
        expect, _ = conditions(test)
        try:
            value = float(compare(self.study, test, look_up).values.mean())
        except (UntestableError, MetricError):
            return _Number("", holds=False)
        words = wording(self.study, test)
        holds = not isinstance(expect, PublishedRun) and expect.holds(value)
        return _Number(f"{_rounded(value * words.factor)}\u00a0{words.unit}".rstrip(), holds)

    def _measured(self, wanted: Quantity) -> pd.DataFrame:
        frame = quantity(self.results, wanted)
        frame = frame[frame["engine"] == self.engine].drop(columns="engine")
        return _some(frame[frame["value"].notna()])

    @cached_property
    def _printed(self) -> Callable[[Quantity], pd.DataFrame]:
        path = published_path(self.source.root, self.study.id)
        return printed_numbers(self.study, map_cells(self.study, read_published(path)))

    @cached_property
    def _explained(self) -> Mapping[str, Any]:
        found = explanation_of(self.source.root, self.source.data, self.study)
        if found is None or not found["is_found"]:
            raise _NotRunError
        return found

    def _count(self, what: str) -> float:
        total, claims = self._explained["total"], self._explained["holding"]
        counts = {
            "matches_before": total["before"],
            "matches_after": total["after"],
            "numbers": total["cells"],
            "claims_before": claims[0],
            "claims_after": claims[1],
            "claims": claims[2],
            "gain": total["after"] - total["before"] + claims[1] - claims[0],
        }
        return float(counts[what])

    def _share(self, fact: Fact) -> float:
        path = self.source.data / REGIONS_TABLE
        if not path.is_file():
            raise _NotRunError
        rows = read_frame(path)
        own = rows[(rows["region"] == fact.region) & (rows["engine"] == fact.engine)]
        if own.empty:
            raise _NotRunError
        return float(own["holds"].iloc[0])


def _some(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame; UntestableError if it has no row."""
    if frame.empty:
        raise UntestableError("nothing was run or printed.")
    return frame


def _rounded(value: float) -> str:
    """Return a number with the two digits that a sentence needs."""
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    # Shares and indices near one differ in a later digit.
    digits = 2 if 0.9 < value < 1 else 1
    decimals = max(0, digits - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace("-", "−")
