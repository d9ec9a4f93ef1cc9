"""What only ns-2 has to show: agents of several families, its own queue limits, its traits."""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import Run
from tests.engines.engine_results import outstanding_bytes
from tests.engines.engine_scenarios import (
    TCP_IP_HEADER_BYTES,
    cbr,
    droptail,
    dumbbell,
    pfifo,
    red,
    single_link,
    tcp,
)

SEGMENT = 1000
#: ns-2 writes times in microseconds; a difference of two is wrong by one at most.
TICK_S = 1e-6
LINUX = {"sack": True, "limited_transmit": True, "timestamps": True}


@pytest.mark.parametrize(("timestamps", "header"), [(False, 40), (True, 52)])
def test_rtt_and_sizes_with_and_without_timestamps(
    run_ns2: Run, timestamps: bool, header: int
) -> None:
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


def test_a_window_cap_counts_whole_segments_whichever_agent(run_ns2: Run) -> None:
    for control, segments in (("newreno", 10), ("vegas", 10), ("cubic", 10)):
        cap = segments * SEGMENT
        linux = control == "cubic"
        # The remainder of a segment in the cap can never be filled.
        flow = tcp("t", control, maximum_window_bytes=cap + 999, sack=linux, limited_transmit=linux)
        if control == "vegas":
            flow["vegas_alpha_packets"] = flow["vegas_beta_packets"] = 1000
        result = run_ns2(single_link([flow], rate_bps=1e9, delay_s=0.05, duration_s=5), trace=True)
        assert outstanding_bytes(result) == cap
        rates = result.samples("throughput_bps", flow="t", after_s=3)
        mean = sum(rates) / len(rates)
        ip_cap_bits = segments * (SEGMENT + TCP_IP_HEADER_BYTES) * 8
        assert mean == pytest.approx(ip_cap_bits / 0.1, rel=0.01)


def test_throughput_of_a_monitor_ends_with_the_transmission(run_ns2: Run) -> None:
    # One packet of 80 ms each 100 ms, from 0.05 s: what is being sent at a sample does not count
    # yet, and the propagation of half a second plays no role.
    flow = cbr("c", 8e4, start_s=0.05)
    result = run_ns2(single_link([flow], rate_bps=1e5, delay_s=0.5, duration_s=1))
    rates = result.samples("throughput_bps", link="wire:ab")
    assert rates == pytest.approx([0] + [8e4] * 9)


@pytest.mark.parametrize("control", ["reno", "vegas", "linuxreno"])
def test_listed_losses_count_data_whether_or_not_there_is_a_syn(run_ns2: Run, control: str) -> None:
    linux = control == "linuxreno"
    flow = tcp("t", control, sack=linux, limited_transmit=linux, initial_window_segments=2)
    loss = {"kind": "listed", "flow": "t", "data_packets": [5]}
    result = run_ns2(single_link([flow], duration_s=5, loss=loss), trace=True)
    again = result.events("retransmit")
    assert [event.sequence for event in again] == [4 * SEGMENT]


def test_queues_hold_their_limit_and_no_more(run_ns2: Run) -> None:
    # The packet being transmitted is in no queue, and ns-2's own off-by-one is made up for.
    flow = cbr("c", 4e6)
    for queue, limit in (
        (droptail(25), 25),
        ({"kind": "droptail", "limit_bytes": 25000}, 25),
        ({"kind": "droptail", "limit_bytes": 25999}, 25),
        ({"kind": "droptail", "limit_bytes": 24999}, 24),
        (pfifo(25), 26),
        (pfifo(25) | {"device_queue_packets": 100}, 125),
        (red(100, 150) | {"limit_packets": 25}, 25),
    ):
        result = run_ns2(single_link([flow], rate_bps=2e6, duration_s=3, queue=queue))
        assert max(result.samples("queue_packets", link="wire:ab")) == limit


def test_run_json_states_agents_and_traits(run_ns2: Run) -> None:
    flows = [
        tcp("t", "cubic", **LINUX),
        tcp("r", "reno"),
        tcp("v", "vegas", limited_transmit=True),
    ]
    result = run_ns2(dumbbell(flows, duration_s=1))
    assert result.run["agents"] == {
        "t": "Agent/TCP/Linux cubic",
        "r": "Agent/TCP/Reno",
        "v": "Agent/TCP/Vegas",
    }
    assert "Agent/TCP/Vegas has no limited transmit" in result.run["traits"]
