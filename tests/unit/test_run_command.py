"""`replicate run`: a scenario by its file or its id, and its flows as a table."""

import json

import pytest
from replication.cli.main import find_scenario, flow_table
from replication.study.errors import InputError
from replication.study.scenario import Scenario

from tests.unit.test_scenario import minimal_scenario


def test_a_file_is_a_scenario_however_it_is_indented(tmp_path):
    path = tmp_path / "mine.json"
    for indent in (None, 2, "\t"):
        path.write_text(json.dumps(minimal_scenario(), indent=indent))
        assert find_scenario(tmp_path, str(path)) == Scenario.model_validate(minimal_scenario())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line"),
        ("[1]", "valid dictionary"),
        ('{"seed": "x"}', "duration_s: Field required"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_scenario_is_an_input_error_with_the_files_name(tmp_path, text, said):
    path = tmp_path / "mine.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=rf"mine\.json: .*{said}"):
        find_scenario(tmp_path, str(path))


def test_flows_are_a_table_with_units():
    numbers = {"throughput_bps": 2.5e6, "goodput_bps": 2e6, "delay_mean_s": 0.05}
    numbers |= {"delay_p95_s": 0.1, "rtt_mean_s": None, "packets_sent": 1000.0}
    numbers |= {"packets_dropped": 0.0, "retransmissions": 3.0, "timeouts": 0.0}
    head, line = flow_table([{"flow": "f1", "kind": "tcp"} | numbers]).splitlines()
    assert head.split()[:4] == ["flow", "kind", "throughput", "Mbit/s"]
    assert line.split() == ["f1", "tcp", "2.5", "2", "50", "100", "1000", "0", "3", "0"]
    assert len(head) == len(line)
