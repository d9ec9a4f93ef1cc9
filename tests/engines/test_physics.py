"""Laws that every engine must obey, each with a tolerance that follows from its reasons.

The behaviour of windows (doubling, slope, sawtooth), Mathis's law and equal shares are in
conformance.yaml and tested by test_conformance.
"""

import math

import pytest
from measurements.bench import mean
from measurements.scenarios import (
    SEGMENT,
    TCP_IP_HEADER_BYTES,
    cbr,
    document,
    droptail,
    dumbbell,
    link,
    listed,
    marking_threshold,
    single_link,
)
from replication.engines.catalogue import ENGINES
from replication.study.scenario import CONGESTION_CONTROLS, Scenario

from tests.engines.engine_bench import TRACED, TRAITS

PACKET_BITS = 8 * (SEGMENT + TCP_IP_HEADER_BYTES)
#: Every queue of every engine; on Linux with merged segments too, which RED's shaper would cut.
QUEUES = []
for _engine, _traits in TRAITS.items():
    QUEUES += [(_engine, queue, None) for queue in _traits.queues]
MERGED = [queue for queue in TRAITS["linux"].queues if queue["kind"] != "red"]
QUEUES += [("linux", queue, {"segmentation_offload": True}) for queue in MERGED]


@pytest.mark.parametrize(
    ("bench", "queue", "host"),
    QUEUES,
    indirect=["bench"],
    ids=lambda value: value["kind"] if isinstance(value, dict) and "kind" in value else None,
)
def test_packets_are_conserved(bench, queue, host):
    flows = [bench.tcp("t"), cbr("c", 1.5e6, start_s=2), bench.tcp("v", "cubic", sack=True)]
    loss = {"kind": "random", "probability": 0.01}
    scenario = dumbbell(flows, queue=queue, loss=loss, duration_s=7)
    result = bench.run(scenario | ({"host": host} if host else {}))
    # The bottleneck path holds its queue, and per link what fits into its delay, and one packet.
    room = 1000 + 3 + 1
    least_s = 0.02 + 2e-4 + bench.serialisation_s(1000, 2e6) + 2 * bench.serialisation_s(1000, 1e9)
    for flow in ("t", "c", "v"):
        assert min(result.samples("delay_s", flow=flow)) >= least_s - 3 * bench.traits.tick_s
        assert result.number(flow, "delay_p95_s") >= result.number(flow, "delay_mean_s")
        sent, received, dropped, in_flight = result.packets(flow)
        assert sent == received + dropped + in_flight
        assert 0 <= in_flight <= room
        assert dropped > 0
        shares = [result.number(flow, name) for name in ("loss_rate", "delivery_ratio")]
        assert shares == pytest.approx([dropped / sent, received / sent])
        assert sum(result.samples("drops", flow=flow)) == dropped
    for flow in ("t", "v"):
        # Dropped packets were sent again, except at the end of the run: a window, and a probe.
        again, dropped = result.number(flow, "retransmissions"), result.packets(flow)[2]
        assert again >= dropped - max(result.samples("cwnd_bytes", flow=flow)) / SEGMENT - 1
        assert sum(result.samples("retransmissions", flow=flow)) == again
    monitored = sum(result.samples("drops", link="bottleneck:ab"))
    of_flows = sum(result.packets(flow)[2] for flow in result.flows)
    control = result.run["control_packets_dropped"]
    # Linux also counts control packets that other hops drop.
    assert of_flows + (0 if bench.name == "linux" else control) <= monitored <= of_flows + control


@pytest.mark.parametrize("control", CONGESTION_CONTROLS)
def test_every_congestion_control_fills_the_link_but_never_exceeds_it(bench, control):
    # The buffer holds twice the bandwidth-delay product (20 packets), so even halving keeps the
    # link busy; where a threshold may be set it avoids the initial burst of losses.
    changes = {"initial_ssthresh_bytes": 20000} if bench.name in TRACED else {"sack": True}
    if control in ("bbr", "ledbat", "lp"):
        changes |= {"sack": True, "timestamps": True}
    queue = droptail(40)
    if control == "dctcp":  # it needs ECN, and ns-3's falls at a loss by as little as at its marks
        changes, queue = changes | {"ecn": True}, marking_threshold(20)
    flow = bench.tcp("t", control, **changes)
    scenario = single_link([flow], rate_bps=4e6, duration_s=30, queue=queue)
    if control not in ENGINES[bench.name].congestion_controls:
        refused = ENGINES[bench.name].refusal(Scenario.model_validate(scenario))
        assert refused == f"{bench.name} has no congestion control {control!r}"
        return
    result = bench.run(scenario)
    # Tahoe restarts from one segment: about log2(30) of some 60 round trips a cycle are not full.
    # ns-3's LP yields to other flows, and treats itself as one.
    least = {"tahoe": 0.9, "lp": 0.4}.get(control, 0.96)
    assert least * 4e6 <= result.number("t", "throughput_bps") <= 4e6
    packet_bits = 8 * bench.traits.framing_bytes + PACKET_BITS
    assert max(result.samples("throughput_bps", link="wire:ab")) <= 4e6 + packet_bits / 0.1


