"""Charts of published tables: each published number with the measured ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from replication.metrics.trace_folder import TABLE_PREFIX
from replication.report.charts.figure import (
    INK,
    PUBLISHED,
    PUBLISHED_MARK,
    VERDICT_COLOURS,
    VERDICT_SYMBOLS,
    Drawing,
    Figure,
    legend_filter,
    legend_of,
    make_figure,
    published_legend,
    three_digits,
    tips,
)
from replication.study.table_model import Table
from replication.study.verdict import Verdict
from replication.verdicts.wording import table_name

_VALUES = ["published", "reproduced_mean", "reproduced_low", "reproduced_high"]
_EXPLAINED = "explained"
_UNDER = "Under the best explanation"
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


def _cell_panel(
    frame: pd.DataFrame,
    rows: list[str],
    column: str,
    present: pd.Series,
    width: int = 190,
    label_limit: int = 230,
) -> Drawing:
    unit = str(frame["display_unit"].iloc[0])
    wide = _is_wide(frame)
    scale = alt.Scale(type="log") if wide else alt.Scale(zero=False, nice=True)
    title = f"{column} ({unit})" + (", logarithmic" if wide else "")
    base = alt.Chart(_tidy(frame)).encode(
        y=alt.Y("row_label:N", sort=rows, title=None, axis=alt.Axis(labelLimit=label_limit))
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
    return alt.layer(*layers).properties(width=width, height=height)


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


def column_figures(cells: pd.DataFrame, engine: str, *tables: Table) -> list[Figure]:
    """Draw each column of tables of one shape by itself, on one engine: a row a number.

    None of a single table, whose own figure is small, or of a single column.
    """
    named = {table.id: table for table in tables}
    frame = cells[cells["table"].isin(named) & (cells["engine"] == engine)]
    frame = frame[frame["kind"] == "printed"]
    if len(named) < 2 or frame["column"].nunique() < 2 or frame["reproduced_mean"].isna().all():
        return []
    figures = []
    for column, own in frame.groupby("column", sort=False):
        shown = _with_band(_display(own))
        label = str(shown["column_label"].iloc[0])
        heads = [_short_head(named[name]) for name in shown["table"]]
        shown["row_label"] = [f"{head}: {row}" for head, row in zip(heads, shown["row_label"], strict=True)]
        rows = list(dict.fromkeys(shown["row_label"]))
        chart = _cell_panel(shown, rows, label, shown["verdict"], width=380, label_limit=300)
        title = f"{label}, published and measured on {engine}"
        words = _describe_cells(shown, title)
        figures.append(make_figure(["column", str(column)], title, chart, words, _tidy(shown)))
    return figures


def _short_head(table: Table) -> str:
    """Return what tells a table from others of its shape: what comes last in its title."""
    return table.title.rpartition(", ")[2]


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
