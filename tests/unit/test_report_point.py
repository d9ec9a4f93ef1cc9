"""Pages of points: every number links to its runs, which match the files."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from replication.report.pages.point import SHOWN_ROWS
from replication.report.pages.source import cell_id

from tests.unit.conftest import render_example
from tests.unit.report_project import soup


def flows(engine, replicate, access, **_):
    base = {"slow": 4e5, "mid": 4.1e5, "fast": 4.2e5}[access] + 1000 * replicate
    return {"throughput_bps": base, "rtt_mean_s": float("nan")}


def series(flow, **_):
    values = {"cwnd_bytes": 9600.0, "rtt_s": 0.2, "throughput_bps": 4e5, "drops": 1.0}
    if ":" in flow:
        values = {"queue_packets": 3.0}
    return [{"time_s": float(t), **values} for t in range(1, 11)]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    def refusal(engine, levels):
        return "no <b>vegas" if (engine, levels["variant"]) == ("ns2", "vegas") else ""

    given = {"flows": flows, "series": series, "refusal": refusal}
    made = render_example(tmp_path_factory, engines=("ns3", "ns2"), **given)
    made.design = pd.read_csv(made.data / "design/synthetic.csv", dtype=str)
    made.points = {path: soup(path) for path in made.out.glob("runs/*.html")}
    return made


def test_each_point_has_its_runs_seeds_and_commands(project):
    scenarios = json.loads((project.data / "design/scenarios/synthetic.json").read_text())
    assert len(project.points) == project.design["point"].nunique()
    for row in project.design.to_dict("records"):
        (page,) = [p for p in project.points.values() if row["scenario"] in p.get_text()]
        section = page.find("section", {"aria-labelledby": f"on-{row['engine']}"})
        if row["supported"] == "False":
            assert row["reason"] in section.get_text()
            assert row["engine"] not in [td.text for td in page.select("table.flows tbody td")]
            continue
        assert row["scenario"] in section.get_text()
        first = section.select_one("code.command").get_text()
        assert re.fullmatch(rf"replicate run [0-9a-f]{{16}} --engine {row['engine']}", first)
        if row["scenario"] in first:
            assert f"seed {scenarios[row['scenario']]['seed']}" in section.get_text()


def test_flows_on_pages_match_the_file_of_results(project):
    table = pd.read_parquet(project.out / "data/results/synthetic/flows.parquet")
    shown = set()
    for page in project.points.values():
        rows = page.select("table.flows tbody tr")
        shown |= {float(row.select("td")[3].get_text()) for row in rows}
    assert shown <= set(np.round(table["throughput_bps"] * 1e-6, 6))
    for page in project.points.values():
        engines = [tr.td.get_text() for tr in page.select("table.flows tbody tr")]
        assert engines and all(engines.count(name) == SHOWN_ROWS for name in engines)


def test_numbers_and_claims_link_to_their_points_and_back(project):
    page = project.page("synthetic~evidence")
    for row in page.select("tr[data-column]"):
        (link,) = row.select("td.runs a")
        name = cell_id("1", row["data-row"], row["data-column"])
        point = project.points[project.out / link["href"]]
        levels = point.h1.get_text()
        assert row.th.get_text().split(",")[0] in levels, "the point has the row's level"
        assert f"../synthetic~evidence.html#{name}" in [a["href"] for a in point.select("a[href]")]
        (cell,) = page.find_all(id=name)
        assert cell["data-verdict"] == row["data-verdict"]
    links = page.find(id="claim-value").select(".rests li a")
    assert len(links) == project.design["point"].nunique()
    assert not page.find(id="claim-open").select(".rests")


def test_a_run_over_time_is_drawn_to_scale(project):
    for page in project.points.values():
        figures = page.select("figure.chart")
        # The primary engine's if it ran.
        assert len(figures) == ("vegas" not in page.h1.get_text().lower())
        for figure in figures:
            window, *others = figure.select("svg.run > g.panel")
            assert window.text.startswith("Window (segments)")
            assert [panel.text.split(" (")[0] for panel in others] == [
                "Round-trip time",
                "Throughput",
                "Queue",
            ]
            # Ten segments all the time, at the top of an axis that ends at ten.
            lines = window.select("g.lines path")
            assert len(lines) == 2 and {line["d"].count("l") for line in lines} == {1}
            start = re.match(r"M(\d+) (\d+)l(\d+) (-?\d+)", lines[0]["d"])
            assert [int(n) for n in start.groups()] == [112, 0, 1008, 0], "9 s of 10 are 504 px"
            assert "Dropped" in figure.text and "Sent again" not in figure.text
