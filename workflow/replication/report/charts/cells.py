"""Charts of published cells: each beside what was reproduced, and all of them in one scatter."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from replication.report.charts.verdict import empty_chart, verdict_colours, verdict_symbols
from replication.report.drawing.figure import (
    INK,
    PUBLISHED,
    PUBLISHED_MARK,
    Drawing,
    Figure,
    colours,
    legend_filter,
    make_figure,
    symbols,
    three_digits,
)
from replication.report.drawing.line import published_legend
from replication.study.table_model import Table
from replication.study.verdict import Verdict

_VALUES = ["published", "reproduced_mean", "reproduced_low", "reproduced_high"]
_COLUMNS = ["study", "table", "row", "column", "row_label", "column_label", "engine"]
_COLUMNS += [
    "display_unit",
    *_VALUES,
    "accepted_low",
    "accepted_high",
    "n",
    "relative_deviation",
    "verdict",
]


def cells_figure(cells: pd.DataFrame, table: Table) -> Figure:
    """Draw one published table: each cell's published value beside the reproduced ones.

    A grey bar is the tolerance that was set beforehand: means inside it are `reproduced`.

    Parameters
    ----------
    cells
        Rows of the typed table; those of other tables are left out.
    table
        The published table.
    """
    frame = _of_running_engines(_display(cells[cells["table"] == table.id]))
    margins = frame["accepted_margin"] * frame["display_factor"]
    frame["accepted_low"] = frame["published"] - margins
    frame["accepted_high"] = frame["published"] + margins
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
    title = table.title if table.id == "text" else f"Table {table.id}: {table.title}"
    return make_figure(
        ["cells", table.id], title, chart, _describe_cells(frame, title), _tidy(frame)
    )


def _cell_panel(frame: pd.DataFrame, rows: list[str], column: str, present: pd.Series) -> Drawing:
    unit = str(frame["display_unit"].iloc[0])
    wide = _is_wide(frame)
    scale = alt.Scale(type="log") if wide else alt.Scale(zero=False, nice=True)
    title = f"{column} ({unit})" + (", logarithmic" if wide else "")
    base = alt.Chart(_tidy(frame)).encode(
        y=alt.Y("row_label:N", sort=rows, title=None, axis=alt.Axis(labelLimit=170))
    )
    engines = frame["engine"].nunique()
    offset: Any = alt.YOffset("engine:N") if engines > 1 else alt.Undefined
    picked, opacity = legend_filter("verdict", frame["table"].iloc[0], column)
    ours = base.encode(yOffset=offset, color=verdict_colours(present), opacity=opacity)
    spread = ours.transform_filter("isValid(datum.reproduced_low)").mark_rule(strokeWidth=2)
    means = ours.transform_filter("isValid(datum.reproduced_mean)").mark_point(filled=True, size=50)
    theirs = base.transform_calculate(kind=f"'{PUBLISHED}'").mark_point(**PUBLISHED_MARK)
    band = base.mark_bar(color=INK, opacity=0.13, height={"band": 0.7})
    layers = [
        band.encode(x=alt.X("accepted_low:Q", title=title, scale=scale), x2="accepted_high:Q"),
        spread.encode(
            x=alt.X("reproduced_low:Q", title=title, scale=scale), x2="reproduced_high:Q"
        ),
        means.encode(
            x=alt.X("reproduced_mean:Q", title=title, scale=scale),
            shape=verdict_symbols(present),
            tooltip=_tooltip(unit),
        ).add_params(picked),
        theirs.encode(
            x=alt.X("published:Q", title=title, scale=scale),
            fill=published_legend(),
            tooltip=_tooltip(unit),
        ),
    ]
    if engines > 1:
        names = ours.transform_filter("isValid(datum.reproduced_mean)").mark_text(
            align="left", dx=6, fontSize=9
        )
        layers.append(
            names.encode(x=alt.X("reproduced_mean:Q", title=title, scale=scale), text="engine:N")
        )
    height = max(90, len(rows) * max(20, 12 * engines))
    return alt.layer(*layers).properties(width=190, height=height)


def _of_running_engines(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the engines that have none of the table's numbers, unless none has."""
    ran = frame.loc[frame["reproduced_mean"].notna(), "engine"].unique()
    return frame[frame["engine"].isin(ran)].copy() if len(ran) else frame


