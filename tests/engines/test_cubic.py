"""CUBIC's constants: what a flow states is what its window does."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.engines.engine_bench import Bench
from tests.engines.engine_results import Result
from tests.engines.engine_scenarios import Json, droptail, dumbbell

SEGMENT = 1000
#: The engines whose constants can be chosen.
CHOSEN = ["ns3", "linux"]


def run(bench: Bench, queue: Json, rate_bps: float = 2e6, **changes: object) -> Result:
    """Run one flow with SACK through a bottleneck."""
    flow = bench.tcp("t", "cubic", sack=True, **changes)
    return bench.run(
        dumbbell([flow], rate_bps=rate_bps, queue=queue, duration_s=40, sampling_interval_s=0.01)
    )


def reductions(result: Result) -> list[float]:
    """Return each new slow start threshold over the window at the sample before."""
    rows = [row for row in result.series if row["flow"] == "t" and row["ssthresh_bytes"]]
    return [
        float(after["ssthresh_bytes"]) / float(before["cwnd_bytes"])
        for before, after in pairwise(rows)
        if float(after["ssthresh_bytes"]) < float(before["cwnd_bytes"])
        and after["ssthresh_bytes"] != before["ssthresh_bytes"]
    ]


@pytest.mark.parametrize("bench", CHOSEN, indirect=True)
@pytest.mark.parametrize("beta", [0.5, 0.7, 0.9])
def test_a_loss_multiplies_the_window_by_beta(bench: Bench, beta: float) -> None:
    found = reductions(run(bench, droptail(30), cubic_beta=beta, cubic_hystart=False))
    assert len(found) >= 2
    # Of some 40 segments: one is what rounding may take, and another what a sample comes late.
    assert found == pytest.approx([beta] * len(found), abs=2 / 40)


@pytest.mark.parametrize("bench", CHOSEN, indirect=True)
@pytest.mark.parametrize("hystart", [True, False])
def test_hystart_ends_slow_start_before_a_loss(bench: Bench, hystart: bool) -> None:
    result = run(bench, droptail(1000), 1e7, cubic_hystart=hystart, initial_window_segments=10)
    ended = [row for row in result.series if row["ssthresh_bytes"]]
    lost = [row for row in result.series if row["link"] and int(row["drops"])]
    before = not lost or float(ended[0]["time_s"]) < float(lost[0]["time_s"])
    assert bool(ended) and before if hystart else not ended or not before


def test_what_an_engine_has_of_its_own_may_be_stated(bench: Bench) -> None:
    own = {"cubic_beta": 0.8, "cubic_hystart": False}
    if bench.name != "ns2":
        own = {"cubic_beta": 0.7, "cubic_hystart": True}
    stated, left = run(bench, droptail(30), **own), run(bench, droptail(30))
    assert stated.series == left.series
    assert stated.flows == left.flows
