"""One run over time as a small static picture: hundreds of pages have one an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup, escape

from replication.metrics.sampled import kept_samples
from replication.report.charts.data import flow_label
from replication.report.charts.figure import DASHES, PALETTE
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


_PANEL_WIDTH, _LEFT, _GAP = 560, 76, 26
#: A path's coordinates are whole numbers of half a pixel.
_FINE = 2
#: Bounds of an axis end on these times a power of ten.
_ROUND = (1, 2, 2.5, 5, 10)


def run_picture(scenario: Mapping[str, Any], samples: pd.DataFrame) -> Markup:
    """Return one run over time as SVG: a panel a quantity, a line a flow, then its losses."""
    chosen = [flow for flow in scenario["flows"] if flow["kind"] == "tcp"][:FLOWS]
    chosen += [flow for flow in scenario["flows"] if flow["kind"] != "tcp"][:1]
    flows = {str(flow["id"]): dict(flow) for flow in chosen}
    end_s = float(scenario["duration_s"])
    lines, marks = lines_of(samples, flows), marks_of(samples, flows)
    names = list(dict.fromkeys(line.flow for line in lines if line.panel != "queue"))
    looks = {name: number % len(PALETTE) for number, name in enumerate(names)}
    parts, top = [_legend(names, looks)], 42 + 18 * ((len(names) - 1) // 3)
    for panel, height in _HEIGHTS.items():
        own = [line for line in lines if line.panel == panel]
        if own:
            parts.append(_panel(own, looks, top, height, end_s))
            top += height + _GAP
    for event in ("retransmissions", "drops"):
        own_marks = [_largest(one, MARKS) for one in marks if one.event == event]
        if own_marks:
            parts.append(_ticks_of(own_marks, looks, event, top, end_s))
            top += 22
    parts.append(_time_axis(top, end_s))
    width, height = _LEFT + _PANEL_WIDTH + 20, top + 34
    return Markup(
        f'<svg class="static run" viewBox="0 0 {width} {height}" width="{width}" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _stroke(look: int, dotted: bool = False) -> str:
    dash = [1, 3] if dotted else DASHES[look]
    dashed = "" if dash == [1, 0] else f' stroke-dasharray="{" ".join(map(str, dash))}"'
    return f'stroke="{PALETTE[look]}"{dashed}'


def _legend(names: Sequence[str], looks: Mapping[str, int]) -> str:
    parts = []
    for number, name in enumerate(names):
        x, y = _LEFT + 190 * (number % 3), 10 + 18 * (number // 3)
        parts.append(f'<path d="M{x} {y}h24" {_stroke(looks[name])}/>')
        parts.append(_text(x + 30, y + 4, name))
    return "".join(parts)


def _panel(
    lines: Sequence[Line], looks: Mapping[str, int], top: float, height: float, end_s: float
) -> str:
    """Return one panel: its frame, three ticks, and its lines; the queue is in the ink."""
    high, step = _rounded_up(max(float(line.value.max()) for line in lines))
    x, y = _PANEL_WIDTH / end_s, height / high
    parts = [f'<g transform="translate({_LEFT} {top})">']
    parts.append(f'<path class="frame" d="M0 0v{height}h{_PANEL_WIDTH}"/>')
    parts.append(_text(0, -6, TITLES[lines[0].panel]))
    for tick in np.arange(0, high + step / 2, step):
        parts.append(_text(-6, height - tick * y + 4, f"{tick:g}", "end"))
    for line in lines:
        look = (
            "" if line.panel == "queue" else _stroke(looks[line.flow], line.quantity == "ssthresh")
        )
        path = _path(line.time_s * x, height - line.value * y, line.quantity == "ssthresh")
        parts.append(f'<path class="line" transform="scale({1 / _FINE})" d="{path}" {look}/>')
    return "".join([*parts, "</g>"])


def _path(x: Floats, y: Floats, steps: bool) -> str:
    """Return a path through points; a threshold keeps its value until the next one."""
    xs, ys = (np.rint(_FINE * values).astype(int) for values in (x, y))
    found = [f"M{xs[0]} {ys[0]}"]
    for dx, dy in zip(np.diff(xs), np.diff(ys), strict=True):
        if dx or dy:
            found.append(f"h{dx}v{dy}" if steps else f"l{dx} {dy}")
    return "".join(found).replace(" -", "-")


def _ticks_of(
    marks: Sequence[Marks], looks: Mapping[str, int], event: str, top: float, end_s: float
) -> str:
    parts = [
        _text(_LEFT - 6, top + 4, {"retransmissions": "Sent again"}.get(event, "Dropped"), "end")
    ]
    for one in marks:
        times = np.rint(one.time_s / end_s * _PANEL_WIDTH).astype(int)
        path = "".join(f"M{_LEFT + time} {top - 6}v12" for time in dict.fromkeys(times))
        parts.append(f'<path d="{path}" {_stroke(looks.get(one.flow, 0)).partition(" ")[0]}/>')
    return "".join(parts)


def _time_axis(top: float, end_s: float) -> str:
    _, step = _rounded_up(end_s)
    ticks = np.arange(0, end_s + step / 1e6, step)
    words = [
        _text(_LEFT + tick / end_s * _PANEL_WIDTH, top + 10, f"{tick:g}", "middle")
        for tick in ticks
    ]
    return "".join([*words, _text(_LEFT + _PANEL_WIDTH / 2, top + 28, "Time (s)", "middle")])


def _rounded_up(value: float) -> tuple[float, float]:
    """Return a round bound at or above a value, and the distance of some four ticks up to it."""
    value = value or 1.0
    power = 10.0 ** np.floor(np.log10(value / 4))
    step = next(power * one for one in _ROUND if power * one * 4 >= value * 0.999)
    return float(step * np.ceil(value / step - 1e-9)), float(step)


def _largest(marks: Marks, limit: int) -> Marks:
    """Return the marks of the largest counts."""
    kept = np.sort(np.argsort(-marks.count, kind="stable")[:limit])
    return replace(marks, time_s=marks.time_s[kept], count=marks.count[kept])
