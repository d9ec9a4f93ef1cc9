"""Kinds of test: a changed result or threshold flips a verdict; matched points."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.base.errors import InputError
from replication.design.study_check import check_quantities
from replication.study.verdict import Verdict
from replication.verdicts.comparison import crossing

from tests.unit.conftest import (
    VEGAS,
    at_least,
    quantity,
    ratio,
    sides,
    study_document,
    throughputs,
    value_of,
)

REPRODUCED, DIRECTION = Verdict.REPRODUCED, Verdict.DIRECTION_ONLY
NOT_REPRODUCED = Verdict.NOT_REPRODUCED


# -- each kind of test, and what flips it ---------------------------------------------------------


def vegas(*rates):
    """Return results in which only Vegas has a different throughput."""
    return [throughputs(vegas=rate) for rate in rates]


def vegas_from(*least):
    """The same, with a smallest ratio in the first access rate."""
    return vegas(*([rate, 200.0, 300.0] for rate in least))


def against_cubic(reno, *rates):
    """Return results of Reno and Vegas; CUBIC differs, so that equality is no matter of course."""
    return [throughputs(reno=reno, vegas=rate, cubic=200.0) for rate in rates]


def judge(world, test, row=None, **run):
    return world.judge(test, flows=row or throughputs(), **run)


def over(kind, **more):
    return {"kind": kind, "of": quantity(), "over": "access", **more}


MORE = sides("ratio", **at_least(1.1, 1.0))
CROSSING = {"expect": {"at_least": 12, "at_most": 18}, "direction": {"at_least": 10, "at_most": 30}}
MARGINS = {"margin": 0.05, "direction_margin": 0.2}
RISE, SPREAD = [1.0, 2.0, 3.0], [50.0, 100.0, 150.0]

#: kind -> test, result that reproduces, result of the right direction, result that does neither
KINDS = {
    "ratio": (MORE, *vegas(120.0, 105.0, 90.0)),
    "ratio, worst point": (MORE | {"reduce": "minimum"}, *vegas_from(111.0, 109.0, 99.0)),
    "ratio of means": (
        MORE | {"reduce": "ratio_of_means"},
        # matched ratios would be 1.67 on average; the means are 120 to 100
        throughputs(reno=SPREAD, vegas=[150.0, 100.0, 110.0]),
        throughputs(reno=SPREAD, vegas=[150.0, 80.0, 90.0]),
        throughputs(reno=SPREAD, vegas=[140.0, 70.0, 80.0]),
    ),
    "equivalence": (
        sides("equivalence", **MARGINS),
        *against_cubic(100.0, [104.0, 96.0, 100.0], [104.0, 96.0, 110.0], [104.0, 70.0, 100.0]),
    ),
    "equivalence of means": (
        sides("equivalence", reduce="ratio_of_means", **MARGINS),
        # matched, they differ by up to two; the means are 104 to 100
        *against_cubic(SPREAD, [150.0, 102.0, 60.0], [150.0, 102.0, 66.0], [150.0, 102.0, 120.0]),
    ),
    "share": (
        sides("share", relation="above", **at_least(1.0, 0.6))
        | {"right": quantity(variant=["reno", "cubic"])},
        throughputs(vegas=101.0),
        throughputs(vegas=101.0, cubic=[100.0, 100.0, 102.0]),
        throughputs(vegas=101.0, cubic=[100.0, 102.0, 102.0]),
    ),
    "trend": (
        over("trend") | at_least(0.9, 0.5),
        throughputs(RISE, RISE, RISE),
        throughputs(RISE, [1.0, 3.0, 2.0], RISE),  # the worst is 0.5
        throughputs(RISE, [3.0, 2.0, 1.0], RISE),
    ),
    "crossover": (
        sides("crossover", over="access", before="right", **CROSSING),
        throughputs(reno=[110.0, 90.0, 90.0]),  # at 15
        throughputs(reno=[110.0, 110.0, 90.0]),  # at 25
        throughputs(reno=[110.0, 110.0, 110.0]),  # never
    ),
    "value": (
        {"kind": "value", "of": VEGAS, "reduce": "minimum", **at_least(100.0, 50.0)},
        *vegas_from(100.0, 99.0, 49.0),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("place", "verdict"), [(0, REPRODUCED), (1, DIRECTION), (2, NOT_REPRODUCED)]
)
def test_a_perturbed_result_flips_the_verdict(world, kind, place, verdict):
    test, *results = KINDS[kind]
    row = judge(world, test, results[place])
    assert row.verdict == verdict, row.reason
    # A share is of the points on the left, not of pairs.
    assert (kind, place) != ("share", 1) or row.observed == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"share"}))
def test_a_perturbed_threshold_flips_the_verdict(world, kind):
    test, good, weaker, *_ = KINDS[kind]
    # No correlation is above 1.
    good = weaker if kind == "trend" else good
    observed = judge(world, test, good).observed
    if kind.startswith("equivalence"):
        stricter = {**test, "margin": 0.99 * observed}
    elif test["expect"].get("at_most") is not None:
        stricter = {**test, "expect": {"at_least": observed + 0.01}}
    else:
        stricter = {**test, "expect": {"at_least": observed * 1.01}}
    assert judge(world, stricter, good).verdict == DIRECTION


@pytest.mark.parametrize("kind", KINDS)
def test_spread_over_replicates_flips_the_verdict(world, kind):
    """The mean stays; only the interval grows past the condition."""
    test, good, *_ = KINDS[kind]
    calm = judge(world, test, good)
    noisy = judge(world, test, lambda **run: {"throughput_bps": _shaken(good(**run), kind, **run)})
    assert calm.verdict == REPRODUCED
    assert calm.low == calm.observed == calm.high
    assert noisy.verdict != REPRODUCED


def _shaken(row, kind, variant, replicate, access, **_):
    factor = [0.4, 1.0, 1.6][replicate]
    rate = row["throughput_bps"]
    if kind.startswith(("ratio", "equivalence", "value")):
        return rate * factor if variant == "vegas" else rate
    # the others see order only: turn it round in one replicate
    return 300.0 - rate if replicate == 0 else rate


def test_the_reason_states_how_many_runs_pass(world):
    def noisy(variant, replicate, **_):
        return {"throughput_bps": 120.0 if variant == "vegas" and replicate else 100.0}

    row = judge(world, ratio({"at_least": 1.1}), noisy)
    assert row.runs_passing == "2 of 3" and "2 of 3 runs" in row.reason
    few = judge(world, sides("ratio", **at_least(1.3, 1.0)), throughputs(vegas=120.0))
    assert few.verdict == DIRECTION and "3 runs only" in few.reason


# -- matching of points ---------------------------------------------------------------------------


def test_levels_listed_on_one_side_restrict_both_sides(world):
    test = ratio({"at_least": 2.0}, reduce="minimum")
    test["left"] = quantity(variant="vegas", access=["slow", "mid"])
    row = judge(world, test, throughputs(vegas=[200.0, 200.0, 1.0]))
    assert row.verdict == REPRODUCED and "over 2 points" in row.reason


def test_points_are_matched_within_a_replicate(world):
    """Vegas is always 10 % above, though replicates differ by far more: no spread at all."""

    def rates(variant, replicate, **_):
        return {"throughput_bps": 10.0**replicate * (1.1 if variant == "vegas" else 1.0)}

    row = judge(world, ratio({"at_least": 1.05}), rates)
    assert row.verdict == REPRODUCED
    assert row.high - row.low < 1e-9


def test_zero_over_zero_is_equal_and_a_number_over_zero_infinite(world):
    test = ratio({"at_least": 0.9, "at_most": 1.1})
    assert judge(world, test, throughputs(vegas=0.0, reno=0.0)).observed == 1
    assert judge(world, test, throughputs(vegas=1.0, reno=0.0)).observed == math.inf


def test_two_points_make_a_full_trend_and_three_out_of_order_do_not(world):
    falls = over("trend") | {"expect": {"at_most": -1.0}}
    two = falls | {"of": quantity(access=["slow", "fast"])}
    row = judge(world, two, throughputs(*[[2.0, 3.0, 1.0]] * 3))
    assert (row.verdict, row.runs_passing) == (REPRODUCED, "3 of 3")
    assert judge(world, falls, throughputs(*[[2.0, 3.0, 1.0]] * 3)).verdict != REPRODUCED


def test_either_side_of_a_crossover_may_be_ahead_first(world):
    left = {**KINDS["crossover"][0], "before": "left"}
    assert judge(world, left, throughputs(reno=[90.0, 110.0, 110.0])).verdict == REPRODUCED


@pytest.mark.parametrize(("worst", "correlation"), [(False, 5 / 6), (True, 1 / 2)])
def test_a_trend_over_curves_is_their_mean_unless_the_worst_is_asked_for(world, worst, correlation):
    test, _, uneven, _ = KINDS["trend"]
    assert judge(world, {**test, "worst": worst}, uneven).observed == pytest.approx(correlation)


@pytest.mark.parametrize(
    ("kind", "relation", "row"),
    [
        ("trend", {}, throughputs(*[[100.0, 100.4, 100.8]] * 3)),
        ("share", {"relation": "above"}, throughputs(vegas=100.4)),
        ("share", {"relation": "below"}, throughputs(vegas=99.6)),
    ],
)
def test_values_closer_than_the_tie_have_no_order(world, kind, relation, row):
    test = {**KINDS[kind][0], **relation}
    for tie in (0.0, 0.003):
        assert judge(world, {**test, "tie": tie}, row).verdict == REPRODUCED
    assert judge(world, {**test, "tie": 0.005}, row).verdict == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("starts", "first"), [((0.0, 1.0), 200.0), ((1.0, 0.0), 50.0), ((0.0, 0.0), 200.0)]
)
def test_flows_are_numbered_by_their_start_times(world, starts, first):
    """A shuffled order of starts is noticed; at one time the order of the list counts."""
    rates = {"tcp1": 200.0, "tcp2": 50.0}
    experiments = study_document()["experiments"]
    for flow, start_s in zip(experiments[0]["flows"], starts, strict=True):
        flow["start_s"] = start_s
    test = value_of({**quantity(), "flows": {"start_order": 1}}, {"at_least": 100.0})
    study = world.claim(test, experiments=experiments)
    row = world.judge(study, flows=lambda flow, **_: {"throughput_bps": rates[flow]})
    assert row.observed == first
    assert row.verdict == (REPRODUCED if first > 100 else NOT_REPRODUCED)


@given(st.floats(0.01, 0.99), st.integers(0, 5), st.floats(0.1, 1e3))
def test_the_crossing_of_a_line_is_at_its_zero(fraction, whole, slope):
    x = np.arange(8.0)
    zero = whole + fraction
    assert crossing(x, slope * (zero - x)) == pytest.approx(zero)


@pytest.mark.parametrize(
    ("difference", "crosses_at"),
    [
        ([1, 1, 1], math.nan),
        ([-1, -1, 1], math.nan),  # the wrong side is ahead first
        ([1, 0, -1], 1.0),
        ([0, 1, -1], 1.5),
        ([1, 0, 1, -1], 2.5),  # touching is not crossing
        ([1, -1, 1, -1], 0.5),  # the first crossing counts
    ],
)
def test_two_curves_cross_where_their_difference_turns_negative(difference, crosses_at):
    place = crossing(range(len(difference)), difference)
    assert place == pytest.approx(crosses_at, nan_ok=True)


def test_a_trend_over_a_factor_without_numbers_is_refused(world):
    trend, *_ = KINDS["trend"]
    with pytest.raises(InputError, match=r"'cubic' .*'variant'"):
        check_quantities(world.claim({**trend, "over": "variant"}))
    with pytest.raises(InputError, match="over: 'colour'"):
        check_quantities(world.claim({**trend, "over": "colour"}))
    check_quantities(world.claim(trend))
