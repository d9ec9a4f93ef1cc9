"""Loss recovery of our ns-3 Reno, which is Fall and Floyd's (1996), and of PRR."""

from __future__ import annotations

import pytest
from engine_bench import Run
from engine_recovery import MINIMUM_RTO_S, RTT_S, SEGMENT, VARIANTS, next_sends, resent, times

pytestmark = pytest.mark.parametrize("bench", ["ns3"], indirect=True)


def test_reno_recovers_one_loss_without_slow_start(recover: Run) -> None:
    result = recover("reno", 30)
    (again,) = result.events("retransmit")
    assert again.ssthresh == 6500
    assert again.cwnd == 6500 + 3 * SEGMENT  # inflated by the three duplicates
    # 13 in flight and 9 more duplicates: 9.5 + 9 = 18.5, so 18 - 13 = 5 new segments in recovery.
    acked = next(e for e in result.events("ack") if e.sequence > 29 * SEGMENT)
    during = [e for e in next_sends(result, again) if e.time_s < acked.time_s]
    assert len(during) == 5
    assert during[-1].cwnd == 18 * SEGMENT + 500
    after = next(e for e in next_sends(result, again) if e.time_s >= acked.time_s)
    assert after.cwnd == 6500  # deflated by the first new acknowledgement
    assert min(e.cwnd for e in result.trace if e.time_s > again.time_s) == 6500


def test_reno_needs_a_second_fast_retransmit_for_two_losses(recover: Run) -> None:
    result = recover("reno", 30, 32)
    first, second = result.events("retransmit")
    assert [first.sequence, second.sequence] == [29 * SEGMENT, 31 * SEGMENT]
    assert result.number("t", "timeouts") == 0
    # Halved twice: 13 -> 6.5 -> 3.25 segments. The first new acknowledgement ended recovery, so
    # the second repair waited for three duplicates of its own: nearly two RTT after the first.
    assert first.ssthresh == 6500
    assert second.ssthresh == 3250
    assert second.cwnd == 3250 + 3 * SEGMENT
    assert second.time_s - first.time_s > 1.5 * RTT_S


def test_newreno_retransmits_at_the_partial_acknowledgement(recover: Run) -> None:
    result = recover("newreno", 30, 32)
    first, second = result.events("retransmit")
    assert [first.sequence, second.sequence] == [29 * SEGMENT, 31 * SEGMENT]
    assert second.ssthresh == first.ssthresh  # one reduction for the whole window
    assert second.time_s - first.time_s == pytest.approx(RTT_S, rel=0.05)


@pytest.mark.parametrize("lost", [(30, 32, 34), (28, 30, 32, 34)])
def test_reno_times_out_on_three_and_more_losses(recover: Run, lost: tuple[int, ...]) -> None:
    result = recover("reno", *lost)
    assert result.number("t", "timeouts") == 1
    (timeout,) = result.events("timeout")
    restart = next(e for e in result.events("retransmit") if e.time_s >= timeout.time_s)
    assert restart.cwnd == SEGMENT
    assert timeout.time_s - times(result)[0] > MINIMUM_RTO_S


def test_each_variant_has_its_own_signature(recover: Run) -> None:
    # Any two variants swapped would change this table.
    signature = {
        variant: (
            tuple(resent(recover(variant, 30, 32, 34))),
            int(recover(variant, 30, 32, 34).number("t", "timeouts")),
            recover(variant, 30).events("retransmit")[0].cwnd,
        )
        for variant in VARIANTS
    }
    assert signature["tahoe"] == ((29, 31, 32, 33, 34, 35), 0, 1000)
    assert signature["reno"] == ((29, 31, 33), 1, 9500)
    assert signature["newreno"] == ((29, 31, 33), 0, 6000)
    assert signature["sack"][:2] == ((29, 31, 33), 0)
    # SACK is told from NewReno by time: all repairs within one RTT instead of one each.
    spread = {
        v: times(recover(v, 30, 32, 34))[-1] - times(recover(v, 30, 32, 34))[0]
        for v in ("newreno", "sack")
    }
    assert spread["newreno"] > 1.9 * RTT_S > 1.05 * RTT_S > spread["sack"]


def test_prr_paces_the_reduction(recover: Run) -> None:
    # RFC 6937: cwnd follows what is delivered down to ssthresh instead of jumping there.
    classic = recover("sack", 30)
    prr = recover("sack", 30, recovery="prr")
    assert classic.events("retransmit")[0].ssthresh == prr.events("retransmit")[0].ssthresh
    assert classic.events("retransmit")[0].cwnd == classic.events("retransmit")[0].ssthresh
    assert prr.events("retransmit")[0].cwnd > classic.events("retransmit")[0].cwnd