@pytest.mark.parametrize(
    ("bench", "control", "over"),
    # ns-2's agents count whole segments: what is over in the cap can never be filled.
    [
        *((name, "", 0) for name in TRAITS),
        *(("ns2", control, 999) for control in ("vegas", "cubic")),
    ],
    indirect=["bench"],
)
def test_window_cap_gives_window_over_rtt(bench, control, over):
    # Beyond 65,535 bytes windows need scaling; 10 segments are in conformance.yaml.
    caps = (20, 65, 200)
    vegas = {"vegas_alpha_packets": 1000, "vegas_beta_packets": 1000} if control == "vegas" else {}
    flows = [
        bench.tcp(f"w{cap}", control, maximum_window_bytes=cap * SEGMENT + over, **vegas)
        for cap in caps
    ]
    result = bench.run(single_link(flows, rate_bps=1e9, delay_s=0.05, duration_s=5))
    for cap in caps:
        rate = mean(result.samples("throughput_bps", flow=f"w{cap}", after_s=3))
        assert rate == pytest.approx(cap * PACKET_BITS / 0.1, rel=0.005)


@pytest.mark.parametrize("first", [1, 7, 10])
def test_slow_start_doubles_the_initial_window_each_round_trip(bench, first):
    # A wide fixed window, since one tuned by Linux lags by some segments above ten.
    fixed = {"maximum_window_bytes": 2_000_000} if bench.name == "linux" else {}
    flow = bench.tcp("t", initial_window_segments=first, start_s=0.1, **fixed)
    # Sampled half a round trip after each burst, from the first on.
    scenario = single_link([flow], rate_bps=1e9, delay_s=0.1, duration_s=1.8)
    result = bench.run(scenario | {"sampling_interval_s": 0.2})
    cwnd = result.samples("cwnd_bytes", flow="t", after_s=0.3)
    assert [window / SEGMENT for window in cwnd[:7]] == [first * 2**n for n in range(7)]


def test_random_losses_have_the_given_probability(bench):
    loss = {"kind": "random", "probability": 0.1}
    result = bench.run(single_link([cbr("c", 4e6)], rate_bps=1e7, duration_s=20, loss=loss))
    assert result.number("c", "packets_sent") == 10000
    # Four standard deviations of a binomial count.
    assert result.number("c", "loss_rate") == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 10000))


def test_exactly_the_listed_packets_are_lost(bench):
    flows = [cbr("c", 8e4, start_s=0.05), cbr("other", 8e4)]
    flows.append(cbr("back", 8e6, source="d0", destination="s0"))
    scenario = single_link(flows, rate_bps=1e7, loss=listed(1, 3, 25, flow="c"))
    # More numbers than a message to a kernel holds.
    scenario["links"][0]["loss_ba"] = listed(*range(2, 8001, 2), flow="back")
    result = bench.run(scenario)
    assert [result.packets(flow["id"])[2] for flow in flows] == [3, 0, 4000]
    # 10 packets a second: numbers 1 and 3 are sent at 0.05 s and 0.25 s, 25 at 2.45 s.
    rows = [row for row in result.series if row["flow"] == "c" and row["drops"] == "1"]
    assert [row["time_s"] for row in rows] == ["0.1", "0.3", "2.5"]


def test_listed_losses_count_retransmissions_as_packets(bench):
    flow = bench.tcp("t", stop_after_bytes=SEGMENT, stop_s=60)
    result = bench.run(single_link([flow], duration_s=60, loss=listed(1, 2, 3)))
    assert result.packets("t") == [4, 1, 3, 0]
    assert result.number("t", "retransmissions") == 3


def test_listed_losses_halve_the_same_window_on_every_engine(bench):
    flow = bench.tcp("t", "linuxreno", sack=True, initial_window_segments=10)
    path = {"rate_bps": 1e9, "delay_s": 0.05, "duration_s": 2}
    result = bench.run(single_link([flow], **path, loss=listed(40, 45)))
    # 39 segments that arrived have opened the window of 10.
    counts = ("packets_dropped", "retransmissions", "timeouts")
    assert [result.number("t", count) for count in counts] == [2, 2, 0]
    (ssthresh,) = set(result.samples("ssthresh_bytes", flow="t", after_s=1))
    assert ssthresh == pytest.approx((10 + 39) / 2 * SEGMENT, abs=SEGMENT)


