"""One run over time: a chart that all runs share, and the data of each.

The chart is made once for the whole report; its data are named ``lines`` and ``marks``, and the
page puts those of a run in, with the names of its flows for ``@flows`` and its end for ``@end``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from replication.report.charts.run_line import (
    TITLES,
    Line,
    Marks,
    lines_of,
    loss_ticks,
    marks_of,
    quantity_lines,
)
from replication.report.drawing.figure import (
    DASHES,
    PALETTE,
    WIDTH,
    Drawing,
    legend_filter,
    stacked,
    themed,
    zoom_of,
)

#: Samples that each quantity of a run may keep: a page has a chart an engine.
LIMITS = {"cwnd": 240, "ssthresh": 60, "rtt": 120, "throughput": 120, "queue": 90}
MARKS = 60
#: Flows that are drawn; a page with more names those that are.
FLOWS = 6
_HEIGHTS = {"cwnd": 150, "rtt": 90, "throughput": 90, "queue": 90}

Json = dict[str, Any]


def run_chart() -> Drawing:
    """Return the chart of any run, its data left out."""
    picked, opacity = legend_filter("flow", "run")
    scale = alt.Scale(domain=["@flows"], range=list(PALETTE))
    legend = alt.Legend(title=None, orient="top", columns=3, symbolType="stroke", symbolSize=300)
    colour = alt.Color("flow:N", scale=scale, legend=legend)
    dash = alt.StrokeDash(
        "flow:N", scale=alt.Scale(domain=["@flows"], range=list(DASHES)), legend=legend
    )
    x = alt.X("time_s:Q", title="Time (s)", scale=alt.Scale(domain=[0, "@end"], nice=False))
    panels = [_panel(name, x, (colour, dash, opacity)) for name in _HEIGHTS]
    panels.append(_marks(x, colour, opacity))
    return themed(stacked(panels, 8, picked, zoom_of("run")))


def _panel(name: str, x: alt.X, coded: tuple[Any, Any, Any]) -> Drawing:
    base = alt.Chart(alt.NamedData("lines")).transform_filter(f"datum.panel == '{name}'")
    scale = alt.Scale(zero=True, nice=True)
    base = base.encode(x=x, y=alt.Y("value:Q", title=TITLES[name], scale=scale))
    layers = quantity_lines(base, name, coded, name == "cwnd")
    chart = alt.layer(*layers) if len(layers) > 1 else layers[0]
    return chart.properties(name=name, width=WIDTH + 60, height=_HEIGHTS[name])


def _marks(x: alt.X, colour: alt.Color, opacity: Any) -> Drawing:
    chart = alt.Chart(alt.NamedData("marks"), name="marks")
    offset = alt.YOffset("flow:N", scale=alt.Scale(domain=["@flows"]))
    ticks = loss_ticks(chart, x, offset, colour, opacity)
    return ticks.properties(width=WIDTH + 60, height=64)


def run_data(scenario: Mapping[str, Any], samples: pd.DataFrame) -> Json:
    """Return what the page puts into the chart.

    Parameters
    ----------
    scenario
        The scenario's JSON document.
    samples
        The run's rows of the series.

    Returns
    -------
    dict
        flows (labels), end (s), lines and marks: a list of columns for each line, which is a
        third of the size of one record a sample.
    """
    chosen = [flow for flow in scenario["flows"] if flow["kind"] == "tcp"][:FLOWS]
    chosen += [flow for flow in scenario["flows"] if flow["kind"] != "tcp"][:1]
    flows = {str(flow["id"]): dict(flow) for flow in chosen}
    end = float(scenario["duration_s"])
    lines, marks = lines_of(samples, flows, LIMITS), marks_of(samples, flows)
    return {
        "flows": list(dict.fromkeys(line.flow for line in lines if line.panel != "queue")),
        "end": end,
        "lines": [_record(line, end) for line in lines],
        "marks": [_record(_largest(one, MARKS // len(marks)), end) for one in marks],
    }


def _largest(marks: Marks, limit: int) -> Marks:
    """Return the marks of the largest counts: the counts say what the marks cannot."""
    kept = np.sort(np.argsort(-marks.count, kind="stable")[:limit])
    return replace(marks, time_s=marks.time_s[kept], count=marks.count[kept])


def _record(line: Line | Marks, end_s: float) -> Json:
    """Return a line with the digits that the chart can show: a pixel is 1/600 of the run."""
    decimals = max(0, 4 - len(f"{end_s:.0f}"))
    record = dict(vars(line))
    record["time_s"] = line.time_s.round(decimals).tolist()
    name = "value" if isinstance(line, Line) else "count"
    record[name] = [float(f"{value:.4g}") for value in record[name]]
    return record
