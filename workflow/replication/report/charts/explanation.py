"""The waterfall of an explanation: what each of its changes is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from replication.report.drawing.figure import PALETTE, WIDTH, Figure, make_figure

_ROW = 34


def waterfall(study: str, leaving: Sequence[Mapping[str, Any]], titles: Sequence[str]) -> Figure:
    """Return the chart of what leaving each change out costs.

    Parameters
    ----------
    study
        The study's id.
    leaving
        Of each change: `bits` that the description gets longer, and numbers or claims `inside`
        without it.
    titles
        What the changes say, in their order.
    """
    rows = pd.DataFrame(
        {
            "change": list(titles),
            "bits": [float(one["bits"]) for one in leaving],
            "inside_without_it": [int(one["inside"]) for one in leaving],
        }
    ).sort_values("bits", ascending=False, ignore_index=True, kind="stable")
    order = list(rows["change"])
    chart = (
        alt.Chart(rows)
        .mark_bar(color=PALETTE[0])
        .encode(
            x=alt.X("bits:Q", title="Bits that the description gets longer without it"),
            y=alt.Y("change:N", sort=order, title=None, axis=alt.Axis(labelLimit=WIDTH // 2)),
            tooltip=[
                alt.Tooltip("change:N", title="Change"),
                alt.Tooltip("bits:Q", title="Bits", format=".3g"),
                alt.Tooltip("inside_without_it:Q", title="Inside without it"),
            ],
        )
        .properties(width=WIDTH, height=_ROW * len(rows))
    )
    worth = "; ".join(f"{row.change}: {row.bits:.3g} bits" for row in rows.itertuples())
    return make_figure(
        (study, "", "why", "waterfall"),
        "What each change is worth: all others stay, and it is left out",
        chart,
        f"{worth}. A change that is worth nothing would not be part of the explanation.",
        rows,
    )
