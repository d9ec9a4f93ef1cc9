"""Charts of a study: the figures of each type of experiment, and charts against a factor."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import altair as alt
import pandas as pd

from replication.metrics.metric_model import (
    DRAWN,
    METRICS,
    check_collected,
    wanted_quantities,
)
from replication.metrics.results import Results
from replication.report.charts import data
from replication.report.charts import figure as draw
from replication.report.charts.cells import table_figures
from replication.report.charts.data import Display, PublishedValue, axis_factor, proper
from replication.report.charts.figure import Drawing, Figure
from replication.report.charts.lines import line_ends, lines_panel, y_scale
from replication.report.charts.time import jain_figures, time_figures
from replication.study.claim_model import Quantity, flows_in_words
from replication.study.published import Table
from replication.study.study import Experiment, Study
from replication.verdicts.audit import DELAYS
from replication.verdicts.bound import stated_points
from replication.verdicts.wording import flow_in_words

#: Fewer flows are drawn one by one; Jain's index would say less.
_MANY_FLOWS = 4
#: Most charts of an experiment whose type defines none.
_MOST_CHARTS = 4
#: Width of a row of panels, and height of one.
_ROW_WIDTH, _PANEL_HEIGHT = 870, 165
#: What an aggregate of several flows or links is called.
_TOTALS = {"sum": "total", "maximum": "largest", "minimum": "smallest"}
#: Published values of so many series are in one plot, each named where its line ends.
_MOST_IN_ONE = 3
#: Values that span such a factor are divided by what they are proportional to.
_DECADES = 30
#: An equal share of a link between so many flows, in words.
_PARTS = {1: "the link's rate", 2: "half the link's rate"}
#: With more series than these, those of one level of the first factor share a panel.
_MOST_PANELS = 8


def figures_of(
    results: Results, cells: pd.DataFrame, study: Study, experiment_id: str
) -> list[Figure]:
    """Return the figures of one experiment, those with published values first.

    `cells` are of one engine.
    """
    experiment, cells = study.experiment(experiment_id), data.as_in_file(cells, study)
    published = data.published_values(experiment, cells)
    used: list[Quantity] = []
    for claim in study.claims:
        used += [wanted for wanted in claim.quantities() if wanted.experiment == experiment.id]
    used += [value.quantity for value in published]
    collected = wanted_quantities(study)
    charts = ExperimentCharts(results, experiment, published, used, collected)
    figures = list(charts.of_type())
    # A number that is in a chart already needs no chart of its table.
    drawn = frozenset[tuple[str, str, str]]().union(*(figure.published for figure in figures))
    keys = cells[["table", "row", "column"]].itertuples(index=False) if len(cells) else []
    rest = cells[[tuple(key) not in drawn for key in keys]]
    figures += _cells_figures(rest, study, experiment)
    order = {value.cell: place for place, value in enumerate(published)}
    last = len(order)

    def first_value(figure: Figure) -> int:
        return min((order.get(key, last) for key in figure.published), default=last)

    figures.sort(key=first_value)
    return draw.with_prefix(figures, study.id)


class _EqualShares(NamedTuple):
    """Each flow's equal share of the monitored link (bit/s) by the value of the axis, in words."""

    by_x: dict[float, float]
    words: str

    def divide(
        self, display: Display, frame: pd.DataFrame, marks: pd.DataFrame
    ) -> tuple[Display, pd.DataFrame, pd.DataFrame]:
        """Return measured and published values divided by the share, which is in a column.

        Published values keep the words in which they are printed.
        """
        frame, marks = (
            part.assign(share=part["x"].map(self.by_x) * display.factor) for part in (frame, marks)
        )
        for part, columns in ((frame, ["mean", "low", "high"]), (marks, ["value"])):
            part[columns] = part[columns].div(part["share"], axis=0)
        marks["printed"] = marks["printed"] + f" {display.unit}"
        label = f"{display.label}, divided by {self.words}"
        return replace(display, label=label, unit="", factor=1.0), frame, marks


