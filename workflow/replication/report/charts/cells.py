"""Charts that compare published numbers with ours, by table and for all studies."""

from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from replication.metrics.metric_model import capitalised
from replication.report.charts import figure as draw
from replication.report.charts.figure import Drawing, Figure
from replication.study.published import Table
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.wording import table_names

_VALUES = ["published", "reproduced_mean", "reproduced_low", "reproduced_high", "explained"]
_COLUMNS = ["study", "kind", "table", "row", "column", "row_label", "column_label", "engine"]
_COLUMNS += ["display_unit", *_VALUES, "accepted_low", "accepted_high"]
_COLUMNS += ["n", "relative_deviation", "verdict"]
_WORDS = list(map(str, Verdict))
VERDICT_COLOURS = dict(
    zip(_WORDS, ("#009E73", "#56B4E9", "#D55E00", "#8C8C8C", "#CC79A7"), strict=True)
)
VERDICT_SYMBOLS = dict(
    zip(_WORDS, ("circle", "triangle-up", "cross", "stroke", "square"), strict=True)
)


def column_figures(cells: pd.DataFrame, *tables: Table) -> Iterator[Figure]:
    """Yield one figure for each column of printed tables that have the same columns.

    Each row is a number, with its preset tolerance as a grey bar and the value of the column
    `explained` as a tick. Labels of several tables begin with the last part of the table's title.
    """
    ends = {table.id: table.title.rpartition(", ")[2] for table in tables}
    frame = cells[cells["table"].isin(ends) & cells["reproduced_mean"].notna()]
    frame = frame.assign(
        accepted_low=frame["published"] - frame["accepted_margin"],
        accepted_high=frame["published"] + frame["accepted_margin"],
    )
    names = [name for name in _COLUMNS if name in frame]
    for name in {*_VALUES, "accepted_low", "accepted_high"} & set(names):
        frame[name] *= frame["display_factor"]
    frame = frame[names]
    if len(ends) > 1:
        frame = frame.assign(row_label=frame["table"].map(ends) + ": " + frame["row_label"])
    for column, own in frame.groupby("column", sort=False):
        label, engine = str(own["column_label"].iloc[0]), own["engine"].iloc[0]
        title = capitalised(f"{label}, published and measured on {engine}")
        chart, words = _panel(own, label), _describe(own, title)
        yield draw.make_figure(["column", str(column)], title, chart, words)


def _panel(frame: pd.DataFrame, column: str) -> Drawing:
    unit, present, rows = frame["display_unit"].iloc[0], frame["verdict"], frame["row_label"]
    values = frame[[name for name in _VALUES if name in frame]].to_numpy(dtype=float)
    low, high = np.nanmin(values), np.nanmax(values)
    is_wide = low > 0 and high / low > 50
    scale = alt.Scale(type="log") if is_wide else alt.Scale(zero=False, nice=True)
    title = f"{capitalised(column)} ({unit})" + (", logarithmic" if is_wide else "")
    axis, lines = draw.wrapped(rows)
    base = alt.Chart(frame).encode(
        y=alt.Y("row_label:N", sort=list(dict.fromkeys(rows)), title=None, axis=axis)
    )

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale)

    look = verdict_look(present)
    spread = base.transform_filter("isValid(datum.reproduced_low)").mark_rule(strokeWidth=2)
    means = base.mark_point(filled=True, size=45, strokeWidth=1.6)
    means = means.encode(x=x("reproduced_mean"), **look, tooltip=_tooltip(unit))
    theirs = base.transform_calculate(kind=f"'{draw.PUBLISHED}'").mark_point(**draw.PUBLISHED_MARK)
    band = base.mark_bar(color=draw.INK, opacity=0.13, height={"band": 0.7})
    layers = [
        band.encode(x=x("accepted_low"), x2="accepted_high:Q"),
        spread.encode(x=x("reproduced_low"), x2="reproduced_high:Q", color=look["color"]),
        means,
        theirs.encode(x=x("published"), fill=draw.published_legend(), tooltip=_tooltip(unit)),
    ]
    if "explained" in frame and frame["explained"].notna().any():
        under = draw.tips("Q", explained=f"Under the best explanation ({unit})")
        ticks = base.transform_filter("isValid(datum.explained)").mark_tick(color=draw.INK)
        layers.append(ticks.encode(x=x("explained"), tooltip=under))
    return alt.layer(*layers).properties(
        width=380, height=max(60, (6 + 14 * lines) * rows.nunique())
    )


