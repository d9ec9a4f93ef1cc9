"""The report as data: a dictionary of every column, and a description for machines."""

import csv
import json

import pandas as pd
import pyarrow.parquet as pq
import pytest
from replication.report.assemble import DICTIONARY
from replication.report.crate import FILE

from tests.unit.report_project import example


def words():
    with DICTIONARY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def described(name):
    """Return the columns that the dictionary has for a file."""
    _, _, rest = name.partition(".")
    key = name if name in {row["file"] for row in words()} else f"<study>.{rest}"
    return [row["column"] for row in words() if row["file"] == key]


@pytest.fixture
def report(project):
    project.add(example(project.world), engines=("ns3", "ns2"))
    return project.render("synthetic")


def test_every_column_of_every_download_is_explained(report):
    tables = [p for p in (report / "data").glob("*.csv") if p.name != "dictionary.csv"]
    assert len(tables) >= 6
    for path in tables:
        columns = pd.read_csv(path, nrows=0).columns.tolist()
        assert described(path.name) == columns, path.name
    for path in (report / "data").glob("*.parquet"):
        assert set(described(path.name)) == set(pq.read_schema(path).names), path.name
    assert all(row["meaning"] for row in words())


def test_the_crate_lists_every_page_and_table_and_the_run(report, project):
    document = json.loads((report / FILE).read_text())
    entities = {entity["@id"]: entity for entity in document["@graph"]}
    root = entities["./"]
    files = {part["@id"] for part in root["hasPart"]}
    there = [*report.glob("*.html"), *report.glob("data/*.*")]
    assert files == {path.relative_to(report).as_posix() for path in there}
    for name in files:
        assert int(entities[name]["contentSize"]) == (report / name).stat().st_size
    assert root["datePublished"].startswith(project.provenance["written"][:10])
    run = entities["#run"]
    assert [tool["@id"] for tool in run["instrument"]] == ["#ns3"]
    assert entities["#ns3"]["version"] == project.provenance["engines"]["ns3"]["version"]
    assert {"@id": "data/cells.csv"} in run["result"]
    from rocrate.rocrate import ROCrate

    assert ROCrate(report).mainEntity.id == "index.html", "the library reads it again"


def test_the_crate_is_the_same_in_every_rendering(project):
    project.add(example(project.world))
    first = (project.render("synthetic") / FILE).read_bytes()
    assert (project.render("synthetic") / FILE).read_bytes() == first
