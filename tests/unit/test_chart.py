"""Charts: units on axes, published values drawn in, thinning that keeps peaks, safe ids."""

from __future__ import annotations

import functools
import json
import math
import re
from pathlib import Path

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
    estimates,
    read_cells,
)
from replication.report.charts.experiment import figures_of
from replication.report.charts.figure import MAXIMUM_POINTS, Horizontal, to_png
from replication.report.charts.points import claimed_values, published_figures
from replication.report.released import released_results
from replication.study.claim_model import Quantity
from replication.verdicts.verdict_table import read_table

from tests.unit.conftest import study_document

ROOT = Path(__file__).parents[2]
DATA = released_results(ROOT)
EXPERIMENTS = [
    (study, experiment.id)
    for study in study_ids(ROOT)
    for experiment in load_study(ROOT, study).experiments
]
DIAMOND = "diamond"


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
def test_every_experiment_has_figures_with_units_on_all_numeric_axes(study, experiment):
    found = figures(study, experiment)
    assert found
    for figure in found:
        seen = 0
        for part in marks(figure.specification(), "encoding"):
            for channel in ("x", "y"):
                spec = part["encoding"].get(channel, {})
                if spec.get("type") == "quantitative":
                    assert re.search(r"\(.+\)", spec["title"]), (figure.id, spec)
                    seen += 1
        assert seen, figure.id


@pytest.mark.parametrize(("study", "experiment"), EXPERIMENTS)
def test_figures_are_small_described_and_need_no_host(study, experiment):
    ids = set()
    for figure in figures(study, experiment):
        text = json.dumps(figure.specification(), allow_nan=False)
        rows = sum(len(rows) for rows in figure.specification()["datasets"].values())
        assert rows <= MAXIMUM_POINTS, figure.id
        assert "http" not in text.replace(figure.specification()["$schema"], "")
        assert len(figure.description) > 60 and "nan" not in figure.description
        assert figure.id.startswith(f"{study}~{experiment}~")
        ids.add(figure.id)
    assert len(ids) == len(figures(study, experiment))


def test_colour_is_never_the_only_distinction():
    for study, name in EXPERIMENTS:
        for figure in figures(study, name):
            for node in marks(figure.specification()):
                encoding = node.get("encoding", {})
                mark = node["mark"] if isinstance(node["mark"], str) else node["mark"]["type"]
                field = encoding.get("color", {}).get("field")
                if field and mark == "point":
                    assert "shape" in encoding, figure.id
                if field and mark == "line":
                    dashed = isinstance(node["mark"], dict) and "strokeDash" in node["mark"]
                    assert dashed or "strokeDash" in encoding, figure.id


def test_published_values_of_two_links_are_beside_those_of_our_two(world):
    (experiment,) = study_document()["experiments"]
    experiment["topology"]["monitors"] = [{"link": name} for name in ("in1", "bottleneck")]
    waiting = {"in1:ab": 2, "bottleneck:ab": 9}
    study = world.study(experiments=[experiment])
    results = world.results(
        study,
        series=lambda flow, **_: [{"time_s": 1.0, "queue_packets": waiting.get(flow, math.nan)}],
    )
    wanted = {"experiment": "sweep", "metric": "queue_mean_packets"}
    where = {"variant": "reno", "access": "slow"}
    values = [
        PublishedValue("1", "slow", link, 5, Quantity(**wanted, where=where, links=[link]))
        for link in waiting
    ]
    found = published_figures(results, study.experiment("sweep"), values)
    assert len({figure.id for figure in found}) == len(found) == 2
    for figure, (link, queue) in zip(found, waiting.items(), strict=True):
        assert link in figure.title
        assert set(figure.data["mean"]) == {queue}


@pytest.mark.parametrize(
    ("study", "experiment"),
    [("saxena", "bandwidth"), ("kapadia", "trios"), ("liang_shen", "sweep")],
)
def test_published_values_are_hollow_diamonds_with_the_papers_numbers(study, experiment):
    found = figures(study, experiment)
    drawn = []
    for figure in found:
        spec = figure.specification()
        for node in marks(spec):
            if isinstance(node["mark"], dict) and node["mark"].get("shape") == DIAMOND:
                assert node["mark"]["filled"] is False
                drawn += [
                    row.get("value", row.get("published"))
                    for row in spec["datasets"].get(node.get("data", {}).get("name"), [])
                ]
    assert drawn
    published = pd.read_csv(ROOT / "data" / "published" / f"{study}.csv")
    if study == "saxena":
        wanted = published.loc[published["table"] == "II", "value"] / 1e6
        assert {round(v, 9) for v in wanted} <= {round(v, 9) for v in drawn if v is not None}
    if study == "kapadia":
        wanted = published[
            (published["table"] == "trace:reno") & (published["column"] == "cwnd_mean")
        ]
        assert set(wanted["value"]) <= set(drawn)


