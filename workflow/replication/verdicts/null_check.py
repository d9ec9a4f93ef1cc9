"""Null check: is a reproduced claim still reproduced when nothing differs that it compares?

- *A difference between runs*: each side's runs are put on both sides in turn.
- *A difference between flows of one run*: runs in which both flows have one variant take its place.
- *No difference*: every other level of the compared factor is put on one side in turn, and the two
  sides change places.

A claim that passes all of these cannot fail. Where there is nothing to put, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from replication.metrics.metric_model import MetricError
from replication.study.claim_model import (
    Condition,
    CrossoverTest,
    EquivalenceTest,
    PublishedRun,
    Quantity,
    RatioTest,
    ShareTest,
    SimpleTest,
    TrendTest,
    ValueTest,
    Where,
)
from replication.study.parameter import Factor
from replication.verdicts.bound import ALGORITHM_FIELDS
from replication.verdicts.comparison import Frames, PairedTest
from replication.verdicts.sample import Coverage

#: Judges frames of the two sides of a test; None if they cannot be judged.
Judge = Callable[[SimpleTest, Frames], bool | None]


class _Substitute(NamedTuple):
    """A test with other runs on its sides, and in words what was put where."""

    test: PairedTest
    what: str


def null_check(coverage: Coverage, test: SimpleTest, judge: Judge) -> str:
    """Return in a sentence why a reproduced test cannot fail; empty if it can, or may."""
    if isinstance(test, TrendTest | ValueTest) or isinstance(test.expect, PublishedRun):
        return ""
    passed = []
    for substitute in _substitutes(coverage, test):
        sides = (substitute.test.left, substitute.test.right)
        try:
            frames = [coverage.values(side).dropna(subset="value") for side in sides]
        except MetricError:
            continue  # Those runs have no such flow.
        outcome = judge(substitute.test, frames)
        if outcome is False:
            return ""
        if outcome:
            passed.append(substitute.what)
    if not passed:
        return ""
    return f"It cannot fail: the claim is met as well with {'; '.join(passed)}."


def _substitutes(coverage: Coverage, test: PairedTest) -> Iterator[_Substitute]:
    same_runs = _same_runs(test)
    if same_runs and not _is_pair(test):
        return
    if meets_equality(test):
        yield from _other_pairs(coverage, test) if same_runs else _other_levels(coverage, test)
    else:
        yield from _pairs_of_one_variant(coverage, test) if same_runs else _copies(test)


def meets_equality(test: PairedTest) -> bool:
    """Return whether two equal sides meet what a test expects."""
    expect = test.expect
    assert isinstance(expect, Condition)
    match test:
        case RatioTest():
            return expect.holds(1.0)
        case ShareTest():
            above = test.relation == "above"
            bound = test.factor * (1 + test.tie if above else 1 - test.tie)
            return expect.holds(float(bound < 1 if above else bound > 1))
        case CrossoverTest():
            return False
        case EquivalenceTest():
            return True


def _same_runs(test: PairedTest) -> bool:
    left, right = test.left, test.right
    return left.experiment == right.experiment and left.where == right.where


def _is_pair(test: PairedTest) -> bool:
    """Return whether a test compares flows of one run, at the same time."""
    left, right = test.left, test.right
    measures = (left.flows, left.aggregate) != (right.flows, right.aggregate)
    return measures and (left.metric, left.window_s) == (right.metric, right.window_s)


def _copies(test: PairedTest) -> Iterator[_Substitute]:
    """Put the runs of each side on both sides."""
    for name, side in (("left", test.left), ("right", test.right)):
        place = {"experiment": side.experiment, "where": side.where}
        both = {key: getattr(test, key).model_copy(update=place) for key in ("left", "right")}
        copied = f"the runs of the {name} side on both sides"
        yield _Substitute(test.model_copy(update=both), copied)


def _pairs_of_one_variant(coverage: Coverage, test: PairedTest) -> Iterator[_Substitute]:
    """Put runs in which all compared flows have one variant in the place of the test's own."""
    if len(_variants(coverage, test)) < 2:
        return
    for substitute in _other_pairs(coverage, test):
        if len(_variants(coverage, substitute.test)) == 1:
            yield substitute


def _other_pairs(coverage: Coverage, test: PairedTest) -> Iterator[_Substitute]:
    """Put runs of each other level of a factor with variants in the place of the test's own."""
    factors = coverage.study.experiment(test.left.experiment).factors
    for factor in factors:
        levels = test.left.where.get(factor.id, [])
        if len(levels) != 1:
            continue
        for level in factor.levels:
            if level.key in levels:
                continue
            both = {side: _at(getattr(test, side), factor, level.key) for side in ("left", "right")}
            moved = test.model_copy(update=both)
            if _variants(coverage, moved) not in (set(), _variants(coverage, test)):
                yield _Substitute(moved, f"the flows of {level.label}")


def _other_levels(coverage: Coverage, test: PairedTest) -> Iterator[_Substitute]:
    """Put each further level of the compared factor on one side, and exchange the sides."""
    if test.left.experiment != test.right.experiment:
        return
    factors = coverage.study.experiment(test.left.experiment).factors
    compared = [f for f in factors if _levels(test.left, f) != _levels(test.right, f)]
    if len(compared) != 1:
        return
    (factor,) = compared
    used = _levels(test.left, factor) | _levels(test.right, factor)
    for level in factor.levels:
        if level.key in used:
            continue
        for side in ("left", "right"):
            put = {side: _at(getattr(test, side), factor, level.key)}
            yield _Substitute(test.model_copy(update=put), f"{level.label} on the {side}")
    if not isinstance(test, EquivalenceTest):
        exchanged = {"left": test.right, "right": test.left}
        yield _Substitute(test.model_copy(update=exchanged), "the sides exchanged")


def _levels(wanted: Quantity, factor: Factor) -> set[str]:
    return set(wanted.where.get(factor.id, [level.key for level in factor.levels]))


def _at(wanted: Quantity, factor: Factor, key: str) -> Quantity:
    where: Where = {**wanted.where, factor.id: [key]}
    return wanted.model_copy(update={"where": where})


def _variants(coverage: Coverage, test: PairedTest) -> set[tuple[Any, ...]]:
    """Return the algorithms of the compared flows, in the runs of both sides."""
    variants: set[tuple[Any, ...]] = set()
    for wanted in (test.left, test.right):
        for scenario in coverage.ran(wanted).drop_duplicates("point")["scenario"]:
            flows = coverage.run_point(scenario).flows(wanted.flows)
            variants |= {_algorithm(flow.model_dump()) for flow in flows}
    return variants


def _algorithm(flow: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(flow.get(name) for name in sorted(ALGORITHM_FIELDS))
