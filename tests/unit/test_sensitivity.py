"""Sensitivity: axes, designs, shares, flips, importances and causes, on data that is known."""

import json

import numpy as np
import pandas as pd
import pytest
from replication.design.config import load_study, study_ids
from replication.explore.design_point import (
    DEFAULT,
    ONE_AT_A_TIME,
    SEED,
    SPACE_FILLING,
    Design,
    design_points,
    positions,
)
from replication.explore.robustness import (
    CONDITIONAL,
    FRAGILE,
    ROBUST,
    TOO_FEW,
    cell_rows,
    claim_rows,
    importances,
    robustness_word,
    verdicts_by_claim,
)
from replication.metrics.cell_map import map_cells
from replication.study.errors import InputError
from replication.study.parameter import Assumed
from replication.study.published import read_published
from replication.study.sensitivity_settings import load_sensitivity
from replication.study.study import Study
from replication.study.variation import Assumption, Variation, apply, check_ledger
from replication.study.verdict import Verdict
from replication.verdicts.cause import Cause, Explanations, check_explanations, load_explanations

from tests.unit.conftest import PUBLISHED, study_document
from tests.unit.sensitivity_data import ROOT, SETTINGS, cause, cells_frame, record, settings


def assumed(value, low=None, high=None, choices=None):
    span = None if low is None else (low, high)
    tag = {"reason": "r", "source": "s", "range": span, "choices": choices}
    return {"value": value, "assumed": tag}


def axis(value, **plausible):
    tag = assumed(value, **plausible)["assumed"]
    return Assumption("x", value, "", Assumed.model_validate(tag))


def studied(**parameters):
    document = study_document()
    document["parameters"] |= parameters
    return Study.model_validate(document)


# --- axes ---


def test_whole_numbers_are_drawn_alike_with_both_ends():
    drawn = [axis(2, low=1, high=4).at(u) for u in np.linspace(0, 0.999, 400)]
    assert sorted(set(drawn)) == [1, 2, 3, 4] and all(isinstance(v, int) for v in drawn)
    assert 95 <= drawn.count(1) <= 105 and 95 <= drawn.count(4) <= 105


def test_a_wide_range_is_walked_by_factors_and_a_narrow_one_by_differences():
    assert axis(20, low=10, high=1000).at(0.5) == 100
    assert axis(2.0, low=1.0, high=3.0).at(0.5) == 2.0


def test_a_value_stands_where_it_was_drawn():
    for one in (axis(1.0, low=0.0, high=4.0), axis(20, low=10, high=1000)):
        assert one.position(one.at(0.25)) == pytest.approx(0.25, abs=0.01)
    assert axis("a", choices=["a", "b", "c"]).position("c") == 1.0


@pytest.mark.parametrize(
    ("part", "value", "level"),
    [("defaults", 500, 700), ("parameters", 500, 500)],
)
def test_a_level_goes_before_a_default_and_not_before_a_parameter(part, value, level):
    document = study_document()
    first = document["experiments"][0]["factors"][0]["levels"][0]
    first["set"] = {**first["set"], "segment_bytes": 700}
    study = apply(Study.model_validate(document), Variation(**{part: {"segment_bytes": value}}))
    own = study.experiments[0].factors[0].levels[0].set
    assert own.get("segment_bytes", study.parameters["segment_bytes"].value) == level


def test_a_parameter_that_no_template_reads_is_refused():
    check_ledger(studied())
    with pytest.raises(InputError, match="'idle' is read by no template"):
        check_ledger(studied(idle={"value": 1, "published": PUBLISHED}))


# --- settings and causes ---


@pytest.mark.parametrize("name", study_ids(ROOT))
def test_the_repositorys_causes_fit_their_studies_which_have_no_dead_entries(name):
    study, found = load_study(ROOT, name), load_explanations(ROOT, name)
    check_ledger(study)
    cells = map_cells(study, read_published(ROOT / f"data/published/{name}.csv"))
    check_explanations(found, study, cells)
    # Nothing that is held out is scored at any stage.
    for stage in found.stages:
        for table, rows in stage.rows.items():
            assert not set(rows) & set(found.held_out.rows.get(table, []))


def test_wrong_settings_are_one_line(tmp_path):
    path = tmp_path / "configs" / "sensitivity.yaml"
    path.parent.mkdir()
    path.write_text(json.dumps({**SETTINGS.model_dump(mode="json"), "points": 60}))
    with pytest.raises(InputError, match=r"sensitivity.yaml.*power of two") as error:
        load_sensitivity(tmp_path)
    assert "\n" not in str(error.value)