@dataclass
class ExperimentCharts:
    """Charts of an experiment, with its published values and the quantities that are used of it.

    Drawing a quantity that is not `collected` is an error, unless that is unknown.
    """

    results: Results
    experiment: Experiment
    published: Sequence[PublishedValue] = ()
    used: Sequence[Quantity] = ()
    collected: Sequence[Quantity] | None = None

    def __post_init__(self) -> None:
        self.axis = axis_factor(self.experiment)
        names = self.results.runs(self.experiment.id, {})["scenario"].unique()
        tcp: list[str] = []
        for name in names:
            flows = self.results.scenarios[name]["flows"]
            tcp += [str(flow["id"]) for flow in flows if flow["kind"] == "tcp"]
        #: The TCP flows of the experiment's scenarios.
        self.flows = list(dict.fromkeys(tcp))

    def of_type(self) -> Iterable[Figure]:
        """Return the figures that the type of the experiment defines."""
        metrics = DRAWN.get(self.experiment.type, ())
        match self.experiment.type:
            case "cbr_sweep":
                return self._of_metrics(metrics)
            case "pairwise_fairness":
                return self._of_metrics(metrics if self.axis else (), self.flows)
            case "queuing":
                return time_figures(self.results, self.experiment)
            case "bdp_jain":
                # The mean of a few flows says nothing about fairness, nor Jain's index.
                is_few = len(self.flows) < _MANY_FLOWS
                of_fairness = [] if is_few else jain_figures(self.results, self.experiment)
                each = self.flows if is_few and len(self.flows) > 1 else []
                return [*of_fairness, *self._of_metrics(metrics if self.axis else (), each)]
            case "cwnd_traces":
                return self._shares()
            case kind:
                return self.of_quantities(with_tables=kind == "throughput_tables")

    def _of_metrics(self, metrics: Sequence[str], flows: Sequence[str] = ()) -> Iterator[Figure]:
        """Yield one figure for each metric against the experiment's factor.

        The mean over TCP flows is drawn, or each of `flows` with a panel for each series. If all
        claims and tables use a metric in one window of the run, the chart shows that window.
        """
        for metric in metrics:
            windows = {self._window(metric, flow) for flow in flows or ["tcp"]}
            window_s = windows.pop() if len(windows) == 1 else None
            wanted = Quantity(experiment=self.experiment.id, metric=metric, window_s=window_s)
            frame, marks = self._measured_and_published(wanted, flows)
            if flows:
                frame, marks = _by_pair(frame), _by_pair(marks)
            panels_by = "pair" if flows else ""
            yield from self._figure([metric], _named(wanted), frame, marks, panels_by)

    def _window(self, metric: str, flows: str) -> tuple[float, float] | None:
        """Return the one window in which a metric of `flows` is used, if there is one."""
        used = [wanted for wanted in self.used if wanted.metric == metric]
        windows = {wanted.window_s for wanted in used}
        covers = any(wanted.flows == "tcp" or wanted.flows == [flows] for wanted in used)
        return windows.pop() if covers and len(windows) == 1 else None

    def of_quantities(self, *, with_tables: bool) -> Iterator[Figure]:
        """Yield charts of what tables print, if wanted, and of what claims use and none prints.

        Of a few series all are in one plot, of more each has a panel with its published values.
        """
        quantities = [value.quantity for value in self.published]
        printed = _distinct(quantities) if with_tables and self.axis else []
        metrics = {quantity.metric for quantity in quantities}
        further = [used for used in _distinct(self.used) if used.metric not in metrics]
        for wanted in [*printed, *further[: max(0, _MOST_CHARTS - len(metrics))]]:
            frame, marks = self._measured_and_published(wanted)
            if len(marks) or wanted not in printed:
                flows = [] if wanted.flows == "tcp" else [flows_in_words(wanted.flows)]
                what, how = flows, wanted.aggregate
                # The index is in its label.
                named = ["all flows" if subject == "all" else subject for subject in what]
                totals = [] if how in ("mean", "jain") else [_TOTALS.get(how, how)]
                display = _named(wanted, *named, *totals)
                parts = [wanted.metric, *what, how, *map(str, wanted.window_s or ())]
                if shares := self._equal_shares(wanted, [*frame["mean"], *marks["value"]]):
                    display, frame, marks = shares.divide(display, frame, marks)
                panels_by = "series" if len(marks) else ""
                yield from self._figure(parts, display, frame, marks, panels_by)

    def _equal_shares(self, wanted: Quantity, values: Sequence[float]) -> _EqualShares | None:
        """Return each flow's equal share of the monitored link, if the axis is the link's rate.

        Rates over decades would all lie on one diagonal, and differences between them be invisible.
        """
        values = [value for value in values if value > 0]
        is_rate = METRICS[wanted.metric].unit == "bit/s" and wanted.aggregate != "jain"
        is_wide = bool(values) and max(values) >= _DECADES * min(values)
        if self.axis is None or not is_rate or not is_wide:
            return None
        axis = self.axis
        to_x = data.display_factor(axis).factor
        numbers = {level.key: to_x * (level.value or 0.0) for level in axis.levels}
        runs = self.results.runs(self.experiment.id, {})
        rates, counts = dict[float, float](), dict[float, int]()
        for run in runs[runs["supported"]].to_dict("records"):
            scenario = self.results.scenarios[run["scenario"]]
            monitored = {monitor["link"] for monitor in scenario["monitors"]}
            links = [link for link in scenario["links"] if link["id"] in monitored]
            rate = min((float(link["rate_bps"]) for link in links), default=0.0)
            flows = sum(flow["kind"] == "tcp" for flow in scenario["flows"])
            count, x = 1 if wanted.aggregate == "sum" else flows, numbers[run[axis.id]]
            if (rates.setdefault(x, rate), counts.setdefault(x, count)) != (rate, count):
                return None
        if max(rates.values()) < _DECADES * min(rates.values()) or 0 in rates.values():
            return None
        words, several = "an equal share of the link's rate", set(counts.values())
        if len(several) == 1:
            count = several.pop()
            words = _PARTS.get(count, f"1/{count} of the link's rate")
        return _EqualShares({x: rate / counts[x] for x, rate in rates.items()}, words)

    def _measured_and_published(
        self, wanted: Quantity, flows: Sequence[str] = ()
    ) -> list[pd.DataFrame]:
        """Return a quantity at each point and its published values, of each of `flows` if given."""
        if self.collected is not None:
            check_collected(self.experiment, wanted, self.collected)
        measured, published = [], []
        for flow in flows or [""]:
            of_flow = wanted.model_copy(update={"flows": [flow]}) if flow else wanted
            estimates = data.estimates(self.results, self.experiment, of_flow)
            measured.append(estimates.assign(flow=flow))
            published.append(self._marks(of_flow).assign(flow=flow))
        return [pd.concat(parts, ignore_index=True) for parts in (measured, published)]

    def _marks(self, wanted: Quantity) -> pd.DataFrame:
        """Return series, x, value, source and cell of published values of a single point."""
        rows = []
        for cell, value, quantity, printed in self.published:
            keys = {factor: keys[0] for factor, keys in quantity.where.items() if len(keys) == 1}
            is_point = self.axis is None or self.axis.id in keys
            if is_point and _at_all_points(quantity) == wanted:
                source = "table {}, row {}, column {}".format(*cell)
                told = {"printed": printed, "source": source, "cell": cell}
                rows.append({**keys, "value": value, **told})
        frame = data.label_points(pd.DataFrame(rows), self.experiment, self.axis)
        return frame.reindex(columns=["series", "x", "value", "printed", "source", "cell"])

    def _figure(
        self,
        parts: Sequence[str],
        display: Display,
        frame: pd.DataFrame,
        marks: pd.DataFrame,
        panels_by: str = "",
    ) -> list[Figure]:
        """Return the figure of lines against the factor; none where nothing was measured.

        `parts` are the end of its id; `panels_by` names the column that makes panels.
        """
        if frame.empty:
            return []
        if self.axis is None:
            frame, marks = (part.assign(x=part["series"]) for part in (frame, marks))
        cells, marks = marks["cell"], marks.drop(columns=["cell", "flow"])
        drawn = pd.concat([frame[["series", "x"]], marks[["series", "x"]]])
        order = list(dict.fromkeys(drawn["series"]))
        x_title = " and ".join(factor.label for factor in self.experiment.factors)
        values: list[float] = []
        if self.axis is not None:
            values = sorted({float(value) for value in drawn["x"].dropna()})
            x_title = data.display_factor(self.axis).title
        x = draw.axis_x(draw.lines_of(x_title, draw.WIDTH), values, order)
        if panels_by == "series":
            if self._fit_one_plot(frame, order, marks, x):
                panels_by = ""
            elif len(order) > _MOST_PANELS:
                panels_by = "panel"
                firsts = [part["series"].str.partition(", ")[0] for part in (frame, marks)]
                frame, marks = frame.assign(panel=firsts[0]), marks.assign(panel=firsts[1])
        if panels_by:
            panels, words = [], ""
            names = order if panels_by == "series" else list(frame[panels_by].unique())
            width = _ROW_WIDTH // draw.balanced(len(names), draw.MOST_COLUMNS)
            size = (width, _PANEL_HEIGHT)
            scale = y_scale(frame, marks, x)
            for name in names:
                means = frame[frame[panels_by] == name]
                printed = marks[marks[panels_by] == name]
                panel = lines_panel(means, order, x, display, printed, size, _ROW_WIDTH, scale)
                panels.append(panel.properties(title=draw.lines_of(str(name), draw.PANEL_TITLE)))
                words += f"{name}. {_describe_lines(means, order, x_title, display)} "
            chart = draw.panels_of(panels, display.title, x_title)
        else:
            chart = lines_panel(frame, order, x, display, marks)
            words = _describe_lines(frame, order, x_title, display)
        if len(marks):
            words += f" Published values ({len(marks)}) are hollow diamonds."
        title = f"{self.experiment.title}: {display.words}"
        id = [self.experiment.id, *parts]
        return [draw.make_figure(id, title, chart, words.strip(), cells)]

    def _fit_one_plot(
        self, frame: pd.DataFrame, order: Sequence[str], marks: pd.DataFrame, x: alt.X
    ) -> bool:
        """Return whether the published values of several series can be told apart in one plot."""
        return len(order) <= _MOST_IN_ONE and bool(line_ends(frame, order, marks, x))

    def _shares(self) -> list[Figure]:
        """Return the throughput of each flow by condition; none if all flows are alike."""
        printed = {value.quantity.metric for value in self.published}
        metric = "goodput_bps" if "goodput_bps" in printed else "throughput_bps"
        wanted = Quantity(experiment=self.experiment.id, metric=metric)
        both = self._measured_and_published(wanted, self.flows)
        frame, marks = (f.assign(condition=f["series"], series=f["flow"].map(proper)) for f in both)
        if frame.groupby("flow")["condition"].first().nunique() < 2:
            return []
        display = data.display_of(wanted)
        chart = _share_chart(frame, marks[["condition", "series", "value"]], display)
        words = f"{display.title} of each flow, one row for each pair."
        for row in frame.to_dict("records"):
            words += f" {row['condition']}, {row['series']}: {draw.three_digits(row['mean'])}."
        words += " Hollow diamonds are published." if len(marks) else ""
        title = f"{self.experiment.title}: {display.words} of each flow"
        id = [self.experiment.id, "shares"]
        return [draw.make_figure(id, title, chart, words, marks["cell"])]


