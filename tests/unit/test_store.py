"""The store: only complete and intact runs count."""

import pytest
from replication.engines.catalogue import NS3
from replication.run.store import TABLES, Store
from replication.study.scenario import Scenario

from tests.unit.test_models import minimal_scenario

ID = "0123456789abcdef"
SCENARIO = Scenario.model_validate(minimal_scenario())


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "ns3-x")


def finish(store, text="1\n"):
    work = store.begin(ID, SCENARIO, NS3)
    for name in TABLES:
        (work / name).write_text(text)
    store.finish(ID, work, {"cpu_s": 0.5})


def test_a_finished_run_is_found_with_its_usage(store):
    finish(store)
    assert store.finished() == {ID}
    assert store.usage(ID)["cpu_s"] == 0.5


def test_a_run_killed_before_its_end_does_not_count(store):
    work = store.begin(ID, SCENARIO, NS3)
    (work / "flows.csv").write_text("half")
    assert store.finished() == set()
    assert store.usage(ID) is None


@pytest.mark.parametrize("name", TABLES)
def test_a_table_changed_afterwards_makes_the_run_count_for_nothing(store, name):
    finish(store)
    (store.entry(ID) / name).write_text("2\n")
    assert store.usage(ID) is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", "not json", '{"sha256": 3}'])
def test_a_garbled_usage_file_makes_the_run_count_for_nothing(store, text):
    finish(store)
    (store.entry(ID) / "usage.json").write_text(text)
    assert store.usage(ID) is None


def test_a_broken_entry_is_replaced(store):
    finish(store)
    (store.entry(ID) / "flows.csv").unlink()
    finish(store, "new\n")
    assert (store.entry(ID) / "flows.csv").read_text() == "new\n"
    assert store.usage(ID) is not None


def test_two_who_finish_the_same_run_leave_one_result_and_no_litter(store):
    first, second = store.begin(ID, SCENARIO, NS3), store.begin(ID, SCENARIO, NS3)
    for work in (first, second):
        for name in TABLES:
            (work / name).write_text("same\n")
        store.finish(ID, work, {"cpu_s": 0.1})
    assert [p.name for p in store.folder.iterdir()] == [ID]


def test_whoever_begins_a_run_again_leaves_a_finished_one_to_its_readers(store):
    store.begin(ID, SCENARIO, NS3)
    late = store.begin(ID, SCENARIO, NS3)
    finish(store)
    before = (store.entry(ID) / "flows.csv").stat().st_ino
    for name in TABLES:
        (late / name).write_text("1\n")
    store.finish(ID, late, {"cpu_s": 0.1})
    assert (store.entry(ID) / "flows.csv").stat().st_ino == before
    store.begin(ID, SCENARIO, NS3)
    assert store.usage(ID) is not None
