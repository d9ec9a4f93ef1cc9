"""The input file of an engine's program: a scenario as text, the same for every engine.

Each line is a statement: a word, then names and values in a fixed order. Defaults are filled in and
routes are computed. Programs read the file strictly and do not repeat the checks made here.

    input version 1 engine ns3 scenario <SHA-256 of the scenario's canonical JSON>
    run duration_ns 10000000000 sampling_interval_ns 100000000 seed 1
    host segmentation_offload 0 timer_hz 250
    node id s0
    link id wire a 0 b 1 rate_bps 2000000.0 delay_ns 20000000 jitter_ns 0 frame_bytes 0
    queue_ab kind droptail limit_packets 50 limit_bytes none
    queue_ba ...
    loss_ab kind random probability 0.01
    loss_ba kind none
    shaper_ab kind token_bucket burst_bytes 1600 line_rate_bps 1000000000.0
    shaper_ba kind none
    flow id c kind cbr source 0 destination 1 start_ns 0 stop_ns 10000000000 rate_bps ...
    monitor link 0 direction ab
    route link 0 direction ab to 1
    end

Nodes, links and flows are referred to by their index, from 0. Times are whole nanoseconds, truth
values 0 and 1, lists have commas; other numbers read back to the same double. Optional keys
(`stop_after_bytes`, `ecn`, `socket_samples`) are at the end of their line, if they are set.
A route names the link direction over which its sending end reaches node `to`. There is one for
every node that data or acknowledgements of some flow go to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replication.engines.model import Engine
from replication.engines.routing import Routes
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.link import Link
from replication.study.model import Document
from replication.study.scenario import Flow, Scenario, TcpFlow

#: Version of the grammar.
VERSION = 1
#: The input in a run's folder: the scenario for people, the input file for the program.
SCENARIO_FILE, INPUT_FILE = "scenario.json", "input.txt"
_WAYS = ("ab", "ba")
#: Optional keys. They are omitted if unset, so that older scenarios keep their input file.
_ADDED_KEYS = ("stop_after_bytes", "ecn", "socket_samples")


def write_inputs(folder: Path, scenario: Scenario, engine: Engine) -> None:
    """Write the scenario and its input file for `engine` into a new `folder`.

    Raises
    ------
    InputError
        As `input_text` does; nothing is written.
    """
    text = input_text(scenario, engine)
    write_text(folder / SCENARIO_FILE, scenario.canonical_json() + "\n")
    write_text(folder / INPUT_FILE, text)


def input_text(scenario: Scenario, engine: Engine) -> str:
    """Return the text of a scenario's input file for `engine`.

    Raises
    ------
    InputError
        The engine lacks a feature of the scenario, or a flow has no path; the message names it.
    """
    if refused := engine.refusal(scenario):
        raise InputError(f"scenario {scenario.id}: {refused}")
    return "\n".join(_InputFile(scenario, engine).lines()) + "\n"


def nanoseconds(seconds: float) -> int:
    """Convert a time from s to ns, the resolution of all times in input files."""
    return round(seconds * 1e9)


def _nanoseconds(name: str, seconds: float) -> int:
    """Return a field's time in ns; only these fields may be 0."""
    ns = nanoseconds(seconds)
    if ns == 0 and name not in ("connect_s", "start_s", "delay_s", "jitter_s"):
        raise InputError(f"{name}: {seconds!r} is less than a nanosecond")
    return ns


class _InputFile:
    """The lines of one input file; ids become indices."""

    def __init__(self, scenario: Scenario, engine: Engine) -> None:
        self._scenario, self._engine = scenario, engine
        self._nodes = _places(scenario.nodes)
        self._links = _places([link.id for link in scenario.links])
        self._flows = _places([flow.id for flow in scenario.flows])

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        scenario = self._scenario
        yield f"input version {VERSION} engine {self._engine.name} scenario {scenario.sha256}"
        run = ("duration_s", "sampling_interval_s", "seed")
        yield self._line("run", {name: getattr(scenario, name) for name in run})
        yield self._line("host", _members(scenario.host_or_default()))
        for name in scenario.nodes:
            yield f"node id {name}"
        for link in scenario.links:
            yield from self._link(link)
        for flow in scenario.flows:
            yield self._flow(flow)
        for monitor in scenario.monitors:
            yield self._line("monitor", _members(monitor) | {"link": self._links[monitor.link]})
        yield from self._routes()
        yield "end"

    def _line(self, word: str, members: dict[str, Any]) -> str:
        parts = [word]
        for name, value in members.items():
            if name.endswith("_s"):
                name, value = f"{name[:-2]}_ns", _nanoseconds(name, value)
            parts += [name, _text(value)]
        return " ".join(parts)

    def _link(self, link: Link) -> Iterator[str]:
        parts = [f"{part}_{way}" for part in ("queue", "loss", "shaper") for way in _WAYS]
        members = _members(link)
        found = {part: members.pop(part) for part in parts}
        yield self._line("link", members | {end: self._nodes[members[end]] for end in "ab"})
        for part, document in found.items():
            members = {"kind": "none"} if document is None else _members(document)
            if "data_packets" in members:
                members["flow"] = self._flows[members["flow"]]
                members["data_packets"] = sorted(set(members["data_packets"]))
            yield self._line(part, members)

    def _flow(self, flow: Flow) -> str:
        members = _members(self._engine.resolved(flow) if isinstance(flow, TcpFlow) else flow)
        first = {name: members.pop(name) for name in ("id", "kind")}
        for end in ("source", "destination"):
            members[end] = self._nodes[members[end]]
        if "connect_s" in members and members["connect_s"] is None:
            members["connect_s"] = flow.start_s
        # A flow cannot stop after the end of the run.
        members["stop_s"] = min(flow.stop_s, self._scenario.duration_s)
        if nanoseconds(flow.start_s) >= nanoseconds(members["stop_s"]):
            raise InputError(f"flow {flow.id}: start_s is less than 1 ns before it stops")
        return self._line("flow", first | members)

    def _routes(self) -> Iterator[str]:
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
                        yield f"route link {hop // 2} direction {_WAYS[hop % 2]} to {end}"

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


def _members(document: Document) -> dict[str, Any]:
    """Return the fields of a document in their order, a queue's or flow's kind first."""
    names = sorted(type(document).model_fields, key=lambda name: name != "kind")
    members = {name: getattr(document, name) for name in names}
    return {name: v for name, v in members.items() if v or name not in _ADDED_KEYS}


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else repr(value)
