"""Simulate: batches in, tidy tables out, and plain words about what is wrong."""

from functools import partial

import pytest
from replication.simulate.gather import gather, read_runs
from replication.simulate.run import designed_batch, run_job
from replication.study.errors import InputError, RunError
from replication.study.files import write_text
from replication.study.scenario import Scenario, canonical_json
from replication.study.storage.parquet import read_parquet
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


def test_runs_of_now_and_of_before_are_gathered_to_the_same_tables(make_job, tmp_path):
    job = make_job()
    first, second = run_job(job, lambda: None), run_job(job, lambda: None)
    written = []
    for number, runs in enumerate((first, second)):
        paths = (tmp_path / f"{number}.flows.parquet", tmp_path / f"{number}.series.parquet")
        tables = {name: run.tables for name, run in runs.items()}
        gather(job.store, tables, job.engine, "3.44", paths)
        written.append([read_parquet(path) for path in paths])
    for now, before in zip(*written, strict=True):
        assert len(now) > 0 and now.equals(before)


def test_a_damaged_run_is_made_again(make_job, tmp_path):
    job = make_job()
    run_job(job, lambda: None)
    victim = sorted(job.scenarios)[1]
    (job.store.entry(victim) / "flows.csv").write_text("garbage")
    mended = run_job(job, lambda: None)
    assert runs(tmp_path) == 4
    assert len(read_runs(job.store, mended, "ns3", "3.44", "flows.csv", FLOW_NUMBERS)) == 3


def test_a_table_without_a_column_of_the_contract_is_refused(make_job):
    job = make_job(columns=FLOW_NUMBERS[1:])
    with pytest.raises(RunError, match=f"lacks {FLOW_NUMBERS[0]}"):
        run_job(job, lambda: None)
    assert list(job.store.folder.iterdir()) == []


def design(tmp_path, **documents):
    scenario = Scenario.model_validate(minimal_scenario())
    scenarios = {scenario.id: minimal_scenario()} | documents
    folder = tmp_path / "design"
    write_text(folder / "scenarios" / "x.json", canonical_json(scenarios))
    rows = [{"scenario": scenario.id, "engine": "ns2", "batch": "one"}]
    rows.append({"scenario": "f" * 16, "engine": "ns3", "batch": "two"})
    rows.append({"scenario": "e" * 16, "engine": "ns3", "batch": "none"})
    write_table(folder / "x.csv", rows, ("scenario", "engine", "batch"))
    return folder / "x.csv", scenario


def test_a_batch_of_a_design_is_its_own_scenarios(tmp_path):
    path, scenario = design(tmp_path)
    assert designed_batch(path, "one") == ("ns2", {scenario.id: scenario})
    with pytest.raises(InputError, match=r"x\.json: has no scenario ffff.*run again"):
        designed_batch(path, "two")
    with pytest.raises(InputError, match=r"x\.csv: has no batch three"):
        designed_batch(path, "three")


def test_scenarios_of_other_batches_stay_text(tmp_path):
    """With 100,000 of them, decoding all would take a batch longer than its runs."""
    path, scenario = design(tmp_path)
    text = (path.parent / "scenarios" / "x.json").read_text()
    write_text(path.parent / "scenarios" / "x.json", text[:-1] + ',"%s":{"' % ("f" * 16))
    assert designed_batch(path, "one") == ("ns2", {scenario.id: scenario})
    with pytest.raises(InputError, match=r"x\.json: is not JSON .*run again"):
        designed_batch(path, "two")


def test_a_scenario_under_anothers_id_is_refused(tmp_path):
    path, _ = design(tmp_path, **{"f" * 16: minimal_scenario()})
    with pytest.raises(InputError, match="has content"):
        designed_batch(path, "two")
