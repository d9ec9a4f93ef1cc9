"""Links: token buckets, framing, and jitter."""

import pytest

from tests.engines.engine_bench import mean
from tests.engines.engine_scenarios import (
    SEGMENT,
    TCP_IP_HEADER_BYTES,
    cbr,
    codel,
    document,
    droptail,
    dumbbell,
    link,
    linux_tcp,
    pfifo,
    single_link,
)

#: The engines that have them.
SHAPED = pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
FRAMES = pytest.mark.parametrize("frame_bytes", [14, 38])
RATE_BPS, PACKET = 1e6, 1000


def wire(flows, **changes):
    """Return one link with these changes, without any propagation, for a tenth of a second."""
    links = [link("wire", "s0", "d0", RATE_BPS, 0, **changes)]
    return document(["s0", "d0"], links, flows, duration_s=0.1, sampling_interval_s=0.01)


def bucket(burst_bytes, line_rate_bps=1e8):
    """Return a shaper."""
    return {"kind": "token_bucket", "burst_bytes": burst_bytes, "line_rate_bps": line_rate_bps}


@SHAPED
@pytest.mark.parametrize(
    "queue", [droptail(), pfifo(1000), codel(target_s=1)], ids=lambda queue: queue["kind"]
)
@pytest.mark.parametrize(("burst_bytes", "passed"), [(1, 13), (8000, 21), (20000, 33)])
def test_a_bucket_lets_its_burst_and_its_rate_pass_and_one_packet_on_credit(
    bench, queue, burst_bytes, passed
):
    # The k-th packet goes once the tokens that ever came pay for the k - 1 before it: in 0.1 s
    # come burst + 12500 bytes. (The packets come at 10 Mbit/s from 0 on: 125 of them.)
    result = bench.run(wire([cbr("c", 1e7)], queue_ab=queue, shaper_ab=bucket(burst_bytes)))
    assert result.number("c", "packets_received") == passed


@SHAPED
def test_tokens_that_nobody_takes_are_no_more_than_the_burst(bench):
    late = cbr("late", 1e7, start_s=0.05)
    result = bench.run(wire([late], shaper_ab=bucket(1000)))
    # The second half brings 6250 bytes of tokens; those of the idle half are lost.
    assert result.number("late", "packets_received") == (1000 + 6250) // PACKET + 1


def test_tbf_pays_first_and_cuts_what_its_burst_cannot_hold(linux):
    # A packet of 1600 bytes waits for all its tokens: there is no credit, unlike with HTB.
    frames, shaper = {"frame_bytes": 14}, bucket(1600) | {"kind": "tbf"}
    result = linux.run(wire([cbr("c", 1e7)], shaper_ab=shaper, **frames))
    assert result.number("c", "packets_received") == (1600 + 12500) // (PACKET + 14)
    # A transfer leaves in segments, from the second on one whenever its tokens have come.
    flow = {"initial_window_segments": 20, "maximum_window_bytes": 10**6}
    flow = linux_tcp("t", **flow, stop_after_bytes=20 * SEGMENT)
    offload = {"host": {"segmentation_offload": True}, "duration_s": 1}
    cut = linux.run(wire([flow], shaper_ab=shaper, **frames) | offload)
    whole = linux.run(wire([flow], shaper_ab=bucket(1600), **frames) | offload)
    size = SEGMENT + TCP_IP_HEADER_BYTES + 14
    # The SYN's tokens are back when its answer has come, at RATE_BPS too; the answer's are gone.
    tokens = 1600 - TCP_IP_HEADER_BYTES - 14
    expected_s = [8 * (max(0, size * n - tokens) / RATE_BPS + size / 1e8) for n in range(1, 21)]
    assert cut.number("t", "delay_mean_s") == pytest.approx(mean(expected_s), abs=5e-5)
    # Behind HTB a merged packet goes whole, on credit.
    assert whole.number("t", "delay_mean_s") < mean(expected_s) - 2 * size * 8 / RATE_BPS
    # A queue of three packets keeps the first segments of a split packet, if any.
    short = wire([flow], shaper_ab=shaper, **frames, queue_ab=droptail(3))
    result = linux.run(short | offload | {"duration_s": 60})
    assert result.number("t", "packets_dropped") >= 10
    assert result.number("t", "completion_time_s") > 20 * size * 8 / RATE_BPS


