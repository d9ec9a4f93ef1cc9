"""Figures of a quantity against a factor, and of competing flows; published values drawn in."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from replication.metrics.results import Results
from replication.report.charts.data import (
    ALGORITHMS,
    MOST_NAMED,
    Display,
    PublishedValue,
    axis_factor,
    display_factor,
    display_metric,
    estimates,
    flow_ids,
    label_points,
    level_label,
    series_order,
)
from replication.report.charts.figure import (
    PUBLISHED,
    PUBLISHED_MARK,
    Drawing,
    Figure,
    Horizontal,
    Panel,
    colours,
    interval_tips,
    make_figure,
    published_legend,
    symbols,
    three_digits,
    tips,
)
from replication.study.claim_model import Quantity
from replication.study.study import Experiment


def factor_figures(
    results: Results,
    experiment: Experiment,
    metrics: Sequence[str],
    published: Sequence[PublishedValue] = (),
) -> list[Figure]:
    """Return one figure a metric: the metric against the experiment's numeric factor."""
    axis = axis_factor(experiment)
    figures = []
    for metric in metrics:
        frame, display = estimates(results, experiment, metric), display_metric(metric)
        if frame.empty:
            continue
        own = [v for v in published if _kind(v) == (metric, "tcp", "mean", ())]
        marks = _published_frame(experiment, own)
        if axis is None:
            frame = frame.assign(x=frame["series"])
        order, x = series_order(frame, experiment, axis), _horizontal(experiment, frame["x"])
        chart = Panel(frame, order, x, display, f"{experiment.id} {metric}", marks).draw()
        title = f"{experiment.title}: {display.label.lower()}"
        words = describe_lines(frame, order, x.title, display)
        if len(marks):
            words += " Published values are hollow diamonds: "
            words += "; ".join(dict.fromkeys(marks["source"])) + "."
        figures.append(make_figure([experiment.id, metric], title, chart, words, frame))
    return figures


def _horizontal(experiment: Experiment, xs: pd.Series) -> Horizontal:
    axis = axis_factor(experiment)
    if axis is None:
        return Horizontal(" and ".join(factor.label for factor in experiment.axes))
    values = tuple(sorted({float(x) for x in xs.dropna()}))
    return Horizontal(display_factor(axis).title, values)


def _kind(value: PublishedValue) -> tuple[str, str, str, tuple[str, ...]]:
    wanted = value.quantity
    return wanted.metric, str(wanted.flows), wanted.aggregate, tuple(wanted.links or ())


def _published_frame(experiment: Experiment, published: list[PublishedValue]) -> pd.DataFrame:
    """Return series, x, value, source; values that cover more than one point are left out."""
    axis = axis_factor(experiment)
    rows = []
    for value in published:
        where = value.quantity.where
        keys = {factor: keys[0] for factor, keys in where.items() if len(keys) == 1}
        if axis is None or axis.id in keys:
            source = f"table {value.table}, row {value.row}, column {value.column}"
            rows.append({**keys, "value": value.value, "source": source})
    if not rows:
        return pd.DataFrame(columns=["series", "x", "value", "source"])
    frame = label_points(pd.DataFrame(rows), experiment, axis)
    if axis is None:
        frame["x"] = frame["series"]
    return frame[["series", "x", "value", "source"]]


def published_figures(
    results: Results, experiment: Experiment, published: Sequence[PublishedValue]
) -> list[Figure]:
    """Return the quantities that the paper prints against the factor, a panel a variant.

    A panel a variant, because published values look alike in all charts: which belongs to which
    line is told by the panel.
    """
    axis = axis_factor(experiment)
    kinds: dict[tuple[str, str, str, tuple[str, ...]], list[PublishedValue]] = {}
    for value in published:
        kinds.setdefault(_kind(value), []).append(value)
    figures = []
    for own in kinds.values():
        wanted = own[0].quantity
        metric, how = wanted.metric, wanted.aggregate
        frame = estimates(results, experiment, metric, wanted.flows, how, wanted.links)
        marks = _published_frame(experiment, own)
        if not frame.empty and axis is not None and not marks.empty:
            figures.append(_published_figure(experiment, wanted, frame, marks))
    return figures


