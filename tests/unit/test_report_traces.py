"""The page's section on traces and its charts: the table's numbers, with or without raw traces."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

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

ROOT = Path(__file__).parents[2]
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
    frames = [
        pd.DataFrame({"source": source, "time_s": range(samples), "cwnd_segments": 10.0 + number})
        for number, source in enumerate(sources)
    ]
    parts = [pd.concat(frames).assign(flow=flow) for flow in ("flow1", "flow2", "flow3")]
    return pd.concat(parts).assign(study="s", trace="reno")


MEANS = pd.DataFrame(
    {
        "trace": "reno",
        "flow": ["flow1", "flow2", "flow3"],
        "metric": "cwnd_mean",
        "published": [20.0, 21.0, 22.0],
    }
)


def lines(figure):
    return [
        layer
        for panel in figure.specification()["vconcat"]
        for layer in panel["layer"]
        if layer["mark"]["type"] == "line"
    ]


def test_the_published_window_has_the_ink_and_each_engine_its_own_colour():
    (figure,) = overlay_figures(windows(["published", "linux", "ns3"]), MEANS)
    scales = [line["encoding"]["color"]["scale"] for line in lines(figure)]
    assert len(scales) == 3
    colours = dict(zip(scales[0]["domain"], scales[0]["range"], strict=True))
    assert colours.pop("Published") == INK
    assert len(set(colours.values())) == 2
    (alone,) = overlay_figures(windows(["ns3"]), MEANS)
    scale = lines(alone)[0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {"ns3": colours["ns3"]}
    assert len(figure.data) <= MAXIMUM_POINTS


def test_without_the_raw_trace_the_published_mean_is_drawn():
    (figure,) = overlay_figures(windows(["linux", "ns3"]), MEANS)
    text = json.dumps(figure.specification())
    assert text.count('"published mean"') == 3
    assert "flow2: published mean 21" in figure.description
    (raw,) = overlay_figures(windows(["published", "ns3"]), MEANS)
    assert "published mean" not in json.dumps(raw.specification())
