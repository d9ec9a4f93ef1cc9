"""Loss recovery of ns-2's Linux agents, and of its Reno where it is not Fall and Floyd's."""

from __future__ import annotations

import pytest
from engine_bench import Run
from engine_recovery import MINIMUM_RTO_S, RTT_S, SEGMENT, next_sends, resent, times

pytestmark = pytest.mark.parametrize("bench", ["ns2"], indirect=True)


@pytest.mark.parametrize("variant", ["cubic", "linuxreno", "westwood_plus", "bic", "htcp"])
def test_linux_agents_repair_by_sack(recover: Run, variant: str) -> None:
    result = recover(variant, 30, 32, 34)
    assert resent(result) == [29, 31, 33]
    assert times(result)[-1] - times(result)[0] < 1.05 * RTT_S
    assert result.number("t", "timeouts") == 0


@pytest.mark.parametrize("variant", ["cubic"])
def test_a_linux_agent_needs_its_losses_and_its_timer(recover: Run, variant: str) -> None:
    assert resent(recover(variant, 1_000_000)) == []
    result = recover(variant, 5, 6, maximum_window_bytes=SEGMENT)
    assert resent(result) == [4, 4]
    assert times(result)[1] - times(result)[0] == pytest.approx(2 * MINIMUM_RTO_S, rel=1e-5)


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
