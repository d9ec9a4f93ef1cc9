"""Tables: as the paper prints them, every column explained, and no text a formula in a download."""

import csv

import pandas as pd
import pyarrow.parquet as pq
import pytest
from replication.report.pages.cell_table import shade
from replication.report.pages.figure import copy_download
from replication.report.pages.verdict import answer
from replication.report.render import DICTIONARY

from tests.unit.report_project import example


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("deviation", "name"),
    [(None, ""), (-0.05, "near"), (0.051, "high-1"), (-0.51, "low-3"), (3.0, "high-3")],
)
def test_a_shade_says_which_way_and_how_far(deviation, name):
    assert shade(deviation) == name


def test_the_table_has_the_papers_rows_and_columns(rendered):
    (table,) = rendered.page("synthetic").select("table.grid")
    assert [th.get_text() for th in table.select("tbody th")] == ["slow", "mid", "fast"]
    assert "throughput" in table.select("thead th")[1].get_text()
    for row in rendered.rows("cells.csv"):
        (cell,) = table.select(f'td[id="cell=1~{row["row"]}~throughput"]')
        shown = float(cell.select_one(".published").get_text())
        assert shown == pytest.approx(float(row["published"]) * 1e-6)
        assert row["verdict"] in cell.get_text() and cell.select("svg.icon")
        assert f"off-{shade(float(row['relative_deviation']))}" in cell["class"]


def test_an_answer_counts_what_can_be_told():
    known = {"study": "s", "table": "t", "row": "r", "compatible": None, "accepted_margin": None}
    printed = {"reproduced": 0.02, "not reproduced": 0.3, "not testable": -0.4}
    cells = [
        *(
            known | {"kind": "printed", "verdict": v, "relative_deviation": d}
            for v, d in printed.items()
        ),
        known | {"kind": "trace", "verdict": "not testable", "relative_deviation": None},
    ]
    words = ("reproduced", "not reproduced", "not reproduced", "direction only")
    assert answer(cells, [{"counted": True, "verdict": word} for word in words]) == [
        "1 of 2 printed numbers are reproduced; 1 more cannot be tested.",
        "Their median error is 30 %; 2 of our 3 values are too high.",
        "None of the 1 statistics of 1 published trace (1 flow) can be tested by what was run.",
        "Of 4 claims, 1 holds, 1 has the right direction only, 2 do not hold.",
    ]
    assert answer([], []) == []


def test_every_column_of_every_download_is_explained(on_two_engines):
    words, data = read(DICTIONARY), on_two_engines.out / "data"

    def described(name):
        key = name.replace("synthetic", "<study>")
        return [row["column"] for row in words if row["file"] == key]

    tables = list(data.glob("*.csv"))
    assert len(tables) >= 6 and all(row["meaning"] for row in words)
    for path in tables:
        assert described(path.name) == pd.read_csv(path, nrows=0).columns.tolist(), path.name
    for path in data.rglob("*.parquet"):
        name = path.relative_to(data).as_posix()
        assert set(described(name)) == set(pq.read_schema(path).names), name


def test_a_formula_becomes_a_text_and_a_number_stays(project, tmp_path):
    formulas = ['=HYPERLINK("http://x")', "+1+1", "-cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1"]
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *([text, "-0.5"] for text in formulas)])
    copy_download(tmp_path / "in.csv", tmp_path / "out.csv")
    assert read(tmp_path / "out.csv") == [{"a": f"'{text}", "b": "-0.5"} for text in formulas]
    # The report's tables are such copies; the data folder keeps the text.
    study = example(project.world)
    first = study.claims[0].model_copy(update={"quote": formulas[0]})
    project.add(study.model_copy(update={"claims": [first, *study.claims[1:]]}))
    downloads = project.render("synthetic") / "data"
    assert project.rows("claims.csv")[0]["quote"] == formulas[0]
    assert read(downloads / "claims.csv")[0]["quote"] == f"'{formulas[0]}"
