"""The textbook set-up: one rule for what a paper does not print, computed for each point.

configs/README.md ("Set-ups") words the rule. It was written on 2026-11-27, after results at the
defaults were known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from replication.base.errors import InputError
from replication.engines.path import FlowPaths, limit_packets
from replication.study.link import Cake, DropTail, Link, Queue, Red
from replication.study.printed import LIMITS, Setting
from replication.study.scenario import Scenario, TcpFlow

#: A buffer holds so many full packets at least, and so many for each TCP flow.
LEAST_PACKETS, PACKETS_PER_FLOW = 10, 4
#: A window is so many times the largest sum of product and buffer.
WINDOW_FACTOR = 4
#: A delay of a sender's packet is at most this share of the base round trip.
JITTER_SHARE = 0.1
#: A queue that never drops holds so many copies of each window, since TCP sends packets again.
_COPIES = 2
#: Computed numbers are exact to so many decimals before they are rounded up.
_EXACT = 6
#: A window that the paper prints as unlimited.
_UNLIMITED_BYTES = 1_000_000_000


class Bottleneck(NamedTuple):
    """A monitored queue at a point."""

    link: Link
    direction: str
    queue: Queue
    rtt_s: float  # the longest propagation round trip of its TCP flows
    packet_bytes: int  # a full packet, as the link counts it
    flows: int  # TCP flows that cross it
    has_printed_limit: bool  # whether the paper prints the queue's limit

    @property
    def product_bytes(self) -> int:
        """The product of rate and round trip, rounded up."""
        return _rounded_up(self.link.peak_bps * self.rtt_s / 8)

    @property
    def buffer_bytes(self) -> int:
        """What the buffer holds: by the rule, or as the paper prints it."""
        if self.has_printed_limit:
            return _rounded_up(limit_packets(self.queue, self.packet_bytes) * self.packet_bytes)
        packets = max(LEAST_PACKETS, PACKETS_PER_FLOW * self.flows)
        return max(self.product_bytes, packets * self.packet_bytes)

    @property
    def packet_s(self) -> float:
        """The time that the link takes for a full packet."""
        return 8 * self.packet_bytes / self.link.peak_bps

    @property
    def limit(self) -> tuple[str, int]:
        """The key of the queue's limit and its value, in the queue's own unit."""
        if isinstance(self.queue, Cake):
            return "memory_limit_bytes", self.buffer_bytes
        if isinstance(self.queue, DropTail) and self.queue.limit_bytes is not None:
            return "limit_bytes", self.buffer_bytes
        unit_bytes = self.packet_bytes
        if isinstance(self.queue, Red) and self.queue.byte_mode:
            unit_bytes = self.queue.mean_packet_bytes
        return "limit_packets", _rounded_up(self.buffer_bytes / unit_bytes)


def bottlenecks(scenario: Scenario, printed: Collection[Setting]) -> list[Bottleneck]:
    """Return the monitored queues of a scenario; InputError without one that TCP flows cross."""
    paths = FlowPaths(scenario)
    crossing: dict[tuple[str, str], list[tuple[TcpFlow, float]]] = {}
    for flow in _tcp(scenario):
        hops = paths.links(flow.source, flow.destination)
        for link, direction in hops:
            crossing.setdefault((link.id, direction), []).append((flow, _round_trip_s(paths, flow)))
    links = {link.id: link for link in scenario.links}
    monitored = []
    for monitor in scenario.monitors:
        link, direction = links[monitor.link], monitor.direction
        flows = crossing.get((link.id, direction), [])
        if flows:
            queue = link.queue_ab if direction == "ab" else link.queue_ba
            rtt_s = max(rtt_s for _, rtt_s in flows)
            packet_bytes = max(flow.packet_bytes for flow, _ in flows) + link.frame_bytes
            place = "links", link.id, f"queue_{direction}"
            is_printed = any((*place, key) in printed for key in LIMITS)
            size = rtt_s, packet_bytes, len(flows)
            monitored.append(Bottleneck(link, direction, queue, *size, is_printed))
    if not monitored:
        raise InputError(
            "the textbook set-up needs a bottleneck: monitor a queue that TCP flows cross "
            "(topology.monitors), or write `setups: [defaults]`",
            (),
        )
    return monitored


def window_bytes(bottlenecks_of_points: Iterable[Bottleneck]) -> int:
    """Return the window of an experiment by the rule, from the bottlenecks of all its points."""
    most_bytes = max(queue.product_bytes + queue.buffer_bytes for queue in bottlenecks_of_points)
    return WINDOW_FACTOR * most_bytes


def jitter_s(scenario: Scenario, monitored: Iterable[Bottleneck]) -> float:
    """Return the longest delay that senders add to a packet, in whole nanoseconds."""
    paths = FlowPaths(scenario)
    shortest_s = min(_round_trip_s(paths, flow) for flow in _tcp(scenario))
    packet_s = min(bottleneck.packet_s for bottleneck in monitored)
    return round(min(packet_s, JITTER_SHARE * shortest_s), 9)


def deep_limit(scenario: Scenario) -> int:
    """Return a limit in packets that never drops: every window, and every packet of CBR flows."""
    packets = 0
    for flow in scenario.flows:
        if isinstance(flow, TcpFlow):
            window = flow.maximum_window_bytes or _UNLIMITED_BYTES
            packets += _COPIES * (window // flow.segment_bytes + 1)
        else:
            active_s = flow.stop_s - flow.start_s
            packets += _rounded_up(flow.rate_bps * active_s / (8 * flow.packet_bytes)) + 1
    return packets


def senders_links(scenario: Scenario) -> list[str]:
    """Return the first links of all flows, without monitored ones."""
    paths = FlowPaths(scenario)
    monitored = {monitor.link for monitor in scenario.monitors}
    first = [paths.links(flow.source, flow.destination)[0][0].id for flow in scenario.flows]
    return [name for name in dict.fromkeys(first) if name not in monitored]


def apply_rule(scenario: Scenario, window: int, printed: Collection[Setting]) -> Scenario:
    """Return a scenario under the textbook set-up.

    `scenario` is that of the study, `window` the `window_bytes` of its experiment, and `printed`
    are the settings that stay because the paper prints them.
    """
    document = scenario.model_dump(mode="json")
    monitored = bottlenecks(scenario, printed)
    for flow in document["flows"]:
        if flow["kind"] == "tcp":
            rule = {"maximum_window_bytes": window, "initial_ssthresh_bytes": None}
            flow |= _free(rule, printed, "flows", flow["id"])
    deep = deep_limit(Scenario.model_validate(document))
    buffers = {(queue.link.id, queue.direction): queue for queue in monitored}
    jittered = senders_links(scenario)
    most_s = jitter_s(scenario, monitored)
    for link in document["links"]:
        if link["id"] in jittered:
            link |= _free({"jitter_s": most_s}, printed, "links", link["id"])
        for direction in ("ab", "ba"):
            place = "links", link["id"], f"queue_{direction}"
            queue = link[place[-1]]
            buffer = buffers.get((link["id"], direction))
            if buffer is not None:
                limits = [] if buffer.has_printed_limit else [buffer.limit]
                below = {"device_queue_packets": 1} if "device_queue_packets" in queue else {}
                queue |= dict(limits) | _free(below, printed, *place)
            elif not any((*place, key) in printed for key in LIMITS):
                link[place[-1]] = {"kind": "droptail", "limit_packets": deep}
    return Scenario.model_validate(document)


def _free(rule: dict[str, Any], printed: Collection[Setting], *place: str) -> dict[str, Any]:
    """Return the settings of the rule that the paper does not print."""
    return {key: value for key, value in rule.items() if (*place, key) not in printed}


def _tcp(scenario: Scenario) -> Iterator[TcpFlow]:
    return (flow for flow in scenario.flows if isinstance(flow, TcpFlow))


def _round_trip_s(paths: FlowPaths, flow: TcpFlow) -> float:
    hops = paths.links(flow.source, flow.destination) + paths.links(flow.destination, flow.source)
    return sum(link.delay_range_s[1] for link, _ in hops)


def _rounded_up(value: float) -> int:
    return math.ceil(round(value, _EXACT))
