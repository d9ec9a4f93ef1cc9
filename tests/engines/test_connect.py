"""Connections that are made before there are data."""

import pytest

from tests.engines.engine_scenarios import SEGMENT, single_link

DELAY_S, START_S = 0.1, 2.0
#: A segment and its headers, and what a process takes to read the clock.
SENT_S = 1e-3


def run(bench, control="", **changes):
    """Run a flow with four segments a round trip and a long way, in fine samples."""
    window = {"initial_window_segments": 4, "maximum_window_bytes": 4 * SEGMENT}
    flow = bench.tcp("t", control, start_s=START_S, initial_rto_s=1, **window, **changes)
    run = {"duration_s": 3, "sampling_interval_s": 0.01}
    return bench.run(single_link([flow], rate_bps=1e9, delay_s=DELAY_S, **run))


@pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
@pytest.mark.parametrize(
    ("connect_s", "ways"),
    # A handshake that is over; one that is half over at the start; none before the start.
    [(0.5, 1), (START_S - DELAY_S, 2), (START_S, 3), (None, 3)],
)
def test_data_come_when_they_are_there_and_the_handshake_is_over(bench, connect_s, ways):
    result = run(bench, connect_s=connect_s)
    rows = [row for row in result.series if row["flow"] == "t"]
    first_arrival_s = min(float(row["time_s"]) for row in rows if float(row["throughput_bps"]))
    expected = START_S + ways * DELAY_S
    assert expected < first_arrival_s <= expected + SENT_S + 0.01
    assert min(float(row["time_s"]) for row in rows if row["cwnd_bytes"]) >= START_S
    # Four segments a round trip, from the first on.
    rounds = (3 - START_S - ways * DELAY_S) / (2 * DELAY_S)
    assert result.number("t", "packets_received") == 4 * (int(rounds - 0.01) + 1)


def test_ns2_has_no_handshake_to_make_earlier(ns2):
    early, left = run(ns2, "linuxreno", connect_s=0.5), run(ns2, "linuxreno")
    assert (early.flows, early.series) == (left.flows, left.series)
