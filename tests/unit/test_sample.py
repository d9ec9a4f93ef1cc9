"""Runs as a sample: excluded runs, two outcomes, and a single published run."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from replication.metrics.statistic import two_outcomes
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.published_run import Published, judge_published

from tests.unit.conftest import quantity, sampled

AT_LEAST_100 = {"kind": "value", "of": quantity(variant="vegas"), "expect": {"at_least": 100.0}}


def silent(*replicates):
    """Flows of 120 bit/s, except in these replicates, which send nothing at one point."""

    def row(access, replicate, **_):
        if replicate in replicates and access == "fast":
            return {"throughput_bps": np.nan, "packets_sent": 0}
        return {"throughput_bps": 120.0}

    return row


def lost(access, replicate, **_):
    return None if replicate == 2 and access == "fast" else {"throughput_bps": 120.0}


def undefined(replicate, **_):
    return {"throughput_bps": np.nan if replicate == 2 else 120.0}


@pytest.mark.parametrize(
    ("row", "expected", "said"),
    [
        (
            silent(2),
            Verdict.REPRODUCED,
            "replicates are left out: no throughput at vegas, fast",
        ),
        # With more than a fifth gone nothing is reproduced.
        (silent(1, 2), Verdict.DIRECTION_ONLY, "2 of 5 replicates are left out"),
        (lost, Verdict.REPRODUCED, "1 of 5 replicates are left out: a run without a result."),
        (undefined, Verdict.REPRODUCED, "; 1 more."),  # many points are counted and not listed
    ],
)
def test_a_replicate_that_falls_out_is_named(world, row, expected, said):
    found = world.judge(AT_LEAST_100, flows=row, replicates=5)
    assert found.verdict == expected and said in found.reason
    assert "left out" not in world.judge(AT_LEAST_100, flows=silent(), replicates=5).reason


def test_a_cell_inside_with_too_few_replicates_is_not_testable(world):
    number = ("fast", "throughput", "bit/s", 240.0, "240")

    def verdict(*gone):
        (row,) = world.judge_cells(world.table(), number, flows=silent(*gone), replicates=5)
        return row.verdict, row.reason

    assert verdict()[0] == Verdict.REPRODUCED
    word, reason = verdict(4)
    assert word == Verdict.REPRODUCED and "1 of 5 replicates are left out" in reason
    word, reason = verdict(3, 4)
    assert word == Verdict.NOT_TESTABLE and "2 of 5 replicates are left out" in reason


# -- two outcomes ---------------------------------------------------------------------------------


def jumping(high, low, every):
    def row(replicate, flow, **_):
        value = low if replicate % every == 0 else high
        return {"throughput_bps": value + 0.01 * replicate}

    return row


def test_two_outcomes_are_named_with_their_shares(world):
    run = {"flows": jumping(1050.0, 270.0, 5), "replicates": 30}
    found = world.judge(AT_LEAST_100, runs=lambda levels: levels["access"] == "slow", **run)
    assert "24 of 30, Wilson interval 63 to 90 %" in found.reason


@pytest.mark.parametrize(
    ("row", "replicates"),
    [
        (jumping(1050.0, 1049.0, 5), 30),  # a gap of a thousandth is no jump
        (jumping(1050.0, 270.0, 29), 30),  # two of thirty may be odd ones
        (jumping(1050.0, 270.0, 5), 15),  # too few to tell
    ],
)
def test_one_outcome_is_not_split(world, row, replicates):
    found = world.judge(AT_LEAST_100, flows=row, replicates=replicates)
    assert "two outcomes" not in found.reason


@given(st.lists(st.floats(0.9, 1.1), min_size=10, max_size=40), st.integers(10, 40))
def test_groups_far_apart_are_found_whatever_their_order(values, count):
    sample = [*values, *np.linspace(9.9, 10.1, count)]
    found = two_outcomes(np.random.default_rng(1).permutation(sample))
    assert found is not None
    assert (found[0].size, found[1].size) == (len(values), count)
    assert found[1].mean() == pytest.approx(10)
    assert two_outcomes(values) is None or max(values) - min(values) > 0


def test_counts_a_packet_apart_are_one_outcome():
    assert two_outcomes([0.0] * 15 + [1.0] * 15, least_width=1.0) is None
    found = two_outcomes([0.0] * 15 + [9.0, math.nan] * 15, least_width=1.0)
    assert found is not None and (found[0].size, found[1].size) == (15, 15)


# -- numbers of one published run -----------------------------------------------------------------

#: 99 runs from 51 to 149: a further one lies between 52.5 and 147.5 with 95 %.
RUNS = np.arange(51.0, 150.0)


def judged(value, values=RUNS, factor=1.5, counts=False, half_ulp=0.0, runs=None):
    published = Published(value, half_ulp, factor, counts)
    ruling = judge_published(published, values, runs or list(values), "{:g}".format)
    return ruling.verdict, ruling.reason_code or None, ruling.compatible


REPRODUCED, OUTSIDE = (Verdict.REPRODUCED, None, True), (Verdict.NOT_REPRODUCED, None, False)
WIDE = (Verdict.NOT_TESTABLE, ReasonCode.RUNS_SPREAD_TOO_WIDELY, True)
ALIKE = (Verdict.NOT_TESTABLE, ReasonCode.RUNS_DO_NOT_VARY, None)
FEW = (Verdict.NOT_TESTABLE, ReasonCode.TOO_FEW_RUNS, None)


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        ({"value": 100.0}, REPRODUCED),
        # only compatible
        ({"value": 60.0}, WIDE),
        ({"value": 60.0, "factor": 1.7}, REPRODUCED),
        # the ends of the central 95 %, and half a digit more
        ({"value": 147.0}, REPRODUCED),
        ({"value": 148.0}, OUTSIDE),
        ({"value": 148.0, "half_ulp": 1.0}, REPRODUCED),
        ({"value": 52.0, "factor": 3.0}, OUTSIDE),
        # a count may differ by two, whatever the factor
        ({"value": 101.0, "factor": 1.001}, WIDE),
        ({"value": 101.0, "factor": 1.001, "counts": True}, REPRODUCED),
        ({"value": 103.0, "factor": 1.001, "counts": True}, WIDE),
        # too few runs, or no separate runs
        ({"value": 100.0, "values": RUNS[1:]}, FEW),
        ({"value": 100.0, "runs": [*range(89), *range(10)]}, ALIKE),
        ({"value": 100.0, "runs": [*range(90), *range(9)]}, REPRODUCED),
        ({"value": 160.0, "runs": [1] * 99}, ALIKE),
        # a value that 95 % of the runs share, near or far
        ({"value": 53.0, "values": [53.0] * 99, "runs": [*RUNS]}, ALIKE),
        ({"value": 52.0, "values": [53.0] * 99, "runs": [*RUNS], "counts": True}, ALIKE),
        ({"value": 530.0, "values": [53.0] * 99, "runs": [*RUNS], "counts": True}, ALIKE),
        ({"value": 52.0, "values": [50.0, *[53.0] * 97, 60.0], "runs": [*RUNS]}, ALIKE),
        ({"value": 53.0, "values": [50.0] * 3 + [53.0] * 96, "runs": [*RUNS]}, REPRODUCED),
        ({"value": 60.0, "values": [50.0] * 3 + [53.0] * 96, "runs": [*RUNS]}, OUTSIDE),
    ],
)
def test_each_condition_flips_the_verdict(mutation, expected):
    assert judged(**mutation) == expected


def test_a_constant_is_called_deterministic_with_its_distance():
    runs = [53.0] * 98 + [54.0]
    ruling = judge_published(Published(80.0, 0.0, 1.5, True), runs, [*RUNS], "{:g}".format)
    assert ruling.reason == (
        "Deterministic here: 98 of 99 runs give 53. Our mean of 53.0101 is not within a factor of "
        "1.5, or 2 counts, of the published 80."
    )


@given(st.lists(st.floats(0.1, 1e3), min_size=99, max_size=120), st.floats(-1e3, 2e3))
def test_a_number_outside_of_all_runs_is_never_reproduced(values, value):
    found, *_ = judged(value, values, runs=list(range(len(values))))
    if not min(values) <= value <= max(values):
        assert found in (Verdict.NOT_REPRODUCED, Verdict.NOT_TESTABLE)


@pytest.mark.parametrize("count", [99, 150, 208])
def test_of_like_runs_one_in_twenty_is_outside(count):
    """Whichever run is the published one, 5 % fail, give or take one at either end."""
    values = np.random.default_rng(count).normal(100, 1, count + 1)
    outside = [
        judged(value, np.delete(values, n), runs=list(range(count)))[0] != Verdict.REPRODUCED
        for n, value in enumerate(values)
    ]
    assert np.mean(outside) == pytest.approx(0.05, abs=2 / count)


def test_a_value_between_two_groups_of_runs_is_named():
    groups = [*np.linspace(80, 81, 60), *np.linspace(120, 121, 60)]
    ruling = judge_published(Published(100.0, 0.0, 1.5, False), groups, groups, "{:g}".format)
    assert ruling.verdict == Verdict.REPRODUCED
    assert "The published value lies between 81 and 120, where no run does." in ruling.reasons


# -- tables ---------------------------------------------------------------------------------------

OF_ONE_RUN = {"metric": "throughput_bps", "tolerance": {"factor": 1.5, "reason": "r"}}


def drawn(replicate):
    """Samples of a window that differs by replicate in the last of them."""
    return sampled([10.0] * 7 + [20.0 + replicate])


def two_flows(world, first=1, second=2, replicates=99, draw=drawn, where=("one", "two")):
    """Flows of around 300 and 100 bit/s, whose samples are `draw(replicate)`."""
    rows = {
        name: {"where": {}, "flows": {"start_order": place}}
        for name, place in (("one", first), ("two", second))
        if name in where
    }
    shape = {"row_factor": None, "where": {"variant": "reno", "access": "slow"}}
    study = world.table({"throughput": OF_ONE_RUN}, rows=rows, **shape)
    printed = {"one": "300.0", "two": "100.0"}
    numbers = [(name, "throughput", "bit/s", float(printed[name]), printed[name]) for name in rows]

    def row(flow, replicate, **_):
        rate = (290.0 if flow == "tcp1" else 90.0) + 0.2 * replicate
        return {"throughput_bps": rate, "packets_sent": 500 + replicate}

    run = {"flows": row, "series": lambda replicate, **_: draw(replicate)}
    return world.judge_cells(study, *numbers, **run, replicates=replicates)


def test_values_among_the_runs_are_reproduced(world):
    one, two = two_flows(world)
    assert one.verdict == two.verdict == Verdict.REPRODUCED
    assert one.kind == "printed" and "95 % of 99 runs lie between" in one.reason


def test_a_shuffled_flow_order_is_noticed(world):
    one, two = two_flows(world, 2, 1)
    assert one.verdict == two.verdict == Verdict.NOT_REPRODUCED


def test_the_same_runs_are_no_replicates_in_every_table(world):
    """They send packets and get rates that differ, but their windows do not."""
    same = {"draw": lambda replicate: sampled([10.0] * 8)}
    rows = [*two_flows(world, **same), *two_flows(world, **same, where=("two",))]
    assert {row.reason_code for row in rows} == {ReasonCode.RUNS_DO_NOT_VARY}


def test_too_few_runs_decide_nothing(world):
    one, _ = two_flows(world, replicates=98)
    assert one.reason_code == ReasonCode.TOO_FEW_RUNS


# -- claims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("published", "direction", "expected"),
    [
        (1.5, None, Verdict.REPRODUCED),
        (2.5, None, Verdict.NOT_REPRODUCED),
        (2.5, 1.01, Verdict.DIRECTION_ONLY),
        (2.5, 1.9, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_claimed_number_of_one_run_is_judged_alike(world, published, direction, expected):
    left, right = (quantity(variant=name, access="slow") for name in ("vegas", "reno"))
    test = {"kind": "ratio", "left": left, "right": right}
    test |= {"expect": {"published": published, "factor": 1.2}}
    test |= {"direction": {"at_least": direction}} if direction else {}

    def row(variant, replicate, **_):
        value = 100.0 + replicate if variant == "vegas" else 100.0
        return {"throughput_bps": value}

    run = {"flows": row, "replicates": 99, "runs": lambda levels: levels["access"] == "slow"}
    run |= {"series": lambda replicate, **_: drawn(replicate)}
    assert world.judge(test, **run).verdict == expected


def test_a_tolerance_is_of_one_kind(world):
    both = {**OF_ONE_RUN, "tolerance": {**OF_ONE_RUN["tolerance"], "relative": 0.1}}
    with pytest.raises(ValidationError, match="relative, absolute, factor and spread"):
        world.table({"throughput": both})
