"""Replicates that fall out, and means that stand for neither of two outcomes: both are said."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.metrics.cell_map import map_cells
from replication.metrics.statistic import two_outcomes
from replication.study.published import read_published
from replication.study.verdict import Verdict
from replication.verdicts.cell import evaluate_cells
from replication.verdicts.claim import evaluate_claim

THROUGHPUT = {"experiment": "sweep", "metric": "throughput_bps", "where": {"variant": "vegas"}}
AT_LEAST_100 = {"kind": "value", "of": THROUGHPUT, "expect": {"at_least": 100.0}}


def judge(world, row, replicates, test=AT_LEAST_100, **run):
    study = world.claim(test)
    results = world.results(study, flows=row, replicates=replicates, **run)
    return evaluate_claim(study, study.claims[0], results)[0]


def silent(*replicates):
    """Flows of 120 bit/s, but for these replicates, which at one point send nothing."""

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
        (silent(2), Verdict.REPRODUCED, "1 of 5 replicates left out: no throughput at vegas, fast"),
        # With more than a fifth gone nothing is reproduced.
        (silent(1, 2), Verdict.DIRECTION_ONLY, "2 of 5 replicates left out"),
        (lost, Verdict.REPRODUCED, "1 of 5 replicates left out: a run without a result."),
        (undefined, Verdict.REPRODUCED, "; 1 more."),  # many points are counted and not listed
    ],
)
def test_a_replicate_that_falls_out_is_named(world, row, expected, said):
    found = judge(world, row, 5)
    assert found["verdict"] == expected and said in found["reason"]
    assert "left out" not in judge(world, silent(), 5)["reason"]


def test_a_cell_inside_with_too_few_replicates_is_not_testable(world):
    study = world.table()
    number = ("fast", "throughput", "bit/s", 240.0, "240")
    cells = map_cells(study, read_published(world.published(number)))

    def verdict(*gone):
        results = world.results(study, flows=silent(*gone), replicates=5)
        (row,) = evaluate_cells(cells, study, results, {})
        return row["verdict"], row["reason"]

    assert verdict()[0] == Verdict.REPRODUCED
    word, reason = verdict(4)
    assert word == Verdict.REPRODUCED and "1 of 5 replicates left out" in reason
    word, reason = verdict(3, 4)
    assert word == Verdict.NOT_TESTABLE and "2 of 5 replicates left out" in reason


# -- two outcomes ---------------------------------------------------------------------------------


def jumping(high, low, every):
    def row(replicate, flow, **_):
        value = low if replicate % every == 0 else high
        return {"throughput_bps": value + 0.01 * replicate}

    return row


def test_two_outcomes_are_named_with_their_shares(world):
    found = judge(world, jumping(1050.0, 270.0, 5), 30, runs=lambda lv: lv["access"] == "slow")
    assert "24 of 30, Wilson interval 63 to 90 %" in found["reason"]


@pytest.mark.parametrize(
    ("row", "replicates"),
    [
        (jumping(1050.0, 1049.0, 5), 30),  # a gap of a thousandth is no jump
        (jumping(1050.0, 270.0, 29), 30),  # two of thirty may be odd ones
        (jumping(1050.0, 270.0, 5), 15),  # too few to tell
    ],
)
def test_one_outcome_is_not_split(world, row, replicates):
    assert "two outcomes" not in judge(world, row, replicates)["reason"]


@given(st.lists(st.floats(0.9, 1.1), min_size=10, max_size=40), st.integers(10, 40))
def test_groups_far_apart_are_found_whatever_their_order(values, count):
    sample = [*values, *np.linspace(9.9, 10.1, count)]
    found = two_outcomes(np.random.default_rng(1).permutation(sample))
    assert found is not None
    assert (found.low_count, found.high_count) == (len(values), count)
    assert found.high_mean == pytest.approx(10)
    assert two_outcomes(values) is None or max(values) - min(values) > 0


def test_counts_a_packet_apart_are_one_outcome():
    assert two_outcomes([0.0] * 15 + [1.0] * 15, least_width=1.0) is None
    found = two_outcomes([0.0] * 15 + [9.0, math.nan] * 15, least_width=1.0)
    assert found is not None and (found.low_count, found.high_count) == (15, 15)
