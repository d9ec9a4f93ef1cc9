"""Claims: each kind of test; a changed result or threshold changes only its verdict."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.design.study_check import check_quantities
from replication.study.claim_model import (
    Condition,
    PublishedRun,
    RatioTest,
    ShareTest,
    ValueTest,
)
from replication.study.errors import InputError
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.claim import Judgement, evaluate_claim, judge_parts, judge_statistic
from replication.verdicts.comparison import Comparison, crossing
from replication.verdicts.sample import Coverage
from replication.verdicts.wording import Wording, figure, wording

from tests.unit.conftest import quantity, sampled, study_document

ACCESS = {"slow": 0, "mid": 1, "fast": 2}


def flows(reno=100.0, vegas=100.0, cubic=100.0, noise=(0.0, 0.0, 0.0)):
    """Throughput by variant: a number, one for each access rate, or a function of the run."""
    given = {"reno": reno, "vegas": vegas, "cubic": cubic}

    def row(variant, access, replicate, **_):
        value = given[variant]
        if isinstance(value, list):
            value = value[ACCESS[access]]
        return {"throughput_bps": value + noise[replicate % len(noise)]}

    return row


def vegas(*rates):
    """Return results in which only Vegas has a different throughput."""
    return [flows(vegas=rate) for rate in rates]


def judge(world, test, row=None, **run):
    return world.judge(test, flows=row or flows(), **run)


VEGAS, RENO = quantity(variant="vegas"), quantity(variant="reno")


def sides(kind, **more):
    return {"kind": kind, "left": VEGAS, "right": RENO, **more}


def ratio(expect, direction=None, **changes):
    return sides(
        "ratio", expect=expect, **({"direction": direction} if direction else {}), **changes
    )


def over(kind, **more):
    return {"kind": kind, "of": quantity(), "over": "access", **more}


CROSSING = {"expect": {"at_least": 12, "at_most": 18}, "direction": {"at_least": 10, "at_most": 30}}


def at_least(expect, direction):
    return {"expect": {"at_least": expect}, "direction": {"at_least": direction}}


# -- the verdict rule ----------------------------------------------------------------------------


WORDS = Wording("Statistic")


def verdict(values, expect, direction=None, decides=True, words=WORDS):
    series = pd.Series(values, index=range(len(values)), dtype=float)
    kind = RatioTest if decides else ShareTest
    test = kind.model_construct(expect=expect, direction=direction)
    return judge_statistic(test, Comparison(series, 1), words).verdict


AT_LEAST_1 = Condition(at_least=1.0)
AT_LEAST_HALF = Condition(at_least=0.5)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.20, 1.21, 1.19], Verdict.REPRODUCED),
        ([1.20], Verdict.REPRODUCED),
        # of fewer than five runs all have to pass
        ([1.20, 1.21, 1.19, 0.95], Verdict.DIRECTION_ONLY),
        # and the whole interval
        ([3.00, 1.01, 1.01], Verdict.DIRECTION_ONLY),
        # of five or more 80 %
        ([1.20, 1.21, 1.19, 1.20, 0.99], Verdict.REPRODUCED),
        ([1.10] * 7 + [0.99] * 3, Verdict.DIRECTION_ONLY),
        ([3.00, 1.01, 1.01, 1.01, 1.01], Verdict.DIRECTION_ONLY),
        # a mean that fails, whatever the runs
        ([1.20, 1.20, 1.20, 1.20, 0.10], Verdict.NOT_REPRODUCED),
        # the direction in more runs than chance gives: all of five, seven of eight
        ([0.80] * 5, Verdict.DIRECTION_ONLY),
        ([0.80] * 4 + [0.40], Verdict.NOT_REPRODUCED),
        ([0.80] * 7 + [0.40], Verdict.DIRECTION_ONLY),
        ([0.80] * 6 + [0.40] * 2, Verdict.NOT_REPRODUCED),
        # of fewer than five all
        ([0.80, 0.81, 0.79], Verdict.DIRECTION_ONLY),
        ([0.80, 0.81, 0.40], Verdict.NOT_REPRODUCED),
        # a run without a value passes nothing
        ([1.20, math.nan, 1.21, 1.22], Verdict.NOT_REPRODUCED),
        ([1.20, math.nan, 1.21, 1.22, 1.20], Verdict.REPRODUCED),
        ([math.nan], Verdict.NOT_REPRODUCED),
    ],
)
def test_verdict_rule(values, expected):
    assert verdict(values, AT_LEAST_1, AT_LEAST_HALF) == expected


def test_the_interval_decides_where_it_is_told_to():
    wide = [3.00, 1.01, 1.01, 1.01, 1.01]
    assert verdict(wide, AT_LEAST_1, AT_LEAST_HALF, decides=False) == Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("share", "expect", "expected"),
    [
        (0.6, {"at_least": 0.5}, Verdict.DIRECTION_ONLY),
        (0.5, {"at_least": 0.5}, Verdict.NOT_REPRODUCED),
        (0.4, {"at_most": 0.5}, Verdict.DIRECTION_ONLY),
        (0.5, {"at_most": 0.5}, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_share_has_a_direction_only_on_its_side_of_half(share, expect, expected):
    strict = Condition(at_least=1.0) if "at_least" in expect else Condition(at_most=0.0)
    points = Wording("Statistic", is_share=True)
    assert verdict([share] * 5, strict, Condition(**expect), words=points) == expected


def test_without_a_direction_it_is_what_is_expected_that_leads():
    assert verdict([1.2] * 4 + [0.0] + [1.0] * 3, AT_LEAST_1) == Verdict.DIRECTION_ONLY
    assert verdict([0.9, 0.9, 0.9], AT_LEAST_1) == Verdict.NOT_REPRODUCED


def test_the_reason_counts_the_runs(world):
    def noisy(variant, replicate, **_):
        return {"throughput_bps": 120.0 if variant == "vegas" and replicate else 100.0}

    row = judge(world, ratio({"at_least": 1.1}), noisy)
    assert row.runs_passing == "2 of 3" and "passes in 2 of 3 runs" in row.reason
    few = judge(world, ratio({"at_least": 1.3}, {"at_least": 1.0}), flows(vegas=120.0))
    assert "The direction rests on 3 runs only." in few.reason


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-10, 10), st.floats(0, 10))
def test_a_stricter_condition_never_makes_a_better_verdict(middle, spread, bound, stricter):
    values = [middle - spread, middle, middle + spread]
    rank = [Verdict.NOT_REPRODUCED, Verdict.DIRECTION_ONLY, Verdict.REPRODUCED]
    lenient = verdict(values, Condition(at_least=bound))
    strict = verdict(values, Condition(at_least=bound + stricter))
    assert rank.index(strict) <= rank.index(lenient)


@given(st.floats(0.1, 5), st.floats(1.5, 10))
def test_more_spread_never_makes_a_claim_reproduced(spread, more):
    tight = verdict([2 - spread, 2.0, 2 + spread], AT_LEAST_1)
    loose = verdict([2 - more * spread, 2.0, 2 + more * spread], AT_LEAST_1)
    assert not (loose == Verdict.REPRODUCED and tight != Verdict.REPRODUCED)


# -- each kind of test, and what flips it ---------------------------------------------------------

OTHERS = {"variant": ["reno", "cubic"]}
MORE = ratio({"at_least": 1.1}, {"at_least": 1.0})
MARGINS = {"margin": 0.05, "direction_margin": 0.2}
RISE = [1.0, 2.0, 3.0]
SPREAD = [50.0, 100.0, 150.0]

#: kind -> test, result that reproduces, result of the right direction, result that does neither
KINDS = {
    "ratio": (MORE, *vegas(120.0, 105.0, 90.0)),
    "ratio, worst point": (
        MORE | {"reduce": "minimum"},
        *vegas(*([least, 200.0, 300.0] for least in (111.0, 109.0, 99.0))),
    ),
    "ratio of means": (
        MORE | {"reduce": "ratio_of_means"},
        # matched ratios would be 1.67 on average; the means are 120 to 100
        flows(reno=SPREAD, vegas=[150.0, 100.0, 110.0]),
        flows(reno=SPREAD, vegas=[150.0, 80.0, 90.0]),
        flows(reno=SPREAD, vegas=[140.0, 70.0, 80.0]),
    ),
    "equivalence": (
        sides("equivalence", **MARGINS),
        # CUBIC differs, so that equality is no matter of course.
        *(
            flows(vegas=rates, cubic=200.0)
            for rates in ([104.0, 96.0, 100.0], [104.0, 96.0, 110.0], [104.0, 70.0, 100.0])
        ),
    ),
    "equivalence of means": (
        sides("equivalence", reduce="ratio_of_means", **MARGINS),
        # matched, they differ by up to two; the means are 104 to 100
        *(
            flows(reno=SPREAD, vegas=[150.0, 102.0, last], cubic=200.0)
            for last in (60.0, 66.0, 120.0)
        ),
    ),
    "share": (
        sides("share", relation="above") | at_least(1.0, 0.6) | {"right": quantity(**OTHERS)},
        flows(vegas=101.0),
        flows(vegas=101.0, cubic=[100.0, 100.0, 102.0]),
        flows(vegas=101.0, cubic=[100.0, 102.0, 102.0]),
    ),
    "trend": (
        over("trend") | at_least(0.9, 0.5),
        flows(RISE, RISE, RISE),
        flows(RISE, [1.0, 3.0, 2.0], RISE),  # the worst is 0.5
        flows(RISE, [3.0, 2.0, 1.0], RISE),
    ),
    "crossover": (
        sides("crossover", over="access", before="right") | CROSSING,
        flows(reno=[110.0, 90.0, 90.0]),  # at 15
        flows(reno=[110.0, 110.0, 90.0]),  # at 25
        flows(reno=[110.0, 110.0, 110.0]),  # never
    ),
    "value": (
        {"kind": "value", "of": VEGAS, "reduce": "minimum", **at_least(100.0, 50.0)},
        *vegas(*([least, 200.0, 300.0] for least in (100.0, 99.0, 49.0))),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("which", "expected"),
    [(0, Verdict.REPRODUCED), (1, Verdict.DIRECTION_ONLY), (2, Verdict.NOT_REPRODUCED)],
)
def test_a_perturbed_result_flips_the_verdict(world, kind, which, expected):
    test, *rows = KINDS[kind]
    row = judge(world, test, rows[which])
    assert row.verdict == expected, row.reason
    # A share is of the points on the left, not of pairs.
    assert (kind, which) != ("share", 1) or row.observed == pytest.approx(2 / 3)


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
    assert judge(world, stricter, good).verdict == Verdict.DIRECTION_ONLY


@pytest.mark.parametrize("kind", KINDS)
def test_spread_over_replicates_flips_the_verdict(world, kind):
    """The mean stays; only the interval grows past the condition."""
    test, good, *_ = KINDS[kind]
    calm = judge(world, test, good)
    noisy = judge(world, test, lambda **run: {"throughput_bps": _shaken(good(**run), kind, **run)})
    assert calm.verdict == Verdict.REPRODUCED
    assert calm.low == calm.observed == calm.high
    assert noisy.verdict != Verdict.REPRODUCED


def _shaken(row, kind, variant, replicate, access, **_):
    factor = [0.4, 1.0, 1.6][replicate]
    value = row["throughput_bps"]
    if kind.startswith(("ratio", "equivalence", "value")):
        return value * factor if variant == "vegas" else value
    # the others see order only: turn it round in one replicate
    return 300.0 - value if replicate == 0 else value


# -- matching of points ---------------------------------------------------------------------------


def test_a_list_on_one_side_narrows_both(world):
    test = ratio({"at_least": 2.0}, reduce="minimum")
    test["left"] = quantity(variant="vegas", access=["slow", "mid"])
    row = judge(world, test, flows(vegas=[200.0, 200.0, 1.0]))
    assert row.verdict == Verdict.REPRODUCED and "over 2 points" in row.reason


def test_points_are_matched_within_a_replicate(world):
    """Vegas is always 10 % above, though replicates differ by far more: no spread at all."""

    def row(variant, replicate, **_):
        return {"throughput_bps": 10.0**replicate * (1.1 if variant == "vegas" else 1.0)}

    found = judge(world, ratio({"at_least": 1.05}), row)
    assert found.verdict == Verdict.REPRODUCED
    assert found.high - found.low < 1e-9


def test_nothing_over_nothing_is_equal_and_something_over_nothing_infinite(world):
    test = ratio({"at_least": 0.9, "at_most": 1.1})
    assert judge(world, test, flows(vegas=0.0, reno=0.0)).observed == 1
    assert judge(world, test, flows(vegas=1.0, reno=0.0)).observed == math.inf


def test_two_points_are_a_whole_trend_and_three_almost_in_order_are_not(world):
    falls = over("trend") | {"expect": {"at_most": -1.0}}
    two = falls | {"of": quantity(access=["slow", "fast"])}
    row = judge(world, two, flows(*[[2.0, 3.0, 1.0]] * 3))
    assert (row.verdict, row.runs_passing) == (Verdict.REPRODUCED, "3 of 3")
    assert judge(world, falls, flows(*[[2.0, 3.0, 1.0]] * 3)).verdict != Verdict.REPRODUCED


def test_a_crossover_may_be_from_the_left_side(world):
    left = {**KINDS["crossover"][0], "before": "left"}
    assert judge(world, left, flows(reno=[90.0, 110.0, 110.0])).verdict == Verdict.REPRODUCED


@pytest.mark.parametrize(("worst", "expected"), [(False, 5 / 6), (True, 1 / 2)])
def test_the_mean_over_curves_is_not_the_worst(world, worst, expected):
    test, _, uneven, _ = KINDS["trend"]
    assert judge(world, {**test, "worst": worst}, uneven).observed == pytest.approx(expected)


ALMOST = [100.0, 100.4, 100.8]


@pytest.mark.parametrize(
    ("kind", "relation", "row"),
    [
        ("trend", {}, flows(*[ALMOST] * 3)),
        ("share", {"relation": "above"}, flows(vegas=100.4)),
        ("share", {"relation": "below"}, flows(vegas=99.6)),
    ],
)
def test_what_is_tied_has_no_order(world, kind, relation, row):
    test = {**KINDS[kind][0], **relation}
    for tie in (0.0, 0.003):
        assert judge(world, {**test, "tie": tie}, row).verdict == Verdict.REPRODUCED
    assert judge(world, {**test, "tie": 0.005}, row).verdict == Verdict.NOT_REPRODUCED


RATES = {"tcp1": 200.0, "tcp2": 50.0}


@pytest.mark.parametrize(
    ("starts", "first"), [((0.0, 1.0), 200.0), ((1.0, 0.0), 50.0), ((0.0, 0.0), 200.0)]
)
def test_flows_are_found_by_the_order_of_their_starts(world, starts, first):
    """A shuffled order of starts is noticed; at one time the order of the list counts."""
    experiments = study_document()["experiments"]
    for flow, start_s in zip(experiments[0]["flows"], starts, strict=True):
        flow["start_s"] = start_s
    of = {**quantity(), "flows": {"start_order": 1}}
    test = {"kind": "value", "of": of, "expect": {"at_least": 100.0}}
    study = world.claim(test, experiments=experiments)
    row = world.judge(study, flows=lambda flow, **_: {"throughput_bps": RATES[flow]})
    assert row.observed == first
    assert row.verdict == (Verdict.REPRODUCED if first > 100 else Verdict.NOT_REPRODUCED)


# -- crossing -------------------------------------------------------------------------------------


@given(st.floats(0.01, 0.99), st.integers(0, 5), st.floats(0.1, 1e3))
def test_a_line_crosses_where_it_is_zero(fraction, whole, slope):
    x = np.arange(8.0)
    zero = whole + fraction
    assert crossing(x, slope * (zero - x)) == pytest.approx(zero)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        ([1, 1, 1], None),
        ([-1, -1, 1], None),  # the wrong side is ahead first
        ([1, 0, -1], 1.0),
        ([0, 1, -1], 1.5),
        ([1, 0, 1, -1], 2.5),  # touching is not crossing
        ([1, -1, 1, -1], 0.5),  # the first crossing counts
    ],
)
def test_crossing(difference, expected):
    found = crossing(range(len(difference)), difference)
    assert math.isnan(found) if expected is None else found == expected


# -- not testable ---------------------------------------------------------------------------------


def test_a_claim_that_the_paper_does_not_define_is_not_testable(world):
    found = judge(world, {"kind": "not_testable", "reason": "No size is given."})
    assert found.verdict == Verdict.NOT_TESTABLE
    assert found.reason_code == ReasonCode.PAPER_GIVES_TOO_LITTLE


def test_an_engine_that_refuses_a_side_cannot_test(world):
    study = world.claim(ratio({"at_least": 1.1}))

    def refusal(engine, levels):
        return "no vegas here" if (engine, levels["variant"]) == ("linux", "vegas") else ""

    results = world.results(
        study, flows=flows(vegas=120.0), engines=("linux", "ns3"), refusal=refusal
    )
    linux, ns3 = evaluate_claim(study.claims[0], Coverage.of_all(study, results))
    assert (linux.engine, linux.verdict) == ("linux", Verdict.NOT_TESTABLE)
    assert linux.reason_code == ReasonCode.ENGINE_LACKS_IT and ns3.reason_code == ""
    assert "no vegas here" in linux.reason and math.isnan(linux.observed)
    assert ns3.verdict == Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("kind", "runs", "expected", "said"),
    [
        ("ratio", ("variant", ["reno"]), ReasonCode.TOO_FEW_RUNS, "this tier leaves out 3"),
        ("ratio", ("access", ["mid"]), "", "1 of 3 points were run"),
        ("trend", ("access", ["mid"]), ReasonCode.TOO_FEW_RUNS, "no trend"),
    ],
)
def test_a_tier_may_leave_points_out(world, kind, runs, expected, said):
    factor, keys = runs
    test, good, *_ = KINDS[kind]
    found = judge(world, test, good, runs=lambda levels: levels[factor] in keys)
    assert found.verdict == (Verdict.NOT_TESTABLE if expected else Verdict.REPRODUCED)
    assert found.reason_code == expected and said in found.reason
    assert "points were run" not in judge(world, test, good).reason


def test_a_window_past_the_end_cannot_be_tested(world):
    test = {"kind": "value", "of": {**quantity(), "window_s": (5, 10)}, "expect": {"at_least": 1}}
    found = judge(world, test, series=lambda **_: sampled([5.0] * 4), duration_s=4.0)
    assert found.verdict == Verdict.NOT_TESTABLE
    assert "no run has a value for throughput from 5 to 10 s" in found.reason


def test_undefined_values_are_left_out_and_counted(world):
    def row(variant, access, **_):
        lost = variant == "vegas" and access == "slow"
        return {"throughput_bps": np.nan if lost else 120.0 if variant == "vegas" else 100.0}

    found = judge(world, ratio({"at_least": 1.1}), row)
    assert found.verdict == Verdict.REPRODUCED
    assert "over 2 points" in found.reason
    assert "3 undefined values are left out" in found.reason


# -- claims of several parts ----------------------------------------------------------------------


def part(name):
    return Judgement(name, [f"It is {name}."], observed=1.0)


@pytest.mark.parametrize(
    ("parts", "expected", "share"),
    [
        ([Verdict.REPRODUCED, Verdict.REPRODUCED], Verdict.REPRODUCED, 1.0),
        ([Verdict.REPRODUCED, Verdict.DIRECTION_ONLY], Verdict.DIRECTION_ONLY, 0.5),
        ([Verdict.REPRODUCED, Verdict.NOT_REPRODUCED], Verdict.NOT_REPRODUCED, 0.5),
        ([Verdict.DIRECTION_ONLY, Verdict.NOT_REPRODUCED], Verdict.NOT_REPRODUCED, 0.0),
        ([Verdict.REPRODUCED, Verdict.NOT_TESTABLE], Verdict.NOT_TESTABLE, math.nan),
        ([Verdict.NOT_REPRODUCED, Verdict.NOT_TESTABLE], Verdict.NOT_REPRODUCED, 0.0),
    ],
)
def test_parts_make_a_whole(parts, expected, share):
    found = judge_parts([part(name) for name in parts])
    assert (found.verdict, found.observed) == (expected, pytest.approx(share, nan_ok=True))
    assert all(f"It is {name}." in found.reason for name in parts)


# -- words ----------------------------------------------------------------------------------------


def test_a_share_is_so_many_of_so_many(world):
    shown = sides("share", relation="above", expect={"at_least": 1.0})
    test = ShareTest.model_validate(shown)
    words = wording(world.study(), test)
    assert words.value(0.75, 4) == "3 of 4 points"
    assert words.value(0.7, 4) == "70 % of the points", "a mean over replicates"
    assert words.condition(test.expect) == "all points"
    assert words.condition(test.expect, 4) == "4 of 4"
    assert words.condition(Condition(at_least=0.5), 4) == "at least 50 % of the points"


def test_a_value_has_the_unit_that_people_read(world):
    value = {"kind": "value", "of": RENO, "expect": {"at_least": 7e5}}
    words = wording(world.study(), ValueTest.model_validate(value))
    assert words.value(19641049.01) == "19.64 Mbit/s"
    assert words.condition(Condition(at_least=7e5, at_most=8e5)) == "0.7 to 0.8 Mbit/s"
    published = PublishedRun(published=7e5, factor=1.5)
    said = "the published 0.7 Mbit/s within the spread of our runs"
    assert words.condition(published).startswith(said)
    lost = {"kind": "value", "of": quantity("loss_rate"), "expect": {"at_most": 0.1}}
    assert wording(world.study(), ValueTest.model_validate(lost)).value(0.015) == "1.5 %"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (1.0, "1"), (-0.95, "−0.95"), (1964.13, "1,964"), (1e-7, "1.000e−07"),
     (12345678.0, "12,345,678"), (math.inf, "infinite")],
)  # fmt: skip
def test_figures_have_four_digits_and_no_exponent(value, shown):
    assert figure(value) == shown
    assert Wording("Any").value(math.nan) == "undefined"


def test_a_trend_needs_numbers_on_its_axis(world):
    test = {**KINDS["trend"][0], "over": "variant"}
    with pytest.raises(InputError, match="level 'cubic' of factor 'variant' has no value"):
        check_quantities(world.claim(test))
    with pytest.raises(InputError, match="over: 'colour' is unknown; there are "):
        check_quantities(world.claim({**test, "over": "colour"}))
    check_quantities(world.claim(KINDS["trend"][0]))
