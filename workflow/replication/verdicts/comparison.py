"""Comparisons: the statistic of each kind of test, once per replicate of one engine.

Points are matched within a replicate, because the points of a replicate share random numbers. Only
replicates that have every point count, so all are taken over the same points. `RatioTest` says
which points match; a list of levels that only one side gives, or that both give alike, narrows the
factor and leaves it matched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from replication.metrics.metric_model import MetricError, largest
from replication.metrics.statistic import ranked, spearman
from replication.study.claim_model import (
    Condition,
    CrossoverTest,
    EquivalenceTest,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    TrendTest,
    ValueTest,
    Where,
    sides,
)
from replication.study.study import Study

#: Tests that compare two sides point by point.
PairedTest = RatioTest | EquivalenceTest | ShareTest | CrossoverTest
#: A frame for each quantity of `sides(test)`, with the columns replicate, factors and value.
Frames = Sequence[pd.DataFrame]
#: Returns the values of a quantity: replicate, factors and value.
LookUp = Callable[[Quantity], pd.DataFrame]


class UntestableError(Exception):
    """A test cannot be decided from what was run; the message says why."""


@dataclass(frozen=True)
class Comparison:
    """One statistic per replicate, NaN if undefined, over `points` points or pairs of points.

    `lowest` and `highest` are the limits of its range.
    """

    values: pd.Series[float]
    points: int
    lowest: float = -np.inf
    highest: float = np.inf


def compare(study: Study, test: SimpleTest, frames: Frames) -> Comparison:
    """Compute the statistic of `test` for each replicate.

    UntestableError: no points match, or no replicate has every point.
    """
    match test:
        case RatioTest() | EquivalenceTest():
            return _ratio(study, test, frames)
        case ShareTest():
            return _share(study, test, frames)
        case TrendTest():
            return _trend(study, test, *frames)
        case CrossoverTest():
            return _crossover(study, test, frames)
        case ValueTest():
            frame = complete(frames[0])
            most = largest(test.of.metric, test.of.aggregate)
            values = _reduce(frame["value"], frame["replicate"], test.reduce)
            return Comparison(values, _count(frame, "value"), highest=most)


def mean_statistic(study: Study, test: SimpleTest, look_up: LookUp) -> float | None:
    """Return the mean of a test's statistic over replicates; None if it cannot be computed."""
    try:
        frames = [look_up(wanted) for wanted in sides(test)]
        if any(frame.empty for frame in frames):
            return None
        return float(compare(study, test, frames).values.mean())
    except (UntestableError, MetricError):
        return None


def matched_factors(study: Study, test: PairedTest) -> list[str]:
    """Return the factors in which the points of the two sides must agree."""
    left, right = (study.experiment(side.experiment).factors for side in sides(test))
    shared = {factor.id for factor in right}
    over = test.over if isinstance(test, CrossoverTest) else None
    matched = []
    for factor in left:
        is_matched = factor.id in shared and _matches(test.left.where, test.right.where, factor.id)
        if factor.id == over or is_matched:
            matched.append(factor.id)
    return matched


def _matches(left: Where, right: Where, factor: str) -> bool:
    if factor in left and factor in right:
        return set(left[factor]) == set(right[factor])
    listed = left.get(factor) or right.get(factor)
    return listed is None or len(set(listed)) > 1


def _pairs(study: Study, test: PairedTest, frames: Frames) -> pd.DataFrame:
    """Return matched points of complete replicates: replicate, factors, left, right."""
    on = ["replicate", *matched_factors(study, test)]
    renamed = []
    for side, frame in zip(("left", "right"), frames, strict=True):
        names = {column: f"{column} {side}" for column in frame if column not in on}
        renamed.append(frame.rename(columns=names | {"value": side}))
    return complete(renamed[0].merge(renamed[1], on=on), ("left", "right"))


def complete(frame: pd.DataFrame, values: Sequence[str] = ("value",)) -> pd.DataFrame:
    """Return the rows of the replicates that have every point; other columns than `values` name it.

    UntestableError: there are no rows, or no replicate has every point.
    """
    if frame.empty:
        raise UntestableError("no points of the two sides match.")
    sizes = frame.groupby("replicate").size()
    whole = sizes.index[sizes == _count(frame, *values)]
    if whole.empty:
        raise UntestableError("no replicate has every point.")
    return frame[frame["replicate"].isin(whole)]


def _count(frame: pd.DataFrame, *values: str) -> int:
    keys = [column for column in frame if column not in ("replicate", *values)]
    return frame.groupby(keys).ngroups if keys else 1


def _reduce(values: pd.Series[float], replicate: pd.Series[int], how: str) -> pd.Series[float]:
    reducer = {"minimum": "min", "maximum": "max"}.get(how, "mean")
    return values.groupby(replicate).agg(reducer)


