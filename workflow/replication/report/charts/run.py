"""One run over time: its lines, thinned, and a chart that all runs share.

The chart is made once for the whole report; its data are named ``lines`` and ``marks``, and the
page puts those of a run in, with the names of its flows for ``@flows`` and its end for ``@end``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.metrics.sampled import kept_samples
from replication.report.charts.data import flow_label
from replication.report.charts.figure import (
    DASHES,
    INK,
    PALETTE,
    WIDTH,
    Drawing,
    legend_filter,
    legend_of,
    short,
    stacked,
    themed,
    tips,
    zoom_of,
)
from replication.report.charts.time import bin_ends
from replication.study.storage.table import SERIES_NUMBERS

Floats = npt.NDArray[np.float64]
Flows = Mapping[str, Mapping[str, object]]
#: Panel to the title of its axis.
TITLES = {
    "cwnd": "Window (segments)",
    "rtt": "Round-trip time (ms)",
    "throughput": "Throughput (Mbit/s)",
    "queue": "Queue (packets)",
}

#: Samples that each quantity of a run may keep: a page has a chart an engine.
LIMITS = {"cwnd": 200, "ssthresh": 50, "rtt": 100, "throughput": 100, "queue": 75}
MARKS = 40
#: Flows that are drawn; a page with more names those that are.
FLOWS = 6
_HEIGHTS = {"cwnd": 150, "rtt": 90, "throughput": 90, "queue": 90}

Json = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One quantity of one flow (``queue`` for the queue), in display units."""

    panel: str
    quantity: str
    flow: str
    time_s: Floats
    value: Floats


@dataclass(frozen=True)
class Marks:
    """Moments at which packets of a flow were dropped or sent again, and how many."""

    event: str
    flow: str
    time_s: Floats
    count: Floats


def lines_of(samples: pd.DataFrame, flows: Flows) -> list[Line]:
    """Return the lines of one run from its rows of the series, for flows by id."""
    every, by_flow = _samples(samples)
    raw: dict[str, list[Line]] = {name: [] for name in LIMITS}
    own = {name: by_flow[name] for name in flows if name in by_flow}
    end_s = max((float(rows[:, 0].max()) for rows in own.values()), default=0.0)
    segments = {n: float(str(flow.get("segment_bytes", "nan"))) for n, flow in flows.items()}
    windows = {name: _known(rows, "cwnd_bytes", 1 / segments[name]) for name, rows in own.items()}
    largest = max((float(values.max()) for _, values in windows.values() if values.size), default=0)
    for name in sorted(own, key=lambda name: flow_label(flows[name])):
        label, rows = flow_label(flows[name]), own[name]
        raw["cwnd"].append(Line("cwnd", "cwnd", label, *windows[name]))
        times, values = _known(rows, "ssthresh_bytes", 1 / segments[name])
        # An infinite threshold is a huge number; it would flatten the window.
        low = values <= 1.5 * largest
        raw["ssthresh"].append(Line("cwnd", "ssthresh", label, times[low], values[low]))
        raw["rtt"].append(Line("rtt", "rtt", label, *_known(rows, "rtt_s", 1e3)))
        averaged = _averaged(*_known(rows, "throughput_bps", 1e-6), end_s)
        raw["throughput"].append(Line("throughput", "throughput", label, *averaged))
    raw["queue"] = [Line("queue", "queue", "queue", *_known(every, "queue_packets"))]
    return [line for name in LIMITS for line in _thinned(raw[name], LIMITS[name])]


def marks_of(samples: pd.DataFrame, flows: Flows) -> list[Marks]:
    """Return the intervals in which packets were sent again or dropped, by event and flow."""
    by_flow = _samples(samples)[1]
    found = []
    for event in ("retransmissions", "drops"):
        for name, flow in flows.items():
            times, counts = _known(by_flow.get(name, np.empty((0, len(_COLUMNS)))), event)
            some = counts > 0
            found.append(Marks(event, flow_label(flow), times[some], counts[some]))
    return [marks for marks in found if marks.time_s.size]


_COLUMNS = ("time_s", *SERIES_NUMBERS)


def _samples(samples: pd.DataFrame) -> tuple[Floats, dict[str, Floats]]:
    """Return the numbers of one run in the order of time, those of all rows and of each flow's."""
    ordered = samples.sort_values("time_s", kind="stable")
    every = ordered[list(_COLUMNS)].to_numpy(dtype=float)
    names = ordered["flow"].astype(object).to_numpy()
    return every, {name: every[names == name] for name in dict.fromkeys(names)}


def _known(rows: Floats, column: str, factor: float = 1.0) -> tuple[Floats, Floats]:
    """Return the times and values of a column without the undefined ones."""
    values = rows[:, _COLUMNS.index(column)]
    known = np.isfinite(values)
    return rows[known, 0], values[known] * factor


def _averaged(time: Floats, value: Floats, end_s: float) -> tuple[Floats, Floats]:
    """Average the throughput so that a line of it can be read: about 100 bins a flow."""
    if not time.size:
        return time, value
    ends, which = np.unique(bin_ends(time, max(0.5, end_s / 100)), return_inverse=True)
    return ends, np.bincount(which, weights=value) / np.bincount(which)


