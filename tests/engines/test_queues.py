"""Queue disciplines hold what they promise, on every engine that has them."""

from __future__ import annotations

import pytest
from engine_bench import Bench
from engine_results import Result, mean
from engine_scenarios import Json, cake, cbr, codel, droptail, pfifo, pie, red, single_link

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
