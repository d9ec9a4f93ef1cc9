"""Vacuity: what could not differ is marked, by evidence, and only that."""

import pytest
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.pair import run_pressure
from replication.verdicts.vacuity import vacuity_rows

from tests.unit.conftest import SEGMENT_BYTES, study_document
from tests.unit.test_claim import KINDS, RENO, VEGAS, flows, ratio

#: A window that nothing reaches, and one in which every flow spends all its time.
WIDE, TINY = 1000, 2


def quantity(metric="throughput_bps", **where):
    return {"experiment": "sweep", "metric": metric, "where": where}


RATIO, SHARE = ratio({"at_least": 1.5}), KINDS["share"][0] | {"right": RENO}


def windowed(world, test, segments):
    """Return a study of one claim whose flows may use a window of so many segments."""
    document = study_document()
    (experiment,) = document["experiments"]
    for flow in experiment["flows"]:
        flow["maximum_window_bytes"] = segments * SEGMENT_BYTES
    return world.claim(test, experiments=[experiment])


def losing(flows, drops=0):
    """Return these flows with so many lost packets."""
    return lambda **run: flows(**run) | {"packets_dropped": drops}


TWICE = losing(flows(vegas=200.0))


def queue_of(packets):
    return [{"time_s": n + 1.0, "queue_packets": packets} for n in range(10)]


def at_two_segments(sampled):
    """Samples of a window of two segments and of a queue that stands."""
    return lambda flow, **_: queue_of(5.0) if flow == "bottleneck:ab" else sampled([2.0] * 10)


def judged(study, results):
    rows = evaluate_claim(study, study.claims[0], results)
    (row,) = vacuity_rows(study, results, rows)
    return row["vacuous"], row["evidence"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_window_makes_every_verdict_vacuous_unless_a_packet_is_lost(world, sampled, kind):
    test, _, throughputs, _ = KINDS[kind]
    for segments, drops, expected in ((TINY, 0, True), (WIDE, 0, False), (TINY, 1, False)):
        study = windowed(world, test, segments)
        given = losing(throughputs, drops)
        results = world.results(study, flows=given, series=at_two_segments(sampled))
        vacuous, evidence = judged(study, results)
        assert vacuous is expected
        shown = "0 drops, at the window in 100 % of samples, a mean queue of 5 packets"
        assert (shown in evidence) is expected


# -- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "queue", "drops", "idle"),
    [
        ([2.0] * 10, 5.0, 0, True),
        ([2.0] * 6 + [0.5] * 4, 5.0, 0, True),  # at its window in more than half of the samples
        ([2.0] * 5 + [0.5] * 5, 5.0, 0, False),
        ([0.5] * 10, 0.9, 0, True),  # no queue stands
        ([0.5] * 10, 1.0, 0, False),
        ([2.0] * 10, 0.0, 1, False),  # a packet was lost
    ],
)
def test_a_run_is_idle_without_losses_if_its_windows_or_no_queue_hold_it(
    world, sampled, windows, queue, drops, idle
):
    study = windowed(world, RATIO, TINY)

    def series(flow, **_):
        if flow == "bottleneck:ab":
            return queue_of(queue)
        return sampled(windows if flow == "tcp1" else [2.0] * 10)

    results = world.results(
        study, flows=losing(flows(vegas=200.0), drops), series=series, replicates=1
    )
    assert run_pressure(results)["idle"].tolist() == [idle] * 9


# -- pairs ----------------------------------------------------------------------------------------


def free(world, test, flows, **changes):
    """Judge a claim over runs that nothing limits: no window and a queue that stands."""
    study = world.claim(test)
    series = changes.pop("series", lambda flow, **_: queue_of(5.0) if flow[0] == "b" else [])
    return judged(study, world.results(study, flows=flows, series=series, **changes))


NO_TIMEOUT = {
    "kind": "value", "of": quantity("timeouts", variant="vegas"), "expect": {"at_most": 0},
}  # fmt: skip
FIVE_TIMES = {
    "kind": "share", "left": quantity("packets_dropped", access="slow"), "relation": "above",
    "right": quantity("packets_dropped", access="mid"), "factor": 5, "expect": {"at_least": 1},
}  # fmt: skip
BELOW = {**SHARE, "relation": "below", "factor": 1.1}
FULL = {
    "kind": "value", "of": VEGAS, "reduce": "minimum", "expect": {"at_least": 1e5},
}  # fmt: skip


def rates(vegas=1.0, reno=1.0, drops=0):
    """Return the flows of rates that differ by variant."""
    rate = {"vegas": 1e5 * vegas, "reno": 1e5 * reno, "cubic": 1e5}
    return lambda variant, **_: {"throughput_bps": rate[variant], "packets_dropped": drops}


