"""Every gap is explained, or what was tested and rejected is listed; without either it says so."""

import pandas as pd
import pytest
from replication.sensitivity.explanation import cell_gaps, claim_sentence
from replication.sensitivity.robustness_rows import RobustnessRows
from replication.study.claim_model import Claim
from replication.study.sensitivity_settings import Scale

SCALE = Scale(levels="quick", cpu_budget_s=1.0, reason="r")
VALUE = {
    "kind": "value",
    "of": {"experiment": "sweep", "metric": "throughput_bps"},
    "reduce": "mean",
    "expect": {"at_least": 1.0},
}
ROW = {
    "claim": "c1",
    "verdict_tier": "not reproduced",
    "verdict_default": "not reproduced",
    "reduced_scale_differs": "false",
    "seeds": "5",
    "seeds_alike": "5",
    "designs": "64",
    "holds": "3",
    "share": "0.046875",
    "low": "0.016",
    "high": "0.13",
    "word": "fragile",
    "tested_alone": "28",
    "flipped_by": "",
    "important": "",
    "r2": "",
}
CELL = {
    "table": "1",
    "row": "a",
    "column": "x",
    "inside_before": "false",
    "impossible": "false",
    "explained_by": "",
    "rejected": "",
}


def rows(*cells):
    reached = {
        **{key: CELL[key] for key in ("table", "row", "column")},
        "unit": "s",
        "published": "10",
        "lowest": "2",
        "highest": "8",
        "published_in_range": "false",
        "share_inside": "0",
    }
    titles = [{"hypothesis": name, "title": f"Title of {name}"} for name in ("h1", "h2")]
    return RobustnessRows(
        study="synthetic",
        points=[],
        claims=[],
        cells=[reached],
        effects=[],
        hypotheses=titles,
        explained=[CELL | cell for cell in cells],
        fits=[],
        spread=pd.DataFrame(),
    )


def gap(**cell):
    (found,) = cell_gaps(rows(cell))
    return found


# --- numbers ---


def test_a_number_has_what_brings_it_inside_as_its_cause_and_the_rest_as_evidence():
    found = gap(explained_by="h1", rejected="h2")
    assert found.settled and found.cause == "brought inside by: title of h1"
    assert found.evidence.startswith("2 hypotheses tested, 1 rejected: h2.")
    assert "outside the range of all designs (2 to 8 s, 0 % of designs inside)" in found.evidence


def test_a_number_without_a_cause_lists_what_was_rejected():
    found = gap(rejected="h1; h2")
    assert found.settled and found.cause == "none found"
    assert "2 rejected: h1, h2" in found.evidence


def test_an_impossible_number_is_its_own_cause():
    assert "impossible" in gap(impossible="true", rejected="h1").cause
    # It is listed even where ours happens to lie inside.
    assert cell_gaps(rows({"inside_before": "true", "impossible": "true"}))


def test_a_number_that_nothing_decides_is_not_settled():
    found = gap(inside_before="")
    assert not found.settled and found.cause == "no hypothesis decides it"


def test_a_number_inside_tolerance_is_no_gap():
    assert cell_gaps(rows({"inside_before": "true"})) == []


# --- claims ---


def sentence(scale=SCALE, test=None, **row):
    claim = {"id": "c1", "quote": "q", "place": "p", "reading": "r", "test": test or VALUE}
    return claim_sentence(ROW | row, Claim.model_validate(claim), scale)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"flipped_by": "window = 5"}, "Made to hold by one change alone: window = 5."),
        ({}, "Tested and rejected: none of 28 single changes"),
        ({"verdict_default": "reproduced"}, "None of 28 single changes makes it fail."),
        (
            {"verdict_default": "reproduced", "flipped_by": "window = 5"},
            "Fails by one change alone: window = 5.",
        ),
        ({}, "Holds in 3 of 64 designs (5 %, interval 2 % to 13 %)."),
        ({"word": "too few designs", "designs": "20"}, "none of the words is given"),
        ({"reduced_scale_differs": "true"}, "Reduced scale differs: not reproduced there"),
        ({"seeds_alike": "3"}, "3 of 5 seeds agree"),
    ],
)
def test_a_claims_sentence_says_what_its_row_says(row, words):
    assert words in sentence(**row)


def test_a_claim_that_nothing_decides_says_why():
    nothing = {"designs": "0", "tested_alone": "0", "word": "not testable"}
    assert sentence(**nothing).startswith("Not testable at the reduced scale")
    elsewhere = SCALE.model_copy(update={"experiments": ["another"]})
    assert sentence(elsewhere, **nothing).startswith("Not explored: experiment")
    untestable = {"kind": "not_testable", "reason": "The paper says nothing."}
    assert sentence(test=untestable, **nothing) == (
        "Not testable at any scale: The paper says nothing."
    )
