"""Links: token buckets, framing, and jitter."""

import random

import pytest
from measurements.bench import mean
from measurements.scenarios import (
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
def test_a_token_bucket_passes_its_burst_its_rate_and_one_packet_on_credit(
    bench, queue, burst_bytes, passed
):
    # The k-th packet goes once the tokens that ever came pay for the k - 1 before it: in 0.1 s
    # come burst + 12500 bytes. (The packets come at 10 Mbit/s from 0 on: 125 of them.)
    result = bench.run(wire([cbr("c", 1e7)], queue_ab=queue, shaper_ab=bucket(burst_bytes)))
    assert result.number("c", "packets_received") == passed


@SHAPED
def test_unused_tokens_do_not_exceed_the_burst(bench):
    late = cbr("late", 1e7, start_s=0.05)
    result = bench.run(wire([late], shaper_ab=bucket(1000)))
    # The second half brings 6250 bytes of tokens; those of the idle half are lost.
    assert result.number("late", "packets_received") == (1000 + 6250) // PACKET + 1


def test_tbf_takes_tokens_before_sending_and_splits_packets_above_its_burst(linux):
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
def test_frame_bytes_take_link_rate_and_add_delay(bench, frame_bytes, shaped):
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
def test_a_queue_limit_in_bytes_includes_frame_bytes(linux, frame_bytes, waiting):
    queue = {"kind": "droptail", "limit_bytes": 101_400}
    scenario = wire([cbr("c", 1e7)], queue_ab=queue, frame_bytes=frame_bytes)
    assert max(linux.run(scenario | {"duration_s": 1}).queue()) == waiting


@SHAPED
def test_each_direction_has_its_own_shaper(bench):
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


def test_jitter_is_uniform_and_depends_on_the_seed(bench):
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


def test_jitter_reorders_no_packets(bench):
    # Jitter of many packets: were their order not kept, duplicates would be taken for losses.
    flow = bench.tcp("t", sack=True, maximum_window_bytes=50_000)
    result = bench.run(jittered(dumbbell([flow], rate_bps=1e7)))
    assert result.number("t", "retransmissions") == 0
    assert result.number("t", "packets_received") > 1000


#: The engines with links that change, or that have opportunities.
CHANGING = pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)


def changing(flows, *changes, **run):
    """Return one link of 2 Mbit/s and 20 ms that changes."""
    scenario = single_link(flows, **run)
    scenario["links"][0]["changes"] = list(changes)
    return scenario


@CHANGING
def test_throughput_follows_a_changing_link_rate(bench):
    flows = [cbr("there", 1e7), cbr("back", 1e7, source="d0", destination="s0")]
    changes = {"at_s": 3, "rate_bps": 6e6}, {"at_s": 6, "rate_bps": 1e6}
    scenario = changing(flows, *changes, duration_s=9)
    scenario["monitors"].append({"link": "wire", "direction": "ba"})
    result = bench.run(scenario)
    for flow, link_id in (("there", "wire:ab"), ("back", "wire:ba")):
        arrived = result.samples("throughput_bps", flow=flow)
        passed = result.samples("throughput_bps", link=link_id)
        for first_s, rate_bps in ((0, 2e6), (3, 6e6), (6, 1e6)):
            seconds = slice(round(10 * first_s) + 5, round(10 * first_s) + 30)
            assert mean(arrived[seconds]) == pytest.approx(rate_bps, rel=0.01)
            assert mean(passed[seconds]) == pytest.approx(rate_bps, rel=0.01)


@CHANGING
def test_a_device_queue_keeps_its_packets_when_the_rate_changes(bench):
    queue = pfifo(10) | {"device_queue_packets": 5}
    changes = {"at_s": 1, "rate_bps": 2e7}, {"at_s": 2, "rate_bps": 2e6}
    flow = cbr("c", 4e7, start_s=0.0013)
    result = bench.run(changing([flow], *changes, queue=queue, duration_s=3))
    assert set(result.queue()) == {15}


@CHANGING
def test_round_trips_follow_a_changing_delay(bench):
    flow = bench.tcp("t", maximum_window_bytes=20 * SEGMENT)
    changes = {"at_s": 3, "delay_s": 0.05}, {"at_s": 6, "delay_s": 0.01}
    result = bench.run(changing([flow], *changes, rate_bps=1e9, duration_s=9))
    for first_s, delay_s in ((0, 0.02), (3, 0.05), (6, 0.01)):
        samples = result.samples("rtt_s", flow="t", after_s=first_s + 0.5)[:20]
        assert samples == pytest.approx([2 * delay_s] * 20, abs=0.001)


@CHANGING
def test_a_falling_delay_reorders_no_packets(bench):
    flow = bench.tcp("t", sack=True, maximum_window_bytes=50_000)
    result = bench.run(changing([flow], {"at_s": 2, "delay_s": 0.001}, delay_s=0.05, duration_s=4))
    assert result.number("t", "packets_received") > 500
    assert result.number("t", "retransmissions") == 0


