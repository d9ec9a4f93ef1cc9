"""Queue disciplines hold what they promise, on every engine that has them."""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import Bench, Run
from tests.engines.engine_results import Result, mean
from tests.engines.engine_scenarios import (
    Json,
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

RATE_BPS = 1e7
PACKET_S = 8 * 1040 / RATE_BPS


def queue_samples(bench: Bench, queue: Json, flows: int = 4) -> Result:
    """Run some SACK flows over 40 ms at 10 Mbit/s through a queue, sampled each 10 ms."""
    many = [bench.tcp(f"t{i}", sack=True, start_s=i * 0.05) for i in range(flows)]
    scenario = single_link(many, rate_bps=RATE_BPS, delay_s=0.02, duration_s=20, queue=queue)
    return bench.run(scenario | {"sampling_interval_s": 0.01})


def test_droptail_and_pfifo_never_exceed_their_limit(bench: Bench) -> None:
    # A pfifo has the device's queue of one packet before it.
    for queue, limit in ((droptail(25), 25), (pfifo(25), 26)):
        result = queue_samples(bench, queue)
        assert max(result.samples("queue_packets", link="wire:ab")) == limit


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
def test_codel_holds_the_sojourn_time_near_its_target(bench: Bench) -> None:
    # CoDel keeps the minimum over an interval at the target; with sawtooths the mean lies between
    # half of it and three times it. DropTail of the same limit fills its buffer instead.
    waits = {}
    for name, queue in (("codel", codel(0.005)), ("droptail", droptail(200))):
        result = queue_samples(bench, queue)
        waits[name] = mean(result.samples("queue_packets", link="wire:ab", after_s=5)) * PACKET_S
    assert 0.0025 < waits["codel"] < 0.015
    assert waits["droptail"] > 0.06


@pytest.mark.parametrize("byte_mode", [False, True])
@pytest.mark.parametrize("bench", ["ns3", "ns2"], indirect=True)
def test_red_drops_early_and_holds_its_average(bench: Bench, byte_mode: bool) -> None:
    result = queue_samples(bench, red(10, 30) | {"byte_mode": byte_mode})
    late = result.samples("queue_packets", link="wire:ab", after_s=5)
    assert 10 < mean(late) < 30
    assert max(late) < 150  # the hard limit of 200 is never reached
    assert sum(result.samples("drops", link="wire:ab", after_s=5)) > 0


def losses_by_size(bench: Bench, byte_mode: bool) -> float:
    """Return the loss rate of 1000-byte packets over that of 250-byte ones under RED."""
    flows = [cbr("large", 0.6 * RATE_BPS, packet_bytes=1000)]
    flows += [cbr("small", 0.6 * RATE_BPS, packet_bytes=250)]
    queue = red(10, 30) | {"byte_mode": byte_mode}
    scenario = single_link(flows, rate_bps=RATE_BPS, delay_s=0.01, duration_s=30, queue=queue)
    result = bench.run(scenario)
    return result.number("large", "loss_rate") / result.number("small", "loss_rate")


@pytest.mark.parametrize("bench", ["ns3", "ns2"], indirect=True)
def test_red_in_byte_mode_drops_in_proportion_to_size(bench: Bench) -> None:
    # Floyd and Jacobson 1993, section 4: p is scaled by size over mean size, here 4 to 1; the
    # spreading of drops by count mixes sizes, so half of it is asked for, and none without.
    assert losses_by_size(bench, byte_mode=True) > 2
    assert 0.8 < losses_by_size(bench, byte_mode=False) < 1.25


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
def test_a_fair_queue_protects_a_thin_flow(bench: Bench, fair: Json) -> None:
    delays = {}
    for name, queue in (("fair", fair), ("pfifo", pfifo(200))):
        flows = [bench.tcp(f"t{i}", "cubic", sack=True) for i in range(3)] + [cbr("thin", 2e5)]
        scenario = single_link(flows, rate_bps=RATE_BPS, delay_s=0.02, duration_s=15, queue=queue)
        result = bench.run(scenario)
        delays[name] = result.number("thin", "delay_mean_s") - 0.02
        assert name == "pfifo" or result.number("thin", "packets_dropped") == 0
    # Its own queue is empty: it waits for the packet under way, the device's one, and its turn.
    assert delays["fair"] < 6 * PACKET_S
    assert delays["pfifo"] > 10 * delays["fair"]


@pytest.mark.parametrize("bench", ["linux"], indirect=True)
@pytest.mark.parametrize("kind", ["fq_pie", "cake"])
def test_a_fair_queue_holds_the_delay_near_its_target(bench: Bench, kind: str) -> None:
    # CAKE's COBALT keeps the minimum over an interval at the target of 5 ms; PIE keeps the mean at
    # its own of 15 ms (RFC 8033), which a flow's queue of its own can only shorten.
    queue, target_s = (cake(), 0.005) if kind == "cake" else (pie(kind=kind), 0.015)
    result = queue_samples(bench, queue)
    wait_s = mean(result.samples("queue_packets", link="wire:ab", after_s=5)) * PACKET_S
    assert target_s / 2 < wait_s < 3 * target_s
    assert sum(result.samples("drops", link="wire:ab", after_s=5)) > 0


#: Between queue and transmitter, where there is such a thing; it holds packets beside the limit.
DEVICE_PACKETS = 3
#: No queue management acts within a burst: what is dropped finds no room.
NEVER_S = 100.0
DISTANT = {
    "pfifo": {},
    "red": {
        "minimum_threshold_packets": 1000,
        "maximum_threshold_packets": 1500,
        "queue_weight": 2**-9,
        "maximum_probability": 0.1,
        "mean_packet_bytes": 1000,
        "gentle": False,
        "wait": False,
    },
    "codel": {"target_s": NEVER_S, "interval_s": NEVER_S},
    "fq_codel": {"target_s": NEVER_S, "interval_s": NEVER_S},
    "pie": {"target_s": NEVER_S, "update_interval_s": NEVER_S},
    "fq_pie": {"target_s": NEVER_S, "update_interval_s": NEVER_S},
}
#: Every kind with a limit in packets, on each engine that has it.
KINDS = [(engine, kind) for engine in ("ns3", "linux") for kind in ("droptail", *DISTANT)]
KINDS.remove(("ns3", "fq_pie"))


def queue(kind: str, limit: int) -> tuple[Json, int]:
    """Return a queue with this limit, and how many packets wait in it and its device when full."""
    if kind == "droptail":
        return droptail(limit), limit
    common = {"kind": kind, "limit_packets": limit, "device_queue_packets": DEVICE_PACKETS}
    return common | DISTANT[kind], limit + DEVICE_PACKETS


def burst(bench: Bench, packets: int, through: Json, packet_bytes: int = 1000) -> tuple[int, int]:
    """Return how many packets of a burst wait after it, and how many were dropped."""
    # At 1 Gbit/s; the link is 10,000 times slower, so only the first has begun to leave.
    spacing_s = 8 * packet_bytes / 1e9
    flow = cbr("c", 1e9, packet_bytes=packet_bytes, stop_s=(packets - 0.5) * spacing_s)
    after_s = 2 * packets * spacing_s
    scenario = single_link([flow], rate_bps=1e5, duration_s=after_s, queue=through)
    scenario["sampling_interval_s"] = after_s
    result = bench.run(scenario)
    assert result.number("c", "packets_sent") == packets
    (waiting,) = result.samples("queue_packets", link="wire:ab")
    return round(waiting), round(result.number("c", "packets_dropped"))


def full(bench: Bench, through: Json, held: int, packet_bytes: int = 1000) -> None:
    """Require that a burst just fits, and that one packet more does not."""
    assert burst(bench, 1 + held, through, packet_bytes) == (held, 0)
    waiting, dropped = burst(bench, 2 + held, through, packet_bytes)
    assert waiting + dropped == held + 1
    # FQ-CoDel drops a batch where there is no room for one (RFC 8290, section 4.1.2, and Linux).
    assert dropped == 1 or (through["kind"] == "fq_codel" and 1 < dropped <= held)


@pytest.mark.parametrize("bench, kind", KINDS, indirect=["bench"])
@pytest.mark.parametrize("limit", [1, 20])
def test_a_limit_is_what_waits_besides_the_one_in_transmission(
    bench: Bench, kind: str, limit: int
) -> None:
    full(bench, *queue(kind, limit))


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
def test_a_limit_in_bytes_is_what_waits_besides_the_one_in_transmission(bench: Bench) -> None:
    fits = 20 * (1000 + bench.traits.framing_bytes)
    full(bench, {"kind": "droptail", "limit_bytes": fits}, 20)
    full(bench, {"kind": "droptail", "limit_bytes": fits - 1}, 19)


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
@pytest.mark.parametrize("mean_bytes", [500, 2000])
def test_a_limit_of_red_is_in_packets_of_any_size(bench: Bench, mean_bytes: int) -> None:
    through, held = queue("red", 20)
    full(bench, through | {"mean_packet_bytes": mean_bytes}, held)


@pytest.mark.parametrize("bench", ["ns3"], indirect=True)
def test_a_limit_of_red_in_byte_mode_counts_mean_packets(bench: Bench) -> None:
    through, _ = queue("red", 20)
    full(bench, through | {"byte_mode": True, "mean_packet_bytes": 2000}, 40 + DEVICE_PACKETS)


@pytest.mark.parametrize(
    "bench, kind",
    [("ns3", "fq_codel"), ("linux", "fq_codel"), ("linux", "fq_pie")],
    indirect=["bench"],
)
def test_a_limit_in_packets_bounds_no_memory(bench: Bench, kind: str) -> None:
    # Linux also bounds the memory of a queue, by default at 32 MiB.
    full(bench, *queue(kind, 700), packet_bytes=60000)


@pytest.mark.parametrize("bench", ["linux"], indirect=True)
def test_the_limit_of_cake_is_memory(bench: Bench) -> None:
    # A packet takes more memory than its bytes, and less than three times as much.
    through = {"kind": "cake", "target_s": NEVER_S, "interval_s": NEVER_S}
    held, dropped = burst(bench, 101, through | {"memory_limit_bytes": 40000})
    assert dropped == 100 - held
    assert 40000 / 3000 < held < 40000 / 1000


@pytest.mark.parametrize("bench", ["ns3"], indirect=True)
def test_codel_follows_its_target(bench: Bench) -> None:
    waits = [
        mean(queue_samples(bench, codel(target)).samples("delay_s", flow="t0", after_s=5))
        for target in (0.005, 0.02)
    ]
    assert waits[1] - waits[0] > 0.5 * (0.02 - 0.005)


@pytest.mark.parametrize("bench", ["ns3"], indirect=True)
def test_pie_holds_its_target(bench: Bench) -> None:
    # RFC 8033 controls the mean; the sawtooth of four flows leaves it within a factor of two.
    result = queue_samples(bench, pie(0.015))
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