def _thinned(lines: list[Line], limit: int) -> Iterator[Line]:
    """Yield the lines that have samples, so that all have about `limit` together."""
    lines = [line for line in lines if line.time_s.size]
    total = sum(line.time_s.size for line in lines)
    bins = max(1, limit // (4 * max(1, len(lines))))
    for line in lines:
        kept: Any = slice(None)
        if total > limit:
            kept = kept_samples(line.time_s, line.value, bins)
        value = np.array([float(f"{number:.5g}") for number in line.value[kept]])
        time = line.time_s[kept].round(4)
        yield Line(line.panel, line.quantity, line.flow, time, value)


def run_chart() -> Drawing:
    """Return the chart of any run, its data left out."""
    picked, opacity = legend_filter("flow", "run")
    legend = legend_of(["@flows"] * 3, lines=True)
    colour, dash = (
        channel("flow:N", scale=alt.Scale(domain=["@flows"], range=list(looks)), legend=legend)
        for channel, looks in ((alt.Color, PALETTE), (alt.StrokeDash, DASHES))
    )
    x = alt.X("time_s:Q", title="Time (s)", scale=alt.Scale(domain=[0, "@end"], nice=False))
    panels = [_panel(name, x, colour, dash, opacity) for name in _HEIGHTS]
    panels.append(_marks(x, colour, opacity))
    return themed(stacked(panels, 8, picked, zoom_of("run")))


def _panel(name: str, x: alt.X, colour: Any, dash: Any, opacity: Any) -> Drawing:
    """Return one panel: a line a flow, dotted its slow-start threshold; the queue in ink."""
    base = alt.Chart(alt.NamedData("lines")).transform_filter(f"datum.panel == '{name}'")
    base = base.encode(
        x=x,
        y=alt.Y("value:Q", title=TITLES[name], scale=alt.Scale(zero=True, nice=True)),
        tooltip=[
            *tips("N", flow="Flow", quantity="Quantity"),
            *tips("Q", ".4g", time_s="Time (s)", value=TITLES[name]),
        ],
    )
    if name == "queue":
        chart = base.mark_line(color=INK, strokeWidth=1.2)
    else:
        base = base.encode(color=colour, opacity=opacity)
        lines = base.transform_filter("datum.quantity != 'ssthresh'").mark_line(strokeWidth=1.5)
        chart = lines.encode(strokeDash=dash)
        if name == "cwnd":
            threshold = base.transform_filter("datum.quantity == 'ssthresh'")
            threshold = threshold.mark_line(
                strokeWidth=1.2, strokeDash=[1, 3], interpolate="step-after"
            )
            chart = alt.layer(chart, threshold)
    return chart.properties(name=name, width=WIDTH + 60, height=_HEIGHTS[name])


def _marks(x: alt.X, colour: Any, opacity: Any) -> Drawing:
    """Return the moments of losses as ticks: a row an event, in it a flow below the other."""
    ticks = alt.Chart(alt.NamedData("marks"), name="marks").mark_tick(thickness=1.5, height=10)
    return ticks.encode(
        x=x,
        y=alt.Y("event:N", title=None, sort=["retransmissions", "drops"]),
        yOffset=alt.YOffset("flow:N", scale=alt.Scale(domain=["@flows"])),
        color=colour,
        opacity=opacity,
        tooltip=[
            *tips("N", flow="Flow", event="Event"),
            *tips("Q", ".4g", time_s="Time (s)"),
            *tips("Q", count="Packets in the interval"),
        ],
    ).properties(width=WIDTH + 60, height=64)


def run_data(scenario: Mapping[str, Any], samples: pd.DataFrame) -> Json:
    """Return what the page puts into the chart, from a scenario's document and its series.

    Labels of flows, the end (s), lines and marks: a list of columns for each line, which is a third
    of the size of one record a sample.
    """
    chosen = [flow for flow in scenario["flows"] if flow["kind"] == "tcp"][:FLOWS]
    chosen += [flow for flow in scenario["flows"] if flow["kind"] != "tcp"][:1]
    flows = {str(flow["id"]): dict(flow) for flow in chosen}
    end = float(scenario["duration_s"])
    lines, marks = lines_of(samples, flows), marks_of(samples, flows)
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


def _times(times: Floats) -> Json | Sequence[float]:
    """Return times that are all at one distance as their first one and the distance."""
    steps = np.diff(times)
    if len(times) < 3 or not np.allclose(steps, steps[0], rtol=0, atol=1e-9):
        return [short(float(time)) for time in times]
    return {"from": float(times[0]), "by": round(float(steps[0]), 3), "count": len(times)}


def _record(line: Line | Marks, end_s: float) -> Json:
    """Return a line with the digits that the chart can show: a pixel is 1/600 of the run."""
    decimals = max(0, 4 - len(f"{end_s:.0f}"))
    record = dict(vars(line))
    record["time_s"] = _times(line.time_s.round(decimals))
    name = "value" if isinstance(line, Line) else "count"
    record[name] = [short(float(f"{value:.3g}")) for value in record[name]]
    return record
