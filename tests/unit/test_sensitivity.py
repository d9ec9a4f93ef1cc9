"""Sensitivity: axes, designs, shares, flips, and causes, on known data."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from replication.base.errors import InputError
from replication.design.config import Sensitivity, load_sensitivity, load_study, study_ids
from replication.engines.catalogue import ENGINES
from replication.explore.cause import Explanations, check_explanations, load_explanations
from replication.explore.robustness import (
    CONDITIONAL,
    DEFAULT,
    FRAGILE,
    ONE_AT_A_TIME,
    ROBUST,
    SEED,
    SPACE_FILLING,
    TOO_FEW,
    claim_row,
    design_points,
    robustness_word,
    value_range,
)
from replication.study.parameter import Assumed
from replication.study.study import Study
from replication.study.variation import Assumption, check_parameters_used
from replication.study.verdict import Verdict

from tests.unit.conftest import PUBLISHED, ROOT, study_document

SETTINGS = load_sensitivity(ROOT)


def settings(**changes):
    return Sensitivity.model_validate({**SETTINGS.model_dump(), **changes})


def cause(**change):
    added = {"date": "2026-11-22", "results": "after"}
    origin = {"added": added, "suggested_by": "document"}
    return {"id": "a", "title": "t", "reason": "r", "source": "s", **origin, **change}


def record(number, kind, changed="", **values):
    name = f"{kind}-{number}" if kind != DEFAULT else DEFAULT
    return {"point": name, "kind": kind, "changed": changed, "values": values}


def assumed(value, low=None, high=None, choices=None):
    span = None if low is None else (low, high)
    tag = {"reason": "r", "source": "s", "range": span, "choices": choices}
    return {"value": value, "assumed": tag}


def axis(value, *span, **plausible):
    tag = assumed(value, *span, **plausible)["assumed"]
    return Assumption("x", value, Assumed.model_validate(tag))


def studied(**parameters):
    document = study_document()
    document["parameters"] |= parameters
    return Study.model_validate(document)


def test_whole_numbers_are_drawn_uniformly_with_both_ends():
    drawn = [axis(2, 1, 4).at(u) for u in np.linspace(0, 0.999, 400)]
    assert all(isinstance(v, int) for v in drawn)
    assert all(95 <= drawn.count(n) <= 105 for n in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("drawn", "position", "value"),
    [
        # A wide range is sampled by factors, a narrow one by differences.
        (axis(20, 10, 1000), 0.5, 100),
        (axis(2.0, 1.0, 3.0), 0.5, 2.0),
        (axis(1.0, 0.0, 4.0), 0.25, 1.0),
        (axis("a", choices=["a", "b", "c"]), 1.0, "c"),
    ],
)
def test_wide_ranges_are_drawn_by_factors_and_narrow_ones_by_differences(drawn, position, value):
    assert drawn.at(min(position, 0.999)) == value


def test_a_parameter_that_no_template_reads_is_refused():
    check_parameters_used(studied())
    with pytest.raises(InputError, match="'idle'"):
        check_parameters_used(studied(idle={"value": 1, "published": PUBLISHED}))


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_a_study_has_no_unused_parameter_and_scores_no_held_out_row(name):
    explanations = load_explanations(ROOT, name)
    check_parameters_used(load_study(ROOT, name))
    for stage in explanations.stages if explanations else []:
        for table, rows in stage.rows.items():
            assert not set(rows) & set(explanations.held_out.rows.get(table, []))


def level(**change):
    return {"levels": [{"key": "other", **change}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (level(set={"parameters": {"nothing": 1}}), "parameter: 'nothing'"),
        (level(set={"parameters": {"segment_bytes": 1}}), "segment_bytes.*plausible"),
        (level(reading={"metric": "delay_mean_s"}), "is in 'bit/s'"),
        (
            level(reading={"factor": 2.0}) | {"columns": ["nine"]},
            "column: 'nine'.* throughput",
        ),
    ],
)
def test_a_cause_that_does_not_match_its_study_is_refused(world, change, message):
    study = world.table()
    cells = world.mapped(study, ("slow", "throughput", "bit/s", 8e5, "0.80"))
    document = {"study": study.id, "score": "cells", "cpu_budget_s": 1.0, "stages": [{"rows": {}}]}
    document |= {"held_out": {"rows": {"1": ["slow"]}, "reason": "a test"}}
    explanations = Explanations.model_validate(document | {"causes": [cause(**change)]})
    with pytest.raises(InputError, match=message):
        check_explanations(explanations, study, cells)


def test_a_small_budget_leaves_out_whole_points():
    study = studied(segment_bytes=assumed(960, 500, 1460))

    def designed(**budget):
        of_study = SETTINGS.of(study.id).model_dump()
        of_study["exploration"] |= budget
        return design_points(study, settings(points=8, other_studies=of_study), ENGINES["ns3"])

    everything = designed()
    runs = itertools.chain(*(point.runs for point in everything))
    cost_s = sum({run.scenario_id: run.cost_s for run in runs}.values())
    less = designed(cpu_budget_s=cost_s * 0.8)
    assert 0 < len(everything) - len(less) < 8
    assert less == everything[: len(less)]


def test_design_points_have_their_kinds_seeds_and_values():
    study = studied(segment_bytes=assumed(960, 500, 1460), access_s=assumed(0.01, 0.001, 0.02))
    points = design_points(study, settings(points=8), ENGINES["ns3"])
    kinds = Counter(point.kind for point in points)
    assert kinds == {DEFAULT: 1, SEED: 4, ONE_AT_A_TIME: 4, SPACE_FILLING: 8}
    seeds = {point.runs[0].scenario.seed for point in points if point.kind in (DEFAULT, SEED)}
    runs = itertools.chain(*(point.runs for point in points))
    assert len(seeds) == 5 and {run.replicate for run in runs} == {0}
    filled = [point for point in points if point.kind == SPACE_FILLING]
    assert len({str(point.values) for point in filled}) == 8
    (default,) = (point for point in points if point.kind == DEFAULT)
    for point in filled:
        assert [r.scenario.seed for r in point.runs] == [r.scenario.seed for r in default.runs]
        flows = itertools.chain(*(run.scenario.flows for run in point.runs))
        assert {flow.segment_bytes for flow in flows} == {point.values["segment_bytes"]}


def test_a_choice_that_an_engine_refuses_is_tried_alone_only():
    document = study_document()
    document["parameters"]["sack"] = assumed(False, choices=[False, True])
    study = Study.model_validate(document)
    points = design_points(study, settings(points=8), ENGINES["ns3"])
    (alone,) = (point for point in points if point.changed == "sack")
    assert any("with SACK" in run.refusal for run in alone.runs)  # Reno is among the variants
    assert {p.values["sack"] for p in points if p.kind == SPACE_FILLING} == {False}


def row_of(holds, alone=(), default="reproduced", seeds=(), tier="reproduced"):
    """Return the row of a claim: `holds` at the space-filling points, `alone` one at a time."""
    records = [
        record(0, DEFAULT),
        *(record(n, SEED) for n in range(len(seeds))),
        *(record(n, ONE_AT_A_TIME, f"p{n}", **{f"p{n}": n}) for n in range(len(alone))),
        *(record(n, SPACE_FILLING, p0=n) for n in range(len(holds))),
    ]
    words = [default, *seeds, *alone, *holds]
    table = pd.DataFrame(records).assign(verdict=words)
    return claim_row("study", "claim", "ns3", table, tier)


def test_the_share_of_designs_counts_each_verdict():
    words = ["reproduced"] * 64
    assert row_of(words).share == 1.0
    words[:9] = ["not reproduced"] * 7 + ["not testable", "direction only"]
    row = row_of(words)
    assert (row.holds, row.designs, row.word) == (55, 63, CONDITIONAL)


@pytest.mark.parametrize(
    ("word", "shares"),
    [
        (ROBUST, [(90, 100), (35, 35)]),
        (CONDITIONAL, [(89, 100), (11, 100)]),
        (FRAGILE, [(10, 100)]),
        (TOO_FEW, [(34, 34), (0, 34)]),
        (Verdict.NOT_TESTABLE, [(0, 0)]),
    ],
)
def test_words_for_robustness_change_at_their_thresholds(word, shares):
    assert {robustness_word(*share) for share in shares} == {word}


@pytest.mark.parametrize(
    ("default", "flips"),
    [("reproduced", "p1 = 1; p2 = 2"), ("not reproduced", "p0 = 0"), ("not testable", "")],
)
def test_only_changes_between_holding_and_not_holding_are_flips(default, flips):
    alone = ["reproduced", "direction only", "not reproduced", "not testable"]
    assert row_of([], alone, default).flipped_by == flips


def test_seeds_that_disagree_are_counted_and_a_change_by_the_reduced_scale_is_marked():
    row = row_of([], seeds=["reproduced", "not reproduced"], tier="direction only")
    assert (row.seeds, row.seeds_alike, row.reduced_scale_differs) == (3, 2, True)
    assert not row_of(["reproduced"]).reduced_scale_differs


@pytest.mark.parametrize(("highest", "reached"), [(11.0, True), (9.9, False)])
def test_a_cells_range_and_whether_the_published_value_lies_in_it(highest, reached):
    assert value_range(10.0, [8.0, 9.5, highest]) == (3, 8.0, highest, reached)
    none = value_range(10.0, [])
    assert none[0] == 0 and none[3] is None
