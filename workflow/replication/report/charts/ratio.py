"""The picture of all numbers: measured over published, a row a table, on one logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from replication.report.charts.cells import (
    verdict_colours,
    verdict_strokes,
    verdict_symbols,
)
from replication.report.charts.figure import INK, Figure, make_figure, three_digits, tips
from replication.study.study import Study
from replication.study.verdict import Verdict
from replication.verdicts.wording import table_names

#: Ratios beyond either end are drawn at the end.
FURTHEST = 16.0
_TICKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)
_COLUMNS = ["study", "table", "row", "column", "group", "row_label", "column_label", "engine"]
_COLUMNS += ["verdict", "layer", "ratio", "shown"]
DEFAULTS, UNDER = "Documented defaults", "Under the best explanation"


def ratio_figure(
    cells: pd.DataFrame, studies: Mapping[str, Study], titles: Mapping[str, str]
) -> Figure:
    """Draw every number of every study once: how many times the published value ours is.

    A grey bar is the tolerance of a row. A column ``explained`` has what is measured under the best
    explanation, and is drawn below.
    """
    frame = cells[(cells["published"] > 0) & cells["reproduced_mean"].notna()].copy()
    frame["group"] = _groups(frame, studies, titles)
    parts = [frame.assign(ratio=frame["reproduced_mean"] / frame["published"], layer=DEFAULTS)]
    if "explained" in frame and frame["explained"].notna().any():
        known = frame[frame["explained"].notna()]
        parts.append(known.assign(ratio=known["explained"] / known["published"], layer=UNDER))
    shown = pd.concat(parts, ignore_index=True)
    shown["shown"] = shown["ratio"].clip(1 / FURTHEST, FURTHEST)
    bands = frame[frame["accepted_margin"] > 0]
    margin = (
        (bands["accepted_margin"] / bands["published"]).groupby(bands["group"], sort=False).median()
    )
    width = margin.to_numpy(dtype=float)
    band = pd.DataFrame({"group": margin.index, "low": 1 - width, "high": 1 + width})
    order = list(dict.fromkeys(frame["group"]))
    chart = _chart(shown[_COLUMNS].round({"ratio": 4, "shown": 4}), band.round(4), order)
    title = "Every number: measured divided by published"
    return make_figure(["numbers"], title, chart, _words(frame, shown), shown[_COLUMNS])


def _groups(
    frame: pd.DataFrame, studies: Mapping[str, Study], titles: Mapping[str, str]
) -> list[str]:
    """Return the row of each number: its table, or its column where a table has several units."""
    names = {study: table_names(document) for study, document in studies.items()}
    units = frame[frame["kind"] == "printed"].groupby(["study", "table"])["unit"].nunique()
    several = set(units.index[units > 1])
    return [
        f"{titles[study]}: "
        + (label if (study, table) in several else _short(names[study].get(table, table)))
        for study, table, label in zip(
            frame["study"], frame["table"], frame["column_label"], strict=True
        )
    ]


def _short(title: str) -> str:
    """Return a table's name without what the tables of traces have in common."""
    return (
        title.replace(", from the published trace", "")
        .removeprefix("Windows of ")
        .partition(" (")[0]
    )


def _chart(shown: pd.DataFrame, band: pd.DataFrame, order: list[str]) -> Any:
    scale = alt.Scale(type="log", domain=[1 / FURTHEST, FURTHEST], nice=False, clamp=True)
    labels = "datum.value < 1 ? '1/' + format(1 / datum.value, 'd') : format(datum.value, 'd')"
    axis = alt.Axis(values=list(_TICKS), labelExpr=labels, labelSeparation=4)
    title = "Measured divided by published"

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    y = alt.Y("group:N", sort=order, title=None, axis=alt.Axis(labelLimit=300))
    tolerance = alt.Chart(band).mark_bar(color=INK, opacity=0.2, height={"band": 0.9})
    equal = alt.Chart(pd.DataFrame({"shown": [1.0]})).mark_rule(color=INK, strokeDash=[4, 4])
    base = alt.Chart(shown).encode(x=x("shown"), y=y)
    layers = alt.YOffset(
        "layer:N", sort=[DEFAULTS, UNDER], scale=alt.Scale(domain=[DEFAULTS, UNDER])
    )
    tooltip = [
        *tips("N", group="Table", row_label="Row", column_label="Column", engine="Engine"),
        *tips("N", layer="Settings", verdict="Verdict at the defaults"),
        *tips("Q", ".3g", ratio="Measured / published"),
    ]
    ours = base.transform_filter(f"datum.layer == '{DEFAULTS}'").mark_point(filled=True, size=32)
    present = shown.loc[shown["layer"] == DEFAULTS, "verdict"]
    ours = ours.encode(
        yOffset=layers,
        color=verdict_colours(present),
        stroke=verdict_strokes(present),
        shape=verdict_symbols(present),
        tooltip=tooltip,
    )
    under = base.transform_filter(f"datum.layer == '{UNDER}'").mark_tick(
        color=INK, thickness=1.2, size=9, opacity=0.55
    )
    drawn = [tolerance.encode(x=x("low"), x2="high:Q", y=y), equal.encode(x=x("shown")), ours]
    if (shown["layer"] == UNDER).any():
        drawn.append(under.encode(yOffset=layers, tooltip=tooltip))
    return alt.layer(*drawn).properties(width=720, height=34 * len(order))


def _words(frame: pd.DataFrame, shown: pd.DataFrame) -> str:
    words = "Each mark is one number; at 1 measured and published are equal."
    for group, own in frame.groupby("group", sort=False):
        ratios = own["reproduced_mean"] / own["published"]
        matches = int((own["verdict"] == Verdict.REPRODUCED).sum())
        middle = three_digits(float(ratios.median()))
        words += f" {group}: {matches} of {len(own)} match, median ratio {middle}."
    beyond = int((shown["shown"] != shown["ratio"]).sum())
    if beyond:
        words += f" {beyond} marks lie beyond a factor of {FURTHEST:.0f} and are drawn at the edge."
    return words
