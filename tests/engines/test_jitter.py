"""Jitter: how long packets travel, and that none overtakes another."""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import Bench
from tests.engines.engine_results import Result
from tests.engines.engine_scenarios import Json, cbr, dumbbell, single_link

ENGINES = ["ns3", "linux"]
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


@pytest.mark.parametrize("bench", ENGINES, indirect=True)
def test_delays_are_uniform_up_to_the_jitter(bench: Bench) -> None:
    delays = sparse(bench).samples("delay_s", flow="c")  # a packet a sample
    assert len(delays) >= PACKETS - 2
    assert min(delays) >= DELAY_S and max(delays) <= DELAY_S + JITTER_S + PASSING_S
    # Of each quarter of the range there is a quarter, within four standard deviations of a count.
    for quarter in range(4):
        low = DELAY_S + quarter * JITTER_S / 4
        count = sum(low <= delay < low + JITTER_S / 4 for delay in delays)
        assert count == pytest.approx(PACKETS / 4, abs=4 * (PACKETS * 3 / 16) ** 0.5)


@pytest.mark.parametrize("bench", ENGINES, indirect=True)
def test_the_seed_draws_the_jitter(bench: Bench) -> None:
    first, again, other = sparse(bench), sparse(bench), sparse(bench, seed=2)
    assert first.series == again.series
    assert first.series != other.series


@pytest.mark.parametrize("bench", ENGINES, indirect=True)
def test_no_packet_overtakes_another(bench: Bench) -> None:
    # Jitter of many packets: were their order not kept, duplicates would be taken for losses.
    flow = bench.tcp("t", sack=True, maximum_window_bytes=50_000)
    result = bench.run(with_jitter(dumbbell([flow], rate_bps=1e7, duration_s=10)))
    assert result.number("t", "retransmissions") == 0
    assert result.number("t", "packets_received") > 1000