def _tooltip(unit: str) -> list[alt.Tooltip]:
    interval = {"reproduced_low": "95 % interval from", "reproduced_high": "to"}
    return [
        *draw.tips("N", table="Table", row_label="Row", column_label="Column", engine="Engine"),
        *draw.tips("Q", ".6g", published=f"Published ({unit})"),
        *draw.tips("Q", ".5g", reproduced_mean=f"Measured ({unit})", **interval),
        *draw.tips("Q", n="Replicates"),
        *draw.tips("Q", "+.1%", relative_deviation="Deviation"),
        *draw.tips("N", verdict="Verdict"),
    ]


def _describe(frame: pd.DataFrame, title: str) -> str:
    counts = frame["verdict"].value_counts()
    found = ", ".join(f"{counts[v]} {v}" for v in Verdict if v in counts)
    words = f"{title}. Hollow diamonds are published, grey bars their tolerances: {found}."
    if "explained" in frame:
        words += " Ticks are measured under the best explanation."
    for row in frame.to_dict("records"):
        ours, theirs = (draw.three_digits(row[name]) for name in ("reproduced_mean", "published"))
        words += f" {row['row_label']}: {ours} against {theirs} {row['display_unit']}."
    return words


def verdict_look(present: pd.Series) -> dict[str, Any]:
    """Return colour and symbol of the verdicts that are present, in one legend.

    The outline has the colour too, since the symbol for "not testable" is only an outline.
    """
    shown = [word for word in _WORDS if (present == word).any()]
    legend = draw.legend_of(shown, "Verdict")
    colours, symbols = (
        [looks[verdict] for verdict in shown] for looks in (VERDICT_COLOURS, VERDICT_SYMBOLS)
    )
    return {
        "color": draw.levels_of(alt.Color, "verdict", shown, colours, legend),
        "stroke": draw.levels_of(alt.Stroke, "verdict", shown, colours, legend),
        "shape": draw.levels_of(alt.Shape, "verdict", shown, symbols, legend),
    }


#: Ratios beyond this factor are drawn at the edge.
_FURTHEST = 16.0
_RATIO_COLUMNS = ["study", "table", "row", "column", "group", "row_label", "column_label", "engine"]
_RATIO_COLUMNS += ["verdict", "layer", "ratio", "shown"]
DEFAULTS, UNDER = "Documented defaults", "Under the best explanation"


def ratio_figure(
    cells: pd.DataFrame, studies: Mapping[str, Study], titles: Mapping[str, str]
) -> Figure:
    """Draw the ratio of measured to published value for every number of every study.

    A grey bar is the median tolerance of a row. The values of a column `explained`, measured under
    the best explanation, are drawn below.
    """
    frame = cells[(cells["published"] > 0) & cells["reproduced_mean"].notna()].copy()
    frame["group"] = list(_groups(frame, studies, titles))
    parts = [frame.assign(ratio=frame["reproduced_mean"] / frame["published"], layer=DEFAULTS)]
    if "explained" in frame and frame["explained"].notna().any():
        known = frame[frame["explained"].notna()]
        parts.append(known.assign(ratio=known["explained"] / known["published"], layer=UNDER))
    shown = pd.concat(parts, ignore_index=True)
    shown["shown"] = shown["ratio"].clip(1 / _FURTHEST, _FURTHEST)
    margins = (frame["accepted_margin"] / frame["published"])[frame["accepted_margin"] > 0]
    margin = margins.groupby(frame["group"], sort=False).median()
    width = margin.to_numpy(dtype=float)
    band = pd.DataFrame({"group": margin.index, "low": 1 - width, "high": 1 + width})
    order = list(dict.fromkeys(frame["group"]))
    drawn = shown[_RATIO_COLUMNS].round({"ratio": 4, "shown": 4})
    chart, words = _ratio_chart(drawn, band.round(4), order), _ratio_words(frame, shown)
    title = "Every number: measured divided by published"
    return draw.make_figure(["numbers"], title, chart, words)


