"""The space of a map: the study at a place, the path there, and the laws that are drawn into it.

A law predicts a share of the bottleneck's rate from the path at each place; what is drawn is where
it crosses the share that the map's file names. A `line` is where the file says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from replication.design.design import Run, design_study
from replication.engines.model import FlowPaths
from replication.engines.ns3 import NS3_VERSION
from replication.explore.design_point import explored_tier
from replication.explore.maps.map_model import DIGITS, Axis, Law, Map, map_path
from replication.explore.trial_runner import StudyPart
from replication.study.claim_model import Claim, covers
from replication.study.errors import InputError
from replication.study.link import Cake, DropTail, Link, RandomLoss, Red
from replication.study.scenario import Scenario, TcpFlow
from replication.study.study import Study, parameters_of
from replication.study.variation import Variation, apply, rounded


@dataclass(frozen=True, order=True)
class Place:
    """A point of a map: the levels of its facet, and where it lies across and up, 0 to 1."""

    facet: tuple[str, ...]
    across: float
    up: float


@dataclass(frozen=True)
class TcpPath:
    """The path of a scenario's first TCP flow.

    Attributes
    ----------
    rate_bps, rtt_s
        Its slowest link, and twice its propagation.
    segment_bytes, packet_bytes
        A full segment, and the IP packet it travels in.
    queue_packets
        Room at the slowest link.
    loss
        Probability of a random loss on the way.
    active_s
        How long all flows are sending.
    """

    rate_bps: float
    rtt_s: float
    segment_bytes: int
    packet_bytes: int
    queue_packets: float
    loss: float
    active_s: float

    @property
    def bdp_bytes(self) -> float:
        """The product of bandwidth and delay."""
        return self.rate_bps * self.rtt_s / 8

    @property
    def bdp_packets(self) -> float:
        """The same in packets."""
        return self.bdp_bytes / self.packet_bytes


def path_of(scenario: Scenario) -> TcpPath:
    """Return the path of the first TCP flow of a scenario."""
    flows = [flow for flow in scenario.flows if isinstance(flow, TcpFlow)]
    flow = flows[0]
    way = FlowPaths(scenario).links(flow.source, flow.destination)
    slowest, direction = min(way, key=lambda hop: hop[0].rate_bps)
    kept = math.prod(1 - _loss(link, direction) for link, direction in way)
    return TcpPath(
        rate_bps=slowest.rate_bps,
        rtt_s=2 * sum(link.delay_s for link, _ in way),
        segment_bytes=flow.segment_bytes,
        packet_bytes=flow.packet_bytes,
        queue_packets=_room_packets(slowest, direction, flow.packet_bytes),
        loss=1 - kept,
        active_s=min(f.stop_s for f in flows) - max(f.start_s for f in flows),
    )


def _loss(link: Link, direction: str) -> float:
    loss = link.loss_ab if direction == "ab" else link.loss_ba
    return loss.probability if isinstance(loss, RandomLoss) else 0.0


def _room_packets(link: Link, direction: str, packet_bytes: int) -> float:
    queue = link.queue_ab if direction == "ab" else link.queue_ba
    if isinstance(queue, DropTail):
        limit = queue.limit_bytes
        return float(queue.limit_packets or 0) if limit is None else limit / packet_bytes
    if isinstance(queue, Cake):
        return queue.memory_limit_bytes / packet_bytes
    if isinstance(queue, Red) and queue.byte_mode:
        return queue.limit_packets * queue.mean_packet_bytes / packet_bytes
    return float(queue.limit_packets)


@dataclass(frozen=True)
class Space:
    """What a map's places make of its study on an engine."""

    map: Map
    base: Study
    engine: str
    ns3_version: str = NS3_VERSION

    @cached_property
    def claim(self) -> Claim:
        """The sentence that is mapped."""
        return self.map.claim_of(self.base)

    @cached_property
    def study(self) -> Study:
        """The study with the map's sentence and what holds at every point."""
        claims = [c for c in self.base.claims if c.id != self.claim.id]
        study = self.base.model_copy(update={"claims": [*claims, self.claim]})
        return study if self.map.fixed is None else self._changed(self.map.fixed, study)

    @cached_property
    def facets(self) -> list[tuple[str, ...]]:
        """The levels of each facet: one without any where the map has no such axes."""
        levels = [[level.key for level in axis.levels or []] for axis in self.map.facets]
        return list(itertools.product(*levels))

    @cached_property
    def _part(self) -> StudyPart:
        """The part of the study that the sentence is about."""
        wanted = {quantity.experiment for quantity in self.claim.quantities()}
        return StudyPart("map", levels={name: self.map.keep.get(name, {}) for name in wanted})

    def values(self, place: Place) -> tuple[float, float]:
        """Return what a place's two axes say."""
        across, up = self.map.ranges
        assert across.range and up.range
        return across.range.at(place.across, DIGITS), up.range.at(place.up, DIGITS)

    def at(self, place: Place) -> Study:
        """Return the part of the study that the sentence is about, as it is at a place."""
        study = self._part.study(self._at_facet(place.facet))
        computed = []
        for axis, value in zip(self.map.ranges, self.values(place), strict=True):
            if axis.of_bdp is not None:
                computed.append((axis, value))
            elif axis.set is not None:
                scaled = value * axis.scale
                whole = axis.range is not None and axis.range.whole
                number = round(scaled) if whole else rounded(scaled, 8)
                study = self._changed(axis.set.at(number), study)
        if computed:
            path = path_of(self._first(study))
            amounts: dict[str, JsonValue] = {
                a.of_bdp.parameter: amount(a, v, path) for a, v in computed if a.of_bdp
            }
            study = self._changed(Variation(parameters=amounts), study)
        return study

    def _at_facet(self, facet: tuple[str, ...]) -> Study:
        study = self.study
        for axis, key in zip(self.map.facets, facet, strict=True):
            level = next(level for level in axis.levels or [] if level.key == key)
            if level.set is not None:
                study = self._changed(level.set, study)
        return study

    def _changed(self, variation: Variation, study: Study) -> Study:
        try:
            return apply(study, variation)
        except InputError as error:
            raise InputError(f"{map_path_of(self.map)}: {error}") from None

    def _first(self, study: Study) -> Scenario:
        return self._runs(study)[0].scenario

    def runs(self, place: Place, replicate: int = 0) -> list[Run]:
        """Return the runs of a replicate of a place."""
        return self._runs(self.at(place), replicate)

    def _runs(self, study: Study, replicate: int = 0) -> list[Run]:
        wanted = list(self.claim.quantities())
        try:
            tier = explored_tier("all", replicate + 1)
            runs = design_study(study, tier, [self.engine], self.ns3_version)
        except InputError as error:
            raise InputError(f"{map_path_of(self.map)}: {error}") from None
        return [
            run
            for run in runs
            if run.replicate == replicate
            and any(q.experiment == run.experiment and covers(q.where, run.levels) for q in wanted)
        ]

    def path(self, place: Place) -> TcpPath:
        """Return the path at a place."""
        return path_of(self.runs(place)[0].scenario)

    def paper(self) -> dict[str, float]:
        """Return the paper's own value on each axis where it has one."""
        plain = replace(self, map=self.map.model_copy(update={"fixed": None}))
        found: dict[str, float] = {}
        for axis in self.map.ranges:
            value = axis.paper if axis.paper is not None else plain.default(axis)
            if value is not None:
                found[axis.id] = value
        return found

    def default(self, axis: Axis) -> float | None:
        """Return what the study's own default says on an axis; None where it says nothing."""
        names = (
            [axis.of_bdp.parameter]
            if axis.of_bdp
            else list(axis.set.parameters if axis.set else [])
        )
        if len(names) != 1:
            return None
        value = self._parameter(names[0])
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if axis.of_bdp is None:
            return value / axis.scale
        return from_amount(axis, float(value), path_of(self._first(self._part.study(self.study))))

    def _parameter(self, key: str) -> object:
        scope, _, name = key.rpartition("/")
        wanted = scope or next(iter(self._part.levels))
        known = parameters_of(self.base, self.base.experiment(wanted))
        return known[name].value if name in known else None


