"""CUBIC's constants: what a flow states is what its window does."""

from itertools import pairwise

import pytest

from tests.engines.engine_scenarios import droptail, dumbbell

#: The engines whose constants can be chosen.
CHOSEN = pytest.mark.parametrize("bench", ["ns3", "linux"], indirect=True)


def run(bench, queue, rate_bps=2e6, duration_s=40, **changes):
    """Run one flow with SACK through a bottleneck."""
    flow = bench.tcp("t", "cubic", sack=True, **changes)
    scenario = dumbbell([flow], rate_bps=rate_bps, queue=queue, duration_s=duration_s)
    return bench.run(scenario | {"sampling_interval_s": 0.01})


@CHOSEN
@pytest.mark.parametrize("beta", [0.5, 0.9])
def test_a_loss_multiplies_the_window_by_beta(bench, beta):
    result = run(bench, droptail(30), cubic_beta=beta, cubic_hystart=False)
    rows = [row for row in result.series if row["flow"] == "t" and row["ssthresh_bytes"]]
    # Each new slow start threshold over the window at the sample before.
    found = [
        float(after["ssthresh_bytes"]) / float(before["cwnd_bytes"])
        for before, after in pairwise(rows)
        if float(after["ssthresh_bytes"]) < float(before["cwnd_bytes"])
        and after["ssthresh_bytes"] != before["ssthresh_bytes"]
    ]
    assert len(found) >= 2
    # Of some 40 segments: one is what rounding may take, and another what a sample comes late.
    assert found == pytest.approx([beta] * len(found), abs=2 / 40)


@CHOSEN
@pytest.mark.parametrize("hystart", [True, False])
def test_hystart_ends_slow_start_before_a_loss(bench, hystart):
    changes = {"cubic_hystart": hystart, "initial_window_segments": 10}
    result = run(bench, droptail(1000), 1e7, 10, **changes)
    ended = [float(row["time_s"]) for row in result.series if row["ssthresh_bytes"]]
    lost = [float(row["time_s"]) for row in result.series if row["link"] and int(row["drops"])]
    before = not lost or (ended and ended[0] < lost[0])
    assert bool(ended) and before if hystart else not ended or not before
