"""The paths of a scenario's flows, and how often packets cross their links: a run's cost."""

from __future__ import annotations

from collections import defaultdict

from replication.engines.routing import Routes
from replication.study.link import Link
from replication.study.scenario import TCP_IP_HEADER_BYTES, CbrFlow, Scenario

#: The least share of a link that TCP is counted with beside CBR.
_LEAST_SHARE = 0.1
#: The least round trip that a window is divided by.
_LEAST_RTT_S = 1e-3


class FlowPaths:
    """The routes of a scenario, between its nodes by name."""

    def __init__(self, scenario: Scenario) -> None:
        self._links = scenario.links
        self._place = {name: number for number, name in enumerate(scenario.nodes)}
        ends = [(self._place[link.a], self._place[link.b]) for link in scenario.links]
        self._routes = Routes(len(self._place), ends)

    def hops(self, source: str, destination: str) -> list[int]:
        """Return the hops from one node to another, as `Routes` numbers them."""
        return self._routes.path(self._place[source], self._place[destination])

    def links(self, source: str, destination: str) -> list[tuple[Link, str]]:
        """Return the links from one node to another, each with the direction: ab or ba."""
        hops = self.hops(source, destination)
        return [(self._links[hop // 2], "ba" if hop % 2 else "ab") for hop in hops]


def link_crossings(scenario: Scenario) -> float:
    """Return an estimate of how often a packet or an acknowledgement crosses a link.

    CBR sends at its rate; TCP has what its window or the links of its path allow, shares a link
    with the other TCP flows in proportion to that, and leaves CBR its part.
    """
    routes = FlowPaths(scenario)
    paths = [routes.hops(flow.source, flow.destination) for flow in scenario.flows]
    rates = [link.rate_bps for link in scenario.links for _ in "ab"]
    wanted_bps = [_wanted_bps(scenario, n, path) for n, path in enumerate(paths)]
    cbr_bps: dict[int, float] = defaultdict(float)
    tcp_bps: dict[int, float] = defaultdict(float)
    for flow, path, bps in zip(scenario.flows, paths, wanted_bps, strict=True):
        for hop in path:
            (cbr_bps if isinstance(flow, CbrFlow) else tcp_bps)[hop] += bps
    crossings = 0.0
    for flow, path, bps in zip(scenario.flows, paths, wanted_bps, strict=True):
        if isinstance(flow, CbrFlow):
            for hop in path:
                bps = min(bps, rates[hop])  # what a link cannot carry ends there
                crossings += bps * scenario.duration_s / (8 * flow.packet_bytes)
            continue
        share = min(
            (
                max(rates[hop] - cbr_bps[hop], _LEAST_SHARE * rates[hop]) / tcp_bps[hop]
                for hop in path
            ),
            default=0.0,
        )
        packet_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
        packets = min(1.0, share) * bps * scenario.duration_s / (8 * packet_bytes)
        acknowledged = 1 + 1 / flow.delayed_ack_segments
        crossings += acknowledged * packets * len(path)
    return crossings


def _wanted_bps(scenario: Scenario, number: int, path: list[int]) -> float:
    """Return what a flow would send alone, as a mean over the whole run."""
    flow = scenario.flows[number]
    active = max(0.0, min(flow.stop_s, scenario.duration_s) - flow.start_s) / scenario.duration_s
    if isinstance(flow, CbrFlow):
        return flow.rate_bps * active
    links = [scenario.links[hop // 2] for hop in path]
    bps = min((link.rate_bps for link in links), default=0.0)
    if flow.maximum_window_bytes is not None:
        rtt_s = max(2 * sum(link.delay_s for link in links), _LEAST_RTT_S)
        bps = min(bps, 8 * flow.maximum_window_bytes / rtt_s)
    return bps * active


def nominal_crossings(scenario: Scenario) -> float:
    """Return the estimate by which tiers shorten runs and choose how many replicates there are.

    It is frozen: were it to follow a better one, so would what is simulated. Every flow crosses
    three links, the slowest of the whole graph bounds TCP, and CBR takes nothing of it.
    """
    slowest_bps = min(link.rate_bps for link in scenario.links)
    hops = min(len(scenario.links), 3)
    delays_s = sorted((link.delay_s for link in scenario.links), reverse=True)
    rtt_s = max(2 * sum(delays_s[:3]), _LEAST_RTT_S)
    tcp_bps, segment_bytes, crossings = 0.0, 1500, 0.0
    for flow in scenario.flows:
        active_s = flow.stop_s - flow.start_s
        if isinstance(flow, CbrFlow):
            crossings += flow.rate_bps * active_s / (8 * flow.packet_bytes) * hops
            continue
        window = flow.maximum_window_bytes
        demand_bps = slowest_bps if window is None else min(slowest_bps, 8 * window / rtt_s)
        tcp_bps += demand_bps * active_s / scenario.duration_s
        segment_bytes = flow.segment_bytes + TCP_IP_HEADER_BYTES
    # An acknowledgement costs about as much as the data packet it answers.
    carried = 2 * min(tcp_bps, slowest_bps) * scenario.duration_s / (8 * segment_bytes)
    return crossings + carried * hops
