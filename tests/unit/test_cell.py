"""Cells: mapping, and verdicts that flip where the tolerance ends."""

import math

import pandas as pd
import pytest
from replication.design.config import load_study
from replication.metrics.cell_map import MappedCell
from replication.metrics.statistic import Estimate, estimate
from replication.study.claim_model import Quantity
from replication.study.errors import InputError
from replication.study.published import Cell
from replication.study.verdict import ReasonCode
from replication.verdicts.bound import shortest_duration_s
from replication.verdicts.cell import evaluate_cells, judge_cell, replicate_means
from replication.verdicts.sample import Coverage

from tests.unit.conftest import ROOT, quantity, tolerance

SLOW = ("slow", "throughput", "bit/s", 800e3, "800.0")  # printed in kbit/s: half a digit is 50


def mapped(value=800e3, half_ulp=50.0, **tolerance):
    kind = {"reason": "r", **(tolerance or {"relative": 0.1})}
    cell = Cell(metric="throughput_bps", tolerance=kind)
    wanted = Quantity(experiment="sweep", metric="throughput_bps")
    names = ("1", "slow", "throughput", "Slow", "Throughput", "bit/s")
    return MappedCell(*names, value, half_ulp, "800.0", cell, wanted)


def verdict(cell, mean):
    return judge_cell("synthetic", cell, "ns3", estimate([mean])).verdict


# -- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "mean", "expected"),
    [
        # A tenth and half the last digit.
        ({}, 880e3 + 49, "reproduced"),
        ({}, 880e3 + 51, "not reproduced"),
        ({}, 720e3 - 49, "reproduced"),
        ({}, 720e3 - 51, "not reproduced"),
        ({"relative": 0.06}, 840e3, "reproduced"),
        ({"relative": 0.04}, 840e3, "not reproduced"),
        # An absolute tolerance is in the unit of the value.
        ({"absolute": 41e3}, 840e3, "reproduced"),
        ({"absolute": 39e3}, 840e3, "not reproduced"),
        # A coarsely printed value is judged more leniently.
        ({"half_ulp": 500}, 880e3 + 400, "reproduced"),
        ({"half_ulp": 5}, 880e3 + 400, "not reproduced"),
        # Of a negative value it is as wide.
        ({"value": -800e3}, -880e3 - 49, "reproduced"),
        ({"value": -800e3}, -720e3 + 51, "not reproduced"),
    ],
)
def test_a_perturbed_result_or_tolerance_flips_the_verdict(changes, mean, expected):
    assert verdict(mapped(**changes), mean) == expected


def test_the_interval_does_not_decide_a_cell_but_is_given():
    row = judge_cell("s", mapped(), "ns3", Estimate(800e3, 100e3, 1500e3, 3))
    assert row.verdict == "reproduced"
    assert (row.reproduced_low, row.reproduced_high, row.n) == (100e3, 1500e3, 3)


def test_a_number_of_another_thing_is_not_testable_however_close(world):
    study = world.table(not_comparable={"slow": {"throughput": "The sender's count."}})
    (row,) = world.judge_cells(study, SLOW)
    assert row.verdict == "not testable"
    assert "The sender's count." in row.reason
    assert row.reason_code == ReasonCode.PAPER_GIVES_TOO_LITTLE


def test_the_interval_of_an_index_of_fairness_ends_at_one(world):
    cell = {"metric": "throughput_bps", "aggregate": "jain", "tolerance": tolerance(0.1)}
    uneven = lambda replicate, flow, **_: {  # noqa: E731
        "throughput_bps": 4e5 if replicate and flow == "tcp2" else 1e5
    }
    study, printed = world.table({"jain": cell}), ("slow", "jain", "1", 0.9, "0.9")
    (row,) = world.judge_cells(study, printed, flows=uneven)
    assert (row.n, row.reproduced_high) == (3, 1.0) and row.reproduced_mean < 1
    test = {"kind": "value", "of": quantity(variant="reno") | {"aggregate": "jain"}}
    assert world.judge(test | {"expect": {"at_least": 0.5}}, flows=uneven).high == 1.0


def test_an_impossible_value_is_impossible_however_close(world):
    study, flows = world.table(), lambda **_: {"throughput_bps": 400e3}
    cells, ran = world.mapped(study, SLOW), world.results(study, flows=flows)
    (row,) = evaluate_cells(cells, Coverage.of_all(study, ran), {cells[0].key: "Beyond the link."})
    assert row.reproduced_mean == 800e3
    assert row.verdict == "impossible" and not row.reason_code


