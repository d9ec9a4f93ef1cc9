"""Congestion: alternatives that could not differ are not compared, and nothing else is left out."""

import pytest
from replication.study.claim_model import Quantity
from replication.study.study import Study
from replication.study.verdict import ReasonCode, Verdict
from replication.verdicts.congestion import (
    alternatives_cannot_differ,
    runs_without_congestion,
)
from replication.verdicts.sample import Coverage, starved

from tests.unit.conftest import CLAIM, SEGMENT_BYTES, quantity, sampled, study_document

#: A window that nothing reaches, and one in which every flow spends all its time.
WIDE, TINY = 1000, 2
EVERYWHERE = {"slow", "mid", "fast"}
RATE = {"slow": 1e5, "mid": 2e5, "fast": 3e5}


def sides(metric="throughput_bps", **shared):
    return {
        "left": quantity(metric, variant="vegas", **shared),
        "right": quantity(metric, variant="reno", **shared),
    }


ATLEAST = {"at_least": 1}


def over(kind, **more):
    of = {"of": quantity(variant="reno"), "over": "access"}
    return {"kind": kind, **of, "expect": ATLEAST, **more}


def ratio(left, right, **expect):
    return {"kind": "ratio", "left": left, "right": right, "expect": expect}


def alike(left, right, margin=0.2):
    return {"kind": "equivalence", "left": left, "right": right, "margin": margin}


TWICE = ratio(**sides(), at_least=1.5)
#: Comparisons of alternatives at one place, all met by `unequal`.
FLOWS = [quantity(variant="reno") | {"flows": [flow]} for flow in ("tcp1", "tcp2")]
ALTERNATIVES = {
    "ratio": TWICE,
    "ratio of means": {**TWICE, "reduce": "ratio_of_means"},
    "equivalence": alike(quantity(variant="vegas"), quantity(variant="cubic")),
    "share": {"kind": "share", **sides(), "relation": "above", "expect": ATLEAST},
    "crossover": {"kind": "crossover", **sides("goodput_bps"), "over": "access"}
    | {"before": "left", "expect": {"at_least": 20, "at_most": 25}},
    "flows of a run": ratio(*FLOWS, at_most=1.1),
}
#: Comparisons across the path, over time, single values, and losses or queues.
RTT = "rtt_mean_s"
OTHERS = {
    "across rates": ratio(
        quantity(access="fast", variant="reno"), quantity(access="slow", variant="reno"), at_least=2
    ),
    "equal across rates": alike(quantity(RTT, access="fast"), quantity(RTT, access="slow"), 0.1),
    "trend": over("trend"),
    "value": {"kind": "value", "of": quantity(variant="vegas"), "expect": ATLEAST},
    "losses": {"kind": "value", "of": quantity("retransmissions"), "expect": {"at_most": 8}},
    "queues": alike(**sides("queue_mean_packets")),
}


def unequal(variant, access, drops=0, flow="tcp1", **_):
    """Throughputs that rise with the access rate and are higher for all but Reno.

    Two Vegas flows differ, and so does the round trip at one rate: equality says something.
    """
    rate = RATE[access] * (1 if variant == "reno" else 2.2 if variant == "cubic" else 2)
    if (variant, flow) == ("vegas", "tcp1"):
        rate *= 1.5
    goodput = RATE[access] if variant == "reno" else 2.2e5
    return {
        "throughput_bps": rate,
        "goodput_bps": goodput,
        "packets_dropped": drops,
        "rtt_mean_s": 0.3 if access == "mid" else 0.2,
    }


def windowed(world, test, segments):
    """Return a study of one claim whose flows have this maximum window in segments."""
    (experiment,) = study_document()["experiments"]
    for flow in experiment["flows"]:
        flow["maximum_window_bytes"] = segments * SEGMENT_BYTES
    return world.claim(test, experiments=[experiment])


def judge(world, test, segments=TINY, idle=EVERYWHERE, flows=unequal):
    """Judge a claim over lossless runs, of which those at some access rates fill their window."""
    study = windowed(world, test, segments)

    def series(flow, access, variant, **_):
        if flow == "bottleneck:ab":
            queue = 9.0 if variant == "cubic" else 5.0
            return [{"time_s": n + 1.0, "queue_packets": queue} for n in range(10)]
        return sampled([2.0 if access in idle else 0.5] * 10)

    return world.judge(study, flows=flows, series=series)


@pytest.mark.parametrize("kind", ALTERNATIVES)
def test_a_window_that_holds_every_flow_takes_the_verdict_of_alternatives(world, kind):
    assert judge(world, ALTERNATIVES[kind], WIDE).verdict == Verdict.REPRODUCED
    found = judge(world, ALTERNATIVES[kind], TINY)
    assert found.verdict == Verdict.NOT_TESTABLE
    said = "no packet is lost: windows of 2 packets; the queue holds 5"
    assert said in found.reason and "the round trip is 200 to 300 ms" in found.reason
    assert found.reason_code == ReasonCode.ALTERNATIVES_CANNOT_DIFFER


@pytest.mark.parametrize("losing", [("reno", "vegas"), ("reno",)])
def test_a_lost_packet_a_run_of_one_alternative_gives_it_back(world, losing):
    def flows(variant, **run):
        return unequal(variant, drops=int(variant in losing), **run)

    assert judge(world, TWICE, flows=flows).verdict == Verdict.REPRODUCED


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_comparison_has_content_without_congestion(world, kind):
    assert judge(world, OTHERS[kind]).verdict == Verdict.REPRODUCED


