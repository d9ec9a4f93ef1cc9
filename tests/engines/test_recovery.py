"""Loss recovery segment by segment: the differences between variants in Fall and Floyd (1996).

The flow leaves slow start at 12 segments and has 13 in flight when the first listed packet is lost,
with packets of the same window after it. Losses are listed, so every number below is exact: the
expectations follow from the algorithms, not from a run. Numbers of segments count from 0.

ns-2.35's Reno has bugFix_ on by default: duplicates below the highest segment sent before the loss
start no second fast retransmit, so two losses time out. (Timeouts of our Reno, and what else ns-2's
Tahoe and Reno do, are compared in conformance.yaml.)
"""

import itertools
from functools import cache
from itertools import pairwise

import pytest
from measurements.scenarios import SEGMENT, droptail, listed, single_link

from tests.engines.engine_bench import TRACED

RTT_S, MINIMUM_RTO_S = 0.1, 1.0
VARIANTS = ("tahoe", "reno", "newreno", "sack")
BOTH = pytest.mark.parametrize("bench", TRACED, indirect=True)
OURS = pytest.mark.parametrize("bench", ["ns3"], indirect=True)
EACH = pytest.mark.parametrize("variant", VARIANTS)
WITHOUT_SACK = pytest.mark.parametrize("variant", VARIANTS[:3])
ONE, TWO, THREE, FOUR = (30,), (30, 32), (30, 32, 34), (28, 30, 32, 34)
#: Tahoe's retransmissions by losses; the other variants retransmit the lost segments. It sends one
#: segment, then two, then three: each new acknowledgement opens the window by one and jumps over
#: what had arrived, so segments that were not lost are sent again in between, whose echoes start no
#: second fast retransmit.
RESENT = {
    ("tahoe", TWO): [29, 31, 32],
    ("tahoe", THREE): [29, 31, 32, 33, 34, 35],
    ("tahoe", FOUR): [27, 29, 30, 31, 32, 33, 34, 35, 36],
}
LINUX = ("cubic", "linuxreno", "westwood_plus", "bic", "htcp")
EVERYWHERE = [*itertools.product(TRACED, VARIANTS)]
EVERYWHERE += [("ns2", variant) for variant in LINUX]


@pytest.fixture(scope="session")
def recover(bench):
    """Return a function that runs a variant through a list of lost data packets (cached)."""

    @cache
    def run(variant, *lost, duration_s=5, **changes):
        settings = {"initial_ssthresh_bytes": 12_000} | changes
        settings |= {"sack": True} if variant == "sack" else {}
        flow = bench.tcp("t", variant.replace("sack", "newreno"), **settings)
        path = {"rate_bps": 8e6, "delay_s": RTT_S / 2, "duration_s": duration_s}
        return bench.run(single_link([flow], **path, loss=listed(*lost)), trace=True)

    return run


