"""Simulate: batches in, tidy tables out, and plain words about what is wrong."""

import json
from functools import partial

import pytest
from replication.design.design import write_scenarios
from replication.simulate.run import designed_batch, run_job
from replication.study.errors import InputError, RunError
from replication.study.scenario import Scenario
from replication.study.storage.table import FLOW_NUMBERS, write_table

from tests.unit import stand_in
from tests.unit.test_scenario import minimal_scenario


@pytest.fixture
def make_job(tmp_path):
    """Return a function that makes a job of three scenarios for a stand-in."""
    return partial(stand_in.make_job, tmp_path)


def runs(tmp_path):
    counter = tmp_path / "counter"
    return len(counter.read_text().splitlines()) if counter.exists() else 0


def test_each_scenario_runs_once_and_never_again(make_job, tmp_path):
    job = make_job()
    first = run_job(job, lambda: None)
    assert [run.usage["reused"] for run in first.values()] == [False] * 3
    second = run_job(job, lambda: None)
    assert [run.usage["reused"] for run in second.values()] == [True] * 3
    assert runs(tmp_path) == 3
    both = [run.usage for run in (*first.values(), *second.values())]
    assert {(usage["runtime"], usage["image"]) for usage in both} == {("native", None)}


def test_a_table_without_a_column_of_the_contract_is_refused(make_job):
    job = make_job(columns=FLOW_NUMBERS[1:])
    with pytest.raises(RunError, match=f"lacks {FLOW_NUMBERS[0]}"):
        run_job(job, lambda: None)
    assert list(job.store.folder.iterdir()) == []


def test_a_batch_of_a_design_is_its_own_scenarios_and_the_others_stay_text(tmp_path):
    """With 100,000 of them, decoding all would take a batch longer than its runs."""
    scenario = Scenario.model_validate(minimal_scenario())
    write_scenarios({scenario.id: scenario}, "x", tmp_path)
    path = tmp_path / "scenarios/x.json"
    assert json.loads(path.read_text()).keys() == {scenario.id}
    own = path.read_text().splitlines()[1].partition(":")[2]
    lines = [f'"{digit * 16}":{text},' for digit, text in (("d", own), ("f", "{"))]
    path.write_text(path.read_text() + "\n".join(lines))
    batches = {scenario.id: "one", "d" * 16: "other", "e" * 16: "gone", "f" * 16: "cut"}
    rows = [{"scenario": n, "engine": "ns2", "batch": b} for n, b in batches.items()]
    write_table(tmp_path / "x.csv", rows, ("scenario", "engine", "batch"))
    assert designed_batch(tmp_path / "x.csv", "one") == ("ns2", {scenario.id: scenario})
    for batch, wrong in (
        ("other", r"x\.json: scenario dddd.* has the content of"),
        ("gone", r"x\.json: has no scenario eeee.*run again"),
        ("cut", r"x\.json: scenario ffff.*run again"),
        ("none", r"x\.csv: has no batch none"),
    ):
        with pytest.raises(InputError, match=wrong):
            designed_batch(tmp_path / "x.csv", batch)
