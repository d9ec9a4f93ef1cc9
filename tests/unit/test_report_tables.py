"""Tables as the paper prints them and as downloads, and the notes on a claim."""

import re

import pandas as pd
import pyarrow.parquet as pq
import pytest
from replication.report.pages import study as study_view
from replication.report.pages.shown import shade
from replication.report.render import DICTIONARY
from replication.study.study import Study

from tests.unit.conftest import claim, missing_from, numbers_in
from tests.unit.report_project import CELL, RATES, TABLE, VALUE, csv_rows, example, soup


@pytest.mark.parametrize(
    ("deviation", "name"),
    [(None, ""), (-0.05, "near"), (0.051, "high-1"), (-0.51, "low-3"), (3.0, "high-3")],
)
def test_the_shade_of_a_cell_shows_direction_and_size_of_its_deviation(deviation, name):
    assert shade(deviation) == name


def test_the_table_has_the_papers_rows_and_columns(rendered):
    (table,) = rendered.page("synthetic").select("table.grid")
    assert [th.get_text() for th in table.select("tbody th")] == ["slow", "mid", "fast"]
    assert "throughput" in table.select("thead th")[1].get_text()
    for row in rendered.rows("cells.csv"):
        (cell,) = table.select(f'td[id="cell=1~{row["row"]}~throughput"]')
        shown = float(cell.select_one(".published").get_text())
        assert shown == pytest.approx(float(row["published"]) * 1e-6)
        assert row["verdict"] in cell.get_text() and cell.select(".icon")
        assert f"off-{shade(float(row['relative_deviation']))}" in cell["class"]


@pytest.mark.parametrize(("most", "folded"), [(3, 0), (2, 1)])
def test_the_tables_of_a_study_with_many_numbers_are_folded(project, monkeypatch, most, folded):
    monkeypatch.setattr(study_view, "_MOST_NUMBERS", most)
    project.add(example(project.world))
    project.render("synthetic")
    page = project.page("synthetic")
    assert len(page.select("section.experiment details table.grid")) == folded
    assert len(page.select("section.experiment table.grid")) == 1


def test_a_table_shows_the_papers_own_number_and_its_factor(project):
    halved = TABLE | {"columns": {"throughput": CELL | {"factor": 0.5}}}
    project.add(project.world.study(tables=[halved]))
    page = soup(project.render("synthetic") / "synthetic~evidence.html")
    (row, *_) = page.select("tr[data-row=slow] td.num")
    assert (row.get_text(), row["data-value"]) == ("0.80 × 0.5", "400000")


def test_claims_with_the_same_quote_show_what_they_test(project):
    largest = {**VALUE, "of": RATES | {"metric": "retransmissions"}, "expect": {"at_least": 0}}
    claims = [claim(VALUE, "rate"), claim(largest, "losses"), claim(VALUE, "alone", quote="Alone")]
    project.add(project.world.study(claims=claims))
    page = soup(project.render("synthetic") / "synthetic.html")
    rate, losses, alone = (page.find(id=f"claim-{stated['id']}").get_text() for stated in claims)
    assert "throughput" in rate and "retransmissions" in losses
    assert "throughput" not in alone


def test_every_column_of_every_download_is_explained(on_two_engines):
    words, data = csv_rows(DICTIONARY), on_two_engines.out / "data"

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


# -- notes on a claim: the paper's own numbers, whether it counts, its changes --------------------

#: The paper prints Reno's throughputs as 0.80, 1.20 and 0.12 Mbit/s.
OWN = {
    "kind": "trend",
    "of": {**RATES, "where": {"variant": "reno"}},
    "over": "access",
    "expect": {"at_least": 0.5},
}
CHANGE = {
    "date": "2026-11-22",
    "was": "Ties <b>counted</b>.",
    "now": "They do not.",
    "why": "No size is named.",
}


def report_of(project, altered, **study):
    """Render the example with some of its claims changed, by their ids."""
    document = example(project.world).model_dump(mode="json", exclude_none=True)
    claims = [stated | altered.get(stated["id"], {}) for stated in document["claims"]]
    project.add(Study.model_validate(document | {"claims": claims} | study))
    return project.render("synthetic")


def test_a_test_that_the_papers_own_numbers_fail_is_marked(project):
    weaker = OWN | {"expect": {"at_least": -1}}
    out = report_of(project, {"value": {"test": OWN}, "wrong": {"test": weaker}})
    page = soup(out / "synthetic~evidence.html")
    assert page.select_one("#claim-value .words .flagged")
    assert "correlation" in page.select_one("#claim-value .self-consistency .reason").get_text()
    assert page.select_one("#claim-wrong .words .flagged") is None
    assert page.select_one("#claim-wrong .self-consistency")
    assert page.select_one("#claim-parts .self-consistency") is None
    lines = project.page("synthetic").select(".verdict-lines .flagged")
    assert [line.find_parent("li")["id"] for line in lines] == ["claim-value"]


def test_repetitions_and_unjudged_sentences_are_not_counted(project):
    document = example(project.world).model_dump(mode="json", exclude_none=True)
    claims = {stated["id"]: stated for stated in document["claims"]}
    claims["parts"]["repeats"] = "value"
    unjudged = claims.pop("wrong") | {"nature": "prediction"}
    del unjudged["test"]
    out = report_of(project, {}, claims=[*claims.values()], unjudged=[unjudged])
    page, index = soup(out / "synthetic~evidence.html"), soup(out / "index.html")
    # Two of four sentences count, and one of these cannot be tested.
    claims = index.select(".matches tr[data-study] td.num")[1].get_text()
    assert numbers_in(claims) == [1, 1, 1]
    assert unjudged["quote"] in page.select_one("li#claim-wrong q").get_text()
    assert "value" in page.select_one("#claim-parts .words").get_text()


def test_each_change_after_results_is_shown_once_and_counted(project):
    both = {"before": {"ns3": "not reproduced"}, "after": {"ns3": "reproduced"}}
    before = {"before": {"ns3": "reproduced"}}
    worse = before | {"after": {"ns3": "impossible"}}
    changes = [
        CHANGE | {"claims": {"value": both, "wrong": both}, "tables": {"1": {}}},
        CHANGE | {"why": "Other.", "claims": {"value": worse}, "parameters": {"access_s": before}},
    ]
    out = report_of(project, {}, changes=changes)
    page = soup(out / "changes.html")
    first, second = page.select(".change")
    for key in ("was", "now", "why"):
        assert first.get_text().count(CHANGE[key]) == 1
    assert not page.select(".change b"), "escaped"
    links = [a["href"] for a in first.select("li a")]
    assert links == [f"synthetic~evidence.html#claim-{name}" for name in ("value", "wrong")]
    assert "Table 1" in first.get_text() and "access s" in second.get_text()
    shown = second.select_one("[data-engine]").get_text()
    assert not missing_from(shown, "ns3", "reproduced", "impossible")
    assert re.search(r"reproduced\s→\snot judged", second.get_text())
    heads = [th.get_text() for th in page.select("thead th")][1:]
    numbers = [int(td.get_text()) for td in page.select("tbody td")]
    moved = dict(zip(heads, numbers, strict=True))
    assert moved == dict.fromkeys(heads, 0) | {"Changes": 2, "Up": 2, "No longer testable": 1}
    evidence = soup(out / "synthetic~evidence.html")
    assert evidence.select_one("#claim-value a[href='changes.html']")
    assert "2 changes" in soup(out / "index.html").get_text()
