"""Pages of points: every number leads to its runs, and they are those of the files."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from replication.report.pages.point import SHOWN_ROWS
from replication.report.pages.source import cell_id

from tests.unit.conftest import World
from tests.unit.report_project import Project, example, soup


def flows(engine, replicate, access, **_):
    base = {"slow": 4e5, "mid": 4.1e5, "fast": 4.2e5}[access] + 1000 * replicate
    return {"throughput_bps": base, "rtt_mean_s": float("nan")}


def series(flow, **_):
    own = {"cwnd_bytes": 9600.0, "rtt_s": 0.2, "throughput_bps": 4e5, "drops": 1.0}
    if ":" in flow:
        own = {"queue_packets": 3.0}
    return [{"time_s": float(t), **own} for t in range(1, 11)]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(World(tmp_path_factory.mktemp("world")), tmp_path_factory.mktemp("project"))
    refusal = lambda engine, levels: (  # noqa: E731
        "ns2 has no <b>vegas" if engine == "ns2" and levels["variant"] == "vegas" else ""
    )
    made.add(
        example(made.world), engines=("ns3", "ns2"), flows=flows, series=series, refusal=refusal
    )
    made.render("synthetic")
    return made


@pytest.fixture(scope="module")
def report(project):
    return project.out


def design(project):
    return pd.read_csv(project.data / "design" / "synthetic.csv", dtype=str)


def test_each_point_has_its_runs_seeds_and_commands(project, report):
    rows = design(project)
    scenarios = json.loads((project.data / "design" / "scenarios" / "synthetic.json").read_text())
    text = {path: path.read_text() for path in report.glob("runs/*.html")}
    assert len(text) == rows["point"].nunique()
    for row in rows.to_dict("records"):
        (path,) = [p for p, words in text.items() if row["scenario"] in words]
        page = soup(path).find("section", {"aria-labelledby": f"on-{row['engine']}"})
        if row["supported"] == "False":
            assert row["reason"] in page.get_text() and not page.find_all("table")
            continue
        (line,) = [tr for tr in page.find_all("tr") if row["scenario"] in tr.get_text()]
        first = page.select_one("code.command").get_text()
        assert re.fullmatch(rf"replicate run [0-9a-f]{{16}} --engine {row['engine']}", first)
        assert str(scenarios[row["scenario"]]["seed"]) in line.get_text()


def test_the_flows_are_those_of_the_file(project, report):
    table = pd.read_parquet(report / "data/results/synthetic/flows.parquet")
    shown, sections = [], 0
    for path in report.glob("runs/*.html"):
        for section in soup(path).select("section[aria-labelledby^=on-]"):
            rows = section.select("table[data-sortable] tbody tr")
            sections += bool(rows)
            for tr in rows:
                shown.append(float(tr.select("td")[2].get_text()))
    assert len(shown) == sections * SHOWN_ROWS and sections
    assert set(np.round(shown, 6)) <= set(np.round(table["throughput_bps"] * 1e-6, 6))


def test_a_number_leads_to_its_point_and_back_and_a_claim_to_its_points(project, report):
    page = soup(report / "synthetic.html")
    for row in page.select("tr[data-column]"):
        (link,) = row.select("td.runs a")
        name = cell_id("1", row["data-row"], row["data-column"])
        point = soup(report / link["href"])
        levels = point.select_one("dl.facts").get_text()
        assert row.th.get_text().split(",")[0] in levels, "the point has the row's level"
        assert f"../synthetic.html#{name}" in [a["href"] for a in point.select("a[href]")]
        (cell,) = page.find_all(id=name)
        assert cell["data-verdict"] == row["data-verdict"]
    card = page.find(id="claim-value")
    assert len(card.select(".rests li a")) == design(project)["point"].nunique()
    assert not page.find(id="claim-open").select(".rests")


def test_parameters_have_the_points_value_and_who_set_it(project, report):
    rows = design(project)
    first = rows[rows["levels"].str.contains("vegas")].iloc[0]
    (path,) = [p for p in report.glob("runs/*.html") if first["scenario"] in p.read_text()]
    table = {
        tr.th.get_text(): [td.get_text() for td in tr.find_all("td")]
        for tr in soup(path).select("section[aria-labelledby=parameters] tbody tr")
    }
    assert table["congestion_control"] == ["vegas", "varied, published"]
    assert table["segment_bytes"] == ["960 bytes", "assumed"]
    assert table["duration_s"][1:] == ["published"]


def test_a_run_over_time_keeps_its_samples(report):
    for path in report.glob("runs/*.html"):
        for figure in soup(path).select("figure.chart"):
            data = json.loads(soup(path).find(id=figure["data-run"]).string)
            window = [line for line in data["lines"] if line["panel"] == "cwnd"]
            assert [line["value"] for line in window] == [[10.0] * 10] * 2, "segments"
            assert data["end"] == 10.0 and len(data["flows"]) == 2
            assert {mark["event"] for mark in data["marks"]} == {"drops"}
        assert len(soup(path).select("figure.chart")) == len(
            soup(path).select("section[aria-labelledby^=on-] table[data-sortable]")
        )


def test_the_evidence_of_a_claim_is_drawn_to_scale(project, report):
    for row in project.rows("claims.csv"):
        card = soup(report / "synthetic.html").find(id=f"claim-{row['claim']}")
        strip = card.select_one("svg.strip")
        if not row["observed"]:
            assert strip is None
            continue
        band = strip.select_one("rect.asked")
        left = float(band["x"])
        right = left + float(band["width"])
        marks = {use.find_parent("g").text.strip(): float(use["x"]) + 5 for use in strip("use")}
        holds = left <= marks[row["engine"]] <= right
        assert holds == (row["verdict"] == "reproduced"), row
        assert re.search(rf"{row['engine']} [\d.,e+−]+, {row['verdict']}", strip["aria-label"])
