"""Loss recovery where engines differ: Reno, PRR, and ns-2's Linux agents.

Reno is Fall and Floyd's (1996) on ns-3. ns-2.35 has bugFix_ on by default: duplicates below the
highest segment sent before the loss start no second fast retransmit, so two losses time out.
"""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import Bench, Run
from tests.engines.engine_results import (
    MINIMUM_RTO_S,
    RTT_S,
    VARIANTS,
    next_sends,
    resent,
    times,
)
from tests.engines.engine_scenarios import SEGMENT

NS3, NS2 = (pytest.mark.parametrize("bench", [name], indirect=True) for name in ("ns3", "ns2"))


@pytest.mark.parametrize("bench", ["ns3", "ns2"], indirect=True)
def test_reno_recovers_one_loss_without_slow_start(bench: Bench, recover: Run) -> None:
    result = recover("reno", 30)
    (again,) = result.events("retransmit")
    # Half of 13 segments, of which ns-2 counts whole ones; ns-3 inflates by the three duplicates.
    half, inflated = (6500, 3 * SEGMENT) if bench.name == "ns3" else (6000, 0)
    assert again.ssthresh == half
    slack = 0 if bench.name == "ns3" else 500
    assert again.cwnd == pytest.approx(6500 + inflated, abs=slack)
    # 13 in flight and 9 more duplicates: 9.5 + 9 = 18.5, so 18 - 13 = 5 new segments in recovery.
    # (ns-2: 12 duplicates, 6 + 12 = 18.)
    acked = next(e for e in result.events("ack") if e.sequence > 29 * SEGMENT)
    during = [e for e in next_sends(result, again) if e.time_s < acked.time_s]
    assert len(during) == 5
    after = next(e for e in next_sends(result, again) if e.time_s >= acked.time_s)
    lowest = min(e.cwnd for e in result.trace if e.time_s > again.time_s)
    if bench.name == "ns3":
        assert during[-1].cwnd == 18 * SEGMENT + 500
        assert after.cwnd == lowest == 6500  # deflated by the first new acknowledgement
    else:
        assert after.cwnd >= again.cwnd == lowest


@pytest.mark.parametrize(
    ("bench", "lost"),
    [
        *(("ns3", lost) for lost in ((30, 32, 34), (28, 30, 32, 34))),
        *(("ns2", lost) for lost in ((30, 32), (30, 32, 34), (28, 30, 32, 34))),
    ],
    indirect=["bench"],
)
def test_reno_times_out_on_several_losses(recover: Run, lost: tuple[int, ...]) -> None:
    result = recover("reno", *lost)
    assert result.number("t", "timeouts") == 1
    (timeout,) = result.events("timeout")
    restart = next(e for e in result.events("retransmit") if e.time_s >= timeout.time_s)
    assert restart.cwnd == SEGMENT
    assert timeout.time_s - times(result)[0] > MINIMUM_RTO_S


@NS3
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


@NS3
def test_newreno_retransmits_at_the_partial_acknowledgement(recover: Run) -> None:
    result = recover("newreno", 30, 32)
    first, second = result.events("retransmit")
    assert [first.sequence, second.sequence] == [29 * SEGMENT, 31 * SEGMENT]
    assert second.ssthresh == first.ssthresh  # one reduction for the whole window
    assert second.time_s - first.time_s == pytest.approx(RTT_S, rel=0.05)


@NS3
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


@NS3
def test_prr_paces_the_reduction(recover: Run) -> None:
    # RFC 6937: cwnd follows what is delivered down to ssthresh instead of jumping there.
    classic, prr = (recover("sack", 30, **how) for how in ({}, {"recovery": "prr"}))
    jumped, paced = (result.events("retransmit")[0] for result in (classic, prr))
    assert jumped.ssthresh == paced.ssthresh == jumped.cwnd < paced.cwnd


@NS2
@pytest.mark.parametrize("variant", ["cubic", "linuxreno", "westwood_plus", "bic", "htcp"])
def test_linux_agents_repair_by_sack(recover: Run, variant: str) -> None:
    result = recover(variant, 30, 32, 34)
    assert resent(result) == [29, 31, 33]
    assert times(result)[-1] - times(result)[0] < 1.05 * RTT_S
    assert result.number("t", "timeouts") == 0


@NS2
def test_a_linux_agent_needs_its_losses_and_its_timer(recover: Run) -> None:
    assert resent(recover("cubic", 1_000_000)) == []
    result = recover("cubic", 5, 6, maximum_window_bytes=SEGMENT)
    assert resent(result) == [4, 4]
    assert times(result)[1] - times(result)[0] == pytest.approx(2 * MINIMUM_RTO_S, rel=1e-5)
