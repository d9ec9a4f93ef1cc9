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

from tests.engines.engine_bench import Bench, mean
from tests.engines.engine_scenarios import (
    SEGMENT,
    TCP_IP_HEADER_BYTES,
    dumbbell,
    linux_tcp,
    single_link,
)
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
def test_merged_packets_keep_to_their_bound(linux, bound_bytes, merged):
    # One burst, on a path so short that the kernel merges as much as it may.
    flow = {"initial_window_segments": 20, "maximum_window_bytes": 10**6}
    flow = linux_tcp("t", **flow, stop_after_bytes=20 * SEGMENT)
    scenario = single_link([flow], rate_bps=1e8, delay_s=0.0001, duration_s=1)
    result = linux.run(scenario | {"host": {"segmentation_offload": bound_bytes}})
    # A segment arrives with the last one of its packet.
    arrivals = [min(20, merged * (number // merged + 1)) for number in range(20)]
    expected_s = 0.0001 + mean(arrivals) * PACKET_BITS / 1e8
    assert result.number("t", "delay_mean_s") == pytest.approx(expected_s, abs=1e-5)


def test_an_empty_link_gives_the_same_goodput(linux):
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


def test_merged_segments_arrive_together(linux):
    # On a wire where each takes 10 ms, no interval of 9 ms sees two come, unless they are merged.
    flow = linux_tcp("t", initial_window_segments=10, maximum_window_bytes=10 * SEGMENT)
    scenario = single_link([flow], rate_bps=PACKET_BITS * 100, delay_s=0.01, duration_s=3)
    off, on = (
        round(max(result.samples("throughput_bps", flow="t")) * 0.009 / PACKET_BITS, 6)
        for result in both(linux, scenario | {"sampling_interval_s": 0.009})
    )
    assert off == 1
    assert on >= 2


def test_the_queue_is_counted_in_segments(linux):
    # A standing queue: the window less what the pipe holds (a round trip of 20 ms and the
    # transmission is 2.5 packets), whatever the packets are merged into.
    flow = linux_tcp("t", maximum_window_bytes=40 * SEGMENT)
    scenario = single_link([flow], rate_bps=1e6, delay_s=0.01, duration_s=20)
    off, on = (mean(result.queue(after_s=10)) for result in both(linux, scenario))
    assert off == pytest.approx(40 - 3.4, abs=1.5)
    # Segments are merged in pairs at this rate: at most one more in transmission, in propagation
    # and on the return path. (Counting a pair as one, as the kernel does, would give half.)
    assert on == pytest.approx(off, abs=3)


FAST = pytest.mark.kernels


@pytest.mark.parametrize(
    ("bench", "host"),
    [
        ("linux", OFFLOAD),
        pytest.param("fast", {"timer_hz": 1000}, marks=FAST),
        pytest.param("fast", OFFLOAD | {"timer_hz": 1000}, marks=FAST),
    ],
)
def test_same_scenario_same_bytes_on_any_host(request, bench, host):
    machine = request.getfixturevalue(bench)
    flow = linux_tcp("t", "bbr", sack=True, clock_granularity_s=1 / host.get("timer_hz", 250))
    loss = {"kind": "random", "probability": 0.01}
    scenario = dumbbell([flow], loss=loss, duration_s=5) | {"host": host}
    assert machine.run(scenario).files() == machine.run(scenario).files()


@pytest.mark.parametrize(
    ("bench", "timer_hz"), [("linux", 250), pytest.param("fast", 1000, marks=FAST)]
)
def test_timeouts_come_at_ticks(request, bench, timer_hz):
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


def test_only_dctcp_boots_the_kernel_that_has_it(linux_program, tmp_path):
    # A different kernel draws different random numbers from the same seed.
    folder = shutil.copytree(linux_program.parent, tmp_path / "engine")
    (folder / "dctcp-linux").unlink()
    engine = Bench("linux", folder / linux_program.name, tmp_path)
    engine.run(single_link([linux_tcp("t", "cubic", ecn=True)], duration_s=1))
    with pytest.raises(AssertionError, match="the guest left no results"):
        engine.run(single_link([linux_tcp("t", "dctcp", ecn=True)], duration_s=1))


def test_built_again_from_the_cached_kernel_it_is_the_same(linux_program, tmp_path):
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