def _published_figure(
    experiment: Experiment, wanted: Quantity, frame: pd.DataFrame, marks: pd.DataFrame
) -> Figure:
    metric, links = wanted.metric, wanted.links or []
    display = display_metric(metric)
    of = [*links, *([] if wanted.aggregate == "mean" else [wanted.aggregate])]
    if of:
        display = Display(", ".join([display.label, *of]), display.unit, display.factor)
    together = pd.concat([frame[["series", "x"]], marks[["series", "x"]]])
    order = series_order(together, experiment, axis_factor(experiment))
    x = _horizontal(experiment, together["x"])
    engines = sorted(frame["engine"].unique())
    panels = []
    for name in order:
        ours, theirs = frame[frame["series"] == name], marks[marks["series"] == name]
        named = f"{experiment.id} {metric} {name}"
        panel = Panel(ours, order, x, display, named, theirs, engines=engines)
        panels.append(panel.draw(165, 165).properties(title=name))
    title = f"{experiment.title}: {display.label.lower()}"
    words = describe_lines(frame, order, x.title, display)
    words += f" {len(marks)} published values are hollow diamonds."
    parts = [experiment.id, metric, *links, wanted.aggregate]
    return make_figure(parts, title, _grid(panels), words, frame)


def _grid(panels: Sequence[Drawing]) -> Drawing:
    chart = alt.concat(*panels, columns=2)
    return chart.resolve_scale(color="shared", shape="shared", y="shared")


def pair_figures(results: Results, experiment: Experiment, metrics: Sequence[str]) -> list[Figure]:
    """Return one figure a metric: both flows against the factor, a panel a pair of variants."""
    if axis_factor(experiment) is None:
        return []
    figures = []
    for metric in metrics:
        parts = []
        for flow in flow_ids(results, experiment):
            part = estimates(results, experiment, metric, [flow])
            parts.append(part.assign(pair=part["series"], series=f"flow {flow}"))
        frame = pd.concat(parts, ignore_index=True)
        if frame.empty:
            continue
        display, order = display_metric(metric), list(dict.fromkeys(frame["series"]))
        x, engines = _horizontal(experiment, frame["x"]), sorted(frame["engine"].unique())
        panels, words = [], []
        for index, (pair, ours) in enumerate(frame.groupby("pair", sort=False)):
            named, name = str(pair), f"{experiment.id} {metric} {index}"
            panel = Panel(ours, order, x, display, name, engines=engines)
            panels.append(panel.draw(240, 170).properties(title=named))
            words.append(f"{named}. {describe_lines(ours, order, x.title, display)}")
        title = f"{experiment.title}: {display.label.lower()} of both flows"
        grid = _grid(panels)
        figures.append(make_figure([experiment.id, metric], title, grid, " ".join(words), frame))
    return figures


def share_figures(
    results: Results, experiment: Experiment, published: Sequence[PublishedValue]
) -> list[Figure]:
    """Return the throughput of each flow where flows of different algorithms compete.

    A row a condition, a panel an engine; none where all flows are alike.
    """
    flows, rates = flow_ids(results, experiment), ("throughput_bps", "goodput_bps")
    printed = [v for v in published if v.quantity.metric in rates and _one_flow(v)]
    metric = printed[0].quantity.metric if printed else rates[0]
    parts = [
        estimates(results, experiment, metric, [flow]).assign(series_label=flow) for flow in flows
    ]
    parts = [part for part in parts if not part.empty]
    if len({part["series"].iloc[0] for part in parts}) < 2:
        return []
    frame = pd.concat(parts, ignore_index=True)
    frame = frame.assign(
        condition=frame["series"], series=frame.pop("series_label").map(_flow_name)
    )
    marks = pd.DataFrame(
        [
            (_where_label(experiment, value), _flow_name(_one_flow(value)), value.value)
            for value in printed
        ],
        columns=["condition", "series", "value"],
    )
    display, order = display_metric(metric), list(dict.fromkeys(frame["series"]))
    engines = frame["engine"].nunique()
    panels = [
        _share_panel(own, marks, order, display, 420 // engines + 90).properties(
            title=f"On {engine}"
        )
        for engine, own in frame.groupby("engine", sort=False)
    ]
    words = f"{display.title} of each flow, a row a pair."
    for row in frame.to_dict("records"):
        words += (
            f" {row['condition']} on {row['engine']}, {row['series']}: {three_digits(row['mean'])}."
        )
    words += " Hollow diamonds are published." if len(marks) else ""
    chart = alt.concat(*panels, columns=2).resolve_scale(color="shared", shape="shared")
    title = f"{experiment.title}: {display.label.lower()} of each flow"
    return [make_figure([experiment.id, "shares"], title, chart, words, frame)]


