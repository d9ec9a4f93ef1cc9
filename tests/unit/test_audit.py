"""Audit: planted impossible numbers are found, possible ones are not accused."""

import math

import pytest
from replication.design.config import load_study
from replication.metrics.cell_map import map_cells
from replication.study.published import read_published
from replication.study.scenario import Scenario
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.audit import (
    CONSISTENT,
    SUSPICIOUS,
    audit_study,
    check_decimals,
    expected_groups,
)
from replication.verdicts.bound import StatedPoint

from tests.unit.conftest import ROOT, minimal_scenario, tolerance

# The synthetic path: 10 ms access, 50 ms bottleneck, 10 ms access; 1000 bytes at 10, 1, 10 Mbit/s.
LINK_BPS = 1e6


def cell(metric, aggregate="mean", **changes):
    return {"metric": metric, "aggregate": aggregate, "tolerance": tolerance(0.1), **changes}


def throughputs(printed, column="throughput"):
    rows = zip(("slow", "mid", "fast"), printed, strict=True)
    return [(row, column, "bit/s", float(text) * 1e3, text) for row, text in rows]


def audit(world, study, *published):
    return audit_study(study, world.mapped(study, *published))


def findings_on(world, cell_, value, printed=None, unit=None, study=None):
    """The findings on one value in the row `slow`, by check."""
    units = {"delay": "s", "rtt": "s", "throughput": "bit/s", "goodput": "bit/s"}
    unit = unit or units.get(cell_["metric"].split("_")[0], "1")
    study = study or world.table({"x": cell_})
    findings = audit(world, study, ("slow", "x", unit, value, printed or repr(float(value))))
    return {finding.check: finding.finding for finding in findings}


# -- delay ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("delay_mean_s", 0.069, Verdict.IMPOSSIBLE),
        ("delay_mean_s", 0.0, Verdict.IMPOSSIBLE),
        ("delay_mean_s", 0.07, SUSPICIOUS),  # what is printed may be rounded down
        ("delay_mean_s", 0.075, SUSPICIOUS),  # the packet size is an assumption
        ("delay_mean_s", 0.0797, CONSISTENT),
        ("rtt_mean_s", 0.139, Verdict.IMPOSSIBLE),  # a round trip goes there and back
        ("rtt_mean_s", 0.160, CONSISTENT),
    ],
)
def test_a_delay_below_propagation_is_impossible_and_below_transmission_suspicious(
    world, metric, value, expected
):
    assert findings_on(world, cell(metric), value)["propagation"] == expected


@pytest.mark.parametrize(
    ("metric", "assumed", "span", "values"),
    [
        # Only the bottleneck's 50 ms of delay are certain.
        ("delay_mean_s", "access_s", [0, 0.1], (0.060, 0.049)),
        # Only the access links' rate of 10 Mbit/s is certain.
        ("throughput_bps", "bottleneck_bps", [1e5, 1e9], (2e6, 11e6)),
    ],
)
def test_only_published_parameters_make_a_value_impossible(world, metric, assumed, span, values):
    document = world.table({"x": cell(metric)}).model_dump()
    tag = {"reason": "r", "source": "s", "range": span}
    document["parameters"][assumed] |= {"published": None, "assumed": tag}
    study = Study.model_validate(document)
    bound = "propagation" if metric == "delay_mean_s" else "capacity"
    findings = [findings_on(world, cell(metric), value, study=study)[bound] for value in values]
    assert findings == [SUSPICIOUS, Verdict.IMPOSSIBLE]


# -- throughput -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "bound"), [("sum", 1.0), ("maximum", 1.0), ("mean", 0.5), ("minimum", 0.5)]
)
def test_a_throughput_above_the_link_is_impossible_and_one_below_is_not(world, aggregate, bound):
    for share in (0.01, 0.999, 1.0, 1.002, 30):
        value = share * bound * LINK_BPS
        expected = CONSISTENT if share <= 1 else Verdict.IMPOSSIBLE
        assert findings_on(world, cell("throughput_bps", aggregate), value)["capacity"] == expected


def sums(world, first, second, two="tcp2", times=({}, {})):
    columns = {name: cell("goodput_bps", flows=[f]) for name, f in (("one", "tcp1"), ("two", two))}
    document = world.table(columns).model_dump()
    for flow, time in zip(document["experiments"][0]["flows"], times, strict=True):
        flow |= time
    rows = [
        ("slow", "one", "bit/s", first * 1e3, f"~{first} kbps"),
        ("slow", "two", "bit/s", second * 1e3, f"~{second} Kbps"),
    ]
    findings = audit(world, Study.model_validate(document), *rows)
    return [finding for finding in findings if finding.check == "capacity_sum"]


