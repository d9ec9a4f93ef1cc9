"""A transfer of a given size has the completion time of theory on every engine."""

import pytest
from measurements.scenarios import SEGMENT, TCP_IP_HEADER_BYTES, single_link

DELAY_S = 0.1
PACKET_BYTES = SEGMENT + TCP_IP_HEADER_BYTES


def run_transfer(bench, stop_after_bytes, control="", *, more=(), run=None, **flow):
    """Run a transfer, by default over an idle path of a very high rate."""
    # A fixed window, which Linux would tune, so that it does not slow down slow start.
    window = {"maximum_window_bytes": 2_000_000, "stop_after_bytes": stop_after_bytes}
    transfer = bench.tcp("t", control, **window | flow)
    path = {"rate_bps": 1e9, "delay_s": DELAY_S, "duration_s": 5} | (run or {})
    return bench.run(single_link([transfer, *more], **path))


@pytest.mark.parametrize(
    ("segments", "window", "rounds", "last"),
    # RFC 5681: the initial window, then twice as many segments in each round trip (RFC 6928: ten),
    # and the remaining segments in the last round trip.
    [
        (1, 1, 1, 1),
        (3, 1, 2, 2),
        (4, 1, 3, 1),
        (10, 10, 1, 10),
        (11, 10, 2, 1),
        (30, 10, 2, 20),
        (31, 10, 3, 1),
        (100, 10, 4, 30),
        (300, 10, 5, 150),
    ],
)
@pytest.mark.parametrize("short", [0, 1])
def test_a_short_transfer_takes_the_round_trips_of_slow_start(
    bench, segments, window, rounds, last, short
):
    size = segments * SEGMENT - short
    result = run_transfer(bench, size, initial_window_segments=window, start_s=0.25)
    # The handshake, a round trip after each round but the last, and the last one's way.
    expected = 2 * DELAY_S * (1 + rounds - 1 + 0.5)
    expected += last * bench.serialisation_s(PACKET_BYTES, 1e9)
    completed_s = result.number("t", "completion_time_s")
    assert completed_s == pytest.approx(expected, abs=0.0001)
    assert result.packets("t")[1] == segments
    # ns-2 sends whole segments.
    received = segments * SEGMENT if bench.name == "ns2" else size
    assert result.number("t", "goodput_bps") == pytest.approx(8 * received / completed_s)
    shown = [float(row["time_s"]) for row in result.series if row["cwnd_bytes"]]
    assert 0.25 < max(shown) <= 0.25 + completed_s


def test_a_long_transfer_takes_its_bytes_over_the_link_rate(bench):
    # A window beyond the 24 packets on the way, and a queue that holds the rest of it.
    flow = {"initial_window_segments": 50, "maximum_window_bytes": 50 * SEGMENT}
    result = run_transfer(bench, 4000 * SEGMENT, run={"rate_bps": 1e6, "duration_s": 60}, **flow)
    expected = 3 * DELAY_S + 4000 * bench.serialisation_s(PACKET_BYTES, 1e6)
    assert result.number("t", "completion_time_s") == pytest.approx(expected, rel=0.002)
    assert result.number("t", "retransmissions") == 0


@pytest.mark.parametrize("control", ["vegas", "cubic"])
def test_a_transfer_with_losses_takes_longer_and_arrives_completely(bench, control):
    options = {} if (bench.name, control) == ("ns2", "vegas") else {"sack": True}
    path = {"loss": {"kind": "random", "probability": 0.02}, "duration_s": 100}
    result = run_transfer(bench, 500 * SEGMENT, control, run=path, **options)
    completed_s = result.number("t", "completion_time_s")
    assert 2 * DELAY_S * 3.5 < completed_s < 100
    assert result.number("t", "goodput_bps") * completed_s / 8 == pytest.approx(500 * SEGMENT)
    sent, _, dropped, _ = result.packets("t")
    assert sent - result.number("t", "retransmissions") == 500
    assert dropped > 0


def test_an_incomplete_transfer_has_no_completion_time(bench):
    endless = bench.tcp("endless", maximum_window_bytes=2_000_000)
    result = run_transfer(bench, 10 * SEGMENT, stop_s=0.45, more=[endless])
    assert [row["completion_time_s"] for row in result.flows.values()] == ["", ""]
    assert result.number("t", "throughput_bps") > 0
    without = run_transfer(bench, None, stop_s=0.45)
    assert "completion_time_s" not in without.flows["t"]


def test_samples_of_sockets_include_goodput(bench):
    # Losses at random: what is sent again is in the throughput and not in the goodput.
    sampled = bench.tcp("sampled", socket_samples=True, sack=bench.name == "linux")
    path = {"loss": {"kind": "random", "probability": 0.01}, "duration_s": 20}
    result = run_transfer(bench, None, more=[sampled], run=path)
    goodput = result.samples("goodput_bps", flow="sampled")
    assert sum(goodput) / len(goodput) == pytest.approx(result.number("sampled", "goodput_bps"))
    assert result.samples("goodput_bps", flow="t") == []
    rates = [result.samples(f"{name}_rate_bps", flow="sampled") for name in ("delivery", "pacing")]
    if bench.name != "linux":
        assert rates == [[], []]
        return
    # Delivered in a round trip is at most a window; outside of slow start, 120 % of it is paced.
    windows, rtts = (
        result.samples(name, flow="sampled", after_s=1) for name in ("cwnd_bytes", "rtt_s")
    )
    assert max(rates[0]) <= 8 * max(windows) / (2 * DELAY_S)
    assert rates[1][-1] == pytest.approx(1.2 * 8 * windows[-1] / rtts[-1], rel=0.05)


def test_bbr_paces_at_the_measured_rate_of_the_path(linux):
    bbr = linux.tcp("bbr", "bbr", socket_samples=True, sack=True, timestamps=True)
    path = {"rate_bps": 1e7, "delay_s": 0.02, "duration_s": 10}
    result = linux.run(single_link([bbr], **path))
    payload_bps = 1e7 * SEGMENT / (PACKET_BYTES + 12)
    # bbr_pacing_margin_percent: BBR sends one percent below the rate that it finds, and a round
    # trip without a queue delivers what was sent; when it probes, the queue makes up for that.
    for name, share in (("delivery_rate_bps", 0.99), ("goodput_bps", 1)):
        rates = result.samples(name, flow="bbr", after_s=5)
        assert sorted(rates)[len(rates) // 2] == pytest.approx(share * payload_bps, rel=0.01)
    # Including headers, as in the kernel's counts.
    paced = result.samples("pacing_rate_bps", flow="bbr", after_s=5)
    assert sorted(paced)[len(paced) // 2] == pytest.approx(0.99 * payload_bps, rel=0.03)
