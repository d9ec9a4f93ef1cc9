"""Flows follow their settings: CUBIC's constants, and a connection before data."""

from itertools import pairwise

import pytest
from measurements.scenarios import SEGMENT, droptail, dumbbell, single_link

#: The engines that have these keys.
WITH_KEYS = pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)
DELAY_S, START_S = 0.1, 2.0


def run_connected(bench, control="", **changes):
    """Run a flow with four segments per round trip over a long path, in fine samples."""
    window = {"initial_window_segments": 4, "maximum_window_bytes": 4 * SEGMENT}
    flow = bench.tcp("t", control, start_s=START_S, initial_rto_s=1, **window, **changes)
    run = {"duration_s": 3, "sampling_interval_s": 0.01}
    return bench.run(single_link([flow], rate_bps=1e9, delay_s=DELAY_S, **run))


@WITH_KEYS
@pytest.mark.parametrize(
    ("connect_s", "ways"),
    # A handshake that is over; one that is half over at the start; none before the start.
    [(0.5, 1), (START_S - DELAY_S, 2), (START_S, 3), (None, 3)],
)
def test_data_are_sent_after_start_s_and_the_handshake(bench, connect_s, ways):
    result = run_connected(bench, connect_s=connect_s)
    rows = [row for row in result.series if row["flow"] == "t"]
    first_arrival_s = min(float(row["time_s"]) for row in rows if float(row["throughput_bps"]))
    expected = START_S + ways * DELAY_S
    # A sample, and a millisecond for a segment and for what a process takes to read the clock.
    assert expected < first_arrival_s <= expected + 0.011
    assert min(float(row["time_s"]) for row in rows if row["cwnd_bytes"]) >= START_S
    # Four segments a round trip, from the first on.
    rounds = (3 - START_S - ways * DELAY_S) / (2 * DELAY_S)
    assert result.number("t", "packets_received") == 4 * (int(rounds - 0.01) + 1)


def test_connect_s_changes_nothing_on_ns2(ns2):
    early, left = run_connected(ns2, "linuxreno", connect_s=0.5), run_connected(ns2, "linuxreno")
    assert (early.flows, early.series) == (left.flows, left.series)


def run_cubic(bench, queue, rate_bps=2e6, duration_s=40, **changes):
    """Run one flow with SACK through a bottleneck."""
    flow = bench.tcp("t", "cubic", sack=True, **changes)
    scenario = dumbbell([flow], rate_bps=rate_bps, queue=queue, duration_s=duration_s)
    return bench.run(scenario | {"sampling_interval_s": 0.01})


@WITH_KEYS
@pytest.mark.parametrize("beta", [0.5, 0.9])
def test_a_loss_multiplies_the_window_by_beta(bench, beta):
    result = run_cubic(bench, droptail(30), cubic_beta=beta, cubic_hystart=False)
    rows = [row for row in result.series if row["flow"] == "t" and row["ssthresh_bytes"]]
    # Each new slow start threshold over the window at the sample before.
    ratios = [
        float(after["ssthresh_bytes"]) / float(before["cwnd_bytes"])
        for before, after in pairwise(rows)
        if float(after["ssthresh_bytes"]) < float(before["cwnd_bytes"])
        and after["ssthresh_bytes"] != before["ssthresh_bytes"]
    ]
    assert len(ratios) >= 2
    # Of about 40 segments: one for rounding, and one for a late sample.
    assert ratios == pytest.approx([beta] * len(ratios), abs=2 / 40)


@WITH_KEYS
@pytest.mark.parametrize("hystart", [True, False])
def test_hystart_ends_slow_start_before_a_loss(bench, hystart):
    changes = {"cubic_hystart": hystart, "initial_window_segments": 10}
    result = run_cubic(bench, droptail(1000), 1e7, 10, **changes)
    ended = [float(row["time_s"]) for row in result.series if row["ssthresh_bytes"]]
    lost = [float(row["time_s"]) for row in result.series if row["link"] and int(row["drops"])]
    before = not lost or (ended and ended[0] < lost[0])
    assert bool(ended) and before if hystart else not ended or not before
