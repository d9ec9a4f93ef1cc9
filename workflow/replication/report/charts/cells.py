"""Charts of published cells: beside what was measured, all in one scatter, engine by engine."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from replication.metrics.metric_model import display_unit
from replication.metrics.trace_folder import TABLE_PREFIX
from replication.report.charts.figure import (
    INK,
    PUBLISHED,
    PUBLISHED_MARK,
    VERDICT_COLOURS,
    VERDICT_SYMBOLS,
    Drawing,
    Figure,
    colours,
    legend_filter,
    legend_of,
    make_figure,
    published_legend,
    symbols,
    three_digits,
    tips,
)
from replication.study.storage.table import CELL_COLUMNS
from replication.study.table_model import Table
from replication.study.verdict import Verdict
from replication.verdicts.verdict_table import Judged
from replication.verdicts.wording import table_name

_VALUES = ["published", "reproduced_mean", "reproduced_low", "reproduced_high"]
_EXPLAINED = "explained"
_UNDER = "Under the best explanation"
#: Kinds of published numbers.
_KINDS = {"printed": "printed numbers", "trace": "trace statistics"}
_COLUMNS = ["study", "kind", "table", "row", "column", "row_label", "column_label", "engine"]
_COLUMNS += ["display_unit", *_VALUES, _EXPLAINED, "accepted_low", "accepted_high"]
_COLUMNS += ["n", "relative_deviation", "verdict"]


def cells_figure(cells: pd.DataFrame, *tables: Table) -> Figure:
    """Draw published tables of one shape: each published value beside the measured ones.

    A grey bar is the tolerance that was set beforehand: means inside it are `reproduced`. A column
    `explained` is drawn as a second series. Of several tables each row's label begins with its
    table; rows of others are left out.
    """
    named = {table.id: table for table in tables}
    frame = _of_running_engines(_display(cells[cells["table"].isin(named)]))
    if len(named) > 1:
        heads = frame["table"].map(lambda name: name.removeprefix(TABLE_PREFIX))
        frame["row_label"] = heads + ": " + frame["row_label"]
    frame = _with_band(frame)
    rows = list(dict.fromkeys(frame["row_label"]))
    panels = [
        _cell_panel(part, rows, str(label), frame["verdict"])
        for label, part in frame.groupby("column_label", sort=False)
    ]
    alike = frame["display_unit"].nunique() == 1
    chart = (
        alt.concat(*panels, columns=3).resolve_scale(x="shared" if alike else "independent")
        if panels
        else empty_chart()
    )
    title = _title(tables)
    return make_figure(["cells", *named], title, chart, _describe_cells(frame, title), _tidy(frame))


def _title(tables: Sequence[Table]) -> str:
    """Return what tables are together: the name and title of one, the first and last of more."""
    first, last = tables[0], tables[-1]
    name = table_name(first.id, first.title)
    if len(tables) == 1:
        return name if name == first.title else f"{name}: {first.title}"
    if name == first.title:
        return f"{len(tables)} published traces: every number beside ours"
    return f"{name} to {last.id}: every number beside ours"


def _cell_panel(frame: pd.DataFrame, rows: list[str], column: str, present: pd.Series) -> Drawing:
    unit = str(frame["display_unit"].iloc[0])
    wide = _is_wide(frame)
    scale = alt.Scale(type="log") if wide else alt.Scale(zero=False, nice=True)
    title = f"{column} ({unit})" + (", logarithmic" if wide else "")
    base = alt.Chart(_tidy(frame)).encode(
        y=alt.Y("row_label:N", sort=rows, title=None, axis=alt.Axis(labelLimit=230))
    )
    engines = frame["engine"].nunique()
    offset: Any = alt.YOffset("engine:N") if engines > 1 else alt.Undefined
    picked, opacity = legend_filter("verdict", frame["table"].iloc[0], column)
    ours = base.encode(yOffset=offset, color=verdict_colours(present), opacity=opacity)
    spread = ours.transform_filter("isValid(datum.reproduced_low)").mark_rule(strokeWidth=2)
    means = ours.transform_filter("isValid(datum.reproduced_mean)").mark_point(
        filled=True, size=45, strokeWidth=1.6
    )
    theirs = base.transform_calculate(kind=f"'{PUBLISHED}'").mark_point(**PUBLISHED_MARK)
    band = base.mark_bar(color=INK, opacity=0.13, height={"band": 0.7})

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale)

    layers = [
        band.encode(x=x("accepted_low"), x2="accepted_high:Q"),
        spread.encode(x=x("reproduced_low"), x2="reproduced_high:Q"),
        means.encode(
            x=x("reproduced_mean"),
            shape=verdict_symbols(present),
            stroke=verdict_strokes(present),
            tooltip=_tooltip(unit),
        ).add_params(picked),
        theirs.encode(x=x("published"), fill=published_legend(), tooltip=_tooltip(unit)),
    ]
    if _EXPLAINED in frame and frame[_EXPLAINED].notna().any():
        layers.append(_explained(base.encode(yOffset=offset, x=x(_EXPLAINED)), unit))
    if engines > 1:
        names = ours.transform_filter("isValid(datum.reproduced_mean)").mark_text(
            align="left", dx=6, fontSize=9
        )
        layers.append(names.encode(x=x("reproduced_mean"), text="engine:N"))
    height = max(90, len(rows) * max(20, 12 * engines))
    return alt.layer(*layers).properties(width=190, height=height)


def _explained(base: alt.Chart, unit: str) -> Drawing:
    """Return the layer of what is measured under the best explanation."""
    shown = base.transform_filter(f"isValid(datum.{_EXPLAINED})").transform_calculate(
        series=f"'{_UNDER}'"
    )
    return shown.mark_point(shape="cross", filled=False, stroke=INK, strokeWidth=1.2).encode(
        size=alt.Size(
            "series:N",
            # One size: between the ends of a range of points there would be none.
            scale=alt.Scale(type="ordinal", domain=[_UNDER], range=[55]),
            legend=alt.Legend(title=None, orient="top", symbolType="cross", symbolStrokeColor=INK),
        ),
        tooltip=[*_tooltip(unit), *tips("Q", explained=f"{_UNDER} ({unit})")],
    )


def _of_running_engines(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the engines that have none of the table's numbers, unless none has."""
    ran = frame.loc[frame["reproduced_mean"].notna(), "engine"].unique()
    return frame[frame["engine"].isin(ran)].copy() if len(ran) else frame


