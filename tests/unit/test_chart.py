"""Charts: units on axes, published values drawn in, thinning that keeps peaks, safe ids."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replication.design.config import load_study, study_ids
from replication.metrics.results import Results
from replication.metrics.sampled import kept_samples, thin
from replication.report.charts.cells import cells_figure, scatter_figure
from replication.report.charts.data import (
    Display,
    PublishedValue,
    axis_factor,
    display_factor,
    read_cells,
)
from replication.report.charts.experiment import figures_of
from replication.report.charts.figure import MAXIMUM_POINTS, Horizontal, to_png
from replication.report.charts.points import published_figures
from replication.report.released import released_results
from replication.study.claim_model import Quantity
from replication.verdicts.verdict_table import read_table

from tests.unit.conftest import ROOT, study_document

DATA = released_results(ROOT)
EXPERIMENTS = [
    (study, experiment.id)
    for study in study_ids(ROOT)
    for experiment in load_study(ROOT, study).experiments
]


@functools.cache
def study_parts(study):
    return Results.load(DATA, study), read_cells(DATA, study), load_study(ROOT, study)


@functools.cache
def figures(study, experiment):
    return figures_of(*study_parts(study), experiment)


def marks(node, key="mark"):
    """Every part of a specification with a mark: its encoding and the name of its data."""
    if isinstance(node, dict):
        if key in node:
            yield node
        node = [value for name, value in node.items() if name not in ("datasets", "config")]
    if isinstance(node, list):
        for item in node:
            yield from marks(item, key)


@pytest.mark.parametrize(("study", "experiment"), EXPERIMENTS)
def test_figures_are_small_described_without_hosts_and_say_units(study, experiment):
    found = figures(study, experiment)
    assert len({figure.id for figure in found}) == len(found) > 0
    for figure in found:
        specification = figure.specification()
        text = json.dumps(specification, allow_nan=False)
        assert sum(map(len, specification["datasets"].values())) <= MAXIMUM_POINTS, figure.id
        assert "http" not in text.replace(specification["$schema"], "")
        assert len(figure.description) > 60 and "nan" not in figure.description
        assert figure.id.startswith(f"{study}~{experiment}~")
        parts = list(marks(specification, "encoding"))
        axes = [part["encoding"].get(channel, {}) for part in parts for channel in ("x", "y")]
        numeric = [axis["title"] for axis in axes if axis.get("type") == "quantitative"]
        assert numeric and all(re.search(r"\(.+\)", title) for title in numeric), figure.id
        for node in marks(specification):
            encoding, mark = node.get("encoding", {}), node["mark"]
            mark = {"type": mark} if isinstance(mark, str) else mark
            # Colour is never the only distinction.
            wanted = {"point": "shape", "line": "strokeDash"}.get(mark["type"])
            if wanted and encoding.get("color", {}).get("field"):
                assert wanted in {**encoding, **mark}, figure.id


def test_published_values_of_two_links_are_beside_those_of_our_two(world):
    (experiment,) = study_document()["experiments"]
    experiment["topology"]["monitors"] = [{"link": name} for name in ("in1", "bottleneck")]
    waiting = {"in1:ab": 2, "bottleneck:ab": 9}
    study = world.study(experiments=[experiment])
    sample = lambda flow, **_: {"time_s": 1.0, "queue_packets": waiting.get(flow, math.nan)}  # noqa: E731
    results = world.results(study, series=lambda **run: [sample(**run)])
    asked = {"experiment": "sweep", "metric": "queue_mean_packets"}
    asked["where"] = {"variant": "reno", "access": "slow"}
    values = [
        PublishedValue("1", "slow", link, 5, Quantity(**asked, links=[link])) for link in waiting
    ]
    found = published_figures(results, study.experiment("sweep"), values)
    assert len({figure.id for figure in found}) == 2
    for figure, (link, queue) in zip(found, waiting.items(), strict=True):
        assert link in figure.title
        assert set(figure.data["mean"]) == {queue}


@pytest.mark.parametrize(
    ("study", "experiment", "table", "column"),
    [("saxena", "bandwidth", "II", ""), ("kapadia", "trios", "trace:reno", "cwnd_mean")],
)
def test_published_values_are_hollow_diamonds_with_the_papers_numbers(
    study, experiment, table, column
):
    drawn = set()
    for specification in (figure.specification() for figure in figures(study, experiment)):
        for node in marks(specification):
            if isinstance(node["mark"], dict) and node["mark"].get("shape") == "diamond":
                assert node["mark"]["filled"] is False
                # Layers of the same data have them from the panel around them.
                data, name = specification["datasets"], node.get("data", {}).get("name")
                rows = data[name] if name else itertools.chain(*data.values())
                drawn |= {row.get("value", row.get("published")) for row in rows}
    published = pd.read_csv(ROOT / "data" / "published" / f"{study}.csv")
    is_wanted = (published["table"] == table) & published["column"].str.contains(column)
    wanted = published.loc[is_wanted, "value"]
    assert len(wanted) and drawn
    scale = 1e6 if study == "saxena" else 1
    assert {round(v / scale, 9) for v in wanted} <= {round(v, 9) for v in drawn if v is not None}


def test_the_scatter_is_drawn_from_the_files_also_where_they_are_empty():
    cells = read_table(DATA, "cells").to_pandas()
    assert len(scatter_figure(cells, {}).data) == cells["reproduced_mean"].notna().sum()
    assert scatter_figure(cells.iloc[:0], {}).specification()


def test_tolerance_in_the_chart_is_that_of_the_verdict():
    table = next(table for table in load_study(ROOT, "saxena").tables if table.id == "II")
    cells = read_table(DATA / "evaluation" / "saxena", "cells").to_pandas()
    data = cells_figure(cells, table).data
    judged = data[data["verdict"].isin(["reproduced", "not reproduced"])]
    within = judged["reproduced_mean"].between(judged["accepted_low"], judged["accepted_high"])
    assert len(judged) and (within == (judged["verdict"] == "reproduced")).all()


def test_axes_say_display_units_and_are_logarithmic_only_over_wide_ranges():
    assert Display("Rate", "KB (as printed)", 1.0).title == "Rate (KB, as printed)"
    assert Horizontal("x (1)", (1.0, 100.0)).encoding().to_dict()["scale"]["type"] == "log"
    assert "type" not in Horizontal("x (1)", (1.0, 10.0)).encoding().to_dict()["scale"]
    axis = axis_factor(load_study(ROOT, "liang_shen").experiment("sweep"))
    assert axis is not None and display_factor(axis).title == "CBR rate (Mbit/s)"


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400), st.integers(1, 40))
def test_thinning_keeps_ends_and_extremes_of_every_bin(samples, bins):
    data, last = np.array(samples), len(samples) - 1
    kept = kept_samples(np.arange(len(samples), dtype=float), data, bins)
    assert list(kept) == sorted(set(kept)) and {0, last} <= set(kept)
    assert len(kept) <= max(4 * bins, 1)
    bin_of = np.minimum((np.arange(len(samples)) / (last / bins or 1.0)).astype(int), bins - 1)
    for number in set(bin_of):
        own, shown = data[bin_of == number], data[kept[bin_of[kept] == number]]
        assert shown.max() == own.max() and shown.min() == own.min()


def test_thinning_leaves_out_missing_samples_and_keeps_groups_apart():
    frame = pd.DataFrame(
        {
            "flow": ["a"] * 500 + ["b"] * 500,
            "time_s": [*np.arange(500.0), *np.arange(500.0)],
            "value": [np.nan, *np.zeros(498), 5.0, 7.0, *np.ones(499)],
        }
    )
    kept = thin(frame, "value", ["flow"], 80)
    assert len(kept) <= 80 and kept["value"].notna().all()
    assert kept.groupby("flow")["value"].max().to_dict() == {"a": 5.0, "b": 7.0}


def test_a_picture_is_the_same_bytes_each_time():
    specification = figures("liang_shen", "sweep")[0].specification()
    small = to_png(specification, scale=1)
    assert small.startswith(b"\x89PNG") and to_png(specification, scale=1) == small
