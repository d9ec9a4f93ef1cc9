"""Charts of a quantity against a factor: one line a variant, means with 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from replication.chart_data import (
    Display,
    PublishedValue,
    axis_factor,
    display_factor,
    display_metric,
    estimates,
    flow_ids,
    label_points,
    series_order,
)
from replication.chart_figure import (
    INK,
    PUBLISHED,
    PUBLISHED_MARK,
    WIDTH,
    Drawing,
    Figure,
    colours,
    dashes,
    legend_filter,
    make_figure,
    number,
    symbols,
)
from replication.results import Results
from replication.study import Experiment

HEIGHT = 260


def factor_figures(
    results: Results,
    experiment: Experiment,
    metrics: Sequence[str],
    published: Sequence[PublishedValue] = (),
) -> list[Figure]:
    """Return one figure a metric: the metric against the experiment's numeric factor."""
    figures = []
    for metric in metrics:
        frame = estimates(results, experiment, metric)
        own = [value for value in published if value.metric == metric]
        if not frame.empty:
            figures.append(_factor_figure(experiment, metric, frame, own))
    return figures


def _factor_figure(
    experiment: Experiment, metric: str, frame: pd.DataFrame, published: list[PublishedValue]
) -> Figure:
    axis = axis_factor(experiment)
    display = display_metric(metric)
    if axis is None:
        frame = frame.assign(x=frame["series"])
        x_title, x_type = " and ".join(f.label for f in experiment.factors), "nominal"
    else:
        x_title, x_type = display_factor(axis).title, "quantitative"
    order = series_order(frame, experiment, axis)
    marks = _published_frame(experiment, published)
    chart = line_chart(frame, order, alt.X("x", type=x_type, title=x_title), display, metric, marks)
    title = f"{experiment.title}: {display.label.lower()}"
    words = describe_lines(frame, order, x_title, display)
    if len(marks):
        words += f" {len(marks)} published values are drawn as hollow diamonds."
    data = frame.drop(columns=[c for c in ("point",) if c in frame])
    return make_figure([experiment.id, metric], title, chart, words, data)


def line_chart(
    frame: pd.DataFrame,
    order: Sequence[str],
    x: alt.X,
    display: Display,
    name: str,
    published: pd.DataFrame | None = None,
    height: int = HEIGHT,
    width: int = WIDTH,
) -> Drawing:
    """Layer lines, symbols, intervals and published diamonds of one quantity.

    Parameters
    ----------
    frame
        engine, series, x, mean, low, high, n.
    order
        Labels of the series in their fixed order.
    x
        Encoding of the horizontal axis.
    display
        What is on the vertical axis.
    name
        A word that is unique within a page; names the selections.
    published
        series, x, value, source; may be empty.
    """
    picked, opacity = legend_filter("series", f"series {name}")
    y_axis = alt.Y("mean:Q", title=display.title, scale=alt.Scale(zero=True))
    engines = sorted(frame["engine"].unique())
    base = alt.Chart(frame[[*_used(frame)]]).encode(x=x, opacity=opacity)
    colour = colours("series", order)
    lines = base.mark_line(strokeWidth=1.8).encode(y=y_axis, color=colour)
    shape: Any = symbols("series", order)
    if len(engines) > 1:
        lines = lines.encode(strokeDash=dashes("engine", engines, "Engine"), detail="engine:N")
    else:
        lines = lines.encode(strokeDash=dashes("series", order))
    tooltip = [
        alt.Tooltip("series:N", title="Series"),
        alt.Tooltip("engine:N", title="Engine"),
        alt.Tooltip("x", title=str(x.to_dict().get("title", "x")), format=_format(x)),
        alt.Tooltip("mean:Q", title=f"Mean ({display.unit})", format=".4g"),
        alt.Tooltip("low:Q", title="95 % interval from", format=".4g"),
        alt.Tooltip("high:Q", title="to", format=".4g"),
        alt.Tooltip("n:Q", title="Replicates"),
    ]
    points = base.mark_point(filled=True, size=55).encode(
        y=y_axis, color=colour, shape=shape, tooltip=tooltip
    )
    layers: list[Drawing] = []
    if frame["low"].notna().any():
        layers.append(
            base.transform_filter("isValid(datum.low)")
            .mark_errorbar(ticks=True, thickness=1.2)
            .encode(y=alt.Y("low:Q", title=display.title), y2="high:Q", color=colour)
        )
    layers += [lines, points.add_params(picked)]
    if published is not None and len(published):
        layers.append(published_layer(published, x, display))
    return alt.layer(*layers).properties(width=width, height=height)


def published_layer(published: pd.DataFrame, x: alt.X, display: Display) -> Drawing:
    """Return the layer of published values, with a legend entry of its own."""
    return (
        alt.Chart(published.assign(kind=PUBLISHED))
        .mark_point(**PUBLISHED_MARK)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=display.title),
            fill=alt.Fill(
                "kind:N",
                scale=alt.Scale(domain=[PUBLISHED], range=["transparent"]),
                legend=alt.Legend(
                    title=None, orient="top", symbolType="diamond", symbolStrokeColor=INK
                ),
            ),
            tooltip=[
                alt.Tooltip("source:N", title="Published in"),
                alt.Tooltip("series:N", title="Series"),
                alt.Tooltip("value:Q", title=f"Published ({display.unit})", format=".6g"),
            ],
        )
    )


