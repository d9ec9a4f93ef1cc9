"""Hosts of the linux engine: segmentation offload and the kernel's timer frequency.

Expectations follow from the kernel's documented behaviour: a sender merges at least two segments
(ip-sysctl, tcp_min_tso_segs), merged packets cross veth whole (drivers/net/veth.c: GSO is on by
default, GRO is not), and timers expire at ticks (Documentation/timers).
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from subprocess import CompletedProcess

import pytest

from tests.engines.conftest import invoker, runner
from tests.engines.engine_bench import write_plan
from tests.engines.engine_results import Result
from tests.engines.engine_scenarios import (
    SEGMENT,
    TCP_IP_HEADER_BYTES,
    Json,
    cake,
    cbr,
    codel,
    droptail,
    dumbbell,
    linux_red,
    linux_tcp,
    pfifo,
    pie,
    single_link,
)

Run = Callable[..., Result]
Invoke = Callable[..., CompletedProcess[str]]
BUILD = Path(__file__).resolve().parents[2] / "workflow" / "engines" / "linux" / "build"
PACKET_BITS = 8 * (SEGMENT + TCP_IP_HEADER_BYTES)
OFFLOAD = {"segmentation_offload": True}


def both(run: Run, scenario: Json) -> tuple[Result, Result]:
    """Run a scenario without and with offload."""
    return run(scenario), run(scenario | {"host": OFFLOAD})


def contents(result: Result) -> dict[str, bytes]:
    """Return the bytes of all files of a run."""
    return {path.name: path.read_bytes() for path in sorted(result.directory.iterdir())}


@pytest.fixture(scope="module")
def run_fast(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a scenario on linux, with kernels of 250 and of 1000 Hz."""
    folder = tmp_path_factory.mktemp("fast")
    subprocess.run([BUILD, "--hz", "250,1000", "--output", folder], check=True)
    return runner("linux", invoker(folder / "replicate-linux"), tmp_path_factory)


def test_a_default_host_in_words_is_the_default(run_linux: Run) -> None:
    scenario = dumbbell([linux_tcp("t", sack=True), cbr("c", 5e5)], queue=droptail(20))
    said = {"segmentation_offload": False, "timer_hz": 250}
    first, second = contents(run_linux(scenario)), contents(run_linux(scenario | {"host": said}))
    assert [first[name] == second[name] for name in ("flows.csv", "series.csv")] == [True, True]


def test_an_empty_link_gives_the_same_goodput(run_linux: Run) -> None:
    # The window fills the pipe, so the link never idles: its rate, counted in bytes on the wire, is
    # the same to the byte, however segments travel. (A merged packet counted with one header would
    # overrun it by 3 %.)
    flow = linux_tcp("t", "cubic", sack=True, maximum_window_bytes=100_000)
    results = both(run_linux, single_link([flow], rate_bps=1e7, delay_s=0.01))
    for result in results:
        assert mean(result.samples("throughput_bps", link="wire:ab", after_s=2)) == pytest.approx(
            1e7, rel=0.002
        )
        assert result.number("t", "packets_dropped") == 0
        assert result.number("t", "retransmissions") == 0
        bits = result.number("t", "throughput_bps") * 10
        packets = result.number("t", "packets_received")
        assert bits / packets == pytest.approx(PACKET_BITS, rel=0.001)
    # Both start from one segment: slow start costs the same few round trips within a percent.
    rates = [result.number("t", "goodput_bps") for result in results]
    assert rates[1] == pytest.approx(rates[0], rel=0.01)


def test_offload_makes_bursts(run_linux: Run) -> None:
    # A window of 20 segments far below the pipe, once slow start is over. Segment by segment, each
    # comes as the one before leaves: nothing waits. Merged, two or more come at once: 10 of 20 wait
    # for a transmission (0.416 ms) in each round trip (0.1 s), 0.04 packets on average.
    flow = linux_tcp("t", maximum_window_bytes=20 * SEGMENT)
    scenario = dumbbell([flow], rate_bps=2e7, delay_s=0.05, duration_s=4)
    scenario["sampling_interval_s"] = 0.0001
    off, on = (
        mean(result.samples("queue_packets", link="bottleneck:ab", after_s=2))
        for result in both(run_linux, scenario)
    )
    assert off < 0.005
    assert on > 0.03


