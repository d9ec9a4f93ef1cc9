"""Connections that are made before there are data."""

from __future__ import annotations

import pytest

from tests.engines.engine_bench import Bench
from tests.engines.engine_results import Result
from tests.engines.engine_scenarios import single_link

SEGMENT = 1000
DELAY_S, RATE_BPS, START_S = 0.1, 1e9, 2.0
#: A segment and its headers, and what a process takes to read the clock.
SENT_S = 1e-3


def run(bench: Bench, control: str = "", **changes: object) -> Result:
    """Run a flow with four segments a round trip and a long way, in fine samples."""
    flow = bench.tcp(
        *("t", control),
        **{"start_s": START_S, "initial_window_segments": 4, "maximum_window_bytes": 4 * SEGMENT},
        **{"initial_rto_s": 1, **changes},
    )
    return bench.run(
        single_link(
            [flow], rate_bps=RATE_BPS, delay_s=DELAY_S, duration_s=3, sampling_interval_s=0.01
        )
    )


def first_arrival_s(result: Result) -> float:
    """Return the end of the sample in which the first data came."""
    rows = [row for row in result.series if row["flow"] == "t"]
    return min(float(row["time_s"]) for row in rows if float(row["throughput_bps"]) > 0)


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
@pytest.mark.parametrize(
    ("connect_s", "ways"),
    # A handshake that is over; one that is half over at the start; none before the start.
    [(0.5, 1), (START_S - DELAY_S, 2), (START_S, 3), (None, 3)],
)
def test_data_come_when_they_are_there_and_the_handshake_is_over(
    bench: Bench, connect_s: float | None, ways: int
) -> None:
    result = run(bench, connect_s=connect_s)
    expected = START_S + ways * DELAY_S
    assert expected < first_arrival_s(result) <= expected + SENT_S + 0.01
    shown = [float(row["time_s"]) for row in result.series if row["cwnd_bytes"]]
    assert min(shown) >= START_S
    # Four segments a round trip, from the first on.
    rounds = (3 - START_S - ways * DELAY_S) / (2 * DELAY_S)
    assert result.number("t", "packets_received") == 4 * (int(rounds - 0.01) + 1)


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
def test_connected_at_its_start_is_as_before(bench: Bench) -> None:
    stated, left = run(bench, connect_s=START_S), run(bench)
    assert (stated.flows, stated.series) == (left.flows, left.series)


@pytest.mark.parametrize("bench", ["ns2"], indirect=True)
def test_ns2_has_no_handshake_to_make_earlier(bench: Bench) -> None:
    early, left = run(bench, "linuxreno", connect_s=0.5), run(bench, "linuxreno")
    assert (early.flows, early.series) == (left.flows, left.series)
