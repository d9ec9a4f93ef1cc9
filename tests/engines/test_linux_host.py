"""Hosts of the linux engine: segmentation offload and the kernel's timer frequency; its build.

Expectations follow from the kernel's documented behaviour: a sender merges at least two segments
(ip-sysctl, tcp_min_tso_segs), merged packets cross veth whole (drivers/net/veth.c: GSO is on by
default, GRO is not), and timers expire at ticks (Documentation/timers).
"""

import os
import shutil
import subprocess
from collections import Counter

import pytest
from measurements.bench import mean
from measurements.scenarios import (
    SEGMENT,
    TCP_IP_HEADER_BYTES,
    cbr,
    droptail,
    dumbbell,
    linux_tcp,
    marking_threshold,
    single_link,
)

from tests.engines.engine_bench import Bench
from tests.workflow.project import ROOT

BUILD = ROOT / "workflow/engines/linux/build"
PACKET_BITS = 8 * (SEGMENT + TCP_IP_HEADER_BYTES)
OFFLOAD = {"segmentation_offload": True}


def both(linux, scenario):
    """Run a scenario without and with offload."""
    return linux.run(scenario), linux.run(scenario | {"host": OFFLOAD})


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    """Return linux with kernels of 250 and of 1000 Hz."""
    folder = tmp_path_factory.mktemp("fast")
    subprocess.run([BUILD, "--hz", "250,1000", "--output", folder], check=True)
    return Bench("linux", folder / "replicate-linux", tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize(("bound_bytes", "merged"), [(4096, 3), (5500, 5), (8500, 8)])
def test_merged_packets_do_not_exceed_the_bound_of_segmentation_offload(linux, bound_bytes, merged):
    # One burst, on a path so short that the kernel merges as much as it may.
    flow = {"initial_window_segments": 20, "maximum_window_bytes": 10**6}
    flow = linux_tcp("t", **flow, stop_after_bytes=20 * SEGMENT)
    scenario = single_link([flow], rate_bps=1e8, delay_s=0.0001, duration_s=1)
    result = linux.run(scenario | {"host": {"segmentation_offload": bound_bytes}})
    # A segment arrives with the last one of its packet.
    arrivals = [min(20, merged * (number // merged + 1)) for number in range(20)]
    expected_s = 0.0001 + mean(arrivals) * PACKET_BITS / 1e8
    assert result.number("t", "delay_mean_s") == pytest.approx(expected_s, abs=1e-5)


def test_segmentation_offload_keeps_the_goodput_of_a_single_flow(linux):
    # The window fills the pipe, so the link never idles: its rate, counted in bytes on the wire, is
    # the same to the byte, however segments travel. (A merged packet counted with one header would
    # overrun it by 3 %.)
    flow = linux_tcp("t", "cubic", sack=True, maximum_window_bytes=100_000)
    results = both(linux, single_link([flow], rate_bps=1e7, delay_s=0.01))
    for result in results:
        rate = mean(result.samples("throughput_bps", link="wire:ab", after_s=2))
        assert rate == pytest.approx(1e7, rel=0.002)
        assert result.number("t", "packets_dropped") == 0
        assert result.number("t", "retransmissions") == 0
        bits = result.number("t", "throughput_bps") * 10
        packets = result.number("t", "packets_received")
        assert bits / packets == pytest.approx(PACKET_BITS, rel=0.001)
    # Both start from one segment: slow start costs the same few round trips within a percent.
    rates = [result.number("t", "goodput_bps") for result in results]
    assert rates[1] == pytest.approx(rates[0], rel=0.01)


def test_segments_of_a_merged_packet_arrive_together(linux):
    # On a wire where each takes 10 ms, no interval of 9 ms sees two come, unless they are merged.
    flow = linux_tcp("t", initial_window_segments=10, maximum_window_bytes=10 * SEGMENT)
    scenario = single_link([flow], rate_bps=PACKET_BITS * 100, delay_s=0.01, duration_s=3)
    off, on = (
        round(max(result.samples("throughput_bps", flow="t")) * 0.009 / PACKET_BITS, 6)
        for result in both(linux, scenario | {"sampling_interval_s": 0.009})
    )
    assert off == 1
    assert on >= 2


def test_the_queue_is_counted_in_segments_with_segmentation_offload(linux):
    # A standing queue: the window less what the pipe holds (a round trip of 20 ms and the
    # transmission is 2.5 packets), whatever the packets are merged into.
    flow = linux_tcp("t", maximum_window_bytes=40 * SEGMENT)
    scenario = single_link([flow], rate_bps=1e6, delay_s=0.01, duration_s=20)
    off, on = (mean(result.queue(after_s=10)) for result in both(linux, scenario))
    assert off == pytest.approx(40 - 3.4, abs=1.5)
    # Segments are merged in pairs at this rate: at most one more in transmission, in propagation
    # and on the return path. (Counting a pair as one, as the kernel does, would give half.)
    assert on == pytest.approx(off, abs=3)


def test_a_merged_packet_split_and_dropped_by_tbf_is_counted_once(linux):
    # TBF reports the segments and what it cut them from.
    flow = linux_tcp("t", "cubic", sack=True, segment_bytes=1448, initial_window_segments=10)
    scenario = dumbbell([flow], rate_bps=1e7, delay_s=0.005, queue=droptail(5), duration_s=2)
    shaper = {"kind": "tbf", "burst_bytes": 3000, "line_rate_bps": 1e9}
    scenario["links"][0] |= {"frame_bytes": 14, "shaper_ab": shaper}
    result = linux.run(scenario | {"host": OFFLOAD})
    assert result.number("t", "packets_dropped") == sum(result.samples("drops", flow="t")) > 0


ECN_QUEUE = marking_threshold(5)


def late_syn(linux, flows, *, crowded):
    """Run flows whose SYN comes while the queue is full, if `crowded`."""
    crowd = [cbr("crowd", 1e8, stop_s=0.5)] if crowded else []
    flows = [flow | {"start_s": 0.25} for flow in flows]
    return linux.run(single_link([*flows, *crowd], rate_bps=1e7, queue=ECN_QUEUE, duration_s=6))


def test_a_flow_whose_syn_is_lost_continues_without_ecn(linux):
    # RFC 3168, section 6.1.1.1. The queue marks what it would drop otherwise.
    flow = linux_tcp("t", ecn=True)
    marked, dropped = (late_syn(linux, [flow], crowded=crowded) for crowded in (False, True))
    assert marked.number("t", "packets_dropped") == 0
    assert dropped.number("t", "packets_dropped") > 0
    # Its first data packets come a second later.
    first = [min(samples_with_data(result, "t")) for result in (marked, dropped)]
    assert first[1] - first[0] == pytest.approx(1, abs=0.11)


def samples_with_data(result, flow):
    """Return the times of samples in which a flow's data arrived."""
    rows = [row for row in result.series if row["flow"] == flow]
    return [float(row["time_s"]) for row in rows if float(row["throughput_bps"])]


def test_a_retransmitted_syn_offers_the_options_of_its_flow(linux):
    # The engine itself compares what was agreed with what the flow has.
    flows = [
        linux_tcp("sack", sack=True),
        linux_tcp("timestamps", timestamps=True),
        linux_tcp("both", sack=True, timestamps=True),
        linux_tcp("neither"),
    ]
    result = late_syn(linux, flows, crowded=True)
    starts = [min(samples_with_data(result, flow["id"])) for flow in flows]
    assert min(starts) > 1


# -- a kernel's older rules -----------------------------------------------------------------------


def probe_delay_s(linux, floor):
    """Return how long after the last acknowledgement the loss probe of a tail leaves."""
    # Of five segments one is in transmission and two wait: the last two are lost.
    flow = {"initial_window_segments": 5, "stop_after_bytes": 5 * SEGMENT}
    flow = linux_tcp("t", sack=True, **flow, minimum_rto_s=0.2)
    scenario = single_link([flow], rate_bps=1e8, delay_s=PROBE_DELAY_S, queue=droptail(2))
    scenario |= {"duration_s": 0.3, "sampling_interval_s": 0.0005}
    result = linux.run(scenario | {"host": {"loss_probe_floor": floor}})
    times_s = [float(row["time_s"]) for row in result.series if row["retransmissions"] not in "0"]
    assert result.number("t", "timeouts") == 0
    return times_s[0] - 2 * (2 * PROBE_DELAY_S) - 3 * PACKET_BITS / 1e8


PROBE_DELAY_S = 0.0102


def test_the_loss_probe_waits_two_milliseconds_or_two_ticks(linux):
    # Two round trips of 41 ms are 11 ticks of 4 ms, with 2 ms too. No timer fires early: at the
    # second tick after its time at the latest.
    new_s, old_s = (probe_delay_s(linux, floor) for floor in ("2 ms", "2 jiffies"))
    earliest_s = 4 * PROBE_DELAY_S + 0.002
    assert earliest_s < new_s < earliest_s + 2 * 0.004
    assert old_s - new_s == pytest.approx(0.008, abs=1e-6)


HELD = {"device_queue": True, "segment_memory_bytes": 4352}
BURST_SEGMENT = 1448


def first_burst(linux, delay_s, host):
    """Return the first flow's segments before the second's, and its pacing rate in byte/s."""
    window = {"segment_bytes": BURST_SEGMENT, "initial_window_segments": 10, "socket_samples": True}
    flows = [
        linux_tcp(name, "cubic", sack=True, **window, connect_s=0, start_s=start_s)
        for name, start_s in (("first", 0.01), ("second", 0.01001))
    ]
    packet_s = 8 * (BURST_SEGMENT + TCP_IP_HEADER_BYTES) / 1e8
    scenario = single_link(flows, rate_bps=1e8, delay_s=delay_s, duration_s=0.02)
    result = linux.run(scenario | {"sampling_interval_s": packet_s, "host": host})
    arrived = {name: samples_with_data(result, name) for name in ("first", "second")}
    burst = sum(time_s < min(arrived["second"]) for time_s in arrived["first"])
    rate = result.samples("pacing_rate_bps", flow="first", after_s=0.01)[0] / 8
    return burst, rate


@pytest.mark.parametrize("delay_s", [0.00045, 0.0006])
def test_small_queues_bound_the_first_burst(linux, delay_s):
    burst, rate = first_burst(linux, delay_s, HELD)
    assert burst == int(rate / 1024 / 4352) + 1 < 10
    # Both the memory of its packets and their size matter.
    for host in ({}, HELD | {"device_queue": False}):
        assert first_burst(linux, delay_s, host)[0] == 10


def test_a_device_queue_does_not_change_the_timing_of_a_flow(linux):
    # A flow that small queues never hold back, on a link with a shaper, random losses and jitter.
    flow = linux_tcp("t", "cubic", maximum_window_bytes=2 * SEGMENT, minimum_rto_s=0.2)
    loss = {"kind": "random", "probability": 0.05}
    scenario = single_link([flow, cbr("c", 5e5)], rate_bps=1e6, delay_s=0.005, loss=loss)
    shaper = {"kind": "token_bucket", "burst_bytes": 3000, "line_rate_bps": 1e7}
    scenario["links"][0] |= {"shaper_ab": shaper, "jitter_s": 0.001}
    off, on = (linux.run(scenario | {"host": {"device_queue": held}}) for held in (False, True))
    for name in ("t", "c"):
        assert off.packets(name) == on.packets(name)
        delays_s = [result.number(name, "delay_mean_s") for result in (off, on)]
        assert delays_s[0] == pytest.approx(delays_s[1], abs=1e-6)
    assert off.queue() == on.queue()


FAST = pytest.mark.kernels


@pytest.mark.parametrize(
    ("bench", "host"),
    [
        ("linux", OFFLOAD),
        pytest.param("fast", {"timer_hz": 1000}, marks=FAST),
        pytest.param("fast", OFFLOAD | {"timer_hz": 1000}, marks=FAST),
    ],
)
def test_the_same_scenario_gives_the_same_bytes_with_any_host_settings(request, bench, host):
    machine = request.getfixturevalue(bench)
    flow = linux_tcp("t", "bbr", sack=True, clock_granularity_s=1 / host.get("timer_hz", 250))
    loss = {"kind": "random", "probability": 0.01}
    scenario = dumbbell([flow], loss=loss, duration_s=5) | {"host": host}
    assert machine.run(scenario).files() == machine.run(scenario).files()


@pytest.mark.parametrize(
    ("bench", "timer_hz"), [("linux", 250), pytest.param("fast", 1000, marks=FAST)]
)
def test_timeouts_fire_at_ticks_of_the_kernels_timer(request, bench, timer_hz):
    # A window of two segments leaves no three duplicates: the timer repairs. Its least value, with
    # the round trip, is below 63 ticks of either kernel, where the timer wheel is exact.
    timer = {"minimum_rto_s": 0.02, "clock_granularity_s": 1 / timer_hz}
    flow = linux_tcp("t", maximum_window_bytes=2 * SEGMENT, **timer)
    # Not a multiple of a tick, so that acknowledgements drift over all phases.
    loss = {"kind": "random", "probability": 0.1}
    scenario = single_link([flow], rate_bps=1e7, delay_s=0.0054321, duration_s=20, loss=loss)
    scenario |= {"sampling_interval_s": 0.0005, "host": {"timer_hz": timer_hz}}
    result = request.getfixturevalue(bench).run(scenario)
    phases = Counter(
        round(float(row["time_s"]) * 2000) % 8
        for row in result.series
        if row["flow"] and row["retransmissions"] != "0"
    )
    # A tick on the edge of two intervals may fall into either.
    in_phase = max(phases[p] + phases[(p + 1) % 8] for p in range(8))
    timeouts = result.number("t", "timeouts")
    assert timeouts > 20
    # Each timeout repairs at a tick, so at one and the same phase of 4 ms. Of ticks of 1 ms one in
    # four falls into a quarter of 4 ms, and what backs off beyond 63 ticks.
    assert in_phase >= timeouts if timer_hz == 250 else in_phase < 0.7 * timeouts


def test_only_dctcp_flows_boot_the_kernel_with_dctcp(linux_program, tmp_path):
    # A different kernel draws different random numbers from the same seed.
    folder = shutil.copytree(linux_program.parent, tmp_path / "engine")
    (folder / "dctcp-linux").unlink()
    engine = Bench("linux", folder / linux_program.name, tmp_path)
    engine.run(single_link([linux_tcp("t", "cubic", ecn=True)], duration_s=1))
    with pytest.raises(AssertionError, match="the guest left no results"):
        engine.run(single_link([linux_tcp("t", "dctcp", ecn=True)], duration_s=1))


def test_a_rebuild_from_the_cached_kernel_gives_the_same_files(linux_program, tmp_path):
    # As after `make clean`: the folder is gone, the cache is not.
    elsewhere = os.environ | {"TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    words = [BUILD, "--output", tmp_path / "a b" / "engine"]
    subprocess.run(words, check=True, env=elsewhere, umask=0o077)
    first, again = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        for folder in (linux_program.parent, tmp_path / "a b" / "engine")
    )
    assert first == again
