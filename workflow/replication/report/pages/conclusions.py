"""Findings on these results: sentences with their numbers, under each set-up that was run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from replication.explore.regions.border import row_at
from replication.explore.regions.region_result import region_results
from replication.explore.regions.region_rows import RegionResult
from replication.metrics.cell_map import cells_of
from replication.metrics.metric import defined
from replication.metrics.metric_model import display_unit as unit_of
from replication.metrics.results import Results
from replication.report.charts.figure import Figure
from replication.report.pages.source import Source
from replication.study.claim_model import PublishedRun, Quantity, SimpleTest, sides
from replication.study.finding_model import Fact, Statement, load_findings
from replication.study.setup import Setup
from replication.study.stated_cause import StatedCause
from replication.study.study import Study
from replication.verdicts.comparison import LookUp, mean_statistic
from replication.verdicts.self_consistency import printed_numbers
from replication.verdicts.wording import wording


class StatementShown(NamedTuple):
    """A statement that these results support, and the runs that its numbers come from.

    `setup` is None for runs of a region, and where the study or the results have one set-up.
    """

    text: str
    setup: Setup | None
    runs: int
    is_region: bool
    causes: list[StatedCause]


class Conclusion(NamedTuple):
    """What a finding says under each set-up, the name of its chart, and the chart's title.

    The title is empty unless these results support the finding at the defaults, which are drawn.
    """

    statements: list[StatementShown]
    chart: str | None
    headline: str = ""


@dataclass(frozen=True)
class Conclusions:
    """The findings of a study that these results support.

    `unsupported` statements have a condition that fails; `without_runs` need runs that are missing.
    """

    shown: list[Conclusion]
    unsupported: int = 0
    without_runs: int = 0

    @property
    def chart(self) -> str | None:
        """The chart of the first finding."""
        return next((finding.chart for finding in self.shown if finding.chart), None)

    def titled(self, figure: Figure) -> Figure:
        """Return the figure of the first finding with what it shows as its title."""
        headline = next((finding.headline for finding in self.shown if finding.chart), "")
        if not headline:
            return figure
        description = figure.description
        if not description.startswith(figure.title):
            description = f"{figure.title}. {description}"
        return replace(figure, title=headline, description=description)


def conclusions(source: Source, study: Study, results: Mapping[Setup, Results]) -> Conclusions:
    """Return a study's findings on its results on the primary engine, by set-up.

    Those that need a search, a region or a set-up that was not run are left out and counted.
    """
    facts = {setup: _Facts(source, study, ran) for setup, ran in results.items()}
    names_setup = len(source.setups) > 1 and len(study.setups) > 1
    shown, unsupported, without_runs = [], 0, 0
    for finding in load_findings(source.root, study.id):
        statements, headline = [], ""
        for setup, statement in zip(Setup, finding.statements(), strict=False):
            numbers = facts[setup].numbers(statement) if setup in facts else None
            if numbers is None:
                without_runs += 1
            elif all(number.holds for number in numbers.values()):
                shown_setup = setup if names_setup and statement.rests_on == "runs" else None
                statements.append(_shown(shown_setup, statement, numbers))
                if statement is finding and finding.headline:
                    headline = finding.headline.format_map(_words(numbers))
            else:
                unsupported += 1
        if statements:
            shown.append(Conclusion(statements, finding.chart, headline))
    return Conclusions(shown, unsupported, without_runs)


class _Number(NamedTuple):
    """A number in words, whether its condition holds, and the runs that it comes from."""

    words: str
    holds: bool
    runs: frozenset[str]


def _shown(
    setup: Setup | None, statement: Statement, numbers: Mapping[str, _Number]
) -> StatementShown:
    runs = frozenset[str]().union(*(number.runs for number in numbers.values()))
    text = statement.text.format_map(_words(numbers))
    is_region = statement.rests_on == "region"
    return StatementShown(text, setup, len(runs), is_region, statement.causes)


def _words(numbers: Mapping[str, _Number]) -> dict[str, str]:
    return {name: number.words for name, number in numbers.items()}


class _Facts:
    """The numbers of facts on the results of one set-up."""

    def __init__(self, source: Source, study: Study, results: Results) -> None:
        self.source, self.study, self.results = source, study, results

    def numbers(self, statement: Statement) -> dict[str, _Number] | None:
        """Return the number of each fact; None if one of them was not run."""
        numbers = {}
        for name, fact in statement.facts.items():
            number = self._number(fact)
            if number is None:
                return None
            numbers[name] = number
        return numbers

    def _number(self, fact: Fact) -> _Number | None:
        if fact.ours:
            if not all(self._was_run(wanted) for wanted in sides(fact.ours)):
                return None
            runs = (self._runs(wanted)["scenario"] for wanted in sides(fact.ours))
            return self._statistic(fact.ours, self._measured, frozenset(pd.concat(runs)))
        if fact.paper:
            return self._statistic(fact.paper, self._printed, frozenset())
        return self._on_region(fact)

    def _statistic(self, test: SimpleTest, look_up: LookUp, runs: frozenset[str]) -> _Number | None:
        value = mean_statistic(self.study, test, look_up)
        if value is None:
            return None
        words = wording(self.study, test)
        holds = not isinstance(test.expect, PublishedRun) and test.expect.holds(value)
        return _Number(f"{_rounded(value * words.factor)}\u00a0{words.unit}".rstrip(), holds, runs)

    def _runs(self, wanted: Quantity) -> pd.DataFrame:
        runs = self.results.runs(wanted.experiment, wanted.where)
        return runs[runs["supported"]]

    def _was_run(self, wanted: Quantity) -> bool:
        """Return whether every level that a quantity names was run."""
        runs = self._runs(wanted)
        return all(set(keys) <= set(runs.get(factor, ())) for factor, keys in wanted.where.items())

    def _measured(self, wanted: Quantity) -> pd.DataFrame:
        return defined(self.results, wanted)

    @cached_property
    def _printed(self) -> LookUp:
        return printed_numbers(self.study, cells_of(self.source.root, self.study))

    def _on_region(self, fact: Fact) -> _Number | None:
        """Return a border or quantity of a region; None if it was not run on the engine."""
        region = self._regions.get((str(fact.region), str(fact.engine)))
        if region is None or not region.panels:
            return None
        panel = region.panels[0]
        runs = frozenset(f"{fact.region} {fact.engine} {n}" for n in range(panel.runs))
        x_axis = region.axes[0]
        if fact.gives == "beyond":
            value = x_axis.paper / x_axis.high if x_axis.paper is not None else None
        else:
            value = row_at(region, panel, fact.at or 0.0).number(str(fact.gives))
        if value is None:
            return _Number("", False, runs)
        unit = x_axis.unit if fact.gives in ("from", "to") else "1"
        holds = fact.expect is None or fact.expect.holds(value)
        return _Number(_rounded(value * unit_of(unit)[1]), holds, runs)

    @cached_property
    def _regions(self) -> dict[tuple[str, str], RegionResult]:
        results = region_results(self.source.data)
        return {(result.region, result.engine): result for result in results}


def _rounded(value: float) -> str:
    """Return a number with two digits, as for a sentence."""
    # Ratios, shares and indices near 1 need one more digit.
    digits = 2 if 0.9 < value < 1.1 and value != 1 else 1
    known = value and math.isfinite(value)
    decimals = max(0, digits - math.floor(math.log10(abs(value)))) if known else 0
    return f"{value:,.{decimals}f}".replace("-", "−")