def test_a_number_of_one_run_is_not_judged_by_a_mean(world):
    one_run = {"metric": "throughput_bps", "tolerance": {"factor": 1.5, "reason": "r"}}
    (row,) = world.judge_cells(world.table({"throughput": one_run}), SLOW)
    assert (row.verdict, row.reason_code) == ("not testable", ReasonCode.TOO_FEW_RUNS)


def test_a_published_zero_has_no_relative_deviation():
    row = judge_cell("s", mapped(0.0, 0.5, absolute=2.0), "ns3", estimate([1.0]))
    assert math.isnan(row.relative_deviation) and row.verdict == "reproduced"


@pytest.mark.parametrize(
    ("replicates", "verdict"), [(3, "reproduced"), (2, "not testable"), (4, "not reproduced")]
)
def test_a_printed_standard_deviation_is_held_against_that_of_the_runs(world, replicates, verdict):
    tight = tolerance(0.1)
    cell = {"metric": "throughput_bps", "aggregate": "sum", "over_runs": "standard_deviation"}
    study = world.table({"throughput": {**cell, "tolerance": tight}})
    rates = [1e5, 3e5, 5e5, 90e5]
    published = ("slow", "throughput", "bit/s", 4e5, "0.40")  # two flows: 2e5, 6e5 and 10e5
    flows = {"flows": lambda replicate, **_: {"throughput_bps": rates[replicate]}}
    (row,) = world.judge_cells(study, published, **flows, replicates=replicates)
    assert row.verdict == verdict and row.quantities == []
    if replicates == 3:
        assert row.reproduced_mean == pytest.approx(4e5)
        # sqrt(2 / 7.378) and sqrt(2 / 0.05064), chi-square with two degrees of freedom
        assert row.reproduced_low == pytest.approx(0.5207 * 4e5, rel=1e-3)
        assert row.reproduced_high == pytest.approx(6.2847 * 4e5, rel=1e-3)
    if replicates == 2:
        assert "takes 3 replicates" in row.reason
        assert row.reason_code == ReasonCode.TOO_FEW_RUNS


@pytest.mark.parametrize(
    ("published", "printed", "verdict"),
    # Five published runs with a deviation of 1e5, and three of ours with a mean of 8e5: the band is
    # 2.7764 (Student's t, four degrees of freedom) * 1e5 * sqrt(1/5 + 1/3) = 202.76e3, and 50.
    [
        (8e5 + 202.7e3, True, "reproduced"),
        (8e5 + 202.9e3, True, "not reproduced"),
        (8e5, False, "not testable"),
    ],
)
def test_a_printed_standard_deviation_judges_its_own_mean(world, published, printed, verdict):
    rate = {"metric": "throughput_bps", "aggregate": "sum"}
    spread = {"spread": {"column": "deviation", "runs": 5}, "reason": "printed"}
    columns = {
        "throughput": {**rate, "tolerance": spread},
        "deviation": {**rate, "over_runs": "standard_deviation", "tolerance": tolerance(0.1)},
    }
    numbers = [("slow", "throughput", "bit/s", published, f"{published / 1e6:.4f}")]
    numbers += [("slow", "deviation", "bit/s", 1e5, "0.10")] if printed else []
    rates = [3e5, 4e5, 5e5]
    flows = {"flows": lambda replicate, **_: {"throughput_bps": rates[replicate]}}
    rows = world.judge_cells(world.table(columns), *numbers, **flows, replicates=3)
    assert rows[0].verdict == verdict
    assert ("of 5 published runs and our 3" in rows[0].reason) == printed
    columns["throughput"]["tolerance"]["spread"]["column"] = "throughput"
    with pytest.raises(ValueError, match="has no standard deviations"):
        world.table(columns)


@pytest.mark.parametrize(("factor", "verdict"), [(8, "reproduced"), (1, "not reproduced")])
def test_a_column_in_another_unit_is_judged_in_the_metrics(world, factor, verdict):
    cell = {"metric": "throughput_bps", "aggregate": "sum", "factor": factor}
    study = world.table({"throughput": {**cell, "tolerance": {"relative": 0.001, "reason": "r"}}})
    published = ("slow", "throughput", "bit/s", 1e5, "100.0")  # bytes: 800000 bit/s +- 400
    (row,) = world.judge_cells(study, published, flows=lambda **_: {"throughput_bps": 400.5e3})
    assert row.verdict == verdict
    assert row.published == factor * 1e5
    assert row.published_half_ulp == pytest.approx(factor * 50)


def values(*rows):
    return pd.DataFrame(rows, columns=["replicate", "access", "value"])