def level(**change):
    return {"levels": [{"key": "other", **change}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (level(set={"parameters": {"nothing": 1}}), "has no parameter 'nothing'"),
        (level(set={"parameters": {"segment_bytes": 1}}), "not plausible by the ledger"),
        (level(set={"links": {"nowhere": {"rate_bps": 1.0}}}), "has a link 'nowhere'"),
        (level(reading={"metric": "delay_mean_s"}), "is in 'bit/s'"),
        (level(reading={"factor": 2.0}) | {"tables": ["9"]}, "no number stands in its tables"),
    ],
)
def test_a_cause_that_does_not_fit_is_refused(world, change, message):
    study = world.table()
    published = world.published(("slow", "throughput", "bit/s", 8e5, "0.80"))
    cells = map_cells(study, read_published(published))
    found = Explanations.model_validate(
        {
            "study": study.id,
            "score": "cells",
            "cpu_budget_s": 1.0,
            "held_out": {"rows": {"1": ["slow"]}, "reason": "a test"},
            "stages": [{"rows": {}}],
            "causes": [cause(**change)],
        }
    )
    with pytest.raises(InputError, match=message):
        check_explanations(found, study, cells)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"untestable": "no"} | level(reading={"factor": 2.0}),
        level(reading={"factor": 2.0}, set={"parameters": {"a": 1}}),
        {"range": {"low": 1, "high": 2, "steps": 4, "tried": [1]}},
    ],
)
def test_a_cause_is_of_one_kind(change):
    with pytest.raises(ValueError, match="cause a"):
        Cause.model_validate(cause(**change))


# --- designs ---


def test_runs_are_whole_and_what_the_budget_does_not_allow_are_points():
    study = studied(segment_bytes=assumed(960, 500, 1460))
    everything = design_points(study, settings(points=8), "ns3")
    assert everything.left_out == 0
    durations = {r.scenario.duration_s for p in everything.points for r in p.runs}
    cost_s = sum({r.scenario_id: r.cost_s for p in everything.points for r in p.runs}.values())
    scale = SETTINGS.of(study.id).exploration.model_copy(update={"cpu_budget_s": cost_s * 0.8})
    other = SETTINGS.of(study.id).model_copy(update={"exploration": scale})
    less = design_points(study, settings(points=8, other_studies=other.model_dump()), "ns3")
    assert 0 < less.left_out < 8
    assert {r.scenario.duration_s for p in less.points for r in p.runs} == durations
    kept = len(everything.points) - less.left_out
    assert [p.values for p in less.points] == [p.values for p in everything.points[:kept]]


def test_design_points_vary_what_they_should():
    study = studied(segment_bytes=assumed(960, 500, 1460), access_s=assumed(0.01, 0.001, 0.02))
    points = design_points(study, settings(points=8), "ns3").points
    kinds = [point.kind for point in points]
    assert kinds.count(DEFAULT) == 1
    assert kinds.count(SEED) == 4 and kinds.count(ONE_AT_A_TIME) == 4
    filled = [point for point in points if point.kind == SPACE_FILLING]
    assert len(filled) == 8 and len({str(point.values) for point in filled}) == 8
    default = next(point for point in points if point.kind == DEFAULT)
    seeds = {point.runs[0].scenario.seed for point in points if point.kind in (DEFAULT, SEED)}
    assert len(seeds) == 5 and all(run.replicate == 0 for p in points for run in p.runs)
    for point in filled:
        assert [r.scenario.seed for r in point.runs] == [r.scenario.seed for r in default.runs]
        size = point.values["segment_bytes"]
        assert {f.segment_bytes for r in point.runs for f in r.scenario.flows} == {size}


def test_a_choice_that_the_engine_refuses_is_tried_alone_and_not_in_the_space():
    study = studied(sacks=assumed(False, choices=[False, True]))
    experiment = study.experiments[0].model_dump()
    for flow in experiment["flows"]:
        flow["sack"] = "$sacks"
    study = Study.model_validate({**study.model_dump(), "experiments": [experiment]})
    points = design_points(study, settings(points=8), "ns3").points
    alone = next(point for point in points if point.changed == "sacks")
    assert any("with SACK" in run.refusal for run in alone.runs)  # Reno is among the variants
    assert {p.values["sacks"] for p in points if p.kind == SPACE_FILLING} == {False}


