"""Laws that any simulation of TCP must obey, on ns-2: no framing, and times of a microsecond."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from engine_results import Result
from engine_scenarios import (
    TCP_IP_HEADER_BYTES,
    cbr,
    droptail,
    dumbbell,
    link,
    pfifo,
    red,
    single_link,
    tcp,
)

Run = Callable[..., Result]
SEGMENT = 1000
PACKET_BITS = 8 * (SEGMENT + TCP_IP_HEADER_BYTES)
#: ns-2 writes times in microseconds; a difference of two is wrong by one at most.
TICK_S = 1e-6
QUEUES = [droptail(20), {"kind": "droptail", "limit_bytes": 20000}, pfifo(20), red(5, 15)]


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: str(queue["kind"]))
def test_packets_are_conserved(run_ns2: Run, queue: dict[str, Any]) -> None:
    flows = [
        tcp("t", "newreno"),
        cbr("c", 1.5e6, start_s=2),
        tcp("v", "cubic", sack=True, limited_transmit=True),
    ]
    loss = {"kind": "random", "probability": 0.01}
    result = run_ns2(dumbbell(flows, queue=queue, loss=loss, duration_s=7))
    room = 1000 + 3 + 1
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
    data = sum(int(row["packets_dropped"]) for row in result.flows.values())
    assert monitored == data + result.run["control_packets_dropped"]


def test_delay_of_an_empty_path_is_propagation_and_serialisation(run_ns2: Run) -> None:
    hops = [(10e6, 0.003), (1.5e6, 0.04), (2e6, 0.0071)]
    names = ["s0", "a", "b", "d0"]
    scenario = single_link([cbr("c", 1e5, packet_bytes=500)], duration_s=5)
    scenario["nodes"] = names
    scenario["links"] = [
        link(f"l{i}", names[i], names[i + 1], rate, delay) for i, (rate, delay) in enumerate(hops)
    ]
    scenario["monitors"] = []
    result = run_ns2(scenario)
    expected = sum(delay + 8 * 500 / rate for rate, delay in hops)
    assert result.number("c", "delay_mean_s") == pytest.approx(expected, abs=TICK_S)
    assert result.number("c", "delay_p95_s") == pytest.approx(expected, abs=TICK_S)


def test_delay_is_never_below_the_path(run_ns2: Run) -> None:
    flows = [tcp("t", "cubic", sack=True, limited_transmit=True), cbr("c", 4e5)]
    result = run_ns2(dumbbell(flows, queue=droptail(30)))
    floor = 0.02 + 2e-4 + 8 * 1000 / 2e6 + 2 * 8 * 1000 / 1e9
    for flow in ("t", "c"):
        assert min(result.samples("delay_s", flow=flow)) >= floor - TICK_S
        assert result.number(flow, "delay_p95_s") >= result.number(flow, "delay_mean_s")


def test_cbr_spacing_and_counts(run_ns2: Run) -> None:
    # 1000 bytes at 300 kbit/s: one packet each 26.67 ms, so 375 in 10 s; the last left at 9.973 s
    # and takes 44 ms.
    result = run_ns2(single_link([cbr("c", 3e5)], delay_s=0.04, duration_s=10))
    assert result.number("c", "packets_sent") == 375
    assert result.number("c", "packets_received") == 374
    assert result.number("c", "packets_in_flight") == 1
    rates = result.samples("throughput_bps", flow="c", after_s=1)
    assert sum(rates) / len(rates) == pytest.approx(3e5, rel=0.01)


@pytest.mark.parametrize(
    "control", ["newreno", "reno", "tahoe", "vegas", "cubic", "linuxreno", "highspeed"]
)
def test_a_saturating_flow_fills_the_link_and_no_more(run_ns2: Run, control: str) -> None:
    # The buffer holds twice the bandwidth-delay product (20 packets), so even halving keeps the
    # link busy; slow start with a threshold avoids the initial burst of losses.
    linux = control in ("cubic", "linuxreno", "highspeed")
    flow = tcp("t", control, initial_ssthresh_bytes=20000, sack=linux, limited_transmit=True)
    queue = droptail(40)
    result = run_ns2(single_link([flow], rate_bps=4e6, delay_s=0.02, duration_s=30, queue=queue))
    rate = result.number("t", "throughput_bps")
    assert rate <= 4e6
    # Tahoe restarts from one segment: about log2(30) of some 60 round trips a cycle are not full.
    assert rate >= (0.9 if control == "tahoe" else 0.97) * 4e6
    assert max(result.samples("throughput_bps", link="wire:ab")) <= 4e6 + PACKET_BITS / 0.1


@pytest.mark.parametrize(("timestamps", "header"), [(False, 40), (True, 52)])
def test_rtt_of_an_empty_link(run_ns2: Run, timestamps: bool, header: int) -> None:
    flow = tcp("t", "newreno", maximum_window_bytes=SEGMENT, timestamps=timestamps)
    result = run_ns2(single_link([flow], rate_bps=1e6, delay_s=0.03))
    rtt = 0.06 + 8 * (SEGMENT + 2 * header) / 1e6
    assert result.samples("rtt_s", flow="t", after_s=1) == pytest.approx([rtt] * 90, abs=TICK_S)
    # The mean includes the SYN's sample, which is shorter by what a segment takes longer to send.
    assert result.number("t", "rtt_mean_s") == pytest.approx(rtt, rel=0.002)
    bits = result.number("t", "throughput_bps") * 10
    assert bits / 8 / result.number("t", "packets_received") == SEGMENT + header


@pytest.mark.parametrize("control", ["reno", "vegas", "cubic"])
def test_packets_have_their_headers_whichever_agent(run_ns2: Run, control: str) -> None:
    # ns-2's Vegas forgets them by itself.
    linux = control == "cubic"
    flow = tcp("t", control, maximum_window_bytes=4000, sack=linux, limited_transmit=linux)
    result = run_ns2(single_link([flow], rate_bps=1e6, delay_s=0.03))
    # The very first packet of a Linux agent stands for the SYN, which takes the headers.
    missing = 40 if linux else 0
    size = result.number("t", "throughput_bps") * 10 / 8
    packets = result.number("t", "packets_received")
    assert size == pytest.approx(packets * (SEGMENT + 40) - missing)
    serialisation = 0.03 + 8 * (SEGMENT + 40) / 1e6
    assert min(result.samples("delay_s", flow="t", after_s=1)) >= serialisation - TICK_S


def test_window_cap_gives_window_over_rtt(run_ns2: Run) -> None:
    for control, segments in (("newreno", 10), ("newreno", 101), ("vegas", 10), ("cubic", 10)):
        cap = segments * SEGMENT
        linux = control == "cubic"
        # The remainder of a segment in the cap can never be filled.
        flow = tcp("t", control, maximum_window_bytes=cap + 999, sack=linux, limited_transmit=linux)
        if control == "vegas":
            flow["vegas_alpha_packets"] = flow["vegas_beta_packets"] = 1000
        result = run_ns2(single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=5), trace=True)
        outstanding, highest, acked = 0, 0, 0
        for event in result.trace:
            if event.event == "send":
                highest = event.sequence + SEGMENT
            else:
                acked = max(acked, event.sequence)
            outstanding = max(outstanding, highest - acked)
        assert outstanding == cap
        rates = result.samples("throughput_bps", flow="t", after_s=3)
        mean = sum(rates) / len(rates)
        ip_cap_bits = segments * (SEGMENT + TCP_IP_HEADER_BYTES) * 8
        assert mean == pytest.approx(ip_cap_bits / 0.1, rel=0.01)


def rounds(result: Result, rtt_s: float) -> list[int]:
    """Return how many segments were sent in each round trip from the first on."""
    sends = result.events("send")
    counts = Counter(int((event.time_s - sends[0].time_s) / rtt_s + 0.02) for event in sends)
    return [counts[n] for n in range(max(counts) + 1)]


@pytest.mark.parametrize("first", [1, 2, 4, 10])
def test_slow_start_doubles_each_round_trip(run_ns2: Run, first: int) -> None:
    flow = tcp("t", "newreno", initial_window_segments=first)
    result = run_ns2(single_link([flow], rate_bps=1e9, delay_s=0.1, duration_s=1.5), trace=True)
    assert rounds(result, 0.2)[:6] == [first * 2**n for n in range(6)]


def test_slow_start_grows_by_half_with_delayed_acks(run_ns2: Run) -> None:
    flow = tcp("t", "newreno", delayed_ack_segments=2)
    result = run_ns2(single_link([flow], rate_bps=1e9, delay_s=0.1, duration_s=3.1), trace=True)
    counts = rounds(result, 0.2)
    # Odd rounds leave one segment to the next acknowledgement: within one segment of 1.5.
    for before, after in pairwise(counts[4:13]):
        assert after == pytest.approx(1.5 * before, abs=1.5)


@pytest.mark.parametrize(("acked", "slope"), [(1, 1.0), (2, 0.5)])
def test_congestion_avoidance_adds_a_segment_a_round_trip(
    run_ns2: Run, acked: int, slope: float
) -> None:
    flow = tcp("t", "newreno", initial_ssthresh_bytes=20000, delayed_ack_segments=acked)
    scenario = single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=4)
    result = run_ns2(scenario)
    cwnd = result.samples("cwnd_bytes", flow="t", after_s=1)
    growth = (cwnd[-1] - cwnd[0]) / SEGMENT / (len(cwnd) - 1)  # samples are one RTT apart
    # 1 / cwnd per acknowledgement can only fall short of one a RTT: for 20 to 60 segments by 2 %
    # as cwnd grows within the RTT, and 2 % as only whole segments are sent (so acknowledged). It
    # grows in bursts, so that one more of them may fall between the first and the last sample.
    assert 0.94 * slope <= growth <= slope * (1 + 1 / (len(cwnd) - 1))


def test_throughput_falls_with_the_root_of_the_loss_rate(run_ns2: Run) -> None:
    # Mathis et al. 1997: BW = (MSS / RTT) C / sqrt(p), C = sqrt(3/2) without delayed ACKs.
    # Some 200 losses each: the mean of as many cycles has a standard error of about 4 %, so a
    # quotient within 15 % and a constant within 25 % (the model ignores recovery itself).
    constants = []
    for probability, duration_s in ((0.004, 150), (0.001, 300)):
        loss = {"kind": "random", "probability": probability}
        flow = tcp("t", "newreno", initial_ssthresh_bytes=20000)
        scenario = single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=duration_s, loss=loss)
        scenario["sampling_interval_s"] = 10
        result = run_ns2(scenario)
        segments_per_rtt = result.number("t", "goodput_bps") / 8 / SEGMENT * 0.1
        assert result.number("t", "loss_rate") == pytest.approx(probability, rel=0.25)
        constants.append(segments_per_rtt * math.sqrt(result.number("t", "loss_rate")))
    assert constants[0] / constants[1] == pytest.approx(1, abs=0.15)
    for constant in constants:
        assert constant == pytest.approx(math.sqrt(1.5), rel=0.25)


def test_two_identical_flows_converge(run_ns2: Run) -> None:
    # RED, so that no phase effect of DropTail keeps one of them down (Floyd and Jacobson 1992).
    flows = [
        tcp("first", "newreno", sack=True),
        tcp("second", "newreno", sack=True, start_s=10, source="s1", destination="d1"),
    ]
    result = run_ns2(dumbbell(flows, rate_bps=5e6, duration_s=60, queue=red(5, 15), pairs=2))
    rates = [result.samples("throughput_bps", flow=f, after_s=25) for f in ("first", "second")]
    means = [sum(rate) / len(rate) for rate in rates]
    jain = sum(means) ** 2 / (2 * sum(mean**2 for mean in means))
    assert jain > 0.95


def test_cbr_over_capacity_loses_the_excess(run_ns2: Run) -> None:
    # Of R offered the link carries C: 1 - C/R is lost, but for the last queue.
    queue = droptail(10)
    result = run_ns2(single_link([cbr("c", 4e6)], rate_bps=2e6, duration_s=20, queue=queue))
    assert result.number("c", "loss_rate") == pytest.approx(0.5, abs=0.003)
    assert result.number("c", "throughput_bps") == pytest.approx(2e6, rel=0.005)
    # The queue is full all the time: ten wait while one is sent.
    assert result.number("c", "delay_p95_s") == pytest.approx(0.02 + 11 * 0.004, abs=2 * TICK_S)


def test_throughput_of_a_monitor_ends_with_the_transmission(run_ns2: Run) -> None:
    # One packet of 80 ms each 100 ms, from 0.05 s: what is being sent at a sample does not count
    # yet, and the propagation of half a second plays no role.
    flow = cbr("c", 8e4, start_s=0.05)
    result = run_ns2(single_link([flow], rate_bps=1e5, delay_s=0.5, duration_s=1))
    rates = result.samples("throughput_bps", link="wire:ab")
    assert rates == pytest.approx([0] + [8e4] * 9)


def test_random_loss_has_its_probability(run_ns2: Run) -> None:
    loss = {"kind": "random", "probability": 0.1}
    result = run_ns2(single_link([cbr("c", 4e6)], rate_bps=1e7, duration_s=20, loss=loss))
    n = result.number("c", "packets_sent")
    assert n == 10000
    # Four standard deviations of a binomial count.
    assert result.number("c", "loss_rate") == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / n))


def test_listed_losses_are_exactly_those(run_ns2: Run) -> None:
    loss = {"kind": "listed", "flow": "c", "data_packets": [1, 3, 25]}
    flows = [cbr("c", 8e4), cbr("other", 8e4)]
    result = run_ns2(single_link(flows, duration_s=10, loss=loss))
    assert result.number("c", "packets_dropped") == 3
    assert result.number("other", "packets_dropped") == 0
    # 10 packets a second: numbers 1 and 3 fall into the first tenths, 25 into the one at 2.4 s.
    lossy = [
        round(float(row["time_s"]), 1)
        for row in result.series
        if row["flow"] == "c" and row["drops"] == "1"
    ]
    assert lossy == [0.1, 0.3, 2.5]


@pytest.mark.parametrize("control", ["reno", "vegas", "linuxreno"])
def test_listed_losses_count_data_whether_or_not_there_is_a_syn(run_ns2: Run, control: str) -> None:
    linux = control == "linuxreno"
    flow = tcp("t", control, sack=linux, limited_transmit=linux, initial_window_segments=2)
    loss = {"kind": "listed", "flow": "t", "data_packets": [5]}
    result = run_ns2(single_link([flow], duration_s=5, loss=loss), trace=True)
    again = result.events("retransmit")
    assert [event.sequence for event in again] == [4 * SEGMENT]


def test_a_stopped_flow_is_silent(run_ns2: Run) -> None:
    flow = tcp("t", "newreno", start_s=1, stop_s=3)
    loss = {"kind": "random", "probability": 0.02}
    result = run_ns2(single_link([flow], duration_s=8, loss=loss), trace=True)
    times = [event.time_s for event in result.events("send", "retransmit")]
    assert min(times) > 1 and max(times) <= 3
    assert result.number("t", "packets_in_flight") == 0
    before = [row for row in result.series if row["flow"] == "t" and float(row["time_s"]) < 1]
    assert {row["cwnd_bytes"] for row in before} == {""}
    assert {row["throughput_bps"] for row in before} == {"0"}
    late = result.samples("throughput_bps", flow="t", after_s=4.5)
    assert set(late) == {0}
    shown = [float(row["time_s"]) for row in result.series if row["cwnd_bytes"]]
    assert (min(shown), max(shown)) == (1.1, 3)


def test_routes_take_the_fewest_hops_and_the_earlier_link(run_ns2: Run) -> None:
    scenario = single_link([cbr("c", 1e5)], duration_s=2)
    scenario["nodes"] = ["s0", "a", "b", "d0"]
    scenario["links"] = [
        link("long1", "s0", "a", 1e6, 0.1),
        link("first", "s0", "b", 1e6, 0.02),
        link("twin", "s0", "b", 1e6, 0.5),
        link("long2", "a", "b", 1e6, 0.1),
        link("last", "b", "d0", 1e6, 0.01),
    ]
    scenario["monitors"] = [{"link": name} for name in ("long1", "first", "twin", "last")]
    result = run_ns2(scenario)
    assert result.number("c", "delay_mean_s") == pytest.approx(0.03 + 0.016, abs=TICK_S)
    used = {
        name: sum(result.samples("throughput_bps", link=f"{name}:ab")) > 0
        for name in ("long1", "first", "twin", "last")
    }
    assert used == {"long1": False, "first": True, "twin": False, "last": True}


def test_a_thousand_flows_on_two_thousand_nodes(run_ns2: Run) -> None:
    flows = [
        tcp(
            f"t{i}",
            "newreno",
            source=f"s{i}",
            destination=f"d{i}",
            start_s=i * 1e-4,
            maximum_window_bytes=SEGMENT,  # so that the queue of 1000 packets holds them all
        )
        for i in range(1000)
    ]
    scenario = dumbbell(flows, rate_bps=1e8, duration_s=1, pairs=1000, sampling_interval_s=0.5)
    result = run_ns2(scenario)
    assert len(result.flows) == 1000
    assert min(float(row["packets_received"]) for row in result.flows.values()) >= 9
