"""The page's section on traces and its charts: the table's numbers, with or without raw traces."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from replication.compare.trace_comparison import COMPARISON, NEARNESS, WINDOWS
from replication.design.config import load_study
from replication.report.charts.figure import INK, MAXIMUM_POINTS
from replication.report.charts.trace import overlay_figures
from replication.report.pages.page import environment
from replication.report.pages.source import Source
from replication.report.pages.traces import trace_figures, trace_section
from replication.report.released import released_results
from replication.study.files import write_text

from tests.unit.conftest import ROOT

DATA = released_results(ROOT)
PROVENANCE = {"engines": {}, "tier": {"id": "quick"}}


@pytest.fixture
def source(tmp_path):
    data = shutil.copytree(DATA, tmp_path / "data")
    write_text(data / "provenance.json", json.dumps(PROVENANCE))
    return Source.load(ROOT, data)


def section(source):
    study = load_study(ROOT, "kapadia")
    view = trace_section(source, study)
    template = environment(source).get_template("traces.html")
    return view, BeautifulSoup(template.module.trace_section(view), "html.parser")


def test_every_number_of_the_table_is_on_the_page(source):
    view, page = section(source)
    table = pd.read_csv(source.data / COMPARISON, dtype=str, keep_default_na=False)
    shown = {cell["data-value"] for cell in page.select("td[data-value]")}
    ours = table[table["engine"].isin(view["engines"])]
    assert len(ours) and set(ours["reproduced_mean"]) <= shown
    assert set(ours[ours["metric"] != "cwnd_distance"]["published"]) <= shown
    assert {name for name, _, _ in view["traces"]} == set(ours["trace"])
    drawn = trace_figures(source, load_study(ROOT, "kapadia"))
    homes = ours.drop_duplicates("trace").groupby("experiment").size().to_dict()
    assert {experiment: len(figures) for experiment, figures in drawn.items()} == homes


def test_the_page_says_what_was_not_there(source):
    path = source.data / COMPARISON
    raw = pd.read_csv(path).assign(evidence="raw trace")
    for trace, is_said in (("", False), ("bbr", True)):
        raw.loc[raw["trace"] == trace, "evidence"] = "summary figure"
        write_text(path, raw.to_csv(index=False))
        assert ("The raw trace bbr was not there" in section(source)[1].text) == is_said


def test_without_a_comparison_there_is_no_section(source):
    study, other = (load_study(ROOT, name) for name in ("kapadia", "saxena"))
    assert trace_section(source, other) is None and not trace_figures(source, other)
    for name in (COMPARISON, NEARNESS, WINDOWS):
        (source.data / name).unlink()
    assert trace_section(source, study) is None and not trace_figures(source, study)


def windows(sources, samples=220):
    rows = [
        ("s", "reno", flow, source, float(second), 10.0 + number)
        for flow in ("flow1", "flow2", "flow3")
        for number, source in enumerate(sources)
        for second in range(samples)
    ]
    names = ["study", "trace", "flow", "source", "time_s", "cwnd_segments"]
    return pd.DataFrame(rows, columns=names)


MEANS = pd.DataFrame({"flow": ["flow1", "flow2", "flow3"], "published": [20.0, 21.0, 22.0]}).assign(
    trace="reno", metric="cwnd_mean"
)


def scales(figure):
    """Return each line's name and colour of every panel."""
    panels = figure.specification()["vconcat"]
    layers = [layer for panel in panels for layer in panel["layer"]]
    found = [one["encoding"]["color"]["scale"] for one in layers if one["mark"]["type"] == "line"]
    return [dict(zip(scale["domain"], scale["range"], strict=True)) for scale in found]


def test_the_published_window_has_the_ink_and_each_engine_its_own_colour():
    (figure,) = overlay_figures(windows(["published", "linux", "ns3"]), MEANS)
    first, *others = scales(figure)
    assert len(others) == 2 and first.pop("Published") == INK and len(set(first.values())) == 2
    (alone,) = overlay_figures(windows(["ns3"]), MEANS)
    assert scales(alone)[0] == {"ns3": first["ns3"]}
    assert len(figure.data) <= MAXIMUM_POINTS


def test_without_the_raw_trace_the_published_mean_is_drawn():
    (figure,) = overlay_figures(windows(["linux", "ns3"]), MEANS)
    text = json.dumps(figure.specification())
    assert text.count('"published mean"') == 3
    assert "flow2: published mean 21" in figure.description
    (raw,) = overlay_figures(windows(["published", "ns3"]), MEANS)
    assert "published mean" not in json.dumps(raw.specification())
