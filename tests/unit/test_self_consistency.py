"""Self-consistency: claims' tests on printed numbers and on published traces."""

import pytest
from replication.verdicts.self_consistency import SelfConsistency

from tests.unit.conftest import missing_from, quantity, tolerance

PRINTED = (
    ("slow", "throughput", "bit/s", 800e3, "800"),
    ("mid", "throughput", "bit/s", 700e3, "700"),
    ("fast", "throughput", "bit/s", 900e3, "900"),
)


def rate(**where):
    return quantity(variant="reno", **where) | {"aggregate": "sum"}


def at_least(bound, **where):
    return {"kind": "value", "of": rate(**where), "expect": {"at_least": bound}}


def consistency(world, test, files=(), printed=PRINTED, **table):
    """Return the result and the reason for a claim of a study that prints Reno's throughputs."""
    study = world.claim(test, tables=world.table(**table).model_dump()["tables"])
    (row,) = SelfConsistency(study, world.mapped(study, *printed), dict(files)).rows()
    return row.result, row.reason


def test_a_test_holds_or_fails_on_printed_numbers(world):
    rises = {"kind": "trend", "of": rate(), "over": "access", "expect": {"at_least": 1.0}}
    word, reason = consistency(world, rises)
    assert word == "fails" and not missing_from(reason, " 0.5 ", "3 points")
    assert consistency(world, {**rises, "expect": {"at_least": 0.4}})[0] == "holds"
    # The direction alone does not satisfy the claim.
    assert consistency(world, {**rises, "direction": {"at_least": 0.4}})[0] == "fails"


def test_a_printed_number_serves_for_any_aggregate_except_fairness(world):
    of = {**rate(access="slow"), "aggregate": "maximum"}
    test = {"kind": "value", "of": of, "expect": {"at_least": 8e5}}
    assert consistency(world, test)[0] == "holds"
    assert consistency(world, {**test, "of": {**of, "aggregate": "jain"}})[0] == "none"


def test_a_printed_fairness_index_is_no_replicate_of_the_printed_rates(world):
    cell = {"metric": "throughput_bps", "aggregate": "sum", "tolerance": tolerance(0.1)}
    columns = {"throughput": cell, "jain": {**cell, "aggregate": "jain"}}
    both = (*PRINTED, ("slow", "jain", "1", 0.5, "0.5"))
    word, reason = consistency(world, at_least(8e5, access="slow"), (), both, columns=columns)
    assert word == "holds" and "1 of 1 run" in reason
    of = {**rate(access="slow"), "aggregate": "jain"}
    for bound, expected in ((0.5, "holds"), (0.51, "fails")):
        test = {"kind": "value", "of": of, "expect": {"at_least": bound}}
        assert consistency(world, test, (), both, columns=columns)[0] == expected


def test_a_number_in_two_columns_counts_as_two_printings(world):
    cell = {"metric": "throughput_bps", "aggregate": "sum", "tolerance": tolerance(0.1)}
    twice = (*PRINTED, ("slow", "again", "bit/s", 790e3, "790"))
    columns = {"throughput": cell, "again": {**cell, "aggregate": "mean"}}
    reason = consistency(world, at_least(8e5, access="slow"), (), twice, columns=columns)[1]
    assert "1 of 2 printings" in reason


@pytest.mark.parametrize(
    "of",
    [
        {**rate(), "metric": "goodput_bps"},
        {**rate(), "window_s": [0.0, 5.0]},
        {**rate(), "where": {"variant": "vegas"}},
        {**rate(), "where": {"access": "slow"}},  # one of all variants is printed
    ],
)
def test_a_quantity_that_is_not_printed_gives_no_result(world, of):
    assert consistency(world, {"kind": "value", "of": of, "expect": {"at_least": 1}}) == (
        "none",
        "",
    )


def test_a_number_that_is_not_comparable_is_not_used(world):
    test = at_least(1, access="slow")
    reasons = {"slow": {"throughput": "The sender's count."}}
    assert consistency(world, test)[0] == "holds"
    assert consistency(world, test, not_comparable=reasons)[0] == "none"


def test_a_test_of_several_parts_counts_those_that_are_published(world):
    absent = {**at_least(1), "of": {**rate(), "metric": "timeouts"}}
    for bound, word in ((8e5, "holds"), (9e5, "fails")):
        test = {"kind": "all", "parts": [at_least(bound, access="slow"), absent]}
        result, reason = consistency(world, test)
        assert result == word
        assert not missing_from(reason, "(2) Not testable", "timeouts")


