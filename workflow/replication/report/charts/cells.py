"""Charts of published tables: each published number with the measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from replication.metrics.metric_model import capitalised
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

_VALUES = ["published", "reproduced_mean", "reproduced_low", "reproduced_high"]
_EXPLAINED = "explained"
_UNDER = "Under the best explanation"
_COLUMNS = ["study", "kind", "table", "row", "column", "row_label", "column_label", "engine"]
_COLUMNS += ["display_unit", *_VALUES, _EXPLAINED, "accepted_low", "accepted_high"]
_COLUMNS += ["n", "relative_deviation", "verdict"]


def _cell_panel(frame: pd.DataFrame, rows: list[str], column: str) -> Drawing:
    unit, present = str(frame["display_unit"].iloc[0]), frame["verdict"]
    wide = _is_wide(frame)
    scale = alt.Scale(type="log") if wide else alt.Scale(zero=False, nice=True)
    title = f"{capitalised(column)} ({unit})" + (", logarithmic" if wide else "")
    base = alt.Chart(_tidy(frame)).encode(
        y=alt.Y("row_label:N", sort=rows, title=None, axis=alt.Axis(labelLimit=300))
    )
    picked, opacity = legend_filter("verdict", frame["table"].iloc[0], column)
    ours = base.encode(color=verdict_colours(present), opacity=opacity)
    spread = ours.transform_filter("isValid(datum.reproduced_low)").mark_rule(strokeWidth=2)
    means = ours.mark_point(filled=True, size=45, strokeWidth=1.6)
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
        layers.append(_explained(base.encode(x=x(_EXPLAINED)), unit))
    return alt.layer(*layers).properties(width=380, height=max(60, 20 * len(rows)))


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


def _is_wide(frame: pd.DataFrame) -> bool:
    values = frame[_shown(frame)].to_numpy(dtype=float)
    values = values[~pd.isna(values)]
    return bool(values.size and values.min() > 0 and values.max() / values.min() > 50)


def column_figures(cells: pd.DataFrame, *tables: Table) -> list[Figure]:
    """Draw each column of printed tables of one shape by itself: a row a number.

    A grey bar is the tolerance that was set beforehand: means inside it are `reproduced`. A column
    `explained` is drawn as a second series. Of several tables each row's label begins with what
    comes last in its table's title.
    """
    named = {table.id: table for table in tables}
    frame = _with_band(_display(cells[cells["table"].isin(named) & (cells["kind"] == "printed")]))
    frame = frame[frame["reproduced_mean"].notna()]
    if len(named) > 1:
        heads = [named[name].title.rpartition(", ")[2] for name in frame["table"]]
        frame["row_label"] = [
            f"{head}: {row}" for head, row in zip(heads, frame["row_label"], strict=True)
        ]
    figures = []
    for column, own in frame.groupby("column", sort=False):
        label, engine = str(own["column_label"].iloc[0]), own["engine"].iloc[0]
        chart = _cell_panel(own, list(dict.fromkeys(own["row_label"])), label)
        title = capitalised(f"{label}, published and measured on {engine}")
        parts = ["column", str(column)]
        figures.append(make_figure(parts, title, chart, _describe_cells(own, title), _tidy(own)))
    return figures


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
    counts = frame["verdict"].value_counts()
    found = ", ".join(f"{counts[v]} {v}" for v in Verdict if v in counts)
    words = f"{title}. Hollow diamonds are published, grey bars their tolerances: {found}."
    for row in frame.to_dict("records"):
        ours, theirs = three_digits(row["reproduced_mean"]), three_digits(row["published"])
        words += f" {row['row_label']}: {ours} against {theirs} {row['display_unit']}."
    return words


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
