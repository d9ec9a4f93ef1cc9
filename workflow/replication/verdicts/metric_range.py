"""Ranges of metrics: what a scenario allows, whatever TCP does in it.

They follow from the scenario alone: its rates, delays, queues, windows and number of flows. Mean
rates count as a fluid: a link whose flows offer less than its rate, and whose queue holds all of
their windows, loses nothing, and an overloaded link loses no more than what is offered beyond its
rate. `UNBOUNDED` lists the metrics for which nothing follows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from replication.engines.path import limit_packets
from replication.metrics.metric_model import METRICS
from replication.metrics.statistic import jain_index
from replication.study.claim_model import Quantity
from replication.study.link import Cake, DropTail, Link, Pfifo
from replication.study.scenario import TCP_IP_HEADER_BYTES, CbrFlow, Flow, TcpFlow
from replication.verdicts.bound import StatedPoint
from replication.verdicts.wording import span

#: Algorithms that only a loss makes slow down: without one their window grows to its maximum.
LOSS_BASED = {
    "bic",
    "cubic",
    "highspeed",
    "htcp",
    "hybla",
    "linuxreno",
    "newreno",
    "reno",
    "scalable",
    "tahoe",
    "westwood",
    "westwood_plus",
}


class Range(NamedTuple):
    """The values from `low` to `high`, both included."""

    low: float
    high: float


ANY = Range(-math.inf, math.inf)
_Hop = tuple[Link, str]


class Allowed:
    """What one scenario allows; `strict` counts only what the paper states."""

    def __init__(self, point: StatedPoint, strict: bool = False) -> None:
        self.point, self.strict = point, strict
        self._crossing: dict[tuple[str, str], list[Flow]] = {}
        for flow in point.scenario.flows:
            for link, way in point.path(flow):
                self._crossing.setdefault((link.id, way), []).append(flow)

    def range_of(self, wanted: Quantity) -> Range:
        """Return the range of a quantity in this scenario; `ANY` without a bound."""
        flows = self.point.flows(wanted.flows)
        bounds = BOUNDED.get(wanted.metric)
        if bounds is None or not flows:
            return ANY
        if METRICS[wanted.metric].source in ("queue", "fairness"):
            return bounds(self, flows[0], self._span_s(wanted, flows[0]))
        of_flows = [bounds(self, flow, self._span_s(wanted, flow)) for flow in flows]
        low, high = _together(wanted.aggregate, of_flows)
        if wanted.metric in _RATES and wanted.aggregate in ("sum", "mean"):
            most = self.point.total_rate_bps(flows, self.strict)
            high = min(high, most if wanted.aggregate == "sum" else most / len(flows))
        return Range(low, high)

    def _span_s(self, wanted: Quantity, flow: Flow) -> float:
        """Return the time in s over which a flow is measured."""
        if wanted.window_s is not None:
            return wanted.window_s[1] - wanted.window_s[0]
        return min(flow.stop_s, self.point.scenario.duration_s) - flow.start_s

    # -- rates ------------------------------------------------------------------------------------

    def throughput(self, flow: Flow, span_s: float) -> Range:
        """Return the range of IP bytes per time at the receiver."""
        return Range(self._least_bps(flow, span_s), self._most_bps(flow, span_s))

    def goodput(self, flow: Flow, span_s: float) -> Range:
        """Return the range of application bytes per time; it is at most that of IP bytes."""
        return Range(0.0, self._most_bps(flow, span_s))

    def _most_bps(self, flow: Flow, span_s: float) -> float:
        rate_bps = self.point.rate_bps(flow, self.strict)
        return rate_bps if self.strict else min(rate_bps, self._offered_bps(flow, span_s))

    def _offered_bps(self, flow: Flow, span_s: float) -> float:
        """Return the largest mean rate at which a flow sends."""
        if isinstance(flow, CbrFlow):
            return flow.rate_bps + 8 * flow.packet_bytes / span_s
        # A window a round trip, and one more that was under way at the start.
        windows = span_s / self.point.rtt_s(flow, strict=False) + 1
        return 8 * _window_bytes(flow) * windows / span_s

    def _least_bps(self, flow: Flow, span_s: float) -> float:
        if self.strict:
            return 0.0
        if isinstance(flow, CbrFlow):
            lost = sum(self._overload_bps(hop, span_s) for hop in self.point.path(flow))
            under_way_bps = flow.rate_bps * self._longest_delay_s(flow) / span_s
            return max(0.0, flow.rate_bps - lost - under_way_bps)
        return self._steady_bps(flow) * max(0.0, 1 - self._ramp_s(flow) / span_s)

    def _overload_bps(self, hop: _Hop, span_s: float) -> float:
        """Return how much more the flows of a link offer than it can carry."""
        link, way = hop
        if not _is_plain(hop):
            return math.inf
        flows = self._crossing[link.id, way]
        offered = sum(min(self._offered_bps(flow, span_s), link.rate_bps) for flow in flows)
        return max(0.0, offered - link.rate_bps)

    def _steady_bps(self, flow: TcpFlow) -> float:
        """Return the rate that a flow reaches that is alone, cannot lose and fills its window."""
        hops = self.point.path(flow)
        links = {link.id for link, _ in hops}
        sharing = [flows for (link, _), flows in self._crossing.items() if link in links]
        is_alone = all(flows == [flow] for flows in sharing)
        fills = flow.congestion_control in LOSS_BASED and flow.stop_after_bytes is None
        if not (is_alone and fills and self.is_lossless(flow)):
            return 0.0
        slowest_bps = self.point.rate_bps(flow, strict=False)
        packet_s = 8 * flow.packet_bytes / slowest_bps
        # Acknowledgements of several segments wait for the last of them.
        rtt_s = self.point.rtt_s(flow, strict=False) + flow.delayed_ack_segments * packet_s
        rtt_s += sum(8 * 2 * TCP_IP_HEADER_BYTES / link.rate_bps for link, _ in hops)
        segments = _window_segments(flow) - flow.delayed_ack_segments
        return min(slowest_bps, 8 * flow.packet_bytes * max(0.0, segments) / rtt_s)

    def _ramp_s(self, flow: TcpFlow) -> float:
        """Return how long a window takes at most that grows by one segment an acknowledgement."""
        slowest_bps = self.point.rate_bps(flow, strict=False)
        full_s = self.point.rtt_s(flow, strict=False) + 8 * _window_bytes(flow) / slowest_bps
        return flow.delayed_ack_segments * _window_segments(flow) * full_s

    # -- delays, losses and queues ----------------------------------------------------------------

    def delay(self, flow: Flow, _span_s: float) -> Range:
        """Return the range of the one-way delay of packets that arrive."""
        most = math.inf if self.strict else self._longest_delay_s(flow)
        return Range(self.point.delay_s(flow, self.strict), most)

    def round_trip(self, flow: Flow, _span_s: float) -> Range:
        """Return the range of the round-trip time, which has no largest value."""
        return Range(self.point.rtt_s(flow, self.strict), math.inf)

    def _longest_delay_s(self, flow: Flow) -> float:
        waits_s = (self._longest_wait_s(hop) for hop in self.point.path(flow))
        return self.point.delay_s(flow, strict=False) + sum(waits_s)

    def _longest_wait_s(self, hop: _Hop) -> float:
        """Return how long the queue of a link takes to empty when it is full."""
        link, way = hop
        if not _is_plain(hop):
            return math.inf
        flows = self._crossing[link.id, way]
        largest = max(flow.packet_bytes for flow in flows)
        packets = self._room_packets(hop, largest) + 1
        windows = sum(_window_bytes(flow) for flow in flows if isinstance(flow, TcpFlow))
        if any(isinstance(flow, CbrFlow) for flow in flows):
            windows = math.inf
        return link.jitter_s + 8 * min(packets * largest, windows) / link.rate_bps

    def _room_packets(self, hop: _Hop, packet_bytes: int) -> float:
        link, way = hop
        queue = link.queue_ab if way == "ab" else link.queue_ba
        below = 0 if isinstance(queue, DropTail) else queue.device_queue_packets
        return math.inf if isinstance(queue, Cake) else limit_packets(queue, packet_bytes) + below

    def is_lossless(self, flow: Flow) -> bool:
        """Whether no queue on a flow's path can overflow, and none drops before it is full."""
        return not self.strict and all(self._holds_all(hop) for hop in self.point.path(flow))

    def _holds_all(self, hop: _Hop) -> bool:
        link, way = hop
        queue = link.queue_ab if way == "ab" else link.queue_ba
        if not _is_plain(hop) or not isinstance(queue, DropTail | Pfifo):
            return False
        flows = self._crossing[link.id, way]
        windows = sum(_window_segments(flow) for flow in flows if isinstance(flow, TcpFlow))
        room = limit_packets(queue, max(flow.packet_bytes for flow in flows))
        if windows > room:
            return False
        is_open = any(isinstance(flow, CbrFlow) for flow in flows)
        return not is_open or self._overload_bps(hop, self.point.scenario.duration_s) == 0

    def losses(self, flow: Flow, _span_s: float) -> Range:
        """Return the range of a number of lost packets."""
        return Range(0.0, 0.0 if self.is_lossless(flow) else math.inf)

    def loss_rate(self, flow: Flow, _span_s: float) -> Range:
        """Return the range of the share of lost packets."""
        return Range(0.0, 0.0 if self.is_lossless(flow) else 1.0)

    def delivery_ratio(self, flow: Flow, _span_s: float) -> Range:
        """Return the range of the share of delivered packets.

        Packets under way at the end count as delivered, since no run says what becomes of them.
        """
        return Range(1.0 if self.is_lossless(flow) else 0.0, 1.0)

    def queue_losses(self, _flow: Flow, _span_s: float) -> Range:
        """Return the range of the number of packets that the monitored queues drop."""
        is_lossless = all(self.is_lossless(flow) for flow in self.point.scenario.flows)
        return Range(0.0, 0.0 if is_lossless else math.inf)

    def queue_length(self, _flow: Flow, _span_s: float) -> Range:
        """Return the range of the length of a monitored queue."""
        least = min((flow.packet_bytes for flow in self.point.scenario.flows), default=1)
        links = {link.id: link for link in self.point.scenario.links}
        monitors = self.point.scenario.monitors
        hops = [(links[monitor.link], monitor.direction) for monitor in monitors]
        # Acknowledgements are smaller than any data packet.
        rooms = [self._room_packets(hop, min(least, TCP_IP_HEADER_BYTES)) + 1 for hop in hops]
        return Range(0.0, math.inf if self.strict else max(rooms, default=math.inf))

    def fairness(self, _flow: Flow, _span_s: float) -> Range:
        """Return the range of Jain's index."""
        return Range(1 / len(self.point.scenario.flows), 1.0)

    def fairness_variation(self, _flow: Flow, _span_s: float) -> Range:
        """Return the range of the standard deviation of Jain's index."""
        return Range(0.0, 0.5)


