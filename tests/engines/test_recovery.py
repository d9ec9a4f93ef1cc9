"""Loss recovery segment by segment: what Fall and Floyd (1996) say sets the variants apart.

The flow leaves slow start at 12 segments and has 13 in flight when the first listed packet is lost,
with packets of the same window after it. Losses are listed, so every number below is exact: the
expectations follow from the algorithms, not from a run. Numbers of segments count from 0.
"""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import TRACED, Bench, Run
from tests.engines.engine_results import (
    MINIMUM_RTO_S,
    RTT_S,
    SEGMENT,
    VARIANTS,
    next_sends,
    resent,
    times,
)

pytestmark = pytest.mark.parametrize("bench", TRACED, indirect=True)
#: Half of 13 segments in flight; ns-2 counts whole segments.
HALF = {"ns3": 6500, "ns2": 6000}


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_loss_no_retransmission(recover: Run, variant: str) -> None:
    result = recover(variant, 1_000_000)
    assert resent(result) == []
    assert result.number("t", "packets_dropped") == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_loss_is_repaired_by_the_third_duplicate(recover: Run, variant: str) -> None:
    result = recover(variant, 30)
    assert resent(result) == [29]
    assert result.number("t", "timeouts") == 0
    acks = [e for e in result.events("ack") if e.time_s <= times(result)[0]]
    assert [e.sequence // SEGMENT for e in acks[-5:]] == [28, 29, 29, 29, 29]


def test_tahoe_slow_starts_after_one_loss(bench: Bench, recover: Run) -> None:
    result = recover("tahoe", 30)
    (again,) = result.events("retransmit")
    assert again.cwnd == SEGMENT
    assert again.ssthresh == HALF[bench.name]
    # The repair is acknowledged together with all else one RTT later; nothing is sent before.
    following = next_sends(result, again)
    assert following[0].time_s - again.time_s == pytest.approx(RTT_S, rel=0.05)
    assert following[0].cwnd == 2 * SEGMENT
    rounds = [0, 0, 0]
    for event in following:
        n = int((event.time_s - again.time_s) / RTT_S) - 1
        if n < 3:
            rounds[n] += 1
    # Slow start to half of the window, then one segment a RTT.
    assert rounds == [2, 4, 6 if bench.name == "ns2" else 7]


@pytest.mark.parametrize("lost", [(30, 32), (30, 32, 34), (28, 30, 32, 34)])
def test_newreno_repairs_one_loss_a_round_trip_without_timeout(
    recover: Run, lost: tuple[int, ...]
) -> None:
    result = recover("newreno", *lost)
    assert resent(result) == [n - 1 for n in lost]
    assert result.number("t", "timeouts") == 0
    # One reduction for the whole window.
    assert len({event.ssthresh for event in result.events("retransmit")}) == 1
    gaps = [b - a for a, b in zip(times(result), times(result)[1:], strict=False)]
    assert gaps == pytest.approx([RTT_S] * (len(lost) - 1), rel=0.05)


@pytest.mark.parametrize("lost", [(30, 32), (30, 32, 34), (28, 30, 32, 34)])
def test_sack_repairs_all_losses_in_about_one_round_trip(
    recover: Run, lost: tuple[int, ...]
) -> None:
    result = recover("sack", *lost)
    assert resent(result) == [n - 1 for n in lost]
    assert result.number("t", "timeouts") == 0
    assert times(result)[-1] - times(result)[0] < 1.05 * RTT_S
    assert min(e.cwnd for e in result.trace if e.time_s > times(result)[0]) > SEGMENT


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ((30, 32), [29, 31, 32]),
        ((30, 32, 34), [29, 31, 32, 33, 34, 35]),
        ((28, 30, 32, 34), [27, 29, 30, 31, 32, 33, 34, 35, 36]),
    ],
)
def test_tahoe_goes_back_and_slow_starts_through_the_window(
    recover: Run, lost: tuple[int, ...], expected: list[int]
) -> None:
    # One segment, then two, then three: each new acknowledgement opens the window by one and jumps
    # over what had arrived, so segments that were not lost are sent again in between.
    result = recover("tahoe", *lost)
    assert resent(result) == expected
    windows = [1, 2, 2, 3, 3, 3, 4, 4, 4]  # of the fourth round, one segment is new
    assert [e.cwnd // SEGMENT for e in result.events("retransmit")] == windows[: len(expected)]
    assert result.number("t", "timeouts") == 0


def test_tahoe_ignores_the_echoes_of_what_it_sent_again(recover: Run) -> None:
    result = recover("tahoe", 28, 30, 32, 34)
    assert len([e for e in result.events("retransmit") if e.cwnd == SEGMENT]) == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_lost_repair_waits_for_the_timeout(recover: Run, variant: str) -> None:
    # Packet 30 is lost; no variant here repairs the loss of a repair but by the timer. The repair
    # crosses after the 12 others of the window (31..42) and what recovery sent before it: none.
    result = recover(variant, 30, 43)
    if resent(result)[0:2] != [29, 29]:
        pytest.fail(f"packet 43 was not the repair of segment 29: {resent(result)}")
    assert result.number("t", "timeouts") >= 1
    timeout = result.events("timeout")[0]
    restart = next(e for e in result.events("retransmit") if e.time_s >= timeout.time_s)
    assert (restart.sequence, restart.cwnd) == (29 * SEGMENT, SEGMENT)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_timer_backs_off_by_two(recover: Run, variant: str) -> None:
    # The window is one segment: no duplicates, so only the timer can repair.
    result = recover(variant, 5, 6, maximum_window_bytes=SEGMENT)
    waits = times(result)
    first = next(e for e in result.events("send") if e.sequence == 4 * SEGMENT)
    assert resent(result) == [4, 4]
    assert result.number("t", "timeouts") == 2
    assert waits[0] - first.time_s == pytest.approx(MINIMUM_RTO_S, rel=1e-5)
    assert waits[1] - waits[0] == pytest.approx(2 * MINIMUM_RTO_S, rel=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_segment_sent_again_gives_no_round_trip(recover: Run, variant: str) -> None:
    # Karn's rule: a repair a second late must not count as a round trip of a second.
    result = recover(variant, 5, maximum_window_bytes=SEGMENT)
    assert result.number("t", "timeouts") == 1
    assert max(result.samples("rtt_s", flow="t")) < 1.05 * RTT_S
    assert result.number("t", "rtt_mean_s") == pytest.approx(RTT_S, rel=0.02)


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno"])
def test_the_first_timeout_is_the_initial_one(recover: Run, variant: str) -> None:
    # The SYN is not a data packet: the loss of packet 1 meets a timer that has its sample.
    result = recover(variant, 1)
    sent = result.events("send")[0].time_s
    assert result.number("t", "timeouts") == 1
    assert times(result)[0] - sent == pytest.approx(MINIMUM_RTO_S, rel=1e-5)


@pytest.mark.parametrize("variant", ["tahoe", "reno", "newreno"])
def test_no_false_fast_retransmit_after_a_timeout(recover: Run, variant: str) -> None:
    # A whole window lost but for its last five: go-back-N sends those five again, and their echoes
    # are three and more duplicates of an acknowledgement that nothing is missing behind.
    result = recover(variant, *range(30, 38), 43, 44, 45, 46)
    fast = [
        e
        for e in result.events("retransmit")
        if e.time_s > result.events("timeout")[-1].time_s and e.sequence >= 60 * SEGMENT
    ]
    assert result.number("t", "timeouts") >= 1
    assert fast == []


def test_limited_transmit_sends_two_segments_before_recovery(bench: Bench, recover: Run) -> None:
    # RFC 3042: each of the first two duplicates lets one new segment out.
    counts = {}
    # ns-2 does so for Tahoe too.
    variants = [name for name in VARIANTS if name != "tahoe" or bench.name == "ns2"]
    for limited in (False, True):
        for variant in variants:
            result = recover(variant, 30, limited_transmit=limited)
            first = times(result)[0]
            duplicates = [
                e for e in result.events("ack") if e.sequence == 29 * SEGMENT and e.time_s < first
            ][1:]
            sent = [e for e in result.events("send") if duplicates[0].time_s <= e.time_s < first]
            counts[variant, limited] = len(sent)
    assert counts == {(v, n): 2 * n for v in variants for n in (False, True)}
