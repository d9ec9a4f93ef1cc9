"""Tables of a run are checked before it counts: a number may be missing, none may be infinite."""

import json

import pytest
from replication.simulate.gather import check_run
from replication.study.errors import RunError
from replication.study.scenario import Scenario
from replication.study.storage.table import FLOW_NUMBERS, SERIES_NUMBERS

from tests.engines.engine_scenarios import cbr, single_link


def run_of(folder, rate, rtts):
    """Write the tables of a run in `folder`: a rate in its flow's row, RTTs in two samples."""
    flow = cbr("c", 1e6)
    document = single_link([flow], duration_s=2) | {"sampling_interval_s": 1, "monitors": []}
    scenario = Scenario.model_validate(document)
    numbers = dict.fromkeys(FLOW_NUMBERS, "0") | {"throughput_bps": rate}
    header = ",".join(["flow", *numbers])
    (folder / "flows.csv").write_text(f"{header}\nc,{','.join(numbers.values())}\n")
    rows = [",".join(["time_s", "flow", *SERIES_NUMBERS])]
    for second, rtt in enumerate(rtts, 1):
        sample = dict.fromkeys(SERIES_NUMBERS, "0") | {"rtt_s": rtt}
        rows.append(",".join([str(second), "c", *sample.values()]))
    (folder / "series.csv").write_text("\n".join(rows) + "\n")
    (folder / "run.json").write_text(json.dumps({"scenario": scenario.id}))
    return scenario


@pytest.mark.parametrize("rtts", [("0.1", "0.2"), ("", "0.2"), ("0.1", ""), ("", "")])
def test_a_number_may_be_missing(tmp_path, rtts):
    scenario = run_of(tmp_path, "1e6", rtts)
    assert check_run(tmp_path, scenario)["series.csv"]["rtt_s"].null_count == rtts.count("")


@pytest.mark.parametrize(
    "rate, rtts", [("inf", ("", "")), ("0", ("inf", "0.2")), ("0", ("", "-inf"))]
)
def test_an_infinite_number_is_refused(tmp_path, rate, rtts):
    scenario = run_of(tmp_path, rate, rtts)
    with pytest.raises(RunError, match="is not finite everywhere"):
        check_run(tmp_path, scenario)