@CHANGING
def test_a_shorter_delay_takes_effect_on_a_busy_link(bench):
    # Packets that follow each other at once arrive after the earlier, and then with the new delay.
    result = bench.run(changing([cbr("c", 1.98e6)], {"at_s": 2, "delay_s": 0.005}, duration_s=4))
    passing_s = bench.serialisation_s(PACKET, 2e6)
    delays = result.samples("delay_s", flow="c")
    assert mean(delays[10:19]) == pytest.approx(0.02 + passing_s, abs=5e-4)
    assert mean(delays[21:]) == pytest.approx(0.005 + passing_s, abs=5e-4)


@CHANGING
@pytest.mark.parametrize("loss", [None, {"kind": "random", "probability": 0.5}])
def test_losses_follow_a_changing_probability(bench, loss):
    changes = {"at_s": 4, "loss_ab": 0.2}, {"at_s": 8, "loss_ab": 0, "loss_ba": 0.2}
    flows = [cbr(name, 4e6) for name in ("there", "back")]
    flows[1] |= {"source": "d0", "destination": "s0"}
    run = {"loss": loss, "rate_bps": 1e7, "duration_s": 12, "sampling_interval_s": 1}
    result = bench.run(changing(flows, *changes, **run))
    drops = {flow: result.samples("drops", flow=flow) for flow in ("there", "back")}
    before = 0.5 if loss else 0
    # 2000 packets in 4 s; the second of a change has some of both.
    for flow, shares in (("there", (before, 0.2, 0)), ("back", (0, 0, 0.2))):
        for first_s, share in zip((0, 4, 8), shares, strict=True):
            lost, sent = sum(drops[flow][first_s + 1 : first_s + 4]), 1500
            assert lost == pytest.approx(sent * share, abs=4 * (sent * share * (1 - share)) ** 0.5)


def with_series(flows, *milliseconds, **run):
    """Return one link whose direction there has opportunities."""
    scenario = single_link(flows, **run)
    scenario["links"][0]["opportunities_ab"] = list(milliseconds)
    return scenario


def departures_s(series, arrivals, duration_s):
    """Return when packets leave, as link_queue.cc of Mahimahi: arrivals are (time, bytes)."""
    waiting, left = list(arrivals), 0
    for round_number in range(round(1e3 * duration_s / series[-1])):
        for milliseconds in series:
            at_s = (round_number * series[-1] + milliseconds) / 1e3
            room = 1500
            while room and waiting and waiting[0][0] < at_s:
                left = left or waiting[0][1]
                used = min(room, left)
                room, left = room - used, left - used
                if not left:
                    yield at_s - waiting.pop(0)[0]


@CHANGING
@pytest.mark.parametrize("packet_bytes", [1500, 1000, 400])
def test_packets_leave_at_delivery_opportunities_as_in_mahimahi(bench, packet_bytes):
    # Bursts and gaps: 302 opportunities in 0.8 s carry 4.5 Mbit/s.
    series = [*sorted(random.Random(1).choices(range(400), k=300)), 400, 800]
    rate_bps, start_s, duration_s = 3e6, 0.0003, 4.0
    gap_s = 8 * packet_bytes / rate_bps
    arrivals = [(start_s + k * gap_s, packet_bytes) for k in range(int(duration_s / gap_s))]
    expected = list(departures_s(series, arrivals, duration_s))
    flow = cbr("c", rate_bps, packet_bytes=packet_bytes, start_s=start_s, stop_s=duration_s - 1)
    result = bench.run(with_series([flow], *series, duration_s=duration_s))
    expected = expected[: int(result.number("c", "packets_sent"))]
    assert result.number("c", "packets_received") == len(expected)
    delay_s = result.number("c", "delay_mean_s")
    assert delay_s == pytest.approx(0.02 + mean(expected), abs=bench.traits.tick_s)


@CHANGING
def test_a_series_of_opportunities_repeats_after_its_last_time(bench):
    # 8,000 opportunities in 4 s are more than a message to a kernel holds.
    series = sorted([*range(1, 4001), *range(1, 4001)])
    flow = cbr("c", 5e7, packet_bytes=1500)
    result = bench.run(with_series([flow], *series, delay_s=0, duration_s=4.5005))
    assert result.number("c", "packets_received") == 9000


@CHANGING
def test_an_opportunity_each_millisecond_carries_12_mbits(bench):
    flow = bench.tcp("t", segment_bytes=1460, maximum_window_bytes=100_000)
    result = bench.run(with_series([flow], 1, delay_s=0.01, duration_s=3))
    for which in ({"flow": "t"}, {"link": "wire:ab"}):
        rates = result.samples("throughput_bps", **which, after_s=1)
        assert mean(rates) == pytest.approx(1.2e7, rel=1e-3)