#: How to bound each metric.
BOUNDED: dict[str, Callable[[Allowed, Flow, float], Range]] = {
    "throughput_bps": Allowed.throughput,
    "goodput_bps": Allowed.goodput,
    "delay_mean_s": Allowed.delay,
    "delay_p95_s": Allowed.delay,
    "delay_s": Allowed.delay,
    "rtt_mean_s": Allowed.round_trip,
    "rtt_s": Allowed.round_trip,
    "rtt_peak_s": Allowed.round_trip,
    "packets_dropped": Allowed.losses,
    "drops": Allowed.losses,
    "loss_rate": Allowed.loss_rate,
    "delivery_ratio": Allowed.delivery_ratio,
    "queue_drops": Allowed.queue_losses,
    "queue_mean_packets": Allowed.queue_length,
    "queue_peak_packets": Allowed.queue_length,
    "jain_mean": Allowed.fairness,
    "jain_since_start_mean": Allowed.fairness,
    "jain_since_start_variation": Allowed.fairness_variation,
}
#: Metrics that no scenario bounds; claims about them are not checked.
UNBOUNDED = [metric for metric in METRICS if metric not in BOUNDED]
_RATES = ("throughput_bps", "goodput_bps")


def _together(aggregate: str, parts: list[Range]) -> Range:
    """Return the range of an aggregate of values with these ranges."""
    lows = [part.low for part in parts]
    highs = [part.high for part in parts]
    match aggregate:
        case "sum":
            return Range(sum(lows), sum(highs))
        case "mean":
            return Range(sum(lows) / len(parts), sum(highs) / len(parts))
        case "maximum":
            return Range(max(lows), max(highs))
        case "minimum":
            return Range(min(lows), min(highs))
        case "jain":
            return Range(1 / len(parts), _fairest(parts))
    # A ratio of sums lies between those of the flows.
    return Range(min(lows), max(highs))


