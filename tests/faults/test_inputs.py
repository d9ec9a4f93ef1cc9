"""Invalid documents and broken simulators give a one-line error, and nothing is kept."""

import json
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from replication.base.errors import RunError, describe
from replication.cli.main import find_scenario
from replication.simulate.process import Limits
from replication.simulate.run import run_job
from replication.study.scenario import Scenario
from replication.study.study import Study

from tests.unit.conftest import minimal_scenario, study_document
from tests.unit.stand_in import make_job

#: Characters with a meaning in a shell, Tcl, HTML, a template or a file system.
STRINGS = ("[exec touch BAD]", "$(touch BAD)", "../../BAD", "<script>", "{{ 7*7 }}", "", "..", "\n")
STRINGS += ("\u202e", "\u0000", "NaN", "1e999", "a\u2028b", "x" * 10_000, "--output", "yes")
NUMBERS = (0, -1, 2**64, 10**400, 0.5, 1e-320, 1e308, float("nan"), float("inf"))
BAD = st.none() | st.booleans() | st.sampled_from(STRINGS + NUMBERS) | st.just([]) | st.just({})


@st.composite
def changed(draw, document):
    """Return a valid document with one value replaced or removed, or with a key more."""
    place = whole = deepcopy(document)
    while True:
        key = draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], dict | list) or draw(st.booleans()):
            break
        place = place[key]
    if draw(st.integers(0, 3)) == 0:
        del place[key]
    elif isinstance(place, dict) and draw(st.integers(0, 3)) == 0:
        place[draw(st.sampled_from(STRINGS))] = draw(BAD)
    else:
        place[key] = draw(BAD)
    return whole


@pytest.mark.parametrize(
    ("model", "document"), [(Scenario, minimal_scenario()), (Study, study_document())]
)
def test_a_damaged_document_is_refused_in_one_line_or_read_back_unchanged(model, document):
    @settings(deadline=None, max_examples=400, suppress_health_check=list(HealthCheck))
    @given(changed(document))
    def run(bad):
        try:
            accepted = model.model_validate(bad)
        except ValidationError as error:
            assert describe(error).isprintable(), "more than a line"
        else:
            again = model.model_validate(json.loads(accepted.model_dump_json()))
            assert again.model_dump_json() == accepted.model_dump_json()

    run()


#: Behaviour of a simulator, its stage, and the expected message.
FAULTS = {
    "error": ('echo "it broke" >&2; exit 3', "first", "it broke"),
    "no-table": ('rm "$4/series.csv"', "more", r"series\.csv"),
    "other-flow": ('sed -i s/^f,/g,/ "$4/flows.csv"', "more", "not the scenario's"),
    "half-a-table": ('sed -i 6q "$4/series.csv"', "more", "has 5 rows, not 10"),
    "not-a-number": ('sed -i "s/cbr,1/cbr,NaN/" "$4/flows.csv"', "more", "not finite"),
    "other-run": ('echo "{\\"scenario\\": \\"0\\"}" > "$4/run.json"', "more", "belongs to"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_simulator_is_an_error_and_leaves_no_result(fault, tmp_path):
    script, when, fact = FAULTS[fault]
    bad = make_job(tmp_path, **{when: script}, limits=Limits(2**30, 1.0))
    first = min(bad.scenarios)
    again = f"; repeat it: replicate run {first} --engine ns3$"
    with pytest.raises(RunError, match=f"scenario {first} on ns3: .*{fact}.*{again}"):
        run_job(bad, lambda: None)
    assert not bad.store.finished()
    # The scenario can be found, though no design has it.
    assert find_scenario(tmp_path, first) == bad.scenarios[first]
    # After the repair, the same store gives every result.
    runs = run_job(make_job(tmp_path), lambda: None).values()
    assert not any(run["reused"] for run in runs)
    assert {path.suffix for path in bad.store.folder.iterdir()} == {".zip"}