def test_a_sum_of_flows_above_the_link_is_impossible(world):
    (finding,) = sums(world, 121, 957)
    assert finding.finding == Verdict.IMPOSSIBLE
    assert (finding.row, finding.column) == ("slow", "one+two")
    assert finding.published == 1078e3 and finding.bound == pytest.approx(1e6)
    # Rounding speaks for the paper: 499.5 and 500.5 fill the link.
    assert sums(world, 500, 501)[0].finding == CONSISTENT
    assert sums(world, 500, 502)[0].finding == Verdict.IMPOSSIBLE
    # The same flow twice is no sum, and flows one after the other have the link to themselves.
    assert sums(world, 600, 600, two="tcp1") == []
    (finding,) = sums(world, 900, 900, times=({"stop_s": 5.0}, {"start_s": 5.0}))
    assert finding.finding == CONSISTENT


# -- ranges and counts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "value", "printed", "expected"),
    [
        (cell("delivery_ratio", "pooled"), 1.002, "1.002", Verdict.IMPOSSIBLE),
        (cell("delivery_ratio", "pooled"), 1.0, "1.000", CONSISTENT),
        (cell("loss_rate"), -0.01, "-0.01", Verdict.IMPOSSIBLE),
        (cell("jain_mean"), 0.4, "0.4", Verdict.IMPOSSIBLE),  # of two flows: at least a half
        (cell("retransmissions", "jain"), 0.5, "0.5", CONSISTENT),
    ],
)
def test_a_value_outside_the_range_of_its_metric_is_impossible(
    world, wanted, value, printed, expected
):
    assert findings_on(world, wanted, value, printed)["range"] == expected


@pytest.mark.parametrize(
    ("aggregate", "value", "printed", "expected"),
    [
        ("sum", 97, "97", CONSISTENT),
        ("sum", 97.4, "97.4", SUSPICIOUS),
        ("mean", 97.5, "97.5", CONSISTENT),  # of two flows
        ("mean", 97.3, "97.3", SUSPICIOUS),
    ],
)
def test_a_count_that_is_not_whole_is_suspicious(world, aggregate, value, printed, expected):
    counted = cell("retransmissions", aggregate)
    findings = findings_on(world, counted, value, printed, unit="packets")
    assert findings["whole_number"] == expected


@pytest.mark.parametrize("repetitions", [None, "Means over 51 runs; no spread is printed."])
def test_a_count_may_be_a_mean_over_runs_if_the_paper_says_so(world, repetitions):
    document = world.table({"x": cell("retransmissions", "sum")}).model_dump()
    document["original_system"]["repetitions"] = repetitions
    rows = audit(world, Study.model_validate(document), ("slow", "x", "packets", 8.25, "8.25"))
    (whole,) = [row for row in rows if row.check == "whole_number"]
    assert whole.finding == (CONSISTENT if repetitions else SUSPICIOUS)
    assert repetitions is None or repetitions in whole.reason


# -- repetitions ----------------------------------------------------------------------------------


def repeated(world, values, study=None, check="repeated_in_column"):
    study = study or world.table({"x": cell("throughput_bps", "sum")})
    rows = throughputs(values, "x")
    return {f.row: f.finding for f in audit(world, study, *rows) if f.check == check}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["802.13", "870.35", "802.13"], {"slow": SUSPICIOUS, "fast": SUSPICIOUS}),
        (["802.13", "870.35", "802.14"], {}),
        # Few digits repeat by chance.
        (["802", "870", "802"], {"slow": CONSISTENT, "fast": CONSISTENT}),
        # Four digits, but only nine values lie between the largest and the smallest.
        (["802.1", "802.9", "802.1"], {"slow": CONSISTENT, "fast": CONSISTENT}),
    ],
)
def test_digits_repeated_at_different_settings_are_suspicious(world, values, expected):
    assert repeated(world, values) == expected


def test_digits_repeated_at_the_same_setting_are_consistent(world):
    twice = {"a": {"where": {"access": "slow"}}, "b": {"where": {"access": "slow"}}}
    study = world.table({"x": cell("throughput_bps", "sum")}, row_factor=None, rows=twice)
    rows = [(row, "x", "bit/s", 802130, "802.13") for row in ("a", "b")]
    assert not [f for f in audit(world, study, *rows) if f.check == "repeated_in_column"]


def test_delivery_ratios_of_lossless_runs_may_repeat(world):
    study = world.table({"x": cell("delivery_ratio", "pooled")})
    rows = [(row, "x", "1", 1.0, "1.000000") for row in ("slow", "mid")]
    assert "repeated_in_column" not in {f.check for f in audit(world, study, *rows)}


def variants(world, reno, vegas):
    """Two measures of two algorithms at one point."""
    rows = {key: {"where": {"variant": key, "access": "slow"}} for key in ("reno", "vegas")}
    columns = {"rate": cell("throughput_bps", "sum"), "delay": cell("delay_mean_s")}
    study = world.table(columns, where={}, row_factor=None, rows=rows)
    published = []
    for row, (rate, delay) in (("reno", reno), ("vegas", vegas)):
        published.append((row, "rate", "bit/s", float(rate) * 1e3, rate))
        published.append((row, "delay", "s", float(delay) * 1e-3, delay))
    findings = audit(world, study, *published)
    return {(f.row, f.column): f.finding for f in findings if f.check == "repeated_in_column"}


