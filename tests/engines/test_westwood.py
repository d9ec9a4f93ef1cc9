"""Plain Westwood on ns-3: the properties that its paper claims (Casetti et al., 2002).

An estimate is visible as ssthresh after a loss: the estimate times the least round trip.
"""

import pytest
from measurements.bench import mean
from measurements.scenarios import (
    SEGMENT,
    TCP_IP_HEADER_BYTES,
    cbr,
    codel,
    droptail,
    listed,
    single_link,
)

RATE_BPS, DELAY_S = 1e7, 0.05
PATH = {"rate_bps": RATE_BPS, "delay_s": DELAY_S}
#: Bytes of payload that the path holds with an empty queue.
PIPE = RATE_BPS / 8 * 2 * DELAY_S * SEGMENT / (SEGMENT + TCP_IP_HEADER_BYTES)
RANDOM = {"kind": "random", "probability": 0.001}
ACKNOWLEDGEMENTS = pytest.mark.parametrize("delayed", [1, 2])


def reductions(result, flow="t", after_s=10):
    """Return ssthresh at each segment of a flow that was sent again, as a share of the pipe."""
    again = [e for e in result.events("retransmit") if e.flow == flow and e.time_s > after_s]
    return [event.ssthresh / PIPE for event in again]


@ACKNOWLEDGEMENTS
@pytest.mark.parametrize("sack", [True, False])
def test_westwoods_estimate_for_a_single_flow_is_the_link_rate(ns3, delayed, sack):
    # The window keeps a short queue, so that acknowledgements come at the rate of the link.
    flow = ns3.tcp("t", "westwood", delayed_ack_segments=delayed, sack=sack)
    flow |= {"maximum_window_bytes": 130 * SEGMENT}
    result = ns3.run(single_link([flow], **PATH, duration_s=11, loss=listed(10_000)), trace=True)
    (again,) = result.events("retransmit")
    assert again.time_s > 5
    # The least round trip holds a packet and an acknowledgement too. What is left of the filter's
    # start is exp(-8); delayed acknowledgements let the first of two packets wait.
    assert again.ssthresh == pytest.approx(PIPE, rel=0.02)
    assert again.cwnd == again.ssthresh


#: Gives each flow one packet a turn, so that none of its packets follows another at once.
IN_TURN = codel(kind="fq_codel") | {"quantum_bytes": SEGMENT + TCP_IP_HEADER_BYTES}


@pytest.mark.parametrize("count", [2, 4])
def test_westwoods_estimates_are_fair_shares_if_packets_alternate(ns3, count):
    names = [f"t{number}" for number in range(count)]
    flows = [ns3.tcp(name, "westwood", sack=True, limited_transmit=True) for name in names]
    result = ns3.run(single_link(flows, **PATH, duration_s=25, queue=IN_TURN), trace=True)
    for name in names:
        assert mean(reductions(result, name)) == pytest.approx(1 / count, rel=0.1)


def test_westwoods_estimate_leaves_room_for_other_traffic(ns3):
    flows = [ns3.tcp("t", "westwood", sack=True, limited_transmit=True), cbr("c", RATE_BPS / 2)]
    result = ns3.run(single_link(flows, **PATH, duration_s=25, queue=droptail(100)), trace=True)
    assert mean(reductions(result)) == pytest.approx(0.5, rel=0.1)


def test_westwood_fills_the_link_despite_random_loss_and_never_raises_its_window_on_loss(ns3):
    controls = ("westwood", "newreno")
    flows = {c: ns3.tcp("t", c, sack=True, limited_transmit=True) for c in controls}
    path = PATH | {"duration_s": 30, "loss": RANDOM, "queue": droptail(100)}
    results = {c: ns3.run(single_link([flow], **path), trace=True) for c, flow in flows.items()}
    rates = {c: result.number("t", "throughput_bps") for c, result in results.items()}
    # Mathis's law: Reno has a window of 39 of 120 segments.
    assert rates["newreno"] < 0.5 * RATE_BPS
    assert rates["westwood"] > 0.9 * RATE_BPS
    trace = results["westwood"].trace
    again = [event for event in trace if event.event == "retransmit"]
    before = [trace[trace.index(event) - 1] for event in again]
    assert all(event.cwnd <= ack.cwnd for event, ack in zip(again, before, strict=True))
    assert any(event.cwnd < event.ssthresh for event in again)


def test_westwood_restarts_from_one_segment_after_a_timeout_and_lowers_its_estimate(ns3):
    # All that is sent after 4 s is lost for a second, so that nothing is acknowledged.
    lost = range(4_000, 4_400)
    flow = ns3.tcp("t", "westwood", minimum_rto_s=1.2, maximum_window_bytes=130 * SEGMENT)
    result = ns3.run(single_link([flow], **PATH, duration_s=7, loss=listed(*lost)), trace=True)
    timeouts = result.events("timeout")
    again = [e for e in result.events("retransmit") if e.time_s >= timeouts[0].time_s]
    assert again[0].cwnd == SEGMENT
    # Two halves of the filter's second of silence: 0.8 and 0.6, then 0.6.
    silent_s = timeouts[0].time_s - max(
        e.time_s for e in result.events("ack") if e.time_s < timeouts[0].time_s
    )
    assert silent_s == pytest.approx(1.2, abs=0.1)
    assert again[0].ssthresh / PIPE == pytest.approx(0.8 * 0.6, rel=0.05)