def _ratio(study: Study, test: RatioTest | EquivalenceTest, frames: Frames) -> Comparison:
    if test.reduce == "ratio_of_means":
        frames = [complete(frame) for frame in frames]
        points = sum(_count(frame, "value") for frame in frames)
        left, right = (frame.groupby("replicate")["value"].mean() for frame in frames)
        pairs = pd.DataFrame({"left": left, "right": right}).dropna().reset_index()
        if pairs.empty:
            raise UntestableError("no replicate has every point of both sides.")
    else:
        pairs = _pairs(study, test, frames)
        points = _count(pairs, "left", "right")
    left = pairs["left"].astype(float)
    right = pairs["right"].astype(float)
    ratios = (left / right).mask((left == 0) & (right == 0), 1.0)
    lowest = -np.inf
    if isinstance(test, EquivalenceTest):
        ratios, lowest = (ratios - 1).abs(), 0
    return Comparison(_reduce(ratios, pairs["replicate"], test.reduce), points, lowest)


def _share(study: Study, test: ShareTest, frames: Frames) -> Comparison:
    pairs = _pairs(study, test, frames)
    bound = test.factor * pairs["right"]
    sign = 1 if test.relation == "above" else -1
    holds = sign * pairs["left"] > sign * bound * (1 + sign * test.tie)
    # A left point has every factor except those that only right points have.
    keys = [c for c in pairs if c not in ("left", "right") and not str(c).endswith(" right")]
    every = holds.groupby([pairs[key] for key in keys]).all()
    values = every.groupby(level="replicate").mean()
    return Comparison(values.astype(float), len(every) // len(values), lowest=0, highest=1)


def _trend(study: Study, test: TrendTest, of: pd.DataFrame) -> Comparison:
    """Correlate each curve over a factor with it, then take the worst or the mean of these."""
    frame = _with_axis(study, test.of, test.over, complete(of), "trend")
    others = [c for c in frame if c not in ("value", "axis", test.over)]
    curves = frame.groupby(others)[["axis", "value"]].apply(
        lambda curve: spearman(curve["axis"], ranked(curve["value"], test.tie))
    )
    runs = curves.groupby(level="replicate")
    if test.worst:
        values = runs.agg(lambda correlations: _furthest(correlations, test.expect))
    else:
        values = runs.mean()
    return Comparison(values.astype(float), _count(frame, "value"), lowest=-1, highest=1)


def _furthest(values: pd.Series[float], expect: Condition) -> float:
    """Return the value that misses `expect` by most, or is closest to missing it."""
    low = -np.inf if expect.at_least is None else expect.at_least
    high = np.inf if expect.at_most is None else expect.at_most
    sample = values.to_numpy(dtype=float)
    return float(sample[np.argmax(np.maximum(low - sample, sample - high))])


def _with_axis(
    study: Study, wanted: Quantity, over: str, frame: pd.DataFrame, what: str
) -> pd.DataFrame:
    """Add the value of each row's level of a factor, in which there may be a trend or crossing."""
    levels = study.experiment(wanted.experiment).factor(over).levels
    axis = frame[over].map({level.key: level.value for level in levels}).astype(float)
    if axis.nunique() < 2:
        raise UntestableError(f"only one level of {over} was run, so there is no {what}.")
    return frame.assign(axis=axis)


def _crossover(study: Study, test: CrossoverTest, frames: Frames) -> Comparison:
    pairs = _with_axis(study, test.left, test.over, _pairs(study, test, frames), "crossing")
    means = pairs.groupby(["replicate", "axis"])[["left", "right"]].mean()
    difference = means["left"] - means["right"]
    sign = 1 if test.before == "left" else -1
    values = difference.groupby(level="replicate").agg(
        lambda d: crossing(d.index.get_level_values("axis"), sign * d.to_numpy())
    )
    return Comparison(values.astype(float), _count(pairs, "left", "right", "axis"))


def crossing(axis: Any, difference: Any) -> float:
    """Return where `difference` first turns from positive to negative, interpolated linearly.

    NaN if it never does, or starts negative. Zeros before a negative value count as the crossing,
    at the first of them. `axis` must increase.
    """
    x, d = np.asarray(axis, dtype=float), np.asarray(difference, dtype=float)
    after = int(np.argmax(d < 0))  # 0 if there is none
    positive = np.flatnonzero(d[:after] > 0)
    if not positive.size:
        return float("nan")
    before = int(positive[-1])
    if before + 1 < after:
        return float(x[before + 1])
    return float(x[before] + (x[after] - x[before]) * d[before] / (d[before] - d[after]))