def test_claimed_ratio_is_drawn_from_the_reproduced_baseline():
    study = load_study(ROOT, "liang_shen")
    experiment = study.experiment("sweep")
    results = Results.load(DATA, "liang_shen")
    frame = estimates(results, experiment, "throughput_bps")
    drawn = claimed_values(study, experiment, "throughput_bps", frame)
    base = frame[frame["variant"].isin(["tahoe", "reno"])].groupby("x")["mean"].mean()
    assert len(drawn) == len(base)
    for row in drawn.to_dict("records"):
        assert row["value"] == pytest.approx(1.1 * base[row["x"]])


def verdicts(folder, kind):
    return read_table(folder, kind).to_pandas()


def test_the_scatter_is_drawn_from_the_files():
    cells = verdicts(DATA, "cells")
    scatter = scatter_figure(cells, {})
    assert len(scatter.data) == cells["reproduced_mean"].notna().sum()


def test_an_empty_evaluation_gives_a_figure_and_not_an_error():
    cells = verdicts(DATA, "cells").iloc[:0]
    assert scatter_figure(cells, {}).specification()


def test_tolerance_in_the_chart_is_that_of_the_verdict():
    study = load_study(ROOT, "saxena")
    table = next(table for table in study.tables if table.id == "II")
    cells = verdicts(DATA / "evaluation" / "saxena", "cells")
    data = cells_figure(cells, table).data
    judged = data[data["verdict"].isin(["reproduced", "not reproduced"])]
    assert len(judged)
    within = (judged["reproduced_mean"] >= judged["accepted_low"]) & (
        judged["reproduced_mean"] <= judged["accepted_high"]
    )
    assert (within == (judged["verdict"] == "reproduced")).all()


def test_units_with_a_note_do_not_nest_brackets():
    assert Display("Rate", "KB (as printed)", 1.0).title == "Rate (KB, as printed)"


def test_axis_is_logarithmic_only_over_wide_ranges():
    assert Horizontal("x (1)", (1.0, 100.0)).encoding().to_dict()["scale"]["type"] == "log"
    assert "type" not in Horizontal("x (1)", (1.0, 10.0)).encoding().to_dict()["scale"]


def test_numeric_factor_is_on_the_axis_in_display_units():
    axis = axis_factor(load_study(ROOT, "liang_shen").experiment("sweep"))
    assert axis is not None and axis.id == "cbr_rate"
    assert display_factor(axis).title == "CBR rate (Mbit/s)"


values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400)


@given(values, st.integers(1, 40))
def test_thinning_keeps_ends_and_extremes_of_the_whole_and_of_every_bin(samples, bins):
    time = np.arange(len(samples), dtype=float)
    data = np.array(samples)
    kept = kept_samples(time, data, bins)
    assert list(kept) == sorted(set(kept))
    assert {0, len(samples) - 1} <= set(kept)
    assert data[kept].max() == data.max() and data[kept].min() == data.min()
    assert len(kept) <= max(4 * bins, 1)
    width = (len(samples) - 1) / bins or 1.0
    bin_of = np.minimum((time / width).astype(int), bins - 1)
    for number in set(bin_of):
        own = data[bin_of == number]
        shown = data[[k for k in kept if bin_of[k] == number]]
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


def test_a_picture_is_the_same_bytes_each_time_and_smaller_than_the_renderer_makes_it():
    import vl_convert

    figure = figures("liang_shen", "sweep")[0]
    raw = vl_convert.vegalite_to_png(figure.specification() | {"background": "white"}, scale=1)
    small = to_png(figure.specification(), scale=1)
    assert small.startswith(b"\x89PNG") and len(small) < len(raw) / 2
    assert to_png(figure.specification(), scale=1) == small
