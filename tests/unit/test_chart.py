"""Charts: units on axes, published values drawn in, thinning that keeps peaks, safe ids."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import shutil

import altair as alt
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from replication.base.errors import InputError
from replication.base.files import write_text
from replication.compare.trace_comparison import COMPARISON, NEARNESS, WINDOWS
from replication.design.config import load_study
from replication.metrics.metric import quantity
from replication.metrics.metric_model import DRAWN, wanted_quantities
from replication.metrics.results import Results
from replication.metrics.sampled import kept_samples
from replication.report.charts.cells import FLOOR, distinct_words, ratio_figure, table_figures
from replication.report.charts.data import (
    Display,
    PublishedValue,
    as_in_file,
    axis_factor,
    display_factor,
    proper,
    read_judged,
)
from replication.report.charts.experiment import ExperimentCharts, figures_of
from replication.report.charts.figure import axis_x, file_of, name_of, to_png, wrapped
from replication.report.charts.lines import line_ends, lines_panel, spread, y_scale
from replication.report.charts.run import topology_lines
from replication.report.charts.time import trace_figures
from replication.report.pages.evidence import figures_of_traces, trace_section
from replication.report.pages.page import environment, svg_of
from replication.report.pages.source import Source
from replication.report.release import released_results
from replication.study.claim_model import Quantity
from replication.study.finding_model import Finding

from tests.unit.conftest import CLAIM, RELEASED_STUDIES, ROOT, missing_from, study_document

DATA = released_results(ROOT)
EXPERIMENTS = []
for _name in RELEASED_STUDIES:
    EXPERIMENTS += [(_name, experiment.id) for experiment in load_study(ROOT, _name).experiments]


@functools.cache
def study_parts(study):
    source = Source.load(ROOT, DATA)
    cells = read_judged(DATA, study, "cells")
    cells = cells[cells["engine"] == source.primary_engines[study].engine]
    return source.primary_results(Results.load(source.data, study)), cells, load_study(ROOT, study)


@functools.cache
def figures(study, experiment):
    return figures_of(*study_parts(study), experiment)


def figure_named(study, experiment, part):
    """The first figure of an experiment whose id contains `part`."""
    return next(figure for figure in figures(study, experiment) if part in figure.id)


def drawn(figure):
    """Every row of the data of a figure."""
    rows = []
    for dataset in figure.specification["datasets"].values():
        rows += dataset
    return pd.DataFrame(rows)


def marks(node, key="mark"):
    """Every part of a specification with a mark: its encoding and the name of its data."""
    if isinstance(node, dict):
        if key in node:
            yield node
        node = [value for name, value in node.items() if name not in ("datasets", "config")]
    if isinstance(node, list):
        for item in node:
            yield from marks(item, key)


def labels(figure, key):
    """One field of every label of a figure; labels are not in its data."""
    rows = []
    for part in marks(figure.specification, "data"):
        rows += part["data"].get("values", [])
    return [row[key] for row in rows if key in row]


@pytest.mark.parametrize(("study", "experiment"), EXPERIMENTS)
def test_every_figure_is_small_described_and_names_its_units(study, experiment):
    drawn_figures = figures(study, experiment)
    assert len({figure.id for figure in drawn_figures}) == len(drawn_figures) > 0
    for figure in drawn_figures:
        specification = figure.specification
        text = json.dumps(specification, allow_nan=False)
        assert sum(map(len, specification["datasets"].values())) <= 2000, figure.id
        assert "http" not in text.replace(specification["$schema"], "")
        assert len(figure.description) > 60 and "nan" not in figure.description
        assert figure.id.startswith(f"{study}~{experiment}~")
        parts = list(marks(specification, "encoding"))
        axes = []
        for part in parts:
            axes += [part["encoding"].get(channel, {}) for channel in ("x", "y")]
        # Of panels one below the other the last has the title; those side by side share one.
        titles = [axis.get("title") for axis in axes if axis.get("type") == "quantitative"]
        titles += [specification["title"]["text"]] if "title" in specification else []
        titles = [title for title in titles if title]
        numeric = [title if isinstance(title, str) else " ".join(title) for title in titles]
        assert numeric and not any("(1)" in title for title in numeric), figure.id
        without = [title for title in numeric if not re.search(r"\(.+\)", title)]
        assert all(re.search("index|ratio|divided|[Ll]oss rate", title) for title in without), (
            figure.id
        )
        for node in marks(specification):
            encoding, mark = node.get("encoding", {}), node["mark"]
            mark = {"type": mark} if isinstance(mark, str) else mark
            # Colour is never the only distinction.
            wanted = {"point": "shape", "line": "strokeDash"}.get(mark["type"])
            if wanted and encoding.get("color", {}).get("field"):
                assert wanted in {**encoding, **mark}, figure.id


def test_a_fairness_study_draws_each_flow_in_the_time_window_of_its_claims(world):
    (experiment,) = study_document()["experiments"]
    experiment["type"] = "bdp_jain"
    asked = {"experiment": "sweep", "metric": "throughput_bps", "window_s": [5, 10]}
    test = {"kind": "value", "of": asked, "expect": {"at_least": 1}}
    study = world.study(experiments=[experiment], claims=[CLAIM | {"test": test}])
    rates_bps = {"tcp1": 1e6, "tcp2": 3e6}

    def sample(flow, **_):
        late = rates_bps.get(flow, 0.0)
        rates = [9e9] * 5 + [late] * 5
        return [{"time_s": s + 1.0, "throughput_bps": rate} for s, rate in enumerate(rates)]

    results = world.results(study, series=sample)
    windowed = next(
        figure
        for figure in figures_of(results, pd.DataFrame(), study, "sweep")
        if "5 to 10 s" in figure.title
    )
    assert {tuple(row) for row in drawn(windowed)[["series", "mean"]].to_numpy()} == {
        ("flow tcp1", 1.0),
        ("flow tcp2", 3.0),
    }
    values = []
    for flow in ("tcp1", "tcp2"):
        wanted = Quantity(**asked, flows=[flow], where={"access": "slow"})
        values.append(PublishedValue(("1", "slow", flow), 5, wanted))
    charts = ExperimentCharts(results, study.experiment("sweep"), values)
    printed = list(charts.of_quantities(with_tables=True))
    assert len({figure.id for figure in printed}) == 2 and "tcp1" in printed[0].title
    assert printed[0].published == {("1", "slow", "tcp1")}


def test_claimed_metrics_are_drawn_if_the_experiment_type_defines_no_chart(world):
    (experiment,) = study_document()["experiments"]
    names = ["loss_rate", "goodput_bps", "delay_mean_s", "loss_rate", "timeouts", "packets_sent"]
    tests = [
        {"kind": "value", "of": {"experiment": "sweep", "metric": m}, "expect": {"at_least": 0}}
        for m in names
    ]
    claims = [CLAIM | {"id": f"c{n}", "test": test} for n, test in enumerate(tests)]
    for kind in ("throughput_tables", "homogeneous_dumbbell"):
        study = world.study(experiments=[experiment | {"type": kind}], claims=claims)
        of_sweep = figures_of(world.results(study), pd.DataFrame(), study, "sweep")
        metrics = [figure.id.split("~")[2] for figure in of_sweep]
        assert metrics == ["loss_rate", "goodput_bps", "delay_mean_s", "timeouts"]


def test_axis_labels_keep_the_order_of_the_file_and_long_ones_wrap(world):
    (experiment,) = study_document()["experiments"]
    experiment["type"] = "cbr_sweep"
    for level in experiment["factors"][1]["levels"]:
        del level["value"]
    study = world.study(experiments=[experiment])
    figure = figures_of(world.results(study), pd.DataFrame(), study, "sweep")[0]
    levels = itertools.product(("reno", "vegas", "cubic"), ("slow", "mid", "fast"))
    known = [", ".join(point) for point in levels]
    assert list(dict.fromkeys(drawn(figure)["x"])) == known
    assert next(node["encoding"]["x"]["sort"] for node in marks(figure.specification)) == known
    assert [wrapped([label])[1] for label in ("short", "a long label of a row")] == [1, 2]
    assert wrapped(["a.word.that.fits.in.no.line.of.a.label"])[1] == 2


@pytest.mark.parametrize(
    ("study", "experiment", "table", "column"),
    [("saxena", "bandwidth", "II", ""), ("nishitha", "homogeneous", "5.2", "delay")],
)
def test_published_values_are_hollow_diamonds_with_the_papers_numbers(
    study, experiment, table, column
):
    diamonds = set()
    for specification in (figure.specification for figure in figures(study, experiment)):
        for node in marks(specification):
            if isinstance(node["mark"], dict) and node["mark"].get("shape") == "diamond":
                assert node["mark"]["filled"] is False
                # Layers of the same data have them from the panel around them.
                data, name = specification["datasets"], node.get("data", {}).get("name")
                if name and name not in data:
                    continue  # the symbol of a name
                rows = data[name] if name else itertools.chain(*data.values())
                # Of rates that are drawn as a share, the share is in the data.
                for row in rows:
                    value = row.get("value", row.get("published"))
                    diamonds.add(None if value is None else value * row.get("share", 1))
    published = pd.read_csv(ROOT / "data" / "published" / f"{study}.csv", dtype={"table": str})
    is_wanted = (published["table"] == table) & published["column"].str.contains(column)
    wanted = published.loc[is_wanted, "value"]
    assert len(wanted) and diamonds
    scale = 1e6 if study == "saxena" else 1e-3
    assert {round(v / scale, 9) for v in wanted} <= {round(v, 9) for v in diamonds if v is not None}


def test_the_scatter_draws_every_number_once_at_its_ratio_within_the_axis():
    studies = {name: load_study(ROOT, name) for name in RELEASED_STUDIES}
    printed = {"nishitha": "ns2", "saxena": "ns3"}
    cells = pd.concat(read_judged(DATA, name, "cells") for name in printed)
    cells = cells[cells["engine"] == cells["study"].map(printed)]
    cells = cells.assign(explained=cells["published"].where(cells["study"] == "saxena"))
    figure = ratio_figure(cells, studies, {name: name for name in studies})
    data = drawn(figure).dropna(subset="layer")
    measured = data[data["layer"] == "Documented defaults"]
    assert len(measured) == 141 and set(data[data["layer"] != "Documented defaults"]["ratio"]) == {
        1
    }
    # A table that measures several things has a row for each.
    groups = set(measured["group"])
    assert "saxena: Table IV" in groups and "nishitha: Table 5.2" not in groups
    assert len([name for name in groups if name.startswith("nishitha: Table 5.2, ")]) == 3
    assert len(groups) == 3 + 15
    keys = ["study", "table", "row", "column"]
    both = measured.merge(cells, on=keys, suffixes=("", "_cell"))
    assert np.allclose(both["ratio"], both["reproduced_mean"] / both["published"], atol=1e-4)
    assert data["shown"].between(1 / 16, 16).all()


def test_ratios_beyond_the_axis_are_arrows_and_the_most_extreme_has_its_value():
    cells = read_judged(DATA, "saxena", "cells").query("engine == 'ns3' and table == 'II'")
    published = cells["published"].tolist()
    measured = [40 * published[0], 20 * published[1], published[2] / 27, 0.0, *published[4:]]
    cells = cells.assign(reproduced_mean=measured)
    figure = ratio_figure(cells, {"saxena": load_study(ROOT, "saxena")}, {"saxena": "saxena"})
    data = drawn(figure).dropna(subset="layer")
    beyond = data[data["beyond"] != ""]
    assert list(beyond["beyond"]) == ["right", "right", "left", "left"]
    assert list(beyond["edge"]) == ["40", "", "", "0"]
    arrows = {
        part["mark"]["shape"]
        for part in marks(figure.specification)
        if str(part["mark"].get("shape")).startswith("triangle")
    }
    assert arrows == {"triangle-left", "triangle-right"}
    assert not missing_from(figure.description, "4 marks", "factor of 16")


def test_the_chart_draws_the_tolerance_that_decides_the_verdict():
    table = next(table for table in load_study(ROOT, "saxena").tables if table.id == "II")
    cells = read_judged(DATA, "saxena", "cells").query("engine == 'ns3'")
    study = load_study(ROOT, "saxena")
    data = pd.concat(map(drawn, table_figures(as_in_file(cells, study), [table])))
    judged = data[data["verdict"].isin(["reproduced", "not reproduced"])]
    within = judged["reproduced_mean"].between(judged["accepted_low"], judged["accepted_high"])
    assert len(judged) and (within == (judged["verdict"] == "reproduced")).all()


def test_algorithm_names_in_labels_are_capitalised_and_other_words_are_not():
    assert proper("bbr newreno, codel") == "BBR NewReno, CoDel"
    assert proper("reduced, cubical, Reno") == "reduced, cubical, Reno"


def test_axes_name_display_units_and_are_logarithmic_only_over_wide_ranges():
    assert Display("Rate", "KB (as printed)", 1.0).title.endswith("(KB, as printed)")
    assert axis_x("x (1)", (1.0, 100.0)).to_dict()["scale"]["type"] == "log"
    assert "type" not in axis_x("x (1)", (1.0, 10.0)).to_dict()["scale"]
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
        of_bin, shown = data[bin_of == number], data[kept[bin_of[kept] == number]]
        assert shown.max() == of_bin.max() and shown.min() == of_bin.min()


def test_thinning_leaves_out_missing_samples():
    values = np.array([np.nan, *np.zeros(498), 5.0])
    kept = kept_samples(np.arange(500.0), values, 20)
    assert len(kept) <= 80 and np.isfinite(values[kept]).all() and values[kept].max() == 5.0


parts = st.lists(st.text("ab1_-.~+ 𝒯", max_size=4), min_size=1, max_size=4)


@given(parts, parts)
def test_figure_names_are_unique_and_safe_in_files_and_pages(first, second):
    assert (name_of(*first) == name_of(*second)) == (first == second)
    assert re.fullmatch(r"[A-Za-z0-9_.,=~+-]*", name_of(*first))
    long = ["s" * 64, "e" * 64, "k" * 99, "k" * 99]
    names = [file_of(name_of(*long, *more)) for more in (first, second)]
    assert (names[0] == names[1]) == (first == second) and len(names[0]) <= 240


def test_static_charts_keep_every_digit_of_their_tick_labels():
    data = pd.DataFrame({"x": [0.0, 0.04], "y": [1.0, 2.0]})
    spec = alt.Chart(data, width=600).mark_point().encode(x="x:Q", y="y:Q").to_dict()
    words = [text.get_text() for text in BeautifulSoup(svg_of(spec, "a"), "html.parser")("text")]
    assert {"0.004", "0.036"} <= set(words)


def test_static_charts_keep_the_opacity_of_the_theme_and_use_whole_pixels():
    text = svg_of(figures("liang_shen", "sweep")[0].specification, "a")
    assert 'stroke-opacity="0.12"' in text
    # The first line is of an axis or a series; symbols have fractions.
    (line, *_) = re.findall(r'd="(M[0-9.,L]+)"', text)
    assert "L" in line and "." not in line


def test_a_png_of_a_chart_has_the_same_bytes_each_time():
    specification = figures("liang_shen", "sweep")[0].specification
    small = to_png(specification)
    assert small.startswith(b"\x89PNG") and to_png(specification) == small


# -- a network in words --------------------------------------------------------------------------


def scenarios(study):
    return json.loads((DATA / f"design/scenarios/{study}.json").read_text())


def test_the_network_diagram_names_rate_delay_and_queue_of_the_bottleneck():
    scenario = next(iter(scenarios("nishitha").values()))
    lines = topology_lines(scenario)
    (watched,) = [line for line in lines if "══" in line]
    assert not missing_from(watched, "2 Mbit/s", "50 ms", "DropTail 49 packets")
    bottleneck = next(link for link in scenario["links"] if link["id"] == "bottleneck")
    bottleneck |= {"rate_bps": 64000.0, "delay_s": 2e-5}
    bottleneck["queue_ab"] = {"kind": "codel", "limit_packets": 1000}
    (watched,) = [line for line in topology_lines(scenario) if "══" in line]
    assert not missing_from(watched, "0.064 Mbit/s", "20 µs", "CoDel 1,000 packets")


def test_only_hosts_with_equal_links_share_a_line_of_the_network_diagram():
    scenario = max(scenarios("saxena").values(), key=lambda document: len(document["nodes"]))
    assert len(topology_lines(scenario)) == 4  # senders, bottleneck, receivers, flows
    scenario["links"][0]["delay_s"] *= 2
    assert len(topology_lines(scenario)) == 5


# -- published traces: the table's numbers, with or without raw traces ----------------------------


@pytest.fixture
def source(tmp_path):
    return Source.load(ROOT, shutil.copytree(DATA, tmp_path / "data"))


def section(source):
    study = load_study(ROOT, "kapadia")
    view = trace_section(source, study)
    template = environment(source).get_template("traces.html")
    return view, BeautifulSoup(template.module.trace_section(view), "html.parser")


def test_the_section_of_traces_shows_every_number_of_the_table(source):
    view, page = section(source)
    table = pd.read_csv(source.data / COMPARISON, dtype=str, keep_default_na=False)
    shown = {cell["data-value"] for cell in page.select("td[data-value]")}
    rows = table[table["engine"].isin(view.engines)]
    assert len(rows) and set(rows["reproduced_mean"]) <= shown
    assert set(rows[rows["metric"] != "cwnd_distance"]["published"]) <= shown
    assert {trace.name for trace in view.traces} == set(rows["trace"])
    by_experiment = figures_of_traces(source, load_study(ROOT, "kapadia"))
    homes = rows.drop_duplicates("trace").groupby("experiment")["trace"].agg(set).to_dict()
    traces = {}
    for name, (figure,) in by_experiment.items():
        traces[name] = set(drawn(figure)["trace"].dropna())
    assert traces == homes


def test_the_section_of_traces_names_a_missing_raw_trace(source):
    path = source.data / COMPARISON
    raw = pd.read_csv(path).assign(evidence="raw trace")
    for trace, is_said in (("", False), ("bbr", True)):
        raw.loc[raw["trace"] == trace, "evidence"] = "summary figure"
        write_text(path, raw.to_csv(index=False))
        assert ("raw trace bbr" in section(source)[1].text) == is_said


def test_without_a_comparison_there_is_no_section_of_traces(source):
    study, other = (load_study(ROOT, name) for name in ("kapadia", "saxena"))
    assert trace_section(source, other) is None and not figures_of_traces(source, other)
    for name in (COMPARISON, NEARNESS, WINDOWS):
        (source.data / name).unlink()
    assert trace_section(source, study) is None and not figures_of_traces(source, study)


def windows(sources, samples=220):
    rows = []
    for flow in ("flow1", "flow2", "flow3"):
        for number, source in enumerate(sources):
            key, window = ("s", "reno", flow, source), 10.0 + number
            rows += [(*key, float(second), window) for second in range(samples)]
    names = ["study", "trace", "flow", "source", "time_s", "cwnd_segments"]
    return pd.DataFrame(rows, columns=names)


def test_all_flows_of_a_trace_are_drawn_with_published_and_measured_panels():
    table = windows(["published", "linux", "ns3"])
    (figure,) = trace_figures(table, ["reno"], "ns3", {"reno": 23.3})
    assert [panel["title"] for panel in figure.specification["concat"]] == [
        "Reno, published",
        "Reno, ns3",
    ]
    shown = drawn(figure)
    assert set(shown["source"].dropna()) == {"Published", "ns3"}
    assert set(shown["flow"].dropna()) == {"flow1", "flow2", "flow3"} and len(shown) <= 2000
    # The name of a line has its median window, and the law is drawn in both panels.
    assert {"flow1 10", "flow1 12"} <= set(labels(figure, "words"))
    assert set(shown["equal"].dropna()) == {23.3}
    (without,) = trace_figures(table, ["reno"], "ns3")
    assert "equal" not in drawn(without)


def test_the_line_of_equal_shares_is_path_plus_queue_over_the_number_of_flows(source):
    shares = {}
    for name, (figure,) in figures_of_traces(source, load_study(ROOT, "kapadia")).items():
        shares[name] = set(drawn(figure)["equal"].dropna())
    # 104,857 bytes of queue hold 69.9 packets, for three flows and for two.
    assert all(share == pytest.approx(23.3, abs=0.2) for share in shares["trios"])
    assert all(share == pytest.approx(35.0, abs=0.2) for share in shares["pairs"])


# -- lines, their names and their shares ---------------------------------------------------------

X = axis_x("Rate (Mbit/s)", [1.0, 2.0])


def line_points(**values):
    """Points of lines at 1 and 2, by series."""
    rows = []
    for name, means in values.items():
        for x, mean in enumerate(means, start=1):
            row = {"series": name, "x": float(x), "mean": mean, "value": mean, "low": math.nan}
            rows.append(row)
    return pd.DataFrame(rows).assign(high=math.nan, n=1, printed="", source="")


NOTHING = line_points(any=[1.0]).iloc[:0]


def test_labels_at_line_ends_are_ordered_from_top_to_bottom():
    frame = line_points(low=[1.0, 2.0], high=[3.0, 9.0])
    names = [(end.name, end.is_ours) for end in line_ends(frame, ["low", "high"], NOTHING, X)]
    assert names == [("high", True), ("low", True)]
    # Of several series, published lines are named, too.
    ends = line_ends(frame, ["low", "high"], frame.assign(value=5.0), X)
    assert [end.name for end in ends if not end.is_ours] == ["low,\npublished", "high,\npublished"]


def test_labels_of_lines_that_meet_do_not_overlap():
    frame = line_points(a=[5.0, 1.0], b=[4.0, 1.0], c=[3.0, 1.0])
    ends = line_ends(frame, ["c", "b", "a"], NOTHING, X)
    assert [end.name for end in ends] == ["a", "b", "c"]
    gaps = np.diff([end.y for end in ends])
    assert (gaps >= 13).all() and ends[0].y > 0 and ends[-1].y < 260


@given(st.lists(st.tuples(st.floats(0, 260), st.integers(1, 2)), min_size=1, max_size=6))
def test_spread_labels_keep_their_order_and_stay_in_the_plot(labels):
    labels = sorted(labels)
    middles = spread(labels, 260)
    halves = [13 * lines / 2 for _, lines in labels]
    edges = [(y - half, y + half) for y, half in zip(middles, halves, strict=True)]
    assert edges[0][0] >= -1e-9 and edges[-1][1] <= 260 + 1e-9
    for (_, above), (below, _) in itertools.pairwise(edges):
        assert below >= above - 1e-9


@pytest.mark.parametrize(
    "frame",
    [
        line_points(**{"a name that takes more than two lines of text": [1.0, 2.0]}),
        line_points(**{f"flow {number}": [1.0, 2.0] for number in range(7)}),
        line_points(a=[1.0, 2.0], b=[1.0]),
    ],
)
def test_lines_have_a_legend_if_their_labels_do_not_fit(frame):
    order = list(dict.fromkeys(frame["series"]))
    assert not line_ends(frame, order, NOTHING, X)
    chart = lines_panel(frame, order, X, Display("Rate", "Mbit/s", 1.0), NOTHING)
    layers = chart.to_dict(validate=False)["layer"]
    legends = [layer["encoding"]["color"]["legend"] for layer in layers]
    assert all(legend["orient"] == "top" for legend in legends)


def test_dashes_of_lines_have_a_scale_of_their_own_in_the_legend():
    frame = line_points(a=[1.0, 2.0], b=[2.0, 2.0])
    size, scale = (200, 100), y_scale(frame, NOTHING, X)
    chart = lines_panel(frame, ["a", "b"], X, Display("Rate", "", 1.0), NOTHING, size, 200, scale)
    assert chart.to_dict(validate=False)["resolve"]["scale"]["strokeDash"] == "independent"


def test_rates_over_several_decades_are_drawn_as_shares_of_the_link():
    (figure, *_) = figures("saxena", "bandwidth")
    assert "divided" in figure.title
    assert "layer" in figure.specification and "concat" not in figure.specification
    data = drawn(figure)
    means = data.dropna(subset="mean")
    assert means["mean"].between(0.5, 1.2).all() and len(means) == 27
    # The share is of the link of this point: 100 to 10,000 "KB", read as kbit/s, for two flows.
    assert np.allclose(means["share"], means["x"] / 1000 / 2)
    names = {"NewReno", "NewReno,\npublished", "HighSpeed,\npublished"}
    assert names <= set(labels(figure, "name"))
    assert len(figure.published) == 27


def test_rates_at_a_single_link_rate_keep_their_unit():
    assert all("divided" not in figure.title for figure in figures("saxena", "delay"))


def test_every_pair_of_flows_has_the_same_order_and_shows_its_values():
    figure = figure_named("kapadia", "pairs", "~shares")
    rows = drawn(figure).dropna(subset="words")
    by_pair = rows.groupby("condition")["series"].agg(list).to_dict()
    encodings = [part["encoding"] for part in marks(figure.specification, "encoding")]
    order = next(part["color"]["scale"]["domain"] for part in encodings if "color" in part)
    assert len(by_pair) >= 3 and "Reno" in order
    for names in by_pair.values():
        places = [order.index(name) for name in names]
        assert len(names) == 2 and places == sorted(places)
    published = rows.dropna(subset="value")
    assert len(published) and published["words"].str.contains(", published ").all()


# -- tables with the same rows -------------------------------------------------------------------


def test_tables_with_the_same_rows_share_panels_and_draw_the_least_possible_delay():
    figure = figure_named("nishitha", "homogeneous", "delay")
    panels = figure.specification["concat"]
    factors = load_study(ROOT, "nishitha").experiment("homogeneous").factors
    (environments,) = [factor.levels for factor in factors if factor.id == "environment"]
    assert [panel["title"] for panel in panels] == [level.label for level in environments]
    data = drawn(figure)
    assert set(data["label"]) == {"Reno", "Vegas", "SACK", "Tahoe", "New Reno"}
    # 50 ms of the bottleneck, and 10 or 1 ms on either side.
    assert set(data["floor"].round(6)) == {70.0, 61.0, 52.0}
    assert (data["published"] < data["floor"]).sum() == 4
    assert "4 of 20" in figure.description
    assert FLOOR in json.dumps(figure.specification)
    assert "floor" not in drawn(figure_named("nishitha", "homogeneous", "throughput"))


def test_distinct_words_are_those_that_titles_do_not_share():
    assert distinct_words(["Rates of Reno", "Rates of New Reno"]) == ["", "New"]
    assert distinct_words(["Rates, A", "Rates, B"]) == ["A", "B"]
    assert distinct_words(["Same", "Same"]) == ["", ""]


def test_the_legend_of_the_least_possible_delay_uses_the_opacity_channel():
    figure = figure_named("nishitha", "homogeneous", "delay")
    encodings = [part["encoding"] for part in marks(figure.specification, "encoding")]
    channels = set()
    for encoding in encodings:
        channels |= {name for name, part in encoding.items() if "floor_name" in str(part)}
    # Vega places texts of a legend of widths on their symbols.
    assert channels == {"opacity"}


# -- charts and findings draw what is collected --------------------------------------------------

PEAK = "queue_peak_packets"


def sweep_of_type(world, kind):
    (experiment,) = study_document()["experiments"]
    study = world.study(experiments=[experiment | {"type": kind}])
    sample = {"time_s": 1.0, "queue_packets": 3.0}
    return study, world.results(study, series=lambda **_: [sample])


def test_metrics_that_an_experiment_type_draws_are_collected(world, monkeypatch):
    study, results = sweep_of_type(world, "cbr_sweep")
    assert PEAK not in {wanted.metric for wanted in wanted_quantities(study)}
    monkeypatch.setitem(DRAWN, "cbr_sweep", (PEAK,))
    assert PEAK in {wanted.metric for wanted in wanted_quantities(study)}
    assert [figure.id for figure in figures_of(results, pd.DataFrame(), study, "sweep")]


def test_a_chart_of_a_metric_that_is_not_collected_says_where_to_declare_it(world):
    study, results = sweep_of_type(world, "cbr_sweep")
    collected = wanted_quantities(study)
    charts = ExperimentCharts(results, study.experiment("sweep"), collected=collected)
    with pytest.raises(InputError, match=r"DRAWN\['cbr_sweep'\]"):
        list(charts._of_metrics([PEAK]))


def test_a_missing_quantity_says_which_documents_name_quantities():
    results, *_ = study_parts("nishitha")
    wanted = Quantity(experiment="homogeneous", metric="rise_curvature")
    with pytest.raises(InputError, match="rise_curvature"):
        quantity(results, wanted)


def test_quantities_of_findings_are_collected_under_each_setup(world):
    def statement(metric):
        asked = {"experiment": "sweep", "metric": metric}
        test = {"kind": "value", "of": asked, "expect": {"at_least": 0}}
        return {"text": "{number} segments", "facts": {"number": {"ours": test}}}

    textbook = statement("cwnd_minimum_segments")
    finding = Finding.model_validate(statement("cwnd_peak_segments") | {"textbook": textbook})
    study = world.study()
    more = {wanted.metric for wanted in wanted_quantities(study, [finding])}
    more -= {wanted.metric for wanted in wanted_quantities(study)}
    assert more == {"cwnd_peak_segments", "cwnd_minimum_segments"}
