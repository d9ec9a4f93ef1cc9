"""Charts of verdicts: how many of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from replication.report.drawing.figure import (
    INK,
    VERDICT_COLOURS,
    VERDICT_SYMBOLS,
    Drawing,
    Figure,
    legend_of,
    make_figure,
)
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


def verdicts_figure(claims: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw how many claims and cells of each study got which verdict."""
    columns = ["study", "engine", "verdict"]
    parts = [
        table.groupby(columns).size().to_frame("count").reset_index().assign(kind=kind)
        for kind, table in (("claims", claims), ("cells", cells))
        if not table.empty
    ]
    if not parts:
        return make_figure(["verdicts"], "Verdicts by study", empty_chart(), "", pd.DataFrame())
    counts = pd.concat(parts, ignore_index=True)
    order = list(Verdict)
    counts["order"] = [order.index(Verdict(word)) for word in counts["verdict"]]
    several = counts["engine"].nunique() > 1
    counts["label"] = counts["study"] + (" on " + counts["engine"] if several else "")
    counts = counts.sort_values(["kind", "label", "order"], ignore_index=True)
    panels = [
        _verdict_bars(part, str(kind), counts["verdict"])
        for kind, part in counts.groupby("kind", sort=False)
    ]
    words = "Number of claims and cells by verdict."
    for (label, kind), part in counts.groupby(["label", "kind"], sort=False):
        each = [f"{row['count']} {row['verdict']}" for row in part.to_dict("records")]
        words += f" {label}, {kind}: {', '.join(each)}."
    chart = alt.concat(*panels, columns=2)
    return make_figure(["verdicts"], "Verdicts by study", chart, words, counts)


def _verdict_bars(counts: pd.DataFrame, kind: str, present: pd.Series) -> Drawing:
    x = alt.X("count:Q", stack="zero", title=f"Number of {kind}")
    base = alt.Chart(counts).encode(
        y=alt.Y("label:N", title=None), order="order:Q", tooltip=["label:N", "verdict:N", "count:Q"]
    )
    bars = base.mark_bar(stroke=INK, strokeWidth=0.4).encode(x=x, color=verdict_colours(present))
    middle = alt.X("count:Q", stack="zero", bandPosition=0.5, title=f"Number of {kind}")
    numbers = base.mark_text(color="#000000", fontSize=11).encode(x=middle, text="count:Q")
    return alt.layer(bars, numbers).properties(width=280, height=alt.Step(28))
