"""The space of a region: the study at a point, the path there, and the laws that are drawn.

A law predicts a share of the bottleneck's rate from the path at each point; what is drawn is where
it crosses the share that the region's file names. A `line` is where the file says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import JsonValue

from replication.design.design import Run, design_study
from replication.engines.model import FlowPaths
from replication.engines.ns3 import NS3_VERSION
from replication.explore.design_point import explored_tier
from replication.explore.regions.region_model import DIGITS, Axis, Law, OfBdp, Region, region_path
from replication.explore.trial import StudyPart
from replication.study.claim_model import Claim, covers
from replication.study.errors import InputError
from replication.study.link import Cake, DropTail, Link, Red
from replication.study.scenario import Scenario, TcpFlow
from replication.study.study import Study, parameters_of
from replication.study.variation import Variation, apply, rounded

#: The levels of the axes without numbers.
Panel = tuple[str, ...]


class Point(NamedTuple):
    """A point of a region: its panel, and where it lies on both axes, 0 to 1."""

    panel: Panel
    x: float
    y: float


@dataclass(frozen=True)
class TcpPath:
    """The path of a scenario's first TCP flow.

    The rate is that of its slowest link, the round trip twice its propagation, a packet the IP
    packet of a full segment, `queue_packets` the room at the slowest link, `loss` the probability
    of a random loss on the way, and `active_s` how long all flows are sending.
    """

    rate_bps: float
    rtt_s: float
    segment_bytes: int
    packet_bytes: int
    queue_packets: float
    loss: float
    active_s: float

    @property
    def bdp_packets(self) -> float:
        """The product of bandwidth and delay."""
        return self.rate_bps * self.rtt_s / 8 / self.packet_bytes


def path_of(scenario: Scenario) -> TcpPath:
    """Return the path of the first TCP flow of a scenario."""
    flow, *_ = flows = [flow for flow in scenario.flows if isinstance(flow, TcpFlow)]
    way = FlowPaths(scenario).links(flow.source, flow.destination)
    slowest, direction = min(way, key=lambda hop: hop[0].rate_bps)
    kept = math.prod(1 - link.random_loss(direction) for link, direction in way)
    return TcpPath(
        rate_bps=slowest.rate_bps,
        rtt_s=2 * sum(link.delay_s for link, _ in way),
        segment_bytes=flow.segment_bytes,
        packet_bytes=flow.packet_bytes,
        queue_packets=_room_packets(slowest, direction, flow.packet_bytes),
        loss=1 - kept,
        active_s=min(f.stop_s for f in flows) - max(f.start_s for f in flows),
    )


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
    """What the points of a region make of its study on an engine."""

    region: Region
    base: Study
    engine: str
    ns3_version: str = NS3_VERSION

    @cached_property
    def claim(self) -> Claim:
        """The claim that is mapped."""
        return self.region.claim_of(self.base)

    @cached_property
    def study(self) -> Study:
        """The study with the region's claim and what holds at every point."""
        claims = [c for c in self.base.claims if c.id != self.claim.id]
        study = self.base.model_copy(update={"claims": [*claims, self.claim]})
        return study if self.region.fixed is None else apply(study, self.region.fixed)

    @cached_property
    def panels(self) -> list[Panel]:
        """The panels: one without levels where the region has no such axes."""
        levels = [[level.key for level in axis.levels or []] for axis in self.region.level_axes]
        return list(itertools.product(*levels))

    @cached_property
    def _part(self) -> StudyPart:
        wanted = {quantity.experiment for quantity in self.claim.quantities()}
        return StudyPart("region", levels={name: self.region.keep.get(name, {}) for name in wanted})

    def values(self, point: Point) -> tuple[float, float]:
        """Return a point's values on both axes."""
        x, y = self.region.spans
        return x.at(point.x, DIGITS), y.at(point.y, DIGITS)

    def runs(self, point: Point, replicate: int = 0) -> list[Run]:
        """Return the runs of a replicate of a point."""
        with self._named():
            return self._runs(self._at(point), replicate)

    def path(self, point: Point) -> TcpPath:
        """Return the path at a point."""
        return path_of(self.runs(point)[0].scenario)

    def paper(self) -> dict[str, float]:
        """Return the paper's own value on each axis where it has one."""
        with self._named():
            found = [(a.id, self._own(a)) for a in self.region.ranges]
        return {name: value for name, value in found if value is not None}

    def _at(self, point: Point) -> Study:
        """Return the part of the study that the claim is about, as it is at a point."""
        study = self.study
        for axis, key in zip(self.region.level_axes, point.panel, strict=True):
            (change,) = (level.set for level in axis.levels or [] if level.key == key)
            study = study if change is None else apply(study, change)
        study = self._part.study(study)
        axes = list(zip(self.region.ranges, self.region.spans, self.values(point), strict=True))
        for axis, span, value in axes:
            if axis.set is not None:
                scaled = value * axis.scale
                number = round(scaled) if span.whole else rounded(scaled, 8)
                study = apply(study, axis.set.at(number))
        of_bdp = [(axis.of_bdp, value) for axis, _, value in axes if axis.of_bdp is not None]
        if not of_bdp:
            return study
        path = path_of(self._runs(study)[0].scenario)
        amounts: dict[str, JsonValue] = {
            of.parameter: _bdp_amount(of, value, path) for of, value in of_bdp
        }
        return apply(study, Variation(parameters=amounts))

    def _runs(self, study: Study, replicate: int = 0) -> list[Run]:
        wanted = list(self.claim.quantities())
        tier = explored_tier("all", replicate + 1)
        return [
            run
            for run in design_study(study, tier, [self.engine], self.ns3_version)
            if run.replicate == replicate
            and any(q.experiment == run.experiment and covers(q.where, run.levels) for q in wanted)
        ]

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise InputError(f"{region_path(Path(), self.region.id).as_posix()}: {error}") from None

    def _own(self, axis: Axis) -> float | None:
        """Return the paper's value, or the default of the one number that the axis sets."""
        names = [axis.of_bdp.parameter] if axis.of_bdp else []
        names += axis.set.parameters if axis.set else []
        if axis.paper is not None or len(names) != 1:
            return axis.paper
        scope, _, name = names[0].rpartition("/")
        experiment = self.base.experiment(scope or next(iter(self._part.levels)))
        known = parameters_of(self.base, experiment)
        value = known[name].value if name in known else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if axis.of_bdp is None:
            return value / axis.scale
        path = path_of(self._runs(self._part.study(self.base))[0].scenario)
        packets = value / _unit_bytes(axis.of_bdp, path)
        is_factor = axis.of_bdp.amount == "times"
        return packets / path.bdp_packets if is_factor else packets - path.bdp_packets


