"""Strict reader of plans (workflow/replication/lowering.py has their grammar).

Shared by the engines whose program is Python; it is laid beside their own modules when they are
built, and needs nothing but the standard library. What values mean was checked when a plan was
made: here a plan is whole and for this engine, or refused in a line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

VERSION = "1"
DIRECTIONS = ("ab", "ba")
#: IP and TCP headers, the TCP option of timestamps, IP and UDP headers.
TCP_HEADER_BYTES, TIMESTAMP_BYTES, UDP_HEADER_BYTES = 40, 12, 28
T = TypeVar("T")


class InputError(Exception):
    """The plan or the command line is bad, or asks for what is not here."""


@dataclass
class Head:
    """Of what the plan is, and for whom."""

    version: str
    engine: str
    scenario: str


@dataclass
class Run:
    """How long, how often sampled, and the seed of all chance."""

    duration_ns: int
    sampling_interval_ns: int
    seed: int


@dataclass
class Host:
    """What all hosts have in common."""

    segmentation_offload: bool
    timer_hz: int


@dataclass
class Node:
    """A host or router."""

    id: str


@dataclass
class DropTail:
    """FIFO of the device itself: one of the limits is none."""

    limit_packets: int | None
    limit_bytes: int | None


@dataclass
class Pfifo:
    """FIFO in front of a device queue."""

    limit_packets: int
    device_queue_packets: int


@dataclass
class Red:
    """Random Early Detection."""

    limit_packets: int
    minimum_threshold_packets: float
    maximum_threshold_packets: float
    queue_weight: float
    maximum_probability: float
    mean_packet_bytes: int
    gentle: bool
    byte_mode: bool
    wait: bool
    device_queue_packets: int


@dataclass
class CoDel:
    """Controlled Delay."""

    limit_packets: int
    target_ns: int
    interval_ns: int
    device_queue_packets: int


@dataclass
class FqCoDel:
    """Flow Queue CoDel."""

    limit_packets: int
    target_ns: int
    interval_ns: int
    buckets: int
    quantum_bytes: int
    device_queue_packets: int


@dataclass
class Pie:
    """Proportional Integral controller Enhanced."""

    limit_packets: int
    target_ns: int
    update_interval_ns: int
    mean_packet_bytes: int
    device_queue_packets: int


Queue = DropTail | Pfifo | Red | CoDel | FqCoDel | Pie


@dataclass
class NoLoss:
    """Nothing is lost on the way."""


@dataclass
class RandomLoss:
    """Each packet is lost with a probability."""

    probability: float


@dataclass
class ListedLoss:
    """The n-th data packets of a flow are lost; 1 is the first to cross."""

    flow: int
    data_packets: list[int]


Loss = NoLoss | RandomLoss | ListedLoss


@dataclass
class Link:
    """A link between nodes; queues and losses are of the directions ab and ba."""

    id: str
    a: int
    b: int
    rate_bps: float
    delay_ns: int
    queues: list[Queue] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    @property
    def ends(self) -> tuple[int, int]:
        """Return its nodes: the senders of its directions."""
        return self.a, self.b


@dataclass
class Tcp:
    """A bulk transfer."""

    id: str
    source: int
    destination: int
    start_ns: int
    stop_ns: int
    congestion_control: str
    recovery: str
    sack: bool
    timestamps: bool
    segment_bytes: int
    initial_window_segments: int
    initial_ssthresh_bytes: int | None
    maximum_window_bytes: int | None
    delayed_ack_segments: int
    delayed_ack_timeout_ns: int
    minimum_rto_ns: int
    initial_rto_ns: int
    clock_granularity_ns: int
    limited_transmit: bool
    vegas_alpha_packets: int
    vegas_beta_packets: int
    vegas_gamma_packets: int
    cubic_tcp_friendliness: bool
    cubic_fast_convergence: bool

    @property
    def packet_bytes(self) -> int:
        """Return the size of its largest IP packet."""
        return self.segment_bytes + TCP_HEADER_BYTES + TIMESTAMP_BYTES * self.timestamps

    @property
    def payload_bytes(self) -> int:
        """Return what of it the application gets."""
        return self.segment_bytes


@dataclass
class Cbr:
    """A constant bit rate."""

    id: str
    source: int
    destination: int
    start_ns: int
    stop_ns: int
    rate_bps: float
    packet_bytes: int

    @property
    def payload_bytes(self) -> int:
        """Return what of a packet the application gets."""
        return self.packet_bytes - UDP_HEADER_BYTES


Flow = Tcp | Cbr


@dataclass
class Monitor:
    """A direction whose queue is sampled."""

    link: int
    direction: str

    @property
    def hop(self) -> int:
        """Return the direction as a number: twice the link, and 1 more for ba."""
        return 2 * self.link + DIRECTIONS.index(self.direction)


@dataclass
class Route(Monitor):
    """The sending end of this direction reaches a node by it."""

    to: int


_QUEUES = {
    "droptail": DropTail,
    "pfifo": Pfifo,
    "red": Red,
    "codel": CoDel,
    "fq_codel": FqCoDel,
    "pie": Pie,
}
_LOSSES = {"none": NoLoss, "random": RandomLoss, "listed": ListedLoss}
_FLOWS = {"tcp": Tcp, "cbr": Cbr}


@dataclass
class Plan:
    """One run."""

    sha256: str
    run: Run
    host: Host
    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    monitors: list[Monitor] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """Return how many instants are sampled."""
        return self.run.duration_ns // self.run.sampling_interval_ns

    def name(self, hop: int) -> str:
        """Return what tables call a direction."""
        return f"{self.links[hop // 2].id}:{DIRECTIONS[hop % 2]}"


def read_plan(path: str, engine: str) -> Plan:
    """Read a plan for `engine`; InputError, with the line, at whatever is not one."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}): give a plan") from None
    except UnicodeDecodeError:
        text = ""
    lines = _Lines(text)
    try:
        return _read(lines, engine)
    except InputError as error:
        remedy = f"give a plan that replicate made for {engine}"
        raise InputError(f"{path}: line {lines.number}: {error}: {remedy}") from None


