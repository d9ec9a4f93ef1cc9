"""Queue disciplines hold what they promise, and congestion controls that aim at a queue meet it."""

from __future__ import annotations

from collections.abc import Callable

from engine_results import Result
from engine_scenarios import cbr, codel, droptail, dumbbell, pfifo, pie, red, single_link, tcp

Run = Callable[..., Result]
RATE_BPS = 1e7
PACKET_S = 8 * 1042 / RATE_BPS


def mean(values: list[float]) -> float:
    """Return the mean of samples that must exist."""
    assert values
    return sum(values) / len(values)


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


def test_droptail_never_exceeds_its_limit(run_ns3: Run) -> None:
    result = queue_samples(run_ns3, droptail(25))
    assert max(result.samples("queue_packets", link="wire:ab")) == 25


def test_droptail_in_bytes_never_exceeds_its_limit(run_ns3: Run) -> None:
    result = queue_samples(run_ns3, {"kind": "droptail", "limit_bytes": 30000})
    # Packets are 1042 bytes on the wire: 28 fit into 30000.
    assert max(result.samples("queue_packets", link="wire:ab")) == 28


def test_pfifo_counts_the_device_queue_too(run_ns3: Run) -> None:
    result = queue_samples(run_ns3, pfifo(25))
    assert max(result.samples("queue_packets", link="wire:ab")) == 26


def test_codel_holds_the_sojourn_time_near_its_target(run_ns3: Run) -> None:
    # CoDel keeps the minimum over an interval at the target; with sawtooths the mean lies between
    # half of it and three times it. DropTail of the same limit fills its buffer instead.
    waits = {}
    for name, queue in (("codel", codel(0.005)), ("droptail", droptail(200))):
        result = queue_samples(run_ns3, queue)
        waits[name] = mean(result.samples("queue_packets", link="wire:ab", after_s=5)) * PACKET_S
    assert 0.0025 < waits["codel"] < 0.015
    assert waits["droptail"] > 0.06


def test_codel_follows_its_target(run_ns3: Run) -> None:
    waits = [
        mean(queue_samples(run_ns3, codel(target)).samples("delay_s", flow="t0", after_s=5))
        for target in (0.005, 0.02)
    ]
    assert waits[1] - waits[0] > 0.5 * (0.02 - 0.005)


def test_red_holds_the_average_between_its_thresholds(run_ns3: Run) -> None:
    result = queue_samples(run_ns3, red(10, 30))
    assert 10 < mean(result.samples("queue_packets", link="wire:ab", after_s=5)) < 30


def test_red_drops_early(run_ns3: Run) -> None:
    result = queue_samples(run_ns3, red(10, 30))
    late = result.samples("queue_packets", link="wire:ab", after_s=5)
    assert max(late) < 150  # the hard limit of 200 is never reached
    assert sum(result.samples("drops", link="wire:ab", after_s=5)) > 0


def losses_by_size(run_ns3: Run, byte_mode: bool) -> float:
    """Return the loss rate of 1000-byte packets over that of 250-byte ones under RED."""
    flows = [cbr("large", 0.6 * RATE_BPS, packet_bytes=1000)]
    flows += [cbr("small", 0.6 * RATE_BPS, packet_bytes=250)]
    queue = red(10, 30) | {"byte_mode": byte_mode}
    scenario = single_link(flows, rate_bps=RATE_BPS, delay_s=0.01, duration_s=30, queue=queue)
    result = run_ns3(scenario)
    return result.number("large", "loss_rate") / result.number("small", "loss_rate")


def test_red_in_byte_mode_drops_in_proportion_to_size(run_ns3: Run) -> None:
    # Floyd and Jacobson 1993, section 4: p is scaled by size over mean size, here 4 to 1; the
    # spreading of drops by count mixes sizes, so half of it is asked for, and none without.
    assert losses_by_size(run_ns3, byte_mode=True) > 2
    assert 0.8 < losses_by_size(run_ns3, byte_mode=False) < 1.25


def test_pie_holds_its_target(run_ns3: Run) -> None:
    # RFC 8033 controls the mean; the sawtooth of four flows leaves it within a factor of two.
    result = queue_samples(run_ns3, pie(0.015))
    wait = mean(result.samples("queue_packets", link="wire:ab", after_s=5)) * PACKET_S
    assert 0.0075 < wait < 0.03


def test_fq_codel_protects_a_thin_flow(run_ns3: Run) -> None:
    delays = {}
    for name, queue in (("fq_codel", codel(kind="fq_codel")), ("pfifo", pfifo(200))):
        flows = [tcp(f"t{i}", "cubic", sack=True) for i in range(3)] + [cbr("thin", 2e5)]
        scenario = single_link(flows, rate_bps=RATE_BPS, delay_s=0.02, duration_s=15, queue=queue)
        result = run_ns3(scenario)
        delays[name] = result.number("thin", "delay_mean_s") - 0.02
        if name == "fq_codel":
            assert result.number("thin", "packets_dropped") == 0
    # Its own queue is empty: it waits for the packet under way, the device's one, and its turn.
    assert delays["fq_codel"] < 6 * PACKET_S
    assert delays["pfifo"] > 10 * delays["fq_codel"]


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


def test_each_flow_has_its_own_congestion_control(run_ns3: Run) -> None:
    # On one pair of hosts: Vegas sees NewReno's queue and gives way.
    flows = [tcp("n", "newreno", sack=True), tcp("v", "vegas", sack=True)]
    result = run_ns3(dumbbell(flows, rate_bps=4e6, duration_s=30, queue=droptail(40)))
    assert result.number("n", "goodput_bps") > 2 * result.number("v", "goodput_bps")


def test_each_direction_has_its_own_queue(run_ns3: Run) -> None:
    # The same overload both ways: each direction drops at its own limit.
    flows = [cbr("forth", 2e7), cbr("back", 2e7, source="d0", destination="s0")]
    scenario = single_link(flows, rate_bps=RATE_BPS, duration_s=2, queue=droptail(7))
    scenario["links"][0]["queue_ba"] = droptail(70)
    scenario["monitors"].append({"link": "wire", "direction": "ba"})
    result = run_ns3(scenario)
    assert max(result.samples("queue_packets", link="wire:ab")) == 7
    assert max(result.samples("queue_packets", link="wire:ba")) == 70