def test_flows_on_one_node_keep_their_own_options(bench):
    # Timestamps cost 12 bytes of every segment; SACK costs none of data. Same hosts throughout.
    other = "" if bench.name == "ns2" else "cubic"
    flows = [
        bench.tcp("plain", maximum_window_bytes=5000),
        bench.tcp("stamped", other, timestamps=True, sack=True, maximum_window_bytes=5000),
    ]
    result = bench.run(single_link(flows, rate_bps=1e7))
    for flow, header in (("plain", 40), ("stamped", 52)):
        bits = result.number(flow, "throughput_bps") * 10
        assert bits / 8 / result.number(flow, "packets_received") == SEGMENT + header


def test_a_flow_sends_nothing_before_its_start_and_after_its_stop(bench):
    flow = bench.tcp("t", start_s=1, stop_s=3)
    loss = {"kind": "random", "probability": 0.02}
    result = bench.run(single_link([flow], duration_s=8, loss=loss))
    assert result.number("t", "packets_in_flight") == 0
    before = [row for row in result.series if row["flow"] == "t" and float(row["time_s"]) < 1]
    assert {(row["cwnd_bytes"], row["throughput_bps"]) for row in before} == {("", "0")}
    for which in ({"flow": "t"}, {"link": "wire:ab"}):
        assert set(result.samples("throughput_bps", **which, after_s=4.5)) == {0}
    shown = [float(row["time_s"]) for row in result.series if row["cwnd_bytes"]]
    assert 1 < min(shown) <= 1.1
    assert 2.9 <= max(shown) <= 3


def test_routes_take_the_fewest_hops_and_the_earlier_link_with_its_delay(bench):
    links = [
        link("long1", "s0", "a", 1e6, 0.1),
        link("first", "s0", "b", 1e6, 0.02),
        link("twin", "s0", "b", 1e6, 0.5),
        link("long2", "a", "b", 1e6, 0.1),
        link("last", "b", "d0", 1.5e6, 0.0071),
    ]
    scenario = document(["s0", "a", "b", "d0"], links, [cbr("c", 1e5)], duration_s=2)
    scenario["monitors"] = [{"link": entry["id"]} for entry in links]
    result = bench.run(scenario)
    expected = 0.0271 + bench.serialisation_s(1000, 1e6) + bench.serialisation_s(1000, 1.5e6)
    for column in ("delay_mean_s", "delay_p95_s"):
        assert result.number("c", column) == pytest.approx(expected, abs=3 * bench.traits.tick_s)
    used = {row["link"] for row in result.series if row["link"] and float(row["throughput_bps"])}
    assert used == {"first:ab", "last:ab"}


@pytest.mark.parametrize("control", ["", "cubic"])
def test_flows_on_one_pair_of_hosts_have_their_own_congestion_control(bench, control):
    # On one pair of hosts Vegas sees the other flow's queue and yields.
    flows = [bench.tcp("n", control, sack=True), bench.tcp("v", "vegas", sack=bench.name != "ns2")]
    result = bench.run(dumbbell(flows, rate_bps=4e6, duration_s=30, queue=droptail(40)))
    assert result.number("n", "goodput_bps") > 2 * result.number("v", "goodput_bps")


def test_each_direction_has_its_own_queue(bench):
    # The same overload both ways: each direction drops at its own limit.
    flows = [cbr("forth", 2e7), cbr("back", 2e7, source="d0", destination="s0")]
    scenario = single_link(flows, rate_bps=1e7, duration_s=2, queue=droptail(7))
    scenario["links"][0]["queue_ba"] = droptail(70)
    scenario["monitors"].append({"link": "wire", "direction": "ba"})
    # An interval that is no multiple of a CBR flow's packet interval.
    result = bench.run(scenario | {"sampling_interval_s": 0.0137})
    packet_s = bench.serialisation_s(1000, 1e7)
    for flow, way, limit in (("forth", "ab", 7), ("back", "ba", 70)):
        assert max(result.queue(f"wire:{way}")) == limit
        # A full queue and its transmission, minus the time until the next packet arrives.
        waited = result.number(flow, "delay_p95_s") - 0.02 - (limit + 1) * packet_s
        assert -packet_s / 2 <= waited <= packet_s + 0.0005
