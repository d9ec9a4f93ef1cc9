"""Charts of the version ladder: verdicts by version of ns-3, and how far each number moves."""

from __future__ import annotations

import altair as alt
import pandas as pd

from replication.compare.ladder import CHANGES, REFERENCE, SAME
from replication.engines.ns3_version import NS3_VERSION
from replication.report.charts.verdict import verdicts_figure
from replication.report.drawing.figure import Figure, colours, make_figure, symbols, with_prefix
from replication.study.storage.table import Row


def ladder_figures(rows: list[Row]) -> list[Figure]:
    """Return the figures of a ladder's rows: verdicts by version, and differences of numbers."""
    table = pd.DataFrame(rows)
    table["engine"] = "ns-3 " + table["version"]
    cells, claims = (table[table["kind"] == kind] for kind in ("cell", "claim"))
    figures = with_prefix([verdicts_figure(claims, cells)], "", "ladder")
    moved = _differences(cells)
    return [*figures, _differences_figure(moved)] if not moved.empty else figures


def _differences(cells: pd.DataFrame) -> pd.DataFrame:
    """Return each cell's difference to the default version, in per cent of that."""
    keys = ["study", "table", "row", "column"]
    frame = cells.assign(mean=pd.to_numeric(cells["mean"], errors="coerce"))
    own = frame[frame["change"] == REFERENCE].set_index(keys)["mean"].rename("default")
    frame = frame[frame["change"] != REFERENCE].join(own, on=keys)
    frame = frame[frame["mean"].notna() & frame["default"].notna() & (frame["default"] != 0)]
    frame["difference_percent"] = 100 * (frame["mean"] / frame["default"] - 1)
    shown = [*keys, "version", "mean", "default", "difference_percent", "change", "verdict"]
    return frame[shown].reset_index(drop=True)


def _differences_figure(moved: pd.DataFrame) -> Figure:
    order = [change for change in CHANGES if (moved["change"] == change).any()]
    versions = list(dict.fromkeys(moved["version"]))
    points = (
        alt.Chart(moved)
        .mark_point(filled=True, size=45, opacity=0.75)
        .encode(
            x=alt.X("difference_percent:Q", title=f"Difference to ns-3 {NS3_VERSION}, %"),
            y=alt.Y("version:N", sort=versions, title="Version of ns-3"),
            color=colours("change", order),
            shape=symbols("change", order),
            tooltip=list(moved.columns),
        )
        .properties(width=420, height=alt.Step(34))
    )
    words = f"Each published number as every version gives it, against version {NS3_VERSION}."
    for version, part in moved.groupby("version", sort=False):
        largest = part["difference_percent"].abs().max()
        same = int((part["change"] == SAME).sum())
        words += f" {version}: {same} of {len(part)} the same, at most {largest:.3g} % apart."
    title = "Published numbers by version of ns-3"
    return make_figure(["", "ladder", "differences"], title, points, words, moved)
