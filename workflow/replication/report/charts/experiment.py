"""Charts of a study: the figures of each type of experiment, and charts against a factor."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import altair as alt
import pandas as pd

from replication.metrics.results import Results
from replication.report.charts import data
from replication.report.charts import figure as draw
from replication.report.charts.cells import table_figures
from replication.report.charts.data import Display, PublishedValue, axis_factor, proper
from replication.report.charts.figure import Drawing, Figure
from replication.report.charts.time import jain_figures, time_figures
from replication.study.claim_model import Quantity, flows_in_words
from replication.study.published import Table
from replication.study.study import Experiment, Study
from replication.verdicts.wording import flow_in_words

_SWEEP_METRICS = ("throughput_bps", "delay_mean_s", "loss_rate")
_DELAY_METRICS = ("throughput_bps", "rtt_mean_s", "loss_rate")
#: Fewer flows are drawn one by one; Jain's index would say less.
_MANY_FLOWS = 4
#: Most charts of an experiment whose type defines none.
_MOST_CHARTS = 4
#: Width and height of one of several panels.
_PANEL = (200, 165)
#: What an aggregate of several flows or links is called.
_TOTALS = {"sum": "total", "maximum": "largest", "minimum": "smallest"}
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
    used = [one for claim in study.claims for one in claim.quantities()]
    used = [one for one in used if one.experiment == experiment.id]
    used += [value.quantity for value in published]
    figures = list(ExperimentCharts(results, experiment, published, used).of_type())
    # A number that is in a chart already needs no chart of its table.
    drawn = frozenset[tuple[str, str, str]]().union(*(figure.published for figure in figures))
    keys = cells[["table", "row", "column"]].itertuples(index=False) if len(cells) else []
    rest = cells[[tuple(key) not in drawn for key in keys]]
    figures += _cells_figures(rest, study, experiment)
    order = {key: place for place, key in enumerate(value.cell for value in published)}
    last = len(order)
    figures.sort(key=lambda one: min((order.get(key, last) for key in one.published), default=last))
    return draw.with_prefix(figures, study.id)


@dataclass
class ExperimentCharts:
    """Charts of an experiment, with its published values and the quantities that are used of it."""

    results: Results
    experiment: Experiment
    published: Sequence[PublishedValue] = ()
    used: Sequence[Quantity] = ()

    def __post_init__(self) -> None:
        self.axis = axis_factor(self.experiment)
        names = self.results.runs(self.experiment.id, {})["scenario"].unique()
        flows = [flow for name in names for flow in self.results.scenarios[name]["flows"]]
        tcp = (str(flow["id"]) for flow in flows if flow["kind"] == "tcp")
        #: The TCP flows of the experiment's scenarios.
        self.flows = list(dict.fromkeys(tcp))

    def of_type(self) -> Iterable[Figure]:
        """Return the figures that the type of the experiment defines."""
        match self.experiment.type:
            case "cbr_sweep":
                return self._of_metrics(_SWEEP_METRICS)
            case "pairwise_fairness":
                return self._of_metrics(_SWEEP_METRICS if self.axis else (), self.flows)
            case "queuing":
                return time_figures(self.results, self.experiment)
            case "bdp_jain":
                # The mean of a few flows says nothing about fairness, nor Jain's index.
                is_few = len(self.flows) < _MANY_FLOWS
                found = [] if is_few else jain_figures(self.results, self.experiment)
                each = self.flows if is_few and len(self.flows) > 1 else []
                return [*found, *self._of_metrics(_DELAY_METRICS if self.axis else (), each)]
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
                frame, marks = (
                    f.assign(pair=f["series"], series=f["flow"].map(flow_in_words))
                    for f in (frame, marks)
                )
            panels_by = "pair" if flows else ""
            yield from self._figure([metric], _named(wanted), frame, marks, panels_by)

    def _window(self, metric: str, flows: str) -> tuple[float, float] | None:
        """Return the one window in which a metric of `flows` is used, if there is one."""
        own = [wanted for wanted in self.used if wanted.metric == metric]
        windows = {wanted.window_s for wanted in own}
        covers = any(wanted.flows == "tcp" or wanted.flows == [flows] for wanted in own)
        return windows.pop() if covers and len(windows) == 1 else None

    def of_quantities(self, *, with_tables: bool) -> Iterator[Figure]:
        """Yield charts of what tables print, if wanted, and of what claims use and none prints.

        Published values look the same in every chart, so each series has a panel with its values.
        """
        quantities = [value.quantity for value in self.published]
        printed = _distinct(quantities) if with_tables and self.axis else []
        metrics = {one.metric for one in quantities}
        further = [one for one in _distinct(self.used) if one.metric not in metrics]
        for wanted in [*printed, *further[: max(0, _MOST_CHARTS - len(metrics))]]:
            frame, marks = self._measured_and_published(wanted)
            if len(marks) or wanted not in printed:
                flows = [] if wanted.flows == "tcp" else [flows_in_words(wanted.flows)]
                what, how = [*flows, *(wanted.links or ())], wanted.aggregate
                # The index is in its label.
                named = ["all flows" if one == "all" else one for one in what]
                totals = [] if how in ("mean", "jain") else [_TOTALS.get(how, how)]
                display = _named(wanted, *named, *totals)
                parts = [wanted.metric, *what, how, *map(str, wanted.window_s or ())]
                panels_by = "series" if len(marks) else ""
                yield from self._figure(parts, display, frame, marks, panels_by)

    def _measured_and_published(
        self, wanted: Quantity, flows: Sequence[str] = ()
    ) -> list[pd.DataFrame]:
        """Return a quantity at each point and its published values, of each of `flows` if given."""
        parts = []
        for flow in flows or [""]:
            one = wanted.model_copy(update={"flows": [flow]}) if flow else wanted
            found = data.estimates(self.results, self.experiment, one), self._marks(one)
            parts.append([frame.assign(flow=flow) for frame in found])
        return [pd.concat(found, ignore_index=True) for found in zip(*parts, strict=True)]

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
            frame, marks = (one.assign(x=one["series"]) for one in (frame, marks))
        cells, marks = marks["cell"], marks.drop(columns=["cell", "flow"])
        drawn = pd.concat([frame[["series", "x"]], marks[["series", "x"]]])
        order = list(dict.fromkeys(drawn["series"]))
        width = _PANEL[0] if panels_by else draw.WIDTH
        if self.axis is None:
            title = " and ".join(factor.label for factor in self.experiment.factors)
            x = draw.axis_x(draw.lines_of(title, width), names=order)
        else:
            values = sorted({float(value) for value in drawn["x"].dropna()})
            title = data.display_factor(self.axis).title
            x = draw.axis_x(draw.lines_of(title, width), values)
        if panels_by == "series" and len(order) > _MOST_PANELS:
            panels_by = "panel"
            firsts = [one["series"].str.partition(", ")[0] for one in (frame, marks)]
            frame, marks = frame.assign(panel=firsts[0]), marks.assign(panel=firsts[1])
        if panels_by:
            panels, words = [], ""
            names = order if panels_by == "series" else list(frame[panels_by].unique())
            for name in names:
                ours, theirs = (one[one[panels_by] == name] for one in (frame, marks))
                wide = width * min(2, len(names))
                panel = draw.lines_panel(ours, order, x, display, theirs, _PANEL, wide)
                panels.append(panel.properties(title=draw.lines_of(str(name), width)))
                words += f"{name}. {_describe_lines(ours, order, title, display)} "
            chart = alt.concat(*panels, columns=2)
            chart = chart.resolve_scale(color="shared", shape="shared", y="shared")
        else:
            chart = draw.lines_panel(frame, order, x, display, marks)
            words = _describe_lines(frame, order, title, display)
        if len(marks):
            words += f" Published values ({len(marks)}) are hollow diamonds."
        title = f"{self.experiment.title}: {display.words}"
        id = [self.experiment.id, *parts]
        return [draw.make_figure(id, title, chart, words.strip(), cells)]

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


def _distinct(quantities: Iterable[Quantity]) -> list[Quantity]:
    """Return the quantities at all points, each once."""
    found: list[Quantity] = []
    for one in map(_at_all_points, quantities):
        if one not in found:
            found.append(one)
    return found


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
        ours = cells[(cells["table"] == table.id) & (cells["kind"] == "printed")]
        ours = ours[[(homes.get(key) or table.experiment) == experiment.id for key in ours["row"]]]
        if not ours.empty:
            parts.append(ours)
            shown.append(table)
    found = list(table_figures(pd.concat(parts), shown)) if parts else []
    return draw.with_prefix(found, experiment.id)


def _share_chart(frame: pd.DataFrame, marks: pd.DataFrame, display: Display) -> Drawing:
    order = list(dict.fromkeys(frame["series"]))
    x = alt.X("mean:Q", title=display.title, scale=alt.Scale(zero=True))
    axis, lines = draw.wrapped(frame["condition"])
    y = alt.Y("condition:N", title=None, sort=None, axis=axis)
    offset = alt.YOffset("series:N", sort=order)
    base, looks = alt.Chart(frame).encode(y=y, yOffset=offset), draw.look("series", order)
    tooltip = [*draw.tips("N", condition="Pair", series="Flow"), *draw.interval_tips(display.title)]
    bars = base.transform_calculate(zero="0").mark_rule(strokeWidth=1.6)
    points = base.mark_point(filled=True, size=60).encode(x=x, **looks, tooltip=tooltip)
    layers: list[Drawing] = [bars.encode(x=x, x2="zero:Q", color=looks["color"]), points]
    if len(marks):
        theirs = alt.Chart(marks.assign(kind=draw.PUBLISHED)).mark_point(**draw.PUBLISHED_MARK)
        value = alt.X("value:Q", title=display.title)
        layers.append(theirs.encode(x=value, y=y, yOffset=offset, fill=draw.published_legend()))
    height = max(46, 6 + 14 * lines) * frame["condition"].nunique()
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
