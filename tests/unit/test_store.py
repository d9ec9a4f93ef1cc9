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
    reader = Store(store.folder)
    for name in NAMES:
        finish(store, name, name)
    assert reader.tables(NAMES[0]) is not None
    store.pack(NAMES)
    # Another process finds what is packed meanwhile.
    assert all(reader.tables(name) for name in NAMES)
    return store


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


def test_a_damaged_packs_runs_are_made_and_packed_anew(packed):
    (archive,) = (packed.folder / "packs").glob("*.zip")
    archive.write_bytes(archive.read_bytes()[:100])
    store = Store(packed.folder)
    assert [store.usage(name) for name in NAMES] == [None] * len(NAMES)
    for name in NAMES:
        finish(store, name, name)
    store.pack(NAMES)
    assert all(store.usage(name) for name in NAMES)
    assert [path.name for path in store.folder.iterdir()] == ["packs"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((table, "2\n") for table in TABLES),
        *(("usage.json", text) for text in ("", "[1]", '{"sha256": 3}')),
    ],
)
def test_a_file_changed_afterwards_makes_the_run_count_for_nothing(store, name, text):
    finish(store)
    (store.entry(ID) / name).write_text(text)
    assert store.usage(ID) is None
    finish(store, "new\n")
    assert store.tables(ID)["flows.csv"] == b"new\n"