def _is_wide(frame: pd.DataFrame) -> bool:
    values = frame[_VALUES].to_numpy(dtype=float)
    values = values[~pd.isna(values)]
    return bool(values.size and values.min() > 0 and values.max() / values.min() > 50)


def scatter_figure(cells: pd.DataFrame) -> Figure:
    """Draw every cell of every study: reproduced against published, a panel a unit."""
    frame = _display(cells)
    frame = frame[frame["reproduced_mean"].notna()]
    studies = sorted(frame["study"].unique())
    panels = []
    for unit, part in frame.groupby("display_unit", sort=False):
        positive = part[(part["published"] > 0) & (part["reproduced_mean"] > 0)]
        if not positive.empty:
            panels.append(_scatter_panel(positive, studies, str(unit)))
    words = "Reproduced against published values; on the line the two are equal."
    for study, part in frame.groupby("study", sort=True):
        middle = float(part["relative_deviation"].abs().median())
        inside = int((part["verdict"] == Verdict.REPRODUCED).sum())
        words += (
            f" {study}: {len(part)} cells, {inside} within the tolerance, median deviation "
            f"{three_digits(100 * middle)} %."
        )
    chart = alt.concat(*panels, columns=2) if panels else empty_chart()
    return make_figure(["scatter"], "Published and reproduced values", chart, words, _tidy(frame))


def _scatter_panel(frame: pd.DataFrame, studies: list[str], unit: str) -> Drawing:
    ends = frame[["published", "reproduced_mean"]].to_numpy(dtype=float)
    low, high = float(ends.min()) / 1.2, float(ends.max()) * 1.2
    wide = high / low > 20
    scale = alt.Scale(type="log" if wide else "linear", domain=[low, high], nice=False, clamp=True)
    picked, opacity = legend_filter("study", unit)
    what = "dimensionless" if unit == "1" else unit
    x = alt.X("published:Q", title=f"Published ({what})", scale=scale)
    title = f"Reproduced ({what})"
    line = (
        alt.Chart(pd.DataFrame({"published": [low, high], "reproduced_mean": [low, high]}))
        .mark_line(stroke=INK, strokeDash=[4, 4], opacity=0.6)
        .encode(x=x, y=alt.Y("reproduced_mean:Q", title=title, scale=scale))
    )
    colour = colours("study", studies, "Study")
    base = alt.Chart(_tidy(frame)).encode(x=x, color=colour, opacity=opacity)
    bars = base.transform_filter("isValid(datum.reproduced_low)").mark_rule()
    bars = bars.encode(
        y=alt.Y("reproduced_low:Q", title=title, scale=scale), y2="reproduced_high:Q"
    )
    points = base.mark_point(filled=True, size=45).encode(
        y=alt.Y("reproduced_mean:Q", title=title, scale=scale),
        shape=symbols("study", studies, "Study"),
        tooltip=_tooltip(unit),
    )
    return alt.layer(line, bars, points.add_params(picked)).properties(width=250, height=250)


def _display(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with their values in display units."""
    return cells.assign(**{name: cells[name] * cells["display_factor"] for name in _VALUES})


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[name for name in _COLUMNS if name in frame]]


def _tooltip(unit: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("table:N", title="Table"),
        alt.Tooltip("row:N", title="Row"),
        alt.Tooltip("column:N", title="Column"),
        alt.Tooltip("engine:N", title="Engine"),
        alt.Tooltip("published:Q", title=f"Published ({unit})", format=".6g"),
        alt.Tooltip("reproduced_mean:Q", title=f"Reproduced ({unit})", format=".5g"),
        alt.Tooltip("reproduced_low:Q", title="95 % interval from", format=".5g"),
        alt.Tooltip("reproduced_high:Q", title="to", format=".5g"),
        alt.Tooltip("n:Q", title="Replicates"),
        alt.Tooltip("relative_deviation:Q", title="Deviation", format="+.1%"),
        alt.Tooltip("verdict:N", title="Verdict"),
    ]


def _describe_cells(frame: pd.DataFrame, title: str) -> str:
    columns = ", ".join(dict.fromkeys(frame["column_label"]))
    words = (
        f"{title}. Published values as hollow diamonds, their tolerance as grey bars, reproduced "
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