def test_merged_segments_arrive_together(run_linux: Run) -> None:
    # On a wire where each takes 10 ms, no interval of 9 ms sees two come, unless they are merged.
    flow = linux_tcp("t", initial_window_segments=10, maximum_window_bytes=10 * SEGMENT)
    scenario = single_link([flow], rate_bps=PACKET_BITS * 100, delay_s=0.01, duration_s=3)
    scenario["sampling_interval_s"] = 0.009
    off, on = (
        round(max(result.samples("throughput_bps", flow="t")) * 0.009 / PACKET_BITS, 6)
        for result in both(run_linux, scenario)
    )
    assert off == 1
    assert on >= 2


@pytest.mark.parametrize(
    "queue",
    [
        {"kind": "droptail", "limit_bytes": 20_000},
        droptail(10),
        pfifo(10),
        linux_red(5, 15),
        codel(),
        codel(kind="fq_codel"),
        pie(),
        pie(kind="fq_pie"),
        cake(),
    ],
    ids=lambda queue: f"{queue['kind']}{'-bytes' if 'limit_bytes' in queue else ''}",
)
def test_merged_packets_are_conserved_in_every_queue(run_linux: Run, queue: Json) -> None:
    # The guest itself requires that each packet arrive or be dropped, and that the queues' own
    # counters agree: it ends with code 3 otherwise.
    flows = [linux_tcp(n, c, sack=True) for n, c in (("a", "cubic"), ("b", "linuxreno"))]
    loss = {"kind": "random", "probability": 0.003}
    # A short round trip: the kernel merges more the shorter it is (ip-sysctl, tcp_tso_rtt_log).
    scenario = dumbbell(flows, rate_bps=5e6, delay_s=5e-4, queue=queue, loss=loss, duration_s=20)
    # Often enough to see the largest window.
    result = run_linux(scenario | {"host": OFFLOAD, "sampling_interval_s": 0.01})
    for flow in ("a", "b"):
        sent, received, dropped, flying, again = (
            result.number(flow, column)
            for column in (
                "packets_sent",
                "packets_received",
                "packets_dropped",
                "packets_in_flight",
                "retransmissions",
            )
        )
        assert sent == received + dropped + flying
        assert dropped > 0
        # What was dropped was sent again, but for what the end cut off, a window at most (RED keeps
        # dropping what a starved flow sends: README.md) and a probe beyond it, which may be of new
        # data (RFC 8985, section 7.3); with SACK hardly anything else was.
        window = max(result.samples("cwnd_bytes", flow=flow)) / SEGMENT + 1
        assert dropped - window <= again <= 1.1 * dropped + 100
        assert sum(result.samples("retransmissions", flow=flow)) == again
        assert sum(result.samples("drops", flow=flow)) == dropped
    lost = sum(result.number(flow, "packets_dropped") for flow in ("a", "b"))
    lost += result.run["control_packets_dropped"]
    assert sum(result.samples("drops", link="bottleneck:ab")) == lost
    assert min(result.samples("queue_packets", link="bottleneck:ab")) >= 0


def test_the_queue_is_counted_in_segments(run_linux: Run) -> None:
    # A standing queue: the window less what the pipe holds (a round trip of 20 ms and the
    # transmission is 2.5 packets), whatever the packets are merged into.
    flow = linux_tcp("t", maximum_window_bytes=40 * SEGMENT)
    scenario = single_link([flow], rate_bps=1e6, delay_s=0.01, duration_s=20)
    lengths = [
        mean(result.samples("queue_packets", link="wire:ab", after_s=10))
        for result in both(run_linux, scenario)
    ]
    assert lengths[0] == pytest.approx(40 - 3.4, abs=1.5)
    # Merged by twos, as they are at this rate: at most one more in transmission, in propagation
    # and on the way back. (Counted as the kernel counts, a pair as one, it would be half.)
    assert lengths[1] == pytest.approx(lengths[0], abs=3)


