"""Explicit congestion notification: marks replace losses if a flow negotiates it."""

import math

import pytest
from measurements.bench import mean
from measurements.scenarios import (
    codel,
    linux_red,
    marking_threshold,
    pie,
    red,
    single_link,
)

from tests.engines.engine_bench import TRAITS

#: Queues that mark, by engine: ns-2 has only RED, and CAKE marks whenever a flow allows it.
MARKING = [("ns2", red(5, 15))]
MARKING += [("ns3", queue) for queue in (red(5, 15), codel(), codel(kind="fq_codel"), pie())]
MARKING += [("linux", queue) for queue in TRAITS["linux"].managed if queue["kind"] != "cake"]
MARKING += [("linux", linux_red(5, 15))]


def run_alone(bench, queue, *, ecn, control="", rate_bps=1e7, delay_s=0.01, duration_s=10):
    """Run one flow with SACK through a bottleneck, without a slow start that overshoots.

    PIE would drop then, marks or not (RFC 8033, section 5.1): Linux has HyStart against it.
    """
    options = {} if bench.name == "linux" else {"initial_ssthresh_bytes": 20000}
    control = control or ("cubic" if bench.name == "linux" else "")
    flow = bench.tcp("t", control, sack=True, **options, **({"ecn": True} if ecn else {}))
    run = {"rate_bps": rate_bps, "delay_s": delay_s, "duration_s": duration_s}
    return bench.run(single_link([flow], queue=queue, **run))


@pytest.mark.parametrize(
    ("bench", "queue"),
    MARKING,
    indirect=["bench"],
    ids=lambda value: value["kind"] if isinstance(value, dict) else value,
)
def test_ecn_marks_replace_losses_at_the_same_throughput(bench, queue):
    marking = queue | {"ecn": True}
    marks, drops = run_alone(bench, marking, ecn=True), run_alone(bench, queue, ecn=True)
    # If either side does not support it, packets are dropped as usual.
    assert run_alone(bench, marking, ecn=False).series == drops.series
    assert drops.number("t", "retransmissions") >= 5
    assert marks.number("t", "retransmissions") == 0
    rates = [result.number("t", "throughput_bps") for result in (marks, drops)]
    assert rates[0] == pytest.approx(rates[1], rel=0.05)
    # RFC 3168, section 5: a mark is answered as a drop is. What is marked stays in the queue, and
    # PIE draws other packets.
    queues = [mean(result.queue(after_s=3)) for result in (marks, drops)]
    assert queues[0] == pytest.approx(queues[1], rel=0.2)


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
@pytest.mark.parametrize("threshold", [10, 20, 40])
def test_dctcp_keeps_the_queue_at_the_marking_threshold(bench, threshold):
    path = {"rate_bps": 1e8, "delay_s": 0.001, "duration_s": 3}
    queue = marking_threshold(threshold)
    result = run_alone(bench, queue, ecn=True, control="dctcp", **path)
    # Alizadeh et al. 2010, section 3.3, for one flow: a queue up to K + 1 with an amplitude of
    # sqrt(2 (BDP + K)) / 2; a packet waits in the device, and one is rounding.
    highest = threshold + 1
    amplitude = math.sqrt(2 * (1e8 * 0.002 / 8320 + threshold)) / 2
    waiting = result.queue(after_s=1)
    assert highest - amplitude - 1 <= min(waiting) <= max(waiting) <= highest + 2
    assert result.number("t", "retransmissions") == 0
    assert result.number("t", "throughput_bps") > 0.98e8
