"""`replicate run`: a scenario by its file or its id, and its flows as a table."""

import json

import pytest
from replication.cli.main import find_scenario
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
