"""From a checked scenario to the guest's plan: routes, taps, and a line for each thing to build."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from fields import refuse
from scenario import MOST_FIXED_WINDOW_BYTES, UDP_HEADER_BYTES, Flow, Scenario

#: Bits of guest/network.h: where the packet tap listens, by side of the link.
TAP_IN, TAP_OUT, TAP_MONITOR = (1, 4), (2, 8), (16, 32)
ETHERNET_MTU_BYTES = 1500
MOST_HOPS = 60  # a Linux host sends with a time to live of 64
#: Receive buffers hold twice the window, since the kernel counts its own overhead into them.
BUFFER_SPARE_BYTES = 1 << 20


class Routes:
    """Routes with the fewest hops; the earlier link of the scenario wins a tie."""

    def __init__(self, scenario: Scenario) -> None:
        self._links = scenario.links
        self._at: list[list[int]] = [[] for _ in scenario.nodes]
        for number, link in enumerate(scenario.links):
            for node in link.nodes:
                self._at[node].append(number)
        self._towards: dict[int, dict[int, int]] = {}

    def _other(self, link: int, node: int) -> int:
        a, b = self._links[link].nodes
        return b if node == a else a

    def _hops(self, destination: int) -> dict[int, int]:
        if destination not in self._towards:
            hops, todo = {destination: 0}, deque([destination])
            while todo:
                node = todo.popleft()
                for link in self._at[node]:
                    other = self._other(link, node)
                    if other not in hops:
                        hops[other] = hops[node] + 1
                        todo.append(other)
            self._towards[destination] = hops
        return self._towards[destination]

    def path(self, source: int, destination: int) -> list[tuple[int, int]]:
        """Return (node, link) for each hop; empty if there is no way."""
        hops = self._hops(destination)
        path: list[tuple[int, int]] = []
        node = source
        while node != destination:
            if node not in hops:
                return []
            link = next(
                n for n in self._at[node] if hops.get(self._other(n, node)) == hops[node] - 1
            )
            path.append((node, link))
            node = self._other(link, node)
        return path


def _paths(scenario: Scenario, routes: Routes, flow: Flow) -> tuple[list[tuple[int, int]], ...]:
    forth, back = (
        routes.path(flow.source, flow.destination),
        routes.path(flow.destination, flow.source),
    )
    if not forth:
        refuse(
            f"flow {flow.id}.destination",
            f"{scenario.nodes[flow.destination]!r} cannot be reached from "
            f"{scenario.nodes[flow.source]!r}",
            "add links that join them",
        )
    if len(forth) > MOST_HOPS:
        refuse(
            f"flow {flow.id}.destination",
            f"{len(forth)} hops away",
            f"keep paths to at most {MOST_HOPS} hops",
        )
    return forth, back


def _route_lines(
    flow: Flow, number: int, paths: tuple[list[tuple[int, int]], ...]
) -> Iterator[str]:
    """Yield a route of its own for every flow and hop: its ends hold the flow's TCP settings."""
    for to_source, path in enumerate(paths):
        for hop, (node, link) in enumerate(path):
            settings = "0 0 0"
            if hop == 0 and flow.tcp and to_source:
                settings = f"0 {flow.minimum_rto_ms} {int(flow.quick_ack)}"
            elif hop == 0 and flow.tcp:
                settings = f"{flow.initial_window} {flow.minimum_rto_ms} 0"
            yield f"route {node} {link} {number} {to_source} {settings}"


def _flow_line(scenario: Scenario, flow: Flow, forth: list[tuple[int, int]]) -> str:
    first, last = forth[0][1], forth[-1][1]
    ends = (
        f"{flow.source} {flow.destination} {flow.start_ns} {flow.stop_ns}"
        f" {first} {scenario.links[first].nodes.index(flow.source)}"
        f" {last} {scenario.links[last].nodes.index(flow.destination)}"
    )
    if not flow.tcp:
        interval_ns = 8e9 * flow.packet_bytes / flow.rate_bps
        return f"cbr {ends} {flow.packet_bytes - UDP_HEADER_BYTES} {interval_ns!r}"
    window, buffer = 0, 0
    if not flow.tuned_window:
        window, buffer = flow.maximum_window, 2 * flow.maximum_window + BUFFER_SPARE_BYTES
    return (
        f"tcp {ends} {flow.control} {flow.segment_bytes} {window} {buffer}"
        f" {int(flow.sack)} {int(flow.timestamps)}"
    )


def make_plan(scenario: Scenario) -> str:
    """Return the plan's text: numbers and the kernel's own names only."""
    routes = Routes(scenario)
    paths = [_paths(scenario, routes, flow) for flow in scenario.flows]
    taps = [0] * len(scenario.links)
    for flow, (forth, _) in zip(scenario.flows, paths, strict=True):
        first, last = forth[0][1], forth[-1][1]
        taps[first] |= TAP_IN[scenario.links[first].nodes.index(flow.source)]
        taps[last] |= TAP_OUT[scenario.links[last].nodes.index(flow.destination)]
    for watched, direction in scenario.monitors:
        taps[watched] |= TAP_MONITOR[direction]
        if scenario.host.segmentation_offload:  # the queue's packets are counted there
            taps[watched] |= TAP_IN[direction]
    largest = max(flow.largest_packet_bytes for flow in scenario.flows)
    route_lines = [
        line
        for number, flow in enumerate(scenario.flows)
        for line in _route_lines(flow, number, paths[number])
    ]
    lines = [
        f"run {scenario.duration_ns} {scenario.interval_ns} {max(largest, ETHERNET_MTU_BYTES)}"
        f" {len(scenario.nodes)} {len(scenario.links)} {len(route_lines)} {len(scenario.flows)}"
        f" {len(scenario.monitors)} {int(scenario.host.segmentation_offload)}"
        f" {2 * max(MOST_FIXED_WINDOW_BYTES + 1, *(flow.tuned_window for flow in scenario.flows))}"
    ]
    parameters = {key: v for flow in scenario.flows for key, v in flow.parameters.items()}
    lines += [f"parameter {module} {name} {v}" for (module, name), v in sorted(parameters.items())]
    lines += [
        f"link {link.nodes[0]} {link.nodes[1]} {tap}"
        for link, tap in zip(scenario.links, taps, strict=True)
    ]
    for number, link in enumerate(scenario.links):
        for direction, queue in enumerate(link.queues):
            values = [*queue.values, *[0] * (8 - len(queue.values))]
            lines.append(
                f"queue {number} {direction} {link.rate_bytes_per_s} {link.delay_ns}"
                f" {round(queue.loss * (2**32 - 1))} {queue.device_packets * largest}"
                f" {queue.kind} {' '.join(repr(float(v)) for v in values)}"
            )
    lines += route_lines
    for flow, (forth, _) in zip(scenario.flows, paths, strict=True):
        lines.append(_flow_line(scenario, flow, forth))
    lines += [f"monitor {watched} {direction}" for watched, direction in scenario.monitors]
    return "\n".join(lines) + "\n"
