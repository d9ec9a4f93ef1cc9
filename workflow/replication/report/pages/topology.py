"""Topology: where a scenario's nodes and links stand in a drawing, made from the scenario itself.

Hosts that send stand on the left, hosts that receive on the right, routers between them in the
order of their distance from the first sender. Like hosts of like links are drawn once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replication.report.charts.data import flow_algorithm

WIDTH, ROW, MARGIN = 760, 64, 70
#: From a column to the next at least (pixels), so that a link's label has room between nodes.
STEP = 206
#: From a node's centre to its edge (pixels).
HOST_HALF, ROUTER_HALF = 58, 24
#: More like hosts than these are drawn as one.
MOST_ALIKE = 3

Json = Mapping[str, Any]


@dataclass(frozen=True)
class DrawnNode:
    """A node, or several like ones, at its centre (pixels)."""

    name: str
    note: str
    x: float
    y: float
    is_router: bool


@dataclass(frozen=True)
class DrawnLink:
    """A link from left to right; `label` is empty where a like link beside it has it.

    It stands in the middle of what the nodes leave free, at `label_x` and `label_y`.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    label_x: float
    label_y: float
    label: str
    queue: str
    is_bottleneck: bool


@dataclass(frozen=True)
class Topology:
    """The drawing and, for those who do not see it, its words."""

    width: float
    height: float
    places: list[DrawnNode]
    wires: list[DrawnLink]
    words: str


def draw(scenario: Json) -> Topology:
    """Return the drawing of a scenario's document."""
    beside, layers = _neighbours(scenario), _layers(scenario)
    groups = _groups(scenario, layers)
    rows: defaultdict[int, list[tuple[str, ...]]] = defaultdict(list)
    for names in groups:
        rows[layers[names[0]]].append(names)
    columns = sorted(rows)
    height = ROW * max(len(members) for members in rows.values()) + 2 * 24
    gaps = max(1, len(columns) - 1)
    width = max(WIDTH, STEP * gaps + 2 * MARGIN)
    step = (width - 2 * MARGIN) / gaps
    at: dict[str, tuple[float, float]] = {}
    places = []
    for number, layer in enumerate(columns):
        for row, names in enumerate(rows[layer]):
            x = round(MARGIN + number * step, 1)
            y = round(height * (row + 0.5) / len(rows[layer]), 1)
            at |= dict.fromkeys(names, (x, y))
            is_router = len(beside[names[0]]) > 1
            places.append(DrawnNode(_name(names), _note(scenario, names), x, y, is_router))
    wires = _wires(scenario, at)
    return Topology(width, height, places, wires, _words(scenario, wires))


def _neighbours(scenario: Json) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {str(name): [] for name in scenario["nodes"]}
    for link in scenario["links"]:
        found[link["a"]].append(link["b"])
        found[link["b"]].append(link["a"])
    return found


def _layers(scenario: Json) -> dict[str, int]:
    """Return the column of each node."""
    beside = _neighbours(scenario)
    routers = [name for name, others in beside.items() if len(others) > 1]
    senders = {flow["source"] for flow in scenario["flows"]}
    receivers = {flow["destination"] for flow in scenario["flows"]}
    first = scenario["flows"][0]["source"]
    start = first if first in routers else next((n for n in beside[first] if n in routers), "")
    distance = _distances(beside, routers, start)
    furthest = max(distance.values(), default=0)
    layers = {name: 1 + distance.get(name, 0) for name in routers}
    for name in beside.keys() - layers.keys():
        near = distance.get(next(iter(beside[name]), ""), 0)
        sends = name in senders and (name not in receivers or name == first)
        is_left = near == 0 if furthest and near in (0, furthest) else sends
        layers[name] = 0 if is_left else furthest + 2
    return layers


def _distances(beside: dict[str, list[str]], routers: list[str], start: str) -> dict[str, int]:
    distance, waiting = ({start: 0}, [start]) if start else ({}, [])
    for name in waiting:
        for other in beside[name]:
            if other in routers and other not in distance:
                distance[other] = distance[name] + 1
                waiting.append(other)
    return distance