def _by_pair(points: pd.DataFrame) -> pd.DataFrame:
    """Return points of flows with the flow as series, in a panel for each series of before."""
    return points.assign(pair=points["series"], series=points["flow"].map(flow_in_words))


def _distinct(quantities: Iterable[Quantity]) -> list[Quantity]:
    """Return the quantities at all points, each once."""
    distinct: list[Quantity] = []
    for quantity in quantities:
        everywhere = _at_all_points(quantity)
        if everywhere not in distinct:
            distinct.append(everywhere)
    return distinct


def _at_all_points(quantity: Quantity) -> Quantity:
    return quantity.model_copy(update={"where": {}})


def _named(wanted: Quantity, *parts: str) -> Display:
    display = data.display_of(wanted)
    when = ["{:g} to {:g} s".format(*wanted.window_s)] if wanted.window_s else []
    return replace(display, label=", ".join([display.label, *parts, *when]))


def _cells_figures(cells: pd.DataFrame, study: Study, experiment: Experiment) -> list[Figure]:
    """Return charts of printed tables."""
    shown: list[Table] = []
    parts = []
    for table in study.tables if len(cells) else []:
        homes = {key: row.experiment for key, row in (table.rows or {}).items()}
        # Windows of traces have charts of their own.
        printed = cells[(cells["table"] == table.id) & (cells["kind"] == "printed")]
        homes_of_rows = [homes.get(key) or table.experiment for key in printed["row"]]
        printed = printed[[home == experiment.id for home in homes_of_rows]]
        if not printed.empty:
            parts.append(printed)
            shown.append(table)
    if not parts:
        return []
    numbers = pd.concat(parts)
    floors = [_least_delay_s(study, row) for row in numbers["quantities"]]
    if not all(map(math.isnan, floors)):
        numbers = numbers.assign(floor=floors)
    return draw.with_prefix(list(table_figures(numbers, shown)), experiment.id)


