"""Loss recovery of ns-2's agents, segment by segment, as Fall and Floyd (1996) set them apart.

The flow leaves slow start at 12 segments and has 13 in flight when the first listed packet is lost,
with packets of the same window after it. Losses are listed, so every number below is exact: the
expectations follow from the algorithms. Where ns-2.35 differs from the paper's Reno it says so.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine_results import Event, Result
from engine_scenarios import listed, single_link, tcp

SEGMENT = 1000
RTT_S = 0.1
MINIMUM_RTO_S = 1.0
LINUX = {"sack": True, "limited_transmit": True}
VARIANTS = {
    "tahoe": {"congestion_control": "tahoe"},
    "reno": {"congestion_control": "reno"},
    "newreno": {"congestion_control": "newreno"},
    "sack": {"congestion_control": "newreno", "sack": True},
}
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def recover(run_ns2: Run) -> Callable[..., Result]:
    """Return a function that runs a variant through a list of lost data packets (cached)."""
    known: dict[tuple[object, ...], Result] = {}

    def run(variant: str, *lost: int, **changes: object) -> Result:
        key = (variant, lost, tuple(changes.items()))
        if key not in known:
            flow = tcp("t", "newreno", initial_ssthresh_bytes=12 * SEGMENT)
            flow |= VARIANTS.get(variant, LINUX | {"congestion_control": variant}) | changes
            scenario = single_link(
                [flow], rate_bps=8e6, delay_s=RTT_S / 2, duration_s=5, loss=listed(*lost)
            )
            known[key] = run_ns2(scenario, trace=True)
        return known[key]

    return run


def resent(result: Result) -> list[int]:
    """Return the segments sent again, in order."""
    return [event.sequence // SEGMENT for event in result.events("retransmit")]


def times(result: Result) -> list[float]:
    """Return when segments were sent again."""
    return [event.time_s for event in result.events("retransmit")]


def next_sends(result: Result, after: Event) -> list[Event]:
    """Return what was sent for the first time after an event."""
    later = result.trace[result.trace.index(after) + 1 :]
    return [event for event in later if event.event == "send"]


@pytest.mark.parametrize("variant", [*VARIANTS, "cubic"])
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


@pytest.mark.parametrize("variant", ["cubic", "linuxreno", "westwood_plus", "bic", "htcp"])
def test_linux_agents_repair_by_sack(recover: Run, variant: str) -> None:
    result = recover(variant, 30, 32, 34)
    assert resent(result) == [29, 31, 33]
    assert times(result)[-1] - times(result)[0] < 1.05 * RTT_S
    assert result.number("t", "timeouts") == 0


def test_tahoe_slow_starts_after_one_loss(recover: Run) -> None:
    result = recover("tahoe", 30)
    (again,) = result.events("retransmit")
    assert again.cwnd == SEGMENT
    assert again.ssthresh == 6 * SEGMENT  # half of 13 in flight, in whole segments
    following = next_sends(result, again)
    assert following[0].time_s - again.time_s == pytest.approx(RTT_S, rel=0.05)
    assert following[0].cwnd == 2 * SEGMENT
    rounds = [0, 0, 0]
    for event in following:
        n = int((event.time_s - again.time_s) / RTT_S) - 1
        if n < 3:
            rounds[n] += 1
    assert rounds == [2, 4, 6]  # slow start to 6 segments, then one segment a RTT


def test_reno_recovers_one_loss_without_slow_start(recover: Run) -> None:
    result = recover("reno", 30)
    (again,) = result.events("retransmit")
    assert again.ssthresh == 6 * SEGMENT
    assert again.cwnd == pytest.approx(6.5 * SEGMENT, abs=0.5 * SEGMENT)  # not inflated
    # 13 in flight and 12 duplicates: 6 + 12 = 18, so 18 - 13 = 5 new segments in recovery.
    acked = next(e for e in result.events("ack") if e.sequence > 29 * SEGMENT)
    during = [e for e in next_sends(result, again) if e.time_s < acked.time_s]
    assert len(during) == 5
    after = next(e for e in next_sends(result, again) if e.time_s >= acked.time_s)
    assert after.cwnd >= again.cwnd
    assert min(e.cwnd for e in result.trace if e.time_s > again.time_s) == again.cwnd


@pytest.mark.parametrize("lost", [(30, 32), (30, 32, 34), (28, 30, 32, 34)])
def test_reno_times_out_on_two_and_more_losses(recover: Run, lost: tuple[int, ...]) -> None:
    # Fall and Floyd's Reno repairs two losses by a second fast retransmit. ns-2.35 has bugFix_ on
    # by default: duplicates below the highest segment sent before the loss start no other one.
    result = recover("reno", *lost)
    assert result.number("t", "timeouts") == 1
    (timeout,) = result.events("timeout")
    restart = next(e for e in result.events("retransmit") if e.time_s >= timeout.time_s)
    assert restart.cwnd == SEGMENT
    assert timeout.time_s - times(result)[0] > MINIMUM_RTO_S


@pytest.mark.parametrize("lost", [(30, 32), (30, 32, 34), (28, 30, 32, 34)])
def test_newreno_repairs_one_loss_a_round_trip_without_timeout(
    recover: Run, lost: tuple[int, ...]
) -> None:
    result = recover("newreno", *lost)
    assert resent(result) == [n - 1 for n in lost]
    assert result.number("t", "timeouts") == 0
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
    windows = [1, 2, 2, 3, 3, 3, 4, 4, 4]
    assert [e.cwnd // SEGMENT for e in result.events("retransmit")] == windows[: len(expected)]
    assert result.number("t", "timeouts") == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_lost_repair_waits_for_the_timeout(recover: Run, variant: str) -> None:
    # The repair crosses after the 12 others of the window (31..42) and so is packet 43.
    result = recover(variant, 30, 43)
    assert resent(result)[0:2] == [29, 29]
    assert result.number("t", "timeouts") >= 1
    timeout = result.events("timeout")[0]
    restart = next(e for e in result.events("retransmit") if e.time_s >= timeout.time_s)
    assert (restart.sequence, restart.cwnd) == (29 * SEGMENT, SEGMENT)


@pytest.mark.parametrize("variant", [*VARIANTS, "cubic"])
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


def test_limited_transmit_sends_two_segments_before_recovery(recover: Run) -> None:
    # RFC 3042: each of the first two duplicates lets one new segment out.
    counts = {}
    for limited in (False, True):
        for variant in ("tahoe", "reno", "newreno", "sack"):
            result = recover(variant, 30, limited_transmit=limited)
            first = times(result)[0]
            duplicates = [
                e for e in result.events("ack") if e.sequence == 29 * SEGMENT and e.time_s < first
            ][1:]
            sent = [e for e in result.events("send") if duplicates[0].time_s <= e.time_s < first]
            counts[variant, limited] = len(sent)
    assert counts == {(v, n): 2 * n for v in VARIANTS for n in (False, True)}