def _read(lines: _Lines, engine: str) -> Plan:
    head = lines.next(Head, "plan")
    if head.version != VERSION:
        raise InputError(f"a plan of version {head.version}, not {VERSION}")
    if head.engine != engine:
        raise InputError(f"a plan for engine {head.engine}, not {engine}")
    if not re.fullmatch("[0-9a-f]{64}", head.scenario):
        raise InputError("plan.scenario: not a hash")
    plan = Plan(head.scenario, lines.next(Run, "run"), lines.next(Host, "host"))
    plan.nodes = list(lines.all(Node, "node"))
    for link in lines.all(Link, "link"):
        link.queues = [lines.next_of(_QUEUES, f"queue_{way}") for way in DIRECTIONS]
        link.losses = [lines.next_of(_LOSSES, f"loss_{way}") for way in DIRECTIONS]
        plan.links.append(link)
    while lines.word == "flow":
        plan.flows.append(lines.next_of(_FLOWS, "flow", 2))
    plan.monitors = list(lines.all(Monitor, "monitor"))
    plan.routes = list(lines.all(Route, "route"))
    lines.finish()
    _check_places(plan)
    return plan


class _Lines:
    """The lines of a plan, one after the other."""

    def __init__(self, text: str) -> None:
        # A last line that is not ended was cut.
        self._lines = [line.split(" ") for line in text.split("\n")[:-1]]
        self.number = 0

    @property
    def word(self) -> str:
        """Return the first word of the next line; empty at the end."""
        return self._lines[self.number][0] if self.number < len(self._lines) else ""

    def next(self, kind: type[T], word: str) -> T:
        """Return what the next line states, which begins with `word`."""
        return _take(kind, word, self._words(word))

    def next_of(self, kinds: dict[str, type[Any]], word: str, at: int = 0) -> Any:
        """Return what the next line states, whose kind is the value that begins `at`."""
        words = self._words(word)
        if words[at : at + 1] != ["kind"] or words[at + 1 : at + 2] == []:
            raise InputError(f"{word}: without its kind")
        if words[at + 1] not in kinds:
            raise InputError(f"{word}.kind: {words[at + 1]!r} is not one")
        return _take(kinds[words[at + 1]], word, words[:at] + words[at + 2 :])

    def all(self, kind: type[T], word: str) -> Iterator[T]:
        """Yield what the next lines state, as long as they begin with `word`."""
        while self.word == word:
            yield self.next(kind, word)

    def finish(self) -> None:
        """Require the last line."""
        if self._words("end") or self.number < len(self._lines):
            raise InputError("something follows the end")

    def _words(self, word: str) -> list[str]:
        found = self.word
        self.number += 1
        if found != word:
            raise InputError(f"{found!r} where {word} belongs" if found else "nothing, too early")
        return self._lines[self.number - 1][1:]