def losses(before):
    return lambda access, **_: {"packets_dropped": before if access == "mid" else 9}


def losses_of_reno(drops):
    """Return flows of which Reno's alone lose something, and wait for a timer then."""
    return lambda variant, **_: dict.fromkeys(
        ("packets_dropped", "timeouts"), drops if variant == "reno" else 0
    )


@pytest.mark.parametrize(
    ("test", "flows", "said"),
    [
        # Equal values without a loss could not differ.
        (BELOW, rates(vegas=1.004), "3 of 3 compared pairs could not differ"),
        (BELOW, rates(vegas=1.006), ""),
        (BELOW, rates(vegas=1.004, drops=1), ""),
        # Five times nothing is nothing.
        (FIVE_TIMES, losses(0), "zero against zero or a multiple of it"),
        (FIVE_TIMES, losses(1), ""),
        # No timeouts say nothing where no run of the experiment loses a packet.
        (NO_TIMEOUT, losses_of_reno(0), "0"),
        (NO_TIMEOUT, losses_of_reno(1), ""),
        # A count that is zero at every level in spite of losses could be another.
        (NO_TIMEOUT, lambda **_: {"packets_dropped": 1, "timeouts": 0}, ""),
        # A value that every level has tells nothing apart.
        (FULL, rates(reno=1.004), "All 3 levels of variant give it within 0.5 %"),
        (FULL, rates(reno=1.006), ""),
    ],
)
def test_what_could_not_differ_is_marked(world, test, flows, said):
    vacuous, evidence = free(world, test, flows)
    assert vacuous is bool(said) and said in evidence


# -- verdicts -------------------------------------------------------------------------------------


def partly_idle(world, sampled, test, idle, flows=TWICE):
    """Judge a claim over runs of which those at some access rates are idle."""
    study = windowed(world, test, TINY)

    def series(flow, access, **_):
        if flow == "bottleneck:ab":
            return queue_of(5.0)
        return sampled([2.0 if access in idle else 0.5] * 10)

    return judged(study, world.results(study, flows=flows, series=series))


def test_what_stands_without_the_idle_pairs_is_not_vacuous_but_they_are_told(world, sampled):
    found, evidence = partly_idle(world, sampled, RATIO, {"slow"})
    assert found is False
    assert evidence.startswith("1 of 3 compared pairs could not differ")
    assert evidence.endswith("without them: reproduced.")


def test_a_verdict_that_the_idle_pairs_carry_is_vacuous(world, sampled):
    carried = {**RATIO, "reduce": "maximum"}

    found, evidence = partly_idle(
        world, sampled, carried, {"slow"}, losing(flows(vegas=[200.0, 110.0, 110.0]))
    )
    assert found is True and evidence.endswith("without them: not reproduced.")


def test_a_failure_is_vacuous_if_all_pairs_are_idle_or_only_they_fail(world, sampled):
    other_way = {**RATIO, "expect": {"at_least": 3}}
    assert partly_idle(world, sampled, other_way, {"slow", "mid", "fast"})[0] is True
    assert partly_idle(world, sampled, other_way, {"slow", "mid"})[0] is False
    low = losing(flows(vegas=[10.0, 200.0, 200.0]))
    found, evidence = partly_idle(world, sampled, RATIO, {"slow"}, low)
    assert found is True and evidence.endswith("without them: reproduced.")


def test_a_claim_of_parts_is_vacuous_by_the_parts_that_decide(world, sampled):
    sound, fails = RATIO, {**RATIO, "expect": {"at_least": 3}}
    idle = RATIO | {
        side: quantity(variant=variant, access="slow")
        for side, variant in (("left", "vegas"), ("right", "reno"))
    }
    idle_fails = {**idle, "expect": {"at_least": 3}}
    for parts, vacuous in (
        ((sound, idle), True),
        ((sound, sound), False),
        ((fails, idle), False),  # what fails has content
        ((sound, idle_fails), True),
        ((fails, idle_fails), False),
    ):
        test = {"kind": "all", "parts": list(parts)}
        assert partly_idle(world, sampled, test, {"slow"})[0] is vacuous


def test_what_cannot_be_tested_is_not_vacuous(world):
    untested = {"kind": "not_testable", "reason": "Too little."}
    assert free(world, untested, TWICE) == (False, "")
    only_reno = {"runs": lambda levels: levels["variant"] == "reno"}
    assert free(world, RATIO, TWICE, **only_reno) == (False, "")
