"""The store: only complete and intact runs count."""

import pytest
from replication.engines.catalogue import NS3
from replication.simulate.store import TABLES, Store
from replication.study.scenario import Scenario

from tests.unit.test_scenario import minimal_scenario

ID = "0123456789abcdef"
SCENARIO = Scenario.model_validate(minimal_scenario())


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "ns3-x")


NAMES = [f"{number:016x}" for number in range(20)]


def finish(store, text="1\n", name=ID):
    work = store.begin(name, SCENARIO, NS3)
    for table in TABLES:
        (work / table).write_text(text)
    store.finish(name, work, {"cpu_s": 0.5})


@pytest.fixture
def packed(store):
    """A store whose runs are in one pack; the tables of each hold its name."""
    for name in NAMES:
        finish(store, name, name)
    store.pack(NAMES)
    return store


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


def test_packed_runs_are_no_folders_and_are_found_with_usage_and_tables(packed):
    assert [path.name for path in packed.folder.iterdir()] == ["packs"]
    for store in (packed, Store(packed.folder)):
        assert store.finished() == set(NAMES)
        for name in NAMES:
            assert store.usage(name)["cpu_s"] == 0.5
            assert store.tables(name) == dict.fromkeys(TABLES, name.encode())


def test_runs_that_another_packs_meanwhile_are_found(store):
    reader = Store(store.folder)
    for name in NAMES:
        finish(store, name, name)
    assert reader.tables(NAMES[0]) is not None
    store.pack(NAMES)
    assert all(reader.tables(name) for name in NAMES)


@pytest.mark.parametrize("at", range(0, 100, 4))
def test_an_altered_pack_gives_no_altered_run(packed, at):
    """Whatever byte differs, a run is as it was or is not there."""
    (archive,) = (packed.folder / "packs").glob("*.zip")
    content = bytearray(archive.read_bytes())
    content[len(content) * at // 100] ^= 0xFF
    archive.write_bytes(content)
    store = Store(packed.folder)
    found = {name: store.tables(name) for name in NAMES}
    intact = {name: tables for name, tables in found.items() if tables is not None}
    assert all(set(tables.values()) == {name.encode()} for name, tables in intact.items())


@pytest.mark.parametrize("damage", ["cut short", "gone", "emptied"])
def test_a_damaged_packs_runs_are_made_and_packed_anew(packed, damage):
    (archive,) = (packed.folder / "packs").glob("*.zip")
    if damage == "gone":
        archive.unlink()
    else:
        archive.write_bytes(archive.read_bytes()[: 100 if damage == "cut short" else 0])
    store = Store(packed.folder)
    assert [store.usage(name) for name in NAMES] == [None] * len(NAMES)
    for name in NAMES:
        finish(store, name, name)
    store.pack(NAMES)
    assert all(store.usage(name) for name in NAMES)
    assert [path.name for path in store.folder.iterdir()] == ["packs"]
