"""Two results side by side: what moved, beyond what noise, and where results are found."""

import csv
import shutil
import subprocess

import pandas as pd
import pytest
from replication.compare.verdicts import BEYOND, WITHIN, compare_results
from replication.report.difference import PAGE, TABLE, results_at, write_differences
from replication.report.released import RELEASED
from replication.study.errors import InputError

from tests.unit.conftest import ROOT
from tests.unit.report_project import soup


@pytest.fixture
def results(tmp_path):
    """Two folders with the same cells and claims."""
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
        for name in ("cells.csv", "claims.csv"):
            shutil.copy(ROOT / RELEASED / name, folder)
    return folders


def change(path, where, **fields):
    """Change fields of the first row that fits to what functions make of it."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    index = next(index for index, row in rows.iterrows() if where(row))
    for name, new in fields.items():
        rows.loc[index, name] = new(rows.loc[index])
    rows.to_csv(path, index=False)
    return rows.loc[index]


def moved(results):
    return [item for item in compare_results(*results) if item.has_moved]


def test_the_same_results_have_not_moved(results, tmp_path):
    assert compare_results(*results) and not moved(results)
    counted = write_differences(compare_results(*results), ("a", "b"), tmp_path / "out")
    assert all("0 changed in value" in one for one in counted)
    assert "Nothing moved" in (tmp_path / "out" / PAGE).read_text()


@pytest.mark.parametrize(("share", "word"), [(0.1, WITHIN), (5, BEYOND)])
def test_a_change_is_held_against_both_intervals(results, share, word):
    low, mean, high = names = ("reproduced_low", "reproduced_mean", "reproduced_high")
    found = change(results[1] / "cells.csv", lambda row: row[low] and row[low] != row[mean])
    shift = share * (float(found[high]) - float(found[low]))
    moves = {name: lambda row, name=name: str(float(row[name]) + shift) for name in names}
    change(results[1] / "cells.csv", lambda row: row.equals(found), **moves)
    (item,) = moved(results)
    assert item.beyond_noise == word and item.change == pytest.approx(shift, rel=1e-6)
    assert not item.verdict_moved


def test_a_verdict_that_moved_is_on_the_page_and_in_the_table(results, tmp_path):
    reproduced = lambda row: row["verdict"] == "reproduced"  # noqa: E731
    was = change(results[1] / "claims.csv", reproduced, verdict=lambda row: "not reproduced")
    (item,) = moved(results)
    assert item.verdict_moved and item.beyond_noise == ""
    write_differences(compare_results(*results), ("old <b>", "new"), tmp_path / "out")
    page = soup(tmp_path / "out" / PAGE)
    (line,) = page.select("#moved tbody tr")
    assert was["claim"] in line.get_text() and "not reproduced" in line.get_text()
    assert "old <b>" in page.get_text() and not page.find("b")
    (row,) = csv.DictReader((tmp_path / "out" / TABLE).open())
    assert (row["verdict_before"], row["verdict_after"]) == ("reproduced", "not reproduced")


def test_results_are_found_in_folders_and_releases(results, tmp_path):
    clone = tmp_path / "clone"
    shutil.copytree(results[0], clone / RELEASED)
    git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    for root, name in ((ROOT, results[0]), (ROOT, clone), (ROOT, clone / RELEASED), (clone, "v1")):
        with results_at(root, str(name)) as folder:
            assert not [item for item in compare_results(results[0], folder) if item.has_moved]


@pytest.mark.parametrize("name", ["/nowhere", "no-such-tag", "--upload-pack=x", "a b"])
def test_what_has_no_results_is_named(name):
    with pytest.raises(InputError, match=r"no folder with cells\.csv"), results_at(ROOT, name):
        pass