def _unit_bytes(of: OfBdp, path: TcpPath) -> int:
    return path.packet_bytes if of.counted_in == "bytes" else 1


def _bdp_amount(of: OfBdp, value: float, path: TcpPath) -> int:
    packets = value * path.bdp_packets if of.amount == "times" else path.bdp_packets + value
    return round(max(packets * _unit_bytes(of, path), of.least))


#: Points along each axis at which a law is computed, and the value drawn for an infinite share.
_STEPS, _HUGE = 12, 1e9


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


_LAWS: dict[str, Callable[[Law, TcpPath], float]] = {
    "room": lambda law, path: path.queue_packets / (law.value or math.nan),
    "mathis": mathis,
    "cubic_response": cubic_response,
    "ware": ware,
}


def drawn_laws(space: Space, panel: Panel) -> list[dict[str, Any]]:
    """Return the laws of a panel as segments, 0 to 1; one that is crossed nowhere has none."""
    laws = [
        law
        for law in space.region.laws
        if (not law.panels or set(law.panels) & set(panel))
        and (not law.engines or space.engine in law.engines)
    ]
    steps = [step / _STEPS for step in range(_STEPS + 1)]
    paths: list[list[TcpPath]] = []
    if any(law.kind != "line" for law in laws):
        paths = [[space.path(Point(panel, x, y)) for x in steps] for y in steps]
    return [
        {
            "title": law.title,
            "source": law.source,
            "condition": law.condition,
            "segments": _segments(space.region, law, paths, steps),
        }
        for law in laws
    ]


def _segments(
    region: Region, law: Law, paths: Sequence[Sequence[TcpPath]], steps: Sequence[float]
) -> Segments:
    if law.kind == "line":
        is_x = law.axis == region.ranges[0].id
        at = round(region.spans[0 if is_x else 1].position(law.value or 0.0), 4)
        ends = (at, 0.0, at, 1.0) if is_x else (0.0, at, 1.0, at)
        return [ends] if 0 <= at <= 1 else []
    wanted = 1.0 if law.share is None else law.share
    # The laws are powers: straight in the logarithm, which has no border beside a share of 0.
    shares = [[min(_LAWS[law.kind](law, path) / wanted, _HUGE) for path in row] for row in paths]
    with np.errstate(divide="ignore"):
        return contour(np.log(shares), steps)


#: Ends of straight pieces: x, y, x, y, each 0 to 1.
Segments = list[tuple[float, float, float, float]]


def contour(values: ArrayLike, steps: Sequence[float] | NDArray[np.float64]) -> Segments:
    """Return where values change their sign: a row a y, a column an x, both at `steps`.

    Marching squares: a crossing of a cell's edge is interpolated, and joined to the next.
    """
    table = np.asarray(values, dtype=float)
    found: Segments = []
    for j, i in itertools.product(range(len(steps) - 1), repeat=2):
        corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
        crossed = []
        for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True):
            one, other = table[b, a], table[d, c]
            if (one < 0) != (other < 0):
                share = one / (one - other)
                x = steps[a] + share * (steps[c] - steps[a])
                y = steps[b] + share * (steps[d] - steps[b])
                crossed += [round(float(x), 4), round(float(y), 4)]
        found += [tuple(crossed[at : at + 4]) for at in range(0, len(crossed), 4)]  # type: ignore[misc]
    return found
