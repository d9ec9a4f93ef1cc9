"""Ranks among replicates: exact, adjusted over a table, and no verdict where none could differ."""

import itertools
import math

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


def test_a_value_beyond_all_has_the_least_p():
    ours = np.arange(19.0)
    assert predictive_p(ours, 1000.0) == pytest.approx(least_p(19)) == pytest.approx(0.05)
    assert predictive_p(ours, [1000.0, -1000.0]) == pytest.approx(least_p(19, 2))
    assert predictive_p(ours, 9.0) == 1


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


# -- tables ---------------------------------------------------------------------------------------

RANK = {"metric": "throughput_bps", "tolerance": {"rank": {"false_discovery": 0.05}, "reason": "r"}}
BY_START = {"row_factor": None, "where": {"variant": "reno", "access": "slow"}}


def two_flows(first, second, replicates=40, draw=True, published=("300.0", "100.0"), **table):
    """Flows around 300 and 100, that differ by replicate if `draw`; two rows, a flow each."""

    def judged(world):
        rows = {
            name: {"where": {}, "flows": {"start_order": place}}
            for name, place in (("one", first), ("two", second))
        }
        study = world.table({"throughput": RANK}, rows=rows, **BY_START, **table)
        numbers = [
            (name, "throughput", "bit/s", float(value), value)
            for name, value in zip(("one", "two"), published, strict=True)
        ]

        def row(flow, replicate, **_):
            shift = 0.7 * replicate if draw else 0.0
            return {"throughput_bps": (290.0 if flow == "tcp1" else 90.0) + shift}

        results = world.results(study, flows=row, replicates=replicates)
        cells = map_cells(study, read_published(world.published(*numbers)))
        return list(evaluate_cells(cells, study, results, {}))

    return judged


def test_values_among_the_replicates_are_reproduced(world):
    one, two = two_flows(1, 2)(world)
    assert one["verdict"] == two["verdict"] == Verdict.REPRODUCED
    assert one["p"] > 0.5 and one["p_adjusted"] >= one["p"]
    assert "Rank among 40 replicates, two-sided: p = " in one["reason"]
    assert one["inside"] is True and math.isnan(one["accepted_margin"])


def test_a_shuffled_flow_order_is_noticed(world):
    one, two = two_flows(2, 1)(world)
    assert one["verdict"] == two["verdict"] == Verdict.NOT_REPRODUCED
    assert one["p"] == pytest.approx(least_p(40))


def test_a_value_beyond_the_replicates_is_outside_and_its_neighbour_is_not(world):
    one, two = two_flows(1, 2, published=("330.0", "100.0"))(world)
    assert (one["verdict"], two["verdict"]) == (Verdict.NOT_REPRODUCED, Verdict.REPRODUCED)


def test_without_draws_there_is_no_rank(world):
    one, _ = two_flows(1, 2, draw=False)(world)
    assert one["verdict"] == Verdict.NOT_TESTABLE and one["inside"] is None
    assert "40 replicates give 1 different results" in one["reason"]


@pytest.mark.parametrize(("replicates", "testable"), [(18, False), (19, True)])
def test_too_few_replicates_cannot_put_anything_outside(world, replicates, testable):
    one, _ = two_flows(1, 2, replicates)(world)
    assert (one["verdict"] != Verdict.NOT_TESTABLE) is testable
    assert ("a rank takes 19" in one["reason"]) is not testable


def test_what_could_not_have_been_seen_is_said(world):
    one, _ = two_flows(1, 2, 30)(world)
    assert "Fewer than 2 of 2 numbers beyond all replicates would not be seen." in one["reason"]
    one, _ = two_flows(1, 2, 40)(world)
    assert "would not be seen" not in one["reason"]


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


def test_runs_of_one_set_up_map_the_same(world):
    table = world.table({"throughput": RANK}).tables[0].model_dump(exclude_none=True)
    with pytest.raises(ValidationError, match="is of 1 tables"):
        world.study(tables=[{**table, "run_of": "x"}])
    moved = {**table, "id": "2", "where": {"variant": "vegas"}}
    with pytest.raises(ValidationError, match="tables 1 and 2 differ"):
        world.study(tables=[{**t, "run_of": "x"} for t in (table, moved)])


# -- claims ---------------------------------------------------------------------------------------


def ratio(world, published, replicates=40, draw=True, direction=None):
    test = {
        "kind": "ratio",
        "left": {"experiment": "sweep", "metric": "throughput_bps", "where": {"variant": "vegas"}},
        "right": {"experiment": "sweep", "metric": "throughput_bps", "where": {"variant": "reno"}},
        "expect": {"published": published},
        **({"direction": {"at_least": direction}} if direction else {}),
    }
    study = world.claim(test)

    def row(variant, replicate, **_):
        value = 100.0 + (replicate if draw else 0) if variant == "vegas" else 100.0
        return {"throughput_bps": value}

    results = world.results(study, flows=row, replicates=replicates)
    return evaluate_claim(study, study.claims[0], results)[0]


def test_a_claimed_number_is_ranked_among_the_replicates(world):
    assert ratio(world, 1.2)["verdict"] == Verdict.REPRODUCED
    far = ratio(world, 1.5)
    assert far["verdict"] == Verdict.NOT_REPRODUCED and "has p = 0.0244" in far["reason"]
    assert ratio(world, 1.5, direction=1.0)["verdict"] == Verdict.DIRECTION_ONLY


def test_a_claimed_number_needs_replicates_that_vary(world):
    few = ratio(world, 1.2, replicates=5)
    assert few["verdict"] == Verdict.NOT_TESTABLE and "too few for a rank" in few["reason"]
    same = ratio(world, 1.2, draw=False)
    assert same["verdict"] == Verdict.NOT_TESTABLE and "1 different results" in same["reason"]


def test_a_tolerance_is_of_one_kind(world):
    both = {**RANK, "tolerance": {**RANK["tolerance"], "relative": 0.1}}
    with pytest.raises(ValidationError, match="exactly one of relative, absolute and rank"):
        world.table({"throughput": both})