def map_path_of(found: Map) -> str:
    """Return the file of a map below the project's folder, for messages."""
    return map_path(Path(), found.id).as_posix()


def amount(axis: Axis, value: float, path: TcpPath) -> int:
    """Return the number that an axis of bandwidth and delay gives its parameter."""
    of = axis.of_bdp
    assert of is not None
    packets = value * path.bdp_packets if of.amount == "times" else path.bdp_packets + value
    counted = packets * path.packet_bytes if of.counted_in == "bytes" else packets
    return round(max(counted, of.least))


def from_amount(axis: Axis, counted: float, path: TcpPath) -> float:
    """Return the value on an axis of bandwidth and delay at which its parameter is `counted`."""
    of = axis.of_bdp
    assert of is not None
    packets = counted / path.packet_bytes if of.counted_in == "bytes" else counted
    return packets / path.bdp_packets if of.amount == "times" else packets - path.bdp_packets


# --- laws that are drawn into a map ---

#: Places along each axis at which a law is computed; between them it is interpolated.
_STEPS = 12


@dataclass(frozen=True)
class Curve:
    """A law as it is drawn: its points across and up, 0 to 1, row by row."""

    law: Law
    points: tuple[tuple[float, float], ...]


def mathis(law: Law, path: TcpPath) -> float:
    """Return Reno's share of the link at random loss: MSS C / (RTT sqrt(p)).

    Mathis, Semke, Mahdavi and Ott 1997, The Macroscopic Behavior of the TCP Congestion Avoidance
    Algorithm, equation 3.
    """
    assert law.constant is not None
    if path.loss == 0:
        return math.inf
    rate_bps = 8 * path.segment_bytes * law.constant / (path.rtt_s * math.sqrt(path.loss))
    return rate_bps / path.rate_bps


