"""The space of a map: the study at a place, and the path on which amounts are computed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from replication.engines.model import FlowPaths
from replication.engines.ns3 import NS3_VERSION
from replication.plan.design import Run, design_study
from replication.sensitivity.design_point import explored_tier
from replication.sensitivity.maps.map_model import DIGITS, Axis, Map, map_path
from replication.sensitivity.trial_runner import StudyPart
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
    """What a map's places make of its study on an engine.

    Attributes
    ----------
    map, base
        The map and its study.
    engine, ns3_version
        Where it is mapped.
    """

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
        """Return the part of the study that the sentence is about, as it is at a place.

        Raises
        ------
        InputError
            The map names what is not there, or its values make no scenario.
        """
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
