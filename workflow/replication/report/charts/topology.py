"""A scenario's network in lines of text: its links, like ones together, and its flows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from replication.report.charts.data import flow_algorithm

#: More like hosts than these are named by the first and the last.
MOST_ALIKE = 3
_QUEUES = {"droptail": "DropTail", "pfifo": "PFIFO", "red": "RED", "codel": "CoDel"}
_QUEUES |= {"fq_codel": "FQ-CoDel", "pie": "PIE", "fq_pie": "FQ-PIE", "cake": "CAKE"}

Json = Mapping[str, Any]


def topology_lines(scenario: Json) -> list[str]:
    """Return a line a link, with the queues that are watched, and a line a congestion control.

    Hosts with like links to one node share a line. A watched link has double strokes.
    """
    degree = Counter(end for link in scenario["links"] for end in (link["a"], link["b"]))
    queues: defaultdict[str, list[str]] = defaultdict(list)
    known = {link["id"]: link for link in scenario["links"]}
    for monitor in scenario["monitors"]:
        link = known[monitor["link"]]
        queues[link["id"]].append(queue(link[f"queue_{monitor['direction']}"]))
    alike: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for link in scenario["links"]:
        words = ", ".join([rate(link["rate_bps"]), delay(link["delay_s"]), *queues[link["id"]]])
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
    if len(names) <= MOST_ALIKE:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)})"


def rate(bps: float) -> str:
    """Return a rate (bit/s) in words."""
    return f"{bps / 1e6:g} Mbit/s" if bps >= 1e5 else f"{bps / 1e3:g} kbit/s"


def delay(seconds: float) -> str:
    """Return a delay (s) in words."""
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-4 or not seconds else f"{seconds * 1e6:g} µs"


def queue(document: Json) -> str:
    """Return a queue's kind and limit in words."""
    kind = str(document["kind"])
    if document.get("limit_packets") is not None:
        limit = f"{document['limit_packets']:,} packets"
    elif "memory_limit_bytes" in document:
        limit = f"{document['memory_limit_bytes']:,} bytes of memory"
    else:
        limit = f"{document['limit_bytes']:,} bytes"
    return f"{_QUEUES.get(kind, kind)} {limit}"
