"""One run: a static picture over time, and its network as text."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.metrics.sampled import kept_samples
from replication.report.charts.data import flow_algorithm, flow_label, proper
from replication.report.charts.figure import DASHES, PALETTE, round_step
from replication.report.charts.time import bin_ends

_Floats = npt.NDArray[np.float64]
#: Times, values in display units, and the stroke of one quantity of one flow.
_Line = tuple[_Floats, _Floats, str]
#: Column of each panel, its title, height (pixels) and number of samples to keep.
_PANELS = (
    ("cwnd_bytes", "Window (segments)", 150, 200),
    ("rtt_s", "Round-trip time (ms)", 90, 80),
    ("throughput_bps", "Throughput (Mbit/s)", 90, 80),
    ("queue_packets", "Queue (packets)", 90, 60),
)
_EVENTS = {"retransmissions": "Sent again", "drops": "Dropped"}
#: Most marks of an event for each flow, and most flows that are drawn.
_MARKS, _FLOWS = 40, 6
_PANEL_WIDTH, _LEFT, _GAP = 560, 76, 26
#: Coordinates of paths are whole numbers of half a pixel.
_FINE = 2
#: Most distances between ticks on an axis.
_STEPS = 4
#: Fields of a queue's limit, and their units in words.
_LIMITS = {
    "limit_packets": "packets",
    "memory_limit_bytes": "bytes of memory",
    "limit_bytes": "bytes",
}


def run_picture(scenario: Mapping[str, Any], samples: pd.DataFrame) -> dict[str, Any]:
    """Return the panels of a run for the template, in pixels, with paths in half pixels."""
    chosen = [flow for flow in scenario["flows"] if flow["kind"] == "tcp"][:_FLOWS]
    chosen += [flow for flow in scenario["flows"] if flow["kind"] != "tcp"][:1]
    samples = samples.sort_values("time_s", kind="stable")
    by_flow = {flow["id"]: samples[samples["flow"] == flow["id"]] for flow in chosen}
    sampled = [flow for flow in chosen if len(by_flow[flow["id"]])]
    flows = sorted(sampled, key=flow_label)
    looks = zip(flows, cycle(PALETTE), cycle(DASHES), strict=False)
    strokes = {f["id"]: (f'stroke="{colour}"', _dashed(dash)) for f, colour, dash in looks}
    end_s = float(scenario["duration_s"])
    top, panels, events = 42 + 18 * ((len(flows) - 1) // 3), [], []
    for column, title, height, limit in _PANELS:
        lines = [(*_known(samples, column), "")] if column == "queue_packets" else []
        for flow in flows if not lines else []:
            lines += _lines(column, by_flow[flow["id"]], flow, strokes[flow["id"]], end_s)
        if lines := list(_thinned(lines, limit)):
            panels.append({"title": title, "top": top, **_panel(lines, height, end_s)})
            top += height + _GAP
    for event, words in _EVENTS.items():
        ticks = []
        for name, (solid, _) in strokes.items():
            if path := _ticks(by_flow[name], event, top, end_s):
                ticks.append((path, solid))
        if ticks:
            events.append((top, words, ticks))
            top += 22
    step, seconds = round_step(end_s, _STEPS), []
    for second in np.arange(0, end_s + step / 1e6, step):
        seconds.append((f"{_LEFT + second / end_s * _PANEL_WIDTH:g}", f"{second:g}"))
    return {
        "left": _LEFT,
        "width": _PANEL_WIDTH,
        "scale": 1 / _FINE,
        "legend": [("".join(strokes[f["id"]]), flow_label(f)) for f in flows],
        "panels": panels,
        "events": events,
        "below": top,
        "not_drawn": sum(flow["kind"] == "tcp" for flow in scenario["flows"]) - _FLOWS,
        "seconds": seconds,
    }


def _dashed(dash: Sequence[int]) -> str:
    return "" if dash == [1, 0] else f' stroke-dasharray="{" ".join(map(str, dash))}"'


def _lines(
    column: str, rows: pd.DataFrame, flow: Mapping[str, Any], stroke: tuple[str, str], end_s: float
) -> Iterator[_Line]:
    """Yield the lines of a flow in a panel; the window comes with its dotted threshold."""
    solid, looks = stroke[0], "".join(stroke)
    if column == "rtt_s":
        yield *_known(rows, column, 1e3), looks
    elif column == "throughput_bps":
        times, values = _known(rows, column, 1e-6)
        # About 100 bins for each flow keep the line readable.
        ends, which = np.unique(bin_ends(times, max(0.5, end_s / 100)), return_inverse=True)
        yield ends, np.bincount(which, weights=values) / np.bincount(which), looks
    elif "segment_bytes" in flow:
        times, values = _known(rows, column, 1 / flow["segment_bytes"])
        yield times, values, looks
        largest = values.max(initial=0.0)
        times, values = _known(rows, "ssthresh_bytes", 1 / flow["segment_bytes"])
        # An infinite threshold is a huge number, which would flatten the window.
        low = values <= 1.5 * largest
        yield times[low], values[low], solid + _dashed([1, 3])


def _known(rows: pd.DataFrame, column: str, factor: float = 1.0) -> tuple[_Floats, _Floats]:
    known = rows[rows[column].notna()]
    times, values = (known[name].to_numpy(dtype=float) for name in ("time_s", column))
    return times, values * factor


def _thinned(lines: Sequence[_Line], limit: int) -> Iterator[_Line]:
    """Yield the lines that have samples, thinned to about `limit` samples in total."""
    lines = [line for line in lines if line[0].size]
    bins = max(1, limit // (4 * max(1, len(lines))))
    is_long = sum(times.size for times, *_ in lines) > limit
    for times, values, stroke in lines:
        kept: Any = kept_samples(times, values, bins) if is_long else slice(None)
        yield times[kept], values[kept], stroke


def _panel(lines: Sequence[_Line], height: int, end_s: float) -> dict[str, Any]:
    largest = max(float(values.max()) for _, values, _ in lines) or 1.0
    step = round_step(largest, _STEPS)
    steps = np.ceil(largest / step - 1e-9)
    ticks = []
    for number in range(int(steps) + 1):
        ticks.append((f"{height * (1 - number / steps) + 4:g}", f"{number * step:g}"))
    x, y = _FINE * _PANEL_WIDTH / end_s, _FINE * height / (step * steps)
    paths = []
    for times, values, stroke in lines:
        paths.append((_path(times * x, _FINE * height - values * y), stroke))
    return {"height": height, "ticks": ticks, "paths": paths}


def _path(x: _Floats, y: _Floats) -> str:
    xs, ys = (np.rint(values).astype(int) for values in (x, y))
    # Only the ends of a constant stretch are needed.
    kept = np.ones(ys.size, dtype=bool)
    kept[1:-1] = (ys[1:-1] != ys[:-2]) | (ys[1:-1] != ys[2:])
    moves = zip(np.diff(xs[kept]), np.diff(ys[kept]), strict=True)
    lines = (f"l{dx} {dy}" for dx, dy in moves if dx or dy)
    return "".join([f"M{xs[0]} {ys[0]}", *lines]).replace(" -", "-")


def _ticks(rows: pd.DataFrame, event: str, top: float, end_s: float) -> str:
    """Return marks at a flow's drops or retransmissions; of too many, the largest."""
    times, counts = _known(rows, event)
    largest = np.argsort(-counts, kind="stable")[: min(_MARKS, int((counts > 0).sum()))]
    places = np.rint(np.sort(times[largest]) / end_s * _PANEL_WIDTH).astype(int)
    moves = "".join(f"m{move}-12v12" for move in np.diff(np.unique(places), prepend=0))
    return f"M{_LEFT} {top + 6}{moves}" if moves else ""


