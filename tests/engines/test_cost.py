"""The cost model: its estimate of the work is what the simulator counts."""

from __future__ import annotations

import pytest
from replication.engines.model import link_crossings, nominal_crossings
from replication.study.scenario import Scenario

from tests.engines.engine_bench import Run
from tests.engines.engine_scenarios import Json, cbr, dumbbell, tcp

#: Slow start, losses and the last packets in flight are not in an estimate of means.
WITHIN = 0.15


def scenarios() -> dict[str, Json]:
    """Return what the estimate has to get right, each in a scenario of its own."""
    windowed = tcp("t", "newreno", maximum_window_bytes=4000)
    delayed = tcp("t", "newreno", delayed_ack_segments=2, maximum_window_bytes=20_000)
    short = cbr("c", 1.5e6, source="r0", destination="r1")
    full = tcp("t", "newreno", maximum_window_bytes=60_000)
    return {
        "a flow that its window bounds": dumbbell([windowed], delay_s=0.05),
        "a flow that fills the link": dumbbell([full]),
        "an acknowledgement for two segments": dumbbell([delayed]),
        "CBR, of which the link carries a half": dumbbell([cbr("c", 4e6)]),
        "TCP beside CBR that crosses one link": dumbbell([full, short]),
        "two flows on one link": dumbbell(
            [full, full | {"id": "u", "source": "s1", "destination": "d1"}], pairs=2
        ),
    }


@pytest.mark.parametrize("name", scenarios())
def test_estimated_crossings_are_those_that_the_simulator_counts(name: str, run_ns3: Run) -> None:
    scenario = scenarios()[name]
    counted = run_ns3(scenario).run["link_transmissions"]
    estimated = link_crossings(Scenario.model_validate(scenario))
    assert estimated == pytest.approx(counted, rel=WITHIN)


def test_the_frozen_estimate_counts_every_flow_over_three_links() -> None:
    flows = [
        tcp("t", "newreno", stop_s=10),
        cbr("c", 1.5e6, source="r0", destination="r1", stop_s=10),
    ]
    scenario = Scenario.model_validate(dumbbell(flows))
    packets = 1.5e6 * 10 / 8000 + 2 * 2e6 * 10 / (8 * 1040)
    assert nominal_crossings(scenario) == pytest.approx(3 * packets)
