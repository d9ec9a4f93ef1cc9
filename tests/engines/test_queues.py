"""Queue disciplines meet their specifications on every engine that has them."""

import itertools

import pytest
from measurements.bench import mean
from measurements.scenarios import (
    cake,
    cbr,
    codel,
    droptail,
    pfifo,
    pie,
    red,
    single_link,
    tcp,
)

from tests.engines.engine_bench import TRAITS

RATE_BPS = 1e7
PACKET_S = 8 * 1040 / RATE_BPS


def four_flows(bench, queue):
    """Run four SACK flows over 40 ms at 10 Mbit/s through a queue, sampled each 10 ms."""
    flows = [bench.tcp(f"t{i}", sack=True, start_s=i * 0.05) for i in range(4)]
    scenario = single_link(flows, rate_bps=RATE_BPS, duration_s=20, queue=queue)
    return bench.run(scenario | {"sampling_interval_s": 0.01})


@pytest.mark.parametrize("bench", ["ns3", "ns2"], indirect=True)
@pytest.mark.parametrize(("byte_mode", "low", "high"), [(True, 2, 100), (False, 0.8, 1.25)])
def test_red_in_byte_mode_drops_in_proportion_to_size(bench, byte_mode, low, high):
    # Floyd and Jacobson 1993, section 4: p is scaled by size over mean size, here 4 to 1; the
    # spreading of drops by count mixes sizes, so half of it is required, and none without.
    flows = [cbr(f"c{size}", 0.6 * RATE_BPS, packet_bytes=size) for size in (1000, 250)]
    queue = red(10, 30) | {"byte_mode": byte_mode}
    result = bench.run(single_link(flows, rate_bps=RATE_BPS, duration_s=30, queue=queue))
    assert low < result.number("c1000", "loss_rate") / result.number("c250", "loss_rate") < high


def test_the_average_queue_of_red_falls_while_the_link_is_idle(bench):
    # Floyd and Jacobson 1993, section 11: the average falls while the queue is empty. Slow start
    # leaves it above the threshold, where all packets are dropped: without idle periods for good.
    flow = bench.tcp("t", sack=True, initial_window_segments=10)
    scenario = single_link([flow], rate_bps=5e6, duration_s=20, queue=bench.traits.red)
    result = bench.run(scenario)
    assert mean(result.samples("throughput_bps", flow="t", after_s=10)) > 0.8 * 5e6


@pytest.mark.parametrize(
    "bench, fair",
    [
        ("ns3", codel(kind="fq_codel")),
        ("linux", codel(kind="fq_codel")),
        ("linux", pie(kind="fq_pie")),
        ("linux", cake()),
    ],
    indirect=["bench"],
)
def test_a_fair_queue_keeps_the_delay_of_a_low_rate_flow_short(bench, fair):
    delays = {}
    for name, queue in (("fair", fair), ("pfifo", pfifo(200))):
        flows = [bench.tcp(f"t{i}", "cubic", sack=True) for i in range(3)] + [cbr("thin", 2e5)]
        result = bench.run(single_link(flows, rate_bps=RATE_BPS, duration_s=15, queue=queue))
        delays[name] = result.number("thin", "delay_mean_s") - 0.02
        assert name == "pfifo" or result.number("thin", "packets_dropped") == 0
    # Its queue is empty: it waits for the packet in transmission, the device's packet, and its
    # turn.
    assert delays["fair"] < 6 * PACKET_S
    assert delays["pfifo"] > 10 * delays["fair"]


@pytest.mark.parametrize(
    "bench, queue, low_s, high_s",
    [
        # At 5 ms CoDel is in conformance.yaml; it keeps the minimum over an interval at its target.
        ("ns3", codel(0.02), 0.013, 0.06),
        ("linux", codel(0.02), 0.013, 0.06),
        # RFC 8033 controls the mean; the sawtooth of four flows leaves it within a factor of two.
        ("ns3", pie(0.015), 0.0075, 0.03),
        # A separate queue per flow can only shorten it.
        ("linux", pie(kind="fq_pie"), 0.0075, 0.045),
        # CAKE's COBALT keeps the minimum over an interval at the target of 5 ms.
        ("linux", cake(), 0.0025, 0.015),
    ],
    indirect=["bench"],
)
def test_a_queue_holds_the_delay_near_its_target(bench, queue, low_s, high_s):
    result = four_flows(bench, queue)
    assert low_s < mean(result.queue(after_s=5)) * PACKET_S < high_s
    assert sum(result.samples("drops", link="wire:ab", after_s=5)) > 0


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
def test_pie_holds_its_target_with_fifty_flows(bench):
    # Pan et al. 2013, section V: a mean near the target at any load. Fifty sawtooths average out;
    # a third is left for the probability, which moves once in 15 ms.
    flows = [bench.tcp(f"t{i}", sack=True, start_s=i * 0.01) for i in range(50)]
    scenario = single_link(flows, rate_bps=5 * RATE_BPS, duration_s=10, queue=pie(0.015))
    waiting = bench.run(scenario | {"sampling_interval_s": 0.01}).queue(after_s=4)
    assert mean(waiting) * PACKET_S / 5 == pytest.approx(0.015, rel=1 / 3)


