"""What is said of a claim over all designs is what its row says."""

import pytest
from replication.sensitivity.claim_sentence import claim_sentence
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