def test_the_monitored_rate_never_exceeds_the_link(run_linux: Run) -> None:
    flows = [linux_tcp(n, "cubic", sack=True) for n in "ab"]
    scenario = dumbbell(flows, rate_bps=2e6, queue=droptail(100), duration_s=10)
    result = run_linux(scenario | {"host": OFFLOAD})
    # A sampling interval holds 24 packets: one more where boundaries fall between.
    assert max(result.samples("throughput_bps", link="bottleneck:ab")) <= 2e6 * (1 + 1 / 24)


def same_bytes(run: Run, host: Json) -> None:
    """Require that a scenario with chance gives the same bytes twice."""
    flow = linux_tcp("t", "bbr", sack=True, clock_granularity_s=1 / host.get("timer_hz", 250))
    loss = {"kind": "random", "probability": 0.01}
    scenario = dumbbell([flow], loss=loss, duration_s=5) | {"host": host}
    assert contents(run(scenario)) == contents(run(scenario))


def test_same_scenario_same_bytes_with_offload(run_linux: Run) -> None:
    same_bytes(run_linux, OFFLOAD)


@pytest.mark.kernels
@pytest.mark.parametrize("host", [{"timer_hz": 1000}, OFFLOAD | {"timer_hz": 1000}])
def test_same_scenario_same_bytes_with_a_faster_timer(run_fast: Run, host: Json) -> None:
    same_bytes(run_fast, host)


def repairs(run: Run, timer_hz: int) -> tuple[float, float]:
    """Return how many timeouts there were, and how many repairs share a quarter of 4 ms."""
    # A window of two segments leaves no three duplicates: the timer repairs. Its least value, with
    # the round trip, is below 63 ticks of either kernel, where the timer wheel is exact.
    flow = linux_tcp(
        "t",
        maximum_window_bytes=2 * SEGMENT,
        minimum_rto_s=0.02,
        clock_granularity_s=1 / timer_hz,
    )
    # Not a multiple of a tick, so that acknowledgements drift over all phases.
    loss = {"kind": "random", "probability": 0.1}
    scenario = single_link([flow], rate_bps=1e7, delay_s=0.0054321, duration_s=20, loss=loss)
    scenario["sampling_interval_s"] = 0.0005
    result = run(scenario | {"host": {"timer_hz": timer_hz}})
    phases = Counter(
        round(float(row["time_s"]) * 2000) % 8
        for row in result.series
        if row["flow"] and row["retransmissions"] != "0"
    )
    # A tick on the edge of two intervals may fall into either.
    return result.number("t", "timeouts"), max(phases[p] + phases[(p + 1) % 8] for p in range(8))


def test_timeouts_come_at_ticks(run_linux: Run) -> None:
    timeouts, in_phase = repairs(run_linux, 250)
    assert timeouts > 20
    # Each timeout repairs at a tick, so at one and the same phase of 4 ms.
    assert in_phase >= timeouts


@pytest.mark.kernels
def test_a_faster_timer_has_finer_ticks(run_fast: Run) -> None:
    timeouts, in_phase = repairs(run_fast, 1000)
    assert timeouts > 20
    # Of ticks of 1 ms one in four falls into a quarter of 4 ms, and what backs off beyond 63 ticks.
    assert in_phase < 0.7 * timeouts


def test_a_kernel_that_was_not_built_is_named_with_its_command(
    invoke_linux: Invoke, tmp_path: Path
) -> None:
    flow = linux_tcp("t", clock_granularity_s=0.01)
    scenario = single_link([flow], duration_s=1) | {"host": {"timer_hz": 100}}
    path = write_plan(tmp_path, "linux", scenario)
    done = invoke_linux("--plan", path, "--output", tmp_path / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    for word in ("host.timer_hz", "100", "build --hz 100,250"):
        assert word in done.stderr
    assert not (tmp_path / "out").exists()
