"""The delay over a link, which no engine measures, beside what the engines measure of flows."""

from __future__ import annotations

import pandas as pd
import pytest
from engine_bench import Bench
from engine_results import Result
from engine_scenarios import Json, cbr, codel, droptail, dumbbell, link, pfifo, single_link
from replication.measure.link_delay import link_delays
from replication.study.scenario import Scenario

RATE_BPS = 2e6
DELAY_S = 0.02
SEGMENT = 1000
PACKET = SEGMENT + 40
ACCESS = [(1e9, 0.0001)] * 2
#: Both directions of the bottleneck.
BOTH = [{"link": "bottleneck"}, {"link": "bottleneck", "direction": "ba"}]
#: No beat with packets of 4 ms, so that samples find a queue at all of its phases: 2200 of them,
#: each wrong by a packet at most, leave a 50th of a packet of ten or more. What waits at the end is
#: in the queue and has not arrived: 40 packets of 7000, or 0.6 %.
INTERVAL_S = 0.0137
TOLERANCE = 0.01


def delays(bench: Bench, scenario: Json) -> tuple[Result, dict[str, float]]:
    """Run a scenario; return its results and the delay over each of its monitored links, in s."""
    result = bench.run(scenario)
    series = pd.DataFrame(result.series).assign(scenario="s", engine=bench.name)
    for column in ("throughput_bps", "queue_packets"):
        series[column] = pd.to_numeric(series[column])
    document = Scenario.model_validate(scenario).model_dump(mode="json")
    found = link_delays({"s": document}, series[series["link"] != ""], series)
    return result, dict(zip(found["link"], found["value"], strict=True))


def passing_s(bench: Bench, hops: list[tuple[float, float]], ip_bytes: int = PACKET) -> float:
    """Return what links of some rate and delay take without a queue, in s."""
    return sum(delay + bench.serialisation_s(ip_bytes, rate) for rate, delay in hops)


def loaded(flows: list[Json], **changes: object) -> Json:
    """Return a dumbbell whose bottleneck alone has a queue, for long enough."""
    settings: Json = {"rate_bps": RATE_BPS, "delay_s": DELAY_S, "duration_s": 30}
    settings |= {"sampling_interval_s": INTERVAL_S, "queue": droptail(40)}
    return dumbbell(flows, **(settings | changes)) | {"monitors": BOTH}


QUEUES = [
    (name, queue)
    for name in ("ns3", "ns2", "linux")
    for queue in (droptail(40), pfifo(40), codel(target_s=0.04))
    if name != "ns2" or queue["kind"] != "codel"
]


@pytest.mark.parametrize(
    ("bench", "queue"),
    QUEUES,
    indirect=["bench"],
    ids=lambda value: value if isinstance(value, str) else str(value["kind"]),
)
def test_a_flow_takes_the_delay_of_the_links_of_its_path(bench: Bench, queue: Json) -> None:
    flow = bench.tcp("t", **bench.sack())
    result, found = delays(bench, loaded([flow], queue=queue))
    measured = result.number("t", "delay_mean_s")
    empty = passing_s(bench, [*ACCESS, (RATE_BPS, DELAY_S)])
    # There is a queue to be seen, and the links beside it take next to nothing.
    assert measured > 1.5 * empty
    expected = found["bottleneck:ab"] + passing_s(bench, ACCESS)
    dropped = result.number("t", "packets_dropped") / result.number("t", "packets_received")
    late = dropped if queue["kind"] == "codel" else 0
    assert measured == pytest.approx(expected, rel=TOLERANCE + late)


