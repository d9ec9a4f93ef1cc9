"""One run over time: its lines, thinned, and a chart that all runs share.

The chart is made once for the whole report; its data are named ``lines`` and ``marks``, and the
page puts those of a run in, with the names of its flows for ``@flows`` and its end for ``@end``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
    short,
    stacked,
    themed,
    zoom_of,
)
from replication.report.charts.time import bin_ends

Floats = npt.NDArray[np.float64]
Flows = Mapping[str, Mapping[str, object]]
#: Panel to the title of its axis.
TITLES = {
    "cwnd": "Window (segments)",
    "rtt": "Round-trip time (ms)",
    "throughput": "Throughput (Mbit/s)",
    "queue": "Queue (packets)",
}


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


def lines_of(samples: pd.DataFrame, flows: Flows, limits: Mapping[str, int]) -> list[Line]:
    """Return the lines of one run.

    Parameters
    ----------
    samples
        Its rows of the series.
    flows
        The flows to draw, by id, as the scenario has them.
    limits
        Quantity to the samples that it may keep, all flows together: cwnd, ssthresh, rtt,
        throughput, queue.
    """
    known = _Samples(samples)
    raw: dict[str, list[Line]] = {name: [] for name in limits}
    windows = {
        name: known.of(name, "cwnd_bytes", 1 / segment)
        for name, segment in _segments(flows).items()
    }
    largest = max((float(values.max()) for _, values in windows.values() if values.size), default=0)
    for name, flow in sorted(flows.items(), key=lambda item: flow_label(item[1])):
        label = flow_label(flow)
        if name in windows:
            raw["cwnd"].append(Line("cwnd", "cwnd", label, *windows[name]))
            times, values = known.of(name, "ssthresh_bytes", 1 / _segments(flows)[name])
            # An infinite threshold is a huge number; it would flatten the window.
            low = values <= 1.5 * largest
            raw["ssthresh"].append(Line("cwnd", "ssthresh", label, times[low], values[low]))
        raw["rtt"].append(Line("rtt", "rtt", label, *known.of(name, "rtt_s", 1e3)))
        times, values = known.of(name, "throughput_bps", 1e-6)
        averaged = _averaged(times, values, known.end_of(flows))
        raw["throughput"].append(Line("throughput", "throughput", label, *averaged))
    raw["queue"] = [Line("queue", "queue", "queue", *known.all("queue_packets"))]
    return [line for name in limits for line in _thinned(raw[name], limits[name])]


def marks_of(samples: pd.DataFrame, flows: Flows) -> list[Marks]:
    """Return the intervals in which packets were sent again or dropped, by event and flow."""
    known = _Samples(samples)
    found = []
    for event in ("retransmissions", "drops"):
        for name, flow in flows.items():
            times, counts = known.of(name, event)
            some = counts > 0
            found.append(Marks(event, flow_label(flow), times[some], counts[some]))
    return [marks for marks in found if marks.time_s.size]


def line_frame(lines: Sequence[Line]) -> pd.DataFrame:
    """Return lines as one table: panel, quantity, flow, time_s, value."""
    return _frame(lines, Line)


def mark_frame(marks: Sequence[Marks]) -> pd.DataFrame:
    """Return marks as one table in the order of events and time: event, flow, time_s, count."""
    return _frame(marks, Marks).sort_values(
        ["event", "time_s"],
        key=lambda column: column == "drops" if column.name == "event" else column,
        kind="stable",
        ignore_index=True,
    )


def _frame(found: Sequence[Line] | Sequence[Marks], kind: type[Line] | type[Marks]) -> pd.DataFrame:
    """Return what was found as one table, a column a field."""
    parts = [pd.DataFrame(vars(one)) for one in found]
    columns = [field.name for field in fields(kind)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


class _Samples:
    """The rows of one run by flow, their numbers without the undefined ones."""

    def __init__(self, samples: pd.DataFrame) -> None:
        self._columns: dict[str, Floats] = {}
        self._frame = samples
        self._time = samples["time_s"].to_numpy(dtype=float)
        names = samples["flow"].astype(object).to_numpy()
        self._rows: dict[Any, npt.NDArray[np.int64]] = {
            name: np.flatnonzero(names == name) for name in dict.fromkeys(names)
        }

    def of(self, flow: str, column: str, factor: float = 1.0) -> tuple[Floats, Floats]:
        rows = self._rows.get(flow, np.empty(0, dtype=np.int64))
        return self._known(rows, column, factor)

    def all(self, column: str) -> tuple[Floats, Floats]:
        return self._known(np.arange(self._time.size), column, 1.0)

    def end_of(self, flows: Flows) -> float:
        ends = [self._time[self._rows[n]].max() for n in flows if n in self._rows]
        return float(max(ends, default=0.0))

    def _known(
        self, rows: npt.NDArray[np.int64], column: str, factor: float
    ) -> tuple[Floats, Floats]:
        if column not in self._columns:
            self._columns[column] = self._frame[column].to_numpy(dtype=float)
        values = self._columns[column][rows]
        rows = rows[np.isfinite(values)]
        rows = rows[np.argsort(self._time[rows], kind="stable")]
        return self._time[rows], self._columns[column][rows] * factor


def _segments(flows: Flows) -> dict[str, float]:
    return {
        name: float(str(flow["segment_bytes"]))
        for name, flow in flows.items()
        if "segment_bytes" in flow
    }


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


def loss_ticks(
    chart: Drawing, x: alt.X, offset: alt.YOffset, colour: alt.Color, opacity: Any
) -> Drawing:
    """Draw the marks of `chart` as ticks: a row an event, in it a flow below the other."""
    return chart.mark_tick(thickness=1.5, height=10).encode(
        x=x,
        y=alt.Y("event:N", title=None, sort=["retransmissions", "drops"]),
        yOffset=offset,
        color=colour,
        opacity=opacity,
        tooltip=[
            alt.Tooltip("flow:N", title="Flow"),
            alt.Tooltip("event:N", title="Event"),
            alt.Tooltip("time_s:Q", title="Time (s)", format=".4g"),
            alt.Tooltip("count:Q", title="Packets in the interval"),
        ],
    )


def quantity_lines(
    base: Drawing, panel: str, coded: tuple[Any, Any, Any], has_threshold: bool
) -> list[Drawing]:
    """Return the layers of one panel: a line a flow, dotted its threshold; the queue in ink.

    Parameters
    ----------
    base
        The panel's samples on their axes.
    panel
        Which one it is.
    coded
        Colour, dash and opacity of a flow.
    has_threshold
        Whether there is a slow-start threshold to draw.
    """
    base = base.encode(
        tooltip=[
            alt.Tooltip("flow:N", title="Flow"),
            alt.Tooltip("quantity:N", title="Quantity"),
            alt.Tooltip("time_s:Q", title="Time (s)", format=".4g"),
            alt.Tooltip("value:Q", title=TITLES[panel], format=".4g"),
        ]
    )
    if panel == "queue":
        return [base.mark_line(color=INK, strokeWidth=1.2)]
    colour, dash, opacity = coded
    base = base.encode(color=colour, opacity=opacity)
    lines = base.transform_filter("datum.quantity != 'ssthresh'").mark_line(strokeWidth=1.5)
    layers = [lines.encode(strokeDash=dash)]
    if has_threshold:
        threshold = base.transform_filter("datum.quantity == 'ssthresh'")
        layers.append(
            threshold.mark_line(strokeWidth=1.2, strokeDash=[1, 3], interpolate="step-after")
        )
    return layers


#: Samples that each quantity of a run may keep: a page has a chart an engine.
LIMITS = {"cwnd": 200, "ssthresh": 50, "rtt": 100, "throughput": 100, "queue": 75}
MARKS = 40
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