def _is_wide(frame: pd.DataFrame) -> bool:
    values = frame[_shown(frame)].to_numpy(dtype=float)
    values = values[~pd.isna(values)]
    return bool(values.size and values.min() > 0 and values.max() / values.min() > 50)


def scatter_figure(cells: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Draw every cell of every study: measured against published, a panel a study and kind.

    Both axes are logarithmic, so that numbers of any unit stand in one panel: each is as far from
    the line as it is off, and the band around the line is what the tolerances leave.
    """
    frame = _with_band(_display(cells))
    frame = frame[frame["reproduced_mean"].notna()]
    kinds = frame["kind"].map(_KINDS)
    frame = frame.assign(panel=frame["study"].map(lambda s: titles.get(s, s)) + ", " + kinds)
    positive = frame[(frame["published"] > 0) & (frame["reproduced_mean"] > 0)]
    panels = [
        _scatter_panel(part, str(panel), positive["verdict"])
        for panel, part in positive.groupby("panel", sort=True)
    ]
    words = "Measured against published values; on the line the two are equal."
    for panel, part in frame.groupby("panel", sort=True):
        middle = float(part["relative_deviation"].abs().median())
        reproduced = int((part["verdict"] == Verdict.REPRODUCED).sum())
        words += (
            f" {panel}: {len(part)} measured, {reproduced} reproduced, median error "
            f"{three_digits(100 * middle)} %."
        )
    chart = alt.concat(*panels, columns=4) if panels else empty_chart()
    title = "Every printed number and trace statistic: published against measured"
    return make_figure(["scatter"], title, chart, words, _tidy(frame))


def _scatter_panel(frame: pd.DataFrame, title: str, present: pd.Series) -> Drawing:
    ends = frame[["published", "reproduced_mean"]].to_numpy(dtype=float)
    low, high = float(ends.min()) / 1.5, float(ends.max()) * 1.5
    scale = alt.Scale(type="log", domain=[low, high], nice=False, clamp=True)
    axis = alt.Axis(tickCount=4, labelOverlap="greedy", format="~g")
    picked, opacity = legend_filter("verdict", frame["study"].iloc[0], frame["kind"].iloc[0])
    x = alt.X("published:Q", title="Published", scale=scale, axis=axis)
    y = alt.Y("reproduced_mean:Q", title="Measured", scale=scale, axis=axis)
    line = _diagonal(low, high, published=x, reproduced_mean=y)
    base = alt.Chart(_tidy(frame)).encode(x=x)
    band = base.transform_filter("datum.accepted_low > 0").mark_rule(
        color=INK, opacity=0.13, strokeWidth=7
    )
    band = band.encode(y=alt.Y("accepted_low:Q", scale=scale, axis=axis), y2="accepted_high:Q")
    points = base.mark_point(filled=True, size=38, strokeWidth=1.6).encode(
        y=y,
        color=verdict_colours(present),
        stroke=verdict_strokes(present),
        shape=verdict_symbols(present),
        opacity=opacity,
        tooltip=[
            *tips("N", row_label="Row", column_label="Column", table="Table", engine="Engine"),
            *tips("N", display_unit="Unit"),
            *tips("Q", ".6g", published="Published"),
            *tips("Q", ".5g", reproduced_mean="Measured"),
            *_VERDICT_TIPS,
        ],
    )
    layers = alt.layer(band, line, points.add_params(picked))
    return layers.properties(width=190, height=190, title=title)


def _diagonal(low: float, high: float, **encodings: Any) -> Drawing:
    """Return the line on which two fields are equal, given the encodings across and up."""
    line = alt.Chart(pd.DataFrame({field: [low, high] for field in encodings}))
    x, y = encodings.values()
    return line.mark_line(stroke=INK, strokeDash=[4, 4], opacity=0.6).encode(x=x, y=y)


def _with_band(frame: pd.DataFrame) -> pd.DataFrame:
    """Return cells in display units with the ends of what their tolerances accept."""
    margins = frame["accepted_margin"] * frame["display_factor"]
    return frame.assign(
        accepted_low=frame["published"] - margins, accepted_high=frame["published"] + margins
    )


def _display(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with their values in display units."""
    return cells.assign(**{name: cells[name] * cells["display_factor"] for name in _shown(cells)})


def _shown(frame: pd.DataFrame) -> list[str]:
    return [*_VALUES, _EXPLAINED] if _EXPLAINED in frame else _VALUES


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[name for name in _COLUMNS if name in frame]]


