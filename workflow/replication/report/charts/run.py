"""One run: a static picture over time, and its network as text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.metrics.sampled import kept_samples
from replication.report.charts.data import QUEUES, flow_algorithm, flow_label
from replication.report.charts.figure import DASHES, PALETTE
from replication.report.charts.time import bin_ends

_Floats = npt.NDArray[np.float64]


class _Panel(NamedTuple):
    """Title of the vertical axis, height (pixels) and number of samples to keep."""

    title: str
    height: int
    samples: int


_PANELS = {
    "cwnd": _Panel("Window (segments)", 150, 200),
    "rtt": _Panel("Round-trip time (ms)", 90, 80),
    "throughput": _Panel("Throughput (Mbit/s)", 90, 80),
    "queue": _Panel("Queue (packets)", 90, 60),
}
_EVENTS = {"retransmissions": "Sent again", "drops": "Dropped"}
#: Most marks of an event for each flow, and most flows that are drawn.
_MARKS, _FLOWS = 40, 6
_PANEL_WIDTH, _LEFT, _GAP = 560, 76, 26
#: Coordinates of paths are whole numbers of half a pixel.
_FINE = 2
#: Distances between ticks are one of these times a power of ten.
_ROUND = (1, 2, 2.5, 5, 10)
#: Fields of a queue's limit, and their units in words.
_LIMITS = {
    "limit_packets": "packets",
    "memory_limit_bytes": "bytes of memory",
    "limit_bytes": "bytes",
}
#: Longer lists of similar hosts are shortened to the first and the last.
_MOST_ALIKE = 3


class _Line(NamedTuple):
    """One quantity of one flow in display units, with its stroke."""

    time_s: _Floats
    value: _Floats
    stroke: str
    steps: bool = False


def run_picture(scenario: Mapping[str, Any], samples: pd.DataFrame) -> dict[str, Any]:
    """Return the panels of a run for the template, in pixels, with paths in half pixels."""
    chosen = [flow for flow in scenario["flows"] if flow["kind"] == "tcp"][:_FLOWS]
    chosen += [flow for flow in scenario["flows"] if flow["kind"] != "tcp"][:1]
    samples = samples.sort_values("time_s", kind="stable")
    own = {flow["id"]: samples[samples["flow"] == flow["id"]] for flow in chosen}
    flows = sorted((flow for flow in chosen if len(own[flow["id"]])), key=flow_label)
    looks = zip(flows, cycle(PALETTE), cycle(DASHES), strict=False)
    strokes = {flow["id"]: _stroke(colour, dash) for flow, colour, dash in looks}
    end_s = float(scenario["duration_s"])
    top, panels, events = 42 + 18 * ((len(flows) - 1) // 3), [], []
    for name, panel in _PANELS.items():
        lines = [_Line(*_known(samples, "queue_packets"), "")] if name == "queue" else []
        for flow in flows if name != "queue" else []:
            lines += _lines(name, own[flow["id"]], flow, strokes[flow["id"]], end_s)
        lines = list(_thinned(lines, panel.samples))
        if lines:
            panels.append(_panel(lines, panel, top, end_s))
            top += panel.height + _GAP
    for event, words in _EVENTS.items():
        ticks = [(_ticks(own[f["id"]], event, top, end_s), strokes[f["id"]]) for f in flows]
        if any(path for path, _ in ticks):
            events.append((top, words, [(path, _solid(stroke)) for path, stroke in ticks if path]))
            top += 22
    _, step = _rounded_up(end_s)
    return {
        "left": _LEFT,
        "width": _PANEL_WIDTH,
        "scale": 1 / _FINE,
        "legend": [(strokes[flow["id"]], flow_label(flow)) for flow in flows],
        "panels": panels,
        "events": events,
        "below": top,
        "not_drawn": sum(flow["kind"] == "tcp" for flow in scenario["flows"]) - _FLOWS,
        "seconds": [
            (f"{_LEFT + tick / end_s * _PANEL_WIDTH:g}", f"{tick:g}")
            for tick in np.arange(0, end_s + step / 1e6, step)
        ],
    }


def _lines(
    panel: str, rows: pd.DataFrame, flow: Mapping[str, Any], stroke: str, end_s: float
) -> Iterator[_Line]:
    """Yield the lines of a flow in a panel; the window comes with its dotted threshold."""
    if panel == "rtt":
        yield _Line(*_known(rows, "rtt_s", 1e3), stroke)
    elif panel == "throughput":
        times, values = _known(rows, "throughput_bps", 1e-6)
        # About 100 bins for each flow keep the line readable.
        ends, which = np.unique(bin_ends(times, max(0.5, end_s / 100)), return_inverse=True)
        yield _Line(ends, np.bincount(which, weights=values) / np.bincount(which), stroke)
    elif "segment_bytes" in flow:
        times, values = _known(rows, "cwnd_bytes", 1 / flow["segment_bytes"])
        yield _Line(times, values, stroke)
        largest = values.max() if values.size else 0.0
        times, values = _known(rows, "ssthresh_bytes", 1 / flow["segment_bytes"])
        # An infinite threshold is a huge number, which would flatten the window.
        low = values <= 1.5 * largest
        yield _Line(times[low], values[low], f'{_solid(stroke)} stroke-dasharray="1 3"', steps=True)


def _known(rows: pd.DataFrame, column: str, factor: float = 1.0) -> tuple[_Floats, _Floats]:
    times, values = (rows[name].to_numpy(dtype=float) for name in ("time_s", column))
    known = np.isfinite(values)
    return times[known], values[known] * factor


def _thinned(lines: Sequence[_Line], limit: int) -> Iterator[_Line]:
    """Yield the lines that have samples, thinned to about `limit` samples in total."""
    lines = [line for line in lines if line.time_s.size]
    bins = max(1, limit // (4 * max(1, len(lines))))
    for line in lines:
        kept: Any = slice(None)
        if sum(line.time_s.size for line in lines) > limit:
            kept = kept_samples(line.time_s, line.value, bins)
        yield line._replace(time_s=line.time_s[kept], value=line.value[kept])


def _stroke(colour: str, dash: Sequence[int]) -> str:
    dashed = "" if dash == [1, 0] else f' stroke-dasharray="{" ".join(map(str, dash))}"'
    return f'stroke="{colour}"{dashed}'


def _solid(stroke: str) -> str:
    return stroke.partition(" ")[0]


def _panel(lines: Sequence[_Line], panel: _Panel, top: float, end_s: float) -> dict[str, Any]:
    high, step = _rounded_up(max(float(line.value.max()) for line in lines))
    x, y = _FINE * _PANEL_WIDTH / end_s, _FINE * panel.height / high
    return {
        "title": panel.title,
        "top": top,
        "height": panel.height,
        "ticks": [
            (f"{panel.height - tick * y / _FINE + 4:g}", f"{tick:g}")
            for tick in np.arange(0, high + step / 2, step)
        ],
        "paths": [
            (_path(line.time_s * x, _FINE * panel.height - line.value * y, line.steps), line.stroke)
            for line in lines
        ],
    }


def _path(x: _Floats, y: _Floats, steps: bool) -> str:
    """Return an SVG path through points; with `steps` a value lasts until the next one."""
    xs, ys = (np.rint(values).astype(int) for values in (x, y))
    found = [f"M{xs[0]} {ys[0]}"]
    # Only the ends of a constant stretch are needed.
    kept = np.ones(ys.size, dtype=bool)
    kept[1:-1] = (ys[1:-1] != ys[:-2]) | (ys[1:-1] != ys[2:])
    for dx, dy in zip(np.diff(xs[kept]), np.diff(ys[kept]), strict=True):
        if dx or dy:
            found.append(f"h{dx}v{dy}" if steps else f"l{dx} {dy}")
    return "".join(found).replace(" -", "-")


def _ticks(rows: pd.DataFrame, event: str, top: float, end_s: float) -> str:
    """Return marks at a flow's drops or retransmissions; of too many, the largest."""
    times, counts = _known(rows, event)
    largest = np.argsort(-counts, kind="stable")[: min(_MARKS, int((counts > 0).sum()))]
    places = np.rint(np.sort(times[largest]) / end_s * _PANEL_WIDTH).astype(int)
    moves = "".join(f"m{move}-12v12" for move in np.diff(np.unique(places), prepend=0))
    return f"M{_LEFT} {top + 6}{moves}" if moves else ""


