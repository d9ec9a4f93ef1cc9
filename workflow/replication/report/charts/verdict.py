"""Verdicts in charts: their colours and symbols, and cells on one engine over those on another."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from replication.judge.verdict_table import Judged
from replication.measure.metric_model import display_unit
from replication.report.charts.figure import (
    INK,
    VERDICT_COLOURS,
    VERDICT_SYMBOLS,
    Drawing,
    Figure,
    colours,
    legend_filter,
    legend_of,
    make_figure,
    symbols,
    three_digits,
)
from replication.study.storage.table import CELL_COLUMNS
from replication.study.verdict import Verdict


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
    """Return a figure for each pair of engines with reproduced cells in common, in their order."""
    cells = pd.DataFrame(rows, columns=list(CELL_COLUMNS))
    figures = []
    for left, right in itertools.combinations(engines, 2):
        frame = _joined(cells, left, right)
        if not frame.empty:
            figures.append(_figure(frame, left, right))
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


def _figure(frame: pd.DataFrame, left: str, right: str) -> Figure:
    studies = sorted(frame["study"].unique())
    panels = [
        _panel(part, studies, str(unit), left, right)
        for unit, part in frame.groupby("unit", sort=False)
        if (part[["left_mean", "right_mean"]] > 0).all(axis=1).any()
    ]
    words = f"Reproduced values on {right} against those on {left}; on the line the two are equal."
    for study, part in frame.groupby("study", sort=True):
        ratio = (part["right_mean"] / part["left_mean"] - 1).abs().median()
        words += (
            f" {study}: {len(part)} cells, median difference {three_digits(100 * float(ratio))} %, "
            f"{int((part['verdicts'] == 'same').sum())} with the same verdict."
        )
    chart = alt.concat(*panels, columns=2) if panels else empty_chart()
    title = f"Values on {left} and {right}"
    return make_figure(["", "engines", left, right], title, chart, words, frame)


def _panel(
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
    line = (
        alt.Chart(pd.DataFrame({"left_mean": [low, high], "right_mean": [low, high]}))
        .mark_line(stroke=INK, strokeDash=[4, 4], opacity=0.6)
        .encode(x=x, y=y)
    )
    picked, opacity = legend_filter("study", left, right, unit)
    base = alt.Chart(frame).encode(
        color=colours("study", studies, "Study"), opacity=opacity, tooltip=_tooltip(left, right)
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


def _tooltip(left: str, right: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("table:N", title="Table"),
        alt.Tooltip("row:N", title="Row"),
        alt.Tooltip("column:N", title="Column"),
        alt.Tooltip("left_mean:Q", title=left, format=".5g"),
        alt.Tooltip("verdict_left:N", title=f"Verdict on {left}"),
        alt.Tooltip("right_mean:Q", title=right, format=".5g"),
        alt.Tooltip("verdict_right:N", title=f"Verdict on {right}"),
    ]
