"""Laws that any simulation of TCP must obey, on Linux: rates count IP bytes, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import median

import pytest
from engine_results import Result
from engine_scenarios import Json, cbr, codel, droptail, dumbbell, link, pfifo, pie, single_link
from linux_scenarios import HEADER_BYTES, SEGMENT, TICK_S, linux_red, linux_tcp

Run = Callable[..., Result]
PACKET_BITS = 8 * (SEGMENT + HEADER_BYTES)
QUEUES = [droptail(20), {"kind": "droptail", "limit_bytes": 20000}, pfifo(20), linux_red(5, 15)]
QUEUES += [codel(), codel(kind="fq_codel"), pie()]


def mean(values: list[float]) -> float:
    """Return the mean of samples that must exist."""
    assert values
    return sum(values) / len(values)


def off_beat(scenario: Json) -> Json:
    """Sample at times that no packet of a CBR flow keeps to."""
    return scenario | {"sampling_interval_s": 0.0137}


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: str(queue["kind"]))
def test_packets_are_conserved(run_linux: Run, queue: Json) -> None:
    flows = [linux_tcp("t"), cbr("c", 1.5e6, start_s=2), linux_tcp("v", "cubic", sack=True)]
    loss = {"kind": "random", "probability": 0.01}
    result = run_linux(dumbbell(flows, queue=queue, loss=loss, duration_s=7))
    room = 1000 + 3 + 1  # the bottleneck's queue, what fits into its delay, and one packet
    for flow in ("t", "c", "v"):
        sent, received, dropped, in_flight = (
            int(result.flows[flow][f"packets_{what}"])
            for what in ("sent", "received", "dropped", "in_flight")
        )
        assert sent == received + dropped + in_flight
        assert 0 <= in_flight <= room
        assert dropped > 0
        assert float(result.flows[flow]["loss_rate"]) == pytest.approx(dropped / sent)
        assert float(result.flows[flow]["delivery_ratio"]) == pytest.approx(received / sent)
    drops = sum(result.samples("drops", flow="c"))
    assert drops == float(result.flows["c"]["packets_dropped"])
    again = sum(result.samples("retransmissions", flow="t"))
    assert again == float(result.flows["t"]["retransmissions"])
    monitored = sum(result.samples("drops", link="bottleneck:ab"))
    of_flows = sum(int(row["packets_dropped"]) for row in result.flows.values())
    assert of_flows <= monitored <= of_flows + result.run["control_packets_dropped"]


def test_delay_of_an_empty_path_is_propagation_and_serialisation(run_linux: Run) -> None:
    hops = [(10e6, 0.003), (1.5e6, 0.04), (2e6, 0.0071)]
    names = ["s0", "a", "b", "d0"]
    scenario = single_link([cbr("c", 1e5, packet_bytes=500)], duration_s=5)
    scenario["nodes"] = names
    scenario["links"] = [
        link(f"l{i}", names[i], names[i + 1], rate, delay) for i, (rate, delay) in enumerate(hops)
    ]
    scenario["monitors"] = []
    result = run_linux(scenario)
    expected = sum(delay + 8 * 500 / rate for rate, delay in hops)
    assert result.number("c", "delay_mean_s") == pytest.approx(expected, abs=TICK_S)
    assert result.number("c", "delay_p95_s") == pytest.approx(expected, abs=TICK_S)


def test_delay_is_never_below_the_path(run_linux: Run) -> None:
    flows = [linux_tcp("t", "cubic", sack=True), cbr("c", 4e5)]
    result = run_linux(dumbbell(flows, queue=droptail(30)))
    floor = 0.02 + 2e-4 + 8 * 1000 / 2e6 + 2 * 8 * 1000 / 1e9
    for flow in ("t", "c"):
        assert min(result.samples("delay_s", flow=flow)) >= floor - TICK_S
        assert result.number(flow, "delay_p95_s") >= result.number(flow, "delay_mean_s")


def test_cbr_spacing_and_counts(run_linux: Run) -> None:
    # 1000 bytes at 300 kbit/s: one packet each 26.67 ms, so 375 in 10 s; the last left at 9.973 s
    # and takes 44 ms.
    result = run_linux(single_link([cbr("c", 3e5)], delay_s=0.04, duration_s=10))
    assert result.number("c", "packets_sent") == 375
    assert result.number("c", "packets_received") == 374
    assert mean(result.samples("throughput_bps", flow="c", after_s=1)) == pytest.approx(
        3e5, rel=0.01
    )


@pytest.mark.parametrize("control", ["linuxreno", "cubic", "vegas", "westwood_plus", "htcp"])
def test_a_saturating_flow_fills_the_link_and_no_more(run_linux: Run, control: str) -> None:
    # The buffer holds twice the bandwidth-delay product (20 packets), so even halving keeps the
    # link busy; slow start with a threshold avoids the initial burst of losses.
    flow = linux_tcp("t", control, sack=True)
    queue = droptail(40)
    result = run_linux(single_link([flow], rate_bps=4e6, delay_s=0.02, duration_s=20, queue=queue))
    rate = result.number("t", "throughput_bps")
    assert 0.96 * 4e6 <= rate <= 4e6
    assert max(result.samples("throughput_bps", link="wire:ab")) <= 4e6 + PACKET_BITS / 0.1


def test_rtt_of_an_empty_link(run_linux: Run) -> None:
    # Two segments are the least window: they arrive as a pair, so the second waits for the first.
    flow = linux_tcp("t", maximum_window_bytes=2 * SEGMENT)
    result = run_linux(single_link([flow], rate_bps=1e6, delay_s=0.03))
    low = 0.06 + PACKET_BITS / 1e6 + 8 * HEADER_BYTES / 1e6
    samples = result.samples("rtt_s", flow="t", after_s=1)
    assert min(samples) >= low - 1e-6
    assert max(samples) <= low + PACKET_BITS / 1e6 + 0.0005


@pytest.mark.parametrize("segments", [10, 101])  # 101 000 bytes need window scaling
def test_window_cap_gives_window_over_rtt(run_linux: Run, segments: int) -> None:
    flow = linux_tcp("t", maximum_window_bytes=segments * SEGMENT)
    scenario = single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=5)
    result = run_linux(scenario)
    rate = mean(result.samples("throughput_bps", flow="t", after_s=2))
    assert rate == pytest.approx(segments * PACKET_BITS / 0.1, rel=0.01)


def windows(result: Result) -> list[float]:
    """Return the sampled windows in segments."""
    return [cwnd / SEGMENT for cwnd in result.samples("cwnd_bytes", flow="t")]


def test_slow_start_doubles_each_round_trip(run_linux: Run) -> None:
    # Two samples a round trip.
    flow = linux_tcp("t", maximum_window_bytes=10_000_000)
    scenario = single_link([flow], rate_bps=1e9, delay_s=0.1, duration_s=1.9)
    scenario["sampling_interval_s"] = 0.1
    assert windows(run_linux(scenario))[::2][:8] == [1, 2, 4, 8, 16, 32, 64, 128]


def test_initial_window_is_the_scenarios(run_linux: Run) -> None:
    flow = linux_tcp("t", initial_window_segments=7)
    scenario = single_link([flow], rate_bps=1e9, delay_s=0.1, duration_s=0.4)
    assert windows(run_linux(scenario))[0] == 7


def test_congestion_avoidance_adds_a_segment_a_round_trip(run_linux: Run) -> None:
    flow = linux_tcp("t", sack=True)
    loss = {"kind": "random", "probability": 0.001}
    scenario = single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=60, loss=loss)
    steps = [after - before for before, after in pairwise(windows(run_linux(scenario)))]
    # Samples are one round trip apart; losses cut some steps, and slow start is over in a second.
    assert median(steps[20:]) == 1


def test_throughput_falls_with_the_root_of_the_loss_rate(run_linux: Run) -> None:
    # Mathis et al. 1997: BW = (MSS / RTT) C / sqrt(p), C = sqrt(3/2) without delayed ACKs.
    # Some 200 losses each: the mean of as many cycles has a standard error of about 4 %, so a
    # quotient within 15 % and a constant within 25 % (the model ignores recovery itself).
    constants = []
    for probability, duration_s in ((0.004, 150), (0.001, 300)):
        loss = {"kind": "random", "probability": probability}
        flow = linux_tcp("t", sack=True)
        scenario = single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=duration_s, loss=loss)
        scenario["sampling_interval_s"] = 10
        result = run_linux(scenario)
        segments_per_rtt = result.number("t", "goodput_bps") / 8 / SEGMENT * 0.1
        assert result.number("t", "loss_rate") == pytest.approx(probability, rel=0.25)
        constants.append(segments_per_rtt * math.sqrt(result.number("t", "loss_rate")))
    assert constants[0] / constants[1] == pytest.approx(1, abs=0.15)
    for constant in constants:
        assert constant == pytest.approx(math.sqrt(1.5), rel=0.25)


def test_two_identical_flows_converge(run_linux: Run) -> None:
    flows = [
        linux_tcp("first", sack=True),
        linux_tcp("second", sack=True, start_s=10, source="s1", destination="d1"),
    ]
    # CoDel, so that no phase effect of DropTail keeps one of them down (Floyd and Jacobson 1992).
    result = run_linux(dumbbell(flows, rate_bps=5e6, duration_s=60, queue=codel(), pairs=2))
    means = [mean(result.samples("throughput_bps", flow=f, after_s=25)) for f in result.flows]
    assert sum(means) ** 2 / (2 * sum(rate**2 for rate in means)) > 0.95


def test_cbr_over_capacity_loses_the_excess(run_linux: Run) -> None:
    # Of R offered the link carries C: 1 - C/R is lost, but for the last queue.
    queue = droptail(10)
    scenario = single_link([cbr("c", 4e6)], rate_bps=2e6, duration_s=20, queue=queue)
    result = run_linux(off_beat(scenario))
    assert result.number("c", "loss_rate") == pytest.approx(0.5, abs=0.003)
    assert result.number("c", "throughput_bps") == pytest.approx(2e6, rel=0.005)
    assert max(result.samples("queue_packets", link="wire:ab")) == 10
    # A full queue of ten, the packet under way, and its own transmission: 44 ms and the link.
    assert result.number("c", "delay_p95_s") == pytest.approx(0.02 + 11.5 * 0.004, abs=0.0025)


def test_a_limit_in_bytes_counts_ip_bytes(run_linux: Run) -> None:
    queue = {"kind": "droptail", "limit_bytes": 10_000}
    scenario = single_link([cbr("c", 4e6)], rate_bps=2e6, duration_s=5, queue=queue)
    result = run_linux(off_beat(scenario))
    assert max(result.samples("queue_packets", link="wire:ab")) == 10


def test_random_loss_has_its_probability(run_linux: Run) -> None:
    loss = {"kind": "random", "probability": 0.1}
    result = run_linux(single_link([cbr("c", 4e6)], rate_bps=1e7, duration_s=20, loss=loss))
    n = result.number("c", "packets_sent")
    assert n == 10000
    # Four standard deviations of a binomial count.
    assert result.number("c", "loss_rate") == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / n))


def test_flows_on_one_node_keep_their_own_options(run_linux: Run) -> None:
    flows = [
        linux_tcp("plain", maximum_window_bytes=5000),
        linux_tcp("stamped", "cubic", timestamps=True, sack=True, maximum_window_bytes=5000),
    ]
    result = run_linux(single_link(flows, rate_bps=1e7))
    for flow, header in (("plain", 40), ("stamped", 52)):
        bits = result.number(flow, "throughput_bps") * 10
        assert bits / 8 / result.number(flow, "packets_received") == SEGMENT + header


def test_a_stopped_flow_is_silent(run_linux: Run) -> None:
    flow = linux_tcp("t", start_s=1, stop_s=3)
    loss = {"kind": "random", "probability": 0.02}
    result = run_linux(single_link([flow], duration_s=8, loss=loss))
    assert result.number("t", "packets_in_flight") == 0
    rows = [row for row in result.series if row["flow"] == "t"]
    before = [row for row in rows if float(row["time_s"]) < 1]
    assert {row["cwnd_bytes"] for row in before} == {""}
    assert {row["throughput_bps"] for row in before} == {"0"}
    late = [row for row in rows if float(row["time_s"]) > 4.5]
    assert {row["throughput_bps"] for row in late} == {"0"}
    assert {row["cwnd_bytes"] for row in late} == {""}
    assert set(result.samples("throughput_bps", link="wire:ab", after_s=4.5)) == {0}


@pytest.mark.parametrize(("control", "rival"), [("cubic", "vegas"), ("linuxreno", "vegas")])
def test_each_flow_has_its_own_congestion_control(run_linux: Run, control: str, rival: str) -> None:
    flows = [linux_tcp("n", control, sack=True), linux_tcp("v", rival, sack=True)]
    result = run_linux(dumbbell(flows, rate_bps=4e6, duration_s=30, queue=droptail(40)))
    assert result.number("n", "goodput_bps") > 2 * result.number("v", "goodput_bps")


def test_codel_holds_the_sojourn_time_near_its_target(run_linux: Run) -> None:
    waits = {}
    for name, queue in (("codel", codel(0.005)), ("droptail", droptail(200))):
        flows = [linux_tcp(f"t{i}", sack=True, start_s=i * 0.05) for i in range(4)]
        scenario = single_link(flows, rate_bps=1e7, delay_s=0.02, duration_s=20, queue=queue)
        scenario["sampling_interval_s"] = 0.01
        packets = run_linux(scenario).samples("queue_packets", link="wire:ab", after_s=5)
        waits[name] = mean(packets) * PACKET_BITS / 1e7
    assert 0.0025 < waits["codel"] < 0.015
    assert waits["droptail"] > 0.06


def test_red_holds_the_average_between_its_thresholds(run_linux: Run) -> None:
    # 5 % too much, which takes a drop probability of half the maximum.
    flow = cbr("c", 2.1e6)
    scenario = single_link([flow], rate_bps=2e6, duration_s=30, queue=linux_red(10, 30))
    result = run_linux(off_beat(scenario))
    assert 10 < mean(result.samples("queue_packets", link="wire:ab", after_s=10)) < 30
    assert result.number("c", "loss_rate") == pytest.approx(0.05, abs=0.01)


def test_fq_codel_protects_a_thin_flow(run_linux: Run) -> None:
    delays = {}
    for name, queue in (("fq_codel", codel(kind="fq_codel")), ("pfifo", pfifo(200))):
        flows = [linux_tcp(f"t{i}", "cubic", sack=True) for i in range(3)] + [cbr("thin", 2e5)]
        result = run_linux(
            single_link(flows, rate_bps=1e7, delay_s=0.02, duration_s=10, queue=queue)
        )
        delays[name] = result.number("thin", "delay_mean_s") - 0.02
    # Its own queue is empty: it waits for the packet under way, the device's one, and its turn.
    assert delays["fq_codel"] < 6 * PACKET_BITS / 1e7
    assert delays["pfifo"] > 10 * delays["fq_codel"]


def test_each_direction_has_its_own_queue(run_linux: Run) -> None:
    flows = [cbr("forth", 2e7), cbr("back", 2e7, source="d0", destination="s0")]
    scenario = single_link(flows, rate_bps=1e7, duration_s=2, queue=droptail(7))
    scenario["links"][0]["queue_ba"] = droptail(70)
    scenario["monitors"].append({"link": "wire", "direction": "ba"})
    result = run_linux(off_beat(scenario))
    assert max(result.samples("queue_packets", link="wire:ab")) == 7
    assert max(result.samples("queue_packets", link="wire:ba")) == 70
