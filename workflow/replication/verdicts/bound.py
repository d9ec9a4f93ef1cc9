"""Physical bounds of a point: what no run of its scenario can exceed, whatever the algorithm.

*Strict* bounds use only what the paper states: a link with an unstated delay adds nothing to a
path, a link with an unstated rate limits nothing, and packets take no time to transmit. *Full*
bounds use the study's assumptions too. A value beyond a strict bound is impossible; one that is
only beyond a full bound contradicts an assumption of ours.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from replication.design.design import combinations
from replication.engines.path import FlowPaths
from replication.study.claim_model import Flows, Quantity, StartOrder, Where, covers
from replication.study.link import Link
from replication.study.parameter import Parameter
from replication.study.scenario import TCP_IP_HEADER_BYTES, CbrFlow, Flow, Scenario
from replication.study.study import Experiment, Study, parameters_of
from replication.study.template import expand, instantiate, resolve
from replication.study.variation import references

#: Fields that make a TCP variant. Runs that never use them do not depend on the variant.
ALGORITHM_FIELDS = {
    "congestion_control",
    "recovery",
    "sack",
    "limited_transmit",
    "vegas_alpha_packets",
    "vegas_beta_packets",
    "vegas_gamma_packets",
}
#: Bounds do not depend on random numbers, and equal points must give equal scenarios.
_SEED = 1


@dataclass(frozen=True)
class StatedPoint:
    """One point of an experiment as the paper describes it, with assumptions at their defaults.

    `stated` has what the paper states: a link's id with "rate_bps" or "delay_s"; `levels` are the
    keys of the factors' levels.
    """

    scenario: Scenario
    stated: set[tuple[str, str]]
    levels: dict[str, str] = field(default_factory=dict)

    @cached_property
    def signature(self) -> tuple[Any, ...]:
        """What points have in common that differ only in the order of links along the path."""
        alike = {"rate_bps", "delay_s", "jitter_s", "frame_bytes", "shaper_ab", "shaper_ba"}
        alike |= {"changes", "opportunities_ab", "opportunities_ba"}
        links = sorted(link.model_dump_json(include=alike) for link in self.scenario.links)
        dropped = {"id", "source", "destination"}
        flows = sorted(flow.model_dump_json(exclude=dropped) for flow in self.scenario.flows)
        return self.scenario.duration_s, tuple(links), tuple(flows)

    @cached_property
    def _paths(self) -> FlowPaths:
        return FlowPaths(self.scenario)

    @cached_property
    def network(self) -> str:
        """The scenario without the choice of TCP algorithm."""
        return self.scenario.model_dump_json(exclude={"flows": {"__all__": ALGORITHM_FIELDS}})

    def flows(self, chosen: Flows) -> list[Flow]:
        """Return the flows that `chosen` names."""
        if chosen == "all":
            return list(self.scenario.flows)
        if isinstance(chosen, str):
            return [flow for flow in self.scenario.flows if flow.kind == chosen]
        if isinstance(chosen, StartOrder):
            starts = sorted(self.flows("tcp"), key=lambda flow: flow.start_s)
            return starts[chosen.start_order - 1 : chosen.start_order]
        return [flow for flow in self.scenario.flows if flow.id in chosen]

    def path(self, flow: Flow) -> list[tuple[Link, str]]:
        """Return the links and their directions from source to destination, as engines route."""
        return self._paths.links(flow.source, flow.destination)

    def delay_s(self, flow: Flow, strict: bool) -> float:
        """Return the least one-way delay of a data packet, if not strict with transmission."""
        if strict:
            return self._propagation_s(flow, strict)
        bits = 8 * least_packet_bytes(flow)
        return sum(
            link.delay_range_s[0] + bits / link.passing_bps(way) for link, way in self.path(flow)
        )

    def _propagation_s(self, flow: Flow, strict: bool) -> float:
        links = [link for link, _ in self.path(flow)]
        if strict:
            links = [link for link in links if (link.id, "delay_s") in self.stated]
        return sum(link.delay_range_s[0] for link in links)

    def rtt_s(self, flow: Flow, strict: bool) -> float:
        """Return the least round-trip time of a data packet and its acknowledgement."""
        return self.delay_s(flow, strict) + self._propagation_s(flow, strict)

    def rate_bps(self, flow: Flow, strict: bool) -> float:
        """Return the largest mean rate of one flow, that of its slowest link."""
        return min((self._rate(hop, strict, [flow]) for hop in self.path(flow)), default=math.inf)

    def total_rate_bps(self, flows: list[Flow], strict: bool) -> float:
        """Return the largest sum of the flows' mean rates, each over its own active time.

        Links that all flows cross in one direction limit the sum. If flows are not active at the
        same time, the sum may be larger by the ratio of their span to the shortest active time.
        """
        paths = [self.path(flow) for flow in flows]
        first = paths[0] if paths else []
        shared = [hop for hop in first if all(hop in path for path in paths)]
        span = _span_s(flows)
        active = min(f.stop_s - f.start_s for f in flows)
        together = min((self._rate(hop, strict, flows) for hop in shared), default=math.inf)
        return min(together * span / active, sum(self.rate_bps(flow, strict) for flow in flows))

    def _rate(self, hop: tuple[Link, str], strict: bool, flows: list[Flow]) -> float:
        link, direction = hop
        if strict and (link.id, "rate_bps") not in self.stated:
            return math.inf
        shaper = link.shaper(direction)
        if shaper is None:
            return link.passing_bps(direction)
        # A shaper also passes its burst, and one packet on credit.
        more_bytes = shaper.burst_bytes + max(least_packet_bytes(flow) for flow in flows)
        return link.rate_bps + 8 * more_bytes / _span_s(flows)


def _span_s(flows: list[Flow]) -> float:
    """Return the time from the first start to the last stop."""
    return max(flow.stop_s for flow in flows) - min(flow.start_s for flow in flows)


def least_packet_bytes(flow: Flow) -> int:
    """Return the size of a full data packet in IP bytes, of TCP without options."""
    if isinstance(flow, CbrFlow):
        return flow.packet_bytes
    return flow.segment_bytes + TCP_IP_HEADER_BYTES


def stated_points(
    study: Study, experiment_id: str, where: Where, assumed: bool = False
) -> list[StatedPoint]:
    """Return every point of an experiment at the levels of `where`, whichever a tier runs.

    With `assumed` all links' rates and delays count as stated.
    """
    experiment = study.experiment(experiment_id)
    parameters = parameters_of(study, experiment)
    defaults = {name: parameter.value for name, parameter in parameters.items()}
    points = []
    for keys, changed in _points(experiment, where):
        values = defaults | changed
        published = {n: p.published is not None or _is_exact(p) for n, p in parameters.items()}
        for factor in experiment.factors:
            level = next(level for level in factor.levels if level.key == keys[factor.id])
            published.update(dict.fromkeys(level.set, factor.published is not None))
        stated = _stated(experiment, values, published, assumed)
        points.append(StatedPoint(instantiate(experiment, values, _SEED), stated, keys))
    return points


def shortest_duration_s(study: Study, wanted: Quantity) -> float:
    """Return the duration in s of the paper's shortest run at the points of a quantity.

    Parameters that replicates draw count at both ends of their range.
    """
    experiment = study.experiment(wanted.experiment)
    parameters = parameters_of(study, experiment)
    defaults: dict[str, Any] = {}
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    for name, parameter in parameters.items():
        defaults[name] = parameter.value
        if parameter.assumed and parameter.assumed.varies:
            lowest[name], highest[name] = parameter.assumed.varies
    durations_s = []
    for _, changed in _points(experiment, wanted.where):
        for drawn in ({}, lowest, highest):
            duration_s = resolve(experiment.duration_s, defaults | drawn | changed)
            durations_s.append(float(duration_s))
    return min(durations_s)


def _points(
    experiment: Experiment, where: Where
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    return (point for point in combinations(experiment.factors) if covers(where, point[0]))


def _stated(
    experiment: Experiment, values: dict[str, Any], published: dict[str, bool], assumed: bool
) -> set[tuple[str, str]]:
    """Return the links' rates and delays that rest only on published parameters."""

    def is_published(value: Any) -> bool:
        return all(published[name] and is_published(values[name]) for name in references(value))

    stated: set[tuple[str, str]] = set()
    for template in experiment.topology.links:
        for key in ("rate_bps", "delay_s"):
            # A number in a template has no tag that says whether the paper states it.
            value = template.get(key)
            if assumed or (references(value) and is_published(value)):
                stated.update((link["id"], key) for link in expand([template], values))
    return stated


def _is_exact(parameter: Parameter) -> bool:
    """Return whether an assumption, such as a clock's error, changes a bound by under 0.1 %."""
    span = parameter.assumed.range if parameter.assumed else None
    return span is not None and 0 <= span[1] - span[0] < 1e-3 * span[0]


def propagation_s(study: Study, wanted: Quantity) -> float:
    """Return the mean one-way propagation delay of the paths of a quantity's flows."""
    delays_s = []
    for point in stated_points(study, wanted.experiment, wanted.where):
        for flow in point.flows(wanted.flows):
            delays_s.append(sum(link.delay_s for link, _ in point.path(flow)))
    return sum(delays_s) / len(delays_s)
