"""Plain Westwood on ns-3: the properties that its paper claims (Casetti et al., 2002).

An estimate is visible as ssthresh after a loss: the estimate times the least round trip.
"""

import pytest

from tests.engines.engine_bench import mean
from tests.engines.engine_scenarios import (
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
def test_estimate_of_a_single_flow_is_the_rate_of_the_link(ns3, delayed, sack):
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


@pytest.mark.parametrize(
    ("queue", "others"),
    [
        (codel(kind="fq_codel"), ["u"]),
        (codel(kind="fq_codel"), ["u", "v", "w"]),
        (droptail(100), []),
    ],
)
def test_estimate_is_near_the_fair_share(ns3, queue, others):
    flows = [ns3.tcp(name, "westwood", sack=True, limited_transmit=True) for name in ["t", *others]]
    flows += [] if others else [cbr("c", RATE_BPS / 2)]
    result = ns3.run(single_link(flows, **PATH, duration_s=40, queue=queue), trace=True)
    share = 1 / max(2, len(others) + 1)
    for name in ["t", *others]:
        assert mean(reductions(result, name)) == pytest.approx(share, rel=0.15)


def test_random_loss_does_not_empty_the_link_and_no_loss_opens_the_window(ns3):
    controls = ("westwood", "newreno")
    flows = {c: ns3.tcp("t", c, sack=True, limited_transmit=True) for c in controls}
    path = PATH | {"duration_s": 40, "loss": RANDOM, "queue": droptail(100)}
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


def test_timeout_restarts_from_one_segment_and_silence_lowers_the_estimate(ns3):
    # All that is sent after 4 s is lost for a second, so that nothing is acknowledged.
    lost = range(4_000, 4_400)
    flow = ns3.tcp("t", "westwood", minimum_rto_s=1, maximum_window_bytes=130 * SEGMENT)
    result = ns3.run(single_link([flow], **PATH, duration_s=7, loss=listed(*lost)), trace=True)
    timeouts = result.events("timeout")
    again = [e for e in result.events("retransmit") if e.time_s >= timeouts[0].time_s]
    assert again[0].cwnd == SEGMENT
    # Two halves of the filter's second of silence: 0.8 and 0.6, then 0.6.
    silent_s = timeouts[0].time_s - max(
        e.time_s for e in result.events("ack") if e.time_s < timeouts[0].time_s
    )
    assert 1 < silent_s < 1.5
    assert again[0].ssthresh / PIPE == pytest.approx(0.8 * 0.6, rel=0.05)