# --- shares, words, flips ---


def judged(holds, alone=(), default="reproduced", seeds=()):
    """Verdicts on claim c1: `holds` at the space-filling points, `alone` one at a time."""
    points = [
        record(0, DEFAULT),
        *(record(n, SEED) for n in range(len(seeds))),
        *(record(n, ONE_AT_A_TIME, f"p{n}", **{f"p{n}": n}) for n in range(len(alone))),
        *(record(n, SPACE_FILLING, p0=n) for n in range(len(holds))),
    ]
    words = [default, *seeds, *alone, *holds]
    claims = pd.DataFrame({"point": [p.id for p in points], "claim": "c1", "verdict": words})
    design = Design("synthetic", "ns3", points)
    return design, verdicts_by_claim(design, claims)


def claim_row(verdicts, tier="reproduced"):
    (row,) = claim_rows(*verdicts, {"c1": tier}, {})
    return row


def test_perturbing_verdicts_moves_the_share_by_exactly_that_much():
    words = ["reproduced"] * 64
    assert claim_row(judged(words))["share"] == 1.0
    words[:9] = ["not reproduced"] * 7 + ["not testable", "direction only"]
    row = claim_row(judged(words))
    assert (row["holds"], row["designs"], row["word"]) == (55, 63, CONDITIONAL)
    assert row["share_direction"] == pytest.approx(56 / 63)


@pytest.mark.parametrize(
    ("holds", "designs", "word"),
    [
        (90, 100, ROBUST),
        (89, 100, CONDITIONAL),
        (10, 100, FRAGILE),
        (11, 100, CONDITIONAL),
        (35, 35, ROBUST),
        (0, 35, FRAGILE),
        (34, 34, TOO_FEW),
        (0, 34, TOO_FEW),
        (9, 10, TOO_FEW),
        (0, 0, Verdict.NOT_TESTABLE),
    ],
)
def test_words_change_at_their_bounds(holds, designs, word):
    assert robustness_word(holds, designs) == word


def test_flips_are_the_changes_across_holding_and_no_others():
    alone = ["reproduced", "direction only", "not reproduced", "not testable"]
    for default, flips in (
        ("reproduced", "p1 = 1; p2 = 2"),
        ("not reproduced", "p0 = 0"),
        ("not testable", ""),
    ):
        assert claim_row(judged([], alone, default))["flipped_by"] == flips


def test_seeds_that_disagree_are_counted_and_a_change_by_the_reduced_scale_is_marked():
    row = claim_row(judged([], seeds=["reproduced", "not reproduced"]), "direction only")
    assert (row["seeds"], row["seeds_alike"], row["reduced_scale_differs"]) == (3, 2, True)
    assert not claim_row(judged(["reproduced"]))["reduced_scale_differs"]


# --- cells ---


def test_a_cells_range_and_whether_the_published_value_lies_in_it():
    points = [record(0, DEFAULT), record(0, SPACE_FILLING), record(1, SPACE_FILLING)]
    rows = [
        (DEFAULT, "a", 8.0, False, "not reproduced"),
        ("space filling-0", "a", 9.5, True, "reproduced"),
        ("space filling-1", "a", 11.0, False, "not reproduced"),
    ]
    design = Design("synthetic", "ns3", points)
    (row,) = cell_rows(design, cells_frame(rows), {})
    assert (row["lowest"], row["highest"], row["published_in_range"]) == (8.0, 11.0, True)
    assert row["share_inside"] == 0.5 and row["default"] == 8.0
    rows[2] = (*rows[2][:2], 9.9, False, "not reproduced")
    (row,) = cell_rows(design, cells_frame(rows), {})
    assert not row["published_in_range"]


# --- importance ---


def test_the_one_parameter_that_matters_is_found_important():
    matrix = positions(6, SETTINGS)
    outcome = (matrix[:, 2] > 0.5).astype(float)
    found = importances(matrix, outcome, list("abcdef"), 1)
    assert found.r2 > 0.5 and found.important[0] == "c"
    assert max(found.mean, key=found.mean.get) == "c"


@pytest.mark.parametrize("seed", [3, 4])
def test_chance_makes_nothing_important(seed):
    matrix = positions(6, SETTINGS)
    outcome = np.random.default_rng(seed).integers(0, 2, 64).astype(float)
    assert importances(matrix, outcome, list("abcdef"), 1).important == []