def test_two_algorithms_with_all_numbers_equal_are_consistent(world):
    findings = variants(world, ("802.13", "122.144"), ("802.13", "122.144"))
    assert set(findings.values()) == {CONSISTENT} and len(findings) == 4
    findings = variants(world, ("802.13", "122.144"), ("802.13", "121.9"))
    assert findings == {("reno", "rate"): SUSPICIOUS, ("vegas", "rate"): SUSPICIOUS}


@pytest.mark.parametrize(
    ("trend", "values", "broken"),
    [
        ("increasing", ["1.0", "2.0", "3.0"], set()),
        ("increasing", ["1.0", "3.0", "2.0"], {"fast"}),
        ("decreasing", ["1.0", "2.0", "1.0"], {"mid"}),
        ("increasing", ["1.0", "1.0", "1.0"], set()),  # equal digits may hide a rise
    ],
)
def test_a_number_against_the_declared_trend_is_suspicious(world, trend, values, broken):
    study = world.table({"x": cell("throughput_bps", "sum", monotonic=trend)})
    findings = repeated(world, values, study, check="monotonic")
    assert {row for row, finding in findings.items() if finding == SUSPICIOUS} == broken
    assert set(findings) == {"mid", "fast"}


def test_a_token_bucket_bounds_the_rate_by_tokens_and_the_delay_by_its_line_rate():
    document = minimal_scenario()  # packets of 500 bytes for 1 s over 1 Mbit/s and 10 ms
    shaper = {"kind": "token_bucket", "burst_bytes": 2000, "line_rate_bps": 1e8}
    document["links"][0]["shaper_ab"] = shaper
    scenario = Scenario.model_validate(document)
    point = StatedPoint(scenario, {("ab", "rate_bps"), ("ab", "delay_s")})
    flow = scenario.flows[0]
    assert point.delay_s(flow, strict=False) == pytest.approx(0.01 + 8 * 500 / 1e8)
    # 125000 bytes of tokens, the burst, and one packet on credit.
    assert point.rate_bps(flow, strict=True) == pytest.approx(8 * (125_000 + 2000 + 500))
    assert point.total_rate_bps([flow], strict=False) == point.rate_bps(flow, strict=True)


def test_bounds_of_a_changing_link_use_its_highest_rate_and_lowest_delay():
    document = minimal_scenario()
    changes = [{"at_s": 0.5, "rate_bps": 3e6, "delay_s": 0.05}, {"at_s": 0.7, "delay_s": 0.004}]
    for more, rate_bps, sending_s in (
        ({"changes": changes}, 3e6, 8 * 500 / 3e6),
        ({"changes": changes[1:], "opportunities_ab": [1]}, math.inf, 0),
    ):
        document["links"][0] |= {"changes": []} | more
        scenario = Scenario.model_validate(document)
        point = StatedPoint(scenario, {("ab", "rate_bps"), ("ab", "delay_s")})
        flow = scenario.flows[0]
        assert point.delay_s(flow, strict=False) == pytest.approx(0.004 + sending_s)
        assert point.rate_bps(flow, strict=True) == rate_bps


#: Table, column and check of what is impossible in a paper: the delays of Vegas, a sum of rates.
IMPOSSIBLE = {
    "nishitha": {("5.2", "delay", "propagation")},
    "kapadia": {("text", "throughput_vegas+throughput_reno", "capacity_sum")},
    "saxena": set(),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_numbers_of_each_paper_are_the_known_ones(name):
    study = load_study(ROOT, name)
    published = read_published(ROOT / "data" / "published" / f"{name}.csv")
    findings = audit_study(study, map_cells(study, published))
    broken = [f for f in findings if f.finding == Verdict.IMPOSSIBLE]
    assert {(f.table, f.column, f.check) for f in broken} == IMPOSSIBLE[name]


# -- shared decimals ------------------------------------------------------------------------------


def sharing(world, printed):
    """Return the rows of table 1 whose decimals are shared too often."""
    study = world.table()
    cells = world.mapped(study, *throughputs(printed))
    return {finding.row: finding.reason for finding in check_decimals(study, cells)}


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (["802.135", "870.135", "855.248"], {"slow", "mid"}),
        (["802.135", "870.136", "855.248"], set()),
        (["802.1", "870.1", "855.2"], set()),  # ten decimals
        (["802.135", "802.135", "855.248"], set()),  # one value, twice
        (["1.135", "2.135", "1.248"], set()),  # too near for their decimals to be spread evenly
    ],
)
def test_decimals_shared_by_different_values_are_suspicious(world, printed, expected):
    reasons = sharing(world, printed)
    assert reasons.keys() == expected
    # Three pairs, a thousand decimals.
    assert all("2 of 3" in reason and "0.003" in reason for reason in reasons.values())


def test_expected_groups_with_shared_decimals_match_a_calculation_by_hand():
    assert expected_groups(3, 2, 3) == pytest.approx(3e-3)
    assert expected_groups(20, 8, 2) == pytest.approx(125970e-14)
