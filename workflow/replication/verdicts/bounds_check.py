"""Bounds check: could a condition hold, and could it fail, in this set-up?

The range of a statistic follows from those of its quantities (`verdicts.metric_range`), at the
scenarios that were run; that of a trend only where the ranges along it lie apart. A condition
beyond what the paper states alone is *impossible*. One that the whole range meets cannot fail, and
one that no value of the range meets cannot hold: the set-up forces the verdict. A range that a run
leaves is wrong, so it forces nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from replication.metrics.metric_model import metric_label
from replication.study.claim_model import (
    Condition,
    EquivalenceTest,
    PublishedRun,
    Quantity,
    SimpleTest,
    TrendTest,
    sides,
)
from replication.study.verdict import Verdict
from replication.verdicts.bound import StatedPoint, stated_points
from replication.verdicts.comparison import UntestableError, compare
from replication.verdicts.congestion import ComparedPoints
from replication.verdicts.metric_range import ANY, BOUNDED, Allowed, Range, windows_in_words
from replication.verdicts.sample import Coverage
from replication.verdicts.wording import Wording, amount, qualifier

#: A run may leave a range by rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Forced:
    """A verdict that the set-up forces: `holds` or not, whatever TCP does."""

    holds: bool
    reason: str
    verdict: Verdict = Verdict.NOT_TESTABLE


def bounds_check(
    coverage: Coverage, test: SimpleTest, points: ComparedPoints, words: Wording
) -> Forced | None:
    """Return how the set-up forces a test's verdict; None if it does not, as far as is known."""
    compared = sides(test)
    if isinstance(test.expect, PublishedRun):
        return None
    if not all(wanted.metric in BOUNDED for wanted in compared):
        return None
    allowed = [allowed_at(coverage, wanted) for wanted in compared]
    statistic = _statistic(coverage, test, [points.of(ranges) for ranges in allowed])
    holds = _contains(test.expect, statistic)
    if not (holds or _excludes(test, statistic)) or is_left(coverage, compared, allowed):
        return None
    if not holds and (broken := _stated_range(coverage, test)) is not None:
        why = _reason(words, test, broken, "by what the paper states")
        return Forced(False, f"{why}, so it cannot hold.", Verdict.IMPOSSIBLE)
    causes = [windows_in_words(_points(coverage, compared))]
    if any(wanted.metric == "delivery_ratio" for wanted in compared):
        causes.append("no packet can be lost, so what is not delivered is under way at the end")
    elif len(compared) > 1:
        for wanted, ranges in zip(compared, allowed, strict=True):
            causes.append(_in_words(coverage, wanted, ranges))
    because = "; ".join(dict.fromkeys(cause for cause in causes if cause))
    bound = "whatever TCP does" + (f" ({because})" if because else "")
    why = _reason(words, test, statistic, bound)
    return Forced(holds, f"{why}, so it cannot {'fail' if holds else 'hold'}.")


def allowed_at(coverage: Coverage, wanted: Quantity) -> pd.DataFrame:
    """Return factors, low and high at each point of a quantity, by one of its runs."""
    runs = coverage.ran(wanted).drop_duplicates("point")
    ranges = [_of_run(coverage, scenario).range_of(wanted) for scenario in runs["scenario"]]
    return _frame(runs.drop(columns=["engine", "scenario", "supported", "reason", "point"]), ranges)


def _of_run(coverage: Coverage, scenario: str) -> Allowed:
    key = ("allowed", scenario, "")
    if key not in coverage.memo:
        coverage.memo[key] = Allowed(coverage.run_point(scenario))
    allowed: Allowed = coverage.memo[key]
    return allowed


def _stated_range(coverage: Coverage, test: SimpleTest) -> Range | None:
    """Return the range by what the paper states alone, if the test cannot hold in it."""
    stated = []
    for wanted in sides(test):
        points = stated_points(coverage.study, wanted.experiment, wanted.where)
        ranges = [Allowed(point, strict=True).range_of(wanted) for point in points]
        levels = pd.DataFrame([point.levels for point in points], index=range(len(points)))
        stated.append(_frame(levels, ranges))
    statistic = _statistic(coverage, test, stated)
    return statistic if _excludes(test, statistic) else None


def _frame(levels: pd.DataFrame, ranges: list[Range]) -> pd.DataFrame:
    lows = [allowed.low for allowed in ranges]
    highs = [allowed.high for allowed in ranges]
    return levels.assign(replicate=0, low=lows, high=highs)


