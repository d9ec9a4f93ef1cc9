"""Ranks among replicates: exact, adjusted over a table, and no verdict where none could differ."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from replication.metrics.cell_map import map_cells
from replication.study.published import read_published
from replication.study.verdict import Verdict
from replication.verdicts.cell import adjusted, evaluate_cells, least_p, predictive_p, vary
from replication.verdicts.claim import evaluate_claim

from tests.unit.test_claim import ratio

small = st.lists(st.integers(-5, 5), min_size=3, max_size=9)


@given(small, st.lists(st.integers(-9, 9), min_size=1, max_size=2))
def test_p_is_the_share_of_choices_that_lie_no_nearer(ours, theirs):
    pooled = [*ours, *theirs]
    scores = [abs(value - float(np.median(pooled))) for value in pooled]
    sums = [sum(chosen) for chosen in itertools.combinations(scores, len(theirs))]
    reached = sum(scores[len(ours) :])
    expected = sum(value >= reached - 1e-9 for value in sums) / len(sums)
    assert predictive_p(ours, theirs) == pytest.approx(expected)


@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=30), st.floats(0.05, 0.5))
def test_of_like_values_few_are_outside(values, level):
    """Whichever of them is called the published one: p is at most a level in at most that share."""
    outside = [
        predictive_p(values[:n] + values[n + 1 :], values[n]) <= level for n in range(len(values))
    ]
    assert np.mean(outside) <= level + 1e-9


def test_adjusted_as_published():
    # Benjamini and Hochberg 1995, section 3.2: of these 15 four are outside at 0.05
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000]
    found = adjusted(p[::-1])[::-1]
    assert [value <= 0.05 for value in found] == [True] * 4 + [False] * 11
    assert found[3] == pytest.approx(0.0095 * 15 / 4)
    assert found == sorted(found)


def test_one_repeat_in_ten_is_chance_and_more_is_none():
    assert vary([*range(9), 0])
    assert not vary([*range(8), 0, 0])
    assert predictive_p(range(19), [1000.0, -1000.0]) == pytest.approx(least_p(19, 2))


# -- tables ---------------------------------------------------------------------------------------

RANK = {"metric": "throughput_bps", "tolerance": {"rank": {"false_discovery": 0.05}, "reason": "r"}}
BY_START = {"row_factor": None, "where": {"variant": "reno", "access": "slow"}}


def two_flows(world, order=(1, 2), replicates=40, draw=0.7, published=("300.0", "100.0")):
    """Judge two rows, a flow each: around 300 and 100, that differ by replicate if they draw."""
    rows = {
        name: {"where": {}, "flows": {"start_order": place}}
        for name, place in zip(("one", "two"), order, strict=True)
    }
    study = world.table({"throughput": RANK}, rows=rows, **BY_START)
    numbers = [
        (name, "throughput", "bit/s", float(value), value)
        for name, value in zip(rows, published, strict=True)
    ]

    def row(flow, replicate, **_):
        return {"throughput_bps": (290.0 if flow == "tcp1" else 90.0) + draw * replicate}

    results = world.results(study, flows=row, replicates=replicates)
    cells = map_cells(study, read_published(world.published(*numbers)))
    return list(evaluate_cells(cells, study, results, {}))


GOOD, BAD, OPEN = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_TESTABLE


@pytest.mark.parametrize(
    ("changes", "expected", "said"),
    [
        ({}, (GOOD, GOOD), "Rank among 40 replicates, two-sided: p = "),
        ({"order": (2, 1)}, (BAD, BAD), ""),  # a shuffled flow order is noticed
        ({"published": ("330.0", "100.0")}, (BAD, GOOD), ""),
        ({"draw": 0}, (OPEN, OPEN), "40 replicates give 1 different results"),
        ({"replicates": 18}, (OPEN, OPEN), "a rank takes 19"),
        ({"replicates": 19}, (GOOD, GOOD), "beyond all replicates would not be seen"),
    ],
)
def test_a_published_number_is_ranked_among_the_replicates(world, changes, expected, said):
    one, two = two_flows(world, **changes)
    assert (one["verdict"], two["verdict"]) == expected and said in one["reason"]
    assert one["p_adjusted"] >= one["p"] or expected[0] == OPEN
    assert expected != (BAD, BAD) or one["p"] == pytest.approx(least_p(40))


def test_two_runs_of_one_set_up_are_judged_together(world):
    """Each of two published values is within reach; that both are at the same end is not."""
    rows = {"one": {"where": {}, "flows": {"start_order": 1}}}
    shape = {"rows": rows, **BY_START}
    first = world.table({"throughput": RANK}, **shape).tables[0]
    run = first.model_copy(update={"run_of": "x"})
    other = run.model_copy(update={"id": "2"})

    def verdicts(tables):
        study = world.study(tables=[table.model_dump(exclude_none=True) for table in tables])
        results = world.results(
            study,
            flows=lambda replicate, **_: {"throughput_bps": 300.0 + replicate},
            replicates=60,
        )
        numbers = [(t.id, "one", "throughput", "bit/s", 358.0, "358.0") for t in tables]
        cells = map_cells(study, read_published(world.published(*numbers)))
        return [row["verdict"] for row in evaluate_cells(cells, study, results, {})]

    assert verdicts([first, first.model_copy(update={"id": "2"})]) == [Verdict.REPRODUCED] * 2
    assert verdicts([run, other]) == [Verdict.NOT_REPRODUCED] * 2


def test_what_a_rank_cannot_be_of_is_refused(world):
    table = world.table({"throughput": RANK}).tables[0].model_dump(exclude_none=True)
    moved = {**table, "id": "2", "where": {"variant": "vegas"}}
    both = {**RANK, "tolerance": {**RANK["tolerance"], "relative": 0.1}}
    spread = {**RANK, "over_runs": "standard_deviation"}
    for tables, message in (
        ([{**table, "run_of": "x"}], "is of 1 tables"),
        ([{**one, "run_of": "x"} for one in (table, moved)], "tables 1 and 2 differ"),
        ([{**table, "columns": {"throughput": both}}], "exactly one of relative"),
        ([{**table, "columns": {"throughput": spread}}], "no rank"),
    ):
        with pytest.raises(ValidationError, match=message):
            world.study(tables=tables)


# -- claims ---------------------------------------------------------------------------------------


def ranked(world, published, replicates=40, draw=True, direction=None):
    study = world.claim(ratio({"published": published}, direction and {"at_least": direction}))

    def row(variant, replicate, **_):
        return {"throughput_bps": 100.0 + (replicate if draw and variant == "vegas" else 0)}

    results = world.results(study, flows=row, replicates=replicates)
    return evaluate_claim(study, study.claims[0], results)[0]


def test_a_claimed_number_is_ranked_among_the_replicates(world):
    assert ranked(world, 1.2)["verdict"] == Verdict.REPRODUCED
    far = ranked(world, 1.5)
    assert far["verdict"] == Verdict.NOT_REPRODUCED and "has p = 0.0244" in far["reason"]
    assert ranked(world, 1.5, direction=1.0)["verdict"] == Verdict.DIRECTION_ONLY


def test_a_claimed_number_needs_replicates_that_vary(world):
    few = ranked(world, 1.2, replicates=5)
    assert few["verdict"] == Verdict.NOT_TESTABLE and "too few for a rank" in few["reason"]
    same = ranked(world, 1.2, draw=False)
    assert same["verdict"] == Verdict.NOT_TESTABLE and "1 different results" in same["reason"]
