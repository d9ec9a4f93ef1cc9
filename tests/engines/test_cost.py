"""The cost model estimates the work that the simulator counts."""

import pytest
from measurements.scenarios import cbr, dumbbell, tcp
from replication.engines.model import crossings_by_link
from replication.study.scenario import Scenario

SHORT = cbr("c", 1.5e6, source="r0", destination="r1")
FULL = tcp("t", "newreno", maximum_window_bytes=60_000)
SCENARIOS = [
    # A flow that its window bounds, and one that fills the link.
    dumbbell([FULL | {"maximum_window_bytes": 4000}], delay_s=0.05),
    dumbbell([FULL]),
    dumbbell([FULL | {"delayed_ack_segments": 2, "maximum_window_bytes": 20_000}]),
    # CBR at twice the link's rate, and TCP with CBR that crosses one link.
    dumbbell([cbr("c", 4e6)]),
    dumbbell([FULL, SHORT]),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_estimated_link_crossings_match_those_counted_by_the_simulator(scenario, ns3):
    counted = ns3.run(scenario).run["link_transmissions"]
    # Slow start, losses and the last packets in flight are not in an estimate of means.
    estimated = sum(crossings_by_link(Scenario.model_validate(scenario)).values())
    assert estimated == pytest.approx(counted, rel=0.15)


def test_the_estimate_with_random_loss_is_high_by_less_than_a_factor_of_three(ns3):
    loss = {"kind": "random", "probability": 0.01}
    flow = FULL | {"maximum_window_bytes": 1_000_000}
    scenario = dumbbell([flow], rate_bps=2e7, delay_s=0.05, loss=loss, duration_s=60)
    counted = ns3.run(scenario).run["link_transmissions"]
    estimated = crossings_by_link(Scenario.model_validate(scenario))
    assert counted < sum(estimated.values()) < 3 * counted