def cubic_response(law: Law, path: TcpPath) -> float:
    """Return CUBIC's share of the link at random loss: 1.054 (RTT / p)^(3/4) segments a window.

    RFC 8312, section 5, for C = 0.4 and a window cut to 0.7; where Reno would have the larger
    window, Reno's.
    """
    if path.loss == 0:
        return math.inf
    cubic = 1.054 * (path.rtt_s / path.loss) ** 0.75
    friendly = math.sqrt(3 / 2) / math.sqrt(path.loss)
    window_bytes: float = path.segment_bytes * max(cubic, friendly)
    return 8 * window_bytes / (path.rtt_s * path.rate_bps)


def ware(law: Law, path: TcpPath) -> float:
    """Return the share of one BBR flow beside loss-based flows in a buffer of X products.

    Ware, Mukerjee, Seshan and Sherry 2019, Modeling BBR's Interactions with Loss-Based Congestion
    Control (IMC '19): BBR keeps two products in flight, so that the others have 1/2 - 1/(2X) - 4N/q
    of the link in a queue of q packets; every ten seconds it drains its queue and probes for 0.2 s.
    """
    q = path.queue_packets
    x = q / path.bdp_packets
    others = 0.5 - 1 / (2 * x) - 4 / q
    if x <= 1 or others <= 0:
        return 1.0
    full_s = q * 8 * path.packet_bytes / path.rate_bps
    probe_s = (full_s + 0.2 + path.rtt_s) * path.active_s / 10
    return (1 - others) * max(0.0, path.active_s - probe_s) / path.active_s


def room(law: Law, path: TcpPath) -> float:
    """Return the room of the queue over the law's packets."""
    assert law.value is not None
    return path.queue_packets / law.value


_LAWS: dict[str, Callable[[Law, TcpPath], float]] = {
    "room": room,
    "mathis": mathis,
    "cubic_response": cubic_response,
    "ware": ware,
}


def curves(space: Space, facet: tuple[str, ...]) -> list[Curve]:
    """Return the laws of a map in a facet; a law that is crossed nowhere has no points."""
    laws = [law for law in space.map.theory if not law.facets or set(law.facets) & set(facet)]
    paths: list[list[TcpPath]] = []
    if any(law.kind != "line" for law in laws):
        steps = [step / _STEPS for step in range(_STEPS + 1)]
        paths = [[space.path(Place(facet, across, up)) for across in steps] for up in steps]
    return [_curve(space, law, paths) for law in laws]


def _curve(space: Space, law: Law, paths: Sequence[Sequence[TcpPath]]) -> Curve:
    if law.kind == "line":
        assert law.axis is not None and law.value is not None
        across, up = space.map.ranges
        own = across if law.axis == across.id else up
        assert own.range is not None
        at = own.range.position(law.value)
        ends = ((at, 0.0), (at, 1.0)) if own is across else ((0.0, at), (1.0, at))
        return Curve(law, ends if 0 <= at <= 1 else ())
    shares = [[_LAWS[law.kind](law, path) for path in row] for row in paths]
    return Curve(law, tuple(_crossed(shares, 1.0 if law.share is None else law.share)))


def _crossed(shares: Sequence[Sequence[float]], wanted: float) -> list[tuple[float, float]]:
    """Return where rows, or if none does columns, first cross a share."""
    found = [
        (at / _STEPS, number / _STEPS)
        for number, row in enumerate(shares)
        if (at := _first_crossing(row, wanted)) is not None
    ]
    if len(found) > 1:
        return found
    columns = [list(column) for column in zip(*shares, strict=True)]
    return [
        (number / _STEPS, at / _STEPS)
        for number, column in enumerate(columns)
        if (at := _first_crossing(column, wanted)) is not None
    ]


def _first_crossing(values: Sequence[float], wanted: float) -> float | None:
    for number, (one, other) in enumerate(itertools.pairwise(values)):
        if (one < wanted) != (other < wanted) and all(map(math.isfinite, (one, other))):
            # The laws are powers: straight in the logarithm.
            low, high, level = math.log(one), math.log(other), math.log(wanted)
            return number + (level - low) / (high - low)
    return None
