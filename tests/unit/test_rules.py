"""The rules of verdicts, a line a condition: what is given, and the verdict.

They are the rules for claims, for printed numbers, for numbers of one published run, for the runs
behind a verdict, and for congestion.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from replication.base.errors import InputError
from replication.design.config import load_study
from replication.metrics.cell_map import MappedCell
from replication.metrics.statistic import Estimate, estimate, two_outcomes
from replication.study.claim_model import (
    Condition,
    Quantity,
    RatioTest,
    ShareTest,
)
from replication.study.published import Cell
from replication.study.study import Study
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.bound import shortest_duration_s
from replication.verdicts.cell import evaluate_cells, judge_cell, replicate_means
from replication.verdicts.claim import Judgement, evaluate_claim, judge_parts, judge_statistic
from replication.verdicts.comparison import Comparison
from replication.verdicts.congestion import alternatives_cannot_differ, runs_without_congestion
from replication.verdicts.published_run import Published, judge_published
from replication.verdicts.sample import Coverage, starved
from replication.verdicts.wording import Wording

from tests.unit.conftest import (
    CLAIM,
    RENO,
    ROOT,
    SEGMENT_BYTES,
    VEGAS,
    at_least,
    missing_from,
    quantity,
    ratio,
    sampled,
    sides,
    study_document,
    throughputs,
    tolerance,
    value_of,
)

REPRODUCED, DIRECTION = Verdict.REPRODUCED, Verdict.DIRECTION_ONLY
NOT_REPRODUCED, NOT_TESTABLE = Verdict.NOT_REPRODUCED, Verdict.NOT_TESTABLE
TOO_LITTLE, LACKS = ReasonCode.PAPER_GIVES_TOO_LITTLE, ReasonCode.ENGINE_LACKS_IT
TOO_FEW, NO_CONGESTION = ReasonCode.TOO_FEW_RUNS, ReasonCode.ALTERNATIVES_CANNOT_DIFFER
NAN = math.nan


# -- the rule for claims --------------------------------------------------------------------------

AT_LEAST_1, AT_LEAST_HALF = Condition(at_least=1.0), Condition(at_least=0.5)
AT_MOST_0, AT_MOST_HALF = Condition(at_most=0.0), Condition(at_most=0.5)
WORDS, OF_POINTS = Wording("Statistic"), Wording("Statistic", is_share=True)


def verdict_on(values, expect=AT_LEAST_1, direction=AT_LEAST_HALF, kind=RatioTest, words=WORDS):
    test = kind.model_construct(expect=expect, direction=direction)
    comparison = Comparison(pd.Series(values, dtype=float), 1)
    return judge_statistic(test, comparison, words).verdict


CLAIMS = {
    "all of three runs pass": ([1.20, 1.21, 1.19], REPRODUCED),
    "a single run passes": ([1.20], REPRODUCED),
    "one of four fails": ([1.20, 1.21, 1.19, 0.95], DIRECTION),
    "the interval of three is too wide": ([3.00, 1.01, 1.01], DIRECTION),
    "four of five pass": ([1.20, 1.21, 1.19, 1.20, 0.99], REPRODUCED),
    "seven of ten pass": ([1.10] * 7 + [0.99] * 3, DIRECTION),
    "the interval of five is too wide": ([3.00, 1.01, 1.01, 1.01, 1.01], DIRECTION),
    "the mean fails": ([1.20, 1.20, 1.20, 1.20, 0.10], NOT_REPRODUCED),
    "the direction in five of five": ([0.80] * 5, DIRECTION),
    "the direction in four of five": ([0.80] * 4 + [0.40], NOT_REPRODUCED),
    "the direction in seven of eight": ([0.80] * 7 + [0.40], DIRECTION),
    "the direction in six of eight": ([0.80] * 6 + [0.40] * 2, NOT_REPRODUCED),
    "the direction in three of three": ([0.80, 0.81, 0.79], DIRECTION),
    "the direction in two of three": ([0.80, 0.81, 0.40], NOT_REPRODUCED),
    "one of four is undefined": ([1.20, NAN, 1.21, 1.22], NOT_REPRODUCED),
    "one of five is undefined": ([1.20, NAN, 1.21, 1.22, 1.20], REPRODUCED),
    "the only run is undefined": ([NAN], NOT_REPRODUCED),
}


@pytest.mark.parametrize(("values", "verdict"), CLAIMS.values(), ids=CLAIMS)
def test_the_runs_decide_a_claim(values, verdict):
    assert verdict_on(values) == verdict


def test_the_confidence_interval_of_a_share_does_not_decide():
    assert verdict_on([3.00, 1.01, 1.01, 1.01, 1.01], kind=ShareTest) == REPRODUCED


@pytest.mark.parametrize(
    ("share", "expect", "direction", "verdict"),
    [
        (0.6, AT_LEAST_1, AT_LEAST_HALF, DIRECTION),
        (0.5, AT_LEAST_1, AT_LEAST_HALF, NOT_REPRODUCED),
        (0.4, AT_MOST_0, AT_MOST_HALF, DIRECTION),
        (0.5, AT_MOST_0, AT_MOST_HALF, NOT_REPRODUCED),
    ],
)
def test_a_share_has_the_right_direction_only_beyond_one_half(share, expect, direction, verdict):
    assert verdict_on([share] * 5, expect, direction, words=OF_POINTS) == verdict


def test_the_condition_is_the_direction_if_none_is_given():
    assert verdict_on([1.2] * 4 + [0.0] + [1.0] * 3, direction=None) == DIRECTION
    assert verdict_on([0.9, 0.9, 0.9], direction=None) == NOT_REPRODUCED


#: Verdicts on the parts of a claim, the verdict on the claim, and the share that is reproduced.
PARTS = [
    ([REPRODUCED, REPRODUCED], REPRODUCED, 1.0),
    ([REPRODUCED, DIRECTION], DIRECTION, 0.5),
    ([REPRODUCED, NOT_REPRODUCED], NOT_REPRODUCED, 0.5),
    ([DIRECTION, NOT_REPRODUCED], NOT_REPRODUCED, 0.0),
    ([REPRODUCED, NOT_TESTABLE], NOT_TESTABLE, NAN),
    ([NOT_REPRODUCED, NOT_TESTABLE], NOT_REPRODUCED, 0.0),
]


@pytest.mark.parametrize(("parts", "verdict", "share"), PARTS)
def test_the_weakest_part_decides_a_claim(parts, verdict, share):
    judgement = judge_parts([Judgement(part, [f"It is {part}."], observed=1.0) for part in parts])
    assert judgement.verdict == verdict
    assert judgement.observed == pytest.approx(share, nan_ok=True)
    assert all(f"It is {part}." in judgement.reason for part in parts)


@pytest.mark.parametrize("verdict", [REPRODUCED, NOT_REPRODUCED, NOT_TESTABLE])
def test_a_part_that_cannot_fail_is_not_counted(verdict):
    forced = Judgement(NOT_TESTABLE, ["It cannot fail."], cannot_fail=True)
    judgement = judge_parts([forced, Judgement(verdict, ["It is so."], observed=1.0)])
    assert judgement.verdict == verdict


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-10, 10), st.floats(0, 10))
def test_a_stricter_condition_never_makes_a_better_verdict(middle, spread, bound, stricter):
    values = [middle - spread, middle, middle + spread]
    rank = [NOT_REPRODUCED, DIRECTION, REPRODUCED]
    lenient = verdict_on(values, Condition(at_least=bound), None)
    strict = verdict_on(values, Condition(at_least=bound + stricter), None)
    assert rank.index(strict) <= rank.index(lenient)


@given(st.floats(0.1, 5), st.floats(1.5, 10))
def test_more_spread_never_makes_a_claim_reproduced(spread, more):
    tight = verdict_on([2 - spread, 2.0, 2 + spread], direction=None)
    loose = verdict_on([2 - more * spread, 2.0, 2 + more * spread], direction=None)
    assert not (loose == REPRODUCED and tight != REPRODUCED)


# -- the rule for printed numbers -----------------------------------------------------------------


def judge_number(mean, value=800e3, half_ulp=50.0, **kind):
    """Judge a printed number, by default 800.0 kbit/s with a tolerance of a tenth."""
    limits = {"reason": "r", **(kind or {"relative": 0.1})}
    cell = Cell(metric="throughput_bps", tolerance=limits)
    wanted = Quantity(experiment="sweep", metric="throughput_bps")
    names = ("1", "slow", "throughput", "Slow", "Throughput", "bit/s")
    number = MappedCell(*names, value, half_ulp, "800.0", cell, wanted)
    measured = mean if isinstance(mean, Estimate) else estimate([mean])
    return judge_cell("synthetic", number, "ns3", measured)


#: Our mean, changes to the printed number or its tolerance, verdict.
TOLERANCES = {
    "a tenth and half a digit above": (880e3 + 49, {}, REPRODUCED),
    "more than that above": (880e3 + 51, {}, NOT_REPRODUCED),
    "a tenth and half a digit below": (720e3 - 49, {}, REPRODUCED),
    "more than that below": (720e3 - 51, {}, NOT_REPRODUCED),
    "5 % off with a tolerance of 6 %": (840e3, {"relative": 0.06}, REPRODUCED),
    "5 % off with a tolerance of 4 %": (840e3, {"relative": 0.04}, NOT_REPRODUCED),
    "40 kbit/s off with a tolerance of 41": (840e3, {"absolute": 41e3}, REPRODUCED),
    "40 kbit/s off with a tolerance of 39": (840e3, {"absolute": 39e3}, NOT_REPRODUCED),
    "printed coarsely": (880e3 + 400, {"half_ulp": 500}, REPRODUCED),
    "printed finely": (880e3 + 400, {"half_ulp": 5}, NOT_REPRODUCED),
    "a tenth below a negative number": (-880e3 - 49, {"value": -800e3}, REPRODUCED),
    "a tenth above a negative number": (-720e3 + 51, {"value": -800e3}, NOT_REPRODUCED),
    "a published zero": (1.0, {"value": 0.0, "half_ulp": 0.5, "absolute": 2.0}, REPRODUCED),
}


@pytest.mark.parametrize(("mean", "changes", "verdict"), TOLERANCES.values(), ids=TOLERANCES)
def test_the_tolerance_decides_a_printed_number(mean, changes, verdict):
    row = judge_number(mean, **changes)
    assert row.verdict == verdict
    assert math.isnan(row.relative_deviation) == (row.published == 0)


def test_the_confidence_interval_of_a_printed_number_does_not_decide():
    row = judge_number(Estimate(800e3, 100e3, 1500e3, 3))
    assert row.verdict == REPRODUCED
    assert (row.reproduced_low, row.reproduced_high, row.n) == (100e3, 1500e3, 3)


# -- the rule for numbers of one published run ----------------------------------------------------

#: 99 runs from 51 to 149: a further one lies between 52.5 and 147.5 with 95 %.
RUNS = np.arange(51.0, 150.0)


def judge_run(value, values=RUNS, factor=1.5, counts=False, half_ulp=0.0, runs=None):
    published = Published(value, half_ulp, factor, counts)
    return judge_published(published, values, runs or list(values), "{:g}".format)


#: Verdict, reason code, and whether the number lies among our runs.
INSIDE, OUTSIDE = (REPRODUCED, "", True), (NOT_REPRODUCED, "", False)
WIDE_SPREAD = (NOT_TESTABLE, ReasonCode.RUNS_SPREAD_TOO_WIDELY, True)
SAME_RUNS = (NOT_TESTABLE, ReasonCode.RUNS_DO_NOT_VARY, None)
FEW_RUNS = (NOT_TESTABLE, TOO_FEW, None)
CLOSE = {"value": 101.0, "factor": 1.001}
EQUAL = {"values": [53.0] * 99, "runs": [*RUNS]}
SOME_EQUAL = {"values": [50.0] * 3 + [53.0] * 96, "runs": [*RUNS]}
MOST_EQUAL = {"values": [50.0, *[53.0] * 97, 60.0], "runs": [*RUNS]}
PUBLISHED_RUNS = {
    "among the runs and near their mean": ({"value": 100.0}, INSIDE),
    "among the runs and far from their mean": ({"value": 60.0}, WIDE_SPREAD),
    "far from it, with a larger factor": ({"value": 60.0, "factor": 1.7}, INSIDE),
    "within the upper end": ({"value": 147.0}, INSIDE),
    "beyond the upper end": ({"value": 148.0}, OUTSIDE),
    "beyond it by half a digit": ({"value": 148.0, "half_ulp": 1.0}, INSIDE),
    "beyond the lower end": ({"value": 52.0, "factor": 3.0}, OUTSIDE),
    "off by one, and no count": (CLOSE, WIDE_SPREAD),
    "a count off by one": (CLOSE | {"counts": True}, INSIDE),
    "a count off by three": (CLOSE | {"value": 103.0, "counts": True}, WIDE_SPREAD),
    "98 runs": ({"value": 100.0, "values": RUNS[1:]}, FEW_RUNS),
    "89 distinct runs of 99": ({"value": 100.0, "runs": [*range(89), *range(10)]}, SAME_RUNS),
    "90 distinct runs of 99": ({"value": 100.0, "runs": [*range(90), *range(9)]}, INSIDE),
    "one run 99 times": ({"value": 160.0, "runs": [1] * 99}, SAME_RUNS),
    "equal to 99 equal values": ({"value": 53.0, **EQUAL}, SAME_RUNS),
    "near 99 equal counts": ({"value": 52.0, "counts": True, **EQUAL}, SAME_RUNS),
    "far from 99 equal counts": ({"value": 530.0, "counts": True, **EQUAL}, SAME_RUNS),
    "near 97 equal values of 99": ({"value": 52.0, **MOST_EQUAL}, SAME_RUNS),
    "equal to 96 equal values of 99": ({"value": 53.0, **SOME_EQUAL}, INSIDE),
    "far from 96 equal values of 99": ({"value": 60.0, **SOME_EQUAL}, OUTSIDE),
}


@pytest.mark.parametrize(("inputs", "expected"), PUBLISHED_RUNS.values(), ids=PUBLISHED_RUNS)
def test_our_runs_decide_a_number_of_one_run(inputs, expected):
    ruling = judge_run(**inputs)
    assert (ruling.verdict, ruling.reason_code, ruling.compatible) == expected


@given(st.lists(st.floats(0.1, 1e3), min_size=99, max_size=120), st.floats(-1e3, 2e3))
def test_a_number_outside_of_all_runs_is_never_reproduced(values, value):
    verdict = judge_run(value, values, runs=list(range(len(values)))).verdict
    if not min(values) <= value <= max(values):
        assert verdict in (NOT_REPRODUCED, NOT_TESTABLE)


@pytest.mark.parametrize("count", [99, 150, 208])
def test_one_in_twenty_identically_distributed_runs_lies_outside(count):
    """Whichever run is the published one, 5 % fail, give or take one at either end."""
    values = np.random.default_rng(count).normal(100, 1, count + 1)
    outside = 0
    for place, value in enumerate(values):
        ruling = judge_run(value, np.delete(values, place), runs=list(range(count)))
        outside += ruling.verdict != REPRODUCED
    assert outside / len(values) == pytest.approx(0.05, abs=2 / count)


def test_a_value_between_two_groups_of_runs_is_pointed_out():
    groups = [*np.linspace(80, 81, 60), *np.linspace(120, 121, 60)]
    ruling = judge_run(100.0, groups)
    assert ruling.verdict == REPRODUCED
    assert any("between 81 and 120" in reason for reason in ruling.reasons)


# -- the runs behind a claim ----------------------------------------------------------------------


class Expected(NamedTuple):
    """A verdict with its code, the facts in its reason, and a word that must not be there."""

    verdict: Verdict
    code: str = ""
    facts: tuple[str, ...] = ()
    absent: str = "not in any reason"


def check(row, expected):
    assert (row.verdict, row.reason_code) == (expected.verdict, expected.code), row.reason
    assert not missing_from(row.reason, *expected.facts), row.reason
    assert expected.absent not in row.reason


def silent(*replicates):
    """Flows of 120 bit/s, except in these replicates, which send nothing at one point."""

    def row(access, replicate, **_):
        if replicate in replicates and access == "fast":
            return {"throughput_bps": NAN, "packets_sent": 0}
        return {"throughput_bps": 120.0}

    return row


def lost(access, replicate, **_):
    return None if replicate == 2 and access == "fast" else {"throughput_bps": 120.0}


def undefined(replicate, **_):
    return {"throughput_bps": NAN if replicate == 2 else 120.0}


def undefined_point(variant, access, **_):
    if (variant, access) == ("vegas", "slow"):
        return {"throughput_bps": NAN}
    return {"throughput_bps": 120.0 if variant == "vegas" else 100.0}


def jumping(high, low, every):
    def row(replicate, flow, **_):
        rate = low if replicate % every == 0 else high
        return {"throughput_bps": rate + 0.01 * replicate}

    return row


def only(factor, *keys):
    return lambda levels: levels[factor] in keys


AT_LEAST_100 = value_of(VEGAS, {"at_least": 100.0})
MORE = sides("ratio", **at_least(1.1, 1.0))
RISES = {"kind": "trend", "of": quantity(), "over": "access", "expect": {"at_least": 0.9}}
LATE = value_of({**quantity(), "window_s": (5, 10)}, {"at_least": 1})
#: Runs behind a claim: test, results, verdict.
SITUATIONS = {
    "the paper gives no size": (
        {"kind": "not_testable", "reason": "No size is given."},
        {},
        Expected(NOT_TESTABLE, TOO_LITTLE),
    ),
    "the tier leaves out a side": (
        MORE,
        {"flows": throughputs(vegas=120.0), "runs": only("variant", "reno")},
        Expected(NOT_TESTABLE, TOO_FEW, ("leaves out 3",)),
    ),
    "the tier leaves out two points": (
        MORE,
        {"flows": throughputs(vegas=120.0), "runs": only("access", "mid")},
        Expected(REPRODUCED, facts=("1 of 3 points",)),
    ),
    "the tier leaves out none": (
        MORE,
        {"flows": throughputs(vegas=120.0)},
        Expected(REPRODUCED, absent=" of 3 points"),
    ),
    "one point is no trend": (
        RISES,
        {"runs": only("access", "mid")},
        Expected(NOT_TESTABLE, TOO_FEW, ("no trend",)),
    ),
    "the window lies past the end": (
        LATE,
        {"flows": throughputs(), "series": lambda **_: sampled([5.0] * 4), "duration_s": 4.0},
        Expected(NOT_TESTABLE, TOO_FEW, ("throughput", "5 to 10 s")),
    ),
    "a point is undefined in every run": (
        ratio({"at_least": 1.1}),
        {"flows": undefined_point},
        Expected(REPRODUCED, facts=("over 2 points",)),
    ),
    "undefined values are counted": (
        ratio({"at_least": 1.1}),
        {"flows": undefined_point},
        Expected(REPRODUCED, facts=("3 undefined values",)),
    ),
    "no replicate is left out": (
        AT_LEAST_100,
        {"flows": silent(), "replicates": 5},
        Expected(REPRODUCED, absent="left out"),
    ),
    "one of five replicates is left out": (
        AT_LEAST_100,
        {"flows": silent(2), "replicates": 5},
        Expected(REPRODUCED, facts=("1 of 5 replicates", "vegas, fast")),
    ),
    # With more than a fifth gone nothing is reproduced.
    "two of five replicates are left out": (
        AT_LEAST_100,
        {"flows": silent(1, 2), "replicates": 5},
        Expected(DIRECTION, facts=("2 of 5 replicates",)),
    ),
    "a run has no result": (
        AT_LEAST_100,
        {"flows": lost, "replicates": 5},
        Expected(REPRODUCED, facts=("1 of 5 replicates", "without a result")),
    ),
    "many undefined points are counted and not listed": (
        AT_LEAST_100,
        {"flows": undefined, "replicates": 5},
        Expected(REPRODUCED, facts=("; 1 more",)),
    ),
    "two outcomes have their shares": (
        AT_LEAST_100,
        {"flows": jumping(1050.0, 270.0, 5), "replicates": 30, "runs": only("access", "slow")},
        Expected(REPRODUCED, facts=("two outcomes", "24 of 30", "63 to 90 %")),
    ),
    "a gap of a thousandth is no second outcome": (
        AT_LEAST_100,
        {"flows": jumping(1050.0, 1049.0, 5), "replicates": 30},
        Expected(REPRODUCED, absent="two outcomes"),
    ),
    "two of thirty runs are no second outcome": (
        AT_LEAST_100,
        {"flows": jumping(1050.0, 270.0, 29), "replicates": 30},
        Expected(REPRODUCED, absent="two outcomes"),
    ),
    "fifteen runs are too few for two outcomes": (
        AT_LEAST_100,
        {"flows": jumping(1050.0, 270.0, 5), "replicates": 15},
        Expected(REPRODUCED, absent="two outcomes"),
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_runs_behind_a_claim_decide_its_verdict(world, situation):
    test, run, expected = SITUATIONS[situation]
    check(world.judge(test, **run), expected)


def test_an_engine_that_refuses_one_side_cannot_test_a_claim(world):
    study = world.claim(ratio({"at_least": 1.1}))

    def refusal(engine, levels):
        return "no vegas here" if (engine, levels["variant"]) == ("linux", "vegas") else ""

    run = {"flows": throughputs(vegas=120.0), "engines": ("linux", "ns3"), "refusal": refusal}
    linux, ns3 = evaluate_claim(
        study.claims[0], Coverage.of_all(study, world.results(study, **run))
    )
    check(linux, Expected(NOT_TESTABLE, LACKS, ("no vegas here",)))
    check(ns3, Expected(REPRODUCED))
    assert linux.engine == "linux" and math.isnan(linux.observed)


@given(st.lists(st.floats(0.9, 1.1), min_size=10, max_size=40), st.integers(10, 40))
def test_two_distant_groups_of_runs_are_separated_in_any_order(values, count):
    sample = [*values, *np.linspace(9.9, 10.1, count)]
    groups = two_outcomes(np.random.default_rng(1).permutation(sample))
    assert groups is not None
    assert [group.size for group in groups] == [len(values), count]
    assert groups[1].mean() == pytest.approx(10)
    assert two_outcomes(values) is None or max(values) - min(values) > 0


def test_counts_a_packet_apart_are_one_outcome():
    assert two_outcomes([0.0] * 15 + [1.0] * 15, least_width=1.0) is None
    groups = two_outcomes([0.0] * 15 + [9.0, NAN] * 15, least_width=1.0)
    assert groups is not None and [group.size for group in groups] == [15, 15]


# -- printed numbers ------------------------------------------------------------------------------

#: Printed in kbit/s: half a digit is 50.
SLOW = ("slow", "throughput", "bit/s", 800e3, "800.0")
RATE = {"metric": "throughput_bps", "aggregate": "sum"}
OF_ONE_RUN = {"metric": "throughput_bps", "tolerance": {"factor": 1.5, "reason": "r"}}
FAST = ("fast", "throughput", "bit/s", 240.0, "240")
EIGHT = ("slow", "count", "packets", 8, "8")
ABSOLUTE = {"absolute": 100, "reason": "r"}
COUNT = {"cells": {"count": {"metric": "retransmissions", "tolerance": ABSOLUTE}}}
LOSS = {"cells": {"count": {"metric": "loss_rate", "tolerance": ABSOLUTE}}}


def no_slow_flows(access, **_):
    return None if access == "slow" else {}


#: Runs behind a printed number: table, number, results, verdict.
NUMBERS = {
    "it measures something else": (
        {"not_comparable": {"slow": {"throughput": "The sender's count."}}},
        SLOW,
        {},
        Expected(NOT_TESTABLE, TOO_LITTLE, ("The sender's count.",)),
    ),
    "a number of one run is not judged by a mean": (
        {"cells": {"throughput": OF_ONE_RUN}},
        SLOW,
        {},
        Expected(NOT_TESTABLE, TOO_FEW),
    ),
    "the tier leaves out its point": (
        {},
        SLOW,
        {"runs": only("access", "mid")},
        Expected(NOT_TESTABLE, TOO_FEW, ("leaves out 1",)),
    ),
    "the engine refuses its point": (
        {},
        SLOW,
        {"refusal": lambda engine, levels: "no such queue"},
        Expected(NOT_TESTABLE, LACKS, ("no such queue",)),
    ),
    "its runs have no result": (
        {},
        SLOW,
        {"flows": no_slow_flows},
        Expected(NOT_TESTABLE, LACKS, ("3 of 3 runs",)),
    ),
    "no replicate is left out": (
        {},
        FAST,
        {"flows": silent(), "replicates": 5},
        Expected(REPRODUCED, absent="left out"),
    ),
    "one of five replicates is left out": (
        {},
        FAST,
        {"flows": silent(4), "replicates": 5},
        Expected(REPRODUCED, facts=("1 of 5 replicates",)),
    ),
    "two of five replicates are left out": (
        {},
        FAST,
        {"flows": silent(3, 4), "replicates": 5},
        Expected(NOT_TESTABLE, TOO_FEW, ("2 of 5 replicates",)),
    ),
    "a count of whole runs": (COUNT, EIGHT, {}, Expected(REPRODUCED)),
    "a count of shorter runs": (
        COUNT,
        EIGHT,
        {"duration_s": 4.0},
        Expected(NOT_TESTABLE, TOO_FEW, ("4 s", "10 s")),
    ),
    "a share of shorter runs": (
        LOSS,
        ("slow", "count", "1", 8, "8"),
        {"duration_s": 4.0},
        Expected(REPRODUCED),
    ),
}


@pytest.mark.parametrize("situation", NUMBERS)
def test_the_runs_behind_a_number_decide_its_verdict(world, situation):
    table, number, run, expected = NUMBERS[situation]
    (row,) = world.judge_cells(world.table(**table), number, **run)
    check(row, expected)


def test_the_confidence_interval_of_a_fairness_index_ends_at_one(world):
    def uneven(replicate, flow, **_):
        return {"throughput_bps": 4e5 if replicate and flow == "tcp2" else 1e5}

    cell = {"metric": "throughput_bps", "aggregate": "jain", "tolerance": tolerance(0.1)}
    study, printed = world.table({"jain": cell}), ("slow", "jain", "1", 0.9, "0.9")
    (row,) = world.judge_cells(study, printed, flows=uneven)
    assert (row.n, row.reproduced_high) == (3, 1.0) and row.reproduced_mean < 1
    test = value_of(RENO | {"aggregate": "jain"}, {"at_least": 0.5})
    assert world.judge(test, flows=uneven).high == 1.0


def test_an_impossible_number_is_impossible_however_close(world):
    study = world.table()
    cells = world.mapped(study, SLOW)
    results = world.results(study, flows=lambda **_: {"throughput_bps": 400e3})
    reasons = {cells[0].key: "Beyond the link."}
    (row,) = evaluate_cells(cells, Coverage.of_all(study, results), reasons)
    assert row.reproduced_mean == 800e3
    check(row, Expected(Verdict.IMPOSSIBLE))


@pytest.mark.parametrize(
    ("replicates", "expected"),
    [
        (3, Expected(REPRODUCED)),
        (2, Expected(NOT_TESTABLE, TOO_FEW, ("3 replicates",))),
        (4, Expected(NOT_REPRODUCED)),
    ],
)
def test_a_printed_standard_deviation_is_compared_with_that_of_the_runs(
    world, replicates, expected
):
    deviation = {**RATE, "over_runs": "standard_deviation", "tolerance": tolerance(0.1)}
    rates = [1e5, 3e5, 5e5, 90e5]
    published = ("slow", "throughput", "bit/s", 4e5, "0.40")  # two flows: 2e5, 6e5 and 10e5
    run = {"flows": lambda replicate, **_: {"throughput_bps": rates[replicate]}}
    study = world.table({"throughput": deviation})
    (row,) = world.judge_cells(study, published, **run, replicates=replicates)
    check(row, expected)
    assert row.quantities == []
    if replicates == 3:
        assert row.reproduced_mean == pytest.approx(4e5)
        # sqrt(2 / 7.378) and sqrt(2 / 0.05064), chi-square with two degrees of freedom
        assert row.reproduced_low == pytest.approx(0.5207 * 4e5, rel=1e-3)
        assert row.reproduced_high == pytest.approx(6.2847 * 4e5, rel=1e-3)


@pytest.mark.parametrize(
    ("published", "printed", "verdict"),
    # Five published runs with a deviation of 1e5, and three of ours with a mean of 8e5: the band is
    # 2.7764 (Student's t, four degrees of freedom) * 1e5 * sqrt(1/5 + 1/3) = 202.76e3, and 50.
    [
        (8e5 + 202.7e3, True, REPRODUCED),
        (8e5 + 202.9e3, True, NOT_REPRODUCED),
        (8e5, False, NOT_TESTABLE),
    ],
)
def test_a_printed_standard_deviation_gives_the_tolerance_of_its_mean(
    world, published, printed, verdict
):
    spread = {"spread": {"column": "deviation", "runs": 5}, "reason": "printed"}
    columns = {
        "throughput": {**RATE, "tolerance": spread},
        "deviation": {**RATE, "over_runs": "standard_deviation", "tolerance": tolerance(0.1)},
    }
    numbers = [("slow", "throughput", "bit/s", published, f"{published / 1e6:.4f}")]
    if printed:
        numbers.append(("slow", "deviation", "bit/s", 1e5, "0.10"))
    rates = [3e5, 4e5, 5e5]
    run = {"flows": lambda replicate, **_: {"throughput_bps": rates[replicate]}}
    mean, *_ = world.judge_cells(world.table(columns), *numbers, **run, replicates=3)
    assert mean.verdict == verdict
    assert bool(missing_from(mean.reason, "5 published runs", "our 3")) != printed
    columns["throughput"]["tolerance"]["spread"]["column"] = "throughput"
    with pytest.raises(ValueError, match=r"spread\.column: 'throughput'"):
        world.table(columns)


@pytest.mark.parametrize(("factor", "verdict"), [(8, REPRODUCED), (1, NOT_REPRODUCED)])
def test_a_column_with_a_factor_is_judged_in_the_unit_of_its_metric(world, factor, verdict):
    exact = {"relative": 0.001, "reason": "r"}
    study = world.table({"throughput": {**RATE, "factor": factor, "tolerance": exact}})
    published = ("slow", "throughput", "bit/s", 1e5, "100.0")  # bytes: 800000 bit/s +- 400
    (row,) = world.judge_cells(study, published, flows=lambda **_: {"throughput_bps": 400.5e3})
    assert row.verdict == verdict
    assert row.published == factor * 1e5
    assert row.published_half_ulp == pytest.approx(factor * 50)


def test_a_replicate_without_all_points_of_a_number_does_not_count():
    def means(*rows):
        values = pd.DataFrame(rows, columns=["replicate", "access", "value"])
        return replicate_means(values).to_dict()

    whole = [(0, "slow", 1.0), (0, "fast", 3.0), (1, "slow", 5.0), (1, "fast", 7.0)]
    assert means(*whole) == {0: 2.0, 1: 6.0}
    assert means(*whole[:3]) == {0: 2.0}
    assert means(*whole[:3], (1, "fast", NAN)) == {0: 2.0}
    assert means((0, "slow", 1.0), (1, "fast", 3.0)) == {}


def test_rows_can_be_flows_and_columns_levels(world):
    def rates(flow, variant, **_):
        return {"throughput_bps": (1e5 if flow == "tcp1" else 2e5) * (variant == "vegas")}

    cell = {"metric": "throughput_bps", "tolerance": tolerance(0.1)}
    rows = {"first": {"where": {}, "flows": ["tcp1"]}, "second": {"where": {}, "flows": ["tcp2"]}}
    shape = {"row_factor": None, "rows": rows, "columns": None, "column_factor": "variant"}
    study = world.table(where={"access": "slow"}, cell=cell, **shape)
    numbers = [(row, "vegas", "bit/s", 1e5, "100") for row in rows]
    first, second = world.judge_cells(study, *numbers, flows=rates)
    assert (first.reproduced_mean, first.verdict) == (1e5, REPRODUCED)
    assert (second.reproduced_mean, second.verdict) == (2e5, NOT_REPRODUCED)


def test_a_column_can_have_a_tolerance_of_its_own(world):
    cell = {"metric": "throughput_bps", "tolerance": tolerance(0.1)}
    shape = {"columns": None, "column_factor": "variant", "cell": cell}
    study = world.table(where={}, **shape, tolerances={"vegas": tolerance(0.5)})
    numbers = [("slow", name, "bit/s", 1e5, "100") for name in ("reno", "vegas")]
    rows = world.judge_cells(study, *numbers, flows=lambda **_: {"throughput_bps": 1.4e5})
    assert [row.verdict for row in rows] == [NOT_REPRODUCED, REPRODUCED]
    with pytest.raises(ValueError, match="tolerances: column: 'vega'"):
        world.table(where={}, **shape, tolerances={"vega": tolerance(0.5)})


def test_the_shortest_drawn_duration_counts_as_a_whole_run():
    # kapadia's flows last 0.14 to 0.83 s longer than 60 s, as the raw samples show, from 0.01 s on.
    trios = Quantity(experiment="trios", metric="throughput_bps")
    assert shortest_duration_s(load_study(ROOT, "kapadia"), trios) == pytest.approx(60.15)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            ("slower", *SLOW[1:]),
            "row slower, column throughput: .*mid, slow",
        ),
        (("slow", "throughput", "s", 1, "1"), "'s', metric throughput_bps in"),
    ],
)
def test_a_number_of_an_unknown_row_or_unit_is_refused(world, row, message):
    with pytest.raises(InputError, match=message):
        world.mapped(world.table(), row)


# -- numbers of one published run -----------------------------------------------------------------


def drawn(replicate):
    """Samples of a window that differs by replicate in the last of them."""
    return sampled([10.0] * 7 + [20.0 + replicate])


def two_flows(world, places=(1, 2), replicates=99, draw=drawn):
    """Judge printed rates of 300 and 100 bit/s; flows are numbered by their starts.

    Our rates are around 300 and 100 bit/s, and the flows' samples are `draw(replicate)`.
    """
    printed = {"first": "300.0", "second": "100.0"}
    rows, numbers = {}, []
    for (name, text), place in zip(printed.items(), places, strict=False):
        rows[name] = {"where": {}, "flows": {"start_order": place}}
        numbers.append((name, "throughput", "bit/s", float(text), text))
    shape = {"row_factor": None, "where": {"variant": "reno", "access": "slow"}}
    study = world.table({"throughput": OF_ONE_RUN}, rows=rows, **shape)

    def row(flow, replicate, **_):
        rate = (290.0 if flow == "tcp1" else 90.0) + 0.2 * replicate
        return {"throughput_bps": rate, "packets_sent": 500 + replicate}

    run = {"flows": row, "series": lambda replicate, **_: draw(replicate)}
    run["runs"] = lambda levels: levels == shape["where"]
    return world.judge_cells(study, *numbers, **run, replicates=replicates)


def test_values_among_the_runs_are_reproduced(world):
    first, second = two_flows(world)
    assert first.verdict == second.verdict == REPRODUCED
    assert first.kind == "printed" and "99 runs" in first.reason


def test_swapping_two_flows_fails_both_of_their_numbers(world):
    first, second = two_flows(world, (2, 1))
    assert first.verdict == second.verdict == NOT_REPRODUCED


def test_runs_with_equal_windows_are_not_replicates(world):
    """They send packets and get rates that differ, but their windows do not."""

    def same(replicate):
        return sampled([10.0] * 8)

    rows = [*two_flows(world, draw=same), *two_flows(world, (1,), draw=same)]
    assert {row.reason_code for row in rows} == {ReasonCode.RUNS_DO_NOT_VARY}


def test_too_few_runs_decide_nothing(world):
    first, _ = two_flows(world, replicates=98)
    assert first.reason_code == TOO_FEW


@pytest.mark.parametrize(
    ("published", "direction", "verdict"),
    [
        (1.5, None, REPRODUCED),
        (2.5, None, NOT_REPRODUCED),
        (2.5, {"at_least": 1.01}, DIRECTION),
        (2.5, {"at_least": 1.9}, NOT_REPRODUCED),
    ],
)
def test_a_claimed_number_of_one_run_is_judged_like_a_printed_one(
    world, published, direction, verdict
):
    test = ratio({"published": published, "factor": 1.2}, direction=direction)

    def row(variant, replicate, **_):
        return {"throughput_bps": 100.0 + replicate if variant == "vegas" else 100.0}

    run = {"flows": row, "replicates": 99, "runs": only("access", "slow")}
    run |= {"series": lambda replicate, **_: drawn(replicate)}
    for side in ("left", "right"):
        test[side] = {**test[side], "where": {**test[side]["where"], "access": "slow"}}
    assert world.judge(test, **run).verdict == verdict


def test_a_tolerance_of_two_kinds_is_refused(world):
    both = {**OF_ONE_RUN, "tolerance": {**OF_ONE_RUN["tolerance"], "relative": 0.1}}
    with pytest.raises(ValidationError, match="relative, absolute, factor"):
        world.table({"throughput": both})


# -- congestion -----------------------------------------------------------------------------------

#: A window in segments that nothing reaches, and one in which every flow spends all its time.
WIDE, TINY = 1000, 2
EVERYWHERE = {"slow", "mid", "fast"}
ACCESS_BPS = {"slow": 1e5, "mid": 2e5, "fast": 3e5}


def compared(metric="throughput_bps"):
    return {
        "left": quantity(metric, variant="vegas"),
        "right": quantity(metric, variant="reno"),
    }


def alike(left, right, margin=0.2):
    return {"kind": "equivalence", "left": left, "right": right, "margin": margin}


TWICE = ratio({"at_least": 1.5})
TCP1, TCP2 = RENO | {"flows": ["tcp1"]}, RENO | {"flows": ["tcp2"]}
#: Comparisons of alternatives at one place, all met by `unequal`.
ALTERNATIVES = {
    "ratio": TWICE,
    "ratio of means": {**TWICE, "reduce": "ratio_of_means"},
    "equivalence": alike(VEGAS, quantity(variant="cubic")),
    "share": sides("share", relation="above", expect={"at_least": 1}),
    "crossover": {
        "kind": "crossover",
        **compared("goodput_bps"),
        "over": "access",
        "before": "left",
        "expect": {"at_least": 20, "at_most": 25},
    },
    "flows of a run": {"kind": "ratio", "left": TCP1, "right": TCP2, "expect": {"at_most": 1.1}},
}
#: Comparisons across the path, over time, single values, and losses or queues.
OTHERS = {
    "across rates": {
        "kind": "ratio",
        "left": quantity(access="fast", variant="reno"),
        "right": quantity(access="slow", variant="reno"),
        "expect": {"at_least": 2},
    },
    "equal across rates": alike(
        quantity("rtt_mean_s", access="fast"), quantity("rtt_mean_s", access="slow"), 0.1
    ),
    "trend": {**RISES, "of": RENO},
    "value": value_of(VEGAS, {"at_least": 1}),
    "losses": value_of(quantity("retransmissions"), {"at_most": 8}),
    "queues": alike(**compared("queue_mean_packets")),
}


def unequal(variant, access, drops=0, flow="tcp1", **_):
    """Throughputs that rise with the access rate and are higher for all but Reno.

    Two Vegas flows differ, and so does the round trip at one rate: equality says something.
    """
    rate = ACCESS_BPS[access] * {"reno": 1, "vegas": 2, "cubic": 2.2}[variant]
    if (variant, flow) == ("vegas", "tcp1"):
        rate *= 1.5
    return {
        "throughput_bps": rate,
        "goodput_bps": ACCESS_BPS[access] if variant == "reno" else 2.2e5,
        "packets_dropped": drops,
        "rtt_mean_s": 0.3 if access == "mid" else 0.2,
    }


def dropping(*variants):
    """The same, with a packet lost in each run of these variants."""
    return lambda variant, **run: unequal(variant, drops=int(variant in variants), **run)


def near_reno(variant, access, **_):
    """Vegas has less at the slowest rate, and elsewhere a tenth more; no packet is lost."""
    rate = 1e5
    if variant == "vegas":
        rate = 0.8e5 if access == "slow" else 1.1e5
    return {"throughput_bps": rate, "packets_dropped": 0}


def queue_of(packets):
    return [{"time_s": n + 1.0, "queue_packets": packets} for n in range(10)]


def windowed(world, test, segments):
    """Return a study of one claim whose flows have this maximum window in segments."""
    (experiment,) = study_document()["experiments"]
    for flow in experiment["flows"]:
        flow["maximum_window_bytes"] = segments * SEGMENT_BYTES
    return world.claim(test, experiments=[experiment])


def judge_windowed(world, test, segments=TINY, idle=EVERYWHERE, flows=unequal):
    """Judge a claim over runs, of which those at some access rates fill their window."""

    def series(flow, access, variant, **_):
        if flow == "bottleneck:ab":
            return queue_of(9.0 if variant == "cubic" else 5.0)
        return sampled([2.0 if access in idle else 0.5] * 10)

    return world.judge(windowed(world, test, segments), flows=flows, series=series)


@pytest.mark.parametrize("kind", ALTERNATIVES)
def test_alternatives_limited_by_their_windows_are_not_testable(world, kind):
    assert judge_windowed(world, ALTERNATIVES[kind], WIDE).verdict == REPRODUCED
    row = judge_windowed(world, ALTERNATIVES[kind], TINY)
    facts = ("no packet is lost", "windows of 2 packets", "queue holds 5", "200 to 300 ms")
    check(row, Expected(NOT_TESTABLE, NO_CONGESTION, facts))


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_comparison_is_testable_without_congestion(world, kind):
    assert judge_windowed(world, OTHERS[kind]).verdict == REPRODUCED


APART = {
    **TWICE,
    "left": quantity(variant="vegas", access="fast"),
    "right": quantity(variant="reno", access="slow"),
}
SLIGHTLY = {**TWICE, "expect": {"at_least": 1.05}}
FAILS = value_of(quantity(), {"at_least": 1e9})
#: Runs with and without congestion: test, changes to the runs, verdict.
CONGESTION = {
    "a packet is lost in each run of both": (
        TWICE,
        {"flows": dropping("reno", "vegas")},
        Expected(REPRODUCED),
    ),
    "a packet is lost in each run of one": (
        TWICE,
        {"flows": dropping("reno")},
        Expected(REPRODUCED),
    ),
    "alternatives at different points": (APART, {}, Expected(REPRODUCED)),
    "congestion everywhere": (
        SLIGHTLY,
        {"idle": set(), "flows": near_reno},
        Expected(NOT_REPRODUCED),
    ),
    "no congestion at one of three points": (
        SLIGHTLY,
        {"idle": {"slow"}, "flows": near_reno},
        Expected(REPRODUCED, facts=("1 of 3 points",)),
    ),
    "no congestion at two of three points": (
        SLIGHTLY,
        {"idle": {"slow", "mid"}, "flows": near_reno},
        Expected(NOT_TESTABLE, NO_CONGESTION, ("2 of 3 points",)),
    ),
    "one part has no congestion, the other holds": (
        {"kind": "all", "parts": [TWICE, OTHERS["value"]]},
        {},
        Expected(NOT_TESTABLE, NO_CONGESTION),
    ),
    "one part has no congestion, the other fails": (
        {"kind": "all", "parts": [TWICE, FAILS]},
        {},
        Expected(NOT_REPRODUCED),
    ),
    "windows a segment below the largest": (
        TWICE,
        {"segments": 2.9},
        Expected(NOT_TESTABLE, NO_CONGESTION),
    ),
}


@pytest.mark.parametrize("situation", CONGESTION)
def test_congestion_decides_whether_alternatives_can_differ(world, situation):
    test, run, expected = CONGESTION[situation]
    check(judge_windowed(world, test, **run), expected)


def test_a_point_without_congestion_does_not_count_in_the_statistic(world):
    everywhere = judge_windowed(world, SLIGHTLY, idle=set(), flows=near_reno)
    without = judge_windowed(world, SLIGHTLY, idle={"slow"}, flows=near_reno)
    assert everywhere.observed == pytest.approx(1.0)
    assert without.observed == pytest.approx(1.1)


@pytest.mark.parametrize("kind", ["ratio", "value"])
def test_alternatives_cannot_differ_in_single_replicates(world, kind):
    """In replicate 1 a packet is lost, and a single value compares no alternatives."""
    study = windowed(world, (ALTERNATIVES | OTHERS)[kind], TINY)

    def flows(replicate, **run):
        return unequal(drops=int(replicate == 1), **run)

    def series(flow, **_):
        return queue_of(5.0) if flow == "bottleneck:ab" else sampled([2.0] * 10)

    results = world.results(study, flows=flows, series=series)
    (test,) = study.claims[0].tests()
    reasons = alternatives_cannot_differ(Coverage(study, results, "ns3"), test)
    assert sorted(reasons) == ([] if kind == "value" else [0, 2])
    assert all("windows of 2 packets" in why for why in reasons.values())


@pytest.mark.parametrize(
    ("windows", "queue", "drops", "idle"),
    [
        ([2.0] * 10, 5.0, 0, True),
        ([2.0] * 6 + [0.5] * 4, 5.0, 0, True),  # at its window in more than half of the samples
        ([2.0] * 5 + [0.5] * 5, 5.0, 0, False),
        ([0.5] * 10, 0.9, 0, True),  # the queue is empty
        ([0.5] * 10, 1.0, 0, False),
        ([2.0] * 10, 0.0, 1, False),  # a packet was lost
    ],
)
def test_a_run_limited_by_its_window_or_with_an_empty_queue_has_no_congestion(
    world, windows, queue, drops, idle
):
    def series(flow, **_):
        if flow == "bottleneck:ab":
            return queue_of(queue)
        return sampled(windows if flow == "tcp1" else [2.0] * 10)

    run = {"flows": lambda **run: unequal(drops=drops, **run), "series": series}
    results = world.results(windowed(world, TWICE, TINY), **run, replicates=1)
    assert len(runs_without_congestion(results)) == (9 if idle else 0)


@pytest.mark.parametrize(
    ("test", "rate_bps", "expected"),
    [
        (
            ratio({"at_most": 1}),
            0.04e6,
            Expected(REPRODUCED, facts=("Starved", "tcp1", "0.04 of 0.5 Mbit/s")),
        ),
        (ratio({"at_most": 1}), 0.06e6, Expected(REPRODUCED, absent="Starved")),
        # A single quantity compares no flows.
        (OTHERS["value"], 0.04e6, Expected(REPRODUCED, absent="Starved")),
    ],
)
def test_a_flow_below_a_tenth_of_its_fair_share_is_called_starved(world, test, rate_bps, expected):
    def flows(variant, **_):
        return {"throughput_bps": rate_bps if variant == "vegas" else 1e6, "packets_dropped": 1}

    check(judge_windowed(world, test, WIDE, flows=flows), expected)


def test_a_flow_that_shares_no_link_is_not_starved(world):
    document = study_document(claims=[CLAIM])
    pair = [Quantity(**VEGAS), Quantity(**RENO)]

    def starved_flows():
        study = Study.model_validate(document)
        results = world.results(study, flows=lambda **_: {"throughput_bps": 1e3})
        return set(starved(results, "ns3", pair)["flow"])

    assert starved_flows() == {"tcp1", "tcp2"}
    document["experiments"][0]["flows"].pop()
    assert starved_flows() == set()
