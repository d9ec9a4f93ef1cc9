"""Links: what token buckets let pass, what frames take, how long jitter delays packets."""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import Bench
from tests.engines.engine_results import Result
from tests.engines.engine_scenarios import (
    Json,
    cbr,
    codel,
    droptail,
    dumbbell,
    link,
    pfifo,
    single_link,
)

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


DELAY_S, JITTER_S, PACKETS = 0.02, 0.01, 2000
#: 1000 bytes and PPP's 2 at 1 Gbit/s, and what a clock may be off.
PASSING_S = 1.3e-5


def with_jitter(scenario: Json, jitter_s: float = JITTER_S) -> Json:
    """Return a scenario whose first link has jitter."""
    scenario["links"][0]["jitter_s"] = jitter_s
    return scenario


def sparse(bench: Bench, seed: int = 1) -> Result:
    """Run packets so far apart that none waits for another."""
    flow = cbr("c", 8e3 * 50)  # 50 packets a second
    wire = single_link(
        [flow],
        rate_bps=1e9,
        delay_s=DELAY_S,
        duration_s=PACKETS / 50,
        sampling_interval_s=0.02,
        seed=seed,
    )
    return bench.run(with_jitter(wire))


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
def test_delays_are_uniform_up_to_the_jitter(bench: Bench) -> None:
    delays = sparse(bench).samples("delay_s", flow="c")  # a packet a sample
    assert len(delays) >= PACKETS - 2
    assert min(delays) >= DELAY_S and max(delays) <= DELAY_S + JITTER_S + PASSING_S
    # Of each quarter of the range there is a quarter, within four standard deviations of a count.
    for quarter in range(4):
        low = DELAY_S + quarter * JITTER_S / 4
        count = sum(low <= delay < low + JITTER_S / 4 for delay in delays)
        assert count == pytest.approx(PACKETS / 4, abs=4 * (PACKETS * 3 / 16) ** 0.5)


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
def test_the_seed_draws_the_jitter(bench: Bench) -> None:
    first, again, other = sparse(bench), sparse(bench), sparse(bench, seed=2)
    assert first.series == again.series
    assert first.series != other.series


@pytest.mark.parametrize("bench", SHAPED, indirect=True)
def test_no_packet_overtakes_another(bench: Bench) -> None:
    # Jitter of many packets: were their order not kept, duplicates would be taken for losses.
    flow = bench.tcp("t", sack=True, maximum_window_bytes=50_000)
    result = bench.run(with_jitter(dumbbell([flow], rate_bps=1e7, duration_s=10)))
    assert result.number("t", "retransmissions") == 0
    assert result.number("t", "packets_received") > 1000