_VERDICT_TIPS = [
    *tips("Q", "+.1%", relative_deviation="Deviation"),
    *tips("N", verdict="Verdict"),
]


def _tooltip(unit: str) -> list[alt.Tooltip]:
    return [
        *tips("N", table="Table", row_label="Row", column_label="Column", engine="Engine"),
        *tips("Q", ".6g", published=f"Published ({unit})"),
        *tips("Q", ".5g", reproduced_mean=f"Measured ({unit})"),
        *tips("Q", ".5g", reproduced_low="95 % interval from", reproduced_high="to"),
        *tips("Q", n="Replicates"),
        *_VERDICT_TIPS,
    ]


def _describe_cells(frame: pd.DataFrame, title: str) -> str:
    columns = ", ".join(dict.fromkeys(frame["column_label"]))
    words = (
        f"{title}. Published values as hollow diamonds, their tolerance as grey bars, our "
        f"means with 95 % intervals, a panel a column: {columns}."
    )
    run = frame[frame["reproduced_mean"].notna()]
    if run.empty:
        return words + " None of its cells was run."
    several = run["engine"].nunique() > 1
    for engine, part in run.groupby("engine", sort=True):
        counts = part["verdict"].value_counts()
        found = ", ".join(f"{counts[v]} {v}" for v in Verdict if v in counts)
        words += f" {engine}: {found}." if several else f" {found}."
    known = run[run["relative_deviation"].notna()]
    if known.empty:
        return words
    by_size = known["relative_deviation"].abs().sort_values(ascending=False)
    worst = known.loc[[by_size.index[0]]].to_dict("records")[0]
    return words + (
        f" Largest deviation: {worst['row_label']}, {worst['column_label']} on "
        f"{worst['engine']}, {three_digits(100 * worst['relative_deviation'])} %."
    )


def verdict_colours(present: pd.Series) -> alt.Color:
    """Return the colour encoding of verdicts; the legend has those that are present."""
    return alt.Color("verdict:N", **_levels(present, VERDICT_COLOURS))


def verdict_strokes(present: pd.Series) -> alt.Stroke:
    """Return the outline of verdicts' symbols, beside the colour that fills them.

    The symbol of what cannot be tested is an outline alone: without it none would be seen.
    """
    return alt.Stroke("verdict:N", **_levels(present, VERDICT_COLOURS))


def verdict_symbols(present: pd.Series) -> alt.Shape:
    """Return the symbol encoding of verdicts, in one legend with the colours."""
    return alt.Shape("verdict:N", **_levels(present, VERDICT_SYMBOLS))


def _levels(present: pd.Series, look: Mapping[Verdict, str]) -> dict[str, Any]:
    shown = [str(verdict) for verdict in Verdict if (present == verdict).any()]
    scale = alt.Scale(domain=shown, range=[look[Verdict(name)] for name in shown])
    return {"scale": scale, "legend": legend_of(shown, "Verdict")}


