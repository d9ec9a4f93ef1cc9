"""Token buckets and frames: what passes, when, and at whose rate."""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import Bench
from tests.engines.engine_scenarios import Json, cbr, codel, droptail, link, pfifo, single_link

#: The engines that have them.
SHAPED = ["ns3", "linux"]
RATE_BPS, LINE_BPS, PACKET = 1e6, 1e8, 1000


def wire(flows: list[Json], queue: Json | None = None, **changes: object) -> Json:
    """Return one link with these changes, without any propagation, for a tenth of a second."""
    scenario = single_link(flows, duration_s=0.1, sampling_interval_s=0.01)
    queue = queue or droptail()
    scenario["links"] = [link("wire", "s0", "d0", RATE_BPS, 0, queue_ab=queue) | changes]
    return scenario


def bucket(burst_bytes: int, line_rate_bps: float = LINE_BPS) -> Json:
    """Return a shaper."""
    return {"kind": "token_bucket", "burst_bytes": burst_bytes, "line_rate_bps": line_rate_bps}


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
@pytest.mark.parametrize("queue", [droptail(), pfifo(1000), codel(target_s=1)], ids=str)
@pytest.mark.parametrize(("burst_bytes", "passed"), [(1, 13), (8000, 21), (20000, 33)])
def test_a_bucket_lets_its_burst_and_its_rate_pass_and_one_packet_on_credit(
    bench: Bench, queue: Json, burst_bytes: int, passed: int
) -> None:
    # The k-th packet goes once the tokens that ever came pay for the k - 1 before it: in 0.1 s
    # come burst + 12500 bytes. (The packets come at 10 Mbit/s from 0 on: 125 of them.)
    result = bench.run(wire([cbr("c", 1e7)], queue, shaper_ab=bucket(burst_bytes)))
    assert result.number("c", "packets_received") == passed


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
def test_tokens_that_nobody_takes_are_no_more_than_the_burst(bench: Bench) -> None:
    late = cbr("late", 1e7, start_s=0.05)
    result = bench.run(wire([late], shaper_ab=bucket(1000)))
    # In the half that is left come 6250 bytes; those of the idle half are lost.
    assert result.number("late", "packets_received") == (1000 + 6250) // PACKET + 1


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
@pytest.mark.parametrize("frame_bytes", [14, 38])
def test_a_packet_passes_at_the_rate_of_the_line(bench: Bench, frame_bytes: int) -> None:
    # A packet each 20 ms finds 2500 bytes of tokens.
    changes = {"shaper_ab": bucket(3000, 1e7), "frame_bytes": frame_bytes}
    result = bench.run(wire([cbr("c", 4e5)], **changes))
    passing_s = 8 * (PACKET + frame_bytes) / 1e7
    assert result.number("c", "delay_mean_s") == pytest.approx(
        passing_s, abs=2 * bench.traits.tick_s
    )


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
@pytest.mark.parametrize("frame_bytes", [14, 38])
@pytest.mark.parametrize("shaped", [False, True])
def test_frames_take_their_part_of_the_rate(bench: Bench, frame_bytes: int, shaped: bool) -> None:
    changes: Json = {"frame_bytes": frame_bytes, "shaper_ab": bucket(1600) if shaped else None}
    scenario = wire([cbr("c", 2e6)], **changes) | {"duration_s": 20, "sampling_interval_s": 1}
    result = bench.run(scenario)
    # Beside that, the burst and a packet: 3 of some 2400.
    share = PACKET / (PACKET + frame_bytes)
    assert result.number("c", "throughput_bps") == pytest.approx(RATE_BPS * share, rel=2e-3)
    assert result.number("c", "packets_received") == pytest.approx(
        RATE_BPS * 20 / 8 / (PACKET + frame_bytes), abs=4
    )


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
def test_frames_add_to_the_delay(bench: Bench) -> None:
    result = bench.run(wire([cbr("c", 1e5)], frame_bytes=38))
    assert result.number("c", "delay_mean_s") == pytest.approx(
        8 * (PACKET + 38) / RATE_BPS, abs=2 * bench.traits.tick_s
    )


@pytest.mark.parametrize("bench", ["linux"], indirect=True)
@pytest.mark.parametrize(("frame_bytes", "waiting"), [(0, 101), (14, 100)])
def test_a_limit_in_bytes_counts_frames(bench: Bench, frame_bytes: int, waiting: int) -> None:
    queue = {"kind": "droptail", "limit_bytes": 101_400}
    scenario = wire([cbr("c", 1e7)], queue, frame_bytes=frame_bytes)
    result = bench.run(scenario | {"duration_s": 1})
    assert max(result.samples("queue_packets", link="wire:ab")) == waiting


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
def test_both_directions_have_their_own(bench: Bench) -> None:
    flows = [cbr("c", 1e7), cbr("back", 1e7, source="d0", destination="s0")]
    result = bench.run(wire(flows, shaper_ba=bucket(20000)))
    assert result.number("back", "packets_received") == 33
    assert result.number("c", "packets_received") == 12