def _statistic(coverage: Coverage, test: SimpleTest, ranges: list[pd.DataFrame]) -> Range:
    """Return the range of a statistic, which rises or falls with each of its quantities."""
    if any(np.isneginf(frame["low"]).any() for frame in ranges):
        return ANY
    if isinstance(test, TrendTest) and not _is_ordered(test, *ranges):
        return ANY
    corners = []
    for end, other in (("low", "high"), ("high", "low")):
        frames = [_at_end(ranges[0], end)]
        frames += [_at_end(frame, other) for frame in ranges[1:]]
        try:
            values = compare(coverage.study, test, frames).values
        except UntestableError:
            return ANY
        corners.append(float(values.iloc[0]))
    if any(math.isnan(corner) for corner in corners):
        return ANY
    if isinstance(test, EquivalenceTest):
        # A difference may vanish between its ends; together they are no less than the largest one.
        return Range(0.0, sum(corners))
    return Range(min(corners), max(corners))


def _at_end(ranges: pd.DataFrame, end: str) -> pd.DataFrame:
    """Return the "low" or "high" ends of ranges as values."""
    return ranges.drop(columns=["low", "high"]).assign(value=ranges[end])


def _is_ordered(test: TrendTest, ranges: pd.DataFrame) -> bool:
    """Return whether the ranges of every curve of a trend lie apart, so that its order is known."""
    others = [name for name in ranges if name not in ("low", "high", test.over)]
    for _, curve in ranges.groupby(others):
        ordered = curve.sort_values("low")
        ends = ordered["high"].to_numpy()[:-1]
        starts = ordered["low"].to_numpy()[1:]
        if not (ends * (1 + test.tie) < starts).all():
            return False
    return True


def _contains(condition: Condition | PublishedRun, statistic: Range) -> bool:
    """Return whether a condition holds for the whole range."""
    if isinstance(condition, PublishedRun):
        return False
    return condition.holds(statistic.low) and condition.holds(statistic.high)


def _excludes(test: SimpleTest, statistic: Range) -> bool:
    """Return whether neither what is expected nor the direction can hold."""
    given = (test.expect, test.direction)
    conditions = [condition for condition in given if isinstance(condition, Condition)]
    return bool(conditions) and not any(_meets(condition, statistic) for condition in conditions)


def _meets(condition: Condition, statistic: Range) -> bool:
    """Return whether a condition holds somewhere in a range."""
    low = -math.inf if condition.at_least is None else condition.at_least
    nearest = min(max(statistic.low, low), statistic.high)
    return condition.holds(nearest)


def is_left(
    coverage: Coverage, compared: Sequence[Quantity], allowed: Sequence[pd.DataFrame]
) -> bool:
    """Return whether a run has a value of a quantity outside its range, as of `allowed_at`."""
    for wanted, ranges in zip(compared, allowed, strict=True):
        if wanted.metric == "delivery_ratio":
            # Packets under way at the end count in its range, and not in its value.
            wanted, ranges = _losses_of(wanted, ranges)
        factors = [name for name in ranges if name not in ("replicate", "low", "high")]
        values = coverage.values(wanted).dropna(subset="value").drop(columns="replicate")
        ends = ranges.drop(columns="replicate")
        joined = values.merge(ends, on=factors) if factors else values.merge(ends, how="cross")
        slack = _ROUNDING * np.abs(joined["value"])
        below = joined["value"] < joined["low"] - slack
        above = joined["value"] > joined["high"] + slack
        if (below | above).any():
            return True
    return False


def _losses_of(wanted: Quantity, ranges: pd.DataFrame) -> tuple[Quantity, pd.DataFrame]:
    """Return the lost packets that go with a delivery ratio, and the range of their number."""
    losses = wanted.model_copy(update={"metric": "packets_dropped", "aggregate": "sum"})
    most = np.where(ranges["low"] == 1.0, 0.0, math.inf)
    return losses, ranges.assign(low=0.0, high=most)


def _points(coverage: Coverage, compared: list[Quantity]) -> list[StatedPoint]:
    scenarios: dict[str, None] = {}
    for wanted in compared:
        scenarios |= dict.fromkeys(coverage.ran(wanted)["scenario"])
    return [coverage.run_point(scenario) for scenario in scenarios]


def _in_words(coverage: Coverage, wanted: Quantity, ranges: pd.DataFrame) -> str:
    """Return the range of a quantity over its points; empty if it has none."""
    low, high = float(ranges["low"].min()), float(ranges["high"].max())
    who = qualifier(coverage.study, wanted)
    label = metric_label(wanted.metric) + (f" ({who})" if who else "")
    if wanted.aggregate == "jain" or math.isinf(low):
        return ""
    if math.isinf(high):
        return f"{label} at least {amount(wanted, low)}"
    ends = dict.fromkeys(amount(wanted, end) for end in (low, high))
    return f"{label} {' to '.join(ends)}"


def _reason(words: Wording, test: SimpleTest, statistic: Range, because: str) -> str:
    low, high = statistic
    allowed = words.interval(low, high) if low < high else words.value(low)
    needs = words.condition(test.expect)
    return f"{words.statistic}: {allowed} {because}; the claim needs {needs}"
