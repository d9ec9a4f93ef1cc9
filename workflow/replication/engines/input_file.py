"""The input of an engine's program: a scenario in which everything is said, by name.

One document serves every engine. Defaults are filled in, routes are computed, ids are replaced by
their places, from 0, and times are whole nanoseconds. Programs read it strictly: a key that they do
not know, or miss, is an error; the order of keys means nothing. A key that an engine lacks
(`Engine.lacks`) is not written; a scenario that sets it is refused by name.

The programs of ns-2 and Linux read it as JSON:

    {"version": 2, "engine": "ns2", "scenario": <the scenario's SHA-256>,
     "run": {"duration_ns": ..., "sampling_interval_ns": ..., "seed": 1}, "host": {...},
     "nodes": [{"id": "s0"}, ...],
     "links": [{"id": "wire", "a": 0, "b": 1, "rate_bps": 2000000.0, ..., "queue_ab": {...},
                "queue_ba": {...}, "loss_ab": null, "loss_ba": {...}, ...,
                "changes": [{"at_ns": 5000000000, "rate_bps": 1000000.0, "delay_ns": null, ...}],
                "opportunities_ab": null, "opportunities_ba": [0, 0, 1, 2]}],
     "flows": [{"id": "c", "kind": "cbr", "source": 0, ...}],
     "monitors": [{"link": 0, "direction": "ab"}],
     "routes": [{"link": 0, "direction": "ab", "to": 1}]}

That of ns-3 reads the same as lines: a word, then names and values. A link's parts follow it.

    input version 2 engine ns3 scenario <SHA-256>
    run duration_ns 10000000000 sampling_interval_ns 100000000 seed 1
    node id s0
    link id wire a 0 b 1 rate_bps 2000000.0 delay_ns 20000000 jitter_ns 0 frame_bytes 0
    queue_ab kind droptail limit_packets 50 limit_bytes none
    loss_ab kind random probability 0.01
    opportunities_ba at_ms 0,0,1,2
    change at_ns 5000000000 rate_bps 1000000.0 delay_ns none loss_ab 0.02 loss_ba none
    flow id c kind cbr source 0 destination 1 ...
    end

There, truth values are 0 and 1, lists have commas, and nothing is `none`. In both forms numbers
read back to the same double. A route names the link direction over which its sending end reaches
node `to`. There is one for every node that data or acknowledgements of some flow go to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replication.base.errors import InputError
from replication.base.files import write_text
from replication.base.model import Document
from replication.engines.model import Engine
from replication.engines.routing import Routes
from replication.study.link import Link
from replication.study.scenario import Flow, Scenario, TcpFlow
from replication.study.series import read_series

#: Version of the grammar.
VERSION = 2
#: The input in a run's folder: the scenario for people, the input file for the program.
SCENARIO_FILE, INPUT_FILE = "scenario.json", "input"
_WAYS = ("ab", "ba")
#: Times that may be 0.
_MAY_BE_ZERO = ("connect_s", "start_s", "delay_s", "jitter_s")
#: Members of the document that are one line each, and those that are a line an entry.
_LINES = ("run", "host")
_LISTS = {"nodes": "node", "links": "link", "flows": "flow", "monitors": "monitor"}
_LISTS["routes"] = "route"
_PARTS = ("queue_", "loss_", "shaper_", "opportunities_", "changes")

Members = dict[str, Any]


def write_inputs(folder: Path, scenario: Scenario, engine: Engine, root: Path = Path()) -> None:
    """Write the scenario and its input file for `engine` into a new `folder`.

    `root` is the project's folder, in which a scenario's files are.

    Raises
    ------
    InputError
        As `input_text` does; nothing is written.
    """
    text = input_text(scenario, engine, root)
    write_text(folder / SCENARIO_FILE, scenario.to_json() + "\n")
    write_text(folder / INPUT_FILE, text)


def input_text(scenario: Scenario, engine: Engine, root: Path = Path()) -> str:
    """Return the text of a scenario's input file for `engine`.

    Raises
    ------
    InputError
        The engine lacks a feature of the scenario, a flow has no path, or a file of the scenario is
        missing or wrong; the message names it.
    """
    if refused := engine.refusal(scenario):
        raise InputError(f"scenario {scenario.id}: {refused}")
    document = _Writer(scenario, engine, root).document()
    if engine.reads_json:
        return json.dumps(document, allow_nan=False) + "\n"
    return "\n".join(_lines(document)) + "\n"


def nanoseconds(seconds: float) -> int:
    """Convert a time from s to ns, the resolution of all times in input files."""
    return round(seconds * 1e9)


class _Writer:
    """Makes the document of one scenario for one engine."""

    def __init__(self, scenario: Scenario, engine: Engine, root: Path) -> None:
        self._scenario, self._engine, self._root = scenario, engine, root
        self._nodes = _places(scenario.nodes)
        self._links = _places([link.id for link in scenario.links])
        self._flows = _places([flow.id for flow in scenario.flows])

    def document(self) -> Members:
        scenario = self._scenario
        document: Members = {
            "version": VERSION,
            "engine": self._engine.name,
            "scenario": scenario.sha256,
            "run": {
                "duration_ns": _nanoseconds("duration_s", scenario.duration_s),
                "sampling_interval_ns": _nanoseconds(
                    "sampling_interval_s", scenario.sampling_interval_s
                ),
                "seed": scenario.seed,
            },
            "host": self._members("host", scenario.host),
            "nodes": [{"id": name} for name in scenario.nodes],
            "links": [self._link(link) for link in scenario.links],
            "flows": [self._flow(flow) for flow in scenario.flows],
            "monitors": [
                {"link": self._links[monitor.link], "direction": monitor.direction}
                for monitor in scenario.monitors
            ],
            "routes": list(self._routes()),
        }
        if not document["host"]:
            del document["host"]
        return document

    def _members(self, part: str, document: Document) -> Members:
        """Return the keys of a part that the engine has, with times in ns."""
        members: Members = {}
        for key, value in document:
            if f"{part}.{key}" in self._engine.lacks:
                continue
            if key.endswith("_s"):
                ns = None if value is None else _nanoseconds(key, value)
                members[f"{key[:-2]}_ns"] = ns
            elif hasattr(value, "kind"):
                members[key] = self._members(value.kind, value)
            else:
                members[key] = value
        return members

    def _link(self, link: Link) -> Members:
        members = self._members("link", link)
        members["a"], members["b"] = self._nodes[link.a], self._nodes[link.b]
        for way in _WAYS:
            loss = members[f"loss_{way}"]
            if loss is not None and loss["kind"] == "listed":
                loss["flow"] = self._flows[loss["flow"]]
                loss["data_packets"] = sorted(set(loss["data_packets"]))
            key = f"opportunities_{way}"
            if (series := members.get(key)) is not None:
                members[key] = read_series(series, self._root)
        if "changes" in members:
            members["changes"] = [self._members("change", change) for change in link.changes]
        return members

    def _flow(self, flow: Flow) -> Members:
        # A flow cannot stop after the end of the run.
        stop_s = min(flow.stop_s, self._scenario.duration_s)
        if nanoseconds(flow.start_s) >= nanoseconds(stop_s):
            raise InputError(f"flow {flow.id}: start_s is less than 1 ns before it stops")
        changed: Members = {"stop_s": stop_s}
        if isinstance(flow, TcpFlow):
            flow = self._engine.resolved(flow)
            changed["connect_s"] = flow.start_s if flow.connect_s is None else flow.connect_s
        members = self._members(flow.kind, flow.model_copy(update=changed))
        members["source"] = self._nodes[flow.source]
        members["destination"] = self._nodes[flow.destination]
        return members

    def _routes(self) -> Iterator[Members]:
        """Yield every hop of every flow, there and back, once."""
        ends = [(self._nodes[link.a], self._nodes[link.b]) for link in self._scenario.links]
        routes = Routes(len(self._nodes), ends)
        known: set[tuple[int, int]] = set()
        for flow in self._scenario.flows:
            source, destination = self._nodes[flow.source], self._nodes[flow.destination]
            for start, end in ((source, destination), (destination, source)):
                path = routes.path(start, end)
                self._check_path(flow, path)
                for hop in path:
                    if (end, hop) not in known:
                        known.add((end, hop))
                        yield {"link": hop // 2, "direction": _WAYS[hop % 2], "to": end}

    def _check_path(self, flow: Flow, path: list[int]) -> None:
        where = f"flow {flow.id}.destination: {flow.destination!r}"
        if not path:
            raise InputError(f"{where} cannot be reached from {flow.source!r}: add links")
        if len(path) > self._engine.most_hops:
            raise InputError(
                f"{where} is {len(path)} hops away from {flow.source!r}; {self._engine.name} has "
                f"room for {self._engine.most_hops}"
            )


def _places(ids: list[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(ids)}


def _nanoseconds(key: str, seconds: float) -> int:
    """Return a key's time in ns; only some may be 0."""
    ns = nanoseconds(seconds)
    if ns == 0 and key not in _MAY_BE_ZERO:
        raise InputError(f"{key}: {seconds!r} is less than a nanosecond")
    return ns


def _lines(document: Members) -> Iterator[str]:
    """Yield the document as lines."""
    yield _line("input", {key: document[key] for key in ("version", "engine", "scenario")})
    for word in _LINES:
        if word in document:
            yield _line(word, document[word])
    for key, word in _LISTS.items():
        for entry in document[key]:
            yield from _entry(word, entry)
    yield "end"


def _entry(word: str, entry: Members) -> Iterator[str]:
    """Yield the line of an entry, and those of a link's parts."""
    members: Members = {}
    parts: list[str] = []
    for name, value in entry.items():
        if not name.startswith(_PARTS):
            members[name] = value
        elif name == "changes":
            parts += [_line("change", change) for change in value]
        elif isinstance(value, list):
            parts.append(_line(name, {"at_ms": value}))
        elif value is not None:
            parts.append(_line(name, value))
    yield _line(word, members)
    yield from parts


def _line(word: str, members: Members) -> str:
    return " ".join([word, *(f"{name} {_text(value)}" for name, value in members.items())])


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else repr(value)
