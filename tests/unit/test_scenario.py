"""The model of scenarios: one id whichever way it is written, and every bad field by name."""

import json

import pytest
from pydantic import ValidationError
from replication.study.errors import describe
from replication.study.scenario import Scenario

from tests.engines.engine_scenarios import cbr, droptail, link


def minimal_scenario():
    wire = link("ab", "a", "b", 1e6, 0.01, queue_ab=droptail(50), queue_ba=droptail(50))
    ends = {"source": "a", "destination": "b", "start_s": 0.0, "stop_s": 1.0}
    return {
        **{"duration_s": 1.0, "sampling_interval_s": 0.1, "seed": 1},
        **{"nodes": ["a", "b"], "links": [wire]},
        "flows": [cbr("f", 1e5, **ends, packet_bytes=500)],
    }


def test_a_scenario_survives_its_json_with_the_same_id():
    scenario = Scenario.model_validate(minimal_scenario())
    assert Scenario.model_validate(json.loads(scenario.canonical_json())).id == scenario.id
    whole = minimal_scenario() | {"duration_s": 1}
    assert Scenario.model_validate(whole).id == scenario.id


@pytest.mark.parametrize("key", ["a\nb", "\x1b[31m", "x" * 1000])
def test_a_key_of_any_text_is_named_in_one_line(key):
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate(minimal_scenario() | {key: 1})
    line = describe(caught.value)
    assert line.isprintable() and len(line) < 200
    assert "Extra inputs" in line