def test_acknowledgements_wait_with_the_data_of_the_way_back(bench: Bench) -> None:
    # Windows that lose nothing: there is a round trip of each packet, and what it is longer than
    # the way there is the acknowledgement's.
    ends = {"source": "d0", "destination": "s0"}
    flows = [
        bench.tcp("t", maximum_window_bytes=30 * SEGMENT),
        bench.tcp("u", maximum_window_bytes=20 * 500, segment_bytes=500, **ends),
    ]
    result, found = delays(bench, loaded(flows, queue=droptail()))
    sizes = {"t": PACKET, "u": 540}
    forward = {name: result.number(name, "delay_mean_s") for name in sizes}
    back = {name: result.number(name, "rtt_mean_s") - forward[name] for name in sizes}
    packets = {name: result.number(name, "packets_received") for name in sizes}
    assert sum(result.number(name, "packets_dropped") for name in sizes) == 0
    for direction, data, other in (("ab", "t", "u"), ("ba", "u", "t")):
        both = packets[data] * (forward[data] - passing_s(bench, ACCESS, sizes[data]))
        both += packets[other] * (back[other] - passing_s(bench, ACCESS, 40))
        expected = both / (packets[data] + packets[other])
        assert expected > 1.2 * passing_s(bench, [(RATE_BPS, DELAY_S)], sizes[data])
        assert found[f"bottleneck:{direction}"] == pytest.approx(expected, rel=TOLERANCE)


def test_below_the_rate_a_packet_takes_propagation_and_transmission(bench: Bench) -> None:
    scenario = loaded([cbr("c", RATE_BPS / 4, packet_bytes=700)], duration_s=5)
    result, found = delays(bench, scenario)
    alone = passing_s(bench, [(RATE_BPS, DELAY_S)], 700)
    assert found["bottleneck:ab"] == pytest.approx(alone, rel=1e-9)
    measured = result.number("c", "delay_mean_s") - passing_s(bench, ACCESS, 700)
    assert measured == pytest.approx(found["bottleneck:ab"], rel=0.001)
    assert pd.isna(found["bottleneck:ba"])


@pytest.mark.parametrize("small", [100, 300])
def test_flows_of_different_packet_sizes_take_it_on_average(bench: Bench, small: int) -> None:
    # A packet of the one takes ten (or three) times as long as one of the other.
    flows = [bench.tcp("t", **bench.sack()), cbr("c", RATE_BPS / 4, packet_bytes=small)]
    result, found = delays(bench, loaded(flows))
    sizes = {"t": PACKET, "c": small}
    packets = {name: result.number(name, "packets_received") for name in sizes}
    beyond = {
        name: result.number(name, "delay_mean_s") - passing_s(bench, ACCESS, size)
        for name, size in sizes.items()
    }
    expected = sum(packets[name] * beyond[name] for name in sizes) / sum(packets.values())
    assert found["bottleneck:ab"] == pytest.approx(expected, rel=TOLERANCE)


def test_delays_of_a_path_s_links_add_up_though_most_is_lost_behind_the_first(bench: Bench) -> None:
    # Two packets of two flows meet at the first link; the second carries a third of what comes.
    hops = [(6e6, 0.003), (1e6, 0.01), (1e9, 0.002)]
    names = ["s0", "a", "b", "d0"]
    flows = [cbr("c", 1.5e6), cbr("d", 1.5e6, packet_bytes=500)]
    scenario = single_link(flows, duration_s=30, sampling_interval_s=INTERVAL_S)
    scenario["nodes"] = names
    scenario["links"] = [
        link(f"l{i}", names[i], names[i + 1], rate, delay, queue_ab=droptail(20))
        for i, (rate, delay) in enumerate(hops)
    ]
    scenario["monitors"] = [{"link": f"l{i}"} for i in range(3)]
    result, found = delays(bench, scenario)
    packets = {name: result.number(name, "packets_received") for name in "cd"}
    lost = {name: result.number(name, "loss_rate") for name in "cd"}
    assert min(lost.values()) > 0.4
    measured = sum(packets[n] * result.number(n, "delay_mean_s") for n in "cd")
    assert sum(found.values()) == pytest.approx(measured / sum(packets.values()), rel=TOLERANCE)
