"""Comparisons: the statistic of each kind of test, once per replicate of one engine.

Points are matched within a replicate, because replicates of an experiment share their random
numbers: a difference between two variants is a difference of like with like. A replicate counts
only if it has every point that any replicate has, so that all are taken over the same points.

Which factors are matched: those that neither side of the test fixes. A side fixes a factor by
naming one level, or by listing levels that are not those of the other side; a list that only one
side gives, or both give alike, narrows the factor and leaves it matched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from replication.metrics.metric_model import largest
from replication.metrics.statistic import kendall, ranked, spearman
from replication.study.claim_model import (
    Condition,
    CrossoverTest,
    EquivalenceTest,
    OrderingTest,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    StepsTest,
    TrendTest,
    ValueTest,
    Where,
)
from replication.study.study import Study

#: Tests that compare two sides point by point.
PairedTest = RatioTest | EquivalenceTest | ShareTest | CrossoverTest
#: Returns a quantity's frame for one engine (replicate, factors, value) under the side's name.
Lookup = Callable[[str, Quantity], pd.DataFrame]


class UntestableError(Exception):
    """A test cannot be decided from what was run; the message says why."""


@dataclass(frozen=True)
class Comparison:
    """One statistic per replicate, NaN where it is undefined.

    `points` is the number of points, or pairs of points, in each replicate's statistic; `lowest`
    and `highest` are the range that it cannot leave.
    """

    values: pd.Series[float]
    points: int
    lowest: float = -np.inf
    highest: float = np.inf


def compare(study: Study, test: SimpleTest, look_up: Lookup) -> Comparison:
    """Compute the statistic of `test` for each replicate.

    UntestableError where nothing was run for a side, or no replicate has every point.
    """
    match test:
        case RatioTest() | EquivalenceTest():
            return _ratio(study, test, look_up)
        case ShareTest():
            return _share(study, test, look_up)
        case TrendTest() | StepsTest():
            return _along(study, test, look_up)
        case CrossoverTest():
            return _crossover(study, test, look_up)
        case OrderingTest():
            return _ordering(test, look_up)
        case ValueTest():
            return _value(test, look_up)


def matched_factors(study: Study, test: PairedTest) -> list[str]:
    """Return the factors in which points of the two sides must agree."""
    ours, theirs = (study.experiment(one.experiment).axes for one in (test.left, test.right))
    shared = {factor.id for factor in theirs}
    over = test.over if isinstance(test, CrossoverTest) else None
    return [
        factor.id
        for factor in ours
        if factor.id == over
        or (factor.id in shared and _matches(test.left.where, test.right.where, factor.id))
    ]


def _matches(left: Where, right: Where, factor: str) -> bool:
    if factor in left and factor in right:
        return set(left[factor]) == set(right[factor])
    listed = left.get(factor) or right.get(factor)
    return listed is None or len(set(listed)) > 1


def _pairs(study: Study, test: PairedTest, look_up: Lookup) -> pd.DataFrame:
    """Return matched points of complete replicates: replicate, factors, left, right."""
    on = matched_factors(study, test)
    sides = []
    for side, wanted in (("left", test.left), ("right", test.right)):
        frame = look_up(side, wanted)
        free = [c for c in frame if c not in ("replicate", "value", *on)]
        names = {c: f"{c} {side}" for c in free} | {"value": side}
        sides.append(frame.rename(columns=names))
    return complete(sides[0].merge(sides[1], on=["replicate", *on]), ("left", "right"))


def complete(frame: pd.DataFrame, values: tuple[str, ...] = ("value",)) -> pd.DataFrame:
    """Return the rows of the replicates that have every point."""
    if frame.empty:
        raise UntestableError("no two points match in the factors that neither side fixes.")
    point = _point_number(frame, values)
    points_of = point.groupby(frame["replicate"]).nunique()
    whole = points_of.index[points_of == point.nunique()]
    if whole.empty:
        raise UntestableError("no replicate has every point.")
    return frame[frame["replicate"].isin(whole)]


def _point_number(frame: pd.DataFrame, values: tuple[str, ...]) -> pd.Series[int]:
    keys = [c for c in frame if c not in ("replicate", *values)]
    if not keys:
        return pd.Series(0, index=frame.index)
    return frame.groupby(keys, sort=False).ngroup()


def _count(frame: pd.DataFrame, *values: str) -> int:
    return int(_point_number(frame, values).nunique())


def _ratios(pairs: pd.DataFrame) -> pd.Series[float]:
    """Return left/right; 0/0 is 1 (equal), anything else over 0 infinite."""
    left, right = pairs["left"].astype(float), pairs["right"].astype(float)
    return (left / right).mask((left == 0) & (right == 0), 1.0)


def _reduce(values: pd.Series[float], replicate: pd.Series[int], how: str) -> pd.Series[float]:
    reducer = {"minimum": "min", "maximum": "max"}.get(how, "mean")
    return values.groupby(replicate).agg(reducer)


def _ratio(study: Study, test: RatioTest | EquivalenceTest, look_up: Lookup) -> Comparison:
    if test.reduce == "ratio_of_means":
        pairs, points = _mean_pairs(test, look_up)
    else:
        pairs = _pairs(study, test, look_up)
        points = _count(pairs, "left", "right")
    ratios, lowest = _ratios(pairs), -np.inf
    if isinstance(test, EquivalenceTest):
        ratios, lowest = (ratios - 1).abs(), 0
    return Comparison(_reduce(ratios, pairs["replicate"], test.reduce), points, lowest)


def _mean_pairs(test: RatioTest | EquivalenceTest, look_up: Lookup) -> tuple[pd.DataFrame, int]:
    sides = {"left": test.left, "right": test.right}
    frames = {side: complete(look_up(side, wanted)) for side, wanted in sides.items()}
    means = pd.DataFrame({s: f.groupby("replicate")["value"].mean() for s, f in frames.items()})
    means = means.dropna()
    if means.empty:
        raise UntestableError("no replicate has every point of both sides.")
    return means.reset_index(), sum(_count(frame, "value") for frame in frames.values())


def _share(study: Study, test: ShareTest, look_up: Lookup) -> Comparison:
    pairs = _pairs(study, test, look_up)
    bound = test.factor * pairs["right"]
    if test.relation == "above":
        holds = pairs["left"] > bound * (1 + test.tie)
    else:
        holds = pairs["left"] < bound * (1 - test.tie)
    # A left point is known by all factors but those that only tell right points apart.
    keys = [c for c in pairs if c not in ("left", "right") and not str(c).endswith(" right")]
    every = holds.groupby([pairs[key] for key in keys]).all()
    values = every.groupby(level="replicate").mean()
    return Comparison(values.astype(float), len(every) // len(values), lowest=0, highest=1)


def _along(study: Study, test: TrendTest | StepsTest, look_up: Lookup) -> Comparison:
    """Take a statistic of each curve over a factor, and of these the worst or the mean."""
    frame = complete(_with_axis(study, test.of, test.over, look_up("of", test.of)))
    others = [c for c in frame if c not in ("value", "axis", test.over)]
    if frame["axis"].nunique() < 2:
        raise UntestableError(f"only one level of {test.over} was run: there is no trend to see.")
    rows = [
        (curve["replicate"].iloc[0], _of_curve(test, curve)) for _, curve in frame.groupby(others)
    ]
    found = pd.DataFrame(rows, columns=["replicate", "value"]).groupby("replicate")["value"]
    values = found.agg(lambda v: _furthest(v, test.expect)) if test.worst else found.mean()
    lowest = -1 if isinstance(test, TrendTest) else 0
    return Comparison(values.astype(float), _count(frame, "value"), lowest, highest=1)


def _of_curve(test: TrendTest | StepsTest, curve: pd.DataFrame) -> float:
    if isinstance(test, TrendTest):
        return spearman(curve["axis"], ranked(curve["value"], test.tie))
    along = curve.sort_values("axis")["value"].to_numpy(dtype=float)
    bound = test.factor * along[:-1]
    steps = along[1:] > bound if test.relation == "rises" else along[1:] < bound
    return float(steps.mean())


def _furthest(values: pd.Series[float], expect: Condition) -> float:
    """Return the value that misses `expect` by most, or is closest to missing it."""
    low = -np.inf if expect.at_least is None else expect.at_least
    high = np.inf if expect.at_most is None else expect.at_most
    sample = values.to_numpy(dtype=float)
    return float(sample[np.argmax(np.maximum(low - sample, sample - high))])


def _with_axis(study: Study, wanted: Quantity, over: str, frame: pd.DataFrame) -> pd.DataFrame:
    levels = study.experiment(wanted.experiment).factor(over).levels
    axis = {level.key: level.value for level in levels}
    return frame.assign(axis=frame[over].map(axis).astype(float))


def _crossover(study: Study, test: CrossoverTest, look_up: Lookup) -> Comparison:
    pairs = _with_axis(study, test.left, test.over, _pairs(study, test, look_up))
    if pairs["axis"].nunique() < 2:
        raise UntestableError(f"only one level of {test.over} was run: no crossing can be seen.")
    means = pairs.groupby(["replicate", "axis"])[["left", "right"]].mean()
    difference = means["left"] - means["right"]
    sign = 1 if test.before == "left" else -1
    values = difference.groupby(level="replicate").agg(
        lambda d: crossing(d.index.get_level_values("axis"), sign * d.to_numpy())
    )
    return Comparison(values.astype(float), _count(pairs, "left", "right", "axis"))


def crossing(axis: Any, difference: Any) -> float:
    """Return where `difference` first turns from positive to negative, interpolated linearly.

    NaN where it never does or starts negative. Zeros count as crossed only if what follows is
    negative: the crossing is then at the first. `axis` has increasing numbers.
    """
    x, d = np.asarray(axis, dtype=float), np.asarray(difference, dtype=float)
    negative = np.flatnonzero(d < 0)
    if not negative.size:
        return float("nan")
    after = int(negative[0])
    positive = np.flatnonzero(d[:after] > 0)
    if not positive.size:
        return float("nan")
    before = int(positive[-1])
    if before + 1 < after:
        return float(x[before + 1])
    return float(x[before] + (x[after] - x[before]) * d[before] / (d[before] - d[after]))


def _ordering(test: OrderingTest, look_up: Lookup) -> Comparison:
    narrowed = {factor for item in test.order for factor in item}
    tables = []
    for rank, item in enumerate(test.order):
        frame = complete(look_up(f"order {rank + 1}", test.of.at(item)))
        keys = [c for c in frame if c != "value" and c not in narrowed]
        tables.append(frame.groupby(keys)["value"].mean().rename(rank).reset_index())
    ranks = list(range(len(test.order)))
    table = complete(functools.reduce(pd.merge, tables), tuple(ranks))  # type: ignore[arg-type]
    falling = [-rank for rank in ranks]
    taus = pd.Series(
        [kendall(falling, ranked(row, test.tie)) for row in table[ranks].to_numpy(dtype=float)],
        index=table.index,
    )
    values = _reduce(taus, table["replicate"], "mean")
    return Comparison(values, len(table) // len(values), lowest=-1, highest=1)


def _value(test: ValueTest, look_up: Lookup) -> Comparison:
    frame = complete(look_up("of", test.of))
    values = _reduce(frame["value"], frame["replicate"], test.reduce)
    most = largest(test.of.metric, test.of.aggregate)
    return Comparison(values, _count(frame, "value"), highest=most)