def resent(result):
    """Return the segments sent again, in order."""
    return [event.sequence // SEGMENT for event in result.events("retransmit")]


def times(result):
    """Return when segments were sent again."""
    return [event.time_s for event in result.events("retransmit")]


def spread(result):
    """Return the time from the first to the last segment that was sent again."""
    return times(result)[-1] - times(result)[0]


def next_sends(result, after):
    """Return what was sent for the first time after an event."""
    later = result.trace[result.trace.index(after) + 1 :]
    return [event for event in later if event.event == "send"]


#: Engine, variant, lost packets and the segments that are sent again.
RETRANSMISSIONS = []
for _engine, _variant in EVERYWHERE:
    for _lost in (ONE,) if _variant == "reno" else (ONE, TWO, THREE, FOUR):
        _again = RESENT.get((_variant, _lost), [number - 1 for number in _lost])
        RETRANSMISSIONS.append((_engine, _variant, _lost, _again))


@pytest.mark.parametrize(
    ("bench", "variant", "lost", "expected"), RETRANSMISSIONS, indirect=["bench"]
)
def test_segments_retransmitted_without_a_timeout_match_fall_and_floyd(
    recover, variant, lost, expected
):
    result = recover(variant, *lost)
    assert (resent(result), result.number("t", "timeouts")) == (expected, 0)
    assert result.number("t", "packets_dropped") == len(lost)


@BOTH
@EACH
def test_a_loss_is_repaired_at_the_third_duplicate_acknowledgement(recover, variant):
    result = recover(variant, *ONE)
    acks = [e for e in result.events("ack") if e.time_s <= times(result)[0]]
    assert [e.sequence // SEGMENT for e in acks[-5:]] == [28, 29, 29, 29, 29]


@OURS
def test_tahoe_slow_starts_after_one_loss(recover):
    result = recover("tahoe", *ONE)
    (again,) = result.events("retransmit")
    assert (again.cwnd, again.ssthresh) == (SEGMENT, 6500)
    # The repair is acknowledged together with all else one RTT later; nothing is sent before.
    following = next_sends(result, again)
    assert following[0].time_s - again.time_s == pytest.approx(RTT_S, rel=0.05)
    assert following[0].cwnd == 2 * SEGMENT
    # Slow start to half of the window of 13, then one segment a RTT.
    rounds = [int((event.time_s - again.time_s) / RTT_S) - 1 for event in following]
    assert [rounds.count(n) for n in range(3)] == [2, 4, 7]


@BOTH
@pytest.mark.parametrize("lost", [TWO, THREE, FOUR])
def test_newreno_repairs_one_loss_per_round_trip_sack_all_at_once_and_tahoe_slow_starts(
    recover, lost
):
    newreno, sack, tahoe = (recover(variant, *lost) for variant in ("newreno", "sack", "tahoe"))
    # One reduction for the whole window.
    assert len({event.ssthresh for event in newreno.events("retransmit")}) == 1
    gaps = [after - before for before, after in pairwise(times(newreno))]
    assert gaps == pytest.approx([RTT_S] * (len(lost) - 1), rel=0.05)
    assert spread(sack) < 1.05 * RTT_S
    assert min(e.cwnd for e in sack.trace if e.time_s > times(sack)[0]) > SEGMENT
    windows = [e.cwnd // SEGMENT for e in tahoe.events("retransmit")]
    # Of the fourth round, one segment is new.
    assert windows == [1, 2, 2, 3, 3, 3, 4, 4, 4][: len(windows)]


@BOTH
@EACH
def test_a_lost_repair_waits_for_the_timeout(recover, variant):
    # Packet 30 is lost; no variant here repairs the loss of a repair but by the timer. The repair
    # crosses after the 12 others of the window (31..42) and what recovery sent before it: none.
    result = recover(variant, 30, 43)
    assert resent(result)[0:2] == [29, 29], "packet 43 was not the repair"
    assert result.number("t", "timeouts") >= 1
    timeout = result.events("timeout")[0]
    restart = next(e for e in result.events("retransmit") if e.time_s >= timeout.time_s)
    assert (restart.sequence, restart.cwnd) == (29 * SEGMENT, SEGMENT)


@pytest.mark.parametrize(("bench", "variant"), EVERYWHERE, indirect=["bench"])
def test_the_timer_doubles_and_retransmissions_give_no_round_trip_sample(recover, variant):
    # The window is one segment: no duplicates, so only the timer can repair.
    result = recover(variant, *range(5, 10), duration_s=35, maximum_window_bytes=SEGMENT)
    first = next(e for e in result.events("send") if e.sequence == 4 * SEGMENT)
    assert (resent(result), result.number("t", "timeouts")) == ([4] * 5, 5)
    waits = [after - before for before, after in pairwise([first.time_s, *times(result)])]
    assert waits == pytest.approx([MINIMUM_RTO_S * 2**n for n in range(5)], rel=1e-5)
    # Karn's rule: a repair a second late must not count as a round trip of a second.
    assert max(result.samples("rtt_s", flow="t")) < 1.05 * RTT_S
    assert result.number("t", "rtt_mean_s") == pytest.approx(RTT_S, rel=0.02)


@BOTH
@WITHOUT_SACK
def test_the_syn_gives_the_retransmission_timer_its_first_sample(recover, variant):
    # The SYN is not a data packet: the loss of packet 1 meets a timer that has its sample.
    result = recover(variant, 1)
    assert result.number("t", "timeouts") == 1
    waited = times(result)[0] - result.events("send")[0].time_s
    assert waited == pytest.approx(MINIMUM_RTO_S, rel=1e-5)


@BOTH
@WITHOUT_SACK
def test_no_false_fast_retransmit_after_a_timeout(recover, variant):
    # A whole window lost but for its last five: go-back-N sends those five again, and their echoes
    # are three and more duplicates of an acknowledgement that nothing is missing behind.
    result = recover(variant, *range(30, 38), 43, 44, 45, 46)
    assert result.number("t", "timeouts") >= 1
    last = result.events("timeout")[-1].time_s
    later = [e for e in result.events("retransmit") if e.time_s > last]
    assert [e for e in later if e.sequence >= 60 * SEGMENT] == []


@BOTH
@EACH
def test_limited_transmit_sends_two_segments_before_recovery(bench, recover, variant):
    # RFC 3042: each of the first two duplicates lets one new segment out. (On ns-3 not for Tahoe.)
    counts = []
    for limited in (False, True):
        result = recover(variant, 30, limited_transmit=limited)
        first = times(result)[0]
        acks = [e for e in result.events("ack") if e.time_s < first]
        duplicate = [e for e in acks if e.sequence == 29 * SEGMENT][1]
        sent = [e for e in result.events("send") if duplicate.time_s <= e.time_s < first]
        counts.append(len(sent))
    assert counts == [0, 2] or (bench.name, variant) == ("ns3", "tahoe")


@OURS
def test_reno_recovers_one_loss_without_slow_start(recover):
    result = recover("reno", *ONE)
    (again,) = result.events("retransmit")
    # Half of 13 in flight, inflated by the three duplicates.
    assert (again.ssthresh, again.cwnd) == (6500, 6500 + 3 * SEGMENT)
    # 9 more duplicates: 9.5 + 9 = 18.5, so 18 - 13 = 5 new segments in recovery.
    acked = next(e for e in result.events("ack") if e.sequence > 29 * SEGMENT)
    sent = next_sends(result, again)
    assert len([e for e in sent if e.time_s < acked.time_s]) == 5
    assert sent[4].cwnd == 18 * SEGMENT + 500
    # Deflated by the first new acknowledgement.
    assert sent[5].cwnd == min(e.cwnd for e in result.trace if e.time_s > again.time_s) == 6500


@OURS
def test_reno_needs_a_second_fast_retransmit_for_two_losses(recover):
    result = recover("reno", *TWO)
    first, second = result.events("retransmit")
    assert (resent(result), result.number("t", "timeouts")) == ([29, 31], 0)
    # Halved twice: 13 -> 6.5 -> 3.25 segments. The first new acknowledgement ended recovery, so the
    # second repair waited for three further duplicates: nearly two RTT after the first.
    assert (first.ssthresh, second.ssthresh) == (6500, 3250)
    assert second.cwnd == 3250 + 3 * SEGMENT
    assert spread(result) > 1.5 * RTT_S
    # NewReno is not inflated by the duplicates.
    assert recover("newreno", *ONE).events("retransmit")[0].cwnd == 6000


PRR = {"recovery": "prr", "sack": True, "limited_transmit": True}


@OURS
@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize("variant", ["cubic", "newreno"])
def test_prr_sends_as_many_segments_as_rfc_6937_allows(recover, variant, sack):
    # Section 3: when n of RecoverFS segments are delivered, n ssthresh / RecoverFS have been sent,
    # the first at once, until at most ssthresh is in flight.
    result = recover(variant, 201, initial_ssthresh_bytes=72_000, **PRR | {"sack": sack})
    start = result.trace.index(result.events("retransmit")[0])
    ssthresh, highest = result.trace[start].ssthresh, max(e.sequence for e in result.trace[:start])
    flight = (highest - 200 * SEGMENT) // SEGMENT + 1
    sent = [0]
    for event in result.trace[start - 1 :]:
        if event.event == "ack" and event.sequence > highest:
            break
        sent = [*sent, sent[-1]] if event.event == "ack" else [*sent[:-1], sent[-1] + 1]
    early = range(1, flight // 2)
    assert sent[1 : flight // 2] == [max(1, n * ssthresh // SEGMENT // flight) for n in early]
    assert sent[-1] == ssthresh // SEGMENT


@OURS
@pytest.mark.parametrize(("variant", "left"), [("cubic", 0.7), ("linuxreno", 0.5)])
def test_prr_reduces_the_window_once_if_a_full_queue_drops(bench, variant, left):
    # A queue of one BDP, which recovery must not fill again: ns-3's PRR does, and CUBIC then falls
    # to 0.49.
    flow = bench.tcp("t", variant, **PRR, minimum_rto_s=0.5)
    path = {"rate_bps": 8e6, "delay_s": 0.03, "queue": droptail(60), "duration_s": 30}
    result = bench.run(single_link([flow], **path), trace=True)
    windows = [event.cwnd for event in result.trace if event.time_s > 10]
    assert min(windows) / max(windows) == pytest.approx(left, abs=0.03)