def test_a_replicate_without_all_of_a_cells_points_does_not_count():
    whole = [(0, "slow", 1.0), (0, "fast", 3.0), (1, "slow", 5.0), (1, "fast", 7.0)]
    assert replicate_means(values(*whole)).to_dict() == {0: 2.0, 1: 6.0}
    assert replicate_means(values(*whole[:3])).to_dict() == {0: 2.0}
    assert replicate_means(values(*whole[:3], (1, "fast", math.nan))).to_dict() == {0: 2.0}
    assert replicate_means(values((0, "slow", 1.0), (1, "fast", 3.0))).empty


# -- from runs to rows ----------------------------------------------------------------------------


def test_rows_can_be_flows_and_columns_levels(world):
    cell = {"metric": "throughput_bps", "tolerance": tolerance(0.1)}
    rows = {"one": {"where": {}, "flows": ["tcp1"]}, "two": {"where": {}, "flows": ["tcp2"]}}
    shape = {"row_factor": None, "rows": rows, "columns": None, "column_factor": "variant"}
    study = world.table(where={"access": "slow"}, cell=cell, **shape)
    found = world.judge_cells(
        study,
        ("one", "vegas", "bit/s", 1e5, "100"),
        ("two", "vegas", "bit/s", 1e5, "100"),
        flows=lambda flow, variant, **_: {
            "throughput_bps": (1e5 if flow == "tcp1" else 2e5) * (variant == "vegas")
        },
    )
    assert [row.reproduced_mean for row in found] == [1e5, 2e5]
    assert [row.verdict for row in found] == ["reproduced", "not reproduced"]


def test_a_column_can_have_a_tolerance_of_its_own(world):
    cell = {"metric": "throughput_bps", "tolerance": tolerance(0.1)}
    shape = {"columns": None, "column_factor": "variant", "cell": cell}
    study = world.table(where={}, **shape, tolerances={"vegas": tolerance(0.5)})
    numbers = [("slow", name, "bit/s", 1e5, "100") for name in ("reno", "vegas")]
    found = world.judge_cells(study, *numbers, flows=lambda **_: {"throughput_bps": 1.4e5})
    assert [row.verdict for row in found] == ["not reproduced", "reproduced"]
    with pytest.raises(ValueError, match="tolerances: column: 'vega' is unknown"):
        world.table(where={}, **shape, tolerances={"vega": tolerance(0.5)})


LACKS = ReasonCode.ENGINE_LACKS_IT


@pytest.mark.parametrize(
    ("what", "given", "code", "said"),
    [
        ("runs", lambda levels: levels["access"] == "mid", ReasonCode.TOO_FEW_RUNS, "leaves out 1"),
        ("refusal", lambda engine, levels: "no such queue", LACKS, "no such queue"),
        ("flows", lambda access, **_: None if access == "slow" else {}, LACKS, "3 of 3 runs have"),
    ],
)
def test_what_has_no_run_is_not_testable(world, what, given, code, said):
    (row,) = world.judge_cells(world.table(), SLOW, **{what: given})
    assert (row.verdict, row.reason_code, row.n) == ("not testable", code, 0)
    assert said in row.reason


@pytest.mark.parametrize(
    ("metric", "unit", "expected"),
    [("retransmissions", "packets", "not testable"), ("loss_rate", "1", "reproduced")],
)
def test_a_count_of_a_shorter_run_decides_nothing(world, metric, unit, expected):
    cell = {"metric": metric, "tolerance": {"absolute": 100, "reason": "r"}}
    published = ("slow", "count", unit, 8, "8")
    (row,) = world.judge_cells(world.table({"count": cell}), published, duration_s=4.0)
    assert row.verdict == expected
    (row,) = world.judge_cells(world.table({"count": cell}), published)
    assert row.verdict == "reproduced"


def test_a_replicate_that_drew_a_shorter_run_is_whole():
    # kapadia's flows last 0.14 to 0.83 s longer than 60 s, as the raw samples show, from 0.01 s on.
    trios = Quantity(experiment="trios", metric="throughput_bps")
    assert shortest_duration_s(load_study(ROOT, "kapadia"), trios) == pytest.approx(60.15)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            ("slower", *SLOW[1:]),
            "row slower, column throughput: row: 'slower' is unknown.*mid, slow",
        ),
        (("slow", "throughput", "s", 1, "1"), "the number is in 's', metric throughput_bps in"),
    ],
)
def test_a_number_that_maps_to_nothing_is_named(world, row, message):
    with pytest.raises(InputError, match=message):
        world.mapped(world.table(), row)
