"""Simulate: batches in, tidy tables out; only complete and intact runs count."""

import json
import shutil
from contextlib import nullcontext

import pytest
from replication.base.errors import InputError, RunError
from replication.base.table import SERIES_NUMBERS, write_table
from replication.design.design import write_scenarios
from replication.engines.catalogue import NS3
from replication.simulate.run import designed_batch, run_job
from replication.simulate.store import TABLES, Store
from replication.study.scenario import Scenario

from tests.unit.conftest import minimal_scenario
from tests.unit.stand_in import make_job

SCENARIO = Scenario.model_validate(minimal_scenario())


def test_each_scenario_runs_once_and_never_again(tmp_path):
    job = make_job(tmp_path)
    first = run_job(job, lambda: None)
    assert [run["reused"] for run in first.values()] == [False] * 3
    second = run_job(job, lambda: None)
    assert [run["reused"] for run in second.values()] == [True] * 3
    assert (tmp_path / "counter").read_text() == "run\n" * 3
    both = [*first.values(), *second.values()]
    assert {(usage["runtime"], usage["image"]) for usage in both} == {("native", None)}


@pytest.mark.parametrize(
    ("edits", "is_wrong"),
    [
        *((edits, False) for edits in ("2s/1$//", "3s/1$//", "s/1$//")),
        *((edits, True) for edits in ("2s/1$/inf/", "2s/1$//; 3s/1$/-inf/")),
    ],
)
def test_missing_numbers_are_accepted_and_infinite_ones_are_refused(tmp_path, edits, is_wrong):
    job = make_job(tmp_path, more=f'sed -i "{edits}" "$4/series.csv"')
    named = f"series.csv: {SERIES_NUMBERS[-1]}"
    with pytest.raises(RunError, match=named) if is_wrong else nullcontext():
        run_job(job, lambda: None)


def test_reading_a_batch_decodes_only_its_scenarios(tmp_path):
    """With 100,000 scenarios, decoding all would take longer than a batch's runs."""
    write_scenarios({SCENARIO.id: SCENARIO}, "x", tmp_path)
    path = tmp_path / "scenarios/x.json"
    assert json.loads(path.read_text()).keys() == {SCENARIO.id}
    document = path.read_text().splitlines()[1].partition(":")[2]
    path.write_text(path.read_text() + f'"{"d" * 16}":{document},')
    batches = {SCENARIO.id: "one", "d" * 16: "other", "e" * 16: "gone"}
    rows = [{"scenario": n, "engine": "ns2", "batch": b} for n, b in batches.items()]
    write_table(tmp_path / "x.csv", rows, ("scenario", "engine", "batch"))
    assert designed_batch(tmp_path / "x.csv", "one") == ("ns2", {SCENARIO.id: SCENARIO})
    for batch, wrong in (
        ("other", r"x\.json: .*dddd"),
        ("gone", r"x\.json: .*eeee"),
    ):
        with pytest.raises(InputError, match=wrong):
            designed_batch(tmp_path / "x.csv", batch)


# -- the store ---

ID = "0123456789abcdef"


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", "ns3")


def finish(store, text="1\n", name=ID, scenario=ID, engine="ns3"):
    work = store.begin(name, SCENARIO, NS3)
    for table in TABLES:
        (work / table).write_text(text)
    (work / "run.json").write_text(json.dumps({"scenario": scenario, "engine": engine}))
    store.finish(name, work, {"cpu_s": 0.5})


def test_two_jobs_that_finish_the_same_run_leave_one_result_and_no_other_file(store):
    first, second = store.begin(ID, SCENARIO, NS3), store.begin(ID, SCENARIO, NS3)
    for work in (first, second):
        for name in TABLES:
            (work / name).write_text("same\n")
        store.finish(ID, work, {"cpu_s": 0.1})
        shutil.rmtree(work)
    assert [p.name for p in store.folder.iterdir()] == [f"{ID}.zip"]


def test_an_altered_archive_never_gives_altered_results(store):
    """Whichever byte differs, a run is unchanged or missing, and can be made again."""
    finish(store)
    content, intact = store.entry(ID).read_bytes(), store.tables(ID)
    for at in range(len(content)):
        altered = bytearray(content)
        altered[at] ^= 0xFF
        store.entry(ID).write_bytes(altered)
        assert store.tables(ID) in (intact, None)
    store.entry(ID).write_bytes(content[:-1])
    assert store.usage(ID) is None
    finish(store, "new\n")
    assert store.tables(ID)["flows.csv"] == b"new\n"


@pytest.mark.parametrize("other", [{"scenario": "f" * 16}, {"engine": "ns2"}])
def test_an_archive_of_a_different_run_is_ignored(store, other, capsys):
    finish(store, **other)
    assert store.tables(ID) is None and store.usage(ID) is None
    assert f"{ID}.zip" in capsys.readouterr().err