def topology_lines(scenario: Mapping[str, Any]) -> list[str]:
    """Return one line for each link with its monitored queues, and for each congestion control.

    Hosts with similar links to one node share a line. A monitored link has double strokes.
    """
    degree = Counter(link["a"] for link in scenario["links"])
    degree += Counter(link["b"] for link in scenario["links"])
    watched = {(monitor["link"], monitor["direction"]) for monitor in scenario["monitors"]}
    alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for link in scenario["links"]:
        ways = [way for way in ("ab", "ba") if (link["id"], way) in watched]
        queues = [_queue(link[f"queue_{way}"]) for way in ways]
        rate, ms = _rate(link), link["delay_s"] * 1e3
        delay = f"{ms:g} ms" if ms >= 0.1 or not ms else f"{ms * 1e3:g} µs"
        stroke = "══" if queues else "──"
        words = f" {stroke} {', '.join([rate, delay, *queues])} {stroke} "
        if degree[link["a"]] == 1:
            alike["", words + link["b"]].append(link["a"])
        else:
            alike[link["a"] + words, ""].append(link["b"])
    flows: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for flow in scenario["flows"]:
        flows[flow_algorithm(flow)][f"{flow['source']} to {flow['destination']}"] = None
    return [
        *(f"{before}{_named(hosts)}{after}" for (before, after), hosts in alike.items()),
        *(f"{kind}: {_named(list(ends))}" for kind, ends in flows.items()),
    ]


def _rate(link: Mapping[str, Any]) -> str:
    """Return the rate of a link, in words if it is not constant."""
    # Scenarios of older results lack the keys.
    if link.get("opportunities_ab") or link.get("opportunities_ba"):
        return "recorded rate"
    rate = f"{link['rate_bps'] / 1e6:g} Mbit/s"
    return f"{rate}, changing" if link.get("changes") else rate


def _named(names: Sequence[str]) -> str:
    """Return names in full, or the first and last of many or of a numbered series."""
    numbers = [set(re.findall(r"\d+", name)) for name in names]
    is_series = all(len(number) == 1 for number in numbers)
    if len(names) < 4 or (len(names) < 9 and not is_series):
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)})"


def _queue(document: Mapping[str, Any]) -> str:
    field = next(name for name in _LIMITS if document.get(name) is not None)
    limit, unit = document[field], _LIMITS[field]
    return f"{proper(document['kind'])} {limit:,} {unit.removesuffix('s') if limit == 1 else unit}"