# -- traces ---------------------------------------------------------------------------------------


def trace(world, windows, name="one", rates=None, starts=(0, 0)):
    """Write a trace of two flows with these windows, and return its file by its name."""
    lines = []
    for second in range(40):
        for flow, (window, start) in enumerate(zip(windows, starts, strict=True)):
            if second < start:
                continue
            rate_rtt = f"{rates[flow]},100," if rates else ""
            value = window[second % len(window)]
            lines.append(f"{1e9 + second},10.0.0.1:{50 + flow},{rate_rtt},{second // 10},{value},8")
    path = world.folder / f"{name}.sender-ss.csv"
    path.write_text("\n".join(lines) + "\n")
    return {name: path}


def traced(world, test, files, *names):
    """Judge a claim on traces, each a table of Reno at the slow access rate."""
    cell = {"metric": "cwnd_peak_segments", "tolerance": tolerance(0.1)}
    (shape,) = world.table({"peak": cell}).model_dump()["tables"]
    rows = {"first": {"where": {}, "flows": ["tcp1"]}, "second": {"where": {}, "flows": ["tcp2"]}}
    where = {"variant": "reno", "access": "slow"}
    shape |= {"where": where, "row_factor": None, "rows": rows}
    tables = [{**shape, "id": f"trace:{name}"} for name in names or ("one",)]
    study = world.claim(test, tables=tables)
    (row,) = SelfConsistency(study, [], files).rows()
    return row.result, row.reason


def peak(flows, **where):
    wanted = {**rate(access="slow", **where), "metric": "cwnd_peak_segments", "flows": flows}
    return {**wanted, "aggregate": "mean"}


def test_features_of_a_trace_are_those_of_our_runs(world):
    files = trace(world, ([10, 20], [10, 14]))
    sides = {"left": peak(["tcp1"]), "right": peak(["tcp2"])}
    larger = {"kind": "ratio", **sides, "expect": {"at_least": 1.4}}
    word, reason = traced(world, larger, files)
    assert word == "holds" and not missing_from(reason, "1.429 times", "1 point")
    assert traced(world, larger, {}) == ("none", "")


def test_swapping_two_flows_of_a_trace_fails_the_test(world):
    first = {"kind": "value", "of": peak({"start_order": 1}), "expect": {"at_least": 20}}
    assert traced(world, first, trace(world, ([10, 20], [10, 14])))[0] == "holds"
    assert traced(world, first, trace(world, ([10, 14], [10, 20])))[0] == "fails"
    # A flow that connects seconds later is second, whatever its port.
    late = trace(world, ([10, 20], [10, 14]), starts=(5, 0))
    assert traced(world, first, late)[0] == "fails"


def test_published_runs_of_one_point_are_its_replicates(world):
    files = trace(world, ([10, 20], [10, 20]), "one") | trace(world, ([9, 30], [9, 30]), "two")
    test = {"kind": "value", "of": peak("tcp"), "expect": {"at_least": 20}}
    word, reason = traced(world, test, files, "one", "two")
    assert word == "holds" and not missing_from(reason, "25 segments", "1 point", "of 2 runs")


def test_rates_of_a_trace_are_used_only_for_ratios(world):
    files = trace(world, ([10], [10]), rates=(600, 300))
    left, right = (
        {**rate(access="slow"), "flows": [flow], "aggregate": "mean"} for flow in ("tcp1", "tcp2")
    )
    ratio = {"kind": "ratio", "left": left, "right": right, "expect": {"at_least": 2}}
    assert traced(world, ratio, files)[0] == "holds"
    value = {"kind": "value", "of": left, "expect": {"at_least": 1}}
    assert traced(world, value, files) == ("none", "")
    assert traced(world, ratio, trace(world, ([10], [10])))[0] == "none"  # no rates are sampled


@pytest.mark.parametrize("metric", ["timeouts", "queue_mean_packets"])
def test_metrics_that_ss_does_not_sample_give_no_result(world, metric):
    of = {**rate(access="slow"), "metric": metric, "aggregate": "mean"}
    test = {"kind": "value", "of": of, "expect": {"at_most": 1e9}}
    assert traced(world, test, trace(world, ([10], [10]), rates=(600, 300))) == ("none", "")