def _published_frame(experiment: Experiment, published: list[PublishedValue]) -> pd.DataFrame:
    """Return series, x, value, source; empty where a value covers more than one point."""
    axis = axis_factor(experiment)
    rows = []
    for value in published:
        keys = {factor: keys[0] for factor, keys in value.levels.items() if len(keys) == 1}
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
    kinds = dict.fromkeys((v.metric, str(v.flows), v.aggregate) for v in published)
    figures = []
    for metric, flows, how in kinds:
        own = [
            v for v in published if (v.metric, str(v.flows), v.aggregate) == (metric, flows, how)
        ]
        frame = estimates(results, experiment, metric, own[0].flows, how)
        marks = _published_frame(experiment, own)
        if frame.empty or axis is None or marks.empty:
            continue
        x = alt.X("x:Q", title=display_factor(axis).title, scale=_scale(marks["x"]))
        figures.append(_published_figure(experiment, (metric, how), frame, marks, x))
    return figures


def _published_figure(
    experiment: Experiment,
    quantity: tuple[str, str],
    frame: pd.DataFrame,
    marks: pd.DataFrame,
    x: alt.X,
) -> Figure:
    metric, how = quantity
    display = display_metric(metric)
    label = display.label if how == "mean" else f"{display.label}, {how} over flows"
    display = Display(label, display.unit, display.factor)
    order = series_order(pd.concat([frame, marks]), experiment, axis_factor(experiment))
    panels = [
        line_chart(
            frame[frame["series"] == name],
            order,
            x,
            display,
            f"{experiment.id} {metric} {name}",
            marks[marks["series"] == name],
            height=200,
            width=230,
        ).properties(title=name)
        for name in order
    ]
    chart = alt.concat(*panels, columns=2).resolve_scale(color="shared", shape="shared", y="shared")
    title = f"{experiment.title}: {label.lower()}"
    words = describe_lines(frame, order, str(x.to_dict()["title"]), display)
    words += f" {len(marks)} published values are drawn as hollow diamonds."
    return make_figure([experiment.id, metric, how], title, chart, words, frame)


def _scale(values: pd.Series) -> alt.Scale:
    low, high = float(values.min()), float(values.max())
    wide = low > 0 and high / low >= 30
    return alt.Scale(type="log") if wide else alt.Scale(zero=False)


def pair_figures(results: Results, experiment: Experiment, metrics: Sequence[str]) -> list[Figure]:
    """Return one figure a metric: both flows against the factor, a panel a pair of variants."""
    axis = axis_factor(experiment)
    flows = flow_ids(results, experiment)
    figures = []
    for metric in metrics:
        parts = [
            estimates(results, experiment, metric, [flow]).assign(pair=lambda f: f["series"])
            for flow in flows
        ]
        parts = [p.assign(series=f"flow {f}") for f, p in zip(flows, parts, strict=True)]
        frame = pd.concat(parts, ignore_index=True)
        if frame.empty or axis is None:
            continue
        figures.append(_pair_figure(experiment, metric, frame, display_factor(axis).title))
    return figures


def _pair_figure(experiment: Experiment, metric: str, frame: pd.DataFrame, x_title: str) -> Figure:
    display = display_metric(metric)
    order = list(dict.fromkeys(frame["series"]))
    panels = [
        line_chart(
            panel,
            order,
            alt.X("x:Q", title=x_title),
            display,
            f"{metric} {index}",
            height=170,
            width=240,
        ).properties(title=str(pair))
        for index, (pair, panel) in enumerate(frame.groupby("pair", sort=False))
    ]
    chart = alt.concat(*panels, columns=2).resolve_scale(color="shared", shape="shared")
    title = f"{experiment.title}: {display.label.lower()} of both flows"
    words = " ".join(
        f"{pair}. {describe_lines(panel, order, x_title, display)}"
        for pair, panel in frame.groupby("pair", sort=False)
    )
    return make_figure([experiment.id, metric], title, chart, words, frame)


def describe_lines(
    frame: pd.DataFrame, order: Sequence[str], x_title: str, display: Display
) -> str:
    """Say what is on the axes and how each series runs from one end to the other."""
    parts = [f"{display.title} against {x_title}."]
    for engine, ours in frame.groupby("engine", sort=True):
        for name in order:
            line = ours[ours["series"] == name]
            if line.empty:
                continue
            first, last = line.iloc[0], line.iloc[-1]
            where = f"{name} on {engine}"
            if len(line) == 1:
                parts.append(f"{where}: {number(first['mean'])} {display.unit}.")
            else:
                parts.append(
                    f"{where}: from {number(first['mean'])} at {_at(first['x'])} to "
                    f"{number(last['mean'])} {display.unit} at {_at(last['x'])}."
                )
    return " ".join(parts)


def _at(x: object) -> str:
    return number(x) if isinstance(x, float) else str(x)


def _format(x: alt.X) -> Any:
    return ".4g" if x.to_dict().get("type") == "quantitative" else alt.Undefined


def _used(frame: pd.DataFrame) -> list[str]:
    return [c for c in ("engine", "series", "x", "mean", "low", "high", "n") if c in frame]
