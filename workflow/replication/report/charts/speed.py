"""Charts of speed: each figure against its goal, and what more cores give."""

from __future__ import annotations

import altair as alt
import pandas as pd

from replication.report.drawing.figure import (
    INK,
    WIDTH,
    Figure,
    colours,
    make_figure,
    symbols,
    three_digits,
)

#: Beyond this many times the goal a bar ends, with its number in the table.
_FURTHEST = 4.0


def goal_figure(rows: pd.DataFrame) -> Figure | None:
    """Return a bar a figure; None where there is none.

    Parameters
    ----------
    rows
        A figure's title, its share of what its goal allows, and the word met or missed.
    """
    if rows.empty:
        return None
    shown = rows.assign(end=rows["share"].clip(upper=_FURTHEST))
    order = list(dict.fromkeys(rows["figure"]))
    # Its words stand above each bar: beside it they would leave a phone no room for the bars.
    base = alt.Chart(shown).encode(y=alt.Y("figure:N", sort=order, title=None, axis=None))
    bars = base.mark_bar(height=8, yOffset=7).encode(
        x=alt.X(
            "end:Q",
            title="Measured, as a share of what the goal allows",
            scale=alt.Scale(domainMin=0),
            axis=alt.Axis(tickCount=5),
        ),
        color=alt.Color(
            "met:N",
            scale=alt.Scale(domain=["met", "missed"], range=["#009E73", "#D55E00"]),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=["figure", alt.Tooltip("share:Q", format=".3g"), "met"],
    )
    words = base.mark_text(align="left", baseline="bottom", x=3, yOffset=2, fontSize=11).encode(
        text="figure:N"
    )
    goal = alt.Chart(pd.DataFrame({"goal": [1.0]})).mark_rule(strokeDash=[4, 3], color=INK)
    chart = (bars + words + goal.encode(x="goal:Q")).properties(width=WIDTH, height=30 * len(order))
    missed = list(rows.loc[rows["met"] == "missed", "figure"])
    return make_figure(
        ("bench", "goals"),
        "Figures beside their goals",
        chart,
        f"{len(rows) - len(missed)} of {len(rows)} goals are met; the dashed line is the goal. "
        + (f"Missed: {'; '.join(missed)}." if missed else ""),
        rows,
    )


def speedup_figure(rows: pd.DataFrame) -> Figure | None:
    """Return the speed-up over cores, a line a way of starting jobs; None where nothing ran.

    Parameters
    ----------
    rows
        way, cores, jobs, wall_s and speedup of each schedule that was simulated.
    """
    if rows.empty:
        return None
    order = list(dict.fromkeys(rows["way"]))
    cores = sorted(set(rows["cores"]))
    x = alt.X(
        "cores:Q",
        title="Cores",
        scale=alt.Scale(type="log", base=2, domain=[min(cores), max(cores)], nice=False),
        axis=alt.Axis(values=cores, labelOverlap=True, format="d"),
    )
    y = alt.Y("speedup:Q", title="Times as fast as one core", scale=alt.Scale(type="log"))
    base = alt.Chart(rows).encode(
        x=x,
        y=y,
        color=colours("way", order),
        shape=symbols("way", order),
        tooltip=["way", "cores", "jobs", "wall_s", alt.Tooltip("speedup:Q", format=".3g")],
    )
    ideal = alt.Chart(pd.DataFrame({"cores": cores, "speedup": cores}))
    ideal = ideal.mark_line(strokeDash=[2, 4], color=INK, opacity=0.5).encode(x=x, y=y)
    marks = base.mark_line() + base.mark_point(filled=True, size=45, opacity=1)
    chart = (ideal + marks).properties(width=WIDTH, height=300)
    most = rows[rows["cores"] == max(cores)]
    said = "; ".join(f"{r.way}: {three_digits(r.speedup)} times" for r in most.itertuples())
    return make_figure(
        ("bench", "speedup"),
        "What more cores give",
        chart,
        f"On {max(cores)} cores: {said}. The dotted line is a core a time as fast. Simulated from "
        "what each finished batch of the last report took, with the overhead of Slurm as the "
        "project's own profile sets it.",
        rows,
    )