@SHAPED
@FRAMES
@pytest.mark.parametrize("shaped", [False, True])
def test_frames_take_their_part_of_the_rate_and_add_to_the_delay(bench, frame_bytes, shaped):
    frame = PACKET + frame_bytes
    # A packet each 20 ms finds 2500 bytes of tokens: it passes at the rate of the line.
    changes = {"frame_bytes": frame_bytes, "shaper_ab": bucket(3000, 1e7) if shaped else None}
    delay_s = bench.run(wire([cbr("c", 4e5)], **changes)).number("c", "delay_mean_s")
    passing_s = 8 * frame / (1e7 if shaped else RATE_BPS)
    assert delay_s == pytest.approx(passing_s, abs=2 * bench.traits.tick_s)
    scenario = wire([cbr("c", 2e6)], **changes) | {"duration_s": 20, "sampling_interval_s": 1}
    result = bench.run(scenario)
    # In addition, the burst and a packet: 4 of about 2400.
    share = RATE_BPS * PACKET / frame
    assert result.number("c", "throughput_bps") == pytest.approx(share, rel=2e-3)
    assert result.number("c", "packets_received") == pytest.approx(share * 20 / 8 / PACKET, abs=5)


@pytest.mark.parametrize(("frame_bytes", "waiting"), [(0, 101), (14, 100)])
def test_a_limit_in_bytes_counts_frames(linux, frame_bytes, waiting):
    queue = {"kind": "droptail", "limit_bytes": 101_400}
    scenario = wire([cbr("c", 1e7)], queue_ab=queue, frame_bytes=frame_bytes)
    assert max(linux.run(scenario | {"duration_s": 1}).queue()) == waiting


@SHAPED
def test_both_directions_have_their_own(bench):
    flows = [cbr("c", 1e7), cbr("back", 1e7, source="d0", destination="s0")]
    result = bench.run(wire(flows, shaper_ba=bucket(20000)))
    assert [result.number(flow, "packets_received") for flow in ("c", "back")] == [12, 33]


def test_a_monitor_counts_packets_that_are_lost_at_the_far_end(bench):
    loss = {"kind": "random", "probability": 0.5}
    result = bench.run(wire([cbr("c", RATE_BPS / 2)], loss_ab=loss) | {"duration_s": 1})
    # Packets of 8 ms, one each 16 ms: an interval of 10 ms ends at most one transmission.
    carried = sum(result.samples("throughput_bps", link="wire:ab")) * 0.01
    assert carried == pytest.approx(RATE_BPS / 2, abs=8 * PACKET)
    assert result.number("c", "packets_dropped") > 10


DELAY_S, JITTER_S, PACKETS = 0.02, 0.01, 2000
#: 1000 bytes and PPP's 2 at 1 Gbit/s, and the error of a clock.
PASSING_S = 1.3e-5


def jittered(scenario):
    """Return a scenario whose first link has jitter."""
    scenario["links"][0]["jitter_s"] = JITTER_S
    return scenario


def test_delays_are_drawn_by_the_seed_uniformly_up_to_the_jitter(bench):
    # 50 packets per second, so far apart that none waits, and one per sample.
    run = {"rate_bps": 1e9, "duration_s": PACKETS / 50, "sampling_interval_s": 0.02}
    first, again, other = (
        bench.run(jittered(single_link([cbr("c", 8e3 * 50)], **run, seed=seed)))
        for seed in (1, 1, 2)
    )
    assert first.series == again.series
    assert first.series != other.series
    delays = first.samples("delay_s", flow="c")
    assert len(delays) >= PACKETS - 2
    assert min(delays) >= DELAY_S and max(delays) <= DELAY_S + JITTER_S + PASSING_S
    # Of each quarter of the range there is a quarter, within four standard deviations of a count.
    for quarter in range(4):
        low = DELAY_S + quarter * JITTER_S / 4
        count = sum(low <= delay < low + JITTER_S / 4 for delay in delays)
        assert count == pytest.approx(PACKETS / 4, abs=4 * (PACKETS * 3 / 16) ** 0.5)


def test_no_packet_overtakes_another(bench):
    # Jitter of many packets: were their order not kept, duplicates would be taken for losses.
    flow = bench.tcp("t", sack=True, maximum_window_bytes=50_000)
    result = bench.run(jittered(dumbbell([flow], rate_bps=1e7)))
    assert result.number("t", "retransmissions") == 0
    assert result.number("t", "packets_received") > 1000
