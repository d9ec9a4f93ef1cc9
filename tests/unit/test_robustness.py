"""What varies, by its source, and what is said of a claim over all designs."""

import pandas as pd
import pytest
from replication.explore.design_point import DEFAULT, ONE_AT_A_TIME, Design
from replication.explore.robustness import claim_sentence
from replication.explore.study import spread_rows
from replication.study.claim_model import Claim
from replication.study.files import write_text
from replication.study.sensitivity_settings import Scale
from replication.verdicts.evaluate import QUANTITY_COLUMNS

from tests.unit.sensitivity_data import record

DESIGN = Design("nishitha", "ns2", [record(0, DEFAULT), record(1, ONE_AT_A_TIME, "mss_bytes")])


def judged(point, **values):
    row = {"point": point, "experiment": "homogeneous", "levels": "{}", "engine": "ns2"}
    return [row | {"flow": "tcp", "metric": name, "value": x} for name, x in values.items()]


def quantity(engine, mean):
    known = {"experiment": "homogeneous", "point": "variant=reno", "levels": "{}", "flow": "tcp"}
    own = {"engine": engine, "metric": "throughput_bps", "mean": mean}
    return dict.fromkeys(QUANTITY_COLUMNS, "x") | known | own


def changes(rows, evaluation):
    table = spread_rows(DESIGN, pd.DataFrame(rows), evaluation)
    return {(row["source"], row["metric"]): row["change"] for row in table}


def test_changes_are_relative_and_those_of_ratios_differences(tmp_path):
    rows = judged(DEFAULT, throughput_bps=100.0, loss_rate=0.0)
    rows += judged("one at a time-1", throughput_bps=150.0, loss_rate=0.25)
    assert changes(rows, tmp_path) == {
        ("one assumption", "throughput_bps"): pytest.approx(0.5),
        ("one assumption", "loss_rate"): pytest.approx(0.25),
    }


def test_other_engines_are_compared_with_the_explored_one_in_the_tiers_own_table(tmp_path):
    table = pd.DataFrame([quantity("ns2", 100.0), quantity("ns3", 90.0)])
    write_text(tmp_path / "quantities.csv", table.to_csv(index=False))
    found = changes(judged(DEFAULT, throughput_bps=7.0), tmp_path)
    assert found == {("other engines", "throughput_bps"): pytest.approx(-0.1)}


# --- sentences ---

SCALE = Scale(levels="quick", cpu_budget_s=1.0, reason="r")
VALUE = {
    "kind": "value",
    "of": {"experiment": "sweep", "metric": "throughput_bps"},
    "reduce": "mean",
    "expect": {"at_least": 1.0},
}
ROW = {
    **{"verdict_tier": "not reproduced", "verdict_default": "not reproduced"},
    **{"designs": "64", "holds": "3", "share": "0.046875", "low": "0.016", "high": "0.13"},
    **{"word": "fragile", "tested_alone": "28", "flipped_by": "", "important": "", "r2": ""},
    **{"seeds": "5", "seeds_alike": "5", "reduced_scale_differs": "false"},
}


def sentence(scale=SCALE, test=None, **row):
    claim = {"id": "c1", "quote": "q", "place": "p", "reading": "r", "test": test or VALUE}
    return claim_sentence(ROW | row, Claim.model_validate(claim), scale)


def test_a_claims_sentence_says_what_its_row_says():
    said = sentence(seeds_alike="3")
    assert "Holds in 3 of 64 designs (5 %, interval 2 % to 13 %)." in said
    assert "None of the 28 single changes makes it hold." in said and "3 of 5 seeds" in said
    flipped = sentence(verdict_default="reproduced", flipped_by="window = 5")
    assert "Fails by one change alone: window = 5." in flipped


def test_a_claim_that_nothing_decides_says_why():
    nothing = {"designs": "0", "tested_alone": "0", "word": "not testable"}
    assert "at the reduced scale" in sentence(**nothing)
    elsewhere = SCALE.model_copy(update={"experiments": ["another"]})
    assert sentence(elsewhere, **nothing).startswith("Not explored: experiment sweep")
    untestable = {"kind": "not_testable", "reason": "The paper says nothing."}
    assert sentence(test=untestable, **nothing).endswith("The paper says nothing.")