def test_alternatives_at_different_points_have_content(world):
    apart = {
        **TWICE,
        "left": quantity(variant="vegas", access="fast"),
        "right": quantity(variant="reno", access="slow"),
    }
    assert judge(world, apart).verdict == Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("idle", "observed", "said"),
    [
        (set(), 1.0, None),
        ({"slow"}, 1.1, "cannot differ at 1 of 3 points"),
        ({"slow", "mid"}, None, "cannot differ at 2 of 3 points"),
    ],
)
def test_points_without_congestion_are_left_out(world, idle, observed, said):
    def flows(variant, access, **_):
        # At the slowest rate Vegas has less, elsewhere a tenth more.
        rate = {"slow": 0.8e5}.get(access, 1.1e5) if variant == "vegas" else 1e5
        return {"throughput_bps": rate, "packets_dropped": 0}

    found = judge(world, {**TWICE, "expect": {"at_least": 1.05}}, TINY, idle, flows)
    assert said is None or said in found.reason
    assert (found.verdict == Verdict.REPRODUCED) is (observed == 1.1)
    assert observed is None or found.observed == pytest.approx(observed)


def test_a_part_without_congestion_leaves_the_claim_to_what_fails(world):
    fails = {"kind": "value", "of": quantity(), "expect": {"at_least": 1e9}}
    holds = OTHERS["value"]
    for other, verdict in ((holds, Verdict.NOT_TESTABLE), (fails, Verdict.NOT_REPRODUCED)):
        found = judge(world, {"kind": "all", "parts": [TWICE, other]})
        assert found.verdict == verdict
        assert (found.reason_code == ReasonCode.ALTERNATIVES_CANNOT_DIFFER) is (other == holds)


@pytest.mark.parametrize("kind", ["ratio", "value"])
def test_runs_say_one_by_one_whether_alternatives_can_differ(world, kind):
    """In replicate 1 a packet is lost, and a single value compares no alternatives."""
    study = windowed(world, (ALTERNATIVES | OTHERS)[kind], TINY)

    def flows(replicate, **run):
        return unequal(drops=int(replicate == 1), **run)

    def series(flow, **_):
        if flow == "bottleneck:ab":
            return [{"time_s": n + 1.0, "queue_packets": 5.0} for n in range(10)]
        return sampled([2.0] * 10)

    results = world.results(study, flows=flows, series=series)
    (test,) = study.claims[0].tests()
    reasons = alternatives_cannot_differ(Coverage(study, results, "ns3"), test)
    assert sorted(reasons) == ([] if kind == "value" else [0, 2])
    assert all("where no packet is lost: windows of 2 packets" in why for why in reasons.values())


# -- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "queue", "drops", "idle"),
    [
        ([2.0] * 10, 5.0, 0, True),
        ([2.0] * 6 + [0.5] * 4, 5.0, 0, True),  # at its window in more than half of the samples
        ([2.0] * 5 + [0.5] * 5, 5.0, 0, False),
        ([0.5] * 10, 0.9, 0, True),  # the queue is empty
        ([0.5] * 10, 1.0, 0, False),
        ([2.0] * 10, 0.0, 1, False),  # a packet was lost
    ],
)
def test_windows_that_hold_a_run_or_no_queue_are_no_congestion(world, windows, queue, drops, idle):
    study = windowed(world, TWICE, TINY)

    def series(flow, **_):
        if flow == "bottleneck:ab":
            return [{"time_s": n + 1.0, "queue_packets": queue} for n in range(10)]
        return sampled(windows if flow == "tcp1" else [2.0] * 10)

    results = world.results(
        study, flows=lambda **run: unequal(drops=drops, **run), series=series, replicates=1
    )
    assert len(runs_without_congestion(results)) == (9 if idle else 0)


def test_a_window_may_be_a_segment_below_the_largest_one(world):
    assert judge(world, TWICE, 2.9).reason_code == ReasonCode.ALTERNATIVES_CANNOT_DIFFER


@pytest.mark.parametrize(
    ("kind", "rate", "said"),
    [
        ("ratio", 0.04e6, "Starved: flow tcp1 gets 0.04 of 0.5 Mbit/s ("),
        ("ratio", 0.06e6, None),
        # One quantity alone compares no flows.
        ("value", 0.04e6, None),
    ],
)
def test_a_flow_below_a_tenth_of_its_fair_share_is_called_starved(world, kind, rate, said):
    def flows(variant, flow="tcp1", **_):
        return {"throughput_bps": rate if variant == "vegas" else 1e6, "packets_dropped": 1}

    test = {**TWICE, "expect": {"at_most": 1}} if kind == "ratio" else OTHERS["value"]
    found = judge(world, test, WIDE, flows=flows)
    assert found.verdict == Verdict.REPRODUCED
    assert (said in found.reason) if said else ("Starved" not in found.reason)


def test_a_flow_that_shares_no_link_is_not_starved(world):
    document = study_document(claims=[CLAIM])
    compared = [Quantity(**quantity(variant=name)) for name in ("vegas", "reno")]

    def hungry():
        study = Study.model_validate(document)
        return starved(
            world.results(study, flows=lambda **_: {"throughput_bps": 1e3}), "ns3", compared
        )

    assert set(hungry()["flow"]) == {"tcp1", "tcp2"}
    document["experiments"][0]["flows"].pop()
    assert hungry().empty
