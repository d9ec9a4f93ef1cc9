"""Simulate: batches in, tidy tables out, and plain words about what is wrong."""

import json

import pyarrow as pa
import pytest
from replication.errors import InputError, RunError
from replication.gather import collect, gather, write_parquet
from replication.process import Limits
from replication.runtime import Native
from replication.scenario import Scenario
from replication.simulate import (
    Job,
    read_batch,
    run_job,
)
from replication.store import Store
from replication.table import FLOW_NUMBERS

from tests.unit.test_models import minimal_scenario

#: Stands for a simulator: writes the tables of the contract, counts how often it ran.
PROGRAM = """#!/bin/sh
[ "$1" = --scenario ] && [ "$3" = --output ] || exit 2
echo run >> "{counter}"
echo "flow,kind,{columns}" > "$4/flows.csv"
echo "f,cbr{values}" >> "$4/flows.csv"
echo "time_s,flow,link,x" > "$4/series.csv"
echo "{{}}" > "$4/run.json"
{more}
"""


@pytest.fixture
def make_job(tmp_path):
    def make(more="", columns=FLOW_NUMBERS):
        program = tmp_path / "program"
        text = PROGRAM.format(
            counter=tmp_path / "counter",
            columns=",".join(columns),
            values=",1" * len(columns),
            more=more,
        )
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        scenarios = {}
        for seed in (1, 2, 3):
            scenario = Scenario.model_validate(minimal_scenario() | {"seed": seed})
            scenarios[scenario.id] = scenario
        store = Store(tmp_path / "store" / "ns3-x")
        return Job("ns3", Native(program), scenarios, store, Limits(2**30, 10.0))

    return make


def runs(tmp_path):
    counter = tmp_path / "counter"
    return len(counter.read_text().splitlines()) if counter.exists() else 0


def test_each_scenario_runs_once_and_never_again(make_job, tmp_path):
    job = make_job()
    first = run_job(job, lambda: None)
    assert [usage["reused"] for usage in first] == [False] * 3
    second = run_job(job, lambda: None)
    assert [usage["reused"] for usage in second] == [True] * 3
    assert runs(tmp_path) == 3
    assert {(u["runtime"], u["image"]) for u in first + second} == {("native", None)}


def test_a_damaged_run_is_made_again(make_job, tmp_path):
    job = make_job()
    run_job(job, lambda: None)
    victim = sorted(job.scenarios)[1]
    (job.store.entry(victim) / "flows.csv").write_text("garbage")
    run_job(job, lambda: None)
    assert runs(tmp_path) == 4
    assert len(gather(job, "3.44", "flows.csv", FLOW_NUMBERS)) == 3


def test_a_failing_simulator_is_named_with_its_scenario_and_leaves_no_litter(make_job):
    job = make_job(more='echo "replicate-ns3: it broke" >&2; exit 3')
    with pytest.raises(RunError, match=f"scenario {min(job.scenarios)} on ns3: .*it broke"):
        run_job(job, lambda: None)
    assert list(job.store.folder.iterdir()) == []


def test_a_simulator_that_leaves_a_table_out_is_refused(make_job):
    job = make_job(more='rm "$4/series.csv"')
    with pytest.raises(RunError, match=r"series\.csv"):
        run_job(job, lambda: None)


def test_a_table_without_a_column_of_the_contract_is_refused(make_job):
    job = make_job(columns=FLOW_NUMBERS[1:])
    run_job(job, lambda: None)
    with pytest.raises(RunError, match=f"lacks {FLOW_NUMBERS[0]}"):
        gather(job, "3.44", "flows.csv", FLOW_NUMBERS)


def batch_file(tmp_path, **changes):
    scenario = Scenario.model_validate(minimal_scenario())
    document = {"engine": "ns3", "scenarios": {scenario.id: minimal_scenario()}} | changes
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_batch_is_read_back(tmp_path):
    engine, scenarios = read_batch(batch_file(tmp_path))
    assert engine == "ns3"
    assert [s.id for s in scenarios.values()] == list(scenarios)


@pytest.mark.parametrize(
    "changes", [{"scenarios": []}, {"scenarios": {"x": 1}}, {"scenarios": {"0" * 16: None}}]
)
def test_a_malformed_batch_is_an_input_error(tmp_path, changes):
    with pytest.raises(InputError, match=r"batch\.json"):
        read_batch(batch_file(tmp_path, **changes))


def test_a_scenario_under_anothers_id_is_refused(tmp_path):
    path = batch_file(tmp_path, scenarios={"0" * 16: minimal_scenario()})
    with pytest.raises(InputError, match="has content"):
        read_batch(path)


def test_how_runs_were_batched_leaves_no_trace(tmp_path):
    rows = [{"scenario": s, "flow": f, "x": i} for i, (s, f) in enumerate(["ba", "aa", "ab", "bb"])]
    contents = []
    for split in ([rows[:1], rows[1:]], [rows[2:], rows[:2]]):
        parts = []
        for i, part in enumerate(split):
            parts.append(tmp_path / f"{i}.parquet")
            write_parquet(pa.Table.from_pylist(part), parts[-1])
        collect(parts, tmp_path / "all.parquet", ["scenario", "flow"])
        contents.append((tmp_path / "all.parquet").read_bytes())
    assert contents[0] == contents[1]