def _share_panel(
    frame: pd.DataFrame, marks: pd.DataFrame, order: Sequence[str], display: Display, width: int
) -> Drawing:
    x = alt.X("mean:Q", title=display.title, scale=alt.Scale(zero=True))
    y = alt.Y("condition:N", title=None, sort=None, axis=alt.Axis(labelLimit=200))
    offset = alt.YOffset("series:N", sort=list(order))
    base = alt.Chart(frame).encode(y=y, yOffset=offset, color=colours("series", order))
    tooltip = [*tips("N", condition="Pair", series="Flow"), *interval_tips(display.title)]
    bars = base.mark_rule(strokeWidth=1.6).encode(x=x, x2="zero:Q")
    bars = bars.transform_calculate(zero="0")
    points = base.mark_point(filled=True, size=60).encode(
        x=x, shape=symbols("series", order), tooltip=tooltip
    )
    layers: list[Drawing] = [bars, points]
    if len(marks):
        theirs = alt.Chart(marks.assign(kind=PUBLISHED)).mark_point(**PUBLISHED_MARK)
        layers.append(
            theirs.encode(
                x=alt.X("value:Q", title=display.title),
                y=y,
                yOffset=offset,
                fill=published_legend(),
            )
        )
    rows = frame["condition"].nunique()
    return alt.layer(*layers).properties(width=width, height=46 * rows)


def _one_flow(value: PublishedValue) -> str:
    """Return the flow that a published value is of; empty if it is of several."""
    flows = value.quantity.flows
    return flows[0] if isinstance(flows, list) and len(flows) == 1 else ""


def _flow_name(flow: str) -> str:
    return ALGORITHMS.get(flow, flow)


def _where_label(experiment: Experiment, value: PublishedValue) -> str:
    keys = {factor: keys[0] for factor, keys in value.quantity.where.items()}
    return ", ".join(level_label(f, keys[f.id]) for f in experiment.axes if f.id in keys)


def describe_lines(
    frame: pd.DataFrame, order: Sequence[str], x_title: str, display: Display
) -> str:
    """Say what is on the axes and how each series runs from one end to the other."""
    parts = [f"{display.title} against {x_title}."]
    for engine, ours in frame.groupby("engine", sort=True):
        drawn = set(ours["series"])
        present = [name for name in order if name in drawn]
        if len(present) > MOST_NAMED:
            lowest, highest = ours["mean"].min(), ours["mean"].max()
            parts.append(
                f"{len(present)} series on {engine}: {three_digits(lowest)} to "
                f"{three_digits(highest)} {display.unit}."
            )
            continue
        for name in present:
            line = ours[ours["series"] == name].to_dict("records")
            where, first, last = f"{name} on {engine}", line[0], line[-1]
            if len(line) == 1:
                parts.append(f"{where}: {three_digits(first['mean'])} {display.unit}.")
            else:
                parts.append(
                    f"{where}: from {three_digits(first['mean'])} at {_at(first['x'])} to "
                    f"{three_digits(last['mean'])} {display.unit} at {_at(last['x'])}."
                )
    return " ".join(parts)


def _at(x: object) -> str:
    return three_digits(x) if isinstance(x, float) else str(x)
