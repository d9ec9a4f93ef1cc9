"""What varies: seeds, assumptions and engines beside each other."""

import pandas as pd
import pytest
from replication.judge.evaluate import QUANTITY_COLUMNS
from replication.sensitivity.design import SensitivityDesign
from replication.sensitivity.design_point import DEFAULT, ONE_AT_A_TIME
from replication.sensitivity.spread import spread_table
from replication.study.files import write_text

from tests.unit.sensitivity_data import record

DESIGN = SensitivityDesign(
    "nishitha", "ns2", 1.0, [record(0, DEFAULT), record(1, ONE_AT_A_TIME, "mss_bytes")]
)


def judged(point, value, metric="throughput_bps"):
    row = {"point": point, "experiment": "homogeneous", "levels": "{}", "engine": "ns2"}
    return row | {"flow": "tcp", "metric": metric, "value": value}


def quantity(engine, mean, metric="throughput_bps"):
    known = {"experiment": "homogeneous", "point": "variant=reno", "levels": "{}", "flow": "tcp"}
    row = dict.fromkeys(QUANTITY_COLUMNS, "x") | known
    return row | {"engine": engine, "metric": metric, "mean": mean}


def changes(rows, evaluation):
    table = spread_table(DESIGN, pd.DataFrame(rows), evaluation)
    return {(row["source"], row["metric"]): row["change"] for row in table}


def test_changes_are_relative_and_those_of_ratios_differences(tmp_path):
    rows = [judged(DEFAULT, 100.0), judged("one at a time-1", 150.0)]
    rows += [judged(DEFAULT, 0.0, "loss_rate"), judged("one at a time-1", 0.25, "loss_rate")]
    found = changes(rows, tmp_path)
    assert found == {
        ("one assumption", "throughput_bps"): pytest.approx(0.5),
        ("one assumption", "loss_rate"): pytest.approx(0.25),
    }


def test_other_engines_are_compared_with_the_explored_one_in_the_tiers_own_table(tmp_path):
    table = pd.DataFrame([quantity("ns2", 100.0), quantity("ns3", 90.0)])
    write_text(tmp_path / "quantities.csv", table.to_csv(index=False))
    found = changes([judged(DEFAULT, 7.0)], tmp_path)
    assert found == {("other engines", "throughput_bps"): pytest.approx(-0.1)}