def _groups(
    frame: pd.DataFrame, studies: Mapping[str, Study], titles: Mapping[str, str]
) -> Iterator[str]:
    """Yield the row of each number: its table, or its column if the table has several units."""
    names = {study: table_names(document) for study, document in studies.items()}
    units = frame[frame["kind"] == "printed"].groupby(["study", "table"])["unit"].nunique()
    several = set(units.index[units > 1])
    for row in frame.to_dict("records"):
        study, table = row["study"], row["table"]
        name = names[study].get(table, table)
        # Tables of traces share some words.
        name = name.replace(", from the published trace", "").removeprefix("Windows of ")
        own = row["column_label"] if (study, table) in several else name.partition(" (")[0]
        yield f"{titles[study]}: {own}"


def _ratio_chart(shown: pd.DataFrame, band: pd.DataFrame, order: list[str]) -> Any:
    scale = alt.Scale(type="log", domain=[1 / _FURTHEST, _FURTHEST], nice=False, clamp=True)
    labels = "datum.value < 1 ? '1/' + format(1 / datum.value, 'd') : format(datum.value, 'd')"
    axis = alt.Axis(
        values=[2.0**power for power in range(-4, 5)], labelExpr=labels, labelSeparation=4
    )
    title = "Measured divided by published"

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    y = alt.Y("group:N", sort=order, title=None, axis=draw.wrapped(order)[0])
    tolerance = alt.Chart(band).mark_bar(color=draw.INK, opacity=0.2, height={"band": 0.9})
    equal = alt.Chart(pd.DataFrame({"shown": [1.0]})).mark_rule(color=draw.INK, strokeDash=[4, 4])
    base = alt.Chart(shown).encode(x=x("shown"), y=y)
    settings = [DEFAULTS, UNDER]
    layers = alt.YOffset("layer:N", sort=settings, scale=alt.Scale(domain=settings))
    tooltip = draw.tips("N", group="Table", row_label="Row", column_label="Column", engine="Engine")
    tooltip += draw.tips("N", layer="Settings", verdict="Verdict at the defaults")
    tooltip += draw.tips("Q", ".3g", ratio="Measured / published")
    ours = base.transform_filter(f"datum.layer == '{DEFAULTS}'").mark_point(filled=True, size=32)
    present = shown.loc[shown["layer"] == DEFAULTS, "verdict"]
    ours = ours.encode(yOffset=layers, **verdict_look(present), tooltip=tooltip)
    under = base.transform_filter(f"datum.layer == '{UNDER}'").mark_tick(
        color=draw.INK, thickness=1.2, size=9, opacity=0.55
    )
    drawn = [tolerance.encode(x=x("low"), x2="high:Q", y=y), equal.encode(x=x("shown")), ours]
    if (shown["layer"] == UNDER).any():
        drawn.append(under.encode(yOffset=layers, tooltip=tooltip))
    return alt.layer(*drawn).properties(width=720, height=34 * len(order))


def _ratio_words(frame: pd.DataFrame, shown: pd.DataFrame) -> str:
    words = "Each mark is one number; at 1 measured and published are equal."
    for group, own in frame.groupby("group", sort=False):
        ratios = own["reproduced_mean"] / own["published"]
        matches = int((own["verdict"] == Verdict.REPRODUCED).sum())
        middle = draw.three_digits(float(ratios.median()))
        words += f" {group}: {matches} of {len(own)} match, median ratio {middle}."
    if beyond := int((shown["shown"] != shown["ratio"]).sum()):
        edge = f"beyond a factor of {_FURTHEST:.0f} and are drawn at the edge"
        words += f" {beyond} marks lie {edge}."
    return words
