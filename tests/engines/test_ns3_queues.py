"""What only ns-3 is asked: targets of queues, and congestion controls that aim at a queue."""

from __future__ import annotations

from collections.abc import Callable

from engine_results import Result, mean
from engine_scenarios import codel, pie, single_link, tcp

Run = Callable[..., Result]
RATE_BPS = 1e7
PACKET_S = 8 * 1042 / RATE_BPS


def queue_samples(run: Run, queue: dict[str, object], flows: int = 4, **changes: object) -> Result:
    """Run some SACK flows over 40 ms at 10 Mbit/s through a queue, sampled each 10 ms."""
    many = [tcp(f"t{i}", "newreno", sack=True, start_s=i * 0.05, **changes) for i in range(flows)]
    return run(
        single_link(
            many,
            rate_bps=RATE_BPS,
            delay_s=0.02,
            duration_s=30,
            queue=queue,
            sampling_interval_s=0.01,
        )
    )


def test_codel_follows_its_target(run_ns3: Run) -> None:
    waits = [
        mean(queue_samples(run_ns3, codel(target)).samples("delay_s", flow="t0", after_s=5))
        for target in (0.005, 0.02)
    ]
    assert waits[1] - waits[0] > 0.5 * (0.02 - 0.005)


def test_pie_holds_its_target(run_ns3: Run) -> None:
    # RFC 8033 controls the mean; the sawtooth of four flows leaves it within a factor of two.
    result = queue_samples(run_ns3, pie(0.015))
    wait = mean(result.samples("queue_packets", link="wire:ab", after_s=5)) * PACKET_S
    assert 0.0075 < wait < 0.03


def test_vegas_keeps_alpha_to_beta_packets_in_the_queue(run_ns3: Run) -> None:
    # The flow's backlog is alpha to beta packets, of which one is being transmitted, and the base
    # RTT it measures contains the serialisation: within one packet of the range.
    for alpha, beta in ((2, 4), (10, 14)):
        flow = tcp("t", "vegas", vegas_alpha_packets=alpha, vegas_beta_packets=beta)
        scenario = single_link([flow], rate_bps=4e6, delay_s=0.03, duration_s=30)
        scenario["sampling_interval_s"] = 0.0137
        result = run_ns3(scenario)
        backlog = mean(result.samples("queue_packets", link="wire:ab", after_s=15))
        assert alpha - 1 <= backlog <= beta + 1
        assert result.number("t", "retransmissions") == 0


def test_bbr_fills_the_link_with_a_bounded_queue(run_ns3: Run) -> None:
    # At most two bandwidth-delay products are in flight, so the queue stays below one (48 packets),
    # and every 10 s PROBE_RTT empties it; CUBIC in the same deep buffer leaves several.
    bdp = RATE_BPS * 0.04 / 8 / 1042
    flow = tcp("t", "bbr", sack=True, initial_window_segments=10)
    scenario = single_link([flow], rate_bps=RATE_BPS, delay_s=0.02, duration_s=20)
    result = run_ns3(scenario)
    waiting = result.samples("queue_packets", link="wire:ab", after_s=2)
    assert mean(result.samples("throughput_bps", flow="t", after_s=5)) > 0.9 * RATE_BPS
    assert max(waiting) < 1.1 * bdp
    assert min(waiting) <= 2
    scenario["flows"][0]["congestion_control"] = "cubic"
    cubic = run_ns3(scenario).samples("queue_packets", link="wire:ab", after_s=2)
    assert mean(cubic) > 2 * bdp


def test_highspeed_opens_faster_than_newreno(run_ns3: Run) -> None:
    # RFC 3649 adds a(w) > 1 segments a round trip above 38 segments, NewReno one.
    growth = {}
    for control in ("newreno", "highspeed"):
        flow = tcp("t", control, initial_ssthresh_bytes=200_000)
        result = run_ns3(single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=10))
        cwnd = result.samples("cwnd_bytes", flow="t", after_s=3)
        growth[control] = cwnd[-1] - cwnd[0]
    assert growth["highspeed"] > 2 * growth["newreno"]