def _groups(scenario: Json, layers: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return the nodes, like hosts together, in the scenario's order."""
    beside = _neighbours(scenario)
    alike: defaultdict[tuple[Any, ...], list[str]] = defaultdict(list)
    for name in scenario["nodes"]:
        if len(beside[name]) != 1:
            alike[(name,)].append(name)
            continue
        links = [link for link in scenario["links"] if name in (link["a"], link["b"])]
        numbers = tuple((link["rate_bps"], link["delay_s"]) for link in links)
        alike[layers[name], beside[name][0], numbers, _roles(scenario, [name])].append(name)
    groups = []
    for members in alike.values():
        if len(members) > MOST_ALIKE:
            groups.append(tuple(members))
        else:
            groups += [(name,) for name in members]
    return groups


def _roles(scenario: Json, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return what these nodes send and receive: (sends or receives, algorithm)."""
    found: dict[tuple[str, str], None] = {}
    for flow in scenario["flows"]:
        for role, end in (("sends", "source"), ("receives", "destination")):
            if flow[end] in names:
                found[role, flow_algorithm(flow)] = None
    return tuple(found)


def _name(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"


def _note(scenario: Json, names: tuple[str, ...]) -> str:
    by_role: defaultdict[str, list[str]] = defaultdict(list)
    for role, kind in _roles(scenario, names):
        by_role[role].append(kind)
    return "; ".join(f"{role} {', '.join(kinds)}" for role, kinds in by_role.items())


def _wires(scenario: Json, at: Mapping[str, tuple[float, float]]) -> list[DrawnLink]:
    beside = _neighbours(scenario)
    watched = {(monitor["link"], monitor["direction"]) for monitor in scenario["monitors"]}
    wires: dict[tuple[float, float, float, float], DrawnLink] = {}
    said: set[tuple[float, float, str]] = set()
    for link in scenario["links"]:
        ends = sorted((*at[name], len(beside[name]) > 1) for name in (link["a"], link["b"]))
        (x1, y1, from_router), (x2, y2, to_router) = ends
        label = f"{rate(link['rate_bps'])}, {delay(link['delay_s'])}"
        queues = [
            queue(link[f"queue_{way}"]) for way in ("ab", "ba") if (link["id"], way) in watched
        ]
        is_new = (x1, x2, label) not in said
        said.add((x1, x2, label))
        if (x1, y1, x2, y2) not in wires:
            words = label if is_new else ""
            left, right = (ROUTER_HALF if end else HOST_HALF for end in (from_router, to_router))
            middle = (x1 + left + x2 - right) / 2
            level = y1 + (y2 - y1) * (middle - x1) / (x2 - x1) if x2 > x1 else (y1 + y2) / 2
            place = round(middle, 1), round(level, 1)
            wires[x1, y1, x2, y2] = DrawnLink(
                x1, y1, x2, y2, *place, words, "; ".join(queues), is_bottleneck=bool(queues)
            )
    return list(wires.values())


def _words(scenario: Json, wires: Sequence[DrawnLink]) -> str:
    flows: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for flow in scenario["flows"]:
        flows[flow_algorithm(flow), flow["source"], flow["destination"]] += 1
    listed = [
        f"{kind} from {a} to {b}{f' ({n} flows)' if n > 1 else ''}"
        for (kind, a, b), n in flows.items()
    ]
    more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    watched = [f"{wire.label or 'the link'}, {wire.queue}" for wire in wires if wire.is_bottleneck]
    queues = f" The queue that is watched: {'; '.join(watched)}." if watched else ""
    return (
        f"{len(scenario['nodes'])} nodes, {len(scenario['links'])} links. "
        f"Flows: {'; '.join(listed[:4])}{more}.{queues}"
    )


def rate(bps: float) -> str:
    """Return a rate (bit/s) in words."""
    return f"{bps / 1e6:g} Mbit/s" if bps >= 1e5 else f"{bps / 1e3:g} kbit/s"


def delay(seconds: float) -> str:
    """Return a delay (s) in words."""
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-4 or not seconds else f"{seconds * 1e6:g} µs"


_QUEUES = {"droptail": "DropTail", "pfifo": "PFIFO", "red": "RED", "codel": "CoDel"}
_QUEUES |= {"fq_codel": "FQ-CoDel", "pie": "PIE", "fq_pie": "FQ-PIE", "cake": "CAKE"}


def queue(document: Json) -> str:
    """Return a queue's kind and limit in words."""
    kind = str(document["kind"])
    if document.get("limit_packets") is not None:
        limit = f"{document['limit_packets']:,} packets"
    elif "memory_limit_bytes" in document:
        limit = f"{document['memory_limit_bytes']:,} bytes of memory"
    else:
        limit = f"{document['limit_bytes']:,} bytes"
    return f"{_QUEUES.get(kind, kind)}, {limit}"