def _take(kind: type[T], word: str, words: list[str]) -> T:
    """Return a statement of names and values in the order of its fields, none left out."""
    wanted = [f for f in fields(kind) if f.default_factory is MISSING]  # type: ignore[arg-type]
    names = [f.name for f in wanted]
    if words[::2] != names or len(words) % 2:
        raise InputError(f"{word}: not {', '.join(names) or 'nothing'}, each with a value")
    values = {}
    for given, text in zip(wanted, words[1::2], strict=True):
        try:
            values[given.name] = _VALUES[str(given.type)](text)
        except ValueError:
            raise InputError(f"{word}.{given.name}: {text!r} is not one") from None
    return kind(**values)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


def _optional(text: str) -> int | None:
    return None if text == "none" else _whole(text)


def _flag(text: str) -> bool:
    return bool(("0", "1").index(text))


def _word(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _numbers(text: str) -> list[int]:
    return [_whole(item) for item in text.split(",")]


#: How a value is read, by the annotation of its field.
_VALUES: dict[str, Any] = {
    "str": _word,
    "int": _whole,
    "float": _number,
    "bool": _flag,
    "int | None": _optional,
    "list[int]": _numbers,
}


def _check_places(plan: Plan) -> None:
    """Require that whatever is referred to is there."""
    ends = [end for link in plan.links for end in link.ends]
    ends += [end for flow in plan.flows for end in (flow.source, flow.destination)]
    ends += [route.to for route in plan.routes]
    losses = [loss for link in plan.links for loss in link.losses]
    lost = [loss.flow for loss in losses if isinstance(loss, ListedLoss)]
    watched = [way.link for way in (*plan.monitors, *plan.routes)]
    for what, places, size in (
        ("node", ends, len(plan.nodes)),
        ("flow", lost, len(plan.flows)),
        ("link", watched, len(plan.links)),
    ):
        if max(places, default=-1) >= size:
            raise InputError(f"{what} {max(places)} is not there")
    if any(way.direction not in DIRECTIONS for way in (*plan.monitors, *plan.routes)):
        raise InputError("a direction is neither ab nor ba")


class Routes:
    """The plan's routes, to be followed."""

    def __init__(self, plan: Plan) -> None:
        self._links = plan.links
        self._next = {
            (plan.links[route.link].ends[route.hop % 2], route.to): route.hop
            for route in plan.routes
        }

    def path(self, source: int, destination: int) -> list[int]:
        """Return the directions, as numbers, from one node to another."""
        path: list[int] = []
        at = source
        while at != destination:
            hop = self._next.get((at, destination))
            if hop is None or len(path) > len(self._links):
                raise InputError(f"there is no route from node {source} to node {destination}")
            path.append(hop)
            at = self._links[hop // 2].ends[1 - hop % 2]
        return path