def _rounded_up(value: float) -> tuple[float, float]:
    """Return a round bound at or above a value, and the distance of about four ticks."""
    value = value or 1.0
    power = 10.0 ** np.floor(np.log10(value / 4))
    step = next(power * one for one in _ROUND if power * one * 4 >= value * 0.999)
    return float(step * np.ceil(value / step - 1e-9)), float(step)


def topology_lines(scenario: Mapping[str, Any]) -> list[str]:
    """Return one line for each link with its monitored queues, and for each congestion control.

    Hosts with similar links to one node share a line. A monitored link has double strokes.
    """
    degree = Counter(end for link in scenario["links"] for end in (link["a"], link["b"]))
    queues: defaultdict[str, list[str]] = defaultdict(list)
    known = {link["id"]: link for link in scenario["links"]}
    for monitor in scenario["monitors"]:
        link = known[monitor["link"]]
        queues[link["id"]].append(_queue(link[f"queue_{monitor['direction']}"]))
    alike: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for link in scenario["links"]:
        words = ", ".join([_rate(link["rate_bps"]), _delay(link["delay_s"]), *queues[link["id"]]])
        stroke = "══" if queues[link["id"]] else "──"
        if degree[link["a"]] == 1:
            alike["left", link["b"], words, stroke].append(link["a"])
        else:
            alike["right", link["a"], words, stroke].append(link["b"])
    links = []
    for (side, node, words, stroke), hosts in alike.items():
        left, right = (_named(hosts), node) if side == "left" else (node, _named(hosts))
        links.append(f"{left} {stroke} {words} {stroke} {right}")
    flows: defaultdict[str, list[str]] = defaultdict(list)
    for flow in scenario["flows"]:
        flows[flow_algorithm(flow)].append(f"{flow['source']} to {flow['destination']}")
    return [
        *links,
        *(f"{kind}: {_named(list(dict.fromkeys(ends)))}" for kind, ends in flows.items()),
    ]


def _named(names: Sequence[str]) -> str:
    if len(names) <= _MOST_ALIKE:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)})"


def _rate(bps: float) -> str:
    return f"{bps / 1e6:g} Mbit/s" if bps >= 1e5 else f"{bps / 1e3:g} kbit/s"


def _delay(seconds: float) -> str:
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-4 or not seconds else f"{seconds * 1e6:g} µs"


def _queue(document: Mapping[str, Any]) -> str:
    kind = str(document["kind"])
    field = next(name for name in _LIMITS if document.get(name) is not None)
    return f"{QUEUES.get(kind, kind)} {document[field]:,} {_LIMITS[field]}"
