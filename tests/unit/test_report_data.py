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
    key = name.replace("synthetic", "<study>")
    return [row["column"] for row in words() if row["file"] == key]


@pytest.fixture
def report(project):
    project.add(example(project.world), engines=("ns3", "ns2"))
    return project.render("synthetic")


def test_every_column_of_every_download_is_explained(report):
    data = report / "data"
    tables = list(data.glob("*.csv"))
    assert len(tables) >= 6
    for path in tables:
        columns = pd.read_csv(path, nrows=0).columns.tolist()
        assert described(path.name) == columns, path.name
    for path in data.rglob("*.parquet"):
        name = path.relative_to(data).as_posix()
        assert set(described(name)) == set(pq.read_schema(path).names), name
    assert all(row["meaning"] for row in words())
