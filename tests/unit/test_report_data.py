"""The report as data: a dictionary of every column."""

import csv

import pandas as pd
import pyarrow.parquet as pq
import pytest
from replication.report.render import DICTIONARY

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