def _least_delay_s(study: Study, quantities: Sequence[str]) -> float:
    """Return the propagation delay below which no delay of a number can be; NaN for no delay."""
    if not len(quantities):
        return math.nan
    wanted = Quantity.model_validate_json(quantities[0])
    if wanted.metric not in DELAYS:
        return math.nan
    delays_s = []
    for point in stated_points(study, wanted.experiment, wanted.where):
        for flow in point.flows(wanted.flows):
            delays_s.append(point.delay_s(flow, strict=True))
    return min(delays_s, default=math.nan)


def _share_chart(frame: pd.DataFrame, marks: pd.DataFrame, display: Display) -> Drawing:
    """Return a chart with a row for each flow of each condition, flows always in one order.

    Each row begins with the flow's name and values.
    """
    order = list(dict.fromkeys(frame["series"]))
    conditions = list(dict.fromkeys(frame["condition"]))
    axis, lines = draw.wrapped(conditions)
    rows = frame.merge(marks, how="left", on=["condition", "series"])
    rows = rows.assign(place=rows["series"].map(order.index)).sort_values("place", kind="stable")
    rows["place"] = rows.groupby("condition").cumcount()
    rows["words"] = rows["series"] + " " + rows["mean"].map(draw.three_digits)
    is_published = rows["value"].notna()
    said = rows.loc[is_published, "value"].map(draw.three_digits)
    rows.loc[is_published, "words"] += f", {draw.PUBLISHED.lower()} " + said
    x = alt.X("mean:Q", title=display.title, scale=alt.Scale(zero=True))
    y = alt.Y("condition:N", title=None, sort=conditions, axis=axis)
    looks = draw.look("series", order)
    looks = {key: draw.changed(channel, legend=None) for key, channel in looks.items()}
    base = alt.Chart(rows).encode(y=y, yOffset=alt.YOffset("place:O"))
    tooltip = [*draw.tips("N", condition="Pair", series="Flow"), *draw.interval_tips(display.title)]
    bars = base.transform_calculate(zero="0").mark_rule(strokeWidth=1.6)
    points = base.mark_point(filled=True, size=60)
    names = base.mark_text(align="left", baseline="bottom", dy=-6, fontSize=11)
    layers: list[Drawing] = [
        bars.encode(x=x, x2="zero:Q", color=looks["color"]),
        points.encode(x=x, **looks, tooltip=tooltip),
        names.encode(x=alt.value(4), text="words:N"),
    ]
    if is_published.any():
        printed = base.transform_filter("isValid(datum.value)")
        printed = printed.transform_calculate(kind=f"'{draw.PUBLISHED}'")
        diamonds = printed.mark_point(**draw.PUBLISHED_MARK)
        value = alt.X("value:Q", title=display.title)
        layers.append(diamonds.encode(x=value, fill=draw.published_legend()))
    most = int(rows["place"].max()) + 1
    height = max(33 * most, 6 + 14 * lines) * len(conditions)
    return alt.layer(*layers).properties(width=draw.WIDTH, height=height)


def _describe_lines(
    frame: pd.DataFrame, order: Sequence[str], x_title: str, display: Display
) -> str:
    """Return the axes, and the first and last value of each series, in words."""
    lines = [(name, frame.loc[frame["series"] == name, "mean"]) for name in order]
    lines = [(name, means) for name, means in lines if len(means)]
    if len(lines) > data.MOST_NAMED:
        lines = [(f"{len(lines)} series", frame["mean"].sort_values())]
    words = f"{display.title} against {x_title}."
    for name, means in lines:
        ends = dict.fromkeys(map(draw.three_digits, (means.iloc[0], means.iloc[-1])))
        words += f" {name}: {' to '.join(ends)} {display.unit}".rstrip() + "."
    return words