def _fairest(parts: list[Range]) -> float:
    """Return the largest Jain's index of values with these ranges.

    The fairest values lie as close as their ranges allow to a common one. The index rises towards
    the best common value and falls beyond it, and each end of a range may be that value.
    """
    ends = sorted(filter(math.isfinite, itertools.chain(*parts)))
    low, high = ends[0], ends[-1]

    def index_at(common: float) -> float:
        values = [min(max(common, part.low), part.high) for part in parts]
        return float(jain_index(values)) if any(values) else 1.0

    for _ in range(200):
        third = (high - low) / 3
        if index_at(low + third) < index_at(high - third):
            low += third
        else:
            high -= third
    return max(index_at(common) for common in [(low + high) / 2, *ends])


def _window_segments(flow: TcpFlow) -> float:
    most = flow.maximum_window_bytes
    return math.inf if most is None else most / flow.segment_bytes


def _window_bytes(flow: TcpFlow) -> float:
    """Return the IP bytes of a flow's largest window."""
    return _window_segments(flow) * flow.packet_bytes


def _is_plain(hop: _Hop) -> bool:
    """Whether a link has a constant rate and no loss of its own."""
    link, way = hop
    loss = link.loss_ab if way == "ab" else link.loss_ba
    return link.is_constant and loss is None and link.shaper(way) is None and not link.frame_bytes


def windows_in_words(points: Iterable[StatedPoint]) -> str:
    """Return the largest windows of the TCP flows, as "windows of 20 packets"; empty for none."""
    windows = []
    for point in points:
        tcp = [flow for flow in point.scenario.flows if isinstance(flow, TcpFlow)]
        windows += [_window_segments(flow) for flow in tcp]
    is_limited = bool(windows) and all(math.isfinite(window) for window in windows)
    return f"windows of {span(windows)} packets" if is_limited else ""
