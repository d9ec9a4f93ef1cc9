"""Charts of what varies: seeds, assumptions and engines side by side, one a headline metric."""

from __future__ import annotations

import altair as alt
import pandas as pd

from replication.report.drawing.data import display_metric
from replication.report.drawing.figure import WIDTH, Figure, colours, make_figure, three_digits
from replication.sensitivity.explore_study import SOURCES


def spread_figures(spread: pd.DataFrame, study: str) -> list[Figure]:
    """Return a chart for each headline metric that changed at all; none where nothing was run."""
    found = []
    for metric in dict.fromkeys(spread["metric"]):
        rows = spread[spread["metric"] == metric]
        if (rows["change"].abs() > 0).any():
            found.append(_figure(rows, str(metric), study))
    return found


def _figure(rows: pd.DataFrame, metric: str, study: str) -> Figure:
    relative = bool((rows["unit"] == "relative").all())
    shown = rows[["experiment", "source", "point", "change"]].copy()
    if relative:
        shown["change"] = 100 * shown["change"]
    unit = "%" if relative else "difference"
    order = [source for source in SOURCES.values() if source in set(shown["source"])]
    axis = alt.X(
        "change:Q", title=f"Change from the defaults ({unit}), median over flows and points"
    )
    marks = alt.Chart(shown).mark_tick(thickness=1.5, size=16, opacity=0.75)
    chart = marks.encode(
        x=axis,
        y=alt.Y("source:N", sort=order, title=None),
        color=colours("source", order),
        row=alt.Row("experiment:N", title=None),
        tooltip=["experiment", "source", "point", alt.Tooltip("change:Q", format=".3g")],
    ).properties(width=WIDTH, height=26 * len(order))
    name = display_metric(metric).label
    return make_figure(
        (study, "", "spread", metric),
        f"What varies: {name}",
        chart,
        _description(shown, order, name, unit),
        shown.reset_index(drop=True),
    )


def _description(shown: pd.DataFrame, order: list[str], name: str, unit: str) -> str:
    parts = []
    for source in order:
        change = shown.loc[shown["source"] == source, "change"]
        parts.append(f"{source} {three_digits(change.min())} to {three_digits(change.max())}")
    return (
        f"{name}, change from its value at the defaults ({unit}): {'; '.join(parts)}. One tick a "
        "design point and experiment."
    )
