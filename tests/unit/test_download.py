"""Downloads: no text of a study is a formula to a spreadsheet, and numbers stay numbers."""

import csv

import pytest
from replication.report.pages.figure import copy_download

from tests.unit.report_project import example

FORMULAS = ('=HYPERLINK("http://x","y")', "+1+1", "-cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_a_text(text, tmp_path):
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["a", "b"], [text, "-0.5"]])
    copy_download(tmp_path / "in.csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], [f"'{text}", "-0.5"]]


def test_the_reports_tables_hold_no_formula_and_the_data_folders_the_text(project):
    study = example(project.world)
    quote = FORMULAS[0]
    claims = [study.claims[0].model_copy(update={"quote": quote}), *study.claims[1:]]
    project.add(study.model_copy(update={"claims": claims}))
    report = project.render("synthetic")
    assert project.rows("claims.csv")[0]["quote"] == quote
    shown = report / "data" / "claims.csv"
    with shown.open(encoding="utf-8", newline="") as file:
        assert next(csv.DictReader(file))["quote"] == f"'{quote}"
    for path in (report / "data").rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            assert not [f for row in csv.reader(file) for f in row if f.startswith("=")], path