#: The device between queue and transmitter, if any; it holds packets beyond the limit.
DEVICE_PACKETS = 3
#: No queue management acts within a burst: packets are dropped only for lack of room.
NEVER_S = 100.0
CODEL = {"target_s": NEVER_S, "interval_s": NEVER_S}
PIE = {"target_s": NEVER_S, "update_interval_s": NEVER_S}
RED = red(1000, 1500) | {"queue_weight": 2**-9, "gentle": False, "wait": False}
DISTANT = {"pfifo": {}, "red": RED, "codel": CODEL, "fq_codel": CODEL, "pie": PIE, "fq_pie": PIE}
#: Every kind with a limit in packets, on each engine that has it.
KINDS = [*itertools.product(("ns3", "linux"), ("droptail", *DISTANT))]
KINDS.remove(("ns3", "fq_pie"))


def limited(kind, limit):
    """Return a queue with this limit, and how many packets wait in it and its device when full."""
    if kind == "droptail":
        return droptail(limit), limit
    common = {"kind": kind, "limit_packets": limit, "device_queue_packets": DEVICE_PACKETS}
    return DISTANT[kind] | common, limit + DEVICE_PACKETS


def burst(bench, packets, through, packet_bytes=1000):
    """Return how many packets of a burst wait after it, and how many were dropped."""
    # At 1 Gbit/s; the link is 10,000 times slower, so only the first has begun to leave.
    spacing_s = 8 * packet_bytes / 1e9
    flow = cbr("c", 1e9, packet_bytes=packet_bytes, stop_s=(packets - 0.5) * spacing_s)
    after_s = 2 * packets * spacing_s
    scenario = single_link([flow], rate_bps=1e5, duration_s=after_s, queue=through)
    result = bench.run(scenario | {"sampling_interval_s": after_s})
    sent, _, dropped, _ = result.packets("c")
    assert sent == packets
    (waiting,) = result.queue()
    return round(waiting), dropped


FULL = []
for engine, kind in KINDS:
    FULL += [(engine, *limited(kind, limit), 1000) for limit in (1, 20)]
for name in ("ns3", "linux"):
    fits = 20 * (1000 + TRAITS[name].framing_bytes)
    for less in (0, 1):
        FULL += [(name, {"kind": "droptail", "limit_bytes": fits - less}, 20 - less, 1000)]
    # RED's limit is in packets of any size.
    red_of_20, held = limited("red", 20)
    FULL += [(name, red_of_20 | {"mean_packet_bytes": size}, held, 1000) for size in (500, 2000)]
    # Linux also bounds the memory of a queue, by default at 32 MiB: not where we set a limit.
    FULL += [(name, *limited("fq_codel", 700), 60000)]
FULL += [("linux", *limited("fq_pie", 700), 60000)]
# In byte mode RED counts mean packets.
in_bytes = red_of_20 | {"byte_mode": True, "mean_packet_bytes": 2000}
FULL += [("ns3", in_bytes, 40 + DEVICE_PACKETS, 1000)]


@pytest.mark.parametrize(("bench", "through", "held", "size"), FULL, indirect=["bench"])
def test_a_queue_limit_excludes_the_packet_in_transmission(bench, through, held, size):
    assert burst(bench, 1 + held, through, size) == (held, 0)
    waiting, dropped = burst(bench, 2 + held, through, size)
    assert waiting + dropped == held + 1
    # FQ-CoDel drops a batch where there is no room for one (RFC 8290, section 4.1.2, and Linux).
    assert dropped == 1 or (through["kind"] == "fq_codel" and 1 < dropped <= held)


def test_the_limit_of_cake_counts_memory(linux):
    # A packet takes more memory than its bytes, and less than three times as much.
    held, dropped = burst(linux, 101, {"kind": "cake", "memory_limit_bytes": 40000} | CODEL)
    assert dropped == 100 - held
    assert 40000 / 3000 < held < 40000 / 1000


def test_vegas_keeps_ten_to_fourteen_packets_in_the_queue(ns3):
    # As in conformance.yaml at two to four: within one packet of alpha to beta.
    flow = tcp("t", "vegas", vegas_alpha_packets=10, vegas_beta_packets=14)
    scenario = single_link([flow], rate_bps=4e6, delay_s=0.03, duration_s=30)
    result = ns3.run(scenario | {"sampling_interval_s": 0.0137})
    assert 9 <= mean(result.queue(after_s=15)) <= 15
    assert result.number("t", "retransmissions") == 0