def empty_chart() -> Drawing:
    """Return a chart that says that there is nothing to draw."""
    word = pd.DataFrame({"word": ["nothing was run"]})
    return alt.Chart(word).mark_text().encode(text="word:N")


_KEYS = ["study", "table", "row", "column", "unit"]


def engine_figures(rows: Sequence[Judged], engines: Sequence[str]) -> list[Figure]:
    """Return a figure for each pair of engines with measured cells in common, in their order."""
    cells = pd.DataFrame(rows, columns=list(CELL_COLUMNS))
    figures = []
    for left, right in itertools.combinations(engines, 2):
        frame = _joined(cells, left, right)
        if not frame.empty:
            figures.append(_engine_figure(frame, left, right))
    return figures


def _joined(cells: pd.DataFrame, left: str, right: str) -> pd.DataFrame:
    """Return the cells that both engines have, in display units, a row each."""
    columns = [*_KEYS, "reproduced_mean", "reproduced_low", "reproduced_high", "verdict"]
    known = cells[cells["reproduced_mean"].notna()]
    sides = [known.loc[known["engine"] == engine, columns] for engine in (left, right)]
    frame = sides[0].merge(sides[1], on=_KEYS, suffixes=("_left", "_right"))
    shown = [display_unit(unit) for unit in frame["unit"]]
    frame["unit"] = [unit for unit, _ in shown]
    for end, side in itertools.product(("mean", "low", "high"), ("left", "right")):
        values = frame.pop(f"reproduced_{end}_{side}").astype(float)
        frame[f"{side}_{end}"] = values * [factor for _, factor in shown]
    same = frame["verdict_left"] == frame["verdict_right"]
    return frame.assign(verdicts=same.map({True: "same", False: "other"}))


def _engine_figure(frame: pd.DataFrame, left: str, right: str) -> Figure:
    studies = sorted(frame["study"].unique())
    panels = [
        _engine_panel(part, studies, str(unit), left, right)
        for unit, part in frame.groupby("unit", sort=False)
        if (part[["left_mean", "right_mean"]] > 0).all(axis=1).any()
    ]
    words = f"Measured values on {right} against those on {left}; on the line the two are equal."
    for study, part in frame.groupby("study", sort=True):
        ratio = (part["right_mean"] / part["left_mean"] - 1).abs().median()
        words += (
            f" {study}: {len(part)} cells, median difference {three_digits(100 * float(ratio))} %, "
            f"{int((part['verdicts'] == 'same').sum())} with the same verdict."
        )
    chart = alt.concat(*panels, columns=2) if panels else empty_chart()
    title = f"Values on {left} and {right}"
    return make_figure(["", "engines", left, right], title, chart, words, frame)


def _engine_panel(
    frame: pd.DataFrame, studies: Sequence[str], unit: str, left: str, right: str
) -> Drawing:
    frame = frame[(frame["left_mean"] > 0) & (frame["right_mean"] > 0)]
    ends = frame[["left_mean", "right_mean"]].to_numpy(dtype=float)
    low, high = float(ends.min()) / 1.2, float(ends.max()) * 1.2
    scale = alt.Scale(
        type="log" if high / low > 20 else "linear", domain=[low, high], nice=False, clamp=True
    )
    what = "dimensionless" if unit == "1" else unit

    def across(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=f"{left} ({what})", scale=scale)

    def up(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=f"{right} ({what})", scale=scale)

    x, y = across("left_mean"), up("right_mean")
    line = _diagonal(low, high, left_mean=x, right_mean=y)
    picked, opacity = legend_filter("study", left, right, unit)
    base = alt.Chart(frame).encode(
        color=colours("study", studies, "Study"),
        opacity=opacity,
        tooltip=_engine_tooltip(left, right),
    )
    upright = base.transform_filter("isValid(datum.right_low)").mark_rule()
    level = base.transform_filter("isValid(datum.left_low)").mark_rule()
    points = base.mark_point(filled=True, size=45)
    return alt.layer(
        line,
        upright.encode(x=x, y=up("right_low"), y2="right_high:Q"),
        level.encode(y=y, x=across("left_low"), x2="left_high:Q"),
        points.encode(x=x, y=y, shape=symbols("study", studies, "Study")).add_params(picked),
    ).properties(width=250, height=250)


def _engine_tooltip(left: str, right: str) -> list[alt.Tooltip]:
    return [
        *tips("N", table="Table", row="Row", column="Column"),
        *tips("Q", ".5g", left_mean=left),
        *tips("N", verdict_left=f"Verdict on {left}"),
        *tips("Q", ".5g", right_mean=right),
        *tips("N", verdict_right=f"Verdict on {right}"),
    ]
